//! Packets of any kind, as values that proptest can draw.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::rules::FORETOLD;
use crate::frames::{Frame, ROCE, SWITCH_MAC, TCP, UDP, sum};
use crate::model::{Hop, Indicator, Watch, begin, push};

pub(super) const INT_DSCP: u8 = 0x17;
pub(super) const INT_PORT: u16 = 0x4242;
/// Queue pairs of RoCEv2 packets, so that some are placed.
pub(super) const QUEUE_PAIRS: [u32; 4] = [1, 2, 0x1234, 0xabcdef];
const BTH_BYTES: usize = 12;
const CNP: u8 = 0x81;
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_LLDP: u16 = 0x88cc;
const ETHERTYPE_LINK: u16 = 0x88b5;
const LINK_LOCAL: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];

/// The host that packets go to in a network.
pub(super) fn network_v4(net: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, net, 5)
}

/// The same over IPv6.
pub(super) fn network_v6(net: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, net.into(), 0, 0, 0, 0, 5)
}

/// How a frame comes to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By the cable in a port.
    Cable(usize),
    /// From the controller, to be routed.
    Submitted,
    /// From the controller, out of a port.
    Direct(u64),
}

/// A frame, and how it comes.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) by: By,
    pub(super) frame: Vec<u8>,
}

fn payloads() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let bth = (
        select(vec![4u8, 10, CNP]),
        select(QUEUE_PAIRS.to_vec()),
        vec(any::<u8>(), 4..90),
    );
    let roce = bth.prop_map(|(opcode, qp, rest)| {
        let mut payload = vec![opcode, 0x40, 0xff, 0xff, 0];
        payload.extend(&qp.to_be_bytes()[1..]);
        payload.resize(BTH_BYTES, 0);
        payload.extend(rest);
        (ROCE, payload)
    });
    let port = prop_oneof![select(vec![80u16, 5001, INT_PORT, 135]), any::<u16>()];
    prop_oneof![roce, (port, vec(any::<u8>(), 0..120))]
}

fn set_addresses(frame: &mut [u8], tagged: bool, v6: bool, net: u8) {
    let ip = if tagged { 18 } else { 14 };
    if v6 {
        frame[ip + 8..ip + 24].copy_from_slice(&network_v6(0).octets());
        frame[ip + 24..ip + 40].copy_from_slice(&network_v6(net).octets());
        return;
    }
    frame[ip + 12..ip + 16].copy_from_slice(&network_v4(0).octets());
    frame[ip + 16..ip + 20].copy_from_slice(&network_v4(net).octets());
    frame[ip + 10..ip + 12].fill(0);
    let checksum = !sum(&frame[ip..ip + 20], 0);
    frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// As it comes from a switch that measures.
fn carrying(frame: &[u8], by_port: bool, instructions: u16, discard: bool) -> Vec<u8> {
    let watch = Watch {
        indicator: if by_port {
            Indicator::Port(INT_PORT)
        } else {
            Indicator::Dscp(INT_DSCP)
        },
        instructions,
        hop_ml: crate::model::words_of(instructions),
        max_hops: 3,
        domain: 1,
    };
    let mut begun = begin(frame, &watch);
    if discard {
        let transport = if begun[12..14] == [8, 0] { 34 } else { 54 };
        let tcp = begun[if begun[12..14] == [8, 0] { 23 } else { 20 }] == TCP;
        begun[transport + if tcp { 20 } else { 8 } + 4] |= 0x08;
    }
    push(&begun, &Hop::between(9, 1, 2))
}

/// IP packets to the networks, as they are, as ones that carry INT, or broken in one byte.
fn ip() -> impl Strategy<Value = Input> {
    let header = (
        any::<bool>(),
        prop::bool::weighted(0.1),
        any::<bool>(),
        prop_oneof![
            Just(26u8 << 2 | 2),
            Just(0),
            Just(INT_DSCP << 2),
            any::<u8>()
        ],
        select(vec![64u8, 64, 64, 2, 1, 0]),
        select(vec![TCP, UDP, UDP, UDP, 1]),
    );
    let int = prop::option::weighted(
        0.3,
        (any::<bool>(), any::<u16>(), prop::bool::weighted(0.1)),
    );
    let broken = prop::option::weighted(0.15, (any::<Index>(), any::<u8>()));
    (
        header,
        payloads(),
        any::<u16>(),
        0u8..5,
        int,
        broken,
        1usize..4,
    )
        .prop_map(
            |(
                (v6, tagged, checksum, tos, ttl, protocol),
                (dst_port, payload),
                src_port,
                net,
                int,
                broken,
                port,
            )| {
                let frame = Frame {
                    v6,
                    tagged,
                    tos,
                    ttl,
                    protocol,
                    src_port,
                    dst_port,
                    checksum,
                    payload,
                };
                let mut bytes = frame.bytes();
                set_addresses(&mut bytes, tagged, v6, net);
                if let Some((by_port, instructions, discard)) = int
                    && !tagged
                    && (protocol == TCP || protocol == UDP)
                {
                    bytes = carrying(&bytes, by_port, instructions & FORETOLD, discard);
                }
                if let Some((at, value)) = broken {
                    let at = at.index(bytes.len());
                    bytes[at] = value;
                }
                Input {
                    by: By::Cable(port),
                    frame: bytes,
                }
            },
        )
}

fn link(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = [&LINK_LOCAL[..], &[2, 0, 0, 0, 7, 7]].concat();
    frame.extend(ETHERTYPE_LINK.to_be_bytes());
    frame.push(kind);
    frame.extend(body);
    frame.resize(60, 0);
    frame
}

/// Hellos and probes: of neighbours, and of the switch's own CPU.
fn links() -> impl Strategy<Value = Input> {
    let hello = (any::<[bool; 2]>(), 0u32..40).prop_map(|([deaf, gray], sent)| {
        let flags = u8::from(deaf) << 7 | u8::from(gray) << 6;
        link(0x11, &[&[flags][..], &sent.to_be_bytes()].concat())
    });
    let probe = (0u8..12, any::<u8>(), 0u32..5)
        .prop_map(|(hops, band, la)| link(0x12, &[&[hops, band][..], &la.to_be_bytes()].concat()));
    let by = prop_oneof![
        1 => Just(By::Cable(1)),
        3 => (2usize..4).prop_map(By::Cable),
        4 => Just(By::Submitted)
    ];
    (
        by,
        prop_oneof![3 => hello, 2 => probe, 1 => Just(link(0x25, &[1, 2, 3]))],
    )
        .prop_map(|(by, frame)| Input { by, frame })
}

/// What the controller wants to see, and what it sends.
fn control() -> impl Strategy<Value = Input> {
    let ether_types = select(vec![ETHERTYPE_ARP, ETHERTYPE_LLDP, 0x1234]);
    let frames =
        (ether_types, any::<bool>(), vec(any::<u8>(), 46..60)).prop_map(|(kind, group, body)| {
            let to = if group { [0xff; 6] } else { SWITCH_MAC };
            [&to[..], &[2, 0, 0, 0, 7, 7], &kind.to_be_bytes(), &body].concat()
        });
    let by = prop_oneof![
        3 => (1usize..4).prop_map(By::Cable),
        1 => Just(By::Submitted),
        1 => (1u64..4).prop_map(By::Direct)
    ];
    let solicitation = any::<u8>().prop_map(|last| {
        let mut body = (6u32 << 28).to_be_bytes().to_vec();
        body.extend([0, 24, 58, 255]);
        body.extend(network_v6(0).octets());
        body.extend(network_v6(last & 3).octets());
        body.extend([135, 0, 0, 0]);
        body.resize(40 + 24, last);
        [
            &[0x33, 0x33, 0xff, 0, 0, 5][..],
            &[2, 0, 0, 0, 7, 7],
            &[0x86, 0xdd],
            &body,
        ]
        .concat()
    });
    (by, prop_oneof![2 => frames, 1 => solicitation]).prop_map(|(by, frame)| Input { by, frame })
}

/// Any packet.
pub(super) fn inputs() -> impl Strategy<Value = Input> {
    let submitted = ip().prop_map(|input| Input {
        by: By::Submitted,
        ..input
    });
    prop_oneof![10 => ip(), 1 => submitted, 4 => links(), 2 => control()]
}

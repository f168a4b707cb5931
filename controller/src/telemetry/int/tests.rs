//! The worked examples of Telemetry Report v2.0 (section 4) and INT-MD v2.1 (section 6.3), byte for byte.
//! What the specification leaves open (addresses, depths) has values chosen here.
#![allow(clippy::unwrap_used)]

use super::Malformed;
use super::collector::{Collector, Config, Hop, Kind};
use super::flow::FlowFilter;
use super::metadata::Metadata;
use super::packet::{Indicator, Shown};
use super::report::{Datagram, Inner, Own, Report, Tlv};
use super::stack::{Next, Stack};
use proptest::prelude::*;

/// Stands for the specification's unassigned INT_TBD.
const INT_TBD: u16 = 0x4242;
const GROUP: [u8; 8] = [0x21, 0xc0, 0x00, 0x05, 0, 0, 0, 3];

/// IPv4 header of a packet of `len` bytes from 10.0.0.1 to 10.0.0.2.
fn ipv4(len: u16, protocol: u8) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend(len.to_be_bytes());
    header.extend([0, 1, 0x40, 0, 62, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    header
}

fn udp(src: u16, dst: u16, len: u16) -> Vec<u8> {
    [src, dst, len, 0].map(u16::to_be_bytes).concat()
}

/// TCP header from port 1000 to port 2000.
fn tcp() -> Vec<u8> {
    let mut header = [1000u16, 2000].map(u16::to_be_bytes).concat();
    header.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    header
}

/// Decodes, and encodes again to the same bytes.
fn decoded(bytes: &[u8]) -> Datagram {
    let datagram = Datagram::decode(bytes).unwrap();
    assert_eq!(datagram.encode(), bytes);
    datagram
}

fn group(datagram: &Datagram) -> &Report {
    assert_eq!(
        (datagram.hw_id, datagram.sequence, datagram.node),
        (7, 5, 3)
    );
    assert_eq!(datagram.reports.len(), 1);
    &datagram.reports[0]
}

#[test]
fn baseline_metadata_and_truncated_ipv4() {
    let mut bytes = GROUP.to_vec();
    bytes.extend([0x14, 14, 2, 0x20, 0x50, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0, 11, 0, 12, 3, 0, 0, 99]);
    bytes.extend(ipv4(1000, 6));
    bytes.extend(tcp());
    let datagram = decoded(&bytes);
    let report = group(&datagram);
    assert!(report.tracked && !report.dropped && !report.congested && !report.intermediate);
    let own = report.own.as_ref().unwrap();
    assert_eq!(
        (own.bits, own.domain_id, own.ds_bits, own.ds_status),
        (0x5000, 0, 0, 0)
    );
    let told = &own.metadata;
    assert_eq!((told.ingress_port, told.egress_port), (Some(11), Some(12)));
    assert_eq!((told.queue, told.queue_depth), (Some(3), Some(99)));
    let shown = Shown::of(report.inner.ip().unwrap(), &[]).unwrap();
    assert_eq!(
        shown.flow.to_string(),
        "10.0.0.1 > 10.0.0.2 tcp 1000 > 2000"
    );
}

#[test]
fn domain_specific_metadata_and_extension_data_and_truncated_ipv4() {
    let mut bytes = GROUP.to_vec();
    let packet = [ipv4(1000, 6), tcp()].concat();
    let length = 2 + 3 + 2 + 1 + packet.len() as u8 / 4;
    bytes.extend([
        0x11, length, 3, 0x20, 0x50, 0, 0xab, 0xcd, 0x80, 0, 0x12, 0x34,
    ]);
    bytes.extend([0, 11, 0, 12, 3, 0, 0, 99, 0xd0, 0xd1, 0xd2, 0xd3]);
    bytes.extend([0x00, 1, 0, 9, 1, 2, 3, 4]);
    bytes.extend([0x20, packet.len() as u8 / 4, 0, 0]);
    bytes.extend(&packet);
    let datagram = decoded(&bytes);
    let report = group(&datagram);
    let own = report.own.as_ref().unwrap();
    assert_eq!(
        (own.domain_id, own.ds_bits, own.ds_status),
        (0xabcd, 0x8000, 0x1234)
    );
    assert_eq!(own.metadata.domain_specific, [0xd0, 0xd1, 0xd2, 0xd3]);
    let tlvs = [
        Tlv {
            kind: 0,
            template: 9,
            data: vec![1, 2, 3, 4],
        },
        Tlv {
            kind: 2,
            template: 0,
            data: packet,
        },
    ];
    assert_eq!(report.inner, Inner::Tlv(tlvs.to_vec()));
    assert_eq!(
        Shown::of(report.inner.ip().unwrap(), &[])
            .unwrap()
            .flow
            .src_port,
        1000
    );
}

/// Shim and header of the examples, before the stack.
fn int_header(npt: u8, field: u16, remaining: u8, instructions: u16, length: u8) -> Vec<u8> {
    let mut bytes = vec![0x10 | npt << 2, length];
    bytes.extend(field.to_be_bytes());
    bytes.extend([0x20, 0, 2, remaining]);
    bytes.extend(instructions.to_be_bytes());
    bytes.extend([0; 6]);
    bytes
}

#[test]
fn embedded_int_md_in_a_tcp_packet() {
    let mut bytes = GROUP.to_vec();
    bytes.extend([0x14, 23, 1, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, 0, 30]);
    bytes.extend(ipv4(1040, 17));
    bytes.extend(udp(0xc123, INT_TBD, 1020));
    bytes.extend(int_header(2, 6, 6, 0x9000, 7));
    bytes.extend([0, 0, 0, 2, 1, 0, 0, 20, 0, 0, 0, 1, 1, 0, 0, 10]);
    bytes.extend(tcp());
    let datagram = decoded(&bytes);
    let report = group(&datagram);
    let own = report.own.as_ref().unwrap();
    assert_eq!(own.metadata.queue_depth, Some(30));
    let packet = report.inner.ip().unwrap();
    let shown = Shown::of(packet, &[Indicator::Port(INT_TBD)]).unwrap();
    assert_eq!(
        shown.flow.to_string(),
        "10.0.0.1 > 10.0.0.2 tcp 1000 > 2000"
    );
    let stack = shown.stack.unwrap();
    assert_eq!(stack.encode(), packet[28..60]);
    assert_eq!(
        (stack.next, stack.hop_ml, stack.remaining_hops),
        (Next::Protocol(6), 2, 6)
    );
    let hops: Vec<_> = stack
        .hops
        .iter()
        .map(|hop| (hop.node, hop.queue_depth))
        .collect();
    assert_eq!(hops, [(Some(1), Some(10)), (Some(2), Some(20))]);
}

#[test]
fn embedded_int_md_over_udp_in_a_vxlan_packet() {
    let mut bytes = GROUP.to_vec();
    bytes.extend([0x04, 33, 0, 0x20]);
    let mut packet = ipv4(1000, 17);
    packet.extend(udp(56_789, INT_TBD, 980));
    packet.extend(int_header(1, 4789, 5, 0xc000, 9));
    for hop in [3, 2, 1u8] {
        packet.extend([0, 0, 0, hop, 0, hop, 0, hop + 10]);
    }
    packet.extend([8, 0, 0, 0, 0, 0, 7, 0]);
    packet.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    // The specification counts four words for the inner Ethernet header, of 14 bytes.
    packet.extend([0, 0]);
    packet.extend(ipv4(900, 6));
    packet.extend(tcp());
    bytes.extend(&packet);
    let datagram = decoded(&bytes);
    let report = group(&datagram);
    assert_eq!(report.own, None);
    let shown = Shown::of(report.inner.ip().unwrap(), &[Indicator::Port(INT_TBD)]).unwrap();
    assert_eq!(
        shown.flow.to_string(),
        "10.0.0.1 > 10.0.0.2 udp 56789 > 4789"
    );
    let stack = shown.stack.unwrap();
    let nodes: Vec<_> = stack.hops.iter().map(|hop| hop.node).collect();
    assert_eq!(nodes, [Some(1), Some(2), Some(3)]);
    // Such a report has the whole path in the stack.
    let mut collector = Collector::new(Config {
        indicators: vec![Indicator::Port(INT_TBD)],
        flows: 10,
    });
    let seen = collector.take(&bytes, 1).unwrap();
    assert_eq!(seen[0].kind, Kind::Path { changed: false });
    let state = &collector.flows()[&seen[0].flow];
    let hop = |number: u16| Hop {
        node: Some(number.into()),
        ingress_port: Some(number),
        egress_port: Some(number + 10),
    };
    assert_eq!(state.hops(), [hop(1), hop(2), hop(3)]);
}

/// A report of a path over these nodes, the last of which reports.
fn path(sequence: u32, nodes: &[u32], latency: u32) -> Vec<u8> {
    let hop = |node: &u32| Metadata {
        node: Some(*node),
        latency: Some(latency),
        ..Metadata::default()
    };
    let (last, before) = nodes.split_last().unwrap();
    let stack = Stack {
        next: Next::Port(4791),
        discard: false,
        hops_exceeded: false,
        mtu_exceeded: false,
        hop_ml: 2,
        remaining_hops: 5,
        instructions: 0xa000,
        domain_id: 0,
        ds_instructions: 0,
        ds_flags: 0,
        hops: before.iter().map(hop).collect(),
        source_only: Vec::new(),
    };
    let bth = [4, 0x40, 0xff, 0xff, 0, 0, 0, 17, 0, 0, 0, 1];
    let mut packet = ipv4(1000, 17);
    packet[1] = 3;
    packet.extend(udp(50_000, INT_TBD, 980));
    packet.extend(stack.encode());
    packet.extend(bth);
    let report = Report {
        dropped: false,
        congested: false,
        tracked: true,
        intermediate: false,
        own: Some(Own {
            bits: 0x2000,
            metadata: Metadata {
                node: None,
                ..hop(last)
            },
            ..Own::default()
        }),
        inner: Inner::Ipv4(packet),
    };
    let datagram = Datagram {
        hw_id: 0,
        sequence,
        node: *last,
        reports: vec![report],
    };
    datagram.encode()
}

#[test]
fn changes_of_path_marks_and_losses_are_counted() {
    let mut collector = Collector::new(Config {
        indicators: vec![Indicator::Port(INT_TBD)],
        flows: 10,
    });
    let mut take = |bytes: &[u8], now| collector.take(bytes, now).map(|seen| seen.len());
    assert_eq!(take(&path(0, &[1, 2, 4], 100), 10), Ok(1));
    assert_eq!(take(&path(1, &[1, 2, 4], 300), 20), Ok(1));
    assert_eq!(take(&path(4, &[1, 3, 4], 200), 30), Ok(1));
    assert_eq!(take(&path(4, &[1, 3, 4], 200), 40), Ok(0), "doubled");
    assert_eq!(take(&path(3, &[1, 3, 4], 400), 50), Ok(1), "late");
    assert!(take(&[0x10, 0, 0, 0, 0, 0, 0, 0], 60).is_err());
    let (flow, state) = collector.flows().iter().next().unwrap();
    assert_eq!(flow.to_string(), "10.0.0.1 > 10.0.0.2 roce qp 17");
    assert_eq!((state.reports, state.marked, state.change_count), (4, 4, 1));
    let change = &state.changes[0];
    let nodes = |hops: &[Hop]| hops.iter().filter_map(|hop| hop.node).collect::<Vec<_>>();
    assert_eq!(change.at, 30);
    assert_eq!(
        (nodes(&change.from), nodes(&change.to)),
        (vec![1, 2, 4], vec![1, 3, 4])
    );
    // Hops that stay keep what was told before.
    let first = &state.path[0].latency;
    assert_eq!(
        (first.count, first.min, first.max, first.last),
        (4, 100, 400, 400)
    );
    assert_eq!(state.path[1].latency.count, 2);
    let counts = collector.senders()[&(4, 0)];
    assert_eq!(
        (counts.received, counts.lost, counts.late, counts.doubled),
        (4, 1, 1, 1)
    );
    assert_eq!(collector.totals().malformed, 1);
}

#[test]
fn flows_that_are_silent_longest_are_forgotten_first() {
    let mut collector = Collector::new(Config {
        indicators: vec![Indicator::Port(INT_TBD)],
        flows: 2,
    });
    for (now, host) in (0..).zip([1, 2, 1, 3u8]) {
        let mut bytes = path(now as u32, &[1, 2], 1);
        // The source address of the packet that is shown.
        let at = bytes
            .windows(4)
            .position(|part| part == [10, 0, 0, 1])
            .unwrap();
        bytes[at + 3] = host;
        collector.take(&bytes, now).unwrap();
    }
    let sources: Vec<_> = collector
        .flows()
        .keys()
        .map(|flow| flow.src.to_string())
        .collect();
    assert_eq!(sources, ["10.0.0.1", "10.0.0.3"]);
}

#[test]
fn filters_are_read_and_matched() {
    let filter: FlowFilter = "src=10.0.0.1,proto=roce,qp=17".parse().unwrap();
    let mut collector = Collector::new(Config {
        indicators: vec![Indicator::Port(INT_TBD)],
        flows: 2,
    });
    let flow = collector.take(&path(0, &[1, 2], 1), 0).unwrap()[0].flow;
    assert!(filter.matches(&flow));
    assert!("all".parse::<FlowFilter>().unwrap().matches(&flow));
    assert!(!"qp=18".parse::<FlowFilter>().unwrap().matches(&flow));
    for wrong in [
        "",
        "qp",
        "qp=x",
        "qp=16777216",
        "src=10.0.0",
        "port=1",
        "sport=65536",
    ] {
        let error = wrong.parse::<FlowFilter>().unwrap_err().to_string();
        assert!(error.contains("write a flow as"), "{error}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let short = Datagram::decode(&GROUP[..5]).unwrap_err();
    assert_eq!(
        short.to_string(),
        "report group header ends after 5 bytes, 8 are announced"
    );
    let version = Datagram::decode(&[0x10; 12]).unwrap_err();
    assert_eq!(
        version.to_string(),
        "version of the report is 1, expected 2"
    );
    let empty = Datagram::decode(&GROUP).unwrap_err();
    assert_eq!(
        empty,
        Malformed::Contradiction("a group header without a report")
    );
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let numbers = (
        any::<[u32; 4]>(),
        any::<[u64; 2]>(),
        any::<[u16; 2]>(),
        any::<[u8; 2]>(),
    );
    numbers.prop_map(|(words, times, ports, bytes)| Metadata {
        node: Some(words[0] & 0xffff),
        ingress_port: Some(ports[0] & 0x7fff),
        egress_port: Some(ports[1]),
        latency: Some(words[1] & 0xffff),
        queue: Some(bytes[0] & 7),
        queue_depth: Some(words[2] & 0xffff),
        ingress_time: Some(times[0] >> 1),
        egress_time: Some(times[1] >> 1),
        logical: Some((words[0] & 0xffff, words[1])),
        utilisation: Some(words[3] >> 1),
        buffer: Some((bytes[1] & 7, words[3] & 0xffff)),
        complement: Some(words[2] >> 1),
        ..Metadata::default()
    })
}

proptest! {
    /// What is written is read back, whatever is asked for.
    #[test]
    fn stacks_round_trip(bits in any::<u16>(), hops in prop::collection::vec(metadata(), 0..5), extra in 0usize..3) {
        let bits = bits & 0xff81;
        let hops: Vec<Metadata> = hops
            .into_iter()
            .map(|mut hop| {
                hop.domain_specific = vec![0xd5; extra * 4];
                // Only what is asked for comes back.
                let bytes = hop.encode(bits, super::metadata::Place::Stack);
                Metadata::decode(bits, extra * 4, &bytes, super::metadata::Place::Stack).unwrap()
            })
            .collect();
        let words = super::metadata::bytes_of_all(bits) / 4 + extra;
        let stack = Stack {
            next: Next::InPlace { dscp: 26 },
            discard: true,
            hops_exceeded: false,
            mtu_exceeded: true,
            hop_ml: words as u8,
            remaining_hops: 3,
            instructions: bits,
            domain_id: 7,
            ds_instructions: 1,
            ds_flags: 2,
            hops: if words == 0 { Vec::new() } else { hops },
            source_only: Vec::new(),
        };
        let bytes = stack.encode();
        let (again, rest) = Stack::decode(&bytes).unwrap();
        prop_assert_eq!(again, stack);
        prop_assert!(rest.is_empty());
    }

    /// No bytes break the decoder, and what it reads it writes the same.
    #[test]
    fn any_bytes_are_a_report_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = 0x20 | (*first & 15);
        }
        if let Ok(datagram) = Datagram::decode(&bytes) {
            for report in &datagram.reports {
                if let Some(packet) = report.inner.ip() {
                    let _ = Shown::of(packet, &[Indicator::Port(INT_TBD), Indicator::Dscp(0)]);
                }
            }
        }
        let mut collector = Collector::new(Config { indicators: vec![Indicator::Dscp(0)], flows: 4 });
        let _ = collector.take(&bytes, 1);
        prop_assert_eq!(collector.totals().datagrams, 1);
    }
}

//! Source, transit and sink in a row: every hop's output against the model, the last one's against what
//! the host sent.

use crate::frames::{Frame, TCP, after_hops, icrc};
use crate::model::{Hop, Indicator, Watch, begin, push, same_but_entropy, words_of};
use crate::node::{COLLECTOR_PORT, INT_DSCP, INT_PORT, Next, Node, Setup};

pub(crate) const NODE: u32 = 0x0102_0300;

/// A chain of switches between two hosts.
pub(crate) struct Chain {
    pub(crate) nodes: Vec<Node>,
}

/// What came out of it.
pub(crate) struct Passed {
    /// Frames between the switches, and the last one, to the host.
    pub(crate) frames: Vec<Vec<u8>>,
    /// Reports that the last switch sent, as frames.
    pub(crate) reports: Vec<Vec<u8>>,
}

/// When a packet comes to hop `number`, and when it leaves, in ns. Clocks of switches differ.
pub(crate) fn times(number: usize) -> (u64, u64) {
    let arrives = (number as u64 + 1) * 70_001_000;
    (arrives, arrives + 3_000 + number as u64 * 1_000)
}

impl Chain {
    /// `len` switches, the first of which watches.
    pub(crate) fn new(len: usize, watch: Watch) -> Self {
        let nodes = (0..len).map(|number| {
            let end = |is_end| if is_end { Next::Host } else { Next::Switch };
            let ends = [end(number == 0), end(number + 1 == len)];
            let mut setup = Setup::new(NODE + number as u32 + 1, ends);
            setup.watch = (number == 0).then_some(watch);
            Node::new(setup)
        });
        Chain {
            nodes: nodes.collect(),
        }
    }

    /// What hop `number` of this chain knows of a packet in an empty queue.
    pub(crate) fn hop(&self, number: usize) -> Hop {
        let (arrived, left) = times(number);
        let setup = &self.nodes[number].setup;
        Hop {
            arrived,
            left,
            mtu: setup.mtu.into(),
            logical: Some((setup.interface(1), setup.interface(2))),
            ..Hop::between(setup.node, 1, 2)
        }
    }

    /// Sends a frame through all switches.
    pub(crate) fn send(&mut self, frame: &[u8]) -> Passed {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        let mut reports = Vec::new();
        for (number, node) in self.nodes.iter_mut().enumerate() {
            let (arrives, leaves) = times(number);
            let input = frames.last().map_or(frame, Vec::as_slice);
            let mut next = None;
            for (port, bytes) in node.pass(1, input, arrives, leaves) {
                match port {
                    2 => assert!(next.replace(bytes).is_none(), "hop {number} doubled"),
                    COLLECTOR_PORT => reports.push(bytes),
                    _ => panic!("hop {number} sent out of port {port}"),
                }
            }
            frames.push(next.unwrap_or_else(|| panic!("hop {number} lost it")));
        }
        Passed { frames, reports }
    }

    /// Sends a frame, compares every hop with the model, and the last with what was sent.
    pub(crate) fn check(&mut self, sent: &Frame, watch: &Watch) -> Passed {
        let sent = sent.bytes();
        let passed = self.send(&sent);
        let mut expected = begin(&after_hops(&sent, 1), watch);
        let last = self.nodes.len() - 1;
        for number in 0..last {
            if number > 0 {
                expected = after_hops(&expected, 1);
            }
            expected = push(&expected, &self.hop(number));
            assert!(
                same_but_entropy(&passed.frames[number], &expected),
                "hop {number} of {sent:02x?}:\n{:02x?}, not\n{expected:02x?}",
                passed.frames[number]
            );
        }
        assert_eq!(
            passed.frames[last],
            after_hops(&sent, last as u8 + 1),
            "what left is not what entered"
        );
        assert_eq!(passed.reports.len(), 1);
        passed
    }
}

pub(crate) fn watch(indicator: Indicator, instructions: u16) -> Watch {
    Watch {
        indicator,
        instructions,
        hop_ml: words_of(instructions),
        max_hops: 8,
        domain: 0,
    }
}

pub(crate) const INDICATORS: [Indicator; 2] =
    [Indicator::Dscp(INT_DSCP), Indicator::Port(INT_PORT)];

/// Frames of every kind that can be measured.
pub(crate) fn kinds() -> Vec<Frame> {
    let mut all = Vec::new();
    for v6 in [false, true] {
        for len in [0, 1, 2, 17, 300] {
            let payload: Vec<u8> = (0..len).map(|at| (at * 7 + 3) as u8).collect();
            let udp = Frame {
                v6,
                ..Frame::udp(&payload)
            };
            all.push(Frame {
                checksum: false,
                ..udp.clone()
            });
            all.push(Frame {
                protocol: TCP,
                ..udp.clone()
            });
            all.push(Frame {
                tagged: true,
                ..udp.clone()
            });
            all.push(udp);
        }
    }
    all.push(Frame::roce(17, &[0x5a; 256]));
    all
}

#[test]
fn every_kind_of_packet_leaves_as_it_came() {
    for indicator in INDICATORS {
        for frame in kinds() {
            let watch = watch(indicator, 0xfc00);
            Chain::new(3, watch).check(&frame, &watch);
        }
    }
}

#[test]
fn every_instruction_alone_and_all_together() {
    let all = (0..16)
        .map(|bit| 1 << bit)
        .chain([0xff80, 0xff81, 0x9000, 0]);
    for instructions in all {
        for frame in [Frame::udp(b"0123456789"), Frame::roce(1, &[1; 64])] {
            let watch = watch(INDICATORS[0], instructions);
            Chain::new(3, watch).check(&frame, &watch);
        }
    }
}

#[test]
fn the_worked_example_of_the_specification() {
    // Section 6.1 and 6.3 of INT-MD v2.1: node ID and queue occupancy, two hops, eight at most.
    for (indicator, frame) in [
        (
            INDICATORS[0],
            Frame {
                protocol: TCP,
                ..Frame::udp(b"data")
            },
        ),
        (
            INDICATORS[1],
            Frame {
                protocol: TCP,
                ..Frame::udp(b"data")
            },
        ),
        (INDICATORS[1], Frame::udp(b"data")),
    ] {
        let watch = watch(indicator, 0x9000);
        let passed = Chain::new(3, watch).check(&frame, &watch);
        let at_sink = &passed.frames[1];
        let tcp = at_sink[23] == TCP;
        let shim = if tcp { 54 } else { 42 };
        let npt = match (indicator, frame.protocol == TCP) {
            (Indicator::Dscp(_), _) => 0,
            (Indicator::Port(_), false) => 1,
            (Indicator::Port(_), true) => 2,
        };
        assert_eq!(at_sink[shim..shim + 2], [0x10 | npt << 2, 7]);
        let md = [0x20, 0, 2, 6, 0x90, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(at_sink[shim + 4..shim + 16], md);
        let stack = [
            0x01, 0x02, 0x03, 2, 0, 0, 0, 0, 0x01, 0x02, 0x03, 1, 0, 0, 0, 0,
        ];
        assert_eq!(at_sink[shim + 16..shim + 32], stack);
    }
}

#[test]
fn the_invariant_crc_is_right_when_the_packet_leaves() {
    for indicator in INDICATORS {
        for v6 in [false, true] {
            let mut frame = Frame::roce(0xabcdef, &[0xc3; 1024]);
            frame.v6 = v6;
            // The CRC covers the addresses.
            let bytes = frame.bytes();
            let end = frame.payload.len() - 4;
            frame.payload[end..].copy_from_slice(&icrc(&bytes[14..bytes.len() - 4]));
            let watch = watch(indicator, 0xfc00);
            let passed = Chain::new(3, watch).check(&frame, &watch);
            let out = passed.frames.last().unwrap();
            let split = out.len() - 4;
            assert_eq!(icrc(&out[14..split]), out[split..]);
        }
    }
}

#[test]
fn a_flow_between_hosts_of_one_switch_is_reported_too() {
    let watch = watch(INDICATORS[0], 0xfc00);
    for frame in kinds() {
        let mut chain = Chain::new(1, watch);
        let passed = chain.send(&frame.bytes());
        assert_eq!(passed.frames[0], after_hops(&frame.bytes(), 1));
        assert_eq!(passed.reports.len(), 1);
    }
}

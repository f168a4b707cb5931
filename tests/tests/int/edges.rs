//! What happens at the edges of the rules: no hop left, no room, unknown domains, forged headers,
//! contradictions.

use crate::chain::{Chain, INDICATORS, NODE, kinds, watch};
use crate::frames::{Frame, TCP, after_hops};
use crate::model::{Watch, begin, push, same_but_entropy};
use crate::node::{INT_DSCP, Next, Node, Setup};

const DROP_INT: u64 = 15;

#[test]
fn a_hop_without_hop_count_sets_e_and_pushes_nothing() {
    for indicator in INDICATORS {
        for max_hops in 0..4 {
            let watch = Watch {
                max_hops,
                ..watch(indicator, 0x9000)
            };
            for frame in kinds() {
                Chain::new(4, watch).check(&frame, &watch);
            }
        }
    }
}

#[test]
fn a_hop_without_room_sets_m_and_pushes_nothing() {
    for indicator in INDICATORS {
        let watch = watch(indicator, 0xfc00);
        let frame = Frame::udp(&[7; 200]);
        // 20 IP, 8 UDP, 200 payload, 16 INT, and 32 for the source's own.
        let whole = 276;
        for (mtus, flags) in [
            ([whole, whole + 32], 0x20),
            ([whole - 1, 9000], 0x22),
            ([whole, whole + 31], 0x22),
        ] {
            let mut chain = Chain::new(3, watch);
            for (node, mtu) in mtus.into_iter().enumerate() {
                let mut setup = chain.nodes[node].setup.clone();
                setup.mtu = mtu;
                chain.nodes[node] = Node::new(setup);
            }
            let passed = chain.check(&frame, &watch);
            assert_eq!(passed.frames[1][14 + 20 + 8 + 4], flags);
        }
    }
}

#[test]
fn a_source_without_room_for_the_headers_does_not_measure() {
    let watch = watch(INDICATORS[0], 0xfc00);
    let frame = Frame::udp(&[7; 200]);
    for (mtu, measured) in [(244, true), (243, false)] {
        let mut setup = Setup::new(NODE, [Next::Host, Next::Switch]);
        setup.watch = Some(watch);
        setup.mtu = mtu;
        let out = Node::new(setup).pass(1, &frame.bytes(), 1_000, 2_000);
        assert_eq!(out.len(), 1);
        let plain = after_hops(&frame.bytes(), 1);
        assert_eq!(out[0].1 != plain, measured);
        assert_eq!(out[0].1.len(), plain.len() + 16 * usize::from(measured));
    }
}

#[test]
fn domain_specific_words_and_reserved_bits_are_ones() {
    for indicator in INDICATORS {
        for (instructions, extra, domain) in [
            (0x9000, 3, 0xbeef),
            (0x9001, 1, 7),
            (0x907e, 0, 0),
            (0xffff, 12, 1),
            (0, 31, 9),
        ] {
            let plain = watch(indicator, instructions);
            let watch = Watch {
                hop_ml: plain.hop_ml + extra,
                max_hops: 2,
                domain,
                ..plain
            };
            Chain::new(3, watch).check(&Frame::udp(b"payload"), &watch);
        }
    }
}

#[test]
fn hop_ml_that_is_too_small_lets_the_packet_pass_as_it_came() {
    let plain = watch(INDICATORS[0], 0xfc00);
    let watch = Watch {
        hop_ml: plain.hop_ml - 1,
        ..plain
    };
    Chain::new(3, watch).check(&Frame::udp(b"payload"), &watch);
}

#[test]
fn a_stack_that_would_outgrow_the_parser_is_left_alone() {
    // 64 words: two hops of 31, then no room for a third.
    let plain = watch(INDICATORS[0], 0xfc00);
    let watch = Watch {
        hop_ml: 31,
        ..plain
    };
    Chain::new(5, watch).check(&Frame::udp(b"payload"), &watch);
}

#[test]
fn transport_checksums_that_are_wrong_stay_as_wrong() {
    for indicator in INDICATORS {
        let watch = watch(indicator, 0xfc00);
        for (protocol, at) in [(17, 40), (TCP, 50)] {
            for checksum in [1u16, 0x1234, 0xfffe, 0xffff, 0] {
                let frame = Frame {
                    protocol,
                    ..Frame::udp(b"payload")
                };
                let mut bytes = frame.bytes();
                bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
                let passed = Chain::new(3, watch).send(&bytes);
                assert_eq!(passed.frames[2], after_hops(&bytes, 3), "{checksum:#x}");
            }
        }
    }
}

#[test]
fn lengths_that_contradict_the_packet_are_not_measured() {
    let watch = watch(INDICATORS[0], 0xfc00);
    // UDP says 7 bytes; TCP is cut short by IP.
    let mut udp = Frame::udp(b"payload").bytes();
    udp[38..40].copy_from_slice(&7u16.to_be_bytes());
    let passed = Chain::new(3, watch).send(&udp);
    assert_eq!(passed.frames[2], after_hops(&udp, 3));
    assert!(passed.reports.is_empty());
}

#[test]
fn trailing_bytes_of_the_frame_stay_behind_the_packet() {
    let watch = watch(INDICATORS[1], 0xfc00);
    let mut bytes = Frame::udp(b"ab").bytes();
    bytes.extend([0; 16]);
    let passed = Chain::new(3, watch).send(&bytes);
    assert_eq!(passed.frames[2], after_hops(&bytes, 3));
}

#[test]
fn a_host_cannot_forge_telemetry() {
    for indicator in INDICATORS {
        let plain = Frame::udp(b"payload");
        let forged = begin(&plain.bytes(), &watch(indicator, 0xfc00));
        let mut node = Node::new(Setup::new(NODE, [Next::Host, Next::Switch]));
        assert!(node.pass(1, &forged, 1_000, 2_000).is_empty());
        assert_eq!(node.counted("drops", 1 << 5 | DROP_INT), 1);
    }
}

#[test]
fn what_only_looks_like_int_is_payload() {
    // The shape of INT without the indicator, and the indicator without the shape.
    let inside = begin(
        &Frame::udp(b"payload").bytes(),
        &watch(INDICATORS[0], 0xfc00),
    );
    let shaped = Frame::udp(&inside[42..]);
    let marked = Frame {
        tos: INT_DSCP << 2,
        ..Frame::udp(b"just data, more than sixteen bytes")
    };
    for frame in [shaped, marked] {
        let bytes = frame.bytes();
        for end in [Next::Host, Next::Switch] {
            let mut node = Node::new(Setup::new(NODE, [end, Next::Host]));
            let out = node.pass(1, &bytes, 1_000, 2_000);
            assert_eq!(out, [(2, after_hops(&bytes, 1))]);
        }
    }
}

#[test]
fn the_discard_flag_ends_a_packet_at_the_sink_and_it_is_reported() {
    let watch = watch(INDICATORS[0], 0xfc00);
    let mut carried = begin(&Frame::udp(b"payload").bytes(), &watch);
    carried[14 + 20 + 8 + 4] |= 8;
    let mut node = Node::new(Setup::new(NODE, [Next::Switch, Next::Host]));
    let out = node.pass(1, &carried, 1_000, 2_000);
    assert_eq!(out.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [7]);
    assert_eq!(node.counted("drops", 1 << 5 | DROP_INT), 1);
}

#[test]
fn a_transit_switch_takes_stacks_of_other_sources() {
    // Flags and reserved bits that our source never sets stay, as do domain specific fields.
    let watch = watch(INDICATORS[0], 0x9000);
    let mut carried = begin(&Frame::udp(b"payload").bytes(), &watch);
    let md = 14 + 20 + 8 + 4;
    carried[md] |= 6;
    carried[md + 1] = 0xaa;
    carried[md + 8..md + 12].copy_from_slice(&[1, 2, 3, 4]);
    // Puts the checksum right.
    let hop = Chain::new(2, watch).hop(0);
    let as_sent = push(&carried, &hop);
    let mut node = Node::new(Setup::new(NODE + 9, [Next::Switch, Next::Switch]));
    let out = node.pass(1, &as_sent, 5_000, 9_000);
    let expected = push(
        &after_hops(&as_sent, 1),
        &crate::model::Hop {
            node: NODE + 9,
            arrived: 5_000,
            left: 9_000,
            ..hop
        },
    );
    assert!(same_but_entropy(&out[0].1, &expected));
}

#[test]
fn one_packet_in_so_many_is_measured() {
    let mut setup = Setup::new(NODE, [Next::Host, Next::Switch]);
    setup.watch = Some(watch(INDICATORS[0], 0x9000));
    setup.one_in = 64;
    let mut node = Node::new(setup);
    let bytes = Frame::roce(1, &[0; 32]).bytes();
    let sent = 64 * 400;
    let mut measured = 0;
    for _ in 0..sent {
        let out = node.pass(1, &bytes, 1_000, 2_000);
        measured += u32::from(out[0].1.len() > bytes.len());
    }
    // Binomial, 400 expected, standard deviation 19.8.
    assert!((320..480).contains(&measured), "{measured} of {sent}");
}

//! The marking law, exactly at its thresholds and statistically between them.

use crate::frames::{Frame, icrc, sum};
use crate::node::{Next, Node, Setup, is};

const KMIN: u64 = 10;
const KMAX: u64 = 110;
/// 0.2 of 65535.
const PMAX: u64 = 13_107;
const NOT_ECT: u8 = 0;
const CE: u8 = 3;

/// A switch whose port 2 marks by the profile, in queue 0.
fn switch(profile: [u64; 4]) -> Node {
    let mut node = Node::new(Setup::new(1, [Next::Switch, Next::Switch]));
    let profile = profile.map(u128::from);
    node.insert("ecn_profile", &[is(2), is(0)], "ecn_mark", &profile);
    node.switch.set_all_queue_depths(1 << 12);
    node
}

/// Sends one packet that leaves exactly `depth` packets behind it; what comes out of it.
fn at_depth(node: &mut Node, frame: &[u8], depth: u64) -> Option<Vec<u8>> {
    while (node.switch.queue_depth(2, 0) as u64) < depth + 1 {
        node.switch.ingress(1, frame, 0);
    }
    node.switch.dequeue(2, 0).map(|packet| packet.bytes)
}

fn ect(ecn: u8, v6: bool) -> Vec<u8> {
    let mut frame = Frame::roce(9, &[5; 64]);
    frame.v6 = v6;
    frame.tos = 26 << 2 | ecn;
    let bytes = frame.bytes();
    let end = frame.payload.len() - 4;
    frame.payload[end..].copy_from_slice(&icrc(&bytes[14..bytes.len() - 4]));
    frame.bytes()
}

fn ecn_of(frame: &[u8]) -> u8 {
    if frame[12..14] == [8, 0] {
        frame[15] & 3
    } else {
        frame[15] >> 4 & 3
    }
}

#[test]
fn never_up_to_kmin_always_above_kmax() {
    for ecn in [1, 2] {
        for v6 in [false, true] {
            let frame = ect(ecn, v6);
            // With probability 1 at kmax and (nearly) 0 just above kmin, both ends are exact.
            for (depth, pmax, expected) in [
                (0, 65_535, ecn),
                (KMIN - 1, 65_535, ecn),
                (KMIN, 65_535, ecn),
                (KMIN + 1, 0, ecn),
                (KMAX - 1, 0, ecn),
                (KMAX, 0, ecn),
                (KMAX, 65_535, CE),
                (KMAX + 1, 0, CE),
                (KMAX + 500, 0, CE),
            ] {
                let mut node = switch([KMIN, KMAX, pmax, 0]);
                for _ in 0..20 {
                    let out = at_depth(&mut node, &frame, depth).unwrap();
                    assert_eq!(ecn_of(&out), expected, "depth {depth}");
                }
                let marks = if expected == CE { 20 } else { 0 };
                assert_eq!(node.counted("queue_marks", 2 << 3), marks);
            }
        }
    }
}

#[test]
fn the_share_of_marks_follows_the_law_at_nine_depths() {
    let per_depth = 22_223; // 200 007 packets in all
    let frame = ect(2, false);
    for step in 1..=9 {
        let depth = KMIN + step * 10;
        let mut node = switch([KMIN, KMAX, PMAX, 0]);
        let mut marked = 0u32;
        for _ in 0..per_depth {
            let out = at_depth(&mut node, &frame, depth).unwrap();
            marked += u32::from(ecn_of(&out) == CE);
        }
        let law = PMAX as f64 / 65_535.0 * (depth - KMIN) as f64 / (KMAX - KMIN) as f64;
        let error = (law * (1.0 - law) / f64::from(per_depth)).sqrt();
        let share = f64::from(marked) / f64::from(per_depth);
        println!("depth {depth}: {share:.4}, law {law:.4}, standard error {error:.4}");
        assert!(
            (share - law).abs() <= 3.0 * error,
            "depth {depth}: {share}, not {law}"
        );
        assert_eq!(node.counted("queue_marks", 2 << 3), u64::from(marked));
    }
}

#[test]
fn a_mark_keeps_every_checksum_right() {
    for v6 in [false, true] {
        let frame = ect(1, v6);
        let mut node = switch([0, 0, 0, 0]);
        let out = at_depth(&mut node, &frame, 1).unwrap();
        assert_eq!(ecn_of(&out), CE);
        if !v6 {
            assert_eq!(sum(&out[14..34], 0), 0xffff, "IPv4 checksum");
        }
        let split = out.len() - 4;
        assert_eq!(icrc(&out[14..split]), out[split..], "invariant CRC");
    }
}

#[test]
fn not_ect_is_left_alone_or_dropped() {
    for (drops, expected) in [(0, Some(NOT_ECT)), (1, None)] {
        let mut node = switch([KMIN, KMIN, 0, drops]);
        let out = at_depth(&mut node, &ect(NOT_ECT, true), KMIN);
        assert_eq!(out.map(|frame| ecn_of(&frame)), Some(NOT_ECT));
        node.switch.flush(2);
        for _ in 0..KMIN + 2 {
            node.switch.ingress(1, &ect(NOT_ECT, false), 0);
        }
        // A drop in egress goes on with the next packet, which is not above kmin any more.
        let out = node
            .switch
            .dequeue(2, 0)
            .map(|packet| ecn_of(&packet.bytes));
        assert_eq!(out, Some(NOT_ECT));
        let left = node.switch.queue_depth(2, 0) as u64;
        assert_eq!(left, if expected.is_some() { KMIN + 1 } else { KMIN });
        assert_eq!(node.counted("drops", 1 << 5 | 10), drops);
        assert_eq!(node.counted("queue_marks", 2 << 3), 0);
    }
}

#[test]
fn a_packet_that_is_marked_already_is_not_counted_again() {
    let mut node = switch([0, 0, 0, 1]);
    let out = at_depth(&mut node, &ect(CE, false), 3).unwrap();
    assert_eq!(ecn_of(&out), CE);
    assert_eq!(node.counted("queue_marks", 2 << 3), 0);
}

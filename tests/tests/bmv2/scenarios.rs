//! What the fabric pipeline does to packets, bit for bit, and what it counts.
//!
//! Each scenario begins with a fresh switch that has the [entries](crate::entries).

use std::time::Duration;

use crate::entries::{
    BACK, BUCKETS, DENIED, ELSEWHERE, EMPTY_GROUP, GROUP_SEED, IPV6_HOST, IPV6_SOURCE, KMAX, KMIN,
    LOCAL, MARKED_DSCP, MARKED_QUEUE, NEIGHBOUR_2, NEIGHBOUR_3, NO_NEXTHOP, OWN, OWN_REASON,
    PLACED_QP, REMOTE, WATCHED,
};
use crate::packet::{
    ICMPV6, Ipv4, SWITCH_MAC, UDP, ethernet, ipv6, marked_v4, roce, routed_v4, routed_v6, udp,
};
use crate::switch::{SOON, Switch, queue_rate};

/// Time for a packet that must not come.
const QUIET: Duration = Duration::from_millis(300);
/// DSCP and ECN of a byte of class: ECT(0).
const ECT0: u8 = 2;

/// The one frame that comes out of a port.
fn comes_out(switch: &Switch, port: usize) -> Vec<u8> {
    let mut frames = switch.receive(port, 1, SOON);
    assert_eq!(frames.len(), 1, "nothing came out of port {port}");
    frames.remove(0)
}

/// The bucket of a flow in the group.
fn bucket(flow: &Ipv4, src_port: u16, dst_port: u16, dest_qp: u32) -> u64 {
    bucket_of(flow, (src_port, dst_port, dest_qp), (GROUP_SEED, BUCKETS))
}

/// The bucket of a flow, by ports and queue pair, in a group of a seed and size: the hash as the reference of the
/// pipeline describes it.
pub(crate) fn bucket_of(
    flow: &Ipv4,
    (src_port, dst_port, dest_qp): (u16, u16, u32),
    (seed, size): (u64, u64),
) -> u64 {
    let key = [
        &flow.src.to_ipv6_mapped().octets()[..],
        &flow.dst.to_ipv6_mapped().octets(),
        &[flow.protocol],
        &src_port.to_be_bytes(),
        &dst_port.to_be_bytes(),
        &dest_qp.to_be_bytes()[1..],
    ]
    .concat();
    let mut hash = crc32(&key) ^ seed as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^= hash >> 16;
    (u64::from(hash) * size) >> 32
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
    !bytes
        .iter()
        .fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// IPv4 and IPv6 packets leave rewritten; a priority tag does not.
pub(crate) fn routes_ipv4_and_ipv6(switch: &mut Switch) {
    let v4 = Ipv4::to(LOCAL).frame(&udp(1000, 2000, b"payload"));
    switch.send(1, &v4);
    assert_eq!(comes_out(switch, 2), routed_v4(&v4, NEIGHBOUR_2));

    let v6 = ipv6(
        IPV6_SOURCE,
        IPV6_HOST,
        0x02,
        UDP,
        9,
        &udp(1000, 2000, b"payload"),
    );
    let v6 = ethernet(SWITCH_MAC, 0x86dd, &v6);
    switch.send(1, &v6);
    assert_eq!(comes_out(switch, 2), routed_v6(&v6, NEIGHBOUR_2));

    // A priority tag ends at the router.
    let inner = Ipv4::to(LOCAL).packet(&udp(1000, 2000, b"payload"));
    let tagged = [&[0x60, 0, 0x08, 0][..], &inner].concat();
    switch.send(1, &ethernet(SWITCH_MAC, 0x8100, &tagged));
    assert_eq!(comes_out(switch, 2), routed_v4(&v4, NEIGHBOUR_2));

    // Ports 1 and 2 are in one LA domain; the IPv6 host's is not known.
    assert_eq!(switch.counter("locality"), [(1 << 2, 2), (1 << 2 | 3, 1)]);
    assert_eq!(switch.counter("port_rx"), [(1, 3)]);
    assert_eq!(switch.counter("port_tx"), [(2, 3)]);
    assert_eq!(switch.counter("queue_tx"), [(2 << 3, 3)]);
    assert_eq!(switch.counter("drops"), []);
}

/// A group's flows go where the hash says; a placed flow goes where the controller says.
pub(crate) fn spreads_a_group_and_keeps_placed_flows(switch: &mut Switch) {
    // RoCEv2 flows that differ in the destination queue pair alone.
    let flows = 64;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for qp in 0..flows {
        let src_port = 0xc000;
        let frame = Ipv4::to(REMOTE).frame(&roce(src_port, 4, qp, b"payload"));
        switch.send(1, &frame);
        // Buckets lead to ports 2 and 3 in turn.
        match bucket(&Ipv4::to(REMOTE), src_port, 4791, qp) % 2 {
            0 => left.push(routed_v4(&frame, NEIGHBOUR_2)),
            _ => right.push(routed_v4(&frame, NEIGHBOUR_3)),
        }
    }
    assert!(left.len() > 16 && right.len() > 16, "a poor hash");
    assert_eq!(switch.receive(2, left.len(), SOON), left);
    assert_eq!(switch.receive(3, right.len(), SOON), right);
    let buckets = switch.direct_counter("group_bucket");
    assert_eq!(buckets.len() as u64, BUCKETS);
    assert_eq!(buckets.iter().sum::<i64>(), i64::from(flows));

    // A placed flow goes its way whatever its source port hashes to.
    for src_port in 0xc000..0xc010 {
        let placed = Ipv4::to(REMOTE).frame(&roce(src_port, 4, PLACED_QP, b"payload"));
        switch.send(1, &placed);
        assert_eq!(comes_out(switch, 3), routed_v4(&placed, NEIGHBOUR_3));
    }
    assert_eq!(switch.direct_counter("placed_flow"), [16]);
    assert_eq!(
        switch.counter("locality"),
        [(1 << 2 | 1, i64::from(flows) + 16)]
    );
}

/// Traps, own addresses, spent TTLs and the access list send to the CPU port.
pub(crate) fn punts_what_the_controller_wants_to_see(switch: &mut Switch) {
    let arp = ethernet([0xff; 6], 0x0806, &[0, 1, 8, 0, 6, 4, 0, 1, 0, 0]);
    let solicitation = ipv6(
        IPV6_SOURCE,
        IPV6_HOST,
        0,
        ICMPV6,
        255,
        &[135, 0, 0, 0, 0, 0, 0, 0],
    );
    let solicitation = ethernet([0x33, 0x33, 0xff, 0, 0, 5], 0x86dd, &solicitation);
    let expired = Ipv4 {
        ttl: 1,
        ..Ipv4::to(LOCAL)
    }
    .frame(&udp(1, 2, b""));
    let own = Ipv4 {
        ttl: 1,
        ..Ipv4::to(OWN)
    }
    .frame(&udp(1, 2, b""));
    let watched = Ipv4::to(WATCHED).frame(&udp(1, 2, b""));
    let cases = [
        (1, arp),
        (2, solicitation),
        (4, expired),
        (u128::from(OWN_REASON), own),
        (5, watched),
    ];
    for (reason, frame) in &cases {
        switch.send(2, frame);
        assert_eq!(switch.packet_in(), (2, *reason, frame.clone()));
    }
    assert_eq!(switch.counter("drops"), []);
    assert_eq!(switch.counter("locality"), []);
    assert_eq!(switch.counter("port_tx"), [(510, cases.len() as i64)]);
    assert_eq!(
        switch.counter("queue_tx"),
        [(510 << 3 | 7, cases.len() as i64)]
    );
    assert_eq!(switch.direct_counter("acl").iter().sum::<i64>(), 1);
}

/// A packet-out leaves as it is, or is routed.
pub(crate) fn sends_packet_outs_untouched_or_routed(switch: &mut Switch) {
    // Wrong checksum, expired TTL, nobody's MAC: nothing of it matters.
    let mut frame = Ipv4 {
        ttl: 0,
        ..Ipv4::to([1, 2, 3, 4])
    }
    .frame(b"as it is");
    frame[0] = 0x0a;
    frame[24] ^= 0xff;
    switch.packet_out(Some(3), &frame);
    assert_eq!(comes_out(switch, 3), frame);

    let submitted = Ipv4::to(LOCAL).frame(&udp(1, 2, b"routed"));
    switch.packet_out(None, &submitted);
    assert_eq!(comes_out(switch, 2), routed_v4(&submitted, NEIGHBOUR_2));
    assert_eq!(switch.counter("port_rx"), [(510, 2)]);
    assert_eq!(switch.counter("locality"), []);
}

/// Every reason to drop, and its counter.
pub(crate) fn drops_and_counts_by_reason(switch: &mut Switch) {
    let payload = udp(1, 2, b"payload");
    let good = Ipv4::to(LOCAL);
    let mut wrong_checksum = good.frame(&payload);
    wrong_checksum[24] ^= 0x10;
    let mut wrong_version = good.frame(&payload);
    wrong_version[14] = 0x55;
    let mut options = good.frame(&payload);
    options[14] = 0x46;
    let fragment = Ipv4 {
        ttl: 1,
        fragment: 100,
        ..good.clone()
    }
    .frame(&payload);
    let vlan = [&[0, 5, 0x08, 0][..], &good.packet(&payload)].concat();
    let loopback = Ipv4 {
        src: [127, 0, 0, 1].into(),
        ..good.clone()
    };
    let cases: Vec<(i64, Vec<u8>)> = vec![
        (0, good.frame(b"short")),
        (0, wrong_version),
        (1, wrong_checksum),
        (2, fragment),
        (4, ethernet([2; 6], 0x0800, &good.packet(&payload))),
        (5, Ipv4::to([10, 99, 0, 1]).frame(&payload)),
        (6, Ipv4::to(EMPTY_GROUP).frame(&payload)),
        (7, Ipv4::to(NO_NEXTHOP).frame(&payload)),
        (8, Ipv4::to(DENIED).frame(&payload)),
        (9, Ipv4::to(BACK).frame(&payload)),
        (11, ethernet(SWITCH_MAC, 0x8100, &vlan)),
        (12, ethernet([0xff; 6], 0x0800, &good.packet(&payload))),
        (12, ethernet(SWITCH_MAC, 0x88b5, &payload)),
        (13, loopback.frame(&payload)),
        (13, Ipv4::to([224, 0, 0, 5]).frame(&payload)),
        (14, options),
    ];
    let mut expected = std::collections::BTreeMap::new();
    for (reason, frame) in &cases {
        switch.send(1, frame);
        *expected.entry(1 << 5 | reason).or_insert(0) += 1;
    }
    // What comes out after them is the only thing that comes out.
    let good = Ipv4::to(ELSEWHERE).frame(&payload);
    switch.send(1, &good);
    assert_eq!(comes_out(switch, 3), routed_v4(&good, NEIGHBOUR_3));
    assert!(switch.receive(2, 1, QUIET).is_empty());
    assert_eq!(switch.counter("drops"), Vec::from_iter(expected));
    assert_eq!(switch.counter("locality"), [(1 << 2 | 3, 1)]);
}

/// The marking law at and around its thresholds. Needs a queue that is served slowly.
pub(crate) fn marks_by_queue_depth(switch: &mut Switch) {
    let sent: u64 = 31;
    let frame = |number: u64, tos: u8| {
        let id = number.to_be_bytes();
        Ipv4 {
            tos,
            ..Ipv4::to(LOCAL)
        }
        .frame(&udp(1, 2, &id))
    };
    let ect = (MARKED_DSCP as u8) << 2 | ECT0;
    // Slow enough that all are queued while the first ones leave.
    queue_rate(2, 10).unwrap();
    for number in 0..sent {
        switch.send(1, &frame(number, ect));
    }
    let received = switch.receive(2, sent as usize, SOON);
    assert_eq!(received.len() as u64, sent);
    let mut marks = 0;
    for (number, received) in (0..).zip(&received) {
        let plain = routed_v4(&frame(number, ect), NEIGHBOUR_2);
        let marked = *received == marked_v4(&plain);
        assert!(marked || *received == plain, "packet {number}");
        marks += i64::from(marked);
        // Packets behind this one when it left; the first left while the others arrived.
        let depth = sent - 1 - number;
        if number > 0 && depth > KMAX {
            assert!(marked, "depth {depth} is above kmax");
        } else if depth <= KMIN {
            assert!(!marked, "depth {depth} is not above kmin");
        }
    }
    let cell = (2 << 3 | MARKED_QUEUE) as i64;
    assert_eq!(switch.counter("queue_marks"), [(cell, marks)]);
    assert_eq!(switch.counter("queue_tx"), [(cell, sent as i64)]);

    // Not-ECT in queue 0 of the same port, whose profile drops it above kmin.
    for number in 0..sent {
        switch.send(1, &frame(number, 0));
    }
    let last = routed_v4(&frame(sent - 1, 0), NEIGHBOUR_2);
    let mut kept = 0;
    while comes_out(switch, 2) != last {
        kept += 1;
    }
    // Nothing stood before the first; behind each of the last were kmin packets or fewer.
    assert!(kept <= 1 + KMIN, "{kept} packets before the last");
    let dropped = (sent - 1 - kept) as i64;
    assert_eq!(switch.counter("drops"), [(1 << 5 | 10, dropped)]);
}

/// CNPs ride the control queue whatever their DSCP says.
pub(crate) fn cnps_ride_the_control_queue(switch: &mut Switch) {
    let cnp = Ipv4 {
        tos: (MARKED_DSCP as u8) << 2,
        ..Ipv4::to(LOCAL)
    };
    let cnp = cnp.frame(&roce(0xc000, 0x81, 5, &[0; 16]));
    switch.send(1, &cnp);
    assert_eq!(comes_out(switch, 2), routed_v4(&cnp, NEIGHBOUR_2));
    assert_eq!(switch.counter("queue_tx"), [(2 << 3 | 7, 1)]);
}

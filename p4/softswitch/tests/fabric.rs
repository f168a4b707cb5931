//! The fabric program forwards, hop by hop, what its entries say.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use softswitch::{Packet, Switch};
use support::{ENTRANCE, PORTS, ROUTER, checksum, rocev2, router};

/// Everything that comes out, in the order of ports.
fn drain(switch: &mut Switch, now: u64) -> Vec<Packet> {
    let mut ready = Vec::new();
    switch.take_ready(&mut ready);
    ready.sort_unstable();
    let mut out = Vec::new();
    for port in ready {
        while let Some(packet) = switch.dequeue(port, now) {
            out.push(packet);
        }
    }
    out
}

#[test]
fn routes_through_group_to_next_hop() {
    let mut switch = router();
    let packet = rocev2(0x0a00_0205, 50_000, 17, 200);
    switch.ingress(1, &packet, 1_000);
    let out = drain(&mut switch, 2_000);
    assert_eq!(out.len(), 1, "{:?}", switch.stats());
    let (port, bytes) = (out[0].port, &out[0].bytes);
    assert!(
        (9..=12).contains(&port),
        "10.0.2.0/24 is group 2, not port {port}"
    );
    assert_eq!(bytes.len(), packet.len());
    assert_eq!(
        bytes[0..6],
        (0x0200_0000_1000u64 + u64::from(port)).to_be_bytes()[2..]
    );
    assert_eq!(bytes[6..12], ROUTER.to_be_bytes()[2..]);
    assert_eq!(bytes[22], 63, "TTL");
    assert_eq!(checksum(&bytes[14..34]), 0, "IPv4 checksum");
    assert_eq!(bytes[15], packet[15], "an empty queue marks nothing");
    assert_eq!(bytes[34..], packet[34..]);
}

#[test]
fn flows_spread_over_the_group_and_stay() {
    let mut switch = router();
    let mut used = std::collections::BTreeSet::new();
    for flow in 0..64 {
        let mut ports = std::collections::BTreeSet::new();
        for _ in 0..3 {
            switch.ingress(ENTRANCE, &rocev2(0x0a00_0001, 50_000 + flow, 17, 120), 0);
            ports.extend(drain(&mut switch, 0).into_iter().map(|p| p.port));
        }
        assert_eq!(ports.len(), 1, "one flow, one path");
        used.extend(ports);
    }
    assert_eq!(used, (1..=4).collect(), "group 0 has ports 1 to 4");
}

#[test]
fn deep_queues_mark_ect_and_keep_the_checksum() {
    let mut switch = router();
    let packet = rocev2(0x0a00_0105, 50_000, 17, 120);
    for _ in 0..64 {
        switch.ingress(2, &packet, 0);
    }
    let out = drain(&mut switch, 1_000);
    assert_eq!(out.len(), 64);
    let marked: Vec<bool> = out.iter().map(|p| p.bytes[15] & 3 == 3).collect();
    // Above Kmax (40 packets) always, up to Kmin (4) never.
    assert!(marked[..23].iter().all(|m| *m), "{marked:?}");
    assert!(marked[59..].iter().all(|m| !*m), "{marked:?}");
    for packet in &out {
        assert_eq!(checksum(&packet.bytes[14..34]), 0);
    }
}

#[test]
fn full_queues_drop_silently_and_count() {
    let mut switch = router();
    switch.set_all_queue_depths(8);
    for _ in 0..10 {
        switch.ingress(2, &rocev2(0x0a00_0105, 50_000, 17, 120), 0);
    }
    assert_eq!(switch.stats().queue_drops, 2);
    assert_eq!(drain(&mut switch, 0).len(), 8);
}

#[test]
fn drops_what_it_should_not_forward() {
    let mut switch = router();
    let good = rocev2(0x0a00_0205, 50_000, 17, 120);
    let with = |at: usize, byte: u8| {
        let mut packet = good.clone();
        packet[at] = byte;
        packet
    };
    switch.ingress(ENTRANCE + 1, &good, 0); // a port that is off
    switch.ingress(1, &with(5, 0x77), 0); // not the router's MAC
    switch.ingress(1, &with(25, 0), 0); // bad checksum
    switch.ingress(1, &rocev2(0x0b00_0205, 50_000, 17, 120), 0); // no route
    assert_eq!(drain(&mut switch, 0), []);
    assert_eq!(switch.stats().ingress_drops, 4);
}

#[test]
fn cut_short_anywhere_nothing_breaks() {
    let mut switch = router();
    let packet = rocev2(0x0a00_0205, 50_000, 17, 200);
    for len in 0..packet.len() {
        switch.ingress(1, &packet[..len], 0);
        for out in drain(&mut switch, 0) {
            assert!(
                out.bytes.len() <= len + 2,
                "at most a packet-in header is added"
            );
        }
    }
}

#[test]
fn packets_wait_for_each_other_without_change() {
    let packets: Vec<Vec<u8>> = (0..64)
        .map(|i| rocev2(0x0a00_0005 | (i % 4) << 8, 50_000 + i as u16, i, 120))
        .collect();
    let mut alone = router();
    let mut expected: Vec<Packet> = Vec::new();
    for packet in &packets {
        alone.ingress(ENTRANCE, packet, 0);
        expected.extend(drain(&mut alone, 0));
    }
    assert_eq!(expected.len(), packets.len());
    expected.sort_by_key(|p| p.port);

    // In threes, so that the last of a batch is at times the next to leave and
    // at times not; what a flush takes away is not missed by the others.
    let mut together = router();
    let mut out = Vec::new();
    for batch in packets.chunks(3) {
        for packet in batch {
            together.ingress(ENTRANCE, packet, 0);
        }
        for port in (1..=PORTS).rev() {
            while let Some(packet) = together.dequeue(port, 0) {
                out.push(packet);
            }
        }
        together.ingress(ENTRANCE, &packets[0], 0);
        let flushed: usize = (1..=PORTS).map(|port| together.flush(port)).sum();
        assert_eq!(flushed, 1);
    }
    out.sort_by_key(|p| p.port);
    assert_eq!(out, expected);
}

//! Adaptive groups on a running switch: every mode, quality by probes, liveness by hellos, and the end of all members.

use std::time::{Duration, Instant};

use p4runtime::entry::{self, insert, modify};
use p4runtime::v1::{TableEntry, Update};

use crate::entries::{NEIGHBOUR_2, NEIGHBOUR_3, REMOTE};
use crate::packet::{Ipv4, ethernet, roce, routed_v4};
use crate::scenarios::bucket_of;
use crate::switch::Switch;

/// The group that [`REMOTE`] is routed to.
const GROUP: u64 = 7;
/// LA domain of [`REMOTE`].
const LA: u32 = 11;
const CPU: u64 = 510;
const SEED: u64 = 0x0bad_cafe;
/// A third of the buckets lead to port 2.
const MEMBERS: [u64; 3] = [2, 3, 3];
const FOR_EVER: u64 = 4_000_000_000;
const ETHERTYPE_LINK: u16 = 0x88b5;
const LINK_LOCAL: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
const NO_LIVE_MEMBER: i64 = 16;

const FIXED: u64 = 0;
const FLOWLET_RANDOM: u64 = 1;
const FLOWLET_QUALITY: u64 = 2;
const PER_PACKET_RANDOM: u64 = 3;
const PER_PACKET_QUALITY: u64 = 4;

fn group(switch: &Switch, mode: u64, idle: u64, path_age: u64) -> TableEntry {
    let entry = switch.index().table("group").unwrap().entry();
    let parameters = [
        ("size", MEMBERS.len() as u64),
        ("seed", SEED),
        ("mode", mode),
        ("idle", idle),
        ("queue_shift", 31),
        ("use_shift", 31),
        ("path_age", path_age),
        ("gray_is_dead", 0),
        ("first_port", 2),
        ("ports", 0b11),
    ];
    let entry = entry.exact("group_id", GROUP);
    entry.action("set_ars_group", parameters).build().unwrap()
}

/// Makes the group adaptive: its parameters, its buckets, its members by port; neighbours that are watched.
fn adapt(switch: &Switch, mode: u64, idle: u64, detect: u64) {
    let table = |name: &str| switch.index().table(name).unwrap().entry();
    let mut updates: Vec<Update> = vec![modify(group(switch, mode, idle, FOR_EVER))];
    // The fourth bucket of the plain group is not asked any more.
    for (bucket, port) in (0u64..).zip(MEMBERS) {
        let entry = table("group_bucket")
            .exact("group_id", GROUP)
            .exact("bucket", bucket);
        let member = entry.action("bucket_member", [("nexthop_id", port), ("port", port)]);
        updates.push(modify(member.build().unwrap()));
    }
    for port in [2u64, 3] {
        let entry = table("group_port")
            .exact("group_id", GROUP)
            .exact("port", port);
        updates.push(insert(
            entry
                .action("port_nexthop", [("nexthop_id", port)])
                .build()
                .unwrap(),
        ));
        let watch = [
            ("detect", detect),
            ("loss_shift", 8),
            ("window", 256),
            ("hold", 0),
        ];
        let entry = table("neighbour").exact("ingress_port", port);
        updates.push(insert(entry.action("watch", watch).build().unwrap()));
        let relay = [
            ("mcast_group", 0),
            ("age", FOR_EVER),
            ("queue", 0),
            ("queue_shift", 31),
            ("use_shift", 31),
        ];
        let entry = table("probe_port").exact("ingress_port", port);
        updates.push(insert(entry.action("relay", relay).build().unwrap()));
    }
    let clock = [("mcast_group", 1), ("allow", FOR_EVER)];
    let entry = table("neighbour").exact("ingress_port", CPU);
    updates.push(insert(entry.action("say_hello", clock).build().unwrap()));
    let ports = [2u64, 3].map(|port| entry::replica(port, 0));
    updates.push(insert(entry::multicast_group(1, ports)));
    switch.write(updates);
}

fn link(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = ethernet(LINK_LOCAL, ETHERTYPE_LINK, &[&[kind], body].concat());
    frame.resize(60, 0);
    frame
}

fn hello(deaf: bool) -> Vec<u8> {
    link(0x11, &[u8::from(deaf) << 7, 0, 0, 0, 0])
}

fn probe(band: u8) -> Vec<u8> {
    link(0x12, &[&[0, band][..], &LA.to_be_bytes()].concat())
}

/// A packet of a flow.
fn flow(number: u32) -> Vec<u8> {
    Ipv4::to(REMOTE).frame(&roce(0xc000, 4, number, b"payload"))
}

/// Packets that come out of ports 2 and 3; other frames, such as hellos, are not looked at.
fn sent(switch: &Switch, frames: &[Vec<u8>]) -> [usize; 2] {
    let mut counts = [0; 2];
    let neighbours = [NEIGHBOUR_2, NEIGHBOUR_3];
    let mut missing = 0;
    for frame in frames {
        switch.send(1, frame);
        missing += 1;
        let deadline = Instant::now() + Duration::from_millis(100);
        while missing > 0 && Instant::now() < deadline {
            for (port, neighbour) in neighbours.iter().enumerate() {
                for out in switch.receive(port + 2, 1, Duration::from_millis(1)) {
                    if out[12..14] == [8, 0] {
                        assert_eq!(out, routed_v4(frame, *neighbour));
                        counts[port] += 1;
                        missing -= 1;
                    }
                }
            }
        }
        missing = 0;
    }
    counts
}

/// So many of `all` as a share says, within four standard deviations.
fn is_share(count: usize, all: usize, share: f64) -> bool {
    let (count, all) = (count as f64, all as f64);
    (count - all * share).abs() < 4.0 * (all * share * (1.0 - share)).sqrt()
}

/// Fixed: the bucket that the hash names.
pub(crate) fn fixed_groups_go_by_the_hash(switch: &mut Switch) {
    adapt(switch, FIXED, 0, FOR_EVER);
    for number in 0..60 {
        let bucket = bucket_of(&Ipv4::to(REMOTE), (0xc000, 4791, number), (SEED, 3));
        let port = MEMBERS[bucket as usize];
        let expected = if port == 2 { [1, 0] } else { [0, 1] };
        assert_eq!(sent(switch, &[flow(number)]), expected, "flow {number}");
    }
}

/// Flowlet-random: a burst stays together, bursts go by weight.
pub(crate) fn flowlets_stay_together_and_go_by_weight(switch: &mut Switch) {
    adapt(switch, FLOWLET_RANDOM, FOR_EVER, FOR_EVER);
    for number in 0..8 {
        let counts = sent(switch, &vec![flow(number); 10]);
        assert!(
            counts == [10, 0] || counts == [0, 10],
            "torn apart: {counts:?}"
        );
    }
    // Every packet is a burst.
    switch.write(vec![modify(group(switch, FLOWLET_RANDOM, 1, 0))]);
    let packets = 400;
    let counts = sent(switch, &vec![flow(1); packets]);
    assert_eq!(counts[0] + counts[1], packets);
    assert!(is_share(counts[0], packets, 1.0 / 3.0), "{counts:?}");
}

/// Per-packet-random: by weight, packet by packet.
pub(crate) fn packets_go_by_weight(switch: &mut Switch) {
    adapt(switch, PER_PACKET_RANDOM, FOR_EVER, FOR_EVER);
    let packets = 400;
    let counts = sent(switch, &vec![flow(1); packets]);
    assert_eq!(counts[0] + counts[1], packets);
    assert!(is_share(counts[0], packets, 1.0 / 3.0), "{counts:?}");
}

/// Both quality modes: the path that probes call good is taken, and left when it turns bad.
pub(crate) fn quality_follows_probes(switch: &mut Switch) {
    adapt(switch, PER_PACKET_QUALITY, FOR_EVER, FOR_EVER);
    // So that every bucket's port is known.
    sent(switch, &(0..40).map(flow).collect::<Vec<_>>());
    for (good, bad) in [(2usize, 3usize), (3, 2)] {
        switch.send(good, &probe(0));
        switch.send(bad, &probe(40));
        switch.write(vec![modify(group(
            switch,
            PER_PACKET_QUALITY,
            FOR_EVER,
            FOR_EVER,
        ))]);
        // Until two candidates have named it once.
        sent(switch, &vec![flow(1); 40]);
        let counts = sent(switch, &vec![flow(1); 60]);
        assert_eq!(counts[good - 2], 60, "port {good} is good: {counts:?}");

        switch.write(vec![modify(group(
            switch,
            FLOWLET_QUALITY,
            FOR_EVER,
            FOR_EVER,
        ))]);
        // A flow is where it is until it pauses.
        assert_eq!(sent(switch, &vec![flow(1); 20])[good - 2], 20);
        switch.send(good, &probe(60));
        switch.send(bad, &probe(0));
        assert_eq!(
            sent(switch, &vec![flow(1); 20])[good - 2],
            20,
            "no pause yet"
        );
        switch.write(vec![modify(group(switch, FLOWLET_QUALITY, 1, FOR_EVER))]);
        sent(switch, &vec![flow(1); 40]);
        assert_eq!(
            sent(switch, &vec![flow(1); 20])[bad - 2],
            20,
            "after pauses"
        );
    }
}

/// A neighbour that is deaf is left at once; with none left packets are dropped and counted, and the switch lives.
pub(crate) fn no_member_left_is_a_drop_and_no_crash(switch: &mut Switch) {
    adapt(switch, FIXED, 0, FOR_EVER);
    let flows: Vec<Vec<u8>> = (0..30).map(flow).collect();
    let whole = sent(switch, &flows);
    assert!(whole[0] > 0 && whole[1] > 0);
    switch.send(2, &hello(true));
    assert_eq!(sent(switch, &flows), [0, 30], "port 2 is dead");
    switch.send(3, &hello(true));
    assert_eq!(sent(switch, &flows[..8]), [0, 0], "all are dead");
    let drops = switch.counter("drops");
    assert!(drops.contains(&(1 << 5 | NO_LIVE_MEMBER, 8)), "{drops:?}");
    switch.send(2, &hello(false));
    assert_eq!(sent(switch, &flows), [30, 0], "port 2 is back");
    switch.send(3, &hello(false));
    assert_eq!(sent(switch, &flows), whole, "each has its own again");
}

/// A neighbour that falls silent is left within the detection time, by the data plane alone.
pub(crate) fn a_silent_neighbour_is_left(switch: &mut Switch) {
    let (interval, detection) = (Duration::from_millis(100), Duration::from_millis(600));
    adapt(switch, FIXED, 0, detection.as_micros() as u64);
    let flows: Vec<Vec<u8>> = (0..8).map(flow).collect();
    let mut silent_since = None;
    let mut whole = [0; 2];
    let start = Instant::now();
    for beat in 0.. {
        switch.packet_out(None, &hello(false));
        switch.send(3, &hello(false));
        if beat < 5 {
            switch.send(2, &hello(false));
        } else {
            silent_since.get_or_insert_with(Instant::now);
        }
        let counts = sent(switch, &flows);
        if beat < 5 {
            assert!(counts[0] > 0 && counts[1] > 0, "both are alive: {counts:?}");
            whole = counts;
        }
        let silent = silent_since.map_or(Duration::ZERO, |since: Instant| since.elapsed());
        if counts != whole {
            // That may have been between two of them.
            assert_eq!(sent(switch, &flows), [0, flows.len()], "port 2 is left");
            // The last hello came a beat before the first that was left out, and beats of a busy machine are long.
            assert!(
                silent + 3 * interval > detection,
                "after {silent:?} already"
            );
            break;
        }
        assert!(silent < 2 * detection, "after {silent:?} it is still used");
        std::thread::sleep(
            (start + interval * (beat + 1)).saturating_duration_since(Instant::now()),
        );
    }
    switch.send(2, &hello(false));
    assert_eq!(sent(switch, &flows), whole, "it is back");
}

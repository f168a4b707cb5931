//! Adaptive ECMP, liveness and path probes of the fabric program on one switch.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeMap;

use softswitch::control::Replica;
use softswitch::{Packet, Switch, SwitchConfig};
use support::{ROUTER, insert, program, rocev2};

const CPU: u16 = 510;
/// Ports of the group's members.
const MEMBERS: Ports = Ports(1, 8);
const BELOW: Ports = Ports(9, 12);
/// Where the traffic comes in.
const HOST: u16 = 20;
const BUCKETS: u16 = 48;
const NO_LIVE_MEMBER: u64 = 16;
const US: u64 = 1_000;
/// Hello interval and detection time, us.
const HELLO: u64 = 100;
const DETECT: u64 = 225;
const PATH_AGE: u64 = 300;
/// The LA domain that 10.0.2.0/24 is in.
const LA: u32 = 700;

/// Ports from the first to the last.
#[derive(Clone, Copy)]
struct Ports(u16, u16);

impl Ports {
    fn contains(self, port: u16) -> bool {
        (self.0..=self.1).contains(&port)
    }
}

impl IntoIterator for Ports {
    type Item = u16;
    type IntoIter = std::ops::RangeInclusive<u16>;

    fn into_iter(self) -> Self::IntoIter {
        self.0..=self.1
    }
}

struct Group {
    mode: u128,
    path_age: u128,
    gray_is_dead: u128,
    weights: [u16; 8],
}

impl Default for Group {
    fn default() -> Self {
        Self {
            mode: 0,
            path_age: 0,
            gray_is_dead: 0,
            weights: [1; 8],
        }
    }
}

struct Bench {
    switch: Switch,
    /// What neighbours have sent, by port: their hellos say so.
    sent: BTreeMap<u16, u32>,
}

fn bench(group: &Group) -> Bench {
    let mut switch = Switch::new(SwitchConfig {
        cpu_port: Some(CPU),
        queues: 8,
        queue_depth: 10_000,
        ..SwitchConfig::default()
    });
    switch.install(program());
    let s = &mut switch;
    insert(s, "port_config", &[(HOST.into(), 0)], "host_port", &[0, 9]);
    insert(s, "station", &[(ROUTER.into(), 0)], "accept", &[]);
    for port in MEMBERS.into_iter().chain(BELOW) {
        let key = [(port.into(), 0)];
        insert(s, "port_config", &key, "fabric_port", &[0]);
        let hop = [
            port.into(),
            ROUTER.into(),
            0x0200_0000_1000 + u128::from(port),
        ];
        insert(s, "nexthop", &key, "forward", &hop);
        let watch = [DETECT.into(), 7, 64, 1_000];
        insert(s, "neighbour", &key, "watch", &watch);
        // 100 Gb/s and 64 us: 800 kB are 65536.
        insert(s, "port_load", &key, "measure", &[5_369, 6]);
        let up = if MEMBERS.contains(port) { 2 } else { 1 };
        let relay = [up, PATH_AGE.into(), 0, 0, 12];
        insert(s, "probe_port", &key, "relay", &relay);
    }
    let cpu = [(CPU.into(), 0)];
    insert(s, "neighbour", &cpu, "say_hello", &[1, 112]);
    insert(s, "probe_port", &cpu, "originate", &[3]);
    let replicas = |ports: &mut dyn Iterator<Item = u16>| -> Vec<Replica> {
        ports.map(|port| Replica { port, instance: 0 }).collect()
    };
    s.multicast_insert(1, &replicas(&mut MEMBERS.into_iter().chain(BELOW)))
        .unwrap();
    s.multicast_insert(2, &replicas(&mut BELOW.into_iter()))
        .unwrap();
    s.multicast_insert(3, &replicas(&mut MEMBERS.into_iter()))
        .unwrap();
    insert(
        s,
        "route_v4",
        &[(0, 0), (0x0a00_0200, 24)],
        "route_group",
        &[5],
    );
    let mapped = 0xffff << 32 | 0x0a00_0200;
    insert(
        s,
        "la_of",
        &[(0, 0), (mapped, 120)],
        "set_dst_la",
        &[LA.into()],
    );
    let total: u16 = group.weights.iter().sum();
    let size = BUCKETS / total * total;
    let ports = MEMBERS
        .into_iter()
        .fold(0u128, |mask, port| mask | 1 << (port - 1));
    let set = [
        size.into(),
        0x1234_5678,
        group.mode,
        50,
        0,
        12,
        group.path_age,
        group.gray_is_dead,
        1,
        ports,
    ];
    insert(s, "group", &[(5, 0)], "set_ars_group", &set);
    let mut bucket = 0u128;
    for (port, weight) in MEMBERS.into_iter().zip(group.weights) {
        for _ in 0..weight * (size / total) {
            let member = [port.into(), port.into()];
            insert(
                s,
                "group_bucket",
                &[(5, 0), (bucket, 0)],
                "bucket_member",
                &member,
            );
            bucket += 1;
        }
        insert(
            s,
            "group_port",
            &[(5, 0), (port.into(), 0)],
            "port_nexthop",
            &[port.into()],
        );
    }
    Bench {
        switch,
        sent: BTreeMap::new(),
    }
}

fn link_frame(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![
        0x01,
        0x80,
        0xc2,
        0,
        0,
        0x0e,
        2,
        0,
        0,
        0,
        0,
        9,
        0x88,
        0xb5,
        0x10 | kind,
    ];
    frame.extend_from_slice(rest);
    frame.resize(60, 0);
    frame
}

fn hello(deaf: bool, gray: bool, sent: u32) -> Vec<u8> {
    let flags = u8::from(deaf) << 7 | u8::from(gray) << 6;
    link_frame(1, &[&[flags][..], &sent.to_be_bytes()].concat())
}

fn probe(la: u32, band: u8) -> Vec<u8> {
    link_frame(2, &[&[0, band][..], &la.to_be_bytes()].concat())
}

/// A packet-out that the pipeline treats as any packet.
fn submitted(frame: &[u8]) -> Vec<u8> {
    [&[0, 0x40][..], frame].concat()
}

impl Bench {
    fn drain(&mut self, now: u64) -> Vec<Packet> {
        let mut ready = Vec::new();
        self.switch.take_ready(&mut ready);
        ready.sort_unstable();
        ready.dedup();
        let mut out = Vec::new();
        for port in ready {
            while let Some(packet) = self.switch.dequeue(port, now) {
                out.push(packet);
            }
        }
        out
    }

    /// Own hellos at `now`; what goes out.
    fn tick(&mut self, now: u64) -> Vec<Packet> {
        self.switch
            .ingress(CPU, &submitted(&hello(false, false, 0)), now);
        self.drain(now)
    }

    /// A neighbour's hello.
    fn heard(&mut self, port: u16, (deaf, gray): (bool, bool), now: u64) {
        let sent = self.sent.entry(port).or_insert(0);
        let frame = hello(deaf, gray, *sent);
        *sent += 1;
        self.switch.ingress(port, &frame, now);
        assert_eq!(self.drain(now), [], "a hello goes no further");
    }

    fn all_heard(&mut self, now: u64) {
        for port in MEMBERS.into_iter().chain(BELOW) {
            self.heard(port, (false, false), now);
        }
    }

    /// The port a packet of flow `flow` leaves by, or none.
    fn send(&mut self, flow: u16, now: u64) -> Option<u16> {
        self.switch
            .ingress(HOST, &rocev2(0x0a00_0205, flow, 17, 1_000), now);
        let out = self.drain(now);
        assert!(out.len() <= 1);
        out.first().map(|packet| packet.port)
    }

    fn ports_of(&mut self, flows: u16, now: u64) -> Vec<Option<u16>> {
        (0..flows).map(|flow| self.send(flow, now)).collect()
    }

    fn dropped(&self) -> u64 {
        let id = self.switch.program().unwrap().counter_id("drops").unwrap();
        let index = u64::from(HOST) << 5 | NO_LIVE_MEMBER;
        self.switch.counter_read(id, index).unwrap().packets
    }
}

fn shares(ports: &[Option<u16>]) -> BTreeMap<u16, usize> {
    let mut shares = BTreeMap::new();
    for port in ports.iter().flatten() {
        *shares.entry(*port).or_insert(0) += 1;
    }
    shares
}

#[test]
fn only_the_flows_of_a_dead_member_move_and_evenly() {
    let mut bench = bench(&Group::default());
    bench.tick(0);
    bench.all_heard(1);
    let before = bench.ports_of(4_000, 10 * US);
    assert!(
        MEMBERS.into_iter().all(|port| shares(&before)[&port] > 400),
        "{:?}",
        shares(&before)
    );
    // Port 3 falls silent.
    for round in 1..5 {
        let now = round * HELLO * US;
        bench.tick(now);
        for port in MEMBERS.into_iter().filter(|port| *port != 3) {
            bench.heard(port, (false, false), now);
        }
    }
    let now = (DETECT + 1) * US;
    let after = bench.ports_of(4_000, 4 * HELLO * US + now % 7);
    let mut moved = BTreeMap::new();
    for (was, is) in before.iter().zip(&after) {
        if *was == Some(3) {
            *moved.entry(is.unwrap()).or_insert(0) += 1;
        } else {
            assert_eq!(was, is, "flows of live members stay");
        }
    }
    assert!(!moved.contains_key(&3));
    let each = shares(&before)[&3] as f64 / 7.0;
    for port in MEMBERS.into_iter().filter(|port| *port != 3) {
        let ratio = f64::from(moved[&port]) / each;
        assert!((0.6..1.4).contains(&ratio), "{moved:?}");
    }
    // It comes back, and with it its flows.
    bench.heard(3, (false, false), 4 * HELLO * US + 10);
    assert_eq!(bench.ports_of(4_000, 4 * HELLO * US + 20), before);
    assert_eq!(bench.dropped(), 0);
}

#[test]
fn without_a_live_member_packets_are_dropped_and_counted() {
    for mode in 0..5 {
        let mut bench = bench(&Group {
            mode,
            ..Group::default()
        });
        bench.tick(0);
        bench.all_heard(1);
        assert!(bench.send(1, 10 * US).is_some());
        for round in 1..4 {
            bench.tick(round * HELLO * US);
        }
        let late = 3 * HELLO * US + 10;
        assert_eq!(bench.ports_of(100, late), vec![None; 100], "mode {mode}");
        assert_eq!(bench.dropped(), 100);
        bench.heard(6, (false, false), late + 20);
        let last = shares(&bench.ports_of(100, late + 30));
        assert_eq!(
            last.into_iter().collect::<Vec<_>>(),
            [(6, 100)],
            "mode {mode}"
        );
    }
}

#[test]
fn nobody_is_judged_by_a_switch_whose_own_clock_stopped() {
    let mut bench = bench(&Group::default());
    bench.tick(0);
    bench.all_heard(1);
    let before = bench.ports_of(200, 10 * US);
    assert_eq!(bench.ports_of(200, 10_000_000 * US), before);
}

#[test]
fn a_neighbour_that_does_not_hear_us_is_dead_at_once() {
    let mut bench = bench(&Group::default());
    bench.tick(0);
    bench.all_heard(1);
    bench.heard(2, (true, false), 5 * US);
    let ports = shares(&bench.ports_of(800, 6 * US));
    assert!(!ports.contains_key(&2) && ports.len() == 7, "{ports:?}");
    bench.heard(2, (false, false), 7 * US);
    assert!(shares(&bench.ports_of(800, 8 * US)).contains_key(&2));
}

#[test]
fn hellos_say_what_was_sent_and_who_is_overdue() {
    let mut bench = bench(&Group::default());
    bench.tick(0);
    bench.all_heard(1);
    let ports = shares(&bench.ports_of(64, 10 * US));
    for round in 1..=2 {
        bench.tick(round * HELLO * US);
        bench.heard(1, (false, false), round * HELLO * US);
    }
    let out = bench.tick(3 * HELLO * US);
    assert_eq!(out.len(), 12, "one to every neighbour");
    for packet in out {
        let deaf = packet.bytes[15] >> 7;
        assert_eq!(deaf == 0, packet.port == 1, "port {}", packet.port);
        let sent = u32::from_be_bytes(packet.bytes[16..20].try_into().unwrap());
        let data = ports.get(&packet.port).copied().unwrap_or(0) as u32;
        assert_eq!(sent, 3 + data, "three hellos before this one, and the data");
    }
}

#[test]
fn loss_is_told_and_a_lossy_link_is_shunned() {
    let mut bench = bench(&Group {
        mode: 2,
        ..Group::default()
    });
    bench.tick(0);
    bench.all_heard(1);
    let gray = |bench: &mut Bench, now| {
        let out = bench.tick(now);
        let gray = out.iter().filter(|p| p.bytes[15] >> 6 & 1 == 1);
        gray.map(|p| p.port).collect::<Vec<_>>()
    };
    // Port 4's neighbour has put 200 packets on the link, of which four did not come.
    for _ in 0..196 {
        bench
            .switch
            .ingress(4, &rocev2(0x0a00_0105, 1, 17, 100), 2 * US);
    }
    *bench.sent.get_mut(&4).unwrap() += 200;
    // Port 5's neighbour: 200, of which one did not come: below one in 128.
    for _ in 0..199 {
        bench
            .switch
            .ingress(5, &rocev2(0x0a00_0105, 1, 17, 100), 2 * US);
    }
    *bench.sent.get_mut(&5).unwrap() += 200;
    bench.heard(4, (false, false), 3 * US);
    bench.heard(5, (false, false), 3 * US);
    assert_eq!(gray(&mut bench, 4 * US), [4]);
    // A window without loss clears it.
    for round in 0..70 {
        bench.heard(4, (false, false), (5 + round) * US);
    }
    assert_eq!(gray(&mut bench, 100 * US), [0u16; 0]);
    // The other way: port 7's neighbour says that ours get lost.
    bench.all_heard(101 * US);
    bench.heard(7, (false, true), 102 * US);
    let mut used = BTreeMap::new();
    for flow in 0..400 {
        *used
            .entry(bench.send(flow, 103 * US + u64::from(flow)))
            .or_insert(0) += 1;
    }
    // Until every member is known a bucket may be tried; after that port 7 has no chance.
    let tried = used.get(&Some(7)).copied().unwrap_or(0);
    assert!(tried <= 12, "{used:?}");
    bench.tick(1_150 * US);
    bench.all_heard(1_150 * US);
    let later = shares(&bench.ports_of(400, 1_160 * US));
    assert!(later.contains_key(&7), "held for 1 ms: {later:?}");
}

#[test]
fn a_gray_link_may_count_as_dead() {
    let mut bench = bench(&Group {
        gray_is_dead: 1,
        ..Group::default()
    });
    bench.tick(0);
    bench.all_heard(1);
    bench.heard(7, (false, true), 2 * US);
    let ports = shares(&bench.ports_of(800, 3 * US));
    assert!(!ports.contains_key(&7) && ports.len() == 7, "{ports:?}");
    // Better a lossy link than none.
    bench.tick(HELLO * US);
    bench.tick(2 * HELLO * US);
    bench.heard(7, (false, true), 2 * HELLO * US);
    bench.tick(3 * HELLO * US);
    let ports = shares(&bench.ports_of(200, 3 * HELLO * US + 1));
    assert_eq!(ports.into_iter().collect::<Vec<_>>(), [(7, 200)]);
}

#[test]
fn a_flowlet_keeps_its_bucket_until_it_pauses() {
    for mode in [1, 2] {
        let mut bench = bench(&Group {
            mode,
            ..Group::default()
        });
        let mut used = BTreeMap::new();
        let mut now = 1_000 * US;
        for _ in 0..100 {
            let port = bench.send(7, now).unwrap();
            for _ in 0..5 {
                now += 49 * US;
                assert_eq!(
                    bench.send(7, now),
                    Some(port),
                    "mode {mode}: no pause, no move"
                );
            }
            *used.entry(port).or_insert(0) += 1;
            now += 60 * US;
        }
        if mode == 1 {
            assert_eq!(used.len(), 8, "{used:?}");
        }
    }
}

#[test]
fn random_choice_gives_members_their_weight() {
    let weights = [1, 1, 1, 1, 1, 1, 1, 3];
    let mut bench = bench(&Group {
        mode: 3,
        weights,
        ..Group::default()
    });
    let ports: Vec<_> = (0..5_000u64).map(|n| bench.send(7, n * US)).collect();
    let shares = shares(&ports);
    for (port, weight) in MEMBERS.into_iter().zip(weights) {
        let expected = f64::from(weight) * 500.0;
        let ratio = shares[&port] as f64 / expected;
        assert!((0.8..1.2).contains(&ratio), "{shares:?}");
    }
}

#[test]
fn quality_keeps_queues_level() {
    // Nothing leaves while 400 packets of one flow come: each takes the shorter of a few queues.
    let depths = |mode| {
        let mut bench = bench(&Group {
            mode,
            ..Group::default()
        });
        for flow in 0..64 {
            for round in 0..8 {
                bench.send(flow, (1_000 + round * 100) * US);
            }
        }
        for _ in 0..400 {
            let packet = rocev2(0x0a00_0205, 7, 17, 1_000);
            bench.switch.ingress(HOST, &packet, 10_000 * US);
        }
        MEMBERS
            .into_iter()
            .map(|port| bench.switch.queue_depth(port, 0))
            .collect::<Vec<_>>()
    };
    let (quality, random) = (depths(4), depths(3));
    let spread = |depths: &[usize]| depths.iter().max().unwrap() - depths.iter().min().unwrap();
    assert_eq!(quality.iter().sum::<usize>(), 400);
    assert!(spread(&quality[..]) <= 6, "{quality:?}");
    assert!(spread(&quality) < spread(&random), "{quality:?} {random:?}");
}

#[test]
fn probes_go_up_and_down_but_never_back() {
    let mut bench = bench(&Group::default());
    let ports = |packets: Vec<Packet>| packets.iter().map(|p| p.port).collect::<Vec<_>>();
    bench.switch.ingress(CPU, &submitted(&probe(3, 0)), 0);
    let out = bench.drain(0);
    assert_eq!(ports(out), MEMBERS.into_iter().collect::<Vec<_>>());
    bench.switch.ingress(10, &probe(LA, 4), US);
    let out = bench.drain(US);
    assert!(
        out.iter().all(|packet| packet.bytes[15..17] == [1, 4]),
        "a hop more, an idle port"
    );
    assert_eq!(
        ports(out),
        MEMBERS.into_iter().chain([9, 11, 12]).collect::<Vec<_>>()
    );
    // From above only down, and only the best path's.
    bench.switch.ingress(2, &probe(LA, 3), 2 * US);
    assert_eq!(
        ports(bench.drain(2 * US)),
        BELOW.into_iter().collect::<Vec<_>>()
    );
    bench.switch.ingress(3, &probe(LA, 9), 3 * US);
    assert_eq!(bench.drain(3 * US), []);
    bench.switch.ingress(2, &probe(LA, 11), 4 * US);
    assert_eq!(
        bench.drain(4 * US).len(),
        4,
        "the best path got worse: that is news"
    );
    bench.switch.ingress(3, &probe(LA, 9), 5 * US);
    assert_eq!(bench.drain(5 * US).len(), 4, "and another is better now");
}

#[test]
fn a_path_whose_probes_stop_is_left() {
    for mode in [0, 2, 4] {
        let mut bench = bench(&Group {
            mode,
            path_age: PATH_AGE.into(),
            ..Group::default()
        });
        for port in MEMBERS {
            bench.switch.ingress(port, &probe(LA, 0), US);
        }
        bench.drain(US);
        let at = |bench: &mut Bench, now: u64| {
            let flows = (0..400)
                .map(|flow| bench.send(flow, now))
                .collect::<Vec<_>>();
            shares(&flows)
        };
        assert_eq!(at(&mut bench, 2 * US).len(), 8, "mode {mode}");
        for port in MEMBERS.into_iter().filter(|port| *port != 5) {
            bench.switch.ingress(port, &probe(LA, 0), 200 * US);
        }
        bench.drain(200 * US);
        let later = at(&mut bench, (PATH_AGE + 3) * US);
        assert_eq!((later.len(), later.get(&5)), (7, None), "mode {mode}");
        bench.switch.ingress(5, &probe(LA, 0), (PATH_AGE + 4) * US);
        bench.drain(0);
        assert!(mode == 2 || at(&mut bench, (PATH_AGE + 5) * US).len() == 8);
    }
}

#[test]
fn a_congested_path_is_avoided() {
    let mut bench = bench(&Group {
        mode: 4,
        path_age: PATH_AGE.into(),
        ..Group::default()
    });
    for flow in 0..64 {
        bench.ports_of(64, flow * US);
    }
    for port in MEMBERS {
        let band = if port <= 4 { 40 } else { 0 };
        bench.switch.ingress(port, &probe(LA, band), 10_000 * US);
    }
    bench.drain(10_000 * US);
    let ports: Vec<_> = (0..800u64)
        .map(|n| bench.send(7, 10_001 * US + n * 100))
        .collect();
    let good: usize = shares(&ports)
        .iter()
        .filter(|(port, _)| **port > 4)
        .map(|(_, n)| n)
        .sum();
    assert!(good > 760, "{:?}", shares(&ports));
}

#[test]
fn hellos_from_hosts_are_not_believed() {
    let mut bench = bench(&Group::default());
    bench.switch.ingress(HOST, &hello(false, false, 0), 0);
    bench.switch.ingress(HOST, &probe(LA, 0), 0);
    assert_eq!(bench.drain(0), []);
    assert_eq!(bench.switch.stats().ingress_drops, 2);
}

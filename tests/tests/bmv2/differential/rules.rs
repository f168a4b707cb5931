//! Entries of any kind, as values that proptest can draw.
//!
//! Whatever is drawn, what the switches do with it does not depend on time, load or lots: times are either over at
//! once or never, and groups whose mode draws lots lead to the same member whichever bucket comes.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use p4runtime::entry::{Error, TableEntryBuilder};
use p4runtime::info::Index;
use p4runtime::v1::TableEntry;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::inputs::{INT_DSCP, INT_PORT, QUEUE_PAIRS, network_v4, network_v6};
use super::sentinel::SENTINEL_DSCP;

/// Longer than any test, us.
const FOR_EVER: u64 = 4_000_000_000;
/// LA domains.
const LAS: std::ops::Range<u64> = 1..4;
/// Ports with a cable.
const PORTS: std::ops::RangeInclusive<u64> = 1..=3;
/// A next hop that no entry knows.
const NO_NEXTHOP: u64 = 99;
const CPU: u64 = 510;
/// Clone sessions: to the controller, and out of port 3.
pub(super) const TO_CPU: u64 = CPU;
pub(super) const TO_PORT: u64 = 3;
/// Node, ports, logical interfaces, use of a port that is not measured, a reserved bit, complement: what depends
/// neither on time nor on load.
pub(super) const FORETOLD: u16 = 0xc341;

#[derive(Clone, Copy, Debug)]
enum Way {
    Nexthop(u64),
    Group(usize),
    Drop,
    Cpu(u64),
}

#[derive(Clone, Debug)]
struct Group {
    seed: u32,
    /// `None`: `set_group`.
    mode: Option<u64>,
    members: Vec<u64>,
    path_age: u64,
    gray_is_dead: bool,
}

#[derive(Clone, Debug)]
struct Match {
    dst_v6: bool,
    dst_net: u8,
    protocol: Option<u64>,
    dst_port: Option<u64>,
    port: Option<u64>,
    action: usize,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    by_port: bool,
    instructions: u16,
    extra_words: u8,
    max_hops: u8,
    domain: u16,
    protocol: Option<u64>,
}

/// What a port means to INT.
#[derive(Clone, Copy, Debug)]
enum IntPort {
    None,
    Push(u16),
    Strip(u64),
}

/// The entries of one case, and what hellos and probes are copied to.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Roles of ports 2 and 3: 0 host, 1 fabric.
    roles: [bool; 2],
    routes: Vec<(bool, u8, u32, Way)>,
    groups: Vec<Group>,
    pins: Vec<(u8, u32, u64, Option<u64>)>,
    acl: Vec<Match>,
    traps: Vec<(Option<u64>, Option<u64>, u64)>,
    classes: Vec<(u64, u64, u64)>,
    domains: Vec<(bool, u8, u32, u64)>,
    watch: Option<Watch>,
    int_ports: [IntPort; 3],
    interfaces: [Option<u32>; 3],
    drop_reports: BTreeSet<u64>,
    report_to: u64,
    /// By port 2 and 3: overdue at once, gray for ever, loss shift.
    neighbours: [Option<(bool, bool, u64)>; 2],
    probes: [Option<(u64, bool)>; 2],
    speaks: bool,
    /// Ports of multicast groups 1 and 2.
    pub(super) copies: [BTreeSet<u16>; 2],
}

fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![
        4 => PORTS.prop_map(Way::Nexthop),
        1 => Just(Way::Nexthop(NO_NEXTHOP)),
        5 => (0usize..3).prop_map(Way::Group),
        1 => Just(Way::Drop),
        1 => (16u64..100).prop_map(Way::Cpu),
    ]
}

fn groups() -> impl Strategy<Value = Group> {
    let mode = prop_oneof![2 => Just(None), 3 => Just(Some(0)), 5 => (1u64..5).prop_map(Some)];
    let age = select(vec![0, 1, FOR_EVER]);
    (any::<u32>(), mode, vec(PORTS, 0..6), age, any::<bool>()).prop_map(
        |(seed, mode, mut members, path_age, gray_is_dead)| {
            if let (Some(1..), Some(&only)) = (mode, members.first()) {
                members.fill(only);
            }
            Group {
                seed,
                mode,
                members,
                path_age,
                gray_is_dead,
            }
        },
    )
}

fn matches(actions: usize) -> impl Strategy<Value = Match> {
    let maybe = |values: Vec<u64>| prop::option::of(select(values));
    (
        any::<bool>(),
        0u8..4,
        maybe(vec![6, 17, 1]),
        maybe(vec![4791, 5001, 80]),
        maybe(vec![1, 2, 3]),
        0..actions,
    )
        .prop_map(
            |(dst_v6, dst_net, protocol, dst_port, port, action)| Match {
                dst_v6,
                dst_net,
                protocol,
                dst_port,
                port,
                action,
            },
        )
}

fn watches() -> impl Strategy<Value = Watch> {
    (
        any::<bool>(),
        any::<u16>().prop_map(|bits| bits & FORETOLD),
        0u8..3,
        0u8..4,
        any::<u16>(),
        prop::option::of(select(vec![6u64, 17])),
    )
        .prop_map(
            |(by_port, instructions, extra_words, max_hops, domain, protocol)| Watch {
                by_port,
                instructions,
                extra_words,
                max_hops,
                domain,
                protocol,
            },
        )
}

fn int_ports() -> impl Strategy<Value = IntPort> {
    prop_oneof![
        1 => Just(IntPort::None),
        3 => select(vec![9000u16, 9000, 130]).prop_map(IntPort::Push),
        3 => select(vec![0, TO_CPU, TO_PORT]).prop_map(IntPort::Strip),
    ]
}

/// Any entries.
pub(super) fn rules() -> impl Strategy<Value = Rules> {
    let length = select(vec![8u32, 16, 24, 28, 32]);
    let forwarding = (
        any::<[bool; 2]>(),
        vec(
            (prop::bool::weighted(0.3), 0u8..4, length.clone(), ways()),
            4..12,
        ),
        vec(groups(), 3),
        vec(
            (
                0u8..4,
                select(QUEUE_PAIRS.to_vec()),
                PORTS,
                prop::option::of(select(vec![0, 1, FOR_EVER])),
            ),
            0..3,
        ),
    );
    let policy = (
        vec(matches(3), 0..3),
        vec(
            (
                prop::option::of(select(vec![0x0806u64, 0x88cc])),
                prop::option::of(select(vec![58u64, 17])),
                1u64..7,
            ),
            0..3,
        ),
        vec((0..u64::from(SENTINEL_DSCP), 0u64..16, 0u64..8), 0..6),
        vec((prop::bool::weighted(0.3), 0u8..4, length, LAS), 0..5),
    );
    let telemetry = (
        prop::option::weighted(0.6, watches()),
        [int_ports(), int_ports(), int_ports()],
        any::<[Option<u32>; 3]>(),
        prop::collection::btree_set(0u64..17, 0..6),
        select(vec![TO_CPU, TO_PORT]),
    );
    let hello = || prop::option::weighted(0.7, (prop::bool::weighted(0.2), any::<bool>(), 0u64..9));
    let probe = || prop::option::weighted(0.7, (0u64..3, any::<bool>()));
    let ports = || prop::collection::btree_set(1u16..4, 1..4);
    let links = (
        [hello(), hello()],
        [probe(), probe()],
        prop::bool::weighted(0.85),
        [ports(), ports()],
    );
    (forwarding, policy, telemetry, links).prop_map(
        |(
            (roles, routes, groups, pins),
            (acl, traps, classes, domains),
            (watch, int_ports, interfaces, drop_reports, report_to),
            (neighbours, probes, speaks, copies),
        )| Rules {
            roles,
            routes,
            groups,
            pins,
            acl,
            traps,
            classes,
            domains,
            watch,
            int_ports,
            interfaces,
            drop_reports,
            report_to,
            neighbours,
            probes,
            speaks,
            copies,
        },
    )
}

const NOTHING: [(&str, u64); 0] = [];

/// Entries as they are put together; of two for the same key the first stays.
struct Book<'i> {
    index: &'i Index,
    entries: Vec<TableEntry>,
}

impl<'i> Book<'i> {
    fn entry(&self, table: &str) -> TableEntryBuilder<'i> {
        self.index.table(table).unwrap().entry()
    }

    fn put(&mut self, entry: Result<TableEntry, Error>) {
        let entry = entry.unwrap();
        let key = |entry: &TableEntry| (entry.table_id, format!("{:?}", entry.r#match));
        if self.entries.iter().all(|there| key(there) != key(&entry)) {
            self.entries.push(entry);
        }
    }
}

impl Rules {
    /// Groups of a case have numbers of their own, so that no flow remembers a bucket of an earlier case.
    fn group_id(case: u32, number: usize) -> u64 {
        u64::from(case) * 4 + number as u64 + 1
    }

    /// Numbers of the groups whose buckets are drawn by lot.
    pub(super) fn drawn(&self, case: u32) -> BTreeSet<u64> {
        let groups = self.groups.iter().enumerate();
        groups
            .filter(|(_, group)| group.mode.is_some_and(|mode| mode != 0))
            .map(|(number, _)| Self::group_id(case, number))
            .collect()
    }

    /// All entries of the case.
    pub(super) fn entries(&self, index: &Index, case: u32) -> Vec<TableEntry> {
        let mut book = Book {
            index,
            entries: Vec::new(),
        };
        self.forwarding(&mut book, case);
        self.groups(&mut book, case);
        self.policy(&mut book);
        self.telemetry(&mut book);
        self.links(&mut book);
        book.entries
    }

    /// Roles of ports, whose entries are always there.
    pub(super) fn roles(&self, index: &Index) -> Vec<TableEntry> {
        let role = |(port, fabric): (u64, bool)| {
            let entry = index
                .table("port_config")
                .unwrap()
                .entry()
                .exact("ingress_port", port);
            let entry = if fabric {
                entry.action("fabric_port", [("vrf", 0u64)])
            } else {
                entry.action("host_port", [("vrf", 0u64), ("la", 1)])
            };
            entry.build().unwrap()
        };
        (2..).zip(self.roles).map(role).collect()
    }

    fn forwarding(&self, book: &mut Book<'_>, case: u32) {
        for (v6, net, len, way) in &self.routes {
            let entry = if *v6 {
                let entry = book.entry("route_v6").exact("vrf", 0u64);
                let masked = u128::from(network_v6(*net)) & (u128::MAX << (128 - len * 2));
                entry.lpm("dst_addr", Ipv6Addr::from(masked), len * 2)
            } else {
                let entry = book.entry("route_v4").exact("vrf", 0u64);
                let address = u32::from(network_v4(*net));
                let masked = address & (u32::MAX << (32 - len));
                entry.lpm("dst_addr", Ipv4Addr::from(masked), *len)
            };
            let entry = match way {
                Way::Nexthop(id) => entry.action("route_nexthop", [("nexthop_id", *id)]),
                Way::Group(number) => {
                    entry.action("route_group", [("group_id", Self::group_id(case, *number))])
                }
                Way::Drop => entry.action("route_drop", NOTHING),
                Way::Cpu(reason) => entry.action("route_cpu", [("reason", *reason)]),
            };
            book.put(entry.build());
        }
        for (net, qp, nexthop, watched) in &self.pins {
            let mapped = |address: Ipv4Addr| address.to_ipv6_mapped();
            let entry = book
                .entry("placed_flow")
                .exact("src_addr", mapped(network_v4(0)))
                .exact("dst_addr", mapped(network_v4(*net)))
                .exact("protocol", 17u64)
                .exact("src_port", 0u64)
                .exact("dst_port", 4791u64)
                .exact("dest_qp", u64::from(*qp));
            let way = ("nexthop_id", *nexthop);
            let entry = match watched {
                None => entry.action("place", [way]),
                Some(age) => entry.action(
                    "place_watched",
                    [way, ("port", *nexthop), ("path_age", *age)],
                ),
            };
            book.put(entry.build());
        }
    }

    fn groups(&self, book: &mut Book<'_>, case: u32) {
        for (number, group) in self.groups.iter().enumerate() {
            let id = Self::group_id(case, number);
            let (size, seed) = (group.members.len() as u64, u64::from(group.seed));
            let entry = book.entry("group").exact("group_id", id);
            let ports = group
                .members
                .iter()
                .fold(0u128, |all, port| all | 1 << (port - 1));
            let entry = match group.mode {
                None => entry.action("set_group", [("size", size), ("seed", seed)]),
                Some(mode) => {
                    let number = |value: u64| value.to_be_bytes().to_vec();
                    entry.action(
                        "set_ars_group",
                        [
                            ("size", number(size)),
                            ("seed", number(seed)),
                            ("mode", number(mode)),
                            ("idle", number(FOR_EVER)),
                            ("queue_shift", number(31)),
                            ("use_shift", number(31)),
                            ("path_age", number(group.path_age)),
                            ("gray_is_dead", number(group.gray_is_dead.into())),
                            ("first_port", number(1)),
                            ("ports", ports.to_be_bytes().to_vec()),
                        ],
                    )
                }
            };
            book.put(entry.build());
            for (bucket, port) in (0u64..).zip(&group.members) {
                let entry = book
                    .entry("group_bucket")
                    .exact("group_id", id)
                    .exact("bucket", bucket);
                let entry = if group.mode.is_some() {
                    entry.action("bucket_member", [("nexthop_id", *port), ("port", *port)])
                } else {
                    entry.action("bucket_nexthop", [("nexthop_id", *port)])
                };
                book.put(entry.build());
                let entry = book
                    .entry("group_port")
                    .exact("group_id", id)
                    .exact("port", *port);
                book.put(
                    entry
                        .action("port_nexthop", [("nexthop_id", *port)])
                        .build(),
                );
            }
        }
    }

    fn policy(&self, book: &mut Book<'_>) {
        for (priority, rule) in (1..).zip(&self.acl) {
            let action = ["permit", "deny", "acl_punt"][rule.action];
            let mut entry = book.entry("acl").priority(priority);
            // Always about these addresses: sentinels have others.
            entry = if rule.dst_v6 {
                let mask = u128::MAX << 80;
                entry.ternary(
                    "dst_addr",
                    u128::from(network_v6(rule.dst_net)) & mask,
                    mask,
                )
            } else {
                let mask = u128::MAX << 8;
                let address = network_v4(rule.dst_net).to_ipv6_mapped();
                entry.ternary("dst_addr", u128::from(address) & mask, mask)
            };
            for (name, value, mask) in [
                ("ip_protocol", rule.protocol, 0xffu64),
                ("dst_port", rule.dst_port, 0xffff),
                ("ingress_port", rule.port, 0x1ff),
            ] {
                if let Some(value) = value {
                    entry = entry.ternary(name, value, mask);
                }
            }
            book.put(entry.action(action, NOTHING).build());
        }
        for (priority, (ether_type, protocol, reason)) in (1..).zip(&self.traps) {
            let entry = book.entry("trap").priority(priority);
            let entry =
                match (ether_type, protocol) {
                    (Some(ether_type), _) => entry.ternary("ether_type", *ether_type, 0xffffu64),
                    (None, Some(protocol)) => entry
                        .ternary("ip_protocol", *protocol, 0xffu64)
                        .ternary("l4_dst_port", 135u64, 0xffffu64),
                    (None, None) => entry.ternary("ether_type", 0x0806u64, 0xffffu64),
                };
            book.put(entry.action("punt", [("reason", *reason)]).build());
        }
        for (dscp, tc, queue) in &self.classes {
            let entry = book.entry("dscp_to_tc").exact("dscp", *dscp);
            book.put(entry.action("set_tc", [("tc", *tc)]).build());
            // Class 0 is the sentinels' too, in the lowest queue.
            if *tc != 0 {
                let entry = book.entry("tc_to_queue").exact("tc", *tc);
                book.put(entry.action("set_queue", [("queue", *queue)]).build());
            }
        }
        for (v6, net, len, la) in &self.domains {
            let (address, len) = if *v6 {
                (network_v6(*net), len * 2)
            } else {
                (network_v4(*net).to_ipv6_mapped(), 96 + len)
            };
            let masked = u128::from(address) & (u128::MAX << (128 - len));
            let entry = book.entry("la_of").exact("vrf", 0u64);
            let entry = entry.lpm("dst_addr", Ipv6Addr::from(masked), len);
            book.put(entry.action("set_dst_la", [("la", *la)]).build());
        }
    }

    fn telemetry(&self, book: &mut Book<'_>) {
        if let Some(watch) = &self.watch {
            let words = crate::model::words_of(watch.instructions) + watch.extra_words;
            let mut asked = vec![
                ("one_in", 1),
                ("instructions", watch.instructions.into()),
                ("hop_ml", words.into()),
                ("max_hops", watch.max_hops.into()),
                ("domain_id", watch.domain.into()),
            ];
            let action = if watch.by_port {
                asked.push(("udp_port", u64::from(INT_PORT)));
                "watch_by_port"
            } else {
                asked.push(("dscp", INT_DSCP.into()));
                "watch_by_dscp"
            };
            let mut entry = book.entry("int_watchlist").priority(1);
            if let Some(protocol) = watch.protocol {
                entry = entry.ternary("ip_protocol", protocol, 0xffu64);
            }
            book.put(entry.action(action, asked).build());
        }
        for (port, int) in PORTS.zip(&self.int_ports) {
            let entry = book.entry("int_port").exact("egress_port", port);
            let entry = match int {
                IntPort::None => continue,
                IntPort::Push(mtu) => entry.action(
                    "int_push",
                    [("node", 0x0a0b_0c0d), ("ip_mtu", u64::from(*mtu))],
                ),
                IntPort::Strip(session) => entry.action("int_strip", [("session", *session)]),
            };
            book.put(entry.build());
        }
        for (port, id) in PORTS.zip(self.interfaces) {
            if let Some(id) = id {
                let id = [("id", u64::from(id))];
                let entry = book
                    .entry("int_ingress_interface")
                    .exact("ingress_port", port);
                book.put(entry.action("came_by", id).build());
                let entry = book
                    .entry("int_egress_interface")
                    .exact("egress_port", port);
                book.put(entry.action("goes_by", id).build());
            }
        }
        for reason in &self.drop_reports {
            let entry = book.entry("int_drop_report").exact("reason", *reason);
            book.put(
                entry
                    .action("report_drop", [("session", self.report_to)])
                    .build(),
            );
        }
    }

    fn links(&self, book: &mut Book<'_>) {
        for (port, neighbour) in (2u64..).zip(self.neighbours) {
            let Some((overdue, gray, shift)) = neighbour else {
                continue;
            };
            let watch = [
                ("detect", if overdue { 1 } else { FOR_EVER }),
                ("loss_shift", shift),
                ("window", 4),
                ("hold", if gray { FOR_EVER } else { 0 }),
            ];
            let entry = book.entry("neighbour").exact("ingress_port", port);
            book.put(entry.action("watch", watch).build());
        }
        for (port, probe) in (2u64..).zip(self.probes) {
            let Some((group, ages)) = probe else {
                continue;
            };
            let relay = [
                ("mcast_group", group),
                ("age", if ages { 1 } else { FOR_EVER }),
                ("queue", 0),
                ("queue_shift", 31),
                ("use_shift", 31),
            ];
            let entry = book.entry("probe_port").exact("ingress_port", port);
            book.put(entry.action("relay", relay).build());
        }
        if self.speaks {
            let entry = book.entry("neighbour").exact("ingress_port", CPU);
            let clock = [("mcast_group", 1), ("allow", FOR_EVER)];
            book.put(entry.action("say_hello", clock).build());
            let entry = book.entry("probe_port").exact("ingress_port", CPU);
            book.put(entry.action("originate", [("mcast_group", 2u64)]).build());
        }
    }
}

//! Generated packets to both switches, with the same generated entries: every output, packet-in and counter is the
//! same.
//!
//! A case is a set of entries of all tables, and packets that meet them one after the other; state that the data
//! plane keeps (liveness, paths, flowlets, sequence numbers) goes on from case to case. Times in reports are left out, as
//! the switches' clocks differ, and so is the order of frames of one case at a port, as they ride several queues; all
//! else of every frame is compared.
//!
//! `DIFFERENTIAL_SEED` and `DIFFERENTIAL_CASES` in the environment draw others and more.

mod inputs;
mod rules;
mod sentinel;

use std::collections::{BTreeMap, BTreeSet};

use p4runtime::entry;
use p4runtime::info::Index;
use p4runtime::v1::{TableEntry, Update};
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::frames::SWITCH_MAC;
use crate::switch::{Switch, Target, in_namespaces};
use inputs::{By, INT_DSCP, INT_PORT, Input, inputs};
use rules::{Rules, TO_CPU, TO_PORT, rules};
use sentinel::Outputs;

/// Cases, where nothing else is said.
const CASES: u32 = 520;
/// Packets of a case.
const PACKETS: std::ops::Range<usize> = 4..10;
/// Cases between two comparisons of all counters.
const COUNTERS_EVERY: u32 = 65;
const COUNTERS: [&str; 6] = [
    "port_rx",
    "port_tx",
    "queue_tx",
    "queue_marks",
    "drops",
    "locality",
];
/// UDP port of reports in these entries.
const REPORT_PORT: u16 = 32_766;

fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Entries that every case has.
fn always(index: &Index) -> Vec<TableEntry> {
    let entry = |table: &str| index.table(table).unwrap().entry();
    let nothing: [(&str, u64); 0] = [];
    let number = |value: u64| value.to_be_bytes().to_vec();
    let mut entries = sentinel::entries(index);
    let role = entry("port_config").exact("ingress_port", 1u64);
    entries.push(
        role.action("host_port", [("vrf", 0u64), ("la", 1)])
            .build()
            .unwrap(),
    );
    let station = entry("station").exact("dst_mac", SWITCH_MAC);
    entries.push(station.action("accept", nothing).build().unwrap());
    for port in 1..=3u8 {
        let way = [
            ("port", vec![port]),
            ("src_mac", SWITCH_MAC.to_vec()),
            ("dst_mac", vec![2, 0, 0, 0, port, port]),
        ];
        let nexthop = entry("nexthop").exact("nexthop_id", u64::from(port));
        entries.push(nexthop.action("forward", way).build().unwrap());
    }
    for npt in 0..3u64 {
        let indicator = entry("int_indicator").exact("npt", npt).priority(1);
        let indicator = if npt == 0 {
            indicator.ternary("dscp", u64::from(INT_DSCP), 0x3fu64)
        } else {
            indicator.ternary("udp_dst_port", u64::from(INT_PORT), 0xffffu64)
        };
        entries.push(indicator.action("carries_int", nothing).build().unwrap());
    }
    for (slot, session) in [(0, TO_CPU), (1, TO_PORT)] {
        let to = [
            ("slot", number(slot)),
            ("node", number(0x0a0b_0c0d)),
            ("hw_id", number(1)),
            ("src_mac", vec![2, 0, 0, 0, 9, 1]),
            ("dst_mac", vec![2, 0, 0, 0, 9, 9]),
            ("src_addr", vec![10, 0, 9, 1]),
            ("dst_addr", vec![10, 0, 9, 9]),
            ("src_port", number(40_001)),
            ("dst_port", number(REPORT_PORT.into())),
        ];
        let collector = entry("int_collector").exact("session", session);
        entries.push(collector.action("send_report", to).build().unwrap());
    }
    entries
}

/// Clone sessions for reports, and multicast groups, as they are at the beginning.
fn copiers() -> Vec<Update> {
    let session = |port: u64| {
        let copy = entry::replica(port, 1);
        entry::insert(entry::clone_session(port as u32, 0, [copy]))
    };
    let group = |id| entry::insert(entry::multicast_group(id, [entry::replica(1u64, 0)]));
    vec![session(TO_CPU), session(TO_PORT), group(1), group(2)]
}

fn updates(entries: &[TableEntry], make: fn(TableEntry) -> Update) -> Vec<Update> {
    entries.iter().cloned().map(make).collect()
}

/// One of the switches.
struct Side {
    switch: Switch,
}

/// Packets by table, entry and, where lots are drawn, group.
type Direct = BTreeMap<String, i64>;

impl Side {
    fn start(target: Target, place: u16) -> Self {
        let switch = Switch::start(target, &tests::root().join("p4/compiled/fabric"), place);
        switch.insert(always(switch.index()));
        switch.write(copiers());
        Self { switch }
    }

    /// The entries of a case in, its packets through, its direct counters read, its entries out.
    fn run(&mut self, case: u32, rules: &Rules, packets: &[Input]) -> (Outputs, Direct) {
        let entries = rules.entries(self.switch.index(), case);
        let roles = rules.roles(self.switch.index());
        if case == 0 {
            self.switch.write(updates(&roles, entry::insert));
        } else {
            self.switch.write(updates(&roles, entry::modify));
        }
        let groups = (1u32..).zip(&rules.copies).map(|(id, ports)| {
            let ports = ports.iter().map(|port| entry::replica(u64::from(*port), 0));
            entry::modify(entry::multicast_group(id, ports))
        });
        self.switch.write(groups.collect());
        self.switch.write(updates(&entries, entry::insert));
        let mut out = Outputs::default();
        for (number, input) in (case * 16..).zip(packets) {
            match input.by {
                By::Cable(port) => self.switch.send_at_once(port, &input.frame),
                By::Submitted => self.switch.packet_out(None, &input.frame),
                By::Direct(port) => self.switch.packet_out(Some(port), &input.frame),
            }
            out.behind(&self.switch, input.by, number);
        }
        out.all(&mut self.switch, case * 16 + 15);
        blank_times(&mut out);
        // Frames of different queues of a port overtake each other or not, as it happens.
        out.ports
            .iter_mut()
            .for_each(|frames| frames.sort_unstable());
        out.packet_ins.sort_unstable();
        let direct = self.direct(&rules.drawn(case));
        self.switch.write(updates(&entries, entry::delete));
        (out, direct)
    }

    fn direct(&self, drawn: &BTreeSet<u64>) -> Direct {
        let mut all = Direct::new();
        for table in ["acl", "group_bucket", "placed_flow"] {
            for (entry, packets) in self.switch.direct_counts(table) {
                // Group and bucket, or whatever else names the entry.
                let mut name = format!("{table} {:?} {}", entry.r#match, entry.priority);
                let group = p4runtime::bytes::decode(exact(&entry)).unwrap_or(0);
                if table == "group_bucket" && drawn.contains(&(group as u64)) {
                    name = format!("{table} {group}");
                }
                *all.entry(name).or_default() += packets;
            }
        }
        all
    }

    fn counters(&self) -> BTreeMap<&'static str, Vec<(i64, i64)>> {
        COUNTERS
            .map(|name| (name, self.switch.counter(name)))
            .into()
    }
}

/// The first exact field of an entry.
fn exact(entry: &TableEntry) -> &[u8] {
    use p4runtime::v1::field_match::FieldMatchType;
    let fields = entry.r#match.iter().filter(|field| field.field_id == 1);
    let mut exact = fields.filter_map(|field| match field.field_match_type.as_ref()? {
        FieldMatchType::Exact(exact) => Some(exact.value.as_slice()),
        _ => None,
    });
    exact.next().unwrap_or(&[])
}

/// Blanks what reports tell of time: the switches' clocks differ.
fn blank_times(out: &mut Outputs) {
    let packet_ins = out.packet_ins.iter_mut().map(|packet_in| &mut packet_in.2);
    for frame in out.ports.iter_mut().flatten().chain(packet_ins) {
        let is_report = frame.len() > 62
            && frame[12..14] == [8, 0]
            && frame[36..38] == REPORT_PORT.to_be_bytes()
            && frame[42] >> 4 == 2;
        if !is_report {
            continue;
        }
        let bits = u16::from_be_bytes([frame[54], frame[55]]);
        let mut at = 62;
        for bit in (1..16).filter(|bit| bits >> (15 - bit) & 1 == 1) {
            let bytes = if (4..=6).contains(&bit) { 8 } else { 4 };
            if [2, 4, 5].contains(&bit) {
                frame[at..at + bytes].fill(0);
            }
            at += bytes;
        }
    }
}

/// How many cases showed something of a kind.
#[derive(Debug, Default)]
struct Seen {
    out: u32,
    packet_ins: u32,
    copies: u32,
    reports: u32,
    nothing: u32,
}

impl Seen {
    fn take(&mut self, out: &Outputs) {
        let frames: usize = out.ports.iter().map(Vec::len).sum();
        let all = frames + out.packet_ins.len();
        self.out += u32::from(frames > 0);
        self.packet_ins += u32::from(!out.packet_ins.is_empty());
        // A hello or probe that leaves has been copied to the ports of a group.
        let link = |frame: &Vec<u8>| frame[12..14] == [0x88, 0xb5];
        self.copies += u32::from(out.ports.iter().flatten().any(link));
        let reason_int = |packet_in: &(u128, u128, Vec<u8>)| packet_in.1 == 7;
        self.reports += u32::from(out.packet_ins.iter().any(reason_int));
        self.nothing += u32::from(all == 0);
    }
}

fn same_on_both() {
    let [mut bmv2, mut embedded] = [(Target::Bmv2, 0), (Target::MeridianSwitch, 1)]
        .map(|(target, place)| Side::start(target, place));
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&setting("DIFFERENTIAL_SEED", 1).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let cases = setting("DIFFERENTIAL_CASES", CASES);
    let strategy = (rules(), vec(inputs(), PACKETS));
    let mut seen = Seen::default();
    let mut packets_in_all = 0;
    for case in 0..cases {
        let (rules, packets) = strategy.new_tree(&mut runner).unwrap().current();
        let theirs = bmv2.run(case, &rules, &packets);
        let ours = embedded.run(case, &rules, &packets);
        assert!(
            theirs == ours,
            "case {case}: bmv2\n{:02x?}\nmeridian-switch\n{:02x?}\ncounters\n{:?}\n{:?}\nof {packets:02x?}\nwith {rules:?}",
            theirs.0,
            ours.0,
            theirs.1,
            ours.1,
        );
        seen.take(&ours.0);
        packets_in_all += packets.len();
        if (case + 1).is_multiple_of(COUNTERS_EVERY) || case + 1 == cases {
            assert_eq!(bmv2.counters(), embedded.counters(), "after case {case}");
        }
    }
    println!("{cases} cases, {packets_in_all} packets: {seen:?}");
    let drops = embedded.switch.counter("drops");
    let reasons: BTreeSet<i64> = drops.iter().map(|(cell, _)| cell & 31).collect();
    println!("drop reasons seen: {reasons:?}");
    // Nearly every case shows something, and every kind of thing is shown by many.
    assert!(seen.nothing * 10 < cases, "{seen:?}");
    assert!(seen.out * 2 > cases, "{seen:?}");
    for kind in [seen.packet_ins, seen.copies, seen.reports] {
        assert!(kind * 20 > cases, "{seen:?}");
    }
    assert!(reasons.len() >= 10, "{reasons:?}");
}

mod on_bmv2 {
    #[test]
    #[ignore = "needs root, simple_switch_grpc and a built meridian-switch"]
    fn generated_entries_and_packets_do_the_same_on_both_switches() {
        let test = concat!(
            module_path!(),
            "::generated_entries_and_packets_do_the_same_on_both_switches"
        );
        super::in_namespaces(test, super::same_on_both);
    }
}

//! Generated packets to both switches, with the same entries: every output, packet-in and counter is
//! the same.

use std::time::Duration;

use p4runtime::v1::TableEntry;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::entries::{
    self, BACK, DENIED, ELSEWHERE, EMPTY_GROUP, LOCAL, MARKED_DSCP, NO_NEXTHOP, OWN, REMOTE,
    WATCHED,
};
use crate::frames::{Frame, ROCE, TCP, UDP};
use crate::model::{Hop, Indicator, Watch, begin, push};
use crate::switch::{Switch, Target, in_namespaces};
use crate::telemetry::{routes, telemetry};

/// Packets that are sent to each switch.
const CASES: usize = 600;
/// Packets between two looks at what came out: fewer than a receive ring or a socket holds.
const ROUND: usize = 30;
/// Nothing comes for so long: all is out.
const PAUSE: Duration = Duration::from_millis(300);
const MORE_THAN_ENOUGH: usize = 10_000;
const DSCP: u8 = 0x17;
/// Node and ports: what does not depend on time or load.
const INSTRUCTIONS: u16 = 0xc000;
const COUNTERS: [&str; 6] = [
    "port_rx",
    "port_tx",
    "queue_tx",
    "queue_marks",
    "drops",
    "locality",
];

fn watch() -> Watch {
    Watch {
        indicator: Indicator::Dscp(DSCP),
        instructions: INSTRUCTIONS,
        hop_ml: 2,
        max_hops: 8,
        domain: 1,
    }
}

/// A packet from a port: to any of the addresses that the entries know and some they do not, as it is,
/// as one that carries INT from another switch, or broken in one byte.
fn cases() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let known = [
        LOCAL,
        LOCAL,
        REMOTE,
        REMOTE,
        ELSEWHERE,
        ELSEWHERE,
        BACK,
        EMPTY_GROUP,
        NO_NEXTHOP,
        DENIED,
        WATCHED,
        OWN,
        [10, 99, 0, 1],
        [224, 0, 0, 5],
    ];
    let tos = prop_oneof![
        Just((MARKED_DSCP as u8) << 2 | 2),
        Just(0),
        Just(DSCP << 2),
        any::<u8>()
    ];
    let header = (
        any::<[bool; 3]>(),
        tos,
        prop_oneof![1u8..4, 5u8..],
        prop_oneof![Just(TCP), Just(UDP), Just(UDP), Just(1)],
    );
    let ports = (any::<u16>(), prop_oneof![any::<u16>(), Just(ROCE)]);
    let payload = prop::collection::vec(any::<u8>(), 0..120);
    let change = prop_oneof![
        4 => Just(None),
        1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(Some)
    ];
    let route = (
        1usize..4,
        prop::sample::select(known.to_vec()),
        prop::bool::weighted(0.3),
    );
    (header, ports, payload, route, change).prop_map(
        |(
            ([v6, tagged, checksum], tos, ttl, protocol),
            (src_port, dst_port),
            payload,
            (port, to, carries),
            change,
        )| {
            let frame = Frame {
                v6,
                tagged,
                tos,
                ttl,
                protocol,
                src_port,
                dst_port,
                checksum,
                payload,
            };
            let mut bytes = frame.bytes();
            if !v6 {
                address(&mut bytes, tagged, to);
            }
            if carries && !tagged && (protocol == TCP || protocol == UDP) {
                let far = Hop {
                    node: 9,
                    ingress: 1,
                    egress: 2,
                    queue: 0,
                    depth: 0,
                    arrived: 0,
                    left: 0,
                    mtu: 9000,
                };
                bytes = push(&begin(&bytes, &watch()), &far);
            }
            if let Some((at, value)) = change {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            (port, bytes)
        },
    )
}

/// Sets the destination of an IPv4 frame and puts its checksum right; that of UDP and TCP is wrong then,
/// which has to stay so.
fn address(frame: &mut [u8], tagged: bool, to: [u8; 4]) {
    let ip = if tagged { 18 } else { 14 };
    frame[ip + 16..ip + 20].copy_from_slice(&to);
    frame[ip + 10..ip + 12].fill(0);
    let checksum = !crate::frames::sum(&frame[ip..ip + 20], 0);
    frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// All entries but those whose effect depends on load, reports and what bmv2 has to say of time.
fn all_entries(switch: &Switch) -> Vec<TableEntry> {
    let index = switch.index();
    let without: Vec<u32> = ["ecn_profile", "int_drop_report", "int_collector"]
        .iter()
        .map(|table| index.table(*table).unwrap().id())
        .collect();
    let mut all = entries::all(index).unwrap();
    all.extend(telemetry(index, &watch()).unwrap());
    all.extend(routes(index, 2).unwrap());
    all.retain(|entry| !without.contains(&entry.table_id));
    all
}

type Out = (Vec<Vec<Vec<u8>>>, Vec<(u128, u128, Vec<u8>)>);

/// Sends packets, and takes what comes out of each port and to the controller.
fn outputs(switch: &mut Switch, cases: &[(usize, Vec<u8>)]) -> Out {
    for (port, frame) in cases {
        switch.send(*port, frame);
    }
    let packet_ins = switch.packet_ins(PAUSE);
    let ports = (1..=3).map(|port| switch.receive(port, MORE_THAN_ENOUGH, PAUSE));
    (ports.collect(), packet_ins)
}

fn same_on_both() {
    let mut both = [Target::Bmv2, Target::MeridianSwitch]
        .into_iter()
        .zip(0..)
        .map(|(target, place)| {
            let switch = Switch::start(target, &tests::root().join("p4/compiled/fabric"), place);
            switch.insert(all_entries(&switch));
            switch
        })
        .collect::<Vec<_>>();
    let mut runner = TestRunner::deterministic();
    let cases: Vec<_> = (0..CASES)
        .map(|_| self::cases().new_tree(&mut runner).unwrap().current())
        .collect();
    let mut came_out = 0;
    for round in cases.chunks(ROUND) {
        let [bmv2, embedded] = [0, 1].map(|at| outputs(&mut both[at], round));
        for (port, (theirs, ours)) in (1..).zip(bmv2.0.iter().zip(&embedded.0)) {
            for (theirs, ours) in theirs.iter().zip(ours) {
                assert_eq!(theirs, ours, "port {port}, one of {round:02x?}");
            }
            assert_eq!(theirs.len(), ours.len(), "port {port} of {round:02x?}");
            came_out += theirs.len();
        }
        assert_eq!(bmv2.1, embedded.1, "packet-ins of {round:02x?}");
    }
    for counter in COUNTERS {
        let [bmv2, embedded] = [0, 1].map(|at| both[at].counter(counter));
        assert_eq!(bmv2, embedded, "{counter}");
    }
    for table in ["acl", "group_bucket", "placed_flow"] {
        let [bmv2, embedded] = [0, 1].map(|at| {
            let mut counts = both[at].direct_counter(table);
            counts.sort_unstable();
            counts
        });
        assert_eq!(bmv2, embedded, "{table}");
    }
    assert!(came_out > CASES / 5, "only {came_out} of {CASES} came out");
}

mod on_bmv2 {
    #[test]
    #[ignore = "needs root, simple_switch_grpc and a built meridian-switch"]
    fn generated_packets_come_out_the_same_on_both_switches() {
        let test = concat!(
            module_path!(),
            "::generated_packets_come_out_the_same_on_both_switches"
        );
        super::in_namespaces(test, super::same_on_both);
    }
}

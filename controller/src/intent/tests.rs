#![allow(clippy::unwrap_used)]

use super::*;
use crate::entries::{
    Group, GroupBucket, GroupBucketAction, LaOf, PlacedFlow, PortConfig, PortConfigAction, RouteV4,
    RouteV4Action, ranks,
};
use crate::placement::{Demand, place};
use crate::reconcile::{Update, diff};
use std::collections::BTreeSet;
use topology::{Clos, Tier, generate};

fn planner(clos: &Clos) -> Planner {
    Planner::new(Arc::new(generate(clos).unwrap()), Options::default())
}

fn plan(planner: &Planner, down: &LinkSet) -> Intent {
    planner.plan(&planner.view(down), &[])
}

#[test]
fn every_reference_leads_somewhere_and_every_key_is_there_once() {
    for dual_tor in [false, true] {
        let planner = planner(&Clos {
            dual_tor,
            pods: 2,
            ..Clos::default()
        });
        let intent = plan(&planner, &LinkSet::none());
        for entries in &intent.switches {
            check(entries);
        }
        assert!(intent.states(planner.topology()).is_ok());
    }
}

fn check(entries: &[AnyEntry]) {
    let mut keys = BTreeSet::new();
    let mut hops = BTreeSet::new();
    let mut groups = BTreeSet::new();
    for entry in entries {
        assert!(
            keys.insert(format!("{:?}", entry.to_key().unwrap())),
            "{entry:?}"
        );
        match entry {
            AnyEntry::Nexthop(key, _) => drop(hops.insert(key.nexthop_id)),
            AnyEntry::Group(key, _) => drop(groups.insert(key.group_id)),
            _ => {}
        }
    }
    for entry in entries {
        match entry {
            AnyEntry::RouteV4(_, RouteV4Action::RouteNexthop { nexthop_id })
            | AnyEntry::GroupBucket(_, GroupBucketAction::BucketNexthop { nexthop_id }) => {
                assert!(hops.contains(nexthop_id));
            }
            AnyEntry::RouteV4(_, RouteV4Action::RouteGroup { group_id }) => {
                assert!(groups.contains(group_id));
            }
            _ => {}
        }
    }
}

/// The demo's fabric with every kind of report.
const MEASURED: &str = "
name: measured
clos: {segments: 2, hosts: 4, rails: 4, spines: 4}
policy:
  int:
    watch: [{protocol: roce, one_in: 64}]
    reports: {paths: true, drops: true, marks: true, queue: 2MB}
";

#[test]
fn every_table_holds_what_is_asked_of_it() {
    let topology = Arc::new(Topology::parse("measured", MEASURED).unwrap());
    let planner = Planner::new(Arc::clone(&topology), Options::default());
    let program = crate::session::Program::fabric().unwrap();
    let tables = &program.index.p4info().tables;
    let states = plan(&planner, &LinkSet::none()).states(&topology).unwrap();
    let mut reported = 0;
    for state in states {
        for table in tables {
            let preamble = table.preamble.as_ref().unwrap();
            let keys = state.entries.keys();
            let count = keys.filter(|key| key.table == preamble.id).count();
            assert!(count as i64 <= table.size, "{count} in {}", preamble.alias);
            if preamble.alias == "int_drop_report" {
                assert_eq!(count, crate::telemetry::DropReason::ALL.len());
                reported += 1;
            }
        }
    }
    assert_eq!(reported, topology.switches().len());
}

#[test]
fn a_leaf_knows_its_hosts_and_a_spine_knows_domains_only() {
    let planner = planner(&Clos::default());
    let topology = planner.topology();
    let intent = plan(&planner, &LinkSet::none());
    let routes = |switch: SwitchId| {
        let entries = intent.switches[switch.index()].iter();
        entries
            .filter(|e| matches!(e, AnyEntry::RouteV4(..)))
            .count()
    };
    let hosts = |switch: SwitchId| {
        let entries = intent.switches[switch.index()].iter();
        let host = |e: &&AnyEntry| {
            matches!(
                e,
                AnyEntry::PortConfig(PortConfig { .. }, PortConfigAction::HostPort { .. })
            )
        };
        entries.filter(host).count()
    };
    let las = topology.las().len();
    let leaves = topology.tier(Tier::Leaf).count();
    let spines = topology.tier(Tier::Spine).count();
    for leaf in topology.tier(Tier::Leaf) {
        assert_eq!(hosts(leaf), 4);
        // Own loopback and gateway, four hosts, the other domains, the other switches.
        assert_eq!(routes(leaf), 2 + 4 + (las - 1) + (leaves - 1) + spines);
    }
    for spine in topology.tier(Tier::Spine) {
        assert_eq!(hosts(spine), 0);
        assert_eq!(routes(spine), 1 + las + leaves);
        let entries = &intent.switches[spine.index()];
        assert!(
            !entries
                .iter()
                .any(|e| matches!(e, AnyEntry::LaOf(LaOf { .. }, _)))
        );
    }
}

#[test]
fn tiers_hash_with_different_seeds_and_marking_is_in_packets() {
    let planner = planner(&Clos {
        pods: 2,
        ..Clos::default()
    });
    let intent = plan(&planner, &LinkSet::none());
    let mut seeds = BTreeMap::new();
    for (switch, entries) in planner.topology().switch_ids().zip(&intent.switches) {
        for entry in entries {
            match entry {
                AnyEntry::Group(
                    Group { .. },
                    crate::entries::GroupAction::SetGroup { seed, .. },
                ) => {
                    let tier = planner.topology()[switch].tier;
                    assert_eq!(*seeds.entry(tier).or_insert(*seed), *seed);
                }
                AnyEntry::EcnProfile(
                    key,
                    crate::entries::EcnProfileAction::EcnMark {
                        kmin, kmax, pmax, ..
                    },
                ) => {
                    assert!(key.queue != 7);
                    // 800 000 and 3 200 000 bytes in packets of 4 214; a fifth of 65 535.
                    assert_eq!((*kmin, *kmax, *pmax), (190, 759, 13107));
                }
                _ => {}
            }
        }
    }
    assert_eq!(seeds.len(), 2);
    assert_ne!(seeds[&Tier::Leaf], seeds[&Tier::Spine]);
}

/// Updates of each switch from one intent to another, by kind.
fn updates(planner: &Planner, from: &Intent, to: &Intent) -> BTreeMap<u32, Vec<Update>> {
    let (from, to) = (
        from.states(planner.topology()).unwrap(),
        to.states(planner.topology()).unwrap(),
    );
    (0..)
        .zip(from.iter().zip(&to))
        .map(|(switch, (from, to))| {
            (
                switch,
                diff(to, from, &ranks(), 1000)
                    .batches
                    .into_iter()
                    .flatten()
                    .collect(),
            )
        })
        .filter(|(_, updates): &(u32, Vec<_>)| !updates.is_empty())
        .collect()
}

#[test]
fn a_failed_uplink_costs_its_leaf_buckets_and_the_others_a_route() {
    let planner = planner(&Clos::default());
    let topology = planner.topology();
    let leaf = topology.tier(Tier::Leaf).next().unwrap();
    let uplink = topology.uplinks(leaf).next().unwrap();
    let before = plan(&planner, &LinkSet::none());
    let after = plan(&planner, &LinkSet::from_iter([uplink.link.0]));
    after.switches.iter().for_each(|e| check(e));
    let changes = updates(&planner, &before, &after);
    // The leaf's group has 48 buckets, a quarter of which moves; its way to the spine's loopback ends.
    let of_leaf = &changes[&leaf.0];
    assert_eq!(
        of_leaf
            .iter()
            .filter(|u| matches!(u, Update::Modify(..)))
            .count(),
        12
    );
    assert_eq!(
        of_leaf
            .iter()
            .filter(|u| matches!(u, Update::Delete(..)))
            .count(),
        2
    );
    let other = topology.tier(Tier::Leaf).last().unwrap();
    let routes = |u: &&Update| {
        let Update::Modify(key, _) = u else {
            return false;
        };
        [43955427, 45146375].contains(&key.table)
    };
    // The domain's prefixes and the leaf's loopbacks.
    assert_eq!(changes[&other.0].iter().filter(routes).count(), 4);
}

#[test]
fn a_nic_of_two_ports_is_found_by_the_other_leaf() {
    let planner = planner(&Clos {
        dual_tor: true,
        ..Clos::default()
    });
    let topology = planner.topology();
    let nic = &topology.nics()[0];
    let ports: Vec<_> = nic.ports().collect();
    let intent = plan(&planner, &LinkSet::from_iter([ports[0].link.0]));
    let host = |switch: SwitchId| {
        let entries = intent.switches[switch.index()].iter();
        let mut found = entries.filter_map(|e| match e {
            AnyEntry::RouteV4(RouteV4 { dst_addr, .. }, action)
                if dst_addr.prefix_len == 32 && dst_addr.value == u32::from(nic.v4) =>
            {
                Some(action.clone())
            }
            _ => None,
        });
        found.next()
    };
    // The leaf that lost the NIC goes up; its twin delivers; the spines know where it is.
    assert!(matches!(
        host(ports[0].leaf.switch),
        Some(RouteV4Action::RouteGroup { .. })
    ));
    let delivered = RouteV4Action::RouteNexthop {
        nexthop_id: u32::from(ports[1].leaf.port),
    };
    assert_eq!(host(ports[1].leaf.switch), Some(delivered));
    let spine = topology.tier(Tier::Spine).next().unwrap();
    assert!(matches!(
        host(spine),
        Some(RouteV4Action::RouteNexthop { .. })
    ));
    intent.switches.iter().for_each(|e| check(e));
}

#[test]
fn pins_are_written_where_there_is_a_choice() {
    let planner = planner(&Clos::default());
    let topology = planner.topology();
    let view = planner.view(&LinkSet::none());
    let (src, dst) = (
        topology::NicId(0),
        topology.hosts()[7].nics().next().unwrap(),
    );
    let demand = Demand {
        src: src.0,
        dst: dst.0,
        bytes: 1,
        port: None,
    };
    let placed = place(&planner.network(&view), &[demand]);
    let path = placed.paths[0].clone().unwrap();
    let flow = FlowKey::roce(topology[src].v4.into(), topology[dst].v4.into(), 0x100);
    let intent = planner.plan(&view, &[Pin { flow, path }]);
    let with_pin: Vec<usize> = intent
        .switches
        .iter()
        .enumerate()
        .filter(|(_, e)| {
            e.iter()
                .any(|e| matches!(e, AnyEntry::PlacedFlow(PlacedFlow { .. }, _)))
        })
        .map(|(i, _)| i)
        .collect();
    let leaf = topology[src].ports().next().unwrap().leaf.switch;
    assert_eq!(with_pin, [leaf.index()]);
    assert!(intent.left_out.is_empty());
    assert_eq!(intent.len(), plan(&planner, &LinkSet::none()).len() + 1);
    assert!(
        intent
            .switches
            .iter()
            .flatten()
            .any(|e| matches!(e, AnyEntry::GroupBucket(GroupBucket { .. }, _)))
    );
}

fn ready(name: &str) -> Topology {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../topologies")
        .join(name);
    Topology::load(path).unwrap()
}

#[test]
fn a_thousand_nics_are_planned_in_moments() {
    let topology = Arc::new(ready("nics-1024.yaml"));
    let planner = Planner::new(topology, Options::default());
    let started = std::time::Instant::now();
    let intent = plan(&planner, &LinkSet::from_iter([2000]));
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    intent.switches.iter().for_each(|e| check(e));
}

#[test]
fn routes_of_a_hundred_thousand_gpus_take_seconds() {
    let topology = Arc::new(ready("gpus-100k.yaml"));
    let options = Options {
        loopbacks: false,
        ..Options::default()
    };
    let started = std::time::Instant::now();
    let planner = Planner::new(topology, options);
    let view = planner.view(&LinkSet::from_iter([250_000]));
    assert!(view.routes.destinations() >= planner.topology().las().len());
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

/// A fabric of two tiers whose policy measures RoCEv2.
fn measured(collector: Option<std::net::SocketAddrV4>) -> Planner {
    let text = generate(&Clos::default()).unwrap().to_yaml();
    let collector = collector.map_or_else(String::new, |to| format!("    collector: {to}\n"));
    let int = "policy:\n  int:\n    watch: [{protocol: roce, one_in: 64}]\n    \
               reports: {drops: true, queue: 1MB, marks: true, rate: 100}\n";
    let text = text.replacen("policy:\n", &(int.to_owned() + &collector), 1);
    let topology = Topology::parse("measured", &text).unwrap();
    Planner::new(Arc::new(topology), Options::default())
}

#[test]
fn telemetry_pushes_between_switches_strips_at_nics_and_watches_at_leaves() {
    use crate::entries::{IntCollectorAction, IntPortAction};
    let planner = measured(None);
    let topology = planner.topology();
    let intent = plan(&planner, &LinkSet::none());
    assert!(intent.states(topology).is_ok());
    for switch in topology.switch_ids() {
        let leaf = topology[switch].tier == Tier::Leaf;
        let (mut pushes, mut strips, mut watched, mut reasons) = (0, 0, 0, 0);
        for entry in &intent.switches[switch.index()] {
            match entry {
                AnyEntry::IntPort(_, IntPortAction::IntPush { node, ip_mtu }) => {
                    assert_eq!(u64::from(*node), topology[switch].device_id);
                    // 24 bytes, and four words for each of eight hops.
                    assert_eq!(u32::from(*ip_mtu), topology.policy().mtu + 24 + 8 * 16);
                    pushes += 1;
                }
                AnyEntry::IntPort(_, IntPortAction::IntStrip { session }) => {
                    assert_eq!(*session, 510);
                    strips += 1;
                }
                AnyEntry::IntWatchlist(..) => watched += 1,
                AnyEntry::IntDropReport(..) => reasons += 1,
                AnyEntry::IntCollector(key, IntCollectorAction::SendReport { .. }) => {
                    assert_eq!(key.session, 510);
                }
                _ => {}
            }
        }
        let nics = topology
            .neighbours(switch)
            .filter(|n| matches!(n.far, topology::End::Nic(_)))
            .count();
        assert_eq!(strips, nics);
        assert_eq!(pushes, topology.neighbours(switch).count() - nics);
        let all = crate::telemetry::DropReason::ALL.len();
        assert_eq!((watched, reasons), (usize::from(leaf), all));
    }
}

#[test]
fn reports_to_a_nic_leave_by_the_port_that_leads_there_and_follow_the_routes() {
    let plain = generate(&Clos::default()).unwrap();
    let nic = &plain[topology::NicId(0)];
    let to = std::net::SocketAddrV4::new(nic.v4, 32766);
    let planner = measured(Some(to));
    let topology = planner.topology();
    let home = nic.ports().next().unwrap().leaf;
    let session_of = |intent: &Intent, switch: SwitchId| {
        let found = intent.switches[switch.index()]
            .iter()
            .find_map(|entry| match entry {
                AnyEntry::IntCollector(key, _) => Some(key.session),
                _ => None,
            });
        found.unwrap()
    };
    let intent = plan(&planner, &LinkSet::none());
    assert_eq!(session_of(&intent, home.switch), home.port);
    let other = topology
        .tier(Tier::Leaf)
        .find(|leaf| *leaf != home.switch)
        .unwrap();
    let before = session_of(&intent, other);
    let uplink = topology.uplinks(other).find(|n| n.port == before).unwrap();
    let cut = LinkSet::from_iter([uplink.link.0]);
    let after = session_of(&plan(&planner, &cut), other);
    assert!(after != before && topology.uplinks(other).any(|n| n.port == after));
}

#[test]
fn hops_that_are_asked_for_them_know_their_interfaces_and_measure_their_ports() {
    let text = "
name: measured
clos: {segments: 2, hosts: 2, rails: 1, spines: 2, dual_tor: true}
policy:
  int: {instructions: [node, logical_ports, utilisation], watch: [{protocol: tcp}]}
";
    for ars in [false, true] {
        let mut text = text.to_owned();
        if ars {
            text += "  ars: {mode: flowlet-quality}\n";
        }
        let planner = Planner::new(
            Arc::new(Topology::parse("measured", &text).unwrap()),
            Options::default(),
        );
        let topology = planner.topology();
        let intent = plan(&planner, &LinkSet::none());
        let mut ends: BTreeMap<u32, usize> = BTreeMap::new();
        for (switch, entries) in topology.switch_ids().zip(&intent.switches) {
            let ports = topology.neighbours(switch).count();
            let mut counts = [0; 3];
            for entry in entries {
                match entry {
                    AnyEntry::IntIngressInterface(
                        _,
                        crate::entries::IntIngressInterfaceAction::CameBy { id },
                    ) => {
                        *ends.entry(*id).or_default() += 1;
                        counts[0] += 1;
                    }
                    AnyEntry::IntEgressInterface(..) => counts[1] += 1,
                    AnyEntry::PortLoad(..) => counts[2] += 1,
                    _ => {}
                }
            }
            assert_eq!(counts, [ports; 3], "every port, once");
            check(entries);
        }
        // A link has two ends, and a NIC of a dual-ToR pair two ports.
        assert!(ends.values().all(|count| *count == 2), "{ends:?}");
        let nics = topology.nics().len();
        assert_eq!(ends.keys().filter(|id| **id >> 31 == 1).count(), nics);
    }
}

#[test]
fn a_policy_of_adaptive_groups_brings_their_multicast_groups() {
    use crate::reconcile::Copier;
    let text = "
name: adaptive
clos: {segments: 2, hosts: 2, rails: 1, spines: 2}
policy: {ars: {mode: fixed}, int: {watch: [{protocol: tcp}]}}
";
    let topology = Topology::parse("adaptive", text).unwrap();
    let planner = Planner::new(Arc::new(topology), Options::default());
    let intent = plan(&planner, &LinkSet::none());
    let states = intent.states(planner.topology()).unwrap();
    for (switch, state) in planner.topology().switch_ids().zip(states) {
        let kinds: Vec<_> = state.copies.keys().copied().collect();
        let leaf = planner.topology()[switch].tier == Tier::Leaf;
        let second = Copier::MulticastGroup(if leaf { 2 } else { 3 });
        let expected = [Copier::MulticastGroup(1), second, Copier::CloneSession(510)];
        assert_eq!(kinds, expected);
        assert!(
            intent.switches[switch.index()]
                .iter()
                .any(|entry| matches!(entry, AnyEntry::Neighbour(..)))
        );
    }
}

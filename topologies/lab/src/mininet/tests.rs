#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::PathBuf;

use topology::{Clos, HostCounts, Topology, generate};

use super::*;

fn options(kind: ProgramKind) -> Options {
    Options::new(Program {
        kind,
        path: PathBuf::from("/bin").join(kind.name()),
    })
}

fn plan_of(clos: &Clos) -> Plan {
    plan(
        &generate(clos).unwrap(),
        &options(ProgramKind::MeridianSwitch),
    )
    .unwrap()
}

fn two_leaves(dual_tor: bool) -> Clos {
    Clos {
        name: "two-leaves".into(),
        segments: if dual_tor { 1 } else { 2 },
        hosts: HostCounts::Each(2),
        rails: 1,
        spines: Some(1),
        dual_tor,
        ..Clos::default()
    }
}

#[test]
fn every_link_joins_interfaces_that_its_nodes_know() {
    let topology: Topology = generate(&Clos::default()).unwrap();
    let plan = plan(&topology, &options(ProgramKind::MeridianSwitch)).unwrap();
    assert_eq!((plan.switches.len(), plan.hosts.len()), (12, 8));
    assert_eq!(plan.links.len(), topology.links().len());
    let mut left: HashSet<(String, String)> = HashSet::new();
    for switch in &plan.switches {
        left.extend(
            switch
                .ports
                .iter()
                .map(|port| (switch.name.clone(), port.interface.clone())),
        );
    }
    for host in &plan.hosts {
        let interfaces = host.nics.iter().flat_map(|nic| &nic.interfaces);
        left.extend(interfaces.map(|interface| (host.name.clone(), interface.clone())));
    }
    for end in plan.links.iter().flat_map(|link| &link.ends) {
        assert!(
            left.remove(&(end.node.clone(), end.interface.clone())),
            "{end:?}"
        );
    }
    assert!(left.is_empty(), "interfaces without a link: {left:?}");
}

#[test]
fn interfaces_of_switches_fit_linux_and_belong_to_one_fabric() {
    let demo = plan_of(&Clos::default());
    let other = plan_of(&Clos {
        name: "other".into(),
        ..Clos::default()
    });
    assert_ne!(demo.tag, other.tag);
    let mut names = HashSet::new();
    for plan in [&demo, &other] {
        for port in plan.switches.iter().flat_map(|switch| &switch.ports) {
            assert!(port.interface.len() <= 15, "{}", port.interface);
            assert!(port.interface.starts_with(&format!("{}-", plan.tag)));
            assert!(
                names.insert(port.interface.clone()),
                "{} twice",
                port.interface
            );
        }
    }
}

#[test]
fn too_many_switches_for_ports_or_names_are_refused() {
    let topology = generate(&Clos::default()).unwrap();
    let options = Options {
        grpc_base_port: 65_530,
        ..options(ProgramKind::MeridianSwitch)
    };
    assert_eq!(
        plan(&topology, &options),
        Err(PlanError::PortRange {
            switches: 12,
            base: 65_530,
            last: 65_541
        })
    );
    let many = Clos {
        hosts: HostCounts::Each(1),
        rails: 1,
        segments: 501,
        spines: Some(500),
        ..Clos::default()
    };
    let many = generate(&many).unwrap();
    let options = Options {
        grpc_base_port: 10_000,
        ..options
    };
    let refused = plan(&many, &options);
    assert!(
        matches!(refused, Err(PlanError::TooLarge { .. })),
        "{refused:?}"
    );
}

#[test]
fn switches_get_the_arguments_of_simple_switch_grpc() {
    let topology = generate(&two_leaves(false)).unwrap();
    let meridian = plan(&topology, &options(ProgramKind::MeridianSwitch)).unwrap();
    let leaf = &meridian.switches[0];
    let tag = &meridian.tag;
    let expected = format!(
        "--no-p4 --device-id 1 -i 1@{tag}-s0p1 -i 2@{tag}-s0p2 -i 3@{tag}-s0p3 -- \
         --grpc-server-addr 127.0.0.1:9559 --cpu-port 510 --drop-port 511 --priority-queues 8"
    );
    // Uplinks may be more than one; this fabric's leaf has two hosts and at least one.
    assert!(
        leaf.arguments
            .join(" ")
            .starts_with("--no-p4 --device-id 1 -i 1@")
    );
    if leaf.ports.len() == 3 {
        assert_eq!(leaf.arguments.join(" "), expected);
    }
    let bmv2 = plan(&topology, &options(ProgramKind::SimpleSwitchGrpc)).unwrap();
    let thrift: HashSet<&String> = bmv2
        .switches
        .iter()
        .map(|switch| {
            let at = switch
                .arguments
                .iter()
                .position(|word| word == "--thrift-port")
                .unwrap();
            &switch.arguments[at + 1]
        })
        .collect();
    assert_eq!(thrift.len(), bmv2.switches.len());
}

#[test]
fn only_bmv2_needs_frames_finished_by_hosts() {
    let topology = generate(&two_leaves(false)).unwrap();
    for (kind, wanted) in [
        (ProgramKind::MeridianSwitch, false),
        (ProgramKind::SimpleSwitchGrpc, true),
    ] {
        let plan = plan(&topology, &options(kind)).unwrap();
        let setup = plan.hosts.iter().flat_map(|host| &host.setup);
        let found = setup.filter(|line| line.contains("ethtool")).count();
        assert_eq!(found > 0, wanted, "{kind}");
    }
}

#[test]
fn each_nic_has_a_table_of_its_own() {
    let plan = plan_of(&Clos::default());
    let host = &plan.hosts[0];
    let tables: HashSet<u32> = host.nics.iter().map(|nic| nic.table).collect();
    assert_eq!(tables.len(), host.nics.len());
    for nic in &host.nics {
        let [interface] = nic.interfaces.as_slice() else {
            panic!("{nic:?}")
        };
        let rule = format!("ip -4 rule add from {} table {}", nic.v4, nic.table);
        assert!(host.setup.contains(&rule), "{rule}");
        let route = format!(
            "ip -4 route add default table {} via {} dev {interface}",
            nic.table, nic.gateway_v4
        );
        assert!(host.setup.contains(&route), "{route}");
    }
    let defaults = |line: &&String| line.starts_with("ip -4 route add default table main");
    assert_eq!(host.setup.iter().filter(defaults).count(), 1);
}

#[test]
fn a_dual_tor_nic_uses_both_ports() {
    let plan = plan_of(&two_leaves(true));
    let host = &plan.hosts[0];
    let nic = &host.nics[0];
    assert_eq!(nic.interfaces, ["rail0a", "rail0b"]);
    let route = format!(
        "ip -4 route add default table 100 nexthop via {0} dev rail0a \
         nexthop via {0} dev rail0b",
        nic.gateway_v4
    );
    assert!(host.setup.contains(&route), "{:#?}", host.setup);
}

#[test]
fn shaping_is_off_unless_asked_for() {
    let topology = generate(&Clos::default()).unwrap();
    let shaped = |shaping| {
        let options = Options {
            shaping,
            ..options(ProgramKind::MeridianSwitch)
        };
        let plan = plan(&topology, &options).unwrap();
        let setups = plan.switches.iter().flat_map(|switch| &switch.setup);
        let all = setups.chain(plan.hosts.iter().flat_map(|host| &host.setup));
        all.filter(|line| line.starts_with("tc "))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(shaped(Shaping::default()).is_empty());
    let limited = shaped(Shaping {
        delay: false,
        rate_bps: Some(100_000_000),
    });
    assert_eq!(limited.len(), 2 * topology.links().len());
    assert!(
        limited
            .iter()
            .all(|line| line.ends_with("root netem rate 100000000bit"))
    );
}

#[test]
fn static_neighbours_are_written_for_every_nic_and_family() {
    let topology = generate(&Clos::default()).unwrap();
    let options = Options {
        static_neighbours: true,
        ..options(ProgramKind::MeridianSwitch)
    };
    let plan = plan(&topology, &options).unwrap();
    let lines = plan.hosts.iter().flat_map(|host| &host.setup);
    let count = lines
        .filter(|line| line.contains("neighbour replace"))
        .count();
    assert_eq!(count, 2 * topology.nics().len());
}

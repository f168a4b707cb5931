#![allow(clippy::unwrap_used)]

use super::*;
use crate::fabric::Fabric;
use crate::routing::{LinkSet, Options};
use crate::workload::{Algorithm, Collective, Job};
use std::collections::BTreeSet;
use topology::{Clos, HostCounts, HostId, Topology, generate};

fn job(hosts: u32) -> Job {
    let collective = Collective {
        algorithm: Algorithm::Ring,
        bytes_per_rank: 1 << 22,
        channels: 4,
        iterations: 1,
    };
    Job {
        name: "job".to_owned(),
        hosts,
        ranks_per_host: 4,
        collective,
    }
}

fn two_segments() -> Topology {
    generate(&Clos::default()).unwrap()
}

#[test]
fn the_placed_share_is_the_bound_and_the_shuffled_one_is_not() {
    let topology = two_segments();
    let free = BTreeSet::new();
    let placed = place_job(&topology, &job(8), &free, Strategy::Placed).unwrap();
    assert!(
        (placed.share.crossing_share() - 0.25).abs() < 1e-9,
        "{:?}",
        placed.share
    );
    assert!((placed.share.bound - 0.25).abs() < 1e-9);
    let shuffled = place_job(&topology, &job(8), &free, Strategy::Unplaced { seed: 1 }).unwrap();
    assert!(
        shuffled.share.crossing_share() > 0.4,
        "{:?}",
        shuffled.share
    );
    assert!((shuffled.share.bound - 0.25).abs() < 1e-9);
}

#[test]
fn a_job_that_fits_a_segment_stays_there() {
    let topology = two_segments();
    let busy = BTreeSet::from([HostId(1)]);
    let plan = place_job(&topology, &job(4), &busy, Strategy::Placed).unwrap();
    assert_eq!((plan.share.crossing, plan.share.bound), (0, 0.0));
    assert_eq!(plan.hosts, [4, 5, 6, 7].map(HostId));
}

#[test]
fn what_does_not_fit_is_an_error_with_the_limit() {
    let topology = two_segments();
    let error = place_job(&topology, &job(9), &BTreeSet::new(), Strategy::Placed).unwrap_err();
    assert!(
        error.to_string().contains("8 such hosts are free"),
        "{error}"
    );
}

fn flow_plan(topology: &Topology, hosts: u32) -> (Vec<JobFlow>, FlowPlan) {
    let plan = place_job(topology, &job(hosts), &BTreeSet::new(), Strategy::Placed).unwrap();
    let fabric = Fabric::new(std::sync::Arc::new(topology.clone()));
    let down = LinkSet::none();
    let targets = fabric.targets(&down, false);
    let routes = fabric.routes(&targets, &down, Options::default());
    let terminals = terminals(topology, &targets, &down);
    let network = Network {
        graph: &fabric.graph,
        routes: &routes,
        down: &down,
        terminals: &terminals,
        links: topology.links().len(),
    };
    let flows = plan.flows(topology, 0);
    let demands: Vec<Demand> = flows.iter().map(|f| f.demand).collect();
    let placed = place(&network, &demands);
    (flows, placed)
}

#[test]
fn ring_edges_become_flows_and_their_paths_meet_the_bound() {
    let topology = two_segments();
    let (flows, plan) = flow_plan(&topology, 8);
    assert_eq!(flows.len(), 4 * 8);
    assert!(plan.paths.iter().all(Option::is_some));
    assert!(plan.bound_ps > 0);
    assert_eq!(plan.max_load_ps, plan.bound_ps);
}

#[test]
fn nics_of_two_ports_send_half_by_each() {
    let clos = Clos {
        dual_tor: true,
        planes: 2,
        ..Clos::default()
    };
    let topology = generate(&clos).unwrap();
    let (flows, plan) = flow_plan(&topology, 8);
    assert_eq!(flows.len(), 2 * 4 * 8);
    assert_eq!(plan.max_load_ps, plan.bound_ps);
    let qps: BTreeSet<(u32, u32)> = flows.iter().map(|f| (f.demand.dst, f.dest_qp)).collect();
    assert_eq!(qps.len(), flows.len());
}

#[test]
fn three_tiers_are_placed_near_the_bound() {
    let clos = Clos {
        pods: 2,
        segments: 2,
        hosts: HostCounts::Each(4),
        ..Clos::default()
    };
    let topology = generate(&clos).unwrap();
    let (_, plan) = flow_plan(&topology, 16);
    assert!(plan.paths.iter().all(Option::is_some));
    assert!(plan.max_load_ps <= plan.bound_ps * 2, "{plan:?}");
}

#[test]
fn hosts_of_one_scale_up_domain_send_nothing_between_them() {
    let clos = Clos {
        scale_up: Some(8),
        ..Clos::default()
    };
    let topology = generate(&clos).unwrap();
    let plan = place_job(&topology, &job(8), &BTreeSet::new(), Strategy::Placed).unwrap();
    assert_eq!(plan.share.sent, plan.share.scale_up);
    assert!(plan.flows(&topology, 0).len() == 4 * 4);
}

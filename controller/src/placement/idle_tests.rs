//! On an idle fabric, whatever it looks like, a job's share is its bound, and its flows are spread evenly.
#![allow(clippy::unwrap_used)]

use super::traffic::{Order, sites_of, traffic};
use super::*;
use crate::fabric::Fabric;
use crate::routing::{LinkSet, Options};
use crate::workload::Workload;
use proptest::prelude::*;
use topology::{Draw, HostId, Irregular, Share as Part, Topology, generate_irregular};

fn draw(text: &str) -> Draw {
    text.parse().unwrap()
}

/// A job of `hosts` hosts of eight ranks: rings of gradients over all, or stages of a pipeline between them.
fn job(hosts: u32, stages: u32) -> Workload {
    let (stages, dp) = if hosts.is_multiple_of(stages) {
        (stages, hosts / stages)
    } else {
        (1, hosts)
    };
    let mut text = format!(
        "name: job\nranks_per_host: 8\nparallel: {{tp: 8, dp: {dp}, pp: {stages}}}\ncollectives:\n  \
         - {{kind: all-reduce, over: tp, bytes_per_rank: 1MiB}}\n"
    );
    if dp > 1 {
        text += "  - {kind: all-reduce, over: dp, bytes_per_rank: 64MiB}\n";
    }
    if stages > 1 {
        text += "  - {kind: pipeline, over: pp, bytes_per_rank: 1MiB, times: 4}\n";
    }
    Workload::parse("job.yaml", &text).unwrap()
}

/// The seats of a job on the idle fabric, with its bound.
fn seated(topology: &Topology, job: &Workload) -> Option<Seating> {
    let inventory = Inventory::new(topology, 8, 8);
    let occupancy = Occupancy::empty(topology.hosts().len());
    place_workload(job, &inventory, &occupancy, Costs::default(), 0.0, None)
}

/// Busiest link over the bound, with the bound of the linear program where cuts are loose.
fn over_bound(topology: &Topology, job: &Workload, hosts: &[u32]) -> (f64, BoundBy) {
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
    let sites = sites_of(topology, hosts.iter().map(|h| HostId(*h)));
    let nic = |end: traffic::End| {
        let host = &topology[HostId(hosts[end.slot as usize])];
        host.nics().nth(usize::from(end.nic)).unwrap().0
    };
    let flows = traffic(job, &sites, Order::ByDomain).flows;
    let demands: Vec<Demand> = flows
        .iter()
        .map(|flow| Demand {
            src: nic(flow.src),
            dst: nic(flow.dst),
            bytes: flow.bytes,
            port: None,
        })
        .collect();
    let plan = place(&network, &demands).with_linear_program(&network, &demands);
    (plan.over_bound(), plan.bound_by)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_jobs_share_is_its_bound(
        seed in any::<u64>(), leaves in 1u32..20, nics in 0usize..3, dual in 0u32..500_000,
        missing in 0u32..150_000, pods in 1u32..3, part in 0.0f64..1.0, stages in 1u32..5,
    ) {
        let irregular = Irregular {
            seed,
            leaves,
            pods: pods.min(leaves),
            cores: if pods.min(leaves) > 1 { 5 } else { 0 },
            nics: draw(["8", "8:80,16:20", "8:60,4:40"][nics]),
            dual_tor: Part(dual),
            missing: Part(missing),
            spines: 5,
            ..Irregular::default()
        };
        let topology = generate_irregular(&irregular).unwrap();
        let able = topology.hosts().iter().filter(|h| h.nics().len() >= 8).count() as f64;
        let hosts = ((able * part).ceil() as u32).max(1);
        let ring = job(hosts, 1);
        if let Some(seating) = seated(&topology, &ring) {
            prop_assert_eq!(seating.crossing[0], seating.bound, "{} hosts", hosts);
        }
        let grid = job(hosts, stages);
        if let Some(seating) = seated(&topology, &grid) {
            prop_assert!(seating.crossing[0] >= seating.bound, "{} hosts, {} stages", hosts, stages);
        }
    }
}

#[test]
fn flows_of_symmetric_jobs_are_spread_evenly_whatever_is_missing() {
    for (seed, missing, dual) in [
        (1, 0, 0),
        (2, 30_000, 0),
        (3, 80_000, 200_000),
        (4, 150_000, 0),
    ] {
        let irregular = Irregular {
            seed,
            leaves: 24,
            spines: 16,
            missing: Part(missing),
            dual_tor: Part(dual),
            ..Irregular::default()
        };
        let topology = generate_irregular(&irregular).unwrap();
        for hosts in [32, topology.hosts().len() as u32] {
            let ring = job(hosts, 1);
            let seating = seated(&topology, &ring).unwrap();
            let (ratio, by) = over_bound(&topology, &ring, &seating.hosts);
            assert!(
                ratio <= 1.05,
                "seed {seed}, {hosts} hosts: {ratio} of the bound by {}",
                by.name()
            );
        }
    }
}

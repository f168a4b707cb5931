#![allow(clippy::unwrap_used)]

use super::*;
use crate::routing::{Destination, Graph, LinkSet, Options, Routes, Wire, compute};
use proptest::prelude::*;

const SPEED: u64 = 400_000_000_000;

/// A fabric with everything that a [`Network`] borrows.
struct Case {
    graph: Graph,
    routes: Routes,
    down: LinkSet,
    terminals: Vec<Terminal>,
    links: usize,
}

impl Case {
    /// `nics` single-homed NICs on each of `leaves` leaves under `spines` spines.
    fn leaf_spine(leaves: u32, spines: u32, nics: u32, down: &[u32]) -> Self {
        let tiers = (0..leaves)
            .map(|_| 0)
            .chain((0..spines).map(|_| 1))
            .collect();
        let wires: Vec<Wire> = (0..leaves * spines)
            .map(|i| Wire {
                link: i,
                ends: [
                    (i / spines, i % spines + 1),
                    (leaves + i % spines, i / spines + 1),
                ],
                speed_bps: SPEED,
            })
            .collect();
        let terminals = (0..leaves * nics)
            .map(|n| Terminal {
                ports: vec![port(0, n / nics, 100 + n, leaves * spines + n)],
                destination: Some((n / nics) as usize),
            })
            .collect();
        let links = (leaves * spines + leaves * nics) as usize;
        Self::new(Graph::new(tiers, &wires), terminals, links, down)
    }

    fn new(graph: Graph, terminals: Vec<Terminal>, links: usize, down: &[u32]) -> Self {
        let mut dests: Vec<Destination> = Vec::new();
        let mut terminals: Vec<Terminal> = terminals;
        for terminal in &mut terminals {
            let mut switches: Vec<u32> = terminal.ports.iter().map(|p| p.leaf).collect();
            switches.sort_unstable();
            let dest = Destination { switches };
            let at = dests.iter().position(|d| *d == dest).unwrap_or_else(|| {
                dests.push(dest);
                dests.len() - 1
            });
            terminal.destination = Some(at);
        }
        let down: LinkSet = down.iter().copied().collect();
        let routes = compute(&graph, &dests, &down, Options::default());
        Self {
            graph,
            routes,
            down,
            terminals,
            links,
        }
    }

    fn network(&self) -> Network<'_> {
        Network {
            graph: &self.graph,
            routes: &self.routes,
            down: &self.down,
            terminals: &self.terminals,
            links: self.links,
        }
    }
}

fn port(number: u8, leaf: u32, leaf_port: u32, link: u32) -> Port {
    Port {
        number,
        leaf,
        leaf_port,
        link,
        speed_bps: SPEED,
    }
}

fn flow(src: u32, dst: u32) -> Demand {
    Demand {
        src,
        dst,
        bytes: 1000,
        port: None,
    }
}

/// ps that `n` flows of 1000 bytes take of a 400 Gb/s link.
fn ps(n: u64) -> u64 {
    n * 20_000
}

#[test]
fn one_flow_per_spine() {
    let case = Case::leaf_spine(2, 4, 4, &[]);
    let demands: Vec<Demand> = (0..4).map(|n| flow(n, 4 + n)).collect();
    let plan = place(&case.network(), &demands);
    assert_eq!(plan.max_load_ps, ps(1));
    assert_eq!(plan.bound_ps, ps(1));
    assert_eq!(plan.max_uplink_ps, ps(1));
    let path = plan.paths[0].as_ref().unwrap();
    assert_eq!(path.steps.len(), 4);
    assert!(path.hops[0].choice && !path.hops[1].choice);
    assert_eq!(path.hops[2].port, 104);
}

#[test]
fn flows_within_a_leaf_need_no_choice() {
    let case = Case::leaf_spine(2, 4, 4, &[]);
    let plan = place(&case.network(), &[flow(0, 1)]);
    let path = plan.paths[0].as_ref().unwrap();
    assert_eq!(path.hops.len(), 1);
    assert!(!path.hops[0].choice);
    assert_eq!((plan.max_load_ps, plan.bound_ps), (0, 0));
}

#[test]
fn a_dead_uplink_is_avoided_and_the_bound_follows() {
    let case = Case::leaf_spine(2, 4, 4, &[1]);
    let demands: Vec<Demand> = (0..4).map(|n| flow(n, 4 + n)).collect();
    let plan = place(&case.network(), &demands);
    assert_eq!(plan.max_load_ps, ps(2));
    assert_eq!(plan.bound_ps, ps(2));
    for path in plan.paths.iter().flatten() {
        assert!(path.steps.iter().all(|s| s.link != 1));
    }
}

#[test]
fn an_unreachable_leaf_has_no_paths() {
    let case = Case::leaf_spine(2, 1, 1, &[0]);
    assert_eq!(place(&case.network(), &[flow(0, 1)]).paths, [None]);
}

#[test]
fn replacing_moves_only_what_must_move() {
    let whole = Case::leaf_spine(4, 4, 2, &[]);
    let demands: Vec<Demand> = (0..8).map(|n| flow(n, (n + 2) % 8)).collect();
    let before = place(&whole.network(), &demands);
    assert_eq!(before.max_load_ps, before.bound_ps);
    let used = before.paths[0].as_ref().unwrap().steps[1].link;
    let broken = Case::leaf_spine(4, 4, 2, &[used]);
    let after = replace(&broken.network(), &demands, &before.paths, 0.0);
    let moved = before
        .paths
        .iter()
        .zip(&after.paths)
        .filter(|(a, b)| a != b)
        .count();
    assert_eq!(after.max_load_ps, after.bound_ps);
    assert_eq!(moved, 1);
}

/// Two planes; every NIC has a port in each.
fn dual_plane(pairs: u32, spines: u32, nics: u32, down: &[u32]) -> Case {
    let leaves = pairs * 2;
    let tiers = (0..leaves)
        .map(|_| 0)
        .chain((0..spines * 2).map(|_| 1))
        .collect();
    let mut wires = Vec::new();
    for leaf in 0..leaves {
        for s in 0..spines {
            let spine = leaves + (leaf % 2) * spines + s;
            let ends = [(leaf, s + 1), (spine, leaf + 1)];
            wires.push(Wire {
                link: wires.len() as u32,
                ends,
                speed_bps: SPEED,
            });
        }
    }
    let first = wires.len() as u32;
    let terminals = (0..pairs * nics)
        .map(|n| {
            let leaf = n / nics * 2;
            let ports = vec![
                port(0, leaf, 100 + n, first + 2 * n),
                port(1, leaf + 1, 100 + n, first + 2 * n + 1),
            ];
            Terminal {
                ports,
                destination: None,
            }
        })
        .collect();
    let links = (first + 2 * pairs * nics) as usize;
    Case::new(Graph::new(tiers, &wires), terminals, links, down)
}

#[test]
fn two_planes_share_the_flows() {
    let case = dual_plane(2, 2, 4, &[]);
    let demands: Vec<Demand> = (0..4).map(|n| flow(n, 4 + n)).collect();
    let plan = place(&case.network(), &demands);
    assert_eq!((plan.max_load_ps, plan.bound_ps), (ps(1), ps(1)));
    for path in plan.paths.iter().flatten() {
        assert_eq!(path.src_port, path.dst_port);
    }
}

#[test]
fn a_demand_may_name_its_port() {
    let case = dual_plane(2, 2, 4, &[]);
    let demands: Vec<Demand> = (0..4)
        .flat_map(|n| {
            [0, 1].map(|p| Demand {
                port: Some(p),
                ..flow(n, 4 + n)
            })
        })
        .collect();
    let plan = place(&case.network(), &demands);
    assert_eq!((plan.max_load_ps, plan.bound_ps), (ps(2), ps(2)));
    for (demand, path) in demands.iter().zip(&plan.paths) {
        assert_eq!(demand.port, path.as_ref().map(|p| p.src_port));
    }
}

#[test]
fn three_tiers_are_spread_at_every_tier() {
    let graph = crate::routing::tests::three_tier(2, 2, 2, 2);
    let first = graph.links() as u32;
    let terminals: Vec<Terminal> = (0..16)
        .map(|n| Terminal {
            ports: vec![port(0, n / 4, 100 + n, first + n)],
            destination: None,
        })
        .collect();
    let case = Case::new(graph, terminals, first as usize + 16, &[]);
    let demands: Vec<Demand> = (0..8).map(|n| flow(n, 8 + n)).collect();
    let plan = place(&case.network(), &demands);
    assert_eq!((plan.max_load_ps, plan.bound_ps), (ps(2), ps(2)));
    assert!(plan.paths.iter().flatten().all(|p| p.hops.len() == 5));
}

#[test]
fn a_hundred_thousand_flows_take_seconds() {
    // 64 leaves of 1 600 NICs under 64 spines.
    let case = Case::leaf_spine(64, 64, 1600, &[]);
    let n = 64 * 1600;
    let demands: Vec<Demand> = (0..n)
        .map(|i| flow(i, (i + 1600 * (1 + i % 63)) % n))
        .collect();
    let started = std::time::Instant::now();
    let plan = place(&case.network(), &demands);
    assert_eq!(plan.max_load_ps, plan.bound_ps);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

proptest! {
    #[test]
    fn leaf_spine_meets_the_bound(
        spines in 1u32..7, pairs in proptest::collection::vec((0u32..20, 0u32..20), 1..80),
    ) {
        let case = Case::leaf_spine(5, spines, 4, &[]);
        let demands: Vec<Demand> = pairs.into_iter().map(|(a, b)| flow(a, b)).collect();
        let plan = place(&case.network(), &demands);
        prop_assert!(plan.paths.iter().all(Option::is_some));
        prop_assert_eq!(plan.max_load_ps, plan.bound_ps);
    }

    #[test]
    fn paths_are_whole_and_avoid_dead_links(
        lost in proptest::collection::vec(0u32..20, 0..6),
        pairs in proptest::collection::vec((0u32..20, 0u32..20, 1u64..5), 1..40),
    ) {
        let case = Case::leaf_spine(5, 4, 4, &lost);
        let demands: Vec<Demand> = pairs
            .into_iter()
            .map(|(a, b, size)| Demand { bytes: size * 1000, ..flow(a, b) })
            .collect();
        let network = case.network();
        let plan = place(&network, &demands);
        prop_assert!(plan.max_load_ps >= plan.bound_ps);
        for (demand, path) in demands.iter().zip(&plan.paths) {
            let leaf = |nic: u32| case.terminals[nic as usize].ports[0].leaf;
            let dest = case.terminals[demand.dst as usize].destination.unwrap();
            let reachable = case.routes.distance(dest, leaf(demand.src)).is_some();
            prop_assert_eq!(path.is_some(), reachable);
            let Some(path) = path else { continue };
            prop_assert!(path.steps.iter().all(|s| !case.down.contains(s.link)));
            prop_assert_eq!(path.hops[0].switch, leaf(demand.src));
            prop_assert_eq!(path.hops[path.hops.len() - 1].switch, leaf(demand.dst));
            for pair in path.hops.windows(2) {
                let edge = case.graph.edge(pair[0].switch, pair[0].port).unwrap();
                prop_assert_eq!(edge.peer, pair[1].switch);
            }
        }
    }
}

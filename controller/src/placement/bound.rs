//! How little the busiest link can carry, whatever the paths.

use super::flows::{Demand, Network, occupancy};
use crate::routing::Switch;
use rustc_hash::FxHashMap;

/// What a bound on the busiest link follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundBy {
    /// A cut: what must leave or enter a part of the fabric, over the capacity there is.
    Cut,
    /// A cut, and that flows are not split: some link has to carry so many whole ones.
    WholeFlows,
    /// The largest flow alone, on the fastest link.
    LargestFlow,
    /// The linear program in which flows may be split, by its dual.
    LinearProgram,
}

impl BoundBy {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::WholeFlows => "whole flows over a cut",
            Self::LargestFlow => "largest flow",
            Self::LinearProgram => "linear program",
        }
    }
}

/// Least possible load of the busiest link between switches, in ps, and what says so: for every part of
/// the fabric below a tier, what must leave or enter it over the capacity there is, whole flows at a time; and
/// the largest flow.
#[must_use]
pub fn bound(network: &Network, demands: &[Demand]) -> (u64, BoundBy) {
    let cuts = (0..network.graph.top_tier()).map(|tier| cut(network, demands, tier));
    let largest = (largest_flow(network, demands), BoundBy::LargestFlow);
    // Of equal bounds the simplest explanation.
    let none = (0, BoundBy::Cut);
    cuts.chain([largest])
        .fold(none, |best, one| if one.0 > best.0 { one } else { best })
}

/// The time that the largest flow needs on the fastest link: no plan of whole flows is better.
fn largest_flow(network: &Network, demands: &[Demand]) -> u64 {
    let graph = network.graph;
    let edges = graph.top_down().iter().flat_map(|s| graph.down(*s));
    let fastest = edges.map(|edge| edge.speed_bps).max().unwrap_or(0);
    let leaves_leaf = |d: &&Demand| {
        let [a, b] = [d.src, d.dst].map(|nic| &network.terminals[nic as usize].ports);
        !a.iter().any(|p| b.iter().any(|q| p.leaf == q.leaf)) && network.connects(d)
    };
    let largest = demands.iter().filter(leaves_leaf).map(|d| d.bytes).max();
    largest.map_or(0, |bytes| occupancy(bytes, fastest))
}

/// What leaves or enters a part.
#[derive(Default)]
struct Crossing {
    bytes: u64,
    /// Of each flow.
    flows: Vec<u64>,
}

impl Crossing {
    /// Bytes of whole flows that the busiest of `links` links carries at least. Of the `k * links + 1` largest
    /// flows, some link has `k + 1`, which are no smaller than the smallest of these.
    fn whole(&mut self, links: usize) -> u64 {
        self.flows.sort_unstable_by(|a, b| b.cmp(a));
        let last = (0..self.flows.len()).step_by(links.max(1));
        let sum = |(k, at): (usize, usize)| -> u64 { self.flows[at - k..=at].iter().sum() };
        last.enumerate().map(sum).max().unwrap_or(0)
    }
}

fn cut(network: &Network, demands: &[Demand], tier: u8) -> (u64, BoundBy) {
    let graph = network.graph;
    let mut parts = Parts::new(graph.switches());
    for switch in graph.top_down().iter().filter(|s| graph.tier(**s) <= tier) {
        for edge in graph
            .down(*switch)
            .iter()
            .filter(|e| !network.down.contains(e.link))
        {
            parts.join(*switch, edge.peer);
        }
    }
    // What a NIC of two ports can do within one leaf or the other, its part can do.
    for terminal in network.terminals {
        for pair in terminal.ports.windows(2) {
            parts.join(pair[0].leaf, pair[1].leaf);
        }
    }
    let mut capacity: FxHashMap<Switch, (u64, usize, u64)> = FxHashMap::default();
    for switch in graph.top_down().iter().filter(|s| graph.tier(**s) <= tier) {
        let up = graph.up(*switch).iter();
        for edge in up.filter(|e| !network.down.contains(e.link) && graph.tier(e.peer) > tier) {
            let (sum, count, fastest) = capacity.entry(parts.find(*switch)).or_default();
            *sum = sum.saturating_add(edge.speed_bps);
            *count += 1;
            *fastest = (*fastest).max(edge.speed_bps);
        }
    }
    let mut crossing: FxHashMap<(Switch, bool), Crossing> = FxHashMap::default();
    for demand in demands {
        let part = |nic: u32, parts: &mut Parts| {
            network.terminals[nic as usize]
                .ports
                .first()
                .map(|p| parts.find(p.leaf))
        };
        let (Some(from), Some(to)) = (part(demand.src, &mut parts), part(demand.dst, &mut parts))
        else {
            continue;
        };
        if from != to && network.connects(demand) {
            for key in [(from, true), (to, false)] {
                let c = crossing.entry(key).or_default();
                c.bytes = c.bytes.saturating_add(demand.bytes);
                c.flows.push(demand.bytes);
            }
        }
    }
    let least = |((part, _), c): (&(Switch, bool), &mut Crossing)| {
        let (sum, count, fastest) = capacity.get(part).copied()?;
        let (split, whole) = (occupancy(c.bytes, sum), occupancy(c.whole(count), fastest));
        Some(if whole > split {
            (whole, BoundBy::WholeFlows)
        } else {
            (split, BoundBy::Cut)
        })
    };
    let most = crossing
        .iter_mut()
        .filter_map(least)
        .max_by_key(|(ps, _)| *ps);
    most.unwrap_or((0, BoundBy::Cut))
}

/// Disjoint sets of switches.
struct Parts {
    parent: Vec<Switch>,
}

impl Parts {
    fn new(switches: usize) -> Self {
        Self {
            parent: (0..u32::try_from(switches).unwrap_or(u32::MAX)).collect(),
        }
    }

    fn find(&mut self, mut at: Switch) -> Switch {
        while self.parent[at as usize] != at {
            self.parent[at as usize] = self.parent[self.parent[at as usize] as usize];
            at = self.parent[at as usize];
        }
        at
    }

    fn join(&mut self, a: Switch, b: Switch) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a as usize] = b;
    }
}

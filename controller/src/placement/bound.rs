//! How little the busiest link can carry, whatever the paths.

use super::flows::{Demand, Network, occupancy};
use crate::routing::Switch;
use rustc_hash::FxHashMap;

/// Least possible load of the busiest link between switches, in ps: for every part of the fabric below
/// a tier, what must leave or enter it over the capacity there is, whole flows at a time.
#[must_use]
pub fn bound(network: &Network, demands: &[Demand]) -> u64 {
    (0..network.graph.top_tier())
        .map(|tier| cut(network, demands, tier))
        .max()
        .unwrap_or(0)
}

/// What leaves or enters a part.
#[derive(Default)]
struct Crossing {
    bytes: u64,
    flows: u64,
    smallest: Option<u64>,
}

fn cut(network: &Network, demands: &[Demand], tier: u8) -> u64 {
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
    let mut capacity: FxHashMap<Switch, (u64, u64, u64)> = FxHashMap::default();
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
                c.flows += 1;
                c.smallest = Some(c.smallest.map_or(demand.bytes, |s| s.min(demand.bytes)));
            }
        }
    }
    let least = |((part, _), c): (&(Switch, bool), &Crossing)| {
        let (sum, count, fastest) = capacity.get(part).copied()?;
        // Some link carries at least this many whole flows, none smaller than the smallest.
        let whole = c.flows.div_ceil(count).saturating_mul(c.smallest?);
        Some(occupancy(c.bytes, sum).max(occupancy(whole, fastest)))
    };
    crossing.iter().filter_map(least).max().unwrap_or(0)
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

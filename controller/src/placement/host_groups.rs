//! Which hosts exchange what: the costs of cutting between them, for whoever chooses hosts.

use crate::workload::{Algorithm, Exchange, Operation, Over, Workload};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// How the crossing bytes of a group follow from the LA domains of its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A ring: one edge per domain crosses.
    Ring,
    /// A tree or two levels: one edge less crosses.
    Tree,
    /// Everybody with everybody.
    Pairs,
    /// Each with the next in line.
    Line,
}

/// Hosts that exchange something, with what it costs to cut between them: what a placer has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// Position of the exchange in the workload.
    pub exchange: usize,
    /// Host slots, each once, in rank order.
    pub slots: Vec<u32>,
    /// How crossing bytes follow from domains.
    pub shape: Shape,
    /// Bytes per iteration of one edge between two hosts, over all ranks of these hosts that do the same:
    /// of one ring or tree edge; of one ordered pair; of one step in line, both ways.
    pub edge_bytes: u64,
}

impl HostGroup {
    /// Bytes per iteration that cross domains if `domain` tells a host slot's, with the best order.
    pub fn crossing(&self, domain: impl Fn(u32) -> u32) -> u64 {
        let domains: Vec<u32> = self.slots.iter().map(|slot| domain(*slot)).collect();
        let edges = match self.shape {
            Shape::Line => domains.windows(2).filter(|w| w[0] != w[1]).count() as u64,
            Shape::Ring | Shape::Tree => {
                let mut different = domains;
                different.sort_unstable();
                different.dedup();
                match (different.len() as u64, self.shape) {
                    (0 | 1, _) => 0,
                    (n, Shape::Ring) => n,
                    (n, _) => n - 1,
                }
            }
            Shape::Pairs => {
                let mut count: FxHashMap<u32, u64> = FxHashMap::default();
                for domain in &domains {
                    *count.entry(*domain).or_default() += 1;
                }
                let all = domains.len() as u64;
                all * all - count.values().map(|n| n * n).sum::<u64>()
            }
        };
        edges * self.edge_bytes
    }
}

/// The groups of hosts that exchange something by NIC. Groups of ranks on the same hosts are put together.
#[must_use]
pub fn host_groups(workload: &Workload) -> Vec<HostGroup> {
    let mut list = Vec::new();
    let unit = workload.scale_up.max(workload.ranks_per_host).max(1);
    for (index, exchange) in workload.exchanges.iter().enumerate() {
        let mut alike: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        let mut members = 1;
        for ranks in workload.grid.groups(exchange.over) {
            members = ranks.len() as u64;
            let mut slots: Vec<u32> = ranks.iter().map(|r| workload.slot(*r)).collect();
            if exchange.over != Over::Pipeline {
                slots.sort_unstable();
            }
            slots.dedup();
            let units = ranks.iter().map(|r| r / unit).collect::<BTreeSet<_>>();
            if units.len() > 1 {
                *alike.entry(slots).or_default() += 1;
            }
        }
        for (slots, lanes) in alike {
            let (shape, edge_bytes) = edge(exchange, slots.len() as u64, members, lanes);
            list.push(HostGroup {
                exchange: index,
                slots,
                shape,
                edge_bytes,
            });
        }
    }
    list
}

/// The shape of a group of `hosts` hosts and `members` ranks, and the bytes of an edge when `lanes` groups of
/// ranks do the same.
fn edge(exchange: &Exchange, hosts: u64, members: u64, lanes: u64) -> (Shape, u64) {
    let arrays = match exchange.operation {
        Operation::AllReduce => 2,
        _ => 1,
    };
    let whole = exchange.bytes * exchange.times * lanes;
    let part = |of: u64, among: u64| {
        let bytes = u128::from(whole) * u128::from(of) / u128::from(among.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    match (exchange.operation, exchange.algorithm) {
        (Operation::Pipeline, _) => (Shape::Line, 2 * whole),
        (Operation::AllToAll, _) => {
            let local = members / hosts.max(1);
            (Shape::Pairs, part(local * local, members))
        }
        (Operation::AllReduce, Algorithm::Tree) | (_, Algorithm::TwoLevel) => {
            (Shape::Tree, arrays * whole)
        }
        (_, algorithm) => {
            let ring = if algorithm == Algorithm::Ring {
                members
            } else {
                hosts
            };
            (Shape::Ring, part(arrays * (ring - 1), ring))
        }
    }
}

//! From flows and paths to streams.

use super::fill::{Stream, Use};
use crate::placement::{Demand, Network, Path, Step};
use crate::routing::{Hop, Switch};
use rustc_hash::FxHashMap;
use topology::Topology;

/// Rates of all links in bits/s, by directed link: twice the link's index, plus one for upward.
#[must_use]
pub fn capacities(topology: &Topology) -> Vec<u64> {
    let speeds = topology.links().iter().map(|link| link.speed_bps);
    speeds.flat_map(|speed| [speed, speed]).collect()
}

/// The directed link of a step.
fn directed(step: &Step) -> u32 {
    step.link * 2 + u32::from(step.upward)
}

/// One stream per chain, in order of the chains' numbers; flows without a path are left out. `flows` yields
/// each flow's chain, its bytes and its path.
pub fn streams<'p>(flows: impl IntoIterator<Item = (u32, u64, Option<&'p Path>)>) -> Vec<Stream> {
    let mut chains: FxHashMap<u32, Vec<(u64, &Path)>> = FxHashMap::default();
    for (chain, bytes, path) in flows {
        if let Some(path) = path {
            chains.entry(chain).or_default().push((bytes, path));
        }
    }
    let mut chains: Vec<_> = chains.into_iter().collect();
    chains.sort_unstable_by_key(|(chain, _)| *chain);
    chains
        .into_iter()
        .map(|(_, flows)| stream(&flows))
        .collect()
}

fn stream(flows: &[(u64, &Path)]) -> Stream {
    let most = flows.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0);
    let mut uses: FxHashMap<u32, f64> = FxHashMap::default();
    for (bytes, path) in flows {
        for step in &path.steps {
            *uses.entry(directed(step)).or_default() += *bytes as f64 / most.max(1) as f64;
        }
    }
    let mut uses: Vec<Use> = uses
        .into_iter()
        .map(|(link, weight)| Use {
            link,
            weight: weight as f32,
        })
        .collect();
    uses.sort_unstable_by_key(|u| u.link);
    Stream { bytes: most, uses }
}

/// The path that hashing might give a demand: at every switch one of the next hops, by weight, drawn from
/// `seed`, the demand's ends and the switch. `None` where there is no way.
#[must_use]
pub fn hashed(network: &Network, demand: &Demand, seed: u64) -> Option<Path> {
    let key = mix(seed ^ (u64::from(demand.src) << 32 | u64::from(demand.dst)));
    walk(network, demand, key, |switch, hops| {
        let total: u64 = hops.iter().map(|h| u64::from(h.weight)).sum();
        let tier = u64::from(network.graph.tier(switch));
        let mut left = mix(key ^ (tier << 56) ^ u64::from(switch)) % total.max(1);
        let hop = hops.iter().find(|h| {
            let found = left < u64::from(h.weight);
            left = left.saturating_sub(u64::from(h.weight));
            found
        });
        hop.map(|h| h.port)
    })
}

/// The path on which every switch's port is chosen by `choose` out of its next hops; `key` picks the port of
/// a NIC that has several, unless the demand names it.
pub(super) fn walk(
    network: &Network,
    demand: &Demand,
    key: u64,
    mut choose: impl FnMut(Switch, &[Hop]) -> Option<u32>,
) -> Option<Path> {
    let dest = network.terminals.get(demand.dst as usize)?.destination?;
    let live = |nic: u32| {
        let ports = network.terminals[nic as usize].ports.iter();
        ports.filter(|p| demand.port.is_none_or(|w| w == p.number))
    };
    let sources: Vec<_> = live(demand.src)
        .filter(|p| network.routes.distance(dest, p.leaf).is_some())
        .collect();
    let first = **pick(&sources, key)?;
    let (mut switches, mut ports) = (vec![first.leaf], Vec::new());
    let mut at: Switch = first.leaf;
    while network.routes.distance(dest, at)? > 0 {
        let port = choose(at, network.routes.hops_to(dest, at))?;
        at = network.graph.edge(at, port)?.peer;
        ports.push(port);
        switches.push(at);
    }
    let last = *live(demand.dst).find(|p| p.leaf == at)?;
    ports.push(last.leaf_port);
    Some(network.path(dest, &switches, &ports, first, last))
}

fn pick<T>(list: &[T], key: u64) -> Option<&T> {
    list.get((key % (list.len().max(1) as u64)) as usize)
}

/// SplitMix64's finalizer.
pub(super) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

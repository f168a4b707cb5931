//! A job's exchange as a schedule of messages.

use std::collections::BTreeMap;

use ::topology::{HostId, NicId, Topology};
use controller::placement::Site;
use controller::placement::traffic::{Chain, ChainKind, End, NicFlow, Traffic};
use controller::workload::{Exchange, Operation, pieces};
use lab::emulator::levels::{Builder, Piece};
use lab::emulator::{QueuePairNumbers, Schedule};

use crate::failure::Failure;

/// Largest part of an array that travels on its own, bytes.
const SLICE: u64 = 64 << 10;

/// Messages, and which flows advance together.
pub(super) struct Built {
    pub(super) schedule: Schedule,
    /// By flow of the schedule.
    pub(super) chain: Vec<u32>,
}

/// The NIC of an end.
pub(super) fn nic(topology: &Topology, sites: &[Site], end: End) -> Option<NicId> {
    let host = HostId(sites.get(end.slot as usize)?.host);
    topology[host].nics().nth(usize::from(end.nic))
}

/// The messages of one exchange.
///
/// # Errors
/// An exchange that has no schedule.
pub(super) fn exchange(
    topology: &Topology,
    sites: &[Site],
    traffic: &Traffic,
    (index, exchange): (usize, &Exchange),
    numbers: &mut QueuePairNumbers,
) -> Result<Built, Failure> {
    let mut chains: BTreeMap<u32, Vec<(NicId, NicId, u64)>> = BTreeMap::new();
    let own = |flow: &&NicFlow| flow.exchange as usize == index;
    for flow in traffic.flows.iter().filter(own) {
        let (src, dst) = (
            nic(topology, sites, flow.src),
            nic(topology, sites, flow.dst),
        );
        if let (Some(src), Some(dst)) = (src, dst) {
            chains
                .entry(flow.chain)
                .or_default()
                .push((src, dst, flow.bytes));
        }
    }
    let mut builder = Builder::new(numbers, SLICE);
    let mut levels: BTreeMap<u32, Levels> = BTreeMap::new();
    let mut chain_of: Vec<(u32, usize)> = Vec::new();
    for (chain, flows) in &chains {
        let Some(Chain { kind, set }) = traffic.chains.get(*chain as usize) else {
            continue;
        };
        match kind {
            ChainKind::Ring => ring(&mut builder, exchange, flows),
            ChainKind::Tree => tree(&mut builder, flows),
            ChainKind::Lone => flows
                .iter()
                .for_each(|(src, dst, bytes)| builder.send(*src, *dst, *bytes)),
            ChainKind::Domain => levels.entry(*set).or_default().domains.push(flows),
            ChainKind::Piece => levels.entry(*set).or_default().pieces.push(flows),
        }
        chain_of.push((*chain, builder.flows()));
    }
    let mut next = traffic.chains.len() as u32;
    let mut chain = expand(&chain_of);
    for level in levels.values() {
        if exchange.operation != Operation::AllReduce {
            return Err(Failure::Input(format!(
                "error: `{}`: only all-reduces of two levels are emulated; take `algorithm: hierarchical`",
                exchange.name
            )));
        }
        level.add(&mut builder, exchange);
        while chain.len() < builder.flows() {
            chain.push(next);
            next += 1;
        }
    }
    Ok(Built {
        schedule: builder.finish(),
        chain,
    })
}

/// Chains by flow, from how many flows there were after each.
fn expand(ends: &[(u32, usize)]) -> Vec<u32> {
    let mut list = Vec::new();
    for (chain, end) in ends {
        list.resize(*end, *chain);
    }
    list
}

fn ring(builder: &mut Builder<'_>, exchange: &Exchange, flows: &[(NicId, NicId, u64)]) {
    let nics: Vec<NicId> = flows.iter().map(|(src, ..)| *src).collect();
    let edges: Vec<u64> = flows.iter().map(|(.., bytes)| *bytes).collect();
    let half = u32::try_from(nics.len())
        .unwrap_or(u32::MAX)
        .saturating_sub(1);
    let rounds = if exchange.operation == Operation::AllReduce {
        2
    } else {
        1
    };
    let times = u32::try_from(exchange.times).unwrap_or(u32::MAX);
    builder.ring(&nics, &edges, (half * rounds).saturating_mul(times));
}

fn tree(builder: &mut Builder<'_>, flows: &[(NicId, NicId, u64)]) {
    let mut members: Vec<NicId> = Vec::new();
    let mut place = |nic: NicId| {
        members.iter().position(|m| *m == nic).unwrap_or_else(|| {
            members.push(nic);
            members.len() - 1
        })
    };
    // Every other flow goes up, from a child to its parent.
    let edges: Vec<(usize, usize)> = flows
        .iter()
        .step_by(2)
        .map(|(child, parent, _)| (place(*child), place(*parent)))
        .collect();
    let mut parents = vec![None; members.len()];
    for (child, parent) in edges {
        parents[child] = u32::try_from(parent).ok();
    }
    let bytes = flows.first().map_or(0, |(.., bytes)| *bytes);
    builder.tree(&members, &parents, bytes);
}

/// The rings of one all-reduce in two levels.
#[derive(Default)]
struct Levels<'a> {
    domains: Vec<&'a Vec<(NicId, NicId, u64)>>,
    pieces: Vec<&'a Vec<(NicId, NicId, u64)>>,
}

impl Levels<'_> {
    fn add(&self, builder: &mut Builder<'_>, exchange: &Exchange) {
        let mut domains: Vec<Vec<NicId>> = self
            .domains
            .iter()
            .map(|ring| ring.iter().map(|(src, ..)| *src).collect())
            .collect();
        // A domain of one member has no ring: it is known by the pieces it owns.
        let order: Vec<NicId> = self
            .pieces
            .first()
            .map_or_else(Vec::new, |ring| ring.iter().map(|(src, ..)| *src).collect());
        for owner in &order {
            if !domains.iter().any(|domain| domain.contains(owner)) {
                domains.push(vec![*owner]);
            }
        }
        domains.sort_by_key(|domain| order.iter().position(|owner| domain.contains(owner)));
        let sizes: Vec<u32> = domains.iter().map(|d| d.len() as u32).collect();
        let sum: u64 = self
            .domains
            .iter()
            .chain(&self.pieces)
            .flat_map(|ring| ring.iter())
            .map(|(.., bytes)| bytes)
            .sum();
        let members: u64 = sizes.iter().map(|n| u64::from(*n)).sum();
        let bytes = sum / (2 * members.saturating_sub(1)).max(1) / exchange.times.max(1);
        for _ in 0..exchange.times {
            builder.two_level(&domains, bytes, |bytes| {
                let list = pieces(bytes, &sizes).into_iter();
                list.map(|p| Piece {
                    bytes: p.bytes,
                    owners: p.owners,
                })
                .collect()
            });
        }
    }
}

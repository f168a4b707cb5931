//! What a placed job sends from NIC to NIC, to the byte.
//!
//! A [`Workload`] says what ranks exchange, sites say where their hosts are. Rings and trees are laid so that
//! they cross LA domains as rarely as possible (or as ranks come, for the baseline), and every edge becomes
//! a flow between two NICs. Bytes between ranks of one scale-up domain reach no NIC and are counted apart.

pub use super::host_groups::{HostGroup, Shape, host_groups};
use super::ranks::Site;
use crate::workload::{Algorithm, Exchange, Operation, Ring, Workload, double_tree, pieces, share};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use topology::{HostId, Topology};

/// A NIC of a job: the host slot and the NIC's number on that host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Host slot of the job.
    pub slot: u32,
    /// NIC of the host, from 0.
    pub nic: u16,
}

/// Bytes from one NIC to another in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicFlow {
    /// Position of the exchange in the workload.
    pub exchange: u32,
    /// Flows of one chain advance together: the edges of a ring or tree, which wait for each other.
    pub chain: u32,
    /// The sender.
    pub src: End,
    /// The receiver.
    pub dst: End,
    /// Bytes.
    pub bytes: u64,
}

/// What the flows of a chain are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainKind {
    /// The edges of a ring, in its order.
    Ring,
    /// The edges of a tree: up and down in turn, each from a child.
    Tree,
    /// The edges of a ring inside one LA domain, of two levels.
    Domain,
    /// The edges of a ring between the owners of one piece, of two levels.
    Piece,
    /// A flow of its own.
    Lone,
}

/// Flows that advance together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// What they are.
    pub kind: ChainKind,
    /// The collective they are part of: one channel of one group.
    pub set: u32,
}

/// In which order rings and trees visit hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Every LA domain is entered and left once.
    #[default]
    ByDomain,
    /// As ranks are numbered: the baseline.
    AsNumbered,
}

/// What one exchange amounts to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Bytes that leave NICs.
    pub sent: u64,
    /// Of these, bytes to another LA domain.
    pub crossing: u64,
    /// Bytes inside scale-up domains, which reach no NIC.
    pub scale_up: u64,
}

impl Volume {
    /// Crossing share X; 0 if nothing was sent.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.crossing as f64 / self.sent.max(1) as f64
    }
}

/// A job's traffic in one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// All flows, exchange by exchange.
    pub flows: Vec<NicFlow>,
    /// The chains that flows name.
    pub chains: Vec<Chain>,
    /// By exchange.
    pub volumes: Vec<Volume>,
}

impl Traffic {
    /// Everything together.
    #[must_use]
    pub fn total(&self) -> Volume {
        self.volumes
            .iter()
            .fold(Volume::default(), |sum, v| Volume {
                sent: sum.sent + v.sent,
                crossing: sum.crossing + v.crossing,
                scale_up: sum.scale_up + v.scale_up,
            })
    }
}

/// Sites for a job that is not placed: host slot `i` is host `i`, every host has `nics` NICs, and all are
/// in one LA domain per NIC.
#[must_use]
pub fn anywhere(workload: &Workload, nics: u32) -> Vec<Site> {
    (0..workload.hosts())
        .map(|host| Site {
            host,
            las: (0..nics.max(1)).collect(),
            groups: Vec::new(),
        })
        .collect()
}

/// Where these hosts are, all their NICs included.
#[must_use]
pub fn sites_of(topology: &Topology, hosts: impl IntoIterator<Item = HostId>) -> Vec<Site> {
    hosts
        .into_iter()
        .map(|id| Site {
            host: id.0,
            las: topology[id].nics().map(|nic| topology[nic].la.0).collect(),
            groups: vec![
                topology.building_of(id).0,
                topology.pod_of(id).0,
                topology[id].segment.0,
            ],
        })
        .collect()
}

/// The traffic of one iteration. `sites` has the place of each host slot; slots beyond its end send nothing.
#[must_use]
pub fn traffic(workload: &Workload, sites: &[Site], order: Order) -> Traffic {
    let mut work = Work {
        workload,
        sites,
        order,
        chains: Vec::new(),
        set: 0,
        exchange: 0,
        flows: Vec::new(),
        volume: Volume::default(),
    };
    let mut volumes = Vec::new();
    for (index, exchange) in workload.exchanges.iter().enumerate() {
        work.exchange = u32::try_from(index).unwrap_or(u32::MAX);
        work.volume = Volume::default();
        for group in workload.grid.groups(exchange.over) {
            work.group(exchange, &group);
        }
        volumes.push(work.volume);
    }
    Traffic {
        flows: work.flows,
        chains: work.chains,
        volumes,
    }
}

/// The members of a group that share a scale-up domain.
struct Unit {
    ranks: Vec<u32>,
}

struct Work<'a> {
    workload: &'a Workload,
    sites: &'a [Site],
    order: Order,
    chains: Vec<Chain>,
    set: u32,
    exchange: u32,
    flows: Vec<NicFlow>,
    volume: Volume,
}

impl Work<'_> {
    fn group(&mut self, exchange: &Exchange, ranks: &[u32]) {
        match exchange.operation {
            Operation::Pipeline => self.pipeline(exchange, ranks),
            Operation::AllToAll => self.all_to_all(exchange, ranks),
            _ => self.collective(exchange, ranks),
        }
    }

    /// The NIC nearest to a rank's GPU.
    fn end(&self, rank: u32) -> End {
        let slot = self.workload.slot(rank);
        let local = rank % self.workload.ranks_per_host.max(1);
        let nics = self
            .sites
            .get(slot as usize)
            .map_or(1, |s| s.las.len().max(1));
        let nic = local as usize * nics / self.workload.ranks_per_host.max(1) as usize;
        End {
            slot,
            nic: u16::try_from(nic).unwrap_or(0),
        }
    }

    fn la(&self, end: End) -> Option<u32> {
        let site = self.sites.get(end.slot as usize)?;
        site.las.get(usize::from(end.nic)).copied()
    }

    fn chain(&mut self, kind: ChainKind) -> u32 {
        self.chains.push(Chain {
            kind,
            set: self.set,
        });
        u32::try_from(self.chains.len() - 1).unwrap_or(u32::MAX)
    }

    fn send(&mut self, chain: u32, src: End, dst: End, bytes: u64) {
        if bytes == 0 || self.la(src).is_none() || self.la(dst).is_none() {
            return;
        }
        self.volume.sent += bytes;
        if self.la(src) != self.la(dst) {
            self.volume.crossing += bytes;
        }
        self.flows.push(NicFlow {
            exchange: self.exchange,
            chain,
            src,
            dst,
            bytes,
        });
    }

    /// Bytes that the members of a unit exchange among themselves, in a circle; a part may be sent by NIC.
    fn inside(&mut self, unit: &[u32], bytes: u64) {
        let part = u128::from(bytes) * u128::from(self.workload.offload_ppm) / 1_000_000;
        let part = u64::try_from(part).unwrap_or(u64::MAX);
        let members = u32::try_from(unit.len()).unwrap_or(1);
        let ends: Vec<End> = unit.iter().map(|rank| self.end(*rank)).collect();
        let mut offloaded = 0;
        let chain = self.chain(ChainKind::Ring);
        for (i, (src, dst)) in ends.iter().zip(ends.iter().cycle().skip(1)).enumerate() {
            if src != dst {
                let bytes = share(part, members, u32::try_from(i).unwrap_or(0));
                self.send(chain, *src, *dst, bytes);
                offloaded += bytes;
            }
        }
        self.volume.scale_up += bytes - offloaded;
    }

    /// Cuts a group into units, in the order of their first rank.
    fn units(&self, ranks: &[u32]) -> Vec<Unit> {
        let size = self
            .workload
            .scale_up
            .max(self.workload.ranks_per_host)
            .max(1);
        let mut units: Vec<Unit> = Vec::new();
        let mut at: FxHashMap<u32, usize> = FxHashMap::default();
        for rank in ranks {
            let unit = *at.entry(rank / size).or_insert_with(|| {
                units.push(Unit { ranks: Vec::new() });
                units.len() - 1
            });
            units[unit].ranks.push(*rank);
        }
        units
    }

    /// The member of each unit that `channel` uses, and the units in the order of rings: positions, and
    /// how many of them are in each LA domain.
    fn lay(&self, units: &[Unit], channel: u32) -> (Vec<usize>, Vec<u32>) {
        let end = |unit: &Unit| self.end(unit.ranks[channel as usize % unit.ranks.len()]);
        let las: Vec<Option<u32>> = units.iter().map(|u| self.la(end(u))).collect();
        let mut positions: Vec<usize> = (0..units.len()).collect();
        if self.order == Order::ByDomain {
            // A domain stands where its first site does in the nested groups.
            let mut first: FxHashMap<Option<u32>, (&[u32], usize)> = FxHashMap::default();
            for (position, unit) in units.iter().enumerate() {
                let groups = self
                    .sites
                    .get(end(unit).slot as usize)
                    .map_or(&[][..], |s| &s.groups);
                let key = first.entry(las[position]).or_insert((groups, position));
                *key = (*key).min((groups, position));
            }
            positions.sort_by_key(|p| (first[&las[*p]], *p));
        }
        let mut sizes: Vec<u32> = Vec::new();
        let mut last = None;
        for position in &positions {
            if last == Some(las[*position])
                && let Some(size) = sizes.last_mut()
            {
                *size += 1;
            } else {
                sizes.push(1);
            }
            last = Some(las[*position]);
        }
        (positions, sizes)
    }

    fn collective(&mut self, exchange: &Exchange, ranks: &[u32]) {
        let units = self.units(ranks);
        let flat = exchange.algorithm == Algorithm::Ring;
        let operations = match exchange.operation {
            Operation::AllReduce => 2,
            _ => 1,
        };
        for unit in &units {
            let members = unit.ranks.len() as u64;
            if !flat || units.len() == 1 {
                let bytes = operations * (members - 1) * exchange.bytes;
                self.inside(&unit.ranks, bytes * exchange.times);
            }
        }
        if units.len() < 2 {
            return;
        }
        let widest = units.iter().map(|u| u.ranks.len()).max().unwrap_or(1);
        let own = u32::try_from(widest).unwrap_or(1);
        let channels = self.workload.channels.unwrap_or(own);
        for channel in 0..channels {
            self.set += 1;
            let bytes = share(exchange.bytes, channels, channel);
            match (exchange.algorithm, exchange.operation) {
                (Algorithm::Tree, Operation::AllReduce) => {
                    self.trees(exchange, &units, channel, bytes)
                }
                (Algorithm::TwoLevel, _) => self.two_level(exchange, &units, channel, bytes),
                _ => self.ring(exchange, &units, channel, bytes),
            }
        }
    }

    /// Bytes that the member at `position` of a ring sends.
    fn ring_bytes(operation: Operation, ring: &Ring, position: u32) -> u64 {
        match operation {
            Operation::AllReduce => ring.edge_bytes(position),
            Operation::ReduceScatter => ring.bytes - ring.chunk(position),
            _ => ring.bytes - ring.chunk((position + 1) % ring.members.max(1)),
        }
    }

    fn ring(&mut self, exchange: &Exchange, units: &[Unit], channel: u32, bytes: u64) {
        let flat = exchange.algorithm == Algorithm::Ring;
        let (order, _) = self.lay(units, channel);
        let members = |unit: &Unit| if flat { unit.ranks.len() } else { 1 };
        let count: usize = units.iter().map(members).sum();
        let ring = Ring {
            bytes,
            members: u32::try_from(count).unwrap_or(u32::MAX),
        };
        let end =
            |work: &Self, unit: &Unit| work.end(unit.ranks[channel as usize % unit.ranks.len()]);
        let chain = self.chain(ChainKind::Ring);
        let mut position = 0;
        for (at, next) in order.iter().zip(order.iter().cycle().skip(1)) {
            let unit = &units[*at];
            for _ in 1..members(unit) {
                let sent = Self::ring_bytes(exchange.operation, &ring, position);
                self.volume.scale_up += sent * exchange.times;
                position += 1;
            }
            let sent = Self::ring_bytes(exchange.operation, &ring, position) * exchange.times;
            let (src, dst) = (end(self, unit), end(self, &units[*next]));
            self.send(chain, src, dst, sent);
            position += 1;
        }
    }

    fn trees(&mut self, exchange: &Exchange, units: &[Unit], channel: u32, bytes: u64) {
        let (order, sizes) = self.lay(units, channel);
        let ends: Vec<End> = order
            .iter()
            .map(|p| self.end(units[*p].ranks[channel as usize % units[*p].ranks.len()]))
            .collect();
        for (half, parents) in (0..).zip(double_tree(&sizes)) {
            let bytes = share(bytes, 2, half) * exchange.times;
            let chain = self.chain(ChainKind::Tree);
            for (child, parent) in parents.iter().enumerate() {
                let Some(parent) = parent else { continue };
                let (child, parent) = (ends[child], ends[*parent as usize]);
                self.send(chain, child, parent, bytes);
                self.send(chain, parent, child, bytes);
            }
        }
    }

    fn two_level(&mut self, exchange: &Exchange, units: &[Unit], channel: u32, bytes: u64) {
        let (order, sizes) = self.lay(units, channel);
        let ends: Vec<End> = order
            .iter()
            .map(|p| self.end(units[*p].ranks[channel as usize % units[*p].ranks.len()]))
            .collect();
        let mut domains: Vec<&[End]> = Vec::new();
        let mut rest = &ends[..];
        for size in &sizes {
            let (domain, left) = rest.split_at(*size as usize);
            domains.push(domain);
            rest = left;
        }
        for domain in &domains {
            let ring = Ring {
                bytes,
                members: u32::try_from(domain.len()).unwrap_or(u32::MAX),
            };
            if ring.members < 2 {
                continue;
            }
            let chain = self.chain(ChainKind::Domain);
            for (position, (src, dst)) in
                (0..).zip(domain.iter().zip(domain.iter().cycle().skip(1)))
            {
                let sent = two_level_bytes(exchange.operation, &ring, position);
                self.send(chain, *src, *dst, sent * exchange.times);
            }
        }
        let members = u32::try_from(domains.len()).unwrap_or(u32::MAX);
        if members < 2 {
            return;
        }
        for piece in pieces(bytes, &sizes) {
            let ring = Ring {
                bytes: piece.bytes,
                members,
            };
            let chain = self.chain(ChainKind::Piece);
            let owners: Vec<End> = (piece.owners.iter().zip(&domains))
                .map(|(owner, domain)| domain[*owner as usize])
                .collect();
            for (position, (src, dst)) in
                (0..).zip(owners.iter().zip(owners.iter().cycle().skip(1)))
            {
                let sent = two_level_bytes(exchange.operation, &ring, position);
                self.send(chain, *src, *dst, sent * exchange.times);
            }
        }
    }

    fn pipeline(&mut self, exchange: &Exchange, ranks: &[u32]) {
        let hop = |work: &mut Self, from: u32, to: u32, times: u64| {
            let bytes = exchange.bytes * times;
            if work.workload.inside(from, to) {
                work.inside(&[from, to], 2 * bytes);
                return;
            }
            let (src, dst) = (work.end(from), work.end(to));
            let chain = work.chain(ChainKind::Lone);
            work.send(chain, src, dst, bytes);
            let chain = work.chain(ChainKind::Lone);
            work.send(chain, dst, src, bytes);
        };
        for pair in ranks.windows(2) {
            hop(self, pair[0], pair[1], exchange.times);
        }
        if let (Some(first), Some(last)) = (ranks.first(), ranks.last())
            && first != last
            && exchange.wraps > 0
        {
            hop(self, *last, *first, exchange.wraps);
        }
    }

    fn all_to_all(&mut self, exchange: &Exchange, ranks: &[u32]) {
        let n = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        let mut pairs: BTreeMap<(End, End), u64> = BTreeMap::new();
        let (mut inside, mut gathered) = (0, 0);
        for src in ranks {
            for (j, dst) in (0..).zip(ranks) {
                let bytes = share(exchange.bytes, n, j) * exchange.times;
                if src == dst {
                    continue;
                }
                if self.workload.inside(*src, *dst) {
                    inside += bytes;
                    continue;
                }
                let (mut from, to) = (self.end(*src), self.end(*dst));
                if exchange.rail_aligned && from.nic != to.nic {
                    let aligned = End {
                        nic: to.nic,
                        ..from
                    };
                    if self.la(aligned).is_some() {
                        gathered += bytes;
                        from = aligned;
                    }
                }
                *pairs.entry((from, to)).or_default() += bytes;
            }
        }
        self.volume.scale_up += inside + gathered;
        for ((src, dst), bytes) in pairs {
            let chain = self.chain(ChainKind::Lone);
            self.send(chain, src, dst, bytes);
        }
    }
}

/// Bytes that a member of a ring of two levels sends: those of a reduce-scatter that leaves it with its
/// own chunk, of the all-gather that follows, or of both.
fn two_level_bytes(operation: Operation, ring: &Ring, position: u32) -> u64 {
    let scatter = ring.bytes - ring.chunk(position);
    let gather = ring.bytes - ring.chunk((position + 1) % ring.members.max(1));
    match operation {
        Operation::AllReduce => scatter + gather,
        Operation::ReduceScatter => scatter,
        _ => gather,
    }
}

//! Which ranks go on which of a job's hosts, so that the cut falls where it costs the least.
//!
//! Hosts in rank order are cut into leaves, segments and pods at fixed places. What is cut there depends
//! on how ranks count through the parallel dimensions: with pipeline stages outermost, a border between
//! two leaves cuts a pipeline once; with data-parallel groups outermost it cuts every ring of gradients. All
//! orders of the dimensions are tried, and those of the leaves by size, and the cheapest is taken; where it is
//! above the bound, slots are swapped ([`super::swaps`]).

use super::inventory::Inventory;
use super::search::Costs;
use super::swaps::Swapper;
use super::traffic::{HostGroup, host_groups};
use crate::workload::{Dimension, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// A job's host slots on hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Seating {
    /// Host of each slot.
    pub hosts: Vec<u32>,
    /// The dimensions as hosts count through them, outermost first; those of one host are not named.
    pub order: Vec<Dimension>,
    /// Bytes per iteration that leave NICs.
    pub sent: u64,
    /// Bytes that cross LA domains, segments, pods and buildings.
    pub crossing: [u64; 4],
    /// No placement crosses LA domains with fewer bytes, as whoever asked for the seats says.
    pub bound: u64,
}

impl Seating {
    /// Cross-LA share; 0 if nothing is sent.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.of_sent(self.crossing[0])
    }

    /// Least cross-LA share.
    #[must_use]
    pub fn bound_share(&self) -> f64 {
        self.of_sent(self.bound)
    }

    fn of_sent(&self, bytes: u64) -> f64 {
        if self.sent == 0 {
            0.0
        } else {
            bytes as f64 / self.sent as f64
        }
    }

    pub(super) fn cost(&self, costs: Costs) -> f64 {
        let [la, segment, pod, building] = self.crossing.map(|bytes| bytes as f64);
        la * costs.la + segment * costs.segment + pod * costs.pod + building * costs.building
    }
}

/// Seats a job on `hosts`. `bound` is kept beside: the bytes that cross at least, by [`least_crossing`](super::least_crossing).
#[must_use]
pub fn seat(
    workload: &Workload,
    inventory: &Inventory,
    hosts: &[u32],
    bound: u64,
    costs: Costs,
) -> Seating {
    let groups = host_groups(workload);
    let sent = groups.iter().map(|g| g.crossing(|slot| slot)).sum();
    let mut best: Option<(f64, Seating)> = None;
    for arranged in arrangements(inventory, hosts) {
        for order in orders(workload) {
            let slots = count_through(workload, &order, arranged.len());
            let mut seats = vec![0; arranged.len()];
            for (slot, host) in slots.iter().zip(&arranged) {
                seats[*slot as usize] = *host;
            }
            let seating = Seating {
                crossing: crossing(&groups, inventory, &seats),
                hosts: seats,
                order,
                sent,
                bound,
            };
            let cost = seating.cost(costs);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, seating));
            }
        }
    }
    let Some((cost, seating)) = best else {
        return Seating {
            hosts: hosts.to_vec(),
            order: Vec::new(),
            sent,
            crossing: [0; 4],
            bound,
        };
    };
    if seating.crossing[0] <= bound {
        return seating;
    }
    let swapped = swapped(&groups, inventory, &seating, costs);
    if swapped.cost(costs) < cost {
        swapped
    } else {
        seating
    }
}

/// The same hosts after swaps of slots between them.
fn swapped(
    groups: &[HostGroup],
    inventory: &Inventory,
    seating: &Seating,
    costs: Costs,
) -> Seating {
    let swapper = Swapper::new(groups, inventory, &seating.hosts, costs);
    let mut seats: Vec<u32> = (0..).take(seating.hosts.len()).collect();
    swapper.improve(&mut seats);
    let hosts: Vec<u32> = seats.iter().map(|at| seating.hosts[*at as usize]).collect();
    Seating {
        crossing: crossing(groups, inventory, &hosts),
        hosts,
        ..seating.clone()
    }
}

/// Hosts with their rooms in the order given, the largest share first, and the smallest first; rooms of
/// one pod and segment stay together.
fn arrangements(inventory: &Inventory, hosts: &[u32]) -> Vec<Vec<u32>> {
    let mut rooms: Vec<(&[u32], Vec<u32>)> = Vec::new();
    for host in hosts {
        let las = inventory
            .room_of(*host)
            .map_or(&[][..], |r| r.las.as_slice());
        match rooms.last_mut().filter(|(last, _)| *last == las) {
            Some((_, members)) => members.push(*host),
            None => rooms.push((las, vec![*host])),
        }
    }
    let outer = |members: &Vec<u32>| {
        let room = members.first().and_then(|h| inventory.room_of(*h));
        room.map(|r| [r.groups[0], r.groups[1]])
    };
    let mut all = vec![hosts.to_vec()];
    for ascending in [false, true] {
        let mut sorted = rooms.clone();
        sorted.sort_by_key(|(_, members)| {
            let size = members.len();
            (
                outer(members),
                if ascending { size } else { usize::MAX - size },
            )
        });
        all.push(
            sorted
                .into_iter()
                .flat_map(|(_, members)| members)
                .collect(),
        );
    }
    all.dedup();
    all
}

/// All orders of the dimensions that have more than one coordinate.
fn orders(workload: &Workload) -> Vec<Vec<Dimension>> {
    let dimensions = Dimension::NAMES.map(|(_, dimension)| dimension);
    let used = dimensions
        .into_iter()
        .filter(|d| workload.grid.size(*d) > 1);
    let mut orders: Vec<Vec<Dimension>> = vec![Vec::new()];
    for dimension in used {
        let insert = |order: &Vec<Dimension>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, dimension);
                longer
            })
        };
        orders = orders.iter().flat_map(insert).collect();
    }
    orders
}

/// The slots, the last of the dimensions changing fastest.
fn count_through(workload: &Workload, order: &[Dimension], slots: usize) -> Vec<u32> {
    let slots = u32::try_from(slots).unwrap_or(u32::MAX);
    let mut list: Vec<u32> = (0..slots).collect();
    list.sort_by_cached_key(|slot| {
        let rank = slot * workload.ranks_per_host;
        let at = |d: &Dimension| workload.grid.coordinate(rank, *d);
        order.iter().map(at).collect::<Vec<u32>>()
    });
    list
}

fn crossing(groups: &[HostGroup], inventory: &Inventory, seats: &[u32]) -> [u64; 4] {
    let rooms: Vec<_> = seats.iter().map(|h| inventory.room_of(*h)).collect();
    let rails = rooms
        .iter()
        .flatten()
        .map(|r| r.las.len())
        .min()
        .unwrap_or(0);
    let total =
        |domain: &dyn Fn(u32) -> u32| groups.iter().map(|g| g.crossing(domain)).sum::<u64>();
    let number = |key: &dyn Fn(usize) -> Vec<u32>| {
        let mut index: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let of = (0..seats.len()).map(|slot| {
            let next = u32::try_from(index.len()).unwrap_or(u32::MAX);
            *index.entry(key(slot)).or_insert(next)
        });
        of.collect::<Vec<u32>>()
    };
    let las = |slot: usize, rail: usize| rooms[slot].map_or(u32::MAX, |r| r.las[rail]);
    // Rails that part the hosts in the same way cross alike.
    let mut parts: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for rail in 0..rails {
        *parts
            .entry(number(&|slot| vec![las(slot, rail)]))
            .or_default() += 1;
    }
    let by_rail = |(part, times): (&Vec<u32>, &u64)| total(&|slot| part[slot as usize]) * times;
    let la = parts.iter().map(by_rail).sum::<u64>() / (rails as u64).max(1);
    let outer = [3, 2, 1].map(|depth| {
        let part = number(&|slot| rooms[slot].map_or(Vec::new(), |r| r.groups[..depth].to_vec()));
        let distinct = part.iter().collect::<BTreeSet<_>>().len();
        if distinct < 2 {
            0
        } else {
            total(&|slot| part[slot as usize])
        }
    });
    [la, outer[0], outer[1], outer[2]]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::placement::least_crossing;

    /// 175e9 parameters, 8-way tensor, 16-way data, 8-stage pipeline parallelism.
    const JOB: &str = "\
name: gpt3-175b
ranks_per_host: 8
parallel: {tp: 8, dp: 16, pp: 8}
micro_batches: 96
model: {layers: 96, hidden: 12288, sequence: 2048, parameters: 175000000000}
";

    #[test]
    fn between_two_segments_a_pipeline_is_cut_and_not_the_rings() {
        let workload = Workload::parse("job.yaml", JOB).unwrap();
        let inventory = Inventory::flat(&[64, 64]);
        let hosts: Vec<u32> = (0..128).collect();
        let bound = least_crossing(&workload, &inventory, |_| true);
        let seating = seat(&workload, &inventory, &hosts, bound, Costs::default());
        // 1.3 % of the bytes; with the data-parallel rings cut it would be 11.3 %.
        assert!(
            (0.012..0.014).contains(&seating.share()),
            "{}",
            seating.share()
        );
        assert_eq!(seating.order.first(), Some(&Dimension::Pipeline));
        assert_eq!(seating.bound, seating.crossing[0]);
        let mut seats = seating.hosts.clone();
        seats.sort_unstable();
        assert_eq!(seats, hosts);
    }

    #[test]
    fn a_ring_over_all_crosses_once_per_leaf() {
        let text = "name: ring\nhosts: 8\nranks_per_host: 8\ncollective:\n  kind: all-reduce\n  \
                    algorithm: hierarchical\n  bytes_per_rank: 1GiB\n  channels: 8\n";
        let workload = Workload::parse("job.yaml", text).unwrap();
        let inventory = Inventory::flat(&[3, 3, 3]);
        let hosts: Vec<u32> = (0..8).collect();
        let bound = least_crossing(&workload, &inventory, |_| true);
        let seating = seat(&workload, &inventory, &hosts, bound, Costs::default());
        assert!(
            (seating.share() - 0.375).abs() < 1e-6,
            "{}",
            seating.share()
        );
        assert!((seating.bound_share() - 0.375).abs() < 1e-6);
    }
}

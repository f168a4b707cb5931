//! The placer: few leaves for this job, and room left for those that come after.
//!
//! A ring over hosts in `L` rooms crosses `L` times (not at all if `L` is 1), so a job costs one for each
//! room that it uses, and what its hosts are worth to later jobs ([`outlook`](super::outlook)) comes on
//! top. How many hosts to take from which room is a knapsack, solved exactly by dynamic programming:
//! within every group of hosts (segment, pod, building) that can hold the job, and across the fewest
//! groups that can. Rooms that look the same are not told apart.

use super::baseline::Levels;
use super::inventory::{Inventory, Occupancy, Spot};
use super::outlook::{Drops, Times, Worth};
use rustc_hash::{FxHashMap, FxHasher};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::hash::Hasher as _;

mod relocate;

pub use relocate::{MOVE_PRICE, Relocation, Resident, best_relocation};

/// What a crossing costs beyond the leaf, by the outermost border that it crosses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Out of an LA domain; the unit of the others.
    pub la: f64,
    /// Out of a segment, on top.
    pub segment: f64,
    /// Out of a pod, on top.
    pub pod: f64,
    /// Out of a building, on top.
    pub building: f64,
}

impl Default for Costs {
    /// LA domains first; of equals, the placement that keeps more within pods and buildings.
    fn default() -> Self {
        Self {
            la: 1.0,
            segment: 0.05,
            pod: 0.25,
            building: 0.5,
        }
    }
}

/// A placement that was found, and what it was chosen by.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Hosts in rank order: room after room, rooms of one group next to each other.
    pub hosts: Vec<u32>,
    /// Rooms used, by their number, and hosts taken from each.
    pub take: Vec<(usize, usize)>,
    /// Crossings of a ring that leave LA domains, segments, pods and buildings.
    pub crossings: [usize; 4],
    /// What is lost to later jobs, in crossings.
    pub lost: f64,
}

/// More steps than this the exact search does not take; larger cases are filled from the largest room on.
const MOST_STEPS: usize = 300_000_000;

/// A search for a place on one state of the fabric.
#[derive(Debug)]
pub struct Search<'a> {
    inventory: &'a Inventory,
    /// What each room has, by its number.
    spots: Vec<Spot<'a>>,
    /// Most hosts of a room.
    largest: usize,
    occupied: f64,
    /// Nothing runs: then the job alone counts.
    idle: bool,
    costs: Costs,
    levels: Levels,
    times: Option<Times>,
    /// Sizes of jobs, and how often they come.
    sizes: Vec<(usize, f64)>,
    /// What hosts are worth to jobs that say when they end, once it was asked for.
    told: OnceCell<Prices>,
    /// And to those that don't.
    blind: OnceCell<Prices>,
}

/// What the hosts of all spots are worth.
#[derive(Debug)]
struct Prices {
    worth: Worth,
    drops: Vec<Drops>,
}

/// What a place is searched for.
struct Ask {
    wanted: usize,
    /// By spot, what is lost with the hosts taken there.
    losses: Vec<Vec<f64>>,
    /// Cost of one room more.
    per_room: f64,
    /// What one crossing counts: a ring of few hosts carries less over each.
    sends: f64,
    /// Gain of being in one room beyond the crossings saved.
    whole: f64,
}

impl<'a> Search<'a> {
    /// Prepares for searching `inventory` with what `occupancy` leaves free at time `now`.
    #[must_use]
    pub fn new(inventory: &'a Inventory, occupancy: &Occupancy, costs: Costs, now: f64) -> Self {
        let spots = occupancy.all_spots(inventory);
        let usage = occupancy.usage(inventory);
        let largest = inventory.rooms().iter().map(|r| r.hosts.len()).max();
        let times = |mean_left| Times { now, mean_left };
        Self {
            inventory,
            largest: largest.unwrap_or(0),
            occupied: usage.occupied(),
            idle: usage.taken == 0,
            costs,
            levels: Levels::new(&spots),
            spots,
            times: occupancy.mean_left(now).map(times),
            sizes: occupancy.sizes(),
            told: OnceCell::new(),
            blind: OnceCell::new(),
        }
    }

    /// The best place for a job of `wanted` hosts that runs for at most `limit`, if it says so; `None` if
    /// there are not as many.
    #[must_use]
    pub fn place(&self, wanted: usize, limit: Option<f64>) -> Option<Found> {
        self.best(&self.ask(wanted, limit))
    }

    fn prices(&self, limit: Option<f64>) -> &Prices {
        let times = limit.and(self.times);
        let cell = if times.is_some() {
            &self.told
        } else {
            &self.blind
        };
        cell.get_or_init(|| {
            let worth = Worth::new(self.occupied, self.largest, times);
            let worth = worth.expecting(&self.spots, &self.sizes);
            let drops = self.spots.iter().map(|spot| worth.drops(spot)).collect();
            Prices { worth, drops }
        })
    }

    fn ask(&self, wanted: usize, limit: Option<f64>) -> Ask {
        let Prices { worth, drops } = self.prices(limit);
        let stays = worth.stays(limit);
        let sends = (wanted.saturating_sub(1)) as f64 / wanted.max(1) as f64;
        Ask {
            wanted,
            losses: drops.iter().map(|d| d.losses(&stays, wanted)).collect(),
            // On an idle fabric nothing is weighed against the rooms.
            per_room: self.costs.la * if self.idle { 1e6 } else { 1.0 },
            sends,
            whole: if wanted > 1 { worth.whole() } else { 0.0 },
        }
    }

    fn best(&self, ask: &Ask) -> Option<Found> {
        if ask.wanted == 0 {
            return None;
        }
        // One host has no crossings: the room where it costs least is the answer.
        let scopes = if ask.wanted > 1 {
            self.scopes(ask.wanted)
        } else {
            Vec::new()
        };
        scopes
            .iter()
            .filter_map(|scope| self.fill(scope, ask))
            .chain(self.single(ask))
            .map(|take| self.judge(take, ask))
            .min_by(|a, b| self.cost(a, ask).total_cmp(&self.cost(b, ask)))
    }

    /// The room that can hold the whole job at the least loss.
    fn single(&self, ask: &Ask) -> Option<Vec<(usize, usize)>> {
        let fits = (0..self.spots.len()).filter(|s| self.spots[*s].free.len() >= ask.wanted);
        let lost = |spot: &usize| ask.losses[*spot][ask.wanted];
        let best = fits.min_by(|a, b| lost(a).total_cmp(&lost(b)))?;
        Some(vec![(best, ask.wanted)])
    }

    /// Sets of spots to search, each with enough free hosts: every group that has them, and at each level
    /// the fewest groups that have them together.
    fn scopes(&self, wanted: usize) -> Vec<Vec<usize>> {
        let mut scopes = Vec::new();
        for level in 0..self.levels.leaf_level() {
            let (node, free) = (&self.levels.node[level], &self.levels.free[level]);
            let mut members: Vec<Vec<usize>> = vec![Vec::new(); free.len()];
            for (spot, group) in node.iter().enumerate() {
                members[*group].push(spot);
            }
            let fits = (0..free.len()).filter(|g| free[*g] >= wanted);
            scopes.extend(fits.map(|g| members[g].clone()));
            if free.iter().all(|f| *f < wanted) {
                let (mut left, mut scope) = (wanted, Vec::new());
                let mut groups: Vec<usize> = (0..free.len()).collect();
                groups.sort_by_key(|g| Reverse(free[*g]));
                for group in groups {
                    scope.extend(&members[group]);
                    left = left.saturating_sub(free[group]);
                    if left == 0 {
                        break;
                    }
                }
                scopes.push(scope);
            }
        }
        scopes.retain(|scope| {
            scope
                .iter()
                .map(|s| self.spots[*s].free.len())
                .sum::<usize>()
                >= wanted
        });
        scopes.dedup();
        scopes
    }

    /// Least cost of the hosts wanted from the spots of `scope`, each spot used costing one crossing.
    fn fill(&self, scope: &[usize], ask: &Ask) -> Option<Vec<(usize, usize)>> {
        let wanted = ask.wanted;
        let items = self.distinct(scope, ask);
        let most = |spot: &usize| self.spots[*spot].free.len().min(wanted);
        let steps = items.iter().map(most).sum::<usize>();
        if steps.saturating_mul(wanted) > MOST_STEPS {
            return Some(self.largest_first(scope, wanted));
        }
        let mut cost = vec![f64::INFINITY; wanted + 1];
        cost[0] = 0.0;
        let mut choices = vec![0u32; items.len() * (wanted + 1)];
        let mut reach = 0;
        for (spot, choice) in items.iter().zip(choices.chunks_mut(wanted + 1)) {
            reach = wanted.min(reach + most(spot));
            better(&mut cost, choice, &ask.losses[*spot], ask.per_room, reach);
        }
        if cost[wanted].is_infinite() {
            return None;
        }
        let (mut left, mut take) = (wanted, Vec::new());
        for (spot, choice) in items.iter().zip(choices.chunks(wanted + 1)).rev() {
            let some = choice[left] as usize;
            if some > 0 {
                take.push((*spot, some));
                left -= some;
            }
        }
        Some(take)
    }

    /// Spots with a free host; of those that look the same, as many as the job could use.
    fn distinct(&self, scope: &[usize], ask: &Ask) -> Vec<usize> {
        let mut seen: FxHashMap<u64, usize> = FxHashMap::default();
        let one_level = self.levels.leaf_level() == 1;
        let mut items = Vec::new();
        for at in scope.iter().filter(|s| !self.spots[**s].free.is_empty()) {
            let mut key = FxHasher::default();
            if !one_level {
                let groups = self.spots[*at].room.groups;
                groups.iter().for_each(|group| key.write_u32(*group));
            }
            let losses = &ask.losses[*at];
            losses.iter().for_each(|lost| key.write_u64(lost.to_bits()));
            let count = seen.entry(key.finish()).or_default();
            if *count < ask.wanted.div_ceil(losses.len() - 1) {
                *count += 1;
                items.push(*at);
            }
        }
        items
    }

    fn largest_first(&self, scope: &[usize], wanted: usize) -> Vec<(usize, usize)> {
        let mut order = scope.to_vec();
        order.sort_by_key(|s| Reverse(self.spots[*s].free.len()));
        let (mut left, mut take) = (wanted, Vec::new());
        for (at, spot) in order.iter().enumerate() {
            let free = self.spots[*spot].free.len();
            if left == 0 {
                break;
            }
            if free >= left {
                let fits = order[at..]
                    .iter()
                    .rev()
                    .find(|s| self.spots[**s].free.len() >= left);
                take.push((*fits.unwrap_or(spot), left));
                break;
            }
            take.push((*spot, free));
            left -= free;
        }
        take
    }

    fn judge(&self, mut take: Vec<(usize, usize)>, ask: &Ask) -> Found {
        take.sort_by_key(|(s, _)| {
            (
                self.spots[*s].room.groups,
                self.spots[*s].free.first().copied(),
            )
        });
        let lost = take.iter().map(|(s, hosts)| ask.losses[*s][*hosts]);
        let lost = lost.sum::<f64>() - if take.len() == 1 { ask.whole } else { 0.0 };
        let borders = |depth: usize| {
            let groups: Vec<&[u32]> = take
                .iter()
                .map(|(s, _)| &self.spots[*s].room.groups[..depth])
                .collect();
            let mut distinct = groups.clone();
            distinct.dedup();
            if distinct.len() < 2 {
                0
            } else {
                distinct.len()
            }
        };
        let rooms = if take.len() < 2 { 0 } else { take.len() };
        let hosts = |(s, hosts): &(usize, usize)| self.spots[*s].free.iter().take(*hosts).copied();
        Found {
            hosts: take.iter().flat_map(hosts).collect(),
            crossings: [rooms, borders(3), borders(2), borders(1)],
            lost,
            take,
        }
    }

    fn cost(&self, found: &Found, ask: &Ask) -> f64 {
        let [rooms, segments, pods, buildings] = found.crossings.map(|c| c as f64);
        let outer =
            self.costs.segment * segments + self.costs.pod * pods + self.costs.building * buildings;
        rooms * ask.per_room + outer * ask.sends + found.lost
    }
}

/// Lets the knapsack take hosts of one spot more: `cost[h]` is the least for `h` hosts, and `choice[h]` gets
/// the hosts that come from this spot. With it, `reach` hosts can be had at most.
fn better(cost: &mut [f64], choice: &mut [u32], losses: &[f64], per_room: f64, reach: usize) {
    for hosts in (1..=reach).rev() {
        let (mut least, mut best) = (cost[hosts], 0);
        let before = cost[hosts.saturating_sub(losses.len() - 1)..hosts]
            .iter()
            .rev();
        for (some, (lost, before)) in losses.iter().skip(1).zip(before).enumerate() {
            let with = before + per_room + lost;
            if with < least - 1e-9 {
                (least, best) = (with, some + 1);
            }
        }
        cost[hosts] = least;
        choice[hosts] = u32::try_from(best).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn rooms(found: &Found) -> Vec<usize> {
        let mut take: Vec<usize> = found.take.iter().map(|t| t.1).collect();
        take.sort_unstable();
        take
    }

    #[test]
    fn an_idle_fabric_gives_the_fewest_rooms_and_spares_the_large() {
        let inventory = Inventory::flat(&[8, 3, 4, 8, 5, 8]);
        let occupancy = Occupancy::empty(36);
        let search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
        assert_eq!(search.place(3, None).unwrap().hosts, [8, 9, 10]);
        assert_eq!(rooms(&search.place(12, None).unwrap()), [4, 8]);
        assert_eq!(rooms(&search.place(16, None).unwrap()), [8, 8]);
        assert_eq!(search.place(37, None), None);
        assert_eq!(search.place(0, None), None);
    }

    #[test]
    fn a_small_job_goes_beside_small_jobs() {
        let inventory = Inventory::flat(&[8, 4, 8]);
        let mut occupancy = Occupancy::empty(20);
        // Two rooms with two hosts free: in one of them a job has the other six.
        occupancy.take(1, &[0, 1, 2, 3, 4, 5]).unwrap();
        occupancy.take(2, &[8]).unwrap();
        occupancy.take(3, &[9]).unwrap();
        let search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
        assert_eq!(search.place(2, None).unwrap().hosts, [10, 11]);
    }

    #[test]
    fn of_equal_placements_the_one_within_a_pod_wins() {
        let place = |la: u32, pod: u32| (0..4).map(move |_| Some((vec![la], [0, pod, la])));
        let hosts = place(0, 0).chain(place(1, 1)).chain(place(2, 1));
        let inventory = Inventory::from_hosts(hosts);
        let occupancy = Occupancy::empty(12);
        let search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
        assert_eq!(
            search.place(8, None).unwrap().hosts,
            (4..12).collect::<Vec<u32>>()
        );
    }

    #[test]
    fn what_is_too_large_for_the_exact_search_still_gets_the_fewest_rooms() {
        let sizes: Vec<u32> = (0..200).map(|i| 200 + i % 7).collect();
        let inventory = Inventory::flat(&sizes);
        let occupancy = Occupancy::empty(inventory.hosts());
        let found = Search::new(&inventory, &occupancy, Costs::default(), 0.0)
            .place(20_000, None)
            .unwrap();
        assert_eq!((found.hosts.len(), found.take.len()), (20_000, 98));
    }

    proptest! {
        #[test]
        fn on_an_idle_fabric_the_bound_is_met(
            sizes in proptest::collection::vec(1u32..9, 1..40),
            wanted in 1usize..80,
        ) {
            let inventory = Inventory::flat(&sizes);
            let occupancy = Occupancy::empty(inventory.hosts());
            let found = Search::new(&inventory, &occupancy, Costs::default(), 0.0).place(wanted, None);
            prop_assert_eq!(found.is_some(), wanted <= inventory.hosts());
            if let Some(found) = found {
                let mut left = wanted;
                let mut sorted: Vec<usize> = sizes.iter().map(|s| *s as usize).collect();
                sorted.sort_unstable_by_key(|s| Reverse(*s));
                let least = sorted.iter().take_while(|s| {
                    let more = left > 0;
                    left = left.saturating_sub(**s);
                    more
                });
                prop_assert_eq!(found.take.len(), least.count());
                prop_assert_eq!(found.hosts.len(), wanted);
            }
        }
    }
}

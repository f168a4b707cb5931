//! What any placement of the jobs that run together must cross, even if all could be moved at any time.
//!
//! A job is cut into pieces, one for each room that it is in, and pays for each piece unless it is whole; a room
//! of `c` hosts holds any pieces of `c` hosts together. Put a price on pieces, by their size: then every job
//! picks its cheapest cut, every room the dearest pieces that fit it, and what the jobs pay less what the rooms
//! earn is a lower bound on what the jobs together must cross, for *any* prices (the Lagrangian dual of "no more
//! pieces of a size than rooms hold"). Good prices are found by subgradient steps, and for every moment the
//! best of those found so far is taken.

use super::Setup;
use crate::placement::{Cut, Inventory};
use std::collections::{BTreeMap, BTreeSet};

/// Work that one search for prices may take, in steps of the innermost loop.
const MOST_STEPS: usize = 20_000_000;
/// Most sets of prices that are kept.
const MOST_PRICES: usize = 64;

/// Follows the jobs that run, and sums up what they must cross.
pub(super) struct Packing {
    hosts: usize,
    /// Sizes of jobs, ascending, with their ring shares on an empty fabric.
    sizes: Vec<(u32, f64)>,
    /// How many of each size run.
    running: Vec<f64>,
    /// What must be crossed, for each different way in which rails part the hosts, and its weight.
    rails: Vec<(f64, [Relaxation; 2])>,
    crossing: [f64; 2],
    bytes: f64,
    taken: f64,
    time: f64,
    passes: usize,
}

impl Packing {
    pub(super) fn new(inventory: &Inventory, setup: &Setup) -> Self {
        let sizes: BTreeSet<u32> = setup.sizes.iter().map(|(size, _)| *size).collect();
        let floor = |size: u32| {
            let cut = Cut::floor(inventory, size as usize);
            (size, cut.map_or(0.0, |cut| cut.ring_share()))
        };
        let sizes: Vec<(u32, f64)> = sizes.into_iter().map(floor).collect();
        let jobs: Vec<usize> = sizes.iter().map(|(size, _)| *size as usize).collect();
        let mut packing = Self {
            hosts: inventory.hosts(),
            running: vec![0.0; sizes.len()],
            rails: partitions(inventory)
                .into_iter()
                .map(|(rooms, weight)| {
                    let relax = |order| Relaxation::new(&rooms, &jobs, order);
                    (weight, [relax(Order::Ring), relax(Order::Tree)])
                })
                .collect(),
            sizes,
            crossing: [0.0; 2],
            bytes: 0.0,
            taken: 0.0,
            time: 0.0,
            passes: 0,
        };
        packing.prepare(setup);
        packing
    }

    /// Prices for the mean mix of jobs at several occupancies.
    fn prepare(&mut self, setup: &Setup) {
        let mut mix = vec![0.0; self.sizes.len()];
        let mut mean = 0.0;
        for (size, weight) in &setup.sizes {
            if let Ok(at) = self.sizes.binary_search_by_key(size, |(size, _)| *size) {
                mix[at] += f64::from(*weight);
                mean += f64::from(*size) * f64::from(*weight);
            }
        }
        for tenths in 3..=10 {
            let times = f64::from(tenths) / 10.0 * self.hosts as f64 / mean.max(1.0);
            let running: Vec<f64> = mix.iter().map(|weight| weight * times).collect();
            for relaxation in self.rails.iter_mut().flat_map(|(_, both)| both) {
                relaxation.improve(&running, 600, 0.3);
            }
        }
    }

    /// Ring share of a job of this size on an empty fabric.
    pub(super) fn floor(&self, size: u32) -> f64 {
        let at = self.sizes.binary_search_by_key(&size, |(size, _)| *size);
        at.map_or(0.0, |at| self.sizes[at].1)
    }

    /// A job of this size starts or ends.
    pub(super) fn change(&mut self, size: u32, starts: bool) {
        if let Ok(at) = self.sizes.binary_search_by_key(&size, |(size, _)| *size) {
            self.running[at] += if starts { 1.0 } else { -1.0 };
        }
    }

    /// The jobs run on like this for `time`.
    pub(super) fn pass(&mut self, time: f64) {
        for (weight, both) in &mut self.rails {
            for (crossing, relaxation) in self.crossing.iter_mut().zip(both) {
                // Now and then prices are made for the very jobs that run.
                if self.passes.is_multiple_of(32) {
                    relaxation.improve(&self.running, 40, 0.05);
                }
                *crossing += time * *weight * relaxation.bound(&self.running);
            }
        }
        self.passes += 1;
        for ((size, _), jobs) in self.sizes.iter().zip(&self.running) {
            self.bytes += time * jobs * super::weight(*size);
            self.taken += time * jobs * f64::from(*size);
        }
        self.time += time;
    }

    /// Least shares over time: of rings, and of two-level or tree orders.
    pub(super) fn shares(&self) -> [f64; 2] {
        let share = |crossing: f64| {
            if self.bytes > 0.0 {
                crossing / self.bytes
            } else {
                0.0
            }
        };
        self.crossing.map(share)
    }

    /// Occupied share of the hosts, over time.
    pub(super) fn occupied(&self) -> f64 {
        if self.time > 0.0 {
            self.taken / self.time / self.hosts.max(1) as f64
        } else {
            0.0
        }
    }
}

/// Sizes of the LA domains of each rail; rails that part the hosts alike are one, with their share as weight.
fn partitions(inventory: &Inventory) -> Vec<(Vec<usize>, f64)> {
    let rails = inventory.rooms().iter().map(|r| r.las.len()).min();
    let mut parts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for rail in 0..rails.unwrap_or(0) {
        let mut domains: BTreeMap<u32, usize> = BTreeMap::new();
        for room in inventory.rooms() {
            *domains.entry(room.las[rail]).or_default() += room.hosts.len();
        }
        let mut sizes: Vec<usize> = domains.into_values().collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        *parts.entry(sizes).or_default() += 1;
    }
    let all = rails.unwrap_or(0).max(1) as f64;
    parts
        .into_iter()
        .map(|(sizes, rails)| (sizes, rails as f64 / all))
        .collect()
}

/// In which order a job's hosts exchange.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Ring,
    Tree,
}

impl Order {
    /// Arrays that cross for each piece of a job of `hosts`, and for the job.
    fn cost(self, hosts: usize) -> (f64, f64) {
        match self {
            Self::Ring => (2.0 * (hosts as f64 - 1.0) / hosts as f64, 0.0),
            Self::Tree => (2.0, -2.0),
        }
    }
}

/// Prices of pieces, with what follows from them.
struct Prices {
    /// By hosts of a piece.
    of: Vec<f64>,
    /// What a job of each size pays.
    jobs: Vec<f64>,
    /// What all rooms earn.
    rooms: f64,
}

/// The bound for one way to part the hosts, and one order.
struct Relaxation {
    order: Order,
    /// Sizes of rooms, and how many there are.
    rooms: Vec<(usize, f64)>,
    /// Most hosts of a room.
    largest: usize,
    sizes: Vec<usize>,
    /// What each job must cross by itself.
    apart: Vec<f64>,
    known: Vec<Prices>,
}

impl Relaxation {
    /// `rooms` is the largest first.
    fn new(rooms: &[usize], sizes: &[usize], order: Order) -> Self {
        let mut count: BTreeMap<usize, f64> = BTreeMap::new();
        rooms
            .iter()
            .for_each(|size| *count.entry(*size).or_default() += 1.0);
        let apart = |size: &usize| {
            let mut left = *size;
            let used = rooms.iter().take_while(|room| {
                let more = left > 0;
                left = left.saturating_sub(**room);
                more
            });
            let (piece, base) = order.cost(*size);
            match used.count() {
                0 | 1 => 0.0,
                pieces => base + pieces as f64 * piece,
            }
        };
        Self {
            order,
            rooms: count.into_iter().collect(),
            largest: rooms.first().copied().unwrap_or(0),
            sizes: sizes.to_vec(),
            apart: sizes.iter().map(apart).collect(),
            known: Vec::new(),
        }
    }

    /// Arrays that the jobs must cross, so many of each size.
    fn bound(&self, running: &[f64]) -> f64 {
        let dot = |costs: &[f64]| costs.iter().zip(running).map(|(c, n)| c * n).sum::<f64>();
        let known = self.known.iter().map(|p| dot(&p.jobs) - p.rooms);
        known.fold(dot(&self.apart), f64::max)
    }

    /// Looks for better prices for these jobs.
    fn improve(&mut self, running: &[f64], steps: usize, step: f64) {
        let work = |size: &usize| size * size.min(&self.largest);
        let work = self.sizes.iter().map(work).sum::<usize>() + self.largest * self.largest;
        let value = |p: &Prices| {
            let jobs = p.jobs.iter().zip(running).map(|(c, n)| c * n);
            jobs.sum::<f64>() - p.rooms
        };
        let before = self.bound(running);
        let start = self
            .known
            .iter()
            .max_by(|a, b| value(a).total_cmp(&value(b)));
        let mut at = start.map_or_else(|| vec![0.0; self.largest + 1], |p| p.of.clone());
        let mut best: Option<(f64, Prices)> = None;
        for round in 0..steps.min(MOST_STEPS / work.max(1)) {
            let (prices, slope) = self.price(at.clone(), running);
            let now = value(&prices);
            let steep = slope.iter().map(|s| s * s).sum::<f64>().sqrt();
            if best.as_ref().is_none_or(|(most, _)| now > *most) {
                best = Some((now, prices));
            }
            if steep < 1e-9 {
                break;
            }
            let length = step / (1.0 + round as f64 / 10.0) / steep;
            for (price, slope) in at.iter_mut().zip(&slope) {
                *price = (*price + length * slope).max(0.0);
            }
        }
        if let Some((now, prices)) = best
            && now > before + 1e-3 * before.abs()
        {
            if self.known.len() >= MOST_PRICES {
                self.known.remove(0);
            }
            self.known.push(prices);
        }
    }

    /// What follows from prices: costs, and how many more pieces of each size jobs want than rooms hold.
    fn price(&self, of: Vec<f64>, running: &[f64]) -> (Prices, Vec<f64>) {
        let mut slope = vec![0.0; self.largest + 1];
        let mut jobs = Vec::with_capacity(self.sizes.len());
        for (size, count) in self.sizes.iter().zip(running) {
            jobs.push(self.cheapest_cut(&of, *size, |piece| slope[piece] += count));
        }
        // The dearest pieces that fit a room.
        let mut earns = vec![0.0; self.largest + 1];
        let mut last = vec![0; self.largest + 1];
        for hosts in 1..=self.largest {
            earns[hosts] = earns[hosts - 1];
            for piece in 1..=hosts {
                let with = earns[hosts - piece] + of[piece];
                if with > earns[hosts] + 1e-12 {
                    (earns[hosts], last[hosts]) = (with, piece);
                }
            }
        }
        let mut rooms = 0.0;
        for (size, count) in &self.rooms {
            rooms += count * earns[*size];
            let mut left = *size;
            while left > 0 {
                let piece = last[left];
                if piece > 0 {
                    slope[piece] -= count;
                }
                left -= piece.max(1);
            }
        }
        (Prices { of, jobs, rooms }, slope)
    }

    /// What a job of `size` hosts pays for its cheapest cut; `piece` is told each of its pieces.
    fn cheapest_cut(&self, of: &[f64], size: usize, mut piece: impl FnMut(usize)) -> f64 {
        let (each, base) = self.order.cost(size);
        let mut cost = vec![f64::INFINITY; size + 1];
        let mut last = vec![0; size + 1];
        cost[0] = base;
        for hosts in 1..=size {
            // A job in more pieces than one has none of its whole size.
            for one in (1..=hosts.min(self.largest)).filter(|one| *one < size) {
                let with = cost[hosts - one] + each + of[one];
                if with < cost[hosts] - 1e-12 {
                    (cost[hosts], last[hosts]) = (with, one);
                }
            }
        }
        if size <= self.largest && of[size] <= cost[size] {
            piece(size);
            return of[size];
        }
        let mut left = size;
        while left > 0 && last[left] > 0 {
            piece(last[left]);
            left -= last[left];
        }
        cost[size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Costs, Occupancy, Search};
    use proptest::prelude::*;

    #[test]
    fn two_jobs_that_each_fit_the_one_large_room_cannot_both_be_whole() {
        // By itself, each job of 4 crosses nothing. One of the two is cut into two pieces at least.
        let mut ring = Relaxation::new(&[4, 2, 2], &[4], Order::Ring);
        ring.improve(&[2.0], 2000, 0.5);
        assert!(
            (ring.bound(&[2.0]) - 3.0).abs() < 0.01,
            "{}",
            ring.bound(&[2.0])
        );
        let mut tree = Relaxation::new(&[4, 2, 2], &[4], Order::Tree);
        tree.improve(&[2.0], 2000, 0.5);
        assert!(
            (tree.bound(&[2.0]) - 2.0).abs() < 0.01,
            "{}",
            tree.bound(&[2.0])
        );
        assert!(tree.bound(&[1.0]).abs() < 0.01);
    }

    proptest! {
        /// Whatever prices are found: no placement crosses less.
        #[test]
        fn no_placement_is_below(
            rooms in proptest::collection::vec(1u32..9, 2..12),
            jobs in proptest::collection::vec(1usize..20, 1..10),
        ) {
            let inventory = Inventory::flat(&rooms);
            let mut occupancy = Occupancy::empty(inventory.hosts());
            let (mut ring, mut tree) = (0.0, 0.0);
            let mut placed: BTreeMap<usize, f64> = BTreeMap::new();
            let mut jobs = jobs;
            jobs.sort_unstable_by(|a, b| b.cmp(a));
            for (number, wanted) in (0..).zip(&jobs) {
                let search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
                let Some(found) = search.place(*wanted, None) else { continue };
                prop_assert!(occupancy.take(number, &found.hosts).is_ok());
                let cut = Cut::of(&inventory, &found.hosts);
                let bytes = 2.0 * (*wanted as f64 - 1.0);
                ring += bytes * cut.ring_share();
                tree += bytes * cut.tree_share();
                *placed.entry(*wanted).or_default() += 1.0;
            }
            let sizes: Vec<usize> = placed.keys().copied().collect();
            let running: Vec<f64> = placed.values().copied().collect();
            let mut rooms: Vec<usize> = rooms.iter().map(|r| *r as usize).collect();
            rooms.sort_unstable_by(|a, b| b.cmp(a));
            for (order, crossed) in [(Order::Ring, ring), (Order::Tree, tree)] {
                let mut relaxation = Relaxation::new(&rooms, &sizes, order);
                relaxation.improve(&running, 300, 0.3);
                prop_assert!(relaxation.bound(&running) <= crossed + 1e-9);
            }
        }
    }
}

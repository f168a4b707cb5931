//! One run under one policy.

use super::super::order::At;
use super::{Arrival, Contender, Outcome, Schedule, Setup, counted, weight};
use crate::placement::{
    Costs, Cut, Inventory, MOVE_PRICE, Occupancy, Policy, Resident, Search, best_relocation,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Byte-weighted sums.
#[derive(Default)]
struct Sums {
    bytes: f64,
    ring: f64,
    tree: f64,
    bound: f64,
    hosts: usize,
    jobs: usize,
    moved: usize,
    moves: usize,
}

/// A job that runs.
struct Run {
    hosts: Vec<u32>,
    start: f64,
}

pub(super) struct World<'a> {
    inventory: &'a Inventory,
    setup: &'a Setup,
    contender: Contender,
    arrivals: &'a [Arrival],
    seed: u64,
    occupancy: Occupancy,
    running: BTreeMap<usize, Run>,
    /// When jobs end.
    ends: BinaryHeap<Reverse<At<usize>>>,
    now: f64,
    /// Hosts that may be moved now.
    budget: f64,
    sums: Sums,
}

impl<'a> World<'a> {
    pub(super) fn new(
        inventory: &'a Inventory,
        setup: &'a Setup,
        contender: Contender,
        arrivals: &'a [Arrival],
        seed: u64,
    ) -> Self {
        let last = inventory.rooms().iter().flat_map(|r| &r.hosts).max();
        Self {
            inventory,
            setup,
            contender,
            arrivals,
            seed,
            occupancy: Occupancy::empty(last.map_or(0, |l| *l as usize + 1)),
            running: BTreeMap::new(),
            ends: BinaryHeap::new(),
            now: 0.0,
            budget: 0.0,
            sums: Sums::default(),
        }
    }

    /// Lets the jobs of the schedule come and go; `None` if `stop` says so.
    pub(super) fn replay(
        mut self,
        schedule: &Schedule,
        stop: &dyn Fn() -> bool,
    ) -> Option<Outcome> {
        for (done, batch) in schedule.starts.chunk_by(|a, b| a.0 == b.0).enumerate() {
            if done.is_multiple_of(32) && stop() {
                return None;
            }
            let Some((start, _)) = batch.first() else {
                continue;
            };
            while let Some(Reverse(At(end, job))) = self.ends.peek().copied()
                && end <= *start
            {
                self.ends.pop();
                self.now = end;
                self.end(job);
            }
            self.now = *start;
            let mut jobs: Vec<usize> = batch.iter().map(|(_, job)| *job).collect();
            if !matches!(self.contender, Contender::Policy(policy) if !policy.sees_queue()) {
                // Jobs that start at once may be placed in any order: large ones need the choice most.
                jobs.sort_by_key(|job| Reverse(self.arrivals[*job].hosts));
            }
            for job in jobs {
                self.place(job);
            }
        }
        Some(self.outcome())
    }

    fn end(&mut self, job: usize) {
        if let Some(run) = self.running.remove(&job) {
            self.occupancy.release(number(job), &run.hosts);
        }
        if self.contender == Contender::Defrag {
            self.defragment();
        }
    }

    fn place(&mut self, job: usize) {
        let arrival = self.arrivals[job];
        let Some(hosts) = self.choose(job) else {
            return;
        };
        if counted(job, self.arrivals.len()) {
            self.count(&arrival, &hosts);
        }
        let budget = self.budget + self.setup.moves * hosts.len() as f64;
        self.budget = budget.min(self.setup.moves * self.inventory.hosts() as f64);
        self.ends
            .push(Reverse(At(self.now + arrival.duration, job)));
        let limit = self.now + arrival.limit;
        let until = (self.contender != Contender::Blind).then_some(limit);
        let taken = self.occupancy.take_until(number(job), &hosts, until);
        debug_assert_eq!(taken, Ok(()), "policies choose free hosts");
        let start = self.now;
        self.running.insert(job, Run { hosts, start });
    }

    fn search(&self) -> Search<'a> {
        Search::new(self.inventory, &self.occupancy, Costs::default(), self.now)
    }

    fn choose(&self, job: usize) -> Option<Vec<u32>> {
        let arrival = self.arrivals[job];
        let wanted = arrival.hosts as usize;
        let limit = match self.contender {
            Contender::Policy(Policy::Meridian) | Contender::Defrag => Some(arrival.limit),
            Contender::Blind => None,
            Contender::Policy(policy) => {
                let seed = self.seed.wrapping_mul(1 << 32).wrapping_add(job as u64);
                return policy.choose(self.inventory, &self.occupancy, wanted, seed);
            }
        };
        self.search().place(wanted, limit).map(|found| found.hosts)
    }

    /// Moves running jobs while that is worth its price and the budget lasts.
    fn defragment(&mut self) {
        while self.budget >= 1.0 {
            let residents = self.running.iter().map(|(job, run)| {
                let limit = self.arrivals[*job].limit;
                let left = (run.start + limit - self.now).max(0.0);
                Resident {
                    job: number(*job),
                    hosts: &run.hosts,
                    left: Some(left),
                    share: left / limit,
                }
            });
            let most = self.budget as usize;
            let Some(best) = best_relocation(&mut self.search(), residents, MOVE_PRICE, most)
            else {
                return;
            };
            self.relocate(best.job as usize, best.hosts, best.moved);
        }
    }

    fn relocate(&mut self, job: usize, hosts: Vec<u32>, moved: usize) {
        let Some(run) = self.running.remove(&job) else {
            return;
        };
        let arrival = self.arrivals[job];
        self.budget -= moved as f64;
        if counted(job, self.arrivals.len()) {
            let [before, after] = [&run.hosts, &hosts].map(|h| Cut::of(self.inventory, h));
            let to_come = 1.0 - (self.now - run.start) / arrival.duration;
            let bytes = weight(arrival.hosts) * to_come;
            self.sums.ring += bytes * (after.ring_share() - before.ring_share());
            self.sums.tree += bytes * (after.tree_share() - before.tree_share());
            self.sums.moved += moved;
            self.sums.moves += 1;
        }
        let moved = self.occupancy.relocate(number(job), &run.hosts, &hosts);
        debug_assert_eq!(moved, Ok(()), "relocations are to free hosts");
        let start = run.start;
        self.running.insert(job, Run { hosts, start });
    }

    fn count(&mut self, arrival: &Arrival, hosts: &[u32]) {
        let wanted = arrival.hosts as usize;
        let Some(bound) = Cut::bound(self.inventory, &self.occupancy, wanted) else {
            return;
        };
        let cut = Cut::of(self.inventory, hosts);
        let bytes = weight(arrival.hosts);
        let sums = &mut self.sums;
        sums.bytes += bytes;
        sums.ring += bytes * cut.ring_share();
        sums.tree += bytes * cut.tree_share();
        sums.bound += bytes * bound.ring_share();
        sums.hosts += wanted;
        sums.jobs += 1;
    }

    fn outcome(self) -> Outcome {
        let sums = self.sums;
        let bytes = if sums.bytes > 0.0 { sums.bytes } else { 1.0 };
        Outcome {
            ring: sums.ring / bytes,
            tree: sums.tree / bytes,
            bound: sums.bound / bytes,
            moved: sums.moved as f64 / sums.hosts.max(1) as f64,
            moves: sums.moves as f64 / sums.jobs.max(1) as f64,
        }
    }
}

fn number(job: usize) -> u32 {
    u32::try_from(job).unwrap_or(u32::MAX)
}

//! Jobs that come and go: the placer and the rules of others on the same arrivals.
//!
//! # The experiment
//!
//! - Jobs arrive in a Poisson stream, their sizes drawn by weight, their durations exponential with mean 1.
//!   The rate is `load * hosts / mean size`, so that at load 1 the fabric would just be full.
//! - They wait in one queue. First in, first out by default: the head starts as soon as as many hosts are
//!   free as it wants. With backfill, any job that fits starts; or those that don't fit are turned away.
//!   None of this depends on *which* hosts are free, so under every policy the same jobs start and end at
//!   the same times, and only the places differ.
//! - Each job does one ring all-reduce of the same array per rank: `2 (N - 1) S` bytes over its N hosts,
//!   evenly over its run, of which its share crosses. Shares are weighted by these bytes, over the jobs that
//!   start after the first tenth. Rings are sorted for all policies alike: each domain is entered and left once.
//! - Every job states a time limit, which is its duration or up to `overstated` times that, as users do.
//!   The placer looks at them; no published rule of the others does. [`Contender::Blind`] is the placer
//!   without them.
//! - [`Contender::Defrag`] also moves running jobs, within a budget of hosts moved. A job that moves crosses
//!   from then on with the share of its new place.

use crate::placement::{Inventory, Policy};

mod packing;
mod setup;
mod world;

use packing::Packing;
use setup::Schedule;
pub use setup::{Arrival, Discipline, Setup, SetupError};

/// Who places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contender {
    /// One of the policies.
    Policy(Policy),
    /// The placer, not told when jobs will end.
    Blind,
    /// The placer, which also moves running jobs: after each end of a job, while a move is worth its price
    /// and the budget lasts.
    Defrag,
}

impl Contender {
    /// All, the placer and its variants first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Policy::NAMES
            .iter()
            .map(|(_, p)| Self::Policy(*p))
            .collect();
        all.splice(1..1, [Self::Blind, Self::Defrag]);
        all
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy(policy) => policy.name(),
            Self::Blind => "meridian-blind",
            Self::Defrag => "meridian-defrag",
        }
    }
}

/// What came of one run under one policy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Byte-weighted cross-LA share of rings.
    pub ring: f64,
    /// The same with two-level or tree orders.
    pub tree: f64,
    /// Ring share that the hosts which were free at each start would have allowed.
    pub bound: f64,
    /// Hosts that jobs were moved to, for each host that a job started on.
    pub moved: f64,
    /// Moves of jobs, for each job that started.
    pub moves: f64,
}

/// What is the same for every policy in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Ring share of the same jobs, each on an empty fabric.
    pub floor: f64,
    /// No placement of the jobs that run together has a smaller ring share, even if running jobs could be
    /// moved at any time at no cost.
    pub packing: f64,
    /// The same for two-level or tree orders.
    pub packing_tree: f64,
    /// Occupied share of the hosts, over time.
    pub occupied: f64,
    /// Time that jobs waited, as a share of the time that they ran, weighted by hosts.
    pub waited: f64,
    /// Jobs that started and were counted.
    pub started: usize,
    /// Jobs that were turned away, of those that would have been counted.
    pub rejected: usize,
}

/// Simulates one run. `stop` is asked now and then; if it says so, there is no outcome.
pub fn run(
    inventory: &Inventory,
    setup: &Setup,
    contender: Contender,
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> Option<Outcome> {
    let arrivals = setup.arrivals(inventory, seed);
    let schedule = Schedule::new(&arrivals, inventory.hosts(), setup.discipline);
    world::World::new(inventory, setup, contender, &arrivals, seed).replay(&schedule, stop)
}

/// What holds for every policy in the run with this seed.
#[must_use]
pub fn conditions(inventory: &Inventory, setup: &Setup, seed: u64) -> Conditions {
    let arrivals = setup.arrivals(inventory, seed);
    let schedule = Schedule::new(&arrivals, inventory.hosts(), setup.discipline);
    let is_counted = |job: usize| counted(job, arrivals.len());
    let mut packing = Packing::new(inventory, setup);
    let mut conditions = Conditions {
        rejected: schedule.rejected.iter().filter(|j| is_counted(**j)).count(),
        ..Conditions::default()
    };
    let (mut bytes, mut waited, mut ran) = (0.0, 0.0, 0.0);
    let mut changes: Vec<(f64, usize, bool)> = Vec::new();
    for (start, job) in &schedule.starts {
        let arrival = arrivals[*job];
        changes.push((*start, *job, true));
        changes.push((start + arrival.duration, *job, false));
        if is_counted(*job) {
            let (weight, hosts) = (weight(arrival.hosts), f64::from(arrival.hosts));
            bytes += weight;
            conditions.floor += weight * packing.floor(arrival.hosts);
            waited += hosts * (start - arrival.at);
            ran += hosts * arrival.duration;
            conditions.started += 1;
        }
    }
    changes.retain(|(at, _, _)| *at <= schedule.until);
    // What ends makes room for what starts at the same moment.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)).then(a.1.cmp(&b.1)));
    let first = schedule.starts.iter().find(|(_, job)| is_counted(*job));
    let mut last = first.map_or(f64::INFINITY, |(at, _)| *at);
    for (at, job, starts) in changes {
        if at > last {
            packing.pass(at - last);
            last = at;
        }
        packing.change(arrivals[job].hosts, starts);
    }
    let or_one = |sum: f64| if sum > 0.0 { sum } else { 1.0 };
    conditions.floor /= or_one(bytes);
    conditions.waited = waited / or_one(ran);
    [conditions.packing, conditions.packing_tree] = packing.shares();
    conditions.occupied = packing.occupied();
    conditions
}

/// Whether a job is of those that count: the first tenth fill the fabric.
fn counted(job: usize, jobs: usize) -> bool {
    job * 10 >= jobs
}

/// Bytes of a job in arrays.
fn weight(hosts: u32) -> f64 {
    2.0 * (f64::from(hosts) - 1.0)
}

#[cfg(test)]
mod tests;

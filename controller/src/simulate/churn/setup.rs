//! What is simulated: jobs by size, time and limit, and the queue that they wait in.

use super::super::order::At;
use crate::placement::Inventory;
use rand::{Rng, RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What becomes of jobs that don't fit at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// They wait, and nobody overtakes.
    Fifo,
    /// They wait, and whoever fits overtakes.
    Backfill,
    /// They go away.
    Reject,
}

impl Discipline {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("fifo", Self::Fifo),
        ("backfill", Self::Backfill),
        ("reject", Self::Reject),
    ];
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Hosts that jobs ask for on average, as a share of all.
    pub load: f64,
    /// Sizes of jobs in hosts, and their weights.
    pub sizes: Vec<(u32, u32)>,
    /// Jobs that arrive in a run.
    pub jobs: usize,
    /// What becomes of those that don't fit.
    pub discipline: Discipline,
    /// Time limits are between 1 and this many times the duration.
    pub overstated: f64,
    /// Hosts that a policy which moves running jobs may move, for each host that a job starts on.
    pub moves: f64,
}

/// Why a setup can't be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SetupError {
    /// The load is not a share that can be.
    #[error("load {0} is not above 0 and at most 2")]
    Load(f64),
    /// No sizes, or one is zero, or no weight.
    #[error("sizes must be above 0 and at least one weight too")]
    Sizes,
    /// A size does not fit the fabric.
    #[error("a job of {size} hosts is larger than the fabric, which has {hosts}")]
    TooLarge {
        /// The size.
        size: u32,
        /// Hosts there are.
        hosts: usize,
    },
    /// No share.
    #[error("moves {0} is not 0 or above")]
    Moves(f64),
    /// Limits below durations.
    #[error("limits are at least as long as the job: {0} times is less")]
    Overstated(f64),
}

impl Setup {
    /// Checks it against the fabric.
    ///
    /// # Errors
    /// What of it can't be.
    pub fn check(&self, inventory: &Inventory) -> Result<(), SetupError> {
        if !(self.load > 0.0 && self.load <= 2.0) {
            return Err(SetupError::Load(self.load));
        }
        let weight: u64 = self.sizes.iter().map(|(_, w)| u64::from(*w)).sum();
        if weight == 0 || self.sizes.iter().any(|(size, _)| *size == 0) {
            return Err(SetupError::Sizes);
        }
        let hosts = inventory.hosts();
        if let Some((size, _)) = self.sizes.iter().find(|(size, _)| *size as usize > hosts) {
            return Err(SetupError::TooLarge { size: *size, hosts });
        }
        if self.overstated.is_nan() || self.overstated < 1.0 {
            return Err(SetupError::Overstated(self.overstated));
        }
        if self.moves.is_nan() || self.moves < 0.0 {
            return Err(SetupError::Moves(self.moves));
        }
        Ok(())
    }

    /// The jobs of a run, by order of arrival.
    #[must_use]
    pub fn arrivals(&self, inventory: &Inventory, seed: u64) -> Vec<Arrival> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let weight: u32 = self.sizes.iter().map(|(_, w)| w).sum();
        let sum: f64 = self
            .sizes
            .iter()
            .map(|(n, w)| f64::from(*n) * f64::from(*w))
            .sum();
        let rate = self.load * inventory.hosts() as f64 * f64::from(weight) / sum;
        let mut at = 0.0;
        let one = |_| {
            at += exponential(&mut rng) / rate;
            let mut draw = rng.random_range(0..weight);
            let size = self.sizes.iter().find(|(_, w)| {
                let hit = draw < *w;
                draw = draw.saturating_sub(*w);
                hit
            });
            let duration = exponential(&mut rng);
            let limit = duration * rng.random_range(1.0..=self.overstated);
            Arrival {
                at,
                hosts: size.map_or(1, |(n, _)| *n),
                duration,
                limit,
            }
        };
        (0..self.jobs).map(one).collect()
    }
}

fn exponential(rng: &mut impl Rng) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

/// A job that arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When.
    pub at: f64,
    /// Hosts that it wants.
    pub hosts: u32,
    /// How long it will run.
    pub duration: f64,
    /// How long it says that it will run at most.
    pub limit: f64,
}

/// When jobs start, which is the same whoever places them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Schedule {
    /// Jobs that start, by time, and their order of arrival.
    pub(super) starts: Vec<(f64, usize)>,
    /// Jobs that were turned away.
    pub(super) rejected: Vec<usize>,
    /// When the run ends: with the last arrival. What follows would be a fabric that empties.
    pub(super) until: f64,
}

impl Schedule {
    /// Of `arrivals` on `hosts` hosts.
    pub(super) fn new(arrivals: &[Arrival], hosts: usize, discipline: Discipline) -> Self {
        let mut schedule = Self {
            starts: Vec::new(),
            rejected: Vec::new(),
            until: arrivals.last().map_or(0.0, |job| job.at),
        };
        let mut free = hosts;
        let mut ends: BinaryHeap<Reverse<At<usize>>> = BinaryHeap::new();
        let mut queue: VecDeque<usize> = VecDeque::new();
        let mut next = 0;
        while let Some(arrival) = arrivals.get(next) {
            let end = ends.peek().map(|Reverse(At(end, job))| (*end, *job));
            let now = if let Some((end, job)) = end.filter(|(end, _)| *end < arrival.at) {
                ends.pop();
                free += arrivals[job].hosts as usize;
                end
            } else {
                queue.push_back(next);
                next += 1;
                arrival.at
            };
            let mut waiting = VecDeque::new();
            while let Some(job) = queue.pop_front() {
                let wanted = arrivals[job].hosts as usize;
                if wanted <= free {
                    free -= wanted;
                    schedule.starts.push((now, job));
                    ends.push(Reverse(At(now + arrivals[job].duration, job)));
                } else if discipline == Discipline::Reject {
                    schedule.rejected.push(job);
                } else {
                    waiting.push_back(job);
                    if discipline == Discipline::Fifo {
                        break;
                    }
                }
            }
            waiting.append(&mut queue);
            queue = waiting;
        }
        schedule
    }
}

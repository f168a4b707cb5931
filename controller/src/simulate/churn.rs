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
//!   of which its share crosses. Shares are weighted by these bytes, over the jobs that start after the
//!   first tenth. Rings are sorted for all policies alike: each domain is entered and left once.
//! - Every job states a time limit, which is its duration or up to `overstated` times that, as users do.
//!   The placer looks at them; no published rule of the others does. [`Contender::Blind`] is the placer
//!   without them.

use super::order::At;
use crate::placement::{Costs, Cut, Inventory, Occupancy, Policy, Search};
use rand::{Rng, RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

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

/// Who places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contender {
    /// One of the policies.
    Policy(Policy),
    /// The placer, not told when jobs will end.
    Blind,
}

impl Contender {
    /// All, the placer first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Policy::NAMES
            .iter()
            .map(|(_, p)| Self::Policy(*p))
            .collect();
        all.insert(1, Self::Blind);
        all
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy(policy) => policy.name(),
            Self::Blind => "meridian-blind",
        }
    }
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

/// What came of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Byte-weighted cross-LA share of rings.
    pub ring: f64,
    /// The same with two-level or tree orders.
    pub tree: f64,
    /// Ring share that the hosts which were free at each start would have allowed.
    pub bound: f64,
    /// Ring share of the same jobs, each on an empty fabric.
    pub floor: f64,
    /// Least ring share of all that ran at the same time, averaged over time: the larger jobs need as many
    /// leaves as hold all their hosts together, even if running jobs could be moved.
    pub packing: f64,
    /// Occupied share of the hosts, over time.
    pub occupied: f64,
    /// Jobs that started and were counted.
    pub started: usize,
    /// Jobs that were turned away.
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
    let mut world = World::new(inventory, setup, contender, &arrivals, seed);
    let mut next = 0;
    // The run ends with the last arrival: what follows would be a fabric that empties.
    while let Some(job) = arrivals.get(next) {
        if next.is_multiple_of(64) && stop() {
            return None;
        }
        match world.next_end().filter(|end| *end < job.at) {
            Some(end) => {
                world.advance(end);
                world.end();
            }
            None => {
                world.advance(job.at);
                world.queue.push_back(next);
                next += 1;
            }
        }
        world.start();
    }
    Some(world.outcome())
}

/// Byte-weighted sums.
#[derive(Default)]
struct Sums {
    bytes: f64,
    ring: f64,
    tree: f64,
    bound: f64,
    floor: f64,
    started: usize,
}

struct World<'a> {
    inventory: &'a Inventory,
    setup: &'a Setup,
    contender: Contender,
    arrivals: &'a [Arrival],
    seed: u64,
    occupancy: Occupancy,
    hosts: Vec<Vec<u32>>,
    /// When jobs end.
    ends: BinaryHeap<Reverse<At<usize>>>,
    queue: VecDeque<usize>,
    free: usize,
    now: f64,
    sums: Sums,
    rejected: usize,
    packing: Packing,
    floors: BTreeMap<u32, Cut>,
}

impl<'a> World<'a> {
    fn new(
        inventory: &'a Inventory,
        setup: &'a Setup,
        contender: Contender,
        arrivals: &'a [Arrival],
        seed: u64,
    ) -> Self {
        let last = inventory.rooms().iter().flat_map(|r| &r.hosts).max();
        let floors: BTreeMap<u32, Cut> = setup
            .sizes
            .iter()
            .filter_map(|(size, _)| Some((*size, Cut::floor(inventory, *size as usize)?)))
            .collect();
        Self {
            inventory,
            setup,
            contender,
            arrivals,
            seed,
            occupancy: Occupancy::empty(last.map_or(0, |l| *l as usize + 1)),
            hosts: vec![Vec::new(); arrivals.len()],
            ends: BinaryHeap::new(),
            queue: VecDeque::new(),
            free: inventory.hosts(),
            now: 0.0,
            sums: Sums::default(),
            rejected: 0,
            packing: Packing::new(inventory, setup),
            floors,
        }
    }

    fn next_end(&self) -> Option<f64> {
        self.ends.peek().map(|Reverse(end)| end.0)
    }

    fn counted(&self, job: usize) -> bool {
        job * 10 >= self.arrivals.len()
    }

    fn advance(&mut self, to: f64) {
        if self.sums.started > 0 {
            self.packing.pass(to - self.now);
        }
        self.now = to;
    }

    fn end(&mut self) {
        if let Some(Reverse(At(_, job))) = self.ends.pop() {
            let hosts = std::mem::take(&mut self.hosts[job]);
            self.occupancy.release(number(job), &hosts);
            self.free += hosts.len();
            self.packing.change(self.arrivals[job].hosts, false);
        }
    }

    /// Starts what can start, by the queue's discipline.
    fn start(&mut self) {
        let mut batch = Vec::new();
        let mut free = self.free;
        let mut waiting = VecDeque::new();
        while let Some(job) = self.queue.pop_front() {
            let wanted = self.arrivals[job].hosts as usize;
            if wanted <= free {
                free -= wanted;
                batch.push(job);
            } else if self.setup.discipline == Discipline::Reject {
                self.rejected += usize::from(self.counted(job));
            } else {
                waiting.push_back(job);
                if self.setup.discipline == Discipline::Fifo {
                    break;
                }
            }
        }
        waiting.append(&mut self.queue);
        self.queue = waiting;
        if !matches!(self.contender, Contender::Policy(policy) if !policy.sees_queue()) {
            // Jobs that start at once may be placed in any order: large ones need the choice most.
            batch.sort_by_key(|job| Reverse(self.arrivals[*job].hosts));
        }
        for job in batch {
            self.place(job);
        }
    }

    fn place(&mut self, job: usize) {
        let arrival = self.arrivals[job];
        let wanted = arrival.hosts as usize;
        let Some(hosts) = self.choose(job) else {
            return;
        };
        if self.counted(job) {
            self.count(&arrival, wanted, &hosts);
        }
        let limit = self.now + arrival.limit;
        let until = (self.contender != Contender::Blind).then_some(limit);
        if self
            .occupancy
            .take_until(number(job), &hosts, until)
            .is_ok()
        {
            self.free -= hosts.len();
            self.ends
                .push(Reverse(At(self.now + arrival.duration, job)));
            self.packing.change(arrival.hosts, true);
            self.hosts[job] = hosts;
        }
    }

    fn choose(&self, job: usize) -> Option<Vec<u32>> {
        let arrival = self.arrivals[job];
        let wanted = arrival.hosts as usize;
        let search = || Search::new(self.inventory, &self.occupancy, Costs::default(), self.now);
        let limit = match self.contender {
            Contender::Policy(Policy::Meridian) => Some(arrival.limit),
            Contender::Blind => None,
            Contender::Policy(policy) => {
                let seed = self.seed.wrapping_mul(1 << 32).wrapping_add(job as u64);
                return policy.choose(self.inventory, &self.occupancy, wanted, seed);
            }
        };
        search().place(wanted, limit).map(|found| found.hosts)
    }

    fn count(&mut self, arrival: &Arrival, wanted: usize, hosts: &[u32]) {
        let bound = Cut::bound(self.inventory, &self.occupancy, wanted);
        let (Some(bound), Some(floor)) = (bound, self.floors.get(&arrival.hosts)) else {
            return;
        };
        let cut = Cut::of(self.inventory, hosts);
        let bytes = 2.0 * (wanted as f64 - 1.0);
        let sums = &mut self.sums;
        sums.bytes += bytes;
        sums.ring += bytes * cut.ring_share();
        sums.tree += bytes * cut.tree_share();
        sums.bound += bytes * bound.ring_share();
        sums.floor += bytes * floor.ring_share();
        sums.started += 1;
    }

    fn outcome(self) -> Outcome {
        let bytes = if self.sums.bytes > 0.0 {
            self.sums.bytes
        } else {
            1.0
        };
        Outcome {
            ring: self.sums.ring / bytes,
            tree: self.sums.tree / bytes,
            bound: self.sums.bound / bytes,
            floor: self.sums.floor / bytes,
            packing: self.packing.share(),
            occupied: self.packing.occupied(),
            started: self.sums.started,
            rejected: self.rejected,
        }
    }
}

fn number(job: usize) -> u32 {
    u32::try_from(job).unwrap_or(u32::MAX)
}

/// What any placement of the jobs that run together must cross.
struct Packing {
    /// Hosts of the `i` largest rooms together, by `i`.
    sums: Vec<usize>,
    hosts: usize,
    /// Crossings and bytes of a job of each size, by itself; 0 crossings if it fits one room.
    floors: BTreeMap<u32, usize>,
    running: BTreeMap<u32, usize>,
    crossing: f64,
    bytes: f64,
    taken: f64,
    time: f64,
}

impl Packing {
    fn new(inventory: &Inventory, setup: &Setup) -> Self {
        let mut sizes: Vec<usize> = inventory.rooms().iter().map(|r| r.hosts.len()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let mut sums = vec![0];
        for size in sizes {
            sums.push(sums[sums.len() - 1] + size);
        }
        let rooms = |size: u32| sums.partition_point(|sum| *sum < size as usize);
        let floors = setup.sizes.iter().map(|(size, _)| (*size, rooms(*size)));
        Self {
            floors: floors.collect(),
            hosts: inventory.hosts(),
            sums,
            running: BTreeMap::new(),
            crossing: 0.0,
            bytes: 0.0,
            taken: 0.0,
            time: 0.0,
        }
    }

    fn change(&mut self, size: u32, starts: bool) {
        let count = self.running.entry(size).or_default();
        *count = if starts {
            *count + 1
        } else {
            count.saturating_sub(1)
        };
    }

    fn pass(&mut self, time: f64) {
        let (mut bytes, mut apart, mut together, mut taken) = (0.0, 0.0, 0, 0);
        let mut least = f64::INFINITY;
        for (size, count) in self.running.iter().filter(|(_, count)| **count > 0) {
            let (n, jobs) = (f64::from(*size), *count as f64);
            // A crossing of a ring of n carries 2 (n - 1) / n arrays.
            let each = 2.0 * (n - 1.0) / n;
            bytes += jobs * n * each;
            taken += count * *size as usize;
            let rooms = self.floors.get(size).copied().unwrap_or(0);
            if rooms > 1 {
                apart += jobs * rooms as f64 * each;
                together += count * *size as usize;
                least = least.min(each);
            }
        }
        let rooms = self.sums.partition_point(|sum| *sum < together);
        let packed = if together > 0 {
            rooms as f64 * least
        } else {
            0.0
        };
        self.crossing += time * apart.max(packed);
        self.bytes += time * bytes;
        self.taken += time * taken as f64;
        self.time += time;
    }

    fn share(&self) -> f64 {
        if self.bytes > 0.0 {
            self.crossing / self.bytes
        } else {
            0.0
        }
    }

    fn occupied(&self) -> f64 {
        if self.time > 0.0 {
            self.taken / self.time / self.hosts.max(1) as f64
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests;

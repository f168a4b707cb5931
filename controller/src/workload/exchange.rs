//! What a job's ranks exchange in one iteration, whatever host they are on.

use super::grid::{Grid, Over};
use super::job::{Algorithm, Job};

/// A communication operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Everybody ends with the sum of all arrays.
    AllReduce,
    /// Everybody ends with its part of the sum.
    ReduceScatter,
    /// Everybody ends with all parts.
    AllGather,
    /// Everybody sends a different part to everybody else.
    AllToAll,
    /// Each stage to the next, and back.
    Pipeline,
}

impl Operation {
    /// All operations, with their names in job files.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("all-reduce", Self::AllReduce),
        ("reduce-scatter", Self::ReduceScatter),
        ("all-gather", Self::AllGather),
        ("all-to-all", Self::AllToAll),
        ("pipeline", Self::Pipeline),
    ];

    /// The name in job files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// One kind of traffic: an operation that groups of ranks repeat in every iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What it is for: `gradients`, `activations`...
    pub name: String,
    /// The operation.
    pub operation: Operation,
    /// Which ranks take part together.
    pub over: Over,
    /// How an all-reduce, reduce-scatter or all-gather runs.
    pub algorithm: Algorithm,
    /// Bytes per rank and operation: the whole array of an all-reduce, reduce-scatter or all-gather; all
    /// that a rank hands to an all-to-all, its own part included; the message of a pipeline.
    pub bytes: u64,
    /// Operations in one iteration. A pipeline sends this many messages forward and as many back over
    /// every boundary.
    pub times: u64,
    /// Times per iteration that a pipeline's last stage sends to its first, and back (interleaved stages).
    pub wraps: u64,
    /// Whether an all-to-all first gathers, inside the host, what goes to a rail and sends it on that
    /// rail (PXN). Otherwise each rank sends from its own NIC, across rails.
    pub rail_aligned: bool,
    /// Share of its time that hides behind computing, in millionths.
    pub overlap_ppm: u32,
}

impl Exchange {
    /// An operation once per iteration, by ring, hidden behind nothing.
    #[must_use]
    pub fn new(name: &str, operation: Operation, over: Over, bytes: u64) -> Self {
        Self {
            name: name.to_owned(),
            operation,
            over,
            algorithm: Algorithm::Ring,
            bytes,
            times: 1,
            wraps: 0,
            rail_aligned: true,
            overlap_ppm: 0,
        }
    }
}

impl Exchange {
    /// The algorithm's name; `direct` where everybody sends straight to whom it is for.
    #[must_use]
    pub fn algorithm_name(&self) -> &'static str {
        match self.operation {
            Operation::AllToAll | Operation::Pipeline => "direct",
            _ => self.algorithm.name(),
        }
    }
}

/// A job as the planner sees it: ranks on hosts and what they exchange. The first `ranks_per_host` ranks
/// share the first host slot, and so on; which host of a fabric a slot is, placement decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The layout of ranks.
    pub grid: Grid,
    /// Ranks, one per GPU, on each host.
    pub ranks_per_host: u32,
    /// Ranks in a row whose GPUs share a scale-up domain (NVLink); may span hosts.
    pub scale_up: u32,
    /// Rings or trees in parallel in each group that has several members on a host; `None`: one per
    /// member on a host.
    pub channels: Option<u32>,
    /// Share of what a host exchanges inside its scale-up domain that is sent through its NICs instead,
    /// in millionths.
    pub offload_ppm: u32,
    /// Time that an iteration computes, ns; 0 where it is not known.
    pub compute_ns: u64,
    /// What is exchanged.
    pub exchanges: Vec<Exchange>,
}

impl Workload {
    /// Host slots.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.grid.world_size().div_ceil(self.ranks_per_host.max(1))
    }

    /// The host slot of a rank.
    #[must_use]
    pub fn slot(&self, rank: u32) -> u32 {
        rank / self.ranks_per_host.max(1)
    }

    /// Whether two ranks reach each other without a NIC.
    #[must_use]
    pub fn inside(&self, a: u32, b: u32) -> bool {
        a / self.scale_up.max(1) == b / self.scale_up.max(1) || self.slot(a) == self.slot(b)
    }
}

impl From<&Job> for Workload {
    /// A job of one collective over all its ranks.
    fn from(job: &Job) -> Self {
        let ranks = job.hosts * job.ranks_per_host;
        let mut exchange = Exchange::new(
            "all-reduce",
            Operation::AllReduce,
            Over::World,
            job.collective.bytes_per_rank,
        );
        exchange.algorithm = job.collective.algorithm;
        exchange.times = job.collective.iterations.into();
        Self {
            name: job.name.clone(),
            grid: Grid::flat(ranks),
            ranks_per_host: job.ranks_per_host,
            scale_up: job.ranks_per_host,
            channels: Some(job.collective.channels),
            offload_ppm: 0,
            compute_ns: 0,
            exchanges: vec![exchange],
        }
    }
}

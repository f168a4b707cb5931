//! What `meridian place` prints, as values.

use controller::placement::Move;
use serde::Serialize;

use super::occupied::Occupied;
use super::paths::PathsReport;
use super::state::State;

/// Everything.
#[derive(Debug, Serialize)]
pub(super) struct PlaceReport {
    pub(super) topology: String,
    pub(super) policy: &'static str,
    pub(super) free_after: usize,
    pub(super) taken_after: usize,
    pub(super) drained: usize,
    pub(super) jobs: Vec<JobReport>,
    /// Moves of running jobs that would make them cross less, if asked for.
    pub(super) moves: Option<Vec<MoveReport>>,
    /// The policies over all jobs together, if they were compared.
    pub(super) compared: Vec<Total>,
    /// What is taken now, as `--occupied` reads it.
    pub(super) occupied: Occupied,
}

/// A policy's choices for all jobs together.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Total {
    pub(super) policy: &'static str,
    /// Cross-LA share of all bytes, and the least.
    pub(super) share: f64,
    pub(super) bound: f64,
    /// Worst of all jobs: busiest uplink of a leaf over the mean; busiest link over its bound.
    pub(super) max_over_mean: Option<f64>,
    pub(super) busiest_over_bound: Option<f64>,
    /// Mean over the jobs: time of an iteration's bytes over the time that NICs alone would need.
    pub(super) slow_down: Option<f64>,
    pub(super) slow_down_hashed: Option<f64>,
}

/// Sums up by policy.
pub(super) fn totals(jobs: &[JobReport]) -> Vec<Total> {
    let Some(first) = jobs.first() else {
        return Vec::new();
    };
    let one = |policy: &'static str| {
        let mine = || {
            let all = jobs.iter();
            all.filter_map(move |j| Some((j, j.compare.iter().find(|c| c.policy == policy)?)))
        };
        let sent = jobs
            .iter()
            .map(|j| j.sent_bytes as f64)
            .sum::<f64>()
            .max(1.0);
        let weighted = |of: &dyn Fn(&CompareReport) -> f64| {
            mine()
                .map(|(j, c)| of(c) * j.sent_bytes as f64)
                .sum::<f64>()
                / sent
        };
        let paths = |of: fn(&PathsReport) -> f64| -> Option<Vec<f64>> {
            mine().map(|(_, c)| c.paths.as_ref().map(of)).collect()
        };
        let worst = |of| paths(of).map(|all| all.into_iter().fold(1.0, f64::max));
        let mean = |of| paths(of).map(|all| all.iter().sum::<f64>() / all.len().max(1) as f64);
        Total {
            policy,
            share: weighted(&|c| c.share),
            bound: weighted(&|c| c.bound),
            max_over_mean: worst(|p| p.max_over_mean),
            busiest_over_bound: worst(|p| p.busiest_over_bound),
            slow_down: mean(|p| p.slow_down),
            slow_down_hashed: mean(|p| p.slow_down_hashed),
        }
    };
    first.compare.iter().map(|c| one(c.policy)).collect()
}

/// One job.
#[derive(Clone, Debug, Serialize)]
pub(super) struct JobReport {
    pub(super) name: String,
    /// By host slot: the first has ranks 0 to `ranks_per_host - 1`.
    pub(super) hosts: Vec<String>,
    pub(super) ranks_per_host: u32,
    /// NICs of each host that are used.
    pub(super) rails: usize,
    /// Cross-LA share of what its NICs send in an iteration; the least with what is free, whatever hosts and
    /// order; and the least on an idle fabric.
    pub(super) share: f64,
    pub(super) bound: f64,
    pub(super) floor: f64,
    pub(super) sent_bytes: u64,
    pub(super) crossing_bytes: u64,
    pub(super) crossing_segments_bytes: u64,
    pub(super) crossing_pods_bytes: u64,
    pub(super) crossing_buildings_bytes: u64,
    /// Share of one ring over all its hosts: here, at best with what is free, at best on an idle fabric.
    pub(super) ring_share: f64,
    pub(super) ring_bound: f64,
    pub(super) ring_floor: f64,
    /// Share of a two-level or tree order over all its hosts.
    pub(super) tree_share: f64,
    /// Parallel dimensions as hosts count through them, outermost first.
    pub(super) dimensions: Vec<String>,
    pub(super) leaves: usize,
    pub(super) leaves_least: usize,
    pub(super) leaves_idle: usize,
    /// What it costs later jobs, in crossings of a ring.
    pub(super) lost: Option<f64>,
    pub(super) rooms: Vec<RoomReport>,
    pub(super) improve: Vec<MoveReport>,
    pub(super) compare: Vec<CompareReport>,
    /// Its flows on the fabric, if asked for.
    pub(super) paths: Option<PathsReport>,
    /// Seconds until it ends at the latest, if it says so.
    pub(super) left_s: Option<f64>,
    /// Time that choosing took.
    pub(super) took_ms: f64,
}

/// Hosts of a job under one leaf (or row of leaves).
#[derive(Clone, Debug, Serialize)]
pub(super) struct RoomReport {
    /// LA domain of the first rail.
    pub(super) la: String,
    pub(super) hosts: usize,
    pub(super) free_before: usize,
    pub(super) size: usize,
    /// Jobs that run there too.
    pub(super) shared_with: usize,
}

/// What another policy would choose.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CompareReport {
    pub(super) policy: &'static str,
    pub(super) share: f64,
    pub(super) bound: f64,
    pub(super) crossing_bytes: u64,
    pub(super) ring_share: f64,
    pub(super) leaves: usize,
    pub(super) segments: usize,
    pub(super) pods: usize,
    pub(super) paths: Option<PathsReport>,
}

/// A running job that would move.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MoveReport {
    pub(super) job: String,
    pub(super) to: Vec<String>,
    pub(super) moved_hosts: usize,
    pub(super) share_before: f64,
    pub(super) share_after: f64,
    /// Ring share of the job that is placed, after the move.
    pub(super) newcomer_share: Option<f64>,
}

impl MoveReport {
    /// With names.
    pub(super) fn new(state: &State<'_>, one: &Move) -> Self {
        Self {
            job: state.job_name(one.job).to_owned(),
            to: one.to.iter().map(|h| state.host(*h).to_owned()).collect(),
            moved_hosts: one.moved,
            share_before: one.share[0],
            share_after: one.share[1],
            newcomer_share: one.newcomer,
        }
    }
}

//! `meridian simulate churn`: the placer and the rules of others on the same arrivals.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use controller::placement::Inventory;
use controller::simulate::churn::{
    Conditions, Contender, Outcome, Setup, conditions, run as simulate,
};
use serde::Serialize;

use super::churn_args::ChurnArgs;
use super::{churn_plot, churn_table};
use crate::args::Format;
use crate::failure::Failure;
use crate::output::Progress;
use crate::{input, output};

/// Everything that came out.
#[derive(Debug, Serialize)]
pub(crate) struct ChurnReport {
    pub(crate) topology: String,
    pub(crate) hosts: usize,
    /// Sets of hosts that share all their leaves.
    pub(crate) rooms: usize,
    pub(crate) rails: usize,
    pub(crate) queue: String,
    pub(crate) sizes: Vec<(u32, u32)>,
    pub(crate) jobs: usize,
    pub(crate) seeds: Vec<u64>,
    pub(crate) overstated: f64,
    /// Hosts that `meridian-defrag` may move to, for each host that a job starts on.
    pub(crate) moves: f64,
    pub(crate) loads: Vec<LoadReport>,
}

/// One load.
#[derive(Debug, Serialize)]
pub(crate) struct LoadReport {
    pub(crate) load: f64,
    /// Occupied share of the hosts, over time.
    pub(crate) occupied: Spread,
    /// Jobs that were turned away, as a share of those that arrived.
    pub(crate) rejected: f64,
    /// Time that jobs waited over the time that they ran, weighted by hosts. Alike for all policies.
    pub(crate) waited: Spread,
    /// The same jobs' ring share on an empty fabric.
    pub(crate) floor: Spread,
    /// No placement of the jobs that run together has a smaller ring share, even if running jobs could move
    /// at any time.
    pub(crate) packing: Spread,
    /// The same for two-level or tree orders.
    pub(crate) packing_tree: Spread,
    pub(crate) policies: Vec<PolicyReport>,
}

/// One policy at one load.
#[derive(Debug, Serialize)]
pub(crate) struct PolicyReport {
    pub(crate) name: &'static str,
    /// Byte-weighted cross-LA share of rings.
    pub(crate) ring: Spread,
    /// The same with two-level or tree orders.
    pub(crate) tree: Spread,
    /// Ring share that the hosts free at each start would have allowed.
    pub(crate) bound: Spread,
    /// What holds for all policies of this load, again beside each.
    pub(crate) floor: f64,
    pub(crate) packing: f64,
    pub(crate) waited: f64,
    /// Hosts that running jobs were moved to, for each host that a job started on.
    pub(crate) moved: Spread,
    /// Moves, for each job that started.
    pub(crate) moves: Spread,
    /// Mean ring share over that of Slurm's rule.
    pub(crate) over_slurm: Option<f64>,
    /// Mean ring share minus the floor, in percentage points.
    pub(crate) above_floor_points: f64,
    /// Mean ring share over the floor.
    pub(crate) over_floor: f64,
    /// Mean ring share over what no placement is below.
    pub(crate) over_packing: f64,
    /// Mean two-level share over the rings' floor.
    pub(crate) tree_over_floor: f64,
}

/// A figure over the seeds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// Standard deviation between seeds.
    pub(crate) sd: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) per_seed: Vec<f64>,
}

impl Spread {
    fn of(per_seed: Vec<f64>) -> Self {
        let n = per_seed.len().max(1) as f64;
        let mean = per_seed.iter().sum::<f64>() / n;
        let squares: f64 = per_seed.iter().map(|x| (x - mean).powi(2)).sum();
        Self {
            mean,
            sd: (squares / (n - 1.0).max(1.0)).sqrt(),
            min: per_seed.iter().copied().fold(f64::INFINITY, f64::min),
            max: per_seed.iter().copied().fold(0.0, f64::max),
            per_seed,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &ChurnArgs) -> Result<(), Failure> {
    let topology = input::topology(&args.topology)?;
    let fewest = topology
        .hosts()
        .iter()
        .map(|h| h.nics().len())
        .min()
        .unwrap_or(0);
    let rails = args.rails.unwrap_or(fewest).max(1);
    let inventory = Inventory::new(&topology, rails, 0);
    if inventory.hosts() == 0 {
        return Err(Failure::Input(format!(
            "error: --rails {rails}: no host has as many NICs"
        )));
    }
    let contenders = args.contenders()?;
    let mut cases = Vec::new();
    for load in &args.load {
        let setup = args.setup(*load)?;
        setup
            .check(&inventory)
            .map_err(|error| Failure::Input(format!("error: {error}")))?;
        cases.push(setup);
    }
    let seeds: Vec<u64> = (0..u64::from(args.seeds))
        .map(|i| args.seed.wrapping_add(i))
        .collect();
    let progress = Progress::new(args.format == Format::Json);
    let stopped = stop_on_signal()?;
    let common: Vec<(&Setup, u64)> = cases
        .iter()
        .flat_map(|setup| seeds.iter().map(move |seed| (setup, *seed)))
        .collect();
    progress.stage(format!("bounds of {} runs", common.len()));
    let common = in_parallel(&common, |(setup, seed)| {
        let stop = stopped.load(Ordering::Relaxed);
        (!stop).then(|| conditions(&inventory, setup, *seed))
    })?;
    let outcomes = simulate_all(&inventory, &cases, &contenders, &seeds, &progress, stopped)?;
    progress.finish();
    let per_load = contenders.len() * seeds.len();
    let loads = cases
        .iter()
        .zip(outcomes.chunks(per_load).zip(common.chunks(seeds.len())))
        .map(|(setup, (outcomes, common))| load_report(setup, &contenders, outcomes, common))
        .collect();
    let report = ChurnReport {
        topology: topology.name().to_owned(),
        hosts: inventory.hosts(),
        rooms: inventory.rooms().len(),
        rails,
        queue: args.queue.clone(),
        sizes: cases.first().map(|s| s.sizes.clone()).unwrap_or_default(),
        jobs: args.jobs as usize,
        seeds,
        overstated: args.overstated,
        moves: args.moves,
        loads,
    };
    if let Some(path) = &args.plot {
        output::write_file(path, &churn_plot::draw(&report)?)?;
    }
    output::print(args.format, &report, churn_table::text)
}

/// All runs, by load, contender and seed.
fn simulate_all(
    inventory: &Inventory,
    setups: &[Setup],
    contenders: &[Contender],
    seeds: &[u64],
    progress: &Progress,
    stopped: &AtomicBool,
) -> Result<Vec<Outcome>, Failure> {
    let mut runs = Vec::new();
    for setup in setups {
        for contender in contenders {
            runs.extend(seeds.iter().map(|seed| (setup, *contender, *seed)));
        }
    }
    progress.stage(format!("{} runs", runs.len()));
    let done = AtomicUsize::new(0);
    in_parallel(&runs, |(setup, contender, seed)| {
        let stop = || stopped.load(Ordering::Relaxed);
        let outcome = simulate(inventory, setup, *contender, *seed, &stop);
        let count = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress.tick(format!(
            "{count} of {} runs: {} at load {}",
            runs.len(),
            contender.name(),
            setup.load
        ));
        outcome
    })
}

/// What `one` makes of each item, on as many threads as there are cores. Once it says `None`, nothing is
/// begun any more.
fn in_parallel<T: Sync, R: Clone + Send>(
    items: &[T],
    one: impl Fn(&T) -> Option<R> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(vec![None; items.len()]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                    && let Some(result) = one(item)
                {
                    if let Ok(mut results) = results.lock() {
                        results[at] = Some(result);
                    }
                }
            });
        }
    });
    let results = results.into_inner().map_err(Failure::run)?;
    let all: Option<Vec<R>> = results.into_iter().collect();
    all.ok_or(Failure::Interrupted)
}

/// A flag that SIGINT and SIGTERM raise.
fn stop_on_signal() -> Result<&'static AtomicBool, Failure> {
    static STOPPED: AtomicBool = AtomicBool::new(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(Failure::run)?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            if let (Ok(mut interrupt), Ok(mut terminate)) = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
            ) {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                STOPPED.store(true, Ordering::Relaxed);
            }
        });
    });
    Ok(&STOPPED)
}

fn load_report(
    setup: &Setup,
    contenders: &[Contender],
    outcomes: &[Outcome],
    common: &[Conditions],
) -> LoadReport {
    let of = |value: fn(&Conditions) -> f64| Spread::of(common.iter().map(value).collect());
    let floor = of(|c| c.floor);
    let packing = of(|c| c.packing);
    let waited = of(|c| c.waited);
    let by_contender: Vec<&[Outcome]> = outcomes.chunks(common.len().max(1)).collect();
    let ring = |of: &[Outcome]| Spread::of(of.iter().map(|o| o.ring).collect());
    let slurm = contenders.iter().position(|c| c.name() == "slurm-tree");
    let slurm = slurm.map(|at| ring(by_contender[at]).mean);
    let over = |share: f64, of: f64| if of > 0.0 { share / of } else { 1.0 };
    let policy = |(contender, of): (&Contender, &&[Outcome])| {
        let spread = |value: fn(&Outcome) -> f64| Spread::of(of.iter().map(value).collect());
        let (ring, tree) = (ring(of), spread(|o| o.tree));
        PolicyReport {
            name: contender.name(),
            over_slurm: slurm.filter(|s| *s > 0.0).map(|s| ring.mean / s),
            above_floor_points: 100.0 * (ring.mean - floor.mean),
            over_floor: over(ring.mean, floor.mean),
            over_packing: over(ring.mean, packing.mean),
            tree_over_floor: over(tree.mean, floor.mean),
            bound: spread(|o| o.bound),
            floor: floor.mean,
            packing: packing.mean,
            waited: waited.mean,
            moved: spread(|o| o.moved),
            moves: spread(|o| o.moves),
            ring,
            tree,
        }
    };
    let policies = contenders.iter().zip(&by_contender).map(policy).collect();
    let sum = |value: fn(&Conditions) -> usize| common.iter().map(value).sum::<usize>();
    let (started, rejected) = (sum(|c| c.started), sum(|c| c.rejected));
    LoadReport {
        load: setup.load,
        occupied: of(|c| c.occupied),
        rejected: rejected as f64 / (started + rejected).max(1) as f64,
        packing_tree: of(|c| c.packing_tree),
        policies,
        waited,
        floor,
        packing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_over_seeds() {
        let spread = Spread::of(vec![1.0, 2.0, 3.0]);
        assert_eq!(
            (spread.mean, spread.sd, spread.min, spread.max),
            (2.0, 1.0, 1.0, 3.0)
        );
        assert_eq!(Spread::of(vec![0.5]).sd, 0.0);
    }
}

//! `meridian place`: hosts for jobs, and why.

pub(in crate::cmd) mod occupied;
mod paths;
mod plot;
mod report;
mod state;
mod text;

use std::path::PathBuf;

use clap::Args;
use controller::placement::{Policy, defragment};

use crate::args::Format;
use crate::failure::Failure;
use crate::output::Progress;
use crate::{input, output};

use paths::Paths;
use report::{MoveReport, PlaceReport, totals};
pub(in crate::cmd) use state::State;

/// Arguments of `meridian place`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file of --occupied lists who is there already:
  jobs:
    - {name: a, hosts: [h1, 'h[5-8]'], left_s: 7200}   # seconds it has left at most; may be left out
  drained: [h9]
-o writes such a file of all that is taken then, for the next call; what --format json prints will do as well.

Examples:
  meridian place topologies/nics-1024.yaml topologies/jobs/gpt3-175b.yaml --explain
  meridian place fabric.yaml a.yaml b.yaml --occupied now.yaml --compare --plot compared.svg
  meridian place fabric.yaml a.yaml b.yaml --occupied now.yaml --lasts 7200,600 -o then.yaml
  meridian place fabric.yaml a.yaml --occupied now.yaml --without job7 --drain h3
  meridian place fabric.yaml --occupied now.yaml --defragment 5")]
pub(crate) struct PlaceArgs {
    /// The topology file.
    pub(crate) topology: PathBuf,
    /// Job files; all of them start now, and are placed the largest first.
    pub(crate) jobs: Vec<PathBuf>,
    /// Place every job this many times (a queue of equal jobs).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) times: u32,
    /// Jobs that run and hosts that are drained.
    #[arg(long, value_name = "FILE")]
    pub(crate) occupied: Option<PathBuf>,
    /// Hosts that are drained too; ranges like h[3-7] are names as well.
    #[arg(long, value_delimiter = ',', value_name = "HOST,...")]
    pub(crate) drain: Vec<String>,
    /// Running jobs to leave out: what if they had ended?
    #[arg(long, value_delimiter = ',', value_name = "JOB,...")]
    pub(crate) without: Vec<String>,
    /// The hosts to use for the one job given: what if it ran there?
    #[arg(long, value_delimiter = ',', value_name = "HOST,...")]
    pub(crate) on: Vec<String>,
    /// Who chooses hosts.
    #[arg(long, value_name = "NAME", default_value = "meridian")]
    pub(crate) policy: String,
    /// Seed of the policies that leave something to chance.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Say why there, what the bound is and what would improve it.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show what each other policy would choose on the same state, with link loads and slow-down.
    #[arg(long)]
    pub(crate) compare: bool,
    /// Draw the comparison (SVG).
    #[arg(long, value_name = "FILE", requires = "compare")]
    pub(crate) plot: Option<PathBuf>,
    /// Plan a path for every flow of the jobs: link loads, their bound and how it is known, slow-down.
    #[arg(long)]
    pub(crate) paths: bool,
    /// Seconds that the jobs run at most: one number for all, or one for each job file.
    #[arg(long, value_delimiter = ',', value_name = "SECONDS,...")]
    pub(crate) lasts: Vec<u32>,
    /// Write who is where then, as --occupied reads it.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// List up to so many moves of running jobs that would make them cross less.
    #[arg(long, value_name = "MOVES", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) defragment: Option<usize>,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

impl PlaceArgs {
    /// Seconds that a job runs at most, by its place among all that are to be placed.
    fn left_s(&self, job: usize) -> Option<f64> {
        let file = job / self.times.max(1) as usize;
        let last = self.lasts.get(file).or_else(|| self.lasts.last());
        last.map(|seconds| f64::from(*seconds))
    }

    fn check(&self) -> Result<(), Failure> {
        if self.jobs.is_empty() && self.defragment.is_none() {
            return Err(Failure::Input(
                "error: name a job file to place, or ask for --defragment".to_owned(),
            ));
        }
        if self.lasts.len() > 1 && self.lasts.len() != self.jobs.len() {
            return Err(Failure::Input(format!(
                "error: --lasts has {} numbers for {} job files: give one for all, or one for each",
                self.lasts.len(),
                self.jobs.len()
            )));
        }
        if self.lasts.contains(&0) {
            return Err(Failure::Input(
                "error: --lasts has 0: write seconds, from 1".to_owned(),
            ));
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(args: &PlaceArgs) -> Result<(), Failure> {
    let policy = policy(&args.policy)?;
    args.check()?;
    let topology = input::topology(&args.topology)?;
    let mut state = State::new(&topology);
    if let Some(path) = &args.occupied {
        state.occupy(path)?;
    }
    for name in &args.without {
        state.end(name)?;
    }
    state.drain(&args.drain)?;
    let mut jobs = Vec::new();
    for path in &args.jobs {
        let job = input::workload(path)?;
        jobs.extend((0..args.times).map(|_| job.clone()));
    }
    let moves = args.defragment.map(|most| {
        let inventory = state.widest();
        let plan = defragment(&inventory, &state.occupancy, &state.running(), most);
        plan.iter().map(|m| MoveReport::new(&state, m)).collect()
    });
    let progress = Progress::new(args.format == Format::Json);
    let paths = (args.compare || args.paths).then(|| Paths::new(&topology));
    let placed = state.place_all(&jobs, policy, args, paths.as_ref(), &progress)?;
    progress.finish();
    let everything = state.widest();
    let usage = state.occupancy.usage(&everything);
    let report = PlaceReport {
        topology: topology.name().to_owned(),
        policy: policy.name(),
        free_after: usage.free,
        taken_after: usage.taken,
        drained: usage.drained,
        compared: totals(&placed),
        occupied: state.occupied(),
        jobs: placed,
        moves,
    };
    if let Some(path) = &args.output {
        output::write_file(path, &report.occupied.to_yaml())?;
    }
    if let Some(path) = &args.plot {
        output::write_file(path, &plot::draw(&report)?)?;
    }
    output::print(args.format, &report, |report| {
        text::text(report, args.explain)
    })
}

fn policy(name: &str) -> Result<Policy, Failure> {
    let found = Policy::NAMES.iter().find(|(n, _)| *n == name);
    found.map(|(_, policy)| *policy).ok_or_else(|| {
        let names: Vec<&str> = Policy::NAMES.iter().map(|(n, _)| *n).collect();
        let names = names.join(", ");
        Failure::Input(format!(
            "error: --policy {name}: no policy is called that; there are {names}"
        ))
    })
}

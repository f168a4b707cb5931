//! `meridian simulate`: what a fabric would do with a job or with flows.

pub(crate) mod ars;
mod build;
mod churn;
mod churn_args;
mod churn_plot;
mod churn_table;
mod collective;
mod flows;
mod measured;
mod model;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::Format;
use crate::failure::Failure;

/// Arguments of `meridian simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian simulate collective topologies/demo.yaml topologies/jobs/demo-allreduce.yaml
  meridian simulate flows topologies/demo.yaml --pattern incast --fan-in 7
  meridian simulate churn topologies/irregular-120.yaml --load 0.7,0.95
  meridian simulate ars --case cut")]
pub(crate) struct SimulateArgs {
    /// What to simulate.
    #[command(subcommand)]
    pub(crate) command: SimulateCommand,
}

/// The subcommands of `meridian simulate`.
#[derive(Debug, Subcommand)]
pub(crate) enum SimulateCommand {
    /// Let jobs come and go under the placer and under the rules of other schedulers.
    Churn(churn_args::ChurnArgs),
    /// Run each exchange of a job packet by packet, and beside it in the flow model.
    Collective(CollectiveArgs),
    /// Run a pattern of flows packet by packet, and beside it in the flow model.
    Flows(FlowsArgs),
    /// Compare adaptive ECMP with fixed ECMP, packet by packet.
    Ars(ars::ArsArgs),
}

/// Which path a flow takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paths {
    /// Chosen so that the busiest link carries as little as possible.
    Placed,
    /// As the switches' own hash has it, from addresses, ports and queue pairs.
    Ecmp,
    /// Drawn by chance as some other hash would, from the seed, and pinned.
    Hashed,
}

/// What keeps senders from sending too fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Control {
    /// DCQCN on ECN marks.
    Dcqcn,
    /// Only the window of unacknowledged packets: queues share links, and deep ones lose nothing.
    Window,
    /// Each flow is held to its max-min fair rate from the start.
    Rates,
}

/// Arguments of `meridian simulate collective`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian simulate collective topologies/demo.yaml topologies/jobs/demo-allreduce.yaml
  meridian simulate collective topologies/demo.yaml job.yaml --order shuffled --paths hashed --seed 3
  meridian simulate collective topologies/dual-plane.yaml job.yaml --algorithm two-level --format json")]
pub(crate) struct CollectiveArgs {
    /// The topology file.
    pub(crate) topology: PathBuf,
    /// The job file.
    pub(crate) job: PathBuf,
    /// How all-reduces run [default: as the job says].
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
    /// Hosts and rings by topology, or hosts as they come and rings as ranks are numbered.
    #[arg(long, value_enum, default_value_t = HostOrder::Placed)]
    pub(crate) order: HostOrder,
    /// How it runs.
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Arguments of commands that run packet by packet beside the flow model.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// The paths of flows.
    #[arg(long, value_enum, default_value_t = Paths::Placed)]
    pub(crate) paths: Paths,
    /// What keeps senders from sending too fast.
    #[arg(long, value_enum, default_value_t = Control::Dcqcn)]
    pub(crate) control: Control,
    /// Seed of everything that is drawn by chance.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

impl HowArgs {
    fn mode(&self) -> Mode {
        Mode {
            paths: self.paths,
            control: self.control,
            seed: self.seed,
        }
    }
}

/// How hosts and rings are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostOrder {
    /// By topology: every LA domain is entered and left once.
    Placed,
    /// Hosts shuffled by the seed, rings as ranks are numbered.
    Shuffled,
}

/// A pattern of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// Several NICs send to one.
    Incast,
    /// Every NIC sends to one other and receives from one other.
    Permutation,
}

/// Arguments of `meridian simulate flows`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian simulate flows topologies/demo.yaml --pattern permutation
  meridian simulate flows topologies/demo.yaml --pattern incast --fan-in 7 --bytes 4MiB --paths hashed")]
pub(crate) struct FlowsArgs {
    /// The topology file.
    pub(crate) topology: PathBuf,
    /// The pattern.
    #[arg(long, value_enum)]
    pub(crate) pattern: Pattern,
    /// Senders of an incast.
    #[arg(long, default_value_t = 7)]
    pub(crate) fan_in: u32,
    /// Bytes of each flow.
    #[arg(long, default_value = "16MiB")]
    pub(crate) bytes: String,
    /// How it runs.
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// How a run goes.
#[derive(Debug, Clone, Copy)]
struct Mode {
    paths: Paths,
    control: Control,
    seed: u64,
}

/// Runs the command.
pub(crate) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    match &args.command {
        SimulateCommand::Churn(args) => churn::run(args),
        SimulateCommand::Collective(args) => collective::run(args),
        SimulateCommand::Flows(args) => flows::run(args),
        SimulateCommand::Ars(args) => ars::run(args),
    }
}

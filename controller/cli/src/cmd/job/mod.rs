//! `meridian job`: job files.

mod import;
mod ranks;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::Format;
use crate::failure::Failure;

/// Arguments of `meridian job`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian job show topologies/jobs/gpt3-175b.yaml
  meridian job ranks topologies/nics-1024.yaml topologies/jobs/gpt3-175b.yaml --output hostfile
  meridian job import workload.txt -o job.yaml")]
pub(crate) struct JobArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: JobCommand,
}

/// The subcommands of `meridian job`.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Sum up what a job asks of the fabric: bytes by exchange and parallel dimension.
    Show(ShowArgs),
    /// Place a job on an idle fabric and write its ranks for a launcher or scheduler.
    Ranks(RanksArgs),
    /// Make a job file of a trace of collectives (SimAI, AICB, Chakra).
    Import(ImportArgs),
}

/// Arguments of `meridian job show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian job show topologies/jobs/gpt3-175b.yaml
  meridian job show job.yaml --format json | jq '.exchanges[] | {name, nic_bytes}'")]
pub(crate) struct ShowArgs {
    /// The job file.
    pub(crate) job: PathBuf,
    /// NICs per host [default: one per rank].
    #[arg(long, value_name = "N")]
    pub(crate) nics: Option<u32>,
    /// How to print the summary.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Arguments of `meridian job ranks`.
#[derive(Debug, Args)]
#[command(after_help = "\
Forms: ranks (rank, host, GPU, NIC address), torchrun (a command for each host), hostfile and rankfile
(Open MPI), mpich (hostfile of MPICH and Intel MPI), slurm-nodes (for --nodelist), slurm-hostfile (for
SLURM_HOSTFILE), kubernetes (a patch with node affinity), kubernetes-ranks (a ConfigMap).

Examples:
  meridian job ranks topologies/demo.yaml topologies/jobs/demo-allreduce.yaml --output rankfile
  meridian job ranks fabric.yaml job.yaml --hosts h7,h3,h1,h5 --output slurm-nodes
  meridian place fabric.yaml job.yaml -o now.yaml && \\
      meridian job ranks fabric.yaml job.yaml --placed now.yaml --output mpich")]
pub(crate) struct RanksArgs {
    /// The topology file.
    pub(crate) topology: PathBuf,
    /// The job file.
    pub(crate) job: PathBuf,
    /// What to write.
    #[arg(long, value_name = "FORM", default_value = "ranks")]
    pub(crate) output: String,
    /// The hosts that a scheduler has given the job, to be put in order [default: any].
    #[arg(long, value_delimiter = ',', value_name = "HOST,...")]
    pub(crate) hosts: Vec<String>,
    /// Hosts that are not to be used.
    #[arg(long, value_delimiter = ',', value_name = "HOST,...")]
    pub(crate) drained: Vec<String>,
    /// Jobs that run and hosts that are drained, as `meridian place --occupied` reads it.
    #[arg(long, value_name = "FILE")]
    pub(crate) occupied: Option<PathBuf>,
    /// Where the job is placed already, as `meridian place -o` wrote it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hosts", "drained", "occupied"])]
    pub(crate) placed: Option<PathBuf>,
    /// Where to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Arguments of `meridian job import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian job import workload.txt -o job.yaml
  meridian job import trace.et --parallel tp=8,dp=16 --group 1=tp --group 2=dp -o job.yaml")]
pub(crate) struct ImportArgs {
    /// The trace.
    pub(crate) trace: PathBuf,
    /// Its format: simai, aicb or chakra [default: by how it begins].
    #[arg(long, value_name = "NAME")]
    pub(crate) trace_format: Option<String>,
    /// Name of the job [default: that of the file].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Ranks on each host.
    #[arg(long, default_value_t = 8)]
    pub(crate) ranks_per_host: u32,
    /// Parallel sizes of a Chakra trace, like tp=8,dp=16,pp=8,cp=1,ep=1.
    #[arg(long, value_delimiter = ',', value_name = "DIM=SIZE,...")]
    pub(crate) parallel: Vec<String>,
    /// Which ranks a process group of a Chakra trace is: NAME=tp, dp, pp, ep...; others are all ranks.
    #[arg(long = "group", value_name = "NAME=DIM")]
    pub(crate) groups: Vec<String>,
    /// Where to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &JobArgs) -> Result<(), Failure> {
    match &args.command {
        JobCommand::Show(args) => show::run(args),
        JobCommand::Ranks(args) => ranks::run(args),
        JobCommand::Import(args) => import::run(args),
    }
}

/// The value that goes with a name in a list of names.
fn named<T: Copy>(what: &str, name: &str, known: &[(&str, T)]) -> Result<T, Failure> {
    let found = known
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(n, _)| *n).collect();
        Failure::Input(format!(
            "error: no {what} '{name}'; there are: {}",
            names.join(", ")
        ))
    })
}

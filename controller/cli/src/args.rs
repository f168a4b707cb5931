//! The command line, as clap reads it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cmd::irregular::IrregularArgs;

const AFTER_HELP: &str = "\
Examples:
  meridian demo                               the whole chain on this machine, no root
  meridian check topologies/demo.yaml         is this topology sound?
  sudo meridian up topologies/demo.yaml --target mininet
  meridian status                             what is running, and how it is
  meridian int watch                          paths and queues of flows, live

Exit codes: 0 done, 1 failed while running, 2 wrong arguments, 3 wrong input,
4 something is missing on this machine, 130 interrupted.";

/// An open network fabric for AI training clusters.
#[derive(Debug, Parser)]
#[command(name = "meridian", version, about, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Log more to standard error (-v what is done, -vv every message); RUST_LOG overrides it.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a job on an emulated fabric: unplaced, placed, and through a link failure.
    Demo(DemoArgs),
    /// Validate a topology file.
    Check(CheckArgs),
    /// Bring a topology up and keep it running until Ctrl-C.
    Up(UpArgs),
    /// Show the switches, sessions, entries and ports of a running fabric.
    Status(StatusArgs),
    /// Watch flows by in-band telemetry.
    Int(IntArgs),
    /// Show job files, place their ranks, import traces.
    Job(crate::cmd::job::JobArgs),
    /// Choose hosts for jobs, say why, and compare with the rules of other schedulers.
    Place(crate::cmd::place::PlaceArgs),
    /// Simulate collectives and flows, packet by packet and in the flow model; jobs that come and go.
    Simulate(crate::cmd::simulate::SimulateArgs),
    /// Generate, show or import topologies.
    Topology(TopologyArgs),
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// Arguments of `meridian demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian demo
  meridian demo --format json | jq '.runs[] | {name, busbw_ratio, cross_la_share}'
  meridian demo --topology topologies/dual-plane.yaml --seed 7 --report /tmp/report")]
pub(crate) struct DemoArgs {
    /// The fabric [default: topologies/demo.yaml, or the copy built into the command].
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// The job [default: topologies/jobs/demo-allreduce.yaml, or the copy built into the command].
    #[arg(long, value_name = "FILE")]
    pub(crate) job: Option<PathBuf>,
    /// Seed of everything that is drawn by chance; the same seed gives the same report.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where telemetry reports go on, as UDP, if the topology's policy asks for them: `meridian int watch`
    /// takes them there.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:32766")]
    pub(crate) int_reports: SocketAddr,
    /// Folder that receives report.json, fabric.svg and throughput.svg.
    #[arg(long, value_name = "DIR", default_value = "report")]
    pub(crate) report: PathBuf,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Arguments of `meridian check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian check topologies/demo.yaml
  meridian check my-fabric.yaml --format json")]
pub(crate) struct CheckArgs {
    /// The topology file.
    pub(crate) file: PathBuf,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Where a topology is brought up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Switches inside this process, hosts as NIC models; no root.
    Embedded,
    /// Mininet hosts and one switch process per switch; needs root and Mininet.
    Mininet,
    /// P4Runtime servers that are already running.
    External,
}

/// Which switch program Mininet runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SwitchProgram {
    /// Meridian's own, beside this command or on PATH.
    MeridianSwitch,
    /// bmv2's simple_switch_grpc, on PATH.
    SimpleSwitchGrpc,
}

/// Arguments of `meridian up`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian up topologies/demo.yaml
  sudo meridian up topologies/demo.yaml --target mininet
  meridian up lab.yaml --target external --switch leaf1=127.0.0.1:9559 --switch spine1=127.0.0.1:9560")]
pub(crate) struct UpArgs {
    /// The topology file.
    pub(crate) file: PathBuf,
    /// Where the switches run.
    #[arg(long, value_enum, default_value_t = Target::Embedded)]
    pub(crate) target: Target,
    /// With --target external: NAME=HOST:PORT of a switch's P4Runtime server; once per switch.
    #[arg(long = "switch", value_name = "NAME=HOST:PORT")]
    pub(crate) switches: Vec<String>,
    /// With --target mininet: the switch program to run [default: meridian-switch].
    #[arg(long, value_enum)]
    pub(crate) program: Option<SwitchProgram>,
    /// First TCP port (on 127.0.0.1) for the switches' P4Runtime servers.
    #[arg(long, value_name = "PORT", default_value_t = 9559)]
    pub(crate) grpc_base_port: u16,
    /// Where telemetry reports go on, as UDP, that the policy sends to the controller: `meridian int watch`
    /// takes them there.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:32766")]
    pub(crate) int_reports: SocketAddr,
    /// Check and exit: that every NIC reaches every other (embedded, mininet), that the switches hold their
    /// entries (external).
    #[arg(long)]
    pub(crate) once: bool,
    /// Commands to run inside hosts once the fabric is up (Mininet only): HOST:COMMAND; the fabric is torn down after the last.
    #[arg(long = "exec", value_name = "HOST:COMMAND")]
    pub(crate) exec: Vec<String>,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Arguments of `meridian status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian status
  meridian status demo --ports
  meridian status demo --format json")]
pub(crate) struct StatusArgs {
    /// The fabric's name, when several run.
    pub(crate) fabric: Option<String>,
    /// List every port too.
    #[arg(long)]
    pub(crate) ports: bool,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Arguments of `meridian int`.
#[derive(Debug, Args)]
pub(crate) struct IntArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: IntCommand,
}

/// The subcommands of `meridian int`.
#[derive(Debug, Subcommand)]
pub(crate) enum IntCommand {
    /// Collect telemetry reports and show paths, latencies and queues of flows.
    Watch(IntWatchArgs),
}

/// Arguments of `meridian int watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian int watch                                   every flow that is reported
  meridian int watch dst=10.0.1.2,qp=17 --topology topologies/demo-int.yaml
  meridian int watch all --listen 0.0.0.0:32766 --format json | jq .flows[].path
  meridian int watch src=10.0.0.1,proto=tcp --seconds 10

Ctrl-C ends it with a last update that has every flow; as JSON it says \"last\": true.

Reports reach it from switches whose policy names its address as `collector`, or from
`meridian up --int-reports ADDRESS` where they go to the controller. It does not matter
which switches send them: Telemetry Report v2.0 with INT-MD v2.1.")]
pub(crate) struct IntWatchArgs {
    /// Which flows: src=, dst=, proto=, sport=, dport=, qp=, separated by commas, or `all`.
    #[arg(value_name = "FLOW", default_value = "all")]
    pub(crate) flow: String,
    /// UDP address to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:32766")]
    pub(crate) listen: SocketAddr,
    /// A topology file, for names of switches and for what tells of INT.
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// DSCP that tells of INT [default: as in the topology, else 23].
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..64))]
    pub(crate) dscp: Option<u8>,
    /// UDP port that tells of INT.
    #[arg(long)]
    pub(crate) udp_port: Option<u16>,
    /// Stop after this many reports.
    #[arg(long, value_name = "REPORTS")]
    pub(crate) count: Option<u64>,
    /// Stop after this time.
    #[arg(long)]
    pub(crate) seconds: Option<u64>,
    /// Milliseconds between updates.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) interval_ms: u64,
    /// How to print updates; JSON is one object a line.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Arguments of `meridian topology`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian topology show topologies/demo.yaml
  meridian topology generate topologies/demo.yaml -o explicit.yaml
  meridian topology import ibnetdiscover.txt -o fabric.yaml")]
pub(crate) struct TopologyArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: TopologyCommand,
}

/// The subcommands of `meridian topology`.
#[derive(Debug, Subcommand)]
pub(crate) enum TopologyCommand {
    /// Write a topology in its explicit form, from a file's compact `clos:` form or from options.
    Generate(Box<GenerateArgs>),
    /// Sum up a topology.
    Show(ShowArgs),
    /// Make a topology of another tool's output and report what is odd about it.
    Import(ImportArgs),
}

/// Arguments of `meridian topology show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian topology show topologies/nics-1024.yaml
  meridian topology show topologies/demo.yaml --la
  meridian topology show topologies/demo.yaml --switch leaf-s1r0")]
pub(crate) struct ShowArgs {
    /// The topology file.
    pub(crate) file: PathBuf,
    /// List the LA domains too.
    #[arg(long)]
    pub(crate) la: bool,
    /// Show one switch's ports instead.
    #[arg(long, value_name = "NAME", conflicts_with = "la")]
    pub(crate) switch: Option<String>,
    /// How to print the summary.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Arguments of `meridian topology generate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian topology generate topologies/demo.yaml
  meridian topology generate --segments 2 --hosts 16 --rails 8 --spines 8 --speed 400G -o big.yaml
  meridian topology generate --irregular --leaves 40 --leaf-hosts 2-8 --nics 8:90,4:10 \\
      --spines 16 --dual-tor-share 25% --missing 3% --seed 7 -o odd.yaml")]
pub(crate) struct GenerateArgs {
    /// A file with a `clos:` form; without it the options below describe the fabric.
    #[arg(conflicts_with_all = ["name", "pods", "segments", "hosts", "rails", "spines", "cores", "speed", "dual_tor", "planes", "irregular"])]
    pub(crate) file: Option<PathBuf>,
    /// The fabric's name.
    #[arg(long, default_value = "generated")]
    pub(crate) name: String,
    /// Pods; several need cores above them.
    #[arg(long, default_value_t = 1)]
    pub(crate) pods: u32,
    /// Segments (blocks) of hosts in a pod.
    #[arg(long, default_value_t = 2)]
    pub(crate) segments: u32,
    /// Hosts in a segment.
    #[arg(long, default_value_t = 4)]
    pub(crate) hosts: u32,
    /// NICs (rails) of a host.
    #[arg(long, default_value_t = 4)]
    pub(crate) rails: u32,
    /// Spine switches of a pod (and plane).
    #[arg(long, default_value_t = 4)]
    pub(crate) spines: u32,
    /// Core switches of a plane [default: none in a single pod, else as many as keep it non-blocking].
    #[arg(long)]
    pub(crate) cores: Option<u32>,
    /// Speed of every link.
    #[arg(long, default_value = "400G")]
    pub(crate) speed: String,
    /// Each NIC has two ports, on two leaves of one LA domain.
    #[arg(long)]
    pub(crate) dual_tor: bool,
    /// With 2 (and --dual-tor), the two ports' leaves have spines and cores apart.
    #[arg(long, default_value_t = 1)]
    pub(crate) planes: u32,
    #[command(flatten)]
    pub(crate) irregular: IrregularArgs,
    /// Where to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How to say what was written to -o FILE; the file itself is YAML.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Arguments of `meridian topology import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ibnetdiscover > fabric.txt && meridian topology import fabric.txt -o fabric.yaml
  meridian topology import fabric.txt --format json | jq .findings")]
pub(crate) struct ImportArgs {
    /// Output of `ibnetdiscover`.
    pub(crate) file: PathBuf,
    /// Where to write the topology [default: it is not written, only the findings are shown].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the findings.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

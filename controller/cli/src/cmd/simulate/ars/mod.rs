//! `meridian simulate ars`: adaptive ECMP beside fixed ECMP, with the same traffic and seed.
//!
//! Two leaves, eight spines and eight NICs a leaf; the NICs of the first leaf send to those of the second, as much
//! as the uplinks carry. Everything runs in the emulator, with the P4 program in every switch and the entries
//! that the controller writes for each mode. Nobody tells the switches of a failure, and the controller
//! writes nothing once the traffic runs.

mod bed;
mod failures;
mod load;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use controller::intent::{Ars, Mode};
use serde::Serialize;

use crate::args::Format;
use crate::failure::Failure;
use crate::output::{self, Progress};

/// Arguments of `meridian simulate ars`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meridian simulate ars
  meridian simulate ars --case symmetric --seed 7
  meridian simulate ars --case symmetric --mode flowlet-quality --flows 16 --traffic messages
  meridian simulate ars --case gray --format json | jq .rows")]
pub(crate) struct ArsArgs {
    /// What to run; all cases, one after another, if not given.
    #[arg(long, value_enum)]
    pub(crate) case: Option<Case>,
    /// Seed of everything that is drawn by chance; the same seed gives the same figures.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Draws of flows that throughputs are means of, with seeds from `seed` on.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) draws: u32,
    /// Only these modes, of those that the case compares; `ecmp` is groups without adaptive routing.
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(mode_names()))]
    pub(crate) mode: Vec<String>,
    /// Only these numbers of flows per uplink, where the case has several.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64), default_values_t = [1, 4, 16])]
    pub(crate) flows: Vec<u32>,
    /// Only this traffic, where the case has both.
    #[arg(long, value_enum)]
    pub(crate) traffic: Option<Traffic>,
    /// Let senders heed ECN marks (DCQCN). Without, flows have a window and no other limit.
    #[arg(long)]
    pub(crate) dcqcn: bool,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// What can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// 1, 4 and 16 flows per uplink, without pause and as messages of 1 MB.
    Symmetric,
    /// One spine with half its capacity.
    Asymmetric,
    /// A link is cut, next to the sending leaf and beyond the spine.
    Cut,
    /// A link loses 2 % of the packets in one direction.
    Gray,
    /// Packets that come out of order, by mode and idle time.
    Reordering,
}

/// Traffic of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Traffic {
    /// Flows that send without pause.
    Elephants,
    /// Messages of 1 MB with 100 us between one's arrival and the next.
    Messages,
}

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) case: Case,
    /// What distinguishes the row within its case.
    pub(crate) what: String,
    pub(crate) mode: &'static str,
    pub(crate) traffic: Traffic,
    pub(crate) flows_per_uplink: u32,
    /// Throughput as a share of what the fabric could carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) throughput: Option<f64>,
    /// Time that all flows take on a switch that never blocks, over the time they take here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) completion: Option<f64>,
    /// Packets that receivers saw before their turn, per million.
    pub(crate) out_of_order_ppm: f64,
    /// Packets lost.
    pub(crate) lost: u64,
    /// From the failure to the last packet lost by it, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detection_us: Option<f64>,
    /// Most packets that could have been in flight on the link in that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost_at_most: Option<u64>,
    /// The failed link's share of the packets once the failure was known; an even share is 1/8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link_share: Option<f64>,
}

/// What the command prints as JSON.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    draws: u32,
    dcqcn: bool,
    rows: Vec<Row>,
}

/// How groups behave in an experiment: `None` is ECMP as it is without adaptive routing.
pub(crate) type Setup = Option<Ars>;

/// Groups without adaptive routing.
const ECMP: &str = "ecmp";

pub(crate) fn name(setup: &Setup) -> &'static str {
    setup.map_or(ECMP, |ars| ars.mode.name())
}

fn mode_names() -> Vec<&'static str> {
    std::iter::once(ECMP)
        .chain(Mode::ALL.map(Mode::name))
        .collect()
}

/// Which of an experiment's runs are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    modes: Vec<String>,
    flows: Vec<u32>,
    traffic: Option<Traffic>,
}

impl Wanted {
    fn new(args: &ArsArgs) -> Self {
        Self {
            modes: args.mode.clone(),
            flows: args.flows.clone(),
            traffic: args.traffic,
        }
    }

    /// Those of `setups` whose mode is wanted.
    pub(crate) fn setups(&self, setups: Vec<Setup>) -> impl Iterator<Item = Setup> {
        let wanted =
            |setup: &Setup| self.modes.is_empty() || self.modes.iter().any(|m| m == name(setup));
        setups
            .into_iter()
            .filter(wanted)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Numbers of flows per uplink.
    pub(crate) fn flows(&self) -> impl Iterator<Item = u32> {
        self.flows.iter().copied()
    }

    /// Kinds of traffic.
    pub(crate) fn traffic(&self) -> impl Iterator<Item = Traffic> {
        let only = self.traffic;
        let all = [Traffic::Elephants, Traffic::Messages];
        all.into_iter()
            .filter(move |t| only.is_none_or(|only| only == *t))
    }
}

/// Runs the command.
pub(crate) fn run(args: &ArsArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    let progress = Progress::new(false);
    let cases = match args.case {
        Some(case) => vec![case],
        None => Case::value_variants().to_vec(),
    };
    let rows = runtime.block_on(async {
        let mut rows = Vec::new();
        for case in cases {
            rows.extend(run_case(case, args, &progress).await?);
        }
        Ok::<_, Failure>(rows)
    });
    progress.finish();
    let report = Report {
        seed: args.seed,
        draws: args.draws,
        dcqcn: args.dcqcn,
        rows: rows?,
    };
    output::print(args.format, &report, text)
}

async fn run_case(case: Case, args: &ArsArgs, progress: &Progress) -> Result<Vec<Row>, Failure> {
    let (seed, dcqcn) = (args.seed, args.dcqcn);
    let seeds: Vec<u64> = (seed..).take(args.draws as usize).collect();
    let wanted = Wanted::new(args);
    match case {
        Case::Symmetric => load::symmetric(&seeds, dcqcn, &wanted, progress).await,
        Case::Asymmetric => load::asymmetric(&seeds, dcqcn, &wanted, progress).await,
        Case::Reordering => load::reordering(seed, dcqcn, &wanted, progress).await,
        Case::Cut => failures::cut(seed, dcqcn, &wanted, progress).await,
        Case::Gray => failures::gray(seed, dcqcn, &wanted, progress).await,
    }
}

fn text(report: &Report) -> String {
    let mut table = output::table(
        [
            "case",
            "",
            "traffic",
            "mode",
            "flows/uplink",
            "throughput",
            "completion",
            "out of order",
            "lost",
            "detected",
            "at most",
            "share",
        ],
        4,
    );
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    for row in &report.rows {
        table.add_row([
            format!("{:?}", row.case).to_lowercase(),
            row.what.clone(),
            format!("{:?}", row.traffic).to_lowercase(),
            row.mode.to_owned(),
            row.flows_per_uplink.to_string(),
            or_empty(row.throughput.map(|t| format!("{t:.3}"))),
            or_empty(row.completion.map(|t| format!("{t:.3}"))),
            format!("{:.0} ppm", row.out_of_order_ppm),
            row.lost.to_string(),
            or_empty(row.detection_us.map(|us| format!("{us:.0} us"))),
            or_empty(row.lost_at_most.map(|n| n.to_string())),
            or_empty(
                row.link_share
                    .map(|share| format!("{:.2} %", share * 100.0)),
            ),
        ]);
    }
    format!(
        "{table}\nseed {}, means of {} draws",
        report.seed, report.draws
    )
}

/// Modes that every comparison has, fixed first.
pub(crate) fn all_setups() -> Vec<Setup> {
    let modes = Mode::ALL
        .into_iter()
        .skip(1)
        .map(|mode| Some(Ars::new(mode)));
    std::iter::once(None).chain(modes).collect()
}

#[cfg(test)]
mod tests;

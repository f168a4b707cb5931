//! `meridian job show`: what a job asks of the fabric.

use ::topology::units::format_size;
use controller::placement::traffic::{Order, anywhere, traffic};
use controller::workload::Workload;
use serde::Serialize;

use super::ShowArgs;
use crate::failure::Failure;
use crate::{input, output};

/// What `job show --format json` prints.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    ranks: u32,
    hosts: u32,
    ranks_per_host: u32,
    scale_up: u32,
    exchanges: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    operation: &'static str,
    over: &'static str,
    group_size: u32,
    algorithm: &'static str,
    bytes: u64,
    times: u64,
    /// Sent by all NICs in one iteration.
    fabric_bytes: u64,
    /// Mean over all NICs.
    nic_bytes: f64,
    /// Share of all that NICs send.
    share: f64,
    scale_up_bytes: u64,
}

/// Runs the command.
pub(crate) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let job = input::workload(&args.job)?;
    let nics = args.nics.unwrap_or(job.ranks_per_host).clamp(1, 1 << 10);
    output::print(args.format, &shown(&job, nics), text)
}

fn shown(job: &Workload, nics: u32) -> Shown {
    let traffic = traffic(job, &anywhere(job, nics), Order::ByDomain);
    let all = traffic.total().sent.max(1);
    let count = u64::from(job.hosts()) * u64::from(nics);
    let lines = job
        .exchanges
        .iter()
        .zip(&traffic.volumes)
        .map(|(e, volume)| Line {
            name: e.name.clone(),
            operation: e.operation.name(),
            over: e.over.name(),
            group_size: job.grid.group_size(e.over),
            algorithm: e.algorithm_name(),
            bytes: e.bytes,
            times: e.times,
            fabric_bytes: volume.sent,
            nic_bytes: volume.sent as f64 / count as f64,
            share: volume.sent as f64 / all as f64,
            scale_up_bytes: volume.scale_up,
        });
    Shown {
        name: job.name.clone(),
        ranks: job.grid.world_size(),
        hosts: job.hosts(),
        ranks_per_host: job.ranks_per_host,
        scale_up: job.scale_up,
        exchanges: lines.collect(),
    }
}

fn text(shown: &Shown) -> String {
    let header = [
        "exchange",
        "operation",
        "over",
        "ranks",
        "bytes",
        "times",
        "per NIC",
        "share",
        "scale-up",
    ];
    let mut table = output::table(header, 3);
    for line in &shown.exchanges {
        table.add_row([
            line.name.clone(),
            line.operation.to_owned(),
            line.over.to_owned(),
            line.group_size.to_string(),
            format_size(line.bytes),
            line.times.to_string(),
            format!("{:.3} GB", line.nic_bytes / 1e9),
            format!("{:.1} %", line.share * 100.0),
            format!("{:.3} GB", line.scale_up_bytes as f64 / 1e9),
        ]);
    }
    format!(
        "{}: {} ranks on {} hosts of {}, scale-up domains of {}; bytes per iteration\n{table}\n",
        shown.name, shown.ranks, shown.hosts, shown.ranks_per_host, shown.scale_up
    )
}

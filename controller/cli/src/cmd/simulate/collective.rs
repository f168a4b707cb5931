//! `meridian simulate collective`: a job's exchanges, one after the other.

use std::sync::Arc;

use ::topology::Topology;
use controller::placement::traffic::{Order, sites_of, traffic};
use controller::placement::{Site, choose, shuffle};
use controller::workload::{Algorithm, Operation, Workload};
use serde::Serialize;

use super::measured::{Comparison, compare, config};
use super::{CollectiveArgs, HostOrder, build};
use crate::cmd::demo::bed::Bed;
use crate::failure::Failure;
use crate::output::Progress;
use crate::{input, output};

/// What `simulate collective --format json` prints.
#[derive(Debug, Serialize)]
struct Simulated {
    topology: String,
    job: String,
    hosts: Vec<String>,
    exchanges: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    operation: &'static str,
    over: &'static str,
    algorithm: &'static str,
    #[serde(flatten)]
    result: Comparison,
}

/// Most bytes that are emulated at once: above, a run takes many minutes.
const MOST_BYTES: u64 = 64 << 30;

/// Runs the command.
pub(crate) fn run(args: &CollectiveArgs) -> Result<(), Failure> {
    let topology = Arc::new(input::topology(&args.topology)?);
    let mut job = input::workload(&args.job)?;
    if let Some(name) = &args.algorithm {
        let algorithm = algorithm(name)?;
        for exchange in &mut job.exchanges {
            if exchange.operation == Operation::AllReduce {
                exchange.algorithm = algorithm;
            }
        }
    }
    let ports = topology
        .nics()
        .iter()
        .map(|n| u32::from(n.port_count))
        .max();
    // Each port of a NIC needs a ring of its own to be of use.
    job.channels = job
        .channels
        .or(Some(job.ranks_per_host * ports.unwrap_or(1)));
    let sites = place(&topology, &job, args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    let progress = Progress::new(false);
    let lines = runtime.block_on(exchanges(&topology, &job, &sites, args, &progress));
    progress.finish();
    let simulated = Simulated {
        topology: topology.name().to_owned(),
        job: job.name.clone(),
        hosts: sites
            .iter()
            .map(|s| topology.hosts()[s.host as usize].name.clone())
            .collect(),
        exchanges: lines?,
    };
    output::print(args.how.format, &simulated, text)
}

fn algorithm(name: &str) -> Result<Algorithm, Failure> {
    let found = Algorithm::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, algorithm)| *algorithm).ok_or_else(|| {
        let known = Algorithm::NAMES.map(|(known, _)| known).join(", ");
        Failure::Input(format!("error: no algorithm '{name}'; there are: {known}"))
    })
}

/// The hosts of the job, by slot.
fn place(topology: &Topology, job: &Workload, args: &CollectiveArgs) -> Result<Vec<Site>, Failure> {
    let fit = topology
        .host_ids()
        .filter(|id| topology[*id].gpus >= job.ranks_per_host);
    let free = sites_of(topology, fit);
    let wanted = job.hosts() as usize;
    if free.len() < wanted {
        return Err(Failure::Input(format!(
            "error: job '{}' needs {wanted} hosts with {} GPUs, and '{}' has {}: lower its parallel sizes or \
             `ranks_per_host`, or take a larger fabric",
            job.name,
            job.ranks_per_host,
            topology.name(),
            free.len()
        )));
    }
    let chosen = match args.order {
        HostOrder::Placed => choose(&free, wanted),
        HostOrder::Shuffled => shuffle(&free, wanted, args.how.seed),
    };
    Ok(chosen.into_iter().map(|i| free[i].clone()).collect())
}

async fn exchanges(
    topology: &Arc<Topology>,
    job: &Workload,
    sites: &[Site],
    args: &CollectiveArgs,
    progress: &Progress,
) -> Result<Vec<Line>, Failure> {
    let order = match args.order {
        HostOrder::Placed => Order::ByDomain,
        HostOrder::Shuffled => Order::AsNumbered,
    };
    let traffic = traffic(job, sites, order);
    let total = traffic.total().sent;
    if total > MOST_BYTES {
        return Err(Failure::Input(format!(
            "error: the job sends {total} bytes per iteration, and packets of at most {MOST_BYTES} bytes are \
             emulated: lower `bytes_per_rank`, `times` or the model's sizes"
        )));
    }
    let mode = args.how.mode();
    progress.stage(format!(
        "bringing up {} switches",
        topology.switches().len()
    ));
    let mut bed = Bed::bring_up_with(Arc::clone(topology), config(topology, mode), None).await?;
    let mut lines = Vec::new();
    for (index, exchange) in job.exchanges.iter().enumerate() {
        progress.stage(format!(
            "{} ({} over {})",
            exchange.name,
            exchange.operation.name(),
            exchange.over.name()
        ));
        if traffic.volumes[index].sent == 0 {
            continue;
        }
        let built = build::exchange(topology, sites, &traffic, (index, exchange), bed.numbers())?;

        let result = compare(&mut bed, built.schedule, &built.chain, mode, progress).await?;
        lines.push(Line {
            name: exchange.name.clone(),
            operation: exchange.operation.name(),
            over: exchange.over.name(),
            algorithm: exchange.algorithm_name(),
            result,
        });
    }
    Ok(lines)
}

fn text(simulated: &Simulated) -> String {
    let header = [
        "exchange",
        "over",
        "algorithm",
        "NICs",
        "cross-LA",
        "max load / bound",
        "emulated us",
        "model us",
        "busbw / NIC rate",
        "drops",
    ];
    let mut table = output::table(header, 3);
    for line in &simulated.exchanges {
        let r = &line.result;
        table.add_row([
            line.name.clone(),
            line.over.to_owned(),
            line.algorithm.to_owned(),
            r.nics.to_string(),
            format!("{:.3}", r.cross_la_share),
            format!("{:.3}", r.max_load_over_bound),
            format!("{:.1}", r.emulated_us),
            format!("{:.1}", r.model_us),
            format!("{:.3}", r.busbw_ratio),
            r.drops.to_string(),
        ]);
    }
    let none = if simulated.exchanges.is_empty() {
        "\nnothing leaves the scale-up domains\n"
    } else {
        ""
    };
    format!("{} on {}\n{table}{none}", simulated.job, simulated.topology)
}

//! `meridian job ranks`: a placed job for launchers and schedulers.

use std::path::Path;

use ::topology::{HostId, Topology};
use controller::placement::export::{Format, PlacedHost, export};
use controller::workload::Workload;

use super::{RanksArgs, named};
use crate::cmd::place::{State, occupied};
use crate::failure::Failure;
use crate::{input, output};

/// Runs the command.
pub(crate) fn run(args: &RanksArgs) -> Result<(), Failure> {
    let form = named("form", &args.output, &Format::NAMES)?;
    let topology = input::topology(&args.topology)?;
    let job = input::workload(&args.job)?;
    let hosts = hosts(&topology, &job, args)?;
    let placed: Vec<PlacedHost> = hosts
        .iter()
        .map(|id| placed(&topology, *id, job.ranks_per_host))
        .collect();
    let text = export(form, &job.name, &placed, job.ranks_per_host);
    match &args.file {
        Some(path) => output::write_file(path, &text),
        None => output::write_all(&text),
    }
}

fn placed(topology: &Topology, id: HostId, ranks: u32) -> PlacedHost {
    let nics: Vec<_> = topology[id].nics().collect();
    let beside = |local: u32| nics.get(local as usize * nics.len() / ranks.max(1) as usize);
    PlacedHost {
        name: topology[id].name.clone(),
        addresses: (0..ranks)
            .filter_map(beside)
            .map(|nic| topology[*nic].v4.to_string())
            .collect(),
    }
}

/// The job's hosts in order of ranks.
fn hosts(topology: &Topology, job: &Workload, args: &RanksArgs) -> Result<Vec<HostId>, Failure> {
    if let Some(path) = &args.placed {
        return placed_hosts(topology, job, path);
    }
    let mut state = State::new(topology);
    if let Some(path) = &args.occupied {
        state.occupy(path)?;
    }
    state.drain(&args.drained)?;
    state.seats(job, &args.hosts, "--hosts")
}

/// The hosts of the job of this name in a file that `meridian place -o` wrote, in its order.
fn placed_hosts(topology: &Topology, job: &Workload, path: &Path) -> Result<Vec<HostId>, Failure> {
    let wrong = |message: String| Failure::Input(format!("error: {}: {message}", path.display()));
    let placed = occupied::read(&path.display().to_string(), &input::text(path)?)?;
    let Some(found) = placed.jobs.iter().find(|one| one.name == job.name) else {
        let names: Vec<&str> = placed
            .jobs
            .iter()
            .map(|j| j.name.as_str())
            .take(20)
            .collect();
        return Err(wrong(format!(
            "no job `{}` is there; there are: {}",
            job.name,
            names.join(", ")
        )));
    };
    let hosts = occupied::hosts(topology, &found.hosts)?;
    if hosts.len() != job.hosts() as usize {
        return Err(wrong(format!(
            "job `{}` has {} hosts there, and its file asks for {}",
            job.name,
            hosts.len(),
            job.hosts()
        )));
    }
    Ok(hosts)
}

//! `meridian job ranks`: a placed job for launchers and schedulers.

use std::collections::BTreeSet;

use ::topology::{HostId, Topology};
use controller::placement::choose;
use controller::placement::export::{Format, PlacedHost, export};
use controller::placement::traffic::sites_of;
use controller::workload::Workload;

use super::{RanksArgs, named};
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

fn find(topology: &Topology, names: &[String]) -> Result<Vec<HostId>, Failure> {
    let mut seen = BTreeSet::new();
    names
        .iter()
        .map(|name| {
            let id = topology
                .find_host(name)
                .map_err(|error| Failure::Input(format!("error: {error}")))?;
            if !seen.insert(id) {
                return Err(Failure::Input(format!("error: host {name} is named twice")));
            }
            Ok(id)
        })
        .collect()
}

/// The job's hosts in order of ranks.
fn hosts(topology: &Topology, job: &Workload, args: &RanksArgs) -> Result<Vec<HostId>, Failure> {
    let wanted = job.hosts() as usize;
    let given = find(topology, &args.hosts)?;
    let drained: BTreeSet<HostId> = find(topology, &args.drained)?.into_iter().collect();
    if !given.is_empty() && given.len() != wanted {
        return Err(Failure::Input(format!(
            "error: --hosts names {} hosts, and job '{}' needs {wanted}",
            given.len(),
            job.name
        )));
    }
    let from: Vec<HostId> = if given.is_empty() {
        topology
            .host_ids()
            .filter(|id| !drained.contains(id))
            .collect()
    } else {
        given
    };
    if let Some(small) = from
        .iter()
        .find(|id| !args.hosts.is_empty() && topology[**id].gpus < job.ranks_per_host)
    {
        return Err(Failure::Input(format!(
            "error: host {} has {} GPUs, and `ranks_per_host` is {}",
            topology[*small].name, topology[*small].gpus, job.ranks_per_host
        )));
    }
    let fit: Vec<HostId> = from
        .into_iter()
        .filter(|id| topology[*id].gpus >= job.ranks_per_host)
        .collect();
    let free = sites_of(topology, fit);
    if free.len() < wanted {
        return Err(Failure::Input(format!(
            "error: job '{}' needs {wanted} hosts with {} GPUs, and {} are there that are not drained: lower its \
             parallel sizes or `ranks_per_host`",
            job.name,
            job.ranks_per_host,
            free.len()
        )));
    }
    Ok(choose(&free, wanted)
        .into_iter()
        .map(|i| HostId(free[i].host))
        .collect())
}

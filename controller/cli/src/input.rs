//! Topologies and jobs: read from files, or the copies that are built in.

use std::io::IsTerminal as _;
use std::path::Path;

use ::topology::{LoadError, Topology};
use controller::workload::{Job, JobError, Workload};

use crate::failure::Failure;
use crate::output;

/// Reads and checks a topology file; `-` is standard input.
pub(crate) fn topology(path: &Path) -> Result<Topology, Failure> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map_err(|source| {
            Failure::File {
                path: path.to_owned(),
                source,
            }
        })?;
        return Topology::parse_bytes("standard input", &bytes).map_err(|r| render(&r));
    }
    Topology::load(path).map_err(|error| match error {
        LoadError::Invalid(report) => render(&report),
        LoadError::Read { path, source } => Failure::File { path, source },
    })
}

/// A report of problems, ready for standard error. What a file has of control characters
/// must not reach a terminal; such reports go without colours and with the characters named.
pub(crate) fn render(report: &::topology::Report) -> Failure {
    let plain = report.render(false);
    let safe = output::printable(&plain);
    if safe == plain && std::io::stderr().is_terminal() {
        return Failure::Input(report.render(true));
    }
    Failure::Input(safe)
}

/// Reads a job file of any form.
pub(crate) fn workload(path: &Path) -> Result<Workload, Failure> {
    Workload::load(path).map_err(|error| match error {
        JobError::Invalid(report) => render(&report),
        JobError::Read { path, source } => Failure::File { path, source },
    })
}

/// Reads a text file.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| Failure::File {
        path: path.to_owned(),
        source,
    })
}

/// The demo's fabric: the file named, else `topologies/demo.yaml` where that is, else
/// the copy that this command was built with.
pub(crate) fn demo_topology(path: Option<&Path>) -> Result<Topology, Failure> {
    const FILE: &str = "topologies/demo.yaml";
    const BUILT_IN: &str = include_str!("../../../topologies/demo.yaml");
    match path {
        Some(path) => topology(path),
        None if Path::new(FILE).exists() => topology(Path::new(FILE)),
        None => Topology::parse("the built-in demo.yaml", BUILT_IN).map_err(|r| render(&r)),
    }
}

/// The demo's job, found as its fabric is.
pub(crate) fn demo_job(path: Option<&Path>) -> Result<Job, Failure> {
    const FILE: &str = "topologies/jobs/demo-allreduce.yaml";
    const BUILT_IN: &str = include_str!("../../../topologies/jobs/demo-allreduce.yaml");
    let load = |path: &Path| {
        Job::load(path).map_err(|error| match error {
            JobError::Invalid(report) => render(&report),
            JobError::Read { path, source } => Failure::File { path, source },
        })
    };
    match path {
        Some(path) => load(path),
        None if Path::new(FILE).exists() => load(Path::new(FILE)),
        None => Job::parse("the built-in demo-allreduce.yaml", BUILT_IN).map_err(|r| render(&r)),
    }
}

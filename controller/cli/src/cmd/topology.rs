//! `meridian topology`: generate, show, import.

use std::path::Path;

use ::topology::units::parse_speed;
use ::topology::{Clos, PerTier, Topology, generate};

use crate::args::{GenerateArgs, TopologyArgs, TopologyCommand};
use crate::failure::Failure;
use crate::{input, output};

/// Runs the command.
pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    match &args.command {
        TopologyCommand::Generate(args) => generate_explicit(args),
        TopologyCommand::Show(args) => super::show::run(args),
        TopologyCommand::Import(args) => super::import::run(args),
    }
}

fn generate_explicit(args: &GenerateArgs) -> Result<(), Failure> {
    let topology = match &args.file {
        Some(file) => input::topology(file)?,
        None => {
            generate(&clos(args)?).map_err(|error| Failure::Input(format!("error: {error}")))?
        }
    };
    write_topology(&topology, args.output.as_deref())
}

/// Writes the explicit form to a file, or to standard output.
pub(crate) fn write_topology(topology: &Topology, path: Option<&Path>) -> Result<(), Failure> {
    let yaml = topology.to_yaml();
    match path {
        None => output::write_all(&yaml),
        Some(path) => output::write_file(path, &yaml),
    }
}

fn clos(args: &GenerateArgs) -> Result<Clos, Failure> {
    let speed = parse_speed(&args.speed)
        .map_err(|error| Failure::Input(format!("error: --speed {}: {error}", args.speed)))?;
    Ok(Clos {
        name: args.name.clone(),
        segments: args.segments,
        hosts: ::topology::HostCounts::Each(args.hosts),
        rails: args.rails,
        dual_tor: args.dual_tor,
        planes: args.planes,
        spines: Some(args.spines),
        cores: args.cores,
        pods: args.pods,
        speeds: PerTier {
            host: speed,
            spine: speed,
            core: speed,
        },
        ..Clos::default()
    })
}

//! `meridian topology`: generate, show, import.

use ::topology::show::Summary;
use ::topology::units::parse_speed;
use ::topology::{Clos, PerTier, generate};
use serde::Serialize;

use crate::args::{Format, GenerateArgs, TopologyArgs, TopologyCommand};
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
    let Some(path) = &args.output else {
        if args.format == Format::Json {
            return Err(Failure::Input(
                "error: topologies are YAML; with --format json, name a file for it with -o"
                    .to_owned(),
            ));
        }
        return output::write_all(&topology.to_yaml());
    };
    output::write_file(path, &topology.to_yaml())?;
    let generated = Generated {
        written: path.display().to_string(),
        summary: Summary::of(&topology),
    };
    output::print(args.format, &generated, |generated| {
        format!("{}\nwritten to {}", generated.summary, generated.written)
    })
}

/// What `generate -o FILE --format json` prints.
#[derive(Debug, Serialize)]
struct Generated {
    written: String,
    summary: Summary,
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

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
        None if args.irregular.irregular => super::irregular::fabric(args)?,
        None => {
            generate(&clos(args)?).map_err(|error| Failure::Input(format!("error: {error}")))?
        }
    };
    let mut yaml = topology.to_yaml();
    if args.irregular.irregular {
        yaml.insert_str(0, &format!("# {}\n", super::irregular::command(args)));
    }
    let Some(path) = &args.output else {
        if args.format == Format::Json {
            return Err(Failure::Input(
                "error: topologies are YAML; with --format json, name a file for it with -o"
                    .to_owned(),
            ));
        }
        return output::write_all(&yaml);
    };
    output::write_file(path, &yaml)?;
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

pub(super) fn speed(option: &str, text: &str) -> Result<u64, Failure> {
    parse_speed(text).map_err(|error| Failure::Input(format!("error: {option} {text}: {error}")))
}

fn clos(args: &GenerateArgs) -> Result<Clos, Failure> {
    let speed = speed("--speed", &args.speed)?;
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

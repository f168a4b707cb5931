//! `meridian check`: is a topology file sound?

use ::topology::{LoadError, Problem, Topology};
use serde::Serialize;

use crate::args::{CheckArgs, Format};
use crate::failure::Failure;
use crate::{input, output};

/// What `check --format json` prints.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    file: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Counts>,
    problems: &'a [Problem],
    more_problems: usize,
}

#[derive(Debug, Serialize)]
struct Counts {
    name: String,
    switches: usize,
    hosts: usize,
    nics: usize,
    links: usize,
    la_domains: usize,
}

impl Counts {
    fn of(topology: &Topology) -> Self {
        Self {
            name: topology.name().to_owned(),
            switches: topology.switches().len(),
            hosts: topology.hosts().len(),
            nics: topology.nics().len(),
            links: topology.links().len(),
            la_domains: topology.las().len(),
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let file = args.file.display().to_string();
    match Topology::load(&args.file) {
        Ok(topology) => {
            let checked = Checked {
                file,
                ok: true,
                summary: Some(Counts::of(&topology)),
                problems: &[],
                more_problems: 0,
            };
            output::print(args.format, &checked, text)
        }
        Err(LoadError::Read { path, source }) => Err(Failure::File { path, source }),
        Err(LoadError::Invalid(report)) => {
            if args.format == Format::Json {
                let checked = Checked {
                    file,
                    ok: false,
                    summary: None,
                    problems: report.problems(),
                    more_problems: report.dropped(),
                };
                output::print(args.format, &checked, text)?;
            }
            Err(input::render(&report))
        }
    }
}

fn text(checked: &Checked<'_>) -> String {
    let Some(counts) = &checked.summary else {
        return String::new();
    };
    format!(
        "{}: '{}' is sound: {} switches, {} hosts, {} NICs, {} links, {} LA domains",
        checked.file,
        counts.name,
        counts.switches,
        counts.hosts,
        counts.nics,
        counts.links,
        counts.la_domains,
    )
}

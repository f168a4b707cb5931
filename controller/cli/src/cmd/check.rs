//! `meridian check`: is a topology file sound?

use std::sync::Arc;

use ::topology::{LoadError, Problem, Tier, Topology};
use controller::intent::{Options, Planner};
use controller::routing::LinkSet;
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
    /// Ordered pairs of a leaf and an LA domain that it has no way to.
    no_way: usize,
    /// The first of them.
    no_way_examples: Vec<String>,
}

/// Pairs without a way that are named.
const MOST_NAMED: usize = 5;

impl Counts {
    fn of(topology: Topology) -> Self {
        let topology = Arc::new(topology);
        let (no_way, no_way_examples) = without_way(&topology);
        Self {
            no_way,
            no_way_examples,
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
                summary: Some(Counts::of(topology)),
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

/// Leaves and LA domains between which the routes find no way up and down: separate islands by
/// design (rail-only fabrics), or links that were forgotten.
fn without_way(topology: &Arc<Topology>) -> (usize, Vec<String>) {
    let planner = Planner::new(Arc::clone(topology), Options::default());
    let view = planner.view(&LinkSet::none());
    let (mut count, mut examples) = (0, Vec::new());
    for la in topology.la_ids() {
        let first = topology[la].nics.first();
        let Some(destination) = first.and_then(|nic| view.targets.of_nic[nic.index()]) else {
            continue;
        };
        for leaf in topology.tier(Tier::Leaf) {
            if view.routes.distance(destination, leaf.0).is_none() {
                count += 1;
                if examples.len() < MOST_NAMED {
                    examples.push(format!("{} to {}", topology[leaf].name, topology[la].name));
                }
            }
        }
    }
    (count, examples)
}

fn text(checked: &Checked<'_>) -> String {
    let Some(counts) = &checked.summary else {
        return String::new();
    };
    let mut text = format!(
        "{}: '{}' is sound: {} switches, {} hosts, {} NICs, {} links, {} LA domains",
        checked.file,
        counts.name,
        counts.switches,
        counts.hosts,
        counts.nics,
        counts.links,
        counts.la_domains,
    );
    if counts.no_way > 0 {
        text.push_str(&format!(
            "\nnote: {} pairs of a leaf and an LA domain have no way up and down between them, among them {}; \
             right for rails without spines, else links are missing",
            counts.no_way,
            counts.no_way_examples.join(", "),
        ));
    }
    text
}

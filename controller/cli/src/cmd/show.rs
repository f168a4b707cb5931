//! `meridian topology show`: sums up a topology.

use ::topology::show::Summary;

use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::{input, output};

/// Runs the command.
pub(crate) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let topology = input::topology(&args.file)?;
    if let Some(name) = &args.switch {
        let found = topology
            .switch_ids()
            .find(|id| topology[*id].name == *name)
            .ok_or_else(|| unknown_switch(&topology, name))?;
        return output::write_all(&::topology::show::port_table(&topology, found));
    }
    output::print(args.format, &Summary::of(&topology), |summary| {
        let mut text = summary.to_string();
        if args.la {
            text.push('\n');
            text.push_str(&::topology::show::la_table(&topology));
        }
        text
    })
}

fn unknown_switch(topology: &::topology::Topology, name: &str) -> Failure {
    const MOST: usize = 20;
    let names: Vec<&str> = topology
        .switches()
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    let more = if names.len() > MOST { ", ..." } else { "" };
    Failure::Input(format!(
        "error: no switch is named '{name}'; there are: {}{more}",
        names[..names.len().min(MOST)].join(", "),
    ))
}

//! `meridian topology import`: another tool's output as a topology, and what is odd
//! about the fabric it describes.

use ::topology::import::{Finding, ibnetdiscover};
use ::topology::show::Summary;
use serde::Serialize;

use super::topology::write_topology;
use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::{input, output};

/// What `import --format json` prints.
#[derive(Debug, Serialize)]
struct Imported {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<String>,
    summary: Summary,
    findings: Vec<Finding>,
}

/// Runs the command.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let text = input::text(&args.file)?;
    let file = args.file.display().to_string();
    let (topology, findings) =
        ibnetdiscover(&text).map_err(|error| Failure::Input(format!("error: {file}: {error}")))?;
    if let Some(path) = &args.output {
        write_topology(&topology, Some(path))?;
    }
    let imported = Imported {
        file,
        written: args.output.as_ref().map(|path| path.display().to_string()),
        summary: Summary::of(&topology),
        findings,
    };
    output::print(args.format, &imported, report)
}

fn report(imported: &Imported) -> String {
    let mut text = format!("{}\n", imported.summary.to_string().trim_end());
    if imported.findings.is_empty() {
        text.push_str("\nnothing odd was found\n");
    } else {
        text.push_str(&format!("\n{} findings:\n", imported.findings.len()));
    }
    for finding in &imported.findings {
        text.push_str(&format!(
            "  {}:{}: {}\n",
            imported.file, finding.line, finding.message
        ));
    }
    if let Some(path) = &imported.written {
        text.push_str(&format!("\nwritten to {path}\n"));
    } else {
        text.push_str("\nnot written; name a file with -o to keep the topology\n");
    }
    text
}

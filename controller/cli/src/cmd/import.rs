//! `meridian topology import`: another tool's output as a topology, and what is odd
//! about the fabric it describes.

use std::collections::BTreeMap;

use ::topology::import::{Finding, FindingKind, ibnetdiscover};
use ::topology::show::Summary;
use serde::Serialize;

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::{input, output};

/// Findings of one kind that are shown as text.
const MOST_SHOWN: usize = 12;

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
        output::write_file(path, &topology.to_yaml())?;
    }
    let imported = Imported {
        file,
        written: args.output.as_ref().map(|path| path.display().to_string()),
        summary: Summary::of(&topology),
        findings,
    };
    output::print(args.format, &imported, |imported| {
        output::printable(&report(imported))
    })
}

fn report(imported: &Imported) -> String {
    let mut text = format!("{}\n", imported.summary.to_string().trim_end());
    if imported.findings.is_empty() {
        text.push_str("\nnothing odd was found\n");
    }
    let mut kinds: BTreeMap<FindingKind, Vec<&Finding>> = BTreeMap::new();
    for finding in &imported.findings {
        kinds.entry(finding.kind).or_default().push(finding);
    }
    for (kind, findings) in kinds {
        text.push_str(&format!("\n{} x {}:\n", findings.len(), kind_name(kind)));
        for finding in findings.iter().take(MOST_SHOWN) {
            let (file, line) = (&imported.file, finding.line);
            text.push_str(&format!("  {file}:{line}: {}\n", finding.message));
        }
        if findings.len() > MOST_SHOWN {
            let more = findings.len() - MOST_SHOWN;
            text.push_str(&format!(
                "  ... and {more} more (--format json lists all)\n"
            ));
        }
    }
    if let Some(path) = &imported.written {
        text.push_str(&format!("\nwritten to {path}\n"));
    } else {
        text.push_str("\nnot written; name a file with -o to keep the topology\n");
    }
    text
}

/// A kind's name as in the JSON form.
fn kind_name(kind: FindingKind) -> String {
    let json = sonic_rs::to_string(&kind).unwrap_or_default();
    json.trim_matches('"').replace('-', " ")
}

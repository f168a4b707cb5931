//! Jobs from traces of collectives that others recorded or generated.
//!
//! Three formats: SimAI's workload files ([`simai`]), the CSV files of AICB ([`aicb`]) and Chakra execution
//! traces ([`chakra`]). A trace is what one rank does in one iteration, and every rank of the same place in
//! the grid does the same, so operations of the same kind, group and size become one exchange that is
//! repeated. What cannot be told from a trace is asked for, and what is left out is listed.

mod aicb;
mod chakra;
mod chakra_json;
mod simai;

use super::exchange::{Exchange, Operation, Workload};
use super::grid::{Grid, GridError, Over};
use std::collections::BTreeMap;

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// SimAI's workload file.
    Simai,
    /// AICB's CSV file.
    Aicb,
    /// A Chakra execution trace of one rank.
    Chakra,
}

impl TraceFormat {
    /// All formats, with their names.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("simai", Self::Simai),
        ("aicb", Self::Aicb),
        ("chakra", Self::Chakra),
    ];

    /// The format of a trace, by how it begins.
    #[must_use]
    pub fn guess(bytes: &[u8]) -> Self {
        let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
        if begin.contains("comm_type,comm_group") {
            Self::Aicb
        } else if begin.contains("all_gpus:") || begin.contains("model_parallel_NPU_group") {
            Self::Simai
        } else {
            Self::Chakra
        }
    }
}

/// What a trace does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// Name for the job.
    pub name: String,
    /// Ranks on each host.
    pub ranks_per_host: u32,
    /// Parallel sizes tp, cp, dp, pp, ep, for traces that don't have them: Chakra's, and AICB's where lines
    /// have no `comm_group_size`. 1 where not known.
    pub sizes: [u32; 5],
    /// Which ranks a process group of a Chakra trace stands for; others stand for all ranks.
    pub groups: Vec<(String, Over)>,
}

/// A trace as a job, with what was left out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The job.
    pub workload: Workload,
    /// What was left out or assumed, one sentence each.
    pub notes: Vec<String>,
}

/// Why a trace can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A line is not what the format says.
    #[error("line {line}: {what}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong, and what should be there.
        what: String,
    },
    /// A record of a binary trace is not what the format says.
    #[error("record {record}, at byte {offset}: {what}")]
    Record {
        /// From 0.
        record: usize,
        /// Where it begins.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// The sizes in the trace make no grid.
    #[error("the trace's parallel sizes: {0}")]
    Grid(#[from] GridError),
    /// Something that the format needs is not there.
    #[error("{0}")]
    Missing(String),
}

/// Reads a trace.
///
/// # Errors
/// Where and how it is not of its format.
pub fn import(format: TraceFormat, bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    match format {
        TraceFormat::Simai => simai::read(text(bytes)?, hints),
        TraceFormat::Aicb => aicb::read(text(bytes)?, hints),
        TraceFormat::Chakra => chakra::read(bytes, hints),
    }
}

fn text(bytes: &[u8]) -> Result<&str, ImportError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        ImportError::Line {
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            what: "this is no text; is the format right?".to_owned(),
        }
    })
}

/// Operations that are being counted.
#[derive(Default)]
struct Tally {
    /// By kind, group and size: the first's name, and how many.
    count: BTreeMap<(Operation, Over, u64), (String, u64)>,
    /// What is left out, and how often.
    left_out: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, name: &str, operation: Operation, over: Over, bytes: u64, times: u64) {
        if bytes == 0 || times == 0 {
            return;
        }
        let entry = self
            .count
            .entry((operation, over, bytes))
            .or_insert_with(|| (name.to_owned(), 0));
        entry.1 += times;
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        *self.left_out.entry(what.into()).or_default() += 1;
    }

    fn finish(self, hints: &Hints, grid: Grid, compute_ns: u64) -> Result<Imported, ImportError> {
        let mut notes: Vec<String> = self
            .left_out
            .into_iter()
            .map(|(what, times)| format!("left out: {what}, {times} times"))
            .collect();
        let world = grid.world_size();
        if !world.is_multiple_of(hints.ranks_per_host.max(1)) {
            return Err(ImportError::Missing(format!(
                "{world} ranks do not fill hosts of {}: give the ranks per host",
                hints.ranks_per_host
            )));
        }
        let mut exchanges: Vec<Exchange> = Vec::new();
        for ((operation, over, bytes), (name, times)) in self.count {
            if grid.group_size(over) < 2 {
                notes.push(format!(
                    "left out: {} of {bytes} bytes over {}, which is one rank here, {times} times",
                    operation.name(),
                    over.name()
                ));
                continue;
            }
            let mut exchange = Exchange::new(&unique(&name, &exchanges), operation, over, bytes);
            exchange.times = times;
            exchanges.push(exchange);
        }
        let workload = Workload {
            name: hints.name.clone(),
            grid,
            ranks_per_host: hints.ranks_per_host,
            scale_up: hints.ranks_per_host,
            channels: None,
            offload_ppm: 0,
            compute_ns,
            exchanges,
        };
        Ok(Imported { workload, notes })
    }
}

/// A name that job files allow and that no other exchange has.
fn unique(name: &str, others: &[Exchange]) -> String {
    let clean: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    let clean = match clean.trim_matches('-') {
        "" => "exchange",
        clean => clean,
    };
    let taken = |name: &str| others.iter().any(|e| e.name == name);
    if !taken(clean) {
        return clean.to_owned();
    }
    (2..)
        .map(|n| format!("{clean}-{n}"))
        .find(|name| !taken(name))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! AICB's CSV files: one operation per line, of one rank of the first pipeline stage.
//!
//! Lines up to the first `epoch_end` set things up; what lies between the last two is taken as an iteration.
//! Sizes of groups are in the lines, in files that have the column `comm_group_size`; else they are asked for.
//! `msg_size` is the whole array.

use super::simai::shown;
use super::{Hints, ImportError, Imported, Tally};
use crate::workload::{Grid, Operation, Over};
use std::collections::BTreeMap;

/// Columns that are read.
const COLUMNS: [&str; 3] = ["comm_type", "comm_group", "msg_size"];

struct Row<'a> {
    kind: &'a str,
    group: &'a str,
    size: u32,
    bytes: u64,
    stage: &'a str,
    times: u64,
}

pub(super) fn read(text: &str, hints: &Hints) -> Result<Imported, ImportError> {
    let mut columns: Option<BTreeMap<&str, usize>> = None;
    let mut epochs: Vec<Vec<Row<'_>>> = vec![Vec::new()];
    let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with("comm_type,") {
            columns = Some(header(line, text)?);
            continue;
        }
        let Some(columns) = &columns else { continue };
        if text.trim().is_empty() {
            continue;
        }
        let row = row(line, text, columns)?;
        if row.kind == "epoch_end" {
            epochs.push(Vec::new());
            continue;
        }
        if row.size > 0 {
            let known = *sizes.entry(row.group).or_insert(row.size);
            if known != row.size {
                let what = format!(
                    "{} has {} ranks here and {known} before",
                    shown(row.group),
                    row.size
                );
                return Err(ImportError::Line { line, what });
            }
        }
        if let Some(epoch) = epochs.last_mut() {
            epoch.push(row);
        }
    }
    if columns.is_none() {
        return Err(ImportError::Missing(
            "no line that begins with `comm_type,comm_group`".to_owned(),
        ));
    }
    // What no line says is taken from the hints.
    let [tp, cp, dp, pp, ep] = hints.sizes;
    let size = |group: &str, hint: u32| sizes.get(group).copied().unwrap_or(hint);
    let (ep, edp) = (size("ep_group", ep), size("ep_dp_group", 1));
    let dp = size("dp_group", dp).max(ep.saturating_mul(edp));
    let grid = Grid::new(size("tp_group", tp), cp, dp, size("pp_group", pp), ep)?;
    let iteration = epochs
        .iter()
        .rev()
        .find(|epoch| epoch.iter().any(|r| r.bytes > 0));
    let mut tally = Tally::default();
    for row in iteration.into_iter().flatten() {
        count(row, &mut tally);
    }
    tally.finish(hints, grid, 0)
}

fn header(line: usize, text: &str) -> Result<BTreeMap<&str, usize>, ImportError> {
    let columns: BTreeMap<&str, usize> = text.split(',').map(str::trim).zip(0..).collect();
    for name in COLUMNS {
        if !columns.contains_key(name) {
            let what = format!("no column `{name}`");
            return Err(ImportError::Line { line, what });
        }
    }
    Ok(columns)
}

fn row<'a>(
    line: usize,
    text: &'a str,
    columns: &BTreeMap<&str, usize>,
) -> Result<Row<'a>, ImportError> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let field = |name: &str| {
        columns
            .get(name)
            .and_then(|at| fields.get(*at))
            .copied()
            .unwrap_or("")
    };
    let number = |name: &str, default: u64| match field(name) {
        "" | "None" => Ok(default),
        word => word
            .parse::<f64>()
            .ok()
            .filter(|n| *n >= 0.0 && *n < 1e18)
            .map(|n| n as u64)
            .ok_or_else(|| {
                let what = format!("`{name}` should be a number, not `{}`", shown(word));
                ImportError::Line { line, what }
            }),
    };
    let bare = |name: &str| field(name).rsplit('.').next().unwrap_or("");
    Ok(Row {
        kind: bare("comm_type"),
        group: bare("comm_group"),
        size: u32::try_from(number("comm_group_size", 0)?).unwrap_or(u32::MAX),
        bytes: number("msg_size", 0)?,
        stage: field("stage"),
        times: number("count", 1)?,
    })
}

fn count(row: &Row<'_>, tally: &mut Tally) {
    let over = match row.group {
        "tp_group" => Over::Tensor,
        "dp_group" => Over::DataContext,
        "pp_group" => Over::Pipeline,
        "ep_group" => Over::Expert,
        "ep_dp_group" => Over::ExpertData,
        "all" => Over::World,
        _ => {
            if row.kind != "computation" && row.bytes > 0 {
                tally.leave_out(format!("{} over {}", shown(row.kind), shown(row.group)));
            }
            return;
        }
    };
    let operation = match row.kind {
        "all_reduce" => Operation::AllReduce,
        "all_gather" | "all_gather_into_tensor" => Operation::AllGather,
        "reduce_scatter" | "reduce_scatter_tensor" => Operation::ReduceScatter,
        "all_to_all" | "all_to_all_single" => Operation::AllToAll,
        // The first stage sends each micro-batch forward once; what comes back is its mirror image.
        "isend" | "send" if over == Over::Pipeline => Operation::Pipeline,
        "irecv" | "recv" | "computation" | "barrier" => return,
        other => {
            tally.leave_out(format!("{} over {}", shown(other), over.name()));
            return;
        }
    };
    if (operation == Operation::Pipeline) != (over == Over::Pipeline) {
        tally.leave_out(format!("{} over {}", operation.name(), over.name()));
        return;
    }
    let name = row.stage.rsplit('.').next().unwrap_or("");
    tally.add(name, operation, over, row.bytes, row.times);
}

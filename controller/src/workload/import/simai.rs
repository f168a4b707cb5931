//! SimAI's workload files.
//!
//! The first line names the parallel sizes, the second counts the layers, and each further line is a layer
//! with computing time and communication of its forward pass, its input gradients and its weight gradients:
//! twelve fields. Communication of the first two is over the tensor group, of the last over the
//! data-parallel one, unless its name ends in `_EP` (experts), `_DP_EP` (replicas of experts) or `_DP`.

use super::{Hints, ImportError, Imported, Tally};
use crate::workload::{Grid, Operation, Over};

pub(super) fn read(text: &str, hints: &Hints) -> Result<Imported, ImportError> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()));
    let lines = lines.by_ref().filter(|(_, line)| !line.is_empty());
    let mut lines = lines.peekable();
    let (line, header) = lines
        .next()
        .ok_or_else(|| ImportError::Missing("the file is empty".to_owned()))?;
    let header = Header::parse(line, header)?;
    let (line, count) = lines.next().ok_or_else(|| {
        ImportError::Missing("the number of layers, on the second line".to_owned())
    })?;
    let count: usize = count.parse().map_err(|_| ImportError::Line {
        line,
        what: format!(
            "the number of layers should be here, not `{}`",
            shown(count)
        ),
    })?;
    let mut tally = Tally::default();
    let (mut compute_ns, mut layers) = (0u64, 0);
    for (line, text) in lines {
        compute_ns = compute_ns.saturating_add(layer(line, text, &mut tally)?);
        layers += 1;
    }
    if layers != count {
        return Err(ImportError::Missing(format!(
            "{count} layers are announced and {layers} are there: the file is cut off, or its second line is wrong"
        )));
    }
    tally.add(
        "stages",
        Operation::Pipeline,
        Over::Pipeline,
        header.pp_bytes,
        header.micro_batches,
    );
    tally.finish(hints, header.grid, compute_ns)
}

struct Header {
    grid: Grid,
    micro_batches: u64,
    pp_bytes: u64,
}

impl Header {
    fn parse(line: usize, text: &str) -> Result<Self, ImportError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = |name: &str| -> Result<Option<u64>, ImportError> {
            let at = words.iter().position(|w| w.trim_end_matches(':') == name);
            let Some(word) = at.and_then(|at| words.get(at + 1)) else {
                return Ok(None);
            };
            word.parse().map(Some).map_err(|_| ImportError::Line {
                line,
                what: format!("`{name}` should be a number, not `{}`", shown(word)),
            })
        };
        let size = |name: &str| -> Result<Option<u32>, ImportError> {
            let wide = |v: u64| ImportError::Line {
                line,
                what: format!("`{name}` is {v}, which is more ranks than there can be"),
            };
            value(name)?
                .map(|v| u32::try_from(v).map_err(|_| wide(v)))
                .transpose()
        };
        let missing = |name: &str| ImportError::Line {
            line,
            what: format!("the first line has no `{name}: ...`"),
        };
        let world = size("all_gpus")?.ok_or_else(|| missing("all_gpus"))?;
        let tp =
            size("model_parallel_NPU_group")?.ok_or_else(|| missing("model_parallel_NPU_group"))?;
        let (pp, ep) = (size("pp")?.unwrap_or(1), size("ep")?.unwrap_or(1));
        let inner = u64::from(tp) * u64::from(pp);
        if inner == 0 || !u64::from(world).is_multiple_of(inner) || world == 0 {
            let what = format!(
                "`all_gpus` is {world}, no multiple of model_parallel_NPU_group x pp, which is {inner}"
            );
            return Err(ImportError::Line { line, what });
        }
        let dp = u32::try_from(u64::from(world) / inner).unwrap_or(u32::MAX);
        Ok(Self {
            grid: Grid::new(tp, 1, dp, pp, ep)?,
            micro_batches: value("ga")?.unwrap_or(1),
            pp_bytes: value("pp_comm")?.unwrap_or(0),
        })
    }
}

/// One layer; its computing time, ns.
fn layer(line: usize, text: &str, tally: &mut Tally) -> Result<u64, ImportError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() < 11 {
        let what = format!("a layer has twelve fields, and this line {}", fields.len());
        return Err(ImportError::Line { line, what });
    }
    let number = |index: usize| -> Result<u64, ImportError> {
        fields[index].parse().map_err(|_| ImportError::Line {
            line,
            what: format!(
                "field {} should be a whole number, not `{}`",
                index + 1,
                shown(fields[index])
            ),
        })
    };
    let mut compute = 0u64;
    for (part, group) in [(2, Over::Tensor), (5, Over::Tensor), (8, Over::DataContext)] {
        compute = compute.saturating_add(number(part)?);
        let (kind, bytes) = (fields[part + 1], number(part + 2)?);
        if kind == "NONE" {
            continue;
        }
        let (operation, over) = operation(kind, group).ok_or_else(|| ImportError::Line {
            line,
            what: format!(
                "field {} is `{}`; known are NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER and ALLTOALL, with _DP, _EP or _DP_EP",
                part + 2,
                shown(kind)
            ),
        })?;
        tally.add(fields[0], operation, over, bytes, 1);
    }
    Ok(compute)
}

fn operation(kind: &str, group: Over) -> Option<(Operation, Over)> {
    let suffixes = [
        ("_DP_EP", Over::ExpertData),
        ("_EP", Over::Expert),
        ("_DP", Over::DataContext),
    ];
    let (kind, over) = suffixes
        .into_iter()
        .find_map(|(suffix, over)| Some((kind.strip_suffix(suffix)?, over)))
        .unwrap_or((kind, group));
    let operation = match kind {
        "ALLREDUCE" => Operation::AllReduce,
        "ALLGATHER" => Operation::AllGather,
        "REDUCESCATTER" => Operation::ReduceScatter,
        "ALLTOALL" => Operation::AllToAll,
        _ => return None,
    };
    Some((operation, over))
}

/// A word from a file, short enough for a message.
pub(super) fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

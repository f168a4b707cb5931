//! Chakra execution traces, as JSON ([`super::chakra_json`]) or as protobuf messages, each after its length as a varint. The first is metadata,
//! the others are nodes (MLCommons Chakra, `et_def.proto`); attributes of collectives are `comm_type`,
//! `comm_size` in bytes, and `pg_name` or `comm_group`.

use super::{Hints, ImportError, Imported, Tally, chakra_json};
use crate::workload::{Grid, Operation, Over};
use prost::Message;

/// The fields of a node that matter here.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, optional, tag = "7")]
    pub(super) int32: Option<i32>,
    #[prost(int64, optional, tag = "9")]
    pub(super) int64: Option<i64>,
    #[prost(uint32, optional, tag = "11")]
    pub(super) uint32: Option<u32>,
    #[prost(uint64, optional, tag = "13")]
    pub(super) uint64: Option<u64>,
    #[prost(string, optional, tag = "29")]
    pub(super) text: Option<String>,
}

impl Node {
    fn number(&self, name: &str) -> Option<u64> {
        let attribute = self.attributes.iter().find(|a| a.name == name)?;
        attribute
            .uint64
            .or(attribute.uint32.map(u64::from))
            .or(attribute.int64.and_then(|v| v.try_into().ok()))
            .or(attribute.int32.and_then(|v| v.try_into().ok()))
    }

    fn text(&self, name: &str) -> Option<&str> {
        let attribute = self.attributes.iter().find(|a| a.name == name)?;
        attribute.text.as_deref()
    }
}

const COMPUTE: i32 = 4;
const SEND: i32 = 5;
const COLLECTIVE: i32 = 7;

/// What a trace consists of.
pub(super) enum Record {
    /// The metadata, which is the first.
    Metadata,
    /// Any other.
    Node(Node),
}

pub(super) fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let [tp, cp, dp, pp, ep] = hints.sizes;
    let grid = Grid::new(tp, cp, dp, pp, ep)?;
    if bytes.is_empty() {
        return Err(ImportError::Missing("the file is empty".to_owned()));
    }
    let records = if chakra_json::is_json(bytes) {
        chakra_json::nodes(super::text(bytes)?)?
    } else {
        messages(bytes)?
    };
    let (mut tally, mut compute_us, mut nodes) = (Tally::default(), 0u64, 0);
    for record in &records {
        let Record::Node(node) = record else { continue };
        nodes += 1;
        count(node, hints, &mut tally);
        if node.kind == COMPUTE {
            compute_us = compute_us.saturating_add(node.duration_micros);
        }
    }
    if nodes == 0 {
        return Err(ImportError::Missing("the trace has no nodes".to_owned()));
    }
    tally.finish(hints, grid, compute_us.saturating_mul(1000))
}

/// Protobuf messages, each after its length.
fn messages(bytes: &[u8]) -> Result<Vec<Record>, ImportError> {
    let (mut rest, mut records) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (record, offset) = (records.len(), bytes.len() - rest.len());
        let wrong = |what: String| ImportError::Record {
            record,
            offset,
            what,
        };
        let length = prost::decode_length_delimiter(rest).map_err(|e| wrong(e.to_string()))?;
        let start = prost::length_delimiter_len(length);
        let body = rest.get(start..).and_then(|r| r.get(..length));
        let body = body.ok_or_else(|| {
            wrong(format!("{length} bytes are announced, and the file ends before: is it cut off, or no trace?"))
        })?;
        records.push(if record == 0 {
            Record::Metadata
        } else {
            Record::Node(Node::decode(body).map_err(|error| wrong(error.to_string()))?)
        });
        rest = &rest[start + length..];
    }
    Ok(records)
}

fn count(node: &Node, hints: &Hints, tally: &mut Tally) {
    let bytes = node.number("comm_size").unwrap_or(0);
    if node.kind == SEND {
        tally.add(&node.name, Operation::Pipeline, Over::Pipeline, bytes, 1);
        return;
    }
    if node.kind != COLLECTIVE {
        return;
    }
    let operation = match (node.number("comm_type"), node.text("comm_type")) {
        (Some(0), _) | (_, Some("ALL_REDUCE")) => Operation::AllReduce,
        (Some(2), _) | (_, Some("ALL_GATHER")) => Operation::AllGather,
        (Some(6), _) | (_, Some("ALL_TO_ALL")) => Operation::AllToAll,
        (Some(7 | 8), _) | (_, Some("REDUCE_SCATTER" | "REDUCE_SCATTER_BLOCK")) => {
            Operation::ReduceScatter
        }
        (number, text) => {
            let what = text.map_or_else(|| format!("{number:?}"), str::to_owned);
            tally.leave_out(format!("collectives of type {what}"));
            return;
        }
    };
    let group = node
        .text("pg_name")
        .or_else(|| node.text("comm_group"))
        .unwrap_or("");
    let known = hints.groups.iter().find(|(name, _)| name == group);
    let over = known.map_or(Over::World, |(_, over)| *over);
    tally.add(&node.name, operation, over, bytes, 1);
}

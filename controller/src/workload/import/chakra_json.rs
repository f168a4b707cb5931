//! Chakra traces as JSON: what its jsonizer writes (the metadata's object, then one object per node, one after
//! the other, in protobuf's JSON mapping), and what its feeder reads (`{"workload_graph": [...]}`).

use super::ImportError;
use super::chakra::{Attribute, Node, Record};
use serde::Deserialize;

/// Whether a trace is JSON. The protobuf form begins with the length of its metadata, which could be the
/// number of a brace, but is not followed by a quote then.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    let mut visible = bytes.iter().filter(|b| !b.is_ascii_whitespace());
    matches!(visible.next(), Some(b'{' | b'['))
        && matches!(visible.next(), Some(b'"' | b'{' | b'}' | b']'))
}

/// A number; protobuf writes 64-bit ones as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(n) => (*n >= 0.0 && *n < 1.8e19).then_some(*n as u64),
            Self::Text(text) => text.parse().ok(),
        }
    }

    fn attribute(&self, name: &str) -> Attribute {
        let text = match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(_) => None,
        };
        Attribute {
            name: name.to_owned(),
            uint64: self.number(),
            text,
            ..Attribute::default()
        }
    }
}

/// A node of either form. Of the metadata's object nothing is known here.
#[derive(Deserialize)]
struct JsonNode {
    #[serde(default, alias = "Name")]
    name: String,
    #[serde(default, rename = "type", alias = "NodeType")]
    kind: Option<Value>,
    #[serde(
        default,
        rename = "durationMicros",
        alias = "duration_micros",
        alias = "runtime"
    )]
    duration_micros: Option<Value>,
    #[serde(default)]
    attr: Vec<JsonAttribute>,
    comm_type: Option<Value>,
    comm_size: Option<Value>,
    pg_name: Option<Value>,
    comm_group: Option<Value>,
}

#[derive(Deserialize)]
struct JsonAttribute {
    name: String,
    #[serde(
        rename = "int64Val",
        alias = "int64_val",
        alias = "uint64Val",
        alias = "uint64_val",
        alias = "int32Val",
        alias = "int32_val",
        alias = "uint32Val",
        alias = "uint32_val",
        alias = "sint64Val",
        alias = "sint32Val",
        alias = "fixed64Val",
        alias = "fixed32Val",
        alias = "stringVal",
        alias = "string_val"
    )]
    value: Option<Value>,
}

/// Names of the kinds of nodes, by number.
const KINDS: [&str; 8] = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
];

impl JsonNode {
    fn node(self) -> Result<Node, String> {
        let kind = match &self.kind {
            None => 0,
            Some(Value::Text(name)) => KINDS
                .iter()
                .position(|known| known == name)
                .ok_or_else(|| format!("`type` is `{name}`; known are {}", KINDS.join(", ")))?,
            Some(other) => {
                let number = other.number().and_then(|n| usize::try_from(n).ok());
                number
                    .filter(|n| *n < KINDS.len())
                    .ok_or("`NodeType` should be a number from 0 to 7")?
            }
        };
        let listed = self.attr.iter();
        let listed = listed.filter_map(|a| Some(a.value.as_ref()?.attribute(&a.name)));
        let named = [
            ("comm_type", &self.comm_type),
            ("comm_size", &self.comm_size),
            ("pg_name", &self.pg_name),
            ("comm_group", &self.comm_group),
        ];
        let named = named
            .into_iter()
            .filter_map(|(n, v)| Some(v.as_ref()?.attribute(n)));
        let duration = self.duration_micros.as_ref();
        Ok(Node {
            kind: i32::try_from(kind).unwrap_or(0),
            name: self.name,
            duration_micros: duration.and_then(Value::number).unwrap_or(0),
            attributes: listed.chain(named).collect(),
            ..Node::default()
        })
    }
}

/// The feeder's form.
#[derive(Deserialize)]
struct Graph {
    workload_graph: Vec<JsonNode>,
}

/// All nodes of a trace.
pub(super) fn nodes(text: &str) -> Result<Vec<Record>, ImportError> {
    let mut records = Vec::new();
    for (line, object) in objects(text)? {
        let wrong = |what: String| ImportError::Line { line, what };
        if object.contains("\"workload_graph\"") {
            let graph: Graph =
                sonic_rs::from_str(object).map_err(|error| wrong(error.to_string()))?;
            for (number, node) in graph.workload_graph.into_iter().enumerate() {
                let what = |why| wrong(format!("node {number} of `workload_graph`: {why}"));
                records.push(Record::Node(node.node().map_err(what)?));
            }
            continue;
        }
        let node: JsonNode = sonic_rs::from_str(object).map_err(|e| wrong(e.to_string()))?;
        // The metadata has a version and no type.
        records.push(if node.kind.is_none() && records.is_empty() {
            Record::Metadata
        } else {
            Record::Node(node.node().map_err(wrong)?)
        });
    }
    Ok(records)
}

/// The outermost objects of a text with the lines that they begin on. A list around them, and commas between
/// them, are passed over.
fn objects(text: &str) -> Result<Vec<(usize, &str)>, ImportError> {
    let (mut list, mut line, mut depth) = (Vec::new(), 1, 0usize);
    let (mut start, mut first_line) = (0, 1);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' => line += 1,
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => {
                if depth == 0 {
                    (start, first_line) = (at, line);
                }
                depth += 1;
            }
            b'}' if depth == 0 => {
                let what = "a brace is closed that was not opened".to_owned();
                return Err(ImportError::Line { line, what });
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    list.push((first_line, &text[start..=at]));
                }
            }
            b',' | b'[' | b']' => {}
            byte if depth == 0 && !byte.is_ascii_whitespace() => {
                let what = format!("`{}` between two objects", char::from(byte));
                return Err(ImportError::Line { line, what });
            }
            _ => {}
        }
    }
    if depth > 0 {
        let what = "the object that begins here does not end: is the file cut off?".to_owned();
        return Err(ImportError::Line {
            line: first_line,
            what,
        });
    }
    Ok(list)
}

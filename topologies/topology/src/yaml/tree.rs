//! YAML text to a tree in which every node knows where it stands. Bounded: depth, number of nodes,
//! and what aliases add.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::report::{At, Findings};

/// Deepest nesting; the format itself needs six levels.
const MAX_DEPTH: usize = 32;
/// Most nodes that anchors and aliases may copy.
const MAX_COPIED: usize = 1_000_000;
/// Most nodes of a file: some three times what 100 000 GPUs need in the explicit form.
const MAX_NODES: usize = 16_000_000;
/// Longest file, in bytes.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// A node and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) at: At,
    pub(crate) kind: Kind<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    /// Text, and whether it stood there without quotes.
    Scalar(Cow<'a, str>, bool),
    Seq(Vec<Node<'a>>),
    Map(Vec<(Node<'a>, Node<'a>)>),
}

impl Node<'_> {
    /// What a reader would call this node.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Scalar(text, true) if is_null(text) => "nothing".to_owned(),
            Kind::Scalar(text, _) => format!("`{}`", shorten(text)),
            Kind::Seq(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(text, true) if is_null(text))
    }

    fn size(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar(..) => 0,
            Kind::Seq(items) => items.iter().map(Self::size).sum(),
            Kind::Map(pairs) => pairs
                .iter()
                .map(|(key, value)| key.size() + value.size())
                .sum(),
        }
    }

    fn depth(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar(..) => 0,
            Kind::Seq(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Kind::Map(pairs) => pairs
                .iter()
                .map(|(key, value)| key.depth().max(value.depth()))
                .max()
                .unwrap_or(0),
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Text fit for a message: one line, not too long.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(40)
        .flat_map(char::escape_default)
        .collect();
    if text.chars().nth(40).is_some() {
        short += "...";
    }
    short
}

/// A collection whose end has not come yet.
struct Open<'a> {
    node: Node<'a>,
    anchor: usize,
    /// A mapping's key that waits for its value.
    key: Option<Node<'a>>,
}

struct Loader<'a> {
    stack: Vec<Open<'a>>,
    root: Option<Node<'a>>,
    anchors: FxHashMap<usize, Node<'a>>,
    copied: usize,
    nodes: usize,
}

/// Why loading stops: place, message, help.
struct Stop(At, String, &'static str);

/// Reads one document. Problems go to `findings`; `None` if there is no tree to go on with.
pub(crate) fn load<'a>(text: &'a str, findings: &mut Findings) -> Option<Node<'a>> {
    let mut parser = Parser::new_from_str(text);
    let mut loader = Loader {
        stack: Vec::new(),
        root: None,
        anchors: FxHashMap::default(),
        copied: 0,
        nodes: 0,
    };
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, span)) => loader.event(event, place(span)),
            Err(error) => {
                let (at, help) = syntax_place(text, error.marker().index(), error.info());
                findings.add(at, "syntax", format!("not YAML: {}", error.info()), help);
                return None;
            }
        };
        if let Err(Stop(at, message, help)) = step {
            findings.add(at, "syntax", message, help);
            return None;
        }
    }
    let root = loader.root.filter(|root| !root.is_null());
    if root.is_none() {
        let help = "describe the fabric with `name:` and `clos:`, or with `switches:`, `hosts:` and `links:`";
        findings.add(At::default(), "empty", "the file is empty", help);
    }
    root
}

/// Where to point for a scanner's complaint, and what to say. A tab is what people should look for,
/// and the scanner points to what was before it.
fn syntax_place(text: &str, start: usize, complaint: &str) -> (At, &'static str) {
    if complaint.contains("tab") {
        let tab = text
            .chars()
            .skip(start)
            .take(10_000)
            .position(|c| c == '\t')
            .unwrap_or(0);
        return (
            At {
                start: start + tab,
                len: 1,
            },
            "indent with spaces: YAML takes no tabs there",
        );
    }
    (
        At { start, len: 1 },
        "check indentation, brackets and quotes here and on the line before",
    )
}

fn place(span: Span) -> At {
    At {
        start: span.start.index(),
        len: span.end.index().saturating_sub(span.start.index()),
    }
}

impl<'a> Loader<'a> {
    fn event(&mut self, event: Event<'a>, at: At) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Stop(
                at,
                format!("more than {MAX_NODES} values"),
                "use the `clos:` form",
            ));
        }
        match event {
            Event::DocumentStart(_) if self.root.is_some() => Err(Stop(
                at,
                "a second document".to_owned(),
                "write one topology per file",
            )),
            Event::Scalar(text, style, anchor, _) => {
                let kind = Kind::Scalar(text, style == ScalarStyle::Plain);
                self.complete(Node { at, kind }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(Kind::Seq(Vec::new()), anchor, at),
            Event::MappingStart(anchor, _) => self.open(Kind::Map(Vec::new()), anchor, at),
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(open) => self.complete(open.node, open.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => self.alias(anchor, at),
            _ => Ok(()),
        }
    }

    fn open(&mut self, kind: Kind<'a>, anchor: usize, at: At) -> Result<(), Stop> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.stack.push(Open {
            node: Node { at, kind },
            anchor,
            key: None,
        });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: At) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor) else {
            let help = "an alias can only repeat something that is complete before it";
            return Err(Stop(at, "an alias inside what it repeats".to_owned(), help));
        };
        let node = node.clone();
        self.copied += node.size();
        self.check_copied(at)?;
        if self.stack.len() + node.depth() > MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.complete(node, 0)
    }

    fn check_copied(&self, at: At) -> Result<(), Stop> {
        if self.copied <= MAX_COPIED {
            return Ok(());
        }
        let help = "write the parts out, or use the `clos:` form";
        Err(Stop(
            at,
            "anchors and aliases repeat too much".to_owned(),
            help,
        ))
    }

    fn complete(&mut self, node: Node<'a>, anchor: usize) -> Result<(), Stop> {
        if anchor != 0 {
            self.copied += node.size();
            self.check_copied(node.at)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.kind {
            Kind::Seq(items) => items.push(node),
            Kind::Map(pairs) => match open.key.take() {
                Some(key) => pairs.push((key, node)),
                None => open.key = Some(node),
            },
            Kind::Scalar(..) => {}
        }
        Ok(())
    }
}

fn too_deep(at: At) -> Stop {
    Stop(
        at,
        format!("nested more than {MAX_DEPTH} levels deep"),
        "the format needs six levels: check brackets",
    )
}

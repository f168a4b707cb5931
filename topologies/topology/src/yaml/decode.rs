//! From nodes to typed values. Every function reports what is wrong and goes on, so that one run
//! shows all problems.

use std::fmt::Display;
use std::str::FromStr;

use super::report::{At, Finding, Findings};
use super::tree::{Kind, Node, shorten};
use crate::naming;
use crate::units::{self, UnitError};

/// A value and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) at: At,
    pub(crate) value: T,
}

/// What turns a node into a value, or into problems.
pub(crate) type Decode<T> = fn(&Node<'_>, &mut Findings) -> Option<T>;

/// The fields of a mapping.
pub(crate) struct Fields<'n, 'a> {
    pairs: &'n [(Node<'a>, Node<'a>)],
    what: &'static str,
    pub(crate) at: At,
}

impl<'n, 'a> Fields<'n, 'a> {
    /// Opens a mapping that may have the fields `known`; others, and repeated ones, are reported.
    pub(crate) fn of(
        node: &'n Node<'a>,
        what: &'static str,
        known: &[&str],
        findings: &mut Findings,
    ) -> Option<Self> {
        let Kind::Map(pairs) = &node.kind else {
            let message = format!("{what} should be a mapping, not {}", node.describe());
            findings.add(
                node.at,
                "wrong-type",
                message,
                format!("its fields are {}", known.join(", ")),
            );
            return None;
        };
        for (index, (key, _)) in pairs.iter().enumerate() {
            if findings.full() {
                break;
            }
            let Some(name) = text_of(key) else {
                let message = format!("a field name should be a word, not {}", key.describe());
                findings.add(
                    key.at,
                    "wrong-type",
                    message,
                    format!("the fields of {what} are {}", known.join(", ")),
                );
                continue;
            };
            if !known.contains(&name) {
                let help = field_help(name, what, known);
                findings.add(
                    key.at,
                    "unknown-field",
                    format!("{what} has no field `{}`", shorten(name)),
                    help,
                );
            } else if let Some((first, _)) = pairs[..index]
                .iter()
                .find(|(other, _)| text_of(other) == Some(name))
            {
                findings.push(Finding {
                    at: key.at,
                    code: "duplicate-field",
                    message: format!("the field `{name}` is given twice"),
                    help: "keep one of the two".to_owned(),
                    also: Some((first.at, "first given here".to_owned())),
                });
            }
        }
        let at = pairs.first().map_or(node.at, |(key, _)| key.at);
        Some(Self { pairs, what, at })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'n Node<'a>> {
        self.pairs
            .iter()
            .find(|(key, _)| text_of(key) == Some(name))
            .map(|(_, value)| value)
    }

    /// A field that may be left out.
    pub(crate) fn opt<T>(
        &self,
        name: &str,
        findings: &mut Findings,
        decode: Decode<T>,
    ) -> Option<T> {
        decode(self.get(name)?, findings)
    }

    /// The same, with its place.
    pub(crate) fn opt_at<T>(
        &self,
        name: &str,
        findings: &mut Findings,
        decode: Decode<T>,
    ) -> Option<Spanned<T>> {
        let node = self.get(name)?;
        decode(node, findings).map(|value| Spanned { at: node.at, value })
    }

    /// A field that must be there.
    pub(crate) fn req<T>(
        &self,
        name: &str,
        findings: &mut Findings,
        decode: Decode<T>,
    ) -> Option<Spanned<T>> {
        if self.get(name).is_none() {
            let message = format!("{} has no `{name}`", self.what);
            findings.add(
                self.at,
                "missing-field",
                message,
                format!("add `{name}: ...`"),
            );
        }
        self.opt_at(name, findings, decode)
    }

    /// A list that makes a difference by being there, even when empty; not so if it is no list.
    pub(crate) fn declared<T>(
        &self,
        name: &str,
        findings: &mut Findings,
        decode: Decode<T>,
    ) -> Option<Vec<T>> {
        let node = self.get(name)?;
        let items = list(node, findings, decode);
        matches!(node.kind, Kind::Seq(_)).then_some(items)
    }

    /// A list; `decode` gets each item.
    pub(crate) fn items<T>(
        &self,
        name: &str,
        findings: &mut Findings,
        decode: Decode<T>,
    ) -> Vec<T> {
        self.get(name)
            .map_or_else(Vec::new, |node| list(node, findings, decode))
    }
}

fn field_help(name: &str, what: &str, known: &[&str]) -> String {
    let suggestion = naming::suggest(name, known.iter().copied());
    if suggestion.starts_with("did you mean") {
        suggestion
    } else {
        format!("the fields of {what} are {}", known.join(", "))
    }
}

pub(crate) fn text_of<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match &node.kind {
        Kind::Scalar(text, _) => Some(text),
        _ => None,
    }
}

fn wrong_type(node: &Node<'_>, wanted: &str, help: &str, findings: &mut Findings) {
    let message = format!("expected {wanted}, found {}", node.describe());
    findings.add(node.at, "wrong-type", message, help);
}

/// The items of a list.
pub(crate) fn list<T>(node: &Node<'_>, findings: &mut Findings, decode: Decode<T>) -> Vec<T> {
    match &node.kind {
        Kind::Seq(items) => items
            .iter()
            .filter_map(|item| decode(item, findings))
            .collect(),
        _ if node.is_null() => Vec::new(),
        _ => {
            wrong_type(
                node,
                "a list",
                "begin each item with `- ` on a line of its own, or write `[a, b]`",
                findings,
            );
            Vec::new()
        }
    }
}

/// Text that is not empty.
pub(crate) fn text(node: &Node<'_>, findings: &mut Findings) -> Option<String> {
    match text_of(node).filter(|_| !node.is_null()) {
        Some(text) => Some(text.to_owned()),
        None => {
            wrong_type(node, "a name", "write a word", findings);
            None
        }
    }
}

pub(crate) fn spanned_text(node: &Node<'_>, findings: &mut Findings) -> Option<Spanned<String>> {
    text(node, findings).map(|value| Spanned { at: node.at, value })
}

/// A name that things can have.
pub(crate) fn name(node: &Node<'_>, findings: &mut Findings) -> Option<String> {
    let name = text(node, findings)?;
    if naming::is_name(&name) {
        return Some(name);
    }
    let fault = crate::Fault::BadName(shorten(&name));
    findings.add(node.at, "bad-name", fault.to_string(), fault.help());
    None
}

/// A whole number that fits `T`.
pub(crate) fn number<T: FromStr>(node: &Node<'_>, findings: &mut Findings) -> Option<T> {
    let text = text_of(node).unwrap_or("");
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        wrong_type(
            node,
            "a whole number",
            "write digits only, like 8",
            findings,
        );
        return None;
    }
    let value = text.parse().ok();
    if value.is_none() {
        let bits = size_of::<T>() * 8;
        let most = u64::MAX >> (64 - bits.min(64));
        let message = format!("{} is out of range", shorten(text));
        findings.add(
            node.at,
            "out-of-range",
            message,
            format!("the largest number that fits here is {most}"),
        );
    }
    value
}

pub(crate) fn boolean(node: &Node<'_>, findings: &mut Findings) -> Option<bool> {
    match text_of(node) {
        Some("true" | "yes" | "True") => Some(true),
        Some("false" | "no" | "False") => Some(false),
        _ => {
            wrong_type(node, "true or false", "write `true` or `false`", findings);
            None
        }
    }
}

fn quantity<T>(
    node: &Node<'_>,
    findings: &mut Findings,
    what: &str,
    parse: fn(&str) -> Result<T, UnitError>,
) -> Option<T> {
    match parse(text_of(node).unwrap_or("")) {
        Ok(value) => Some(value),
        Err(error) if text_of(node).is_some_and(|text| !text.is_empty()) => {
            findings.add(
                node.at,
                "bad-value",
                shorten_message(&error.message),
                shorten_message(&error.help),
            );
            None
        }
        Err(error) => {
            wrong_type(node, what, &error.help, findings);
            None
        }
    }
}

fn shorten_message(message: &str) -> String {
    message.chars().take(200).collect()
}

/// Bits/s.
pub(crate) fn speed(node: &Node<'_>, findings: &mut Findings) -> Option<u64> {
    quantity(node, findings, "a speed", units::parse_speed)
}

/// Nanoseconds.
pub(crate) fn delay(node: &Node<'_>, findings: &mut Findings) -> Option<u64> {
    quantity(node, findings, "a delay", units::parse_delay)
}

/// Bytes.
pub(crate) fn size(node: &Node<'_>, findings: &mut Findings) -> Option<u64> {
    quantity(node, findings, "a size", units::parse_size)
}

/// Parts per million.
pub(crate) fn probability(node: &Node<'_>, findings: &mut Findings) -> Option<u32> {
    quantity(node, findings, "a probability", units::parse_probability)
}

/// An address or the like, with an example of how to write it.
pub(crate) fn parsed<T: FromStr>(
    node: &Node<'_>,
    what: &str,
    example: &str,
    findings: &mut Findings,
) -> Option<T>
where
    T::Err: Display,
{
    let value = text_of(node).and_then(|text| text.parse().ok());
    if value.is_none() {
        wrong_type(node, what, &format!("write it like {example}"), findings);
    }
    value
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(
    node: &Node<'_>,
    what: &str,
    options: &[(&str, T)],
    findings: &mut Findings,
) -> Option<T> {
    let text = text_of(node).unwrap_or("");
    let found = options
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, value)| *value);
    if found.is_none() {
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        let help = format!(
            "{}; use one of {}",
            naming::suggest(text, names.iter().copied()),
            names.join(", ")
        );
        findings.add(
            node.at,
            "unknown-value",
            format!("unknown {what} {}", node.describe()),
            help,
        );
    }
    found
}

/// The pairs of a mapping whose keys are values themselves.
pub(crate) fn pairs<'n, 'a>(
    node: &'n Node<'a>,
    what: &str,
    example: &str,
    findings: &mut Findings,
) -> &'n [(Node<'a>, Node<'a>)] {
    match &node.kind {
        Kind::Map(pairs) => pairs,
        _ if node.is_null() => &[],
        _ => {
            wrong_type(node, what, &format!("write it like {example}"), findings);
            &[]
        }
    }
}

//! For other files of a fabric (jobs, for one): the same mappings, with the same located errors.

use super::decode::{self, Fields};
use super::report::{Findings, Report};
use super::tree::{self, Kind, Node};

/// A mapping that is being read. Whatever is wrong is noted and reading goes on, so that one run shows
/// all problems; a field that is wrong or missing reads as `None`.
pub struct Section<'s, 'n, 'a> {
    fields: Fields<'n, 'a>,
    findings: &'s mut Findings,
}

/// Reads a file that is one mapping, called `what` in messages, with the fields `known`. `name` is the
/// file's name for messages.
///
/// # Errors
/// All that is wrong with it.
pub fn parse<T>(
    name: &str,
    text: &str,
    what: &'static str,
    known: &[&str],
    read: impl FnOnce(&mut Section<'_, '_, '_>) -> Option<T>,
) -> Result<T, Report> {
    let mut findings = Findings::default();
    let root = tree::load(text, &mut findings);
    let value = root
        .as_ref()
        .and_then(|root| open(root, what, known, &mut findings, read));
    match value {
        Some(value) if findings.is_empty() => Ok(value),
        _ => Err(findings.into_report(name, text)),
    }
}

fn open<T>(
    node: &Node<'_>,
    what: &'static str,
    known: &[&str],
    findings: &mut Findings,
    read: impl FnOnce(&mut Section<'_, '_, '_>) -> Option<T>,
) -> Option<T> {
    let fields = Fields::of(node, what, known, findings)?;
    read(&mut Section { fields, findings })
}

impl Section<'_, '_, '_> {
    /// Whether the field is there.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.fields.get(field).is_some()
    }

    /// A name, which must be there.
    pub fn name(&mut self, field: &str) -> Option<String> {
        self.fields
            .req(field, self.findings, decode::name)
            .map(|spanned| spanned.value)
    }

    /// A whole number, which must be there.
    pub fn number(&mut self, field: &str) -> Option<u32> {
        self.fields
            .req(field, self.findings, decode::number)
            .map(|spanned| spanned.value)
    }

    /// A size in bytes, which must be there.
    pub fn size(&mut self, field: &str) -> Option<u64> {
        self.fields
            .req(field, self.findings, decode::size)
            .map(|spanned| spanned.value)
    }

    /// One of a few words, which must be there.
    pub fn choice<T: Copy>(&mut self, field: &str, options: &[(&str, T)]) -> Option<T> {
        match self.fields.get(field) {
            Some(node) => decode::choice(node, field, options, self.findings),
            None => {
                // Notes that it is missing.
                self.fields.req(field, self.findings, decode::text);
                None
            }
        }
    }

    /// A mapping within, called `what` in messages, which must be there.
    pub fn section<T>(
        &mut self,
        field: &str,
        what: &'static str,
        known: &[&str],
        read: impl FnOnce(&mut Section<'_, '_, '_>) -> Option<T>,
    ) -> Option<T> {
        match self.fields.get(field) {
            Some(node) => open(node, what, known, self.findings, read),
            None => {
                self.fields.req(field, self.findings, decode::text);
                None
            }
        }
    }

    /// A whole number of up to 64 bits, which must be there.
    pub fn big_number(&mut self, field: &str) -> Option<u64> {
        self.fields
            .req(field, self.findings, decode::number)
            .map(|spanned| spanned.value)
    }

    /// True or false, which must be there.
    pub fn boolean(&mut self, field: &str) -> Option<bool> {
        self.fields
            .req(field, self.findings, decode::boolean)
            .map(|spanned| spanned.value)
    }

    /// A share such as `0.2` or `20%`, in millionths, which must be there.
    pub fn share_ppm(&mut self, field: &str) -> Option<u32> {
        self.fields
            .req(field, self.findings, decode::probability)
            .map(|spanned| spanned.value)
    }

    /// A time in ns such as `2ms`, which must be there.
    pub fn duration_ns(&mut self, field: &str) -> Option<u64> {
        self.fields
            .req(field, self.findings, decode::delay)
            .map(|spanned| spanned.value)
    }

    /// A list of words out of a few, which must be there. Words that are not among `options` are
    /// reported where they stand.
    pub fn choices<T: Copy>(&mut self, field: &str, options: &[(&str, T)]) -> Option<Vec<T>> {
        let Some(node) = self.fields.get(field) else {
            self.fields.req(field, self.findings, decode::text);
            return None;
        };
        match &node.kind {
            Kind::Seq(items) => items
                .iter()
                .map(|item| decode::choice(item, field, options, self.findings))
                .collect(),
            _ => {
                decode::list(node, self.findings, decode::text);
                None
            }
        }
    }

    /// A list of words, which must be there.
    pub fn words(&mut self, field: &str) -> Option<Vec<String>> {
        let Some(node) = self.fields.get(field) else {
            self.fields.req(field, self.findings, decode::text);
            return None;
        };
        Some(decode::list(node, self.findings, decode::text))
    }

    /// A list of mappings, each called `what` in messages, which must be there. Items that are wrong are
    /// reported and left out.
    pub fn sections<T>(
        &mut self,
        field: &str,
        what: &'static str,
        known: &[&str],
        mut read: impl FnMut(&mut Section<'_, '_, '_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(node) = self.fields.get(field) else {
            self.fields.req(field, self.findings, decode::text);
            return None;
        };
        match &node.kind {
            Kind::Seq(items) => Some(
                items
                    .iter()
                    .filter_map(|item| open(item, what, known, self.findings, &mut read))
                    .collect(),
            ),
            _ => {
                decode::list(node, self.findings, decode::text);
                None
            }
        }
    }

    /// Notes that a field's value will not do: what is wrong, and what to write instead.
    pub fn reject(&mut self, field: &str, message: impl Into<String>, help: impl Into<String>) {
        let at = self
            .fields
            .get(field)
            .map_or(self.fields.at, |node| node.at);
        self.findings.add(at, "bad-value", message, help);
    }
}

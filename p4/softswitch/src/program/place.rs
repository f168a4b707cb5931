//! Which part of the source a piece of code comes from, for traces.

use super::code::Pc;
use super::raw;

/// What begins at an instruction.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A parser state.
    State(String),
    /// A condition. It holds if its code is left at `end`.
    Condition { source: String, end: Pc },
    /// A statement, as the source has it.
    Statement(String),
    /// A checksum.
    Checksum(String),
}

/// The source text of something, on one line; what p4c wrote of it.
pub(super) fn source(info: Option<&raw::SourceInfo>) -> Option<String> {
    let text = info?.source_fragment.as_deref()?;
    let mut words = text.split_whitespace();
    let first = words.next()?.to_owned();
    Some(words.fold(first, |text, word| text + " " + word))
}

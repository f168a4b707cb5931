//! Protobuf's text format, which p4c writes P4Info in and people read messages in.

use std::sync::LazyLock;

use miette::Diagnostic as _;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, text_format::FormatOptions,
};

/// Why text could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a message of that type.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// No `.proto` file of this crate declares the message.
    #[error("no message is called `{0}`; a full name looks like `p4.v1.TableEntry`")]
    UnknownMessage(String),
    /// The Rust type is not the message named.
    #[error("the message is not a `{name}`: {source}")]
    Mismatch {
        /// The message's full name.
        name: String,
        /// What did not fit.
        source: prost::DecodeError,
    },
}

/// The messages by name. A cache of a constant.
static POOL: LazyLock<Option<DescriptorPool>> =
    LazyLock::new(|| DescriptorPool::decode(crate::FILE_DESCRIPTOR_SET).ok());

fn descriptor(name: &str) -> Result<MessageDescriptor, Error> {
    POOL.as_ref()
        .and_then(|pool| pool.get_message_by_name(name))
        .ok_or_else(|| Error::UnknownMessage(name.to_owned()))
}

/// Reads a message, given its full name such as `p4.config.v1.P4Info`.
///
/// # Errors
/// [`Error::Syntax`] with the place in the text; the others when `name` is not
/// the name of `M`.
pub fn parse<M: Message + Default>(name: &str, text: &str) -> Result<M, Error> {
    let message = DynamicMessage::parse_text_format(descriptor(name)?, text).map_err(|error| {
        let offset = error
            .labels()
            .and_then(|mut labels| labels.next())
            .map_or(text.len(), |label| label.offset());
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Error::Syntax {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: error.to_string(),
        }
    })?;
    message.transcode_to().map_err(|source| Error::Mismatch {
        name: name.to_owned(),
        source,
    })
}

/// Writes a message, given its full name; `pretty` puts one field on a line.
///
/// # Errors
/// When `name` is not the name of `M`.
pub fn print<M: Message>(name: &str, message: &M, pretty: bool) -> Result<String, Error> {
    let mut dynamic = DynamicMessage::new(descriptor(name)?);
    dynamic
        .transcode_from(message)
        .map_err(|source| Error::Mismatch {
            name: name.to_owned(),
            source,
        })?;
    Ok(dynamic.to_text_format_with_options(&FormatOptions::new().pretty(pretty)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::v1::TableEntry;

    #[test]
    fn reads_what_it_writes() {
        let entry: TableEntry = parse(
            "p4.v1.TableEntry",
            "table_id: 7 match { field_id: 1 lpm { value: \"\\n\\000\" prefix_len: 8 } }",
        )
        .unwrap();
        assert_eq!(entry.table_id, 7);
        let text = print("p4.v1.TableEntry", &entry, true).unwrap();
        assert!(text.contains("prefix_len: 8"), "{text}");
        assert_eq!(
            parse::<TableEntry>("p4.v1.TableEntry", &text).unwrap(),
            entry
        );
    }

    #[test]
    fn errors_name_the_place() {
        let error = parse::<TableEntry>("p4.v1.TableEntry", "table_id: 7\n  tabel: 1\n");
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with("line 2, column 3: "), "{text}");
        assert!(text.contains("tabel"), "{text}");
        let error = parse::<TableEntry>("p4.v1.Tabel", "").unwrap_err();
        assert!(matches!(error, Error::UnknownMessage(_)));
    }
}

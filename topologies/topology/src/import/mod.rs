//! Topologies from what other tools say about fabrics that exist.
//!
//! An importer keeps what it read, and says what is odd about it: each [`Finding`] names the parts
//! and the line of the source.

mod fabric;
mod links;
mod oddities;
mod raw;
mod unnamed;

use serde::Serialize;

pub use fabric::ibnetdiscover;

use crate::fault::Fault;

/// What kind of oddity a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A leaf and a spine are joined by fewer cables than is common.
    MissingUplinks,
    /// The names of the leaves form a grid with a hole.
    MissingSwitch,
    /// An adapter does not say which host it belongs to.
    UnnamedAdapter,
    /// An adapter's number is not that of its leaf's other adapters: a cabling swap, perhaps.
    RailMismatch,
    /// A host has fewer adapters than is common.
    MissingAdapters,
    /// A leaf without hosts.
    LeafWithoutHosts,
    /// A link is narrower or slower than is common.
    OddSpeed,
    /// A link that only one of its ends lists.
    OneSidedLink,
    /// Something that is no part of the model and was left out.
    LeftOut,
    /// A name that was changed, because it is missing, unusable or taken.
    Renamed,
    /// A line that is in no known form.
    UnknownLine,
}

/// Something odd about an imported fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind.
    pub kind: FindingKind,
    /// The line of the source it is about, from 1.
    pub line: usize,
    /// The switches, hosts or adapters it is about.
    pub about: Vec<String>,
    /// The whole of it in a sentence.
    pub message: String,
}

impl Finding {
    pub(crate) fn new(
        kind: FindingKind,
        line: usize,
        about: &[&str],
        message: impl Into<String>,
    ) -> Self {
        let about = about.iter().map(|name| (*name).to_owned()).collect();
        Self {
            kind,
            line,
            about,
            message: message.into(),
        }
    }
}

/// Why nothing could be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No switch in the text.
    #[error(
        "no switch found; this should be the output of `ibnetdiscover`, with blocks that begin `Switch 65 \"S-...\"`"
    )]
    NoSwitch,
    /// No host adapter in the text.
    #[error("no host adapter found on any switch; run `ibnetdiscover` on a fabric with hosts")]
    NoHost,
    /// The text is too long.
    #[error("the text is longer than {} MiB", .0 >> 20)]
    TooLong(usize),
    /// What was found makes no topology.
    #[error("the fabric makes no topology: {}", .0.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Faults(Vec<Fault>),
}

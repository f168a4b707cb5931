//! In-band telemetry: INT-MD v2.1 and Telemetry Report v2.0 on the collector's side.
//!
//! A datagram from a switch goes through [`report::Datagram::decode`] into reports; each shows the
//! headers of a packet, which [`packet::Shown::of`] takes apart into the flow it belongs to and, for
//! a measured packet, the [`stack::Stack`] of the hops before. [`collector::Collector`] puts them
//! together per flow: path, latency and queue of each hop, marks, drops, changes of path.
//!
//! Nothing here does I/O or reads a clock. Times of different switches come from different clocks
//! and are never subtracted from each other: a hop's latency is that hop's own.

pub mod collector;
pub mod flow;
pub mod metadata;
pub mod packet;
pub mod report;
pub mod sequence;
pub mod stack;
#[cfg(test)]
mod tests;

use thiserror::Error;

/// Why a datagram or a part of it is no telemetry.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// It ends before it should.
    #[error("{what} ends after {have} bytes, {need} are announced")]
    Short {
        /// Which part.
        what: &'static str,
        /// Bytes that it needs.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// A version or type that this collector does not speak.
    #[error("{what} is {found}, expected {expected}")]
    Unknown {
        /// Which field.
        what: &'static str,
        /// Its value.
        found: u32,
        /// What is understood.
        expected: &'static str,
    },
    /// Lengths that contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// The first `need` bytes, and the rest.
fn split<'b>(
    bytes: &'b [u8],
    need: usize,
    what: &'static str,
) -> Result<(&'b [u8], &'b [u8]), Malformed> {
    bytes.split_at_checked(need).ok_or(Malformed::Short {
        what,
        need,
        have: bytes.len(),
    })
}

/// Big-endian number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |all, byte| all << 8 | u64::from(*byte))
}

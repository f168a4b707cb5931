//! Jobs and their collectives, and the bytes that they ask of the fabric.
//!
//! ```text
//!  job file ──> file (one collective) ────────────┐
//!          └──> parse (parallel sizes, model or ──┼──> Workload: grid of ranks, exchanges
//!               collectives) ─────────────────────┤        │
//!  traces ────> import ───────────────────────────┘        └──> placement::traffic: flows per NIC
//! ```

mod exchange;
mod file;
mod grid;
pub mod import;
mod job;
mod model;
mod parse;
mod ring;
mod tree;
mod two_level;
mod write;

pub use exchange::{Exchange, Operation, Workload};
pub use file::JobError;
pub use grid::{Dimension, Grid, GridError, MAX_RANKS, Over};
pub use job::{Algorithm, Collective, Job};
pub use model::Model;
pub use ring::{Ring, share};
pub use tree::double_tree;
pub use two_level::{Piece, pieces};

//! Jobs and their collectives, and the bytes that they ask of the fabric.

mod file;
mod job;
mod ring;

pub use file::JobError;
pub use job::{Algorithm, Collective, Job};
pub use ring::{Ring, share};

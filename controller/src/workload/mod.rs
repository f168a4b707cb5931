//! Jobs and their collectives, and the bytes that they ask of the fabric.

mod ring;

pub use ring::{Ring, share};

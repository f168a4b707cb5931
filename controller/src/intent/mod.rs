//! What every switch should hold.

mod groups;
mod spread;

pub use groups::{BucketPolicy, layout};
pub use spread::{Base, Spread, Via, spread};

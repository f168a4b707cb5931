//! What the fabric would do, without packets.
//!
//! [`fill`] has the rates of flows that share links, max-min fair; [`flow`] runs jobs over time with them;
//! [`transport`] has how senders differ from that; [`paths`] turns a placed job's flows into streams, on the paths that were planned or that hashing would
//! give; [`hash`] computes what the switches' own hash does. How close that is to the packet emulator is a test of its own.
//! [`churn`] lets jobs come and go under the placer and under the rules of other schedulers.

pub mod churn;
pub mod fill;
pub mod flow;
pub mod hash;
mod order;
pub mod paths;
#[cfg(test)]
mod tests;
pub mod transport;

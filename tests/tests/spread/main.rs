//! How groups spread flows, with the entries that the controller writes: on switch cores, packet by packet.
//!
//! `cargo test -p tests --test spread -- --nocapture` prints the figures.
#![allow(clippy::unwrap_used)]

mod fabric;
mod failover;
mod polarisation;

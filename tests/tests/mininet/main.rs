//! Fabrics in Mininet: real hosts, real links, one switch program per switch.
//!
//! Needs root and Mininet: `cargo test --release -p tests --test mininet -- --ignored
//! --test-threads=1`, after `cargo build --release -p meridian -p softswitch --bins`. With
//! `MERIDIAN_TEST_SWITCH=simple_switch_grpc` the same fabrics run on bmv2.
#![allow(clippy::unwrap_used)]

mod bring_up;
mod command;
mod control;
mod fabrics;
mod leftovers;
mod liveness;
mod telemetry;
mod traffic;

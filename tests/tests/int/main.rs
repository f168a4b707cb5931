//! In-band telemetry and ECN of the fabric program, bit for bit, on the embedded switch.
//!
//! Packets go through chains of switches; what comes out of every hop is compared with an independent
//! model of the INT-MD v2.1 rules, and what leaves the last one with what entered the first.
#![allow(clippy::unwrap_used)]

mod chain;
mod ecn;
mod edges;
mod frames;
mod model;
mod node;
mod properties;
mod reports;
mod scapy;

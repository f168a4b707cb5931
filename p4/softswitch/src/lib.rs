//! An embedded v1model switch that loads p4c's bmv2 JSON and serves P4Runtime.
//!
//! # A program's way in
//! [`Program::load`] reads the JSON, checks it and compiles it: every header
//! field gets a place in a flat array of 64-bit words, every expression,
//! parser state, action and pipeline becomes straight code over that array.
//! Nothing is looked up by name after that, and a feature the switch does not
//! have is an error at load. Programs are immutable and shared by `Arc`.
//!
//! # A packet's way through
//! [`Switch::ingress`] copies the bytes into a pooled buffer, runs parser,
//! checksum verification and the ingress pipeline, and then does what the
//! program asked for, in this order: clone, digest, resubmit, multicast, drop,
//! or unicast into a queue of the egress port. [`Switch::dequeue`] takes the
//! packet from the highest queue that has one, runs the egress pipeline,
//! clones, updates checksums, deparses, and hands the bytes out (or sends them
//! round again, when the program recirculates).
//!
//! # The control plane's way in
//! [`control`] has typed operations for all that P4Runtime can say, by dense
//! ids which [`Program`] resolves from names once.
//!
//! Nothing in here does I/O or reads a clock: the time comes in with each call
//! (ns; bmv2's µs in the program's timestamps), random numbers from the
//! switch's seed. The same calls give the same results.

pub mod control;
mod crc;
mod exec;
mod hash;
mod ids;
pub mod manage;
mod meter;
pub mod ports;
mod profile;
pub mod program;
mod random;
pub mod server;
mod state;
mod switch;
mod table;
pub mod trace;
mod value;

pub use ids::*;
pub use program::{LoadError, Program, UnknownName};
pub use switch::{
    Exclusive, NotARate, Packet, ProgramDrops, QueueCounts, QueueState, Rate, SharedSwitch, Switch,
    SwitchConfig, SwitchStats, Work,
};
pub use value::Value;

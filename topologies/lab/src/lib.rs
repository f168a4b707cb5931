//! Bring-up of a topology on a target: emulator, Mininet, bmv2 or external switches.
//!
//! # From a topology to a running fabric
//! A [`topology::Topology`] says which switches, hosts and links there are. A bring-up makes them run on
//! a target and hands back a [`Fabric`]: for every switch, how to reach its P4Runtime server. The controller takes it
//! from there; it does not know which target it is.
//!
//! - [`emulator`]: every switch a softswitch core in this process, hosts as NIC models that speak RoCEv2,
//!   everything in virtual time and deterministic for a seed. Needs nothing installed.
//! - [`mininet`]: Linux network namespaces and veth pairs, a switch process per switch, real host tools.
//! - [`external`]: P4Runtime servers that are already there.

pub mod emulator;
pub mod external;
mod fabric;
pub mod mininet;

pub use fabric::{Address, Fabric, SwitchEndpoint};

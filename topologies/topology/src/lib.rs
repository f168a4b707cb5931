//! What a fabric looks like: the model, its YAML form, generators and importers.
//!
//! # The way of the data
//!
//! ```text
//!  topology file ──> yaml::tree ──> yaml::doc ──> yaml::resolve ──┐
//!   (bytes)          nodes with     typed, with    names to ids   │
//!                    their places   their places                  v
//!  numbers ───────> Clos ──> plan ──> clos_build ───────────> Builder ──> finish ──> Topology
//!  distributions ─> Irregular ──> draw ──> irregular_build ───────^
//!                                                                 ^      LA domains,    │
//!  ibnetdiscover ─> import::raw ──> import::fabric ───────────────┘      addresses,     ├─> to_yaml
//!   (text)          blocks          hosts, segments, findings            reachability   └─> show
//! ```
//!
//! - [`Topology::load`], [`Topology::parse`]: a file to a fabric, or to a [`Report`] of all that is
//!   wrong with it, each problem at its line and column with what to do about it.
//! - [`generate`]: a [`Clos`], which is a handful of numbers, to a fabric.
//! - [`generate_irregular`]: an [`Irregular`], which is a handful of distributions and a seed, to a fabric.
//! - [`import::ibnetdiscover`]: what a running InfiniBand fabric says of itself to a fabric, with
//!   findings about what is odd.
//! - [`Builder`]: any other fabric, piece by piece. Every way leads through it, so that no topology
//!   has a port with two links or an address that two NICs share.
//! - [`Topology`] itself can't be changed. Its parts are in vectors, and refer to each other by
//!   dense ids ([`SwitchId`], [`NicId`], [`LinkId`], ...), so that others can keep their own data
//!   about them in vectors of the same length. Links that fail are others' knowledge: a topology is
//!   what was built.
//! - [`show::Summary`]: counts, oversubscription and bisection for people and scripts.
//!
//! Nothing here does I/O but [`Topology::load`], and nothing but a seed is random: the same input gives the
//! same ids, names, ports and addresses. How addresses follow from positions is part of the format
//! and described in `docs/reference-topology.md`.
//!
//! # Units
//!
//! Speeds are `u64` bits/s, delays `u64` ns (one way), sizes `u64` bytes.
//!
//! # Example
//!
//! ```
//! use topology::Topology;
//!
//! let text = "
//! name: small
//! clos: {segments: 2, hosts: 4, rails: 4, spines: 4}
//! ";
//! let fabric = Topology::parse("small.yaml", text)?;
//! assert_eq!(fabric.nics().len(), 32);
//! let h5 = fabric.find_host("h5").expect("hosts are numbered through all segments");
//! let nic = &fabric[fabric[h5].nics().next().expect("four NICs")];
//! assert_eq!(fabric[nic.la].name, "la-s2r0");
//! # Ok::<(), topology::Report>(())
//! ```

mod addressing;
mod ars_policy;
mod builder;
mod clos;
mod clos_build;
mod connect;
mod draw;
mod fault;
mod finish;
mod free;
mod ids;
pub mod import;
mod int_policy;
mod irregular;
mod irregular_build;
mod model;
mod naming;
mod parts;
mod policy;
pub mod show;
pub mod units;
mod write;
mod yaml;

pub use addressing::{BadMac, MacAddr};
pub use ars_policy::{ARS_MODES, ArsMode, ArsPolicy};
pub use builder::{Builder, MAX_HOSTS, MAX_LINKS, MAX_NICS, MAX_SWITCHES};
pub use clos::{Clos, ClosError, GenerateError, HostCounts, LeafPer, PerTier, Ratio, generate};
pub use draw::{BadDraw, Draw};
pub use fault::Fault;
pub use ids::{
    BuildingId, End, HostId, LaId, LinkId, NicId, NicPortRef, Node, PodId, PortRef, ScaleUpId,
    SegmentId, SwitchId,
};
pub use int_policy::{
    INT_INSTRUCTIONS, INT_STACK_WORDS, IntIndicator, IntPolicy, IntReports, IntWatch, int_words,
};
pub use irregular::{Irregular, Share, generate_irregular};
pub use model::{
    Building, Host, La, Link, MAX_PORT, Neighbour, Nic, NicPort, Pod, Port, Segment, Switch, Tier,
    Topology,
};
pub use naming::NameError;
pub use parts::{NewHost, NewLa, NewNic, NewSwitch};
pub use policy::{CNP_DSCP, EcnProfile, Policy, ROCE_DSCP, TierSeeds};
pub use yaml::{LoadError, MAX_PROBLEMS, Problem, Report, section};

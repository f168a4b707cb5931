//! What a fabric looks like: the model, its YAML form, generators and importers.

mod addressing;
mod builder;
mod clos;
mod clos_build;
mod fault;
mod finish;
mod ids;
pub mod import;
mod model;
mod naming;
mod parts;
mod policy;
pub mod show;
pub mod units;
mod write;
mod yaml;

pub use addressing::{BadMac, MacAddr};
pub use builder::{Builder, MAX_HOSTS, MAX_LINKS, MAX_NICS, MAX_SWITCHES};
pub use clos::{Clos, ClosError, GenerateError, HostCounts, LeafPer, PerTier, Ratio, generate};
pub use fault::Fault;
pub use ids::{
    BuildingId, End, HostId, LaId, LinkId, NicId, NicPortRef, Node, PodId, PortRef, ScaleUpId,
    SegmentId, SwitchId,
};
pub use model::{
    Building, Host, La, Link, MAX_PORT, Neighbour, Nic, NicPort, Pod, Port, Segment, Switch, Tier,
    Topology,
};
pub use naming::NameError;
pub use parts::{NewHost, NewLa, NewNic, NewSwitch};
pub use policy::{CNP_DSCP, EcnProfile, Policy, ROCE_DSCP, TierSeeds};
pub use yaml::{LoadError, MAX_PROBLEMS, Problem, Report};

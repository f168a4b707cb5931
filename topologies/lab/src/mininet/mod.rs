//! Bring-up in Mininet: real network namespaces and veth pairs, one P4Runtime switch program
//! per switch, real host tools. Needs root, and Mininet from the distribution (no Open vSwitch,
//! no controller of Mininet's).
//!
//! ```text
//! Topology --plan()--> Plan --JSON--> runner.py --Mininet--> namespaces, veth pairs
//!                                        |                   one switch program per switch
//! Lab: bring_up, exec, ping_all, ... <---+ JSON lines
//! ```
//!
//! [`plan()`] is pure: which interface has which name, which address, which port number, and the
//! commands that set it up. The runner, a Python script embedded in this crate, builds exactly
//! that. [`Lab`] drives the runner and owns it: when a `Lab` is dropped, or its process is
//! killed, the runner ends the switches, the hosts and itself. When the runner is killed, the
//! kernel ends its children and `Lab` clears the rest; when both are killed, the next bring-up
//! of the same fabric does.
//!
//! Hosts have one interface per NIC, `rail0`, `rail1`, ..., with the NIC's addresses, and a
//! routing table per NIC: what leaves with a NIC's address leaves by that NIC. Leaves route and
//! do not bridge, so everything goes to the gateway, also to neighbours in the same prefix. A
//! dual-ToR NIC has two interfaces (`rail0a`, `rail0b`) with the same MAC and addresses: it
//! receives on both and spreads flows over both (ECMP by layer-4 hash, ports without carrier
//! left out). This is how a routed dual-ToR host behaves, and needs no bonding driver.

mod checks;
mod error;
mod iperf;
mod lab;
mod ping;
mod plan;
mod program;
mod protocol;
mod runner;
mod setup;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use iperf::{Load, NicRef, Throughput};
pub use lab::{Lab, Output};
pub use ping::{Family, NicName, Pair, PingReport};
pub use plan::{
    CPU_PORT, DROP_PORT, EndPlan, HostPlan, LinkPlan, NicPlan, Options, Plan, PlanError, PortPlan,
    Shaping, SwitchPlan, plan,
};
pub use program::{Program, ProgramKind, ProgramNotFound};
pub use protocol::{Progress, SwitchExit};

//! Where a switch's packets come from and go to.
//!
//! In one process nothing of this is needed: who simulates links calls the
//! [`Switch`](crate::Switch) itself (see [`server`](crate::server) for the CPU port). To the
//! world, [`Forwarder`] drives Linux interfaces. Its threads take frames out of rings that the
//! kernel fills, [`offload`] turns them into what a wire would carry, the switch takes a batch of
//! them in, and what becomes ready is sent at once, many frames per system call. Ports can also
//! be pcap files.

mod forward;
pub mod offload;
mod outlet;
pub(crate) mod packet_socket;
mod pcap;
mod ring;
mod spec;
mod wake;
mod worker;

pub use forward::{Forwarder, ForwarderConfig, PortInfo, Ports};
pub use outlet::InterfaceStats;
pub use pcap::each_frame;
pub use spec::{OpenError, PortSpec};
pub use wake::Waker;

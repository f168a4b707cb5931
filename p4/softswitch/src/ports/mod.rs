//! Where a switch's packets come from and go to.
//!
//! In one process nothing of this is needed: who simulates links calls the
//! [`Switch`](crate::Switch) itself (see [`server`](crate::server) for the CPU port). To the
//! world, [`Forwarder`] drives Linux interfaces through packet sockets: a thread waits for
//! frames, [`offload`] turns them into what a wire would carry, the switch takes them in, and
//! what becomes ready is sent at once.

mod forward;
pub mod offload;
pub(crate) mod packet_socket;
mod pcap;
mod wake;

pub use forward::{Forwarder, InterfaceStats, OpenError, PortSpec};
pub use wake::Waker;

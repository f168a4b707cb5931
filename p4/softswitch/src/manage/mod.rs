//! What P4Runtime leaves to the switch: queues, ports, parameters of hashes, metrics.
//!
//! [`SwitchControlService`] answers the requests of `meridian/switch/v1/switch.proto`, beside
//! P4Runtime on the same connections; [`metrics`] writes what there is to count in Prometheus'
//! text format. Both read the switch under its lock, briefly, and the ports without.

mod hashes;
pub mod metrics;
mod rpcs;
mod service;

pub use rpcs::{CountRpcs, RpcCounts};
pub use service::{SwitchControlService, rate_from_message, rate_to_message};

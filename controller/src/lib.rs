//! The fabric's control plane: routing, placement, reconciliation.

pub mod desired;
pub mod entries;
pub mod fabric;
pub mod intent;
pub mod neighbour;
pub mod placement;
pub mod reaction;
pub mod reconcile;
pub mod routing;
pub mod session;
pub mod telemetry;
pub mod workload;

//! The fabric's control plane: routing, placement, reconciliation.

pub mod routing;
pub mod workload;

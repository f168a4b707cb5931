//! The fabric's control plane: routing, placement, reconciliation.

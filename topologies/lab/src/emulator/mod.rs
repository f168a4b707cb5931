//! Emulator.
pub mod collective;
pub mod event;
pub mod flow;
pub mod nic;
pub mod roce;
mod wire;

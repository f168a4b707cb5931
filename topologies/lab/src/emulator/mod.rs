//! Emulator.
pub mod event;
pub mod nic;
pub mod roce;

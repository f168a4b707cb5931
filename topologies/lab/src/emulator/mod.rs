//! Emulator.
pub mod event;
pub mod roce;

//! Bring-up of a topology on a target: emulator, Mininet, bmv2 or external switches.
pub mod emulator;

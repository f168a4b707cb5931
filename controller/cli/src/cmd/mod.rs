//! The subcommands, one module each.

pub(crate) mod check;
pub(crate) mod demo;
mod import;
mod show;
pub(crate) mod status;
pub(crate) mod topology;
pub(crate) mod up;

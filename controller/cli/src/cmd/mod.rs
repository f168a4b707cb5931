//! The subcommands, one module each.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod status;
pub(crate) mod topology;
pub(crate) mod up;

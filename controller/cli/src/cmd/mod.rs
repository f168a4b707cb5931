//! The subcommands, one module each.

mod bring_up;
pub(crate) mod check;
pub(crate) mod demo;
mod import;
pub(crate) mod int;
pub(crate) mod irregular;
pub(crate) mod job;
pub(crate) mod place;
mod reach;
mod show;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod topology;
pub(crate) mod up;

//! What a demo leaves behind: a table for the terminal, `report.json`, a picture of
//! the fabric with its link loads (`fabric.svg`), and each NIC's throughput over
//! time (`throughput.svg`).
//!
//! Everything here takes plain values and returns text, so the same figures give
//! the same bytes.

mod fabric;
mod folder;
mod summary;
mod throughput;

pub(crate) use fabric::{Node, Panel, Picture, PictureLink};
pub(crate) use folder::{prepare_folder, write_folder};
pub(crate) use summary::{DemoReport, FailureReport, RunReport};
pub(crate) use throughput::{Series, ThroughputPanel};

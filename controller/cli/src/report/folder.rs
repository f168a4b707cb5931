//! Writes the report folder, each file whole or not at all.

use std::path::Path;

use crate::failure::Failure;
use crate::output;
use crate::report::{DemoReport, Picture, ThroughputPanel, fabric, throughput};

/// Writes `report.json`, `fabric.svg` and `throughput.svg` into `folder`, which is
/// created.
pub(crate) fn write_folder(
    folder: &Path,
    report: &DemoReport,
    picture: &Picture,
    panels: &[ThroughputPanel],
) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|source| Failure::File {
        path: folder.to_owned(),
        source,
    })?;
    let json = sonic_rs::to_string_pretty(report).map_err(Failure::run)?;
    output::write_file(&folder.join("report.json"), &(json + "\n"))?;
    output::write_file(&folder.join("fabric.svg"), &fabric::draw(picture))?;
    output::write_file(&folder.join("throughput.svg"), &throughput::draw(panels)?)
}

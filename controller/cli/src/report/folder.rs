//! Writes the report folder, each file whole or not at all.

use std::path::Path;

use crate::failure::Failure;
use crate::output;
use crate::report::{DemoReport, Picture, ThroughputPanel, fabric, throughput};

/// Creates the folder and sees that it can be written to, so that a long run is not
/// lost at its end.
pub(crate) fn prepare_folder(folder: &Path) -> Result<(), Failure> {
    let failed = |source| Failure::File {
        path: folder.to_owned(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    tempfile::tempfile_in(folder).map(drop).map_err(failed)
}

/// Writes `report.json`, `fabric.svg` and `throughput.svg` into a folder that
/// [`prepare_folder`] has seen to.
pub(crate) fn write_folder(
    folder: &Path,
    report: &DemoReport,
    picture: &Picture,
    panels: &[ThroughputPanel],
) -> Result<(), Failure> {
    let json = sonic_rs::to_string_pretty(report).map_err(Failure::run)?;
    output::write_file(&folder.join("report.json"), &(json + "\n"))?;
    output::write_file(&folder.join("fabric.svg"), &fabric::draw(picture))?;
    output::write_file(&folder.join("throughput.svg"), &throughput::draw(panels)?)
}

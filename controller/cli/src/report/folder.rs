//! Writes the report folder, each file whole or not at all.

use std::io::Write as _;
use std::path::Path;

use crate::failure::Failure;
use crate::report::{DemoReport, Picture, ThroughputPanel, fabric, throughput};

/// Writes `report.json`, `fabric.svg` and `throughput.svg` into `folder`, which is
/// created. A file is written under another name and renamed, so that an
/// interrupted run leaves the previous one or none.
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
    write_whole(folder, "report.json", &(json + "\n"))?;
    write_whole(folder, "fabric.svg", &fabric::draw(picture))?;
    write_whole(folder, "throughput.svg", &throughput::draw(panels)?)
}

fn write_whole(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    let failed = |source| Failure::File {
        path: path.clone(),
        source,
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        write_whole(folder.path(), "a.json", "old").unwrap();
        write_whole(folder.path(), "a.json", "new").unwrap();
        assert_eq!(
            std::fs::read_to_string(folder.path().join("a.json")).unwrap(),
            "new"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let error = write_whole(&gone, "a.json", "x").unwrap_err();
        assert!(error.to_string().contains("gone/a.json"), "{error}");
    }
}

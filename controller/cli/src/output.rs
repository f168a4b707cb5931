//! Standard output and standard error: formats, tables, progress, logs.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Row, Table, TableComponent};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::args::Format;
use crate::failure::Failure;

/// An empty table with this header; all columns but the first `left` hold numbers.
pub(crate) fn table<T: Into<Row>>(header: T, left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    table.set_header(header);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Sends logs to standard error: warnings by default, more with `-v` and `-vv`.
/// `RUST_LOG` overrides both.
pub(crate) fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// Prints `value` as one JSON object, or the text that `text` makes of it.
/// A reader that has gone away (`meridian ... | head`) is not an error.
pub(crate) fn print<T: Serialize>(
    format: Format,
    value: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    let mut shown = match format {
        Format::Json => sonic_rs::to_string_pretty(value).map_err(Failure::run)?,
        Format::Text => text(value),
    };
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    write_all(&shown)
}

/// Writes text to standard output, taking a closed pipe for the reader's wish.
pub(crate) fn write_all(shown: &str) -> Result<(), Failure> {
    write_next(shown).map(drop)
}

/// Prints one text of many; false when nobody reads them any more.
pub(crate) fn write_next(shown: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::run(error)),
    }
}

/// Text with its control characters, line ends and tabs aside, written out as escapes.
pub(crate) fn printable(text: &str) -> String {
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(control) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| {
            if control(c) {
                c.escape_default().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// Writes a line to standard error. Nobody may be listening there, which is no reason to fail.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a file whole or not at all: under another name first, then renamed. A device, a
/// pipe or what a link points to is written to as it is; an existing file keeps its mode.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| Failure::File {
        path: path.to_owned(),
        source,
    };
    let existing = std::fs::symlink_metadata(path).ok();
    if existing.as_ref().is_some_and(|there| !there.is_file()) {
        return std::fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(failed);
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    let mode = existing.map_or_else(
        || std::os::unix::fs::PermissionsExt::from_mode(0o644),
        |there| there.permissions(),
    );
    file.as_file().set_permissions(mode).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A progress line on standard error: a spinner on a terminal, plain lines
/// elsewhere, nothing when `quiet`.
pub(crate) struct Progress {
    bar: ProgressBar,
    plain: bool,
}

impl Progress {
    /// Starts a progress line.
    pub(crate) fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal && !quiet {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(120));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            plain: !terminal && !quiet,
        }
    }

    /// Says what is being done now.
    pub(crate) fn stage(&self, message: impl Into<String>) {
        let message = message.into();
        if self.plain {
            say(&message);
        }
        self.bar.set_message(message);
    }

    /// Replaces the spinner's message without a line of its own elsewhere.
    pub(crate) fn tick(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// Removes the spinner.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_file(&path, "old").unwrap();
        write_file(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn escapes_of_a_file_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31m\tb\n"), "a\\u{1b}[31m\tb\n");
        assert_eq!(printable("\u{9b}2J"), "\\u{9b}2J");
    }

    #[test]
    fn a_link_stays_a_link_and_a_mode_stays() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_file(&link, "new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        write_file(&file, "newer").unwrap();
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "newer");
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        write_file(Path::new("/dev/null"), "gone").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_file(&folder.path().join("gone/a.json"), "x").unwrap_err();
        assert!(error.to_string().contains("gone/a.json"), "{error}");
    }
}

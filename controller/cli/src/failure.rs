//! Why a command failed, and the exit code that says so to a script.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::output;

/// A command's failure. The exit code tells a script whose fault it was:
/// 1 something failed while running, 3 the input was wrong, 4 the machine lacks
/// something, 130 interrupted. (2 is clap's, for wrong arguments.)
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// An input is wrong; the text names the place and the fix.
    #[error("{0}")]
    Input(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something this command needs is not on this machine.
    #[error("{0}")]
    Missing(String),
    /// It started and then failed.
    #[error("{0}")]
    Run(String),
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Prints the failure on standard error and returns its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Input(text) => output::say(text.trim_end()),
            other => output::say(format!("error: {other}")),
        }
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Run(_) => 1,
            Self::Input(_) | Self::File { .. } => 3,
            Self::Missing(_) => 4,
            Self::Interrupted => 130,
        }
    }

    /// A [`Failure::Run`] from any error.
    pub(crate) fn run(error: impl std::fmt::Display) -> Self {
        Self::Run(error.to_string())
    }
}

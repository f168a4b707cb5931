//! Which P4Runtime switch program a lab runs, and where it is.

use std::fmt;
use std::path::{Path, PathBuf};

/// A P4Runtime switch program for Linux interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// Meridian's own.
    MeridianSwitch,
    /// bmv2's.
    SimpleSwitchGrpc,
}

impl ProgramKind {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::MeridianSwitch, Self::SimpleSwitchGrpc];

    /// The name of its executable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MeridianSwitch => "meridian-switch",
            Self::SimpleSwitchGrpc => "simple_switch_grpc",
        }
    }

    /// Whether hosts must compute checksums and cut TCP into packets themselves, as a wire
    /// would have it. meridian-switch finishes what Linux leaves open on veth pairs.
    pub(super) fn wants_finished_frames(self) -> bool {
        self == Self::SimpleSwitchGrpc
    }
}

impl fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A switch program at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it is.
    pub kind: ProgramKind,
    /// Its executable.
    pub path: PathBuf,
}

/// No executable of this name was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no `{kind}` beside this program or on PATH; {}", how_to_get(*kind))]
pub struct ProgramNotFound {
    /// What was looked for.
    pub kind: ProgramKind,
}

pub(super) fn how_to_get(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::MeridianSwitch => {
            "build it with `cargo build --release -p softswitch --bins`, \
             or name another switch program"
        }
        ProgramKind::SimpleSwitchGrpc => {
            "install bmv2 with P4Runtime support (https://github.com/p4lang/behavioral-model), \
             or use meridian-switch"
        }
    }
}

impl Program {
    /// Looks beside this process's own executable first, then in the folders of PATH.
    ///
    /// # Errors
    /// When there is none; the message says how to get it.
    pub fn find(kind: ProgramKind) -> Result<Self, ProgramNotFound> {
        let own = std::env::current_exe().ok();
        let path = std::env::var_os("PATH").unwrap_or_default();
        own.iter()
            .filter_map(|exe| exe.parent().map(Path::to_owned))
            .chain(std::env::split_paths(&path))
            .map(|folder| folder.join(kind.name()))
            .find(|file| is_executable(file))
            .map(|path| Self { kind, path })
            .ok_or(ProgramNotFound { kind })
    }
}

pub(super) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

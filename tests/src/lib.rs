//! Whole-system tests: what a user does, from outside.
//!
//! The tests are in `tests/tests`, one target per part of `tests/run`. Those that need something of
//! the machine are ignored by default and run by `tests/run`, which checks for it first and builds the
//! binaries they start.

use std::path::PathBuf;

/// The binary of this name, built with the same profile as the test that asks.
///
/// # Errors
/// When it is not there; the message says how to build it.
pub fn binary(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    // target/PROFILE/deps/TEST
    let folder = own.ancestors().nth(2).unwrap_or(&own);
    let path = folder.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        let profile = folder.file_name().unwrap_or_default().to_string_lossy();
        Err(format!(
            "no {}; build it: cargo build --profile {} -p meridian -p softswitch --bins",
            path.display(),
            if profile == "debug" { "dev" } else { &profile },
        ))
    }
}

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

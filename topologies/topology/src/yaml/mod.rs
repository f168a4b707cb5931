//! Topology files: text to tree with places, tree to typed document, document to topology; every
//! step reports all it finds, at line and column.

mod ars_doc;
mod clos_doc;
mod decode;
mod doc;
mod host_doc;
mod index;
mod int_doc;
mod places;
mod policy_doc;
mod report;
mod resolve;
pub mod section;
mod tree;

use std::path::{Path, PathBuf};

use report::{At, Findings};
pub use report::{MAX_PROBLEMS, Problem, Report};

use crate::model::Topology;

/// Why a topology could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file can't be read.
    #[error("cannot read the topology file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file was read and is wrong.
    #[error("{0}")]
    Invalid(Report),
}

impl Topology {
    /// Reads a topology file.
    ///
    /// # Errors
    /// The file can't be read, or is wrong; see [`Report`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let read = |source| LoadError::Read {
            path: path.to_owned(),
            source,
        };
        let length = std::fs::metadata(path).map_err(read)?.len();
        // Checked before reading, so that a wrong path to something huge is no out-of-memory.
        if length > tree::MAX_BYTES as u64 {
            return Err(read(std::io::Error::other(too_long())));
        }
        let bytes = std::fs::read(path).map_err(read)?;
        Self::parse_bytes(&path.display().to_string(), &bytes).map_err(LoadError::Invalid)
    }

    /// Reads a topology from bytes that may not even be text.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse_bytes(name: &str, bytes: &[u8]) -> Result<Self, Report> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(name, text),
            Err(error) => {
                let text = String::from_utf8_lossy(bytes);
                let good = &bytes[..error.valid_up_to()];
                let start = String::from_utf8_lossy(good).chars().count();
                let mut findings = Findings::default();
                let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
                let message = format!("not UTF-8: the byte 0x{byte:02x}");
                findings.add(
                    At { start, len: 1 },
                    "not-utf8",
                    message,
                    "save the file as UTF-8 text",
                );
                Err(findings.into_report(name, &text))
            }
        }
    }

    /// Reads a topology from text; `name` is for messages.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Report> {
        let mut findings = Findings::default();
        if text.len() > tree::MAX_BYTES {
            findings.add(
                At::default(),
                "too-many",
                too_long(),
                "use the `clos:` form",
            );
            return Err(findings.into_report(name, ""));
        }
        let topology = tree::load(text, &mut findings)
            .and_then(|root| doc::decode(&root, &mut findings))
            .and_then(|mut doc| {
                if let (Some(clos), Some(name)) = (&mut doc.clos, &doc.name) {
                    clos.value.clos.name.clone_from(&name.value);
                }
                resolve::resolve(doc, &mut findings)
            });
        match topology {
            Some(topology) if findings.is_empty() => Ok(topology),
            _ => Err(findings.into_report(name, text)),
        }
    }
}

fn too_long() -> String {
    format!("longer than {} MiB", tree::MAX_BYTES >> 20)
}

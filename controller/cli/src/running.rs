//! Where running fabrics are found: `meridian up` answers on a Unix socket named
//! after its fabric, `meridian status` asks there.
//!
//! The protocol is one exchange: whoever connects is sent the fabric's status as
//! one JSON document, and the connection is closed. The sockets lie in
//! `$MERIDIAN_RUN_DIR`, else `/run/meridian` for root, else
//! `$XDG_RUNTIME_DIR/meridian`, else `/tmp/meridian-UID`, a folder that only its
//! owner can enter.

use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;

use crate::failure::Failure;
use crate::output;

const SOCKET_SUFFIX: &str = "sock";
/// How long `status` waits for a fabric's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A status document larger than this is not one of ours, bytes.
const LARGEST_ANSWER: u64 = 64 << 20;

/// The folder of this user's running fabrics.
pub(crate) fn folder() -> PathBuf {
    if let Some(dir) = std::env::var_os("MERIDIAN_RUN_DIR") {
        return PathBuf::from(dir);
    }
    let uid = std::fs::metadata("/proc/self").map_or(0, |m| m.uid());
    if uid == 0 {
        return PathBuf::from("/run/meridian");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) => PathBuf::from(dir).join("meridian"),
        None => PathBuf::from(format!("/tmp/meridian-{uid}")),
    }
}

/// The socket of one running fabric; removed when dropped.
pub(crate) struct Announcement {
    path: PathBuf,
    listener: UnixListener,
}

impl Announcement {
    /// Announces `fabric` in `folder`. Fails when a fabric of this name is running;
    /// a socket that a killed process left behind is replaced.
    pub(crate) fn new(folder: &Path, fabric: &str) -> Result<Self, Failure> {
        let failed = |source| Failure::File {
            path: folder.to_owned(),
            source,
        };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
        let path = folder.join(file_name(fabric));
        if path.exists() {
            if UnixStream::connect(&path).is_ok() {
                return Err(Failure::Run(format!(
                    "a fabric named '{fabric}' is running already (see `meridian status`); \
                     stop it, or give this topology another name"
                )));
            }
            std::fs::remove_file(&path).map_err(failed)?;
        }
        let listener = UnixListener::bind(&path).map_err(|source| Failure::File {
            path: path.clone(),
            source,
        })?;
        Ok(Self { path, listener })
    }

    /// Waits for someone to ask; answer with [`answer`].
    pub(crate) async fn asked(&self) -> io::Result<tokio::net::UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // The folder may have been removed under us; then there is nothing to clean.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Sends the status and closes. An asker that has gone away is no error.
pub(crate) async fn answer(mut stream: tokio::net::UnixStream, json: &str) {
    if let Err(error) = stream.write_all(json.as_bytes()).await {
        tracing::debug!(%error, "whoever asked for the status has gone");
    }
    let _ = stream.shutdown().await;
}

/// A fabric that answered.
pub(crate) struct Answer {
    /// The fabric's name, as its socket is called.
    pub(crate) fabric: String,
    /// Its status, JSON.
    pub(crate) json: String,
}

/// Asks every fabric in `folder`, or only the one named. Sockets that nobody
/// listens on are leftovers of killed processes: they are removed.
pub(crate) fn ask(folder: &Path, only: Option<&str>) -> Result<Vec<Answer>, Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(Failure::File {
                path: folder.to_owned(),
                source,
            });
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == SOCKET_SUFFIX))
        .filter(|path| only.is_none_or(|name| path.file_name() == Some(file_name(name).as_ref())))
        .collect();
    paths.sort();
    let mut answers = Vec::new();
    for path in paths {
        let fabric = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        match UnixStream::connect(&path) {
            Ok(stream) => match read_answer(stream) {
                Ok(json) => answers.push(Answer { fabric, json }),
                Err(error) => output::say(format!("fabric '{fabric}' does not answer: {error}")),
            },
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                tracing::info!(path = %path.display(), "removing a dead fabric's socket");
                let _ = std::fs::remove_file(&path);
            }
            Err(source) => return Err(Failure::File { path, source }),
        }
    }
    Ok(answers)
}

fn read_answer(stream: UnixStream) -> io::Result<String> {
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut text = String::new();
    stream.take(LARGEST_ANSWER).read_to_string(&mut text)?;
    Ok(text)
}

/// The socket's file name: the fabric's, with what a path can't carry replaced.
fn file_name(fabric: &str) -> String {
    let safe: String = fabric
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '_',
        })
        .take(64)
        .collect();
    format!("{safe}.{SOCKET_SUFFIX}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_fabric_answers_and_a_second_of_its_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let here = Announcement::new(folder.path(), "demo/1").unwrap();
        assert!(Announcement::new(folder.path(), "demo/1").is_err());
        drop(here.asked().await.unwrap()); // the refused one's probe
        let path = folder.path().to_owned();
        let asker = tokio::task::spawn_blocking(move || ask(&path, Some("demo/1")).unwrap());
        answer(here.asked().await.unwrap(), "{\"x\":1}").await;
        let answers = asker.await.unwrap();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].json, "{\"x\":1}");
        drop(here);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_dead_socket_is_removed_and_does_not_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert!(ask(folder.path(), None).unwrap().is_empty());
        assert!(!path.exists());
    }

    #[test]
    fn no_folder_is_no_fabric() {
        assert!(ask(Path::new("/nonexistent-run"), None).unwrap().is_empty());
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(file_name("../x y"), ".._x_y.sock");
    }
}

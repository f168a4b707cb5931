//! The runner's process: started, listened to, and always ended.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot};

use super::checks::SYSTEM_FOLDERS;
use super::error::Error;
use super::plan::Plan;
use super::protocol::{Answer, Event, Message, Request};

const SCRIPT: &str = include_str!("runner.py");
/// Reads the script from standard input, and not a byte of what follows it there.
const BOOTSTRAP: &str = "import os, sys
length = int(sys.argv.pop(1)); script = b''
while len(script) < length: script += os.read(0, length - len(script)) or sys.exit(1)
exec(compile(script, 'runner.py', 'exec'))";

/// The runner stops its switches in three seconds at most, then clears what is left.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(10);
/// Lines of the runner's standard error that are kept to explain its end.
const COMPLAINT_LINES: usize = 12;

type Waiting = Mutex<FxHashMap<u64, oneshot::Sender<Answer>>>;

/// A running runner. Dropping it stops the fabric and waits until nothing is left of it.
#[derive(Debug)]
pub(super) struct Runner {
    python: PathBuf,
    tag: String,
    child: Child,
    stdin: Mutex<Option<ChildStdin>>,
    next_id: AtomicU64,
    waiting: Arc<Waiting>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

pub(super) type Events = mpsc::UnboundedReceiver<Event>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds these locks can leave its data half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn io_error(action: &str) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::Io {
        action: action.to_owned(),
        source,
    }
}

fn command(python: &Path, arguments: &[&str]) -> Command {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    for folder in SYSTEM_FOLDERS {
        path.push(":");
        path.push(folder);
    }
    let mut command = Command::new(python);
    command
        .args(["-c", BOOTSTRAP, &SCRIPT.len().to_string()])
        .args(arguments)
        .env("PATH", path)
        .stdin(Stdio::piped())
        // A Ctrl-C at the terminal is for this process; it decides when the fabric ends.
        .process_group(0);
    command
}

impl Runner {
    /// Starts it and hands it the plan.
    pub(super) fn start(python: &Path, plan: &Plan) -> Result<(Self, Events), Error> {
        let text = sonic_rs::to_string(plan).map_err(|error| Error::Runner {
            message: format!("the plan is no JSON: {error}"),
        })?;
        let mut child = command(python, &["meridian-mininet", &plan.fabric])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(io_error(&format!("start {}", python.display())))?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (events, receiver) = mpsc::unbounded_channel();
        let waiting = Arc::<Waiting>::default();
        let complaints = Arc::<Mutex<VecDeque<String>>>::default();
        let mut readers = Vec::new();
        if let Some(stdout) = stdout {
            let waiting = Arc::clone(&waiting);
            readers.push(std::thread::spawn(move || {
                listen(stdout, &waiting, &events)
            }));
        }
        if let Some(stderr) = stderr {
            let complaints = Arc::clone(&complaints);
            readers.push(std::thread::spawn(move || {
                keep_complaints(stderr, &complaints)
            }));
        }
        let runner = Self {
            python: python.to_owned(),
            tag: plan.tag.clone(),
            child,
            stdin: Mutex::new(stdin),
            next_id: AtomicU64::new(1),
            waiting,
            complaints,
            readers,
        };
        runner.write(SCRIPT)?;
        runner.write(&(text + "\n"))?;
        Ok((runner, receiver))
    }

    fn write(&self, text: &str) -> Result<(), Error> {
        let mut stdin = lock(&self.stdin);
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let stdin = stdin.as_mut().ok_or_else(gone);
        stdin
            .and_then(|stdin| stdin.write_all(text.as_bytes()))
            .map_err(io_error("speak to Mininet's runner"))
    }

    /// Sends a request made for an id and waits for the answer.
    pub(super) async fn ask<'a>(
        &self,
        request: impl FnOnce(u64) -> Request<'a>,
    ) -> Result<Answer, Error> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        let line = sonic_rs::to_string(&request(id)).map_err(|error| Error::Runner {
            message: format!("a request is no JSON: {error}"),
        })?;
        self.write(&(line + "\n"))?;
        answer.await.map_err(|_| self.gone())
    }

    /// The error for a runner that ended without being asked to.
    pub(super) fn gone(&self) -> Error {
        let complaints = Vec::from(lock(&self.complaints).clone()).join("\n");
        let nothing = "it was killed, and said nothing".to_owned();
        Error::Runner {
            message: if complaints.is_empty() {
                nothing
            } else {
                complaints
            },
        }
    }

    /// Ends the runner; whatever it could not do itself is done here.
    fn end(&mut self) {
        drop(lock(&self.stdin).take());
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
        let ended = self.child.try_wait().ok().flatten();
        if ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // Exit codes mean that it cleared up behind itself; a signal that it did not.
        if ended.and_then(|status| status.code()).is_none() {
            self.sweep();
        }
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }

    fn sweep(&self) {
        let sweeping = command(&self.python, &["--sweep", &self.tag])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Ok(mut child) = sweeping {
            if let Some(mut stdin) = child.stdin.take() {
                let _ = stdin.write_all(SCRIPT.as_bytes());
            }
            let _ = child.wait();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.end();
    }
}

/// Hands answers to those who wait for them, and events to the driver, until the runner ends.
fn listen(stdout: impl Read, waiting: &Waiting, events: &mpsc::UnboundedSender<Event>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        match sonic_rs::from_str::<Message>(&line) {
            Ok(Message::Answer(answer)) => {
                if let Some(sender) = lock(waiting).remove(&answer.id) {
                    // Whoever asked may have given up.
                    let _ = sender.send(answer);
                }
            }
            Ok(Message::Event(event)) => {
                let _ = events.send(event);
            }
            Err(error) => tracing::warn!(%error, line, "Mininet's runner said something unknown"),
        }
    }
    lock(waiting).clear();
}

fn keep_complaints(stderr: impl Read, complaints: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        tracing::debug!(line, "Mininet's runner");
        let mut complaints = lock(complaints);
        if complaints.len() == COMPLAINT_LINES {
            complaints.pop_front();
        }
        complaints.push_back(line);
    }
}

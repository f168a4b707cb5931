//! What is compared: a bare forwarder and P4 switches.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use p4runtime::client::{Config, Pipeline, Session};
use p4runtime::transport;
use p4runtime::v1::Update;

use crate::lanes::PORTS;
use crate::system::{Buffers, Socket, Use};

const ADDRESS: &str = "127.0.0.1:9559";
const START_LIMIT: Duration = Duration::from_secs(20);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A kind of forwarder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Moves frames from one interface to the other with recvmmsg and sendmmsg, and looks at
    /// none.
    Bare,
    /// A program with simple_switch_grpc's command line.
    Switch {
        /// What the table calls it.
        name: String,
        /// Its path.
        program: PathBuf,
        /// Options before `--`.
        options: Vec<String>,
    },
}

impl Kind {
    pub(crate) fn name(&self) -> &str {
        match self {
            Kind::Bare => "bare",
            Kind::Switch { name, .. } => name,
        }
    }
}

/// What a P4 switch is to run.
pub(crate) struct Pipelined {
    pub(crate) pipeline: Pipeline,
    pub(crate) updates: Vec<Update>,
}

/// A forwarder at work; it ends when this goes.
pub(crate) enum Running {
    Bare {
        stop: Arc<AtomicBool>,
        thread: Option<JoinHandle<io::Result<()>>>,
    },
    Switch(Process),
}

/// A child process that ends when this goes.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Bare { stop, thread } = self {
            stop.store(true, Ordering::Release);
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
    }
}

impl Running {
    /// The process, to measure it from outside.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Running::Bare { .. } => None,
            Running::Switch(process) => Some(process.0.id()),
        }
    }
}

/// Starts a forwarder and gives it its program.
pub(crate) fn start(kind: &Kind, program: &Pipelined) -> Result<Running, Failure> {
    match kind {
        Kind::Bare => {
            let receive = Socket::open(PORTS[0], Use::Receive)?;
            let send = Socket::open(PORTS[1], Use::Send)?;
            let stop = Arc::new(AtomicBool::new(false));
            let thread = {
                let stop = stop.clone();
                std::thread::spawn(move || bare(&receive, &send, &stop))
            };
            Ok(Running::Bare {
                stop,
                thread: Some(thread),
            })
        }
        Kind::Switch {
            name,
            program: path,
            options,
        } => {
            let process = spawn(path, options).map_err(|e| format!("{name}: {e}"))?;
            load(program).map_err(|e| format!("{name}: {e}"))?;
            Ok(Running::Switch(process))
        }
    }
}

fn bare(receive: &Socket, send: &Socket, stop: &AtomicBool) -> io::Result<()> {
    let mut buffers = Buffers::default();
    while !stop.load(Ordering::Relaxed) {
        receive.receive(&mut buffers)?;
        let frames: Vec<&[u8]> = buffers.frames().collect();
        let mut at = 0;
        while at < frames.len() {
            match send.send(frames[at..].iter().copied()) {
                Ok(count) if count > 0 => at += count,
                _ => break,
            }
        }
    }
    Ok(())
}

fn spawn(path: &Path, options: &[String]) -> io::Result<Process> {
    let mut command = Command::new(path);
    for (number, interface) in PORTS.iter().enumerate() {
        command.args(["-i", &format!("{}@{interface}", number + 1)]);
    }
    let child = command
        .args(["--device-id", "1", "--no-p4"])
        .args(options)
        .args(["--", "--grpc-server-addr", ADDRESS])
        .args(["--cpu-port", "510", "--priority-queues", "8"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()?;
    Ok(Process(child))
}

fn load(program: &Pipelined) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let started = Instant::now();
        let channel = loop {
            match transport::connect(ADDRESS).await {
                Ok(channel) => break channel,
                Err(error) if started.elapsed() > START_LIMIT => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let (session, _streams) = Session::open(channel, Config::new(1, 1)).await?;
        session.until_primary().await?;
        session.verify_and_commit(&program.pipeline).await?;
        session.write_in_order(program.updates.clone()).await?;
        session.close().await;
        Ok(())
    })
}

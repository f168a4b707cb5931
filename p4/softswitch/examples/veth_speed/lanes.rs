//! The two ends of the cable: who sends, and who counts what arrives.
//!
//! Each end is a thread in a network namespace of its own, so that nothing but the forwarder
//! under test can carry a frame from one to the other. The namespaces go with the threads.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::system::{BATCH, Buffers, Socket, Use, new_namespace};

/// What the sender does now.
const PAUSED: u8 = 0;
const FLOODING: u8 = 1;
const ENDED: u8 = 2;

/// Runs an `ip` command.
pub(crate) fn ip(words: &str) -> io::Result<()> {
    let output = std::process::Command::new("ip")
        .args(words.split_whitespace())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ip {words}: {}", said.trim())))
}

/// Packets that the interface of this thread's namespace has received and sent.
fn counters(interface: &str) -> io::Result<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))
        .ok_or_else(|| io::Error::other(format!("no {interface} in /proc/net/dev")))?;
    let numbers: Vec<u64> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    Ok((numbers[1], numbers[9]))
}

/// What a lane is asked to do in its namespace.
type Job = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace of its own, with one end of a veth pair.
struct Lane {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    /// Lays a cable between interface `outside` of this namespace and `inside` of a new one.
    fn lay(outside: &str, inside: &str) -> io::Result<Lane> {
        let (jobs, taken): (Sender<Job>, Receiver<Job>) = channel();
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            let _ = tell.send(new_namespace());
            while let Ok(job) = taken.recv() {
                job();
            }
        });
        let lane = Lane {
            jobs: Some(jobs),
            thread: Some(thread),
        };
        let id = told.recv().map_err(io::Error::other)??;
        ip(&format!(
            "link add {outside} type veth peer name {inside} netns {id}"
        ))?;
        ip(&format!("link set {outside} up"))?;
        let name = inside.to_owned();
        lane.run(move || {
            std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").ok();
            ip(&format!("link set {name} up"))
        })??;
        Ok(lane)
    }

    /// Runs something in the namespace and waits for what it returns.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (tell, told) = channel();
        let job = Box::new(move || {
            let _ = tell.send(job());
        });
        let gone = || io::Error::other("the thread of a namespace has ended");
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The sending end and the receiving end, and the two interfaces between them which are for
/// the forwarder.
pub(crate) struct Cables {
    source: Lane,
    sink: Lane,
    mode: Arc<AtomicU8>,
    flood: Option<JoinHandle<io::Result<()>>>,
    frames: Arc<Mutex<Arc<Vec<Vec<u8>>>>>,
}

/// The forwarder's interfaces: frames come in by the first and leave by the second.
pub(crate) const PORTS: [&str; 2] = ["ms1", "ms2"];
const ENDS: [&str; 2] = ["source0", "sink0"];

impl Cables {
    pub(crate) fn lay() -> io::Result<Cables> {
        let source = Lane::lay(PORTS[0], ENDS[0])?;
        let sink = Lane::lay(PORTS[1], ENDS[1])?;
        let mode = Arc::new(AtomicU8::new(PAUSED));
        let frames: Arc<Mutex<Arc<Vec<Vec<u8>>>>> = Arc::default();
        let flood = {
            let (mode, frames) = (mode.clone(), frames.clone());
            // The thread is made in the namespace, and stays in it.
            source.run(move || std::thread::spawn(move || flood(&mode, &frames)))?
        };
        Ok(Cables {
            source,
            sink,
            mode,
            flood: Some(flood),
            frames,
        })
    }

    /// Sends these frames, over and over, as fast as it goes, until paused.
    pub(crate) fn flood(&self, frames: Vec<Vec<u8>>) {
        *self.frames.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(frames);
        self.mode.store(FLOODING, Ordering::Release);
    }

    pub(crate) fn pause(&self) {
        self.mode.store(PAUSED, Ordering::Release);
        std::thread::sleep(Duration::from_millis(200));
    }

    /// Packets sent by the source and received by the sink so far.
    pub(crate) fn counters(&self) -> io::Result<(u64, u64)> {
        let (_, sent) = self.source.run(|| counters(ENDS[0]))??;
        let (received, _) = self.sink.run(|| counters(ENDS[1]))??;
        Ok((sent, received))
    }

    /// Sends frames slowly, and hands back what arrived.
    pub(crate) fn probe(&self, frames: Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>> {
        let done = Arc::new(AtomicBool::new(false));
        let count = frames.len();
        let (tell, told) = channel();
        let listening = {
            let done = done.clone();
            self.sink.run(move || {
                std::thread::spawn(move || {
                    let socket = Socket::open(ENDS[1], Use::Receive)?;
                    let _ = tell.send(());
                    let (mut buffers, mut arrived) = (Buffers::default(), Vec::new());
                    while !done.load(Ordering::Acquire) && arrived.len() < count {
                        socket.receive(&mut buffers)?;
                        arrived.extend(buffers.frames().map(<[u8]>::to_vec));
                    }
                    Ok::<_, io::Error>(arrived)
                })
            })?
        };
        let _ = told.recv();
        self.source.run(move || {
            let socket = Socket::open(ENDS[0], Use::Send)?;
            for frame in &frames {
                socket.send(std::iter::once(&frame[..]))?;
                std::thread::sleep(Duration::from_micros(500));
            }
            Ok::<_, io::Error>(())
        })??;
        std::thread::sleep(Duration::from_millis(500));
        done.store(true, Ordering::Release);
        listening
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the listening thread panicked")))
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        self.mode.store(ENDED, Ordering::Release);
        if let Some(flood) = self.flood.take() {
            let _ = flood.join();
        }
    }
}

fn flood(mode: &AtomicU8, frames: &Mutex<Arc<Vec<Vec<u8>>>>) -> io::Result<()> {
    let socket = Socket::open(ENDS[0], Use::Blast)?;
    loop {
        match mode.load(Ordering::Acquire) {
            ENDED => return Ok(()),
            FLOODING => {}
            _ => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
        }
        let frames = frames
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for batch in frames.chunks(BATCH) {
            // A full interface takes fewer; the next round tries again.
            let _ = socket.send(batch.iter().map(|frame| &frame[..]));
            if mode.load(Ordering::Relaxed) != FLOODING {
                break;
            }
        }
    }
}

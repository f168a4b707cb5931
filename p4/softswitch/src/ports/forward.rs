//! Moves packets between Linux interfaces and the switch.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::outlet::{InterfaceStats, Outlet, Way};
use super::pcap::{LinkType, PcapWriter, Replay, file_name};
use super::spec::{OpenError, PortSpec, check};
use super::wake::Waker;
use super::worker::{Inlet, Shared, Worker, open};
use crate::ids::Port;
use crate::server::{Clock, Server};

/// Bytes of all receive rings together, about, and of one at least and at most.
const RINGS_TOTAL: usize = 64 << 20;
const RING_MIN: usize = 512 << 10;
const RING_MAX: usize = 4 << 20;

/// How a forwarder works.
#[derive(Clone, Debug, Default)]
pub struct ForwarderConfig {
    /// Threads that receive and send; the interfaces are dealt out to them. `None`: as many as
    /// there are cores, but not more than interfaces.
    pub workers: Option<usize>,
    /// Logs so many bytes of each packet that comes and goes; 0: none.
    pub dump: usize,
}

/// A port of a running forwarder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// The port's number.
    pub port: Port,
    /// The interface's name.
    pub interface: String,
    /// The interface is there, up, and has a carrier.
    pub is_up: bool,
    /// What passed it.
    pub stats: InterfaceStats,
}

/// The ports of a forwarder, to ask about from any thread.
#[derive(Clone, Default)]
pub struct Ports(Arc<[Arc<Outlet>]>);

impl Ports {
    /// How the ports are now, in the order in which they were given.
    pub fn list(&self) -> Vec<PortInfo> {
        let info = |outlet: &Arc<Outlet>| PortInfo {
            port: outlet.spec.port,
            interface: outlet.spec.interface.clone(),
            is_up: outlet.is_up(),
            stats: outlet.stats(),
        };
        self.0.iter().map(info).collect()
    }
}

/// Drives the interfaces of one switch; see [`run`](Self::run).
///
/// Each interface belongs to one worker, a thread which receives from it, gives what came to the
/// switch in batches, and sends whatever then is ready, by whichever port. A worker alone has the
/// switch to itself for a batch at a time; several have a lane of it each and work at the same
/// time. Nobody holds the switch while a system call moves frames.
pub struct Forwarder {
    shared: Arc<Shared>,
    /// The first one runs on the thread that calls `run`.
    workers: Vec<Worker>,
}

impl Forwarder {
    /// Opens the interfaces. Nothing moves before [`run`](Self::run).
    ///
    /// # Errors
    /// When an interface is missing, not allowed, or given twice.
    pub fn open(
        server: Server,
        clock: Arc<dyn Clock>,
        specs: &[PortSpec],
        config: &ForwarderConfig,
    ) -> Result<Self, OpenError> {
        let memory = (RINGS_TOTAL / specs.len().max(1)).clamp(RING_MIN, RING_MAX);
        let mut inlets = Vec::with_capacity(specs.len());
        let mut forwarder = Self::build(server, clock, specs, config, |spec| {
            let (ring, socket, link) =
                open(&spec.interface, memory).map_err(|e| OpenError::of(spec, e))?;
            let outlet = Arc::new(Outlet::new(
                spec.clone(),
                Way::Interface(socket),
                config.dump,
            ));
            inlets.push(Inlet {
                outlet: outlet.clone(),
                ring: Some(ring),
                memory,
                capture: None,
                is_ip: link.is_ip,
            });
            Ok(outlet)
        })?;
        let workers = forwarder.workers.len();
        for (at, inlet) in inlets.into_iter().enumerate() {
            forwarder.workers[at % workers].inlets.push(inlet);
        }
        for worker in &mut forwarder.workers {
            worker.follow_links();
        }
        Ok(forwarder)
    }

    /// Ports that are files, as with bmv2's `--use-files`: frames are read from
    /// `INTERFACE_in.pcap`, all files' in the order of their times, as fast as it goes, from
    /// `start` ns on; what leaves is written to `INTERFACE_out.pcap`. Both are in `folder`.
    ///
    /// # Errors
    /// When a port is given twice, or a file cannot be read or created.
    pub fn open_files(
        server: Server,
        clock: Arc<dyn Clock>,
        specs: &[PortSpec],
        folder: &Path,
        start: u64,
        config: &ForwarderConfig,
    ) -> Result<Self, OpenError> {
        let one = ForwarderConfig {
            workers: Some(1),
            ..config.clone()
        };
        let mut forwarder = Self::build(server, clock, specs, &one, |spec| {
            let outlet = Outlet::new(spec.clone(), Way::File, config.dump);
            let path = file_name(folder, &spec.interface, "out");
            outlet.set_capture(PcapWriter::create(&path, LinkType::Ethernet)?);
            Ok(Arc::new(outlet))
        })?;
        let paths: Vec<_> = specs
            .iter()
            .map(|spec| (spec.port, file_name(folder, &spec.interface, "in")))
            .collect();
        let files = paths.iter().map(|(port, path)| (*port, path.as_path()));
        forwarder.workers[0].replay = Some(Replay::open(files, start)?);
        Ok(forwarder)
    }

    fn build(
        server: Server,
        clock: Arc<dyn Clock>,
        specs: &[PortSpec],
        config: &ForwarderConfig,
        outlet: impl FnMut(&PortSpec) -> Result<Arc<Outlet>, OpenError>,
    ) -> Result<Self, OpenError> {
        let cpu_port = server.switch().lock().config().cpu_port;
        check(specs, cpu_port)?;
        let outlets = specs.iter().map(outlet).collect::<Result<Arc<[_]>, _>>()?;
        let mut by_port = vec![None; 512];
        for (at, spec) in specs.iter().enumerate() {
            by_port[usize::from(spec.port)] = Some(at);
        }
        let shared = Arc::new(Shared {
            server,
            clock,
            outlets,
            by_port,
            cpu_port,
            stop: AtomicBool::new(false),
            dump: config.dump,
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = config.workers.unwrap_or(cores).min(specs.len()).max(1);
        if count > 1 {
            shared.server.switch().set_lanes(count);
        }
        let workers = (0..count)
            .map(|number| Worker::new(shared.clone(), (count > 1).then_some(number)))
            .collect::<io::Result<_>>()?;
        Ok(Forwarder { shared, workers })
    }

    /// Writes all frames to pcap files in `folder`, two per interface.
    ///
    /// # Errors
    /// When a file cannot be created.
    pub fn capture(&mut self, folder: &Path) -> io::Result<()> {
        for inlet in self.workers.iter_mut().flat_map(|w| w.inlets.iter_mut()) {
            let interface = &inlet.outlet.spec.interface;
            let link = match inlet.is_ip {
                true => LinkType::Raw,
                false => LinkType::Ethernet,
            };
            let open =
                |direction| PcapWriter::create(&file_name(folder, interface, direction), link);
            inlet.capture = Some(open("in")?);
            inlet.outlet.set_capture(open("out")?);
        }
        Ok(())
    }

    /// Wakes the forwarder when something was put into the switch, or it should stop.
    pub fn waker(&self) -> Waker {
        self.workers[0].waker.clone()
    }

    /// The ports, to ask about while it runs.
    pub fn ports(&self) -> Ports {
        Ports(self.shared.outlets.clone())
    }

    /// Threads that receive and send.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Moves packets until `stop` is set (and the forwarder woken).
    ///
    /// # Errors
    /// When the system refuses a thread, or to wait for frames.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut wakers = Vec::new();
        let mut threads: Vec<JoinHandle<io::Result<()>>> = Vec::new();
        let first = self.workers[0].waker.clone();
        for (number, mut worker) in self.workers.drain(1..).enumerate() {
            wakers.push(worker.waker.clone());
            let first = first.clone();
            let thread = std::thread::Builder::new().name(format!("forward-{}", number + 1));
            threads.push(thread.spawn(move || {
                let result = worker.run(&|| false);
                // An end of one is the end of all.
                worker.shared.stop.store(true, Ordering::Release);
                first.wake();
                result
            })?);
        }
        let mut result = self.workers[0].run(&|| stop.load(Ordering::Acquire));
        self.shared.stop.store(true, Ordering::Release);
        wakers.iter().for_each(Waker::wake);
        for thread in threads {
            let ended = thread.join();
            result = result.and(ended.unwrap_or_else(|_| Err(io::Error::other("it panicked"))));
        }
        result
    }
}

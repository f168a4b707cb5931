//! One thread that receives from some interfaces, runs the switch and sends.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::offload::finish;
use super::outlet::{Outlet, Way};
use super::packet_socket::{
    Link, SendSocket, clear_error, drain, interface_index, link_monitor, poll,
};
use super::pcap::{PcapWriter, Replay};
use super::ring::{Ring, Shape};
use super::wake::Waker;
use crate::ids::Port;
use crate::server::{Clock, Server};
use crate::switch::{Exclusive, Work};

/// Frames taken in while the switch is locked once.
const BATCH: usize = 64;
/// Batches of one interface before the others get their turn.
const BATCHES_PER_TURN: usize = 4;
/// Packets taken in before what is ready is taken out. One frame may be many segments: queues
/// are for ports that are busy, not for this loop's batches.
const DRAIN_EVERY: u64 = 16;
/// Longest wait, ns, when nothing is due: a lost wake-up costs no more than this.
const WAIT_MAX: u64 = 500_000_000;
/// How often, ns, something else than frames gets its turn while these keep coming.
const TICK_EVERY: u64 = 10_000_000;
/// How often what became ready meanwhile is taken out before others may have the switch: a program
/// that sends packets round and round must not keep its lock.
const ROUNDS: usize = 64;

/// What all threads of a forwarder share.
pub(super) struct Shared {
    pub(super) server: Server,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) outlets: Arc<[Arc<Outlet>]>,
    /// Index into `outlets` by port number.
    pub(super) by_port: Vec<Option<usize>>,
    pub(super) cpu_port: Option<Port>,
    pub(super) stop: AtomicBool,
    /// Bytes of each packet to log.
    pub(super) dump: usize,
}

impl Shared {
    pub(super) fn lock(&self) -> Exclusive<'_> {
        self.server.switch().lock()
    }
}

/// The receiving half of a port's interface.
pub(super) struct Inlet {
    pub(super) outlet: Arc<Outlet>,
    pub(super) ring: Option<Ring>,
    /// Bytes of a ring, about.
    pub(super) memory: usize,
    pub(super) capture: Option<PcapWriter>,
    /// Whether frames begin with IP.
    pub(super) is_ip: bool,
}

impl Inlet {
    /// Opens both halves of the interface again, or takes note that it is gone.
    fn reopen(&mut self) {
        let name = &self.outlet.spec.interface;
        let index = interface_index(name).ok();
        if self.ring.as_ref().map(Ring::index) == index {
            return;
        }
        // Gone, or another one of the same name.
        self.ring = None;
        let opened = index.map(|_| open(name, self.memory));
        let way = match opened {
            Some(Ok((ring, socket, link))) => {
                self.is_ip = link.is_ip;
                self.ring = Some(ring);
                Way::Interface(socket)
            }
            Some(Err(error)) => {
                tracing::warn!(interface = %name, %error, "reopening");
                Way::Nowhere
            }
            None => Way::Nowhere,
        };
        self.outlet.set_way(way);
    }
}

/// Opens both halves of an interface; what it is.
pub(super) fn open(name: &str, memory: usize) -> io::Result<(Ring, SendSocket, Link)> {
    let link = Link::of(name)?;
    let shape = Shape {
        memory,
        mtu: link.mtu,
    };
    Ok((Ring::open(name, shape)?, SendSocket::open(name)?, link))
}

/// A thread's own part.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) inlets: Vec<Inlet>,
    pub(super) waker: Waker,
    /// The first worker also does what the server has due.
    pub(super) is_first: bool,
    /// Which of the switch's lanes it works with; `None`: it is the only worker, and takes the
    /// switch alone.
    lane: Option<usize>,
    pub(super) replay: Option<Replay>,
    monitor: OwnedFd,
    large: Vec<u8>,
    scratch: Vec<u8>,
    ready: Vec<Port>,
    touched: Vec<usize>,
    /// The switch has something for its controllers.
    is_called: bool,
    /// When (ns) the switch has packets that rates hold back until then.
    due: Option<u64>,
    next_tick: u64,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, lane: Option<usize>) -> io::Result<Self> {
        Ok(Worker {
            shared,
            inlets: Vec::new(),
            waker: Waker::new()?,
            is_first: lane.is_none_or(|lane| lane == 0),
            lane,
            replay: None,
            monitor: link_monitor()?,
            large: Vec::new(),
            scratch: Vec::new(),
            ready: Vec::new(),
            touched: Vec::new(),
            is_called: false,
            due: None,
            next_tick: 0,
        })
    }

    /// Moves packets until the forwarder stops, or this thread is told to.
    pub(super) fn run(&mut self, stop: &dyn Fn() -> bool) -> io::Result<()> {
        let mut fds = Vec::new();
        let mut ready = Vec::new();
        while !self.shared.stop.load(Ordering::Acquire) && !stop() {
            let wait = self.wait();
            fds.clear();
            fds.extend([self.waker.fd(), self.monitor.as_raw_fd()]);
            // A descriptor below zero is not polled.
            let ring_fd = |inlet: &Inlet| inlet.ring.as_ref().map_or(-1, Ring::poll_fd);
            fds.extend(self.inlets.iter().map(ring_fd));
            poll(&fds, Duration::from_nanos(wait), &mut ready)?;
            for event in &ready {
                match event.at {
                    0 => {
                        drain(self.waker.fd());
                        self.take_over();
                        self.is_called = true;
                        self.drain_switch();
                    }
                    1 => {
                        drain(self.monitor.as_raw_fd());
                        self.follow_links();
                    }
                    // Such as "network is down", once; the monitor tells what became of it.
                    at if event.is_error => clear_error(fds[at]),
                    _ => {}
                }
            }
            for inlet in 0..self.inlets.len() {
                self.receive(inlet);
            }
            self.replay_due();
            if self.due.is_some_and(|at| at <= self.shared.clock.now()) {
                self.drain_switch();
            }
        }
        self.flush_captures();
        Ok(())
    }

    /// Does what is due besides packets; how long, ns, to wait for frames then.
    fn wait(&mut self) -> u64 {
        let has_frame = |inlet: &Inlet| inlet.ring.as_ref().is_some_and(Ring::has_frame);
        let busy = self.inlets.iter().any(has_frame);
        let now = self.shared.clock.now();
        if busy && now < self.next_tick {
            return 0;
        }
        if now >= self.next_tick {
            self.next_tick = now + TICK_EVERY;
            self.count_lost();
        }
        self.flush_captures();
        let tick = match self.is_first {
            true => self.shared.server.tick(),
            false => None,
        };
        if busy {
            return 0;
        }
        let tick = tick.map_or(WAIT_MAX, |at| at.saturating_sub(now));
        self.until_due(now).min(tick)
    }

    fn until_due(&self, now: u64) -> u64 {
        let due = [self.due, self.replay.as_ref().and_then(Replay::due)];
        let first = due.into_iter().flatten().min();
        first.map_or(WAIT_MAX, |at| at.saturating_sub(now).min(WAIT_MAX))
    }

    fn count_lost(&self) {
        for inlet in &self.inlets {
            if let Some(ring) = &inlet.ring {
                inlet.outlet.count_receive_drops(ring.lost());
            }
        }
    }

    fn flush_captures(&mut self) {
        for inlet in &mut self.inlets {
            if let Some(Err(error)) = inlet.capture.as_mut().map(PcapWriter::flush) {
                tracing::error!(interface = inlet.outlet.spec.interface, %error, "capture ends");
                inlet.capture = None;
            }
        }
        if self.is_first {
            let epoch = self.shared.clock.epoch();
            for outlet in self.shared.outlets.iter() {
                outlet.flush_capture(epoch);
            }
        }
    }

    fn receive(&mut self, at: usize) {
        for _ in 0..BATCHES_PER_TURN {
            match &self.inlets[at].ring {
                Some(ring) if ring.has_frame() => {}
                _ => return,
            }
            let taken = self.take_in(at);
            self.send();
            if taken < BATCH {
                return;
            }
        }
    }

    /// Gives a batch of what an interface received to the switch, and takes out what may leave;
    /// how many frames it was.
    fn take_in(&mut self, at: usize) -> usize {
        let shared = self.shared.clone();
        let (now, epoch) = (shared.clock.now(), shared.clock.epoch());
        let inlet = &mut self.inlets[at];
        let port = inlet.outlet.spec.port;
        let is_ip = inlet.is_ip;
        let Some(ring) = &mut inlet.ring else {
            return 0;
        };
        let cut_before = ring.cut();
        let (mut frames, mut bytes) = (0, 0);
        let (scratch, capture) = (&mut self.scratch, &mut inlet.capture);
        let mut out = Out {
            shared: &shared,
            ready: &mut self.ready,
            touched: &mut self.touched,
            is_called: &mut self.is_called,
        };
        let large = &mut self.large;
        let (taken, due, lost) = shared.server.switch().turn(self.lane, |mut work| {
            let mut lost = 0;
            let taken = ring.receive(BATCH, large, |frame, pending| {
                let mut pending = *pending;
                pending.is_ip = is_ip;
                finish(frame, &pending, scratch, |frame| {
                    if let Some(capture) = capture {
                        // A full disk shows when the capture is flushed.
                        let _ = capture.write(frame, epoch);
                    }
                    if shared.dump > 0 {
                        dump("received", port, frame, shared.dump);
                    }
                    frames += 1;
                    bytes += frame.len() as u64;
                    let Some(work) = &mut work else {
                        lost += 1;
                        return;
                    };
                    work.ingress(port, frame, now);
                    if frames % DRAIN_EVERY == 0 {
                        out.fill(work, now);
                    }
                });
            });
            let due = work.and_then(|work| out.take_all(work, now));
            (taken, due, lost)
        });
        self.due = due;
        if lost > 0 {
            shared.lock().lose(lost);
        }
        inlet.outlet.count_received(frames, bytes);
        inlet.outlet.count_receive_drops(ring.cut() - cut_before);
        taken
    }

    /// Takes everything that is ready out of the switch and sends it.
    fn drain_switch(&mut self) {
        let shared = self.shared.clone();
        let now = shared.clock.now();
        let mut out = Out {
            shared: &shared,
            ready: &mut self.ready,
            touched: &mut self.touched,
            is_called: &mut self.is_called,
        };
        let switch = shared.server.switch();
        self.due = switch.turn(self.lane, |work| out.take_all(work?, now));
        self.send();
    }

    /// What the control plane has put into the switch, or changed, is this worker's to look after.
    fn take_over(&self) {
        if let Some(lane) = self.lane {
            self.shared.lock().hand_over(lane);
        }
    }

    /// Sends what has been put in line, and hands controllers what is theirs.
    fn send(&mut self) {
        let epoch = self.shared.clock.epoch();
        for at in self.touched.drain(..) {
            self.shared.outlets[at].send(epoch);
        }
        if std::mem::take(&mut self.is_called) {
            self.shared.server.poll_cpu();
            // Egress of the CPU port may have sent packets round.
            self.take_over();
        }
    }

    /// Gives the switch what the files hold, when its time has come.
    fn replay_due(&mut self) {
        let Some(replay) = &mut self.replay else {
            return;
        };
        let shared = self.shared.clone();
        let now = shared.clock.now();
        if replay.due().is_none_or(|at| at > now) {
            return;
        }
        let mut failed = None;
        for _ in 0..DRAIN_EVERY {
            match replay.next_frame() {
                Ok(Some((port, frame))) => {
                    if shared.dump > 0 {
                        dump("received", port, frame, shared.dump);
                    }
                    shared.lock().ingress(port, frame, now);
                    if let Some(at) = shared.by_port[usize::from(port)] {
                        shared.outlets[at].count_received(1, frame.len() as u64);
                    }
                }
                Ok(None) => break,
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            tracing::error!(%error, "--use-files: no more is read");
            self.replay = None;
        }
        self.drain_switch();
    }

    /// Brings the ports' states up to date with the interfaces'.
    pub(super) fn follow_links(&mut self) {
        let epoch = self.shared.clock.epoch();
        for inlet in &mut self.inlets {
            inlet.reopen();
            let outlet = &inlet.outlet;
            // Who wanted to send while the way changed has left its packets in line.
            outlet.send(epoch);
            let name = &outlet.spec.interface;
            let is_up = Link::of(name).is_ok_and(|link| link.is_up);
            let up = inlet.ring.is_some() && is_up;
            if up != outlet.is_up() {
                let port = outlet.spec.port;
                tracing::info!(port, interface = %name, up, "port state");
                outlet.set_up(up);
                self.shared.server.set_port_up(port, up);
                if !up {
                    self.shared.lock().flush(port);
                }
            }
        }
    }
}

/// Logs the first bytes of a packet.
pub(super) fn dump(what: &str, port: Port, frame: &[u8], bytes: usize) {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in frame.iter().take(bytes) {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    tracing::info!(port, length = frame.len(), "{what} {hex}");
}

/// Where packets leave the switch, while it is locked.
struct Out<'a> {
    shared: &'a Shared,
    ready: &'a mut Vec<Port>,
    /// Outlets that have something in line.
    touched: &'a mut Vec<usize>,
    /// Whether there is something for controllers.
    is_called: &'a mut bool,
}

impl Out<'_> {
    /// Puts everything that may leave at `now` ns in line to be sent; when (ns) there is more.
    fn take_all(&mut self, work: &mut Work<'_>, now: u64) -> Option<u64> {
        work.make_due_ready(now);
        let is_endless = (0..ROUNDS).all(|_| self.fill(work, now));
        *self.is_called |= work.has_digests();
        match is_endless {
            true => Some(now),
            false => work.next_due(),
        }
    }

    /// Puts what is ready in line to be sent; whether there was anything. Packets for the CPU
    /// port stay, for the server.
    fn fill(&mut self, work: &mut Work<'_>, now: u64) -> bool {
        work.take_ready(self.ready);
        let mut any = false;
        for &port in self.ready.iter() {
            if Some(port) == self.shared.cpu_port {
                work.resign(port);
                *self.is_called = true;
                continue;
            }
            any = true;
            let place = self
                .shared
                .by_port
                .get(usize::from(port))
                .copied()
                .flatten();
            match place {
                Some(at) if self.shared.outlets[at].is_up() => {
                    if self.shared.outlets[at].take(work, port, now) && !self.touched.contains(&at)
                    {
                        self.touched.push(at);
                    }
                }
                _ => work.flush(port),
            }
        }
        any
    }
}

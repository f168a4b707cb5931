//! Moves packets between Linux interfaces and the switch.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::offload::finish;
use super::packet_socket::{
    BATCH, PacketSocket, ReceiveBuffers, Received, drain, interface_index, link_monitor,
    link_state, poll,
};
use super::pcap::Capture;
use super::wake::Waker;
use crate::ids::Port;
use crate::server::{Clock, Server};
use crate::switch::{Packet, Switch};

/// Receive batches of one interface before the others get their turn.
const BATCHES_PER_TURN: usize = 4;
/// Packets taken in before what is ready is taken out.
const DRAIN_EVERY: u64 = 16;
/// Longest wait, ms, when nothing is due: a lost wake-up costs no more than this.
const WAIT_MAX_MS: u64 = 500;

/// A switch port and the interface that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The port's number in the switch.
    pub port: Port,
    /// The interface's name.
    pub interface: String,
}

impl std::str::FromStr for PortSpec {
    type Err = String;

    /// Reads `PORT@INTERFACE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (port, interface) = text
            .split_once('@')
            .ok_or_else(|| format!("{text:?} is not PORT@INTERFACE, such as 1@eth0"))?;
        let port = port
            .parse()
            .ok()
            .filter(|port| *port < 511)
            .ok_or_else(|| format!("{port:?} is not a port number from 0 to 510"))?;
        if interface.is_empty() {
            return Err(format!("{text:?} names no interface"));
        }
        Ok(PortSpec {
            port,
            interface: interface.to_owned(),
        })
    }
}

/// Why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such interface in this network namespace.
    #[error(
        "port {port}: there is no interface {interface} in this network namespace (see `ip link`)"
    )]
    Missing {
        /// The port.
        port: Port,
        /// The interface.
        interface: String,
    },
    /// The process may not open packet sockets.
    #[error("port {port}: opening {interface} needs root, or CAP_NET_RAW and CAP_NET_ADMIN")]
    NotAllowed {
        /// The port.
        port: Port,
        /// The interface.
        interface: String,
    },
    /// Two ports have one number, or one interface.
    #[error("{0} is given twice")]
    Twice(String),
    /// Anything else the system says.
    #[error("port {port}: {interface}: {source}")]
    System {
        /// The port.
        port: Port,
        /// The interface.
        interface: String,
        /// What it said.
        source: io::Error,
    },
    /// A resource that no interface has to do with.
    #[error("cannot watch interfaces: {0}")]
    Monitor(#[from] io::Error),
}

/// What passed an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceStats {
    /// Frames received, as the wire would have carried them.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that the interface did not take: down, busy, or longer than its MTU.
    pub send_drops: u64,
}

struct Interface {
    spec: PortSpec,
    socket: Option<PacketSocket>,
    up: bool,
    /// What is to be sent now.
    out: Vec<Packet>,
    capture: Option<Capture>,
    stats: InterfaceStats,
}

/// Drives the interfaces of one switch; see [`run`](Self::run).
pub struct Forwarder {
    server: Server,
    clock: Arc<dyn Clock>,
    interfaces: Vec<Interface>,
    /// Index into `interfaces` by port number.
    by_port: Vec<Option<usize>>,
    cpu_port: Option<Port>,
    monitor: OwnedFd,
    waker: Waker,
    buffers: ReceiveBuffers,
    received: Vec<Received>,
    scratch: Vec<u8>,
    ready: Vec<Port>,
    done: Vec<Packet>,
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
    ) -> Result<Self, OpenError> {
        let cpu_port = lock(server.switch()).config().cpu_port;
        let mut by_port = vec![None; 512];
        let mut interfaces: Vec<Interface> = Vec::with_capacity(specs.len());
        for spec in specs {
            if by_port[usize::from(spec.port)].is_some() || cpu_port == Some(spec.port) {
                return Err(OpenError::Twice(format!("port {}", spec.port)));
            }
            if interfaces
                .iter()
                .any(|i| i.spec.interface == spec.interface)
            {
                return Err(OpenError::Twice(format!("interface {}", spec.interface)));
            }
            let socket = PacketSocket::open(&spec.interface).map_err(|e| open_error(spec, e))?;
            by_port[usize::from(spec.port)] = Some(interfaces.len());
            interfaces.push(Interface {
                spec: spec.clone(),
                socket: Some(socket),
                up: true,
                out: Vec::new(),
                capture: None,
                stats: InterfaceStats::default(),
            });
        }
        let mut forwarder = Forwarder {
            server,
            clock,
            interfaces,
            by_port,
            cpu_port,
            monitor: link_monitor()?,
            waker: Waker::new()?,
            buffers: ReceiveBuffers::default(),
            received: Vec::new(),
            scratch: Vec::new(),
            ready: Vec::new(),
            done: Vec::new(),
        };
        forwarder.follow_links();
        Ok(forwarder)
    }

    /// Writes all frames to pcap files in `folder`, two per interface.
    ///
    /// # Errors
    /// When a file cannot be created.
    pub fn capture(&mut self, folder: &Path) -> io::Result<()> {
        for interface in &mut self.interfaces {
            interface.capture = Some(Capture::create(folder, &interface.spec.interface)?);
        }
        Ok(())
    }

    /// Wakes the forwarder when something was put into the switch, or it should stop.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// What passed each port's interface.
    pub fn stats(&self) -> impl Iterator<Item = (Port, InterfaceStats)> {
        self.interfaces.iter().map(|i| (i.spec.port, i.stats))
    }

    /// Moves packets until `stop` is set (and the forwarder woken).
    ///
    /// # Errors
    /// When the system refuses to wait for frames.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut woken = Vec::new();
        let mut fds = Vec::new();
        while !stop.load(Ordering::Acquire) {
            let wait = self.flush_and_tick();
            fds.clear();
            fds.extend([self.waker.fd(), self.monitor.as_raw_fd()]);
            // A descriptor below zero is not polled.
            let socket_fd = |i: &Interface| i.socket.as_ref().map_or(-1, PacketSocket::poll_fd);
            fds.extend(self.interfaces.iter().map(socket_fd));
            poll(&fds, wait, &mut woken)?;
            for fd in &woken {
                match *fd {
                    0 => {
                        drain(self.waker.fd());
                        self.drain_switch();
                    }
                    1 => {
                        drain(self.monitor.as_raw_fd());
                        self.follow_links();
                    }
                    n => self.receive(n - 2),
                }
            }
        }
        Ok(())
    }

    /// Sends what the server has due; how many ms to wait for frames.
    fn flush_and_tick(&mut self) -> i32 {
        for interface in &mut self.interfaces {
            if let Some(capture) = &mut interface.capture
                && let Err(error) = capture.flush()
            {
                tracing::error!(interface = interface.spec.interface, %error, "capture ends");
                interface.capture = None;
            }
        }
        let wait = match self.server.tick() {
            Some(at) => at.saturating_sub(self.clock.now()).div_ceil(1_000_000),
            None => WAIT_MAX_MS,
        };
        wait.min(WAIT_MAX_MS) as i32
    }

    fn receive(&mut self, index: usize) {
        for _ in 0..BATCHES_PER_TURN {
            let interface = &mut self.interfaces[index];
            let Some(socket) = &interface.socket else {
                return;
            };
            if let Err(error) = socket.receive(&mut self.buffers, &mut self.received) {
                // The link monitor tells what became of the interface.
                tracing::debug!(interface = interface.spec.interface, %error, "receive");
                return;
            }
            if self.received.is_empty() {
                return;
            }
            self.take_in(index);
            self.drain_switch();
            if self.received.len() < BATCH {
                return;
            }
        }
    }

    /// Gives what was received on an interface to the switch. One frame may be many segments,
    /// so what becomes ready is taken out every few packets: queues are for ports that are
    /// busy, not for this loop's batches.
    fn take_in(&mut self, index: usize) {
        let (now, epoch) = (self.clock.now(), self.clock.epoch());
        let port = self.interfaces[index].spec.port;
        let mut capture = self.interfaces[index].capture.take();
        let mut count = 0;
        let mut switch = lock(self.server.switch());
        self.done
            .drain(..)
            .for_each(|packet| switch.recycle(packet));
        let mut outlets = Outlets {
            interfaces: &mut self.interfaces,
            by_port: &self.by_port,
            cpu_port: self.cpu_port,
            ready: &mut self.ready,
        };
        for received in &self.received {
            let frame = self.buffers.frame(received);
            finish(frame, &received.pending, &mut self.scratch, |bytes| {
                if let Some(capture) = &mut capture {
                    // A full disk shows when the capture is flushed.
                    let _ = capture.received(bytes, epoch);
                }
                switch.ingress(port, bytes, now);
                count += 1;
                if count % DRAIN_EVERY == 0 {
                    outlets.fill(&mut switch, now);
                }
            });
        }
        drop(switch);
        let interface = &mut self.interfaces[index];
        interface.capture = capture;
        interface.stats.received += count;
    }

    /// Takes everything that is ready out of the switch and sends it.
    fn drain_switch(&mut self) {
        {
            let mut switch = lock(self.server.switch());
            let now = self.clock.now();
            let mut outlets = Outlets {
                interfaces: &mut self.interfaces,
                by_port: &self.by_port,
                cpu_port: self.cpu_port,
                ready: &mut self.ready,
            };
            while outlets.fill(&mut switch, now) {}
        }
        let epoch = self.clock.epoch();
        for interface in self.interfaces.iter_mut().filter(|i| !i.out.is_empty()) {
            interface.send(&mut self.done, epoch);
        }
        self.server.poll_cpu();
    }

    /// Brings the ports' states up to date with the interfaces'.
    fn follow_links(&mut self) {
        for interface in &mut self.interfaces {
            let name = &interface.spec.interface;
            let index = interface_index(name).ok();
            if interface.socket.as_ref().map(PacketSocket::index) != index {
                // Gone, or another one of the same name.
                interface.socket = match index {
                    Some(_) => PacketSocket::open(name)
                        .inspect_err(|error| tracing::warn!(interface = %name, %error, "reopening"))
                        .ok(),
                    None => None,
                };
            }
            let up = interface.socket.is_some() && link_state(name) == Some(true);
            if up != interface.up {
                tracing::info!(port = interface.spec.port, interface = %name, up, "port state");
                interface.up = up;
                self.server.set_port_up(interface.spec.port, up);
                if !up {
                    lock(self.server.switch()).flush(interface.spec.port);
                }
            }
        }
    }
}

fn lock(switch: &crate::SharedSwitch) -> std::sync::MutexGuard<'_, Switch> {
    switch
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Where packets leave the switch.
struct Outlets<'a> {
    interfaces: &'a mut [Interface],
    by_port: &'a [Option<usize>],
    cpu_port: Option<Port>,
    ready: &'a mut Vec<Port>,
}

impl Outlets<'_> {
    /// Moves what is ready to the interfaces' lists; whether there was anything. Packets for
    /// the CPU port stay, for the server.
    fn fill(&mut self, switch: &mut Switch, now: u64) -> bool {
        switch.take_ready(self.ready);
        for port in self
            .ready
            .iter()
            .filter(|port| Some(**port) != self.cpu_port)
        {
            let place = self.by_port.get(usize::from(*port)).copied().flatten();
            match place.map(|at| &mut self.interfaces[at]) {
                Some(interface) if interface.up => {
                    while let Some(packet) = switch.dequeue(*port, now) {
                        interface.out.push(packet);
                    }
                }
                _ => {
                    switch.flush(*port);
                }
            }
        }
        !self.ready.is_empty()
    }
}

fn open_error(spec: &PortSpec, source: io::Error) -> OpenError {
    let (port, interface) = (spec.port, spec.interface.clone());
    match source.kind() {
        io::ErrorKind::NotFound => OpenError::Missing { port, interface },
        io::ErrorKind::PermissionDenied => OpenError::NotAllowed { port, interface },
        _ => OpenError::System {
            port,
            interface,
            source,
        },
    }
}

impl Interface {
    /// Sends what is to be sent; the packets' buffers go to `done`.
    fn send(&mut self, done: &mut Vec<Packet>, epoch: u64) {
        if let Some(capture) = &mut self.capture {
            for packet in &self.out {
                // A full disk shows when the capture is flushed.
                let _ = capture.sent(&packet.bytes, epoch);
            }
        }
        let mut at = 0;
        while let (Some(socket), true) = (&self.socket, at < self.out.len()) {
            let frames = self.out[at..].iter().map(|packet| &packet.bytes[..]);
            match socket.send(frames) {
                Ok(0) => break,
                Ok(count) => {
                    self.stats.sent += count as u64;
                    at += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    // This frame only: too long for the interface, or too short for Ethernet.
                    tracing::debug!(
                        interface = self.spec.interface,
                        length = self.out[at].bytes.len(),
                        %error,
                        "frame not sent"
                    );
                    self.stats.send_drops += 1;
                    at += 1;
                }
            }
        }
        self.stats.send_drops += (self.out.len() - at) as u64;
        done.append(&mut self.out);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn port_specs() {
        let spec: PortSpec = "3@s1-eth3".parse().unwrap();
        assert_eq!(
            spec,
            PortSpec {
                port: 3,
                interface: "s1-eth3".into()
            }
        );
        for bad in ["eth0", "@eth0", "x@eth0", "511@eth0", "-1@eth0", "1@"] {
            assert!(bad.parse::<PortSpec>().is_err(), "{bad}");
        }
    }
}

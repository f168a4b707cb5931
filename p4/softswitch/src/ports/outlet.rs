//! A port as all threads share it: where packets leave, what passed, whether it is up.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::packet_socket::SendSocket;
use super::pcap::PcapWriter;
use super::spec::PortSpec;
use super::worker::dump;
use crate::ids::Port;
use crate::switch::Work;

/// What passed an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceStats {
    /// Frames received, as the wire would have carried them.
    pub received: u64,
    /// Bytes of those.
    pub received_bytes: u64,
    /// Frames that arrived but were lost: the switch was too busy, or they could not be had
    /// whole.
    pub receive_drops: u64,
    /// Frames sent.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Frames that the interface did not take: down, busy, or longer than its MTU.
    pub send_drops: u64,
}

#[derive(Debug, Default)]
struct Counts {
    received: AtomicU64,
    received_bytes: AtomicU64,
    receive_drops: AtomicU64,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    send_drops: AtomicU64,
}

/// Bytes of a buffer that stay allocated for the next frames.
const FRAMES_KEPT: usize = 1 << 20;

/// Where a port's packets go.
pub(super) enum Way {
    /// To an interface.
    Interface(SendSocket),
    /// Nowhere but into the capture: the port is a file.
    File,
    /// The interface is gone.
    Nowhere,
}

/// Frames one behind the other.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Frames {
    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        if self.bytes.capacity() > FRAMES_KEPT {
            self.bytes.shrink_to(FRAMES_KEPT);
        }
    }

    fn frame(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..self.ends[at]]
    }

    fn start(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.ends[at - 1] }
    }
}

struct Sender {
    way: Way,
    capture: Option<PcapWriter>,
    batch: Frames,
}

/// A port, shared by the threads that receive.
///
/// Packets are put into `pending` while the switch is locked, so in the order in which they left
/// it; whoever holds `sender` takes them from there. Thus several threads can take packets out of
/// the switch for one port and they stay in order.
pub(super) struct Outlet {
    pub(super) spec: PortSpec,
    up: AtomicBool,
    pending: Mutex<Frames>,
    sender: Mutex<Sender>,
    counts: Counts,
    /// Bytes of each packet to log.
    dump: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outlet {
    pub(super) fn new(spec: PortSpec, way: Way, dump: usize) -> Self {
        Outlet {
            spec,
            up: AtomicBool::new(true),
            pending: Mutex::default(),
            sender: Mutex::new(Sender {
                way,
                capture: None,
                batch: Frames::default(),
            }),
            counts: Counts::default(),
            dump,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    pub(super) fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
    }

    /// From now on packets go this way.
    pub(super) fn set_way(&self, way: Way) {
        lock(&self.sender).way = way;
    }

    /// From now on what is sent is written there.
    pub(super) fn set_capture(&self, capture: PcapWriter) {
        lock(&self.sender).capture = Some(capture);
    }

    pub(super) fn count_received(&self, frames: u64, bytes: u64) {
        self.counts.received.fetch_add(frames, Ordering::Relaxed);
        self.counts
            .received_bytes
            .fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_receive_drops(&self, frames: u64) {
        self.counts
            .receive_drops
            .fetch_add(frames, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> InterfaceStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        InterfaceStats {
            received: of(&self.counts.received),
            received_bytes: of(&self.counts.received_bytes),
            receive_drops: of(&self.counts.receive_drops),
            sent: of(&self.counts.sent),
            sent_bytes: of(&self.counts.sent_bytes),
            send_drops: of(&self.counts.send_drops),
        }
    }

    /// Takes what the port may send now out of the switch and puts it in line; whether there was
    /// anything.
    pub(super) fn take(&self, work: &mut Work<'_>, port: Port, now: u64) -> bool {
        let mut frames = lock(&self.pending);
        let frames = &mut *frames;
        let before = frames.ends.len();
        while work.dequeue_into(port, now, &mut frames.bytes).is_some() {
            frames.ends.push(frames.bytes.len());
        }
        work.leave(port);
        frames.ends.len() > before
    }

    /// Sends what is in line, unless another thread is at it, which then sends it all.
    pub(super) fn send(&self, epoch: u64) {
        loop {
            let mut sender = match self.sender.try_lock() {
                Ok(sender) => sender,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let sender = &mut *sender;
            loop {
                std::mem::swap(&mut sender.batch, &mut *lock(&self.pending));
                if sender.batch.is_empty() {
                    break;
                }
                self.transmit(sender, epoch);
                sender.batch.clear();
            }
            // Who came while this thread held the sender has left its packets in line.
            if lock(&self.pending).is_empty() {
                return;
            }
        }
    }

    fn transmit(&self, sender: &mut Sender, epoch: u64) {
        let frames = &sender.batch;
        let total = frames.ends.len();
        if let Some(capture) = &mut sender.capture {
            for at in 0..total {
                // A full disk shows when the capture is flushed.
                let _ = capture.write(frames.frame(at), epoch);
            }
        }
        if self.dump > 0 {
            for at in 0..total {
                dump("sent", self.spec.port, frames.frame(at), self.dump);
            }
        }
        let (mut at, mut drops, mut sent_bytes) = (0, 0, 0);
        while at < total {
            let result = match &sender.way {
                Way::Interface(socket) => socket.send((at..total).map(|at| frames.frame(at))),
                Way::File => Ok(total - at),
                Way::Nowhere => break,
            };
            match result {
                Ok(0) => break,
                Ok(count) => {
                    sent_bytes += frames.ends[at + count - 1] - frames.start(at);
                    at += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    // This frame only: too long for the interface, or too short for Ethernet.
                    tracing::debug!(
                        interface = self.spec.interface,
                        length = frames.frame(at).len(),
                        %error,
                        "frame not sent"
                    );
                    drops += 1;
                    at += 1;
                }
            }
        }
        let sent = at as u64 - drops;
        drops += (total - at) as u64;
        self.counts.sent.fetch_add(sent, Ordering::Relaxed);
        self.counts
            .sent_bytes
            .fetch_add(sent_bytes as u64, Ordering::Relaxed);
        self.counts.send_drops.fetch_add(drops, Ordering::Relaxed);
    }

    /// Writes out what the capture has buffered; on an error it ends.
    pub(super) fn flush_capture(&self, epoch: u64) {
        {
            let Ok(mut sender) = self.sender.try_lock() else {
                return;
            };
            let Some(capture) = &mut sender.capture else {
                return;
            };
            if let Err(error) = capture.flush() {
                tracing::error!(interface = self.spec.interface, %error, "capture ends");
                sender.capture = None;
            }
        }
        // Who came meanwhile has left its packets in line.
        self.send(epoch);
    }
}

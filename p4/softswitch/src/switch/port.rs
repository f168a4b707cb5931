//! The queues of one port.

use std::collections::VecDeque;

use super::rate::{Rate, Shaper};
use crate::exec::packet::Boxed;
use crate::ids::Port;

pub(super) struct Queue {
    pub(super) packets: VecDeque<Boxed>,
    pub(super) depth: usize,
    pub(super) shaper: Shaper,
    pub(super) counts: QueueCounts,
}

/// What passed a queue since the switch was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Packets put into the queue.
    pub packets_in: u64,
    /// Packets that left the switch from the queue.
    pub packets_out: u64,
    /// Bytes of those.
    pub bytes_out: u64,
    /// Packets dropped because it was full.
    pub drops: u64,
}

/// How a queue is and what passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// Its number; the highest is served first.
    pub queue: u8,
    /// Packets in it now.
    pub packets: usize,
    /// Packets that it holds at most.
    pub depth: usize,
    /// How fast it may send; `None`: as fast as the port.
    pub rate: Option<Rate>,
    /// What passed it.
    pub counts: QueueCounts,
}

/// The queues of one port.
pub(super) struct PortQueues {
    pub(super) queues: Box<[Queue]>,
    /// The rate of all its queues together.
    pub(super) shaper: Shaper,
    /// The lane that has the port on its agenda, and so is going to take packets out.
    pub(super) keeper: Option<u8>,
    /// When the port is due, if it is in an agenda's list of those.
    pub(super) due: Option<u64>,
}

/// What all queues have that nobody set otherwise.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    pub(super) queues: u8,
    pub(super) depth: usize,
    pub(super) rate: Option<Rate>,
}

impl Defaults {
    pub(super) fn port(self) -> Box<PortQueues> {
        let mut shaper = Shaper::default();
        shaper.set(self.rate);
        let queue = || Queue {
            packets: VecDeque::new(),
            depth: self.depth,
            shaper,
            counts: QueueCounts::default(),
        };
        Box::new(PortQueues {
            queues: (0..self.queues).map(|_| queue()).collect(),
            shaper: Shaper::default(),
            keeper: None,
            due: None,
        })
    }
}

/// A packet on its way out, and when (ns) it could have left.
pub(crate) struct Popped {
    pub(crate) packet: Boxed,
    pub(crate) start: u64,
    /// Packets left in its queue.
    pub(crate) left: usize,
}

/// What a packet that has left owes the rates.
#[derive(Clone, Copy)]
pub(super) struct Charge {
    pub(super) port: Port,
    pub(super) queue: u8,
    pub(super) start: u64,
    pub(super) bytes: usize,
}

impl Queue {
    /// The packet whose words are in a frame; it is near the end.
    pub(super) fn resident(&mut self) -> Option<&mut Boxed> {
        let mut packets = self.packets.iter_mut().rev();
        packets.find(|packet| packet.is_resident)
    }
}

impl PortQueues {
    pub(super) fn resident(&mut self) -> Option<&mut Boxed> {
        self.queues.iter_mut().find_map(Queue::resident)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(|q| q.packets.is_empty())
    }

    /// When (ns) the next packet may leave; `None`: there is none.
    pub(super) fn departure(&self) -> Option<u64> {
        let waiting = self.queues.iter().filter(|q| !q.packets.is_empty());
        let earliest = waiting.map(|q| q.shaper.free_at()).min()?;
        Some(earliest.max(self.shaper.free_at()))
    }

    /// Packets in a queue that takes one more. A packet that it does not take is counted.
    pub(super) fn room(&mut self, queue: u8) -> Option<usize> {
        let queue = self.queues.get_mut(usize::from(queue))?;
        let depth = queue.packets.len();
        if depth >= queue.depth {
            queue.counts.drops += 1;
            return None;
        }
        Some(depth)
    }

    /// Makes the lane the port's keeper, if it has none; whether it had none.
    pub(super) fn keep(&mut self, lane: u8) -> bool {
        let is_free = self.keeper.is_none();
        if is_free {
            self.keeper = Some(lane);
        }
        is_free
    }

    pub(super) fn push(&mut self, packet: Boxed) {
        let queue = &mut self.queues[usize::from(packet.queue)];
        queue.counts.packets_in += 1;
        queue.packets.push_back(packet);
    }

    /// The next packet that may leave at `now` ns.
    pub(super) fn pop(&mut self, now: u64) -> Option<Popped> {
        let port_free = self.shaper.free_at();
        let queues = self.queues.iter_mut().rev();
        let queues = queues.filter(|q| !q.packets.is_empty());
        let mut free = queues.filter(|q| port_free <= now && q.shaper.free_at() <= now);
        free.find_map(|q| {
            let packet = q.packets.pop_front()?;
            let start = port_free.max(q.shaper.free_at()).max(packet.queued_ns);
            Some(Popped {
                packet,
                start,
                left: q.packets.len(),
            })
        })
    }

    pub(super) fn charge(&mut self, charge: Charge) {
        self.shaper.charge(charge.start, charge.bytes);
        let queue = &mut self.queues[usize::from(charge.queue)];
        queue.shaper.charge(charge.start, charge.bytes);
        queue.counts.packets_out += 1;
        queue.counts.bytes_out += charge.bytes as u64;
    }

    /// When the port has to be put on an agenda, if it is not there that early already.
    pub(super) fn schedule(&mut self) -> Option<u64> {
        let at = self.departure()?;
        if self.due.is_some_and(|due| due <= at) {
            return None;
        }
        self.due = Some(at);
        Some(at)
    }

    /// The next packet, whatever the rates say.
    pub(super) fn take(&mut self) -> Option<Boxed> {
        let mut queues = self.queues.iter_mut().rev();
        queues.find_map(|q| q.packets.pop_front())
    }
}

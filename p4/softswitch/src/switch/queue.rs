//! Output queues.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::rate::{Rate, Shaper};
use crate::exec::packet::Boxed;
use crate::ids::Port;

/// Ports a switch can have: `bit<9>`.
pub(crate) const PORTS: usize = 512;

struct Queue {
    packets: VecDeque<Boxed>,
    depth: usize,
    shaper: Shaper,
    counts: QueueCounts,
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

struct PortQueues {
    queues: Box<[Queue]>,
    /// The rate of all its queues together.
    shaper: Shaper,
    /// It is in the list of ready ports.
    listed: bool,
    /// When the port is due, if it is in that list.
    due: Option<u64>,
}

/// What all queues have that nobody set otherwise.
#[derive(Clone, Copy)]
struct Defaults {
    queues: u8,
    depth: usize,
    rate: Option<Rate>,
}

impl Defaults {
    fn port(self) -> Box<PortQueues> {
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
            listed: false,
            due: None,
        })
    }
}

impl PortQueues {
    fn is_empty(&self) -> bool {
        self.queues.iter().all(|q| q.packets.is_empty())
    }

    /// When (ns) the next packet may leave; `None`: there is none.
    fn departure(&self) -> Option<u64> {
        let waiting = self.queues.iter().filter(|q| !q.packets.is_empty());
        let earliest = waiting.map(|q| q.shaper.free_at()).min()?;
        Some(earliest.max(self.shaper.free_at()))
    }
}

/// The queues of all ports. A port's queues come into being when first used.
pub(crate) struct Queues {
    ports: Vec<Option<Box<PortQueues>>>,
    defaults: Defaults,
    ready: Vec<Port>,
    /// Ports that have packets for which it is too early, by when they may leave.
    due: BinaryHeap<Reverse<(u64, Port)>>,
}

/// A packet on its way out, and when (ns) it could have left.
pub(crate) struct Popped {
    pub(crate) packet: Boxed,
    pub(crate) start: u64,
}

impl Queues {
    pub(crate) fn new(queues: u8, depth: usize) -> Self {
        Queues {
            ports: (0..PORTS).map(|_| None).collect(),
            defaults: Defaults {
                queues: queues.clamp(1, 8),
                depth,
                rate: None,
            },
            ready: Vec::new(),
            due: BinaryHeap::new(),
        }
    }

    pub(crate) fn count(&self) -> u8 {
        self.defaults.queues
    }

    fn existing(&self, port: Port) -> Option<&PortQueues> {
        self.ports.get(usize::from(port))?.as_deref()
    }

    fn of(&mut self, port: Port) -> Option<&mut PortQueues> {
        let defaults = self.defaults;
        let slot = self.ports.get_mut(usize::from(port))?;
        Some(slot.get_or_insert_with(|| defaults.port()))
    }

    pub(crate) fn len(&self, port: Port, queue: u8) -> usize {
        self.existing(port)
            .and_then(|p| p.queues.get(usize::from(queue)))
            .map_or(0, |q| q.packets.len())
    }

    pub(crate) fn is_empty(&self, port: Port) -> bool {
        self.existing(port).is_none_or(PortQueues::is_empty)
    }

    /// Whether the queue takes no more; the packet that then is dropped is counted.
    pub(crate) fn is_full(&mut self, port: Port, queue: u8) -> bool {
        let Some(queue) = self
            .of(port)
            .and_then(|p| p.queues.get_mut(usize::from(queue)))
        else {
            return true;
        };
        let full = queue.packets.len() >= queue.depth;
        queue.counts.drops += u64::from(full);
        full
    }

    /// Queues a packet where there is room, as [`Self::is_full`] told.
    pub(crate) fn push(&mut self, port: Port, packet: Boxed) {
        let Some(queues) = self.of(port) else {
            return;
        };
        let queue = &mut queues.queues[usize::from(packet.queue)];
        queue.counts.packets_in += 1;
        queue.packets.push_back(packet);
        if !queues.listed {
            queues.listed = true;
            self.ready.push(port);
        }
    }

    /// The packet that a queue got last, while it has it.
    pub(crate) fn last_mut(&mut self, port: Port, queue: u8) -> Option<&mut Boxed> {
        let queues = self.ports.get_mut(usize::from(port))?.as_deref_mut()?;
        queues
            .queues
            .get_mut(usize::from(queue))?
            .packets
            .back_mut()
    }

    /// The next packet that may leave at `now` ns: from the highest queue that has one and whose
    /// rate allows it. `None` with packets left means that it is too early for all of them; the
    /// port is then due at [`Self::departure`].
    pub(crate) fn pop(&mut self, port: Port, now: u64) -> Option<Popped> {
        let queues = self.ports.get_mut(usize::from(port))?.as_deref_mut()?;
        let port_free = queues.shaper.free_at();
        let next = queues
            .queues
            .iter_mut()
            .rev()
            .filter(|q| !q.packets.is_empty())
            .filter(|q| port_free <= now && q.shaper.free_at() <= now)
            .find_map(|q| Some((q.packets.pop_front()?, q.shaper.free_at())));
        if let Some((packet, queue_free)) = next {
            let start = port_free.max(queue_free).max(packet.queued_ns);
            return Some(Popped { packet, start });
        }
        self.schedule(port);
        None
    }

    /// A packet of that queue has left the port.
    pub(crate) fn charge(&mut self, port: Port, queue: u8, start: u64, bytes: usize) {
        let Some(port) = self
            .ports
            .get_mut(usize::from(port))
            .and_then(Option::as_deref_mut)
        else {
            return;
        };
        port.shaper.charge(start, bytes);
        let queue = &mut port.queues[usize::from(queue)];
        queue.shaper.charge(start, bytes);
        queue.counts.packets_out += 1;
        queue.counts.bytes_out += bytes as u64;
    }

    /// When (ns) the port's next packet may leave; `None`: it has none.
    pub(crate) fn departure(&self, port: Port) -> Option<u64> {
        self.existing(port)?.departure()
    }

    /// Lists the port as due when its next packet may leave.
    fn schedule(&mut self, port: Port) {
        let Some(queues) = self
            .ports
            .get_mut(usize::from(port))
            .and_then(Option::as_deref_mut)
        else {
            return;
        };
        let Some(at) = queues.departure() else {
            return;
        };
        if queues.due.is_none_or(|due| at < due) {
            queues.due = Some(at);
            self.due.push(Reverse((at, port)));
        }
    }

    /// When (ns) the first of the ports becomes due.
    pub(crate) fn next_due(&mut self) -> Option<u64> {
        while let Some(&Reverse((at, port))) = self.due.peek() {
            if self.existing(port).is_some_and(|p| p.due == Some(at)) {
                return Some(at);
            }
            // Another time was set for it since.
            self.due.pop();
        }
        None
    }

    /// Makes the ports ready that are due at `now` ns.
    pub(crate) fn make_due_ready(&mut self, now: u64) {
        while self.next_due().is_some_and(|at| at <= now) {
            let Some(Reverse((_, port))) = self.due.pop() else {
                return;
            };
            let Some(queues) = self.of(port) else {
                continue;
            };
            queues.due = None;
            if !queues.listed && !queues.is_empty() {
                queues.listed = true;
                self.ready.push(port);
            }
        }
    }

    pub(crate) fn set_depth(&mut self, port: Port, queue: Option<u8>, packets: usize) {
        let Some(queues) = self.of(port) else {
            return;
        };
        for (number, one) in queues.queues.iter_mut().enumerate() {
            if queue.is_none_or(|q| usize::from(q) == number) {
                one.depth = packets;
            }
        }
    }

    pub(crate) fn set_default_depth(&mut self, packets: usize) {
        self.defaults.depth = packets;
        let ports = self.ports.iter_mut().flatten();
        for queue in ports.flat_map(|p| p.queues.iter_mut()) {
            queue.depth = packets;
        }
    }

    /// Sets the rate of one queue of a port, or of each.
    pub(crate) fn set_rate(&mut self, port: Port, queue: Option<u8>, rate: Option<Rate>) {
        let Some(queues) = self.of(port) else {
            return;
        };
        for (number, one) in queues.queues.iter_mut().enumerate() {
            if queue.is_none_or(|q| usize::from(q) == number) {
                one.shaper.set(rate);
            }
        }
        self.reschedule(port);
    }

    /// Sets the rate of every queue of every port, also of those that come.
    pub(crate) fn set_default_rate(&mut self, rate: Option<Rate>) {
        self.defaults.rate = rate;
        for port in 0..PORTS as Port {
            if self.existing(port).is_some() {
                self.set_rate(port, None, rate);
            }
        }
    }

    /// Sets the rate of all of a port's queues together.
    pub(crate) fn set_port_rate(&mut self, port: Port, rate: Option<Rate>) {
        if let Some(queues) = self.of(port) {
            queues.shaper.set(rate);
        }
        self.reschedule(port);
    }

    pub(crate) fn port_rate(&self, port: Port) -> Option<Rate> {
        self.existing(port)?.shaper.rate()
    }

    /// After a rate changed: who waits may go sooner or later.
    fn reschedule(&mut self, port: Port) {
        if let Some(queues) = self.of(port) {
            queues.due = None;
        }
        self.schedule(port);
    }

    /// How the port's queues are.
    pub(crate) fn states(&self, port: Port) -> Vec<QueueState> {
        let fresh;
        let queues = match self.existing(port) {
            Some(queues) => queues,
            None if usize::from(port) < PORTS => {
                fresh = self.defaults.port();
                &fresh
            }
            None => return Vec::new(),
        };
        let state = |(number, queue): (usize, &Queue)| QueueState {
            queue: number as u8,
            packets: queue.packets.len(),
            depth: queue.depth,
            rate: queue.shaper.rate(),
            counts: queue.counts,
        };
        queues.queues.iter().enumerate().map(state).collect()
    }

    /// The ports whose queues have been used or set.
    pub(crate) fn used_ports(&self) -> impl Iterator<Item = Port> {
        let used = self.ports.iter().enumerate();
        used.filter(|(_, queues)| queues.is_some())
            .map(|(port, _)| port as Port)
    }

    /// Moves the ports that got a packet since the last call.
    pub(crate) fn take_ready(&mut self, ports: &mut Vec<Port>) {
        ports.clear();
        std::mem::swap(&mut self.ready, ports);
        for &port in ports.iter() {
            if let Some(queues) = self.ports[usize::from(port)].as_deref_mut() {
                queues.listed = false;
            }
        }
    }

    /// Takes the port's next packet whatever the rates say.
    pub(crate) fn take(&mut self, port: Port) -> Option<Boxed> {
        let queues = self.ports.get_mut(usize::from(port))?.as_deref_mut()?;
        queues
            .queues
            .iter_mut()
            .rev()
            .find_map(|q| q.packets.pop_front())
    }

    /// Takes everything out of all queues.
    pub(crate) fn drain(&mut self) -> Vec<Boxed> {
        let ports = self.ports.iter_mut().flatten();
        ports
            .flat_map(|p| p.queues.iter_mut())
            .flat_map(|q| q.packets.drain(..))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::exec::packet::Inner;

    fn packet(queue: u8, len: usize) -> Boxed {
        Box::new(Inner {
            queue,
            len,
            ..Inner::default()
        })
    }

    /// Takes a packet out and lets it leave with its length.
    fn leave(queues: &mut Queues, port: Port, now: u64) -> Option<usize> {
        let Popped { packet, start } = queues.pop(port, now)?;
        queues.charge(port, packet.queue, start, packet.len);
        Some(packet.len)
    }

    #[test]
    fn higher_queues_are_served_first_each_in_order() {
        let mut queues = Queues::new(8, 4);
        for (queue, len) in [(0, 1), (7, 2), (3, 3), (7, 4)] {
            assert!(!queues.is_full(5, queue));
            queues.push(5, packet(queue, len));
        }
        let order: Vec<usize> = std::iter::from_fn(|| leave(&mut queues, 5, 0)).collect();
        assert_eq!(order, [2, 4, 3, 1]);
        assert!(queues.is_empty(5));
        assert_eq!(queues.departure(5), None);
    }

    #[test]
    fn depth_is_per_queue_and_unknown_queues_are_full() {
        let mut queues = Queues::new(2, 1);
        queues.push(0, packet(0, 0));
        assert!(queues.is_full(0, 0));
        assert!(!queues.is_full(0, 1));
        assert!(queues.is_full(0, 2));
        queues.set_depth(0, Some(0), 2);
        assert!(!queues.is_full(0, 0));
        assert!(queues.is_full(600, 0), "no such port");
        assert_eq!(queues.states(0)[0].counts.drops, 1);
    }

    #[test]
    fn a_full_queue_that_is_made_shorter_keeps_what_it_has() {
        let mut queues = Queues::new(1, 3);
        for len in 1..=3 {
            queues.push(0, packet(0, len));
        }
        queues.set_depth(0, None, 1);
        assert!(queues.is_full(0, 0));
        assert_eq!(leave(&mut queues, 0, 0), Some(1));
        assert_eq!(leave(&mut queues, 0, 0), Some(2));
        assert!(
            queues.is_full(0, 0),
            "one packet is in it, and one is its depth"
        );
        assert_eq!(leave(&mut queues, 0, 0), Some(3));
        assert!(!queues.is_full(0, 0));
    }

    #[test]
    fn ready_lists_each_port_once_until_taken() {
        let mut queues = Queues::new(1, 9);
        for port in [4, 2, 4] {
            queues.push(port, packet(0, 0));
        }
        let mut ready = Vec::new();
        queues.take_ready(&mut ready);
        assert_eq!(ready, [4, 2]);
        queues.take_ready(&mut ready);
        assert!(ready.is_empty());
        queues.push(4, packet(0, 0));
        queues.take_ready(&mut ready);
        assert_eq!(ready, [4]);
    }

    #[test]
    fn a_rate_spaces_packets_to_the_nanosecond() {
        let mut queues = Queues::new(1, 9);
        // 1 500 bytes take 1.2 ms.
        queues.set_rate(1, Some(0), Some(Rate::BitsPerSecond(10_000_000)));
        for _ in 0..3 {
            queues.push(1, packet(0, 1_500));
        }
        let mut ready = Vec::new();
        queues.take_ready(&mut ready);
        assert_eq!(leave(&mut queues, 1, 0), Some(1_500));
        assert_eq!(leave(&mut queues, 1, 1_199_999), None);
        assert_eq!(queues.next_due(), Some(1_200_000));
        queues.make_due_ready(1_199_999);
        queues.take_ready(&mut ready);
        assert!(ready.is_empty());
        queues.make_due_ready(1_200_000);
        queues.take_ready(&mut ready);
        assert_eq!(ready, [1]);
        // Late: the next one's time still counts from when this one could have left.
        assert_eq!(leave(&mut queues, 1, 2_000_000), Some(1_500));
        assert_eq!(queues.departure(1), Some(2_400_000));
        assert_eq!(leave(&mut queues, 1, 2_400_000), Some(1_500));
    }

    #[test]
    fn a_queue_at_its_rate_lets_lower_ones_go() {
        let mut queues = Queues::new(2, 9);
        queues.set_rate(3, Some(1), Some(Rate::PacketsPerSecond(1_000)));
        for queue in [1, 1, 0, 0] {
            queues.push(3, packet(queue, usize::from(queue) + 1));
        }
        assert_eq!(leave(&mut queues, 3, 0), Some(2));
        assert_eq!(leave(&mut queues, 3, 0), Some(1));
        assert_eq!(leave(&mut queues, 3, 1_000_000), Some(2));
        assert_eq!(leave(&mut queues, 3, 1_000_000), Some(1));
        assert!(queues.is_empty(3));
    }

    #[test]
    fn a_ports_rate_is_of_all_its_queues_together() {
        let mut queues = Queues::new(2, 9);
        queues.set_port_rate(3, Some(Rate::PacketsPerSecond(1_000)));
        for queue in [0, 0, 1, 1] {
            queues.push(3, packet(queue, usize::from(queue) + 1));
        }
        let mut left = Vec::new();
        let mut now = 0;
        while let Some(at) = queues.departure(3) {
            now = at.max(now);
            left.push((now, leave(&mut queues, 3, now).unwrap()));
        }
        assert_eq!(
            left,
            [(0, 2), (1_000_000, 2), (2_000_000, 1), (3_000_000, 1)]
        );
    }

    #[test]
    fn a_new_rate_counts_at_once() {
        let mut queues = Queues::new(1, 9);
        queues.set_rate(1, None, Some(Rate::PacketsPerSecond(1)));
        for len in 1..=3 {
            queues.push(1, packet(0, len));
        }
        assert_eq!(leave(&mut queues, 1, 0), Some(1));
        assert_eq!(leave(&mut queues, 1, 5), None);
        assert_eq!(queues.next_due(), Some(1_000_000_000));
        queues.set_rate(1, None, None);
        assert_eq!(queues.next_due(), Some(0));
        assert_eq!(leave(&mut queues, 1, 5), Some(2));
        assert_eq!(leave(&mut queues, 1, 5), Some(3));
        queues.make_due_ready(5);
        assert_eq!(queues.next_due(), None);
    }

    #[test]
    fn a_default_rate_is_each_queues_own() {
        let mut queues = Queues::new(2, 9);
        queues.push(1, packet(0, 1));
        queues.set_default_rate(Some(Rate::PacketsPerSecond(10)));
        for port in [1, 2] {
            let states = queues.states(port);
            assert!(
                states
                    .iter()
                    .all(|q| q.rate == Some(Rate::PacketsPerSecond(10)))
            );
        }
        assert_eq!(queues.used_ports().collect::<Vec<_>>(), [1]);
    }
}

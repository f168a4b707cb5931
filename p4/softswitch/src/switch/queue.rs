//! Output queues.

use std::cmp::Reverse;

use parking_lot::Mutex;

use super::port::{Defaults, PortQueues, Queue, QueueState};
use super::queueing::{ALONE, Agenda};
use super::rate::Rate;
use crate::exec::packet::Boxed;
use crate::ids::Port;

/// Ports a switch can have: `bit<9>`.
pub(crate) const PORTS: usize = 512;

type Slot = Mutex<Option<Box<PortQueues>>>;

/// The queues of all ports. A port's queues come into being when first used.
pub(crate) struct Queues {
    pub(super) ports: Vec<Slot>,
    pub(super) defaults: Defaults,
    /// Of who has all queues alone.
    pub(super) agenda: Agenda,
}

impl Queues {
    pub(crate) fn new(queues: u8, depth: usize) -> Self {
        Queues {
            ports: (0..PORTS).map(|_| Slot::default()).collect(),
            defaults: Defaults {
                queues: queues.clamp(1, 8),
                depth,
                rate: None,
            },
            agenda: Agenda::default(),
        }
    }

    pub(crate) fn count(&self) -> u8 {
        self.defaults.queues
    }

    /// A port's queues, if they are in use, without changing them.
    fn look<R>(&self, port: Port, at: impl FnOnce(&PortQueues) -> R) -> Option<R> {
        let slot = self.ports.get(usize::from(port))?.lock();
        slot.as_deref().map(at)
    }

    fn existing(&mut self, port: Port) -> Option<&mut PortQueues> {
        self.ports
            .get_mut(usize::from(port))?
            .get_mut()
            .as_deref_mut()
    }

    fn of(&mut self, port: Port) -> Option<&mut PortQueues> {
        let defaults = self.defaults;
        let slot = self.ports.get_mut(usize::from(port))?.get_mut();
        Some(slot.get_or_insert_with(|| defaults.port()))
    }

    fn all(&mut self) -> impl Iterator<Item = &mut PortQueues> {
        self.ports
            .iter_mut()
            .filter_map(|slot| slot.get_mut().as_deref_mut())
    }

    pub(crate) fn len(&self, port: Port, queue: u8) -> usize {
        let len = |own: &PortQueues| own.queues.get(usize::from(queue)).map(|q| q.packets.len());
        self.look(port, len).flatten().unwrap_or(0)
    }

    pub(crate) fn is_empty(&self, port: Port) -> bool {
        self.look(port, PortQueues::is_empty).unwrap_or(true)
    }

    /// When (ns) the port's next packet may leave; `None`: it has none.
    pub(crate) fn departure(&self, port: Port) -> Option<u64> {
        self.look(port, PortQueues::departure)?
    }

    /// Lists the port as due when its next packet may leave.
    fn schedule(&mut self, port: Port) {
        if let Some(at) = self.existing(port).and_then(PortQueues::schedule) {
            self.agenda.due.push(Reverse((at, port)));
        }
    }

    /// When (ns) the first of the ports becomes due.
    pub(crate) fn next_due(&mut self) -> Option<u64> {
        while let Some(&Reverse((at, port))) = self.agenda.due.peek() {
            if self.existing(port).is_some_and(|own| own.due == Some(at)) {
                return Some(at);
            }
            // Another time was set for it since.
            self.agenda.due.pop();
        }
        None
    }

    /// Makes the ports ready that are due at `now` ns.
    pub(crate) fn make_due_ready(&mut self, now: u64) {
        while self.next_due().is_some_and(|at| at <= now) {
            let Some(Reverse((_, port))) = self.agenda.due.pop() else {
                return;
            };
            let Some(own) = self.existing(port) else {
                continue;
            };
            own.due = None;
            if !own.is_empty() && own.keep(ALONE) {
                self.agenda.ready.push(port);
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
        for queue in self.all().flat_map(|own| own.queues.iter_mut()) {
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
        self.look(port, |own| own.shaper.rate())?
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
        if usize::from(port) >= PORTS {
            return Vec::new();
        }
        let state = |(number, queue): (usize, &Queue)| QueueState {
            queue: number as u8,
            packets: queue.packets.len(),
            depth: queue.depth,
            rate: queue.shaper.rate(),
            counts: queue.counts,
        };
        let states = |own: &PortQueues| own.queues.iter().enumerate().map(state).collect();
        self.look(port, states)
            .unwrap_or_else(|| states(&self.defaults.port()))
    }

    /// The ports whose queues have been used or set.
    pub(crate) fn used_ports(&self) -> impl Iterator<Item = Port> {
        let used = self.ports.iter().enumerate();
        used.filter(|(_, slot)| slot.lock().is_some())
            .map(|(port, _)| port as Port)
    }

    /// Moves the ports that got a packet since the last call.
    pub(crate) fn take_ready(&mut self, ports: &mut Vec<Port>) {
        ports.clear();
        std::mem::swap(&mut self.agenda.ready, ports);
        for &port in ports.iter() {
            if let Some(own) = self.existing(port) {
                own.keeper = None;
            }
        }
    }

    /// Puts all ports that have packets on the agenda of who has the queues alone.
    pub(crate) fn recall(&mut self) {
        self.agenda = Agenda::default();
        for port in 0..PORTS as Port {
            let Some(own) = self.existing(port) else {
                continue;
            };
            own.due = None;
            own.keeper = (!own.is_empty()).then_some(ALONE);
            if own.keeper.is_some() {
                self.agenda.ready.push(port);
            }
        }
    }

    /// Gives a lane what is on the agenda of who has the queues alone.
    pub(crate) fn hand_over(&mut self, agenda: &mut Agenda, lane: u8) {
        let ready = std::mem::take(&mut self.agenda.ready);
        for port in ready {
            if let Some(own) = self.existing(port) {
                own.keeper = Some(lane);
                agenda.ready.push(port);
            }
        }
        agenda.due.append(&mut self.agenda.due);
    }

    /// Takes everything out of all queues.
    pub(crate) fn drain(&mut self) -> Vec<Boxed> {
        self.agenda = Agenda::default();
        let mut packets = Vec::new();
        for own in self.all() {
            own.keeper = None;
            own.due = None;
            packets.extend(own.queues.iter_mut().flat_map(|q| q.packets.drain(..)));
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::port::Popped;
    use super::super::queueing::Queueing;
    use super::*;
    use crate::exec::packet::Inner;

    fn packet(queue: u8, len: usize) -> Boxed {
        Box::new(Inner {
            queue,
            len,
            ..Inner::default()
        })
    }

    impl Queues {
        /// Queues a packet; whether there was room.
        fn push(&mut self, port: Port, packet: Boxed) -> bool {
            let mut queues = Queueing::Alone(self);
            queues
                .offer(port, packet, |_, _, mine| assert!(mine))
                .is_ok()
        }

        fn is_full(&mut self, port: Port, queue: u8) -> bool {
            self.of(port).is_none_or(|own| own.room(queue).is_none())
        }
    }

    /// Takes a packet out and lets it leave with its length.
    fn leave(queues: &mut Queues, port: Port, now: u64) -> Option<usize> {
        let mut queues = Queueing::Alone(queues);
        let Popped { packet, start, .. } = queues.pop(port, now, |_| unreachable!())?;
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

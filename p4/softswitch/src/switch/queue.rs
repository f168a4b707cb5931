//! Output queues.

use std::collections::VecDeque;

use crate::exec::packet::Boxed;
use crate::ids::Port;

/// Ports a switch can have: `bit<9>`.
pub(crate) const PORTS: usize = 512;

struct Queue {
    packets: VecDeque<Boxed>,
    depth: usize,
}

/// The queues of all ports. A port's queues come into being when first used.
pub(crate) struct Queues {
    ports: Vec<Option<Box<[Queue]>>>,
    queues: u8,
    depth: usize,
    ready: Vec<Port>,
    /// Per port: it is in `ready`.
    listed: Vec<bool>,
}

impl Queues {
    pub(crate) fn new(queues: u8, depth: usize) -> Self {
        Queues {
            ports: (0..PORTS).map(|_| None).collect(),
            queues: queues.clamp(1, 8),
            depth,
            ready: Vec::new(),
            listed: vec![false; PORTS],
        }
    }

    pub(crate) fn count(&self) -> u8 {
        self.queues
    }

    fn of(&mut self, port: Port) -> Option<&mut Box<[Queue]>> {
        let (queues, depth) = (self.queues, self.depth);
        let slot = self.ports.get_mut(usize::from(port))?;
        Some(slot.get_or_insert_with(|| {
            (0..queues)
                .map(|_| Queue {
                    packets: VecDeque::new(),
                    depth,
                })
                .collect()
        }))
    }

    pub(crate) fn len(&self, port: Port, queue: u8) -> usize {
        let queues = self.ports.get(usize::from(port)).and_then(|q| q.as_ref());
        queues
            .and_then(|q| q.get(usize::from(queue)))
            .map_or(0, |q| q.packets.len())
    }

    pub(crate) fn is_empty(&self, port: Port) -> bool {
        let queues = self.ports.get(usize::from(port)).and_then(|q| q.as_ref());
        queues.is_none_or(|q| q.iter().all(|q| q.packets.is_empty()))
    }

    pub(crate) fn is_full(&mut self, port: Port, queue: u8) -> bool {
        let queues = self.of(port);
        queues
            .and_then(|q| q.get(usize::from(queue)))
            .is_none_or(|q| q.packets.len() >= q.depth)
    }

    /// Queues a packet where there is room, as [`Self::is_full`] told.
    pub(crate) fn push(&mut self, port: Port, packet: Boxed) {
        let queue = usize::from(packet.queue);
        let Some(queues) = self.of(port) else {
            return;
        };
        queues[queue].packets.push_back(packet);
        let listed = &mut self.listed[usize::from(port)];
        if !*listed {
            *listed = true;
            self.ready.push(port);
        }
    }

    /// The next packet: from the highest queue that has one.
    pub(crate) fn pop(&mut self, port: Port) -> Option<Boxed> {
        let queues = self.ports.get_mut(usize::from(port))?.as_mut()?;
        queues.iter_mut().rev().find_map(|q| q.packets.pop_front())
    }

    pub(crate) fn set_depth(&mut self, port: Port, queue: Option<u8>, packets: usize) {
        let Some(queues) = self.of(port) else {
            return;
        };
        for (number, one) in queues.iter_mut().enumerate() {
            if queue.is_none_or(|q| usize::from(q) == number) {
                one.depth = packets;
            }
        }
    }

    pub(crate) fn set_default_depth(&mut self, packets: usize) {
        self.depth = packets;
        for queue in self.ports.iter_mut().flatten().flat_map(|q| q.iter_mut()) {
            queue.depth = packets;
        }
    }

    /// Moves the ports that got a packet since the last call.
    pub(crate) fn take_ready(&mut self, ports: &mut Vec<Port>) {
        ports.clear();
        std::mem::swap(&mut self.ready, ports);
        for &port in ports.iter() {
            self.listed[usize::from(port)] = false;
        }
    }

    /// Takes everything out of all queues.
    pub(crate) fn drain(&mut self) -> Vec<Boxed> {
        let queues = self.ports.iter_mut().flatten().flat_map(|q| q.iter_mut());
        queues.flat_map(|q| q.packets.drain(..)).collect()
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

    #[test]
    fn higher_queues_are_served_first_each_in_order() {
        let mut queues = Queues::new(8, 4);
        for (queue, len) in [(0, 1), (7, 2), (3, 3), (7, 4)] {
            assert!(!queues.is_full(5, queue));
            queues.push(5, packet(queue, len));
        }
        let order: Vec<usize> = std::iter::from_fn(|| queues.pop(5))
            .map(|p| p.len)
            .collect();
        assert_eq!(order, [2, 4, 3, 1]);
        assert!(queues.is_empty(5));
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
}

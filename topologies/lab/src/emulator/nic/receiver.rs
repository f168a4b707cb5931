//! The responder's half of a queue pair: order, acknowledgements, congestion notification.

use std::collections::VecDeque;

use super::sender::{distance, psn};
use crate::emulator::roce::Bth;

/// What a data packet asks the NIC to send back, and what it completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Acknowledge up to this PSN.
    pub(super) acknowledge: Option<u32>,
    /// Ask for this PSN again.
    pub(super) negative: Option<u32>,
    /// Messages that are now whole.
    pub(super) completed: u64,
    /// The packet was not the next one.
    pub(super) out_of_order: bool,
    /// The packet had been there before.
    pub(super) duplicate: bool,
}

/// A packet that came before its turn.
#[derive(Clone, Copy, Debug, Default)]
struct Early {
    arrived: bool,
    ends_message: bool,
    ack_request: bool,
}

#[derive(Debug)]
pub(super) struct Receiver {
    start_psn: u32,
    expected: u64,
    /// A NAK for `expected` is out: one per gap.
    nak_sent: bool,
    messages: u32,
    /// Packets ahead of `expected` that are kept; empty when the window is 0.
    early: VecDeque<Early>,
    reorder_window: usize,
    next_cnp: u64,
}

impl Receiver {
    pub(super) fn new(start_psn: u32, reorder_window: usize) -> Self {
        Self {
            start_psn,
            expected: 0,
            nak_sent: false,
            messages: 0,
            early: VecDeque::new(),
            reorder_window,
            next_cnp: 0,
        }
    }

    /// The message sequence number for an AETH.
    pub(super) fn msn(&self) -> u32 {
        self.messages & 0xFF_FFFF
    }

    pub(super) fn data(&mut self, bth: &Bth) -> Arrival {
        let ahead = distance(self.start_psn, self.expected, bth.psn);
        let last_in_order = psn(self.start_psn, self.expected.wrapping_sub(1));
        let packet = Early {
            arrived: true,
            ends_message: bth.opcode.ends_message(),
            ack_request: bth.ack_request,
        };
        match usize::try_from(ahead) {
            Ok(0) => self.in_order(packet),
            Ok(ahead) if ahead <= self.reorder_window => {
                if self.early.len() < ahead {
                    self.early.resize(ahead, Early::default());
                }
                let duplicate = self.early[ahead - 1].arrived;
                self.early[ahead - 1] = packet;
                Arrival {
                    duplicate,
                    out_of_order: !duplicate,
                    ..Arrival::default()
                }
            }
            Ok(_) => Arrival {
                negative: (!std::mem::replace(&mut self.nak_sent, true))
                    .then(|| psn(self.start_psn, self.expected)),
                out_of_order: true,
                ..Arrival::default()
            },
            Err(_) => Arrival {
                acknowledge: bth.ack_request.then_some(last_in_order),
                duplicate: true,
                ..Arrival::default()
            },
        }
    }

    fn in_order(&mut self, packet: Early) -> Arrival {
        let mut arrival = Arrival::default();
        let mut acknowledge = false;
        let mut next = packet;
        while next.arrived {
            self.expected += 1;
            acknowledge |= next.ack_request;
            if next.ends_message {
                arrival.completed += 1;
                self.messages = self.messages.wrapping_add(1);
            }
            // The slot of what is now expected, whether it came early or is still missing.
            next = self.early.pop_front().unwrap_or_default();
        }
        self.nak_sent = false;
        arrival.acknowledge = acknowledge.then(|| psn(self.start_psn, self.expected - 1));
        arrival
    }

    /// A marked packet arrived at `now`: whether a CNP is due.
    pub(super) fn marked(&mut self, now: u64, interval_ns: u64) -> bool {
        if now < self.next_cnp {
            return false;
        }
        self.next_cnp = now + interval_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::roce::Opcode;
    use proptest::prelude::*;

    fn packet(psn: u32, opcode: Opcode, ack_request: bool) -> Bth {
        Bth {
            opcode,
            dest_qp: 1,
            psn,
            ack_request,
            becn: false,
        }
    }

    #[test]
    fn one_nak_per_gap() {
        let mut receiver = Receiver::new(10, 0);
        receiver.data(&packet(10, Opcode::WriteFirst, false));
        let first = receiver.data(&packet(12, Opcode::WriteMiddle, true));
        assert_eq!((first.negative, first.acknowledge), (Some(11), None));
        assert_eq!(
            receiver.data(&packet(13, Opcode::WriteLast, true)).negative,
            None
        );
        receiver.data(&packet(11, Opcode::WriteMiddle, false));
        assert_eq!(
            receiver.data(&packet(13, Opcode::WriteLast, true)).negative,
            Some(12)
        );
        let duplicate = receiver.data(&packet(11, Opcode::WriteMiddle, true));
        assert_eq!(
            (duplicate.acknowledge, duplicate.duplicate),
            (Some(11), true)
        );
    }

    #[test]
    fn cnps_are_spaced() {
        let mut receiver = Receiver::new(0, 0);
        let sent = (0..100)
            .filter(|t| receiver.marked(t * 1_000, 4_000))
            .count();
        assert_eq!(sent, 25);
    }

    proptest! {
        #[test]
        fn within_the_window_any_order_completes_every_message(
            order in Just((0u32..40).collect::<Vec<_>>()).prop_shuffle(), start in 0u32..1 << 24,
        ) {
            let mut receiver = Receiver::new(start, 40);
            let (mut completed, mut acknowledged) = (0, 0);
            for index in order {
                let opcode = if index % 4 == 3 { Opcode::WriteLast } else { Opcode::WriteMiddle };
                let arrival = receiver.data(&packet(start.wrapping_add(index) & 0xFF_FFFF, opcode, index % 4 == 3));
                prop_assert_eq!(arrival.negative, None);
                completed += arrival.completed;
                if let Some(psn) = arrival.acknowledge {
                    acknowledged = psn.wrapping_sub(start) & 0xFF_FFFF;
                }
            }
            prop_assert_eq!((completed, acknowledged), (10, 39));
        }
    }
}

//! The requester's half of a queue pair: messages cut into packets, a window, go-back-N.

use std::collections::VecDeque;

use super::dcqcn::RateController;
use crate::emulator::roce::Opcode;

/// Sequence numbers count packets from 0 without wrapping; on the wire they are 24 bits from a start PSN.
const PSN_MASK: u64 = 0xFF_FFFF;

/// The PSN of sequence number `sequence` on a queue pair that began at `start`.
pub(super) fn psn(start: u32, sequence: u64) -> u32 {
    (u64::from(start).wrapping_add(sequence) & PSN_MASK) as u32
}

/// How far `psn` is ahead of `sequence`: negative when behind. Right as long as both are within
/// 2^23 packets.
pub(super) fn distance(start: u32, sequence: u64, psn_seen: u32) -> i64 {
    let ahead = (u64::from(psn_seen).wrapping_sub(u64::from(psn(start, sequence)))) & PSN_MASK;
    // Sign-extend 24 bits.
    ((ahead << 40) as i64) >> 40
}

#[derive(Clone, Copy, Debug)]
struct Message {
    first: u64,
    packets: u64,
    bytes: u64,
    /// Offset of the message in the queue pair's stream of bytes: its remote address.
    offset: u64,
}

/// A packet about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) opcode: Opcode,
    pub(super) psn: u32,
    pub(super) payload: usize,
    pub(super) message_bytes: u64,
    pub(super) offset: u64,
    pub(super) ack_request: bool,
    pub(super) retransmission: bool,
}

/// What an acknowledgement or timer changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Messages that are now acknowledged whole.
    pub(super) completed: u64,
}

#[derive(Debug)]
pub(super) struct Sender {
    start_psn: u32,
    payload: u64,
    window: u64,
    ack_every: u64,
    messages: VecDeque<Message>,
    /// Position in `messages` of the one that `next` belongs to.
    cursor: usize,
    posted: u64,
    posted_bytes: u64,
    unacknowledged: u64,
    next: u64,
    highest: u64,
    /// Earliest time of the next packet by the rate, ns.
    pub(super) not_before: u64,
    pub(super) rate: Option<RateController>,
    pub(super) fixed_bps: Option<u64>,
    /// When unacknowledged packets count as lost, ns.
    pub(super) deadline: u64,
    pub(super) timer_pending: bool,
    pub(super) backoff: u32,
}

impl Sender {
    pub(super) fn new(start_psn: u32, payload: u64, window: u64, ack_every: u64) -> Self {
        Self {
            start_psn,
            payload,
            window,
            ack_every,
            messages: VecDeque::new(),
            cursor: 0,
            posted: 0,
            posted_bytes: 0,
            unacknowledged: 0,
            next: 0,
            highest: 0,
            not_before: 0,
            rate: None,
            fixed_bps: None,
            deadline: 0,
            timer_pending: false,
            backoff: 0,
        }
    }

    pub(super) fn post(&mut self, bytes: u64) {
        let packets = bytes.div_ceil(self.payload).max(1);
        self.messages.push_back(Message {
            first: self.posted,
            packets,
            bytes,
            offset: self.posted_bytes,
        });
        self.posted += packets;
        self.posted_bytes += bytes;
    }

    pub(super) fn outstanding(&self) -> bool {
        self.unacknowledged < self.next
    }

    pub(super) fn can_send(&self) -> bool {
        self.next < self.posted && self.next - self.unacknowledged < self.window
    }

    /// The next packet; call only when [`Self::can_send`].
    pub(super) fn take(&mut self) -> Option<Outgoing> {
        let message = loop {
            let message = *self.messages.get(self.cursor)?;
            if self.next < message.first + message.packets {
                break message;
            }
            self.cursor += 1;
        };
        let sequence = self.next;
        let index = sequence - message.first;
        let last = index + 1 == message.packets;
        let opcode = match (index == 0, last) {
            (true, true) => Opcode::WriteOnly,
            (true, false) => Opcode::WriteFirst,
            (false, false) => Opcode::WriteMiddle,
            (false, true) => Opcode::WriteLast,
        };
        let payload = (message.bytes - index * self.payload).min(self.payload);
        self.next += 1;
        let retransmission = sequence < self.highest;
        self.highest = self.highest.max(self.next);
        let window_closes = self.next - self.unacknowledged >= self.window;
        Some(Outgoing {
            opcode,
            psn: psn(self.start_psn, sequence),
            payload: payload as usize,
            message_bytes: message.bytes,
            offset: message.offset,
            ack_request: last || window_closes || self.next.is_multiple_of(self.ack_every),
            retransmission,
        })
    }

    /// Everything up to and including `psn` has arrived.
    pub(super) fn acknowledge(&mut self, psn: u32) -> Option<Progress> {
        let ahead = distance(self.start_psn, self.unacknowledged, psn);
        let up_to = self.unacknowledged.checked_add_signed(ahead)? + 1;
        if ahead < 0 || up_to > self.highest {
            return None;
        }
        Some(self.acknowledge_before(up_to))
    }

    /// The receiver wants `psn` next: everything before it has arrived, everything from it on goes
    /// again.
    pub(super) fn negative(&mut self, psn: u32) -> Option<Progress> {
        let ahead = distance(self.start_psn, self.unacknowledged, psn);
        let wanted = self.unacknowledged.checked_add_signed(ahead)?;
        if ahead < 0 || wanted >= self.highest {
            return None;
        }
        let progress = self.acknowledge_before(wanted);
        self.go_back();
        Some(progress)
    }

    fn acknowledge_before(&mut self, sequence: u64) -> Progress {
        self.unacknowledged = sequence;
        let mut completed = 0;
        while let Some(message) = self.messages.front() {
            if message.first + message.packets > sequence {
                break;
            }
            self.messages.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
            completed += 1;
        }
        self.next = self.next.max(sequence);
        Progress { completed }
    }

    /// Sends again from the first unacknowledged packet.
    pub(super) fn go_back(&mut self) {
        self.next = self.unacknowledged;
        self.cursor = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_become_packets() {
        let mut sender = Sender::new(0xFF_FFFE, 1000, 100, 4);
        sender.post(2500);
        sender.post(0);
        sender.post(1000);
        let sent: Vec<_> = std::iter::from_fn(|| sender.can_send().then(|| sender.take().unwrap()))
            .map(|out| (out.opcode, out.psn, out.payload, out.ack_request))
            .collect();
        assert_eq!(
            sent,
            [
                (Opcode::WriteFirst, 0xFF_FFFE, 1000, false),
                (Opcode::WriteMiddle, 0xFF_FFFF, 1000, false),
                (Opcode::WriteLast, 0, 500, true),
                (Opcode::WriteOnly, 1, 0, true),
                (Opcode::WriteOnly, 2, 1000, true),
            ]
        );
        assert_eq!(sender.acknowledge(0).unwrap().completed, 1);
        assert_eq!(sender.acknowledge(0), None, "a duplicate changes nothing");
        assert_eq!(sender.acknowledge(3), None, "never sent");
        assert_eq!(sender.acknowledge(2).unwrap().completed, 2);
        assert!(!sender.outstanding());
    }

    #[test]
    fn a_nak_goes_back_and_the_window_holds() {
        let mut sender = Sender::new(0, 1000, 3, 100);
        sender.post(5000);
        for _ in 0..3 {
            sender.take().unwrap();
        }
        assert!(!sender.can_send());
        sender.negative(1).unwrap();
        let again = sender.take().unwrap();
        assert_eq!((again.psn, again.retransmission), (1, true));
        assert_eq!(again.opcode, Opcode::WriteMiddle);
    }

    proptest! {
        #[test]
        fn distance_undoes_psn(start in 0u32..1 << 24, sequence in 0u64..1 << 40, ahead in -8_000_000i64..8_000_000) {
            let other = sequence.saturating_add_signed(ahead);
            prop_assert_eq!(distance(start, sequence, psn(start, other)), other as i64 - sequence as i64);
        }
    }
}

//! One direction of a link: a transmitter, a wire, and what was counted there.

use serde::Serialize;
use topology::End;

use super::flow::mix;
use super::nic::WIRE_OVERHEAD;

/// Counts of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WireStats {
    /// Frames put on the wire.
    pub frames: u64,
    /// Bytes of these frames, Ethernet header to payload's end, without preamble, FCS and gap.
    pub bytes: u64,
    /// Frames that were on the wire when it was cut.
    pub lost_in_flight: u64,
    /// Frames sent to a port whose link is down.
    pub sent_while_down: u64,
    /// Of both, those longer than the shortest Ethernet frame: hellos and probes are that short.
    pub long_lost: u64,
    /// Frames that a gray failure took.
    pub lost_at_random: u64,
    /// The longest queue seen behind the transmitter, packets.
    pub queue_max: u64,
}

/// Bytes of the shortest Ethernet frame, without its check sequence.
const SHORTEST_FRAME: usize = 60;

impl WireStats {
    pub(super) fn note_lost(&mut self, length: usize) {
        self.long_lost += u64::from(length > SHORTEST_FRAME);
    }
}

/// The transmitter at one end and the wire to the other.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) up: bool,
    /// Counts cuts: a frame knows in which life of the wire it was sent.
    pub(super) life: u32,
    /// When it was last cut, ns.
    cut_at: u64,
    delay_ns: u64,
    /// Time that the receiving switch takes before the packet is in its pipeline, ns.
    latency_ns: u64,
    speed_bps: u64,
    /// Remainder of serialisation times, in bit-nanoseconds per second: frames take whole ns, and on average exactly
    /// their time.
    remainder: u64,
    /// When the transmitter is free, ns.
    pub(super) free_at: u64,
    /// The pending event that will look at the transmitter again, ns.
    pub(super) kick_at: Option<u64>,
    pub(super) stats: WireStats,
    /// Frames lost by chance, in millionths.
    loss_ppm: u32,
    /// State of the generator that chance comes from.
    chance: u64,
}

impl Wire {
    pub(super) fn new(from: End, to: End, speed_bps: u64, delay_ns: u64, latency_ns: u64) -> Self {
        Self {
            from,
            to,
            up: true,
            life: 0,
            cut_at: 0,
            delay_ns,
            latency_ns,
            speed_bps: speed_bps.max(1),
            remainder: 0,
            free_at: 0,
            kick_at: None,
            stats: WireStats::default(),
            loss_ppm: 0,
            chance: 0,
        }
    }

    pub(super) fn set_loss(&mut self, loss_ppm: u32, seed: u64) {
        self.loss_ppm = loss_ppm;
        self.chance = seed;
    }

    /// Whether this frame is lost by chance.
    pub(super) fn loses(&mut self) -> bool {
        if self.loss_ppm == 0 {
            return false;
        }
        self.chance = mix(self.chance, 1);
        ((self.chance >> 32) * 1_000_000) >> 32 < u64::from(self.loss_ppm)
    }

    /// Takes a frame of `length` bytes at `now`, and says when the receiver has it; `None` when the link is down.
    pub(super) fn send(&mut self, length: usize, now: u64) -> Option<u64> {
        let bits = (length as u64 + WIRE_OVERHEAD) * 8;
        let scaled = bits * 1_000_000_000 + self.remainder;
        self.remainder = scaled % self.speed_bps;
        self.free_at = now + scaled / self.speed_bps;
        if !self.up {
            self.stats.sent_while_down += 1;
            self.stats.note_lost(length);
            return None;
        }
        self.stats.frames += 1;
        self.stats.bytes += length as u64;
        Some(self.free_at + self.delay_ns + self.latency_ns)
    }

    /// Whether a frame sent in `life`, due at its receiver at `now`, got there: it had left the wire
    /// `latency_ns` ago.
    pub(super) fn delivers(&self, life: u32, now: u64) -> bool {
        life == self.life || self.cut_at >= now - self.latency_ns
    }

    pub(super) fn set_up(&mut self, up: bool, now: u64) {
        if self.up && !up {
            self.life += 1;
            self.cut_at = now;
        }
        self.up = up;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use topology::{NicId, NicPortRef};

    fn wire() -> Wire {
        let end = End::Nic(NicPortRef {
            nic: NicId(0),
            port: 0,
        });
        Wire::new(end, end, 400_000_000_000, 500, 300)
    }

    #[test]
    fn serialisation_is_exact_on_average() {
        let mut wire = wire();
        for _ in 0..1000 {
            wire.send(4154, wire.free_at);
        }
        // 4178 bytes at 400 Gb/s are 83.56 ns.
        assert_eq!(wire.free_at, 83_560);
    }

    #[test]
    fn a_cut_loses_what_is_on_the_wire_and_no_more() {
        let mut wire = wire();
        let due = wire.send(4976, 0).unwrap();
        assert_eq!(due, 100 + 500 + 300);
        wire.set_up(false, 599);
        assert!(!wire.delivers(0, due), "cut while it was on the wire");
        assert_eq!(wire.send(4976, 700), None);
        let mut wire = self::wire();
        wire.send(4976, 0).unwrap();
        wire.set_up(false, 600);
        assert!(wire.delivers(0, due), "cut after it had arrived");
        wire.set_up(true, 700);
        let due = wire.send(4976, 800).unwrap();
        assert!(wire.delivers(1, due));
    }
}

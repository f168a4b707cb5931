//! What was counted, as values that can be written out.

use serde::Serialize;
use softswitch::SwitchStats;
use topology::{LinkId, NicId};

use super::nic::NicStats;
use super::wire::WireStats;

/// Bins beyond this are added to the last one, so that a long idle time costs no memory.
const MOST_BINS: usize = 1 << 16;

/// Bytes by time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    origin_ns: u64,
    width_ns: u64,
    bytes: Vec<u64>,
}

impl Bins {
    pub(super) fn new(origin_ns: u64, width_ns: u64) -> Self {
        Self {
            origin_ns,
            width_ns: width_ns.max(1),
            bytes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, now: u64, bytes: u64) {
        let index = ((now - self.origin_ns) / self.width_ns) as usize;
        let index = index.min(MOST_BINS - 1);
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, 0);
        }
        self.bytes[index] += bytes;
    }

    pub(super) fn bytes(&self) -> &[u64] {
        &self.bytes
    }
}

/// Packets that did not arrive, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// On a wire that was cut.
    pub in_flight: u64,
    /// By a gray failure of a link ([`Emulator::set_loss`](super::Emulator::set_loss)).
    pub gray: u64,
    /// Sent to a port whose link is down.
    pub port_down: u64,
    /// Found a switch queue full.
    pub queue_full: u64,
    /// By decision of the program (no route, TTL, ACL...).
    pub program: u64,
    /// At a switch that had no program yet.
    pub no_program: u64,
    /// Sent to a switch port that leads nowhere.
    pub unconnected: u64,
    /// Anything else: queues or loops that do not exist, failed assertions.
    pub other: u64,
}

impl Drops {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.in_flight
            + self.gray
            + self.port_down
            + self.queue_full
            + self.program
            + self.no_program
            + self.unconnected
            + self.other
    }

    pub(super) fn add_switch(&mut self, now: &SwitchStats, before: &SwitchStats) {
        self.queue_full += now.queue_drops - before.queue_drops;
        self.program += now.ingress_drops - before.ingress_drops;
        self.program += now.egress_drops - before.egress_drops;
        self.no_program += now.no_program_drops - before.no_program_drops;
        let other = |s: &SwitchStats| s.priority_drops + s.loop_drops + s.failed_asserts;
        self.other += other(now) - other(before);
    }
}

/// Counts of a NIC and its bytes by time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NicReport {
    /// The NIC.
    pub nic: NicId,
    /// Its counts.
    pub stats: NicStats,
    /// Bytes of frames sent, by bin of their beginning.
    pub sent_bins: Vec<u64>,
    /// Bytes of frames received, by bin of their end.
    pub received_bins: Vec<u64>,
}

/// Counts of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// The link.
    pub link: LinkId,
    /// From its lower to its upper end.
    pub upward: WireStats,
    /// From its upper to its lower end.
    pub downward: WireStats,
}

/// Everything counted since the last [`Emulator::reset_statistics`](super::Emulator::reset_statistics).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// When counting began, ns; also the beginning of the first bin.
    pub since_ns: u64,
    /// Now, ns.
    pub until_ns: u64,
    /// Width of the bins, ns.
    pub bin_ns: u64,
    /// By NIC, in their order in the topology.
    pub nics: Vec<NicReport>,
    /// By link, in their order in the topology.
    pub links: Vec<LinkReport>,
    /// Packets lost anywhere.
    pub drops: Drops,
    /// Sums over all NICs.
    pub totals: NicStats,
}

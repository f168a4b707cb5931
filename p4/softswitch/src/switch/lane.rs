//! What one thread needs for itself to move packets through a switch.

use std::collections::VecDeque;

use super::SwitchStats;
use super::traffic::Entry;
use crate::control::{CounterData, DigestMessage};
use crate::exec::Machine;
use crate::exec::packet::Boxed;
use crate::ids::Port;
use crate::program::Program;
use crate::program::code::Slot;
use crate::random::Random;

/// Buffers and packets that a lane keeps to use again.
const BUFFERS: usize = 256;
const PACKETS: usize = 4096;

/// What packets leave behind on their way, apart from what they share. Each lane has its own, and
/// what the control plane reads is the sum of all lanes'.
pub(crate) struct Ledger {
    /// Indirect counters; direct ones are empty here.
    pub(crate) counters: Vec<Vec<CounterData>>,
    /// By table, the direct counters of its entries, as far as there was something to count.
    hits: Vec<Vec<CounterData>>,
    /// By table, the direct counter of its default entry.
    pub(crate) misses: Vec<CounterData>,
    pub(crate) random: Random,
    pub(crate) digests: Vec<DigestMessage>,
    pub(crate) digest_limit: usize,
    pub(crate) stats: SwitchStats,
    /// By port, packets that came in there and the program dropped in ingress.
    ingress_drops: Vec<u64>,
    /// By port, packets that would have left there and the program dropped in egress.
    egress_drops: Vec<u64>,
}

fn add(to: &mut CounterData, bytes: u64) {
    to.packets += 1;
    to.bytes += bytes;
}

/// The element at `at`, which comes into being if it is not there.
fn grown<T: Clone + Default>(list: &mut Vec<T>, at: usize) -> &mut T {
    if at >= list.len() {
        list.resize(at + 1, T::default());
    }
    &mut list[at]
}

impl Ledger {
    pub(crate) fn new(digest_limit: usize) -> Self {
        Ledger {
            counters: Vec::new(),
            hits: Vec::new(),
            misses: Vec::new(),
            random: Random::new(0),
            digests: Vec::new(),
            digest_limit,
            stats: SwitchStats::default(),
            ingress_drops: Vec::new(),
            egress_drops: Vec::new(),
        }
    }

    /// Begins anew for a program; what became of packets stays counted.
    fn begin(&mut self, program: &Program, seed: u64) {
        let cells = |c: &crate::program::CounterInfo| match c.is_indirect() {
            true => vec![CounterData::default(); c.size],
            false => Vec::new(),
        };
        self.counters = program.counters().iter().map(cells).collect();
        self.hits = vec![Vec::new(); program.tables().len()];
        self.misses = vec![CounterData::default(); program.tables().len()];
        self.random = Random::new(seed);
        self.digests.clear();
    }

    /// Counts a packet of `bytes` for an entry.
    #[inline]
    pub(crate) fn hit(&mut self, table: usize, entry: usize, bytes: u64) {
        match self.hits[table].get_mut(entry) {
            Some(counter) => add(counter, bytes),
            None => add(grown(&mut self.hits[table], entry), bytes),
        }
    }

    pub(crate) fn miss(&mut self, table: usize, bytes: u64) {
        add(&mut self.misses[table], bytes);
    }

    /// An entry's direct counter.
    pub(crate) fn hits(&self, table: usize, entry: usize) -> CounterData {
        self.hits[table].get(entry).copied().unwrap_or_default()
    }

    /// Makes an entry's direct counter say something else.
    pub(crate) fn set_hits(&mut self, table: usize, entry: usize, data: CounterData) {
        match self.hits[table].get_mut(entry) {
            Some(counter) => *counter = data,
            None if data == CounterData::default() => {}
            None => *grown(&mut self.hits[table], entry) = data,
        }
    }

    /// Takes over what another ledger of the same program has.
    pub(super) fn absorb(&mut self, mut other: Ledger) {
        fn sum(to: &mut Vec<CounterData>, from: &[CounterData]) {
            to.resize(to.len().max(from.len()), CounterData::default());
            for (to, from) in to.iter_mut().zip(from) {
                to.packets += from.packets;
                to.bytes += from.bytes;
            }
        }
        fn add(to: &mut Vec<u64>, from: &[u64]) {
            to.resize(to.len().max(from.len()), 0);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        for (to, from) in self.counters.iter_mut().zip(&other.counters) {
            sum(to, from);
        }
        for (to, from) in self.hits.iter_mut().zip(&other.hits) {
            sum(to, from);
        }
        sum(&mut self.misses, &other.misses);
        self.digests.append(&mut other.digests);
        self.stats += other.stats;
        add(&mut self.ingress_drops, &other.ingress_drops);
        add(&mut self.egress_drops, &other.egress_drops);
    }

    pub(super) fn drop_in_ingress(&mut self, port: Port) {
        self.stats.ingress_drops += 1;
        *grown(&mut self.ingress_drops, port.into()) += 1;
    }

    pub(super) fn drop_in_egress(&mut self, port: Port) {
        self.stats.egress_drops += 1;
        *grown(&mut self.egress_drops, port.into()) += 1;
    }

    /// Packets that the program dropped, in ingress by the port they came in on and in egress by
    /// the one they would have left by.
    pub(super) fn drops(&self, port: usize) -> (u64, u64) {
        let at = |list: &Vec<u64>| list.get(port).copied().unwrap_or(0);
        (at(&self.ingress_drops), at(&self.egress_drops))
    }
}

/// A thread's own part of a switch.
pub(crate) struct Lane {
    pub(super) machine: Machine,
    pub(super) ledger: Ledger,
    /// Recirculated packets on their way into ingress again.
    pub(super) again: VecDeque<(Boxed, Entry)>,
    pool: Vec<Boxed>,
    pub(super) buffers: Vec<Vec<u8>>,
    /// Lists of kept words to use again.
    pub(super) kept: Vec<Vec<(Slot, u64)>>,
    /// Words of the frame while a clone is made.
    pub(super) saved: Vec<u64>,
    /// The queue whose last packet has its words in the frame and nowhere
    /// else: mostly it is the next to leave, and needs them there.
    pub(super) resident: Option<(Port, u8)>,
    /// Headers that the packet leaves with.
    pub(super) leaving: Vec<u16>,
}

impl Lane {
    pub(super) fn new(digest_limit: usize) -> Self {
        Lane {
            machine: Machine::new(),
            ledger: Ledger::new(digest_limit),
            again: VecDeque::new(),
            pool: Vec::new(),
            buffers: Vec::new(),
            kept: Vec::new(),
            saved: Vec::new(),
            resident: None,
            leaving: Vec::new(),
        }
    }

    /// Lets go of what is on its way and begins anew for a program.
    pub(super) fn begin(&mut self, program: &Program, seed: u64) {
        while let Some((packet, _)) = self.again.pop_front() {
            self.put_back(packet);
        }
        self.resident = None;
        self.machine.prepare(program);
        self.ledger.begin(program, seed);
    }

    /// A packet to fill.
    pub(super) fn packet(&mut self) -> Boxed {
        self.pool.pop().unwrap_or_default()
    }

    pub(super) fn put_back(&mut self, packet: Boxed) {
        if self.pool.len() < PACKETS {
            self.pool.push(packet);
        }
    }

    pub(super) fn put_buffer_back(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS {
            self.buffers.push(buffer);
        }
    }
}

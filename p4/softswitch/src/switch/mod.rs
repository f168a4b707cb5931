//! One switch: a program, its state and the queues.

mod access;
mod copies;
mod counts;
mod departure;
mod lane;
mod lanes;
mod port;
pub(crate) mod queue;
mod queueing;
mod rate;
mod shared;
mod traced;
mod traffic;

use std::sync::Arc;

use crate::ids::{Port, TableId};
use crate::program::Program;
use crate::state::State;
pub(crate) use access::Access;
pub use counts::ProgramDrops;
use lane::Lane;
pub(crate) use lane::Ledger;
use lanes::Seat;
use parking_lot::Mutex;
pub use port::{QueueCounts, QueueState};
use queue::Queues;
use queueing::{Agenda, Queueing};
pub use rate::{NotARate, Rate};
pub use shared::{Exclusive, SharedSwitch};
pub use traffic::Work;

/// How a switch is built.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// P4Runtime device id; the core only carries it.
    pub device_id: u64,
    /// The port whose packets are packet-in and packet-out.
    pub cpu_port: Option<Port>,
    /// Packets sent here are dropped.
    pub drop_port: Port,
    /// Queues per port, 1 to 8. `standard_metadata.priority` selects one; the
    /// highest is served first. Priorities beyond are dropped and counted.
    pub queues: u8,
    /// Packets a queue holds unless [`Switch::set_queue_depth`] says otherwise.
    pub queue_depth: usize,
    /// Digest messages kept for [`Switch::take_digests`].
    pub digest_limit: usize,
    /// Seed of the switch's random numbers.
    pub seed: u64,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            device_id: 0,
            cpu_port: None,
            drop_port: 511,
            queues: 1,
            queue_depth: 64,
            digest_limit: 4096,
            seed: 0,
        }
    }
}

/// A packet that left the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The port it leaves by.
    pub port: Port,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What happened to packets that did not leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchStats {
    /// Packets given to [`Switch::ingress`].
    pub received: u64,
    /// Packets handed out by [`Switch::dequeue`].
    pub sent: u64,
    /// Dropped by the program in ingress.
    pub ingress_drops: u64,
    /// Dropped by the program in egress.
    pub egress_drops: u64,
    /// Dropped because their queue was full.
    pub queue_drops: u64,
    /// Dropped because `priority` named a queue that is not there.
    pub priority_drops: u64,
    /// Resubmitted or recirculated packets dropped because too many waited.
    pub loop_drops: u64,
    /// Packets without program to process them.
    pub no_program_drops: u64,
    /// Failed `assert` and `assume`; the packet is dropped.
    pub failed_asserts: u64,
    /// Packets dropped because an action looped without end.
    pub endless_loops: u64,
    /// Digest messages dropped because too many waited.
    pub digest_drops: u64,
}

/// A v1model switch. No I/O, no clock: packets, control operations and the
/// time (ns, never going back) come in as arguments, packets and messages
/// come out as values. The same calls give the same results.
///
/// # Life of a packet
/// [`ingress`](Self::ingress) parses it, runs the ingress pipeline and puts it
/// (and its copies) into queues. [`take_ready`](Self::take_ready) says which
/// ports got something. Whoever drives a port calls
/// [`dequeue`](Self::dequeue) when the port can send: the packet then goes
/// through egress and the deparser, and comes out.
///
/// # Several threads
/// Who has the switch (`&mut`) moves packets through it one by one. Behind a [`SharedSwitch`]
/// several threads can do so at a time, each with a lane of its own: see
/// [`Forwarder`](crate::ports::Forwarder).
pub struct Switch {
    config: SwitchConfig,
    pub(crate) program: Option<Arc<Program>>,
    pub(crate) state: Option<Box<State>>,
    queues: Queues,
    /// Of who has the switch alone.
    lane: Lane,
    /// Of threads that move packets through it at the same time.
    lanes: Vec<Mutex<Seat>>,
}

impl std::fmt::Debug for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switch")
            .field("config", &self.config)
            .field("program", &self.program)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Switch {
    /// A switch without program: it drops what it gets until
    /// [`install`](Self::install).
    pub fn new(config: SwitchConfig) -> Self {
        Switch {
            queues: Queues::new(config.queues, config.queue_depth),
            lane: Lane::new(config.digest_limit),
            lanes: Vec::new(),
            config,
            program: None,
            state: None,
        }
    }

    /// The configuration it was built with.
    pub fn config(&self) -> &SwitchConfig {
        &self.config
    }

    /// Installs a program. All forwarding state (entries, registers, counters,
    /// groups, sessions, queued packets) starts anew; queue depths and port
    /// states stay.
    pub fn install(&mut self, program: Arc<Program>) {
        let state = State::new(&program);
        self.begin(program, Box::new(state));
        self.enter_own_entries();
    }

    /// Goes on with the program and the forwarding state of another switch, as if all that was
    /// written there had been written here; queued packets are dropped, queue depths and port
    /// states stay.
    pub fn adopt(&mut self, other: Switch) {
        if let (Some(program), Some(state)) = (other.program, other.state) {
            self.begin(program, state);
            self.lane.ledger.absorb(other.lane.ledger);
        }
    }

    /// Lets go of all packets and starts with another program and state.
    fn begin(&mut self, program: Arc<Program>, state: Box<State>) {
        for packet in self.queues.drain() {
            self.lane.put_back(packet);
        }
        let seed = self.config.seed;
        self.lane.begin(&program, seed);
        for (number, seat) in self.lanes.iter_mut().enumerate() {
            let Seat { lane, agenda } = seat.get_mut();
            lane.begin(&program, lanes::seed(seed, number));
            *agenda = Agenda::default();
        }
        self.program = Some(program);
        let before = self.state.replace(state);
        self.lock_registers();
        for port in before.into_iter().flat_map(|before| before.down) {
            self.set_port_up(port, false);
        }
    }

    fn enter_own_entries(&mut self) {
        let Some(program) = self.program.clone() else {
            return;
        };
        for (number, def) in program.parts.tables.iter().enumerate() {
            let table = TableId(number as u32);
            if self.reset_default(table).is_err() {
                tracing::warn!("table {number}: its default action does not fit");
            }
            for entry in &def.entries {
                // p4c writes duplicates when the program has them: the first
                // one wins, as in bmv2.
                if let Err(error) = self.insert_entry(table, entry, 0) {
                    tracing::warn!("entry of the program left out: {error}");
                }
            }
            if let Some(state) = &mut self.state
                && program.tables()[number].const_entries
            {
                state.tables[number].seal();
            }
        }
    }

    /// The installed program.
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.program.as_ref()
    }

    /// What moves packets through a switch that somebody has alone; `None` without a program.
    #[inline]
    pub(crate) fn work(&mut self) -> Option<Work<'_>> {
        Some(Work {
            program: self.program.as_deref()?,
            state: self.state.as_deref_mut().map(Access::Alone),
            queues: Queueing::Alone(&mut self.queues),
            lane: &mut self.lane,
            drop_port: self.config.drop_port.into(),
        })
    }

    /// Takes a packet in on `port` at `now` ns: parser, ingress, replication,
    /// queues. A packet-out is a packet that comes in on the CPU port, with
    /// its controller header in front.
    pub fn ingress(&mut self, port: Port, packet: &[u8], now: u64) {
        match self.work() {
            Some(mut work) => work.ingress(port, packet, now),
            None => {
                let stats = &mut self.lane.ledger.stats;
                stats.received += 1;
                stats.no_program_drops += 1;
            }
        }
    }

    /// Takes the next packet out of the port's queues, highest queue first
    /// among those whose rates allow it, and runs egress and deparser on it at
    /// `now` ns. Packets that egress drops or recirculates are skipped; they
    /// take none of a rate's time. `None`: nothing to send now. If
    /// [`has_queued`](Self::has_queued) still says yes, it is too early for
    /// the next packet ([`departure`](Self::departure) says when), or the
    /// program is sending packets round and round and the port is ready again.
    ///
    /// Hand the packet back with [`recycle`](Self::recycle) to have its buffer
    /// used again.
    pub fn dequeue(&mut self, port: Port, now: u64) -> Option<Packet> {
        self.work()?.dequeue(port, now)
    }

    /// [`dequeue`](Self::dequeue), with the packet's bytes lent to `take`: no
    /// buffer changes hands, and there is nothing to recycle.
    pub fn dequeue_with<R>(
        &mut self,
        port: Port,
        now: u64,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        self.work()?.dequeue_with(port, now, take)
    }

    /// [`dequeue`](Self::dequeue), with the packet's bytes appended to `out`:
    /// how many they are.
    pub fn dequeue_into(&mut self, port: Port, now: u64, out: &mut Vec<u8>) -> Option<usize> {
        self.work()?.dequeue_into(port, now, out)
    }

    /// Gives a packet's buffer back.
    pub fn recycle(&mut self, packet: Packet) {
        self.lane.put_buffer_back(packet.bytes);
    }

    /// Moves to `ports` those that got a packet since the last call, each
    /// once, in the order they did.
    pub fn take_ready(&mut self, ports: &mut Vec<Port>) {
        self.queues.take_ready(ports);
    }

    /// When (ns) the port's next packet may leave by the rates of its queues
    /// and its own; 0, or a time that has passed: now. `None`: nothing is
    /// queued. Who drives a port by events asks this when
    /// [`dequeue`](Self::dequeue) has given nothing.
    pub fn departure(&self, port: Port) -> Option<u64> {
        self.queues.departure(port)
    }

    /// When (ns) the first of the ports becomes due whose packets `dequeue`
    /// held back because of a rate; `None`: no port waits.
    pub fn next_due(&mut self) -> Option<u64> {
        self.queues.next_due()
    }

    /// Lists the ports that are due at `now` ns as ready, for
    /// [`take_ready`](Self::take_ready) to name.
    pub fn make_due_ready(&mut self, now: u64) {
        self.queues.make_due_ready(now);
    }

    /// Whether the port has packets queued.
    pub fn has_queued(&self, port: Port) -> bool {
        !self.queues.is_empty(port)
    }

    /// Packets in a queue.
    pub fn queue_depth(&self, port: Port, queue: u8) -> usize {
        self.queues.len(port, queue)
    }

    /// Sets how many packets the port's queues hold: one of them, or each.
    pub fn set_queue_depth(&mut self, port: Port, queue: Option<u8>, packets: usize) {
        self.queues.set_depth(port, queue, packets);
    }

    /// Sets how many packets every queue of every port holds.
    pub fn set_all_queue_depths(&mut self, packets: usize) {
        self.queues.set_default_depth(packets);
    }

    /// Sets how fast the port's queues may send: one of them, or each.
    pub fn set_queue_rate(&mut self, port: Port, queue: Option<u8>, rate: Option<Rate>) {
        self.queues.set_rate(port, queue, rate);
    }

    /// Sets how fast every queue of every port may send.
    pub fn set_all_queue_rates(&mut self, rate: Option<Rate>) {
        self.queues.set_default_rate(rate);
    }

    /// Sets how fast the port's queues may send together. Higher queues go
    /// first.
    pub fn set_port_rate(&mut self, port: Port, rate: Option<Rate>) {
        self.queues.set_port_rate(port, rate);
    }

    /// How fast the port's queues may send together; `None`: without limit.
    pub fn port_rate(&self, port: Port) -> Option<Rate> {
        self.queues.port_rate(port)
    }

    /// How the port's queues are, the lowest first; empty when there is no
    /// such port.
    pub fn queue_states(&self, port: Port) -> Vec<QueueState> {
        self.queues.states(port)
    }

    /// The ports whose queues have been used or set.
    pub fn used_ports(&self) -> impl Iterator<Item = Port> {
        self.queues.used_ports()
    }

    /// Drops everything the port has queued and says how many packets it was
    /// (the port went down).
    pub fn flush(&mut self, port: Port) -> usize {
        let mut queues = Queueing::Alone(&mut self.queues);
        let mut count = 0;
        while let Some(packet) = queues.take(port) {
            self.lane.put_back(packet);
            count += 1;
        }
        count
    }
}

//! One switch: a program, its state and the queues.

use std::sync::Arc;

use crate::ids::Port;
use crate::program::Program;

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
pub struct Switch {
    config: SwitchConfig,
    program: Option<Arc<Program>>,
}

impl Switch {
    /// A switch without program: it drops what it gets until
    /// [`install`](Self::install).
    pub fn new(config: SwitchConfig) -> Self {
        Switch {
            config,
            program: None,
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
        self.program = Some(program);
    }

    /// The installed program.
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.program.as_ref()
    }

    /// Takes a packet in on `port` at `now` ns: parser, ingress, replication,
    /// queues. A packet-out is a packet that comes in on the CPU port, with
    /// its controller header in front.
    pub fn ingress(&mut self, port: Port, packet: &[u8], now: u64) {
        unimplemented!("{port} {packet:?} {now}")
    }

    /// Takes the next packet out of the port's queues, highest queue first,
    /// and runs egress and deparser on it at `now` ns. Packets that egress
    /// drops are skipped. `None`: nothing to send now.
    ///
    /// Hand the packet back with [`recycle`](Self::recycle) to have its buffer
    /// used again.
    pub fn dequeue(&mut self, port: Port, now: u64) -> Option<Packet> {
        unimplemented!("{port} {now}")
    }

    /// Gives a packet's buffer back.
    pub fn recycle(&mut self, packet: Packet) {
        let _ = packet;
    }

    /// Moves to `ports` those that got a packet since the last call, each
    /// once, in the order they did.
    pub fn take_ready(&mut self, ports: &mut Vec<Port>) {
        ports.clear();
    }

    /// Whether the port has packets queued.
    pub fn has_queued(&self, port: Port) -> bool {
        (0..self.config.queues).any(|queue| self.queue_depth(port, queue) > 0)
    }

    /// Packets in a queue.
    pub fn queue_depth(&self, port: Port, queue: u8) -> usize {
        let _ = (port, queue);
        0
    }

    /// Sets how many packets the port's queues hold: one of them, or each.
    pub fn set_queue_depth(&mut self, port: Port, queue: Option<u8>, packets: usize) {
        unimplemented!("{port} {queue:?} {packets}")
    }

    /// Drops everything the port has queued and says how many packets it was
    /// (the port went down).
    pub fn flush(&mut self, port: Port) -> usize {
        let _ = port;
        0
    }

    /// Counts of what happened since the switch was built.
    pub fn stats(&self) -> SwitchStats {
        SwitchStats::default()
    }
}

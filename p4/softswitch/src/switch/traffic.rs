//! The packet's way in: parser, ingress, replication, queues.

use super::access::Access;
use super::lane::Lane;
use super::queueing::Queueing;
use crate::control::CloneSession;
use crate::exec::Run;
use crate::exec::packet::{Boxed, Inner, Requests};
use crate::ids::Port;
use crate::program::Program;
use crate::program::code::{Slot, ones};
use crate::trace::{self, Event};

/// Resubmitted or recirculated packets that may wait at a time, and passes
/// through ingress that one packet may cause at a time.
pub(super) const LOOP_LIMIT: usize = 1024;

/// How a packet comes into being, as `standard_metadata.instance_type` says.
pub(super) mod instance {
    pub(in crate::switch) const NORMAL: u64 = 0;
    pub(in crate::switch) const INGRESS_CLONE: u64 = 1;
    pub(in crate::switch) const EGRESS_CLONE: u64 = 2;
    pub(in crate::switch) const RECIRCULATED: u64 = 4;
    pub(in crate::switch) const REPLICA: u64 = 5;
    pub(in crate::switch) const RESUBMITTED: u64 = 6;
}

/// What a packet brings into ingress besides its bytes.
pub(super) struct Entry {
    /// `None`: as the kept words say, or 0.
    pub(super) port: Option<Port>,
    pub(super) instance: u64,
    /// Words kept from its last pass.
    pub(super) kept: Vec<(Slot, u64)>,
}

pub(super) fn at(slot: Slot) -> usize {
    usize::from(slot)
}

/// One lane at work on a switch: what moves packets through it. Its functions are the
/// [`Switch`](super::Switch)'s of the same names.
///
/// Who has the switch alone works with the switch's own lane; several threads at a time each
/// work with a lane of their own, on the same tables, registers and queues.
pub struct Work<'a> {
    pub(super) program: &'a Program,
    /// `None` only while copies are made, which do not need it.
    pub(super) state: Option<Access<'a>>,
    pub(super) queues: Queueing<'a>,
    pub(super) lane: &'a mut Lane,
    pub(super) drop_port: u64,
}

impl Work<'_> {
    /// See [`Switch::ingress`](super::Switch::ingress).
    pub fn ingress(&mut self, port: Port, packet: &[u8], now: u64) {
        self.lane.ledger.stats.received += 1;
        let mut inner = self.lane.packet();
        inner.receive(packet);
        if let Some(tracer) = &mut self.lane.machine.tracer {
            inner.number = tracer.arrival();
        }
        self.note(|| Event::Received {
            port,
            length: packet.len(),
            bytes: trace::hex(packet),
        });
        let entry = Entry {
            port: Some(port),
            instance: instance::NORMAL,
            kept: Vec::new(),
        };
        self.pass(inner, entry, now);
        self.run_again(now);
        self.end_of_trace();
    }

    /// Runs what was recirculated. A program that recirculates for ever does
    /// so through its queues, not in here.
    pub(super) fn run_again(&mut self, now: u64) {
        while let Some((packet, entry)) = self.lane.again.pop_front() {
            self.pass(packet, entry, now);
        }
    }

    /// Parser, ingress, and what ingress asked for. Resubmits in place.
    fn pass(&mut self, packet: Boxed, mut entry: Entry, now: u64) {
        self.pass_as(packet, &mut entry, now);
        self.forget(entry.kept);
    }

    fn pass_as(&mut self, mut packet: Boxed, entry: &mut Entry, now: u64) {
        for _ in 0..LOOP_LIMIT {
            let requests = self.ingress_once(&mut packet, entry, now);
            if requests.abort {
                self.note(|| Event::Drop {
                    reason: "an assertion failed or a loop did not end",
                });
                return self.lane.put_back(packet);
            }
            if let Some((session, list)) = requests.clone {
                self.clone_ingress(&packet, entry, (session, list), now);
            }
            match requests.resubmit {
                None => return self.admit(packet, now),
                Some(list) => {
                    self.note(|| Event::Resubmit);
                    let kept = self.keep(list);
                    entry.port = None;
                    entry.instance = instance::RESUBMITTED;
                    let before = std::mem::replace(&mut entry.kept, kept);
                    self.forget(before);
                    let len = packet.len;
                    let ingress_len = packet.ingress_len;
                    packet.arrived(len);
                    packet.ingress_len = ingress_len;
                }
            }
        }
        self.lane.ledger.stats.loop_drops += 1;
        self.note(|| Event::Drop {
            reason: "resubmitted too often",
        });
        self.lane.put_back(packet);
    }

    fn ingress_once(&mut self, packet: &mut Inner, entry: &Entry, now: u64) -> Requests {
        let program = self.program;
        let mut requests = Requests::default();
        self.claim_frame();
        let Some(state) = self.state.as_mut() else {
            return requests;
        };
        let standard = &program.standard;
        self.lane.machine.clear(program);
        let frame = &mut self.lane.machine.frame;
        if let Some(port) = entry.port {
            frame[at(standard.ingress_port)] = port.into();
            if let Some(slot) = standard.ingress_timestamp {
                frame[at(slot)] = (now / 1000) & ones(48);
            }
        }
        for &(slot, word) in &entry.kept {
            frame[at(slot)] = word;
        }
        frame[at(standard.packet_length)] = packet.length & ones(32);
        frame[at(standard.instance_type)] = entry.instance;
        let mut run = Run {
            program,
            state: state.again(),
            machine: &mut self.lane.machine,
            ledger: &mut self.lane.ledger,
            packet,
            requests: &mut requests,
            now,
            drop_port: self.drop_port,
        };
        run.parse();
        if !run.requests.abort {
            run.run(program.parts.ingress);
        }
        if let Some(digest) = run.requests.digest.filter(|_| !run.requests.abort) {
            run.send_digest(digest);
        }
        requests
    }

    /// After ingress: multicast, drop or unicast.
    fn admit(&mut self, packet: Boxed, now: u64) {
        let program = self.program;
        let standard = &program.standard;
        let group = standard
            .mcast_grp
            .map_or(0, |slot| self.lane.machine.frame[at(slot)]);
        if group != 0 {
            self.lane.machine.frame[at(standard.instance_type)] = instance::REPLICA;
            // Out of the way while the replicas are made, which do not need it.
            let state = self.state.take();
            let groups = state.as_ref().map(|s| &s.multicast);
            let replicas = groups.and_then(|g| g.get(&(group as u32)));
            self.note(|| Event::Multicast {
                group,
                replicas: replicas.map_or(0, |r| r.len()),
            });
            if let Some(replicas) = replicas {
                self.replicate(&packet, replicas, None, now);
            }
            self.state = state;
            return self.lane.put_back(packet);
        }
        let port = self.lane.machine.frame[at(standard.egress_spec)];
        if port == self.drop_port {
            let from = self.lane.machine.frame[at(standard.ingress_port)];
            self.lane.ledger.drop_in_ingress((from & ones(9)) as Port);
            self.note(|| Event::Drop {
                reason: "egress_spec is the drop port at the end of ingress",
            });
            return self.lane.put_back(packet);
        }
        self.lane.machine.frame[at(standard.instance_type)] = instance::NORMAL;
        self.enqueue(port as Port, packet, None, now);
    }

    /// Puts a packet, with the frame's words, into a queue.
    pub(super) fn enqueue(
        &mut self,
        port: Port,
        mut packet: Boxed,
        session: Option<&CloneSession>,
        now: u64,
    ) {
        let standard = &self.program.standard;
        self.claim_frame();
        let machine = &mut self.lane.machine;
        let priority = match session {
            Some(session) => session.class_of_service.into(),
            None => standard.priority.map_or(0, |slot| machine.frame[at(slot)]),
        };
        if priority >= u64::from(self.queues.count()) {
            self.lane.ledger.stats.priority_drops += 1;
            self.note(|| Event::Drop {
                reason: "the priority names a queue that is not there",
            });
            return self.lane.put_back(packet);
        }
        let queue = priority as u8;
        packet.queue = queue;
        packet.queued_at = now / 1000;
        packet.queued_ns = now;
        let mut is_resident = false;
        let mut before = 0;
        let program = self.program;
        let offered = self.queues.offer(port, packet, |packet, depth, mine| {
            if let Some([(time, time_bits), (enqueued, depth_bits), ..]) = standard.queueing {
                machine.frame[at(time)] = packet.queued_at & ones(time_bits);
                machine.frame[at(enqueued)] = depth as u64 & ones(depth_bits);
            }
            // Who else takes it out does not have this frame.
            if !mine {
                machine.save(program, &mut packet.words);
            }
            packet.is_resident = mine;
            (is_resident, before) = (mine, depth);
        });
        if let Err(packet) = offered {
            self.lane.ledger.stats.queue_drops += 1;
            self.note(|| Event::Drop {
                reason: "the queue is full, or there is no such port",
            });
            return self.lane.put_back(packet);
        }
        let depth = before;
        self.note(|| Event::Enqueue { port, queue, depth });
        self.lane.resident = is_resident.then_some((port, queue));
    }
}

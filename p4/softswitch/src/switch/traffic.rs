//! The packet's way: ingress, replication, queues, egress.

use std::ops::Range;

use crate::control::{CloneSession, Replica};
use crate::exec::Run;
use crate::exec::bits::{self, PADDING};
use crate::exec::packet::{Boxed, Inner, Requests};
use crate::ids::Port;
use crate::program::Program;
use crate::program::code::{Slot, ones};
use crate::switch::queue::Popped;
use crate::switch::{Packet, Switch};
use crate::trace::{self, Event};

/// Resubmitted or recirculated packets that may wait at a time, and passes
/// through ingress that one packet may cause at a time.
const LOOP_LIMIT: usize = 1024;

/// How a packet comes into being, as `standard_metadata.instance_type` says.
mod instance {
    pub(super) const NORMAL: u64 = 0;
    pub(super) const INGRESS_CLONE: u64 = 1;
    pub(super) const EGRESS_CLONE: u64 = 2;
    pub(super) const RECIRCULATED: u64 = 4;
    pub(super) const REPLICA: u64 = 5;
    pub(super) const RESUBMITTED: u64 = 6;
}

/// What a packet brings into ingress besides its bytes.
pub(super) struct Entry {
    /// `None`: as the kept words say, or 0.
    port: Option<Port>,
    instance: u64,
    /// Words kept from its last pass.
    kept: Vec<(Slot, u64)>,
}

fn at(slot: Slot) -> usize {
    usize::from(slot)
}

impl Switch {
    /// Takes a packet in on `port` at `now` ns: parser, ingress, replication,
    /// queues. A packet-out is a packet that comes in on the CPU port, with
    /// its controller header in front.
    pub fn ingress(&mut self, port: Port, packet: &[u8], now: u64) {
        self.stats.received += 1;
        let Some(program) = self.program.take() else {
            self.stats.no_program_drops += 1;
            return;
        };
        let mut inner = self.pool.pop().unwrap_or_default();
        inner.receive(packet);
        if let Some(tracer) = &mut self.machine.tracer {
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
        self.pass(&program, inner, entry, now);
        self.run_again(&program, now);
        self.program = Some(program);
        self.end_of_trace();
    }

    /// Runs what was recirculated. A program that recirculates for ever does
    /// so through its queues, not in here.
    fn run_again(&mut self, program: &Program, now: u64) {
        while let Some((packet, entry)) = self.again.pop_front() {
            self.pass(program, packet, entry, now);
        }
    }

    /// Parser, ingress, and what ingress asked for. Resubmits in place.
    fn pass(&mut self, program: &Program, packet: Boxed, mut entry: Entry, now: u64) {
        self.pass_as(program, packet, &mut entry, now);
        self.forget(entry.kept);
    }

    fn pass_as(&mut self, program: &Program, mut packet: Boxed, entry: &mut Entry, now: u64) {
        for _ in 0..LOOP_LIMIT {
            let requests = self.ingress_once(program, &mut packet, entry, now);
            if requests.abort {
                self.note(|| Event::Drop {
                    reason: "an assertion failed or a loop did not end",
                });
                return self.put_back(packet);
            }
            if let Some((session, list)) = requests.clone {
                self.clone_ingress(program, &packet, entry, (session, list), now);
            }
            match requests.resubmit {
                None => return self.admit(program, packet, now),
                Some(list) => {
                    self.note(|| Event::Resubmit);
                    let kept = self.keep(program, list);
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
        self.stats.loop_drops += 1;
        self.note(|| Event::Drop {
            reason: "resubmitted too often",
        });
        self.put_back(packet);
    }

    /// Words of a field list, to be put back later. Hand the list back with
    /// [`forget`](Self::forget).
    fn keep(&mut self, program: &Program, list: u16) -> Vec<(Slot, u64)> {
        let fields = &program.parts.field_lists[usize::from(list)];
        if fields.is_empty() {
            return Vec::new();
        }
        let mut kept = self.kept.pop().unwrap_or_default();
        kept.clear();
        let slots = fields
            .iter()
            .flat_map(|&(slot, n)| slot..slot + Slot::from(n));
        kept.extend(slots.map(|slot| (slot, self.machine.frame[at(slot)])));
        kept
    }

    fn forget(&mut self, kept: Vec<(Slot, u64)>) {
        if kept.capacity() > 0 && self.kept.len() < LOOP_LIMIT {
            self.kept.push(kept);
        }
    }

    /// Some words of the frame, to be put back with
    /// [`restore`](Self::restore).
    fn save(&mut self, words: Range<usize>) -> Vec<u64> {
        let mut saved = std::mem::take(&mut self.saved);
        saved.clear();
        saved.extend_from_slice(&self.machine.frame[words]);
        saved
    }

    fn restore(&mut self, program: &Program, words: Range<usize>, saved: Vec<u64>) {
        self.claim_frame(program);
        self.machine.frame[words].copy_from_slice(&saved);
        self.saved = saved;
    }

    /// To be called before the packet's words in the frame change: gives them
    /// to the queued packet they belong to, if there is one.
    fn claim_frame(&mut self, program: &Program) {
        let Some((port, queue)) = self.resident.take() else {
            return;
        };
        // It is the last one that was queued anywhere, unless it is gone.
        if let Some(packet) = self.queues.last_mut(port, queue) {
            self.machine.save(program, &mut packet.words);
        }
    }

    /// Puts the words of a packet that was just taken out of a queue of the
    /// port into the frame.
    fn load_words(&mut self, program: &Program, port: Port, packet: &Inner) {
        let is_last = self.queues.len(port, packet.queue) == 0;
        if is_last && self.resident == Some((port, packet.queue)) {
            self.resident = None;
            return;
        }
        self.claim_frame(program);
        self.machine.load(program, &packet.words);
    }

    fn ingress_once(
        &mut self,
        program: &Program,
        packet: &mut Inner,
        entry: &Entry,
        now: u64,
    ) -> Requests {
        let mut requests = Requests::default();
        self.claim_frame(program);
        let Some(state) = self.state.as_deref_mut() else {
            return requests;
        };
        let standard = &program.standard;
        self.machine.clear(program);
        let frame = &mut self.machine.frame;
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
            state,
            machine: &mut self.machine,
            packet,
            requests: &mut requests,
            now,
            drop_port: self.config.drop_port.into(),
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
    fn admit(&mut self, program: &Program, packet: Boxed, now: u64) {
        let standard = &program.standard;
        let group = standard
            .mcast_grp
            .map_or(0, |slot| self.machine.frame[at(slot)]);
        if group != 0 {
            self.machine.frame[at(standard.instance_type)] = instance::REPLICA;
            // Out of the way while the replicas are made, which do not need it.
            let state = self.state.take();
            let groups = state.as_ref().map(|s| &s.multicast);
            let replicas = groups.and_then(|g| g.get(&(group as u32)));
            self.note(|| Event::Multicast {
                group,
                replicas: replicas.map_or(0, |r| r.len()),
            });
            if let Some(replicas) = replicas {
                self.replicate(program, &packet, replicas, None, now);
            }
            self.state = state;
            return self.put_back(packet);
        }
        let port = self.machine.frame[at(standard.egress_spec)];
        if port == u64::from(self.config.drop_port) {
            self.stats.ingress_drops += 1;
            self.note(|| Event::Drop {
                reason: "egress_spec is the drop port at the end of ingress",
            });
            return self.put_back(packet);
        }
        self.machine.frame[at(standard.instance_type)] = instance::NORMAL;
        self.enqueue(program, port as Port, packet, None, now);
    }

    /// Copies the packet, as the frame has it, to some ports.
    fn replicate(
        &mut self,
        program: &Program,
        packet: &Inner,
        replicas: &[Replica],
        session: Option<&CloneSession>,
        now: u64,
    ) {
        for replica in replicas {
            self.claim_frame(program);
            if let Some(slot) = program.standard.egress_rid {
                self.machine.frame[at(slot)] = replica.instance.into();
            }
            let mut copy = self.pool.pop().unwrap_or_default();
            copy.copy(packet);
            if let Some(session) = session.filter(|s| s.packet_length > 0) {
                copy.truncate(session.packet_length.into());
            }
            self.enqueue(program, replica.port, copy, session, now);
        }
    }

    /// The packet as it came in, parsed again, with fresh metadata.
    fn clone_ingress(
        &mut self,
        program: &Program,
        packet: &Inner,
        entry: &Entry,
        (session, list): (u32, u16),
        now: u64,
    ) {
        self.note_clone("ingress", session);
        if !self.has_session(session) {
            return;
        }
        let words = 0..program.packet_words;
        let saved = self.save(words.clone());
        let kept = self.keep(program, list);
        let mut copy = self.pool.pop().unwrap_or_default();
        copy.copy(packet);
        copy.length = copy.len as u64;
        self.machine.frame[..program.packet_words].fill(0);
        // Parsers may branch on the port, so it is there while parsing.
        let port = entry.port.map_or(0, u64::from);
        self.machine.frame[at(program.standard.ingress_port)] = port;
        let mut requests = Requests::default();
        if let Some(state) = self.state.as_deref_mut() {
            let mut run = Run {
                program,
                state,
                machine: &mut self.machine,
                packet: &mut copy,
                requests: &mut requests,
                now,
                drop_port: self.config.drop_port.into(),
            };
            run.parse();
        }
        self.fresh_metadata(program, &kept, instance::INGRESS_CLONE);
        self.replicate_session(program, &copy, session, now);
        self.put_back(copy);
        self.forget(kept);
        self.restore(program, words, saved);
    }

    fn fresh_metadata(&mut self, program: &Program, kept: &[(Slot, u64)], instance: u64) {
        self.claim_frame(program);
        self.machine.frame[program.metadata.clone()].fill(0);
        for &(slot, word) in kept {
            self.machine.frame[at(slot)] = word;
        }
        self.machine.frame[at(program.standard.instance_type)] = instance;
    }

    fn has_session(&self, id: u32) -> bool {
        self.state
            .as_ref()
            .is_some_and(|s| s.clones.contains_key(&id))
    }

    /// Copies the packet, as the frame has it, to a clone session's ports.
    fn replicate_session(&mut self, program: &Program, packet: &Inner, id: u32, now: u64) {
        // Out of the way while the copies are made, which do not need it.
        let state = self.state.take();
        if let Some(session) = state.as_ref().and_then(|s| s.clones.get(&id)) {
            self.replicate(program, packet, &session.replicas, Some(session), now);
        }
        self.state = state;
    }

    /// Puts a packet, with the frame's words, into a queue.
    fn enqueue(
        &mut self,
        program: &Program,
        port: Port,
        mut packet: Boxed,
        session: Option<&CloneSession>,
        now: u64,
    ) {
        let standard = &program.standard;
        self.claim_frame(program);
        let frame = &mut self.machine.frame;
        let priority = match session {
            Some(session) => session.class_of_service.into(),
            None => standard.priority.map_or(0, |slot| frame[at(slot)]),
        };
        if priority >= u64::from(self.queues.count()) {
            self.stats.priority_drops += 1;
            self.note(|| Event::Drop {
                reason: "the priority names a queue that is not there",
            });
            return self.put_back(packet);
        }
        packet.queue = priority as u8;
        packet.queued_at = now / 1000;
        packet.queued_ns = now;
        if self.queues.is_full(port, packet.queue) {
            self.stats.queue_drops += 1;
            self.note(|| Event::Drop {
                reason: "the queue is full, or there is no such port",
            });
            return self.put_back(packet);
        }
        if let Some([(time, time_bits), (depth, depth_bits), ..]) = standard.queueing {
            frame[at(time)] = packet.queued_at & ones(time_bits);
            frame[at(depth)] = self.queues.len(port, packet.queue) as u64 & ones(depth_bits);
        }
        let (queue, depth) = (packet.queue, self.queues.len(port, packet.queue));
        self.note(|| Event::Enqueue { port, queue, depth });
        self.queues.push(port, packet);
        self.resident = Some((port, queue));
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
        let mut packet = self.next_out(port, now)?;
        let mut bytes = std::mem::take(&mut packet.buf);
        bytes.truncate(packet.out_len());
        packet.buf = self.buffers.pop().unwrap_or_default();
        self.put_back(packet);
        Some(Packet { port, bytes })
    }

    /// [`dequeue`](Self::dequeue), with the packet's bytes lent to `take`: no
    /// buffer changes hands, and there is nothing to recycle.
    pub fn dequeue_with<R>(
        &mut self,
        port: Port,
        now: u64,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let packet = self.next_out(port, now)?;
        let result = take(&packet.buf[..packet.out_len()]);
        self.put_back(packet);
        Some(result)
    }

    /// [`dequeue`](Self::dequeue), with the packet's bytes appended to `out`:
    /// how many they are.
    pub fn dequeue_into(&mut self, port: Port, now: u64, out: &mut Vec<u8>) -> Option<usize> {
        self.dequeue_with(port, now, |bytes| {
            out.extend_from_slice(bytes);
            bytes.len()
        })
    }

    /// The next packet that leaves by the port, deparsed.
    fn next_out(&mut self, port: Port, now: u64) -> Option<Boxed> {
        let program = self.program.take()?;
        let mut sent = None;
        // What recirculation adds to this very port waits for the next call.
        for _ in 0..LOOP_LIMIT {
            let Some(Popped { packet, start }) = self.queues.pop(port, now) else {
                break;
            };
            let queue = packet.queue;
            if let Some(tracer) = &mut self.machine.tracer {
                tracer.current = packet.number;
            }
            self.note(|| Event::Dequeue {
                port,
                queue,
                waited: now.saturating_sub(packet.queued_ns),
            });
            sent = self.egress(&program, port, packet, now);
            if let Some(packet) = &sent {
                let bytes = &packet.buf[..packet.out_len()];
                self.note(|| Event::Sent {
                    port,
                    length: bytes.len(),
                    bytes: trace::hex(bytes),
                });
            }
            // What circulates goes on in the same part.
            if self.again.is_empty() {
                self.end_of_trace();
            }
            if let Some(packet) = &sent {
                self.queues.charge(port, queue, start, packet.out_len());
                break;
            }
        }
        self.run_again(&program, now);
        self.end_of_trace();
        self.program = Some(program);
        if sent.is_some() {
            self.stats.sent += 1;
        }
        sent
    }

    fn egress(
        &mut self,
        program: &Program,
        port: Port,
        mut packet: Boxed,
        now: u64,
    ) -> Option<Boxed> {
        let requests = self.egress_once(program, port, &mut packet, now);
        if requests.abort {
            self.note(|| Event::Drop {
                reason: "an assertion failed or a loop did not end",
            });
            self.put_back(packet);
            return None;
        }
        if let Some((session, list)) = requests.clone {
            self.clone_egress(program, &packet, session, list, now);
        }
        let drop_port = u64::from(self.config.drop_port);
        if self.machine.frame[at(program.standard.egress_spec)] == drop_port {
            self.stats.egress_drops += 1;
            self.note(|| Event::Drop {
                reason: "egress_spec is the drop port at the end of egress",
            });
            self.put_back(packet);
            return None;
        }
        self.deparse(program, &mut packet, now);
        if let Some(list) = requests.recirculate {
            self.note(|| Event::Recirculate);
            self.recirculate(packet, list, program);
            return None;
        }
        Some(packet)
    }

    fn egress_once(
        &mut self,
        program: &Program,
        port: Port,
        packet: &mut Boxed,
        now: u64,
    ) -> Requests {
        let mut requests = Requests::default();
        self.load_words(program, port, packet);
        let Some(state) = self.state.as_deref_mut() else {
            return requests;
        };
        let standard = &program.standard;
        let frame = &mut self.machine.frame;
        let time = now / 1000;
        if let Some(slot) = standard.egress_timestamp {
            frame[at(slot)] = time & ones(48);
        }
        if let Some([_, _, (delta, delta_bits), (depth, depth_bits)]) = standard.queueing {
            frame[at(delta)] = time.wrapping_sub(packet.queued_at) & ones(delta_bits);
            frame[at(depth)] = self.queues.len(port, packet.queue) as u64 & ones(depth_bits);
            if let Some(slot) = standard.qid {
                frame[at(slot)] = packet.queue.into();
            }
        }
        frame[at(standard.egress_port)] = port.into();
        // Anything but the drop port, so that egress has to ask for a drop.
        frame[at(standard.egress_spec)] = (u64::from(self.config.drop_port) + 1) & ones(9);
        frame[at(standard.packet_length)] = packet.length & ones(32);
        let mut run = Run {
            program,
            state,
            machine: &mut self.machine,
            packet,
            requests: &mut requests,
            now,
            drop_port: self.config.drop_port.into(),
        };
        run.run(program.parts.egress);
        requests
    }

    /// The packet as it is at the end of egress, with fresh metadata.
    fn clone_egress(&mut self, program: &Program, packet: &Inner, id: u32, list: u16, now: u64) {
        self.note_clone("egress", id);
        if !self.has_session(id) {
            return;
        }
        let words = program.metadata.clone();
        let saved = self.save(words.clone());
        let kept = self.keep(program, list);
        self.fresh_metadata(program, &kept, instance::EGRESS_CLONE);
        self.replicate_session(program, packet, id, now);
        self.forget(kept);
        self.restore(program, words, saved);
    }

    /// Updates checksums and puts the valid headers in front of the payload.
    fn deparse(&mut self, program: &Program, packet: &mut Inner, now: u64) {
        let mut requests = Requests::default();
        if let Some(state) = self.state.as_deref_mut() {
            let mut run = Run {
                program,
                state,
                machine: &mut self.machine,
                packet,
                requests: &mut requests,
                now,
                drop_port: self.config.drop_port.into(),
            };
            run.run(program.parts.update);
            run.run(program.parts.deparse);
        }
        let frame = &self.machine.frame;
        // Flags are numbered like headers: what is not there costs a look at its flag.
        let order = program.parts.deparse_order.iter();
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.clear();
        leaving.extend(order.filter(|&&h| frame[at(h)] != 0));
        let valid = leaving.iter().map(|&h| &program.headers[usize::from(h)]);
        let headers: usize = valid.clone().map(|h| bits::header_bytes(frame, h)).sum();
        let emit = |out: &mut [u8]| {
            let all = valid.fold(0, |start, h| start + bits::emit(frame, h, out, start));
            debug_assert_eq!(all, headers);
        };
        if headers == packet.cursor {
            // The headers take as much room as those that came in.
            let after = headers..headers + bits::OVERRUN;
            let mut saved = [0; bits::OVERRUN];
            saved.copy_from_slice(&packet.buf[after.clone()]);
            emit(&mut packet.buf);
            packet.buf[after].copy_from_slice(&saved);
            self.leaving = leaving;
            return;
        }
        let payload = packet.len - packet.cursor;
        let mut buf = self.buffers.pop().unwrap_or_default();
        // Varbit fields are written into what is there, bit by bit.
        buf.clear();
        buf.resize(headers + payload + PADDING, 0);
        emit(&mut buf);
        buf[headers..headers + payload].copy_from_slice(packet.payload());
        let old = std::mem::replace(&mut packet.buf, buf);
        if self.buffers.len() < 256 {
            self.buffers.push(old);
        }
        packet.len = headers + payload;
        packet.cursor = headers;
        self.leaving = leaving;
    }

    fn recirculate(&mut self, mut packet: Boxed, list: u16, program: &Program) {
        if self.again.len() >= LOOP_LIMIT {
            self.stats.loop_drops += 1;
            return self.put_back(packet);
        }
        let kept = self.keep(program, list);
        let len = packet.len;
        packet.arrived(len);
        let entry = Entry {
            port: None,
            instance: instance::RECIRCULATED,
            kept,
        };
        self.again.push_back((packet, entry));
    }
}

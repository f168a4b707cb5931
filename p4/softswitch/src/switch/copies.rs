//! Copies of packets, and the words that a frame holds for them.

use std::ops::Range;

use super::traffic::{Entry, LOOP_LIMIT, Work, at, instance};
use crate::control::{CloneSession, Replica};
use crate::exec::Run;
use crate::exec::packet::{Inner, Requests};
use crate::program::code::Slot;

impl Work<'_> {
    /// Words of a field list, to be put back later. Hand the list back with
    /// [`forget`](Self::forget).
    pub(super) fn keep(&mut self, list: u16) -> Vec<(Slot, u64)> {
        let program = self.program;
        let fields = &program.parts.field_lists[usize::from(list)];
        if fields.is_empty() {
            return Vec::new();
        }
        let mut kept = self.lane.kept.pop().unwrap_or_default();
        kept.clear();
        let slots = fields
            .iter()
            .flat_map(|&(slot, n)| slot..slot + Slot::from(n));
        kept.extend(slots.map(|slot| (slot, self.lane.machine.frame[at(slot)])));
        kept
    }

    pub(super) fn forget(&mut self, kept: Vec<(Slot, u64)>) {
        if kept.capacity() > 0 && self.lane.kept.len() < LOOP_LIMIT {
            self.lane.kept.push(kept);
        }
    }

    /// Some words of the frame, to be put back with
    /// [`restore`](Self::restore).
    pub(super) fn save(&mut self, words: Range<usize>) -> Vec<u64> {
        let mut saved = std::mem::take(&mut self.lane.saved);
        saved.clear();
        saved.extend_from_slice(&self.lane.machine.frame[words]);
        saved
    }

    pub(super) fn restore(&mut self, words: Range<usize>, saved: Vec<u64>) {
        self.claim_frame();
        self.lane.machine.frame[words].copy_from_slice(&saved);
        self.lane.saved = saved;
    }

    /// To be called before the packet's words in the frame change: gives them
    /// to the queued packet they belong to, if there is one.
    pub(super) fn claim_frame(&mut self) {
        let Some((port, queue)) = self.lane.resident.take() else {
            return;
        };
        let (machine, program) = (&self.lane.machine, self.program);
        self.queues.resident(port, queue, |packet| {
            machine.save(program, &mut packet.words);
            packet.is_resident = false;
        });
    }

    /// Puts the words of a packet that was just taken out of a queue into the frame.
    pub(super) fn load_words(&mut self, packet: &mut Inner) {
        if packet.is_resident {
            packet.is_resident = false;
            self.lane.resident = None;
            return;
        }
        self.claim_frame();
        self.lane.machine.load(self.program, &packet.words);
    }

    /// Copies the packet, as the frame has it, to some ports.
    pub(super) fn replicate(
        &mut self,
        packet: &Inner,
        replicas: &[Replica],
        session: Option<&CloneSession>,
        now: u64,
    ) {
        let program = self.program;
        for replica in replicas {
            self.claim_frame();
            if let Some(slot) = program.standard.egress_rid {
                self.lane.machine.frame[at(slot)] = replica.instance.into();
            }
            let mut copy = self.lane.packet();
            copy.copy(packet);
            if let Some(session) = session.filter(|s| s.packet_length > 0) {
                copy.truncate(session.packet_length.into());
            }
            self.enqueue(replica.port, copy, session, now);
        }
    }

    /// The packet as it came in, parsed again, with fresh metadata.
    pub(super) fn clone_ingress(
        &mut self,
        packet: &Inner,
        entry: &Entry,
        (session, list): (u32, u16),
        now: u64,
    ) {
        let program = self.program;
        self.note_clone("ingress", session);
        if !self.has_session(session) {
            return;
        }
        let words = 0..program.packet_words;
        let saved = self.save(words.clone());
        let kept = self.keep(list);
        let mut copy = self.lane.packet();
        copy.copy(packet);
        copy.length = copy.len as u64;
        self.lane.machine.frame[..program.packet_words].fill(0);
        // Parsers may branch on the port, so it is there while parsing.
        let port = entry.port.map_or(0, u64::from);
        self.lane.machine.frame[at(program.standard.ingress_port)] = port;
        let mut requests = Requests::default();
        if let Some(state) = self.state.as_mut() {
            let mut run = Run {
                program,
                state: state.again(),
                machine: &mut self.lane.machine,
                ledger: &mut self.lane.ledger,
                packet: &mut copy,
                requests: &mut requests,
                now,
                drop_port: self.drop_port,
            };
            run.parse();
        }
        self.fresh_metadata(&kept, instance::INGRESS_CLONE);
        self.replicate_session(&copy, session, now);
        self.lane.put_back(copy);
        self.forget(kept);
        self.restore(words, saved);
    }

    /// The packet as it is at the end of egress, with fresh metadata.
    pub(super) fn clone_egress(&mut self, packet: &Inner, id: u32, list: u16, now: u64) {
        let program = self.program;
        self.note_clone("egress", id);
        if !self.has_session(id) {
            return;
        }
        let words = program.metadata.clone();
        let saved = self.save(words.clone());
        let kept = self.keep(list);
        self.fresh_metadata(&kept, instance::EGRESS_CLONE);
        self.replicate_session(packet, id, now);
        self.forget(kept);
        self.restore(words, saved);
    }

    fn fresh_metadata(&mut self, kept: &[(Slot, u64)], instance: u64) {
        let program = self.program;
        self.claim_frame();
        self.lane.machine.frame[program.metadata.clone()].fill(0);
        for &(slot, word) in kept {
            self.lane.machine.frame[at(slot)] = word;
        }
        self.lane.machine.frame[at(program.standard.instance_type)] = instance;
    }

    fn has_session(&self, id: u32) -> bool {
        self.state
            .as_ref()
            .is_some_and(|s| s.clones.contains_key(&id))
    }

    /// Copies the packet, as the frame has it, to a clone session's ports.
    fn replicate_session(&mut self, packet: &Inner, id: u32, now: u64) {
        // Out of the way while the copies are made, which do not need it.
        let state = self.state.take();
        if let Some(session) = state.as_ref().and_then(|s| s.clones.get(&id)) {
            self.replicate(packet, &session.replicas, Some(session), now);
        }
        self.state = state;
    }
}

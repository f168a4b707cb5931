//! Several threads that move packets through one switch.
//!
//! Each has a lane: frame, packets, buffers, counters, digests, random numbers. A turn of a lane,
//! which is a batch of packets, holds the switch shared; the control plane takes it alone, for
//! one slice of a write or a piece of a read. What packets see:
//!
//! - Tables, groups, sessions, value sets and the program do not change within a lane's turn. So
//!   what is written under one hold of the switch is there for a packet whole or not at all.
//! - Counters are per lane; the control plane reads their sum, and sets it.
//! - Meters have a lock each.
//! - Registers: see [`crate::program`]'s law of registers.
//! - Queues have a lock per port; see [`Queueing`] for who takes packets out.
//! - Random numbers come from a generator per lane, seeded by the switch's seed and the lane's
//!   number.
//!
//! Packets that came in by one port keep their order as long as one lane receives that port.

use parking_lot::{Mutex, MutexGuard};

use super::access::Access;
use super::lane::Lane;
use super::queueing::{Agenda, Queueing};
use super::traffic::Work;
use super::{SharedSwitch, Switch};
use crate::exec::registers::RegisterLocks;
use crate::ids::Port;
use crate::random::Random;

/// A lane of several, and the ports it has to look after.
pub(super) struct Seat {
    pub(super) lane: Lane,
    pub(super) agenda: Agenda,
}

/// Seed of a lane's random numbers.
pub(super) fn seed(seed: u64, number: usize) -> u64 {
    Random::new(seed ^ (number as u64 + 1)).next()
}

impl SharedSwitch {
    /// Makes so many lanes, from 0 on, in place of those there are.
    pub fn set_lanes(&self, count: usize) {
        self.lock().set_lanes(count);
    }

    /// A turn for a lane, or (`None`) for who has the switch alone. `run` gets nothing to work
    /// with while the switch has no program. Turns of different lanes happen at the same time;
    /// give each lane to one thread.
    pub fn turn<R>(&self, lane: Option<usize>, run: impl FnOnce(Option<&mut Work<'_>>) -> R) -> R {
        let Some(number) = lane else {
            return run(self.lock().work().as_mut());
        };
        let switch = self.share();
        let mut seat = switch.seat(number);
        let mut work = seat
            .as_deref_mut()
            .and_then(|seat| switch.beside(seat, number));
        let result = run(work.as_mut());
        if let Some(work) = &mut work {
            // Until its next turn others may have the queues alone.
            work.claim_frame();
        }
        result
    }
}

impl Switch {
    fn set_lanes(&mut self, count: usize) {
        let seat = |number: usize| {
            let mut lane = Lane::new(self.config.digest_limit);
            if let Some(program) = &self.program {
                lane.begin(program, seed(self.config.seed, number));
            }
            Mutex::new(Seat {
                lane,
                agenda: Agenda::default(),
            })
        };
        let before = std::mem::replace(&mut self.lanes, (0..count).map(seat).collect());
        for seat in before {
            self.lane.ledger.absorb(seat.into_inner().lane.ledger);
        }
        self.queues.recall();
        self.lock_registers();
    }

    /// Makes the locks that the program's registers need, if there are lanes to share them.
    pub(super) fn lock_registers(&mut self) {
        if let (Some(program), Some(state), false) =
            (&self.program, &mut self.state, self.lanes.is_empty())
        {
            state.locks = RegisterLocks::new(&program.parts.law);
        }
    }

    fn seat(&self, number: usize) -> Option<MutexGuard<'_, Seat>> {
        self.lanes.get(number).map(Mutex::lock)
    }

    /// What moves packets through the switch by one of its lanes.
    fn beside<'a>(&'a self, seat: &'a mut Seat, number: usize) -> Option<Work<'a>> {
        let Seat { lane, agenda } = seat;
        Some(Work {
            program: self.program.as_deref()?,
            state: self.state.as_deref().map(Access::Beside),
            queues: Queueing::Beside(&self.queues, agenda, number as u8 + 1),
            lane,
            drop_port: self.config.drop_port.into(),
        })
    }

    /// Gives a lane what who had the switch alone has left to be done.
    pub(crate) fn hand_over(&mut self, lane: usize) {
        if let Some(mut work) = self.work() {
            work.claim_frame();
        }
        if let Some(to) = self.lanes.get_mut(lane) {
            let agenda = &mut to.get_mut().agenda;
            self.queues.hand_over(agenda, lane as u8 + 1);
        }
    }

    /// Counts packets that there is no program for.
    pub(crate) fn lose(&mut self, packets: u64) {
        let stats = &mut self.lane.ledger.stats;
        stats.received += packets;
        stats.no_program_drops += packets;
    }
}

impl Work<'_> {
    /// See [`Switch::take_ready`].
    pub fn take_ready(&mut self, ports: &mut Vec<Port>) {
        self.queues.take_ready(ports);
    }

    /// See [`Switch::next_due`].
    pub fn next_due(&mut self) -> Option<u64> {
        self.queues.next_due()
    }

    /// See [`Switch::make_due_ready`].
    pub fn make_due_ready(&mut self, now: u64) {
        self.queues.make_due_ready(now);
    }

    /// The lane is done with a port that [`take_ready`](Self::take_ready) named, for now if there
    /// are packets left. To be called for each, once [`dequeue_with`](Self::dequeue_with) has
    /// given nothing more.
    pub fn leave(&mut self, port: Port) {
        self.queues.leave(port);
    }

    /// The lane leaves a port that [`take_ready`](Self::take_ready) named to who has the switch
    /// alone.
    pub fn resign(&mut self, port: Port) {
        self.claim_frame();
        self.queues.resign(port);
    }

    /// See [`Switch::flush`].
    pub fn flush(&mut self, port: Port) {
        while let Some(packet) = self.queues.take(port) {
            self.lane.put_back(packet);
        }
        self.leave(port);
    }

    /// Whether digests wait to be taken.
    pub(crate) fn has_digests(&self) -> bool {
        !self.lane.ledger.digests.is_empty()
    }
}

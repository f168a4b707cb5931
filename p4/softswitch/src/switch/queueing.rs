//! The queues as one lane has them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::port::{Charge, Popped, PortQueues, Queue};
use super::queue::{PORTS, Queues};
use crate::exec::packet::Boxed;
use crate::ids::Port;

/// Ports that a lane has to look after.
#[derive(Default)]
pub(crate) struct Agenda {
    pub(super) ready: Vec<Port>,
    /// Ports that have packets for which it is too early, by when they may leave.
    pub(super) due: BinaryHeap<Reverse<(u64, Port)>>,
    /// What the last packet owes that left, until the next is taken out.
    owed: Option<Charge>,
}

/// The lane number of who has all queues alone.
pub(super) const ALONE: u8 = 0;

/// The queues, for one who has them alone or for one lane of several.
///
/// A port's packets are taken out by one lane at a time, its keeper: the one that found it
/// without a keeper when it put a packet in. It stays the keeper until there is nothing to take.
/// So packets leave in the order in which they were queued, whatever lane queued them.
pub(crate) enum Queueing<'a> {
    /// Nobody else has them.
    Alone(&'a mut Queues),
    /// Other lanes use them as well.
    Beside(&'a Queues, &'a mut Agenda, u8),
}

impl Queueing<'_> {
    /// Queues per port.
    pub(crate) fn count(&self) -> u8 {
        match self {
            Queueing::Alone(queues) => queues.count(),
            Queueing::Beside(queues, ..) => queues.count(),
        }
    }

    #[inline]
    fn with<R>(
        &mut self,
        port: Port,
        run: impl FnOnce(&mut PortQueues, &mut Agenda, u8) -> R,
    ) -> Option<R> {
        match self {
            Queueing::Alone(queues) => {
                let defaults = queues.defaults;
                let slot = queues.ports.get_mut(usize::from(port))?.get_mut();
                let own = slot.get_or_insert_with(|| defaults.port());
                Some(run(own, &mut queues.agenda, ALONE))
            }
            Queueing::Beside(queues, agenda, lane) => {
                let mut slot = queues.ports.get(usize::from(port))?.lock();
                let own = slot.get_or_insert_with(|| queues.defaults.port());
                Some(run(own, agenda, *lane))
            }
        }
    }

    /// Queues a packet, unless the queue is full: then it comes back, and is counted. Before it
    /// is queued `stamp` gets it, how many are there before it, and whether this lane is going to
    /// take it out again.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        port: Port,
        mut packet: Boxed,
        stamp: impl FnOnce(&mut Boxed, usize, bool),
    ) -> Result<(), Boxed> {
        if usize::from(port) >= PORTS {
            return Err(packet);
        }
        let queued = self.with(port, |own, agenda, lane| {
            let Some(depth) = own.room(packet.queue) else {
                return Err(packet);
            };
            if own.keep(lane) {
                agenda.ready.push(port);
            }
            stamp(&mut packet, depth, own.keeper == Some(lane));
            own.push(packet);
            Ok(())
        });
        queued.unwrap_or(Ok(()))
    }

    /// The packet that a queue got last, while it has it, to change. Only for who has the queues
    /// alone or is the port's keeper.
    pub(crate) fn resident(&mut self, port: Port, queue: u8, change: impl FnOnce(&mut Boxed)) {
        self.with(port, |own, _, _| {
            let queue = own.queues.get_mut(usize::from(queue));
            queue.and_then(Queue::resident).map(change);
        });
    }

    /// The next packet that may leave at `now` ns: from the highest queue that has one and whose
    /// rate allows it. `None` with packets left means that it is too early for all of them; the
    /// port is then due at [`Queues::departure`].
    ///
    /// A lane that gets none is not the port's keeper any longer; `claim` gets the packet, if
    /// there is one, whose words are nowhere but with this lane.
    #[inline]
    pub(crate) fn pop(
        &mut self,
        port: Port,
        now: u64,
        claim: impl FnOnce(&mut Boxed),
    ) -> Option<Popped> {
        self.settle(Some(port));
        self.with(port, |own, agenda, lane| {
            if let Some(owed) = agenda.owed.take() {
                own.charge(owed);
            }
            if lane != ALONE && own.keeper != Some(lane) {
                return None;
            }
            let popped = own.pop(now);
            if popped.is_none() {
                if lane != ALONE {
                    own.resident().map(claim);
                    own.keeper = None;
                }
                if let Some(at) = own.schedule() {
                    agenda.due.push(Reverse((at, port)));
                }
            }
            popped
        })?
    }

    /// A packet of that queue has left the port.
    #[inline]
    pub(crate) fn charge(&mut self, port: Port, queue: u8, start: u64, bytes: usize) {
        let charge = Charge {
            port,
            queue,
            start,
            bytes,
        };
        match self {
            Queueing::Alone(_) => {
                self.with(port, |own, _, _| own.charge(charge));
            }
            // The port is mostly the next to be locked anyway.
            Queueing::Beside(_, agenda, _) => agenda.owed = Some(charge),
        }
    }

    /// Charges what is owed, unless it is `but` that owes it.
    fn settle(&mut self, but: Option<Port>) {
        let Queueing::Beside(_, agenda, _) = self else {
            return;
        };
        if let Some(owed) = agenda.owed.take_if(|owed| Some(owed.port) != but) {
            self.with(owed.port, |own, _, _| own.charge(owed));
        }
    }

    /// The keeper leaves a port that may still have packets: it is ready again then.
    pub(crate) fn leave(&mut self, port: Port) {
        self.settle(None);
        self.with(port, |own, agenda, lane| {
            if own.keeper != Some(lane) || lane == ALONE {
                return;
            }
            match own.is_empty() {
                true => own.keeper = None,
                false => agenda.ready.push(port),
            }
        });
    }

    /// The keeper hands the port over to who has all queues alone.
    pub(crate) fn resign(&mut self, port: Port) {
        self.with(port, |own, _, lane| {
            if own.keeper == Some(lane) {
                own.keeper = None;
            }
        });
    }

    /// Takes the port's next packet whatever the rates say.
    pub(crate) fn take(&mut self, port: Port) -> Option<Boxed> {
        self.with(port, |own, _, _| own.take())?
    }

    /// Moves the ports that got a packet since the last call.
    pub(crate) fn take_ready(&mut self, ports: &mut Vec<Port>) {
        match self {
            Queueing::Alone(queues) => queues.take_ready(ports),
            Queueing::Beside(_, agenda, _) => {
                ports.clear();
                std::mem::swap(&mut agenda.ready, ports);
            }
        }
    }

    /// When (ns) the first of the ports on the agenda becomes due.
    pub(crate) fn next_due(&mut self) -> Option<u64> {
        loop {
            let agenda = match self {
                Queueing::Alone(queues) => return queues.next_due(),
                Queueing::Beside(_, agenda, _) => agenda,
            };
            let &Reverse((at, port)) = agenda.due.peek()?;
            if self.with(port, |own, _, _| own.due == Some(at)) == Some(true) {
                return Some(at);
            }
            // Another time was set for it since.
            if let Queueing::Beside(_, agenda, _) = self {
                agenda.due.pop();
            }
        }
    }

    /// Makes the ports on the agenda ready that are due at `now` ns.
    pub(crate) fn make_due_ready(&mut self, now: u64) {
        while self.next_due().is_some_and(|at| at <= now) {
            let popped = match self {
                Queueing::Alone(queues) => return queues.make_due_ready(now),
                Queueing::Beside(_, agenda, _) => agenda.due.pop(),
            };
            let Some(Reverse((_, port))) = popped else {
                return;
            };
            self.with(port, |own, agenda, lane| {
                own.due = None;
                if !own.is_empty() && own.keep(lane) {
                    agenda.ready.push(port);
                }
            });
        }
    }
}

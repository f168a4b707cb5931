//! What a switch tells its tracer.

use super::Switch;
use super::traffic::Work;
use crate::trace::{Event, Tracer};

impl Switch {
    /// Traces from now on, or no longer: the tracer there was.
    pub(crate) fn set_tracer(&mut self, tracer: Option<Box<Tracer>>) -> Option<Box<Tracer>> {
        let before = std::mem::replace(&mut self.lane.machine.tracer, tracer);
        if let (Some(tracer), Some(program)) = (&mut self.lane.machine.tracer, &self.program) {
            tracer.prepare(program);
        }
        before
    }
}

impl Work<'_> {
    /// Tells the tracer, if there is one.
    #[inline]
    pub(super) fn note(&mut self, event: impl FnOnce() -> Event) {
        if let Some(tracer) = &mut self.lane.machine.tracer {
            tracer.push(event());
        }
    }

    /// Tells the tracer of a clone, and of how many there will be.
    #[inline]
    pub(super) fn note_clone(&mut self, from: &'static str, session: u32) {
        if self.lane.machine.tracer.is_none() {
            return;
        }
        let found = self.state.as_ref().and_then(|s| s.clones.get(&session));
        let replicas = found.map_or(0, |s| s.replicas.len());
        self.note(|| Event::Clone {
            from,
            session,
            replicas,
        });
    }

    #[inline]
    pub(super) fn end_of_trace(&mut self) {
        if let Some(tracer) = &mut self.lane.machine.tracer {
            tracer.flush();
        }
    }
}

//! Idle timeouts: which entries nobody hit for as long as they say.
//!
//! Every entry with a timeout waits in a queue ordered by when it could be idle at the earliest.
//! Hits do not touch the queue: an entry that turns out to have been hit since goes back into it
//! with its new time. So the packet path pays one store, and looking costs by what is due, not
//! by how many entries there are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::EntryHandle;
use crate::ids::TableId;
use crate::state::State;
use crate::switch::Switch;
use crate::table::Table;

/// Entry numbers by when they have to be looked at: time (ns), table, entry. An item that is not
/// the one its entry number says it waits by ([`crate::table::Idle::queued`]) is void.
#[derive(Debug, Default)]
pub(crate) struct IdleQueue(BinaryHeap<Reverse<(u64, u32, u32)>>);

impl IdleQueue {
    /// Sees to it that an entry is looked at when its timeout may have run out.
    pub(crate) fn watch(&mut self, number: TableId, table: &mut Table, entry: EntryHandle) {
        let Some(idle) = table.idle.get_mut(entry.0 as usize) else {
            return;
        };
        if idle.timeout == 0 {
            return;
        }
        let at = idle.restarted.saturating_add(idle.timeout);
        if idle.queued == 0 || at < idle.queued {
            idle.queued = at;
            self.0.push(Reverse((at, number.0, entry.0)));
        }
    }
}

impl Switch {
    /// Up to `limit` entries whose idle timeout has run out at `now`. The timer of each starts
    /// anew: it is reported again if it is not hit for another timeout, but not before
    /// `pause` ns.
    pub fn take_idle(&mut self, now: u64, pause: u64, limit: usize) -> Vec<(TableId, EntryHandle)> {
        let mut found = Vec::new();
        let Some(state) = &mut self.state else {
            return found;
        };
        let State { tables, idle, .. } = &mut **state;
        while found.len() < limit {
            match idle.0.peek() {
                Some(Reverse((at, _, _))) if *at <= now => {}
                _ => break,
            }
            let Some(Reverse((at, number, entry))) = idle.0.pop() else {
                break;
            };
            let slot = tables
                .get_mut(number as usize)
                .and_then(|t| t.idle.get_mut(entry as usize));
            let Some(slot) = slot.filter(|slot| slot.queued == at) else {
                continue;
            };
            slot.queued = 0;
            if slot.timeout == 0 {
                continue;
            }
            let mut due = slot
                .last_hit()
                .max(slot.restarted)
                .saturating_add(slot.timeout);
            if due <= now {
                slot.restarted = now;
                due = now.saturating_add(slot.timeout.max(pause));
                found.push((TableId(number), EntryHandle(entry)));
            }
            slot.queued = due;
            idle.0.push(Reverse((due, number, entry)));
        }
        found
    }

    /// When [`take_idle`](Self::take_idle) may have something to report next, ns.
    pub fn next_idle(&self) -> Option<u64> {
        let state = self.state.as_ref()?;
        state.idle.0.peek().map(|Reverse((at, _, _))| *at)
    }
}

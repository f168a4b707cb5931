//! Match-action tables: entries and how they are found.

mod align;
mod arena;
mod columns;
pub(crate) mod index;
pub(crate) mod key;
mod prefix;
mod store;
mod ternary;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::control::{ControlError, EntryHandle, MatchField};
use crate::exec::Frame;
use crate::ids::ActionId;
use crate::meter::Meter;
use crate::program::tables::{Shape, TableDef};
use crate::program::{Implementation, MatchKind, TableInfo};
use align::Align;
use index::Index;
use key::EntryKey;
use store::{Extra, Store};

/// What an entry does on a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// No entry has this number.
    Free,
    /// An action; its data is the table's.
    Action(ActionId),
    /// A member of the profile, by its number there.
    Member(u32),
    /// A group of the profile, by its number there.
    Group(u32),
    /// A group that is the entry's own.
    OneShot(u32),
}

impl Target {
    /// As one word; see [`Self::unpack`].
    fn pack(self) -> u64 {
        let (kind, number) = match self {
            Target::Free => (0, 0),
            Target::Action(ActionId(number)) => (1, number),
            Target::Member(number) => (2, number),
            Target::Group(number) => (3, number),
            Target::OneShot(number) => (4, number),
        };
        u64::from(number) << 8 | kind
    }

    #[inline(always)]
    fn unpack(word: u64) -> Self {
        let number = (word >> 8) as u32;
        match word as u8 {
            0 => Target::Free,
            1 => Target::Action(ActionId(number)),
            2 => Target::Member(number),
            3 => Target::Group(number),
            _ => Target::OneShot(number),
        }
    }
}

/// When an entry was last hit, and when that is looked at. All ns.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// 0: no timeout.
    pub(crate) timeout: u64,
    last_hit: AtomicU64,
    /// When the timer was started anew: on a write, or when the entry was reported.
    pub(crate) restarted: u64,
    /// When the entry number is looked at next; 0: never.
    pub(crate) queued: u64,
}

impl Idle {
    pub(crate) fn last_hit(&self) -> u64 {
        self.last_hit.load(Ordering::Relaxed)
    }

    /// Takes note of a hit at `now`; of others at the same time nothing needs to be noted.
    #[inline]
    pub(crate) fn note_hit(&self, now: u64) {
        if self.last_hit() != now {
            self.last_hit.store(now, Ordering::Relaxed);
        }
    }
}

/// A table's entries.
pub(crate) struct Table {
    index: Index,
    store: Store,
    /// How keys become strings of bits, in prefix tables.
    align: Option<Align>,
    free: Vec<u32>,
    len: usize,
    /// Empty unless the table has a direct meter.
    pub(crate) meters: Vec<Mutex<Meter>>,
    /// Empty unless the table has idle timeouts.
    pub(crate) idle: Vec<Idle>,
    metadata: HashMap<u32, Box<[u8]>>,
    const_entries: u32,
    with_counter: bool,
    with_meter: bool,
    with_idle: bool,
    /// What a miss does.
    pub(crate) default: Option<Target>,
    pub(crate) default_data: Vec<u64>,
    /// The default entry's direct meter.
    pub(crate) miss_meter: Mutex<Meter>,
}

impl Table {
    pub(crate) fn new(info: &TableInfo, def: &TableDef) -> Self {
        let range_words = info
            .keys
            .iter()
            .filter(|k| k.kind == MatchKind::Range)
            .map(|k| 2 * crate::program::code::limbs(k.width))
            .sum();
        let align = (def.shape == Shape::Prefix).then(|| Align::new(info, def));
        let (words, extra) = match (&align, def.shape) {
            (Some(align), _) => (align.words, Extra::Length),
            (None, Shape::Ternary) => (def.key_words, Extra::Mask),
            _ => (def.key_words, Extra::None),
        };
        let data_words = match info.implementation {
            Implementation::Direct => def.data_words,
            // The data is the members'.
            _ => 0,
        };
        Table {
            index: Index::new(info, def),
            store: Store::new(words, range_words, data_words, extra),
            align,
            free: Vec::new(),
            len: 0,
            meters: Vec::new(),
            idle: Vec::new(),
            metadata: HashMap::new(),
            const_entries: 0,
            with_counter: info.direct_counter.is_some(),
            with_meter: info.direct_meter.is_some(),
            with_idle: info.idle_timeout,
            default: None,
            default_data: Vec::new(),
            miss_meter: Mutex::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entry that a packet hits. `scratch` has room for the key.
    #[inline]
    pub(crate) fn find(&self, def: &TableDef, frame: &Frame, scratch: &mut [u64]) -> Option<u32> {
        let align = self.align.as_ref();
        self.index.find(&self.store, def, align, frame, scratch)
    }

    #[inline]
    pub(crate) fn target(&self, entry: u32) -> Target {
        self.store.target(entry)
    }

    /// What an entry does, and the data of its action.
    #[inline(always)]
    pub(crate) fn hit(&self, entry: u32) -> (Target, &[u64]) {
        self.store.hit(entry)
    }

    #[inline]
    pub(crate) fn data(&self, entry: u32) -> &[u64] {
        self.store.data(entry)
    }

    pub(crate) fn contains(&self, entry: EntryHandle) -> bool {
        (entry.0 as usize) < self.store.len() && self.target(entry.0) != Target::Free
    }

    /// The first entry after `after`.
    pub(crate) fn next(&self, after: Option<EntryHandle>) -> Option<EntryHandle> {
        let from = after.map_or(0, |h| h.0 + 1);
        (from..self.store.len() as u32)
            .find(|&entry| self.target(entry) != Target::Free)
            .map(EntryHandle)
    }

    /// Checks a key and brings it into the table's form.
    pub(crate) fn encode(
        &self,
        info: &TableInfo,
        key: &[MatchField],
    ) -> Result<EntryKey, ControlError> {
        let mut out = EntryKey::default();
        let prefix = key::encode(info, key, &mut out)?;
        if let Some(align) = &self.align {
            align.pack(&mut out, prefix);
        }
        Ok(out)
    }

    /// The key of an entry as it was written.
    pub(crate) fn key(&self, info: &TableInfo, entry: EntryHandle) -> Vec<MatchField> {
        let value = self.store.value(entry.0);
        match (&self.align, &self.index) {
            (Some(align), _) => {
                let (value, prefix) = align.unpack(value, self.store.length(entry.0));
                key::decode(info, &value, &[], &[], prefix)
            }
            (None, Index::Ternary(_)) => {
                let (mask, ranges) = (self.store.mask(entry.0), self.store.range(entry.0));
                key::decode(info, value, mask, ranges, 0)
            }
            _ => key::decode(info, value, &[], &[], 0),
        }
    }

    /// Makes the entries there are the program's own.
    pub(crate) fn seal(&mut self) {
        self.const_entries = self.store.len() as u32;
    }

    pub(crate) fn is_const(&self, entry: EntryHandle) -> bool {
        entry.0 < self.const_entries
    }

    pub(crate) fn find_same(&self, key: &EntryKey, priority: i32) -> Option<EntryHandle> {
        self.index.same(&self.store, key, priority).map(EntryHandle)
    }

    /// Adds an entry that is not there yet.
    pub(crate) fn insert(&mut self, key: &EntryKey, priority: i32) -> EntryHandle {
        let entry = match self.free.pop() {
            Some(entry) => entry,
            None => self.grow(),
        };
        let at = entry as usize;
        self.store.set_key(entry, key, priority);
        if let Some(meter) = self.meters.get_mut(at) {
            *meter.get_mut() = Meter::default();
        }
        self.index.insert(&self.store, entry);
        self.len += 1;
        EntryHandle(entry)
    }

    fn grow(&mut self) -> u32 {
        if self.with_meter {
            self.meters.push(Mutex::default());
        }
        if self.with_idle {
            self.idle.push(Idle::default());
        }
        self.store.grow()
    }

    /// Sets what an entry does.
    pub(crate) fn set(&mut self, entry: EntryHandle, target: Target, data: &[u64]) {
        self.store.set_target(entry.0, target, data);
    }

    /// Starts an entry's idle timer; a new entry counts as hit.
    pub(crate) fn set_idle(&mut self, entry: EntryHandle, timeout: u64, now: u64, new: bool) {
        if let Some(idle) = self.idle.get_mut(entry.0 as usize) {
            idle.timeout = timeout;
            idle.restarted = now;
            if new {
                *idle.last_hit.get_mut() = now;
            }
        }
    }

    pub(crate) fn has_counter(&self) -> bool {
        self.with_counter
    }

    /// Whether a hit is noted with the entry: by counter, meter or timer.
    pub(crate) fn notes_hits(&self) -> bool {
        self.with_counter | self.with_meter | self.with_idle
    }

    pub(crate) fn has_meter(&self) -> bool {
        self.with_meter
    }

    pub(crate) fn set_metadata(&mut self, entry: EntryHandle, metadata: &[u8]) {
        match metadata {
            [] => self.metadata.remove(&entry.0),
            _ => self.metadata.insert(entry.0, metadata.into()),
        };
    }

    pub(crate) fn metadata(&self, entry: EntryHandle) -> &[u8] {
        self.metadata.get(&entry.0).map_or(&[], |m| m)
    }

    pub(crate) fn remove(&mut self, entry: EntryHandle) {
        self.index.remove(&self.store, entry.0);
        self.store.set_target(entry.0, Target::Free, &[]);
        self.metadata.remove(&entry.0);
        if let Some(idle) = self.idle.get_mut(entry.0 as usize) {
            *idle = Idle {
                queued: idle.queued,
                ..Idle::default()
            };
        }
        self.free.push(entry.0);
        self.len -= 1;
    }

    pub(crate) fn priority(&self, entry: EntryHandle) -> i32 {
        self.store.priority(entry.0)
    }
}

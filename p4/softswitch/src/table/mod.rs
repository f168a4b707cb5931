//! Match-action tables: entries and how they are found.

pub(crate) mod index;
pub(crate) mod key;

use std::collections::HashMap;

use crate::control::{CounterData, EntryHandle};
use crate::ids::ActionId;
use crate::meter::Meter;
use crate::program::TableInfo;
use crate::program::tables::{Shape, TableDef};
use index::{Index, Store};
use key::EntryKey;

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

/// When an entry was last hit, and when that is looked at. All ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Idle {
    /// 0: no timeout.
    pub(crate) timeout: u64,
    pub(crate) last_hit: u64,
    /// When the timer was started anew: on a write, or when the entry was reported.
    pub(crate) restarted: u64,
    /// When the entry number is looked at next; 0: never.
    pub(crate) queued: u64,
}

/// A table's entries.
pub(crate) struct Table {
    pub(crate) index: Index,
    pub(crate) store: Store,
    targets: Vec<Target>,
    /// Action data, `data_words` for each entry.
    data: Vec<u64>,
    data_words: usize,
    free: Vec<u32>,
    len: usize,
    /// Empty unless the table has a direct counter.
    pub(crate) counters: Vec<CounterData>,
    /// Empty unless the table has a direct meter.
    pub(crate) meters: Vec<Meter>,
    /// Empty unless the table has idle timeouts.
    pub(crate) idle: Vec<Idle>,
    metadata: HashMap<u32, Box<[u8]>>,
    const_entries: u32,
    with_counter: bool,
    with_meter: bool,
    with_idle: bool,
    with_mask: bool,
    /// What a miss does.
    pub(crate) default: Option<Target>,
    pub(crate) default_data: Vec<u64>,
    /// The default entry's direct counter and meter.
    pub(crate) miss_counter: CounterData,
    pub(crate) miss_meter: Meter,
}

impl Table {
    pub(crate) fn new(info: &TableInfo, def: &TableDef) -> Self {
        let range_words = info
            .keys
            .iter()
            .filter(|k| k.kind == crate::program::MatchKind::Range)
            .map(|k| 2 * crate::program::code::limbs(k.width))
            .sum();
        Table {
            index: Index::new(info, def),
            store: Store {
                words: def.key_words,
                range_words,
                ..Store::default()
            },
            targets: Vec::new(),
            data: Vec::new(),
            data_words: def.data_words,
            free: Vec::new(),
            len: 0,
            counters: Vec::new(),
            meters: Vec::new(),
            idle: Vec::new(),
            metadata: HashMap::new(),
            const_entries: 0,
            with_counter: info.direct_counter.is_some(),
            with_meter: info.direct_meter.is_some(),
            with_idle: info.idle_timeout,
            with_mask: matches!(def.shape, Shape::Ternary | Shape::Prefix),
            default: None,
            default_data: Vec::new(),
            miss_counter: CounterData::default(),
            miss_meter: Meter::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn target(&self, entry: u32) -> Target {
        self.targets[entry as usize]
    }

    #[inline]
    pub(crate) fn data(&self, entry: u32) -> &[u64] {
        &self.data[entry as usize * self.data_words..][..self.data_words]
    }

    pub(crate) fn contains(&self, entry: EntryHandle) -> bool {
        self.targets
            .get(entry.0 as usize)
            .is_some_and(|t| *t != Target::Free)
    }

    /// The first entry after `after`.
    pub(crate) fn next(&self, after: Option<EntryHandle>) -> Option<EntryHandle> {
        let from = after.map_or(0, |h| h.0 as usize + 1);
        let at = self
            .targets
            .get(from..)?
            .iter()
            .position(|t| *t != Target::Free)?;
        Some(EntryHandle((from + at) as u32))
    }

    /// Makes the entries there are the program's own.
    pub(crate) fn seal(&mut self) {
        self.const_entries = self.targets.len() as u32;
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
        let store = &mut self.store;
        let words = store.words;
        store.values[at * words..][..words].copy_from_slice(&key.value);
        if self.with_mask {
            store.masks[at * words..][..words].copy_from_slice(&key.mask);
            store.prefixes[at] = key.prefix;
            store.priorities[at] = priority;
            let words = store.range_words;
            store.ranges[at * words..][..words].copy_from_slice(&key.ranges);
        }
        if let Some(counter) = self.counters.get_mut(at) {
            *counter = CounterData::default();
        }
        if let Some(meter) = self.meters.get_mut(at) {
            *meter = Meter::default();
        }
        self.index.insert(&self.store, entry);
        self.len += 1;
        EntryHandle(entry)
    }

    fn grow(&mut self) -> u32 {
        let entry = self.targets.len();
        let store = &mut self.store;
        self.targets.push(Target::Free);
        self.data.resize((entry + 1) * self.data_words, 0);
        store.values.resize((entry + 1) * store.words, 0);
        if self.with_mask {
            store.masks.resize((entry + 1) * store.words, 0);
            store.prefixes.push(0);
            store.priorities.push(0);
            store.ranges.resize((entry + 1) * store.range_words, 0);
        }
        if self.with_counter {
            self.counters.push(CounterData::default());
        }
        if self.with_meter {
            self.meters.push(Meter::default());
        }
        if self.with_idle {
            self.idle.push(Idle::default());
        }
        entry as u32
    }

    /// Sets what an entry does.
    pub(crate) fn set(&mut self, entry: EntryHandle, target: Target, data: &[u64]) {
        let at = entry.0 as usize;
        self.targets[at] = target;
        let own = &mut self.data[at * self.data_words..][..self.data_words];
        own.fill(0);
        own[..data.len()].copy_from_slice(data);
    }

    /// Starts an entry's idle timer; a new entry counts as hit.
    pub(crate) fn set_idle(&mut self, entry: EntryHandle, timeout: u64, now: u64, new: bool) {
        if let Some(idle) = self.idle.get_mut(entry.0 as usize) {
            idle.timeout = timeout;
            idle.restarted = now;
            if new {
                idle.last_hit = now;
            }
        }
    }

    pub(crate) fn has_counter(&self) -> bool {
        self.with_counter
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
        self.targets[entry.0 as usize] = Target::Free;
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
        self.store
            .priorities
            .get(entry.0 as usize)
            .copied()
            .unwrap_or(0)
    }

    /// The key of an entry as it was encoded.
    pub(crate) fn key(&self, entry: EntryHandle) -> (&[u64], &[u64], &[u64]) {
        let value = self.store.value(entry.0);
        match self.with_mask {
            true => (value, self.store.mask(entry.0), self.store.range(entry.0)),
            false => (value, value, &[]),
        }
    }
}

//! How a table finds the entry for a key.
//!
//! Entries live in a [`Store`]; the indexes hold their numbers only. Exact
//! tables of few key bits are arrays, the others hash the key. Prefix tables have a hash table per prefix length
//! that occurs, longest first. Ternary tables have one per mask that occurs
//! (tuple space search), those with the highest priorities first, so that a
//! search ends when no later one can win.

use hashbrown::HashTable;

use super::key::EntryKey;
use crate::program::tables::{Shape, TableDef};
use crate::program::{MatchKind, TableInfo};

const NONE: u32 = u32::MAX;
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(MIX);
    (product ^ product >> 64) as u64
}

#[inline(always)]
fn hash_words(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0x243f_6a88_85a3_08d3, mix)
}

/// Whether two keys of the same length are the same. They are short: a loop
/// beats a call.
#[inline(always)]
fn equal(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Exact keys of at most this many bits index an array.
const SMALL: u32 = 12;

/// Keys of entries, by entry number.
#[derive(Default)]
pub(crate) struct Store {
    /// Words of one key.
    pub(crate) words: usize,
    /// Words of one entry's ranges.
    pub(crate) range_words: usize,
    pub(crate) values: Vec<u64>,
    /// Kept by ternary tables only.
    pub(crate) masks: Vec<u64>,
    pub(crate) ranges: Vec<u64>,
    pub(crate) priorities: Vec<i32>,
    /// Kept by prefix tables only.
    pub(crate) prefixes: Vec<u16>,
}

impl Store {
    pub(crate) fn value(&self, entry: u32) -> &[u64] {
        &self.values[entry as usize * self.words..][..self.words]
    }

    pub(crate) fn mask(&self, entry: u32) -> &[u64] {
        &self.masks[entry as usize * self.words..][..self.words]
    }

    pub(crate) fn range(&self, entry: u32) -> &[u64] {
        &self.ranges[entry as usize * self.range_words..][..self.range_words]
    }
}

pub(crate) enum Index {
    Keyless,
    Small(Small),
    Exact(HashTable<u32>),
    Prefix(Prefixes),
    Ternary(Tuples),
}

impl Index {
    pub(crate) fn new(info: &TableInfo, def: &TableDef) -> Self {
        match def.shape {
            Shape::Keyless => Index::Keyless,
            Shape::Exact => match Small::new(info) {
                Some(small) => Index::Small(small),
                None => Index::Exact(HashTable::new()),
            },
            Shape::Prefix => {
                let at = info
                    .keys
                    .iter()
                    .position(|k| k.kind == MatchKind::Lpm)
                    .unwrap_or(0);
                let field = &def.keys[at];
                Index::Prefix(Prefixes {
                    field: field.at..field.at + usize::from(field.limbs),
                    levels: Vec::new(),
                })
            }
            Shape::Ternary => {
                let ranges = info.keys.iter().zip(&def.keys);
                let ranges = ranges.filter(|(k, _)| k.kind == MatchKind::Range);
                Index::Ternary(Tuples {
                    ranges: ranges.map(|(_, d)| (d.at, usize::from(d.limbs))).collect(),
                    ..Tuples::default()
                })
            }
        }
    }

    /// The entry that matches the key. The key may be changed.
    #[inline]
    pub(crate) fn find(&self, store: &Store, key: &mut [u64]) -> Option<u32> {
        match self {
            Index::Keyless => None,
            Index::Small(small) => small.find(key),
            Index::Exact(table) => {
                let hash = hash_words(key.iter().copied());
                table.find(hash, |&e| equal(store.value(e), key)).copied()
            }
            Index::Prefix(prefixes) => prefixes.find(store, key),
            Index::Ternary(tuples) => tuples.find(store, key),
        }
    }

    /// The entry with just this key (and priority).
    pub(crate) fn same(&self, store: &Store, key: &EntryKey, priority: i32) -> Option<u32> {
        match self {
            Index::Keyless => None,
            Index::Small(small) => small.find(&key.value),
            Index::Exact(table) => {
                let hash = hash_words(key.value.iter().copied());
                table.find(hash, |&e| store.value(e) == key.value).copied()
            }
            Index::Prefix(prefixes) => {
                let level = prefixes.levels.iter().find(|l| l.length == key.prefix)?;
                let hash = prefixes.hash(&key.value);
                level
                    .table
                    .find(hash, |&e| store.value(e) == key.value)
                    .copied()
            }
            Index::Ternary(tuples) => tuples.same(store, key, priority),
        }
    }

    /// Enters an entry whose key is in the store already.
    pub(crate) fn insert(&mut self, store: &Store, entry: u32) {
        match self {
            Index::Keyless => {}
            Index::Small(small) => {
                let at = small.at(store.value(entry));
                small.entries[at] = entry;
            }
            Index::Exact(table) => {
                let hash_of = |e: &u32| hash_words(store.value(*e).iter().copied());
                table.insert_unique(hash_of(&entry), entry, hash_of);
            }
            Index::Prefix(prefixes) => prefixes.insert(store, entry),
            Index::Ternary(tuples) => tuples.insert(store, entry),
        }
    }

    /// Takes an entry out whose key is still in the store.
    pub(crate) fn remove(&mut self, store: &Store, entry: u32) {
        match self {
            Index::Keyless => {}
            Index::Small(small) => {
                let at = small.at(store.value(entry));
                small.entries[at] = NONE;
            }
            Index::Exact(table) => {
                let hash = hash_words(store.value(entry).iter().copied());
                if let Ok(found) = table.find_entry(hash, |&e| e == entry) {
                    found.remove();
                }
            }
            Index::Prefix(prefixes) => prefixes.remove(store, entry),
            Index::Ternary(tuples) => tuples.remove(store, entry),
        }
    }
}

/// An array with a place for each possible key.
pub(crate) struct Small {
    /// Bits below each field in the array's index.
    shifts: Vec<u32>,
    entries: Box<[u32]>,
}

impl Small {
    fn new(info: &TableInfo) -> Option<Self> {
        let bits: u32 = info.keys.iter().map(|k| k.width).sum();
        if bits > SMALL {
            return None;
        }
        let mut below = bits;
        let shifts = info.keys.iter().map(|key| {
            below -= key.width;
            below
        });
        Some(Small {
            shifts: shifts.collect(),
            entries: vec![NONE; 1 << bits].into(),
        })
    }

    #[inline(always)]
    fn at(&self, key: &[u64]) -> usize {
        key.iter()
            .zip(&self.shifts)
            .fold(0, |at, (word, shift)| at | word << shift) as usize
    }

    #[inline(always)]
    fn find(&self, key: &[u64]) -> Option<u32> {
        self.entries
            .get(self.at(key))
            .copied()
            .filter(|&entry| entry != NONE)
    }
}

pub(crate) struct Prefixes {
    /// Words of the prefix within the key.
    field: std::ops::Range<usize>,
    /// Longest first.
    levels: Vec<Level>,
}

struct Level {
    length: u16,
    mask: Box<[u64]>,
    table: HashTable<u32>,
}

impl Prefixes {
    /// The exact words first, so that their part is computed once.
    fn hash(&self, key: &[u64]) -> u64 {
        key[self.field.clone()]
            .iter()
            .fold(self.hash_exact(key), |h, &w| mix(h, w))
    }

    fn hash_exact(&self, key: &[u64]) -> u64 {
        let (before, rest) = key.split_at(self.field.start);
        hash_words(before.iter().chain(&rest[self.field.len()..]).copied())
    }

    fn find(&self, store: &Store, key: &mut [u64]) -> Option<u32> {
        let exact = self.hash_exact(key);
        for level in &self.levels {
            // Lengths fall, so each mask only clears more bits.
            let field = &mut key[self.field.clone()];
            let hash = field.iter_mut().zip(&level.mask).fold(exact, |h, (w, m)| {
                *w &= m;
                mix(h, *w)
            });
            if let Some(&entry) = level.table.find(hash, |&e| equal(store.value(e), key)) {
                return Some(entry);
            }
        }
        None
    }

    fn insert(&mut self, store: &Store, entry: u32) {
        let length = store.prefixes[entry as usize];
        let at = self.levels.partition_point(|l| l.length > length);
        if self.levels.get(at).is_none_or(|l| l.length != length) {
            let mask = store.mask(entry)[self.field.clone()].into();
            self.levels.insert(
                at,
                Level {
                    length,
                    mask,
                    table: HashTable::new(),
                },
            );
        }
        let hash = self.hash(store.value(entry));
        let field = self.field.clone();
        let hash_of = |e: &u32| {
            let key = store.value(*e);
            let (before, rest) = key.split_at(field.start);
            let exact = hash_words(before.iter().chain(&rest[field.len()..]).copied());
            key[field.clone()].iter().fold(exact, |h, &w| mix(h, w))
        };
        self.levels[at].table.insert_unique(hash, entry, hash_of);
    }

    fn remove(&mut self, store: &Store, entry: u32) {
        let length = store.prefixes[entry as usize];
        let hash = self.hash(store.value(entry));
        let Some(at) = self.levels.iter().position(|l| l.length == length) else {
            return;
        };
        if let Ok(found) = self.levels[at].table.find_entry(hash, |&e| e == entry) {
            found.remove();
        }
        if self.levels[at].table.is_empty() {
            self.levels.remove(at);
        }
    }
}

#[derive(Default)]
pub(crate) struct Tuples {
    /// Place in the key and words of each range field.
    ranges: Vec<(usize, usize)>,
    /// Highest `top` first.
    tuples: Vec<Tuple>,
    /// Next entry with the same mask and value, by entry number: higher
    /// priorities first.
    chain: Vec<u32>,
}

struct Tuple {
    mask: Box<[u64]>,
    /// First entries of chains.
    heads: HashTable<u32>,
    /// No entry has a higher priority.
    top: i32,
    entries: usize,
}

impl Tuples {
    fn in_range(&self, store: &Store, entry: u32, key: &[u64]) -> bool {
        let mut bounds = store.range(entry);
        self.ranges.iter().all(|&(at, n)| {
            let (low, rest) = bounds.split_at(n);
            let (high, rest) = rest.split_at(n);
            bounds = rest;
            let value = key[at..at + n].iter().rev();
            value.clone().ge(low.iter().rev()) && value.le(high.iter().rev())
        })
    }

    fn find(&self, store: &Store, key: &[u64]) -> Option<u32> {
        let mut best: Option<(i32, u32)> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|(priority, _)| priority >= tuple.top) {
                break;
            }
            let masked = key.iter().zip(&tuple.mask).map(|(k, m)| k & m);
            let hash = hash_words(masked.clone());
            let head = tuple
                .heads
                .find(hash, |&e| masked.clone().eq(store.value(e).iter().copied()));
            let mut entry = head.copied().unwrap_or(NONE);
            while entry != NONE {
                let priority = store.priorities[entry as usize];
                if best.is_some_and(|(b, _)| b >= priority) {
                    break;
                }
                if self.ranges.is_empty() || self.in_range(store, entry, key) {
                    best = Some((priority, entry));
                    break;
                }
                entry = self.chain[entry as usize];
            }
        }
        best.map(|(_, entry)| entry)
    }

    fn position(&self, mask: &[u64]) -> Option<usize> {
        self.tuples.iter().position(|t| *t.mask == *mask)
    }

    fn same(&self, store: &Store, key: &EntryKey, priority: i32) -> Option<u32> {
        let tuple = &self.tuples[self.position(&key.mask)?];
        let hash = hash_words(key.value.iter().copied());
        let mut entry = *tuple.heads.find(hash, |&e| store.value(e) == key.value)?;
        while entry != NONE {
            if store.priorities[entry as usize] == priority && store.range(entry) == key.ranges {
                return Some(entry);
            }
            entry = self.chain[entry as usize];
        }
        None
    }

    fn insert(&mut self, store: &Store, entry: u32) {
        let priority = store.priorities[entry as usize];
        let at = match self.position(store.mask(entry)) {
            Some(at) => at,
            None => {
                self.tuples.push(Tuple {
                    mask: store.mask(entry).into(),
                    heads: HashTable::new(),
                    top: priority,
                    entries: 0,
                });
                self.tuples.len() - 1
            }
        };
        if self.chain.len() <= entry as usize {
            self.chain.resize(entry as usize + 1, NONE);
        }
        let hash_of = |e: &u32| hash_words(store.value(*e).iter().copied());
        let value = store.value(entry);
        let tuple = &mut self.tuples[at];
        tuple.entries += 1;
        tuple.top = tuple.top.max(priority);
        self.chain[entry as usize] = NONE;
        match tuple
            .heads
            .find_mut(hash_of(&entry), |&e| store.value(e) == value)
        {
            None => {
                tuple.heads.insert_unique(hash_of(&entry), entry, hash_of);
            }
            Some(head) if store.priorities[*head as usize] < priority => {
                self.chain[entry as usize] = *head;
                *head = entry;
            }
            Some(head) => {
                let mut before = *head;
                loop {
                    let next = self.chain[before as usize];
                    if next == NONE || store.priorities[next as usize] < priority {
                        break;
                    }
                    before = next;
                }
                self.chain[entry as usize] = self.chain[before as usize];
                self.chain[before as usize] = entry;
            }
        }
        let mut at = at;
        while at > 0 && self.tuples[at - 1].top < self.tuples[at].top {
            self.tuples.swap(at - 1, at);
            at -= 1;
        }
    }

    fn remove(&mut self, store: &Store, entry: u32) {
        let Some(at) = self.position(store.mask(entry)) else {
            return;
        };
        let value = store.value(entry);
        let hash = hash_words(value.iter().copied());
        let tuple = &mut self.tuples[at];
        let next = self.chain[entry as usize];
        if let Ok(mut found) = tuple.heads.find_entry(hash, |&e| store.value(e) == value) {
            let mut before = *found.get();
            if before == entry {
                match next {
                    NONE => {
                        found.remove();
                    }
                    _ => *found.get_mut() = next,
                }
            } else {
                while self.chain[before as usize] != entry {
                    before = self.chain[before as usize];
                }
                self.chain[before as usize] = next;
            }
        }
        tuple.entries -= 1;
        if tuple.entries == 0 {
            self.tuples.remove(at);
        }
    }
}

//! How a table finds the entry for a key.
//!
//! Entries live in a [`Store`]; the indexes hold their numbers only. Exact
//! tables of few key bits are arrays, the others hash the key. Prefix tables
//! are a trie of bytes, ternary tables a decision tree.

use hashbrown::HashTable;

use super::key::EntryKey;
use super::prefix::Prefixes;
use super::store::Store;
use super::ternary::Tree;
use crate::program::TableInfo;
use crate::program::tables::{Shape, TableDef};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(MIX);
    (product ^ product >> 64) as u64
}

#[inline(always)]
pub(super) fn hash_words(words: impl Iterator<Item = u64>) -> u64 {
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

pub(crate) enum Index {
    Keyless,
    Small(Small),
    Exact(HashTable<u32>),
    Prefix(Prefixes),
    Ternary(Tree),
}

impl Index {
    pub(crate) fn new(info: &TableInfo, def: &TableDef) -> Self {
        match def.shape {
            Shape::Keyless => Index::Keyless,
            Shape::Exact => match Small::new(info) {
                Some(small) => Index::Small(small),
                None => Index::Exact(HashTable::new()),
            },
            Shape::Prefix => Index::Prefix(Prefixes::default()),
            Shape::Ternary => Index::Ternary(Tree::new(info, def)),
        }
    }

    /// The entry that matches the key.
    #[inline]
    pub(crate) fn find(&self, store: &Store, key: &[u64]) -> Option<u32> {
        match self {
            Index::Keyless => None,
            Index::Small(small) => small.find(key),
            Index::Exact(table) => {
                let hash = hash_words(key.iter().copied());
                table.find(hash, |&e| equal(store.value(e), key)).copied()
            }
            Index::Prefix(prefixes) => prefixes.find(store, key),
            Index::Ternary(tree) => tree.find(store, key),
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
            Index::Prefix(prefixes) => prefixes.same(store, &key.value, key.length),
            Index::Ternary(tree) => tree.same(store, key, priority),
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
            Index::Ternary(tree) => tree.insert(store, entry),
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
            Index::Ternary(tree) => tree.remove(store, entry),
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

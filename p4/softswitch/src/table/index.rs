//! How a table finds the entry for a key.
//!
//! Entries live in a [`Store`]; the indexes hold their numbers, and keys of
//! one word. Exact tables of few key bits are arrays, the others hash the key.
//! Prefix tables are a trie of bytes, ternary tables a decision tree.

use hashbrown::HashTable;

use super::align::Align;
use super::key::{self, EntryKey};
use super::prefix::Prefixes;
use super::store::Store;
use super::ternary::Tree;
use crate::exec::Frame;
use crate::program::TableInfo;
use crate::program::tables::{KeyPart, Shape, TableDef};

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
    Word(Keyed),
    Exact(HashTable<u32>),
    Prefix(Prefixes),
    Ternary(Tree),
}

impl Index {
    pub(crate) fn new(info: &TableInfo, def: &TableDef) -> Self {
        match def.shape {
            Shape::Keyless => Index::Keyless,
            Shape::Exact => match Gather::new(info, def) {
                Some(gather) if gather.bits <= SMALL => Index::Small(Small::new(gather)),
                Some(gather) => Index::Word(Keyed {
                    gather,
                    entries: HashTable::new(),
                }),
                None => Index::Exact(HashTable::new()),
            },
            Shape::Prefix => Index::Prefix(Prefixes::default()),
            Shape::Ternary => Index::Ternary(Tree::new(info, def)),
        }
    }

    /// The entry that a packet matches. `scratch` has room for the key, `align` brings the keys of
    /// prefix tables into their form.
    #[inline]
    pub(crate) fn find(
        &self,
        store: &Store,
        def: &TableDef,
        align: Option<&Align>,
        frame: &Frame,
        scratch: &mut [u64],
    ) -> Option<u32> {
        match self {
            Index::Keyless => return None,
            Index::Small(small) => return small.find(small.gather.packet(frame)),
            Index::Word(keyed) => return keyed.find(keyed.gather.packet(frame)),
            _ => {}
        }
        let key = match align {
            Some(align) => align.build(&def.key_parts, frame, scratch),
            None => key::build(&def.key_parts, frame, scratch),
        };
        match self {
            Index::Keyless | Index::Small(_) | Index::Word(_) => None,
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
            Index::Small(small) => small.find(small.gather.key(&key.value)),
            Index::Word(keyed) => keyed.find(keyed.gather.key(&key.value)),
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
                let at = small.gather.key(store.value(entry)) as usize;
                small.entries[at] = entry;
            }
            Index::Word(keyed) => {
                let key = keyed.gather.key(store.value(entry));
                let hash_of = |(key, _): &(u64, u32)| hash_words([*key].into_iter());
                let hash = hash_words([key].into_iter());
                keyed.entries.insert_unique(hash, (key, entry), hash_of);
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
                let at = small.gather.key(store.value(entry)) as usize;
                small.entries[at] = NONE;
            }
            Index::Word(keyed) => {
                let key = keyed.gather.key(store.value(entry));
                let hash = hash_words([key].into_iter());
                if let Ok(found) = keyed.entries.find_entry(hash, |(_, e)| *e == entry) {
                    found.remove();
                }
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

/// How the fields of a key become one word, first field highest.
pub(crate) struct Gather {
    pieces: Box<[Piece]>,
    bits: u32,
}

/// A field of it.
struct Piece {
    part: KeyPart,
    /// Bits below it.
    shift: u8,
}

impl Gather {
    /// `None`: the key is longer than a word.
    fn new(info: &TableInfo, def: &TableDef) -> Option<Self> {
        let bits: u32 = info.keys.iter().map(|k| k.width).sum();
        if bits > u64::BITS {
            return None;
        }
        let mut below = bits;
        let pieces = info.keys.iter().zip(&def.key_parts).map(|(key, part)| {
            below -= key.width;
            Piece {
                part: *part,
                shift: below as u8,
            }
        });
        Some(Gather {
            pieces: pieces.collect(),
            bits,
        })
    }

    /// A packet's key. Fields of headers that are not valid are zero.
    #[inline(always)]
    fn packet(&self, frame: &Frame) -> u64 {
        self.pieces.iter().fold(0, |key, Piece { part, shift }| {
            let keep = part.mask & frame[usize::from(part.valid)].wrapping_neg();
            key | (frame[usize::from(part.slot)] & keep) << (shift & 63)
        })
    }

    /// An entry's key.
    fn key(&self, words: &[u64]) -> u64 {
        let words = self.pieces.iter().zip(words);
        words.fold(0, |key, (piece, word)| key | word << (piece.shift & 63))
    }
}

/// An array with a place for each possible key.
pub(crate) struct Small {
    gather: Gather,
    entries: Box<[u32]>,
}

impl Small {
    fn new(gather: Gather) -> Self {
        Small {
            entries: vec![NONE; 1 << gather.bits].into(),
            gather,
        }
    }

    #[inline(always)]
    fn find(&self, key: u64) -> Option<u32> {
        self.entries
            .get(key as usize)
            .copied()
            .filter(|&entry| entry != NONE)
    }
}

/// A hash table of keys that are one word.
pub(crate) struct Keyed {
    gather: Gather,
    entries: HashTable<(u64, u32)>,
}

impl Keyed {
    #[inline(always)]
    fn find(&self, key: u64) -> Option<u32> {
        let hash = hash_words([key].into_iter());
        let found = self.entries.find(hash, |(own, _)| *own == key);
        found.map(|(_, entry)| *entry)
    }
}

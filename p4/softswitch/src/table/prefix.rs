//! Longest-prefix match: a trie of bytes with compressed paths.
//!
//! Keys of prefix tables are one string of bits, first bit first: the exact
//! fields, then the field with the prefix (see [`super::align`]). A node covers
//! one byte of it: which entries end within the byte, and what follows each
//! value of the byte, both as bitmaps over one dense array. Bytes that all keys
//! below a node have in common are skipped at once, and an entry that is alone
//! below a place hangs there as a leaf. So a lookup takes a few steps however
//! many entries there are, and a write changes a node or two.

use super::arena::Arena;
use super::index::NONE;
use super::store::Store;

/// Marks a slot that holds a node, not an entry.
const NODE: u32 = 1 << 31;
/// Bytes that a node can skip.
const SKIP: usize = 8;

/// A set of bytes.
#[derive(Default)]
struct Bytes {
    words: [u64; 4],
    /// Members below each word.
    below: [u8; 4],
    /// Members.
    count: u16,
}

impl Bytes {
    #[inline(always)]
    fn has(&self, byte: u8) -> bool {
        self.words[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    /// How many members are below a byte.
    #[inline(always)]
    fn rank(&self, byte: u8) -> usize {
        let word = usize::from(byte >> 6);
        let here = self.words[word] & ((1 << (byte & 63)) - 1);
        usize::from(self.below[word]) + here.count_ones() as usize
    }

    fn flip(&mut self, byte: u8) {
        self.words[usize::from(byte >> 6)] ^= 1 << (byte & 63);
        self.count = 0;
        for (word, below) in self.words.iter().zip(&mut self.below) {
            // At most 192 by the last word.
            *below = self.count as u8;
            self.count += word.count_ones() as u16;
        }
    }

    /// The member that has `nth` members below it.
    fn select(&self, nth: usize) -> Option<u8> {
        let mut left = nth;
        for (number, word) in self.words.iter().enumerate() {
            let here = word.count_ones() as usize;
            if left < here {
                let rest = (0..left).fold(*word, |bits, _| bits & (bits - 1));
                return Some(64 * number as u8 + rest.trailing_zeros() as u8);
            }
            left -= here;
        }
        None
    }
}

#[derive(Default)]
struct Node {
    /// The bytes before the node's own, first one highest.
    skip: u64,
    skipped: u8,
    /// Entries that end in this byte: `1 << r | top r bits`, `r` from 0 to 7.
    ends: Bytes,
    /// Values of the byte that something follows.
    follows: Bytes,
    /// For each of `ends` an entry, then for each of `follows` an entry or a
    /// node.
    slots: Vec<u32>,
}

impl Node {
    /// Where in `slots` what follows a byte is.
    #[inline(always)]
    fn follower(&self, byte: u8) -> Option<usize> {
        self.follows
            .has(byte)
            .then(|| usize::from(self.ends.count) + self.follows.rank(byte))
    }

    /// The entry with the most bits that ends in this byte.
    #[inline(always)]
    fn longest(&self, byte: u8) -> Option<u32> {
        let seven = 128 | byte >> 1;
        let six = 64 | byte >> 2;
        let end = if self.ends.has(seven) {
            seven
        } else if self.ends.has(six) {
            six
        } else {
            let ends = self.ends.words[0];
            let mut end = 32 | byte >> 3;
            if ends == 0 {
                return None;
            }
            while end > 0 && ends >> end & 1 == 0 {
                end >>= 1;
            }
            if end == 0 {
                return None;
            }
            end
        };
        Some(self.slots[self.ends.rank(end)])
    }

    fn add_end(&mut self, end: u8, entry: u32) {
        self.slots.insert(self.ends.rank(end), entry);
        self.ends.flip(end);
    }

    fn add_follower(&mut self, byte: u8, slot: u32) {
        let at = usize::from(self.ends.count) + self.follows.rank(byte);
        self.slots.insert(at, slot);
        self.follows.flip(byte);
    }

    /// Adds an entry whose bits up to the node's byte are the node's.
    fn add(&mut self, entry: u32, key: &[u64], length: usize, depth: usize) {
        let byte = byte(key, depth);
        match length - 8 * depth {
            bits @ 0..8 => self.add_end(end(byte, bits), entry),
            _ => self.add_follower(byte, entry),
        }
    }
}

fn end(byte: u8, bits: usize) -> u8 {
    (1 << bits) | (u32::from(byte) >> (8 - bits)) as u8
}

/// Eight bytes of a key from byte `depth`; zeros beyond its end.
#[inline(always)]
fn word(key: &[u64], depth: usize) -> u64 {
    let at = depth / 8;
    let high = key.get(at).copied().unwrap_or(0);
    match 8 * (depth % 8) {
        0 => high,
        bits => high << bits | key.get(at + 1).copied().unwrap_or(0) >> (64 - bits),
    }
}

#[inline(always)]
fn byte(key: &[u64], depth: usize) -> u8 {
    key.get(depth / 8)
        .map_or(0, |word| (word >> (56 - 8 * (depth % 8))) as u8)
}

/// The first `bytes` bytes of a word.
fn head(word: u64, bytes: usize) -> u64 {
    match bytes {
        0 => 0,
        n => word & (u64::MAX << (64 - 8 * n)),
    }
}

/// How many bytes from `depth` on two keys have in common, up to `most`.
fn common(a: &[u64], b: &[u64], depth: usize, most: usize) -> usize {
    let mut bytes = 0;
    while bytes < most {
        let differ = word(a, depth + bytes) ^ word(b, depth + bytes);
        if differ != 0 {
            return most.min(bytes + differ.leading_zeros() as usize / 8);
        }
        bytes += 8;
    }
    most
}

/// Whether the first `length` bits of two keys are the same.
fn agree(a: &[u64], b: &[u64], length: usize) -> bool {
    let (whole, rest) = (length / 64, length % 64);
    // Keys are short: a loop beats a call.
    let mut words = a[..whole].iter().zip(&b[..whole]);
    words.all(|(a, b)| a == b) && (rest == 0 || (a[whole] ^ b[whole]) >> (64 - rest) == 0)
}

/// Where a slot is: the root (`None`), or in a node.
type Place = Option<(u32, usize)>;

/// The trie of one table.
pub(crate) struct Prefixes {
    root: u32,
    nodes: Arena<Node>,
}

impl Default for Prefixes {
    fn default() -> Self {
        Prefixes {
            root: NONE,
            nodes: Arena::default(),
        }
    }
}

impl Prefixes {
    /// The entry with the longest prefix of the key.
    pub(super) fn find(&self, store: &Store, key: &[u64]) -> Option<u32> {
        let mut best = None;
        let mut slot = self.root;
        let mut depth = 0;
        while slot & NODE != 0 {
            if slot == NONE {
                return None;
            }
            let node = &self.nodes[slot & !NODE];
            let skipped = usize::from(node.skipped);
            if head(word(key, depth), skipped) != node.skip {
                return best;
            }
            depth += skipped;
            let byte = byte(key, depth);
            best = node.longest(byte).or(best);
            match node.follower(byte) {
                None => return best,
                Some(at) => slot = node.slots[at],
            }
            depth += 1;
        }
        match agree(store.value(slot), key, store.length(slot).into()) {
            true => Some(slot),
            false => best,
        }
    }

    /// The entry with just this prefix.
    pub(super) fn same(&self, store: &Store, key: &[u64], length: u16) -> Option<u32> {
        let bits = usize::from(length);
        let mut slot = self.root;
        let mut depth = 0;
        while slot & NODE != 0 {
            if slot == NONE {
                return None;
            }
            let node = &self.nodes[slot & !NODE];
            let skipped = usize::from(node.skipped);
            depth += skipped;
            if bits < 8 * depth || head(word(key, depth - skipped), skipped) != node.skip {
                return None;
            }
            let byte = byte(key, depth);
            if bits < 8 * (depth + 1) {
                let end = end(byte, bits - 8 * depth);
                return node.ends.has(end).then(|| node.slots[node.ends.rank(end)]);
            }
            slot = node.slots[node.follower(byte)?];
            depth += 1;
        }
        (store.length(slot) == length && store.value(slot) == key).then_some(slot)
    }

    /// Enters an entry that is not there yet.
    pub(super) fn insert(&mut self, store: &Store, entry: u32) {
        let (key, length) = (store.value(entry), usize::from(store.length(entry)));
        let mut place = None;
        let mut depth = 0;
        loop {
            let slot = self.slot(place);
            if slot == NONE {
                return self.set_slot(place, entry);
            }
            if slot & NODE == 0 {
                let node = self.join(store, slot, entry, depth);
                return self.set_slot(place, node);
            }
            let number = slot & !NODE;
            let node = &mut self.nodes[number];
            let skipped = usize::from(node.skipped);
            let differ = word(key, depth) ^ node.skip;
            let fits = (differ.leading_zeros() as usize / 8).min(length / 8 - depth);
            if fits < skipped {
                let node = self.cut(number, fits);
                self.set_slot(place, NODE | node);
                return self.nodes[node].add(entry, key, length, depth + fits);
            }
            depth += skipped;
            let byte = byte(key, depth);
            match node.follower(byte) {
                Some(at) if length >= 8 * (depth + 1) => place = Some((number, at)),
                _ => return node.add(entry, key, length, depth),
            }
            depth += 1;
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, store: &Store, entry: u32) {
        let (key, length) = (store.value(entry), usize::from(store.length(entry)));
        // From the root down to what holds the entry.
        let mut path: Vec<(Place, u32)> = Vec::new();
        let mut place = None;
        let mut depth = 0;
        loop {
            let slot = self.slot(place);
            if slot == entry {
                break;
            }
            let number = slot & !NODE;
            let Some(node) = self.nodes.get(number).filter(|_| slot & NODE != 0) else {
                return;
            };
            path.push((place, number));
            depth += usize::from(node.skipped);
            let byte = byte(key, depth);
            if length < 8 * (depth + 1) {
                let end = end(byte, length - 8 * depth);
                place = Some((number, node.ends.rank(end)));
                break;
            }
            let Some(at) = node.follower(byte) else {
                return;
            };
            place = Some((number, at));
            depth += 1;
        }
        let Some((number, at)) = place else {
            self.root = NONE;
            return;
        };
        self.take_slot(number, at);
        while let Some((place, number)) = path.pop() {
            if !self.shorten(place, number) {
                break;
            }
        }
    }

    fn slot(&self, place: Place) -> u32 {
        match place {
            None => self.root,
            Some((node, at)) => self.nodes[node].slots[at],
        }
    }

    fn set_slot(&mut self, place: Place, slot: u32) {
        match place {
            None => self.root = slot,
            Some((node, at)) => self.nodes[node].slots[at] = slot,
        }
    }

    /// A slot for two entries that have all bytes up to `depth` in common.
    fn join(&mut self, store: &Store, a: u32, b: u32, depth: usize) -> u32 {
        let (key, other) = (store.value(a), store.value(b));
        let shorter = usize::from(store.length(a).min(store.length(b)));
        let bytes = common(key, other, depth, shorter / 8 - depth);
        let skipped = bytes.min(SKIP);
        let mut node = Node {
            skip: head(word(key, depth), skipped),
            skipped: skipped as u8,
            ..Node::default()
        };
        let depth = depth + skipped;
        if bytes > SKIP {
            let below = self.join(store, a, b, depth + 1);
            node.add_follower(byte(key, depth), below);
        } else {
            node.add(a, key, store.length(a).into(), depth);
            node.add(b, other, store.length(b).into(), depth);
        }
        NODE | self.nodes.add(node)
    }

    /// Puts a node above another that takes over its first skipped bytes.
    fn cut(&mut self, below: u32, bytes: usize) -> u32 {
        let node = &mut self.nodes[below];
        let mut above = Node {
            skip: head(node.skip, bytes),
            skipped: bytes as u8,
            ..Node::default()
        };
        let own = (node.skip >> (56 - 8 * bytes)) as u8;
        node.skip = match bytes + 1 {
            8 => 0,
            gone => node.skip << (8 * gone),
        };
        node.skipped -= bytes as u8 + 1;
        above.add_follower(own, NODE | below);
        self.nodes.add(above)
    }

    fn take_slot(&mut self, number: u32, at: usize) {
        let node = &mut self.nodes[number];
        let ends = usize::from(node.ends.count);
        let (set, nth) = match at < ends {
            true => (&mut node.ends, at),
            false => (&mut node.follows, at - ends),
        };
        if let Some(byte) = set.select(nth) {
            set.flip(byte);
        }
        node.slots.remove(at);
    }

    /// Does without a node that has only one thing left, where that can be;
    /// whether its place now holds an entry.
    fn shorten(&mut self, place: Place, number: u32) -> bool {
        let node = &self.nodes[number];
        let [slot] = node.slots[..] else {
            return false;
        };
        if slot & NODE == 0 {
            self.nodes.remove(number);
            self.set_slot(place, slot);
            return true;
        }
        let below = slot & !NODE;
        let (skip, skipped) = (node.skip, usize::from(node.skipped));
        let own = node.follows.select(0).unwrap_or(0);
        let lower = &mut self.nodes[below];
        let total = skipped + 1 + usize::from(lower.skipped);
        if total <= SKIP {
            let rest = match skipped + 1 {
                8 => 0,
                gone => lower.skip >> (8 * gone),
            };
            lower.skip = skip | u64::from(own) << (56 - 8 * skipped) | rest;
            lower.skipped = total as u8;
            self.nodes.remove(number);
            self.set_slot(place, slot);
        }
        false
    }
}

//! Ternary match in tables of a few dozen entries: a set of entries for each value of each byte.
//!
//! Every byte of the key that some entry cares about has a column: for each of the byte's 256
//! values, the set of entries that it fits, as bits in order of rank. What fits in all columns
//! matches, and the first of those wins. So a lookup reads one word a byte, whatever the masks.

use super::store::Store;

/// Entries, at most: the bits of a word.
pub(super) const MOST: usize = u64::BITS as usize;
/// Columns, at most: beyond, a tree costs less memory.
const COLUMNS: usize = 24;
/// Values of a byte.
const VALUES: usize = 256;

/// A byte of the key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    word: u16,
    shift: u8,
}

impl Place {
    #[inline(always)]
    fn byte(self, words: &[u64]) -> u8 {
        words
            .get(usize::from(self.word))
            .map_or(0, |word| (word >> (self.shift & 63)) as u8)
    }
}

/// The columns of one table.
#[derive(Default)]
pub(super) struct Columns {
    places: Vec<Place>,
    /// For each place the entries that each value fits.
    sets: Vec<u64>,
    /// Entries, highest rank first.
    entries: Vec<u32>,
}

impl Columns {
    /// Columns for some entries, if they are few and care about few bytes.
    pub(super) fn new(store: &Store, entries: impl Iterator<Item = u32>) -> Option<Self> {
        let mut columns = Columns::default();
        for entry in entries {
            if !columns.insert(store, entry) {
                return None;
            }
        }
        Some(columns)
    }

    /// The entries that match the key but for its ranges, highest rank first.
    #[inline]
    pub(super) fn candidates(&self, key: &[u64]) -> impl Iterator<Item = u32> {
        let all = u64::MAX
            .checked_shr((MOST - self.entries.len()) as u32)
            .unwrap_or(0);
        let columns = self.places.iter().zip(self.sets.chunks_exact(VALUES));
        let mut left = columns.fold(all, |left, (place, sets)| {
            left & sets[usize::from(place.byte(key))]
        });
        std::iter::from_fn(move || {
            let first = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            self.entries.get(first).copied()
        })
    }

    fn rank(&self, store: &Store, entry: u32) -> usize {
        let of = |entry| (std::cmp::Reverse(store.priority(entry)), entry);
        self.entries.partition_point(|&other| of(other) < of(entry))
    }

    /// Adds an entry; `false`: there are too many, or too many bytes to look at.
    pub(super) fn insert(&mut self, store: &Store, entry: u32) -> bool {
        let (value, mask) = (store.value(entry), store.mask(entry));
        for word in 0..mask.len() as u16 {
            for shift in (0..64).step_by(8) {
                let place = Place { word, shift };
                if place.byte(mask) != 0 && !self.places.contains(&place) {
                    self.places.push(place);
                    // No other entry cares.
                    self.sets.resize(self.sets.len() + VALUES, u64::MAX);
                }
            }
        }
        if self.entries.len() == MOST || self.places.len() > COLUMNS {
            return false;
        }
        let rank = self.rank(store, entry);
        let below = (1 << rank) - 1;
        for (place, sets) in self.places.iter().zip(self.sets.chunks_exact_mut(VALUES)) {
            let (value, mask) = (place.byte(value), place.byte(mask));
            for (byte, set) in (0..=u8::MAX).zip(sets) {
                let fits = u64::from(byte & mask == value) << rank;
                *set = *set & below | fits | (*set & !below) << 1;
            }
        }
        self.entries.insert(rank, entry);
        true
    }

    /// Takes an entry out that is still in the store.
    pub(super) fn remove(&mut self, store: &Store, entry: u32) {
        let rank = self.rank(store, entry);
        if self.entries.get(rank) != Some(&entry) {
            return;
        }
        self.entries.remove(rank);
        let below = (1 << rank) - 1;
        for set in &mut self.sets {
            *set = *set & below | *set >> 1 & !below;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::EntryKey;
    use super::super::store::Extra;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_find_what_a_scan_finds(
            entries in proptest::collection::vec((any::<[u8; 2]>(), any::<[u8; 2]>(), 1..4, any::<bool>()), 1..80),
            keys in proptest::collection::vec(any::<[u8; 2]>(), 20),
        ) {
            let word = |bytes: [u8; 2]| u64::from(bytes[0]) << 40 | u64::from(bytes[1] & 3);
            let mut store = Store::new(1, 0, 0, Extra::Mask);
            let mut columns = Columns::default();
            let mut there: Vec<u32> = Vec::new();
            for (value, mask, priority, remove) in entries {
                let mask = word(mask);
                let key = EntryKey {
                    value: vec![word(value) & mask],
                    mask: vec![mask],
                    ..EntryKey::default()
                };
                let entry = store.grow();
                store.set_key(entry, &key, priority);
                prop_assert_eq!(columns.insert(&store, entry), there.len() < MOST);
                if there.len() < MOST {
                    there.push(entry);
                }
                if remove {
                    let gone = there.remove(there.len() / 2);
                    columns.remove(&store, gone);
                }
                for key in &keys {
                    let key = word(*key);
                    let fits = |entry: &&u32| key & store.mask(**entry)[0] == store.value(**entry)[0];
                    let mut all: Vec<u32> = there.iter().filter(fits).copied().collect();
                    all.sort_by_key(|&entry| (std::cmp::Reverse(store.priority(entry)), entry));
                    prop_assert_eq!(columns.candidates(&[key]).collect::<Vec<_>>(), all);
                }
            }
        }
    }
}

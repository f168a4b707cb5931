//! Where a table's entries live, by entry number.

use super::Target;
use super::key::EntryKey;

/// Entries of one table. What a lookup touches of an entry is one row: what it
/// does, its key, its action data.
#[derive(Default)]
pub(crate) struct Store {
    /// Words of one key.
    words: usize,
    /// Words of one entry's ranges.
    range_words: usize,
    stride: usize,
    rows: Vec<u64>,
    /// Kept by ternary tables only, as are ranges and priorities.
    masks: Vec<u64>,
    ranges: Vec<u64>,
    priorities: Vec<i32>,
    /// Bits of the key that count, kept by prefix tables only.
    lengths: Vec<u16>,
    with_masks: bool,
    with_lengths: bool,
    len: usize,
}

/// What a [`Store`] keeps of each entry besides its key's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Nothing.
    None,
    /// How long the prefix is.
    Length,
    /// Mask, ranges and priority.
    Mask,
}

impl Store {
    pub(crate) fn new(words: usize, range_words: usize, data_words: usize, extra: Extra) -> Self {
        Store {
            words,
            range_words,
            stride: 1 + words + data_words,
            with_masks: extra == Extra::Mask,
            with_lengths: extra == Extra::Length,
            ..Store::default()
        }
    }

    /// Entry numbers in use, or free again.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn row(&self, entry: u32) -> &[u64] {
        &self.rows[entry as usize * self.stride..][..self.stride]
    }

    fn row_mut(&mut self, entry: u32) -> &mut [u64] {
        &mut self.rows[entry as usize * self.stride..][..self.stride]
    }

    #[inline(always)]
    pub(crate) fn target(&self, entry: u32) -> Target {
        Target::unpack(self.rows[entry as usize * self.stride])
    }

    /// What an entry does, and the data of its action.
    #[inline(always)]
    pub(crate) fn hit(&self, entry: u32) -> (Target, &[u64]) {
        let start = entry as usize * self.stride;
        match self.rows.get(start..start + self.stride) {
            Some([target, rest @ ..]) => {
                let data = rest.get(self.words..).unwrap_or(&[]);
                (Target::unpack(*target), data)
            }
            _ => (Target::Free, &[]),
        }
    }

    #[inline(always)]
    pub(crate) fn value(&self, entry: u32) -> &[u64] {
        &self.row(entry)[1..][..self.words]
    }

    #[inline(always)]
    pub(crate) fn data(&self, entry: u32) -> &[u64] {
        &self.row(entry)[1 + self.words..]
    }

    #[inline(always)]
    pub(crate) fn mask(&self, entry: u32) -> &[u64] {
        &self.masks[entry as usize * self.words..][..self.words]
    }

    #[inline(always)]
    pub(crate) fn range(&self, entry: u32) -> &[u64] {
        &self.ranges[entry as usize * self.range_words..][..self.range_words]
    }

    pub(crate) fn priority(&self, entry: u32) -> i32 {
        self.priorities.get(entry as usize).copied().unwrap_or(0)
    }

    pub(crate) fn length(&self, entry: u32) -> u16 {
        self.lengths[entry as usize]
    }

    /// Makes room for one more entry.
    pub(crate) fn grow(&mut self) -> u32 {
        let entry = self.len;
        self.len += 1;
        self.rows.resize(self.len * self.stride, 0);
        if self.with_masks {
            self.masks.resize(self.len * self.words, 0);
            self.ranges.resize(self.len * self.range_words, 0);
            self.priorities.push(0);
        }
        if self.with_lengths {
            self.lengths.push(0);
        }
        entry as u32
    }

    /// Writes an entry's key.
    pub(crate) fn set_key(&mut self, entry: u32, key: &EntryKey, priority: i32) {
        let (words, at) = (self.words, entry as usize);
        self.row_mut(entry)[1..][..words].copy_from_slice(&key.value);
        if self.with_masks {
            self.masks[at * words..][..words].copy_from_slice(&key.mask);
            self.ranges[at * self.range_words..][..self.range_words].copy_from_slice(&key.ranges);
            self.priorities[at] = priority;
        }
        if self.with_lengths {
            self.lengths[at] = key.length;
        }
    }

    /// Writes what an entry does.
    pub(crate) fn set_target(&mut self, entry: u32, target: Target, data: &[u64]) {
        let words = self.words;
        let row = self.row_mut(entry);
        row[0] = target.pack();
        let own = &mut row[1 + words..];
        own[..data.len()].copy_from_slice(data);
        own[data.len()..].fill(0);
    }
}

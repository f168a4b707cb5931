//! Keys of prefix tables as one string of bits.

use super::key::EntryKey;
use crate::exec::Frame;
use crate::program::code::{limbs, ones};
use crate::program::tables::{KeyPart, TableDef};
use crate::program::{MatchKind, TableInfo};

/// How the words of a key become a string of bits, first bit highest in the
/// first word: exact fields first, then the one with the prefix.
pub(crate) struct Align {
    moves: Vec<Move>,
    /// Words of the string.
    pub(crate) words: usize,
    /// Bits before the prefix.
    exact: u16,
}

/// Bits of a key's word that are together in a word of the string. The word's
/// bits go up by `left`, then down by `right`: one of them is 0.
struct Move {
    from: usize,
    to: usize,
    left: u8,
    right: u8,
    /// All bits of the key's word.
    mask: u64,
    /// It is the first one for its word of the string.
    first: bool,
}

impl Align {
    pub(crate) fn new(info: &TableInfo, def: &TableDef) -> Self {
        let mut moves = Vec::new();
        let mut at = 0;
        let mut exact = 0;
        let fields = info.keys.iter().zip(&def.keys);
        let (prefix, rest): (Vec<_>, Vec<_>) = fields.partition(|(k, _)| k.kind == MatchKind::Lpm);
        for (key, place) in rest.into_iter().chain(prefix) {
            if key.kind == MatchKind::Lpm {
                exact = at as u16;
            }
            let words = limbs(key.width);
            for limb in (0..words).rev() {
                let bits = (key.width - 64 * limb as u32).min(64) as usize;
                let mask = ones(bits as u8);
                let from = place.at + limb;
                let (to, end) = (at / 64, at % 64 + bits);
                let mut put = |to, left: usize, right: usize| {
                    let (left, right) = (left as u8, right as u8);
                    moves.push(Move {
                        from,
                        to,
                        left,
                        right,
                        mask,
                        first: moves.last().is_none_or(|last: &Move| last.to != to),
                    });
                };
                match end {
                    0..=64 => put(to, 64 - end, 0),
                    _ => {
                        put(to, 0, end - 64);
                        put(to + 1, 128 - end, 0);
                    }
                }
                at += bits;
            }
        }
        Align {
            moves,
            words: at.div_ceil(64),
            exact,
        }
    }

    /// A lookup key as a string, out of the frame.
    #[inline]
    pub(crate) fn build<'k>(
        &self,
        parts: &[KeyPart],
        frame: &Frame,
        key: &'k mut [u64],
    ) -> &'k [u64] {
        let key = &mut key[..self.words];
        for step in &self.moves {
            let part = &parts[step.from];
            let keep = part.mask & frame[usize::from(part.valid)].wrapping_neg();
            let word = frame[usize::from(part.slot)] & keep;
            let word = word << (step.left & 63) >> (step.right & 63);
            let own = &mut key[step.to];
            *own = if step.first { word } else { *own | word };
        }
        key
    }

    /// Turns an entry's key, of which `prefix` bits of one field count, into a
    /// string.
    pub(super) fn pack(&self, key: &mut EntryKey, prefix: u16) {
        let plain = std::mem::take(&mut key.value);
        key.value.resize(self.words, 0);
        for step in &self.moves {
            key.value[step.to] |= plain[step.from] << step.left >> step.right;
        }
        key.length = self.exact + prefix;
    }

    /// The words of the key and the length of its prefix.
    pub(super) fn unpack(&self, string: &[u64], length: u16) -> (Vec<u64>, u32) {
        let words = self.moves.iter().map(|m| m.from + 1).max().unwrap_or(0);
        let mut plain = vec![0; words];
        for step in &self.moves {
            plain[step.from] |= string[step.to] << step.right >> step.left & step.mask;
        }
        (plain, u32::from(length - self.exact))
    }
}

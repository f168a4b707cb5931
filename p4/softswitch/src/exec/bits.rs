//! Headers between packets and the frame, and bit strings in general.

use crate::exec::Frame;
use crate::program::code::Slot;
use crate::program::layout::HeaderLayout;

/// Bytes that must follow the last byte of a packet in its buffer, so that
/// eight bytes can be read from any place in it.
pub(crate) const PADDING: usize = 16;

fn word_at(buf: &[u8], byte: usize) -> u64 {
    match buf.get(byte..byte + 8).and_then(|b| b.try_into().ok()) {
        Some(bytes) => u64::from_be_bytes(bytes),
        None => 0,
    }
}

/// Up to 64 bits from bit `at` of the buffer.
fn up_to_word(buf: &[u8], at: usize, bits: u32) -> u64 {
    let (byte, skip) = (at / 8, (at % 8) as u32);
    let mut word = word_at(buf, byte) << skip;
    if skip + bits > 64 {
        word |= u64::from(buf.get(byte + 8).copied().unwrap_or(0)) >> (8 - skip);
    }
    word >> (64 - bits)
}

/// Reads `bits` from bit `at` of the buffer into words, least significant
/// first. Bits beyond the buffer read as zero.
pub(crate) fn read(buf: &[u8], at: usize, bits: u32, out: &mut [u64]) {
    let mut left = bits;
    for word in out {
        let take = left.min(64);
        left -= take;
        *word = match take {
            0 => 0,
            _ => up_to_word(buf, at + left as usize, take),
        };
    }
}

pub(crate) fn sign_extend(value: u64, bits: u8) -> u64 {
    let unused = 64 - u32::from(bits);
    ((value << unused) as i64 >> unused) as u64
}

/// Reads a header without varbit field, whose bytes are known to be there.
#[inline]
pub(crate) fn extract(frame: &mut Frame, header: &HeaderLayout, buf: &[u8], cursor: usize) {
    let bytes = &buf[cursor..];
    let mut word = 0;
    let mut is_new = true;
    for part in &header.parts {
        if is_new {
            word = word_at(bytes, part.byte.into());
        }
        is_new = part.last;
        frame[usize::from(part.slot)] = word >> (part.shift & 63) & part.mask;
    }
    if !header.slow.is_empty() {
        extract_slow(frame, header, buf, cursor);
    }
    for &(slot, bits) in &header.signed {
        let word = &mut frame[usize::from(slot)];
        *word = sign_extend(*word, bits);
    }
}

/// The fields that are in no run of whole bytes.
#[inline(never)]
fn extract_slow(frame: &mut Frame, header: &HeaderLayout, buf: &[u8], cursor: usize) {
    for &(bit, field) in &header.slow {
        let field = &header.fields[usize::from(field)];
        let words = field_words(frame, field.slot, field.limbs());
        read(buf, 8 * cursor + bit as usize, field.bits, words);
        if field.signed {
            extend_top(words, field.bits);
        }
    }
}

/// Repeats the sign bit of a number of `bits` to the end of its last word.
fn extend_top(words: &mut [u64], bits: u32) {
    if let (Some(top), rest @ 1..) = (words.last_mut(), bits % 64) {
        *top = sign_extend(*top, rest as u8);
    }
}

fn field_words(frame: &mut Frame, slot: Slot, limbs: usize) -> &mut [u64] {
    &mut frame[usize::from(slot)..][..limbs]
}

/// Reads a header with a varbit field of `varbits` bits.
pub(crate) fn extract_varbit(
    frame: &mut Frame,
    header: &HeaderLayout,
    buf: &[u8],
    cursor: usize,
    varbits: u32,
) {
    let mut at = 8 * cursor;
    for field in &header.fields {
        let bits = match field.varbit {
            true => varbits,
            false => field.bits,
        };
        if field.varbit {
            frame[usize::from(field.slot) - 1] = u64::from(varbits);
        }
        let words = field_words(frame, field.slot, field.limbs());
        read(buf, at, bits, words);
        if field.signed {
            extend_top(words, bits);
        }
        at += bits as usize;
    }
}

/// Bytes of the header on the wire, its varbit field included.
pub(crate) fn header_bytes(frame: &Frame, header: &HeaderLayout) -> usize {
    let varbits = match header.varbit {
        None => 0,
        Some(field) => frame[usize::from(header.fields[field].slot) - 1] as usize,
    };
    usize::from(header.bytes) + varbits / 8
}

/// Bytes after a header that [`emit`] may write over.
pub(crate) const OVERRUN: usize = 8;

/// Writes a header to `out` from byte `start` on and says how many bytes it
/// takes. `out` is long enough for it and [`OVERRUN`] bytes more.
#[inline]
pub(crate) fn emit(frame: &Frame, header: &HeaderLayout, out: &mut [u8], start: usize) -> usize {
    let out = &mut out[start..];
    if header.varbit.is_some() {
        return emit_varbit(frame, header, out);
    }
    let mut word = 0;
    for part in &header.parts {
        word |= (frame[usize::from(part.slot)] & part.mask) << (part.shift & 63);
        if part.last {
            let at = usize::from(part.byte);
            if let Some(bytes) = out.get_mut(at..at + 8) {
                bytes.copy_from_slice(&word.to_be_bytes());
            }
            word = 0;
        }
    }
    if !header.slow.is_empty() {
        emit_slow(frame, header, out);
    }
    usize::from(header.bytes)
}

/// The fields that are in no run of whole bytes.
#[inline(never)]
fn emit_slow(frame: &Frame, header: &HeaderLayout, out: &mut [u8]) {
    for &(bit, field) in &header.slow {
        let field = &header.fields[usize::from(field)];
        let words = &frame[usize::from(field.slot)..][..field.limbs()];
        write(out, bit as usize, words, field.bits);
    }
}

#[inline(never)]
fn emit_varbit(frame: &Frame, header: &HeaderLayout, out: &mut [u8]) -> usize {
    let mut at = 0;
    for field in &header.fields {
        let bits = match field.varbit {
            true => frame[usize::from(field.slot) - 1] as u32,
            false => field.bits,
        };
        let words = &frame[usize::from(field.slot)..][..field.limbs()];
        write(out, at, words, bits);
        at += bits as usize;
    }
    at.div_ceil(8)
}

/// Writes the low `bits` of some words at bit `at`; leaves the bits around
/// them alone.
fn write(out: &mut [u8], at: usize, words: &[u64], bits: u32) {
    let mut left = bits;
    for &word in words {
        let take = left.min(64);
        left -= take;
        write_word(out, at + left as usize, word, take);
    }
}

fn write_word(out: &mut [u8], at: usize, word: u64, bits: u32) {
    let mut left = bits;
    let mut at = at;
    while left > 0 {
        let skip = (at % 8) as u32;
        let take = (8 - skip).min(left);
        let shift = 8 - skip - take;
        let mask = (0xffu8 >> (8 - take)) << shift;
        let value = ((word >> (left - take)) as u8) << shift;
        let byte = &mut out[at / 8];
        *byte = *byte & !mask | value & mask;
        left -= take;
        at += take as usize;
    }
}

/// Appends bit strings, first bit first.
pub(crate) struct Writer<'a> {
    /// Long enough for a few more words; zeros or old bytes behind `at`.
    out: &'a mut Vec<u8>,
    /// Whole bytes written.
    at: usize,
    /// Bits not yet in `out`, from the highest down.
    pending: u64,
    /// How many they are: fewer than 64.
    count: u32,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Writer {
            out,
            at: 0,
            pending: 0,
            count: 0,
        }
    }

    /// Writes eight bytes, of which the next ones may be written over.
    #[inline(always)]
    fn put(&mut self, word: u64) {
        match self.out.get_mut(self.at..self.at + 8) {
            Some(bytes) => bytes.copy_from_slice(&word.to_be_bytes()),
            None => {
                self.out.truncate(self.at);
                self.out.extend_from_slice(&word.to_be_bytes());
            }
        }
    }

    /// Appends the low `bits` (at most 64) of a word.
    #[inline]
    pub(crate) fn word(&mut self, word: u64, bits: u32) {
        if bits == 0 {
            return;
        }
        let word = word << (64 - bits);
        if self.count == 0 && bits.is_multiple_of(8) {
            self.put(word);
            self.at += bits as usize / 8;
            return;
        }
        self.pending |= word >> self.count;
        let room = 64 - self.count;
        if bits < room {
            self.count += bits;
            return;
        }
        self.put(self.pending);
        self.at += 8;
        self.count = bits - room;
        self.pending = if room == 64 { 0 } else { word << room };
    }

    #[inline]
    pub(crate) fn words(&mut self, words: &[u64], bits: u32) {
        let top = bits.div_ceil(64).max(1) as usize;
        for (i, &word) in words.iter().take(top).enumerate().rev() {
            self.word(word, (bits - 64 * i as u32).min(64));
        }
    }

    /// Pads the last byte with zeros.
    pub(crate) fn finish(mut self) -> (&'a mut Vec<u8>, usize) {
        self.put(self.pending);
        let end = self.at + self.count.div_ceil(8) as usize;
        (self.out, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::code::ones;
    use proptest::prelude::*;

    fn naive(bytes: &[u8], at: usize, bits: u32) -> u128 {
        (at..at + bits as usize).fold(0, |v, i| {
            v << 1 | u128::from(bytes[i / 8] >> (7 - i % 8) & 1)
        })
    }

    proptest! {
        #[test]
        fn read_is_bit_by_bit(bytes in proptest::collection::vec(any::<u8>(), 40),
                              at in 0usize..64, bits in 1u32..=128) {
            let mut words = [0; 2];
            read(&bytes, at, bits, &mut words);
            let value = u128::from(words[1]) << 64 | u128::from(words[0]);
            prop_assert_eq!(value, naive(&bytes, at, bits));
        }

        #[test]
        fn write_touches_its_bits_only(bytes in proptest::collection::vec(any::<u8>(), 40),
                                       at in 0usize..64, bits in 1u32..=128, value: u128) {
            let value = value & (u128::MAX >> (128 - bits));
            let mut out = bytes.clone();
            write(&mut out, at, &[value as u64, (value >> 64) as u64], bits);
            prop_assert_eq!(naive(&out, at, bits), value);
            for i in (0..320).filter(|i| !(at..at + bits as usize).contains(i)) {
                prop_assert_eq!(naive(&out, i, 1), naive(&bytes, i, 1));
            }
        }

        #[test]
        fn writer_is_concatenation(parts in proptest::collection::vec((any::<u64>(), 1u32..=64), 0..8),
                                   before in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut out = before;
            let mut writer = Writer::new(&mut out);
            parts.iter().for_each(|&(word, bits)| writer.word(word, bits));
            let (_, end) = writer.finish();
            out.truncate(end);
            let mut at = 0;
            for (word, bits) in parts {
                prop_assert_eq!(naive(&out, at, bits) as u64, word & ones(bits as u8));
                at += bits as usize;
            }
            prop_assert_eq!(out.len(), at.div_ceil(8));
        }
    }
}

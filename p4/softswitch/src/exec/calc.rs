//! Hashes and checksums over the packet.

use crate::crc::Crc;
use crate::exec::Frame;
use crate::exec::bits::Writer;
use crate::exec::packet::Inner;
use crate::hash::{self, Algorithm};
use crate::program::calc::{Calculation, Input, Term, Terms};
use crate::program::code::{limbs, ones};
use crate::random::Random;

/// What calculations take of a switch's state.
pub(crate) struct Own<'a> {
    pub(crate) random: &'a mut Random,
    /// CRCs whose parameters are the control plane's.
    pub(crate) crcs: &'a [Crc],
}

/// The result of a calculation.
pub(crate) fn evaluate(
    calculation: &Calculation,
    frame: &Frame,
    packet: &Inner,
    bytes: &mut Vec<u8>,
    own: Own<'_>,
) -> u64 {
    match calculation.algorithm {
        Algorithm::Csum16 => {
            let sum = match &calculation.terms {
                Some(terms) => sum_terms(terms, frame),
                None => internet_sum(calculation, frame, packet),
            };
            u64::from(!hash::fold(sum))
        }
        Algorithm::Random => own.random.next(),
        other => {
            let mut writer = Writer::new(bytes);
            for input in &calculation.input {
                serialize(input, frame, &mut writer);
            }
            let (bytes, end) = writer.finish();
            let bytes = match calculation.payload {
                true => {
                    bytes.truncate(end);
                    bytes.extend_from_slice(payload(packet));
                    &bytes[..]
                }
                false => &bytes[..end],
            };
            match calculation
                .custom
                .and_then(|at| own.crcs.get(usize::from(at)))
            {
                Some(crc) => crc.of(bytes),
                None => other.hash(bytes),
            }
        }
    }
}

/// What follows the parsed headers, as far as it will be sent.
fn payload(packet: &Inner) -> &[u8] {
    let payload = packet.payload();
    &payload[..packet.cut.min(payload.len())]
}

fn serialize(input: &Input, frame: &Frame, writer: &mut Writer<'_>) {
    match input {
        Input::Field { slot, bits, valid } => {
            if valid.is_none_or(|v| frame[usize::from(v)] != 0) {
                let at = usize::from(*slot);
                match *bits {
                    0..=64 => writer.word(frame[at], *bits),
                    bits => writer.words(&frame[at..at + limbs(bits)], bits),
                }
            }
        }
        Input::Varbit { slot, valid } => {
            if frame[usize::from(*valid)] != 0 {
                let at = usize::from(*slot);
                let bits = frame[at - 1] as u32;
                writer.words(&frame[at..at + limbs(bits)], bits);
            }
        }
        Input::Constant { words, bits } => writer.words(words, *bits),
        Input::Packed { terms, bits, valid } => {
            if valid.is_none_or(|v| frame[usize::from(v)] != 0) {
                writer.word(packed(terms, frame), *bits);
            }
        }
    }
}

/// [`internet_sum`] of simple input.
fn sum_terms(terms: &Terms, frame: &Frame) -> u64 {
    if terms.valid.is_some_and(|v| frame[usize::from(v)] == 0) {
        return 0;
    }
    // The terms are narrow enough not to overflow.
    terms.terms.iter().fold(0u64, |sum, term| {
        sum.wrapping_add((frame[usize::from(term.slot)] & term.mask) << (term.shift & 63))
    })
}

/// Fields next to each other.
#[inline(always)]
fn packed(terms: &[Term], frame: &Frame) -> u64 {
    terms.iter().fold(0, |word, term| {
        word | (frame[usize::from(term.slot)] & term.mask) << (term.shift & 63)
    })
}

/// Sum of 16-bit words, without writing the input down: modulo 65535, shifting
/// a number by 16 bits leaves it alone, so that only a field's place within a
/// 16-bit word matters.
fn internet_sum(calculation: &Calculation, frame: &Frame, packet: &Inner) -> u64 {
    let mut sum = 0u64;
    let mut end = 0u32;
    let mut word = [0];
    for input in &calculation.input {
        let (words, bits): (&[u64], u32) = match input {
            Input::Field { slot, bits, valid } => {
                if valid.is_some_and(|v| frame[usize::from(v)] == 0) {
                    continue;
                }
                let at = usize::from(*slot);
                (&frame[at..at + limbs(*bits)], *bits)
            }
            Input::Varbit { slot, valid } => {
                let at = usize::from(*slot);
                let bits = frame[at - 1] as u32;
                if frame[usize::from(*valid)] == 0 || bits == 0 {
                    continue;
                }
                (&frame[at..at + limbs(bits)], bits)
            }
            Input::Constant { words, bits } => (words, *bits),
            Input::Packed { terms, bits, valid } => {
                if valid.is_some_and(|v| frame[usize::from(v)] == 0) {
                    continue;
                }
                word[0] = packed(terms, frame);
                (&word, *bits)
            }
        };
        end += bits;
        let shift = end.wrapping_neg() % 16;
        for (i, &word) in words.iter().enumerate() {
            let kept = (bits - 64 * i as u32).min(64) as u8;
            sum = add(sum, word & ones(kept), shift);
        }
    }
    if calculation.payload {
        // Bytes after an odd number of bytes fall on the other half of words.
        let payload = u64::from(hash::fold(hash::ones_sum(payload(packet))));
        sum = add(sum, payload, end % 16);
    }
    sum
}

/// Adds `word << shift`, reduced so that the sum stays small.
#[inline(always)]
fn add(sum: u64, word: u64, shift: u32) -> u64 {
    let wide = u128::from(word) << shift;
    let (low, high) = (wide as u64, (wide >> 64) as u64);
    sum + (low & 0xffff_ffff) + (low >> 32) + high
}

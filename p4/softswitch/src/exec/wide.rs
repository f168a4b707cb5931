//! Instructions on numbers of more than 64 bits.

use std::cmp::Ordering;

use crate::exec::Frame;
use crate::program::code::{Ins, Slot, ones};

/// Longest number, in words.
const MAX: usize = 256;

fn at(slot: Slot) -> usize {
    usize::from(slot)
}

fn get(frame: &Frame, slot: Slot, n: u8) -> &[u64] {
    &frame[at(slot)..][..usize::from(n)]
}

fn put(frame: &mut Frame, slot: Slot, words: &[u64]) {
    frame[at(slot)..][..words.len()].copy_from_slice(words);
}

fn zip(frame: &mut Frame, n: u8, (d, a, b): (Slot, Slot, Slot), op: impl Fn(u64, u64) -> u64) {
    for i in 0..usize::from(n) {
        frame[at(d) + i] = op(frame[at(a) + i], frame[at(b) + i]);
    }
}

/// Runs a wide instruction; `false`: it is not one.
pub(super) fn run(ins: Ins, frame: &mut Frame) -> bool {
    match ins {
        Ins::WMov { n, d, a } => frame.copy_within(at(a)..at(a) + usize::from(n), at(d)),
        Ins::WMask { n, bits, d, a } => {
            frame.copy_within(at(a)..at(a) + usize::from(n), at(d));
            mask(&mut frame[at(d)..][..usize::from(n)], bits);
        }
        Ins::WSext { n, bits, d, a } => {
            frame.copy_within(at(a)..at(a) + usize::from(n), at(d));
            sext(&mut frame[at(d)..][..usize::from(n)], bits);
        }
        Ins::WExt {
            from,
            to,
            sign,
            d,
            a,
        } => {
            frame.copy_within(at(a)..at(a) + usize::from(from), at(d));
            let top = frame[at(d) + usize::from(from) - 1];
            let fill = if sign && top >> 63 == 1 { u64::MAX } else { 0 };
            frame[at(d) + usize::from(from)..at(d) + usize::from(to)].fill(fill);
        }
        Ins::WAdd { n, d, a, b } => add(frame, n, d, a, b),
        Ins::WSub { n, d, a, b } => sub(frame, n, d, a, b),
        Ins::WMul { n, d, a, b } => mul(frame, n, d, a, b),
        Ins::WDivU { n, d, a, b } => {
            let (quotient, _) = divide(get(frame, a, n), get(frame, b, n));
            put(frame, d, &quotient[..usize::from(n)]);
        }
        Ins::WRemU { n, d, a, b } => {
            let (_, rest) = divide(get(frame, a, n), get(frame, b, n));
            put(frame, d, &rest[..usize::from(n)]);
        }
        Ins::WDivS { n, d, a, b } => divide_signed(frame, n, (d, a, b), false),
        Ins::WRemS { n, d, a, b } => divide_signed(frame, n, (d, a, b), true),
        Ins::WAnd { n, d, a, b } => zip(frame, n, (d, a, b), |a, b| a & b),
        Ins::WOr { n, d, a, b } => zip(frame, n, (d, a, b), |a, b| a | b),
        Ins::WXor { n, d, a, b } => zip(frame, n, (d, a, b), |a, b| a ^ b),
        Ins::WNot { n, d, a } => zip(frame, n, (d, a, a), |a, _| !a),
        Ins::WShl { n, d, a, b } => shift(frame, n, (d, a, b), Shift::Left),
        Ins::WShrU { n, d, a, b } => shift(frame, n, (d, a, b), Shift::Right),
        Ins::WShrS { n, d, a, b } => shift(frame, n, (d, a, b), Shift::Arithmetic),
        Ins::WEq { n, d, a, b } => {
            frame[at(d)] = u64::from(get(frame, a, n) == get(frame, b, n));
        }
        Ins::WNe { n, d, a, b } => {
            frame[at(d)] = u64::from(get(frame, a, n) != get(frame, b, n));
        }
        Ins::WLt { n, d, a, b } => {
            let order = compare(get(frame, a, n), get(frame, b, n));
            frame[at(d)] = u64::from(order == Ordering::Less);
        }
        Ins::WLe { n, d, a, b } => {
            let order = compare(get(frame, a, n), get(frame, b, n));
            frame[at(d)] = u64::from(order != Ordering::Greater);
        }
        Ins::WNonZero { n, d, a } => {
            frame[at(d)] = u64::from(get(frame, a, n).iter().any(|&w| w != 0));
        }
        Ins::WUsat { n, bits, d, a } => saturate(frame, n, bits, d, a, false),
        Ins::WSat { n, bits, d, a } => saturate(frame, n, bits, d, a, true),
        _ => return false,
    }
    true
}

/// Keeps the low `bits`.
fn mask(words: &mut [u64], bits: u16) {
    for (i, word) in words.iter_mut().enumerate() {
        let left = usize::from(bits).saturating_sub(64 * i).min(64) as u8;
        *word &= if left == 0 { 0 } else { ones(left) };
    }
}

/// Repeats bit `bits - 1` upwards.
fn sext(words: &mut [u64], bits: u16) {
    let sign = usize::from(bits) - 1;
    let negative = words
        .get(sign / 64)
        .is_some_and(|w| w >> (sign % 64) & 1 == 1);
    mask(words, bits);
    if negative {
        for (i, word) in words.iter_mut().enumerate() {
            let left = usize::from(bits).saturating_sub(64 * i).min(64) as u8;
            *word |= if left == 0 { u64::MAX } else { !ones(left) };
        }
    }
}

fn add(frame: &mut Frame, n: u8, d: Slot, a: Slot, b: Slot) {
    let mut carry = false;
    for i in 0..usize::from(n) {
        let (sum, over) = frame[at(a) + i].overflowing_add(frame[at(b) + i]);
        let (sum, over_carry) = sum.overflowing_add(u64::from(carry));
        frame[at(d) + i] = sum;
        carry = over || over_carry;
    }
}

fn sub(frame: &mut Frame, n: u8, d: Slot, a: Slot, b: Slot) {
    let mut borrow = false;
    for i in 0..usize::from(n) {
        let (rest, under) = frame[at(a) + i].overflowing_sub(frame[at(b) + i]);
        let (rest, under_borrow) = rest.overflowing_sub(u64::from(borrow));
        frame[at(d) + i] = rest;
        borrow = under || under_borrow;
    }
}

/// Modulo `2^(64 n)`, which is right for two's complement too.
fn mul(frame: &mut Frame, n: u8, d: Slot, a: Slot, b: Slot) {
    let n = usize::from(n);
    let mut product = [0u64; MAX];
    for i in 0..n {
        let mut carry = 0u128;
        for j in 0..n - i {
            let sum = u128::from(frame[at(a) + i]) * u128::from(frame[at(b) + j])
                + u128::from(product[i + j])
                + carry;
            product[i + j] = sum as u64;
            carry = sum >> 64;
        }
    }
    put(frame, d, &product[..n]);
}

/// Quotient and remainder of unsigned numbers; zero divides into zero.
fn divide(a: &[u64], b: &[u64]) -> ([u64; MAX], [u64; MAX]) {
    let (mut quotient, mut rest) = ([0u64; MAX], [0u64; MAX]);
    if b.iter().all(|&w| w == 0) {
        return (quotient, rest);
    }
    let n = a.len();
    for bit in (0..64 * n).rev() {
        let mut carry = a[bit / 64] >> (bit % 64) & 1;
        for word in &mut rest[..n] {
            let out = *word >> 63;
            *word = *word << 1 | carry;
            carry = out;
        }
        let fits = carry == 1 || rest[..n].iter().rev().cmp(b.iter().rev()) != Ordering::Less;
        if fits {
            let mut borrow = false;
            for (r, &b) in rest[..n].iter_mut().zip(b) {
                let (x, under) = r.overflowing_sub(b);
                let (x, under_borrow) = x.overflowing_sub(u64::from(borrow));
                *r = x;
                borrow = under || under_borrow;
            }
            quotient[bit / 64] |= 1 << (bit % 64);
        }
    }
    (quotient, rest)
}

fn negate(words: &mut [u64]) {
    let mut carry = true;
    for word in words {
        let (sum, overflow) = (!*word).overflowing_add(u64::from(carry));
        *word = sum;
        carry = overflow;
    }
}

/// Quotient towards zero, or the remainder, which has the sign of `a`.
fn divide_signed(frame: &mut Frame, n: u8, (d, a, b): (Slot, Slot, Slot), remainder: bool) {
    let n_words = usize::from(n);
    let is_negative = |words: &[u64]| words.last().is_some_and(|w| w >> 63 == 1);
    let magnitude = |words: &[u64]| {
        let mut out = [0u64; MAX];
        out[..n_words].copy_from_slice(words);
        if is_negative(words) {
            negate(&mut out[..n_words]);
        }
        out
    };
    let (a, b) = (get(frame, a, n), get(frame, b, n));
    let minus = is_negative(a) != (!remainder && is_negative(b));
    let (quotient, rest) = divide(&magnitude(a)[..n_words], &magnitude(b)[..n_words]);
    let mut result = if remainder { rest } else { quotient };
    if minus {
        negate(&mut result[..n_words]);
    }
    put(frame, d, &result[..n_words]);
}

#[derive(Clone, Copy, PartialEq)]
enum Shift {
    Left,
    Right,
    Arithmetic,
}

fn shift(frame: &mut Frame, n: u8, (d, a, b): (Slot, Slot, Slot), how: Shift) {
    let by = frame[at(b)];
    let n = usize::from(n);
    let mut from = [0u64; MAX];
    from[..n].copy_from_slice(&frame[at(a)..][..n]);
    let negative = how == Shift::Arithmetic && from[n - 1] >> 63 == 1;
    let fill = if negative { u64::MAX } else { 0 };
    let (words, bits) = (
        usize::try_from(by / 64).unwrap_or(usize::MAX),
        (by % 64) as u32,
    );
    let word = |i: Option<usize>| match i {
        Some(i) if i < n => from[i],
        _ => fill,
    };
    for i in 0..n {
        frame[at(d) + i] = match how {
            Shift::Left => {
                let high = word(i.checked_sub(words));
                let low = word(i.checked_sub(words).and_then(|i| i.checked_sub(1)));
                if bits == 0 {
                    high
                } else {
                    high << bits | low >> (64 - bits)
                }
            }
            _ => {
                let low = word(i.checked_add(words));
                let high = word(i.checked_add(words).and_then(|i| i.checked_add(1)));
                if bits == 0 {
                    low
                } else {
                    low >> bits | high << (64 - bits)
                }
            }
        };
    }
}

/// Of two's complement numbers of the same length.
fn compare(a: &[u64], b: &[u64]) -> Ordering {
    let top = |words: &[u64]| words.last().map_or(0, |&w| w as i64);
    top(a)
        .cmp(&top(b))
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

fn saturate(frame: &mut Frame, n: u8, bits: u16, d: Slot, a: Slot, signed: bool) {
    let n = usize::from(n);
    let mut low = [0u64; MAX];
    let mut high = [u64::MAX; MAX];
    mask(&mut high[..n], if signed { bits - 1 } else { bits });
    if signed {
        for (l, h) in low[..n].iter_mut().zip(&high[..n]) {
            *l = !h;
        }
    }
    let value = &frame[at(a)..][..n];
    let result = if compare(value, &low[..n]) == Ordering::Less {
        &low[..n]
    } else if compare(value, &high[..n]) == Ordering::Greater {
        &high[..n]
    } else {
        frame.copy_within(at(a)..at(a) + n, at(d));
        return;
    };
    put(frame, d, result);
}

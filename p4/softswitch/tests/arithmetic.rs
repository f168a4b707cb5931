//! Expressions at widths on both sides of 64 and 128 bits agree with plain
//! arithmetic.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use proptest::prelude::*;
use softswitch::{Program, Switch, SwitchConfig};

const WIDTHS: [u32; 5] = [8, 33, 64, 65, 128];

/// Bits of a packet under construction or inspection.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(&mut self, value: u128, width: u32) {
        self.0.extend((0..width).rev().map(|i| value >> i & 1 == 1));
    }

    /// A value with zeros in front to whole bytes.
    fn padded(&mut self, value: u128, width: u32) {
        self.put(0, width.wrapping_neg() % 8);
        self.put(value, width);
    }

    fn bytes(&self) -> Vec<u8> {
        self.0
            .chunks(8)
            .map(|c| c.iter().fold(0, |b, &bit| b << 1 | u8::from(bit)))
            .collect()
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, width: u32) -> u128 {
        (0..width).fold(0, |value, _| {
            let bit = self.bytes[self.at / 8] >> (7 - self.at % 8) & 1;
            self.at += 1;
            value << 1 | u128::from(bit)
        })
    }

    fn padded(&mut self, width: u32) -> u128 {
        self.take(width.wrapping_neg() % 8);
        self.take(width)
    }
}

fn mask(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}

fn signed(value: u128, width: u32) -> i128 {
    (value << (128 - width)) as i128 >> (128 - width)
}

/// Sum of two signed numbers within `width` bits, with a sign for overflow.
fn saturate(exact: Option<i128>, width: u32, positive: bool) -> i128 {
    let high = (mask(width) >> 1) as i128;
    match exact {
        Some(value) => value.clamp(-high - 1, high),
        None if positive => high,
        None => -high - 1,
    }
}

fn unsigned_results(width: u32, a: u128, b: u128, shift: u32) -> Vec<u128> {
    let m = mask(width);
    let (high, low) = (width - 2, width / 3);
    let sum = a.wrapping_add(b) & m;
    vec![
        sum,
        a.wrapping_sub(b) & m,
        a.wrapping_mul(b) & m,
        a & b,
        a | b,
        a ^ b,
        !a & m,
        a.checked_shl(shift).unwrap_or(0) & m,
        a.checked_shr(shift).unwrap_or(0),
        a.saturating_add(b).min(m),
        a.saturating_sub(b),
        sum >> low & mask(high - low + 1),
    ]
}

fn signed_results(width: u32, a: u128, b: u128, shift: u32) -> Vec<u128> {
    let m = mask(width);
    let (x, y) = (signed(a, width), signed(b, width));
    vec![
        x.wrapping_add(y) as u128 & m,
        x.wrapping_sub(y) as u128 & m,
        x.wrapping_mul(y) as u128 & m,
        (x >> shift.min(127)) as u128 & m,
        saturate(x.checked_add(y), width, y > 0) as u128 & m,
        saturate(x.checked_sub(y), width, y < 0) as u128 & m,
        x.wrapping_neg() as u128 & m,
    ]
}

fn order<T: Ord>(a: &T, b: &T) -> u128 {
    u128::from(a < b) | u128::from(a <= b) << 1 | u128::from(a == b) << 2 | u128::from(a > b) << 3
}

/// Numbers near the edges more often than elsewhere.
fn operand() -> impl Strategy<Value = u128> {
    prop_oneof![
        any::<u128>(),
        (0u128..4),
        (0u128..4).prop_map(|v| u128::MAX - v),
        (0u32..128, any::<bool>()).prop_map(|(s, minus)| (1u128 << s).wrapping_sub(minus.into())),
    ]
}

fn run(packet: &[u8]) -> Vec<u8> {
    let program = Program::load(include_bytes!("programs/arithmetic.json")).unwrap();
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    switch.ingress(0, packet, 0);
    switch.dequeue(1, 0).expect("the packet comes back").bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_operator_at_every_width(
        operands in proptest::collection::vec((operand(), operand(), 0u32..=140), 10),
    ) {
        let cases: Vec<(u32, bool, u128, u128, u32)> = WIDTHS
            .iter()
            .flat_map(|&w| [(w, false), (w, true)])
            .zip(&operands)
            .map(|((w, sign), &(a, b, shift))| (w, sign, a & mask(w), b & mask(w), shift))
            .collect();
        let mut bits = Bits::default();
        for &(width, sign, a, b, shift) in &cases {
            bits.put(shift.into(), 8);
            bits.padded(a, width);
            bits.padded(b, width);
            for _ in 0..if sign { 7 } else { 12 } {
                bits.padded(0, width);
            }
            bits.put(0, 8);
        }
        let out = run(&bits.bytes());
        let mut reader = Reader { bytes: &out, at: 0 };
        for &(width, sign, a, b, shift) in &cases {
            reader.take(8);
            prop_assert_eq!(reader.padded(width), a);
            prop_assert_eq!(reader.padded(width), b);
            let wanted = match sign {
                false => unsigned_results(width, a, b, shift),
                true => signed_results(width, a, b, shift),
            };
            for (number, wanted) in wanted.into_iter().enumerate() {
                let got = reader.padded(width);
                prop_assert_eq!(
                    got, wanted,
                    "result {} of {} bits, signed {}: {:#x}, {:#x}, {}", number, width, sign, a, b, shift
                );
            }
            let wanted = match sign {
                false => order(&a, &b),
                true => order(&signed(a, width), &signed(b, width)),
            };
            prop_assert_eq!(reader.take(8), wanted, "order at {} bits, signed {}", width, sign);
        }
    }
}

//! Bit strings of any width as the control plane sees them.

use std::fmt;

/// An unsigned bit string of any width, without its width.
///
/// Values up to 128 bits are held inline; wider ones as 64-bit limbs, least
/// significant first. Two values are equal when their numbers are equal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(u128),
    /// At least three limbs, the last one not zero.
    Wide(Box<[u64]>),
}

impl PartialOrd for Repr {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Repr {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (self, other) {
            (Repr::Small(a), Repr::Small(b)) => a.cmp(b),
            (Repr::Small(_), Repr::Wide(_)) => std::cmp::Ordering::Less,
            (Repr::Wide(_), Repr::Small(_)) => std::cmp::Ordering::Greater,
            (Repr::Wide(a), Repr::Wide(b)) => a
                .len()
                .cmp(&b.len())
                .then_with(|| a.iter().rev().cmp(b.iter().rev())),
        }
    }
}

impl Value {
    /// The number zero.
    pub const ZERO: Value = Value(Repr::Small(0));

    /// A value of up to 128 bits.
    pub const fn new(value: u128) -> Self {
        Value(Repr::Small(value))
    }

    /// From 64-bit limbs, least significant first.
    pub fn from_limbs(limbs: &[u64]) -> Self {
        let len = limbs.iter().rposition(|&l| l != 0).map_or(0, |p| p + 1);
        match len {
            0 => Value::ZERO,
            1 => Value::new(limbs[0].into()),
            2 => Value::new(u128::from(limbs[0]) | u128::from(limbs[1]) << 64),
            _ => Value(Repr::Wide(limbs[..len].into())),
        }
    }

    /// From big-endian bytes, as P4Runtime carries them (any padding).
    pub fn from_be_bytes(bytes: &[u8]) -> Self {
        if bytes.len() <= 16 {
            let number = bytes.iter().fold(0u128, |v, &b| v << 8 | u128::from(b));
            return Value::new(number);
        }
        let limbs: Vec<u64> = bytes
            .rchunks(8)
            .map(|chunk| chunk.iter().fold(0u64, |v, &b| v << 8 | u64::from(b)))
            .collect();
        Value::from_limbs(&limbs)
    }

    /// Shortest big-endian form: no leading zero bytes, one zero byte for zero.
    pub fn to_be_bytes(&self) -> Vec<u8> {
        let len = (self.bits().div_ceil(8)).max(1) as usize;
        (0..len).rev().map(|i| self.byte(i)).collect()
    }

    fn byte(&self, index: usize) -> u8 {
        (self.limb(index / 8) >> (8 * (index % 8))) as u8
    }

    /// Limb `index` (bits `64 * index` and up); zero beyond the value.
    pub fn limb(&self, index: usize) -> u64 {
        match &self.0 {
            Repr::Small(v) if index < 2 => (v >> (64 * index)) as u64,
            Repr::Small(_) => 0,
            Repr::Wide(limbs) => limbs.get(index).copied().unwrap_or(0),
        }
    }

    /// The number, when it fits 128 bits.
    pub fn as_u128(&self) -> Option<u128> {
        match self.0 {
            Repr::Small(v) => Some(v),
            Repr::Wide(_) => None,
        }
    }

    /// The low 64 bits.
    pub fn low_u64(&self) -> u64 {
        self.limb(0)
    }

    /// Bits needed to write the number: 0 for zero.
    pub fn bits(&self) -> u32 {
        match &self.0 {
            Repr::Small(v) => 128 - v.leading_zeros(),
            Repr::Wide(limbs) => {
                let last = limbs.len() - 1;
                64 * last as u32 + (64 - limbs[last].leading_zeros())
            }
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::new(value.into())
    }
}

impl From<u128> for Value {
    fn from(value: u128) -> Self {
        Value::new(value)
    }
}

impl fmt::LowerHex for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(v) => write!(f, "{v:x}"),
            Repr::Wide(limbs) => {
                let mut rest = limbs.iter().rev();
                write!(f, "{:x}", rest.next().copied().unwrap_or(0))?;
                rest.try_for_each(|limb| write!(f, "{limb:016x}"))
            }
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{self:x}")
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{self:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_is_one_byte() {
        assert_eq!(Value::ZERO.to_be_bytes(), [0]);
        assert_eq!(Value::from_be_bytes(&[]), Value::ZERO);
        assert_eq!(Value::ZERO.bits(), 0);
    }

    proptest! {
        #[test]
        fn bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let value = Value::from_be_bytes(&bytes);
            let first = bytes.iter().position(|&b| b != 0).unwrap_or(bytes.len());
            let shortest = if first == bytes.len() { &[0][..] } else { &bytes[first..] };
            prop_assert_eq!(value.to_be_bytes(), shortest);
        }

        #[test]
        fn order_is_numeric(a in proptest::collection::vec(any::<u64>(), 0..4),
                            b in proptest::collection::vec(any::<u64>(), 0..4)) {
            let wide = |v: &[u64]| { let mut v = v.to_vec(); v.resize(4, 0); v.reverse(); v };
            prop_assert_eq!(
                Value::from_limbs(&a).cmp(&Value::from_limbs(&b)),
                wide(&a).cmp(&wide(&b))
            );
        }
    }
}

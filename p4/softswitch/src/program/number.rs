//! Constants of any width, with sign, from the JSON's hexadecimal strings.

use super::LoadError;

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    negative: bool,
    /// Magnitude, least significant word first, no zero word at the end.
    magnitude: Vec<u64>,
}

impl Number {
    pub(crate) fn new(value: u64) -> Self {
        Number {
            negative: false,
            magnitude: if value == 0 { vec![] } else { vec![value] },
        }
    }

    /// Reads `0x1f`, `-0x01`, `1f`; spaces are not allowed.
    pub(crate) fn parse(text: &str, place: &str) -> Result<Self, LoadError> {
        let bad = || LoadError::Invalid {
            place: place.to_owned(),
            why: format!("{text:?} is not a hexadecimal number"),
        };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        if digits.is_empty() || !digits.is_ascii() {
            return Err(bad());
        }
        let mut magnitude = Vec::new();
        for chunk in digits.as_bytes().rchunks(16) {
            let chunk = str::from_utf8(chunk).map_err(|_| bad())?;
            magnitude.push(u64::from_str_radix(chunk, 16).map_err(|_| bad())?);
        }
        while magnitude.last() == Some(&0) {
            magnitude.pop();
        }
        Ok(Number {
            negative: negative && !magnitude.is_empty(),
            magnitude,
        })
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    /// Bits of the magnitude.
    pub(crate) fn bits(&self) -> u32 {
        match self.magnitude.last() {
            None => 0,
            Some(last) => 64 * self.magnitude.len() as u32 - last.leading_zeros(),
        }
    }

    /// The value, if it is not negative and fits 64 bits.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        match (self.negative, self.magnitude.as_slice()) {
            (false, []) => Some(0),
            (false, [one]) => Some(*one),
            _ => None,
        }
    }

    /// Two's complement in `n` words.
    pub(crate) fn words(&self, n: usize) -> Vec<u64> {
        let mut words = self.magnitude.clone();
        words.resize(n, 0);
        if self.negative {
            let mut carry = true;
            for word in &mut words {
                let (sum, overflow) = (!*word).overflowing_add(u64::from(carry));
                *word = sum;
                carry = overflow;
            }
        }
        words
    }

    /// Bits `low..low + width` of the magnitude.
    pub(crate) fn slice(&self, low: u32, width: u32) -> Vec<u64> {
        let bit = |i: u32| {
            self.magnitude
                .get((i / 64) as usize)
                .is_some_and(|w| w >> (i % 64) & 1 == 1)
        };
        let mut out = vec![0; super::code::limbs(width)];
        for i in (0..width).filter(|&i| bit(low + i)) {
            out[(i / 64) as usize] |= 1 << (i % 64);
        }
        out
    }

    /// Whether it is `2^bits - 1`.
    pub(crate) fn is_ones(&self) -> bool {
        let ones: u32 = self.magnitude.iter().map(|w| w.count_ones()).sum();
        !self.negative && ones == self.bits()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reads_hexadecimal_of_any_width() {
        let wide = Number::parse("0x0123456789abcdef0123456789abcdef01", "t").unwrap();
        assert_eq!(
            wide.words(3),
            [0x2345_6789_abcd_ef01, 0x2345_6789_abcd_ef01, 0x01]
        );
        assert_eq!(wide.bits(), 129);
        assert_eq!(wide.slice(0, 8), [1]);
        assert_eq!(wide.slice(8, 64), [0x0123_4567_89ab_cdef]);
        assert_eq!(Number::parse("0x00", "t").unwrap(), Number::new(0));
        assert!(Number::parse("0xzz", "t").is_err());
    }

    #[test]
    fn negative_numbers_are_twos_complement() {
        let minus_one = Number::parse("-0x01", "t").unwrap();
        assert_eq!(minus_one.words(2), [u64::MAX, u64::MAX]);
        assert_eq!(
            Number::parse("-0x100", "t").unwrap().words(1),
            [(-256i64) as u64]
        );
    }
}

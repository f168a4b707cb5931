//! Byte strings: how P4Runtime carries `bit<W>` values of any width
//! (specification section 8.4, "Bytestrings").
//!
//! A value is big-endian and as short as it can be; zero is one zero byte, and
//! no value is an empty string. Whoever reads accepts leading zeros, as long as
//! the value fits the width that P4Info declares.

use crate::rpc::Code;

/// Why a byte string is not a value of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The string has no bytes. P4Runtime writes zero as one zero byte.
    #[error("the value is an empty string; zero is one zero byte")]
    Empty,
    /// The value needs more bits than its type has.
    #[error("the value 0x{value} needs {needed} bits, but the type has {width}")]
    OutOfRange {
        /// The value in hexadecimal.
        value: String,
        /// Bits that the value takes.
        needed: u32,
        /// Bits that the type has.
        width: u32,
    },
}

impl Error {
    /// The canonical code that a server answers with.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Error::Empty => Code::InvalidArgument,
            Error::OutOfRange { .. } => Code::OutOfRange,
        }
    }
}

/// The bytes of a type that is `width` bits wide.
#[must_use]
pub fn byte_len(width: u32) -> usize {
    width.div_ceil(8) as usize
}

/// The string without leading zeros, but with at least one byte if it had one.
#[must_use]
pub fn trim(value: &[u8]) -> &[u8] {
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    &value[zeros.min(value.len().saturating_sub(1))..]
}

/// The shortest string of the same value; an empty string counts as zero.
#[must_use]
pub fn canonical(value: &[u8]) -> Vec<u8> {
    match trim(value) {
        [] => vec![0],
        short => short.to_vec(),
    }
}

/// The bits that the value takes; 0 for zero.
#[must_use]
pub fn bit_len(value: &[u8]) -> u32 {
    match trim(value) {
        [] => 0,
        [first, rest @ ..] => 8 - first.leading_zeros() + 8 * rest.len() as u32,
    }
}

/// The shortest string of an unsigned number.
#[must_use]
pub fn shortest(value: u128) -> Vec<u8> {
    trim(&value.to_be_bytes()).to_vec()
}

/// The shortest string of an unsigned number that must fit `width` bits.
///
/// # Errors
/// [`Error::OutOfRange`] when it does not fit.
pub fn encode(value: u128, width: u32) -> Result<Vec<u8>, Error> {
    let value = shortest(value);
    fit(&value, width)?;
    Ok(value)
}

/// The number that a string stands for.
///
/// # Errors
/// [`Error::Empty`], and [`Error::OutOfRange`] when the value has more than 128 bits.
pub fn decode(value: &[u8]) -> Result<u128, Error> {
    let short = fit(value, u128::BITS)?;
    Ok(short
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

/// The canonical string of a value that must fit `width` bits, borrowed from
/// the one given. A width of 0 marks types that P4Info shows as strings: they
/// pass as they are.
///
/// # Errors
/// [`Error::Empty`], and [`Error::OutOfRange`] when the value does not fit.
pub fn fit(value: &[u8], width: u32) -> Result<&[u8], Error> {
    if width == 0 {
        return Ok(value);
    }
    if value.is_empty() {
        return Err(Error::Empty);
    }
    let needed = bit_len(value);
    if needed > width {
        let value = trim(value);
        return Err(Error::OutOfRange {
            value: hex(value),
            needed,
            width,
        });
    }
    Ok(trim(value))
}

/// The value in exactly the bytes that `width` bits take, zeros in front.
///
/// # Errors
/// As [`fit`].
pub fn padded(value: &[u8], width: u32) -> Result<Vec<u8>, Error> {
    let short = fit(value, width)?;
    let mut bytes = vec![0; byte_len(width).max(short.len())];
    let start = bytes.len() - short.len();
    bytes[start..].copy_from_slice(short);
    Ok(bytes)
}

/// The largest value of `width` bits, in its shortest form.
#[must_use]
pub fn all_ones(width: u32) -> Vec<u8> {
    let mut bytes = vec![0xff; byte_len(width).max(1)];
    bytes[0] = match width % 8 {
        _ if width == 0 => 0,
        0 => 0xff,
        bits => 0xff >> (8 - bits),
    };
    bytes
}

/// The mask, of `width` bits, whose first `prefix_len` bits are ones; in its
/// shortest form. A longer prefix than the width is the width.
#[must_use]
pub fn prefix_mask(width: u32, prefix_len: u32) -> Vec<u8> {
    let mut bytes = all_ones(width);
    let host_bits = width.saturating_sub(prefix_len);
    for (byte, low) in bytes.iter_mut().rev().zip((0..).step_by(8)) {
        let cleared = host_bits.saturating_sub(low).min(8);
        *byte = if cleared == 8 {
            0
        } else {
            *byte & (0xff << cleared)
        };
    }
    canonical(&bytes)
}

/// Whether `value` has no ones where `mask` has zeros.
#[must_use]
pub fn is_masked(value: &[u8], mask: &[u8]) -> bool {
    let (value, mask) = (trim(value), trim(mask));
    let mut mask = mask.iter().rev();
    value
        .iter()
        .rev()
        .all(|byte| byte & !mask.next().unwrap_or(&0) == 0)
}

/// Compares two strings as numbers, whatever their padding.
#[must_use]
pub fn compare(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let (a, b) = (canonical(a), canonical(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(&b))
}

/// Lower-case hexadecimal without a prefix.
#[must_use]
pub fn hex(value: &[u8]) -> String {
    use std::fmt::Write as _;
    value
        .iter()
        .fold(String::with_capacity(2 * value.len()), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_is_one_byte() {
        assert_eq!(shortest(0), [0]);
        assert_eq!(canonical(&[]), [0]);
        assert_eq!(canonical(&[0, 0]), [0]);
        assert_eq!(decode(&[]), Err(Error::Empty));
    }

    #[test]
    fn widths_are_held_in_bits() {
        assert_eq!(encode(511, 9).unwrap(), [1, 0xff]);
        let error = encode(512, 9).unwrap_err();
        assert_eq!(error.code(), Code::OutOfRange);
        assert_eq!(
            error.to_string(),
            "the value 0x0200 needs 10 bits, but the type has 9"
        );
        assert_eq!(fit(&[0, 0, 1, 0xff], 9).unwrap(), [1, 0xff]);
        assert_eq!(fit(b"Ethernet0", 0).unwrap(), b"Ethernet0");
    }

    #[test]
    fn numbers_stop_at_128_bits_and_strings_do_not() {
        let mut wide = vec![0xff; 17];
        assert!(matches!(decode(&wide), Err(Error::OutOfRange { .. })));
        assert_eq!(fit(&wide, 136).unwrap(), wide);
        wide[0] = 0;
        assert_eq!(decode(&wide).unwrap(), u128::MAX);
    }

    #[test]
    fn masks() {
        assert_eq!(prefix_mask(32, 24), [255, 255, 255, 0]);
        assert_eq!(prefix_mask(32, 0), [0]);
        assert_eq!(prefix_mask(9, 1), [1, 0]);
        assert_eq!(prefix_mask(9, 99), [1, 0xff]);
        assert_eq!(all_ones(9), [1, 0xff]);
        assert!(is_masked(&[10, 0, 0, 0], &[255, 0, 0, 0]));
        assert!(!is_masked(&[10, 0, 0, 1], &[255, 0, 0, 0]));
        assert!(!is_masked(&[1, 0], &[255]));
    }

    proptest! {
        #[test]
        fn round_trip(value: u128) {
            let bytes = shortest(value);
            prop_assert_eq!(decode(&bytes).unwrap(), value);
            prop_assert_eq!(canonical(&bytes), bytes.clone());
            prop_assert_eq!(bit_len(&bytes), 128 - value.leading_zeros());
        }

        #[test]
        fn padding_changes_nothing(value: u128, zeros in 0usize..20) {
            let mut long = vec![0; zeros];
            long.extend(shortest(value));
            prop_assert_eq!(canonical(&long), shortest(value));
            prop_assert_eq!(fit(&long, 128).unwrap(), &shortest(value)[..]);
            prop_assert_eq!(padded(&long, 128).unwrap(), value.to_be_bytes());
        }

        #[test]
        fn a_value_fits_its_bits_and_no_fewer(value in 1u128..) {
            let needed = 128 - value.leading_zeros();
            prop_assert!(encode(value, needed).is_ok());
            prop_assert!(needed == 1 || encode(value, needed - 1).is_err());
        }

        #[test]
        fn masks_agree_with_arithmetic(value: u128, mask: u128, width in 1u32..=128, len in 0u32..=128) {
            prop_assert_eq!(is_masked(&shortest(value), &shortest(mask)), value & !mask == 0);
            let ones = if width == 128 { u128::MAX } else { (1 << width) - 1 };
            let host = width.saturating_sub(len);
            let low = if host == 128 { u128::MAX } else { (1 << host) - 1 };
            prop_assert_eq!(prefix_mask(width, len), shortest(ones & !low));
            prop_assert_eq!(compare(&value.to_be_bytes(), &shortest(mask)), value.cmp(&mask));
        }
    }
}

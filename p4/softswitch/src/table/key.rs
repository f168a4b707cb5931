//! Keys: from packets for lookups, from the control plane for entries.

use crate::control::{ControlError, MatchField};
use crate::exec::Frame;
use crate::program::code::{limbs, ones};
use crate::program::tables::KeyPart;
use crate::program::{KeyInfo, MatchKind, TableInfo};
use crate::value::Value;

/// Reads a lookup key out of the frame. Fields of headers that are not valid
/// read as zero.
#[inline]
pub(crate) fn build<'k>(parts: &[KeyPart], frame: &Frame, key: &'k mut [u64]) -> &'k mut [u64] {
    let key = &mut key[..parts.len()];
    for (word, part) in key.iter_mut().zip(parts) {
        // The flag is 0 or 1: its negative keeps nothing or everything.
        let keep = part.mask & frame[usize::from(part.valid)].wrapping_neg();
        *word = frame[usize::from(part.slot)] & keep;
    }
    key
}

/// An entry's key in the table's form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryKey {
    /// Values, under their masks.
    pub(crate) value: Vec<u64>,
    /// Which bits count. Range fields do not count here.
    pub(crate) mask: Vec<u64>,
    /// Low and high words of each range field.
    pub(crate) ranges: Vec<u64>,
    /// Bits of the value that count, from its first on (prefix tables).
    pub(crate) length: u16,
}

/// Checks a key and writes its words down, one field after the other; the
/// length of its prefix, if it has one.
pub(super) fn encode(
    info: &TableInfo,
    key: &[MatchField],
    out: &mut EntryKey,
) -> Result<u16, ControlError> {
    if key.len() != info.keys.len() {
        return Err(ControlError::KeyLength {
            table: info.name.clone(),
            expected: info.keys.len(),
            got: key.len(),
        });
    }
    let mut prefix = 0;
    for (field, key) in key.iter().zip(&info.keys) {
        encode_field(info, field, key, out)?;
        if let MatchField::Lpm { prefix_len, .. } = field {
            prefix = *prefix_len as u16;
        }
    }
    Ok(prefix)
}

fn encode_field(
    info: &TableInfo,
    field: &MatchField,
    key: &KeyInfo,
    out: &mut EntryKey,
) -> Result<(), ControlError> {
    let n = limbs(key.width);
    let fits = |value: &Value| match value.bits() <= key.width {
        true => Ok(()),
        false => Err(ControlError::TooWide {
            what: format!("{}: key field {}", info.name, key.name),
            value: value.to_string(),
            width: key.width,
        }),
    };
    let all = |i: usize| ones((key.width - 64 * i as u32).min(64) as u8);
    match (key.kind, field) {
        (MatchKind::Exact, MatchField::Exact(value)) => {
            fits(value)?;
            out.value.extend((0..n).map(|i| value.limb(i)));
            out.mask.extend((0..n).map(all));
        }
        (MatchKind::Lpm, MatchField::Lpm { value, prefix_len }) => {
            fits(value)?;
            if *prefix_len > key.width {
                let why = format!("a prefix of {prefix_len} bits is longer than {}", key.width);
                return Err(bad_key(info, key, why));
            }
            let prefix = |i: usize| all(i) & !low_bits(key.width - prefix_len, i);
            if (0..n).any(|i| value.limb(i) & !prefix(i) != 0) {
                return Err(bad_key(
                    info,
                    key,
                    "bits beyond the prefix are set".to_owned(),
                ));
            }
            out.value.extend((0..n).map(|i| value.limb(i)));
            out.mask.extend((0..n).map(prefix));
        }
        (MatchKind::Ternary, MatchField::Ternary { value, mask }) => {
            fits(value)?;
            fits(mask)?;
            if (0..n).any(|i| value.limb(i) & !mask.limb(i) != 0) {
                return Err(bad_key(
                    info,
                    key,
                    "bits outside the mask are set".to_owned(),
                ));
            }
            out.value.extend((0..n).map(|i| value.limb(i)));
            out.mask.extend((0..n).map(|i| mask.limb(i)));
        }
        (MatchKind::Ternary | MatchKind::Optional, MatchField::Optional(value)) => match value {
            Some(value) => {
                fits(value)?;
                out.value.extend((0..n).map(|i| value.limb(i)));
                out.mask.extend((0..n).map(all));
            }
            None => {
                out.value.extend(std::iter::repeat_n(0, n));
                out.mask.extend(std::iter::repeat_n(0, n));
            }
        },
        (MatchKind::Range, MatchField::Range { low, high }) => {
            fits(low)?;
            fits(high)?;
            if low > high {
                return Err(bad_key(info, key, format!("{low} is above {high}")));
            }
            out.value.extend(std::iter::repeat_n(0, n));
            out.mask.extend(std::iter::repeat_n(0, n));
            out.ranges.extend((0..n).map(|i| low.limb(i)));
            out.ranges.extend((0..n).map(|i| high.limb(i)));
        }
        (kind, other) => {
            return Err(ControlError::KeyKind {
                table: info.name.clone(),
                field: key.name.clone(),
                expected: kind_name(kind),
                got: field_name(other),
            });
        }
    }
    Ok(())
}

/// Word `i` of a number whose low `bits` are ones.
fn low_bits(bits: u32, i: usize) -> u64 {
    match bits.saturating_sub(64 * i as u32).min(64) {
        0 => 0,
        n => ones(n as u8),
    }
}

fn bad_key(info: &TableInfo, key: &KeyInfo, why: String) -> ControlError {
    ControlError::BadKey {
        table: info.name.clone(),
        field: key.name.clone(),
        why,
    }
}

fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
    }
}

fn field_name(field: &MatchField) -> &'static str {
    match field {
        MatchField::Exact(_) => "exact",
        MatchField::Lpm { .. } => "lpm",
        MatchField::Ternary { .. } => "ternary",
        MatchField::Range { .. } => "range",
        MatchField::Optional(_) => "optional",
    }
}

/// The key of an entry as the control plane sees it. Without mask (the table
/// has no priorities) its prefix has `prefix` bits.
pub(super) fn decode(
    info: &TableInfo,
    value: &[u64],
    mask: &[u64],
    ranges: &[u64],
    prefix: u32,
) -> Vec<MatchField> {
    let (mut at, mut range) = (0, 0);
    info.keys
        .iter()
        .map(|key| {
            let n = limbs(key.width);
            let words = at..at + n;
            at += n;
            let own = || Value::from_limbs(&value[words.clone()]);
            match key.kind {
                MatchKind::Exact => MatchField::Exact(own()),
                MatchKind::Lpm => MatchField::Lpm {
                    value: own(),
                    prefix_len: match mask {
                        [] => prefix,
                        mask => mask[words.clone()].iter().map(|w| w.count_ones()).sum(),
                    },
                },
                MatchKind::Ternary => MatchField::Ternary {
                    value: own(),
                    mask: Value::from_limbs(&mask[words.clone()]),
                },
                MatchKind::Optional => {
                    MatchField::Optional(mask[words.clone()].iter().any(|&w| w != 0).then(own))
                }
                MatchKind::Range => {
                    let low = Value::from_limbs(&ranges[range..range + n]);
                    let high = Value::from_limbs(&ranges[range + n..range + 2 * n]);
                    range += 2 * n;
                    MatchField::Range { low, high }
                }
            }
        })
        .collect()
}

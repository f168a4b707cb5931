//! The rules for the fields of a key (specification section 9.1.1).

use super::Error;
use crate::bytes;
use crate::info::{Field, MatchKind};
use crate::v1::{FieldMatch, field_match};
use field_match::FieldMatchType as Match;

/// What to do about a field that matches everything and yet is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DontCare {
    /// A client's builder leaves it out.
    Omit,
    /// A server refuses it.
    Refuse,
}

/// The canonical key: the fields in the order given, without those that match
/// everything. `at` is the table or value set.
pub(super) fn canonical<'i>(
    at: &str,
    fields: impl Iterator<Item = Result<Field<'i>, crate::info::Error>>,
    given: &[FieldMatch],
    dont_care: DontCare,
) -> Result<Vec<FieldMatch>, Error> {
    let mut key = Vec::with_capacity(given.len());
    let mut known = Vec::new();
    for field in fields {
        let field = field?;
        known.push(field);
        let mut matches = given.iter().filter(|m| m.field_id == field.id());
        let here = || format!("`{at}`, field `{}`", field.name());
        match (matches.next(), matches.next()) {
            (Some(_), Some(_)) => return Err(Error::invalid(here(), "it is given twice")),
            (Some(given), None) => {
                let (matched, all) = field_match(&here(), &field, given)?;
                match (all, dont_care) {
                    (false, _) => key.push(FieldMatch {
                        field_id: field.id(),
                        field_match_type: Some(matched),
                    }),
                    (true, DontCare::Omit) => {}
                    (true, DontCare::Refuse) => {
                        return Err(Error::invalid(
                            here(),
                            "it matches everything; leave the field out instead",
                        ));
                    }
                }
            }
            (None, _) if field.kind == MatchKind::Exact => {
                return Err(Error::invalid(
                    here(),
                    "it is missing; a field that matches exactly cannot be left out",
                ));
            }
            (None, _) => {}
        }
    }
    for given in given {
        if !known.iter().any(|field| field.id() == given.field_id) {
            let names = known.iter().map(Field::name).collect();
            let selector = given.field_id.into();
            return Err(
                crate::info::Error::unknown("match field", selector, Some(at), names).into(),
            );
        }
    }
    Ok(key)
}

/// The canonical form of one field, and whether it matches everything.
fn field_match(at: &str, field: &Field<'_>, given: &FieldMatch) -> Result<(Match, bool), Error> {
    let width = field.width();
    let value = |bytes: &[u8]| match bytes::fit(bytes, width) {
        Ok(value) => Ok(value.to_vec()),
        Err(source) => Err(Error::Value {
            at: at.to_owned(),
            source,
        }),
    };
    match (field.kind, &given.field_match_type) {
        (MatchKind::Exact, Some(Match::Exact(exact))) => {
            let value = value(&exact.value)?;
            Ok((Match::Exact(field_match::Exact { value }), false))
        }
        (MatchKind::Optional, Some(Match::Optional(optional))) => {
            let value = value(&optional.value)?;
            Ok((Match::Optional(field_match::Optional { value }), false))
        }
        (MatchKind::Lpm, Some(Match::Lpm(lpm))) => {
            prefix(at, width, value(&lpm.value)?, lpm.prefix_len)
        }
        (MatchKind::Ternary, Some(Match::Ternary(ternary))) => {
            let (value, mask) = (value(&ternary.value)?, value(&ternary.mask)?);
            masked(at, &value, &mask, "the mask")?;
            let all = bytes::bit_len(&mask) == 0;
            Ok((Match::Ternary(field_match::Ternary { value, mask }), all))
        }
        (MatchKind::Range, Some(Match::Range(range))) => {
            let (low, high) = (value(&range.low)?, value(&range.high)?);
            if bytes::compare(&low, &high).is_gt() {
                let (low, high) = (bytes::hex(&low), bytes::hex(&high));
                return Err(Error::invalid(
                    at,
                    format!("the range 0x{low}..=0x{high} is empty; the lower end comes first"),
                ));
            }
            let all = bytes::bit_len(&low) == 0 && high == bytes::all_ones(width);
            Ok((Match::Range(field_match::Range { low, high }), all))
        }
        (kind, other) => {
            let given = other.as_ref().map_or("nothing", kind_name);
            Err(Error::invalid(
                at,
                format!("it matches by {kind}, but {given} is given"),
            ))
        }
    }
}

fn prefix(at: &str, width: u32, value: Vec<u8>, prefix_len: i32) -> Result<(Match, bool), Error> {
    let Some(bits) = u32::try_from(prefix_len).ok().filter(|bits| *bits <= width) else {
        return Err(Error::invalid(
            at,
            format!("a prefix of {prefix_len} bits is not between 0 and {width}"),
        ));
    };
    masked(at, &value, &bytes::prefix_mask(width, bits), "the prefix")?;
    Ok((
        Match::Lpm(field_match::Lpm { value, prefix_len }),
        bits == 0,
    ))
}

fn masked(at: &str, value: &[u8], mask: &[u8], by: &str) -> Result<(), Error> {
    if bytes::is_masked(value, mask) {
        return Ok(());
    }
    let (value, mask) = (bytes::hex(value), bytes::hex(mask));
    Err(Error::invalid(
        at,
        format!("the value 0x{value} has ones outside of {by} 0x{mask}; clear them"),
    ))
}

fn kind_name(given: &Match) -> &'static str {
    match given {
        Match::Exact(_) => "exact",
        Match::Ternary(_) => "ternary",
        Match::Lpm(_) => "lpm",
        Match::Range(_) => "range",
        Match::Optional(_) => "optional",
        Match::Other(_) => "a kind of match of the architecture",
    }
}

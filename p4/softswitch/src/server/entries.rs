//! Table entries between P4Runtime's messages and the switch's (P4Runtime, "TableEntry").

use p4runtime::config::v1::action_ref::Scope;
use p4runtime::v1::{self, field_match, table_action};
use prost::Message as _;

use super::domain::{Domain, ones};
use super::fault::Fault;
use super::pipeline::{ActionRef, Field, Kind, Table};
use super::sdn::canonical_port;
use crate::control::MatchField;
use crate::program::MatchKind;
use crate::value::Value;

/// What the switch keeps with an entry only to give it back, in the entry's opaque metadata.
/// An entry with nothing of it takes no bytes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Notes {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) metadata: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub(crate) controller_metadata: u64,
    /// The role that wrote the entry.
    #[prost(string, tag = "3")]
    pub(crate) role: String,
    /// A one-shot action set whose message says more than the switch keeps, encoded.
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) action_set: Vec<u8>,
}

impl Notes {
    pub(crate) fn of(entry: &v1::TableEntry, role: &str) -> Self {
        #[allow(deprecated)]
        let controller_metadata = entry.controller_metadata;
        let set = match entry.action.as_ref().and_then(|a| a.r#type.as_ref()) {
            Some(table_action::Type::ActionProfileActionSet(set)) => canonical_set(set),
            _ => Vec::new(),
        };
        Notes {
            metadata: entry.metadata.clone(),
            controller_metadata,
            role: role.to_owned(),
            action_set: set,
        }
    }

    /// Takes over what an update without action does not give.
    pub(crate) fn keep(&mut self, old: Notes) {
        self.action_set = old.action_set;
        if self.metadata.is_empty() {
            self.metadata = old.metadata;
        }
        if self.controller_metadata == 0 {
            self.controller_metadata = old.controller_metadata;
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        // Nobody else writes it, so it cannot be malformed.
        <Notes as prost::Message>::decode(bytes).unwrap_or_default()
    }
}

/// The set with its byte strings in shortest form, as it is to be read back.
fn canonical_set(set: &v1::ActionProfileActionSet) -> Vec<u8> {
    use v1::action_profile_action::WatchKind;
    let mut set = set.clone();
    for choice in &mut set.action_profile_actions {
        for param in choice.action.iter_mut().flat_map(|a| &mut a.params) {
            param.value = p4runtime::bytes::canonical(&param.value);
        }
        if let Some(WatchKind::WatchPort(port)) = &mut choice.watch_kind {
            canonical_port(port);
        }
    }
    set.encode_to_vec()
}

impl Table {
    /// Reads the match fields of an entry and checks the priority.
    pub(crate) fn decode_key(
        &self,
        entry: &v1::TableEntry,
    ) -> Result<(Vec<MatchField>, i32), Fault> {
        let key = self.decode_match(&entry.r#match)?;
        if self.has_priority && entry.priority <= 0 {
            return Err(Fault::invalid(format!(
                "{}: priority must be above 0, because the key has ternary, range or optional fields",
                self.name
            )));
        }
        if !self.has_priority && entry.priority != 0 {
            return Err(Fault::invalid(format!(
                "{}: priority must be 0, because the key has no ternary, range or optional field",
                self.name
            )));
        }
        Ok((key, entry.priority))
    }

    /// Reads the match fields of an entry.
    pub(crate) fn decode_match(&self, given: &[v1::FieldMatch]) -> Result<Vec<MatchField>, Fault> {
        decode_fields(&self.name, &self.fields, given)
    }

    /// Writes match fields; those that match anything are left out.
    pub(crate) fn encode_key(&self, key: &[MatchField]) -> Vec<v1::FieldMatch> {
        encode_fields(&self.fields, key)
    }

    /// The action of this id, if entries (or the default entry) may use it.
    pub(crate) fn action(&self, id: u32, default: bool) -> Result<&ActionRef, Fault> {
        let action = find_action(&self.name, &self.actions, id)?;
        let wrong = match action.scope {
            Scope::TableAndDefault => None,
            Scope::TableOnly => default.then_some("is annotated @tableonly"),
            Scope::DefaultOnly => (!default).then_some("is annotated @defaultonly"),
            Scope::GroupAction => Some("may only be a group's action"),
        };
        match wrong {
            None => Ok(action),
            Some(why) => Err(Fault::denied(format!(
                "action {id:#x} of table {} {why}",
                self.name
            ))),
        }
    }
}

pub(crate) fn find_action<'a>(
    owner: &str,
    actions: &'a [ActionRef],
    id: u32,
) -> Result<&'a ActionRef, Fault> {
    actions
        .iter()
        .find(|a| a.id == id)
        .ok_or_else(|| Fault::invalid(format!("{owner} has no action with id {id} ({id:#x})")))
}

/// Reads one match per field, in the fields' order.
pub(crate) fn decode_fields(
    owner: &str,
    fields: &[Field],
    matches: &[v1::FieldMatch],
) -> Result<Vec<MatchField>, Fault> {
    if let Some(unknown) = matches
        .iter()
        .find(|m| !fields.iter().any(|f| f.id == m.field_id))
    {
        return Err(Fault::invalid(format!(
            "{owner} has no match field with id {}",
            unknown.field_id
        )));
    }
    let of = |field: &Field| {
        let mut given = matches.iter().filter(|m| m.field_id == field.id);
        let what = || format!("{owner}: match field {}", field.name);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => Err(Fault::invalid(format!("{} is given twice", what()))),
            (Some(m), None) => decode_field(field, m, what),
            (None, _) => field
                .anything()
                .ok_or_else(|| Fault::invalid(format!("{} is missing; it is exact", what()))),
        }
    };
    fields.iter().map(of).collect()
}

/// Writes the fields that do not match anything.
pub(crate) fn encode_fields(fields: &[Field], key: &[MatchField]) -> Vec<v1::FieldMatch> {
    let of = |(field, value): (&Field, &MatchField)| {
        encode_field(field, value).map(|m| v1::FieldMatch {
            field_id: field.id,
            field_match_type: Some(m),
        })
    };
    fields.iter().zip(key).filter_map(of).collect()
}

impl Field {
    /// The match that matches anything; exact fields have none.
    fn anything(&self) -> Option<MatchField> {
        match self.core_kind {
            MatchKind::Exact => None,
            MatchKind::Lpm => Some(MatchField::Lpm {
                value: Value::ZERO,
                prefix_len: 0,
            }),
            MatchKind::Ternary => Some(MatchField::Ternary {
                value: Value::ZERO,
                mask: Value::ZERO,
            }),
            MatchKind::Range => Some(MatchField::Range {
                low: Value::ZERO,
                high: self.domain.max(),
            }),
            MatchKind::Optional => Some(MatchField::Optional(None)),
        }
    }
}

fn decode_field(
    field: &Field,
    given: &v1::FieldMatch,
    what: impl Fn() -> String,
) -> Result<MatchField, Fault> {
    use field_match::FieldMatchType as M;
    let value = |bytes: &[u8]| field.domain.decode(bytes, &what);
    let given = given.field_match_type.as_ref();
    let given = given.ok_or_else(|| Fault::invalid(format!("{} has no match set", what())))?;
    match (field.kind, given) {
        (Kind::Exact, M::Exact(m)) => Ok(MatchField::Exact(value(&m.value)?)),
        (Kind::Optional, M::Optional(m)) => {
            let value = value(&m.value)?;
            Ok(match field.core_kind {
                MatchKind::Optional => MatchField::Optional(Some(value)),
                _ => MatchField::Ternary {
                    value,
                    mask: field.domain.max(),
                },
            })
        }
        (Kind::Lpm | Kind::Ternary | Kind::Range, _) if field.domain.is_translated() => {
            decode_translated(field, given, what)
        }
        (Kind::Lpm, M::Lpm(m)) => decode_lpm(field, m, what),
        (Kind::Ternary, M::Ternary(m)) => {
            let (value, mask) = (value(&m.value)?, value(&m.mask)?);
            if mask == Value::ZERO {
                return Err(must_omit(what));
            }
            Ok(MatchField::Ternary { value, mask })
        }
        (Kind::Range, M::Range(m)) => {
            let (low, high) = (value(&m.low)?, value(&m.high)?);
            if low == Value::ZERO && high == field.domain.max() {
                return Err(must_omit(what));
            }
            Ok(MatchField::Range { low, high })
        }
        (kind, _) => Err(wrong_kind(kind, what)),
    }
}

fn must_omit(what: impl Fn() -> String) -> Fault {
    Fault::invalid(format!("{} matches anything; leave it out", what()))
}

fn wrong_kind(kind: Kind, what: impl Fn() -> String) -> Fault {
    Fault::invalid(format!(
        "{} is matched as {}, not as given",
        what(),
        kind.as_str_name()
    ))
}

/// Checks a prefix length against the width on the controller's side.
fn check_prefix(
    field: &Field,
    m: &field_match::Lpm,
    what: impl Fn() -> String,
) -> Result<u32, Fault> {
    let prefix_len = u32::try_from(m.prefix_len).unwrap_or(u32::MAX);
    if prefix_len == 0 {
        return Err(must_omit(what));
    }
    if prefix_len > field.domain.width {
        return Err(Fault::invalid(format!(
            "{}: prefix length {} is not between 1 and {}",
            what(),
            m.prefix_len,
            field.domain.width
        )));
    }
    Ok(prefix_len)
}

fn decode_lpm(
    field: &Field,
    m: &field_match::Lpm,
    what: impl Fn() -> String,
) -> Result<MatchField, Fault> {
    let prefix_len = check_prefix(field, m, &what)?;
    Ok(MatchField::Lpm {
        value: field.domain.decode(&m.value, what)?,
        prefix_len,
    })
}

/// Values that translate one by one: only one of them can be matched, or anything.
fn decode_translated(
    field: &Field,
    given: &field_match::FieldMatchType,
    what: impl Fn() -> String,
) -> Result<MatchField, Fault> {
    use field_match::FieldMatchType as M;
    let value = |bytes: &[u8]| field.domain.decode(bytes, &what);
    let one_only = || {
        Fault::invalid(format!(
            "{} is of a translated type: one value can be matched, or anything",
            what()
        ))
    };
    match (field.kind, given) {
        (Kind::Lpm, M::Lpm(m)) => {
            if check_prefix(field, m, &what)? != field.domain.width {
                return Err(one_only());
            }
            Ok(MatchField::Lpm {
                value: value(&m.value)?,
                prefix_len: field.domain.core_width(),
            })
        }
        (Kind::Ternary, M::Ternary(m)) => {
            let mask = Domain::plain(field.domain.width).decode(&m.mask, &what)?;
            if mask == Value::ZERO {
                return Err(must_omit(what));
            }
            if mask != ones(field.domain.width) {
                return Err(one_only());
            }
            Ok(MatchField::Ternary {
                value: value(&m.value)?,
                mask: field.domain.max(),
            })
        }
        (Kind::Range, M::Range(m)) => {
            let (low, high) = (value(&m.low)?, value(&m.high)?);
            if low != high {
                return Err(one_only());
            }
            Ok(MatchField::Range { low, high })
        }
        (kind, _) => Err(wrong_kind(kind, what)),
    }
}

fn encode_field(field: &Field, value: &MatchField) -> Option<field_match::FieldMatchType> {
    use field_match::FieldMatchType as M;
    let bytes = |value: &Value| field.domain.encode(value);
    match value {
        MatchField::Exact(value) => Some(M::Exact(field_match::Exact {
            value: bytes(value),
        })),
        MatchField::Lpm { value, prefix_len } => (*prefix_len > 0).then(|| {
            M::Lpm(field_match::Lpm {
                value: bytes(value),
                prefix_len: match field.domain.is_translated() {
                    true => field.domain.width,
                    false => *prefix_len,
                } as i32,
            })
        }),
        MatchField::Ternary { value, mask } => (*mask != Value::ZERO).then(|| {
            if field.kind == Kind::Optional {
                M::Optional(field_match::Optional {
                    value: bytes(value),
                })
            } else {
                M::Ternary(field_match::Ternary {
                    value: bytes(value),
                    mask: match field.domain.is_translated() {
                        true => ones(field.domain.width),
                        false => mask.clone(),
                    }
                    .to_be_bytes(),
                })
            }
        }),
        MatchField::Range { low, high } => {
            let all = *low == Value::ZERO && *high == field.domain.max();
            (!all).then(|| {
                M::Range(field_match::Range {
                    low: bytes(low),
                    high: bytes(high),
                })
            })
        }
        MatchField::Optional(value) => value
            .as_ref()
            .map(|v| M::Optional(field_match::Optional { value: bytes(v) })),
    }
}

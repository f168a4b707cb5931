//! Table contents as values that can be compared, whatever way a target writes them.
//!
//! P4Runtime lets a server pad byte strings, and lets don't-care fields be left out (specification 9.1.1).
//! Here every value is in its shortest form, bits outside a mask are zero, don't-care fields are absent
//! and fields are in the order of their ids, so that equal entries are equal values.

use super::copies::{Copier, Copies};
use p4runtime::bytes::canonical;
use p4runtime::v1;
use p4runtime::v1::field_match::FieldMatchType;
use std::collections::BTreeMap;

/// What a field of a key matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Match {
    /// One value.
    Exact(Vec<u8>),
    /// The first bits of a value.
    Lpm(Vec<u8>, i32),
    /// The bits of a value that the mask has.
    Ternary(Vec<u8>, Vec<u8>),
    /// Everything from the first value to the second.
    Range(Vec<u8>, Vec<u8>),
    /// One value, where the field may also be left out.
    Optional(Vec<u8>),
}

/// What identifies an entry: its table, its match and its priority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// P4Info id of the table.
    pub table: u32,
    /// Fields by P4Info id, without those that match anything.
    pub fields: Vec<(u32, Match)>,
    /// Priority; 0 for tables without.
    pub priority: i32,
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// An action with its parameters by P4Info id.
    Direct {
        /// P4Info id of the action.
        id: u32,
        /// Parameters by P4Info id.
        params: Vec<(u32, Vec<u8>)>,
    },
    /// A reference into an action profile, as it is on the wire.
    Profile(Vec<u8>),
}

impl Action {
    /// Whether this is the action that a program gives a table to begin with.
    #[must_use]
    pub fn is_initial(&self, initial: &p4runtime::config::v1::TableActionCall) -> bool {
        let mut arguments: Vec<(u32, Vec<u8>)> = initial
            .arguments
            .iter()
            .map(|a| (a.param_id, canonical(&a.value)))
            .collect();
        arguments.sort_unstable();
        *self
            == Self::Direct {
                id: initial.action_id,
                params: arguments,
            }
    }
}

/// The entries of all tables of a switch, default actions that are not the program's own, and where packets
/// are copied to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Entries by key.
    pub entries: BTreeMap<Key, Action>,
    /// Default actions by table.
    pub defaults: BTreeMap<u32, Action>,
    /// Multicast groups and clone sessions.
    pub copies: BTreeMap<Copier, Copies>,
}

/// Two entries of one state have the same key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("table id {} has two entries for the same match: {key:?}", key.table)]
pub struct Duplicate {
    /// The key.
    pub key: Box<Key>,
}

impl State {
    /// Takes in entries of which no two have the same key; of others, the last counts.
    #[must_use]
    pub fn from_unique(entries: impl IntoIterator<Item = v1::TableEntry>) -> Self {
        let mut state = Self::default();
        for entry in entries {
            if let Some(action) = entry.action.as_ref().and_then(action) {
                state.entries.insert(key(&entry), action);
            }
        }
        state
    }

    /// Takes in entries that a switch was read for. Entries without an action are left out.
    ///
    /// # Errors
    /// Two entries with one key, which no switch can hold.
    pub fn from_entries(
        entries: impl IntoIterator<Item = v1::TableEntry>,
    ) -> Result<Self, Duplicate> {
        let mut state = Self::default();
        for entry in entries {
            let Some(action) = entry.action.as_ref().and_then(action) else {
                continue;
            };
            if entry.is_default_action {
                state.defaults.insert(entry.table_id, action);
                continue;
            }
            let key = key(&entry);
            if state.entries.contains_key(&key) {
                return Err(Duplicate { key: Box::new(key) });
            }
            state.entries.insert(key, action);
        }
        Ok(state)
    }
}

/// The key of an entry, in comparable form.
#[must_use]
pub fn key(entry: &v1::TableEntry) -> Key {
    let mut fields: Vec<(u32, Match)> = entry
        .r#match
        .iter()
        .filter_map(|f| Some((f.field_id, field(f)?)))
        .collect();
    fields.sort_unstable();
    Key {
        table: entry.table_id,
        fields,
        priority: entry.priority,
    }
}

/// The comparable form of a field; `None` if it matches anything.
fn field(field: &v1::FieldMatch) -> Option<Match> {
    Some(match field.field_match_type.as_ref()? {
        FieldMatchType::Exact(m) => Match::Exact(canonical(&m.value)),
        FieldMatchType::Lpm(m) if m.prefix_len == 0 => return None,
        FieldMatchType::Lpm(m) => Match::Lpm(canonical(&m.value), m.prefix_len),
        FieldMatchType::Ternary(m) => {
            let mask = canonical(&m.mask);
            if mask == [0] {
                return None;
            }
            Match::Ternary(canonical(&masked(&m.value, &mask)), mask)
        }
        FieldMatchType::Range(m) => Match::Range(canonical(&m.low), canonical(&m.high)),
        FieldMatchType::Optional(m) => Match::Optional(canonical(&m.value)),
        FieldMatchType::Other(_) => return None,
    })
}

/// The bits of `value` that `mask` has; both are big-endian numbers of any length.
fn masked(value: &[u8], mask: &[u8]) -> Vec<u8> {
    let mut bits: Vec<u8> = value
        .iter()
        .rev()
        .zip(mask.iter().rev())
        .map(|(v, m)| v & m)
        .collect();
    bits.reverse();
    bits
}

fn action(action: &v1::TableAction) -> Option<Action> {
    use v1::table_action::Type;
    match action.r#type.as_ref()? {
        Type::Action(direct) => {
            let mut params: Vec<(u32, Vec<u8>)> = direct
                .params
                .iter()
                .map(|p| (p.param_id, canonical(&p.value)))
                .collect();
            params.sort_unstable();
            Some(Action::Direct {
                id: direct.action_id,
                params,
            })
        }
        _ => Some(Action::Profile(prost::Message::encode_to_vec(action))),
    }
}

/// The wire form of an entry; without an action for deletion.
#[must_use]
pub fn entry(key: &Key, action: Option<&Action>) -> v1::TableEntry {
    let fields = key.fields.iter().map(|(id, m)| v1::FieldMatch {
        field_id: *id,
        field_match_type: Some(wire_match(m)),
    });
    v1::TableEntry {
        table_id: key.table,
        r#match: fields.collect(),
        priority: key.priority,
        action: action.map(wire_action),
        ..Default::default()
    }
}

/// The wire form of a table's default action; `None` asks for the program's own.
#[must_use]
pub fn default_entry(table: u32, action: Option<&Action>) -> v1::TableEntry {
    v1::TableEntry {
        table_id: table,
        is_default_action: true,
        action: action.map(wire_action),
        ..Default::default()
    }
}

fn wire_match(m: &Match) -> FieldMatchType {
    use v1::field_match::{Exact, Lpm, Optional, Range, Ternary};
    match m.clone() {
        Match::Exact(value) => FieldMatchType::Exact(Exact { value }),
        Match::Lpm(value, prefix_len) => FieldMatchType::Lpm(Lpm { value, prefix_len }),
        Match::Ternary(value, mask) => FieldMatchType::Ternary(Ternary { value, mask }),
        Match::Range(low, high) => FieldMatchType::Range(Range { low, high }),
        Match::Optional(value) => FieldMatchType::Optional(Optional { value }),
    }
}

fn wire_action(action: &Action) -> v1::TableAction {
    match action {
        Action::Direct { id, params } => {
            let params = params.iter().map(|(id, value)| v1::action::Param {
                param_id: *id,
                value: value.clone(),
            });
            let action = v1::Action {
                action_id: *id,
                params: params.collect(),
            };
            v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(action)),
            }
        }
        // What was encoded here decodes here; an empty action would be refused by the switch, by name.
        Action::Profile(bytes) => {
            <v1::TableAction as prost::Message>::decode(bytes.as_slice()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn ternary(value: &[u8], mask: &[u8]) -> v1::FieldMatch {
        let (value, mask) = (value.to_vec(), mask.to_vec());
        let m = FieldMatchType::Ternary(v1::field_match::Ternary { value, mask });
        v1::FieldMatch {
            field_id: 1,
            field_match_type: Some(m),
        }
    }

    fn exact(field_id: u32, value: &[u8]) -> v1::FieldMatch {
        let m = FieldMatchType::Exact(v1::field_match::Exact {
            value: value.to_vec(),
        });
        v1::FieldMatch {
            field_id,
            field_match_type: Some(m),
        }
    }

    fn table_entry(r#match: Vec<v1::FieldMatch>) -> v1::TableEntry {
        v1::TableEntry {
            table_id: 7,
            r#match,
            ..Default::default()
        }
    }

    #[test]
    fn padding_order_and_bits_outside_the_mask_do_not_matter() {
        let a = key(&table_entry(vec![
            exact(2, &[0, 0, 5]),
            ternary(&[0xff, 0x12], &[0, 0xf0]),
        ]));
        let b = key(&table_entry(vec![
            ternary(&[0x1f], &[0xf0]),
            exact(2, &[5]),
        ]));
        assert_eq!(a, b);
    }

    #[test]
    fn fields_that_match_anything_are_absent() {
        assert_eq!(
            key(&table_entry(vec![ternary(&[1], &[0])])),
            key(&table_entry(vec![]))
        );
    }

    #[test]
    fn two_entries_with_one_key_are_an_error() {
        let direct = Action::Direct {
            id: 1,
            params: vec![],
        };
        let one = entry(&key(&table_entry(vec![exact(1, &[1])])), Some(&direct));
        assert!(State::from_entries([one.clone(), one]).is_err());
    }

    proptest! {
        #[test]
        fn the_wire_form_reads_back(
            value in proptest::collection::vec(any::<u8>(), 1..5), priority in 0i32..9,
            params in proptest::collection::btree_map(1u32..9, any::<u16>(), 0..4),
        ) {
            let fields = vec![(1, Match::Exact(canonical(&value))), (3, Match::Lpm(vec![1], 9))];
            let key_in = Key { table: 7, fields, priority };
            let params =
                params.into_iter().map(|(id, v)| (id, canonical(&v.to_be_bytes()))).collect();
            let action_in = Action::Direct { id: 3, params };
            let wire = entry(&key_in, Some(&action_in));
            let state = State::from_entries([wire]).unwrap();
            prop_assert_eq!(state.entries, BTreeMap::from([(key_in, action_in)]));
        }
    }
}

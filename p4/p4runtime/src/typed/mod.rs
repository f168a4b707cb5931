//! What generated entries are made of; [`crate::codegen`] writes code that uses
//! this module.
//!
//! A table of the program is a type that implements [`TableKey`]: its fields are
//! the match fields, as numbers of fitting width, [`Lpm`], [`Ternary`],
//! `Option<`[`Range`]`>` or `Option`. Its actions are an enum that implements
//! [`Call`]. Both turn into P4Runtime messages in canonical form, and back.

mod fields;
mod resources;

use std::fmt::Debug;
use std::hash::Hash;

pub use fields::{ArgumentReader, ArgumentWriter, MatchReader, MatchWriter};
pub use resources::{Counter, Digest, Meter, Register};

use crate::bytes;
use crate::v1::{
    self, ActionProfileActionSet, CounterData, DirectCounterEntry, TableAction, TableEntry,
    table_action,
};

/// Why a typed value and a message do not correspond.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A value does not fit its field.
    #[error("`{of}`, `{field}`: {source}")]
    Value {
        /// The table, action or header.
        of: &'static str,
        /// The field or parameter.
        field: &'static str,
        /// What is wrong with the value.
        source: bytes::Error,
    },
    /// A field of a message is missing, or of another kind.
    #[error("`{of}`, `{field}`: {what}")]
    Field {
        /// The table, action or header.
        of: &'static str,
        /// The field or parameter.
        field: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The message as a whole is none of this type.
    #[error("`{of}`: {what}")]
    Message {
        /// The table, action or header.
        of: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The message belongs to another object.
    #[error("id 0x{id:08x} is not one of {of}")]
    Id {
        /// What was expected.
        of: &'static str,
        /// The id in the message.
        id: u32,
    },
}

/// A type that carries `bit<W>` values.
pub trait Bits: Clone + Eq + Ord + Hash + Debug {
    /// The shortest byte string.
    fn to_bytes(&self) -> Vec<u8>;

    /// The value of a byte string that fits the field's width, and so the type.
    fn from_bytes(value: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            impl Bits for $number {
                fn to_bytes(&self) -> Vec<u8> {
                    bytes::shortest(u128::from(*self))
                }

                fn from_bytes(value: &[u8]) -> Self {
                    value.iter().fold(0, |number, byte| {
                        number.checked_shl(8).unwrap_or(0) | Self::from(*byte)
                    })
                }
            }
        )*
    };
}

numbers! { u8 u16 u32 u64 u128 }

/// For fields wider than 128 bits, and for types that P4Info shows as strings.
impl Bits for Vec<u8> {
    fn to_bytes(&self) -> Vec<u8> {
        self.clone()
    }

    fn from_bytes(value: &[u8]) -> Self {
        value.to_vec()
    }
}

/// Equal in the first `prefix_len` bits; the other bits of `value` are zero. No
/// bits match everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Lpm<T> {
    /// The prefix.
    pub value: T,
    /// Its length in bits.
    pub prefix_len: u32,
}

/// Equal where `mask` has ones; elsewhere `value` is zero. A mask of zero
/// matches everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ternary<T> {
    /// The bits to match.
    pub value: T,
    /// Which bits count.
    pub mask: T,
}

/// From `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range<T> {
    /// The lowest value.
    pub low: T,
    /// The highest value.
    pub high: T,
}

/// What an entry of a table does.
pub trait Call: Clone + Eq + Ord + Hash + Debug {
    /// As a message.
    ///
    /// # Errors
    /// When an argument has more bits than its parameter.
    fn to_table_action(&self) -> Result<TableAction, Error>;

    /// From a message.
    ///
    /// # Errors
    /// When it is another action, or an argument is missing or too wide.
    fn try_from_table_action(action: &TableAction) -> Result<Self, Error>;
}

/// The key of an entry of one table.
pub trait TableKey: Clone + Eq + Ord + Hash + Debug {
    /// What its entries do.
    type Action: Call;
    /// Id of the table.
    const ID: u32;
    /// Alias of the table.
    const NAME: &'static str;
    /// Entries that the table was declared to hold.
    const SIZE: u64;

    /// Puts the fields into a message.
    ///
    /// # Errors
    /// When a value has more bits than its field, or bits outside of its mask.
    fn write(&self, fields: &mut MatchWriter) -> Result<(), Error>;

    /// Takes the fields from a message.
    ///
    /// # Errors
    /// When a field is missing, of another kind or too wide.
    fn read(fields: &MatchReader<'_>) -> Result<Self, Error>;

    /// The key alone, to delete or read the entry.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn to_key(&self) -> Result<TableEntry, Error> {
        let mut fields = MatchWriter::new(Self::NAME);
        self.write(&mut fields)?;
        Ok(fields.into_entry(Self::ID))
    }

    /// The whole entry.
    ///
    /// # Errors
    /// When a value or argument does not fit.
    fn to_table_entry(&self, action: &Self::Action) -> Result<TableEntry, Error> {
        Ok(TableEntry {
            action: Some(action.to_table_action()?),
            ..self.to_key()?
        })
    }

    /// Key and action of an entry that was read.
    ///
    /// # Errors
    /// When the entry belongs to another table, is the default entry, or does
    /// not have the program's fields and actions.
    fn try_from_table_entry(entry: &TableEntry) -> Result<(Self, Self::Action), Error> {
        let key = Self::try_from_key(entry)?;
        let Some(action) = &entry.action else {
            let (of, what) = (Self::NAME, "the entry has no action");
            return Err(Error::Message { of, what });
        };
        Ok((key, Self::Action::try_from_table_action(action)?))
    }

    /// The key of an entry that was read, whatever its action.
    ///
    /// # Errors
    /// As [`try_from_table_entry`](Self::try_from_table_entry).
    fn try_from_key(entry: &TableEntry) -> Result<Self, Error> {
        let of = Self::NAME;
        if entry.table_id != Self::ID {
            let id = entry.table_id;
            return Err(Error::Id { of, id });
        }
        if entry.is_default_action {
            let what = "the default entry has no key";
            return Err(Error::Message { of, what });
        }
        Self::read(&MatchReader::new(of, entry))
    }

    /// What to ask for to read every entry.
    #[must_use]
    fn all() -> TableEntry {
        TableEntry {
            table_id: Self::ID,
            ..Default::default()
        }
    }

    /// An update of the default entry; without an action it becomes what the
    /// program says.
    ///
    /// # Errors
    /// When an argument does not fit.
    fn default_entry(action: Option<&Self::Action>) -> Result<TableEntry, Error> {
        Ok(TableEntry {
            table_id: Self::ID,
            action: action.map(Call::to_table_action).transpose()?,
            is_default_action: true,
            ..Default::default()
        })
    }
}

/// A table with a direct counter.
pub trait Counted: TableKey {
    /// Id of the direct counter.
    const COUNTER_ID: u32;

    /// The entry's counter: to read, or with `data` to set.
    ///
    /// # Errors
    /// As [`TableKey::write`].
    fn to_counter(&self, data: Option<CounterData>) -> Result<DirectCounterEntry, Error> {
        Ok(DirectCounterEntry {
            table_entry: Some(self.to_key()?),
            data,
        })
    }

    /// What to ask for to read the counters of every entry.
    #[must_use]
    fn all_counters() -> DirectCounterEntry {
        DirectCounterEntry {
            table_entry: Some(Self::all()),
            data: None,
        }
    }

    /// Key and value of a counter that was read.
    ///
    /// # Errors
    /// When it belongs to another table, or is without data.
    fn try_from_counter(counter: &DirectCounterEntry) -> Result<(Self, CounterData), Error> {
        let of = Self::NAME;
        match (&counter.table_entry, counter.data) {
            (Some(entry), Some(data)) => Ok((Self::try_from_key(entry)?, data)),
            _ => {
                let what = "the counter has no entry or no data";
                Err(Error::Message { of, what })
            }
        }
    }
}

/// What an entry of a table with an action profile does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Indirect {
    /// The action of one member.
    Member(u32),
    /// The action of one of a group's members.
    Group(u32),
    /// One of the entry's own actions.
    OneShot(ActionProfileActionSet),
}

impl Indirect {
    /// Order for maps: by kind, then by id or contents.
    fn order(&self) -> (u8, u32, Vec<u8>) {
        use prost::Message as _;
        match self {
            Indirect::Member(id) => (0, *id, Vec::new()),
            Indirect::Group(id) => (1, *id, Vec::new()),
            Indirect::OneShot(set) => (2, 0, set.encode_to_vec()),
        }
    }
}

impl PartialOrd for Indirect {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Indirect {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl Call for Indirect {
    fn to_table_action(&self) -> Result<TableAction, Error> {
        use table_action::Type;
        let kind = match self.clone() {
            Indirect::Member(id) => Type::ActionProfileMemberId(id),
            Indirect::Group(id) => Type::ActionProfileGroupId(id),
            Indirect::OneShot(set) => Type::ActionProfileActionSet(set),
        };
        Ok(TableAction { r#type: Some(kind) })
    }

    fn try_from_table_action(action: &TableAction) -> Result<Self, Error> {
        use table_action::Type;
        match &action.r#type {
            Some(Type::ActionProfileMemberId(id)) => Ok(Indirect::Member(*id)),
            Some(Type::ActionProfileGroupId(id)) => Ok(Indirect::Group(*id)),
            Some(Type::ActionProfileActionSet(set)) => Ok(Indirect::OneShot(set.clone())),
            Some(Type::Action(_)) | None => Err(Error::Message {
                of: "action profile",
                what: "the entry names no member, group or set of actions",
            }),
        }
    }
}

/// The action of a table without action profile; for generated code.
///
/// # Errors
/// When it is not a single action.
pub fn single_action<'a>(
    of: &'static str,
    action: &'a TableAction,
) -> Result<&'a v1::Action, Error> {
    match &action.r#type {
        Some(table_action::Type::Action(action)) => Ok(action),
        _ => Err(Error::Message {
            of,
            what: "the entry does not name its action directly",
        }),
    }
}

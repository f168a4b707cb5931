//! Entities: builders that know the program, the rules that every entity must
//! keep, and a readable form of what a switch sends back.
//!
//! A builder resolves names, [`check`] applies the rules of the specification
//! and brings an entity into its canonical form. Both sides use the same rules:
//! a client before it writes, a server before it believes. In the canonical
//! form byte strings are shortest, matches follow the order of P4Info and
//! fields that match everything are absent, so that equal entries are equal
//! values ([`key`] can be a map's key).

mod builder;
pub mod check;
mod matches;
mod readable;
mod resources;
mod value;

pub use builder::{OneShot, TableEntryBuilder, clone_session, multicast_group, replica};
pub use readable::{Fields, Readable, read_action, read_entity};
pub use value::Value;

use crate::bytes;
use crate::info;
use crate::rpc::Code;
use crate::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterEntry, DigestEntry,
    DirectCounterEntry, DirectMeterEntry, Entity, ExternEntry, MeterEntry, MulticastGroupEntry,
    PacketReplicationEngineEntry, RegisterEntry, TableEntry, Update, ValueSetEntry, entity,
    packet_replication_engine_entry, update,
};

/// Why an entity does not suit the program or the specification.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It names something that the program does not have.
    #[error(transparent)]
    Name(#[from] info::Error),
    /// A value does not suit its field.
    #[error("{at}: {source}")]
    Value {
        /// The object and the field.
        at: String,
        /// What is wrong with the value.
        source: bytes::Error,
    },
    /// A rule of the specification is broken.
    #[error("{at}: {rule}")]
    Rule {
        /// The object, and the field if there is one.
        at: String,
        /// What is wrong and what would be right.
        rule: String,
        /// What a server answers.
        code: Code,
    },
}

impl Error {
    /// The canonical code that a server answers with.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Error::Name(error) => error.code(),
            Error::Value { source, .. } => source.code(),
            Error::Rule { code, .. } => *code,
        }
    }

    fn invalid(at: impl Into<String>, rule: impl Into<String>) -> Self {
        Error::rule(Code::InvalidArgument, at, rule)
    }

    fn denied(at: impl Into<String>, rule: impl Into<String>) -> Self {
        Error::rule(Code::PermissionDenied, at, rule)
    }

    fn rule(code: Code, at: impl Into<String>, rule: impl Into<String>) -> Self {
        let (at, rule) = (at.into(), rule.into());
        Error::Rule { at, rule, code }
    }
}

impl From<Error> for crate::v1::Error {
    fn from(error: Error) -> Self {
        crate::v1::Error {
            canonical_code: error.code() as i32,
            message: error.to_string(),
            ..Default::default()
        }
    }
}

macro_rules! entities {
    ($($message:ident => $variant:ident,)*) => {
        $(
            impl From<$message> for Entity {
                fn from(message: $message) -> Self {
                    Entity { entity: Some(entity::Entity::$variant(message)) }
                }
            }
        )*
    };
}

entities! {
    ExternEntry => ExternEntry,
    TableEntry => TableEntry,
    ActionProfileMember => ActionProfileMember,
    ActionProfileGroup => ActionProfileGroup,
    MeterEntry => MeterEntry,
    DirectMeterEntry => DirectMeterEntry,
    CounterEntry => CounterEntry,
    DirectCounterEntry => DirectCounterEntry,
    PacketReplicationEngineEntry => PacketReplicationEngineEntry,
    ValueSetEntry => ValueSetEntry,
    RegisterEntry => RegisterEntry,
    DigestEntry => DigestEntry,
}

impl From<MulticastGroupEntry> for Entity {
    fn from(group: MulticastGroupEntry) -> Self {
        let group = packet_replication_engine_entry::Type::MulticastGroupEntry(group);
        PacketReplicationEngineEntry {
            r#type: Some(group),
        }
        .into()
    }
}

impl From<CloneSessionEntry> for Entity {
    fn from(session: CloneSessionEntry) -> Self {
        let session = packet_replication_engine_entry::Type::CloneSessionEntry(session);
        PacketReplicationEngineEntry {
            r#type: Some(session),
        }
        .into()
    }
}

fn update(kind: update::Type, entity: impl Into<Entity>) -> Update {
    Update {
        r#type: kind.into(),
        entity: Some(entity.into()),
    }
}

/// An update that adds an entity.
#[must_use]
pub fn insert(entity: impl Into<Entity>) -> Update {
    update(update::Type::Insert, entity)
}

/// An update that gives an entity a new state; what it leaves out is reset.
#[must_use]
pub fn modify(entity: impl Into<Entity>) -> Update {
    update(update::Type::Modify, entity)
}

/// An update that removes an entity; only its key counts.
#[must_use]
pub fn delete(entity: impl Into<Entity>) -> Update {
    update(update::Type::Delete, entity)
}

/// The part of a canonical entity that tells it from others of its kind, with
/// everything else unset. Two entities are the same one if their keys are equal.
#[must_use]
pub fn key(entity: &Entity) -> Entity {
    use entity::Entity as E;
    match &entity.entity {
        None => Entity::default(),
        Some(E::TableEntry(entry)) => table_key(entry).into(),
        Some(E::ExternEntry(entry)) => entry.clone().into(),
        Some(E::ActionProfileMember(member)) => ActionProfileMember {
            action: None,
            ..*member
        }
        .into(),
        Some(E::ActionProfileGroup(group)) => ActionProfileGroup {
            action_profile_id: group.action_profile_id,
            group_id: group.group_id,
            ..Default::default()
        }
        .into(),
        Some(E::MeterEntry(meter)) => MeterEntry {
            meter_id: meter.meter_id,
            index: meter.index,
            ..Default::default()
        }
        .into(),
        Some(E::CounterEntry(counter)) => CounterEntry {
            data: None,
            ..*counter
        }
        .into(),
        Some(E::DirectMeterEntry(meter)) => DirectMeterEntry {
            table_entry: meter.table_entry.as_ref().map(table_key),
            ..Default::default()
        }
        .into(),
        Some(E::DirectCounterEntry(counter)) => DirectCounterEntry {
            table_entry: counter.table_entry.as_ref().map(table_key),
            data: None,
        }
        .into(),
        Some(E::PacketReplicationEngineEntry(entry)) => replication_key(entry),
        Some(E::ValueSetEntry(set)) => ValueSetEntry {
            value_set_id: set.value_set_id,
            members: Vec::new(),
        }
        .into(),
        Some(E::RegisterEntry(register)) => RegisterEntry {
            register_id: register.register_id,
            index: register.index,
            data: None,
        }
        .into(),
        Some(E::DigestEntry(digest)) => DigestEntry {
            digest_id: digest.digest_id,
            config: None,
        }
        .into(),
    }
}

/// The key of a canonical table entry.
#[must_use]
pub fn table_key(entry: &TableEntry) -> TableEntry {
    TableEntry {
        table_id: entry.table_id,
        r#match: entry.r#match.clone(),
        priority: entry.priority,
        is_default_action: entry.is_default_action,
        ..Default::default()
    }
}

fn replication_key(entry: &PacketReplicationEngineEntry) -> Entity {
    use packet_replication_engine_entry::Type;
    match &entry.r#type {
        Some(Type::MulticastGroupEntry(group)) => MulticastGroupEntry {
            multicast_group_id: group.multicast_group_id,
            ..Default::default()
        }
        .into(),
        Some(Type::CloneSessionEntry(session)) => CloneSessionEntry {
            session_id: session.session_id,
            ..Default::default()
        }
        .into(),
        None => PacketReplicationEngineEntry::default().into(),
    }
}

#[cfg(test)]
mod tests;

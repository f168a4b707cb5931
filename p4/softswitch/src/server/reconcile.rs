//! Carries the forwarding state over to another pipeline (RECONCILE_AND_COMMIT).
//!
//! What was written is read back as messages and written again under the new P4Info, first on
//! a trial switch. Entries, members, groups, default actions, meters, multicast groups, clone
//! sessions, value sets and digests must all fit, or the new pipeline is refused; counters and
//! registers that are gone from the new program are let go.

use std::collections::HashSet;

use p4runtime::rpc::Code;
use p4runtime::v1::{self, entity::Entity, packet_replication_engine_entry::Type as Replication};
use prost::Message as _;

use super::fault::Fault;
use super::pipeline::Pipeline;
use super::read::{Cursor, Role};
use super::roles::Scope;
use super::state::{Owned, State, Target, lock};
use super::write::{Author, Limits, Writer};
use crate::switch::Switch;

/// Something to write again.
pub(crate) struct Kept {
    /// The role that wrote it.
    role: String,
    entity: v1::Entity,
    /// An entry that the program brought along and a controller deleted.
    gone: bool,
}

fn read(target: &Target, request: Entity, role: &str, now: u64) -> Result<Vec<v1::Entity>, Fault> {
    let request = v1::Entity {
        entity: Some(request),
    };
    let mut cursor = Cursor::open(&target.pipeline, &request)?;
    let mut all = Vec::new();
    loop {
        let role = Role {
            name: role,
            scope: Scope::default(),
        };
        let (batch, more) = cursor.next(target, now, &role)?;
        all.extend(batch);
        if !more {
            return Ok(all);
        }
    }
}

/// Everything in the switch that a controller wrote, in an order in which it can be written
/// again. `pristine` has the same program, and nothing was written to it.
pub(crate) fn export(
    target: &Target,
    pristine: &Target,
    roles: &[String],
    now: u64,
) -> Result<Vec<Kept>, Fault> {
    let mut kept = removed(target, pristine, now)?;
    let read = |request: Entity, role: &str| read(target, request, role, now);
    let replication = |t| {
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(t) })
    };
    let members = [
        Entity::ActionProfileMember(Default::default()),
        Entity::ActionProfileGroup(Default::default()),
    ];
    let others = [
        Entity::MeterEntry(Default::default()),
        Entity::CounterEntry(Default::default()),
        Entity::RegisterEntry(Default::default()),
        replication(Replication::MulticastGroupEntry(Default::default())),
        replication(Replication::CloneSessionEntry(Default::default())),
        Entity::ValueSetEntry(Default::default()),
        Entity::DigestEntry(Default::default()),
    ];
    for request in members {
        kept.extend(read(request, "")?.into_iter().map(|e| own(target, e)));
    }
    // Entries of named roles first, then what is left of all.
    let mut seen = HashSet::new();
    for role in roles
        .iter()
        .filter(|r| !r.is_empty())
        .map(String::as_str)
        .chain([""])
    {
        for table in target.pipeline.tables.values() {
            for default in [false, true] {
                let request = v1::TableEntry {
                    table_id: table.id,
                    is_default_action: default,
                    counter_data: table.direct_counter.then(Default::default),
                    meter_config: table.direct_meter.map(|_| Default::default()),
                    ..Default::default()
                };
                for entity in read(Entity::TableEntry(request), role)? {
                    let Some(Entity::TableEntry(entry)) = &entity.entity else {
                        continue;
                    };
                    let initial =
                        default && !lock(&target.state).default_notes.contains_key(&table.id);
                    if !entry.is_const && !initial && seen.insert(key_of(entry)) {
                        kept.push(Kept {
                            role: role.to_owned(),
                            entity,
                            gone: false,
                        });
                    }
                }
            }
        }
    }
    for request in others {
        let written = read(request, "")?.into_iter().filter(is_written);
        kept.extend(written.map(|e| own(target, e)));
    }
    Ok(kept)
}

/// An entity with the role that it belongs to.
fn own(target: &Target, entity: v1::Entity) -> Kept {
    let state = lock(&target.state);
    let role = entity.entity.as_ref().and_then(Owned::of);
    let role = role.and_then(|key| state.owners.get(&key).cloned());
    Kept {
        role: role.unwrap_or_default(),
        entity,
        gone: false,
    }
}

/// The entries that the program brought along and a controller deleted.
fn removed(target: &Target, pristine: &Target, now: u64) -> Result<Vec<Kept>, Fault> {
    let mut removed = Vec::new();
    let parts = &target.pipeline.program.parts;
    let mut tables = target.pipeline.tables.values().collect::<Vec<_>>();
    tables.retain(|t| !t.is_const && !parts.tables[t.core.index()].entries.is_empty());
    for table in tables {
        let all = || {
            Entity::TableEntry(v1::TableEntry {
                table_id: table.id,
                ..Default::default()
            })
        };
        let key = |entity: &v1::Entity| match &entity.entity {
            Some(Entity::TableEntry(entry)) => key_of(entry),
            _ => Vec::new(),
        };
        let there = read(target, all(), "", now)?;
        let there: HashSet<Vec<u8>> = there.iter().map(key).collect();
        let own = read(pristine, all(), "", now)?;
        let gone = own.into_iter().filter(|e| !there.contains(&key(e)));
        removed.extend(gone.map(|entity| Kept {
            role: String::new(),
            entity,
            gone: true,
        }));
    }
    Ok(removed)
}

fn key_of(entry: &v1::TableEntry) -> Vec<u8> {
    let key = v1::TableEntry {
        table_id: entry.table_id,
        r#match: entry.r#match.clone(),
        priority: entry.priority,
        is_default_action: entry.is_default_action,
        ..Default::default()
    };
    key.encode_to_vec()
}

/// Whether a cell or set holds anything but what every program starts with.
fn is_written(entity: &v1::Entity) -> bool {
    match &entity.entity {
        Some(Entity::MeterEntry(meter)) => meter.config.is_some(),
        Some(Entity::CounterEntry(counter)) => counter.data != Some(Default::default()),
        Some(Entity::RegisterEntry(register)) => {
            use v1::p4_data::Data;
            let data = register.data.as_ref().and_then(|d| d.data.as_ref());
            !matches!(data, Some(Data::Bitstring(b) | Data::EnumValue(b)) if b[..] == [0])
                && !matches!(data, Some(Data::Bool(false)))
        }
        Some(Entity::ValueSetEntry(set)) => !set.members.is_empty(),
        _ => true,
    }
}

/// Writes the entities to a switch whose program was just installed.
pub(crate) fn replay(
    pipeline: &Pipeline,
    switch: &mut Switch,
    state: &mut State,
    kept: &[Kept],
    now: u64,
    limits: Limits,
) -> Result<(), Fault> {
    let scope = Scope::default();
    for Kept { role, entity, gone } in kept {
        let author = Author {
            role,
            scope: &scope,
            now,
            limits,
        };
        let mut writer = Writer {
            pipeline,
            switch,
            state,
            author: &author,
            undo: None,
        };
        let mut update = v1::Update {
            r#type: 0,
            entity: Some(entity.clone()),
        };
        if *gone {
            update.set_type(v1::update::Type::Delete);
            // The new program may not have it in the first place.
            let _ = writer.apply(&update);
            continue;
        }
        update.set_type(first_type(entity));
        let mut result = writer.apply(&update);
        if matches!(&result, Err(fault) if fault.code == Code::AlreadyExists) {
            // An entry that the new program itself brings along.
            update.set_type(v1::update::Type::Modify);
            result = writer.apply(&update);
        }
        match result {
            Err(fault) if fault.code == Code::NotFound && may_be_gone(entity) => {}
            Err(fault) if fault.code == Code::PermissionDenied && is_default(entity) => {}
            Err(fault) => {
                return Err(Fault::invalid(format!(
                    "the forwarding state does not fit the new pipeline: {fault}"
                )));
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

fn first_type(entity: &v1::Entity) -> v1::update::Type {
    use v1::update::Type;
    match &entity.entity {
        Some(Entity::TableEntry(entry)) if entry.is_default_action => Type::Modify,
        Some(
            Entity::MeterEntry(_)
            | Entity::CounterEntry(_)
            | Entity::RegisterEntry(_)
            | Entity::ValueSetEntry(_),
        ) => Type::Modify,
        _ => Type::Insert,
    }
}

/// Counts and registers are not forwarding state: they may go with their array.
fn may_be_gone(entity: &v1::Entity) -> bool {
    matches!(
        entity.entity,
        Some(Entity::CounterEntry(_) | Entity::RegisterEntry(_))
    ) || is_default(entity)
}

fn is_default(entity: &v1::Entity) -> bool {
    matches!(&entity.entity, Some(Entity::TableEntry(entry)) if entry.is_default_action)
}

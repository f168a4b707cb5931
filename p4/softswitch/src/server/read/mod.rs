//! Answers read requests (P4Runtime, "Read RPC").
//!
//! A request is checked and becomes a [`Cursor`]; each call of [`Cursor::next`] holds the switch
//! just long enough for one batch of entities, so that a read of a million entries neither holds
//! up packets nor a second copy of the table.

mod cells;
mod tables;

use p4runtime::v1::{self, entity::Entity, packet_replication_engine_entry::Type as Replication};

use super::fault::Fault;
use super::pipeline::{Pipeline, Profile, find};
use super::roles::Scope;
use super::state::{Owned, State, Target};
use crate::switch::Switch;

pub(crate) use tables::describe_entry;

/// Entities per hold of the switch: some 100 µs.
const BATCH: usize = 128;

/// What is left to read of one request.
pub(crate) enum Cursor {
    Tables(tables::TableCursor),
    Cells(cells::CellCursor),
    /// Everything at once: these are few, or in memory already.
    List(Option<ListRequest>),
}

/// Requests whose answers are lists.
pub(crate) enum ListRequest {
    Members(v1::ActionProfileMember),
    Groups(v1::ActionProfileGroup),
    Replication(Replication),
    ValueSets(u32),
    Digests(u32),
    Nothing,
}

/// What a cursor reads from.
pub(crate) struct Source<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) switch: &'a Switch,
    pub(crate) state: &'a State,
    /// The switch's clock, ns.
    pub(crate) now: u64,
    pub(crate) role: &'a Role<'a>,
}

/// Whose entities are wanted.
pub(crate) struct Role<'a> {
    /// Only what this role wrote; empty for all.
    pub(crate) name: &'a str,
    /// And of what nobody wrote, because it is always there, what the role may write.
    pub(crate) scope: Scope,
}

impl Role<'_> {
    /// Whether the cells of this array are the role's.
    fn has(&self, id: u32) -> bool {
        self.name.is_empty() || self.scope.includes(id)
    }
}

impl Cursor {
    /// Checks one element of a read request.
    pub(crate) fn open(pipeline: &Pipeline, request: &v1::Entity) -> Result<Cursor, Fault> {
        let Some(entity) = &request.entity else {
            return Err(Fault::invalid("the entity is not set"));
        };
        let list = |request| Ok(Cursor::List(Some(request)));
        match entity {
            Entity::TableEntry(entry) => tables::TableCursor::entries(pipeline, entry),
            Entity::DirectCounterEntry(entry) => {
                tables::TableCursor::direct_counters(pipeline, entry)
            }
            Entity::DirectMeterEntry(entry) => tables::TableCursor::direct_meters(pipeline, entry),
            Entity::CounterEntry(entry) => cells::CellCursor::counters(pipeline, entry),
            Entity::MeterEntry(entry) => cells::CellCursor::meters(pipeline, entry),
            Entity::RegisterEntry(entry) => cells::CellCursor::registers(pipeline, entry),
            Entity::ActionProfileMember(member) => {
                check_profile(pipeline, member.action_profile_id)?;
                list(ListRequest::Members(member.clone()))
            }
            Entity::ActionProfileGroup(group) => {
                check_profile(pipeline, group.action_profile_id)?;
                list(ListRequest::Groups(group.clone()))
            }
            Entity::PacketReplicationEngineEntry(entry) => match &entry.r#type {
                Some(request) => list(ListRequest::Replication(request.clone())),
                None => Err(Fault::invalid(
                    "the packet replication engine's entry is not set",
                )),
            },
            Entity::ValueSetEntry(entry) => {
                if entry.value_set_id != 0 {
                    find(&pipeline.value_sets, entry.value_set_id, "value set")?;
                }
                if !entry.members.is_empty() {
                    return Err(Fault::invalid(
                        "members cannot be set when a value set is read",
                    ));
                }
                list(ListRequest::ValueSets(entry.value_set_id))
            }
            Entity::DigestEntry(entry) => {
                if entry.digest_id != 0 {
                    find(&pipeline.digests, entry.digest_id, "digest")?;
                }
                list(ListRequest::Digests(entry.digest_id))
            }
            Entity::ExternEntry(entry) if entry.extern_type_id == 0 => list(ListRequest::Nothing),
            Entity::ExternEntry(_) => Err(Fault::unimplemented(
                "v1model has no externs beyond P4Runtime's own entities",
            )),
        }
    }

    /// The next batch; empty and `false` when there is nothing left.
    pub(crate) fn next(
        &mut self,
        target: &Target,
        now: u64,
        role: &Role<'_>,
    ) -> Result<(Vec<v1::Entity>, bool), Fault> {
        let (state, switch) = target.lock();
        let source = Source {
            pipeline: &target.pipeline,
            switch: &switch,
            state: &state,
            now,
            role,
        };
        let mut out = Vec::new();
        let more = match self {
            Cursor::Tables(cursor) => cursor.fill(&source, BATCH, &mut out)?,
            Cursor::Cells(cursor) => cursor.fill(&source, BATCH, &mut out)?,
            Cursor::List(request) => {
                if let Some(request) = request.take() {
                    source.list(&request, &mut out)?;
                }
                false
            }
        };
        Ok((out, more))
    }
}

fn check_profile(pipeline: &Pipeline, id: u32) -> Result<(), Fault> {
    if id == 0 {
        Ok(())
    } else {
        pipeline.profile(id).map(|_| ())
    }
}

fn push(out: &mut Vec<v1::Entity>, entity: Entity) {
    out.push(v1::Entity {
        entity: Some(entity),
    });
}

impl Source<'_> {
    fn list(&self, request: &ListRequest, out: &mut Vec<v1::Entity>) -> Result<(), Fault> {
        match request {
            ListRequest::Members(wanted) => self.members(wanted, out),
            ListRequest::Groups(wanted) => {
                self.groups(wanted, out);
                Ok(())
            }
            ListRequest::Replication(wanted) => {
                self.replication(wanted, out);
                Ok(())
            }
            ListRequest::ValueSets(id) => self.value_sets(*id, out),
            ListRequest::Digests(id) => {
                self.digests(*id, out);
                Ok(())
            }
            ListRequest::Nothing => Ok(()),
        }
    }

    fn members(
        &self,
        wanted: &v1::ActionProfileMember,
        out: &mut Vec<v1::Entity>,
    ) -> Result<(), Fault> {
        let matches = |p: &&Profile| [0, p.id].contains(&wanted.action_profile_id);
        for profile in self.pipeline.profiles.values().filter(matches) {
            for member in self.switch.members(profile.core)? {
                let owned = Owned::Member(profile.id, member.id);
                if ![0, member.id].contains(&wanted.member_id)
                    || !self.state.belongs(owned, self.role.name)
                {
                    continue;
                }
                let message = v1::ActionProfileMember {
                    action_profile_id: profile.id,
                    member_id: member.id,
                    action: self.pipeline.encode_call(&profile.actions, &member.call),
                };
                push(out, Entity::ActionProfileMember(message));
            }
        }
        Ok(())
    }

    fn groups(&self, wanted: &v1::ActionProfileGroup, out: &mut Vec<v1::Entity>) {
        for ((profile, id), group) in &self.state.groups {
            if [0, *profile].contains(&wanted.action_profile_id)
                && [0, *id].contains(&wanted.group_id)
                && self
                    .state
                    .belongs(Owned::Group(*profile, *id), self.role.name)
            {
                push(out, Entity::ActionProfileGroup(group.clone()));
            }
        }
    }

    fn replication(&self, wanted: &Replication, out: &mut Vec<v1::Entity>) {
        let entry = |t| {
            Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
                r#type: Some(t),
            })
        };
        match wanted {
            Replication::MulticastGroupEntry(wanted) => {
                for (id, group) in &self.state.multicast {
                    if [0, *id].contains(&wanted.multicast_group_id)
                        && self.state.belongs(Owned::Multicast(*id), self.role.name)
                    {
                        let message = group.message.clone();
                        push(out, entry(Replication::MulticastGroupEntry(message)));
                    }
                }
            }
            Replication::CloneSessionEntry(wanted) => {
                for (id, session) in &self.state.clones {
                    if [0, *id].contains(&wanted.session_id)
                        && self.state.belongs(Owned::Clone(*id), self.role.name)
                    {
                        let message = session.message.clone();
                        push(out, entry(Replication::CloneSessionEntry(message)));
                    }
                }
            }
        }
    }

    fn value_sets(&self, wanted: u32, out: &mut Vec<v1::Entity>) -> Result<(), Fault> {
        for (id, set) in &self.pipeline.value_sets {
            if ![0, *id].contains(&wanted)
                || !self.state.belongs(Owned::ValueSet(*id), self.role.name)
            {
                continue;
            }
            let members = self.switch.value_set(set.core)?;
            let members = members.iter().map(|m| v1::ValueSetMember {
                r#match: super::entries::encode_fields(&set.fields, &m.fields),
            });
            let entry = v1::ValueSetEntry {
                value_set_id: *id,
                members: members.collect(),
            };
            push(out, Entity::ValueSetEntry(entry));
        }
        Ok(())
    }

    fn digests(&self, wanted: u32, out: &mut Vec<v1::Entity>) {
        for id in self
            .pipeline
            .digests
            .keys()
            .filter(|id| [0, **id].contains(&wanted))
            .filter(|id| self.state.belongs(Owned::Digest(**id), self.role.name))
        {
            if let Some(config) = self.state.digests.config(*id) {
                let config = v1::digest_entry::Config {
                    max_timeout_ns: config.max_timeout_ns as i64,
                    max_list_size: config.max_list_size as i32,
                    ack_timeout_ns: config.ack_timeout_ns as i64,
                };
                let entry = v1::DigestEntry {
                    digest_id: *id,
                    config: Some(config),
                };
                push(out, Entity::DigestEntry(entry));
            }
        }
    }
}

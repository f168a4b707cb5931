//! Members and groups of action profiles.

use std::collections::BTreeSet;

use p4runtime::rpc::Code;
use p4runtime::v1::{self, action_profile_group::member::WatchKind};

use super::{Op, Writer};
use crate::control::{EntryAction, Group, GroupMember, Member, TableEntry};
use crate::server::actions::{SizeOf, set_semantics};
use crate::server::entries::Notes;
use crate::server::fault::Fault;
use crate::server::pipeline::Profile;
use crate::server::sdn::{Ports, canonical_port};
use crate::server::state::State;

/// An entry's own choices, as they count towards its selector.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneShotUse {
    profile: u32,
    size: i64,
}

impl OneShotUse {
    /// `None` for an entry without choices of its own.
    pub(super) fn of(profile: &Profile, entry: &TableEntry) -> Option<Self> {
        let EntryAction::OneShot { choices, .. } = &entry.action else {
            return None;
        };
        let semantics = set_semantics(profile, &Notes::decode(&entry.metadata));
        let size = match semantics {
            SizeOf::Members => choices.len() as i64,
            SizeOf::Weights => choices.iter().map(|c| i64::from(c.weight)).sum(),
        };
        Some(OneShotUse {
            profile: profile.id,
            size,
        })
    }
}

impl State {
    /// Notes that an entry with choices of its own came or went.
    pub(super) fn use_one_shot(&mut self, uses: Option<&OneShotUse>, by: i64) {
        if let Some(uses) = uses {
            let load = self.loads.entry(uses.profile).or_default();
            load.one_shots += by;
            load.size += by * uses.size;
        }
    }
}

impl Writer<'_> {
    pub(super) fn member(&mut self, op: Op, given: &v1::ActionProfileMember) -> Result<(), Fault> {
        let pipeline = self.pipeline;
        let profile = pipeline.profile(given.action_profile_id)?;
        self.check_profile(profile, op)?;
        if given.member_id == 0 {
            return Err(Fault::invalid(format!(
                "{}: member_id is not set",
                profile.name
            )));
        }
        let id = profile.core;
        let old = match self.undo {
            Some(_) => self.switch.member(id, given.member_id)?,
            None => None,
        };
        if op == Op::Delete {
            self.switch.member_delete(id, given.member_id)?;
            if let Some(old) = old {
                self.on_undo(move |switch, _| switch.member_insert(id, &old));
            }
            return Ok(());
        }
        let action = given
            .action
            .as_ref()
            .ok_or_else(|| Fault::invalid(format!("{}: a member needs an action", profile.name)))?;
        let call = pipeline.decode_member_call(profile, action)?;
        let member = Member {
            id: given.member_id,
            call,
        };
        if op == Op::Insert {
            self.switch.member_insert(id, &member)?;
            self.on_undo(move |switch, _| switch.member_delete(id, member.id));
        } else {
            self.switch.member_modify(id, &member)?;
            if let Some(old) = old {
                self.on_undo(move |switch, _| switch.member_modify(id, &old));
            }
        }
        Ok(())
    }

    pub(super) fn group(&mut self, op: Op, given: &v1::ActionProfileGroup) -> Result<(), Fault> {
        let pipeline = self.pipeline;
        let profile = pipeline.profile(given.action_profile_id)?;
        self.check_profile(profile, op)?;
        if !profile.selector {
            return Err(Fault::invalid(format!(
                "{} has no groups: no selector",
                profile.name
            )));
        }
        if given.group_id == 0 {
            return Err(Fault::invalid(format!(
                "{}: group_id is not set",
                profile.name
            )));
        }
        let id = profile.core;
        let key = (profile.id, given.group_id);
        let old = self.state.groups.get(&key).cloned();
        let ports = self.ports();
        let old_group = match &old {
            Some(message) => Some((message.clone(), decode_group(profile, message, &ports)?)),
            None => None,
        };
        if op == Op::Delete {
            self.switch.group_delete(id, given.group_id)?;
            self.state.put_group(profile, given.group_id, None);
            if let Some((message, group)) = old_group {
                let profile = GroupOf::of(profile);
                self.on_undo(move |switch, state| {
                    switch.group_insert(id, &group)?;
                    profile.put(state, group.id, Some(message));
                    Ok(())
                });
            }
            return Ok(());
        }
        let group = decode_group(profile, given, &ports)?;
        check_group(profile, op, given, old.as_ref())?;
        self.check_load(
            profile,
            group_size(profile, given) - old.as_ref().map_or(0, |g| group_size(profile, g)),
        )?;
        match op {
            Op::Insert => self.switch.group_insert(id, &group)?,
            _ => self.switch.group_modify(id, &group)?,
        }
        self.state
            .put_group(profile, given.group_id, Some(canonical(given)));
        let profile = GroupOf::of(profile);
        self.on_undo(move |switch, state| match old_group {
            None => {
                profile.put(state, group.id, None);
                switch.group_delete(id, group.id)
            }
            Some((message, old)) => {
                switch.group_modify(id, &old)?;
                profile.put(state, old.id, Some(message));
                Ok(())
            }
        });
        Ok(())
    }

    fn check_profile(&self, profile: &Profile, op: Op) -> Result<(), Fault> {
        self.author.scope.check_id(profile.id)?;
        let one_shots = self.state.loads.get(&profile.id).map_or(0, |l| l.one_shots);
        if one_shots > 0 && op != Op::Delete {
            return Err(Fault::invalid(format!(
                "{} is used with action sets, so it cannot have members and groups",
                profile.name
            )));
        }
        Ok(())
    }

    /// Whether a selector that is written with members and groups, or is full, may take an entry
    /// with choices of its own, in place of another.
    pub(super) fn check_one_shot(
        &self,
        new: &OneShotUse,
        old: Option<&OneShotUse>,
    ) -> Result<(), Fault> {
        let profile = self.pipeline.profile(new.profile)?;
        if !self.switch.profile_is_empty(profile.core)? {
            return Err(Fault::invalid(format!(
                "{} has members or groups, so its tables cannot use action sets",
                profile.name
            )));
        }
        self.check_load(profile, new.size - old.map_or(0, |o| o.size))
    }

    /// Whether a selector's groups may come to `more` than they do.
    fn check_load(&self, profile: &Profile, more: i64) -> Result<(), Fault> {
        let size = self.state.loads.get(&profile.id).map_or(0, |l| l.size);
        if more > 0 && profile.size > 0 && size + more > profile.size {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!(
                    "{}: its groups would come to {}; its size is {}",
                    profile.name,
                    size + more,
                    profile.size
                ),
            ));
        }
        Ok(())
    }
}

/// What of a profile its groups' accounts need.
#[derive(Clone, Copy)]
struct GroupOf {
    profile: u32,
    size_of: SizeOf,
}

impl GroupOf {
    fn of(profile: &Profile) -> Self {
        GroupOf {
            profile: profile.id,
            size_of: profile.size_of(),
        }
    }

    /// Replaces what is noted of a group.
    fn put(self, state: &mut State, id: u32, group: Option<v1::ActionProfileGroup>) {
        let size = |g: &v1::ActionProfileGroup| self.size_of.of(g.members.iter().map(|m| m.weight));
        let key = (self.profile, id);
        let after = group.as_ref().map_or(0, size);
        let old = match group {
            Some(group) => state.groups.insert(key, group),
            None => state.groups.remove(&key),
        };
        let load = state.loads.entry(self.profile).or_default();
        load.size += after - old.as_ref().map_or(0, size);
    }
}

impl State {
    fn put_group(&mut self, profile: &Profile, id: u32, group: Option<v1::ActionProfileGroup>) {
        GroupOf::of(profile).put(self, id, group);
    }
}

fn group_size(profile: &Profile, group: &v1::ActionProfileGroup) -> i64 {
    profile.size_of().of(group.members.iter().map(|m| m.weight))
}

/// Whether a group may be inserted or modified so; `old` is the group as it is.
fn check_group(
    profile: &Profile,
    op: Op,
    given: &v1::ActionProfileGroup,
    old: Option<&v1::ActionProfileGroup>,
) -> Result<(), Fault> {
    match (op, old) {
        (Op::Insert, Some(_)) => {
            return Err(Fault::new(
                Code::AlreadyExists,
                format!("{}: group {} exists already", profile.name, given.group_id),
            ));
        }
        (Op::Insert, None) => check_max_size(profile, given.max_size)?,
        (_, None) => {
            return Err(Fault::not_found(format!(
                "{}: there is no group {}",
                profile.name, given.group_id
            )));
        }
        (_, Some(old)) if old.max_size != given.max_size => {
            return Err(Fault::invalid(format!(
                "{}: max_size of group {} is {} and cannot change",
                profile.name, given.group_id, old.max_size
            )));
        }
        _ => {}
    }
    check_sizes(profile, given, given.max_size)
}

fn decode_group(
    profile: &Profile,
    given: &v1::ActionProfileGroup,
    ports: &Ports<'_>,
) -> Result<Group, Fault> {
    let mut seen = BTreeSet::new();
    let members = given.members.iter().map(|m| {
        if m.member_id == 0 {
            return Err(Fault::invalid(format!(
                "{}: member_id is not set",
                profile.name
            )));
        }
        if !seen.insert(m.member_id) {
            return Err(Fault::invalid(format!(
                "{}: member {} is in group {} twice; use its weight",
                profile.name, m.member_id, given.group_id
            )));
        }
        #[allow(deprecated)]
        let watch_port = match &m.watch_kind {
            Some(WatchKind::WatchPort(port)) => ports.decode_watch(port)?,
            Some(WatchKind::Watch(port)) => ports.deprecated_watch(*port)?,
            None => None,
        };
        Ok(GroupMember {
            member: m.member_id,
            weight: profile.core_weight(m.weight),
            watch_port,
        })
    });
    let members = members.collect::<Result<_, _>>()?;
    // The group's own limit is checked here, as the selector counts it.
    Ok(Group {
        id: given.group_id,
        max_size: 0,
        members,
    })
}

/// The rules on setting `max_size`.
fn check_max_size(profile: &Profile, max_size: i32) -> Result<(), Fault> {
    let most = profile.max_group_size;
    if max_size < 0 {
        return Err(Fault::invalid(format!(
            "{}: max_size is negative",
            profile.name
        )));
    }
    if most > 0 && max_size > most {
        return Err(Fault::invalid(format!(
            "{}: max_size {max_size} is above max_group_size, {most}",
            profile.name
        )));
    }
    Ok(())
}

fn check_sizes(
    profile: &Profile,
    given: &v1::ActionProfileGroup,
    max_size: i32,
) -> Result<(), Fault> {
    let size_of = profile.size_of();
    profile.check_weights(given.members.iter().map(|m| m.weight), size_of, 0)?;
    let limit = if max_size > 0 {
        max_size
    } else {
        profile.max_group_size
    };
    profile
        .check_weights(given.members.iter().map(|m| m.weight), size_of, limit)
        .map_err(|fault| Fault::new(Code::ResourceExhausted, fault.message))
}

/// The group as it is to be read back.
fn canonical(given: &v1::ActionProfileGroup) -> v1::ActionProfileGroup {
    let mut group = given.clone();
    for member in &mut group.members {
        if let Some(WatchKind::WatchPort(port)) = &mut member.watch_kind {
            canonical_port(port);
        }
    }
    group
}

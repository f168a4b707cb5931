//! Members and groups of action profiles.

use std::collections::BTreeSet;

use p4runtime::rpc::Code;
use p4runtime::v1::{self, action_profile_group::member::WatchKind};

use super::{Op, Writer};
use crate::control::{Group, GroupMember, Member};
use crate::server::actions::{decode_watch_port, deprecated_watch};
use crate::server::fault::Fault;
use crate::server::pipeline::Profile;

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
        // Finding a member takes a walk over all of them.
        let old = match self.undo {
            Some(_) => self
                .switch
                .members(id)?
                .into_iter()
                .find(|m| m.id == given.member_id),
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
        if op == Op::Delete {
            self.switch.group_delete(id, given.group_id)?;
            self.state.groups.remove(&key);
            if let Some(message) = old {
                let group = decode_group(profile, &message)?;
                self.on_undo(move |switch, state| {
                    state.groups.insert(key, message);
                    switch.group_insert(id, &group)
                });
            }
            return Ok(());
        }
        let group = decode_group(profile, given)?;
        check_group(profile, op, given, old.as_ref())?;
        match op {
            Op::Insert => self.switch.group_insert(id, &group)?,
            _ => self.switch.group_modify(id, &group)?,
        }
        self.state.groups.insert(key, canonical(given));
        match old {
            None => self.on_undo(move |switch, state| {
                state.groups.remove(&key);
                switch.group_delete(id, group.id)
            }),
            Some(message) => {
                let group = decode_group(profile, &message)?;
                self.on_undo(move |switch, state| {
                    state.groups.insert(key, message);
                    switch.group_modify(id, &group)
                });
            }
        }
        Ok(())
    }

    fn check_profile(&self, profile: &Profile, op: Op) -> Result<(), Fault> {
        self.author.scope.check_id(profile.id)?;
        let one_shots = self.state.one_shots.get(&profile.id).copied().unwrap_or(0);
        if one_shots > 0 && op != Op::Delete {
            return Err(Fault::invalid(format!(
                "{} is used with action sets, so it cannot have members and groups",
                profile.name
            )));
        }
        Ok(())
    }
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

fn decode_group(profile: &Profile, given: &v1::ActionProfileGroup) -> Result<Group, Fault> {
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
            Some(WatchKind::WatchPort(port)) => decode_watch_port(port)?,
            Some(WatchKind::Watch(port)) => deprecated_watch(*port)?,
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
    profile.check_weights(given.members.iter().map(|m| m.weight), 0)?;
    let limit = if max_size > 0 {
        max_size
    } else {
        profile.max_group_size
    };
    profile
        .check_weights(given.members.iter().map(|m| m.weight), limit)
        .map_err(|fault| Fault::new(Code::ResourceExhausted, fault.message))
}

/// The group as it is to be read back.
fn canonical(given: &v1::ActionProfileGroup) -> v1::ActionProfileGroup {
    let mut group = given.clone();
    for member in &mut group.members {
        if let Some(WatchKind::WatchPort(port)) = &mut member.watch_kind
            && !port.is_empty()
        {
            *port = p4runtime::bytes::canonical(port);
        }
    }
    group
}

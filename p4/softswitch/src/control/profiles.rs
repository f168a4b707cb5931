//! Operations on action profiles and selectors.

use super::{ControlError, Group, GroupMember, Member, Result, decode_call, encode_call};
use crate::ids::{Port, ProfileId};
use crate::profile::{MemberState, Profile};
use crate::program::{ProfileInfo, Program};
use crate::switch::Switch;

fn info(program: &Program, profile: ProfileId) -> Result<&ProfileInfo> {
    program
        .profiles()
        .get(profile.index())
        .ok_or(ControlError::UnknownId {
            kind: "action profile",
            id: profile.0,
        })
}

fn member_name(info: &ProfileInfo, id: u32) -> String {
    format!("member {id} of {}", info.name)
}

fn group_name(info: &ProfileInfo, id: u32) -> String {
    format!("group {id} of {}", info.name)
}

fn check_group(info: &ProfileInfo, profile: &Profile, group: &Group) -> Result<()> {
    if !info.selector {
        let why = format!("{} is not a selector: it has no groups", info.name);
        return Err(ControlError::Invalid(why));
    }
    let mut total: u64 = 0;
    for (i, member) in group.members.iter().enumerate() {
        if member.weight == 0 {
            return Err(ControlError::Invalid(
                "a weight must be at least 1".to_owned(),
            ));
        }
        if !profile.member_ids.contains_key(&member.member) {
            return Err(ControlError::NotFound(member_name(info, member.member)));
        }
        if group.members[..i].iter().any(|m| m.member == member.member) {
            let why = format!("{} is in the group twice", member_name(info, member.member));
            return Err(ControlError::Invalid(why));
        }
        total += u64::from(member.weight);
    }
    if group.max_size > 0 && total > u64::from(group.max_size) {
        let what = group_name(info, group.id);
        return Err(ControlError::Full {
            what,
            size: group.max_size as usize,
        });
    }
    Ok(())
}

impl Switch {
    /// Adds a member.
    ///
    /// # Errors
    /// When it is there already, its action does not fit, or the profile is
    /// full.
    pub fn member_insert(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, profile)?;
        let own = &mut state.profiles[profile.index()];
        let data = encode_call(program, &info.name, &info.actions, &member.call)?;
        if own.member_ids.contains_key(&member.id) {
            return Err(ControlError::Exists(member_name(info, member.id)));
        }
        if info.size > 0 && own.member_count() >= info.size {
            let what = format!("action profile {}", info.name);
            return Err(ControlError::Full {
                what,
                size: info.size,
            });
        }
        let (id, action) = (Some(member.id), member.call.action);
        own.add_member(MemberState {
            id,
            action,
            data,
            users: 0,
        });
        Ok(())
    }

    /// Replaces a member's action.
    ///
    /// # Errors
    /// When it is not there, or the action does not fit.
    pub fn member_modify(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, profile)?;
        let own = &mut state.profiles[profile.index()];
        let data = encode_call(program, &info.name, &info.actions, &member.call)?;
        let number = own.member_ids.get(&member.id).copied();
        match number.and_then(|n| own.member_mut(n)) {
            Some(state) => {
                state.action = member.call.action;
                state.data = data;
                Ok(())
            }
            None => Err(ControlError::NotFound(member_name(info, member.id))),
        }
    }

    /// Removes a member that no entry and no group uses.
    ///
    /// # Errors
    /// When it is not there, or in use.
    pub fn member_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, profile)?;
        let own = &mut state.profiles[profile.index()];
        let number = own.member_ids.get(&id).copied();
        let Some((number, member)) = number.and_then(|n| Some((n, own.member(n)?))) else {
            return Err(ControlError::NotFound(member_name(info, id)));
        };
        if member.users > 0 {
            let user = format!("{} entries or groups", member.users);
            return Err(ControlError::InUse {
                what: member_name(info, id),
                user,
            });
        }
        own.remove_member(number);
        Ok(())
    }

    /// All members, by number.
    ///
    /// # Errors
    /// When there is no such profile.
    pub fn members(&self, profile: ProfileId) -> Result<Vec<Member>> {
        let (program, state) = self.both()?;
        info(program, profile)?;
        let own = &state.profiles[profile.index()];
        let members = own.member_ids.iter().filter_map(|(&id, &number)| {
            let member = own.member(number)?;
            Some(Member {
                id,
                call: decode_call(program, member.action, &member.data),
            })
        });
        Ok(members.collect())
    }

    /// Whether the profile has neither members nor groups with numbers.
    ///
    /// # Errors
    /// When there is no such profile.
    pub fn profile_is_empty(&self, profile: ProfileId) -> Result<bool> {
        let (program, state) = self.both()?;
        info(program, profile)?;
        let own = &state.profiles[profile.index()];
        Ok(own.member_ids.is_empty() && own.group_ids.is_empty())
    }

    /// One member.
    ///
    /// # Errors
    /// When there is no such profile.
    pub fn member(&self, profile: ProfileId, id: u32) -> Result<Option<Member>> {
        let (program, state) = self.both()?;
        info(program, profile)?;
        let own = &state.profiles[profile.index()];
        let member = own.member_ids.get(&id).and_then(|n| own.member(*n));
        Ok(member.map(|member| Member {
            id,
            call: decode_call(program, member.action, &member.data),
        }))
    }

    /// Adds a group.
    ///
    /// # Errors
    /// When it is there already, has members that are not there, is larger
    /// than it says, or the profile is no selector.
    pub fn group_insert(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, profile)?;
        let own = &mut state.profiles[profile.index()];
        check_group(info, own, group)?;
        if own.group_ids.contains_key(&group.id) {
            return Err(ControlError::Exists(group_name(info, group.id)));
        }
        let number = own.add_group(Some(group.id), group.max_size);
        own.set_members(number, &group.members, &state.down);
        Ok(())
    }

    /// Replaces a group's members. Its `max_size` stays unless the new one is
    /// not 0.
    ///
    /// # Errors
    /// As for an insert; when the group is not there.
    pub fn group_modify(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, profile)?;
        let own = &mut state.profiles[profile.index()];
        let Some(&number) = own.group_ids.get(&group.id) else {
            check_group(info, own, group)?;
            return Err(ControlError::NotFound(group_name(info, group.id)));
        };
        let max_size = match group.max_size {
            0 => own.group(number).map_or(0, |g| g.max_size),
            size => size,
        };
        check_group(
            info,
            own,
            &Group {
                max_size,
                ..group.clone()
            },
        )?;
        own.set_members(number, &group.members, &state.down);
        if let Some(state) = own.group_mut(number) {
            state.max_size = max_size;
        }
        Ok(())
    }

    /// Removes a group that no entry uses.
    ///
    /// # Errors
    /// When it is not there, or in use.
    pub fn group_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, profile)?;
        let own = &mut state.profiles[profile.index()];
        let number = own.group_ids.get(&id).copied();
        let Some((number, group)) = number.and_then(|n| Some((n, own.group(n)?))) else {
            return Err(ControlError::NotFound(group_name(info, id)));
        };
        if group.users > 0 {
            let user = format!("{} entries", group.users);
            return Err(ControlError::InUse {
                what: group_name(info, id),
                user,
            });
        }
        own.remove_group(number);
        Ok(())
    }

    /// All groups, by number.
    ///
    /// # Errors
    /// When there is no such profile.
    pub fn groups(&self, profile: ProfileId) -> Result<Vec<Group>> {
        let (program, state) = self.both()?;
        info(program, profile)?;
        let own = &state.profiles[profile.index()];
        let groups = own.group_ids.iter().filter_map(|(&id, &number)| {
            let group = own.group(number)?;
            let members = group.members.iter().filter_map(|&(m, weight, watch_port)| {
                let member = own.member(m)?.id?;
                Some(GroupMember {
                    member,
                    weight,
                    watch_port,
                })
            });
            Some(Group {
                id,
                max_size: group.max_size,
                members: members.collect(),
            })
        });
        Ok(groups.collect())
    }

    /// Tells selectors that a port went up or down, for watched members. All
    /// ports are up until said otherwise.
    pub fn set_port_up(&mut self, port: Port, up: bool) {
        let Some(state) = &mut self.state else {
            return;
        };
        let changed = match up {
            true => state.down.remove(&port),
            false => state.down.insert(port),
        };
        if changed {
            for profile in &mut state.profiles {
                profile.ports_changed(&state.down);
            }
        }
    }
}

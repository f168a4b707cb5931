//! Operations on tables.

use super::{
    ActionCall, ControlError, CounterData, EntryAction, EntryHandle, EntryView, MatchField, Result,
    TableEntry, decode_call, encode_call,
};
use crate::ids::TableId;
use crate::program::{Implementation, Program, TableInfo};
use crate::state::State;
use crate::switch::Switch;
use crate::table::key::EntryKey;
use crate::table::{Idle, Table, Target};

pub(super) fn info(program: &Program, table: TableId) -> Result<&TableInfo> {
    program
        .tables()
        .get(table.index())
        .ok_or(ControlError::UnknownId {
            kind: "table",
            id: table.0,
        })
}

fn check_priority(info: &TableInfo, priority: i32) -> Result<()> {
    let why = match (info.has_priority, priority) {
        (true, 1..) | (false, 0) => return Ok(()),
        (true, _) => "an entry needs a priority of at least 1",
        (false, _) => "its entries have no priority; give 0",
    };
    Err(ControlError::BadPriority {
        table: info.name.clone(),
        why,
    })
}

fn encode(
    program: &Program,
    state: &State,
    table: TableId,
    key: &[MatchField],
    priority: i32,
) -> Result<EntryKey> {
    let info = info(program, table)?;
    let encoded = state.tables[table.index()].encode(info, key)?;
    check_priority(info, priority)?;
    Ok(encoded)
}

pub(super) fn check_handle(table: &Table, info: &TableInfo, entry: EntryHandle) -> Result<()> {
    match table.contains(entry) {
        true => Ok(()),
        false => Err(ControlError::NotFound(format!(
            "entry {} of {}",
            entry.0, info.name
        ))),
    }
}

fn not_found(info: &TableInfo) -> ControlError {
    ControlError::NotFound(format!("an entry with this key in {}", info.name))
}

/// Brings an entry's action into the table's form. Takes a share in the
/// member or group that it refers to.
fn take_action(
    program: &Program,
    state: &mut State,
    info: &TableInfo,
    action: &EntryAction,
) -> Result<(Target, Vec<u64>)> {
    let wrong = |why| {
        Err(ControlError::ActionKind {
            table: info.name.clone(),
            why,
        })
    };
    let profile = match (info.implementation, action) {
        (Implementation::Direct, EntryAction::Call(call)) => {
            let data = encode_call(program, &info.name, &info.actions, call)?;
            return Ok((Target::Action(call.action), data));
        }
        (Implementation::Direct, _) => {
            return wrong("its entries have actions, not members or groups");
        }
        (_, EntryAction::Call(_)) => {
            return wrong("its entries refer to members or groups of its action profile");
        }
        (Implementation::Profile(_), EntryAction::Group(_) | EntryAction::OneShot { .. }) => {
            return wrong("its action profile has no selector: refer to a member");
        }
        (Implementation::Profile(id) | Implementation::Selector(id), _) => id,
    };
    let profile_info = &program.profiles()[profile.index()];
    let missing = |what: &str, id: u32| {
        Err(ControlError::NotFound(format!(
            "{what} {id} of {}",
            profile_info.name
        )))
    };
    let own = &mut state.profiles[profile.index()];
    match action {
        EntryAction::Call(_) => wrong("its entries refer to members or groups"),
        EntryAction::Member(id) => {
            let Some(&number) = own.member_ids.get(id) else {
                return missing("member", *id);
            };
            if let Some(member) = own.member_mut(number) {
                member.users += 1;
            }
            Ok((Target::Member(number), Vec::new()))
        }
        EntryAction::Group(id) => {
            let Some(&number) = own.group_ids.get(id) else {
                return missing("group", *id);
            };
            if let Some(group) = own.group_mut(number) {
                group.users += 1;
            }
            Ok((Target::Group(number), Vec::new()))
        }
        EntryAction::OneShot { choices, random } => {
            for choice in choices {
                encode_call(program, &info.name, &info.actions, &choice.call)?;
                if choice.weight == 0 {
                    return Err(ControlError::Invalid(
                        "a weight must be at least 1".to_owned(),
                    ));
                }
            }
            let room = profile_info.size.saturating_sub(own.member_count());
            if profile_info.size > 0 && choices.len() > room {
                let what = format!("action selector {}", profile_info.name);
                return Err(ControlError::Full {
                    what,
                    size: profile_info.size,
                });
            }
            let words = |choice: &super::WeightedCall| {
                encode_call(program, &info.name, &info.actions, &choice.call).unwrap_or_default()
            };
            let group = own.add_one_shot(choices, words, *random, &state.down);
            Ok((Target::OneShot(group), Vec::new()))
        }
    }
}

/// Gives back the share that an entry took.
fn release(state: &mut State, info: &TableInfo, target: Target) {
    let (Implementation::Profile(id) | Implementation::Selector(id)) = info.implementation else {
        return;
    };
    let profile = &mut state.profiles[id.index()];
    match target {
        Target::Member(member) => {
            if let Some(member) = profile.member_mut(member) {
                member.users -= 1;
            }
        }
        Target::Group(group) => {
            if let Some(group) = profile.group_mut(group) {
                group.users -= 1;
            }
        }
        Target::OneShot(group) => profile.remove_group(group),
        Target::Free | Target::Action(_) => {}
    }
}

/// What an entry does, as the control plane sees it.
fn action_of(
    program: &Program,
    state: &State,
    info: &TableInfo,
    target: Target,
    data: &[u64],
) -> Option<EntryAction> {
    let profile = match info.implementation {
        Implementation::Direct => None,
        Implementation::Profile(id) | Implementation::Selector(id) => {
            Some(&state.profiles[id.index()])
        }
    };
    match target {
        Target::Free => None,
        Target::Action(action) => Some(EntryAction::Call(decode_call(program, action, data))),
        Target::Member(number) => profile?.member(number)?.id.map(EntryAction::Member),
        Target::Group(number) => profile?.group(number)?.id.map(EntryAction::Group),
        Target::OneShot(number) => {
            let profile = profile?;
            let group = profile.group(number)?;
            let choices = group.members.iter().filter_map(|&(m, weight, watch_port)| {
                let member = profile.member(m)?;
                let call = decode_call(program, member.action, &member.data);
                Some(super::WeightedCall {
                    call,
                    weight,
                    watch_port,
                })
            });
            Some(EntryAction::OneShot {
                choices: choices.collect(),
                random: group.random,
            })
        }
    }
}

impl Switch {
    /// Adds an entry. Its direct counter starts at zero, its direct meter
    /// unset; `now` counts as its first hit for the idle timeout.
    ///
    /// # Errors
    /// When the entry does not fit the table, is there already, refers to a
    /// member or group that is not there, or the table is full or const.
    pub fn table_insert(
        &mut self,
        table: TableId,
        entry: &TableEntry,
        now: u64,
    ) -> Result<EntryHandle> {
        let (program, _) = self.both()?;
        check_mutable(info(program, table)?)?;
        self.insert_entry(table, entry, now)
    }

    /// Adds an entry, to a const table too.
    pub(crate) fn insert_entry(
        &mut self,
        table: TableId,
        entry: &TableEntry,
        now: u64,
    ) -> Result<EntryHandle> {
        let (program, state) = self.both_mut()?;
        let info = info(program, table)?;
        let key = encode(program, state, table, &entry.key, entry.priority)?;
        if info.keys.is_empty() {
            let why = format!("{} has no key, and so no entries", info.name);
            return Err(ControlError::Invalid(why));
        }
        check_timeout(info, entry.idle_timeout)?;
        let own = &state.tables[table.index()];
        if own.find_same(&key, entry.priority).is_some() {
            return Err(ControlError::Exists(format!(
                "an entry with this key in {}",
                info.name
            )));
        }
        if own.len() >= info.size {
            return Err(ControlError::Full {
                what: format!("table {}", info.name),
                size: info.size,
            });
        }
        let (target, data) = take_action(program, state, info, &entry.action)?;
        let own = &mut state.tables[table.index()];
        let handle = own.insert(&key, entry.priority);
        own.set(handle, target, &data);
        own.set_idle(handle, entry.idle_timeout, now, true);
        own.set_metadata(handle, &entry.metadata);
        state.idle.watch(table, own, handle);
        if own.has_counter() {
            self.set_entry_count(table, handle, CounterData::default());
        }
        Ok(handle)
    }

    /// Replaces action, idle timeout and metadata of the entry with this key
    /// (and priority). Counter and meter stay.
    ///
    /// # Errors
    /// As for an insert; when the entry is not there.
    pub fn table_modify(
        &mut self,
        table: TableId,
        entry: &TableEntry,
        now: u64,
    ) -> Result<EntryHandle> {
        let (program, state) = self.both_mut()?;
        let info = info(program, table)?;
        check_mutable(info)?;
        let key = encode(program, state, table, &entry.key, entry.priority)?;
        check_timeout(info, entry.idle_timeout)?;
        let own = &state.tables[table.index()];
        let handle = own
            .find_same(&key, entry.priority)
            .ok_or_else(|| not_found(info))?;
        let before = own.target(handle.0);
        let (target, data) = take_action(program, state, info, &entry.action)?;
        release(state, info, before);
        let own = &mut state.tables[table.index()];
        own.set(handle, target, &data);
        own.set_idle(handle, entry.idle_timeout, now, false);
        own.set_metadata(handle, &entry.metadata);
        state.idle.watch(table, own, handle);
        Ok(handle)
    }

    /// Removes the entry with this key (and priority).
    ///
    /// # Errors
    /// When it is not there, or the table is const.
    pub fn table_delete(
        &mut self,
        table: TableId,
        key: &[MatchField],
        priority: i32,
    ) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, table)?;
        check_mutable(info)?;
        let key = encode(program, state, table, key, priority)?;
        let own = &mut state.tables[table.index()];
        let handle = own
            .find_same(&key, priority)
            .ok_or_else(|| not_found(info))?;
        let before = own.target(handle.0);
        own.remove(handle);
        release(state, info, before);
        Ok(())
    }

    /// The entry with this key (and priority), if it is there. The key is
    /// validated as for an insert.
    ///
    /// # Errors
    /// When the key does not fit the table.
    pub fn table_find(
        &self,
        table: TableId,
        key: &[MatchField],
        priority: i32,
    ) -> Result<Option<EntryHandle>> {
        let (program, state) = self.both()?;
        let key = encode(program, state, table, key, priority)?;
        Ok(state.tables[table.index()].find_same(&key, priority))
    }

    /// Reads an entry back.
    ///
    /// # Errors
    /// When it is not there.
    pub fn table_get(&self, table: TableId, entry: EntryHandle) -> Result<EntryView> {
        let (program, state) = self.both()?;
        let info = info(program, table)?;
        let own = &state.tables[table.index()];
        check_handle(own, info, entry)?;
        let action = action_of(program, state, info, own.target(entry.0), own.data(entry.0));
        let at = entry.0 as usize;
        let idle = own.idle.get(at);
        Ok(EntryView {
            entry: TableEntry {
                key: own.key(info, entry),
                priority: own.priority(entry),
                action: action.ok_or_else(|| not_found(info))?,
                idle_timeout: idle.map_or(0, |idle| idle.timeout),
                metadata: own.metadata(entry).to_vec(),
            },
            is_const: own.is_const(entry),
            counter: own.has_counter().then(|| self.entry_count(table, entry)),
            meter: own.meters.get(at).and_then(|meter| meter.lock().config()),
            meter_counts: own.meters.get(at).map(|meter| meter.lock().counts()),
            last_hit: idle.map_or(0, Idle::last_hit),
        })
    }

    /// The first entry after `after` (or the first at all), in handle order:
    /// lets a reader stream a large table without holding the switch.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn table_next(
        &self,
        table: TableId,
        after: Option<EntryHandle>,
    ) -> Result<Option<EntryHandle>> {
        let (program, state) = self.both()?;
        info(program, table)?;
        Ok(state.tables[table.index()].next(after))
    }

    /// Entries in the table, the program's own included.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn table_len(&self, table: TableId) -> Result<usize> {
        let (program, state) = self.both()?;
        info(program, table)?;
        Ok(state.tables[table.index()].len())
    }

    /// What a miss does now; `None`: nothing.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn default_action(&self, table: TableId) -> Result<Option<EntryAction>> {
        let (program, state) = self.both()?;
        let info = info(program, table)?;
        let own = &state.tables[table.index()];
        let target = own.default;
        Ok(target.and_then(|t| action_of(program, state, info, t, &own.default_data)))
    }

    /// Sets what a miss does. Refused for const default actions.
    ///
    /// # Errors
    /// When the action does not fit the table, or its default is const.
    pub fn set_default_action(&mut self, table: TableId, action: &EntryAction) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, table)?;
        if info.const_default {
            let why = format!("the default action of {} is const", info.name);
            return Err(ControlError::Const(why));
        }
        let (target, data) = take_action(program, state, info, action)?;
        set_default(state, info, table, Some(target), data);
        Ok(())
    }

    /// Back to the program's own default action.
    ///
    /// # Errors
    /// When there is no such table, or its default is const.
    pub fn reset_default_action(&mut self, table: TableId) -> Result<()> {
        let (program, _) = self.both()?;
        let info = info(program, table)?;
        match info.const_default {
            true => Err(ControlError::Const(format!(
                "the default action of {} is const",
                info.name
            ))),
            false => self.reset_default(table),
        }
    }

    pub(crate) fn reset_default(&mut self, table: TableId) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = info(program, table)?;
        let own: Option<&ActionCall> = program.parts.tables[table.index()].default.as_ref();
        let (target, data) = match own {
            None => (None, Vec::new()),
            Some(call) => {
                let data = encode_call(program, &info.name, &info.actions, call)?;
                (Some(Target::Action(call.action)), data)
            }
        };
        set_default(state, info, table, target, data);
        Ok(())
    }
}

fn set_default(
    state: &mut State,
    info: &TableInfo,
    table: TableId,
    target: Option<Target>,
    data: Vec<u64>,
) {
    let own = &mut state.tables[table.index()];
    let before = std::mem::replace(&mut own.default, target);
    own.default_data = data;
    if let Some(before) = before {
        release(state, info, before);
    }
}

fn check_mutable(info: &TableInfo) -> Result<()> {
    match info.const_entries {
        true => Err(ControlError::Const(format!(
            "the entries of {} are const",
            info.name
        ))),
        false => Ok(()),
    }
}

fn check_timeout(info: &TableInfo, timeout: u64) -> Result<()> {
    match timeout > 0 && !info.idle_timeout {
        true => Err(ControlError::Invalid(format!(
            "{} has no idle timeouts",
            info.name
        ))),
        false => Ok(()),
    }
}

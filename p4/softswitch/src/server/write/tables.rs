//! Table entries, default entries, and direct counters and meters.

use p4runtime::v1;

use super::cells::{counter_data, meter_config};
use super::{Op, Writer, only_modify};
use crate::control::{EntryAction, EntryHandle, EntryView, TableEntry};
use crate::ids::TableId;
use crate::server::entries::Notes;
use crate::server::fault::Fault;
use crate::server::pipeline::Table;
use crate::server::state::State;
use crate::switch::Switch;

impl Writer<'_> {
    pub(super) fn table_entry(&mut self, op: Op, entry: &v1::TableEntry) -> Result<(), Fault> {
        let pipeline = self.pipeline;
        let table = pipeline.table(entry.table_id)?;
        self.author.scope.check_id(table.id)?;
        if entry.is_const {
            return Err(Fault::invalid(format!(
                "{}: is_const cannot be written",
                table.name
            )));
        }
        if op != Op::Delete {
            check_common(table, entry)?;
        }
        if entry.is_default_action {
            return self.default_entry(op, table, entry);
        }
        if table.fields.is_empty() {
            return Err(Fault::invalid(format!(
                "{} has no key; it has a default entry only",
                table.name
            )));
        }
        let (key, priority) = table.decode_key(entry)?;
        match op {
            Op::Insert => self.insert_entry(table, entry, key, priority),
            Op::Modify => {
                let (handle, view) = self.existing(table, &key, priority)?;
                self.modify_entry(table, entry, handle, view)
            }
            Op::Delete => {
                if table.is_const {
                    return Err(const_table(table));
                }
                let (_, view) = self.existing(table, &key, priority)?;
                if view.is_const {
                    return Err(const_entry(table));
                }
                self.delete_entry(table, view)
            }
        }
    }

    /// The entry with this key.
    fn existing(
        &self,
        table: &Table,
        key: &[crate::control::MatchField],
        priority: i32,
    ) -> Result<(EntryHandle, EntryView), Fault> {
        let handle = self
            .switch
            .table_find(table.core, key, priority)?
            .ok_or_else(|| {
                Fault::not_found(format!(
                    "{} has no entry with this key and priority",
                    table.name
                ))
            })?;
        Ok((handle, self.switch.table_get(table.core, handle)?))
    }

    fn insert_entry(
        &mut self,
        table: &Table,
        entry: &v1::TableEntry,
        key: Vec<crate::control::MatchField>,
        priority: i32,
    ) -> Result<(), Fault> {
        if table.is_const {
            return Err(const_table(table));
        }
        let action = entry.action.as_ref().ok_or_else(|| {
            Fault::invalid(format!(
                "{}: an entry to insert needs an action",
                table.name
            ))
        })?;
        let action = self.pipeline.decode_action(table, action)?;
        self.check_style(table, &action)?;
        let counter = entry.counter_data.as_ref().map(counter_data).transpose()?;
        let meter = self.entry_meter(table, entry)?;
        let new = TableEntry {
            key,
            priority,
            action,
            idle_timeout: entry.idle_timeout_ns.unsigned_abs(),
            metadata: Notes::of(entry, self.author.role).encode(),
        };
        let id = table.core;
        let handle = self.switch.table_insert(id, &new, self.author.now)?;
        if let Some(data) = counter {
            self.switch.set_entry_counter(id, handle, data)?;
        }
        if meter.is_some() {
            self.switch.set_entry_meter(id, handle, meter)?;
        }
        count_one_shot(self.state, table, &new.action, 1);
        if self.undo.is_some() {
            let profile = table.profile;
            self.on_undo(move |switch, state| {
                adjust_one_shots(state, profile, &new.action, -1);
                switch.table_delete(id, &new.key, new.priority)
            });
        }
        Ok(())
    }

    fn modify_entry(
        &mut self,
        table: &Table,
        entry: &v1::TableEntry,
        handle: EntryHandle,
        old: EntryView,
    ) -> Result<(), Fault> {
        let id = table.core;
        let counter = entry.counter_data.as_ref().map(counter_data).transpose()?;
        let meter = self.entry_meter(table, entry)?;
        if table.is_const || old.is_const {
            if entry.action.is_some() {
                return Err(Fault::denied(format!(
                    "{}: a const entry's action cannot be given, not even unchanged",
                    table.name
                )));
            }
        } else {
            let action = match &entry.action {
                Some(action) => self.pipeline.decode_action(table, action)?,
                None => old.entry.action.clone(),
            };
            self.check_style(table, &action)?;
            let mut notes = Notes::of(entry, self.author.role);
            if entry.action.is_none() {
                notes.action_set = Notes::decode(&old.entry.metadata).action_set;
            }
            let new = TableEntry {
                key: old.entry.key.clone(),
                priority: old.entry.priority,
                action,
                idle_timeout: entry.idle_timeout_ns.unsigned_abs(),
                metadata: notes.encode(),
            };
            self.switch.table_modify(id, &new, self.author.now)?;
            count_one_shot(self.state, table, &old.entry.action, -1);
            count_one_shot(self.state, table, &new.action, 1);
        }
        if let Some(data) = counter {
            self.switch.set_entry_counter(id, handle, data)?;
        }
        if table.direct_meter.is_some() {
            self.switch.set_entry_meter(id, handle, meter)?;
        }
        let (now, profile) = (self.author.now, table.profile);
        let new_is_one_shot = entry.action.as_ref().is_some_and(is_one_shot);
        let keeps_action = entry.action.is_none();
        self.on_undo(move |switch, state| {
            if !old.is_const {
                if !keeps_action {
                    adjust_one_shots(state, profile, &old.entry.action, 1);
                    if new_is_one_shot {
                        adjust_one_shots(state, profile, &EntryAction::OneShot(Vec::new()), -1);
                    }
                }
                switch.table_modify(id, &old.entry, now)?;
            }
            restore_resources(switch, id, handle, &old)
        });
        Ok(())
    }

    fn delete_entry(&mut self, table: &Table, old: EntryView) -> Result<(), Fault> {
        let id = table.core;
        self.switch
            .table_delete(id, &old.entry.key, old.entry.priority)?;
        count_one_shot(self.state, table, &old.entry.action, -1);
        let profile = table.profile;
        self.on_undo(move |switch, state| {
            adjust_one_shots(state, profile, &old.entry.action, 1);
            let handle = switch.table_insert(id, &old.entry, old.last_hit)?;
            restore_resources(switch, id, handle, &old)
        });
        Ok(())
    }

    fn default_entry(
        &mut self,
        op: Op,
        table: &Table,
        entry: &v1::TableEntry,
    ) -> Result<(), Fault> {
        if op != Op::Modify {
            return Err(Fault::invalid(format!(
                "{}: the default entry is always there; it can only be modified",
                table.name
            )));
        }
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Fault::invalid(format!(
                "{}: a default entry has no match and priority 0",
                table.name
            )));
        }
        if entry.idle_timeout_ns != 0 {
            return Err(Fault::invalid(format!(
                "{}: a default entry has no idle timeout",
                table.name
            )));
        }
        if table.const_default {
            return Err(Fault::denied(format!(
                "{}: the default action is const",
                table.name
            )));
        }
        if table.profile.is_some() {
            return Err(Fault::denied(format!(
                "{}: the default entry of a table with an action profile is const",
                table.name
            )));
        }
        if entry.counter_data.is_some() || entry.meter_config.is_some() {
            return Err(Fault::unimplemented(format!(
                "{}: default entries have no direct counter or meter",
                table.name
            )));
        }
        let id = table.core;
        let old = self.switch.default_action(id)?;
        let old_notes = self.state.default_notes.get(&table.id).cloned();
        match entry.action.as_ref().and_then(|a| a.r#type.as_ref()) {
            None => {
                self.switch.reset_default_action(id)?;
                self.state.default_notes.remove(&table.id);
            }
            Some(v1::table_action::Type::Action(action)) => {
                let call = self.pipeline.decode_call(table, action, true)?;
                self.switch
                    .set_default_action(id, &EntryAction::Call(call))?;
                let notes = Notes::of(entry, self.author.role);
                self.state.default_notes.insert(table.id, notes);
            }
            Some(_) => {
                return Err(Fault::invalid(format!(
                    "{}: a default entry needs an action",
                    table.name
                )));
            }
        }
        let table_id = table.id;
        self.on_undo(move |switch, state| {
            match old_notes {
                Some(notes) => state.default_notes.insert(table_id, notes),
                None => state.default_notes.remove(&table_id),
            };
            match old {
                Some(action) => switch.set_default_action(id, &action),
                None => switch.reset_default_action(id),
            }
        });
        Ok(())
    }

    /// A selector is written with members and groups, or with one-shot sets; never both.
    fn check_style(&self, table: &Table, action: &EntryAction) -> Result<(), Fault> {
        let (Some(profile), EntryAction::OneShot(_)) = (table.profile, action) else {
            return Ok(());
        };
        let profile = self.pipeline.profile(profile)?;
        if self.switch.members(profile.core)?.is_empty()
            && self.switch.groups(profile.core)?.is_empty()
        {
            return Ok(());
        }
        Err(Fault::invalid(format!(
            "{} has members or groups, so its tables cannot use action sets",
            profile.name
        )))
    }

    fn entry_meter(
        &self,
        table: &Table,
        entry: &v1::TableEntry,
    ) -> Result<Option<crate::control::MeterConfig>, Fault> {
        match (&entry.meter_config, table.direct_meter) {
            (Some(config), Some(kind)) => meter_config(&table.name, kind, config).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn direct_counter(
        &mut self,
        op: Op,
        entry: &v1::DirectCounterEntry,
    ) -> Result<(), Fault> {
        only_modify(op, "a direct counter")?;
        let pipeline = self.pipeline;
        let owner = owner_entry(entry.table_entry.as_ref())?;
        let table = pipeline.table(owner.table_id)?;
        if !table.direct_counter {
            return Err(Fault::invalid(format!(
                "{} has no direct counter",
                table.name
            )));
        }
        let (handle, old) = self.direct_owner(table, owner)?;
        let Some(data) = &entry.data else {
            return Ok(());
        };
        let id = table.core;
        self.switch
            .set_entry_counter(id, handle, counter_data(data)?)?;
        self.on_undo(move |switch, _| restore_resources(switch, id, handle, &old));
        Ok(())
    }

    pub(super) fn direct_meter(
        &mut self,
        op: Op,
        entry: &v1::DirectMeterEntry,
    ) -> Result<(), Fault> {
        only_modify(op, "a direct meter")?;
        if entry.counter_data.is_some() {
            return Err(Fault::unimplemented("meters have no counters per colour"));
        }
        let pipeline = self.pipeline;
        let owner = owner_entry(entry.table_entry.as_ref())?;
        let table = pipeline.table(owner.table_id)?;
        let Some(kind) = table.direct_meter else {
            return Err(Fault::invalid(format!(
                "{} has no direct meter",
                table.name
            )));
        };
        let (handle, old) = self.direct_owner(table, owner)?;
        let config = entry
            .config
            .as_ref()
            .map(|c| meter_config(&table.name, kind, c))
            .transpose()?;
        let id = table.core;
        self.switch.set_entry_meter(id, handle, config)?;
        self.on_undo(move |switch, _| restore_resources(switch, id, handle, &old));
        Ok(())
    }

    /// The entry that a direct counter or meter belongs to.
    fn direct_owner(
        &self,
        table: &Table,
        entry: &v1::TableEntry,
    ) -> Result<(EntryHandle, EntryView), Fault> {
        self.author.scope.check_id(table.id)?;
        if entry.is_default_action {
            return Err(Fault::unimplemented(format!(
                "{}: default entries have no direct counter or meter",
                table.name
            )));
        }
        let (key, priority) = table.decode_key(entry)?;
        self.existing(table, &key, priority)
    }
}

fn owner_entry(entry: Option<&v1::TableEntry>) -> Result<&v1::TableEntry, Fault> {
    entry.ok_or_else(|| Fault::invalid("table_entry is not set"))
}

/// What holds for regular and default entries alike, except on delete, which looks at keys only.
fn check_common(table: &Table, entry: &v1::TableEntry) -> Result<(), Fault> {
    let name = &table.name;
    if entry.time_since_last_hit.is_some() {
        return Err(Fault::invalid(format!(
            "{name}: time_since_last_hit can only be read"
        )));
    }
    if entry.idle_timeout_ns < 0 {
        return Err(Fault::invalid(format!(
            "{name}: idle_timeout_ns is negative"
        )));
    }
    if entry.idle_timeout_ns > 0 && !table.idle_timeout {
        return Err(Fault::invalid(format!(
            "{name} does not support idle timeouts"
        )));
    }
    if entry.counter_data.is_some() && !table.direct_counter {
        return Err(Fault::invalid(format!("{name} has no direct counter")));
    }
    if entry.meter_config.is_some() && table.direct_meter.is_none() {
        return Err(Fault::invalid(format!("{name} has no direct meter")));
    }
    if entry.meter_counter_data.is_some() {
        return Err(match table.direct_meter {
            Some(_) => Fault::unimplemented("meters have no counters per colour"),
            None => Fault::invalid(format!("{name} has no direct meter")),
        });
    }
    Ok(())
}

fn const_table(table: &Table) -> Fault {
    Fault::denied(format!(
        "{} has const entries; none can be added or removed",
        table.name
    ))
}

fn const_entry(table: &Table) -> Fault {
    Fault::denied(format!("{}: the entry is const", table.name))
}

fn is_one_shot(action: &v1::TableAction) -> bool {
    matches!(
        action.r#type,
        Some(v1::table_action::Type::ActionProfileActionSet(_))
    )
}

fn count_one_shot(state: &mut State, table: &Table, action: &EntryAction, by: isize) {
    adjust_one_shots(state, table.profile, action, by);
}

fn adjust_one_shots(state: &mut State, profile: Option<u32>, action: &EntryAction, by: isize) {
    if let (Some(profile), EntryAction::OneShot(_)) = (profile, action) {
        let count = state.one_shots.entry(profile).or_default();
        *count = count.saturating_add_signed(by);
    }
}

/// Puts an entry's direct counter and meter back.
fn restore_resources(
    switch: &mut Switch,
    table: TableId,
    handle: EntryHandle,
    old: &EntryView,
) -> Result<(), crate::control::ControlError> {
    if let Some(data) = old.counter {
        switch.set_entry_counter(table, handle, data)?;
    }
    let has_meter = switch
        .program()
        .and_then(|p| p.tables().get(table.index()))
        .is_some_and(|t| t.direct_meter.is_some());
    if has_meter {
        switch.set_entry_meter(table, handle, old.meter)?;
    }
    Ok(())
}

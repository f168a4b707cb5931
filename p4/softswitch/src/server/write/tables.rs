//! Table entries, default entries, and direct counters and meters.

use p4runtime::v1;

use super::cells::{check_meter_counters, counter_data, meter_config};
use super::profiles::OneShotUse;
use super::{Op, Writer, only_modify};
use crate::control::{
    ControlError, CounterData, EntryHandle, EntryView, MatchField, MeterConfig, TableEntry,
};
use crate::ids::TableId;
use crate::server::entries::Notes;
use crate::server::fault::Fault;
use crate::server::pipeline::Table;
use crate::switch::Switch;

/// What an update says of an entry's direct resources.
struct Given {
    counter: Option<CounterData>,
    /// Unset resets.
    meter: Option<MeterConfig>,
    resets_meter_counts: bool,
}

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
        key: &[MatchField],
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
        key: Vec<MatchField>,
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
        let action = self.pipeline.decode_action(table, action, &self.ports())?;
        let given = given_resources(table, entry)?;
        let new = TableEntry {
            key,
            priority,
            action,
            idle_timeout: entry.idle_timeout_ns.unsigned_abs(),
            metadata: Notes::of(entry, self.author.role).encode(),
        };
        let uses = self.one_shot_use(table, &new)?;
        if let Some(uses) = &uses {
            self.check_one_shot(uses, None)?;
        }
        let id = table.core;
        let handle = self.switch.table_insert(id, &new, self.author.now)?;
        if let Some(data) = given.counter {
            self.switch.set_entry_counter(id, handle, data)?;
        }
        if given.meter.is_some() {
            self.switch.set_entry_meter(id, handle, given.meter)?;
        }
        self.state.use_one_shot(uses.as_ref(), 1);
        if self.undo.is_some() {
            self.on_undo(move |switch, state| {
                state.use_one_shot(uses.as_ref(), -1);
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
        let given = given_resources(table, entry)?;
        let (before, after) = if table.is_const || old.is_const {
            check_const_modify(table, entry)?;
            (None, None)
        } else {
            let new = self.modified(table, entry, &old.entry)?;
            let before = self.one_shot_use(table, &old.entry)?;
            let after = self.one_shot_use(table, &new)?;
            if let Some(uses) = &after {
                self.check_one_shot(uses, before.as_ref())?;
            }
            self.switch.table_modify(id, &new, self.author.now)?;
            self.state.use_one_shot(before.as_ref(), -1);
            self.state.use_one_shot(after.as_ref(), 1);
            (before, after)
        };
        if let Some(data) = given.counter {
            self.switch.set_entry_counter(id, handle, data)?;
        }
        if table.direct_meter.is_some() {
            self.switch.set_entry_meter(id, handle, given.meter)?;
        }
        if given.resets_meter_counts {
            self.switch.reset_entry_meter_counts(id, handle)?;
        }
        let (now, is_const) = (self.author.now, table.is_const || old.is_const);
        self.on_undo(move |switch, state| {
            if !is_const {
                state.use_one_shot(after.as_ref(), -1);
                state.use_one_shot(before.as_ref(), 1);
                switch.table_modify(id, &old.entry, now)?;
            }
            restore_resources(switch, id, &old)
        });
        Ok(())
    }

    /// The entry as the update wants it.
    fn modified(
        &self,
        table: &Table,
        entry: &v1::TableEntry,
        old: &TableEntry,
    ) -> Result<TableEntry, Fault> {
        let mut notes = Notes::of(entry, self.author.role);
        let mut idle_timeout = entry.idle_timeout_ns.unsigned_abs();
        let action = match &entry.action {
            Some(action) => self.pipeline.decode_action(table, action, &self.ports())?,
            // With nothing but the key it is a no-op: what is not given stays.
            None => {
                notes.keep(Notes::decode(&old.metadata));
                if idle_timeout == 0 {
                    idle_timeout = old.idle_timeout;
                }
                old.action.clone()
            }
        };
        Ok(TableEntry {
            key: old.key.clone(),
            priority: old.priority,
            action,
            idle_timeout,
            metadata: notes.encode(),
        })
    }

    fn delete_entry(&mut self, table: &Table, old: EntryView) -> Result<(), Fault> {
        let id = table.core;
        let uses = self.one_shot_use(table, &old.entry)?;
        self.switch
            .table_delete(id, &old.entry.key, old.entry.priority)?;
        self.state.use_one_shot(uses.as_ref(), -1);
        self.on_undo(move |switch, state| {
            state.use_one_shot(uses.as_ref(), 1);
            switch.table_insert(id, &old.entry, old.last_hit)?;
            restore_resources(switch, id, &old)
        });
        Ok(())
    }

    fn one_shot_use(&self, table: &Table, entry: &TableEntry) -> Result<Option<OneShotUse>, Fault> {
        let profile = table.profile.and_then(|id| self.pipeline.profiles.get(&id));
        Ok(profile.and_then(|profile| OneShotUse::of(profile, entry)))
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
        let owner = self.direct_owner(table, owner)?;
        let Some(data) = &entry.data else {
            return Ok(());
        };
        let (id, data) = (table.core, counter_data(data)?);
        let Some((handle, old)) = owner else {
            let old = self.switch.default_resources(id)?.counter;
            self.switch.set_default_counter(id, data)?;
            self.on_undo(move |switch, _| switch.set_default_counter(id, old.unwrap_or_default()));
            return Ok(());
        };
        self.switch.set_entry_counter(id, handle, data)?;
        self.on_undo(move |switch, _| restore_resources(switch, id, &old));
        Ok(())
    }

    pub(super) fn direct_meter(
        &mut self,
        op: Op,
        entry: &v1::DirectMeterEntry,
    ) -> Result<(), Fault> {
        only_modify(op, "a direct meter")?;
        let pipeline = self.pipeline;
        let owner = owner_entry(entry.table_entry.as_ref())?;
        let table = pipeline.table(owner.table_id)?;
        let Some(kind) = table.direct_meter else {
            return Err(Fault::invalid(format!(
                "{} has no direct meter",
                table.name
            )));
        };
        if let Some(counts) = &entry.counter_data {
            check_meter_counters(&table.name, counts)?;
        }
        let owner = self.direct_owner(table, owner)?;
        let config = entry
            .config
            .as_ref()
            .map(|c| meter_config(&table.name, kind, c))
            .transpose()?;
        let id = table.core;
        let Some((handle, old)) = owner else {
            let old = self.switch.default_resources(id)?.meter;
            self.switch.set_default_meter(id, config)?;
            if entry.counter_data.is_some() {
                self.switch.reset_default_meter_counts(id)?;
            }
            self.on_undo(move |switch, _| switch.set_default_meter(id, old));
            return Ok(());
        };
        self.switch.set_entry_meter(id, handle, config)?;
        if entry.counter_data.is_some() {
            self.switch.reset_entry_meter_counts(id, handle)?;
        }
        self.on_undo(move |switch, _| restore_resources(switch, id, &old));
        Ok(())
    }

    /// The entry that a direct counter or meter belongs to; `None`: the default entry.
    fn direct_owner(
        &self,
        table: &Table,
        entry: &v1::TableEntry,
    ) -> Result<Option<(EntryHandle, EntryView)>, Fault> {
        self.author.scope.check_id(table.id)?;
        if entry.is_default_action {
            check_default_key(table, entry)?;
            return Ok(None);
        }
        let (key, priority) = table.decode_key(entry)?;
        self.existing(table, &key, priority).map(Some)
    }
}

fn owner_entry(entry: Option<&v1::TableEntry>) -> Result<&v1::TableEntry, Fault> {
    entry.ok_or_else(|| Fault::invalid("table_entry is not set"))
}

/// What holds for regular and default entries alike, except on delete, which looks at keys only.
pub(super) fn check_common(table: &Table, entry: &v1::TableEntry) -> Result<(), Fault> {
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
    let meter = entry.meter_config.is_some() || entry.meter_counter_data.is_some();
    if meter && table.direct_meter.is_none() {
        return Err(Fault::invalid(format!("{name} has no direct meter")));
    }
    Ok(())
}

/// A default entry is named by its flag alone.
pub(super) fn check_default_key(table: &Table, entry: &v1::TableEntry) -> Result<(), Fault> {
    if entry.r#match.is_empty() && entry.priority == 0 {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "{}: a default entry has no match and priority 0",
        table.name
    )))
}

fn given_resources(table: &Table, entry: &v1::TableEntry) -> Result<Given, Fault> {
    if let Some(counts) = &entry.meter_counter_data {
        check_meter_counters(&table.name, counts)?;
    }
    Ok(Given {
        counter: entry.counter_data.as_ref().map(counter_data).transpose()?,
        meter: match (&entry.meter_config, table.direct_meter) {
            (Some(config), Some(kind)) => Some(meter_config(&table.name, kind, config)?),
            _ => None,
        },
        resets_meter_counts: entry.meter_counter_data.is_some(),
    })
}

/// Of const entries only the direct resources can be modified.
fn check_const_modify(table: &Table, entry: &v1::TableEntry) -> Result<(), Fault> {
    #[allow(deprecated)]
    let other =
        entry.controller_metadata != 0 || !entry.metadata.is_empty() || entry.idle_timeout_ns != 0;
    let what = match (&entry.action, other) {
        (Some(_), _) => "action cannot be given, not even unchanged",
        (None, true) => "metadata and idle timeout cannot be set",
        (None, false) => return Ok(()),
    };
    Err(Fault::denied(format!(
        "{}: a const entry's {what}",
        table.name
    )))
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

/// Puts an entry's direct counter and meter back.
fn restore_resources(
    switch: &mut Switch,
    table: TableId,
    old: &EntryView,
) -> Result<(), ControlError> {
    let (key, priority) = (&old.entry.key, old.entry.priority);
    let Some(handle) = switch.table_find(table, key, priority)? else {
        return Ok(());
    };
    if let Some(data) = old.counter {
        switch.set_entry_counter(table, handle, data)?;
    }
    if old.meter_counts.is_some() {
        switch.set_entry_meter(table, handle, old.meter)?;
    }
    Ok(())
}

//! Default entries.

use p4runtime::v1;

use super::cells::{check_meter_counters, counter_data, meter_config};
use super::tables::check_default_key;
use super::{Op, Writer};
use crate::control::{CounterData, EntryAction};
use crate::server::entries::Notes;
use crate::server::fault::Fault;
use crate::server::pipeline::Table;

impl Writer<'_> {
    /// Modifies a default entry, or without an action resets it to the program's own.
    pub(super) fn default_entry(
        &mut self,
        op: Op,
        table: &Table,
        entry: &v1::TableEntry,
    ) -> Result<(), Fault> {
        check_default(op, table, entry)?;
        if let Some(counts) = &entry.meter_counter_data {
            check_meter_counters(&table.name, counts)?;
        }
        let counter = entry.counter_data.as_ref().map(counter_data).transpose()?;
        let meter = match (&entry.meter_config, table.direct_meter) {
            (Some(config), Some(kind)) => Some(meter_config(&table.name, kind, config)?),
            _ => None,
        };
        let id = table.core;
        let old = self.switch.default_action(id)?;
        let old_resources = self.switch.default_resources(id)?;
        let old_notes = self.state.default_notes.get(&table.id).cloned();
        let reset = self.set_default(table, entry)?;
        if table.direct_counter && (reset || counter.is_some()) {
            let none = CounterData::default();
            self.switch
                .set_default_counter(id, counter.unwrap_or(none))?;
        }
        if table.direct_meter.is_some() {
            self.switch.set_default_meter(id, meter)?;
            if reset || entry.meter_counter_data.is_some() {
                self.switch.reset_default_meter_counts(id)?;
            }
        }
        let table_id = table.id;
        self.on_undo(move |switch, state| {
            match old_notes {
                Some(notes) => state.default_notes.insert(table_id, notes),
                None => state.default_notes.remove(&table_id),
            };
            match old {
                Some(action) => switch.set_default_action(id, &action)?,
                None => switch.reset_default_action(id)?,
            }
            if let Some(counter) = old_resources.counter {
                switch.set_default_counter(id, counter)?;
            }
            if old_resources.meter_counts.is_some() {
                switch.set_default_meter(id, old_resources.meter)?;
            }
            Ok(())
        });
        Ok(())
    }

    /// Sets the action; whether that was a reset.
    fn set_default(&mut self, table: &Table, entry: &v1::TableEntry) -> Result<bool, Fault> {
        let id = table.core;
        match entry.action.as_ref().map(|a| a.r#type.as_ref()) {
            None => {
                self.switch.reset_default_action(id)?;
                self.state.default_notes.remove(&table.id);
                Ok(true)
            }
            Some(Some(v1::table_action::Type::Action(action))) => {
                let call = self.pipeline.decode_call(table, action, true)?;
                self.switch
                    .set_default_action(id, &EntryAction::Call(call))?;
                let notes = Notes::of(entry, self.author.role);
                self.state.default_notes.insert(table.id, notes);
                Ok(false)
            }
            Some(_) => Err(Fault::invalid(format!(
                "{}: a default entry needs an action",
                table.name
            ))),
        }
    }
}

fn check_default(op: Op, table: &Table, entry: &v1::TableEntry) -> Result<(), Fault> {
    if op != Op::Modify {
        return Err(Fault::invalid(format!(
            "{}: the default entry is always there; it can only be modified",
            table.name
        )));
    }
    check_default_key(table, entry)?;
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
    Ok(())
}

//! Reads table entries, default entries, and direct counters and meters.

use p4runtime::v1::{self, entity::Entity, table_action};

use super::cells::{counter_message, meter_counter_message, meter_message};
use super::{Cursor, Source, push};
use crate::control::{CounterData, EntryAction, EntryHandle, EntryView, MatchField};
use crate::ids::ActionId;
use crate::server::entries::Notes;
use crate::server::fault::Fault;
use crate::server::pipeline::{Pipeline, Table};

/// Which entries of which tables are left, and what to say of each.
pub(crate) struct TableCursor {
    kind: Kind,
    /// Table ids that are left, last first.
    tables: Vec<u32>,
    after: Option<EntryHandle>,
    /// An entry with the key wanted was there.
    found: bool,
    filter: Filter,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Entries,
    Counters,
    Meters,
}

#[derive(Default)]
struct Filter {
    /// The key of the entries wanted, if a match is given.
    key: Option<Vec<MatchField>>,
    /// It is an error if there is none with that key.
    must_exist: bool,
    priority: i32,
    action: Option<ActionId>,
    metadata: Vec<u8>,
    controller_metadata: u64,
    with_counter: bool,
    with_meter: bool,
    with_meter_counts: bool,
    with_hit: bool,
    /// Default entries rather than the others.
    defaults: bool,
}

impl TableCursor {
    pub(super) fn entries(pipeline: &Pipeline, request: &v1::TableEntry) -> Result<Cursor, Fault> {
        Self::open(pipeline, Kind::Entries, request)
    }

    pub(super) fn direct_counters(
        pipeline: &Pipeline,
        request: &v1::DirectCounterEntry,
    ) -> Result<Cursor, Fault> {
        Self::direct(
            pipeline,
            Kind::Counters,
            request.table_entry.as_ref(),
            false,
        )
    }

    pub(super) fn direct_meters(
        pipeline: &Pipeline,
        request: &v1::DirectMeterEntry,
    ) -> Result<Cursor, Fault> {
        let counts = request.counter_data.is_some();
        Self::direct(pipeline, Kind::Meters, request.table_entry.as_ref(), counts)
    }

    fn direct(
        pipeline: &Pipeline,
        kind: Kind,
        entry: Option<&v1::TableEntry>,
        with_meter_counts: bool,
    ) -> Result<Cursor, Fault> {
        let entry = entry.ok_or_else(|| Fault::invalid("table_entry is not set"))?;
        if entry.table_id != 0 {
            let table = pipeline.table(entry.table_id)?;
            if !has_resource(table, kind) {
                let what = if kind == Kind::Counters {
                    "counter"
                } else {
                    "meter"
                };
                return Err(Fault::invalid(format!(
                    "{} has no direct {what}",
                    table.name
                )));
            }
        }
        // Only the key matters here.
        let key = v1::TableEntry {
            table_id: entry.table_id,
            r#match: entry.r#match.clone(),
            priority: entry.priority,
            is_default_action: entry.is_default_action,
            meter_counter_data: with_meter_counts.then(Default::default),
            ..v1::TableEntry::default()
        };
        Self::open(pipeline, kind, &key)
    }

    fn open(pipeline: &Pipeline, kind: Kind, request: &v1::TableEntry) -> Result<Cursor, Fault> {
        #[allow(deprecated)]
        let mut filter = Filter {
            must_exist: matches!(kind, Kind::Counters | Kind::Meters),
            priority: request.priority,
            metadata: request.metadata.clone(),
            controller_metadata: request.controller_metadata,
            with_counter: request.counter_data.is_some(),
            with_meter: request.meter_config.is_some(),
            with_meter_counts: request.meter_counter_data.is_some(),
            defaults: request.is_default_action,
            with_hit: request.time_since_last_hit.is_some(),
            ..Filter::default()
        };
        if request.table_id == 0 {
            let filtered = !request.r#match.is_empty()
                || request.action.is_some()
                || filter.priority != 0
                || filter.controller_metadata != 0
                || !filter.metadata.is_empty();
            if filtered {
                return Err(Fault::invalid("a filter needs a table_id"));
            }
            let tables = pipeline
                .tables
                .values()
                .rev()
                .filter(|t| has_resource(t, kind))
                .map(|t| t.id);
            let cursor = TableCursor {
                kind,
                tables: tables.collect(),
                after: None,
                found: false,
                filter,
            };
            return Ok(Cursor::Tables(cursor));
        }
        let table = pipeline.table(request.table_id)?;
        let idle = filter.with_hit || request.idle_timeout_ns != 0;
        if idle && (!table.idle_timeout || filter.defaults) {
            return Err(Fault::invalid(format!(
                "{} does not support idle timeouts there",
                table.name
            )));
        }
        if filter.defaults {
            if !request.r#match.is_empty() || request.priority != 0 {
                return Err(Fault::invalid(format!(
                    "{}: a default entry has no match and priority 0",
                    table.name
                )));
            }
        } else if !request.r#match.is_empty() {
            filter.key = Some(table.decode_match(&request.r#match)?);
        }
        filter.action = action_filter(table, request.action.as_ref())?;
        let cursor = TableCursor {
            kind,
            tables: vec![table.id],
            after: None,
            found: false,
            filter,
        };
        Ok(Cursor::Tables(cursor))
    }

    /// Reads up to about `limit` entries; whether any are left.
    pub(super) fn fill(
        &mut self,
        source: &Source<'_>,
        limit: usize,
        out: &mut Vec<v1::Entity>,
    ) -> Result<bool, Fault> {
        // Bounds the time for which a filter that nothing passes holds the switch.
        let mut visits = 0;
        while let Some(id) = self.tables.last().copied() {
            let table = source.pipeline.table(id)?;
            if self.filter.defaults {
                self.push_default(source, table, out)?;
                self.tables.pop();
                continue;
            }
            if let Some(key) = self.filter.key.as_ref().filter(|_| self.filter.one(table)) {
                let priority = self.filter.priority;
                if let Some(handle) = source.switch.table_find(table.core, key, priority)? {
                    self.found = true;
                    self.push_entry(source, table, handle, out)?;
                }
                self.end_table(table)?;
                continue;
            }
            while let Some(handle) = source.switch.table_next(table.core, self.after)? {
                self.after = Some(handle);
                self.push_entry(source, table, handle, out)?;
                visits += 1;
                if visits >= limit {
                    return Ok(true);
                }
            }
            self.end_table(table)?;
        }
        Ok(false)
    }

    fn end_table(&mut self, table: &Table) -> Result<(), Fault> {
        self.tables.pop();
        self.after = None;
        if self.filter.must_exist && self.filter.key.is_some() && !self.found {
            return Err(Fault::not_found(format!(
                "{} has no entry with this key and priority",
                table.name
            )));
        }
        Ok(())
    }

    fn push_entry(
        &mut self,
        source: &Source<'_>,
        table: &Table,
        handle: EntryHandle,
        out: &mut Vec<v1::Entity>,
    ) -> Result<(), Fault> {
        let view = source.switch.table_get(table.core, handle)?;
        let notes = Notes::decode(&view.entry.metadata);
        if !self.filter.passes(&view, &notes, source.role.name) {
            return Ok(());
        }
        self.found = true;
        let entity = match self.kind {
            Kind::Counters => Entity::DirectCounterEntry(v1::DirectCounterEntry {
                table_entry: Some(key_message(table, &view)),
                data: view.counter.map(counter_message),
            }),
            Kind::Meters => Entity::DirectMeterEntry(v1::DirectMeterEntry {
                table_entry: Some(key_message(table, &view)),
                config: view.meter.map(meter_message),
                counter_data: self.filter.counts(view.meter_counts),
            }),
            Kind::Entries => {
                let mut entry = describe_entry(source.pipeline, table, &view, notes);
                entry.is_const = view.is_const || table.is_const;
                if self.filter.with_counter {
                    entry.counter_data = view.counter.map(counter_message);
                }
                if self.filter.with_meter {
                    entry.meter_config = view.meter.map(meter_message);
                }
                entry.meter_counter_data = self.filter.counts(view.meter_counts);
                if self.filter.with_hit && table.idle_timeout {
                    let elapsed = source.now.saturating_sub(view.last_hit);
                    entry.time_since_last_hit = Some(v1::table_entry::IdleTimeout {
                        elapsed_ns: i64::try_from(elapsed).unwrap_or(i64::MAX),
                    });
                }
                Entity::TableEntry(entry)
            }
        };
        push(out, entity);
        Ok(())
    }

    fn push_default(
        &self,
        source: &Source<'_>,
        table: &Table,
        out: &mut Vec<v1::Entity>,
    ) -> Result<(), Fault> {
        let action = source.switch.default_action(table.core)?;
        let notes = source
            .state
            .default_notes
            .get(&table.id)
            .cloned()
            .unwrap_or_default();
        if let Some(wanted) = self.filter.action
            && !matches!(&action, Some(EntryAction::Call(call)) if call.action == wanted)
        {
            return Ok(());
        }
        if !self.filter.passes_notes(&notes, source.role.name) {
            return Ok(());
        }
        let resources = source.switch.default_resources(table.core)?;
        let owner = v1::TableEntry {
            table_id: table.id,
            is_default_action: true,
            ..v1::TableEntry::default()
        };
        let data = resources.counter.map(counter_message);
        let config = resources.meter.map(meter_message);
        let counts = self.filter.counts(resources.meter_counts);
        match self.kind {
            Kind::Entries => {}
            Kind::Counters => {
                let message = v1::DirectCounterEntry {
                    table_entry: Some(owner),
                    data,
                };
                push(out, Entity::DirectCounterEntry(message));
                return Ok(());
            }
            Kind::Meters => {
                let message = v1::DirectMeterEntry {
                    table_entry: Some(owner),
                    config,
                    counter_data: counts,
                };
                push(out, Entity::DirectMeterEntry(message));
                return Ok(());
            }
        }
        let entry = v1::TableEntry {
            table_id: table.id,
            is_default_action: true,
            is_const: table.const_default || table.profile.is_some(),
            action: match action {
                Some(action) => source.pipeline.encode_action(table, &action, &notes),
                None => source.pipeline.no_action(table),
            },
            metadata: notes.metadata.clone(),
            counter_data: data.filter(|_| self.filter.with_counter),
            meter_config: config.filter(|_| self.filter.with_meter),
            meter_counter_data: counts,
            ..v1::TableEntry::default()
        };
        #[allow(deprecated)]
        let entry = v1::TableEntry {
            controller_metadata: notes.controller_metadata,
            ..entry
        };
        push(out, Entity::TableEntry(entry));
        Ok(())
    }
}

impl Filter {
    /// Whether key and priority name one entry, rather than those of several priorities.
    fn one(&self, table: &Table) -> bool {
        table.has_priority == (self.priority != 0)
    }

    fn counts(&self, counts: Option<[CounterData; 3]>) -> Option<v1::MeterCounterData> {
        counts
            .filter(|_| self.with_meter_counts)
            .map(meter_counter_message)
    }

    fn passes(&self, view: &EntryView, notes: &Notes, role: &str) -> bool {
        let action_fits = match (&self.action, &view.entry.action) {
            (None, _) => true,
            (Some(wanted), EntryAction::Call(call)) => call.action == *wanted,
            _ => false,
        };
        action_fits
            && self.key.as_ref().is_none_or(|key| *key == view.entry.key)
            && (self.priority == 0 || self.priority == view.entry.priority)
            && self.passes_notes(notes, role)
    }

    fn passes_notes(&self, notes: &Notes, role: &str) -> bool {
        (role.is_empty() || role == notes.role)
            && (self.metadata.is_empty() || self.metadata == notes.metadata)
            && (self.controller_metadata == 0
                || self.controller_metadata == notes.controller_metadata)
    }
}

fn has_resource(table: &Table, kind: Kind) -> bool {
    match kind {
        Kind::Entries => true,
        Kind::Counters => table.direct_counter,
        Kind::Meters => table.direct_meter.is_some(),
    }
}

/// The action whose entries are wanted: by id only, and for tables whose entries have actions.
fn action_filter(
    table: &Table,
    action: Option<&v1::TableAction>,
) -> Result<Option<ActionId>, Fault> {
    match action.and_then(|a| a.r#type.as_ref()) {
        None => Ok(None),
        Some(table_action::Type::Action(action)) if table.profile.is_none() => {
            let found = table.actions.iter().find(|a| a.id == action.action_id);
            found.map(|a| Some(a.core)).ok_or_else(|| {
                Fault::invalid(format!(
                    "{} has no action with id {:#x}",
                    table.name, action.action_id
                ))
            })
        }
        Some(_) => Err(Fault::invalid(format!(
            "{}: entries can be filtered by action id only, where they have actions",
            table.name
        ))),
    }
}

fn key_message(table: &Table, view: &EntryView) -> v1::TableEntry {
    v1::TableEntry {
        table_id: table.id,
        r#match: table.encode_key(&view.entry.key),
        priority: view.entry.priority,
        ..v1::TableEntry::default()
    }
}

/// An entry as a message, without its direct resources.
pub(crate) fn describe_entry(
    pipeline: &Pipeline,
    table: &Table,
    view: &EntryView,
    notes: Notes,
) -> v1::TableEntry {
    let entry = v1::TableEntry {
        action: pipeline.encode_action(table, &view.entry.action, &notes),
        idle_timeout_ns: i64::try_from(view.entry.idle_timeout).unwrap_or(i64::MAX),
        metadata: notes.metadata,
        ..key_message(table, view)
    };
    #[allow(deprecated)]
    v1::TableEntry {
        controller_metadata: notes.controller_metadata,
        ..entry
    }
}

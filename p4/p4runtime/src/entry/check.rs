//! The rules that entities keep, and their canonical form.

use super::matches::{self, DontCare};
use super::{Error, resources, table_key};
use crate::bytes;
use crate::info::{Index, Table, as_default, in_entries};
use crate::v1::{
    self, Action, DirectCounterEntry, DirectMeterEntry, Entity, FieldMatch, TableAction,
    TableEntry, Update, entity, table_action, update,
};

/// What is about to happen to an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intent {
    /// It is added.
    Insert,
    /// It gets a new state.
    Modify,
    /// It is removed; only its key counts.
    Delete,
}

/// Checks an update as a server must, and brings it into canonical form; an
/// update that deletes keeps only the key.
///
/// What depends on the state of the switch (whether the entity is there, whether
/// there is room, whether a member exists) is not known here.
///
/// # Errors
/// With the code that a server answers.
pub fn update(index: &Index, update: &Update) -> Result<Update, Error> {
    let intent = match update.r#type() {
        update::Type::Insert => Intent::Insert,
        update::Type::Modify => Intent::Modify,
        update::Type::Delete => Intent::Delete,
        update::Type::Unspecified => {
            return Err(Error::invalid(
                "the update",
                "it has no type; set INSERT, MODIFY or DELETE",
            ));
        }
    };
    let Some(entity) = update.entity.as_ref() else {
        return Err(Error::invalid("the update", "it has no entity"));
    };
    Ok(Update {
        r#type: update.r#type,
        entity: Some(self::entity(index, entity, intent)?),
    })
}

/// As [`update()`], for an entity and what is about to happen to it.
///
/// # Errors
/// As [`update()`].
pub fn entity(index: &Index, entity: &Entity, intent: Intent) -> Result<Entity, Error> {
    use entity::Entity as E;
    Ok(match entity.entity.as_ref() {
        None => return Err(Error::invalid("the update", "its entity is empty")),
        Some(E::TableEntry(entry)) => table_entry(index, entry, intent)?.into(),
        Some(E::ActionProfileMember(member)) => resources::member(index, member, intent)?.into(),
        Some(E::ActionProfileGroup(group)) => resources::group(index, group, intent)?.into(),
        Some(E::MeterEntry(meter)) => resources::meter(index, meter, intent)?.into(),
        Some(E::CounterEntry(counter)) => resources::counter(index, counter, intent)?.into(),
        Some(E::RegisterEntry(register)) => resources::register(index, register, intent)?.into(),
        Some(E::DirectMeterEntry(meter)) => direct_meter(index, meter, intent)?.into(),
        Some(E::DirectCounterEntry(counter)) => direct_counter(index, counter, intent)?.into(),
        Some(E::PacketReplicationEngineEntry(entry)) => resources::replication(entry, intent)?,
        Some(E::ValueSetEntry(set)) => resources::value_set(index, set, intent)?.into(),
        Some(E::DigestEntry(digest)) => resources::digest(index, digest, intent)?.into(),
        Some(E::ExternEntry(entry)) => {
            index.extern_instance(entry.extern_id)?;
            entry.clone().into()
        }
    })
}

/// A table entry (specification section 9.1).
///
/// # Errors
/// As [`update()`].
pub fn table_entry(index: &Index, entry: &TableEntry, intent: Intent) -> Result<TableEntry, Error> {
    let table = index.table(entry.table_id)?;
    if entry.is_const {
        let rule = "`is_const` is for reading; leave it unset";
        return Err(Error::invalid(table_at(&table), rule));
    }
    let key = key_of(&table, entry, DontCare::Refuse)?;
    may_change(&table, entry, intent)?;
    if intent == Intent::Delete {
        return Ok(key);
    }
    state_of(&table, entry, key, intent)
}

/// The key of a table entry in canonical form; the rest of the entry is ignored.
///
/// # Errors
/// When a field is missing, unknown or double, or breaks the rules of its kind
/// of match; when the priority does not suit the table.
pub fn table_entry_key(index: &Index, entry: &TableEntry) -> Result<TableEntry, Error> {
    key_of(&index.table(entry.table_id)?, entry, DontCare::Refuse)
}

/// An action and its arguments, as an entry of `table` or of its action profile.
///
/// # Errors
/// When the table does not have the action, has it only as default action, or
/// the arguments are not those of the action.
pub fn entry_action(table: &Table<'_>, action: &Action) -> Result<Action, Error> {
    let (_, reference) = table.action(action.action_id)?;
    if !in_entries(reference) {
        let name = table
            .index()
            .name_of(crate::info::Kind::Action, action.action_id);
        let rule = format!("the action `{name}` may only be the default action");
        return Err(Error::denied(table_at(table), rule));
    }
    arguments(table.index(), action)
}

/// The arguments of an action in canonical form, in the order of P4Info.
///
/// # Errors
/// When one is missing, unknown, double or does not fit.
pub fn arguments(index: &Index, action: &Action) -> Result<Action, Error> {
    let info = index.action(action.action_id)?;
    let name = index.name_of(crate::info::Kind::Action, action.action_id);
    let mut params = Vec::with_capacity(info.params.len());
    for param in &info.params {
        let at = || format!("action `{name}`, parameter `{}`", param.name);
        let mut given = action.params.iter().filter(|p| p.param_id == param.id);
        let value = match (given.next(), given.next()) {
            (Some(given), None) => &given.value,
            (Some(_), Some(_)) => return Err(Error::invalid(at(), "it is given twice")),
            (None, _) => return Err(Error::invalid(at(), "it is missing")),
        };
        let value = bytes::fit(value, param.bitwidth.unsigned_abs())
            .map_err(|source| Error::Value { at: at(), source })?;
        params.push(v1::action::Param {
            param_id: param.id,
            value: value.to_vec(),
        });
    }
    for given in &action.params {
        index.param(info, given.param_id)?;
    }
    Ok(Action {
        action_id: action.action_id,
        params,
    })
}

/// A table's name as errors show it.
pub(super) fn table_at(table: &Table<'_>) -> String {
    format!("table `{}`", table.name())
}

pub(super) fn key_of(
    table: &Table<'_>,
    entry: &TableEntry,
    dont_care: DontCare,
) -> Result<TableEntry, Error> {
    let at = || table_at(table);
    if entry.is_default_action {
        if !entry.r#match.is_empty() || entry.priority != 0 {
            let rule = "the default entry has neither match fields nor a priority";
            return Err(Error::invalid(at(), rule));
        }
        return Ok(table_key(entry));
    }
    let matched = matches::canonical(table.name(), table.fields(), &entry.r#match, dont_care)?;
    check_priority(table, entry.priority)?;
    Ok(TableEntry {
        table_id: table.id(),
        r#match: matched,
        priority: entry.priority,
        ..Default::default()
    })
}

fn check_priority(table: &Table<'_>, priority: i32) -> Result<(), Error> {
    let rule = match (table.needs_priority(), priority) {
        (true, ..=0) => format!(
            "the priority is {priority}; entries need one above 0, because the key has a ternary, range or optional field"
        ),
        (false, other) if other != 0 => format!(
            "the priority is {priority}; it must be 0, because the key has no ternary, range or optional field"
        ),
        _ => return Ok(()),
    };
    Err(Error::invalid(table_at(table), rule))
}

/// Whether the program leaves that change to the controller.
fn may_change(table: &Table<'_>, entry: &TableEntry, intent: Intent) -> Result<(), Error> {
    let at = || table_at(table);
    if entry.is_default_action {
        if intent != Intent::Modify {
            let rule = "the default entry is always there; it can only be modified";
            return Err(Error::invalid(at(), rule));
        }
        if table.proto().const_default_action_id != 0 {
            return Err(Error::denied(at(), "its default action is constant"));
        }
        if table.action_profile().is_some() {
            let rule = "the default action of a table with an action profile cannot be set";
            return Err(Error::invalid(at(), rule));
        }
    } else if table.proto().is_const_table {
        if intent != Intent::Modify {
            return Err(Error::denied(at(), "its entries are constant"));
        }
        if entry.action.is_some() {
            let rule = "its entries are constant; only their counters and meters can be modified, with the action unset";
            return Err(Error::denied(at(), rule));
        }
    } else if table.proto().match_fields.is_empty() && intent == Intent::Insert {
        let rule = "it has no key, so it has no entry but the default entry";
        return Err(Error::invalid(at(), rule));
    }
    Ok(())
}

fn state_of(
    table: &Table<'_>,
    entry: &TableEntry,
    key: TableEntry,
    intent: Intent,
) -> Result<TableEntry, Error> {
    let at = || table_at(table);
    let action = match &entry.action {
        Some(action) => Some(action_of(table, action, entry.is_default_action)?),
        // Resets the default entry, or leaves an action as it is.
        None if intent == Intent::Modify => None,
        None => return Err(Error::invalid(at(), "the entry has no action")),
    };
    if entry.idle_timeout_ns != 0 && (!table.has_idle_timeout() || entry.is_default_action) {
        let rule = "its entries have no idle timeout; leave `idle_timeout_ns` at 0";
        return Err(Error::invalid(at(), rule));
    }
    if entry.idle_timeout_ns < 0 {
        return Err(Error::invalid(at(), "the idle timeout is negative"));
    }
    if entry.time_since_last_hit.is_some() {
        let rule = "`time_since_last_hit` is for reading; leave it unset";
        return Err(Error::invalid(at(), rule));
    }
    if entry.counter_data.is_some() && table.direct_counter().is_none() {
        return Err(Error::invalid(at(), "it has no direct counter"));
    }
    if let Some(data) = &entry.counter_data {
        resources::counter_data(&at(), data)?;
    }
    if entry.meter_config.is_some() || entry.meter_counter_data.is_some() {
        let Some(meter) = table.direct_meter() else {
            return Err(Error::invalid(at(), "it has no direct meter"));
        };
        let spec = meter.spec.as_ref();
        resources::meter_state(&at(), spec, entry.meter_config, entry.meter_counter_data)?;
    }
    Ok(TableEntry {
        action,
        idle_timeout_ns: entry.idle_timeout_ns,
        counter_data: entry.counter_data,
        meter_config: entry.meter_config,
        meter_counter_data: entry.meter_counter_data,
        metadata: entry.metadata.clone(),
        #[allow(deprecated)] // servers still keep it for older controllers
        controller_metadata: entry.controller_metadata,
        ..key
    })
}

fn action_of(table: &Table<'_>, action: &TableAction, default: bool) -> Result<TableAction, Error> {
    use table_action::Type;
    let at = || table_at(table);
    let profile = table.action_profile();
    let selector = profile.is_some_and(|p| p.with_selector);
    let kind = match (&action.r#type, profile) {
        (None, _) => return Err(Error::invalid(at(), "the entry's action is empty")),
        (Some(Type::Action(action)), None) if default => {
            let (_, reference) = table.action(action.action_id)?;
            if !as_default(reference) {
                let name = table
                    .index()
                    .name_of(crate::info::Kind::Action, action.action_id);
                let rule = format!("the action `{name}` cannot be the default action");
                return Err(Error::denied(at(), rule));
            }
            Type::Action(arguments(table.index(), action)?)
        }
        (Some(Type::Action(action)), None) => Type::Action(entry_action(table, action)?),
        (Some(Type::ActionProfileMemberId(id)), Some(_)) => Type::ActionProfileMemberId(*id),
        (Some(Type::ActionProfileGroupId(id)), Some(_)) if selector => {
            Type::ActionProfileGroupId(*id)
        }
        (Some(Type::ActionProfileActionSet(set)), Some(profile)) if selector => {
            Type::ActionProfileActionSet(resources::action_set(table, profile, set)?)
        }
        (Some(_), None) => {
            let rule = "it has no action profile; entries name their action directly";
            return Err(Error::invalid(at(), rule));
        }
        (Some(_), Some(_)) if selector => {
            let rule =
                "its actions are in a selector; entries name a member, a group or a set of actions";
            return Err(Error::invalid(at(), rule));
        }
        (Some(_), Some(_)) => {
            let rule = "its actions are in an action profile; entries name a member";
            return Err(Error::invalid(at(), rule));
        }
    };
    Ok(TableAction { r#type: Some(kind) })
}

fn direct_key(index: &Index, entry: Option<&TableEntry>) -> Result<TableEntry, Error> {
    let Some(entry) = entry else {
        let rule = "it names no table entry";
        return Err(Error::invalid("the direct resource", rule));
    };
    table_entry_key(index, entry)
}

fn direct_counter(
    index: &Index,
    counter: &DirectCounterEntry,
    intent: Intent,
) -> Result<DirectCounterEntry, Error> {
    let key = direct_key(index, counter.table_entry.as_ref())?;
    let table = index.table(key.table_id)?;
    if table.direct_counter().is_none() {
        return Err(Error::invalid(table_at(&table), "it has no direct counter"));
    }
    resources::only_modify(&table_at(&table), "a direct counter", intent)?;
    if let Some(data) = &counter.data {
        resources::counter_data(&table_at(&table), data)?;
    }
    Ok(DirectCounterEntry {
        table_entry: Some(key),
        data: counter.data,
    })
}

fn direct_meter(
    index: &Index,
    meter: &DirectMeterEntry,
    intent: Intent,
) -> Result<DirectMeterEntry, Error> {
    let key = direct_key(index, meter.table_entry.as_ref())?;
    let table = index.table(key.table_id)?;
    let Some(info) = table.direct_meter() else {
        return Err(Error::invalid(table_at(&table), "it has no direct meter"));
    };
    resources::only_modify(&table_at(&table), "a direct meter", intent)?;
    let at = table_at(&table);
    resources::meter_state(&at, info.spec.as_ref(), meter.config, meter.counter_data)?;
    Ok(DirectMeterEntry {
        table_entry: Some(key),
        config: meter.config,
        counter_data: meter.counter_data,
    })
}

/// The key of a match, for members of value sets.
pub(super) fn value_set_member(
    at: &str,
    fields: &[crate::config::v1::MatchField],
    given: &[FieldMatch],
) -> Result<Vec<FieldMatch>, Error> {
    let fields = fields.iter().map(crate::info::Field::new);
    matches::canonical(at, fields, given, DontCare::Refuse)
}

//! Tables, action profiles and the control flow between them.

use std::collections::HashMap;

use super::ast::{Ex, HeaderRef, Names, Part};
use super::calc::{self, Calculation};
use super::code::{Pc, Slot, limbs};
use super::emit::Emitter;
use super::flow::Flow;
use super::info::*;
use super::number::Number;
use super::{LoadError, invalid, raw, unsupported};
use crate::control::{ActionCall, EntryAction, MatchField, TableEntry};
use crate::ids::*;
use crate::value::Value;

/// A table as the interpreter needs it.
pub(crate) struct TableDef {
    pub(crate) keys: Vec<KeyDef>,
    pub(crate) key_parts: Vec<KeyPart>,
    /// Words of a key.
    pub(crate) key_words: usize,
    /// Words of an entry's action data.
    pub(crate) data_words: usize,
    pub(crate) shape: Shape,
    /// Where to go on, by action.
    pub(crate) next: Vec<Pc>,
    pub(crate) next_hit: Option<Pc>,
    pub(crate) next_miss: Option<Pc>,
    /// Where to go on when no action was run.
    pub(crate) next_none: Pc,
    pub(crate) default: Option<ActionCall>,
    pub(crate) entries: Vec<TableEntry>,
    pub(crate) profile: Option<ProfileId>,
    /// Where the colour of the direct meter goes.
    pub(crate) meter_target: Option<(Slot, u8)>,
}

/// How entries are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No key: every lookup misses.
    Keyless,
    Exact,
    /// One prefix, the rest exact.
    Prefix,
    /// By priority.
    Ternary,
}

/// One key field's place within the key.
#[derive(Clone, Copy)]
pub(crate) struct KeyDef {
    /// First word.
    pub(crate) at: usize,
    /// Words.
    pub(crate) limbs: u8,
}

/// One word of a key.
#[derive(Clone, Copy)]
pub(crate) struct KeyPart {
    pub(crate) slot: Slot,
    /// The word counts if this one is 1, and is 0 if this one is 0.
    pub(crate) valid: Slot,
    /// Bits that count.
    pub(crate) mask: u64,
}

/// What tables, profiles and pipelines are compiled into.
pub(super) struct Compiled {
    pub(super) tables: Vec<TableDef>,
    /// Per profile: what its selector hashes.
    pub(super) selectors: Vec<Option<Calculation>>,
    pub(super) ingress: Pc,
    pub(super) egress: Pc,
}

fn all_tables(root: &raw::Root) -> impl Iterator<Item = &raw::Table> {
    root.pipelines.iter().flat_map(|p| &p.tables)
}

fn all_profiles(root: &raw::Root) -> impl Iterator<Item = &raw::Profile> {
    root.pipelines.iter().flat_map(|p| &p.action_profiles)
}

/// JSON action id to position.
fn action_ids(root: &raw::Root) -> HashMap<u32, ActionId> {
    root.actions
        .iter()
        .enumerate()
        .map(|(i, a)| (a.id, ActionId(i as u32)))
        .collect()
}

/// Describes tables and profiles for the control plane.
pub(super) fn info(root: &raw::Root, info: &mut Info) -> Result<(), LoadError> {
    let ids = action_ids(root);
    for profile in all_profiles(root) {
        if info.profiles.iter().any(|p| p.name == profile.name) {
            continue;
        }
        info.profiles.push(ProfileInfo {
            name: profile.name.clone(),
            size: profile.max_size as usize,
            selector: profile.selector.is_some(),
            tables: Vec::new(),
            actions: Vec::new(),
        });
    }
    for table in all_tables(root) {
        let place = format!("table {}", table.name);
        let actions = table
            .action_ids
            .iter()
            .map(|id| ids.get(id).copied())
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| invalid(&place, "it has an action that is not there"))?;
        let keys = table
            .key
            .iter()
            .map(|k| key_info(k, root, &place))
            .collect::<Result<Vec<_>, _>>()?;
        let number = TableId(info.tables.len() as u32);
        let implementation = implementation(table, number, &actions, info, &place)?;
        let default = table.default_entry.as_ref();
        let has_priority = keys.iter().any(|k| {
            matches!(
                k.kind,
                MatchKind::Ternary | MatchKind::Range | MatchKind::Optional
            )
        });
        info.tables.push(TableInfo {
            name: table.name.clone(),
            size: (table.max_size as usize).max(table.entries.len()),
            keys,
            actions,
            implementation,
            const_default: default.is_some_and(|d| d.action_const || d.action_entry_const),
            const_entries: !table.entries.is_empty(),
            has_priority,
            direct_counter: None,
            direct_meter: None,
            idle_timeout: table.support_timeout,
        });
    }
    Ok(())
}

fn implementation(
    table: &raw::Table,
    number: TableId,
    actions: &[ActionId],
    info: &mut Info,
    place: &str,
) -> Result<Implementation, LoadError> {
    let selector = match table.kind.as_str() {
        "simple" => return Ok(Implementation::Direct),
        "indirect" => false,
        "indirect_ws" => true,
        other => return Err(unsupported(place, format!("a table of type {other}"))),
    };
    let name = table.action_profile.as_deref().unwrap_or_default();
    let position = info.profiles.iter().position(|p| p.name == name);
    let position =
        position.ok_or_else(|| invalid(place, format!("there is no action profile {name:?}")))?;
    let profile = &mut info.profiles[position];
    profile.tables.push(number);
    for action in actions {
        if !profile.actions.contains(action) {
            profile.actions.push(*action);
        }
    }
    let id = ProfileId(position as u32);
    Ok(match selector {
        true => Implementation::Selector(id),
        false => Implementation::Profile(id),
    })
}

fn key_info(key: &raw::Key, root: &raw::Root, place: &str) -> Result<KeyInfo, LoadError> {
    use sonic_rs::{JsonContainerTrait, JsonValueTrait};
    let kind = match key.match_type.as_str() {
        "exact" | "valid" => MatchKind::Exact,
        "lpm" => MatchKind::Lpm,
        "ternary" => MatchKind::Ternary,
        "range" => MatchKind::Range,
        "optional" => MatchKind::Optional,
        other => return Err(unsupported(place, format!("match kind {other}"))),
    };
    let part = |i: usize| {
        key.target
            .as_array()
            .and_then(|a| a.get(i))
            .and_then(|v| v.as_str())
    };
    let (header, field) = match key.match_type.as_str() {
        "valid" => (key.target.as_str(), Some("$valid$")),
        _ => (part(0), part(1)),
    };
    let (Some(header), Some(field)) = (header, field) else {
        return Err(invalid(place, "a key target is not [header, field]"));
    };
    let width = match field {
        "$valid$" => Some(1),
        _ => field_width(root, header, field),
    };
    Ok(KeyInfo {
        name: key
            .name
            .clone()
            .unwrap_or_else(|| format!("{header}.{field}")),
        width: width.ok_or_else(|| invalid(place, format!("no field {header}.{field}")))?,
        kind,
    })
}

fn field_width(root: &raw::Root, header: &str, field: &str) -> Option<u32> {
    use sonic_rs::{JsonContainerTrait, JsonValueTrait};
    let header = root.headers.iter().find(|h| h.name == header)?;
    let header_type = root
        .header_types
        .iter()
        .find(|t| t.name == header.header_type)?;
    header_type.fields.iter().find_map(|f| {
        let entry = f.as_array()?;
        (entry.first()?.as_str()? == field).then(|| entry.get(1)?.as_u64().map(|w| w as u32))?
    })
}

/// Compiles tables and pipelines.
pub(super) fn compile(
    root: &raw::Root,
    names: &Names,
    info: &Info,
    actions: &[Pc],
    emitter: &mut Emitter<'_>,
) -> Result<Compiled, LoadError> {
    let mut selectors: Vec<Option<Calculation>> = info.profiles.iter().map(|_| None).collect();
    for profile in all_profiles(root) {
        let position = info.profiles.iter().position(|p| p.name == profile.name);
        if let (Some(position), Some(selector)) = (position, &profile.selector) {
            let name = format!("of selector {}", profile.name);
            let calculation = calc::compile(&name, &selector.algo, &selector.input, names)?;
            selectors[position] = Some(calculation);
        }
    }
    let ids = action_ids(root);
    let mut tables = Vec::new();
    let mut entries = HashMap::new();
    for pipeline in &root.pipelines {
        let mut flow = Flow {
            emitter,
            ids: &ids,
            actions,
            info,
            names,
            root,
        };
        let entry = flow.pipeline(pipeline, &mut tables)?;
        entries.insert(pipeline.name.as_str(), entry);
    }
    let entry = |name: &str| {
        entries
            .get(name)
            .copied()
            .ok_or_else(|| invalid("pipelines", format!("there is no pipeline {name}")))
    };
    Ok(Compiled {
        ingress: entry("ingress")?,
        egress: entry("egress")?,
        tables,
        selectors,
    })
}

impl Flow<'_, '_> {
    pub(super) fn table(
        &mut self,
        table: &raw::Table,
        number: usize,
        halt: Pc,
        resolve: &impl Fn(&Option<String>) -> Pc,
    ) -> Result<TableDef, LoadError> {
        let place = format!("table {}", table.name);
        let info = &self.info.tables[number];
        let mut next = vec![halt; self.root.actions.len()];
        let (mut next_hit, mut next_miss) = (None, None);
        for (name, node) in &table.next_tables {
            let goal = resolve(node);
            match name.as_str() {
                "__HIT__" => next_hit = Some(goal),
                "__MISS__" => next_miss = Some(goal),
                _ => {
                    let named = |id: &&ActionId| self.info.actions[id.index()].name == *name;
                    for id in info.actions.iter().filter(named) {
                        next[id.index()] = goal;
                    }
                }
            }
        }
        // p4c writes no default action for tables with an action profile: it
        // is NoAction.
        let no_action = table.next_tables.get("NoAction");
        let no_action = no_action.filter(|_| info.implementation != Implementation::Direct);
        let next_none = match next_miss {
            Some(next) => next,
            None => resolve(no_action.unwrap_or(&table.base_default_next)),
        };
        let (keys, key_parts) = self.keys(table, info, &place)?;
        let key_words = key_parts.len();
        let lpm = info
            .keys
            .iter()
            .filter(|k| k.kind == MatchKind::Lpm)
            .count();
        let shape = match (info.keys.is_empty(), info.has_priority, lpm) {
            (true, ..) => Shape::Keyless,
            (_, true, _) => Shape::Ternary,
            (_, false, 0) => Shape::Exact,
            (_, false, 1) => Shape::Prefix,
            _ => return Err(invalid(&place, "it has more than one lpm key")),
        };
        if !matches!(
            table.match_type.as_str(),
            "exact" | "lpm" | "ternary" | "range"
        ) {
            return Err(unsupported(
                &place,
                format!("match type {}", table.match_type),
            ));
        }
        Ok(TableDef {
            keys,
            key_parts,
            key_words,
            data_words: TableDef::data_words(&info.actions, &self.info.actions),
            shape,
            next,
            next_hit,
            next_miss,
            next_none,
            default: self.default(table, &place)?,
            entries: self.entries(table, info, &place)?,
            profile: match info.implementation {
                Implementation::Direct => None,
                Implementation::Profile(id) | Implementation::Selector(id) => Some(id),
            },
            meter_target: self.meter_target(table, &place)?,
        })
    }

    fn keys(
        &mut self,
        table: &raw::Table,
        info: &TableInfo,
        place: &str,
    ) -> Result<(Vec<KeyDef>, Vec<KeyPart>), LoadError> {
        use sonic_rs::JsonValueTrait;
        let always = self.emitter.number(1)?;
        let mut parts: Vec<KeyPart> = Vec::new();
        let mut keys = Vec::new();
        for (key, key_info) in table.key.iter().zip(&info.keys) {
            let (header, part) = if key.match_type == "valid" {
                let name = key.target.as_str().unwrap_or_default();
                (self.names.layout.header(name, place)?, Part::Valid)
            } else {
                let field = sonic_rs::json!({"type": "field", "value": key.target});
                match self.names.ex(&field, place)? {
                    Ex::Get(HeaderRef::Fixed(header), part) => (header, part),
                    _ => return Err(unsupported(place, "a key that is not a fixed field")),
                }
            };
            let layout = &self.names.layout.headers[usize::from(header)];
            let slot = self.emitter.field(header, part).slot;
            let limbs = limbs(key_info.width);
            let full: Vec<u64> = (0..limbs)
                .map(|i| super::code::ones((key_info.width - 64 * i as u32).min(64) as u8))
                .collect();
            let mask = match &key.mask {
                None => full,
                Some(mask) => Number::parse(mask, place)?.slice(0, key_info.width),
            };
            let is_fixed = part == Part::Valid || layout.metadata;
            let valid = if is_fixed { always } else { layout.valid };
            keys.push(KeyDef {
                at: parts.len(),
                limbs: limbs as u8,
            });
            let words = mask.into_iter().enumerate();
            parts.extend(words.map(|(i, mask)| KeyPart {
                slot: slot + i as Slot,
                valid,
                mask,
            }));
        }
        Ok((keys, parts))
    }

    fn meter_target(
        &self,
        table: &raw::Table,
        place: &str,
    ) -> Result<Option<(Slot, u8)>, LoadError> {
        let Some(name) = &table.direct_meters else {
            return Ok(None);
        };
        let meter = self.root.meter_arrays.iter().find(|m| m.name == *name);
        let target = meter.and_then(|m| m.result_target.as_ref());
        let (header, field) =
            target.ok_or_else(|| invalid(place, format!("direct meter {name} has no target")))?;
        let header = self.names.layout.header(header, place)?;
        let field = self.names.layout.field(header, field, place)?;
        let target = self.emitter.field(header, Part::Field(field));
        Ok(Some((target.slot, target.bits.min(64) as u8)))
    }

    fn call(&self, id: u32, data: &[String], place: &str) -> Result<ActionCall, LoadError> {
        let action = *self
            .ids
            .get(&id)
            .ok_or_else(|| invalid(place, format!("there is no action {id}")))?;
        let params = data
            .iter()
            .map(|d| value(d, place))
            .collect::<Result<Vec<_>, _>>()?;
        let wanted = self.info.actions[action.index()].params.len();
        if params.len() != wanted {
            return Err(invalid(
                place,
                format!(
                    "an action with {wanted} parameters has {} arguments",
                    params.len()
                ),
            ));
        }
        Ok(ActionCall { action, params })
    }

    fn default(&self, table: &raw::Table, place: &str) -> Result<Option<ActionCall>, LoadError> {
        match &table.default_entry {
            None => Ok(None),
            Some(default) => self
                .call(default.action_id, &default.action_data, place)
                .map(Some),
        }
    }

    /// Const entries. The JSON counts priorities from the top, the control
    /// plane from the bottom.
    fn entries(
        &self,
        table: &raw::Table,
        info: &TableInfo,
        place: &str,
    ) -> Result<Vec<TableEntry>, LoadError> {
        let lowest = table.entries.iter().map(|e| e.priority).max().unwrap_or(0);
        let mut entries = Vec::new();
        for (number, entry) in table.entries.iter().enumerate() {
            let place = format!("{place}, entry {number}");
            if entry.match_key.len() != info.keys.len() {
                return Err(invalid(
                    place,
                    "its key has another length than the table's",
                ));
            }
            let key = entry
                .match_key
                .iter()
                .zip(&info.keys)
                .map(|(k, key)| match_field(k, key, &place))
                .collect::<Result<Vec<_>, _>>()?;
            let action = &entry.action_entry;
            entries.push(TableEntry {
                key,
                priority: match info.has_priority {
                    true => (lowest - entry.priority + 1).clamp(1, i64::from(i32::MAX)) as i32,
                    false => 0,
                },
                action: EntryAction::Call(self.call(
                    action.action_id,
                    &action.action_data,
                    &place,
                )?),
                idle_timeout: 0,
                metadata: Vec::new(),
            });
        }
        Ok(entries)
    }
}

fn value(hex: &str, place: &str) -> Result<Value, LoadError> {
    let number = Number::parse(hex, place)?;
    Ok(Value::from_limbs(&number.words(limbs(number.bits()))))
}

fn match_field(entry: &raw::EntryKey, key: &KeyInfo, place: &str) -> Result<MatchField, LoadError> {
    use sonic_rs::JsonValueTrait;
    let hex = |text: Option<&str>| match text {
        Some(text) => value(text, place),
        None => Err(invalid(place, "a key has no value")),
    };
    let cut = |v: Value| Value::from_limbs(&mask_words(&v, key.width));
    let own = || match &entry.key {
        Some(json) if json.is_boolean() => Ok(Value::new(json.as_bool().unwrap_or(false).into())),
        Some(json) => hex(json.as_str()).map(cut),
        None => hex(None),
    };
    Ok(match entry.match_type.as_str() {
        "exact" | "valid" => MatchField::Exact(own()?),
        "lpm" => {
            let prefix_len = entry.prefix_length.unwrap_or(0).min(key.width);
            let drop = key.width - prefix_len;
            let words = mask_words(&own()?, key.width);
            MatchField::Lpm {
                value: clear_low(words, drop),
                prefix_len,
            }
        }
        "ternary" => {
            let mask = cut(hex(entry.mask.as_deref())?);
            let limbs = limbs(key.width);
            let words: Vec<u64> = (0..limbs)
                .map(|i| own().map(|v| v.limb(i) & mask.limb(i)))
                .collect::<Result<_, _>>()?;
            MatchField::Ternary {
                value: Value::from_limbs(&words),
                mask,
            }
        }
        "range" => MatchField::Range {
            low: cut(hex(entry.start.as_deref())?),
            high: cut(hex(entry.end.as_deref())?),
        },
        other => return Err(unsupported(place, format!("match kind {other}"))),
    })
}

fn mask_words(value: &Value, width: u32) -> Vec<u64> {
    (0..limbs(width))
        .map(|i| value.limb(i) & super::code::ones((width - 64 * i as u32).min(64) as u8))
        .collect()
}

fn clear_low(mut words: Vec<u64>, bits: u32) -> Value {
    for (i, word) in words.iter_mut().enumerate() {
        let low = 64 * i as u32;
        let cleared = bits.saturating_sub(low).min(64);
        *word &= if cleared == 64 {
            0
        } else {
            u64::MAX << cleared
        };
    }
    Value::from_limbs(&words)
}

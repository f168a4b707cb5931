//! Tables, action profiles and the control flow between them.

use std::collections::HashMap;

use super::ast::{Ex, HeaderRef, Names, Part};
use super::calc::{self, Calculation};
use super::code::{Ins, Pc, Slot, limbs};
use super::emit::{Emitter, Operand};
use super::info::*;
use super::number::Number;
use super::{ActionCode, LoadError, invalid, raw, unsupported};
use crate::control::{ActionCall, EntryAction, MatchField, TableEntry};
use crate::ids::*;
use crate::value::Value;

/// A table as the interpreter needs it.
pub(crate) struct TableDef {
    pub(crate) keys: Vec<KeyDef>,
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

/// One key field.
#[derive(Clone)]
pub(crate) struct KeyDef {
    pub(crate) slot: Slot,
    pub(crate) limbs: u8,
    pub(crate) bits: u32,
    /// The field reads as zero unless this word is set.
    pub(crate) valid: Option<Slot>,
    /// Bits of the field that count, if not all.
    pub(crate) mask: Option<Box<[u64]>>,
    /// Signed fields are cut to their width.
    pub(crate) signed: bool,
    /// First word of the field within the key.
    pub(crate) at: usize,
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
    root.actions.iter().enumerate().map(|(i, a)| (a.id, ActionId(i as u32))).collect()
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
        let keys = table.key.iter().map(|k| key_info(k, root, &place)).collect::<Result<Vec<_>, _>>()?;
        let number = TableId(info.tables.len() as u32);
        let implementation = implementation(table, number, &actions, info, &place)?;
        let default = table.default_entry.as_ref();
        let has_priority = keys
            .iter()
            .any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        info.tables.push(TableInfo {
            name: table.name.clone(),
            size: table.max_size as usize,
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
    let position = position
        .ok_or_else(|| invalid(place, format!("there is no action profile {name:?}")))?;
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
    let part = |i: usize| key.target.as_array().and_then(|a| a.get(i)).and_then(|v| v.as_str());
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
        name: key.name.clone().unwrap_or_else(|| format!("{header}.{field}")),
        width: width.ok_or_else(|| invalid(place, format!("no field {header}.{field}")))?,
        kind,
    })
}

fn field_width(root: &raw::Root, header: &str, field: &str) -> Option<u32> {
    use sonic_rs::{JsonContainerTrait, JsonValueTrait};
    let header = root.headers.iter().find(|h| h.name == header)?;
    let header_type = root.header_types.iter().find(|t| t.name == header.header_type)?;
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
    actions: &[ActionCode],
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
        let mut flow = Flow { emitter, ids: &ids, actions, info, names, root };
        let entry = flow.pipeline(pipeline, &mut tables)?;
        entries.insert(pipeline.name.as_str(), entry);
    }
    let entry = |name: &str| {
        entries
            .get(name)
            .copied()
            .ok_or_else(|| invalid("pipelines", format!("there is no pipeline {name}")))
    };
    Ok(Compiled { ingress: entry("ingress")?, egress: entry("egress")?, tables, selectors })
}

struct Flow<'f, 'a> {
    emitter: &'f mut Emitter<'a>,
    ids: &'f HashMap<u32, ActionId>,
    actions: &'f [ActionCode],
    info: &'f Info,
    names: &'f Names,
    root: &'f raw::Root,
}

/// A node of the control flow.
#[derive(Clone, Copy)]
enum Node<'r> {
    Table(usize, &'r raw::Table),
    Condition(&'r raw::Conditional),
    Call(&'r raw::ActionCall),
}

/// The nodes of a pipeline, and what is emitted of them.
struct Nodes<'r> {
    nodes: HashMap<&'r str, Node<'r>>,
    labels: HashMap<&'r str, Pc>,
    /// Jumps whose goal was not emitted yet.
    jumps: Vec<(usize, Option<&'r str>)>,
    /// Nodes that something jumps to.
    pending: Vec<&'r str>,
}

impl Flow<'_, '_> {
    fn pipeline(
        &mut self,
        pipeline: &raw::Pipeline,
        tables: &mut Vec<TableDef>,
    ) -> Result<Pc, LoadError> {
        check_acyclic(pipeline)?;
        let first_table = tables.len();
        let numbered = pipeline.tables.iter().enumerate();
        let all_tables =
            numbered.map(|(i, t)| (t.name.as_str(), Node::Table(first_table + i, t)));
        let conditions = pipeline.conditionals.iter();
        let calls = pipeline.action_calls.iter();
        let mut nodes = Nodes {
            nodes: all_tables
                .chain(conditions.map(|c| (c.name.as_str(), Node::Condition(c))))
                .chain(calls.map(|c| (c.name.as_str(), Node::Call(c))))
                .collect(),
            labels: HashMap::new(),
            jumps: Vec::new(),
            pending: Vec::new(),
        };
        let entry = self.emitter.here();
        self.chain(&mut nodes, pipeline.init_table.as_deref(), &pipeline.name)?;
        while let Some(name) = nodes.pending.pop() {
            if !nodes.labels.contains_key(name) {
                self.chain(&mut nodes, Some(name), &pipeline.name)?;
            }
        }
        let halt = self.emitter.here();
        self.emitter.emit(Ins::Halt);
        for &(at, next) in &nodes.jumps {
            let goal = next.and_then(|n| nodes.labels.get(n).copied()).unwrap_or(halt);
            self.emitter.land(&[at], goal)?;
        }
        // What is never applied was not emitted, and goes nowhere.
        let resolve = |next: &Option<String>| {
            next.as_deref().and_then(|n| nodes.labels.get(n).copied()).unwrap_or(halt)
        };
        for (i, table) in pipeline.tables.iter().enumerate() {
            tables.push(self.table(table, first_table + i, halt, &resolve)?);
        }
        Ok(entry)
    }

    /// Emits a node and what comes after it, as far as that is not decided by
    /// a table.
    fn chain<'r>(
        &mut self,
        nodes: &mut Nodes<'r>,
        start: Option<&'r str>,
        pipeline: &str,
    ) -> Result<(), LoadError> {
        let mut next = start;
        while let Some(name) = next {
            if let Some(&to) = nodes.labels.get(name) {
                self.emitter.emit(Ins::Jump { to });
                return Ok(());
            }
            let node = *nodes.nodes.get(name).ok_or_else(|| {
                invalid(format!("pipeline {pipeline}"), format!("there is no node {name}"))
            })?;
            nodes.labels.insert(name, self.emitter.here());
            self.emitter.place = format!("node {name}");
            self.emitter.release_temps();
            next = match node {
                Node::Condition(condition) => {
                    let ex = self.names.ex(&condition.expression, &self.emitter.place)?;
                    let otherwise = condition.false_next.as_deref();
                    let mut taken = Vec::new();
                    self.emitter.jump_if(&ex, false, &mut taken)?;
                    nodes.jumps.extend(taken.into_iter().map(|at| (at, otherwise)));
                    nodes.pending.extend(otherwise);
                    condition.true_next.as_deref()
                }
                Node::Call(call) => {
                    let action = self.ids.get(&call.action_id).ok_or_else(|| {
                        invalid(&self.emitter.place, "the action that it calls is not there")
                    })?;
                    self.inline(*action)?;
                    call.next_node.as_deref()
                }
                Node::Table(number, table) => match self.fixed(number, table) {
                    Some(action) => {
                        self.inline(action)?;
                        self.after_miss(table, action)
                    }
                    None => {
                        self.emitter.emit(Ins::Apply { table: number as u16 });
                        let goals = table.next_tables.values().chain([&table.base_default_next]);
                        nodes.pending.extend(goals.flatten().map(String::as_str));
                        return Ok(());
                    }
                },
            };
        }
        self.emitter.emit(Ins::Halt);
        Ok(())
    }

    /// The action of a table that can only ever run this one: p4c's way to
    /// write a statement outside tables.
    fn fixed(&self, number: usize, table: &raw::Table) -> Option<ActionId> {
        let info = &self.info.tables[number];
        let default = table.default_entry.as_ref()?;
        let fixed = info.keys.is_empty()
            && info.const_default
            && default.action_data.is_empty()
            && info.implementation == Implementation::Direct;
        fixed.then(|| self.ids.get(&default.action_id).copied())?
    }

    fn after_miss<'r>(&self, table: &'r raw::Table, action: ActionId) -> Option<&'r str> {
        let name = &self.info.actions[action.index()].name;
        let next = table.next_tables.get("__MISS__").or_else(|| table.next_tables.get(name));
        next.unwrap_or(&table.base_default_next).as_deref()
    }

    /// Emits the code of an action, which has no parameters, in place.
    fn inline(&mut self, action: ActionId) -> Result<(), LoadError> {
        let entry = self.actions[action.index()].entry;
        let from = entry as usize;
        let body = &self.emitter.code[from..];
        let length = body.iter().position(|i| *i == Ins::Return).unwrap_or(0);
        if length > 64 {
            self.emitter.emit(Ins::Call { action: action.0 as u16 });
            return Ok(());
        }
        let moved = self.emitter.here() - entry;
        for at in from..from + length {
            let ins = self.emitter.code[at];
            let ins = ins.target().map_or(Some(ins), |to| ins.with_target(to + moved));
            let ins =
                ins.ok_or_else(|| self.emitter.unsupported("a program with this many instructions"))?;
            self.emitter.emit(ins);
        }
        Ok(())
    }

    fn table(
        &self,
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
        let next_none = match next_miss {
            Some(next) => next,
            None => resolve(&table.base_default_next),
        };
        let keys = self.keys(table, info, &place)?;
        let key_words = keys.iter().map(|k| usize::from(k.limbs)).sum();
        let lpm = info.keys.iter().filter(|k| k.kind == MatchKind::Lpm).count();
        let shape = match (info.keys.is_empty(), info.has_priority, lpm) {
            (true, ..) => Shape::Keyless,
            (_, true, _) => Shape::Ternary,
            (_, false, 0) => Shape::Exact,
            (_, false, 1) => Shape::Prefix,
            _ => return Err(invalid(&place, "it has more than one lpm key")),
        };
        if !matches!(table.match_type.as_str(), "exact" | "lpm" | "ternary" | "range") {
            return Err(unsupported(&place, format!("match type {}", table.match_type)));
        }
        Ok(TableDef {
            keys,
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
        &self,
        table: &raw::Table,
        info: &TableInfo,
        place: &str,
    ) -> Result<Vec<KeyDef>, LoadError> {
        use sonic_rs::JsonValueTrait;
        let mut at = 0;
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
            let Operand { slot, bits, signed } = self.emitter.field(header, part);
            let limbs = limbs(bits);
            let mask = match &key.mask {
                None => None,
                Some(mask) => Some(Number::parse(mask, place)?.slice(0, bits).into()),
            };
            keys.push(KeyDef {
                slot,
                limbs: limbs as u8,
                bits: key_info.width,
                valid: (part != Part::Valid && !layout.metadata).then_some(layout.valid),
                mask,
                signed,
                at,
            });
            at += limbs;
        }
        Ok(keys)
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
        let params = data.iter().map(|d| value(d, place)).collect::<Result<Vec<_>, _>>()?;
        let wanted = self.info.actions[action.index()].params.len();
        if params.len() != wanted {
            return Err(invalid(
                place,
                format!("an action with {wanted} parameters has {} arguments", params.len()),
            ));
        }
        Ok(ActionCall { action, params })
    }

    fn default(&self, table: &raw::Table, place: &str) -> Result<Option<ActionCall>, LoadError> {
        match &table.default_entry {
            None => Ok(None),
            Some(default) => self.call(default.action_id, &default.action_data, place).map(Some),
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
                return Err(invalid(place, "its key has another length than the table's"));
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
                action: EntryAction::Call(self.call(action.action_id, &action.action_data, &place)?),
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

fn match_field(
    entry: &raw::EntryKey,
    key: &KeyInfo,
    place: &str,
) -> Result<MatchField, LoadError> {
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
            MatchField::Lpm { value: clear_low(words, drop), prefix_len }
        }
        "ternary" => {
            let mask = cut(hex(entry.mask.as_deref())?);
            let limbs = limbs(key.width);
            let words: Vec<u64> = (0..limbs)
                .map(|i| own().map(|v| v.limb(i) & mask.limb(i)))
                .collect::<Result<_, _>>()?;
            MatchField::Ternary { value: Value::from_limbs(&words), mask }
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
        *word &= if cleared == 64 { 0 } else { u64::MAX << cleared };
    }
    Value::from_limbs(&words)
}

/// Refuses control flow that could run for ever.
fn check_acyclic(pipeline: &raw::Pipeline) -> Result<(), LoadError> {
    let mut nexts: HashMap<&str, Vec<&str>> = HashMap::new();
    for table in &pipeline.tables {
        let goals = table.next_tables.values().chain([&table.base_default_next]);
        nexts.insert(&table.name, goals.flatten().map(String::as_str).collect());
    }
    for cond in &pipeline.conditionals {
        let goals = [&cond.true_next, &cond.false_next];
        nexts.insert(&cond.name, goals.into_iter().flatten().map(String::as_str).collect());
    }
    for call in &pipeline.action_calls {
        nexts.insert(&call.name, call.next_node.iter().map(String::as_str).collect());
    }
    // Depth-first; a node is open while its successors are visited.
    let mut done: HashMap<&str, bool> = HashMap::new();
    for &start in nexts.keys() {
        let mut stack = vec![(start, 0)];
        while let Some((node, child)) = stack.pop() {
            match done.get(node) {
                Some(true) => continue,
                Some(false) if child == 0 => {
                    let place = format!("pipeline {}", pipeline.name);
                    return Err(invalid(place, format!("node {node} can come after itself")));
                }
                _ => {}
            }
            done.insert(node, false);
            match nexts.get(node).and_then(|n| n.get(child)) {
                Some(&next) => {
                    stack.push((node, child + 1));
                    stack.push((next, 0));
                }
                None => {
                    done.insert(node, true);
                }
            }
        }
    }
    Ok(())
}

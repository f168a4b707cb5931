//! Control flow between tables and conditions to instructions.
//!
//! A pipeline is a graph; it is emitted depth first, so that what comes next
//! mostly follows. p4c writes each statement outside tables as a table of its
//! own that has no key: the action of such a table is put in place.

use std::collections::HashMap;

use super::ast::Names;
use super::code::{Ins, Pc};
use super::emit::Emitter;
use super::info::*;
use super::place::{self, Place};
use super::tables::TableDef;
use super::{LoadError, invalid, raw};
use crate::ids::*;

/// Compiles pipelines.
pub(super) struct Flow<'f, 'a> {
    pub(super) emitter: &'f mut Emitter<'a>,
    pub(super) ids: &'f HashMap<u32, ActionId>,
    pub(super) actions: &'f [Pc],
    pub(super) info: &'f Info,
    pub(super) names: &'f Names,
    pub(super) root: &'f raw::Root,
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
    pub(super) fn pipeline(
        &mut self,
        pipeline: &raw::Pipeline,
        tables: &mut Vec<TableDef>,
    ) -> Result<Pc, LoadError> {
        check_acyclic(pipeline)?;
        let first_table = tables.len();
        let numbered = pipeline.tables.iter().enumerate();
        let all_tables = numbered.map(|(i, t)| (t.name.as_str(), Node::Table(first_table + i, t)));
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
            let goal = next
                .and_then(|n| nodes.labels.get(n).copied())
                .unwrap_or(halt);
            self.emitter.land(&[at], goal)?;
        }
        // What is never applied was not emitted, and goes nowhere.
        let resolve = |next: &Option<String>| {
            next.as_deref()
                .and_then(|n| nodes.labels.get(n).copied())
                .unwrap_or(halt)
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
                invalid(
                    format!("pipeline {pipeline}"),
                    format!("there is no node {name}"),
                )
            })?;
            nodes.labels.insert(name, self.emitter.here());
            self.emitter.place = format!("node {name}");
            self.emitter.release_temps();
            next = match node {
                Node::Condition(condition) => {
                    let ex = self.names.ex(&condition.expression, &self.emitter.place)?;
                    let otherwise = condition.false_next.as_deref();
                    let begin = self.emitter.here();
                    let mut taken = Vec::new();
                    self.emitter.jump_if(&ex, false, &mut taken)?;
                    let source = place::source(condition.source_info.as_ref());
                    let place = Place::Condition {
                        source: source.unwrap_or_else(|| condition.name.clone()),
                        end: self.emitter.here(),
                    };
                    self.emitter.places.push((begin, place));
                    nodes
                        .jumps
                        .extend(taken.into_iter().map(|at| (at, otherwise)));
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
                        self.emitter.emit(Ins::Apply {
                            table: number as u16,
                        });
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
        let next = table
            .next_tables
            .get("__MISS__")
            .or_else(|| table.next_tables.get(name));
        next.unwrap_or(&table.base_default_next).as_deref()
    }

    /// Emits the code of an action, which has no parameters, in place.
    fn inline(&mut self, action: ActionId) -> Result<(), LoadError> {
        let entry = self.actions[action.index()];
        let from = entry as usize;
        let body = &self.emitter.code[from..];
        let length = body.iter().position(|i| *i == Ins::Return).unwrap_or(0);
        if length > 64 {
            self.emitter.emit(Ins::Call {
                action: action.0 as u16,
            });
            return Ok(());
        }
        let moved = self.emitter.here() - entry;
        let places = &self.emitter.places;
        let within = |at: Pc| (entry..entry + length as Pc).contains(&at);
        let copies: Vec<_> = places
            .iter()
            .filter(|(at, _)| within(*at))
            .map(|(at, place)| (at + moved, place.clone()))
            .collect();
        self.emitter.places.extend(copies);
        for at in from..from + length {
            let ins = self.emitter.code[at];
            let ins = ins
                .target()
                .map_or(Some(ins), |to| ins.with_target(to + moved));
            let ins = ins.ok_or_else(|| {
                self.emitter
                    .unsupported("a program with this many instructions")
            })?;
            self.emitter.emit(ins);
        }
        Ok(())
    }
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
        nexts.insert(
            &cond.name,
            goals.into_iter().flatten().map(String::as_str).collect(),
        );
    }
    for call in &pipeline.action_calls {
        nexts.insert(
            &call.name,
            call.next_node.iter().map(String::as_str).collect(),
        );
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

//! Applies updates to a switch (P4Runtime, "Write RPC" and "P4 Entity Messages").
//!
//! An update is translated, checked and applied, one after the other, in the batch's order. In
//! the modes that roll back, each update leaves behind how to undo it.

mod cells;
mod defaults;
mod profiles;
mod replication;
mod sets;
mod tables;

use p4runtime::rpc::Code;
use p4runtime::v1::{self, entity::Entity, write_request::Atomicity};

use super::fault::Fault;
use super::pipeline::{Array, Pipeline};
use super::roles::Scope;
use super::sdn::Ports;
use super::state::{Owned, State, Target};
use crate::control::ControlError;
use crate::ids::Port;
use crate::switch::Switch;

pub(crate) use replication::MULTICAST_ID_MAX;

/// Undoes one update.
pub(crate) type Undo = Box<dyn FnOnce(&mut Switch, &mut State) -> Result<(), ControlError> + Send>;

/// What an update does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Insert,
    Modify,
    Delete,
}

/// What updates may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Replicas of all multicast groups and clone sessions.
    pub(crate) replicas: usize,
    /// Messages of one digest that wait or are unacknowledged.
    pub(crate) digest_messages: usize,
    /// No port of the device.
    pub(crate) drop_port: Port,
}

/// Who writes, and when.
pub(crate) struct Author<'a> {
    /// The role's name.
    pub(crate) role: &'a str,
    /// What the role may write.
    pub(crate) scope: &'a Scope,
    /// The switch's clock, ns.
    pub(crate) now: u64,
    pub(crate) limits: Limits,
}

/// Applies updates to one switch.
pub(crate) struct Writer<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) switch: &'a mut Switch,
    pub(crate) state: &'a mut State,
    pub(crate) author: &'a Author<'a>,
    /// Where to leave how to undo; `None` when nobody will ask.
    pub(crate) undo: Option<&'a mut Vec<Undo>>,
}

/// Updates applied without letting packets in between, where the mode allows them in: long
/// enough to amortise the locks, short enough (some 100 µs) for the queues.
const SLICE: usize = 64;

/// Applies a batch; one result per update.
pub(crate) fn write_batch(
    target: &Target,
    author: &Author<'_>,
    updates: &[v1::Update],
    atomicity: Atomicity,
) -> Vec<Result<(), Fault>> {
    match atomicity {
        Atomicity::ContinueOnError => {
            let mut results = Vec::with_capacity(updates.len());
            for (number, slice) in updates.chunks(SLICE).enumerate() {
                if number > 0 {
                    Target::pause();
                }
                let (mut state, mut switch) = target.lock();
                let mut writer = Writer {
                    pipeline: &target.pipeline,
                    switch: &mut switch,
                    state: &mut state,
                    author,
                    undo: None,
                };
                results.extend(slice.iter().map(|update| writer.apply(update)));
            }
            results
        }
        Atomicity::RollbackOnError => write_all_or_none(target, author, updates, SLICE),
        Atomicity::DataplaneAtomic => write_all_or_none(target, author, updates, usize::MAX),
    }
}

/// Lets packets in after every `slice` updates.
fn write_all_or_none(
    target: &Target,
    author: &Author<'_>,
    updates: &[v1::Update],
    slice: usize,
) -> Vec<Result<(), Fault>> {
    let mut undo = Vec::with_capacity(updates.len());
    let mut results = Vec::with_capacity(updates.len());
    let (mut state, mut switch) = target.lock();
    for (at, update) in updates.iter().enumerate() {
        if at > 0 && at % slice == 0 {
            drop(switch);
            drop(state);
            Target::pause();
            (state, switch) = target.lock();
        }
        let mut writer = Writer {
            pipeline: &target.pipeline,
            switch: &mut switch,
            state: &mut state,
            author,
            undo: Some(&mut undo),
        };
        let result = writer.apply(update);
        let failed = result.is_err();
        results.push(result);
        if failed {
            break;
        }
    }
    let Some(failed) = results.iter().position(Result::is_err) else {
        return results;
    };
    for (at, step) in undo.into_iter().rev().enumerate() {
        if at > 0 && at % slice == 0 {
            drop(switch);
            drop(state);
            Target::pause();
            (state, switch) = target.lock();
        }
        if let Err(error) = step(&mut switch, &mut state) {
            tracing::error!(%error, "an update of a failed batch could not be undone");
        }
    }
    let aborted = |what: &str| {
        Err(Fault::new(
            Code::Aborted,
            format!("{what} because update number {failed} failed"),
        ))
    };
    for result in &mut results[..failed] {
        *result = aborted("rolled back");
    }
    results.resize_with(updates.len(), || aborted("not attempted"));
    results
}

impl<'a> Writer<'a> {
    /// Applies one update. If it is refused, nothing has changed.
    pub(crate) fn apply(&mut self, update: &v1::Update) -> Result<(), Fault> {
        use v1::update::Type;
        let op = match update.r#type() {
            Type::Insert => Op::Insert,
            Type::Modify => Op::Modify,
            Type::Delete => Op::Delete,
            Type::Unspecified => {
                return Err(Fault::invalid(
                    "the update's type is not set (INSERT, MODIFY, DELETE)",
                ));
            }
        };
        let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
        let entity = entity.ok_or_else(|| Fault::invalid("the update's entity is not set"))?;
        self.apply_entity(op, entity)?;
        if let Some(key) = Owned::of(entity) {
            let before = self.state.owners.get(&key).cloned();
            let role = (op != Op::Delete).then_some(self.author.role);
            self.state.set_owner(key, role);
            self.on_undo(move |_, state| {
                state.set_owner(key, before.as_deref());
                Ok(())
            });
        }
        Ok(())
    }

    fn apply_entity(&mut self, op: Op, entity: &Entity) -> Result<(), Fault> {
        match entity {
            Entity::TableEntry(entry) => self.table_entry(op, entry),
            Entity::ActionProfileMember(member) => self.member(op, member),
            Entity::ActionProfileGroup(group) => self.group(op, group),
            Entity::CounterEntry(entry) => self.counter(op, entry),
            Entity::DirectCounterEntry(entry) => self.direct_counter(op, entry),
            Entity::MeterEntry(entry) => self.meter(op, entry),
            Entity::DirectMeterEntry(entry) => self.direct_meter(op, entry),
            Entity::RegisterEntry(entry) => self.register(op, entry),
            Entity::PacketReplicationEngineEntry(entry) => self.replication(op, entry),
            Entity::ValueSetEntry(entry) => self.value_set(op, entry),
            Entity::DigestEntry(entry) => self.digest(op, entry),
            Entity::ExternEntry(_) => Err(Fault::unimplemented(
                "v1model has no externs beyond P4Runtime's own entities",
            )),
        }
    }

    /// How ports outside of P4 types are read.
    fn ports(&self) -> Ports<'a> {
        Ports {
            cpu: self.pipeline.cpu_port,
            drop: self.author.limits.drop_port,
            names: self.pipeline.port_names.as_deref(),
        }
    }

    /// Leaves behind how to undo what was just done.
    fn on_undo(
        &mut self,
        undo: impl FnOnce(&mut Switch, &mut State) -> Result<(), ControlError> + Send + 'static,
    ) {
        if let Some(list) = &mut self.undo {
            list.push(Box::new(undo));
        }
    }
}

/// Refuses all but MODIFY, for entities that are always there.
fn only_modify(op: Op, what: &str) -> Result<(), Fault> {
    match op {
        Op::Modify => Ok(()),
        Op::Insert | Op::Delete => Err(Fault::invalid(format!(
            "{what} is always there; it can only be modified"
        ))),
    }
}

/// The cells that an index (or none, for all) names.
fn cell_range<Id>(
    array: &Array<Id>,
    index: Option<&v1::Index>,
) -> Result<std::ops::Range<u64>, Fault> {
    let Some(index) = index else {
        return Ok(0..array.size);
    };
    let at = array.decode_index(index.index)?;
    Ok(at..at + 1)
}

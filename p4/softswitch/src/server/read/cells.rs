//! Reads indirect counters, meters and registers.

use std::collections::BTreeMap;

use p4runtime::v1::{self, entity::Entity};

use super::{Cursor, Source, push};
use crate::control::{CounterData, MeterConfig};
use crate::server::fault::Fault;
use crate::server::pipeline::{Array, Pipeline, find};

/// Which cells of which arrays are left.
pub(crate) struct CellCursor {
    kind: Kind,
    /// Array ids that are left, last first.
    arrays: Vec<u32>,
    /// The next cell of the current array.
    at: u64,
    /// One cell only.
    single: Option<u64>,
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Meter { with_counters: bool },
    Register,
}

/// The one cell that an index names, if one is given.
fn single<T, Id>(
    things: &BTreeMap<u32, T>,
    id: u32,
    kind: &str,
    index: Option<&v1::Index>,
    array: impl Fn(&T) -> &Array<Id>,
) -> Result<Option<u64>, Fault> {
    match index {
        None if id == 0 => Ok(None),
        None => find(things, id, kind).map(|_| None),
        Some(_) if id == 0 => Err(Fault::invalid("an index without an id selects nothing")),
        Some(index) => array(find(things, id, kind)?)
            .decode_index(index.index)
            .map(Some),
    }
}

impl CellCursor {
    pub(super) fn counters(
        pipeline: &Pipeline,
        request: &v1::CounterEntry,
    ) -> Result<Cursor, Fault> {
        let (counters, id) = (&pipeline.counters, request.counter_id);
        let at = single(counters, id, "counter", request.index.as_ref(), |c| c)?;
        Ok(Self::open(Kind::Counter, counters.keys(), id, at))
    }

    pub(super) fn meters(pipeline: &Pipeline, request: &v1::MeterEntry) -> Result<Cursor, Fault> {
        let (meters, id) = (&pipeline.meters, request.meter_id);
        let at = single(meters, id, "meter", request.index.as_ref(), |m| &m.array)?;
        let kind = Kind::Meter {
            with_counters: request.counter_data.is_some(),
        };
        Ok(Self::open(kind, meters.keys(), id, at))
    }

    pub(super) fn registers(
        pipeline: &Pipeline,
        request: &v1::RegisterEntry,
    ) -> Result<Cursor, Fault> {
        let (registers, id) = (&pipeline.registers, request.register_id);
        let index = request.index.as_ref();
        let at = single(registers, id, "register", index, |r| &r.array)?;
        Ok(Self::open(Kind::Register, registers.keys(), id, at))
    }

    fn open<'k>(
        kind: Kind,
        ids: impl DoubleEndedIterator<Item = &'k u32>,
        wanted: u32,
        single: Option<u64>,
    ) -> Cursor {
        let arrays = ids.rev().copied().filter(|id| [0, *id].contains(&wanted));
        Cursor::Cells(CellCursor {
            kind,
            arrays: arrays.collect(),
            at: single.unwrap_or(0),
            single,
        })
    }

    /// Reads up to about `limit` cells; whether any are left.
    pub(super) fn fill(
        &mut self,
        source: &Source<'_>,
        limit: usize,
        out: &mut Vec<v1::Entity>,
    ) -> Result<bool, Fault> {
        while let Some(id) = self.arrays.last().copied() {
            if !source.role.has(id) {
                self.arrays.pop();
                continue;
            }
            let size = match self.single {
                Some(at) => at + 1,
                None => source.size(self.kind, id),
            };
            while self.at < size {
                if out.len() >= limit {
                    return Ok(true);
                }
                push(out, source.cell(self.kind, id, self.at)?);
                self.at += 1;
            }
            self.arrays.pop();
            self.at = 0;
        }
        Ok(false)
    }
}

/// A counter's value as a message.
pub(super) fn counter_message(data: CounterData) -> v1::CounterData {
    v1::CounterData {
        packet_count: i64::try_from(data.packets).unwrap_or(i64::MAX),
        byte_count: i64::try_from(data.bytes).unwrap_or(i64::MAX),
    }
}

/// A meter's configuration as a message.
pub(super) fn meter_message(config: MeterConfig) -> v1::MeterConfig {
    // All of these were written as i64.
    v1::MeterConfig {
        cir: config.cir as i64,
        cburst: config.cburst as i64,
        pir: config.pir as i64,
        pburst: config.pburst as i64,
        eburst: config.eburst as i64,
    }
}

/// A meter's counts as a message, green first.
pub(super) fn meter_counter_message(counts: [CounterData; 3]) -> v1::MeterCounterData {
    let [green, yellow, red] = counts.map(|c| Some(counter_message(c)));
    v1::MeterCounterData { green, yellow, red }
}

impl Source<'_> {
    fn size(&self, kind: Kind, id: u32) -> u64 {
        match kind {
            Kind::Counter => self.pipeline.counters.get(&id).map(|c| c.size),
            Kind::Meter { .. } => self.pipeline.meters.get(&id).map(|m| m.array.size),
            Kind::Register => self.pipeline.registers.get(&id).map(|r| r.array.size),
        }
        .unwrap_or(0)
    }

    fn cell(&self, kind: Kind, id: u32, at: u64) -> Result<Entity, Fault> {
        Ok(match kind {
            Kind::Counter => {
                let counter = find(&self.pipeline.counters, id, "counter")?;
                let data = self.switch.counter_read(counter.core, at)?;
                Entity::CounterEntry(v1::CounterEntry {
                    counter_id: id,
                    index: Some(counter.encode_index(at)),
                    data: Some(counter_message(data)),
                })
            }
            Kind::Meter { with_counters } => {
                let array = &find(&self.pipeline.meters, id, "meter")?.array;
                let config = self.switch.meter_read(array.core, at)?;
                let counts = match with_counters {
                    true => Some(self.switch.meter_counts(array.core, at)?),
                    false => None,
                };
                Entity::MeterEntry(v1::MeterEntry {
                    meter_id: id,
                    index: Some(array.encode_index(at)),
                    config: config.map(meter_message),
                    counter_data: counts.map(meter_counter_message),
                })
            }
            Kind::Register => {
                let register = find(&self.pipeline.registers, id, "register")?;
                let value = self.switch.register_read(register.array.core, at)?;
                Entity::RegisterEntry(v1::RegisterEntry {
                    register_id: id,
                    index: Some(register.array.encode_index(at)),
                    data: Some(register.data.encode(&mut std::iter::once(value))),
                })
            }
        })
    }
}

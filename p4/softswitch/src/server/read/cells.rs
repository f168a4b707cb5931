//! Reads indirect counters, meters and registers.

use p4runtime::v1::{self, entity::Entity};

use super::{Cursor, Source, push};
use crate::control::{CounterData, MeterConfig};
use crate::server::fault::Fault;
use crate::server::pipeline::{Pipeline, find};

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
    Meter,
    Register,
}

impl CellCursor {
    pub(super) fn counters(
        pipeline: &Pipeline,
        request: &v1::CounterEntry,
    ) -> Result<Cursor, Fault> {
        let sizes = pipeline
            .counters
            .iter()
            .map(|(id, c)| (*id, c.size))
            .collect();
        if request.counter_id != 0 {
            find(&pipeline.counters, request.counter_id, "counter")?;
        }
        Self::open(
            Kind::Counter,
            sizes,
            request.counter_id,
            request.index.as_ref(),
        )
    }

    pub(super) fn meters(pipeline: &Pipeline, request: &v1::MeterEntry) -> Result<Cursor, Fault> {
        if request.counter_data.is_some() {
            return Err(Fault::unimplemented("meters have no counters per colour"));
        }
        let sizes = pipeline
            .meters
            .iter()
            .map(|(id, m)| (*id, m.array.size))
            .collect();
        if request.meter_id != 0 {
            find(&pipeline.meters, request.meter_id, "meter")?;
        }
        Self::open(Kind::Meter, sizes, request.meter_id, request.index.as_ref())
    }

    pub(super) fn registers(
        pipeline: &Pipeline,
        request: &v1::RegisterEntry,
    ) -> Result<Cursor, Fault> {
        let sizes = pipeline
            .registers
            .iter()
            .map(|(id, r)| (*id, r.array.size))
            .collect();
        if request.register_id != 0 {
            find(&pipeline.registers, request.register_id, "register")?;
        }
        Self::open(
            Kind::Register,
            sizes,
            request.register_id,
            request.index.as_ref(),
        )
    }

    fn open(
        kind: Kind,
        sizes: Vec<(u32, u64)>,
        wanted: u32,
        index: Option<&v1::Index>,
    ) -> Result<Cursor, Fault> {
        let single = index
            .map(|i| {
                u64::try_from(i.index)
                    .map_err(|_| Fault::invalid(format!("index {} is negative", i.index)))
            })
            .transpose()?;
        if let Some(at) = single {
            let Some((_, size)) = sizes.iter().find(|(id, _)| *id == wanted) else {
                return Err(Fault::invalid("an index without an id selects nothing"));
            };
            if at >= *size {
                return Err(Fault::out_of_range(format!(
                    "there is no index {at}; the size is {size}"
                )));
            }
        }
        let arrays = sizes
            .iter()
            .rev()
            .map(|(id, _)| *id)
            .filter(|id| [0, *id].contains(&wanted));
        Ok(Cursor::Cells(CellCursor {
            kind,
            arrays: arrays.collect(),
            at: single.unwrap_or(0),
            single,
        }))
    }

    /// Reads up to about `limit` cells; whether any are left.
    pub(super) fn fill(
        &mut self,
        source: &Source<'_>,
        limit: usize,
        out: &mut Vec<v1::Entity>,
    ) -> Result<bool, Fault> {
        while let Some(id) = self.arrays.last().copied() {
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
        eburst: 0,
    }
}

impl Source<'_> {
    fn size(&self, kind: Kind, id: u32) -> u64 {
        match kind {
            Kind::Counter => self.pipeline.counters.get(&id).map(|c| c.size),
            Kind::Meter => self.pipeline.meters.get(&id).map(|m| m.array.size),
            Kind::Register => self.pipeline.registers.get(&id).map(|r| r.array.size),
        }
        .unwrap_or(0)
    }

    fn cell(&self, kind: Kind, id: u32, at: u64) -> Result<Entity, Fault> {
        let index = Some(v1::Index { index: at as i64 });
        Ok(match kind {
            Kind::Counter => {
                let counter = find(&self.pipeline.counters, id, "counter")?;
                let data = self.switch.counter_read(counter.core, at)?;
                let data = Some(counter_message(data));
                Entity::CounterEntry(v1::CounterEntry {
                    counter_id: id,
                    index,
                    data,
                })
            }
            Kind::Meter => {
                let meter = find(&self.pipeline.meters, id, "meter")?;
                let config = self
                    .switch
                    .meter_read(meter.array.core, at)?
                    .map(meter_message);
                let counter_data = None;
                Entity::MeterEntry(v1::MeterEntry {
                    meter_id: id,
                    index,
                    config,
                    counter_data,
                })
            }
            Kind::Register => {
                let register = find(&self.pipeline.registers, id, "register")?;
                let value = self.switch.register_read(register.array.core, at)?;
                let data = Some(register.data.encode(&mut std::iter::once(value)));
                Entity::RegisterEntry(v1::RegisterEntry {
                    register_id: id,
                    index,
                    data,
                })
            }
        })
    }
}

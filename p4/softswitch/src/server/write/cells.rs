//! Indirect counters, meters and registers: arrays of cells that are always there.

use p4runtime::config::v1::meter_spec::Type as MeterType;
use p4runtime::v1;

use super::{Op, Writer, cell_range, only_modify};
use crate::control::{CounterData, MeterConfig};
use crate::server::fault::Fault;
use crate::server::pipeline::find;

/// Reads a counter's value.
pub(crate) fn counter_data(data: &v1::CounterData) -> Result<CounterData, Fault> {
    match (
        u64::try_from(data.packet_count),
        u64::try_from(data.byte_count),
    ) {
        (Ok(packets), Ok(bytes)) => Ok(CounterData { packets, bytes }),
        _ => Err(Fault::invalid("a counter cannot be negative")),
    }
}

/// Reads a meter's rates, as its type allows them.
pub(crate) fn meter_config(
    name: &str,
    kind: MeterType,
    config: &v1::MeterConfig,
) -> Result<MeterConfig, Fault> {
    let part = |value: i64, what: &str| {
        u64::try_from(value).map_err(|_| Fault::invalid(format!("{name}: {what} is negative")))
    };
    let (cir, cburst) = (part(config.cir, "cir")?, part(config.cburst, "cburst")?);
    let (pir, pburst) = (part(config.pir, "pir")?, part(config.pburst, "pburst")?);
    let eburst = part(config.eburst, "eburst")?;
    let single_rate = pir == cir && pburst == cburst;
    match kind {
        MeterType::TwoRateThreeColor if eburst != 0 => Err(Fault::invalid(format!(
            "{name}: a two-rate meter has no eburst"
        ))),
        MeterType::TwoRateThreeColor if pir < cir => Err(Fault::invalid(format!(
            "{name}: pir, {pir}, is below cir, {cir}"
        ))),
        MeterType::SingleRateThreeColor | MeterType::SingleRateTwoColor if !single_rate => {
            Err(Fault::invalid(format!(
                "{name}: a single-rate meter wants pir and pburst equal to cir and cburst"
            )))
        }
        MeterType::SingleRateTwoColor if eburst != 0 => Err(Fault::invalid(format!(
            "{name}: a two-colour meter has no eburst"
        ))),
        _ => Ok(MeterConfig {
            cir,
            cburst,
            pir,
            pburst,
            eburst,
        }),
    }
}

/// Counts per colour can only be reset.
pub(crate) fn check_meter_counters(name: &str, data: &v1::MeterCounterData) -> Result<(), Fault> {
    let counts = [&data.green, &data.yellow, &data.red];
    if counts
        .into_iter()
        .flatten()
        .any(|c| *c != v1::CounterData::default())
    {
        return Err(Fault::invalid(format!(
            "{name}: a meter's counts can only be reset, with zeros"
        )));
    }
    Ok(())
}

impl Writer<'_> {
    pub(super) fn counter(&mut self, op: Op, entry: &v1::CounterEntry) -> Result<(), Fault> {
        let pipeline = self.pipeline;
        let counter = find(&pipeline.counters, entry.counter_id, "counter")?;
        self.author.scope.check_id(entry.counter_id)?;
        only_modify(op, &counter.name)?;
        let cells = cell_range(counter, entry.index.as_ref())?;
        let Some(data) = &entry.data else {
            return Ok(());
        };
        let data = counter_data(data)?;
        let id = counter.core;
        for cell in cells {
            let old = self.switch.counter_read(id, cell)?;
            self.switch.counter_write(id, cell, data)?;
            self.on_undo(move |switch, _| switch.counter_write(id, cell, old));
        }
        Ok(())
    }

    pub(super) fn meter(&mut self, op: Op, entry: &v1::MeterEntry) -> Result<(), Fault> {
        let pipeline = self.pipeline;
        let meter = find(&pipeline.meters, entry.meter_id, "meter")?;
        self.author.scope.check_id(entry.meter_id)?;
        let array = &meter.array;
        only_modify(op, &array.name)?;
        if let Some(counts) = &entry.counter_data {
            check_meter_counters(&array.name, counts)?;
        }
        let cells = cell_range(array, entry.index.as_ref())?;
        let config = entry
            .config
            .as_ref()
            .map(|c| meter_config(&array.name, meter.kind, c))
            .transpose()?;
        let id = array.core;
        for cell in cells {
            let old = self.switch.meter_read(id, cell)?;
            self.switch.meter_write(id, cell, config)?;
            if entry.counter_data.is_some() {
                self.switch.reset_meter_counts(id, cell)?;
            }
            self.on_undo(move |switch, _| switch.meter_write(id, cell, old));
        }
        Ok(())
    }

    pub(super) fn register(&mut self, op: Op, entry: &v1::RegisterEntry) -> Result<(), Fault> {
        let pipeline = self.pipeline;
        let register = find(&pipeline.registers, entry.register_id, "register")?;
        self.author.scope.check_id(entry.register_id)?;
        let array = &register.array;
        only_modify(op, &array.name)?;
        let cells = cell_range(array, entry.index.as_ref())?;
        let data = entry.data.as_ref();
        let data =
            data.ok_or_else(|| Fault::invalid(format!("{}: data is not set", array.name)))?;
        let value = register.data.decode_one(&array.name, data)?;
        let id = array.core;
        for cell in cells {
            let old = self.switch.register_read(id, cell)?;
            self.switch.register_write(id, cell, &value)?;
            self.on_undo(move |switch, _| switch.register_write(id, cell, &old));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use p4runtime::rpc::Code;

    use super::*;

    fn config(cir: i64, cburst: i64, pir: i64, pburst: i64, eburst: i64) -> v1::MeterConfig {
        v1::MeterConfig {
            cir,
            cburst,
            pir,
            pburst,
            eburst,
        }
    }

    #[test]
    fn meter_types_have_their_rules() {
        use MeterType::*;
        let check = |kind, c| meter_config("m", kind, &c).map(|_| ()).map_err(|f| f.code);
        let invalid = Err(Code::InvalidArgument);
        assert_eq!(check(TwoRateThreeColor, config(10, 1, 20, 2, 0)), Ok(()));
        assert_eq!(check(TwoRateThreeColor, config(10, 1, 20, 2, 1)), invalid);
        assert_eq!(check(TwoRateThreeColor, config(20, 1, 10, 2, 0)), invalid);
        assert_eq!(check(TwoRateThreeColor, config(-1, 1, 10, 2, 0)), invalid);
        assert_eq!(
            check(SingleRateThreeColor, config(10, 1, 20, 1, 0)),
            invalid
        );
        assert_eq!(
            check(SingleRateThreeColor, config(10, 1, 10, 2, 0)),
            invalid
        );
        assert_eq!(check(SingleRateTwoColor, config(10, 1, 10, 1, 1)), invalid);
        assert_eq!(check(SingleRateThreeColor, config(10, 1, 10, 1, 5)), Ok(()));
        for kind in [TwoRateThreeColor, SingleRateThreeColor, SingleRateTwoColor] {
            assert_eq!(check(kind, config(10, 1, 10, 1, 0)), Ok(()), "{kind:?}");
        }
    }
}

//! Operations on counters, meters, registers and value sets.

use std::sync::atomic::Ordering;

use super::{ControlError, CounterData, MatchField, MeterConfig, Result, ValueSetMember};
use crate::ids::{CounterId, MeterId, RegisterId, ValueSetId};
use crate::program::code::{limbs, ones};
use crate::program::{CounterInfo, Program, ValueSetInfo};
use crate::state::{SetMatch, ValueSet};
use crate::switch::Switch;
use crate::value::Value;

pub(super) fn cell<'a, T>(cells: &'a [T], index: u64, what: &str) -> Result<&'a T> {
    usize::try_from(index)
        .ok()
        .and_then(|i| cells.get(i))
        .ok_or_else(|| beyond(cells.len(), index, what))
}

pub(super) fn cell_mut<'a, T>(cells: &'a mut [T], index: u64, what: &str) -> Result<&'a mut T> {
    let size = cells.len();
    usize::try_from(index)
        .ok()
        .and_then(|i| cells.get_mut(i))
        .ok_or_else(|| beyond(size, index, what))
}

fn beyond(size: usize, index: u64, what: &str) -> ControlError {
    ControlError::Index {
        what: what.to_owned(),
        size,
        index,
    }
}

fn counter_info(program: &Program, counter: CounterId) -> Result<&CounterInfo> {
    let unknown = ControlError::UnknownId {
        kind: "counter",
        id: counter.0,
    };
    let info = program.counters().get(counter.index()).ok_or(unknown)?;
    match info.is_indirect() {
        true => Ok(info),
        false => Err(ControlError::Invalid(format!(
            "counter {} is direct",
            info.name
        ))),
    }
}

pub(super) fn meter_name(program: &Program, meter: MeterId) -> Result<&str> {
    let unknown = ControlError::UnknownId {
        kind: "meter",
        id: meter.0,
    };
    let info = program.meters().get(meter.index()).ok_or(unknown)?;
    match info.is_indirect() {
        true => Ok(&info.name),
        false => Err(ControlError::Invalid(format!(
            "meter {} is direct",
            info.name
        ))),
    }
}

/// RFC 2698: the peak rate is not below the committed one.
pub(super) fn check_meter(config: Option<&MeterConfig>) -> Result<()> {
    match config {
        Some(config) if config.pir < config.cir => Err(ControlError::Invalid(format!(
            "the peak rate {} is below the committed rate {}",
            config.pir, config.cir
        ))),
        _ => Ok(()),
    }
}

impl Switch {
    /// Reads a cell of an indirect counter.
    ///
    /// # Errors
    /// When there is no such counter or cell.
    pub fn counter_read(&self, counter: CounterId, index: u64) -> Result<CounterData> {
        let at = self.counter_cell(counter, index)?;
        Ok(self.sum(|ledger| ledger.counters[counter.index()][at]))
    }

    /// Sets a cell of an indirect counter.
    ///
    /// # Errors
    /// When there is no such counter or cell.
    pub fn counter_write(
        &mut self,
        counter: CounterId,
        index: u64,
        data: CounterData,
    ) -> Result<()> {
        let at = self.counter_cell(counter, index)?;
        self.set_sum(data, |ledger, data| {
            ledger.counters[counter.index()][at] = data
        });
        Ok(())
    }

    /// Where a cell of an indirect counter is.
    fn counter_cell(&self, counter: CounterId, index: u64) -> Result<usize> {
        let (program, _) = self.both()?;
        let info = counter_info(program, counter)?;
        let at = usize::try_from(index).ok().filter(|&at| at < info.size);
        at.ok_or_else(|| beyond(info.size, index, &info.name))
    }

    /// Reads a cell of an indirect meter; `None`: not set, always green.
    ///
    /// # Errors
    /// When there is no such meter or cell.
    pub fn meter_read(&self, meter: MeterId, index: u64) -> Result<Option<MeterConfig>> {
        let (program, state) = self.both()?;
        let name = meter_name(program, meter)?;
        let cell = cell(&state.meters[meter.index()], index, name)?;
        Ok(cell.lock().config())
    }

    /// Sets a cell of an indirect meter, with full buckets; `None`: unset.
    ///
    /// # Errors
    /// When there is no such meter or cell, or the peak rate is below the
    /// committed one.
    pub fn meter_write(
        &mut self,
        meter: MeterId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        check_meter(config.as_ref())?;
        let (program, state) = self.both_mut()?;
        let name = meter_name(program, meter)?;
        let cell = cell_mut(&mut state.meters[meter.index()], index, name)?;
        cell.get_mut().configure(config);
        Ok(())
    }

    /// Reads a cell of a register array.
    ///
    /// # Errors
    /// When there is no such register or cell.
    pub fn register_read(&self, register: RegisterId, index: u64) -> Result<Value> {
        let (program, state) = self.both()?;
        let unknown = ControlError::UnknownId {
            kind: "register",
            id: register.0,
        };
        let info = program.registers().get(register.index()).ok_or(unknown)?;
        let own = &state.registers[register.index()];
        let at = usize::try_from(index).ok().filter(|&i| i < info.size);
        let at = at.ok_or_else(|| beyond(info.size, index, &info.name))?;
        let words = own.cells[at * own.limbs..][..own.limbs].iter();
        let words: Vec<u64> = words.map(|word| word.load(Ordering::Relaxed)).collect();
        Ok(Value::from_limbs(&words))
    }

    /// Writes a cell of a register array.
    ///
    /// # Errors
    /// When there is no such register or cell, or the value is too wide.
    pub fn register_write(
        &mut self,
        register: RegisterId,
        index: u64,
        value: &Value,
    ) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let unknown = ControlError::UnknownId {
            kind: "register",
            id: register.0,
        };
        let info = program.registers().get(register.index()).ok_or(unknown)?;
        let own = &mut state.registers[register.index()];
        let at = usize::try_from(index).ok().filter(|&i| i < info.size);
        let at = at.ok_or_else(|| beyond(info.size, index, &info.name))?;
        if value.bits() > info.width {
            return Err(ControlError::TooWide {
                what: format!("register {}", info.name),
                value: value.to_string(),
                width: info.width,
            });
        }
        for (i, word) in own.cells[at * own.limbs..][..own.limbs]
            .iter_mut()
            .enumerate()
        {
            *word.get_mut() = value.limb(i);
        }
        Ok(())
    }

    /// The members of a parser value set.
    ///
    /// # Errors
    /// When there is no such set.
    pub fn value_set(&self, set: ValueSetId) -> Result<Vec<ValueSetMember>> {
        let (program, state) = self.both()?;
        set_info(program, set)?;
        Ok(state.value_sets[set.index()].members.clone())
    }

    /// Replaces the members of a parser value set.
    ///
    /// # Errors
    /// When there is no such set, or a member does not fit its fields.
    pub fn set_value_set(&mut self, set: ValueSetId, members: &[ValueSetMember]) -> Result<()> {
        let (program, state) = self.both_mut()?;
        let info = set_info(program, set)?;
        let matches = members
            .iter()
            .map(|m| set_match(info, m))
            .collect::<Result<_>>()?;
        state.value_sets[set.index()] = ValueSet {
            members: members.to_vec(),
            matches,
        };
        Ok(())
    }
}

fn set_info(program: &Program, set: ValueSetId) -> Result<&ValueSetInfo> {
    program
        .value_sets()
        .get(set.index())
        .ok_or(ControlError::UnknownId {
            kind: "value set",
            id: set.0,
        })
}

fn set_match(info: &ValueSetInfo, member: &ValueSetMember) -> Result<SetMatch> {
    if member.fields.len() != info.widths.len() {
        return Err(ControlError::KeyLength {
            table: info.name.clone(),
            expected: info.widths.len(),
            got: member.fields.len(),
        });
    }
    let mut out = SetMatch {
        value: Vec::new(),
        mask: Vec::new(),
        ranges: Vec::new(),
    };
    for (field, &width) in member.fields.iter().zip(&info.widths) {
        let n = limbs(width);
        let all = (0..n).map(|i| ones((width - 64 * i as u32).min(64) as u8));
        let zero = || Value::ZERO;
        let (value, mask, range) = match field {
            MatchField::Exact(value) | MatchField::Optional(Some(value)) => (
                value.clone(),
                Value::from_limbs(&all.collect::<Vec<_>>()),
                None,
            ),
            MatchField::Ternary { value, mask } => (value.clone(), mask.clone(), None),
            MatchField::Lpm { value, prefix_len } => {
                let keep = width.saturating_sub(*prefix_len);
                let cut = all.enumerate().map(|(i, ones)| ones & high(keep, i));
                (
                    value.clone(),
                    Value::from_limbs(&cut.collect::<Vec<_>>()),
                    None,
                )
            }
            MatchField::Optional(None) => (zero(), zero(), None),
            MatchField::Range { low, high } => (zero(), zero(), Some((low.clone(), high.clone()))),
        };
        let bounds = range.iter().flat_map(|(low, high)| [low, high]);
        if let Some(wide) = [&value, &mask]
            .into_iter()
            .chain(bounds)
            .find(|v| v.bits() > width)
        {
            return Err(ControlError::TooWide {
                what: format!("value set {}", info.name),
                value: wide.to_string(),
                width,
            });
        }
        if (0..n).any(|i| value.limb(i) & !mask.limb(i) != 0) {
            return Err(bad_member(info, "bits outside the mask are set".to_owned()));
        }
        if let Some((low, high)) = range.as_ref().filter(|(low, high)| low > high) {
            return Err(bad_member(info, format!("{low} is above {high}")));
        }
        out.value.extend((0..n).map(|i| value.limb(i)));
        out.mask.extend((0..n).map(|i| mask.limb(i)));
        out.ranges.push(range);
    }
    Ok(out)
}

fn bad_member(info: &ValueSetInfo, why: String) -> ControlError {
    ControlError::Invalid(format!("a member of value set {}: {why}", info.name))
}

/// Word `i` of a number whose low `bits` are zeros and the others ones.
fn high(bits: u32, i: usize) -> u64 {
    match bits.saturating_sub(64 * i as u32) {
        0 => u64::MAX,
        64.. => 0,
        n => u64::MAX << n,
    }
}

//! Shifts to instructions.

use super::LoadError;
use super::ast::Ex;
use super::code::{Ins, limbs};
use super::emit::{Emitter, Operand};
use super::number::Number;

fn constant(ex: &Ex) -> Option<u64> {
    match ex {
        Ex::Number(n) => n.as_u64(),
        _ => None,
    }
}

impl Emitter<'_> {
    pub(super) fn shift_left(
        &mut self,
        left: &Ex,
        right: &Ex,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        let value = self.value(left, demand)?;
        if let Some(by) = constant(right) {
            let by = by.min(1 << 20) as u32;
            if demand.is_some_and(|k| by >= k) {
                return self.value(&Ex::Number(Number::new(0)), None);
            }
            let exact = value.bits + by;
            let cut = demand.filter(|&k| k < exact);
            let (bits, signed) = cut.map_or((exact, value.signed), |k| (k, false));
            if bits <= 64 {
                let (a, kept) = (value.slot, cut.map_or(64, |k| k as u8));
                return self.op(bits, signed, |d| Ins::ShlImm {
                    d,
                    a,
                    by: by as u8,
                    bits: kept,
                });
            }
        }
        // The amount is not known, or the result is wide.
        let amount = self.narrow(right)?;
        let spread = match constant(right) {
            Some(by) => by.min(1 << 20) as u32,
            None => 1024,
        };
        let exact = value.bits + spread;
        let cut = demand.filter(|&k| k < exact);
        let (bits, signed) = cut.map_or((exact, value.signed), |k| (k, false));
        if bits <= 64 {
            let (a, kept) = (value.slot, cut.map_or(64, |k| k as u8));
            return self.op(bits, signed, |d| Ins::Shl {
                d,
                a,
                b: amount,
                bits: kept,
            });
        }
        let a = self.words(value, limbs(bits))?;
        let shifted = self.wide(bits, signed, |n, d| Ins::WShl { n, d, a, b: amount })?;
        self.limit(shifted, demand, cut.is_none())
    }

    pub(super) fn shift_right(
        &mut self,
        left: &Ex,
        right: &Ex,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        let value = self.exact(left)?;
        if let Some(by) = constant(right)
            && !value.signed
        {
            return self.slice(value, by, demand);
        }
        let (a, n) = (value.slot, limbs(value.bits));
        let Operand { bits, signed, .. } = value;
        if let (Some(by), 1, true) = (constant(right), n, signed) {
            let by = by.min(63) as u8;
            return self.op(bits, true, |d| Ins::ShrSImm { d, a, by });
        }
        let b = self.narrow(right)?;
        match (n, signed) {
            (1, false) => self.op(bits, false, |d| Ins::ShrU { d, a, b }),
            (1, true) => self.op(bits, true, |d| Ins::ShrS { d, a, b }),
            (_, false) => self.wide(bits, false, |n, d| Ins::WShrU { n, d, a, b }),
            (_, true) => self.wide(bits, true, |n, d| Ins::WShrS { n, d, a, b }),
        }
    }

    /// An unsigned value without its low `by` bits.
    fn slice(
        &mut self,
        value: Operand,
        by: u64,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        if by >= u64::from(value.bits) {
            return self.value(&Ex::Number(Number::new(0)), None);
        }
        let by = by as u32;
        let left = value.bits - by;
        let bits = demand.map_or(left, |k| k.min(left));
        let (word, shift) = ((by / 64) as u16, by % 64);
        let a = value.slot + word;
        if shift == 0 {
            let rest = Operand {
                slot: a,
                bits: left,
                signed: false,
            };
            return Ok(rest);
        }
        if shift + bits <= 64 {
            let (by, bits8) = (shift as u8, bits as u8);
            return self.op(bits, false, |d| Ins::Slice {
                d,
                a,
                by,
                bits: bits8,
            });
        }
        let amount = self.number(u64::from(by))?;
        let from = value.slot;
        let shifted = self.wide(value.bits, false, |n, d| Ins::WShrU {
            n,
            d,
            a: from,
            b: amount,
        })?;
        Ok(Operand {
            bits: left,
            ..shifted
        })
    }
}

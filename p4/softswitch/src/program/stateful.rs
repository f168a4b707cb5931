//! Hashes and registers to instructions.

use super::ast::{Ex, lookup};
use super::code::{HashCall, Ins, limbs};
use super::emit::Operand;
use super::primitives::Primitives;
use super::{LoadError, raw};

impl Primitives<'_, '_> {
    pub(super) fn hash(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let base = self.narrow(call, 1)?;
        let name = self.name(call, 2)?;
        let calculation = lookup(
            &self.emitter.names.calculations,
            "calculation",
            name,
            &self.emitter.place,
        )?;
        let max = self.narrow(call, 3)?;
        let x = self.calls.hashes.len() as u16;
        self.calls.hashes.push(HashCall {
            calculation,
            base,
            max,
        });
        self.into(call, 0, (64, false), |d| Ins::Hash { d, x })
    }

    /// An index beyond the array leaves the destination alone.
    pub(super) fn register_read(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let to = self.ex(call, 0)?;
        let name = self.name(call, 1)?;
        let register = lookup(
            &self.emitter.names.registers,
            "register",
            name,
            &self.emitter.place,
        )?;
        let bits = self.emitter.names.register_widths[usize::from(register)];
        let index_ex = self.ex(call, 2)?;
        if let Some(field) = self.destination(&to)?
            && !field.signed
            && field.bits >= bits
            && field.limbs() == limbs(bits)
        {
            let index = self.emitter.narrow(&index_ex)?;
            return self.plain(Ins::RegisterRead {
                d: field.slot,
                register,
                index,
                hold: false,
            });
        }
        let index = Box::new(index_ex);
        self.assign_to(&to, &Ex::Register { register, index })
    }

    pub(super) fn register_write(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let name = self.name(call, 0)?;
        let register = lookup(
            &self.emitter.names.registers,
            "register",
            name,
            &self.emitter.place,
        )?;
        let index = self.narrow(call, 1)?;
        let value = self.ex(call, 2)?;
        let bits = self.emitter.names.register_widths[usize::from(register)];
        let cell = Operand {
            slot: self.emitter.temp(limbs(bits))?,
            bits,
            signed: false,
        };
        self.emitter.assign(cell, &value)?;
        self.plain(Ins::RegisterWrite {
            register,
            index,
            a: cell.slot,
            free: false,
        })
    }
}

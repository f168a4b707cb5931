//! Choices between two values.

use super::LoadError;
use super::ast::Ex;
use super::code::{Ins, limbs};
use super::emit::{Emitter, Operand};

impl Emitter<'_> {
    /// `cond ? left : right`, of numbers.
    pub(super) fn choice(
        &mut self,
        cond: &Ex,
        left: &Ex,
        right: &Ex,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        let mut to_right = Vec::new();
        self.jump_if(cond, false, &mut to_right)?;
        // Compile both sides once to learn their widths.
        let (mark, temps, indexed) = (self.code.len(), self.next_temp, self.indexed.len());
        let l = self.value(left, demand)?;
        let r = self.value(right, demand)?;
        self.code.truncate(mark);
        self.indexed.truncate(indexed);
        self.next_temp = temps;
        let signed = l.signed || r.signed;
        let bits = match signed {
            true => l.signed_bits().max(r.signed_bits()),
            false => l.bits.max(r.bits),
        };
        let result = Operand {
            slot: self.temp(limbs(bits))?,
            bits,
            signed,
        };
        self.side(left, demand, result)?;
        let to_end = self.here() as usize;
        self.emit(Ins::Jump { to: 0 });
        let here = self.here();
        self.land(&to_right, here)?;
        self.side(right, demand, result)?;
        let here = self.here();
        self.land(&[to_end], here)?;
        Ok(result)
    }

    fn side(&mut self, ex: &Ex, demand: Option<u32>, to: Operand) -> Result<(), LoadError> {
        let value = self.value(ex, demand)?;
        let n = to.limbs();
        let a = self.words(value, n)?;
        self.emit(match n {
            1 => Ins::Mov { d: to.slot, a },
            _ => Ins::WMov {
                n: n as u8,
                d: to.slot,
                a,
            },
        });
        Ok(())
    }
}

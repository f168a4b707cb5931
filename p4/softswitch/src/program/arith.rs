//! Operators on two values to instructions.

use super::LoadError;
use super::ast::{Binary, Ex, HeaderRef};
use super::code::{Ins, Slot, limbs};
use super::emit::{Emitter, Operand};

/// Both sides of a comparison, ready to be compared as `n` words.
#[derive(Clone, Copy)]
pub(super) struct Compared {
    /// `Eq`, `Ne`, `Lt` or `Le`.
    pub(super) op: Binary,
    pub(super) n: u8,
    pub(super) a: Slot,
    pub(super) b: Slot,
    pub(super) signed: bool,
}

impl Emitter<'_> {
    pub(super) fn binary(
        &mut self,
        op: Binary,
        left: &Ex,
        right: &Ex,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        match op {
            Binary::Add | Binary::Sub | Binary::Mul => self.arithmetic(op, left, right, demand),
            Binary::Div | Binary::Mod => self.division(op, left, right),
            Binary::And => self.and(left, right, demand),
            Binary::Or | Binary::Xor => self.bitwise(op, left, right, demand),
            Binary::Shl => self.shift_left(left, right, demand),
            Binary::Shr => self.shift_right(left, right, demand),
            Binary::TwoCompMod => {
                let bits = self.constant_width(right)?;
                let value = self.value(left, Some(bits))?;
                self.sign_extend(value, bits)
            }
            Binary::UsatCast | Binary::SatCast => self.saturate(op, left, right),
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => {
                self.compare(op, left, right)
            }
        }
    }

    fn constant_width(&self, ex: &Ex) -> Result<u32, LoadError> {
        match ex {
            Ex::Number(n) => match n.as_u64() {
                Some(bits @ 1..=16_000) => Ok(bits as u32),
                _ => Err(self.unsupported("a cast to this width")),
            },
            _ => Err(self.unsupported("a cast to a width not known at load")),
        }
    }

    pub(super) fn arithmetic(
        &mut self,
        op: Binary,
        left: &Ex,
        right: &Ex,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        let l = self.value(left, demand)?;
        let r = self.value(right, demand)?;
        let any_signed = l.signed || r.signed;
        let (signed, exact) = match op {
            Binary::Mul if any_signed => (true, l.signed_bits() + r.signed_bits()),
            Binary::Mul => (false, l.bits + r.bits),
            Binary::Add if !any_signed => (false, l.bits.max(r.bits) + 1),
            _ => (true, l.signed_bits().max(r.signed_bits()) + 1),
        };
        let cut = demand.filter(|&k| k < exact);
        let (bits, signed) = cut.map_or((exact, signed), |k| (k, false));
        if bits <= 64 {
            let (a, b) = (l.slot, r.slot);
            let kept = cut.map_or(64, |k| k as u8);
            return self.op(bits, signed, |d| match op {
                Binary::Add => Ins::Add {
                    d,
                    a,
                    b,
                    bits: kept,
                },
                Binary::Sub => Ins::Sub {
                    d,
                    a,
                    b,
                    bits: kept,
                },
                _ => Ins::Mul {
                    d,
                    a,
                    b,
                    bits: kept,
                },
            });
        }
        let a = self.words(l, limbs(bits))?;
        let b = self.words(r, limbs(bits))?;
        let value = self.wide(bits, signed, |n, d| match op {
            Binary::Add => Ins::WAdd { n, d, a, b },
            Binary::Sub => Ins::WSub { n, d, a, b },
            _ => Ins::WMul { n, d, a, b },
        })?;
        self.limit(value, demand, cut.is_none())
    }

    /// Of signed numbers, the quotient goes towards zero and the remainder has
    /// the sign of the dividend; that quotient can need one bit more: the least
    /// number by -1.
    fn division(&mut self, op: Binary, left: &Ex, right: &Ex) -> Result<Operand, LoadError> {
        let l = self.exact(left)?;
        let r = self.exact(right)?;
        let signed = l.signed || r.signed;
        let bits = match (op, signed) {
            (Binary::Div, true) => l.signed_bits() + 1,
            (_, true) => l.signed_bits(),
            (Binary::Div, false) => l.bits,
            (_, false) => l.bits.min(r.bits),
        };
        let n = match signed {
            true => limbs(bits.max(r.signed_bits())),
            false => l.limbs().max(r.limbs()),
        };
        let (a, b) = (self.words(l, n)?, self.words(r, n)?);
        if n == 1 {
            return self.op(bits, signed, |d| match (op, signed) {
                (Binary::Div, false) => Ins::DivU { d, a, b },
                (_, false) => Ins::RemU { d, a, b },
                (Binary::Div, true) => Ins::DivS { d, a, b },
                (_, true) => Ins::RemS { d, a, b },
            });
        }
        let value = self.wide(64 * n as u32, signed, |n, d| match (op, signed) {
            (Binary::Div, false) => Ins::WDivU { n, d, a, b },
            (_, false) => Ins::WRemU { n, d, a, b },
            (Binary::Div, true) => Ins::WDivS { n, d, a, b },
            (_, true) => Ins::WRemS { n, d, a, b },
        })?;
        Ok(Operand { bits, ..value })
    }

    fn and(&mut self, left: &Ex, right: &Ex, demand: Option<u32>) -> Result<Operand, LoadError> {
        let (value, mask) = match (left, right) {
            (value, Ex::Number(mask)) | (Ex::Number(mask), value) if !mask.is_negative() => {
                (value, mask)
            }
            _ => return self.bitwise(Binary::And, left, right, demand),
        };
        let bits = demand.unwrap_or(u32::MAX).min(mask.bits()).max(1);
        let value = self.value(value, Some(bits))?;
        if mask.is_ones() {
            return self.truncate(value, bits);
        }
        let mask = self.literal(mask, Some(bits))?;
        let n = limbs(bits);
        let (a, b) = (self.words(value, n)?, self.words(mask, n)?);
        match n {
            1 => self.op(bits, false, |d| Ins::And { d, a, b }),
            _ => self.wide(bits, false, |n, d| Ins::WAnd { n, d, a, b }),
        }
    }

    fn bitwise(
        &mut self,
        op: Binary,
        left: &Ex,
        right: &Ex,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        let l = self.value(left, demand)?;
        let r = self.value(right, demand)?;
        let signed = l.signed || r.signed;
        let bits = match (op, signed) {
            (_, true) => l.signed_bits().max(r.signed_bits()),
            (Binary::And, false) => l.bits.min(r.bits),
            (_, false) => l.bits.max(r.bits),
        };
        let n = limbs(bits);
        if n == 1 {
            let (a, b) = (l.slot, r.slot);
            return self.op(bits, signed, |d| match op {
                Binary::And => Ins::And { d, a, b },
                Binary::Or => Ins::Or { d, a, b },
                _ => Ins::Xor { d, a, b },
            });
        }
        let (a, b) = (self.words(l, n)?, self.words(r, n)?);
        self.wide(bits, signed, |n, d| match op {
            Binary::And => Ins::WAnd { n, d, a, b },
            Binary::Or => Ins::WOr { n, d, a, b },
            _ => Ins::WXor { n, d, a, b },
        })
    }

    fn saturate(&mut self, op: Binary, left: &Ex, right: &Ex) -> Result<Operand, LoadError> {
        let bits = self.constant_width(right)?;
        let value = self.exact(left)?;
        let to_signed = op == Binary::SatCast;
        if !to_signed && !value.signed && value.bits <= bits
            || to_signed && value.signed_bits() <= bits
        {
            return Ok(value);
        }
        let (a, kept) = (value.slot, bits as u8);
        if !to_signed && !value.signed && value.bits <= 64 {
            return self.op(bits, false, |d| Ins::UsatU { d, a, bits: kept });
        }
        if value.signed_bits() <= 64 && bits <= 64 {
            return self.op(bits, to_signed, |d| match to_signed {
                true => Ins::SatS { d, a, bits: kept },
                false => Ins::UsatS { d, a, bits: kept },
            });
        }
        let n = limbs(value.signed_bits().max(bits + 1));
        let a = self.words(value, n)?;
        let full = self.wide(64 * n as u32, to_signed, |n, d| match to_signed {
            true => Ins::WSat {
                n,
                bits: bits as u16,
                d,
                a,
            },
            false => Ins::WUsat {
                n,
                bits: bits as u16,
                d,
                a,
            },
        })?;
        Ok(Operand { bits, ..full })
    }

    fn compare(&mut self, op: Binary, left: &Ex, right: &Ex) -> Result<Operand, LoadError> {
        if left.is_headers() || right.is_headers() {
            return self.compare_headers(op, left, right);
        }
        let compared = self.compared(op, left, right)?;
        self.comparison(compared)
    }

    /// Computes both sides of a comparison to the same form. `>` and `>=`
    /// become `<` and `<=`.
    pub(super) fn compared(
        &mut self,
        op: Binary,
        left: &Ex,
        right: &Ex,
    ) -> Result<Compared, LoadError> {
        let (op, left, right) = match op {
            Binary::Gt => (Binary::Lt, right, left),
            Binary::Ge => (Binary::Le, right, left),
            _ => (op, left, right),
        };
        let l = self.exact(left)?;
        let r = self.exact(right)?;
        let signed = l.signed || r.signed;
        let equality = matches!(op, Binary::Eq | Binary::Ne);
        let bits = match signed || !equality && l.bits.max(r.bits) > 64 {
            true => l.signed_bits().max(r.signed_bits()),
            false => l.bits.max(r.bits),
        };
        let n = limbs(bits);
        let (a, b) = (self.words(l, n)?, self.words(r, n)?);
        Ok(Compared {
            op,
            n: n as u8,
            a,
            b,
            signed,
        })
    }

    /// The result of a comparison as a number.
    pub(super) fn comparison(&mut self, compared: Compared) -> Result<Operand, LoadError> {
        let Compared {
            op,
            n,
            a,
            b,
            signed,
        } = compared;
        self.op(1, false, |d| match (op, n, signed) {
            (Binary::Eq, 1, _) => Ins::Eq { d, a, b },
            (Binary::Ne, 1, _) => Ins::Ne { d, a, b },
            (Binary::Lt, 1, false) => Ins::LtU { d, a, b },
            (Binary::Lt, 1, true) => Ins::LtS { d, a, b },
            (_, 1, false) => Ins::LeU { d, a, b },
            (_, 1, true) => Ins::LeS { d, a, b },
            (Binary::Eq, ..) => Ins::WEq { n, d, a, b },
            (Binary::Ne, ..) => Ins::WNe { n, d, a, b },
            (Binary::Lt, ..) => Ins::WLt { n, d, a, b },
            _ => Ins::WLe { n, d, a, b },
        })
    }

    /// Headers are equal when both are invalid, or both valid with the same
    /// fields; unions and stacks when all their headers are.
    fn compare_headers(&mut self, op: Binary, left: &Ex, right: &Ex) -> Result<Operand, LoadError> {
        let (left, right) = (self.header_refs(left)?, self.header_refs(right)?);
        if left.len() != right.len() {
            return Err(self.invalid("a comparison of headers that differ in kind"));
        }
        let mut all: Option<Operand> = None;
        for (left, right) in left.iter().zip(&right) {
            let equal = match (left, right) {
                (HeaderRef::Fixed(a), HeaderRef::Fixed(b)) => {
                    let (a, b) = (*a, *b);
                    self.op(1, false, |d| Ins::HeaderEq { d, a, b })?
                }
                _ => {
                    let (a, b) = (self.numbered(left)?, self.numbered(right)?);
                    self.op(1, false, |d| Ins::NumberedEq { d, a, b })?
                }
            };
            all = Some(match all {
                None => equal,
                Some(all) => {
                    let (a, b) = (all.slot, equal.slot);
                    self.op(1, false, |d| Ins::And { d, a, b })?
                }
            });
        }
        let equal = all.ok_or_else(|| self.invalid("a comparison of no headers"))?;
        match op {
            Binary::Eq => Ok(equal),
            Binary::Ne => self.op(1, false, |d| Ins::NotBool { d, a: equal.slot }),
            _ => Err(self.invalid("headers have no order")),
        }
    }
}

//! Conditions to jumps.
//!
//! `and`, `or` and `not` become control flow: the right side of an `and` is
//! not computed when the left one decides. Nothing that a condition computes
//! has side effects, so that this cannot be seen.

use super::LoadError;
use super::ast::{Binary, Ex, Unary};
use super::code::{Ins, Pc};
use super::emit::Emitter;

impl Emitter<'_> {
    /// Emits jumps that are taken when the condition is `when`, and falls
    /// through otherwise. Where they go is for the caller to say, with
    /// [`Self::land`]: `jumps` collects their places.
    pub(super) fn jump_if(
        &mut self,
        ex: &Ex,
        when: bool,
        jumps: &mut Vec<usize>,
    ) -> Result<(), LoadError> {
        match ex {
            Ex::Unary(Unary::Not, inner) => self.jump_if(inner, !when, jumps),
            Ex::Bool(value) => {
                if *value == when {
                    jumps.push(self.code.len());
                    self.emit(Ins::Jump { to: 0 });
                }
                Ok(())
            }
            Ex::Binary(op @ (Binary::And | Binary::Or), left, right) => {
                // `and` is false, and `or` is true, as soon as one side is.
                if when == (*op == Binary::Or) {
                    self.jump_if(left, when, jumps)?;
                    return self.jump_if(right, when, jumps);
                }
                let mut past = Vec::new();
                self.jump_if(left, !when, &mut past)?;
                self.jump_if(right, when, jumps)?;
                let here = self.here();
                self.land(&past, here)
            }
            Ex::Binary(
                op @ (Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge),
                left,
                right,
            ) if !left.is_headers() && !right.is_headers() => {
                self.jump_if_compared(*op, left, right, when, jumps)
            }
            _ => {
                let a = self.exact(ex)?.slot;
                jumps.push(self.code.len());
                self.emit(match when {
                    true => Ins::JumpIfNotZero { a, to: 0 },
                    false => Ins::JumpIfZero { a, to: 0 },
                });
                Ok(())
            }
        }
    }

    fn jump_if_compared(
        &mut self,
        op: Binary,
        left: &Ex,
        right: &Ex,
        when: bool,
        jumps: &mut Vec<usize>,
    ) -> Result<(), LoadError> {
        let compared = self.compared(op, left, right)?;
        let (a, b, to) = (compared.a, compared.b, 0);
        if compared.n > 1 {
            let a = self.comparison(compared)?.slot;
            jumps.push(self.code.len());
            self.emit(match when {
                true => Ins::JumpIfNotZero { a, to: 0 },
                false => Ins::JumpIfZero { a, to: 0 },
            });
            return Ok(());
        }
        jumps.push(self.code.len());
        // Not a < b is b <= a, not a <= b is b < a.
        self.emit(match (compared.op, when, compared.signed) {
            (Binary::Eq, true, _) | (Binary::Ne, false, _) => Ins::JumpEq { a, b, to },
            (Binary::Eq, false, _) | (Binary::Ne, true, _) => Ins::JumpNe { a, b, to },
            (Binary::Lt, true, false) => Ins::JumpLtU { a, b, to },
            (Binary::Lt, false, false) => Ins::JumpLeU { a: b, b: a, to },
            (Binary::Lt, true, true) => Ins::JumpLtS { a, b, to },
            (Binary::Lt, false, true) => Ins::JumpLeS { a: b, b: a, to },
            (_, true, false) => Ins::JumpLeU { a, b, to },
            (_, false, false) => Ins::JumpLtU { a: b, b: a, to },
            (_, true, true) => Ins::JumpLeS { a, b, to },
            (_, false, true) => Ins::JumpLtS { a: b, b: a, to },
        });
        Ok(())
    }

    /// Makes jumps go to `to`.
    pub(super) fn land(&mut self, jumps: &[usize], to: Pc) -> Result<(), LoadError> {
        for &at in jumps {
            self.code[at] = self.code[at]
                .with_target(to)
                .ok_or_else(|| self.unsupported("a program with this many instructions"))?;
        }
        self.fence();
        Ok(())
    }
}

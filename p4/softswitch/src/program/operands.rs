//! What instructions work on, and where jumps go.

use super::code::{Ins, Pc, Slot};

/// A field at the same place in each element of a header array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indexed {
    pub(crate) base: Slot,
    /// Words between elements.
    pub(crate) stride: u16,
    /// Elements.
    pub(crate) count: u16,
    /// Words of the field.
    pub(crate) limbs: u8,
}

/// Operands of a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashCall {
    pub(crate) calculation: u16,
    pub(crate) base: Slot,
    pub(crate) max: Slot,
}

/// A message for the log and the words to put in.
#[derive(Clone, Debug)]
pub(crate) struct LogCall {
    pub(crate) format: String,
    pub(crate) args: Vec<(Slot, u8)>,
}

impl Ins {
    /// Where a jump goes.
    pub(crate) fn target(self) -> Option<Pc> {
        use Ins::*;
        match self {
            Jump { to } | Loop { to } | JumpIfZero { to, .. } | JumpIfNotZero { to, .. } => {
                Some(to)
            }
            JumpEq { to, .. }
            | JumpNe { to, .. }
            | JumpLtU { to, .. }
            | JumpLeU { to, .. }
            | JumpLtS { to, .. }
            | JumpLeS { to, .. }
            | JumpIs { to, .. }
            | JumpIsNot { to, .. } => Some(to.into()),
            _ => None,
        }
    }

    /// The jump, to another place; `None`: that place is too far.
    pub(crate) fn with_target(self, goal: Pc) -> Option<Ins> {
        use Ins::*;
        let near = u16::try_from(goal).ok();
        Some(match self {
            Jump { .. } => Jump { to: goal },
            Loop { .. } => Loop { to: goal },
            JumpIfZero { a, .. } => JumpIfZero { a, to: goal },
            JumpIfNotZero { a, .. } => JumpIfNotZero { a, to: goal },
            JumpEq { a, b, .. } => JumpEq { a, b, to: near? },
            JumpNe { a, b, .. } => JumpNe { a, b, to: near? },
            JumpLtU { a, b, .. } => JumpLtU { a, b, to: near? },
            JumpLeU { a, b, .. } => JumpLeU { a, b, to: near? },
            JumpLtS { a, b, .. } => JumpLtS { a, b, to: near? },
            JumpLeS { a, b, .. } => JumpLeS { a, b, to: near? },
            JumpIs { a, value, .. } => JumpIs {
                a,
                value,
                to: near?,
            },
            JumpIsNot { a, value, .. } => JumpIsNot {
                a,
                value,
                to: near?,
            },
            other => other,
        })
    }

    /// The conditional jump that is taken when this one is not.
    pub(crate) fn inverse(self) -> Option<Ins> {
        use Ins::*;
        Some(match self {
            JumpIfZero { a, to } => JumpIfNotZero { a, to },
            JumpIfNotZero { a, to } => JumpIfZero { a, to },
            JumpEq { a, b, to } => JumpNe { a, b, to },
            JumpNe { a, b, to } => JumpEq { a, b, to },
            // Not a < b is b <= a, not a <= b is b < a.
            JumpLtU { a, b, to } => JumpLeU { a: b, b: a, to },
            JumpLeU { a, b, to } => JumpLtU { a: b, b: a, to },
            JumpLtS { a, b, to } => JumpLeS { a: b, b: a, to },
            JumpLeS { a, b, to } => JumpLtS { a: b, b: a, to },
            _ => return None,
        })
    }

    /// Hands out the operands that are read and are one word whatever they name, for others to be
    /// put in their places.
    pub(crate) fn for_each_word_read(&mut self, mut each: impl FnMut(&mut Slot)) {
        use Ins::*;
        match self {
            Mov { a, .. }
            | Mask { a, .. }
            | Sext { a, .. }
            | Not { a, .. }
            | ShlImm { a, .. }
            | Slice { a, .. }
            | ShrSImm { a, .. }
            | NonZero { a, .. }
            | NotBool { a, .. }
            | UsatU { a, .. }
            | UsatS { a, .. }
            | SatS { a, .. }
            | JumpIfZero { a, .. }
            | JumpIfNotZero { a, .. }
            | Truncate { a }
            | Assert { a } => each(a),
            Add { a, b, .. }
            | Sub { a, b, .. }
            | Mul { a, b, .. }
            | DivU { a, b, .. }
            | RemU { a, b, .. }
            | DivS { a, b, .. }
            | RemS { a, b, .. }
            | And { a, b, .. }
            | Or { a, b, .. }
            | Xor { a, b, .. }
            | Shl { a, b, .. }
            | ShrU { a, b, .. }
            | ShrS { a, b, .. }
            | Eq { a, b, .. }
            | Ne { a, b, .. }
            | LtU { a, b, .. }
            | LeU { a, b, .. }
            | LtS { a, b, .. }
            | LeS { a, b, .. }
            | JumpEq { a, b, .. }
            | JumpNe { a, b, .. }
            | JumpLtU { a, b, .. }
            | JumpLeU { a, b, .. }
            | JumpLtS { a, b, .. }
            | JumpLeS { a, b, .. } => {
                each(a);
                each(b);
            }
            WShl { b, .. } | WShrU { b, .. } | WShrS { b, .. } => each(b),
            Random { lo, hi, .. } => {
                each(lo);
                each(hi);
            }
            RegisterRead { index, .. }
            | RegisterWrite { index, .. }
            | Count { index, .. }
            | Meter { index, .. } => each(index),
            Clone { session, .. } => each(session),
            _ => {}
        }
    }

    /// The word that an arithmetic instruction with a one-word result writes.
    pub(crate) fn destination(&mut self) -> Option<&mut Slot> {
        use Ins::*;
        match self {
            Mov { d, .. }
            | Mask { d, .. }
            | Sext { d, .. }
            | Add { d, .. }
            | Sub { d, .. }
            | Mul { d, .. }
            | DivU { d, .. }
            | RemU { d, .. }
            | And { d, .. }
            | Or { d, .. }
            | Xor { d, .. }
            | Not { d, .. }
            | Shl { d, .. }
            | ShlImm { d, .. }
            | ShrU { d, .. }
            | ShrS { d, .. }
            | Slice { d, .. }
            | ShrSImm { d, .. }
            | Eq { d, .. }
            | Ne { d, .. }
            | LtU { d, .. }
            | LeU { d, .. }
            | LtS { d, .. }
            | LeS { d, .. }
            | NonZero { d, .. }
            | NotBool { d, .. }
            | UsatU { d, .. }
            | UsatS { d, .. }
            | SatS { d, .. }
            | WEq { d, .. }
            | WNe { d, .. }
            | WLt { d, .. }
            | WLe { d, .. }
            | WNonZero { d, .. }
            | HeaderEq { d, .. }
            | NumberedEq { d, .. }
            | DivS { d, .. }
            | RemS { d, .. } => Some(d),
            _ => None,
        }
    }
}

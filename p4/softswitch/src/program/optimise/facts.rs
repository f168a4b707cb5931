//! What is known of words where code runs: forwards through the program.

use super::effects::{Access, accesses};
use crate::program::Program;
use crate::program::code::{Ins, Slot};

/// Nothing is known.
const NOTHING: u32 = 0;
/// The word is the same as another.
const SAME: u32 = 1 << 16;
/// The word is not the constant in another.
const NOT: u32 = 2 << 16;

/// What is known of each word below the constants.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Facts(Vec<u32>);

/// Constants, and what words can hold.
pub(super) struct Words<'p> {
    program: &'p Program,
    base: usize,
    /// Words that the code uses below the constants.
    used: usize,
    constants: &'p [u64],
    /// Words that hold 0 or 1.
    bits: Vec<bool>,
    pub(super) zero: Option<Slot>,
    pub(super) one: Option<Slot>,
}

impl<'p> Words<'p> {
    pub(super) fn new(program: &'p Program, code: &[Ins]) -> Self {
        let (base, constants) = (program.parts.constants_base, &program.parts.constants);
        let find = |value: u64| {
            let at = constants.iter().position(|c| *c == value)?;
            Some((base + at) as Slot)
        };
        let used = used(program, code);
        let mut bits = vec![false; used];
        for header in &program.headers {
            bits[usize::from(header.valid)] = true;
            for field in header
                .fields
                .iter()
                .filter(|f| f.bits == 1 && !f.signed && !f.varbit)
            {
                bits[usize::from(field.slot)] = true;
            }
        }
        Words {
            program,
            base,
            used,
            constants,
            bits,
            zero: find(0),
            one: find(1),
        }
    }

    /// The value of a word that never changes.
    pub(super) fn constant(&self, slot: Slot) -> Option<u64> {
        self.constants
            .get(usize::from(slot).checked_sub(self.base)?)
            .copied()
    }

    /// Nothing known.
    pub(super) fn nothing(&self) -> Facts {
        Facts(vec![NOTHING; self.used])
    }
}

/// Words below the constants that the code uses.
pub(super) fn used(program: &Program, code: &[Ins]) -> usize {
    let mut used = program.packet_words;
    for &ins in code {
        accesses(program, ins, &mut |_, slot, n| {
            let end = usize::from(slot) + n;
            if end <= program.parts.constants_base {
                used = used.max(end);
            }
        });
    }
    used
}

impl Facts {
    /// The word that holds the same: a constant if there is one.
    pub(super) fn root(&self, slot: Slot) -> Slot {
        match self.0.get(usize::from(slot)) {
            Some(&fact) if fact & SAME != 0 => fact as u16,
            _ => slot,
        }
    }

    /// Keeps what both know; whether that is less than before.
    pub(super) fn meet(&mut self, other: &Facts) -> bool {
        let mut less = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            if *own != *other && *own != NOTHING {
                *own = NOTHING;
                less = true;
            }
        }
        less
    }

    pub(super) fn forget(&mut self, first: Slot, n: usize) {
        let (from, to) = (
            usize::from(first),
            (usize::from(first) + n).min(self.0.len()),
        );
        for fact in &mut self.0 {
            if *fact & SAME != 0 && (from..to).contains(&usize::from(*fact as u16)) {
                *fact = NOTHING;
            }
        }
        if from < to {
            self.0[from..to].fill(NOTHING);
        }
    }

    pub(super) fn set_same(&mut self, slot: Slot, other: Slot) {
        let other = self.root(other);
        if other != slot
            && let Some(fact) = self.0.get_mut(usize::from(slot))
        {
            *fact = SAME | u32::from(other);
        }
    }

    fn set_not(&mut self, words: &Words<'_>, slot: Slot, constant: Slot) {
        let slot = self.root(slot);
        let is_bit = words.bits.get(usize::from(slot)) == Some(&true);
        let other = match words.constant(constant) {
            Some(0) if is_bit => words.one,
            Some(1) if is_bit => words.zero,
            _ => None,
        };
        match (other, self.0.get_mut(usize::from(slot))) {
            (Some(other), _) => self.set_same(slot, other),
            (None, Some(fact)) if *fact & SAME == 0 => *fact = NOT | u32::from(constant),
            _ => {}
        }
    }

    /// Whether two words are equal, if that is known.
    fn equal(&self, words: &Words<'_>, a: Slot, b: Slot) -> Option<bool> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Some(true);
        }
        let not = |slot: Slot, value: u64| {
            let fact = self.0.get(usize::from(slot)).copied().unwrap_or(NOTHING);
            let known = fact & NOT != 0 && words.constant(fact as u16) == Some(value);
            known.then_some(false)
        };
        match (words.constant(a), words.constant(b)) {
            (Some(a), Some(b)) => Some(a == b),
            (None, Some(b)) => not(a, b),
            (Some(a), None) => not(b, a),
            (None, None) => None,
        }
    }

    /// Whether a conditional jump is taken, if that is known.
    pub(super) fn taken(&self, words: &Words<'_>, ins: Ins) -> Option<bool> {
        let values = |a, b| {
            let value = |slot| words.constant(self.root(slot));
            Some((value(a)?, value(b)?))
        };
        match ins {
            Ins::JumpIfZero { a, .. } => self.equal(words, a, words.zero?),
            Ins::JumpIfNotZero { a, .. } => self.equal(words, a, words.zero?).map(|e| !e),
            Ins::JumpEq { a, b, .. } => self.equal(words, a, b),
            Ins::JumpNe { a, b, .. } => self.equal(words, a, b).map(|e| !e),
            Ins::JumpLtU { a, b, .. } => values(a, b).map(|(a, b)| a < b),
            Ins::JumpLeU { a, b, .. } => values(a, b).map(|(a, b)| a <= b),
            Ins::JumpLtS { a, b, .. } => values(a, b).map(|(a, b)| (a as i64) < b as i64),
            Ins::JumpLeS { a, b, .. } => values(a, b).map(|(a, b)| a as i64 <= b as i64),
            _ => None,
        }
    }

    /// Learns from a conditional jump that was taken, or was not.
    pub(super) fn decided(&mut self, words: &Words<'_>, ins: Ins, taken: bool) {
        let (a, b, equal) = match (ins, words.zero) {
            (Ins::JumpIfZero { a, .. }, Some(zero)) => (a, zero, taken),
            (Ins::JumpIfNotZero { a, .. }, Some(zero)) => (a, zero, !taken),
            (Ins::JumpEq { a, b, .. }, _) => (a, b, taken),
            (Ins::JumpNe { a, b, .. }, _) => (a, b, !taken),
            _ => return,
        };
        let (a, b) = (self.root(a), self.root(b));
        let (a, b) = match words.constant(a) {
            Some(_) => (b, a),
            None => (a, b),
        };
        if words.constant(b).is_none() {
            return;
        }
        match equal {
            true => {
                // Words that are the same as this one are this constant now.
                for fact in &mut self.0 {
                    if *fact == SAME | u32::from(a) {
                        *fact = SAME | u32::from(b);
                    }
                }
                self.set_same(a, b);
            }
            false => self.set_not(words, a, b),
        }
    }

    /// Goes past an instruction, not a jump or a table.
    pub(super) fn pass(&mut self, words: &Words<'_>, ins: Ins) {
        let source = match ins {
            Ins::Mov { a, .. } => Some(self.root(a)),
            _ => None,
        };
        let program = words.program;
        accesses(program, ins, &mut |access, slot, n| {
            if matches!(access, Access::Write | Access::Maybe) {
                self.forget(slot, n);
            }
        });
        let valid = |h: u16| program.headers[usize::from(h)].valid;
        match (ins, source, words.zero, words.one) {
            (Ins::Mov { d, .. }, Some(source), ..) if source != d => self.set_same(d, source),
            (Ins::Extract { h } | Ins::AddHeader { h }, _, _, Some(one)) => {
                self.set_same(valid(h), one);
            }
            (Ins::RemoveHeader { h }, _, Some(zero), _) => self.set_same(valid(h), zero),
            _ => {}
        }
    }
}

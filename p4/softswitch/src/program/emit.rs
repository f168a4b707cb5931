//! Expressions to instructions.
//!
//! bmv2's expressions are on integers without limits; p4c puts in the masks
//! that make them P4's. So that a 16-bit sum costs one 64-bit addition, the
//! compiler tracks how many bits each value can have, and passes down how many
//! low bits of it are asked for (`demand`): a sum of which 16 bits are asked
//! for can be computed in 64, whatever its operands. Where all bits count (in
//! comparisons, divisions, right shifts, saturation) the operands are computed
//! exactly, in as many words as they can need.

use std::collections::HashMap;

use super::ast::{Binary, Ex, HeaderRef, Names, Part, StackRef, Unary};
use super::code::{Indexed, Ins, Pc, Slot, limbs};
use super::number::Number;
use super::place::Place;
use super::{LoadError, invalid, unsupported};

/// Words for temporaries.
const TEMPS: usize = 2048;
/// Most bits of an intermediate value.
const MAX_BITS: u32 = 255 * 64;

/// A value in the frame: `limbs(bits)` words. An unsigned value is below
/// `2^bits`; a signed one is in two's complement of `bits`, sign included.
/// Under a demand of k bits it only is congruent modulo `2^k`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) slot: Slot,
    pub(super) bits: u32,
    pub(super) signed: bool,
}

impl Operand {
    pub(super) fn limbs(self) -> usize {
        limbs(self.bits)
    }

    pub(super) fn signed_bits(self) -> u32 {
        self.bits + u32::from(!self.signed)
    }
}

pub(super) struct Emitter<'a> {
    pub(super) names: &'a Names,
    pub(super) code: Vec<Ins>,
    pub(super) places: Vec<(Pc, Place)>,
    pub(super) indexed: Vec<Indexed>,
    pub(super) constants: Vec<u64>,
    constant_slots: HashMap<Vec<u64>, Slot>,
    /// Parameters of the action being compiled.
    pub(super) params: Vec<Operand>,
    temps_base: usize,
    pub(super) next_temp: usize,
    /// The last instruction computed the temporary just returned, and nothing
    /// else did.
    fresh: Option<Slot>,
    pub(super) place: String,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(names: &'a Names, param_words: usize) -> Self {
        Emitter {
            names,
            code: Vec::new(),
            places: Vec::new(),
            indexed: Vec::new(),
            constants: Vec::new(),
            constant_slots: HashMap::new(),
            params: Vec::new(),
            temps_base: names.layout.words + param_words,
            next_temp: 0,
            fresh: None,
            place: String::new(),
        }
    }

    /// Where constants begin; they end the frame.
    pub(super) fn constants_base(&self) -> usize {
        self.temps_base + TEMPS
    }

    pub(super) fn here(&self) -> Pc {
        self.code.len() as Pc
    }

    pub(super) fn emit(&mut self, ins: Ins) {
        self.fresh = None;
        self.code.push(ins);
    }

    /// Says where the code that follows comes from.
    pub(super) fn mark(&mut self, place: Place) {
        self.places.push((self.here(), place));
    }

    /// Forgets temporaries: call between statements.
    pub(super) fn release_temps(&mut self) {
        self.next_temp = 0;
        self.fresh = None;
    }

    /// Keeps later instructions from being merged with earlier ones.
    pub(super) fn fence(&mut self) {
        self.fresh = None;
    }

    pub(super) fn unsupported(&self, feature: impl Into<String>) -> LoadError {
        unsupported(&self.place, feature)
    }

    pub(super) fn invalid(&self, why: impl Into<String>) -> LoadError {
        invalid(&self.place, why)
    }

    pub(super) fn temp(&mut self, words: usize) -> Result<Slot, LoadError> {
        let slot = self.temps_base + self.next_temp;
        self.next_temp += words;
        if self.next_temp > TEMPS {
            return Err(self.unsupported("an expression this large"));
        }
        Ok(slot as Slot)
    }

    fn constant(&mut self, words: Vec<u64>) -> Result<Slot, LoadError> {
        if let Some(&slot) = self.constant_slots.get(&words) {
            return Ok(slot);
        }
        let slot = self.constants_base() + self.constants.len();
        if slot + words.len() > usize::from(Slot::MAX) {
            return Err(self.unsupported("a program with this many fields and constants"));
        }
        self.constants.extend(&words);
        self.constant_slots.insert(words, slot as Slot);
        Ok(slot as Slot)
    }

    pub(super) fn number(&mut self, value: u64) -> Result<Slot, LoadError> {
        self.constant(vec![value])
    }

    /// One-word operation into a new temporary.
    pub(super) fn op(
        &mut self,
        bits: u32,
        signed: bool,
        ins: impl FnOnce(Slot) -> Ins,
    ) -> Result<Operand, LoadError> {
        let slot = self.temp(1)?;
        self.code.push(ins(slot));
        self.fresh = Some(slot);
        Ok(Operand { slot, bits, signed })
    }

    /// Operation on `n` words into new temporaries.
    pub(super) fn wide(
        &mut self,
        bits: u32,
        signed: bool,
        ins: impl FnOnce(u8, Slot) -> Ins,
    ) -> Result<Operand, LoadError> {
        if bits > MAX_BITS {
            return Err(self.unsupported(format!("a value of {bits} bits")));
        }
        let n = limbs(bits);
        let slot = self.temp(n)?;
        self.emit(ins(n as u8, slot));
        Ok(Operand { slot, bits, signed })
    }

    /// The operand in exactly `n` words (its low ones, or extended).
    pub(super) fn words(&mut self, operand: Operand, n: usize) -> Result<Slot, LoadError> {
        let from = operand.limbs();
        if from >= n {
            return Ok(operand.slot);
        }
        let slot = self.temp(n)?;
        self.emit(Ins::WExt {
            from: from as u8,
            to: n as u8,
            sign: operand.signed,
            d: slot,
            a: operand.slot,
        });
        Ok(slot)
    }

    /// The low 64 bits of an expression.
    pub(super) fn narrow(&mut self, ex: &Ex) -> Result<Slot, LoadError> {
        Ok(self.value(ex, Some(64))?.slot)
    }

    pub(super) fn exact(&mut self, ex: &Ex) -> Result<Operand, LoadError> {
        self.value(ex, None)
    }

    /// Computes an expression into a field: truncated, and sign-extended if
    /// the field is signed.
    pub(super) fn assign(&mut self, to: Operand, ex: &Ex) -> Result<(), LoadError> {
        let value = self.value(ex, Some(to.bits))?;
        self.store(to, value)
    }

    pub(super) fn store(&mut self, to: Operand, value: Operand) -> Result<(), LoadError> {
        let fits = value.signed == to.signed && value.bits <= to.bits
            || !value.signed && value.bits < to.bits;
        let value = match (fits, to.signed) {
            (true, _) => value,
            (false, true) => self.sign_extend(value, to.bits)?,
            (false, false) => self.truncate(value, to.bits)?,
        };
        let n = to.limbs();
        if n > 1 && value.limbs() < n {
            let (from, to_words) = (value.limbs() as u8, n as u8);
            self.emit(Ins::WExt {
                from,
                to: to_words,
                sign: value.signed,
                d: to.slot,
                a: value.slot,
            });
            return Ok(());
        }
        if n > 1 {
            let a = value.slot;
            self.emit(Ins::WMov {
                n: n as u8,
                d: to.slot,
                a,
            });
            return Ok(());
        }
        if self.fresh == Some(value.slot)
            && let Some(d) = self.code.last_mut().and_then(Ins::destination)
        {
            *d = to.slot;
            self.fresh = None;
            return Ok(());
        }
        self.emit(Ins::Mov {
            d: to.slot,
            a: value.slot,
        });
        Ok(())
    }

    /// The value modulo `2^bits`.
    pub(super) fn truncate(&mut self, value: Operand, bits: u32) -> Result<Operand, LoadError> {
        if !value.signed && value.bits <= bits {
            return Ok(value);
        }
        if bits <= 64 {
            return self.op(bits, false, |d| Ins::Mask {
                d,
                a: value.slot,
                bits: bits as u8,
            });
        }
        let a = self.words(value, limbs(bits))?;
        self.wide(bits, false, |n, d| Ins::WMask {
            n,
            bits: bits as u16,
            d,
            a,
        })
    }

    /// The value in two's complement of `bits`.
    pub(super) fn sign_extend(&mut self, value: Operand, bits: u32) -> Result<Operand, LoadError> {
        if value.signed && value.bits <= bits || !value.signed && value.bits < bits {
            return Ok(Operand {
                signed: value.signed,
                ..value
            });
        }
        if bits <= 64 {
            return self.op(bits, true, |d| Ins::Sext {
                d,
                a: value.slot,
                bits: bits as u8,
            });
        }
        let a = self.words(value, limbs(bits))?;
        self.wide(bits, true, |n, d| Ins::WSext {
            n,
            bits: bits as u16,
            d,
            a,
        })
    }

    /// Compiles an expression. With a demand of k, only the low k bits of the
    /// result mean anything.
    pub(super) fn value(&mut self, ex: &Ex, demand: Option<u32>) -> Result<Operand, LoadError> {
        match ex {
            Ex::Number(number) => self.literal(number, demand),
            Ex::Bool(value) => self.literal(&Number::new(u64::from(*value)), None),
            Ex::Get(header, part) => self.get(header, *part),
            Ex::Local(index) => self
                .params
                .get(*index)
                .copied()
                .ok_or_else(|| self.invalid(format!("there is no action parameter {index}"))),
            Ex::Lookahead { offset, width } => self.lookahead(*offset, *width),
            Ex::Register { register, index } => {
                let index = self.narrow(index)?;
                let bits = self.names.register_widths[usize::from(*register)];
                let d = self.temp(limbs(bits))?;
                self.emit(Ins::RegisterRead {
                    d,
                    register: *register,
                    index,
                    hold: false,
                });
                Ok(Operand {
                    slot: d,
                    bits,
                    signed: false,
                })
            }
            Ex::Union(_) | Ex::UnionAt { .. } => self.union_valid(ex),
            Ex::Unary(op, right) => self.unary(*op, right, demand),
            Ex::Binary(op, left, right) => self.binary(*op, left, right, demand),
            Ex::If(cond, left, right) => self.choice(cond, left, right, demand),
            Ex::Header(_) | Ex::Stack(_) => {
                Err(self.invalid("a header or stack stands where a number should"))
            }
        }
    }

    pub(super) fn literal(
        &mut self,
        number: &Number,
        demand: Option<u32>,
    ) -> Result<Operand, LoadError> {
        let negative = number.is_negative();
        let bits = (number.bits() + u32::from(negative)).max(1);
        if bits > MAX_BITS {
            return Err(self.unsupported(format!("a constant of {bits} bits")));
        }
        match demand {
            Some(k) if k < bits => {
                let mut words = number.words(limbs(bits));
                words.truncate(limbs(k));
                if let (Some(last), rest @ 1..) = (words.last_mut(), k % 64) {
                    *last &= super::code::ones(rest as u8);
                }
                let slot = self.constant(words)?;
                Ok(Operand {
                    slot,
                    bits: k,
                    signed: false,
                })
            }
            _ => {
                let slot = self.constant(number.words(limbs(bits)))?;
                Ok(Operand {
                    slot,
                    bits,
                    signed: negative,
                })
            }
        }
    }

    fn lookahead(&mut self, offset: u32, width: u32) -> Result<Operand, LoadError> {
        if width == 0 || width > MAX_BITS || offset > 0xffff {
            return Err(self.unsupported(format!("a lookahead of {width} bits")));
        }
        let d = self.temp(limbs(width))?;
        self.emit(Ins::Lookahead {
            d,
            offset: offset as u16,
            width: width as u16,
        });
        Ok(Operand {
            slot: d,
            bits: width,
            signed: false,
        })
    }

    /// Where a fixed field lives.
    pub(super) fn field(&self, header: u16, part: Part) -> Operand {
        let layout = &self.names.layout.headers[usize::from(header)];
        match part {
            Part::Valid => Operand {
                slot: layout.valid,
                bits: 1,
                signed: false,
            },
            Part::Field(field) => {
                let field = &layout.fields[usize::from(field)];
                Operand {
                    slot: field.slot,
                    bits: field.bits,
                    signed: field.signed,
                }
            }
        }
    }

    fn get(&mut self, header: &HeaderRef, part: Part) -> Result<Operand, LoadError> {
        let first = self.field(self.names.header_number(header), part);
        let HeaderRef::Fixed(number) = header else {
            let (index, x) = self.element(header, part)?;
            let d = self.temp(first.limbs())?;
            self.emit(Ins::LoadAt { d, index, x });
            return Ok(Operand { slot: d, ..first });
        };
        let is_metadata = self.names.layout.headers[usize::from(*number)].metadata;
        if part == Part::Valid && is_metadata {
            return self.literal(&Number::new(1), None);
        }
        Ok(first)
    }

    /// The index and the place of a field in a stack.
    pub(super) fn element(
        &mut self,
        header: &HeaderRef,
        part: Part,
    ) -> Result<(Slot, u16), LoadError> {
        let (stack, index) = match header {
            HeaderRef::At { stack, index, .. } => (*stack, self.narrow(index)?),
            HeaderRef::Last { stack, .. } => {
                let next = self.names.stack(*stack).next;
                let one = self.number(1)?;
                let last = self.op(64, false, |d| Ins::Sub {
                    d,
                    a: next,
                    b: one,
                    bits: 64,
                })?;
                (*stack, last.slot)
            }
            HeaderRef::Fixed(_) => return Err(self.invalid("a header has no index")),
        };
        let first = self.field(self.names.header_number(header), part);
        let layout = self.names.stack(stack);
        self.indexed.push(Indexed {
            base: first.slot,
            stride: match part {
                Part::Valid => layout.members,
                Part::Field(_) => layout.stride,
            },
            count: layout.depth,
            limbs: first.limbs() as u8,
        });
        Ok((index, self.indexed.len() as u16 - 1))
    }

    /// A union is valid when one of its members is.
    fn union_valid(&mut self, union: &Ex) -> Result<Operand, LoadError> {
        let mut all = self.literal(&Number::new(0), None)?;
        for member in self.header_refs(union)? {
            let b = self.get(&member, Part::Valid)?.slot;
            let a = all.slot;
            all = self.op(1, false, |d| Ins::Or { d, a, b })?;
        }
        Ok(all)
    }

    /// The headers that a header, union or stack consists of.
    pub(super) fn header_refs(&self, ex: &Ex) -> Result<Vec<HeaderRef>, LoadError> {
        Ok(match ex {
            Ex::Header(header) => vec![header.clone()],
            Ex::Union(union) => {
                let members = &self.names.layout.unions[usize::from(*union)].members;
                members.iter().map(|&m| HeaderRef::Fixed(m)).collect()
            }
            Ex::UnionAt { stack, index } => {
                let stack = StackRef::Unions(*stack);
                (0..self.names.stack(stack).members)
                    .map(|member| HeaderRef::At {
                        stack,
                        member,
                        index: index.clone(),
                    })
                    .collect()
            }
            Ex::Stack(stack) => {
                let layout = self.names.stack(*stack);
                (0..layout.depth * layout.members)
                    .map(|i| HeaderRef::Fixed(layout.first + i))
                    .collect()
            }
            _ => return Err(self.invalid("a number stands where headers should")),
        })
    }

    /// The word that holds the number of a header.
    pub(super) fn numbered(&mut self, header: &HeaderRef) -> Result<Slot, LoadError> {
        if let HeaderRef::Fixed(number) = header {
            return self.number(u64::from(*number));
        }
        let (index, x) = self.element(header, Part::Valid)?;
        let d = self.temp(1)?;
        self.emit(Ins::HeaderNumber { d, x, index });
        Ok(d)
    }

    fn unary(&mut self, op: Unary, right: &Ex, demand: Option<u32>) -> Result<Operand, LoadError> {
        match op {
            Unary::Not => {
                let a = self.exact(right)?.slot;
                self.op(1, false, |d| Ins::NotBool { d, a })
            }
            Unary::ToData => self.exact(right),
            Unary::ToBool => {
                let value = self.exact(right)?;
                let (n, a) = (value.limbs(), value.slot);
                match (value.bits, value.signed, n) {
                    (1, false, _) => Ok(value),
                    (_, _, 1) => self.op(1, false, |d| Ins::NonZero { d, a }),
                    _ => self.op(1, false, |d| Ins::WNonZero { n: n as u8, d, a }),
                }
            }
            Unary::LastIndex => {
                let a = self.stack_size(right)?.slot;
                let b = self.number(1)?;
                self.op(64, true, |d| Ins::Sub { d, a, b, bits: 64 })
            }
            Unary::Size => self.stack_size(right),
            Unary::BitNot => {
                let value = self.value(right, demand)?;
                let exact = value.signed_bits();
                let bits = demand.map_or(exact, |k| k.min(exact));
                let signed = bits == exact;
                let a = value.slot;
                if bits <= 64 && value.limbs() == 1 {
                    let kept = if signed { 64 } else { bits as u8 };
                    return self.op(bits, signed, |d| Ins::Not { d, a, bits: kept });
                }
                let a = self.words(value, limbs(bits))?;
                let flipped = self.wide(bits, signed, |n, d| Ins::WNot { n, d, a })?;
                self.limit(flipped, demand, signed)
            }
            Unary::Negate => {
                let zero = Ex::Number(Number::new(0));
                self.arithmetic(Binary::Sub, &zero, right, demand)
            }
        }
    }

    fn stack_size(&mut self, stack: &Ex) -> Result<Operand, LoadError> {
        let Ex::Stack(stack) = stack else {
            return Err(self.invalid("the size is asked of something not a stack"));
        };
        Ok(Operand {
            slot: self.names.stack(*stack).next,
            bits: 32,
            signed: false,
        })
    }

    /// After a wide operation whose exact result would have had more bits:
    /// truncates to the demand.
    pub(super) fn limit(
        &mut self,
        value: Operand,
        demand: Option<u32>,
        exact: bool,
    ) -> Result<Operand, LoadError> {
        match demand {
            Some(k) if !exact => {
                let unsigned = Operand {
                    bits: 64 * value.limbs() as u32,
                    signed: false,
                    ..value
                };
                self.truncate(unsigned, k)
            }
            _ => Ok(value),
        }
    }
}

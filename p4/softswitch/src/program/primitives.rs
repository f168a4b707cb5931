//! Action primitives to instructions.

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value as Json};

use super::ast::{Binary, Ex, HeaderRef, Part, StackRef, lookup, text};
use super::code::{HashCall, Ins, LogCall, Pc, Slot};
use super::emit::{Emitter, Operand};
use super::load::Lists;
use super::place::{self, Place};
use super::{LoadError, raw};

/// What primitives refer to besides words.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) hashes: Vec<HashCall>,
    pub(super) logs: Vec<LogCall>,
}

/// Compiles calls of primitives, within one action or parser state.
pub(super) struct Primitives<'e, 'a> {
    pub(super) emitter: &'e mut Emitter<'a>,
    pub(super) calls: &'e mut Calls,
    pub(super) lists: &'e Lists,
}

impl Primitives<'_, '_> {
    /// Compiles the body of an action. Jumps of `_jump` and `_jump_if_zero`
    /// are to primitive numbers, also back to earlier ones: loops.
    pub(super) fn body(&mut self, body: &[raw::Call], name: &str) -> Result<(), LoadError> {
        let mut starts = Vec::with_capacity(body.len() + 1);
        let mut jumps = Vec::new();
        for (number, call) in body.iter().enumerate() {
            self.emitter.place = format!("action {name}, primitive {number} ({})", call.op);
            self.emitter.release_temps();
            starts.push(self.emitter.here());
            if let Some(source) = place::source(call.source_info.as_ref()) {
                self.emitter.mark(Place::Statement(source));
            }
            match call.op.as_str() {
                "_jump" => {
                    jumps.push((self.emitter.code.len(), self.target(call, 0)?));
                    self.emitter.emit(Ins::Jump { to: 0 });
                }
                "_jump_if_zero" => {
                    let cond = as_condition(self.ex(call, 0)?);
                    let target = self.target(call, 1)?;
                    let mut taken = Vec::new();
                    self.emitter.jump_if(&cond, false, &mut taken)?;
                    jumps.extend(taken.into_iter().map(|at| (at, target)));
                }
                _ => self.call(call)?,
            }
        }
        starts.push(self.emitter.here());
        self.land(&jumps, &starts)
    }

    /// Makes the jumps of an action go where they should. Those that go
    /// back, as loops do, are counted.
    fn land(&mut self, jumps: &[(usize, usize)], starts: &[Pc]) -> Result<(), LoadError> {
        let mut back = Vec::new();
        for &(at, target) in jumps {
            let Some(&goal) = starts.get(target) else {
                return Err(self.emitter.invalid(format!("jump to primitive {target}")));
            };
            if goal as usize > at {
                self.emitter.land(&[at], goal)?;
            } else if matches!(self.emitter.code[at], Ins::Jump { .. }) {
                self.emitter.code[at] = Ins::Loop { to: goal };
            } else {
                back.push((at, goal));
            }
        }
        if back.is_empty() {
            return Ok(());
        }
        // Conditional ones go by way of a counted jump behind the action.
        let over = self.emitter.code.len();
        self.emitter.emit(Ins::Jump { to: 0 });
        for (at, goal) in back {
            let here = self.emitter.here();
            self.emitter.land(&[at], here)?;
            self.emitter.emit(Ins::Loop { to: goal });
        }
        let end = self.emitter.here();
        self.emitter.land(&[over], end)
    }

    fn target(&self, call: &raw::Call, index: usize) -> Result<usize, LoadError> {
        match self.ex(call, index)? {
            Ex::Number(n) => n.as_u64().map(|n| n as usize),
            _ => None,
        }
        .ok_or_else(|| {
            self.emitter
                .unsupported("a jump to a place not known at load")
        })
    }

    fn param<'c>(&self, call: &'c raw::Call, index: usize) -> Result<&'c Json, LoadError> {
        call.parameters.get(index).ok_or_else(|| {
            self.emitter
                .invalid(format!("parameter {index} is missing"))
        })
    }

    pub(super) fn ex(&self, call: &raw::Call, index: usize) -> Result<Ex, LoadError> {
        let param = self.param(call, index)?;
        self.emitter.names.ex(param, &self.emitter.place)
    }

    /// The name in a parameter such as `{"type": "counter_array", "value": ..}`.
    pub(super) fn name<'c>(
        &self,
        call: &'c raw::Call,
        index: usize,
    ) -> Result<&'c Json, LoadError> {
        self.param(call, index)?.get("value").ok_or_else(|| {
            self.emitter
                .invalid(format!("parameter {index} has no value"))
        })
    }

    pub(super) fn narrow(&mut self, call: &raw::Call, index: usize) -> Result<Slot, LoadError> {
        let ex = self.ex(call, index)?;
        self.emitter.narrow(&ex)
    }

    /// Compiles one primitive.
    pub(super) fn call(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        match call.op.as_str() {
            "assign" | "modify_field" | "set" => self.assign(call),
            "add_to_field" => self.update(call, Binary::Add),
            "subtract_from_field" => self.update(call, Binary::Sub),
            "add" => self.compute(call, Binary::Add),
            "subtract" => self.compute(call, Binary::Sub),
            "bit_and" => self.compute(call, Binary::And),
            "bit_or" => self.compute(call, Binary::Or),
            "bit_xor" => self.compute(call, Binary::Xor),
            "shift_left" => self.compute(call, Binary::Shl),
            "shift_right" => self.compute(call, Binary::Shr),
            "assign_VL" => self.assign_varbit(call),
            "assign_header" | "copy_header" => self.assign_header(call),
            "assign_header_stack" | "assign_union_stack" => self.assign_stack(call),
            "assign_union" => self.assign_union(call),
            "add_header" | "add_header_fast" => self.validity(call, true),
            "remove_header" => self.validity(call, false),
            "push" | "pop" => self.push_pop(call),
            "exit" => self.plain(Ins::Exit),
            "no_op" => Ok(()),
            "drop" | "mark_to_drop" => self.plain(Ins::MarkToDrop),
            "assert" | "assume" => {
                let cond = self.ex(call, 0)?;
                let a = self.emitter.exact(&cond)?.slot;
                self.plain(Ins::Assert { a })
            }
            "log_msg" => self.log(call),
            "truncate" => {
                let a = self.narrow(call, 0)?;
                self.plain(Ins::Truncate { a })
            }
            _ => self.extern_call(call),
        }
    }

    pub(super) fn plain(&mut self, ins: Ins) -> Result<(), LoadError> {
        self.emitter.emit(ins);
        Ok(())
    }

    fn extern_call(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        match call.op.as_str() {
            "modify_field_rng_uniform" => {
                let lo = self.narrow(call, 1)?;
                let hi = self.narrow(call, 2)?;
                self.into(call, 0, (64, true), |d| Ins::Random { d, lo, hi })
            }
            "modify_field_with_hash_based_offset" => self.hash(call),
            "count" => {
                let name = self.name(call, 0)?;
                let counter = lookup(
                    &self.emitter.names.counters,
                    "counter",
                    name,
                    &self.emitter.place,
                )?;
                let index = self.narrow(call, 1)?;
                self.plain(Ins::Count { counter, index })
            }
            "execute_meter" => {
                let name = self.name(call, 0)?;
                let meter = lookup(
                    &self.emitter.names.meters,
                    "meter",
                    name,
                    &self.emitter.place,
                )?;
                let index = self.narrow(call, 1)?;
                self.into(call, 2, (2, true), |d| Ins::Meter { d, meter, index })
            }
            "register_read" => self.register_read(call),
            "register_write" => self.register_write(call),
            "generate_digest" => {
                let digest = self.list(call, 1, ListKind::Digest)?;
                self.plain(Ins::Digest { digest })
            }
            "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
                let session = self.narrow(call, 0)?;
                let list = match call.parameters.len() {
                    1 => 0,
                    _ => self.list(call, 1, ListKind::Fields)?,
                };
                self.plain(Ins::Clone { session, list })
            }
            "resubmit" => {
                let list = self.list(call, 0, ListKind::Fields)?;
                self.plain(Ins::Resubmit { list })
            }
            "recirculate" => {
                let list = self.list(call, 0, ListKind::Fields)?;
                self.plain(Ins::Recirculate { list })
            }
            other => Err(self.emitter.unsupported(format!("primitive {other}"))),
        }
    }

    /// Where a parameter that is assigned to lives, if its place is fixed.
    pub(super) fn destination(&self, ex: &Ex) -> Result<Option<Operand>, LoadError> {
        match ex {
            Ex::Get(HeaderRef::Fixed(header), part) => Ok(Some(self.emitter.field(*header, *part))),
            Ex::Get(..) => Ok(None),
            Ex::Local(index) => match self.emitter.params.get(*index) {
                Some(param) => Ok(Some(*param)),
                None => Err(self.emitter.invalid(format!("no action parameter {index}"))),
            },
            // A bool is read as `d2b(field)` but written as the field.
            Ex::Unary(super::ast::Unary::ToBool, inner) => self.destination(inner),
            _ => Err(self
                .emitter
                .invalid("assignment to something that is not a field")),
        }
    }

    pub(super) fn assign_to(&mut self, to: &Ex, from: &Ex) -> Result<(), LoadError> {
        if let Some(operand) = self.destination(to)? {
            if let (Some(d), Some(a)) = (self.varbit(to), self.varbit(from)) {
                return self.copy_varbit(d, a);
            }
            return self.emitter.assign(operand, from);
        }
        let Ex::Get(header, part) = to else {
            return Err(self
                .emitter
                .invalid("assignment to something that is not a field"));
        };
        let number = self.emitter.names.header_number(header);
        let shape = self.emitter.field(number, *part);
        let value = Operand {
            slot: self.emitter.temp(shape.limbs())?,
            ..shape
        };
        self.emitter.assign(value, from)?;
        let (index, x) = self.emitter.element(header, *part)?;
        self.plain(Ins::StoreAt {
            index,
            a: value.slot,
            x,
        })
    }

    fn assign(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let (to, from) = (self.ex(call, 0)?, self.ex(call, 1)?);
        self.assign_to(&to, &from)
    }

    /// P4_14's `field = field op value`.
    fn update(&mut self, call: &raw::Call, op: Binary) -> Result<(), LoadError> {
        let (to, from) = (self.ex(call, 0)?, self.ex(call, 1)?);
        let value = Ex::Binary(op, Box::new(to.clone()), Box::new(from));
        self.assign_to(&to, &value)
    }

    /// P4_14's `field = value op value`.
    fn compute(&mut self, call: &raw::Call, op: Binary) -> Result<(), LoadError> {
        let (to, left, right) = (self.ex(call, 0)?, self.ex(call, 1)?, self.ex(call, 2)?);
        self.assign_to(&to, &Ex::Binary(op, Box::new(left), Box::new(right)))
    }

    /// Length word and words of a varbit field.
    fn varbit(&self, ex: &Ex) -> Option<(Slot, u8)> {
        let Ex::Get(HeaderRef::Fixed(header), Part::Field(field)) = ex else {
            return None;
        };
        let layout = &self.emitter.names.layout.headers[usize::from(*header)];
        let field = &layout.fields[usize::from(*field)];
        field.varbit.then(|| (field.slot - 1, field.limbs() as u8))
    }

    fn copy_varbit(&mut self, to: (Slot, u8), from: (Slot, u8)) -> Result<(), LoadError> {
        let n = to.1.min(from.1).saturating_add(1);
        self.plain(Ins::AssignVl {
            d: to.0,
            a: from.0,
            n,
        })
    }

    fn assign_varbit(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let (to, from) = (self.ex(call, 0)?, self.ex(call, 1)?);
        match (self.varbit(&to), self.varbit(&from)) {
            (Some(to), Some(from)) => self.copy_varbit(to, from),
            _ => Err(self
                .emitter
                .unsupported("assign_VL of something not a varbit field")),
        }
    }

    fn header(&self, call: &raw::Call, index: usize) -> Result<HeaderRef, LoadError> {
        match self.ex(call, index)? {
            Ex::Header(header) => Ok(header),
            _ => Err(self
                .emitter
                .invalid(format!("parameter {index} is not a header"))),
        }
    }

    fn assign_header(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let (to, from) = (self.header(call, 0)?, self.ex(call, 1)?);
        self.copy_header(&to, &from)
    }

    fn copy_header(&mut self, to: &HeaderRef, from: &Ex) -> Result<(), LoadError> {
        let from = match from {
            Ex::Header(from) => from,
            Ex::If(cond, left, right) => return self.copy_either(to, cond, left, right),
            _ => {
                return Err(self
                    .emitter
                    .invalid("a header is assigned what is not a header"));
            }
        };
        let ins = match (to, from) {
            (HeaderRef::Fixed(d), HeaderRef::Fixed(s)) => Ins::CopyHeader { d: *d, s: *s },
            (HeaderRef::Fixed(d), _) => {
                let (index, x) = self.emitter.element(from, Part::Valid)?;
                Ins::CopyFromHeaderAt { d: *d, x, index }
            }
            (_, HeaderRef::Fixed(s)) => {
                let (index, x) = self.emitter.element(to, Part::Valid)?;
                Ins::CopyToHeaderAt { x, s: *s, index }
            }
            _ => {
                let (d, s) = (self.emitter.numbered(to)?, self.emitter.numbered(from)?);
                Ins::CopyNumbered { d, s }
            }
        };
        self.plain(ins)
    }

    /// `to = cond ? left : right`, of headers.
    fn copy_either(
        &mut self,
        to: &HeaderRef,
        cond: &Ex,
        left: &Ex,
        right: &Ex,
    ) -> Result<(), LoadError> {
        let mut to_right = Vec::new();
        self.emitter.jump_if(cond, false, &mut to_right)?;
        self.copy_header(to, left)?;
        let to_end = self.emitter.code.len();
        self.emitter.emit(Ins::Jump { to: 0 });
        let here = self.emitter.here();
        self.emitter.land(&to_right, here)?;
        self.copy_header(to, right)?;
        let here = self.emitter.here();
        self.emitter.land(&[to_end], here)
    }

    fn stack(&self, call: &raw::Call, index: usize) -> Result<StackRef, LoadError> {
        match self.ex(call, index)? {
            Ex::Stack(stack) => Ok(stack),
            _ => Err(self
                .emitter
                .invalid(format!("parameter {index} is not a stack"))),
        }
    }

    fn assign_stack(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let to = self.emitter.names.stack(self.stack(call, 0)?);
        let from = self.emitter.names.stack(self.stack(call, 1)?);
        if to.depth != from.depth || to.members != from.members {
            return Err(self.emitter.invalid(format!(
                "stacks {} and {} differ in size",
                to.name, from.name
            )));
        }
        let count = to.depth * to.members;
        let (d, s, next, from_next) = (to.first, from.first, to.next, from.next);
        for i in 0..count {
            self.emitter.emit(Ins::CopyHeader { d: d + i, s: s + i });
        }
        self.plain(Ins::Mov {
            d: next,
            a: from_next,
        })
    }

    /// Member by member; a member that becomes valid makes the others invalid.
    fn assign_union(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let (to, from) = (self.ex(call, 0)?, self.ex(call, 1)?);
        if !matches!(
            (&to, &from),
            (
                Ex::Union(_) | Ex::UnionAt { .. },
                Ex::Union(_) | Ex::UnionAt { .. }
            )
        ) {
            return Err(self
                .emitter
                .invalid("assign_union of something not a union"));
        }
        let (to, from) = (
            self.emitter.header_refs(&to)?,
            self.emitter.header_refs(&from)?,
        );
        if to.len() != from.len() {
            return Err(self.emitter.invalid("the unions differ in type"));
        }
        for (to, from) in to.iter().zip(from) {
            self.copy_header(to, &Ex::Header(from))?;
        }
        Ok(())
    }

    fn validity(&mut self, call: &raw::Call, add: bool) -> Result<(), LoadError> {
        let header = self.header(call, 0)?;
        let ins = match &header {
            HeaderRef::Fixed(h) if add => Ins::AddHeader { h: *h },
            HeaderRef::Fixed(h) => Ins::RemoveHeader { h: *h },
            _ => {
                let (index, x) = self.emitter.element(&header, Part::Valid)?;
                match add {
                    true => Ins::AddHeaderAt { x, index },
                    false => Ins::RemoveHeaderAt { x, index },
                }
            }
        };
        self.plain(ins)
    }

    fn push_pop(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let stack = self.stack(call, 0)?;
        let count = self.narrow(call, 1)?;
        let stack = self.lists.stack_number(stack);
        self.plain(match call.op.as_str() {
            "push" => Ins::Push { stack, count },
            _ => Ins::Pop { stack, count },
        })
    }

    /// A one-word result of an extern, put where parameter `index` says. With
    /// `keep`, the word holds the parameter's value before the extern runs, so
    /// that an extern that fails can leave it alone.
    pub(super) fn into(
        &mut self,
        call: &raw::Call,
        index: usize,
        (bits, keep): (u32, bool),
        ins: impl FnOnce(Slot) -> Ins,
    ) -> Result<(), LoadError> {
        let to = self.ex(call, index)?;
        let slot = self.emitter.temp(1)?;
        if keep {
            let a = self.emitter.narrow(&to)?;
            self.emitter.emit(Ins::Mov { d: slot, a });
        }
        self.emitter.emit(ins(slot));
        let result = Operand {
            slot,
            bits,
            signed: false,
        };
        match self.destination(&to)? {
            Some(to) => self.emitter.store(to, result),
            None => {
                let Ex::Get(header, part) = &to else {
                    return Err(self.emitter.invalid("a result into something not a field"));
                };
                let shape = self
                    .emitter
                    .field(self.emitter.names.header_number(header), *part);
                let value = Operand {
                    slot: self.emitter.temp(shape.limbs())?,
                    ..shape
                };
                self.emitter.store(value, result)?;
                let (index, x) = self.emitter.element(header, *part)?;
                self.plain(Ins::StoreAt {
                    index,
                    a: value.slot,
                    x,
                })
            }
        }
    }

    fn list(&self, call: &raw::Call, index: usize, kind: ListKind) -> Result<u16, LoadError> {
        let id = match self.ex(call, index)? {
            Ex::Number(n) => n.as_u64(),
            _ => None,
        };
        let found = id.and_then(|id| match kind {
            ListKind::Fields => self.lists.field_list(id),
            ListKind::Digest => self.lists.digest(id),
        });
        found.ok_or_else(|| self.emitter.invalid("there is no such field list"))
    }

    fn log(&mut self, call: &raw::Call) -> Result<(), LoadError> {
        let format = match self.param(call, 0)?.as_str() {
            Some(format) => format.to_owned(),
            None => text(self.name(call, 0)?, &self.emitter.place)?.to_owned(),
        };
        let mut args = Vec::new();
        if let Some(list) = call.parameters.get(1).and_then(|p| p.get("value"))
            && let Some(list) = list.as_array()
        {
            for arg in list.iter() {
                let ex = self.emitter.names.ex(arg, &self.emitter.place)?;
                let value = self.emitter.exact(&ex)?;
                args.push((value.slot, value.limbs() as u8));
            }
        }
        let x = self.calls.logs.len() as u16;
        self.calls.logs.push(LogCall { format, args });
        self.plain(Ins::Log { x })
    }
}

/// A condition that p4c turned into a number, as the condition it was.
fn as_condition(ex: Ex) -> Ex {
    match ex {
        Ex::Unary(super::ast::Unary::ToData, inner) => *inner,
        Ex::Unary(super::ast::Unary::ToBool | super::ast::Unary::Not, _) | Ex::Bool(_) => ex,
        Ex::Binary(
            super::ast::Binary::Eq
            | super::ast::Binary::Ne
            | super::ast::Binary::Lt
            | super::ast::Binary::Le
            | super::ast::Binary::Gt
            | super::ast::Binary::Ge,
            ..,
        ) => ex,
        number => Ex::Unary(super::ast::Unary::ToBool, Box::new(number)),
    }
}

#[derive(Clone, Copy)]
enum ListKind {
    Fields,
    Digest,
}

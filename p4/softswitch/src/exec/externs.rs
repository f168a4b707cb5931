//! Instructions that are not plain arithmetic.

use crate::control::DigestMessage;
use crate::exec::packet::Inner;
use crate::exec::{Frame, Machine, Run, at, bits, calc, headers, wide};
use crate::ids::DigestId;
use crate::program::DigestField;
use crate::program::code::{Indexed, Ins, Pc, Slot, limbs};
use crate::program::parser::{Case, KeyWord, Select};
use crate::state::{MeterAt, SetMatch, State};
use crate::value::Value;

impl Run<'_> {
    /// Runs an instruction that is not in the interpreter's main loop.
    /// `false`: the code that is running ends here.
    #[inline(never)]
    pub(super) fn uncommon(&mut self, ins: Ins) -> bool {
        let program = self.program;
        let frame: &mut Frame = &mut self.machine.frame;
        match ins {
            Ins::LoadAt { d, index, x } => load_at(frame, program.parts.indexed[at(x)], d, index),
            Ins::StoreAt { index, a, x } => store_at(frame, program.parts.indexed[at(x)], index, a),
            Ins::AddHeader { h } => headers::add(program, frame, self.packet, h),
            Ins::RemoveHeader { h } => headers::remove(program, frame, self.packet, h),
            Ins::CopyHeader { d, s } => headers::copy(program, frame, d, s),
            Ins::HeaderEq { d, a, b } => {
                frame[at(d)] = u64::from(headers::equal(program, frame, a, b));
            }
            Ins::AddHeaderAt { x, index } => {
                let element = program.parts.indexed[at(x)];
                if let Some(h) = headers::element(program, frame, element, index) {
                    headers::add(program, frame, self.packet, h);
                }
            }
            Ins::RemoveHeaderAt { x, index } => {
                let element = program.parts.indexed[at(x)];
                if let Some(h) = headers::element(program, frame, element, index) {
                    headers::remove(program, frame, self.packet, h);
                }
            }
            Ins::CopyFromHeaderAt { d, x, index } => {
                let element = program.parts.indexed[at(x)];
                if let Some(s) = headers::element(program, frame, element, index) {
                    headers::copy(program, frame, d, s);
                }
            }
            Ins::CopyToHeaderAt { x, s, index } => {
                let element = program.parts.indexed[at(x)];
                if let Some(d) = headers::element(program, frame, element, index) {
                    headers::copy(program, frame, d, s);
                }
            }
            Ins::HeaderNumber { d, x, index } => {
                let element = program.parts.indexed[at(x)];
                let number = headers::element(program, frame, element, index);
                frame[at(d)] = number.map_or(u64::MAX, u64::from);
            }
            Ins::CopyNumbered { d, s } => {
                let number = |slot: Slot| u16::try_from(frame[at(slot)]).ok();
                if let (Some(to), Some(from)) = (number(d), number(s)) {
                    headers::copy(program, frame, to, from);
                }
            }
            Ins::NumberedEq { d, a, b } => {
                let number = |slot: Slot| u16::try_from(frame[at(slot)]).ok();
                let equal = match (number(a), number(b)) {
                    (Some(a), Some(b)) => headers::equal(program, frame, a, b),
                    (None, None) => true,
                    // What is not there is equal to what is not valid.
                    (Some(one), None) | (None, Some(one)) => {
                        frame[at(program.headers[at(one)].valid)] == 0
                    }
                };
                frame[at(d)] = u64::from(equal);
            }
            Ins::DivS { d, a, b } => {
                let (a, b) = (frame[at(a)] as i64, frame[at(b)] as i64);
                frame[at(d)] = a.checked_div(b).unwrap_or(0) as u64;
            }
            Ins::RemS { d, a, b } => {
                let (a, b) = (frame[at(a)] as i64, frame[at(b)] as i64);
                frame[at(d)] = a.checked_rem(b).unwrap_or(0) as u64;
            }
            Ins::Push { stack, count } => {
                let count = frame[at(count)];
                headers::push(program, frame, &program.stacks[at(stack)], count);
            }
            Ins::Pop { stack, count } => {
                let count = frame[at(count)];
                headers::pop(program, frame, &program.stacks[at(stack)], count);
            }
            Ins::AssignVl { d, a, n } => {
                frame.copy_within(at(a)..at(a) + usize::from(n), at(d));
            }
            Ins::Digest { digest } => self.requests.digest = Some(digest),
            Ins::Clone { session, list } => {
                self.requests.clone = Some((frame[at(session)] as u32, list));
            }
            Ins::Resubmit { list } => self.requests.resubmit = Some(list),
            Ins::Recirculate { list } => self.requests.recirculate = Some(list),
            Ins::Truncate { a } => self.packet.truncate(frame[at(a)]),
            Ins::MarkToDrop => {
                frame[at(program.standard.egress_spec)] = self.drop_port;
                if let Some(group) = program.standard.mcast_grp {
                    frame[at(group)] = 0;
                }
            }
            Ins::Assert { a } => {
                if frame[at(a)] == 0 {
                    self.requests.abort = true;
                    self.ledger.stats.failed_asserts += 1;
                    return false;
                }
            }
            Ins::Log { x } => self.log(x),
            Ins::Meter { .. } | Ins::Random { .. } => self.stateful(ins),
            _ => return wide::run(ins, frame) || self.parser_op(ins),
        }
        true
    }

    pub(super) fn stateful(&mut self, ins: Ins) {
        match ins {
            Ins::RegisterRead {
                d,
                register,
                index,
                hold,
            } => self.read_register(d, at(register), index, hold),
            Ins::RegisterWrite {
                register,
                index,
                a,
                free,
            } => self.write_register(at(register), index, a, free),
            Ins::Meter { d, meter, index } => {
                let frame = &mut self.machine.frame;
                let index = usize::try_from(frame[at(index)]).unwrap_or(usize::MAX);
                let amount = match self.state.meter_bytes[at(meter)] {
                    true => self.packet.ingress_len,
                    false => 1,
                };
                let meter = MeterAt::Cell {
                    meter: at(meter),
                    index,
                };
                let bytes = self.packet.ingress_len;
                if let Some(colour) = self.state.colour(meter, amount, bytes, self.now) {
                    frame[at(d)] = colour;
                }
            }
            Ins::Random { d, lo, hi } => {
                let frame = &mut self.machine.frame;
                let (lo, hi) = (frame[at(lo)], frame[at(hi)]);
                if lo <= hi {
                    frame[at(d)] = self.ledger.random.between(lo, hi);
                }
            }
            _ => unreachable!("called for stateful instructions only"),
        }
    }

    pub(super) fn hash(&mut self, d: Slot, x: u16) {
        let call = self.program.parts.hashes[at(x)];
        let Machine { frame, bytes, .. } = &mut *self.machine;
        let calculation = &self.program.parts.calculations[at(call.calculation)];
        let hash = calc::evaluate(
            calculation,
            frame,
            self.packet,
            bytes,
            calc::Own {
                random: &mut self.ledger.random,
                crcs: &self.state.crcs,
            },
        );
        let max = frame[at(call.max)].max(1);
        frame[at(d)] = frame[at(call.base)].wrapping_add(hash % max);
    }

    pub(super) fn checksum(&mut self, x: u16, verify: bool) {
        let checksum = &self.program.parts.checksums[at(x)];
        let calculation = &self.program.parts.calculations[at(checksum.calculation)];
        let Machine { frame, bytes, .. } = &mut *self.machine;
        let value = calc::evaluate(
            calculation,
            frame,
            self.packet,
            bytes,
            calc::Own {
                random: &mut self.ledger.random,
                crcs: &self.state.crcs,
            },
        );
        let value = value & crate::program::code::ones(checksum.bits);
        match verify {
            true if frame[at(checksum.slot)] != value => self.requests.checksum_error = true,
            true => {}
            false => frame[at(checksum.slot)] = value,
        }
    }

    fn log(&mut self, x: u16) {
        if tracing::enabled!(tracing::Level::INFO) {
            let message = self.log_message(x);
            tracing::info!(target: "p4", "{message}");
        }
    }

    /// A log message with its arguments in place.
    pub(crate) fn log_message(&self, x: u16) -> String {
        let call = &self.program.parts.logs[at(x)];
        let mut args = call
            .args
            .iter()
            .map(|&(slot, n)| Value::from_limbs(&self.machine.frame[at(slot)..][..usize::from(n)]));
        let mut message = String::new();
        let mut pieces = call.format.split("{}");
        message.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            match args.next() {
                Some(value) => message.push_str(&value.to_string()),
                None => message.push_str("{}"),
            }
            message.push_str(piece);
        }
        message
    }

    fn parser_op(&mut self, ins: Ins) -> bool {
        let program = self.program;
        let frame: &mut Frame = &mut self.machine.frame;
        let errors = program.errors;
        let result = match ins {
            Ins::ExtractVl { h, bits } => {
                let bits = frame[at(bits)];
                self.extract(h, Some(bits))
            }
            Ins::ExtractNext { stack } => self.extract_next(stack, 0, None),
            Ins::ExtractNextVl { stack, bits } => {
                let bits = frame[at(bits)];
                self.extract_next(stack, 0, Some(bits))
            }
            Ins::ExtractUnionNext { stack, member } => self.extract_next(stack, member, None),
            Ins::ExtractUnionNextVl {
                stack,
                member,
                bits,
            } => {
                let bits = frame[at(bits)];
                self.extract_next(stack, member.into(), Some(bits))
            }
            Ins::Advance { bits } => advance(self.packet, frame[at(bits)], errors),
            Ins::Verify { cond, error } => match frame[at(cond)] {
                0 => Err(frame[at(error)]),
                _ => Ok(()),
            },
            other => unreachable!("{other:?} has no meaning here"),
        };
        match result {
            Ok(()) => true,
            Err(error) => {
                self.requests.parser_error = error;
                false
            }
        }
    }

    /// Reads ahead; `false`: the packet is too short.
    pub(super) fn look_ahead(&mut self, d: Slot, offset: u16, width: u16) -> bool {
        let first = 8 * self.packet.cursor + usize::from(offset);
        let width = u32::from(width);
        if first + width as usize > 8 * self.packet.len {
            self.requests.parser_error = self.program.errors.packet_too_short;
            return false;
        }
        let out = &mut self.machine.frame[at(d)..][..limbs(width)];
        bits::read(&self.packet.buf, first, width, out);
        true
    }

    fn extract_next(&mut self, stack: u16, member: u16, bits: Option<u64>) -> Result<(), u64> {
        let stack = &self.program.stacks[at(stack)];
        let next = self.machine.frame[at(stack.next)];
        if next >= u64::from(stack.depth) {
            return Err(self.program.errors.stack_out_of_bounds);
        }
        self.extract(stack.first + next as u16 * stack.members + member, bits)?;
        self.machine.frame[at(stack.next)] = next + 1;
        Ok(())
    }

    fn extract(&mut self, number: u16, varbits: Option<u64>) -> Result<(), u64> {
        let errors = self.program.errors;
        let header = &self.program.headers[at(number)];
        let frame: &mut Frame = &mut self.machine.frame;
        let cursor = self.packet.cursor;
        let varbits = varbits.unwrap_or(0);
        if !varbits.is_multiple_of(8) {
            return Err(errors.invalid_argument);
        }
        let bytes = u64::from(header.bytes) + varbits / 8;
        if bytes > (self.packet.len - cursor) as u64 {
            return Err(errors.packet_too_short);
        }
        let field = header.varbit.map(|f| &header.fields[f]);
        let too_long = header.max_bytes != 0 && bytes > u64::from(header.max_bytes);
        if too_long || varbits > field.map_or(0, |f| u64::from(f.bits)) {
            return Err(errors.header_too_short);
        }
        match header.varbit {
            None => bits::extract(frame, header, &self.packet.buf, cursor),
            Some(_) => {
                bits::extract_varbit(frame, header, &self.packet.buf, cursor, varbits as u32);
            }
        }
        self.packet.cursor = cursor + bytes as usize;
        headers::validate(self.program, frame, number);
        Ok(())
    }

    /// Puts a digest message together.
    pub(crate) fn send_digest(&mut self, digest: u16) {
        if self.ledger.digests.len() >= self.ledger.digest_limit {
            self.ledger.stats.digest_drops += 1;
            return;
        }
        let values = self.program.parts.digests[at(digest)]
            .iter()
            .map(|field| match field {
                DigestField::Constant(value) => value.clone(),
                DigestField::Word { slot, bits } => {
                    let mut words = self.machine.frame[at(*slot)..][..limbs(*bits)].to_vec();
                    if let (Some(last), rest @ 1..) = (words.last_mut(), bits % 64) {
                        *last &= crate::program::code::ones(rest as u8);
                    }
                    Value::from_limbs(&words)
                }
            })
            .collect();
        let digest = DigestId(digest.into());
        if let Some(tracer) = &mut self.machine.tracer {
            let name = self.program.digests()[digest.index()].name.clone();
            tracer.push(crate::trace::Event::Digest { name });
        }
        self.ledger.digests.push(DigestMessage { digest, values });
    }
}

fn load_at(frame: &mut Frame, x: Indexed, d: Slot, index: Slot) {
    let n = usize::from(x.limbs);
    let index = frame[at(index)];
    if index < u64::from(x.count) {
        let from = at(x.base) + usize::from(x.stride) * index as usize;
        frame.copy_within(from..from + n, at(d));
    } else {
        frame[at(d)..at(d) + n].fill(0);
    }
}

fn store_at(frame: &mut Frame, x: Indexed, index: Slot, a: Slot) {
    let index = frame[at(index)];
    if index < u64::from(x.count) {
        let to = at(x.base) + usize::from(x.stride) * index as usize;
        frame.copy_within(at(a)..at(a) + usize::from(x.limbs), to);
    }
}

fn advance(packet: &mut Inner, bits: u64, errors: crate::program::ParserErrors) -> Result<(), u64> {
    if !bits.is_multiple_of(8) {
        return Err(errors.invalid_argument);
    }
    if bits / 8 > (packet.len - packet.cursor) as u64 {
        return Err(errors.packet_too_short);
    }
    packet.cursor += (bits / 8) as usize;
    Ok(())
}

/// The state that a select goes to.
#[inline]
pub(super) fn select(select: &Select, frame: &Frame, state: &State) -> Pc {
    if !select.is_word {
        return select_wide(select, frame, state);
    }
    let key = select.parts.iter().fold(0, |key, part| {
        key | (frame[at(part.slot)] & part.mask) << (part.shift & 63)
    });
    for case in &select.words {
        if key & case.mask == case.value {
            return case.to;
        }
    }
    if !select.has_sets {
        return select.default;
    }
    for case in &select.cases {
        match case {
            Case::Word { value, mask, to } if key & mask == *value => return *to,
            Case::Set { set, mask, to } if in_set(select, frame, state, *set, mask) => return *to,
            _ => {}
        }
    }
    select.default
}

fn select_wide(select: &Select, frame: &Frame, state: &State) -> Pc {
    for case in &select.cases {
        let (hit, to) = match case {
            Case::Word { .. } => continue,
            Case::Wide { value, mask, to } => {
                let key = key_words(&select.parts, frame);
                (
                    key.zip(mask).map(|(k, m)| k & m).eq(value.iter().copied()),
                    to,
                )
            }
            Case::Set { set, mask, to } => (in_set(select, frame, state, *set, mask), to),
        };
        if hit {
            return *to;
        }
    }
    select.default
}

/// The words of a select key, one field after the other.
fn key_words<'a>(parts: &'a [KeyWord], frame: &'a Frame) -> impl Iterator<Item = u64> + 'a {
    parts.iter().flat_map(move |part| {
        (0..usize::from(part.limbs)).map(move |i| frame[at(part.slot) + i] & kept(part, i))
    })
}

/// The bits of word `i` of a field.
fn kept(part: &KeyWord, i: usize) -> u64 {
    crate::program::code::ones((part.bits - 64 * i as u32).min(64) as u8)
}

fn in_set(
    select: &Select,
    frame: &Frame,
    state: &State,
    set: u16,
    mask: &Option<Box<[u64]>>,
) -> bool {
    let all = u64::MAX;
    let under = |i: usize| mask.as_ref().and_then(|m| m.get(i).copied()).unwrap_or(all);
    state.value_sets[at(set)]
        .matches
        .iter()
        .any(|member: &SetMatch| {
            let mut words = key_words(&select.parts, frame).enumerate();
            let exact = words.all(|(i, word)| {
                let mask = under(i) & member.mask.get(i).copied().unwrap_or(all);
                let value = member.value.get(i).copied().unwrap_or(0);
                (word ^ value) & mask == 0
            });
            exact && in_ranges(select, frame, member)
        })
}

fn in_ranges(select: &Select, frame: &Frame, member: &SetMatch) -> bool {
    select
        .parts
        .iter()
        .zip(&member.ranges)
        .all(|(part, range)| match range {
            None => true,
            Some((low, high)) => {
                let words = || (0..usize::from(part.limbs)).rev();
                let value = || words().map(|i| frame[at(part.slot) + i] & kept(part, i));
                let bound = |bound: &Value| words().map(|i| bound.limb(i)).cmp(value());
                bound(low).is_le() && bound(high).is_ge()
            }
        })
}

//! The interpreter.

pub(crate) mod bits;
pub(crate) mod calc;
mod externs;
mod headers;
pub(crate) mod packet;
pub(crate) mod registers;
mod wide;

use crate::program::Program;
use crate::program::code::{Ins, Pc, Slot, ones};
use crate::program::form::{Form, Source, Start};
use crate::state::MeterAt;
use crate::switch::{Access, Ledger};
use crate::table::Target;
use crate::trace::Tracer;
use bits::sign_extend;
use packet::{Inner, Requests};

/// Words that instructions work on. As long as any slot can say, so that no
/// access needs a check; what a program does not use is never touched.
pub(crate) type Frame = [u64; 1 << 16];

/// States a parser may pass through for one packet.
const PARSER_FUEL: u32 = 4096;

/// Rounds that the loops of one pipeline may go through for one packet.
const LOOP_FUEL: u32 = 1 << 20;

/// Indices of [`Ways::none`](crate::program::form::Ways::none).
const HIT: usize = 0;
const MISS: usize = 1;

/// Buffers of one switch that outlive a packet.
pub(crate) struct Machine {
    pub(crate) frame: Box<Frame>,
    /// Present while the switch traces.
    pub(crate) tracer: Option<Box<Tracer>>,
    key: Vec<u64>,
    bytes: Vec<u8>,
    /// Locks of registers that the packet has, see [`crate::program::law`].
    held: Vec<u32>,
}

/// Words of the longest key of a program, at least.
fn key_words(program: &Program) -> usize {
    program
        .parts
        .tables
        .iter()
        .map(|t| t.key_words)
        .max()
        .unwrap_or(0)
}

impl Machine {
    pub(crate) fn new() -> Self {
        // Through a vector, so that the frame never is on the stack.
        let frame: Box<[u64]> = vec![0; 1 << 16].into_boxed_slice();
        let frame = frame.try_into().unwrap_or_else(|_| Box::new([0; 1 << 16]));
        Machine {
            frame,
            tracer: None,
            key: Vec::new(),
            bytes: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Makes the frame ready for a new packet.
    pub(crate) fn clear(&mut self, program: &Program) {
        match self.tracer {
            None => program.needs.clear(&mut self.frame),
            // Who traces sees all words.
            Some(_) => self.frame[..program.packet_words].fill(0),
        }
    }

    /// Writes down what egress needs of a packet's words.
    pub(crate) fn save(&self, program: &Program, words: &mut Vec<u64>) {
        words.clear();
        words.push(u64::from(self.tracer.is_some()));
        match self.tracer {
            None => program.needs.save(&self.frame, words),
            Some(_) => words.extend_from_slice(&self.frame[..program.packet_words]),
        }
    }

    /// Puts back what [`save`](Self::save) wrote down.
    pub(crate) fn load(&mut self, program: &Program, words: &[u64]) {
        match words.split_first() {
            Some((0, words)) => program.needs.load(&mut self.frame, words),
            Some((_, words)) => self.frame[..words.len()].copy_from_slice(words),
            None => {}
        }
    }

    /// Puts a program's constants in place.
    pub(crate) fn prepare(&mut self, program: &Program) {
        self.frame.fill(0);
        if let Some(tracer) = &mut self.tracer {
            tracer.prepare(program);
        }
        self.key.resize(key_words(program), 0);
        let constants = &program.parts.constants;
        self.frame[program.parts.constants_base..][..constants.len()].copy_from_slice(constants);
    }
}

/// One packet in the interpreter.
pub(crate) struct Run<'a> {
    pub(crate) program: &'a Program,
    pub(crate) state: Access<'a>,
    pub(crate) machine: &'a mut Machine,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) packet: &'a mut Inner,
    pub(crate) requests: &'a mut Requests,
    /// ns.
    pub(crate) now: u64,
    pub(crate) drop_port: u64,
}

impl Run<'_> {
    /// Parses the packet from its start and verifies checksums.
    pub(crate) fn parse(&mut self) {
        self.packet.cursor = 0;
        self.requests.parser_error = self.program.errors.none;
        self.requests.checksum_error = false;
        self.run(self.program.parts.parser);
        if !self.requests.abort {
            self.run(self.program.parts.verify);
        }
        let standard = &self.program.standard;
        let frame = &mut self.machine.frame;
        if let Some(slot) = standard.parser_error {
            frame[at(slot)] = self.requests.parser_error;
        }
        if let Some(slot) = standard.checksum_error {
            frame[at(slot)] = u64::from(self.requests.checksum_error);
        }
    }

    /// Runs code until it halts.
    #[inline]
    pub(crate) fn run(&mut self, entry: Pc) {
        let program = self.program;
        if self.machine.tracer.is_none() {
            let form = &program.fast;
            self.run_code::<false>(form, form.at[entry as usize]);
            if !self.machine.held.is_empty() {
                self.unlock_all();
            }
            return;
        }
        self.trace_begin(entry);
        self.run_code::<true>(&program.parts.plain, entry);
        self.trace_end(entry);
    }

    #[allow(clippy::too_many_lines, reason = "one arm per instruction")]
    fn run_code<const TRACED: bool>(&mut self, form: &Form, entry: Pc) {
        let code: &[Ins] = &form.code;
        let mut frame: &mut Frame = &mut self.machine.frame;
        let mut pc = entry as usize;
        let mut back: Pc = 0;
        let mut fuel = PARSER_FUEL;
        let mut rounds = LOOP_FUEL;
        macro_rules! get {
            ($slot:expr) => {
                frame[$slot as usize]
            };
        }
        macro_rules! set {
            ($d:expr, $value:expr) => {{
                let value = $value;
                frame[$d as usize] = value;
            }};
        }
        macro_rules! jump {
            ($when:expr, $to:expr) => {
                if $when {
                    pc = $to as usize;
                }
            };
        }
        loop {
            // By reference: each arm then loads the operands it has, instead of
            // all arms' operands being taken apart beforehand.
            let ins = &code[pc];
            if TRACED {
                self.trace_step(pc, *ins);
                frame = &mut self.machine.frame;
            }
            pc += 1;
            match *ins {
                Ins::Mov { d, a } => set!(d, get!(a)),
                Ins::Mask { d, a, bits } => set!(d, get!(a) & ones(bits)),
                Ins::Sext { d, a, bits } => set!(d, sign_extend(get!(a), bits)),
                Ins::Add { d, a, b, bits } => set!(d, get!(a).wrapping_add(get!(b)) & ones(bits)),
                Ins::Sub { d, a, b, bits } => set!(d, get!(a).wrapping_sub(get!(b)) & ones(bits)),
                Ins::Mul { d, a, b, bits } => set!(d, get!(a).wrapping_mul(get!(b)) & ones(bits)),
                Ins::DivU { d, a, b } => set!(d, get!(a).checked_div(get!(b)).unwrap_or(0)),
                Ins::RemU { d, a, b } => set!(d, get!(a).checked_rem(get!(b)).unwrap_or(0)),
                Ins::And { d, a, b } => set!(d, get!(a) & get!(b)),
                Ins::Or { d, a, b } => set!(d, get!(a) | get!(b)),
                Ins::Xor { d, a, b } => set!(d, get!(a) ^ get!(b)),
                Ins::Not { d, a, bits } => set!(d, !get!(a) & ones(bits)),
                Ins::Shl { d, a, b, bits } => set!(d, shl(get!(a), get!(b)) & ones(bits)),
                Ins::ShlImm { d, a, by, bits } => set!(d, get!(a) << (by & 63) & ones(bits)),
                Ins::ShrU { d, a, b } => set!(d, shr(get!(a), get!(b))),
                Ins::ShrS { d, a, b } => set!(d, sar(get!(a), get!(b))),
                Ins::Slice { d, a, by, bits } => set!(d, get!(a) >> (by & 63) & ones(bits)),
                Ins::ShrSImm { d, a, by } => set!(d, sar(get!(a), by.into())),
                Ins::Eq { d, a, b } => set!(d, u64::from(get!(a) == get!(b))),
                Ins::Ne { d, a, b } => set!(d, u64::from(get!(a) != get!(b))),
                Ins::LtU { d, a, b } => set!(d, u64::from(get!(a) < get!(b))),
                Ins::LeU { d, a, b } => set!(d, u64::from(get!(a) <= get!(b))),
                Ins::LtS { d, a, b } => set!(d, u64::from((get!(a) as i64) < get!(b) as i64)),
                Ins::LeS { d, a, b } => set!(d, u64::from(get!(a) as i64 <= get!(b) as i64)),
                Ins::NonZero { d, a } => set!(d, u64::from(get!(a) != 0)),
                Ins::NotBool { d, a } => set!(d, get!(a) ^ 1),
                Ins::UsatU { d, a, bits } => set!(d, get!(a).min(ones(bits))),
                Ins::UsatS { d, a, bits } => {
                    set!(d, (get!(a) as i64).max(0).cast_unsigned().min(ones(bits)));
                }
                Ins::SatS { d, a, bits } => {
                    let high = (ones(bits) >> 1) as i64;
                    set!(d, (get!(a) as i64).clamp(-high - 1, high) as u64);
                }
                Ins::Jump { to } => pc = to as usize,
                Ins::Loop { to } => {
                    rounds -= 1;
                    if rounds == 0 {
                        self.requests.abort = true;
                        self.ledger.stats.endless_loops += 1;
                        return;
                    }
                    pc = to as usize;
                }
                Ins::JumpIfZero { a, to } => {
                    if get!(a) == 0 {
                        pc = to as usize;
                    }
                }
                Ins::JumpIfNotZero { a, to } => {
                    if get!(a) != 0 {
                        pc = to as usize;
                    }
                }
                Ins::JumpEq { a, b, to } => jump!(get!(a) == get!(b), to),
                Ins::JumpNe { a, b, to } => jump!(get!(a) != get!(b), to),
                Ins::JumpLtU { a, b, to } => jump!(get!(a) < get!(b), to),
                Ins::JumpLeU { a, b, to } => jump!(get!(a) <= get!(b), to),
                Ins::JumpLtS { a, b, to } => jump!((get!(a) as i64) < get!(b) as i64, to),
                Ins::JumpLeS { a, b, to } => jump!(get!(a) as i64 <= get!(b) as i64, to),
                Ins::JumpIs { a, value, to } => jump!(get!(a) == u64::from(value), to),
                Ins::JumpIsNot { a, value, to } => jump!(get!(a) != u64::from(value), to),
                Ins::Clear { d, n } => frame[at(d)..][..usize::from(n)].fill(0),
                Ins::WMov { n: 2, d, a } => {
                    let (low, high) = (get!(a), get!(a + 1));
                    set!(d, low);
                    set!(d + 1, high);
                }
                Ins::WExt {
                    from: 1,
                    to: 2,
                    sign: false,
                    d,
                    a,
                } => {
                    set!(d, get!(a));
                    set!(d + 1, 0);
                }
                Ins::Count { counter, index } => {
                    let index = usize::try_from(get!(index)).unwrap_or(usize::MAX);
                    if let Some(cell) = self.ledger.counters[at(counter)].get_mut(index) {
                        cell.packets += 1;
                        cell.bytes += self.packet.ingress_len;
                    }
                }
                Ins::Apply { table } => {
                    let (to, next) = self.apply(form, usize::from(table));
                    frame = &mut self.machine.frame;
                    back = next;
                    pc = to as usize;
                }
                Ins::Call { action } => {
                    back = pc as Pc;
                    pc = form.actions[usize::from(action)] as usize;
                }
                Ins::Return => pc = back as usize,
                Ins::Halt | Ins::Exit => return,
                Ins::Extract { h } => {
                    let header = &self.program.headers[usize::from(h)];
                    let cursor = self.packet.cursor;
                    let after = cursor + usize::from(header.bytes);
                    if after > self.packet.len {
                        return self.fail(self.program.errors.packet_too_short);
                    }
                    bits::extract(frame, header, &self.packet.buf, cursor);
                    self.packet.cursor = after;
                    // Flags are numbered like headers.
                    frame[at(h)] = 1;
                    for &sibling in &header.siblings {
                        frame[at(sibling)] = 0;
                    }
                }
                Ins::Select { select } => {
                    fuel -= 1;
                    if fuel == 0 {
                        return self.fail(self.program.errors.timeout);
                    }
                    let select = &form.selects[usize::from(select)];
                    pc = externs::select(select, frame, &self.state) as usize;
                }
                Ins::Goto { to } => {
                    fuel -= 1;
                    if fuel == 0 {
                        return self.fail(self.program.errors.timeout);
                    }
                    pc = to as usize;
                }
                Ins::RegisterRead { .. } | Ins::RegisterWrite { .. } => {
                    self.stateful(*ins);
                    frame = &mut self.machine.frame;
                }
                Ins::Lookahead { d, offset, width } => {
                    if !self.look_ahead(d, offset, width) {
                        return;
                    }
                    frame = &mut self.machine.frame;
                }
                Ins::Hash { d, x } => {
                    self.hash(d, x);
                    frame = &mut self.machine.frame;
                }
                Ins::VerifyChecksum { x } => {
                    self.checksum(x, true);
                    frame = &mut self.machine.frame;
                }
                Ins::UpdateChecksum { x } => {
                    self.checksum(x, false);
                    frame = &mut self.machine.frame;
                }
                // Flags are numbered like headers.
                Ins::RemoveHeader { h } if get!(h) == 0 => {}
                // All others by name, so that there is no check for what is none of these.
                Ins::DivS { .. }
                | Ins::RemS { .. }
                | Ins::WMov { .. }
                | Ins::WMask { .. }
                | Ins::WSext { .. }
                | Ins::WExt { .. }
                | Ins::WAdd { .. }
                | Ins::WSub { .. }
                | Ins::WMul { .. }
                | Ins::WDivU { .. }
                | Ins::WRemU { .. }
                | Ins::WDivS { .. }
                | Ins::WRemS { .. }
                | Ins::WAnd { .. }
                | Ins::WOr { .. }
                | Ins::WXor { .. }
                | Ins::WNot { .. }
                | Ins::WShl { .. }
                | Ins::WShrU { .. }
                | Ins::WShrS { .. }
                | Ins::WEq { .. }
                | Ins::WNe { .. }
                | Ins::WLt { .. }
                | Ins::WLe { .. }
                | Ins::WNonZero { .. }
                | Ins::WUsat { .. }
                | Ins::WSat { .. }
                | Ins::LoadAt { .. }
                | Ins::StoreAt { .. }
                | Ins::AddHeader { .. }
                | Ins::RemoveHeader { .. }
                | Ins::CopyHeader { .. }
                | Ins::HeaderEq { .. }
                | Ins::AddHeaderAt { .. }
                | Ins::RemoveHeaderAt { .. }
                | Ins::CopyFromHeaderAt { .. }
                | Ins::CopyToHeaderAt { .. }
                | Ins::HeaderNumber { .. }
                | Ins::CopyNumbered { .. }
                | Ins::NumberedEq { .. }
                | Ins::Push { .. }
                | Ins::Pop { .. }
                | Ins::AssignVl { .. }
                | Ins::ExtractVl { .. }
                | Ins::ExtractNext { .. }
                | Ins::ExtractNextVl { .. }
                | Ins::ExtractUnionNext { .. }
                | Ins::ExtractUnionNextVl { .. }
                | Ins::Advance { .. }
                | Ins::Verify { .. }
                | Ins::Meter { .. }
                | Ins::Random { .. }
                | Ins::Digest { .. }
                | Ins::Clone { .. }
                | Ins::Resubmit { .. }
                | Ins::Recirculate { .. }
                | Ins::Truncate { .. }
                | Ins::MarkToDrop
                | Ins::Assert { .. }
                | Ins::Log { .. } => {
                    if !self.uncommon(*ins) {
                        return;
                    }
                    frame = &mut self.machine.frame;
                }
            }
        }
    }

    /// Ends parsing with an error.
    fn fail(&mut self, error: u64) {
        self.requests.parser_error = error;
    }

    /// Looks a table up: where to go on (the action's code, or behind it), and where to come back
    /// to from the action. Actions that only copy words are done at once.
    fn apply(&mut self, form: &Form, number: usize) -> (Pc, Pc) {
        let table = &self.state.tables[number];
        let Machine { frame, key, .. } = &mut *self.machine;
        let found = match table.len() {
            0 => None,
            _ => table.find(&self.program.parts.tables[number], frame, key),
        };
        let Some(entry) = found else {
            return self.missed(form, number);
        };
        let table = match table.notes_hits() {
            true => {
                self.note_hit(number, entry as usize);
                &self.state.tables[number]
            }
            false => table,
        };
        match table.hit(entry) {
            (Target::Action(action), data) => match form.tables[number].way(action.0) {
                Some(way) => {
                    let frame = &mut self.machine.frame;
                    go(self.program, &way.start, frame, data, way.hit)
                }
                None => behind(form.tables[number].none[HIT]),
            },
            (target, _) => self.apply_profile(form, number, target, HIT),
        }
    }

    /// The default action of a table.
    fn missed(&mut self, form: &Form, number: usize) -> (Pc, Pc) {
        if self.state.tables[number].notes_hits() {
            self.note_miss(number);
        }
        let table = &self.state.tables[number];
        match table.default {
            Some(Target::Action(action)) => match form.tables[number].way(action.0) {
                Some(way) => {
                    let frame = &mut self.machine.frame;
                    go(
                        self.program,
                        &way.start,
                        frame,
                        &table.default_data,
                        way.miss,
                    )
                }
                None => behind(form.tables[number].none[MISS]),
            },
            Some(target) => self.apply_profile(form, number, target, MISS),
            None => behind(form.tables[number].none[MISS]),
        }
    }

    /// Counts a hit, runs the direct meter, restarts the timer.
    #[inline(never)]
    fn note_hit(&mut self, number: usize, at: usize) {
        let table = &self.state.tables[number];
        if let Some(idle) = table.idle.get(at) {
            idle.note_hit(self.now);
        }
        if table.has_counter() {
            self.ledger.hit(number, at, self.packet.ingress_len);
        }
        if table.has_meter() {
            let (table, entry) = (number, at);
            self.meter_directly(number, MeterAt::Entry { table, entry });
        }
    }

    /// Counts a miss and runs the default entry's meter.
    #[inline(never)]
    fn note_miss(&mut self, number: usize) {
        let table = &self.state.tables[number];
        if table.has_counter() {
            self.ledger.miss(number, self.packet.ingress_len);
        }
        if table.has_meter() && table.miss_meter.lock().config().is_some() {
            self.meter_directly(number, MeterAt::Miss { table: number });
        }
    }

    /// Executes a table's direct meter.
    fn meter_directly(&mut self, number: usize, at: MeterAt) {
        let bytes = self.packet.ingress_len;
        let amount = match self.state.direct_meter_bytes[number] {
            true => bytes,
            false => 1,
        };
        let colour = self.state.colour(at, amount, bytes, self.now);
        let target = self.program.parts.tables[number].meter_target;
        if let (Some(colour), Some((slot, bits))) = (colour, target) {
            self.machine.frame[usize::from(slot)] = colour & ones(bits);
        }
    }

    fn apply_profile(
        &mut self,
        form: &Form,
        number: usize,
        target: Target,
        found: usize,
    ) -> (Pc, Pc) {
        let ways = &form.tables[number];
        let Some(id) = self.program.parts.tables[number].profile else {
            return behind(ways.none[MISS]);
        };
        let profile = &self.state.profiles[id.index()];
        let member = match target {
            Target::Member(member) => Some(member),
            Target::Group(group) | Target::OneShot(group) => {
                match (
                    profile.group(group),
                    &self.program.parts.selectors[id.index()],
                ) {
                    (Some(group), _) if group.random => group.pick(self.ledger.random.next()),
                    (Some(group), Some(calculation)) if !group.is_empty() => {
                        group.pick(calc::evaluate(
                            calculation,
                            &self.machine.frame,
                            self.packet,
                            &mut self.machine.bytes,
                            calc::Own {
                                random: &mut self.ledger.random,
                                crcs: &self.state.crcs,
                            },
                        ))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let member = member.and_then(|m| profile.member(m));
        let Some((member, way)) = member.and_then(|m| Some((m, ways.way(m.action.0)?))) else {
            return behind(ways.none[found]);
        };
        let next = if found == HIT { way.hit } else { way.miss };
        let frame = &mut self.machine.frame;
        go(self.program, &way.start, frame, &member.data, next)
    }
}

/// Where there is nothing to run.
fn behind(next: Pc) -> (Pc, Pc) {
    (next, next)
}

/// Gives an action its data, or does what it does.
#[inline(always)]
fn go(program: &Program, start: &Start, frame: &mut Frame, data: &[u64], next: Pc) -> (Pc, Pc) {
    match start {
        Start::Moves(moves) => {
            for copy in moves {
                frame[at(copy.d)] = match copy.from {
                    Source::Param(i) => data.get(usize::from(i)).copied().unwrap_or(0),
                    Source::Word(a) => frame[at(a)],
                };
            }
            behind(next)
        }
        Start::Code { entry, words } => {
            let base = usize::from(program.parts.params_base);
            for (i, word) in data.iter().take(usize::from(*words)).enumerate() {
                frame[base + i] = *word;
            }
            (*entry, next)
        }
    }
}

fn at(slot: Slot) -> usize {
    usize::from(slot)
}

#[inline(always)]
fn shl(value: u64, by: u64) -> u64 {
    if by < 64 { value << by } else { 0 }
}

#[inline(always)]
fn shr(value: u64, by: u64) -> u64 {
    if by < 64 { value >> by } else { 0 }
}

#[inline(always)]
fn sar(value: u64, by: u64) -> u64 {
    (value as i64 >> by.min(63)).cast_unsigned()
}

//! Writing a trace down while the interpreter runs.

use super::names::{self, Word};
use super::{Event, Field, Trace, TraceSink};
use crate::exec::{Frame, Run, calc};
use crate::profile::GroupState;
use crate::program::Program;
use crate::program::code::{Ins, Pc, Slot, limbs};
use crate::program::place::Place;
use crate::table::{Target, key};

/// What a switch that traces keeps.
pub(crate) struct Tracer {
    sink: TraceSink,
    /// Number of the last packet that came in.
    pub(crate) count: u64,
    /// Number of the packet at hand.
    pub(crate) current: u64,
    events: Vec<Event>,
    /// The packet's words when they were last looked at.
    shadow: Vec<u64>,
    words: Vec<Word>,
    /// A part of the program that began and did nothing yet.
    stage: Option<&'static str>,
    /// The header that the last instruction extracts.
    extracted: Option<u16>,
    condition: Option<(String, std::ops::Range<usize>)>,
}

impl Tracer {
    pub(crate) fn new(sink: TraceSink) -> Self {
        Tracer {
            sink,
            count: 0,
            current: 0,
            events: Vec::new(),
            shadow: Vec::new(),
            words: Vec::new(),
            stage: None,
            extracted: None,
            condition: None,
        }
    }

    pub(crate) fn prepare(&mut self, program: &Program) {
        self.words = names::words(program);
    }

    /// A new packet comes in: its number.
    pub(crate) fn arrival(&mut self) -> u64 {
        self.count += 1;
        self.current = self.count;
        self.count
    }

    pub(crate) fn push(&mut self, event: Event) {
        if let Some(name) = self.stage.take() {
            self.events.push(Event::Stage { name });
        }
        self.events.push(event);
    }

    /// Hands over what happened since the last call.
    pub(crate) fn flush(&mut self) {
        self.stage = None;
        if self.events.is_empty() {
            return;
        }
        (self.sink)(Trace {
            packet: self.current,
            events: std::mem::take(&mut self.events),
        });
    }

    /// Tells what changed in the packet's words.
    fn changes(&mut self, program: &Program, frame: &Frame) {
        let now = &frame[..program.packet_words];
        let changed: Vec<usize> = (0..now.len().min(self.words.len()))
            .filter(|&i| now[i] != self.shadow[i])
            .collect();
        let extracted = self.extracted.take();
        let before = std::mem::replace(&mut self.shadow, now.to_vec());
        if let Some(header) = extracted {
            self.extract(program, frame, header);
        }
        let mut told = None;
        for at in changed {
            match self.words[at] {
                Word::Valid(header) if Some(header) != extracted => {
                    let name = &program.headers[usize::from(header)].name;
                    self.push(Event::Validity {
                        header: name.clone(),
                        valid: now[at] != 0,
                    });
                }
                Word::Field(header, field) if Some(header) != extracted => {
                    let layout = &program.headers[usize::from(header)];
                    let alive = layout.metadata || now[usize::from(layout.valid)] != 0;
                    if told == Some((header, field)) || !alive {
                        continue;
                    }
                    told = Some((header, field));
                    self.push(Event::Set {
                        field: names::field(program, header, field),
                        old: names::value(program, &before, header, field),
                        new: names::value(program, now, header, field),
                    });
                }
                _ => {}
            }
        }
    }

    fn extract(&mut self, program: &Program, frame: &Frame, header: u16) {
        let layout = &program.headers[usize::from(header)];
        if frame[usize::from(layout.valid)] == 0 {
            return;
        }
        let fields = layout.fields.iter().enumerate().map(|(i, field)| Field {
            name: field.name.clone(),
            value: names::value(program, &frame[..], header, i as u16),
        });
        let fields = fields.collect();
        let header = layout.name.clone();
        self.push(Event::Extract { header, fields });
    }

    /// Decides the condition at hand, if its code is left for `pc`.
    fn decide(&mut self, pc: usize) {
        if let Some((source, code)) = self.condition.take_if(|(_, code)| !code.contains(&pc)) {
            let holds = pc == code.end;
            self.push(Event::Condition { source, holds });
        }
    }
}

impl Run<'_> {
    /// Before code runs, up to [`Self::trace_end`].
    #[cold]
    pub(crate) fn trace_begin(&mut self, entry: Pc) {
        let parts = &self.program.parts;
        let name = match entry {
            e if e == parts.parser => "parser",
            e if e == parts.verify => "verify checksums",
            e if e == parts.ingress => "ingress",
            e if e == parts.egress => "egress",
            e if e == parts.update => "update checksums",
            _ => "deparser",
        };
        let machine = &mut *self.machine;
        if let Some(tracer) = &mut machine.tracer {
            tracer.stage = Some(name);
            tracer.condition = None;
            tracer.extracted = None;
            tracer.shadow = machine.frame[..self.program.packet_words].to_vec();
            if tracer.words.is_empty() {
                tracer.prepare(self.program);
            }
        }
    }

    /// After code ran.
    #[cold]
    pub(crate) fn trace_end(&mut self, entry: Pc) {
        let Some(mut tracer) = self.machine.tracer.take() else {
            return;
        };
        tracer.decide(usize::MAX);
        tracer.changes(self.program, &self.machine.frame);
        let error = self.requests.parser_error;
        if entry == self.program.parts.parser && error != self.program.errors.none {
            let name = self.program.error_names.iter().find(|(_, n)| *n == error);
            let error = name.map_or_else(|| error.to_string(), |(name, _)| name.clone());
            tracer.push(Event::ParserError { error });
        }
        if entry == self.program.parts.verify && self.requests.checksum_error {
            tracer.push(Event::ChecksumError);
        }
        tracer.stage = None;
        self.machine.tracer = Some(tracer);
    }

    /// Before an instruction.
    #[cold]
    pub(crate) fn trace_step(&mut self, pc: usize, ins: Ins) {
        let Some(mut tracer) = self.machine.tracer.take() else {
            return;
        };
        tracer.decide(pc);
        tracer.changes(self.program, &self.machine.frame);
        let places = &self.program.parts.places;
        let from = places.partition_point(|(at, _)| (*at as usize) < pc);
        for (_, place) in places[from..]
            .iter()
            .take_while(|(at, _)| *at as usize == pc)
        {
            match place.clone() {
                Place::State(name) => tracer.push(Event::State { name }),
                Place::Statement(source) => tracer.push(Event::Statement { source }),
                Place::Checksum(name) => tracer.push(Event::Checksum { name }),
                Place::Condition { source, end } => {
                    tracer.condition = Some((source, pc..end as usize));
                }
            }
        }
        self.announce(&mut tracer, ins);
        self.machine.tracer = Some(tracer);
    }

    fn word(&self, slot: Slot) -> u64 {
        self.machine.frame[usize::from(slot)]
    }

    /// What an instruction is about to do, as far as its effect on the words
    /// does not tell.
    fn announce(&self, tracer: &mut Tracer, ins: Ins) {
        let program = self.program;
        let call = |call, name: &str, index| Event::Extern {
            call,
            name: name.to_owned(),
            index,
        };
        match ins {
            Ins::Extract { h } | Ins::ExtractVl { h, .. } => tracer.extracted = Some(h),
            Ins::ExtractNext { stack } | Ins::ExtractNextVl { stack, .. } => {
                tracer.extracted = self.next_header(stack, 0);
            }
            Ins::ExtractUnionNext { stack, member } => {
                tracer.extracted = self.next_header(stack, member);
            }
            Ins::ExtractUnionNextVl { stack, member, .. } => {
                tracer.extracted = self.next_header(stack, member.into());
            }
            Ins::Advance { bits } => {
                let bits = self.word(bits);
                tracer.push(Event::Advance { bits });
            }
            Ins::Select { select } => {
                let parts = &program.parts.plain.selects[usize::from(select)].parts;
                let key = parts.iter().map(|part| {
                    let at = usize::from(part.slot);
                    names::hex(&self.machine.frame[at..at + usize::from(part.limbs)])
                });
                let key = key.collect();
                tracer.push(Event::Select { key });
            }
            Ins::Apply { table } => {
                let event = self.table_event(usize::from(table));
                tracer.push(event);
            }
            Ins::RegisterRead {
                register, index, ..
            } => {
                let name = &program.registers()[usize::from(register)].name;
                tracer.push(call("register_read", name, Some(self.word(index))));
            }
            Ins::RegisterWrite {
                register, index, ..
            } => {
                let name = &program.registers()[usize::from(register)].name;
                tracer.push(call("register_write", name, Some(self.word(index))));
            }
            Ins::Count { counter, index } => {
                let name = &program.counters()[usize::from(counter)].name;
                tracer.push(call("count", name, Some(self.word(index))));
            }
            Ins::Meter { meter, index, .. } => {
                let name = &program.meters()[usize::from(meter)].name;
                tracer.push(call("execute_meter", name, Some(self.word(index))));
            }
            Ins::Hash { .. } => tracer.push(call("hash", "", None)),
            Ins::Random { .. } => tracer.push(call("random", "", None)),
            Ins::Truncate { a } => tracer.push(call("truncate", "", Some(self.word(a)))),
            Ins::MarkToDrop => tracer.push(call("mark_to_drop", "", None)),
            Ins::Clone { session, .. } => {
                tracer.push(call("clone", "", Some(self.word(session))));
            }
            Ins::Resubmit { .. } => tracer.push(call("resubmit", "", None)),
            Ins::Recirculate { .. } => tracer.push(call("recirculate", "", None)),
            Ins::Exit => tracer.push(call("exit", "", None)),
            Ins::Digest { digest } => {
                let name = &program.digests()[usize::from(digest)].name;
                tracer.push(call("digest", name, None));
            }
            Ins::Log { x } => {
                let message = self.log_message(x);
                tracer.push(Event::Log { message });
            }
            _ => {}
        }
    }

    fn next_header(&self, stack: u16, member: u16) -> Option<u16> {
        let stack = &self.program.stacks[usize::from(stack)];
        let next = self.word(stack.next);
        (next < u64::from(stack.depth)).then(|| stack.first + next as u16 * stack.members + member)
    }

    /// What a table is going to find.
    fn table_event(&self, number: usize) -> Event {
        let program = self.program;
        let (info, def) = (&program.tables()[number], &program.parts.tables[number]);
        let table = &self.state.tables[number];
        let mut words = vec![0; def.key_words];
        let words = key::build(&def.key_parts, &self.machine.frame, &mut words);
        let key = info.keys.iter().zip(&def.keys).map(|(key, at)| Field {
            name: key.name.clone(),
            value: names::hex(&words[at.at..at.at + usize::from(at.limbs)]),
        });
        let key = key.collect();
        let entry = match table.len() {
            0 => None,
            _ => table.find(def, &self.machine.frame, &mut vec![0; words.len()]),
        };
        let (target, data) = match entry {
            Some(entry) => (Some(table.target(entry)), table.data(entry)),
            None => (table.default, table.default_data.as_slice()),
        };
        let entry = entry.map(crate::control::EntryHandle);
        let mut event = Event::Table {
            table: info.name.clone(),
            key,
            hit: entry.is_some(),
            priority: entry
                .filter(|_| info.has_priority)
                .map(|e| table.priority(e)),
            group: None,
            member: None,
            action: None,
            params: Vec::new(),
        };
        self.target_event(&mut event, number, target, data);
        event
    }

    fn target_event(&self, event: &mut Event, number: usize, target: Option<Target>, data: &[u64]) {
        let Event::Table {
            group,
            member,
            action,
            params,
            ..
        } = event
        else {
            return;
        };
        let mut call = |id: crate::ids::ActionId, data: &[u64]| {
            let info = &self.program.actions()[id.index()];
            *action = Some(info.name.clone());
            let mut at = 0;
            for param in &info.params {
                let n = limbs(param.width);
                params.push(Field {
                    name: param.name.clone(),
                    value: names::hex(data.get(at..at + n).unwrap_or(&[0])),
                });
                at += n;
            }
        };
        let profile = self.program.parts.tables[number].profile;
        let chosen = match target {
            Some(Target::Action(id)) => return call(id, data),
            Some(Target::Member(chosen)) => Some(chosen),
            Some(Target::Group(chosen) | Target::OneShot(chosen)) => profile.and_then(|id| {
                let state = self.state.profiles[id.index()].group(chosen)?;
                *group = state.id;
                self.choice(id.index(), state)
            }),
            _ => None,
        };
        let (Some(id), Some(chosen)) = (profile, chosen) else {
            return;
        };
        if let Some(state) = self.state.profiles[id.index()].member(chosen) {
            *member = state.id;
            call(state.action, &state.data);
        }
    }

    /// The member that a group is going to choose.
    fn choice(&self, profile: usize, group: &GroupState) -> Option<u32> {
        let mut random = self.ledger.random.clone();
        if group.random {
            return group.pick(random.next());
        }
        let calculation = self.program.parts.selectors[profile].as_ref()?;
        let frame = &self.machine.frame;
        group.pick(calc::evaluate(
            calculation,
            frame,
            self.packet,
            &mut Vec::new(),
            calc::Own {
                random: &mut random,
                crcs: &self.state.crcs,
            },
        ))
    }
}

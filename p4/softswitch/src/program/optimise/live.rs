//! Which words are still read: backwards through the program.

use std::ops::Range;

use super::Graph;
use super::effects::{Access, accesses, may_end, only_writes};
use super::facts::used;
use crate::exec::Frame;
use crate::program::Program;
use crate::program::code::{Ins, Pc, Slot};

/// Ranges of words that are this close are one.
const GAP: usize = 4;

/// Words of a packet that matter.
#[derive(Default)]
pub(crate) struct Needs {
    /// Those that are zero when the parser begins.
    clear: Vec<Range<usize>>,
    /// Those that egress needs of what ingress left.
    keep: Vec<Range<usize>>,
    /// The same, of headers that are valid: the flag, and the words.
    keep_valid: Vec<(Slot, Range<usize>)>,
}

impl Needs {
    /// All words.
    pub(super) fn all(program: &Program) -> Self {
        let all = 0..program.packet_words;
        Needs {
            clear: vec![all.clone()],
            keep: vec![all],
            keep_valid: Vec::new(),
        }
    }

    /// What either of two ways to run the program needs.
    pub(super) fn add(&mut self, other: &Needs) {
        let union = |a: &[Range<usize>], b: &[Range<usize>]| {
            let mut words: Vec<usize> = a.iter().chain(b).cloned().flatten().collect();
            words.sort_unstable();
            words.dedup();
            ranges(words.into_iter())
        };
        self.clear = union(&self.clear, &other.clear);
        self.keep = union(&self.keep, &other.keep);
        for valid in &other.keep_valid {
            if !self.keep_valid.contains(valid) {
                self.keep_valid.push(valid.clone());
            }
        }
    }

    /// Prepares the frame for a new packet.
    #[inline]
    pub(crate) fn clear(&self, frame: &mut Frame) {
        for range in &self.clear {
            frame[range.clone()].fill(0);
        }
    }

    /// Appends what egress needs.
    pub(crate) fn save(&self, frame: &Frame, out: &mut Vec<u64>) {
        for range in &self.keep {
            out.extend_from_slice(&frame[range.clone()]);
        }
        for (valid, range) in &self.keep_valid {
            if frame[usize::from(*valid)] != 0 {
                out.extend_from_slice(&frame[range.clone()]);
            }
        }
    }

    /// Puts back what [`save`](Self::save) wrote down.
    pub(crate) fn load(&self, frame: &mut Frame, mut saved: &[u64]) {
        let mut take = |frame: &mut Frame, range: &Range<usize>| {
            if let Some((words, rest)) = saved.split_at_checked(range.len()) {
                frame[range.clone()].copy_from_slice(words);
                saved = rest;
            }
        };
        for range in &self.keep {
            take(frame, range);
        }
        // Flags are among what is always kept.
        for (valid, range) in &self.keep_valid {
            if frame[usize::from(*valid)] != 0 {
                take(frame, range);
            }
        }
    }
}

/// Ranges of ascending numbers.
fn ranges(words: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for word in words {
        match out.last_mut() {
            Some(last) if word <= last.end + GAP => last.end = word + 1,
            _ => out.push(word..word + 1),
        }
    }
    out
}

/// A set of words.
#[derive(Clone, PartialEq, Eq)]
struct Set(Box<[u64]>);

impl Set {
    fn new(words: usize) -> Self {
        Set(vec![0; words.div_ceil(64)].into())
    }

    fn has(&self, word: usize) -> bool {
        self.0
            .get(word / 64)
            .is_some_and(|w| w >> (word % 64) & 1 != 0)
    }

    fn each(&mut self, first: Slot, n: usize, change: impl Fn(&mut u64, u64)) {
        for word in usize::from(first)..usize::from(first) + n {
            if let Some(bits) = self.0.get_mut(word / 64) {
                change(bits, 1 << (word % 64));
            }
        }
    }

    fn add(&mut self, first: Slot, n: usize) {
        self.each(first, n, |bits, bit| *bits |= bit);
    }

    fn remove(&mut self, first: Slot, n: usize) {
        self.each(first, n, |bits, bit| *bits &= !bit);
    }

    fn unite(&mut self, other: &Set) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own |= other;
        }
    }
}

/// Words that are read later, for each place in the code.
pub(super) struct Live<'p> {
    program: &'p Program,
    used: usize,
    /// Before each instruction.
    before: Vec<Set>,
    /// Before each instruction, reads that need a valid header not counted.
    plainly: Vec<Set>,
    /// At the end of each stage: what the switch and what comes next reads.
    ends: Vec<[Set; 2]>,
    /// Where code of what stage begins; `None`: actions'.
    regions: Vec<(Pc, Option<usize>)>,
    /// For each action, where it goes on afterwards.
    after: Vec<Vec<Pc>>,
    /// The code that egress may also run, and needs these for.
    floor: Option<[Set; 2]>,
}

const PARSER: usize = 0;
const INGRESS: usize = 2;
const EGRESS: usize = 3;
const DEPARSE: usize = 5;

impl<'p> Live<'p> {
    pub(super) fn new(program: &'p Program, graph: &Graph) -> Self {
        let mut regions: Vec<(Pc, Option<usize>)> = (1..)
            .zip(&graph.stages[1..])
            .map(|(n, at)| (*at, Some(n)))
            .collect();
        regions.push((0, Some(PARSER)));
        regions.extend(graph.actions.first().map(|at| (*at, None)));
        regions.sort_unstable();
        let mut after = vec![Vec::new(); graph.actions.len()];
        for (ways, runs) in graph.tables.iter().zip(&graph.runs) {
            for &action in runs {
                if let Some(way) = ways.way(action as u32) {
                    after[action].extend([way.hit, way.miss]);
                }
            }
        }
        for (ins, fall) in graph.code.iter().zip(&graph.fall) {
            if let Ins::Call { action } = ins {
                after[usize::from(*action)].push(*fall);
            }
        }
        Live {
            program,
            used: used(program, &graph.code),
            before: Vec::new(),
            plainly: Vec::new(),
            ends: Vec::new(),
            regions,
            after,
            floor: None,
        }
    }

    /// What egress needs besides, to run the code in another form.
    pub(super) fn with_floor(mut self, other: &Live<'_>, graph: &Graph) -> Self {
        let egress = graph.stages[EGRESS] as usize;
        self.floor = Some([other.before[egress].clone(), other.plainly[egress].clone()]);
        self
    }

    /// Words that it takes.
    pub(super) fn cost(&self, graph: &Graph) -> usize {
        2 * graph.code.len() * (self.used / 64 + 4)
    }

    /// Goes through the code until nothing changes.
    pub(super) fn settle(mut self, graph: &Graph) -> Self {
        self.before = vec![Set::new(self.used); graph.code.len()];
        self.plainly = self.before.clone();
        self.ends = (0..graph.stages.len())
            .map(|stage| self.told(stage))
            .collect();
        loop {
            let mut changed = self.tie(graph);
            for pc in (0..graph.code.len()).rev() {
                changed |= self.step(graph, pc as Pc);
            }
            if !changed {
                return self;
            }
        }
    }

    /// What the switch itself reads at the end of a stage.
    fn told(&self, stage: usize) -> [Set; 2] {
        let (program, parts) = (self.program, &self.program.parts);
        let mut sets = [Set::new(self.used), Set::new(self.used)];
        let mut read = |first: Slot, n: usize| sets.iter_mut().for_each(|set| set.add(first, n));
        let standard = &program.standard;
        if stage >= INGRESS {
            let lists = parts.field_lists.iter().flatten();
            lists.for_each(|&(slot, n)| read(slot, usize::from(n)));
            read(standard.egress_spec, 1);
        }
        if stage == INGRESS {
            let more = standard.mcast_grp.into_iter().chain(standard.priority);
            more.for_each(|slot| read(slot, 1));
            for field in parts.digests.iter().flatten() {
                if let crate::program::DigestField::Word { slot, bits } = field {
                    read(*slot, crate::program::code::limbs(*bits));
                }
            }
        }
        if stage == DEPARSE {
            for &number in &parts.deparse_order {
                let header = &program.headers[usize::from(number)];
                read(header.valid, 1);
            }
            for &number in &parts.deparse_order {
                let header = &program.headers[usize::from(number)];
                sets[0].add(header.first, usize::from(header.words));
            }
        }
        if let (INGRESS, Some(floor)) = (stage, &self.floor) {
            sets[0].unite(&floor[0]);
            sets[1].unite(&floor[1]);
        }
        sets
    }

    /// At the end of a stage is needed what the next one needs.
    fn tie(&mut self, graph: &Graph) -> bool {
        let mut changed = false;
        for stage in 0..graph.stages.len() - 1 {
            let next = graph.stages[stage + 1] as usize;
            let before = self.ends[stage].clone();
            self.ends[stage][0].unite(&self.before[next]);
            self.ends[stage][1].unite(&self.plainly[next]);
            changed |= before != self.ends[stage];
        }
        changed
    }

    fn region(&self, pc: Pc) -> Option<usize> {
        let at = self.regions.partition_point(|(start, _)| *start <= pc);
        self.regions[at - 1].1
    }

    /// After an instruction; of its ways, those that are this one's (see [`Self::before`]).
    fn out(&self, graph: &Graph, pc: Pc, which: usize) -> Set {
        let sets = [&self.before, &self.plainly][which];
        let mut out = Set::new(self.used);
        graph.successors(pc, |to| out.unite(&sets[to as usize]));
        for &action in graph.actions_of(pc) {
            out.unite(&sets[graph.actions[action] as usize]);
        }
        let ins = graph.code[pc as usize];
        match ins {
            Ins::Call { action } => {
                out.unite(&sets[graph.actions[usize::from(action)] as usize]);
            }
            Ins::Return => {
                let action = graph.actions.partition_point(|start| *start <= pc);
                for &to in &self.after[action - 1] {
                    out.unite(&sets[to as usize]);
                }
            }
            _ => {}
        }
        if matches!(ins, Ins::Halt | Ins::Exit) || may_end(ins) {
            match self.region(pc) {
                Some(stage) => out.unite(&self.ends[stage][which]),
                None => [INGRESS, EGRESS]
                    .iter()
                    .for_each(|&stage| out.unite(&self.ends[stage][which])),
            }
        }
        out
    }

    /// Recomputes what is read from an instruction on; whether that changed.
    fn step(&mut self, graph: &Graph, pc: Pc) -> bool {
        let mut changed = false;
        for which in 0..2 {
            let mut set = self.out(graph, pc, which);
            let ins = graph.code[pc as usize];
            accesses(self.program, ins, &mut |access, slot, n| {
                if access == Access::Write {
                    set.remove(slot, n);
                }
            });
            accesses(self.program, ins, &mut |access, slot, n| match access {
                Access::Read => set.add(slot, n),
                Access::Guarded if which == 0 => set.add(slot, n),
                _ => {}
            });
            let own = match which {
                0 => &mut self.before[pc as usize],
                _ => &mut self.plainly[pc as usize],
            };
            if *own != set {
                *own = set;
                changed = true;
            }
        }
        changed
    }

    /// Leaves out instructions that write only what nobody reads; whether there were any.
    pub(super) fn remove_dead(&self, graph: &mut Graph) -> bool {
        let mut removed = false;
        for pc in 0..graph.code.len() {
            let ins = graph.code[pc];
            if !only_writes(self.program, ins) {
                continue;
            }
            let out = self.out(graph, pc as Pc, 0);
            let mut read = false;
            accesses(self.program, ins, &mut |access, slot, n| {
                if matches!(access, Access::Write | Access::Maybe) {
                    let mut words = usize::from(slot)..usize::from(slot) + n;
                    read |= words.any(|word| out.has(word));
                }
            });
            if !read {
                graph.code[pc] = Ins::Jump { to: graph.fall[pc] };
                removed = true;
            }
        }
        removed
    }

    /// What has to be looked after of a packet's words.
    pub(super) fn needs(&self, graph: &Graph) -> Needs {
        let words = self.program.packet_words;
        let [parser, egress] = [PARSER, EGRESS].map(|stage| graph.stages[stage] as usize);
        let of = |set: &Set| ranges((0..words).filter(|&word| set.has(word)));
        let keep = of(&self.plainly[egress]);
        let kept = |word: usize| keep.iter().any(|range| range.contains(&word));
        let headers = self.program.headers.iter().filter(|h| !h.metadata);
        let keep_valid = headers.filter_map(|header| {
            let first = usize::from(header.first);
            let range = first..first + usize::from(header.words);
            let needed = range
                .clone()
                .any(|word| self.before[egress].has(word) && !kept(word));
            needed.then_some((header.valid, range))
        });
        Needs {
            clear: of(&self.plainly[parser]),
            keep_valid: keep_valid.collect(),
            keep,
        }
    }
}

//! Jumps whose outcome is known are not made, copies are not read, and what a word holds already is
//! not written to it.

use std::collections::VecDeque;

use super::Graph;
use super::effects::{Access, accesses, may_end};
use super::facts::{Facts, Words};
use crate::program::Program;
use crate::program::code::{Ins, Pc};

/// Instructions that an edge may lead past at once.
const STEPS: usize = 64;
/// Instructions before a jump that may be copied with it.
const COPIES: usize = 4;
/// Code may grow by this factor for ways of its own, and to so many instructions.
const GROWTH: usize = 3;
const MOST: usize = 40_000;

/// Facts at all places where ways of the code meet, and what follows from them.
struct Forward<'p> {
    program: &'p Program,
    words: Words<'p>,
    /// At places where something but the instruction before leads.
    before: Vec<Option<Facts>>,
    meets: Vec<bool>,
    /// Facts at the end of a stage, for the next one.
    ends: [Option<Facts>; 2],
    /// Words that each action may write.
    written: Vec<Vec<(u16, usize)>>,
}

/// Goes through the code once; whether anything changed.
pub(super) fn simplify(program: &Program, graph: &mut Graph) -> bool {
    let mut forward = Forward {
        program,
        words: Words::new(program, &graph.code),
        before: (0..graph.code.len()).map(|_| None).collect(),
        meets: meets(graph),
        ends: [None, None],
        written: written(program, graph),
    };
    forward.settle(graph);
    let mut changed = false;
    for pc in 0..forward.before.len() {
        if let Some(facts) = forward.before[pc].clone() {
            changed |= forward.rewrite(graph, pc as Pc, facts);
        }
    }
    changed
}

/// Where ways meet, or begin.
pub(super) fn meets(graph: &Graph) -> Vec<bool> {
    let mut counts = vec![0u32; graph.code.len() + 1];
    for pc in 0..graph.code.len() as Pc {
        graph.successors(pc, |to| {
            counts[to as usize] += if to == pc + 1 { 1 } else { 2 }
        });
    }
    let starts = graph.stages.iter().chain(&graph.actions);
    starts.for_each(|&at| counts[at as usize] += 2);
    counts.into_iter().map(|count| count > 1).collect()
}

/// The words that actions may write, calls of other actions included.
fn written(program: &Program, graph: &Graph) -> Vec<Vec<(u16, usize)>> {
    let reach = |start: Pc| {
        let mut seen = vec![false; graph.code.len()];
        let mut todo = vec![start];
        let mut out = Vec::new();
        while let Some(pc) = todo.pop() {
            if std::mem::replace(&mut seen[pc as usize], true) {
                continue;
            }
            let ins = graph.code[pc as usize];
            accesses(program, ins, &mut |access, slot, n| {
                if matches!(access, Access::Write | Access::Maybe) {
                    out.push((slot, n));
                }
            });
            graph.successors(pc, |to| todo.push(to));
        }
        out.sort_unstable();
        out.dedup();
        out
    };
    graph.actions.iter().map(|&start| reach(start)).collect()
}

impl Forward<'_> {
    /// Nothing changes any more.
    fn settle(&mut self, graph: &Graph) {
        let mut todo = VecDeque::new();
        let starts = graph.stages.iter().chain(&graph.actions);
        for &start in starts.filter(|&&start| start != graph.stages[1] && start != graph.stages[2])
        {
            let facts = match start == graph.stages[0] {
                true => self.fresh(),
                false => self.words.nothing(),
            };
            self.arrive(start, &facts, &mut todo);
        }
        while let Some(pc) = todo.pop_front() {
            if let Some(facts) = self.before[pc as usize].clone() {
                self.walk(graph, pc, facts, &mut todo);
            }
            for stage in 0..self.ends.len() {
                if let Some(facts) = self.ends[stage].clone() {
                    self.arrive(graph.stages[stage + 1], &facts, &mut todo);
                }
            }
        }
    }

    /// A packet's words when the parser begins: flags, counters and metadata are zero, but for what
    /// the architecture and field lists put there.
    fn fresh(&self) -> Facts {
        let mut facts = self.words.nothing();
        let Some(zero) = self.words.zero else {
            return facts;
        };
        for slot in 0..self.program.metadata.end {
            facts.set_same(slot as u16, zero);
        }
        let lists = self.program.parts.field_lists.iter().flatten();
        lists.for_each(|&(slot, n)| facts.forget(slot, usize::from(n)));
        let standard = self.program.standard.written();
        standard.into_iter().for_each(|slot| facts.forget(slot, 1));
        facts
    }

    fn arrive(&mut self, to: Pc, facts: &Facts, todo: &mut VecDeque<Pc>) {
        let changed = match &mut self.before[to as usize] {
            Some(before) => before.meet(facts),
            slot => {
                *slot = Some(facts.clone());
                true
            }
        };
        if changed && !todo.contains(&to) {
            todo.push_back(to);
        }
    }

    /// From a place where ways meet up to the next.
    fn walk(&mut self, graph: &Graph, start: Pc, mut facts: Facts, todo: &mut VecDeque<Pc>) {
        let mut pc = start;
        loop {
            let ins = graph.code[pc as usize];
            self.end(graph, ins, pc, &facts);
            match ins {
                Ins::Apply { table } => {
                    self.after_table(
                        graph,
                        usize::from(table),
                        &facts,
                        &mut |forward, to, facts| {
                            forward.arrive(to, facts, todo);
                        },
                    );
                    return;
                }
                Ins::Call { action } => self.forget_action(usize::from(action), &mut facts),
                _ => {}
            }
            let decided = facts.taken(&self.words, ins);
            let taken = self.facts_if(ins, &facts, true);
            self.pass(ins, &mut facts);
            let fall = graph.fall[pc as usize];
            let jump = ins.target().filter(|_| is_conditional(ins));
            let mut next = None;
            graph.successors(pc, |to| {
                let jumps = Some(to) == jump && to != fall;
                if jump.is_some() && decided == Some(!jumps) {
                    return;
                }
                let facts = if jumps { &taken } else { &facts };
                match self.meets[to as usize] || to != pc + 1 {
                    true => self.arrive(to, facts, todo),
                    false => next = Some(to),
                }
            });
            match next {
                Some(to) => pc = to,
                None => return,
            }
        }
    }

    /// Facts at the ends of parser and verification are those at the start of what comes next.
    fn end(&mut self, graph: &Graph, ins: Ins, pc: Pc, facts: &Facts) {
        let stage = match ins {
            Ins::Halt if pc < graph.stages[1] => 0,
            Ins::Halt if pc < graph.actions.first().copied().unwrap_or(Pc::MAX) => 1,
            ins if may_end(ins) => 0,
            _ => return,
        };
        let mut facts = facts.clone();
        let standard = &self.program.standard;
        let told = standard
            .parser_error
            .into_iter()
            .chain(standard.checksum_error);
        told.for_each(|slot| facts.forget(slot, 1));
        match &mut self.ends[stage] {
            Some(end) => {
                end.meet(&facts);
            }
            none => *none = Some(facts),
        }
    }

    fn facts_if(&self, ins: Ins, facts: &Facts, taken: bool) -> Facts {
        let mut facts = facts.clone();
        facts.decided(&self.words, ins, taken);
        facts
    }

    /// What is known when an instruction did not jump.
    fn pass(&self, ins: Ins, facts: &mut Facts) {
        match is_conditional(ins) {
            true => facts.decided(&self.words, ins, false),
            false => facts.pass(&self.words, ins),
        }
    }

    fn forget_action(&self, action: usize, facts: &mut Facts) {
        for &(slot, n) in &self.written[action] {
            facts.forget(slot, n);
        }
    }

    /// What is known after an action: what a short one sets included.
    fn after_action(&self, graph: &Graph, action: usize, facts: &Facts) -> Facts {
        let mut facts = facts.clone();
        let words = usize::from(self.program.parts.action_words[action]);
        facts.forget(self.program.parts.params_base, words);
        if !self.pass_action(graph, action, &mut facts) {
            self.forget_action(action, &mut facts);
        }
        // Whoever only copies words takes them from the entry.
        facts.forget(self.program.parts.params_base, words);
        facts
    }

    /// Goes through an action, if it is a straight one.
    fn pass_action(&self, graph: &Graph, action: usize, facts: &mut Facts) -> bool {
        let mut pc = graph.actions[action];
        let mut after = facts.clone();
        for _ in 0..STEPS {
            let ins = graph.code[pc as usize];
            pc = match ins {
                Ins::Return => {
                    *facts = after;
                    return true;
                }
                Ins::Jump { to } => to,
                ins if ins.target().is_some() || matches!(ins, Ins::Exit | Ins::Call { .. }) => {
                    return false;
                }
                ins => {
                    after.pass(&self.words, ins);
                    graph.fall[pc as usize]
                }
            };
        }
        false
    }

    fn after_table(
        &mut self,
        graph: &Graph,
        table: usize,
        facts: &Facts,
        each: &mut dyn FnMut(&mut Self, Pc, &Facts),
    ) {
        let mut facts = facts.clone();
        if let Some((slot, _)) = self.program.parts.tables[table].meter_target {
            facts.forget(slot, 1);
        }
        for &action in &graph.runs[table] {
            if let Some(way) = graph.tables[table].way(action as u32) {
                let after = self.after_action(graph, action, &facts);
                each(self, way.hit, &after);
                each(self, way.miss, &after);
            }
        }
        for none in graph.tables[table].none {
            each(self, none, &facts);
        }
    }

    /// Where an edge leads in the end.
    fn resolve(&self, graph: &mut Graph, to: Pc, facts: &Facts) -> Pc {
        let pc = self.follow(graph, to, facts);
        self.split(graph, pc, facts).unwrap_or(pc)
    }

    /// Where an edge leads past what has no effect.
    fn follow(&self, graph: &Graph, to: Pc, facts: &Facts) -> Pc {
        let mut pc = to;
        for _ in 0..STEPS {
            let at = pc as usize;
            pc = match graph.code[at] {
                Ins::Jump { to } => to,
                Ins::Mov { d, a } if facts.root(a) == facts.root(d) => graph.fall[at],
                ins => match facts.taken(&self.words, ins) {
                    Some(true) => ins.target().unwrap_or(pc),
                    Some(false) => graph.fall[at],
                    None => return pc,
                },
            };
        }
        pc
    }

    /// A copy of a few instructions at a place where ways meet, for one of the ways, if more is
    /// known on it than where they meet: so much that the jump at their end, or one right behind
    /// it, goes another way.
    fn split(&self, graph: &mut Graph, place: Pc, facts: &Facts) -> Option<Pc> {
        let at = place as usize;
        let has_room = graph.code.len() < (GROWTH * graph.compiled).min(MOST);
        if !has_room || !*self.meets.get(at)? {
            return None;
        }
        let (mut facts, mut own) = (facts.clone(), self.before[at].clone()?);
        let mut pc = place;
        let mut copies = Vec::new();
        while !is_conditional(graph.code[pc as usize]) {
            let ins = graph.code[pc as usize];
            match ins {
                // Not backwards, or it might not end.
                Ins::Jump { to } if to > pc => {
                    pc = to;
                    continue;
                }
                ins if copies.len() == COPIES || !is_plain(ins) => return None,
                _ => {}
            }
            facts.pass(&self.words, ins);
            own.pass(&self.words, ins);
            copies.push(ins);
            pc = graph.fall[pc as usize];
        }
        let jump = graph.code[pc as usize];
        if own.taken(&self.words, jump).is_some() {
            return None;
        }
        let ways = |facts: &Facts| {
            let goals = [
                (jump.target(), true),
                (Some(graph.fall[pc as usize]), false),
            ];
            goals.map(|(to, taken)| {
                let facts = self.facts_if(jump, facts, taken);
                to.map(|to| self.follow(graph, to, &facts))
            })
        };
        let [to, fall] = ways(&facts);
        let decided = facts.taken(&self.words, jump);
        if decided.is_none() && [to, fall] == ways(&own) {
            return None;
        }
        let (to, fall) = (to?, fall?);
        copies.push(match decided {
            Some(taken) => Ins::Jump {
                to: if taken { to } else { fall },
            },
            None => jump.with_target(to)?,
        });
        let copy = graph.code.len() as Pc;
        graph
            .fall
            .extend((1..).map(|n| copy + n).take(copies.len() - 1));
        graph.fall.push(fall);
        graph.code.extend(copies);
        Some(copy)
    }

    /// Rewrites the code from a place where ways meet up to the next; whether it changed.
    fn rewrite(&mut self, graph: &mut Graph, start: Pc, mut facts: Facts) -> bool {
        let mut pc = start;
        let mut changed = false;
        loop {
            let at = pc as usize;
            let before = (graph.code[at], graph.fall[at]);
            if let Ins::Apply { table } = before.0 {
                return self.rewrite_table(graph, usize::from(table), &facts) | changed;
            }
            let mut next = false;
            graph.successors(pc, |to| next |= to == pc + 1);
            let ins = self.replaced(before.0, &facts);
            let decided = facts.taken(&self.words, ins);
            graph.code[at] = self.shortened(graph, ins, before.1, &facts);
            if let Ins::Call { action } = ins {
                self.forget_action(usize::from(action), &mut facts);
            }
            self.pass(ins, &mut facts);
            if falls(graph.code[at]) {
                // The next instruction is this one's own if nothing else leads to it.
                graph.fall[at] = self.resolve(graph, before.1, &facts);
            }
            changed |= before != (graph.code[at], graph.fall[at]);
            if !next || decided == Some(true) || self.meets[at + 1] {
                return changed;
            }
            pc += 1;
        }
    }

    /// An instruction that reads originals instead of copies.
    fn replaced(&self, mut ins: Ins, facts: &Facts) -> Ins {
        ins.for_each_word_read(|slot| *slot = facts.root(*slot));
        if let Ins::RegisterWrite { register, a, .. } = &mut ins
            && self.program.registers()[usize::from(*register)].limbs() == 1
        {
            *a = facts.root(*a);
        }
        ins
    }

    /// An instruction that jumps where it leads to in the end, or is left out.
    fn shortened(&self, graph: &mut Graph, ins: Ins, fall: Pc, facts: &Facts) -> Ins {
        let ins = match (ins, facts.taken(&self.words, ins)) {
            (Ins::Mov { d, a }, _) if facts.root(a) == facts.root(d) => Ins::Jump { to: fall },
            (_, Some(true)) => Ins::Jump {
                to: ins.target().unwrap_or(fall),
            },
            (_, Some(false)) => Ins::Jump { to: fall },
            _ => ins,
        };
        match (ins, ins.target()) {
            // It is counted, to end endless loops.
            (Ins::Loop { .. }, _) | (_, None) => ins,
            (_, Some(to)) => {
                let goal = self.resolve(graph, to, &self.facts_if(ins, facts, true));
                ins.with_target(goal).unwrap_or(ins)
            }
        }
    }

    fn rewrite_table(&mut self, graph: &mut Graph, table: usize, facts: &Facts) -> bool {
        let mut facts = facts.clone();
        if let Some((slot, _)) = self.program.parts.tables[table].meter_target {
            facts.forget(slot, 1);
        }
        let mut changed = false;
        for action in graph.runs[table].clone() {
            let after = self.after_action(graph, action, &facts);
            let Some(way) = graph.tables[table].way(action as u32) else {
                continue;
            };
            let before = (way.hit, way.miss);
            let hit = self.resolve(graph, before.0, &after);
            let miss = match before.0 == before.1 {
                true => hit,
                false => self.resolve(graph, before.1, &after),
            };
            changed |= (hit, miss) != before;
            if let Some(way) = graph.tables[table].way_mut(action) {
                (way.hit, way.miss) = (hit, miss);
            }
        }
        let none = graph.tables[table]
            .none
            .map(|to| self.resolve(graph, to, &facts));
        changed |= none != graph.tables[table].none;
        graph.tables[table].none = none;
        changed
    }
}

fn is_conditional(ins: Ins) -> bool {
    ins.target().is_some() && falls(ins)
}

/// Whether an instruction always goes on with the next, in the same stage.
fn is_plain(ins: Ins) -> bool {
    falls(ins) && ins.target().is_none() && !may_end(ins) && !matches!(ins, Ins::Call { .. })
}

/// Whether an instruction may go on with the one after it.
fn falls(ins: Ins) -> bool {
    !matches!(
        ins,
        Ins::Jump { .. }
            | Ins::Loop { .. }
            | Ins::Goto { .. }
            | Ins::Halt
            | Ins::Exit
            | Ins::Return
            | Ins::Apply { .. }
            | Ins::Select { .. }
    )
}

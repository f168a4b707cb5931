//! Puts the instructions that are left one after the other.

use super::Graph;
use crate::program::Program;
use crate::program::code::{Ins, Pc};
use crate::program::form::{Bodies, Form};

struct Layout<'a> {
    program: &'a Program,
    graph: &'a Graph,
    /// Where ways of the code meet.
    meets: Vec<bool>,
    /// Where instructions went.
    placed: Vec<Option<Pc>>,
    code: Vec<Ins>,
    /// Places to which something jumps that was not placed yet.
    pending: Vec<Pc>,
}

/// The code in the order in which it mostly runs. `None`: a jump would be too far.
pub(super) fn layout(program: &Program, graph: &Graph) -> Option<Form> {
    let mut layout = Layout {
        program,
        graph,
        meets: super::simplify::meets(graph),
        placed: vec![None; graph.code.len()],
        code: Vec::new(),
        pending: Vec::new(),
    };
    for &start in &graph.actions {
        layout.place_all(start, false);
    }
    let stages = graph.stages;
    stages
        .into_iter()
        .for_each(|start| layout.place_all(start, true));
    let Layout {
        placed, mut code, ..
    } = layout;
    let goal = |to: Pc| placed[to as usize].unwrap_or(0);
    for ins in &mut code {
        *ins = match *ins {
            Ins::Goto { to } => Ins::Goto { to: goal(to) },
            other => match other.target() {
                Some(to) => other.with_target(goal(to))?,
                None => other,
            },
        };
    }
    let actions: Vec<Pc> = graph.actions.iter().map(|&start| goal(start)).collect();
    let mut tables = graph.tables.clone();
    let bodies = Bodies {
        code: &code,
        entries: &actions,
        words: &program.parts.action_words,
        params_base: program.parts.params_base,
    };
    tables
        .iter_mut()
        .for_each(|ways| ways.relocate(goal, &bodies));
    let mut selects = graph.selects.clone();
    for select in &mut selects {
        select.relocate(goal);
    }
    let mut at = vec![0; graph.code.len()];
    graph
        .stages
        .iter()
        .for_each(|&start| at[start as usize] = goal(start));
    Some(Form {
        code: code.into(),
        at,
        selects,
        actions,
        tables,
    })
}

impl Layout<'_> {
    /// Places what can be reached from an instruction.
    fn place_all(&mut self, start: Pc, merges: bool) {
        self.pending.push(start);
        while let Some(start) = self.pending.pop() {
            if self.placed[start as usize].is_none() {
                self.place(start, merges);
            }
        }
    }

    /// Places an instruction and what comes after it.
    fn place(&mut self, start: Pc, merges: bool) {
        let mut pc = start;
        // Instructions left out lead to where the next one goes.
        let mut out = Vec::new();
        loop {
            if self.placed[pc as usize].is_some() {
                let here = self.code.len() as Pc;
                out.drain(..)
                    .for_each(|pc: Pc| self.placed[pc as usize] = Some(here));
                return self.code.push(Ins::Jump { to: pc });
            }
            let ins = self.graph.code[pc as usize];
            if let Ins::Jump { to } = ins
                && !out.contains(&pc)
            {
                out.push(pc);
                pc = to;
                continue;
            }
            let merged = merges
                && out.is_empty()
                && pc != start
                && !self.meets[pc as usize]
                && self.merge(ins);
            let here = self.code.len() as Pc - Pc::from(merged);
            out.drain(..)
                .for_each(|pc| self.placed[pc as usize] = Some(here));
            self.placed[pc as usize] = Some(here);
            if merged {
                pc = self.graph.fall[pc as usize];
                continue;
            }
            match self.put(pc, ins, merges) {
                Some(next) => pc = next,
                None => return,
            }
        }
    }

    /// Places one instruction; where to go on.
    fn put(&mut self, pc: Pc, ins: Ins, merges: bool) -> Option<Pc> {
        let graph = self.graph;
        let fall = graph.fall[pc as usize];
        match ins {
            Ins::Halt | Ins::Exit | Ins::Return => {
                self.code.push(ins);
                None
            }
            Ins::Apply { .. }
            | Ins::Select { .. }
            | Ins::Goto { .. }
            | Ins::Jump { .. }
            | Ins::Loop { .. } => {
                self.code.push(ins);
                graph.successors(pc, |to| self.pending.push(to));
                None
            }
            _ => {
                let Some(to) = ins.target() else {
                    self.code.push(self.short(ins, merges));
                    return Some(fall);
                };
                let is_placed = |pc: Pc| self.placed[pc as usize].is_some();
                let inverse = ins.inverse().filter(|_| is_placed(fall) && !is_placed(to));
                match inverse.and_then(|ins| ins.with_target(fall)) {
                    Some(inverse) => {
                        self.code.push(self.short(inverse, merges));
                        Some(to)
                    }
                    None => {
                        self.code.push(self.short(ins, merges));
                        self.pending.push(to);
                        Some(fall)
                    }
                }
            }
        }
    }

    fn constant(&self, slot: u16) -> Option<u64> {
        let parts = &self.program.parts;
        parts
            .constants
            .get(usize::from(slot).checked_sub(parts.constants_base)?)
            .copied()
    }

    /// What writes zeros only: the first word and how many.
    fn zeros(&self, ins: Ins) -> Option<(u16, u16)> {
        match ins {
            Ins::Mov { d, a } if self.constant(a) == Some(0) => Some((d, 1)),
            Ins::WExt {
                from: 1, to, d, a, ..
            } if self.constant(a) == Some(0) => Some((d, to.into())),
            Ins::Clear { d, n } => Some((d, n)),
            _ => None,
        }
    }

    /// Lets the last instruction do this one's work too, if it can.
    fn merge(&mut self, ins: Ins) -> bool {
        let Some((d, n)) = self.zeros(ins) else {
            return false;
        };
        let Some((before, m)) = self.code.last().and_then(|last| self.zeros(*last)) else {
            return false;
        };
        if before + m != d {
            return false;
        }
        if let Some(last) = self.code.last_mut() {
            *last = Ins::Clear {
                d: before,
                n: m + n,
            };
        }
        true
    }

    /// An instruction that does the same and takes less to do it.
    fn short(&self, ins: Ins, merges: bool) -> Ins {
        let small = |slot| {
            self.constant(slot)
                .and_then(|value| u16::try_from(value).ok())
        };
        match ins {
            Ins::JumpEq { a, b, to } => match (small(a), small(b)) {
                (_, Some(value)) => Ins::JumpIs { a, value, to },
                (Some(value), _) => Ins::JumpIs { a: b, value, to },
                _ => ins,
            },
            Ins::JumpNe { a, b, to } => match (small(a), small(b)) {
                (_, Some(value)) => Ins::JumpIsNot { a, value, to },
                (Some(value), _) => Ins::JumpIsNot { a: b, value, to },
                _ => ins,
            },
            _ if merges => match self.zeros(ins) {
                Some((d, n)) if n > 1 => Ins::Clear { d, n },
                _ => ins,
            },
            _ => ins,
        }
    }
}

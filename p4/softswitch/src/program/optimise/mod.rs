//! Makes a program's code faster without changing what it does.
//!
//! p4c's output, and so the code compiled from it, tests the same words again and again (was the
//! packet dropped? is the header there?) and moves each value through temporaries of its own. Here
//! the code of all pipelines is looked at as one graph: what is known of words is carried forwards
//! ([`facts`]), so that a jump whose outcome is known on the way to it is not made, and a word that
//! is a copy of another is not read; what is still read of them is carried backwards ([`live`]), so
//! that words nobody reads are not written. What is left is laid out anew ([`layout`]), with what
//! comes next mostly following.
//!
//! A switch that traces runs the code as it was compiled, in which every step of the source is there.

mod effects;
mod facts;
mod layout;
mod live;
mod simplify;

use super::code::{Ins, Pc};
use super::form::{Form, Ways};
use super::{Program, parser::Select};
use live::Live;
pub(crate) use live::Needs;

/// Words that the analyses may take; programs that need more stay as they are.
const BUDGET: usize = 16 << 20;
/// Times that the code is gone through.
const ROUNDS: usize = 6;

/// The parts of a program that run one after the other.
pub(super) const STAGES: usize = 6;

/// Code as a graph: instructions at the places where they were compiled, each with where it goes on.
struct Graph {
    code: Vec<Ins>,
    /// Instructions that were compiled; copies of them come behind.
    compiled: usize,
    /// Where an instruction goes on that does not jump.
    fall: Vec<Pc>,
    tables: Vec<Ways>,
    selects: Vec<Select>,
    /// Where actions begin, and which of them each table may run.
    actions: Vec<Pc>,
    runs: Vec<Vec<usize>>,
    /// Where the stages begin: parser, verify, ingress, egress, update, deparser.
    stages: [Pc; STAGES],
}

impl Graph {
    fn new(program: &Program) -> Self {
        let plain = &program.parts.plain;
        let parts = &program.parts;
        let profile_actions =
            |id: crate::ids::ProfileId| program.profiles()[id.index()].actions.iter();
        let runs = program
            .tables()
            .iter()
            .zip(&parts.tables)
            .map(|(info, def)| {
                let default = def.default.as_ref().map(|call| call.action.index());
                let own = info
                    .actions
                    .iter()
                    .chain(def.profile.into_iter().flat_map(profile_actions));
                let mut all: Vec<usize> = own.map(|id| id.index()).chain(default).collect();
                all.sort_unstable();
                all.dedup();
                all
            });
        Graph {
            code: plain.code.to_vec(),
            compiled: plain.code.len(),
            fall: (1..=plain.code.len() as Pc).collect(),
            tables: plain.tables.clone(),
            selects: plain.selects.clone(),
            actions: plain.actions.clone(),
            runs: runs.collect(),
            stages: [
                parts.parser,
                parts.verify,
                parts.ingress,
                parts.egress,
                parts.update,
                parts.deparse,
            ],
        }
    }

    /// Where an instruction may go on, but for a table's actions and the end of the parser.
    fn successors(&self, pc: Pc, mut each: impl FnMut(Pc)) {
        let at = pc as usize;
        let ins = self.code[at];
        match ins {
            Ins::Halt | Ins::Exit | Ins::Return => {}
            Ins::Jump { to } | Ins::Loop { to } | Ins::Goto { to } => each(to),
            Ins::Apply { table } => {
                let table = usize::from(table);
                self.tables[table].goals(&self.runs[table], each);
            }
            Ins::Select { select } => {
                let select = &self.selects[usize::from(select)];
                select.cases.iter().for_each(|case| each(case.to()));
                each(select.default);
            }
            _ => {
                if let Some(to) = ins.target() {
                    each(to);
                }
                each(self.fall[at]);
            }
        }
    }

    /// The actions that an instruction may run.
    fn actions_of(&self, pc: Pc) -> &[usize] {
        match self.code[pc as usize] {
            Ins::Apply { table } => &self.runs[usize::from(table)],
            _ => &[],
        }
    }
}

/// The program's code, faster, and what of a packet's words has to be looked after.
pub(super) fn optimise(program: &Program) -> (Form, Needs) {
    let mut graph = Graph::new(program);
    let unsettled = Live::new(program, &graph);
    if unsettled.cost(&graph) > BUDGET {
        return (program.parts.plain.clone(), Needs::all(program));
    }
    let plain = unsettled.settle(&graph);
    let mut needs = plain.needs(&graph);
    let mut live = None;
    for _ in 0..ROUNDS {
        let changed = simplify::simplify(program, &mut graph);
        // A packet that ingress ran on in this form may meet egress in the other.
        let settled = Live::new(program, &graph)
            .with_floor(&plain, &graph)
            .settle(&graph);
        let removed = settled.remove_dead(&mut graph);
        live = Some(settled);
        if !changed && !removed {
            break;
        }
    }
    if let Some(live) = live {
        needs.add(&live.needs(&graph));
    }
    match layout::layout(program, &graph) {
        Some(form) => (form, needs),
        None => (program.parts.plain.clone(), Needs::all(program)),
    }
}

//! The law of registers: what stays together when several lanes move packets at a time.
//!
//! bmv2 runs one packet through ingress at a time, and locks the register arrays that an action
//! uses for as long as the action runs. Of P4's `@atomic`, nothing reaches the JSON. So the
//! program itself says what has to be one step:
//!
//! - A cell is read whole and written whole, whatever its width.
//! - A **read-modify-write** of an array is one step: from a read that a write of the same array
//!   follows in the same action (or the same straight run of statements), to the last such write. If an action writes what an earlier
//!   action of the same pipeline has read, and has not read it again itself, the step lasts from
//!   that earlier read to this write, with all that is in between.
//! - Ingress and egress of a packet are two steps, as they are in bmv2.
//!
//! During a step nobody else reads for a change or writes what is locked: the cell, one of
//! [`STRIPES`] groups of cells, when each action that changes the array reads once and writes
//! once, else the whole array. Arrays whose steps could wait for each other share one lock and
//! keep it until the pipeline ends. An array that packets only read has no lock at all.
//!
//! What the law does not give: two arrays that are not read and written in overlapping steps may
//! be seen one changed and the other not yet. One worker gives that, too.

use std::collections::BTreeSet;

use super::Parts;
use super::code::{Ins, Pc};

/// Locks of an array whose cells are locked in groups.
pub(crate) const STRIPES: u32 = 16;

/// Which locks an array has: some of a row of locks, one by each remainder of the cell's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locks {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// By array, its locks; `None`: it needs none.
#[derive(Debug, Default)]
pub(crate) struct Law {
    pub(crate) arrays: Vec<Option<Locks>>,
    /// How many locks there are.
    pub(crate) count: u32,
}

type Arrays = BTreeSet<u16>;

/// One access of code to an array.
#[derive(Clone, Copy)]
struct Access {
    at: usize,
    array: u16,
    is_write: bool,
}

fn access(code: &[Ins], at: usize) -> Option<Access> {
    let (array, is_write) = match code[at] {
        Ins::RegisterRead { register, .. } => (register, false),
        Ins::RegisterWrite { register, .. } => (register, true),
        _ => return None,
    };
    Some(Access {
        at,
        array,
        is_write,
    })
}

/// Places that code from `entry` can come to, without the actions that it runs.
fn reach(entry: Pc, next: impl Fn(usize) -> Vec<Pc>) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut open = vec![entry as usize];
    while let Some(at) = open.pop() {
        if seen.insert(at) {
            open.extend(next(at).into_iter().map(|to| to as usize));
        }
    }
    seen
}

/// An action's code, as far as registers go.
struct Body {
    accesses: Vec<Access>,
    has_jumps: bool,
}

impl Body {
    fn of(code: &[Ins], entry: Pc) -> Self {
        let next = |at: usize| match code[at] {
            Ins::Return | Ins::Halt | Ins::Exit => Vec::new(),
            Ins::Jump { to } => vec![to],
            ins => ins.target().into_iter().chain([at as Pc + 1]).collect(),
        };
        let places = reach(entry, next);
        Body {
            accesses: places.iter().filter_map(|&at| access(code, at)).collect(),
            has_jumps: places.iter().any(|&at| code[at].target().is_some()),
        }
    }

    fn has(&self, array: u16, is_write: bool) -> impl Iterator<Item = usize> {
        let own = self.accesses.iter();
        own.filter(move |a| a.array == array && a.is_write == is_write)
            .map(|a| a.at)
    }

    /// Arrays that are written without having been read in here.
    fn open_writes(&self) -> Arrays {
        let writes = self.accesses.iter().filter(|a| a.is_write);
        writes
            .filter(|write| self.has(write.array, false).all(|read| read > write.at))
            .map(|write| write.array)
            .collect()
    }
}

/// What is found out about a program.
struct Study<'a> {
    parts: &'a Parts,
    /// By table, its actions.
    actions: &'a [Vec<usize>],
    /// By action.
    bodies: Vec<Body>,
    /// By action, arrays that code after it in the same pipeline may write without reading.
    after: Vec<Arrays>,
    /// By number of an action, that number.
    numbers: Vec<usize>,
    /// Pieces of the pipelines' own code, and what code after each may write without reading.
    blocks: Vec<(Body, Arrays)>,
    /// By pipeline, the arrays that it uses.
    touched: Vec<Arrays>,
    /// Arrays whose steps may last beyond an action.
    wide: Arrays,
    /// `(a, b)`: `b` may be waited for while `a` is locked.
    waits: BTreeSet<(u16, u16)>,
    /// Reads to lock at, and writes to unlock at.
    marks: BTreeSet<usize>,
}

impl Study<'_> {
    fn next(&self, at: usize) -> Vec<Pc> {
        match self.parts.plain.code[at] {
            Ins::Apply { table } => {
                let def = &self.parts.tables[usize::from(table)];
                let run = self.actions[usize::from(table)].iter();
                let fixed = [def.next_hit, def.next_miss, Some(def.next_none)];
                let fixed = fixed.into_iter().flatten();
                run.map(|&action| def.next[action]).chain(fixed).collect()
            }
            Ins::Halt | Ins::Exit | Ins::Return => Vec::new(),
            Ins::Jump { to } => vec![to],
            ins => ins.target().into_iter().chain([at as Pc + 1]).collect(),
        }
    }

    /// Actions that a place runs.
    fn runs(&self, at: usize) -> &[usize] {
        match self.parts.plain.code[at] {
            Ins::Apply { table } => &self.actions[usize::from(table)],
            Ins::Call { action } => std::slice::from_ref(&self.numbers[usize::from(action)]),
            _ => &[],
        }
    }

    /// The straight runs of a pipeline's own code that use registers: what an action does that
    /// is written in place. The places of each, in order.
    fn blocks(&self, places: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let is_straight = |at: usize| self.next(at) == [at as Pc + 1] && self.runs(at).is_empty();
        let bent = places.iter().filter(|&&at| !is_straight(at));
        let leaders: BTreeSet<usize> = bent
            .flat_map(|&at| self.next(at))
            .map(|to| to as usize)
            .collect();
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut before = None;
        for &at in places {
            let goes_on = before.is_some_and(|b| b + 1 == at && is_straight(b));
            match blocks.last_mut() {
                Some(block) if goes_on && !leaders.contains(&at) => block.push(at),
                _ => blocks.push(vec![at]),
            }
            before = Some(at);
        }
        blocks
    }

    /// One pipeline: what can be written after each of its steps.
    fn pipeline(&mut self, entry: Pc) {
        let places = reach(entry, |at| self.next(at));
        let blocks = self.blocks(&places);
        let mut own: Vec<Arrays> = vec![Arrays::new(); self.parts.plain.code.len()];
        let mut bodies = Vec::new();
        for block in blocks {
            let accesses = block
                .iter()
                .filter_map(|&at| access(&self.parts.plain.code, at));
            let body = Body {
                accesses: accesses.collect(),
                has_jumps: false,
            };
            own[block[0]] = body.open_writes();
            bodies.push((body, block[block.len() - 1]));
        }
        for &at in &places {
            let runs = self.runs(at).iter();
            own[at].extend(runs.flat_map(|&action| self.bodies[action].open_writes()));
        }
        let from = self.flow(&places, &own);
        let after = |at: usize| -> Arrays {
            let next = self.next(at);
            next.iter()
                .flat_map(|&to| from[to as usize].clone())
                .collect()
        };
        let mut touched = Arrays::new();
        let mut blocks = Vec::new();
        for (body, last) in bodies {
            touched.extend(body.accesses.iter().map(|a| a.array));
            blocks.push((body, after(last)));
        }
        let mut afters = Vec::new();
        for &at in &places {
            for &action in self.runs(at) {
                touched.extend(self.bodies[action].accesses.iter().map(|a| a.array));
                afters.push((action, after(at)));
            }
        }
        for (action, after) in afters {
            self.after[action].extend(after);
        }
        self.blocks.extend(blocks);
        self.touched.push(touched);
    }

    /// What can be written from each place on, where `own` is written at it.
    fn flow(&self, places: &BTreeSet<usize>, own: &[Arrays]) -> Vec<Arrays> {
        let mut from = own.to_vec();
        let mut changed = true;
        while changed {
            changed = false;
            for &at in places.iter().rev() {
                for to in self.next(at) {
                    let more: Vec<u16> = from[to as usize].difference(&from[at]).copied().collect();
                    changed |= !more.is_empty();
                    from[at].extend(more);
                }
            }
        }
        from
    }

    /// Where steps begin and end, and what they may wait for meanwhile.
    fn steps(&mut self) {
        let blocks = self.blocks.iter().map(|(body, after)| (body, after));
        for (body, after) in self.bodies.iter().zip(&self.after).chain(blocks) {
            for access in &body.accesses {
                let array = access.array;
                let later = body.has(array, true).filter(|&at| at > access.at).max();
                let beyond = after.contains(&array);
                match access.is_write {
                    true if later.is_none() && !beyond => {
                        self.marks.insert(access.at);
                    }
                    false if later.is_some() || beyond => {
                        self.marks.insert(access.at);
                        if beyond || body.has_jumps {
                            self.wide.insert(array);
                        }
                        let last = later.unwrap_or(0);
                        let within = body.accesses.iter().map(|a| (a.at, a.array));
                        let within = within.filter(|&(at, _)| at > access.at && at < last);
                        let waits = within.filter(|&(_, other)| other != array);
                        self.waits.extend(waits.map(|(_, other)| (array, other)));
                    }
                    _ => {}
                }
            }
        }
        for touched in &self.touched {
            for &array in self.wide.intersection(touched) {
                let others = touched.iter().filter(|&&other| other != array);
                self.waits.extend(others.map(|&other| (array, other)));
            }
        }
    }

    /// Makes `waits` say also what is waited for by way of others.
    fn close(&mut self, arrays: &Arrays) {
        for &via in arrays {
            let to: Vec<u16> = arrays
                .iter()
                .copied()
                .filter(|&to| self.waits.contains(&(via, to)))
                .collect();
            for &from in arrays {
                if self.waits.contains(&(from, via)) {
                    self.waits.extend(to.iter().map(|&to| (from, to)));
                }
            }
        }
    }

    /// Whether cells of the array can be locked in groups.
    fn is_striped(&self, array: u16) -> bool {
        let simple = |body: &Body| {
            let reads = body.has(array, false).count();
            reads == 0 || body.has(array, true).count() <= 1 && reads == 1
        };
        let blocks = self.blocks.iter().map(|(body, _)| body);
        !self.wide.contains(&array) && self.bodies.iter().chain(blocks).all(simple)
    }
}

/// Finds a program's law. `actions` has each table's; `is_wide` says of each array whether its
/// cells are longer than a word. Marks the reads to lock at and the writes to unlock at.
pub(super) fn find(parts: &mut Parts, actions: &[Vec<usize>], is_wide: &[bool]) -> Law {
    let all: Vec<Access> = (0..parts.plain.code.len())
        .filter_map(|at| access(&parts.plain.code, at))
        .collect();
    let of = |is_write: bool| -> Arrays {
        let some = all.iter().filter(|a| a.is_write == is_write);
        some.map(|a| a.array).collect()
    };
    let (read, written) = (of(false), of(true));
    let shared = |array: &u16| read.contains(array) || is_wide[usize::from(*array)];
    let live: Arrays = written.into_iter().filter(shared).collect();
    if live.is_empty() {
        return Law {
            arrays: vec![None; is_wide.len()],
            count: 0,
        };
    }
    let entries = parts.plain.actions.iter().copied();
    let mut study = Study {
        bodies: entries
            .map(|entry| Body::of(&parts.plain.code, entry))
            .collect(),
        after: vec![Arrays::new(); parts.plain.actions.len()],
        numbers: (0..parts.plain.actions.len()).collect(),
        blocks: Vec::new(),
        touched: Vec::new(),
        parts,
        actions,
        wide: Arrays::new(),
        waits: BTreeSet::new(),
        marks: BTreeSet::new(),
    };
    for entry in [study.parts.ingress, study.parts.egress] {
        study.pipeline(entry);
    }
    study.steps();
    study.close(&live);
    let (law, kept) = number(&study, &live, is_wide.len());
    let marks = std::mem::take(&mut study.marks);
    for at in marks {
        match &mut parts.plain.code[at] {
            Ins::RegisterRead { hold, .. } => *hold = true,
            Ins::RegisterWrite { register, free, .. } => *free = !kept.contains(register),
            _ => {}
        }
    }
    law
}

/// Gives arrays their locks; also, which arrays share one and keep it to the end.
fn number(study: &Study<'_>, live: &Arrays, arrays: usize) -> (Law, Arrays) {
    let mut law = Law {
        arrays: vec![None; arrays],
        count: 0,
    };
    let mut kept = Arrays::new();
    for &array in live {
        let mutual = |other: &u16| {
            study.waits.contains(&(array, *other)) && study.waits.contains(&(*other, array))
        };
        let partners: Vec<u16> = live.iter().copied().filter(mutual).collect();
        let first = partners.iter().copied().find(|&other| other < array);
        if !partners.is_empty() {
            kept.insert(array);
        }
        let locks = match first.and_then(|other| law.arrays[usize::from(other)]) {
            Some(shared) => shared,
            None => {
                let striped = partners.is_empty() && study.is_striped(array);
                let locks = Locks {
                    first: law.count,
                    count: if striped { STRIPES } else { 1 },
                };
                law.count += locks.count;
                locks
            }
        };
        law.arrays[usize::from(array)] = Some(locks);
    }
    (law, kept)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::program::Program;

    /// By array, how many locks it has; 0: none.
    fn counts(json: &[u8], names: &[&str]) -> Vec<u32> {
        let program = Program::load(json).unwrap();
        let law = &program.parts.law;
        let of = |name: &&str| {
            let array = program.register_id(name).unwrap();
            law.arrays[array.index()].map_or(0, |locks| locks.count)
        };
        names.iter().map(of).collect()
    }

    #[test]
    fn arrays_are_locked_as_their_actions_use_them() {
        let json = include_bytes!("../../tests/programs/lanes.json");
        let names = ["total", "spanned", "halves", "torn"].map(|n| format!("Enter.{n}"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(counts(json, &names), [STRIPES, 1, 1, 0]);
        assert_eq!(counts(json, &["Leave.left"]), [STRIPES]);
    }

    #[test]
    fn busy_arrays_of_the_fabric_are_locked_by_cells() {
        let json = include_bytes!("../../../compiled/fabric.json");
        let names = ["received_count", "sent_count"];
        assert_eq!(counts(json, &names), [STRIPES; 2]);
    }
}

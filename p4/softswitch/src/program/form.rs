//! Code that is ready to run, with all that says where it goes on.

use super::code::{Ins, Pc, Slot};
use super::parser::Select;
use super::tables::TableDef;

/// One form of a program's code: as compiled, or optimised.
#[derive(Clone)]
pub(crate) struct Form {
    pub(crate) code: Box<[Ins]>,
    /// Where instructions of the code as compiled are in this one, as far as anything begins there.
    pub(crate) at: Vec<Pc>,
    pub(crate) selects: Vec<Select>,
    /// Where actions begin.
    pub(crate) actions: Vec<Pc>,
    pub(crate) tables: Vec<Ways>,
}

/// How it goes on after a table was looked up.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    /// Number of the action that the first of `ways` is for.
    first: u32,
    ways: Box<[Way]>,
    /// Where to go on when no action was run: after a hit, after a miss.
    pub(crate) none: [Pc; 2],
}

/// After an action of a table.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) start: Start,
    pub(crate) hit: Pc,
    pub(crate) miss: Pc,
}

/// How an action is run.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// By its code; `words` of parameters are put in place.
    Code { entry: Pc, words: u16 },
    /// All it does is to copy words.
    Moves(Box<[Move]>),
}

/// A copy of one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) d: Slot,
    pub(crate) from: Source,
}

/// Where a [`Move`] takes its word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// From the action's parameters.
    Param(u16),
    /// From the frame.
    Word(Slot),
}

/// Where action code begins in some code, and the parameters it takes.
pub(crate) struct Bodies<'a> {
    pub(crate) code: &'a [Ins],
    pub(crate) entries: &'a [Pc],
    pub(crate) words: &'a [u16],
    pub(crate) params_base: Slot,
}

impl Bodies<'_> {
    /// How the action is run.
    pub(crate) fn start(&self, action: usize) -> Start {
        let (entry, words) = (self.entries[action], self.words[action]);
        let base = usize::from(self.params_base);
        let params = base..base + usize::from(words);
        match moves(&self.code[entry as usize..], params) {
            Some(moves) => Start::Moves(moves),
            None => Start::Code { entry, words },
        }
    }
}

/// An action that only copies words, as most that set metadata do.
fn moves(code: &[Ins], params: std::ops::Range<usize>) -> Option<Box<[Move]>> {
    let end = code.iter().position(|ins| *ins == Ins::Return)?;
    code[..end]
        .iter()
        .map(|ins| match *ins {
            Ins::Mov { d, a } => {
                let a_at = usize::from(a);
                let from = match params.contains(&a_at) {
                    true => Source::Param((a_at - params.start) as u16),
                    false => Source::Word(a),
                };
                Some(Move { d, from })
            }
            _ => None,
        })
        .collect()
}

impl Ways {
    /// The ways of a table, of which `actions` are those that it may run.
    pub(crate) fn new(def: &TableDef, actions: &[usize], bodies: &Bodies<'_>) -> Self {
        let first = actions.iter().copied().min().unwrap_or(0);
        let end = actions.iter().copied().max().map_or(0, |last| last + 1);
        let ways = (first..end).map(|action| Way {
            start: bodies.start(action),
            hit: def.next_hit.unwrap_or(def.next[action]),
            miss: def.next_miss.unwrap_or(def.next[action]),
        });
        Ways {
            first: first as u32,
            ways: ways.collect(),
            none: [def.next_hit, def.next_miss].map(|next| next.unwrap_or(def.next_none)),
        }
    }

    /// After an action.
    #[inline(always)]
    pub(crate) fn way(&self, action: u32) -> Option<&Way> {
        self.ways.get(action.wrapping_sub(self.first) as usize)
    }

    pub(crate) fn way_mut(&mut self, action: usize) -> Option<&mut Way> {
        self.ways.get_mut(action.checked_sub(self.first as usize)?)
    }

    /// Where it may go on after one of these actions, or none.
    pub(crate) fn goals(&self, actions: &[usize], mut each: impl FnMut(Pc)) {
        for way in actions.iter().filter_map(|&action| self.way(action as u32)) {
            each(way.hit);
            each(way.miss);
        }
        self.none.into_iter().for_each(each);
    }

    /// Puts other goals and action code in place.
    pub(crate) fn relocate(&mut self, goal: impl Fn(Pc) -> Pc, bodies: &Bodies<'_>) {
        for (number, way) in self.ways.iter_mut().enumerate() {
            way.start = bodies.start(self.first as usize + number);
            way.hit = goal(way.hit);
            way.miss = goal(way.miss);
        }
        self.none = self.none.map(goal);
    }
}

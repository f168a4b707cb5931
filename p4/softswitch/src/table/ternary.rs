//! Ternary, range and optional match by priority: a decision tree.
//!
//! Each branch of the tree asks one question about the key, a bit of it or
//! whether a range field is at least some bound, and has three subtrees: of
//! entries that need a no, of those that need a yes, and of those that do not
//! care. A lookup goes into the third and one of the others, and leaves out
//! what has no higher priority than a match it has already. Leaves are short
//! lists, highest priority first. An entry's place follows from its key, so
//! that writes go down one path. A leaf that gets long is split by the question
//! that leaves least to search; as a table grows, its tree is made anew now and
//! then, with questions that suit all of its entries.

use hashbrown::HashTable;

use super::arena::Arena;
use super::columns::{Columns, MOST};
use super::index::{NONE, hash_words};
use super::key::EntryKey;
use super::store::Store;
use crate::program::tables::{Shape, TableDef};
use crate::program::{MatchKind, TableInfo};

/// Entries of a leaf that is not worth a question.
const LEAF: usize = 12;
/// Entries of a table that has become small again.
const FEW: usize = MOST / 2;
/// Branches on a path, at most: lookups recurse.
const DEPTH: usize = 128;
/// Entries that are asked before a question is chosen.
const SAMPLE: usize = 64;
/// The tree is made anew when the table has grown by this factor.
const GROWTH: usize = 8;

#[derive(Clone, Copy)]
enum Question {
    /// A bit of the key.
    Bit { word: u16, bit: u8 },
    /// The highest word of a range field: at least `bound`?
    AtLeast { range: u16, bound: u64 },
}

/// What an entry needs the answer to be: index of a subtree.
const NO: usize = 0;
const YES: usize = 1;
const EITHER: usize = 2;

enum Node {
    Leaf {
        /// Highest rank first.
        entries: Vec<Ranked>,
        /// Entries it may have before it is split again.
        room: usize,
    },
    Branch {
        question: Question,
        kids: [u32; 3],
        /// No entry in the subtree has a higher priority.
        tops: [i32; 3],
    },
}

impl Default for Node {
    /// A leaf without entries, and without room for any.
    fn default() -> Self {
        Node::Leaf {
            entries: Vec::new(),
            room: 0,
        }
    }
}

/// An entry with its priority. Of two entries of one priority, the one with
/// the lower number wins.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ranked {
    priority: i32,
    entry: u32,
    /// The word of the key of which the entry says most, so that most entries
    /// that do not match are not even looked at.
    word: u32,
    mask: u64,
    value: u64,
}

impl Ranked {
    /// Loses against anything.
    const NOTHING: Ranked = Ranked {
        priority: i32::MIN,
        entry: NONE,
        word: 0,
        mask: 0,
        value: 0,
    };

    fn new(store: &Store, entry: u32) -> Self {
        let masks = store.mask(entry).iter().enumerate();
        let (word, mask) = masks
            .max_by_key(|(_, mask)| mask.count_ones())
            .map_or((0, 0), |(word, mask)| (word, *mask));
        Ranked {
            priority: store.priority(entry),
            entry,
            word: word as u32,
            mask,
            value: store.value(entry).get(word).copied().unwrap_or(0),
        }
    }

    #[inline(always)]
    fn beats(&self, other: &Ranked) -> bool {
        (self.priority, other.entry) > (other.priority, self.entry)
    }
}

/// A range field.
struct RangeField {
    /// First word in the key.
    at: usize,
    words: usize,
    /// First word of its low bound in an entry's ranges; the high bound
    /// follows.
    low: usize,
}

/// The tree of one table.
pub(crate) struct Tree {
    ranges: Vec<RangeField>,
    words: usize,
    nodes: Arena<Node>,
    root: u32,
    /// Entries by key, mask, ranges and priority.
    identities: HashTable<u32>,
    /// Entries when the tree was made.
    made_of: usize,
    /// In place of the tree while there are more entries than in a leaf, but few.
    columns: Option<Columns>,
}

fn identity(store: &Store, entry: u32) -> u64 {
    let words = store.value(entry).iter().chain(store.mask(entry));
    let words = words.chain(store.range(entry)).copied();
    hash_words(words.chain([store.priority(entry) as u64]))
}

impl Tree {
    pub(super) fn new(info: &TableInfo, def: &TableDef) -> Self {
        debug_assert_eq!(def.shape, Shape::Ternary);
        let mut low = 0;
        let fields = info.keys.iter().zip(&def.keys);
        let ranges = fields.filter(|(k, _)| k.kind == MatchKind::Range);
        let ranges = ranges.map(|(_, place)| {
            let words = usize::from(place.limbs);
            low += 2 * words;
            RangeField {
                at: place.at,
                words,
                low: low - 2 * words,
            }
        });
        Tree {
            ranges: ranges.collect(),
            words: def.key_words,
            nodes: Arena::default(),
            root: NONE,
            identities: HashTable::new(),
            made_of: 0,
            columns: None,
        }
    }

    /// The matching entry of the highest priority.
    #[inline]
    pub(super) fn find(&self, store: &Store, key: &[u64]) -> Option<u32> {
        if let Some(columns) = &self.columns {
            let mut found = columns.candidates(key);
            return match self.ranges.is_empty() {
                true => found.next(),
                false => found.find(|&entry| self.in_ranges(store.range(entry), key)),
            };
        }
        let mut best = Ranked::NOTHING;
        self.search(store, key, self.root, &mut best);
        (best.entry != NONE).then_some(best.entry)
    }

    fn search(&self, store: &Store, key: &[u64], root: u32, best: &mut Ranked) {
        let mut at = root;
        while let Some(node) = self.nodes.get(at) {
            match node {
                Node::Leaf { entries, .. } => {
                    for ranked in entries {
                        if !ranked.beats(best) {
                            return;
                        }
                        let word = key.get(ranked.word as usize).copied().unwrap_or(0);
                        if word & ranked.mask == ranked.value
                            && self.matches(store, ranked.entry, key)
                        {
                            *best = *ranked;
                            return;
                        }
                    }
                    return;
                }
                Node::Branch {
                    question,
                    kids,
                    tops,
                } => {
                    let answer = usize::from(self.answer(question, key));
                    let (first, second) = match tops[EITHER] > tops[answer] {
                        true => (EITHER, answer),
                        false => (answer, EITHER),
                    };
                    if kids[first] != NONE && tops[first] >= best.priority {
                        if kids[second] == NONE {
                            at = kids[first];
                            continue;
                        }
                        self.search(store, key, kids[first], best);
                    }
                    if tops[second] < best.priority {
                        return;
                    }
                    at = kids[second];
                }
            }
        }
    }

    #[inline(always)]
    fn answer(&self, question: &Question, key: &[u64]) -> bool {
        match *question {
            Question::Bit { word, bit } => key[usize::from(word)] >> (bit & 63) & 1 != 0,
            Question::AtLeast { range, bound } => {
                let field = &self.ranges[usize::from(range)];
                key[field.at + field.words - 1] >= bound
            }
        }
    }

    #[inline(always)]
    fn matches(&self, store: &Store, entry: u32, key: &[u64]) -> bool {
        let words = key.iter().zip(store.mask(entry)).zip(store.value(entry));
        words.into_iter().all(|((k, m), v)| k & m == *v)
            && (self.ranges.is_empty() || self.in_ranges(store.range(entry), key))
    }

    fn in_ranges(&self, bounds: &[u64], key: &[u64]) -> bool {
        self.ranges.iter().all(|field| {
            let n = field.words;
            let (low, high) = bounds[field.low..][..2 * n].split_at(n);
            let value = key[field.at..][..n].iter().rev();
            value.clone().ge(low.iter().rev()) && value.le(high.iter().rev())
        })
    }

    /// Which subtree an entry belongs to.
    fn side(&self, question: &Question, store: &Store, entry: u32) -> usize {
        match *question {
            Question::Bit { word, bit } => {
                let word = usize::from(word);
                match store.mask(entry)[word] >> bit & 1 {
                    0 => EITHER,
                    _ => (store.value(entry)[word] >> bit & 1) as usize,
                }
            }
            Question::AtLeast { range, bound } => {
                let (low, high) = self.bounds(store, entry, usize::from(range));
                match (low >= bound, high < bound) {
                    (true, _) => YES,
                    (_, true) => NO,
                    _ => EITHER,
                }
            }
        }
    }

    /// Highest words of the bounds of a range field.
    fn bounds(&self, store: &Store, entry: u32, range: usize) -> (u64, u64) {
        let field = &self.ranges[range];
        let bounds = &store.range(entry)[field.low..];
        (bounds[field.words - 1], bounds[2 * field.words - 1])
    }

    /// The entry with just this key and priority.
    pub(super) fn same(&self, store: &Store, key: &EntryKey, priority: i32) -> Option<u32> {
        let words = key.value.iter().chain(&key.mask).chain(&key.ranges);
        let hash = hash_words(words.copied().chain([priority as u64]));
        let same = |&e: &u32| {
            store.priority(e) == priority
                && store.value(e) == key.value
                && store.mask(e) == key.mask
                && store.range(e) == key.ranges
        };
        self.identities.find(hash, same).copied()
    }

    /// Enters an entry that is not there yet.
    pub(super) fn insert(&mut self, store: &Store, entry: u32) {
        let hash_of = |e: &u32| identity(store, *e);
        self.identities
            .insert_unique(hash_of(&entry), entry, hash_of);
        let count = self.identities.len();
        self.columns = match self.columns.take() {
            Some(mut columns) => columns.insert(store, entry).then_some(columns),
            None if count == LEAF + 1 => Columns::new(store, self.identities.iter().copied()),
            None => None,
        };
        if count > GROWTH * self.made_of.max(LEAF) {
            return self.make(store);
        }
        let ranked = Ranked::new(store, entry);
        let mut depth = 0;
        let mut parent = None;
        let mut at = self.root;
        while let Some(Node::Branch { question, .. }) = self.nodes.get(at) {
            let side = self.side(&{ *question }, store, entry);
            let Some(Node::Branch { kids, tops, .. }) = self.nodes.get_mut(at) else {
                break;
            };
            tops[side] = tops[side].max(ranked.priority);
            parent = Some((at, side));
            at = kids[side];
            depth += 1;
        }
        if at == NONE {
            let leaf = self.nodes.add(Node::Leaf {
                entries: vec![ranked],
                room: LEAF,
            });
            return self.set_kid(parent, leaf);
        }
        let Node::Leaf { entries, room } = &mut self.nodes[at] else {
            return;
        };
        let place = entries.partition_point(|other| other.beats(&ranked));
        entries.insert(place, ranked);
        if entries.len() > *room {
            let entries = std::mem::take(entries);
            self.nodes[at] = self.grow(store, entries, depth);
        }
    }

    fn set_kid(&mut self, parent: Option<(u32, usize)>, kid: u32) {
        match parent {
            None => self.root = kid,
            Some((parent, side)) => {
                if let Node::Branch { kids, .. } = &mut self.nodes[parent] {
                    kids[side] = kid;
                }
            }
        }
    }

    /// Makes the whole tree anew.
    fn make(&mut self, store: &Store) {
        let mut entries: Vec<Ranked> = self
            .identities
            .iter()
            .map(|&entry| Ranked::new(store, entry))
            .collect();
        entries.sort_unstable_by_key(|r| (std::cmp::Reverse(r.priority), r.entry));
        self.made_of = entries.len();
        self.nodes.clear();
        let root = self.grow(store, entries, 0);
        self.root = self.nodes.add(root);
    }

    /// A subtree of some entries, highest rank first.
    fn grow(&mut self, store: &Store, entries: Vec<Ranked>, depth: usize) -> Node {
        let question = match entries.len() > LEAF && depth < DEPTH {
            true => self.ask(store, &entries),
            false => None,
        };
        let Some(question) = question else {
            let room = (2 * entries.len()).max(LEAF);
            return Node::Leaf { entries, room };
        };
        let mut parts: [Vec<Ranked>; 3] = Default::default();
        for ranked in entries {
            parts[self.side(&question, store, ranked.entry)].push(ranked);
        }
        let tops = [NO, YES, EITHER].map(|i| parts[i].first().map_or(i32::MIN, |r| r.priority));
        let kids = parts.map(|part| match part.is_empty() {
            true => NONE,
            false => {
                let node = self.grow(store, part, depth + 1);
                self.nodes.add(node)
            }
        });
        Node::Branch {
            question,
            kids,
            tops,
        }
    }

    /// The question that leaves least to search, if any leaves noticeably
    /// less than all.
    fn ask(&self, store: &Store, entries: &[Ranked]) -> Option<Question> {
        let step = entries.len().div_ceil(SAMPLE);
        let sample: Vec<u32> = entries.iter().step_by(step).map(|r| r.entry).collect();
        let all = sample.len();
        let mut best = (all - all / 8, None);
        let mut offer = |no: usize, yes: usize, question| {
            let left = all - no - yes + no.max(yes);
            if left < best.0 {
                best = (left, Some(question));
            }
        };
        for word in 0..self.words {
            let mut counts = [[0u8; 64]; 2];
            for &entry in &sample {
                let mut bits = store.mask(entry)[word];
                let value = store.value(entry)[word];
                while bits != 0 {
                    let bit = bits.trailing_zeros() as usize;
                    counts[(value >> bit & 1) as usize][bit] += 1;
                    bits &= bits - 1;
                }
            }
            let [no, yes] = [NO, YES].map(|answer| counts[answer]);
            for (bit, (no, yes)) in (0..).zip(no.into_iter().zip(yes)) {
                let word = word as u16;
                offer(no.into(), yes.into(), Question::Bit { word, bit });
            }
        }
        for range in 0..self.ranges.len() {
            let bounds = sample.iter().map(|&e| self.bounds(store, e, range));
            let (mut lows, mut highs): (Vec<u64>, Vec<u64>) = bounds.unzip();
            lows.sort_unstable();
            highs.sort_unstable();
            let after = highs.iter().filter_map(|high| high.checked_add(1));
            for bound in lows.iter().copied().chain(after) {
                let no = highs.partition_point(|high| *high < bound);
                let yes = all - lows.partition_point(|low| *low < bound);
                let question = Question::AtLeast {
                    range: range as u16,
                    bound,
                };
                offer(no, yes, question);
            }
        }
        best.1
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, store: &Store, entry: u32) {
        if let Ok(found) = self
            .identities
            .find_entry(identity(store, entry), |&e| e == entry)
        {
            found.remove();
        }
        self.columns = match (self.columns.take(), self.identities.len()) {
            (_, LEAF) => None,
            (Some(mut columns), _) => {
                columns.remove(store, entry);
                Some(columns)
            }
            (None, FEW) => Columns::new(store, self.identities.iter().copied()),
            (None, _) => None,
        };
        let mut path = Vec::new();
        let mut at = self.root;
        while let Some(Node::Branch { question, kids, .. }) = self.nodes.get(at) {
            let side = self.side(question, store, entry);
            path.push((at, side));
            at = kids[side];
        }
        let Some(Node::Leaf { entries, .. }) = self.nodes.get_mut(at) else {
            return;
        };
        let ranked = Ranked::new(store, entry);
        let place = entries.partition_point(|other| other.beats(&ranked));
        if entries.get(place) == Some(&ranked) {
            entries.remove(place);
        }
        if entries.is_empty() {
            self.nodes.remove(at);
            self.set_kid(path.last().copied(), NONE);
        }
        if self.identities.is_empty() {
            self.made_of = 0;
        }
        while let Some((number, side)) = path.pop() {
            self.settle(number, side, path.last().copied());
        }
    }

    /// Brings a branch up to date with a subtree that lost an entry; does
    /// without the branch if little is left.
    fn settle(&mut self, number: u32, side: usize, parent: Option<(u32, usize)>) {
        let Node::Branch { kids, .. } = &self.nodes[number] else {
            return;
        };
        let kids = *kids;
        let top = self.top(kids[side]);
        if let Node::Branch { tops, .. } = &mut self.nodes[number] {
            tops[side] = top;
        }
        let lengths = kids.map(|kid| match self.nodes.get(kid) {
            None => Some(0),
            Some(Node::Leaf { entries, .. }) => Some(entries.len()),
            Some(Node::Branch { .. }) => None,
        });
        match lengths {
            [Some(a), Some(b), Some(c)] if a + b + c <= LEAF / 2 => {}
            _ => return,
        }
        let mut entries = Vec::new();
        for kid in kids.into_iter().filter(|&kid| kid != NONE) {
            if let Node::Leaf { entries: own, .. } = &self.nodes[kid] {
                entries.extend_from_slice(own);
            }
            self.nodes.remove(kid);
        }
        if entries.is_empty() {
            self.nodes.remove(number);
            return self.set_kid(parent, NONE);
        }
        entries.sort_unstable_by_key(|r| (std::cmp::Reverse(r.priority), r.entry));
        self.nodes[number] = Node::Leaf {
            entries,
            room: LEAF,
        };
    }

    /// The highest priority in a subtree.
    fn top(&self, node: u32) -> i32 {
        match self.nodes.get(node) {
            None => i32::MIN,
            Some(Node::Leaf { entries, .. }) => entries.first().map_or(i32::MIN, |r| r.priority),
            Some(Node::Branch { tops, .. }) => tops.iter().copied().max().unwrap_or(i32::MIN),
        }
    }
}

//! From what is to what should be, without a moment in which traffic has nowhere to go.
//!
//! Tables refer to each other: a route to a group, a group to its buckets, a bucket to a next hop. What is
//! referred to is written before what refers to it and deleted after it. P4Runtime does not promise an
//! order within one write (specification 12.2), so each rank of tables is a batch of its own. Multicast groups
//! and clone sessions, which entries of any table may refer to, come before all and go after all.

use super::copies::{self, Copier, Copies};
use super::state::{Action, Key, State, default_entry, entry};
use p4runtime::v1;
use std::collections::BTreeMap;

/// In which order tables are written: lower ranks first, and deleted from last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// Rank by P4Info id; tables that are not listed come after all that are.
    pub of_table: BTreeMap<u32, u8>,
}

impl Ranks {
    /// The rank of a table.
    #[must_use]
    pub fn of(&self, table: u32) -> u8 {
        self.of_table.get(&table).copied().unwrap_or(u8::MAX)
    }
}

/// One change to one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// A new entry.
    Insert(Key, Action),
    /// Another action for an entry that is there.
    Modify(Key, Action),
    /// An entry that is to go.
    Delete(Key),
    /// Another default action for a table; `None` for the program's own.
    Default(u32, Option<Action>),
    /// A new multicast group or clone session.
    InsertCopies(Copier, Copies),
    /// Other copies than before.
    ModifyCopies(Copier, Copies),
    /// A multicast group or clone session that is to go.
    DeleteCopies(Copier),
}

impl Update {
    /// What to call the change in a message.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Insert(..) | Self::InsertCopies(..) => "insert",
            Self::Modify(..) | Self::ModifyCopies(..) => "modify",
            Self::Delete(..) | Self::DeleteCopies(..) => "delete",
            Self::Default(..) => "set the default of",
        }
    }

    /// The wire form.
    #[must_use]
    pub fn to_wire(&self) -> v1::Update {
        use v1::update::Type;
        let table = |entry| v1::Entity {
            entity: Some(v1::entity::Entity::TableEntry(entry)),
        };
        let (kind, entity) = match self {
            Self::Insert(key, action) => (Type::Insert, table(entry(key, Some(action)))),
            Self::Modify(key, action) => (Type::Modify, table(entry(key, Some(action)))),
            Self::Delete(key) => (Type::Delete, table(entry(key, None))),
            Self::Default(id, action) => (Type::Modify, table(default_entry(*id, action.as_ref()))),
            Self::InsertCopies(copier, to) => (Type::Insert, copies::entity(*copier, Some(to))),
            Self::ModifyCopies(copier, to) => (Type::Modify, copies::entity(*copier, Some(to))),
            Self::DeleteCopies(copier) => (Type::Delete, copies::entity(*copier, None)),
        };
        v1::Update {
            r#type: kind.into(),
            entity: Some(entity),
        }
    }
}

/// Batches of updates, to be written one after the other; within a batch the order is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The batches; none is empty.
    pub batches: Vec<Vec<Update>>,
}

impl Plan {
    /// All updates, in order.
    pub fn updates(&self) -> impl Iterator<Item = &Update> {
        self.batches.iter().flatten()
    }

    /// Number of updates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }
}

/// Brings `actual` to `desired`: entries that are nowhere in `desired` are removed. No batch has more
/// than `largest` updates.
#[must_use]
pub fn diff(desired: &State, actual: &State, ranks: &Ranks, largest: usize) -> Plan {
    let mut writes: BTreeMap<u8, Vec<Update>> = BTreeMap::new();
    let mut deletes: BTreeMap<u8, Vec<Update>> = BTreeMap::new();
    for (key, action) in &desired.entries {
        let update = match actual.entries.get(key) {
            Some(there) if there == action => continue,
            Some(_) => Update::Modify(key.clone(), action.clone()),
            None => Update::Insert(key.clone(), action.clone()),
        };
        writes.entry(ranks.of(key.table)).or_default().push(update);
    }
    for (table, action) in &desired.defaults {
        if actual.defaults.get(table) != Some(action) {
            let update = Update::Default(*table, Some(action.clone()));
            writes.entry(ranks.of(*table)).or_default().push(update);
        }
    }
    for table in actual
        .defaults
        .keys()
        .filter(|t| !desired.defaults.contains_key(t))
    {
        deletes
            .entry(ranks.of(*table))
            .or_default()
            .push(Update::Default(*table, None));
    }
    for key in actual
        .entries
        .keys()
        .filter(|key| !desired.entries.contains_key(key))
    {
        deletes
            .entry(ranks.of(key.table))
            .or_default()
            .push(Update::Delete(key.clone()));
    }
    let (copies_first, copies_last) = diff_copies(desired, actual);
    let ordered = std::iter::once(copies_first)
        .chain(writes.into_values())
        .chain(deletes.into_values().rev())
        .chain(std::iter::once(copies_last));
    let batches = ordered.flat_map(|updates| {
        updates
            .chunks(largest.max(1))
            .map(<[Update]>::to_vec)
            .collect::<Vec<_>>()
    });
    Plan {
        batches: batches.collect(),
    }
}

/// Groups and sessions to write before all entries, and to delete after all.
fn diff_copies(desired: &State, actual: &State) -> (Vec<Update>, Vec<Update>) {
    let writes = desired
        .copies
        .iter()
        .filter_map(|(copier, to)| match actual.copies.get(copier) {
            Some(there) if there == to => None,
            Some(_) => Some(Update::ModifyCopies(*copier, to.clone())),
            None => Some(Update::InsertCopies(*copier, to.clone())),
        });
    let strays = actual
        .copies
        .keys()
        .filter(|copier| !desired.copies.contains_key(copier));
    (
        writes.collect(),
        strays.copied().map(Update::DeleteCopies).collect(),
    )
}

/// What `state` is after `update`. Inserting what is there, or changing what is not, is left as is, as a
/// switch would refuse it.
pub fn apply(state: &mut State, update: &Update) {
    match update {
        Update::Insert(key, action) => {
            state
                .entries
                .entry(key.clone())
                .or_insert_with(|| action.clone());
        }
        Update::Modify(key, action) => {
            if let Some(there) = state.entries.get_mut(key) {
                there.clone_from(action);
            }
        }
        Update::Delete(key) => {
            state.entries.remove(key);
        }
        Update::Default(table, Some(action)) => {
            state.defaults.insert(*table, action.clone());
        }
        Update::Default(table, None) => {
            state.defaults.remove(table);
        }
        Update::InsertCopies(copier, to) => {
            state.copies.entry(*copier).or_insert_with(|| to.clone());
        }
        Update::ModifyCopies(copier, to) => {
            if let Some(there) = state.copies.get_mut(copier) {
                there.clone_from(to);
            }
        }
        Update::DeleteCopies(copier) => {
            state.copies.remove(copier);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::Match;
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    const NEXTHOP: u32 = 1;
    const BUCKET: u32 = 2;
    const GROUP: u32 = 3;
    const ROUTE: u32 = 4;

    fn ranks() -> Ranks {
        Ranks {
            of_table: [(NEXTHOP, 0), (BUCKET, 1), (GROUP, 2)].into(),
        }
    }

    fn key(table: u32, values: &[u8]) -> Key {
        let fields = (1..)
            .zip(values)
            .map(|(id, v)| (id, Match::Exact(vec![*v])))
            .collect();
        Key {
            table,
            fields,
            priority: 0,
        }
    }

    fn act(id: u32, value: u8) -> Action {
        Action::Direct {
            id,
            params: vec![(1, vec![value])],
        }
    }

    fn param(action: &Action) -> (u32, u8) {
        match action {
            Action::Direct { id, params } => (*id, params.first().map_or(0, |p| p.1[0])),
            Action::Profile(_) => (0, 0),
        }
    }

    /// Every reference must lead somewhere: routes (action 1: next hop, 2: group) and buckets.
    fn dangling(state: &State) -> Option<Key> {
        let has = |k: Key| state.entries.contains_key(&k);
        let fine = |(key, action): (&Key, &Action)| match (key.table, param(action)) {
            (ROUTE, (1, hop)) | (BUCKET, (_, hop)) => has(key_of(NEXTHOP, &[hop])),
            (ROUTE, (3, copier)) => state.copies.contains_key(&copier_of(copier)),
            (ROUTE, (_, group)) => has(key_of(GROUP, &[group])),
            (GROUP, (_, size)) => {
                let Match::Exact(id) = &key.fields[0].1 else {
                    return false;
                };
                (0..size).all(|bucket| has(key_of(BUCKET, &[id[0], bucket])))
            }
            _ => true,
        };
        state
            .entries
            .iter()
            .find(|e| !fine(*e))
            .map(|(key, _)| key.clone())
    }

    fn copier_of(number: u8) -> Copier {
        if number.is_multiple_of(2) {
            Copier::MulticastGroup(number.into())
        } else {
            Copier::CloneSession(number.into())
        }
    }

    fn key_of(table: u32, values: &[u8]) -> Key {
        key(table, values)
    }

    /// A state whose references all hold: some next hops, groups over them, routes over both.
    fn closed() -> impl Strategy<Value = State> {
        let hops = subsequence((1..8u8).collect::<Vec<_>>(), 1..7);
        let picks = proptest::collection::vec(any::<u8>(), 40);
        let sizes = proptest::collection::vec(0u8..5, 0..4);
        (hops, picks, sizes, 0usize..10).prop_map(|(hops, picks, sizes, routes)| {
            let mut picks = picks.into_iter().cycle();
            let mut pick = move |n: usize| picks.next().map_or(0, usize::from) % n;
            let mut state = State::default();
            for hop in &hops {
                let port = pick(4) as u8;
                state.entries.insert(key(NEXTHOP, &[*hop]), act(9, port));
            }
            for (group, size) in (1u8..).zip(&sizes) {
                state.entries.insert(key(GROUP, &[group]), act(5, *size));
                for bucket in 0..*size {
                    let hop = hops[pick(hops.len())];
                    state
                        .entries
                        .insert(key(BUCKET, &[group, bucket]), act(6, hop));
                }
            }
            for _ in 0..pick(4) {
                let ports = (0..pick(3)).map(|_| pick(5) as u16).collect::<Vec<_>>();
                let copier = copier_of(pick(6) as u8);
                state.copies.insert(copier, Copies::to_ports(ports, 1));
            }
            let copiers: Vec<u8> = (0..6)
                .filter(|n| state.copies.contains_key(&copier_of(*n)))
                .collect();
            for _ in 0..routes {
                let action = match pick(3) {
                    0 if !sizes.is_empty() => act(2, 1 + pick(sizes.len()) as u8),
                    1 if !copiers.is_empty() => act(3, copiers[pick(copiers.len())]),
                    _ => act(1, hops[pick(hops.len())]),
                };
                state.entries.insert(key(ROUTE, &[pick(20) as u8]), action);
            }
            state
        })
    }

    #[test]
    fn default_actions_are_set_and_given_back() {
        let with = State {
            defaults: [(ROUTE, act(1, 1))].into(),
            ..State::default()
        };
        let plan = diff(&with, &State::default(), &ranks(), 10);
        assert_eq!(plan.batches, [[Update::Default(ROUTE, Some(act(1, 1)))]]);
        let plan = diff(&State::default(), &with, &ranks(), 10);
        assert_eq!(plan.batches, [[Update::Default(ROUTE, None)]]);
    }

    proptest! {
        #[test]
        fn a_diff_arrives_hitless_and_once(
            (from, to) in (closed(), closed()), largest in 1usize..9, seed in any::<u64>(),
        ) {
            let plan = diff(&to, &from, &ranks(), largest);
            let mut state = from;
            let mut order = seed;
            for batch in &plan.batches {
                prop_assert!(!batch.is_empty() && batch.len() <= largest);
                // Any order within the batch has to do.
                let mut batch = batch.clone();
                while !batch.is_empty() {
                    order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let update = batch.swap_remove((order >> 33) as usize % batch.len());
                    apply(&mut state, &update);
                    prop_assert_eq!(dangling(&state), None);
                }
            }
            prop_assert_eq!(&state, &to);
            prop_assert!(diff(&to, &state, &ranks(), largest).is_empty());
        }
    }
}

//! From next-hop sets to groups with names that last.
//!
//! A group is known by the next hops it has when everything is up. When links fail, the set that most
//! destinations of a group are left with is written into the group itself, so that a lost uplink costs
//! a leaf a few buckets and no route. Destinations that are left with something else (a remote failure took
//! a spine from them alone) get a group of their own, named by its contents.

use super::groups::{BucketPolicy, layout};
use crate::fabric::{Target, Targets};
use crate::routing::{Hop, Routes, SetId, Switch, UNREACHABLE};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use topology::Topology;

/// Where a switch sends what is for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Out of a port.
    Port(u32),
    /// To a group.
    Group(u32),
}

/// The groups of one switch, and what uses them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// The port of each bucket, by group id.
    pub groups: BTreeMap<u32, Vec<u32>>,
    /// Targets that can be reached through other switches.
    pub routes: Vec<(Target, Via)>,
}

/// Routes as they are when everything is up.
#[derive(Clone, Debug)]
pub struct Base {
    routes: Routes,
    of_target: FxHashMap<Target, usize>,
}

impl Base {
    /// Takes the targets and routes of the fabric with all links up.
    #[must_use]
    pub fn new(targets: &Targets, routes: Routes) -> Self {
        Self {
            routes,
            of_target: targets.targets.iter().copied().collect(),
        }
    }

    /// The set that `target` has when everything is up. A NIC that shares its domain's route then has that.
    fn set(&self, topology: &Topology, switch: Switch, target: Target) -> SetId {
        let domain = |target| match target {
            Target::Nic(nic) => Some(Target::Subnet(topology[nic].la)),
            _ => None,
        };
        let dest = self
            .of_target
            .get(&target)
            .or_else(|| domain(target).and_then(|subnet| self.of_target.get(&subnet)));
        dest.map_or(UNREACHABLE, |dest| self.routes.set(*dest, switch))
    }
}

/// Groups that are named by their contents have this bit; others count from 1.
const DERIVED: u32 = 0x8000_0000;

/// Decides the groups of `switch`, given the routes as they are now.
#[must_use]
pub fn spread(
    topology: &Topology,
    switch: Switch,
    base: &Base,
    (targets, routes): (&Targets, &Routes),
    policy: BucketPolicy,
) -> Spread {
    let mut using: BTreeMap<(&[Hop], &[Hop]), Vec<Target>> = BTreeMap::new();
    for (target, dest) in &targets.targets {
        let now = routes.hops_to(*dest, switch);
        if !now.is_empty() {
            let whole = base.routes.hops(base.set(topology, switch, *target));
            using.entry((whole, now)).or_default().push(*target);
        }
    }
    let names = names(base, topology, switch, &using);
    let mut result = Spread::default();
    for (sets, list) in using {
        let (whole, now) = sets;
        let via = match (names.get(&sets), now) {
            (None, [only, ..]) => Via::Port(only.port),
            (Some(id), _) => {
                let size = policy.size(if whole.len() > 1 { whole } else { now });
                result.groups.insert(*id, layout(size, whole, now));
                Via::Group(*id)
            }
            (None, []) => continue,
        };
        result
            .routes
            .extend(list.into_iter().map(|target| (target, via)));
    }
    result.routes.sort_unstable_by_key(|(target, _)| *target);
    result
}

type Sets<'a> = (&'a [Hop], &'a [Hop]);

/// Group ids of all pairs of sets that need a group: those that own the group of their whole set, and
/// others with several hops.
fn names<'a>(
    base: &'a Base,
    topology: &Topology,
    switch: Switch,
    using: &BTreeMap<Sets<'a>, Vec<Target>>,
) -> BTreeMap<Sets<'a>, u32> {
    // Numbered in order of all sets that the whole fabric has here, whether or not they are in use now.
    let mut whole: Vec<&[Hop]> = base
        .of_target
        .keys()
        .map(|target| base.routes.hops(base.set(topology, switch, *target)))
        .filter(|hops| hops.len() > 1)
        .collect();
    whole.sort_unstable();
    whole.dedup();
    let mut names = BTreeMap::new();
    for (number, members) in (1..).zip(whole) {
        let sharing = using.iter().filter(|((whole, _), _)| *whole == members);
        let owner = sharing.max_by_key(|((whole, now), list)| {
            // On a tie the set that is whole keeps the group, and else the first in order.
            (list.len(), whole == now, std::cmp::Reverse(*now))
        });
        if let Some((sets, _)) = owner {
            names.insert(*sets, number);
        }
    }
    let mut derived: BTreeMap<u32, Sets> = BTreeMap::new();
    for sets in using.keys() {
        if names.contains_key(sets) || sets.1.len() < 2 {
            continue;
        }
        let mut id = DERIVED | digest(sets);
        while derived.contains_key(&id) {
            id = DERIVED | id.wrapping_add(1);
        }
        derived.insert(id, *sets);
    }
    names.extend(derived.into_iter().map(|(id, sets)| (sets, id)));
    names
}

/// FNV-1a over the ports and weights of both sets.
fn digest(sets: &Sets) -> u32 {
    let words = [sets.0, sets.1].into_iter().flat_map(|hops| {
        hops.iter()
            .flat_map(|hop| [hop.port, hop.weight])
            .chain(std::iter::once(u32::MAX))
    });
    words
        .flat_map(u32::to_be_bytes)
        .fold(0x811c_9dc5, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fabric::Fabric;
    use crate::routing::{LinkSet, Options};
    use topology::{Clos, SwitchId, Tier, generate};

    fn both(topology: &Topology, down: &LinkSet, switch: SwitchId) -> Spread {
        let fabric = Fabric::new(std::sync::Arc::new(topology.clone()));
        let whole = fabric.targets(&LinkSet::none(), false);
        let base = Base::new(
            &whole,
            fabric.routes(&whole, &LinkSet::none(), Options::default()),
        );
        let targets = fabric.targets(down, false);
        let routes = fabric.routes(&targets, down, Options::default());
        spread(
            topology,
            switch.0,
            &base,
            (&targets, &routes),
            BucketPolicy::default(),
        )
    }

    fn demo() -> (Topology, SwitchId) {
        let topology = generate(&Clos::default()).unwrap();
        let leaf = topology.tier(Tier::Leaf).next().unwrap();
        (topology, leaf)
    }

    #[test]
    fn a_leaf_has_one_group_for_all_remote_domains() {
        let (topology, leaf) = demo();
        let spread = both(&topology, &LinkSet::none(), leaf);
        assert_eq!(spread.groups.keys().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(spread.routes.len(), topology.las().len() - 1);
        assert!(spread.routes.iter().all(|(_, via)| *via == Via::Group(1)));
    }

    #[test]
    fn a_lost_uplink_changes_buckets_and_nothing_else() {
        let (topology, leaf) = demo();
        let before = both(&topology, &LinkSet::none(), leaf);
        let uplink = topology.uplinks(leaf).next().unwrap();
        let after = both(&topology, &LinkSet::from_iter([uplink.link.0]), leaf);
        assert_eq!(before.routes, after.routes);
        let changed = before.groups[&1]
            .iter()
            .zip(&after.groups[&1])
            .filter(|(a, b)| a != b);
        assert_eq!(changed.count(), before.groups[&1].len() / 4);
        assert!(!after.groups[&1].contains(&u32::from(uplink.port)));
    }

    #[test]
    fn a_remote_failure_moves_one_domain_to_a_group_of_its_own() {
        let (topology, leaf) = demo();
        let other = topology.tier(Tier::Leaf).last().unwrap();
        let lost = topology.uplinks(other).next().unwrap().link;
        let before = both(&topology, &LinkSet::none(), leaf);
        let after = both(&topology, &LinkSet::from_iter([lost.0]), leaf);
        assert_eq!(after.groups.len(), 2);
        assert_eq!(before.groups[&1], after.groups[&1]);
        let moved: Vec<_> = before
            .routes
            .iter()
            .zip(&after.routes)
            .filter(|(a, b)| a != b)
            .collect();
        assert_eq!(moved.len(), 1);
        // The unaffected buckets of the new group are those of the old one.
        let derived = after.groups.values().last().unwrap();
        let same = before.groups[&1]
            .iter()
            .zip(derived)
            .filter(|(a, b)| a == b)
            .count();
        assert_eq!(same, derived.len() * 3 / 4);
    }

    #[test]
    fn a_spine_goes_straight_down() {
        let (topology, _) = demo();
        let spine = topology.tier(Tier::Spine).next().unwrap();
        let spread = both(&topology, &LinkSet::none(), spine);
        assert!(spread.groups.is_empty());
        assert_eq!(spread.routes.len(), topology.las().len());
    }
}

//! What of a job's traffic crosses, by the borders it crosses; and how little it could be.

use super::inventory::{Holder, Inventory, Occupancy};
use std::collections::{BTreeMap, BTreeSet};

/// Crossings of the rings of a job, one ring per rail over all its hosts, sorted so that each domain is
/// entered and left once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Hosts of the job.
    pub hosts: usize,
    /// LA domains that each rail's ring visits.
    pub domains: Vec<usize>,
    /// Segments, pods and buildings that the job is in.
    pub groups: [usize; 3],
}

impl Cut {
    /// Of these hosts; those that the inventory can't use are left out.
    #[must_use]
    pub fn of(inventory: &Inventory, hosts: &[u32]) -> Self {
        let rooms: Vec<_> = hosts.iter().filter_map(|h| inventory.room_of(*h)).collect();
        let rails = rooms.first().map_or(0, |r| r.las.len());
        let domains = |rail: usize| rooms.iter().map(|r| r.las[rail]).collect::<BTreeSet<_>>();
        let groups = |depth: usize| {
            rooms
                .iter()
                .map(|r| &r.groups[..depth])
                .collect::<BTreeSet<_>>()
        };
        Self {
            hosts: rooms.len(),
            domains: (0..rails).map(|rail| domains(rail).len()).collect(),
            groups: [3, 2, 1].map(|depth| groups(depth).len()),
        }
    }

    /// The least that a job of `wanted` hosts can cross with the hosts that are free; `None` if there are
    /// not as many.
    #[must_use]
    pub fn bound(inventory: &Inventory, occupancy: &Occupancy, wanted: usize) -> Option<Self> {
        Self::least(inventory, wanted, |h| occupancy.holder(h) == Holder::Free)
    }

    /// The least that it could cross if nothing ran and nothing was drained.
    #[must_use]
    pub fn floor(inventory: &Inventory, wanted: usize) -> Option<Self> {
        Self::least(inventory, wanted, |_| true)
    }

    fn least(inventory: &Inventory, wanted: usize, open: impl Fn(u32) -> bool) -> Option<Self> {
        let rooms: Vec<(usize, _)> = inventory
            .rooms()
            .iter()
            .map(|r| (r.hosts.iter().filter(|h| open(**h)).count(), r))
            .collect();
        let rails = inventory
            .rooms()
            .iter()
            .map(|r| r.las.len())
            .min()
            .unwrap_or(0);
        let domains: Option<Vec<usize>> = (0..rails)
            .map(|rail| fewest(rooms.iter().map(|(n, r)| (&r.las[rail], *n)), wanted))
            .collect();
        let groups = [3, 2, 1]
            .map(|depth| fewest(rooms.iter().map(|(n, r)| (&r.groups[..depth], *n)), wanted));
        let [Some(segments), Some(pods), Some(buildings)] = groups else {
            return None;
        };
        Some(Self {
            hosts: wanted,
            domains: domains?,
            groups: [segments, pods, buildings],
        })
    }

    /// Cross-LA share of flat or hierarchical rings: `L / N`, 0 within one domain.
    #[must_use]
    pub fn ring_share(&self) -> f64 {
        self.mean(|domains| {
            if domains < 2 {
                0.0
            } else {
                domains as f64 / self.hosts as f64
            }
        })
    }

    /// Cross-LA share of two-level or tree orders: `(L - 1) / (N - 1)`.
    #[must_use]
    pub fn tree_share(&self) -> f64 {
        let edges = self.hosts.saturating_sub(1).max(1) as f64;
        self.mean(|domains| domains.saturating_sub(1) as f64 / edges)
    }

    /// Shares of the rings' bytes that leave segments, pods and buildings.
    #[must_use]
    pub fn outer_shares(&self) -> [f64; 3] {
        self.groups.map(|groups| {
            if groups < 2 {
                0.0
            } else {
                groups as f64 / self.hosts as f64
            }
        })
    }

    /// Most domains that one of the rails visits.
    #[must_use]
    pub fn most_domains(&self) -> usize {
        self.domains.iter().copied().max().unwrap_or(0)
    }

    fn mean(&self, share: impl Fn(usize) -> f64) -> f64 {
        let rails = self.domains.len().max(1) as f64;
        self.domains.iter().map(|d| share(*d)).sum::<f64>() / rails
    }
}

/// Fewest groups that together have `wanted`.
fn fewest<K: Ord>(parts: impl Iterator<Item = (K, usize)>, wanted: usize) -> Option<usize> {
    let mut sums: BTreeMap<K, usize> = BTreeMap::new();
    for (key, hosts) in parts {
        *sums.entry(key).or_default() += hosts;
    }
    let mut sizes: Vec<usize> = sums.into_values().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    sizes
        .iter()
        .position(|size| {
            sum += size;
            sum >= wanted
        })
        .map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn shares_follow_the_formulas() {
        let inventory = Inventory::flat(&[4, 4, 2]);
        let cut = Cut::of(&inventory, &[0, 1, 4, 5]);
        assert!((cut.ring_share() - 0.5).abs() < 1e-12);
        assert!((cut.tree_share() - 1.0 / 3.0).abs() < 1e-12);
        let one = Cut::of(&inventory, &[0, 1, 2]);
        assert_eq!((one.ring_share(), one.tree_share()), (0.0, 0.0));
        assert_eq!(Cut::of(&inventory, &[9]).ring_share(), 0.0);
    }

    #[test]
    fn bound_and_floor_differ_by_what_is_taken() {
        let inventory = Inventory::flat(&[4, 4, 2]);
        let mut occupancy = Occupancy::empty(10);
        occupancy.take(1, &[0, 4]).unwrap();
        let share = |cut: Option<Cut>| cut.unwrap().ring_share();
        assert_eq!(share(Cut::floor(&inventory, 4)), 0.0);
        assert!((share(Cut::bound(&inventory, &occupancy, 4)) - 0.5).abs() < 1e-12);
        assert_eq!(Cut::bound(&inventory, &occupancy, 9), None);
        assert_eq!(Cut::floor(&inventory, 10).unwrap().domains, [3]);
    }

    #[test]
    fn rails_with_different_leaves_are_averaged() {
        // Two hosts share the leaf of their first rail, and not that of their second.
        let hosts = [
            Some((vec![0, 10], [0, 0, 0])),
            Some((vec![0, 11], [0, 0, 0])),
        ];
        let inventory = Inventory::from_hosts(hosts);
        assert!((Cut::of(&inventory, &[0, 1]).ring_share() - 0.5).abs() < 1e-12);
    }
}

//! Kueue's topology-aware scheduling, both of its algorithms.
//!
//! Published rule (KEP 2724, "Computing the assignment"): with a preferred topology, the search starts at
//! the lowest level and goes up until one domain holds all pods; then, level by level downwards, domains
//! are taken until all pods have a place. BestFit starts with the most free capacity and optimises the
//! last domain: the one with the least capacity that suffices. LeastFreeCapacity, which Kueue uses for
//! pods without a topology constraint, looks at the lowest level alone and starts with the least.

use super::hosts_of;
use super::levels::Levels;
use crate::placement::inventory::Spot;
use std::cmp::Reverse;

/// Which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Most free capacity first, the last domain as tight as possible.
    BestFit,
    /// Least free capacity first.
    LeastFreeCapacity,
}

/// Hosts by Kueue's rule, in the order in which domains are taken.
#[must_use]
pub fn kueue(spots: &[Spot<'_>], wanted: usize, profile: Profile) -> Vec<u32> {
    let levels = Levels::new(spots);
    let take = match profile {
        Profile::BestFit => best_fit(&levels, wanted),
        Profile::LeastFreeCapacity => least_free(&levels, wanted),
    };
    hosts_of(spots, &take)
}

fn best_fit(levels: &Levels, wanted: usize) -> Vec<(usize, usize)> {
    // Upwards to a domain that holds everything; the root stands for "no level left to try".
    let leaf = levels.leaf_level();
    let fit = (0..=leaf).rev().find_map(|level| {
        let free = levels.free[level].iter().copied().enumerate();
        let fits = free.filter(|(_, free)| *free >= wanted);
        fits.min_by_key(|(_, free)| *free)
            .map(|(node, _)| (level, node))
    });
    let Some((mut level, node)) = fit else {
        return Vec::new();
    };
    let mut chosen = vec![(node, wanted)];
    while level < leaf {
        let below = (0..levels.node[level].len())
            .filter(|s| {
                chosen
                    .iter()
                    .any(|(node, _)| levels.node[level][*s] == *node)
            })
            .map(|s| levels.node[level + 1][s]);
        let mut domains: Vec<usize> = below.collect();
        domains.sort_unstable();
        domains.dedup();
        level += 1;
        chosen = most_first(&levels.free[level], domains, wanted);
    }
    chosen
}

/// Domains from the fullest on, the last one replaced by the tightest that suffices.
fn most_first(free: &[usize], mut domains: Vec<usize>, wanted: usize) -> Vec<(usize, usize)> {
    domains.sort_by_key(|d| Reverse(free[*d]));
    let (mut left, mut chosen) = (wanted, Vec::new());
    for (at, domain) in domains.iter().enumerate() {
        if free[*domain] >= left {
            let rest = domains[at..].iter().filter(|d| free[**d] >= left);
            let last = rest.min_by_key(|d| free[**d]).unwrap_or(domain);
            chosen.push((*last, left));
            break;
        }
        chosen.push((*domain, free[*domain]));
        left -= free[*domain];
    }
    chosen
}

fn least_free(levels: &Levels, wanted: usize) -> Vec<(usize, usize)> {
    let free = &levels.free[levels.leaf_level()];
    let mut domains: Vec<usize> = (0..free.len()).collect();
    domains.sort_by_key(|d| free[*d]);
    if let Some(whole) = domains.iter().find(|d| free[**d] >= wanted) {
        return vec![(*whole, wanted)];
    }
    let (mut left, mut chosen) = (wanted, Vec::new());
    for domain in domains {
        let hosts = free[domain].min(left);
        chosen.push((domain, hosts));
        left -= hosts;
        if left == 0 {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::inventory::{Inventory, Occupancy};

    fn place(sizes: &[u32], wanted: usize, profile: Profile) -> Vec<usize> {
        let inventory = Inventory::flat(sizes);
        let occupancy = Occupancy::empty(inventory.hosts());
        let hosts = kueue(&occupancy.spots(&inventory), wanted, profile);
        let count = |r: &crate::placement::inventory::Room| {
            hosts.iter().filter(|h| r.hosts.contains(h)).count()
        };
        inventory.rooms().iter().map(count).collect()
    }

    /// The KEP's example: domains of 3, 3, 2 and 1, and 7 pods.
    #[test]
    fn the_documented_example() {
        assert_eq!(place(&[3, 3, 2, 1], 7, Profile::BestFit), [3, 3, 0, 1]);
        let least = place(&[3, 3, 2, 1], 7, Profile::LeastFreeCapacity);
        assert_eq!(least, [3, 1, 2, 1]);
    }

    #[test]
    fn what_fits_one_domain_gets_the_tightest() {
        for profile in [Profile::BestFit, Profile::LeastFreeCapacity] {
            assert_eq!(place(&[8, 4, 6], 5, profile), [0, 0, 5]);
        }
    }

    #[test]
    fn the_level_goes_up_until_a_domain_holds_all() {
        let room =
            |la: u32, pod: u32, hosts: u32| (0..hosts).map(move |_| Some((vec![la], [0, pod, la])));
        let hosts = room(0, 0, 4)
            .chain(room(1, 0, 4))
            .chain(room(2, 1, 3))
            .chain(room(3, 1, 3));
        let inventory = Inventory::from_hosts(hosts);
        let occupancy = Occupancy::empty(14);
        let chosen = kueue(&occupancy.spots(&inventory), 6, Profile::BestFit);
        assert_eq!(chosen, [8, 9, 10, 11, 12, 13]);
    }
}

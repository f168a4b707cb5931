//! Slurm's `topology/tree`: the lowest switch that can satisfy the job, then leaves below it by best fit.
//!
//! Published rule (Topology Guide): identify the lowest level switch in the hierarchy that can satisfy the
//! job's request, and allocate resources on its underlying leaf switches by a best-fit algorithm. As the
//! plugin does it, leaf after leaf is added: a leaf that can hold all that remains beats one that can't,
//! the smaller of two that can; of two that can't, the parents are compared in the same way, and then the
//! one with more free hosts wins. A leaf nearer to those already taken goes first if it suffices.

use super::hosts_of;
use super::levels::Levels;
use crate::placement::inventory::Spot;
use std::cmp::Ordering;

/// Hosts by Slurm's tree rule, in the order in which leaves are added.
#[must_use]
pub fn slurm_tree(spots: &[Spot<'_>], wanted: usize) -> Vec<u32> {
    let levels = Levels::new(spots);
    let Some((level, top)) = lowest(&levels, wanted) else {
        return Vec::new();
    };
    let mut tree = Tree {
        level,
        free: levels.free.clone(),
        distance: vec![0; spots.len()],
        taken: vec![false; spots.len()],
        levels: &levels,
    };
    let (mut left, mut take) = (wanted, Vec::new());
    while left > 0 {
        let candidates =
            (0..spots.len()).filter(|s| levels.node[level][*s] == top && !tree.taken[*s]);
        let best = candidates.reduce(|best, spot| tree.better(best, spot, left));
        let Some(spot) = best else { break };
        let hosts = spots[spot].free.len().min(left);
        take.push((spot, hosts));
        left -= hosts;
        tree.add(spot);
    }
    hosts_of(spots, &take)
}

/// The lowest switch with `wanted` free hosts below it, the one with the fewest of them.
fn lowest(levels: &Levels, wanted: usize) -> Option<(usize, usize)> {
    (0..levels.node.len()).rev().find_map(|level| {
        let free = levels.free[level].iter().enumerate();
        let fits = free.filter(|(_, free)| **free >= wanted);
        fits.min_by_key(|(_, free)| **free)
            .map(|(node, _)| (level, node))
    })
}

struct Tree<'a> {
    levels: &'a Levels,
    /// Level of the switch below which leaves are taken.
    level: usize,
    /// Per level, free hosts left below each switch.
    free: Vec<Vec<usize>>,
    /// Per spot, sum of the hops to the leaves that are taken.
    distance: Vec<usize>,
    taken: Vec<bool>,
}

impl Tree<'_> {
    fn add(&mut self, spot: usize) {
        self.taken[spot] = true;
        let hosts = self.free[self.levels.leaf_level()][spot];
        for (level, of) in self.levels.node.iter().enumerate() {
            self.free[level][of[spot]] -= hosts;
        }
        for other in 0..self.distance.len() {
            self.distance[other] += 2 * (self.levels.node.len() - self.levels.common(spot, other));
        }
    }

    fn better(&self, best: usize, spot: usize, left: usize) -> usize {
        let fits = |s: usize| self.free[self.levels.leaf_level()][s] >= left;
        let nearer = self.distance[spot].cmp(&self.distance[best]);
        let wins = match nearer {
            Ordering::Less => fits(spot),
            Ordering::Equal => self.compare(spot, best, left) == Ordering::Greater,
            Ordering::Greater => false,
        };
        if wins { spot } else { best }
    }

    /// Which of two leaves fits better: `Greater` if it is `a`.
    fn compare(&self, a: usize, b: usize, left: usize) -> Ordering {
        let mut level = self.levels.leaf_level();
        loop {
            let [x, y] = [a, b].map(|s| self.free[level][self.levels.node[level][s]]);
            match (x >= left, y >= left) {
                (true, true) => return y.cmp(&x),
                (true, false) => return Ordering::Greater,
                (false, true) => return Ordering::Less,
                (false, false) => {}
            }
            let parents_differ = level > self.level
                && self.levels.node[level - 1][a] != self.levels.node[level - 1][b];
            if !parents_differ {
                return x.cmp(&y);
            }
            level -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::placement::inventory::{Inventory, Occupancy};

    fn per_room(inventory: &Inventory, hosts: &[u32]) -> Vec<usize> {
        let mut counts = vec![0; inventory.rooms().len()];
        for host in hosts {
            let room = inventory
                .rooms()
                .iter()
                .position(|r| r.hosts.contains(host));
            counts[room.unwrap()] += 1;
        }
        counts
    }

    fn place(inventory: &Inventory, wanted: usize) -> Vec<usize> {
        let occupancy = Occupancy::empty(inventory.hosts());
        per_room(inventory, &slurm_tree(&occupancy.spots(inventory), wanted))
    }

    #[test]
    fn one_leaf_that_suffices_is_the_tightest() {
        assert_eq!(place(&Inventory::flat(&[6, 4, 5]), 4), [0, 4, 0]);
        assert_eq!(place(&Inventory::flat(&[6, 3, 5]), 4), [0, 0, 4]);
    }

    #[test]
    fn without_one_the_fullest_leaves_come_first_and_the_last_is_tightest() {
        assert_eq!(place(&Inventory::flat(&[3, 8, 2, 7]), 17), [0, 8, 2, 7]);
        assert_eq!(place(&Inventory::flat(&[3, 8, 2, 7]), 11), [3, 8, 0, 0]);
    }

    /// The guide's tree: two switches of two leaves each below one top switch.
    #[test]
    fn the_lowest_switch_that_satisfies_the_job_bounds_it() {
        let room =
            |la: u32, pod: u32, hosts: u32| (0..hosts).map(move |_| Some((vec![la], [0, pod, la])));
        let hosts = room(0, 0, 4)
            .chain(room(1, 0, 2))
            .chain(room(2, 1, 3))
            .chain(room(3, 1, 2));
        let inventory = Inventory::from_hosts(hosts);
        assert_eq!(place(&inventory, 5), [0, 0, 3, 2]);
        assert_eq!(place(&inventory, 6), [4, 2, 0, 0]);
        assert_eq!(place(&inventory, 7).iter().sum::<usize>(), 7);
    }
}

//! Ranks change places as long as that makes less cross.
//!
//! Counting through the dimensions seats a job well where the hosts of a leaf are a whole number of lines of
//! the grid. Where they are not, pairs of slots under different leaves are swapped, the first that helps
//! at a time, until none does.

use super::inventory::Inventory;
use super::search::Costs;
use super::traffic::HostGroup;
use std::collections::{BTreeMap, BTreeSet};

/// Most swaps that are tried for one job.
const MOST_TRIES: usize = 400_000;

/// Borders that parts of a job may be on two sides of: the part of each host, and what a byte across costs.
struct Border {
    part: Vec<u32>,
    cost: f64,
}

/// Hosts in numbers, for swapping slots between them.
pub(super) struct Swapper<'a> {
    groups: &'a [HostGroup],
    /// Groups of each slot.
    of_slot: Vec<Vec<u32>>,
    borders: Vec<Border>,
}

impl<'a> Swapper<'a> {
    /// For a job whose slots will be on `hosts`; in what follows a host is its position there.
    pub(super) fn new(
        groups: &'a [HostGroup],
        inventory: &Inventory,
        hosts: &[u32],
        costs: Costs,
    ) -> Self {
        let mut of_slot = vec![Vec::new(); hosts.len()];
        for (number, group) in (0..).zip(groups) {
            for slot in &group.slots {
                if let Some(list) = of_slot.get_mut(*slot as usize) {
                    list.push(number);
                }
            }
        }
        Self {
            groups,
            of_slot,
            borders: borders(inventory, hosts, costs),
        }
    }

    /// Swaps slots of `seats` (the host of each slot) until no swap of two makes them cheaper.
    pub(super) fn improve(&self, seats: &mut [u32]) {
        let Some(inner) = self.borders.first() else {
            return;
        };
        let mut tries = 0;
        loop {
            let mut swapped = false;
            for a in 0..seats.len() {
                for b in a + 1..seats.len() {
                    let (x, y) = (seats[a] as usize, seats[b] as usize);
                    if inner.part[x] == inner.part[y] {
                        continue;
                    }
                    tries += 1;
                    swapped |= self.swap(seats, a, b);
                }
                if tries > MOST_TRIES {
                    return;
                }
            }
            if !swapped {
                return;
            }
        }
    }

    /// Swaps two slots if that is cheaper.
    fn swap(&self, seats: &mut [u32], a: usize, b: usize) -> bool {
        let touched = || {
            let others = self.of_slot[b]
                .iter()
                .filter(|g| !self.of_slot[a].contains(g));
            self.of_slot[a].iter().chain(others)
        };
        let cost = |seats: &[u32]| -> f64 {
            touched()
                .map(|g| self.cost(&self.groups[*g as usize], seats))
                .sum()
        };
        let before = cost(seats);
        seats.swap(a, b);
        if cost(seats) < before * (1.0 - 1e-9) {
            return true;
        }
        seats.swap(a, b);
        false
    }

    fn cost(&self, group: &HostGroup, seats: &[u32]) -> f64 {
        let across = |border: &Border| {
            let part = |slot: u32| border.part[seats[slot as usize] as usize];
            group.crossing(part) as f64 * border.cost
        };
        self.borders.iter().map(across).sum()
    }
}

/// The borders between the hosts, leaves first; those that part nothing are left out.
fn borders(inventory: &Inventory, hosts: &[u32], costs: Costs) -> Vec<Border> {
    let rooms: Vec<_> = hosts.iter().map(|h| inventory.room_of(*h)).collect();
    let rails = rooms
        .iter()
        .flatten()
        .map(|r| r.las.len())
        .min()
        .unwrap_or(0);
    let number = |key: &dyn Fn(usize) -> Vec<u32>| {
        let mut index: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let parts = (0..hosts.len()).map(|host| {
            let next = u32::try_from(index.len()).unwrap_or(u32::MAX);
            *index.entry(key(host)).or_insert(next)
        });
        parts.collect::<Vec<u32>>()
    };
    // Rails that part the hosts in the same way count together.
    let mut by_rail: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
    for rail in 0..rails {
        let part = number(&|host| vec![rooms[host].map_or(u32::MAX, |r| r.las[rail])]);
        *by_rail.entry(part).or_default() += costs.la / rails as f64;
    }
    let mut list: Vec<Border> = by_rail
        .into_iter()
        .map(|(part, cost)| Border { part, cost })
        .collect();
    for (depth, cost) in [(3, costs.segment), (2, costs.pod), (1, costs.building)] {
        let part = number(&|host| rooms[host].map_or(Vec::new(), |r| r.groups[..depth].to_vec()));
        list.push(Border { part, cost });
    }
    let parts = |border: &Border| border.part.iter().collect::<BTreeSet<_>>().len() > 1;
    list.retain(parts);
    list
}

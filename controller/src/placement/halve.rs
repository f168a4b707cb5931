//! Flows dealt out evenly at several levels at once.
//!
//! Each flow has a way up and a way down: it leaves a leaf and its pod, and enters another pod and leaf. To
//! deal the flows of a leaf, and at the same time those of its pod, evenly over a number of uplinks that is a
//! power of two, halve them again and again: flows of one leaf are paired, what is left over is paired
//! within the pod, and the same on the other side. Every flow has at most one partner on each side, so that
//! the pairs form paths and even rings, along which flows can go to the two halves in turn: each pair is
//! split. A vertex of `d` flows gets `d / 2` in each half, rounded up or down, and after all halvings
//! `d / m`, rounded up or down, which no assignment can better.
//!
//! Partners are neighbours in size, so that flows of different sizes come out nearly even in bytes.

use super::colour::colour;

/// A flow to deal out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// What its source and its destination belong to, the innermost first.
    pub(super) levels: [[u32; 3]; 2],
    /// Bytes.
    pub(super) bytes: u64,
}

const NONE: u32 = u32::MAX;

/// A number below `ways` for each item, dealt evenly at all levels if `ways` is a power of two, and at the
/// innermost level otherwise.
pub(super) fn deal(items: &[Item], ways: u32) -> Vec<u32> {
    let mut result = vec![0; items.len()];
    if ways < 2 || items.is_empty() {
        return result;
    }
    if !ways.is_power_of_two() {
        let mut order: Vec<u32> = (0..items.len() as u32).collect();
        order.sort_by_key(|i| std::cmp::Reverse(items[*i as usize].bytes));
        let edges: Vec<(u32, u32)> = order
            .iter()
            .map(|i| {
                (
                    items[*i as usize].levels[0][0],
                    items[*i as usize].levels[1][0],
                )
            })
            .collect();
        for (item, colour) in order.into_iter().zip(colour(&edges, ways)) {
            result[item as usize] = colour;
        }
        return result;
    }
    let mut halver = Halver {
        items,
        partner: [vec![NONE; items.len()], vec![NONE; items.len()]],
        side: vec![2; items.len()],
    };
    let mut parts = vec![(0..items.len() as u32).collect::<Vec<u32>>()];
    while (parts.len() as u32) < ways {
        parts = parts
            .into_iter()
            .flat_map(|part| halver.halve(&part))
            .collect();
    }
    for (number, part) in (0..).zip(parts) {
        for item in part {
            result[item as usize] = number;
        }
    }
    result
}

struct Halver<'a> {
    items: &'a [Item],
    /// By side: the item that goes to the other half.
    partner: [Vec<u32>; 2],
    /// The half of each item; 2 while it has none.
    side: Vec<u8>,
}

impl Halver<'_> {
    fn halve(&mut self, part: &[u32]) -> [Vec<u32>; 2] {
        for end in 0..2 {
            self.pair(part, end);
        }
        for item in part {
            self.side[*item as usize] = 2;
        }
        // Paths first, from an end without a partner; what remains are rings.
        for end in [Some(0), Some(1), None] {
            for item in part {
                let loose = end.is_none_or(|end: usize| self.partner[end][*item as usize] == NONE);
                if loose && self.side[*item as usize] == 2 {
                    self.walk(*item, end.map_or(0, |end| 1 - end));
                }
            }
        }
        let mut halves = [Vec::new(), Vec::new()];
        for item in part {
            halves[usize::from(self.side[*item as usize] & 1)].push(*item);
        }
        halves
    }

    /// Goes from partner to partner, beginning with the one on side `end`, to the halves in turn.
    fn walk(&mut self, start: u32, mut end: usize) {
        let (mut item, mut half) = (start, 0);
        while item != NONE && self.side[item as usize] == 2 {
            self.side[item as usize] = half;
            half = 1 - half;
            item = self.partner[end][item as usize];
            end = 1 - end;
        }
    }

    fn pair(&mut self, part: &[u32], end: usize) {
        let items = self.items;
        let mut open = part.to_vec();
        for item in part {
            self.partner[end][*item as usize] = NONE;
        }
        for level in 0..3 {
            let key = |item: &u32| items[*item as usize].levels[end][level];
            open.sort_by_key(|item| (key(item), std::cmp::Reverse(items[*item as usize].bytes)));
            let mut rest = Vec::new();
            let mut at = 0;
            while at < open.len() {
                if at + 1 < open.len() && key(&open[at]) == key(&open[at + 1]) {
                    let (a, b) = (open[at], open[at + 1]);
                    self.partner[end][a as usize] = b;
                    self.partner[end][b as usize] = a;
                    at += 2;
                } else {
                    rest.push(open[at]);
                    at += 1;
                }
            }
            open = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn every_level_is_dealt_evenly(
            flows in proptest::collection::vec((0u32..12, 0u32..12), 0..300), power in 0u32..5,
        ) {
            let ways = 1 << power;
            let levels = |leaf: u32| [leaf, leaf / 4, 0];
            let items: Vec<Item> = flows
                .iter()
                .map(|(a, b)| Item { levels: [levels(*a), levels(*b)], bytes: 1 })
                .collect();
            let dealt = deal(&items, ways);
            for end in 0..2 {
                for level in 0..3 {
                    let mut count: BTreeMap<(u32, u32), u32> = BTreeMap::new();
                    let mut degree: BTreeMap<u32, u32> = BTreeMap::new();
                    for (item, way) in items.iter().zip(&dealt) {
                        prop_assert!(*way < ways);
                        let key = item.levels[end][level];
                        *count.entry((key, *way)).or_default() += 1;
                        *degree.entry(key).or_default() += 1;
                    }
                    for ((key, _), n) in count {
                        prop_assert!(n <= degree[&key].div_ceil(ways));
                    }
                }
            }
        }

        #[test]
        fn any_number_of_ways_is_even_at_the_leaves(
            flows in proptest::collection::vec((0u32..6, 0u32..6, 1u64..9), 0..100), ways in 1u32..9,
        ) {
            let items: Vec<Item> = flows
                .iter()
                .map(|(a, b, bytes)| Item { levels: [[*a, 0, 0], [*b, 0, 0]], bytes: *bytes })
                .collect();
            let dealt = deal(&items, ways);
            for leaf in 0..6 {
                let of: Vec<u32> = items.iter().zip(&dealt).filter(|(i, _)| i.levels[0][0] == leaf).map(|(_, w)| *w).collect();
                for way in 0..ways {
                    let n = of.iter().filter(|w| **w == way).count();
                    prop_assert!(n <= of.len().div_ceil(ways as usize));
                }
            }
        }
    }
}

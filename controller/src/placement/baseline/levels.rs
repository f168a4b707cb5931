//! The tree of switches or domains that other schedulers are told of.

use crate::placement::inventory::Spot;
use std::collections::BTreeMap;

/// Spots as the leaves of a tree. Level 0 is the root; the last level is the spots themselves. A level
/// that does not group anything (every node of it is one node of the next) is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Per level, the node of each spot.
    pub node: Vec<Vec<usize>>,
    /// Per level, free hosts below each node.
    pub free: Vec<Vec<usize>>,
}

impl Levels {
    /// The tree over `spots`: root, buildings, pods, segments, leaves.
    #[must_use]
    pub fn new(spots: &[Spot<'_>]) -> Self {
        let mut node: Vec<Vec<usize>> = vec![vec![0; spots.len()]];
        let mut nodes = usize::from(!spots.is_empty());
        for depth in 1..=3 {
            let (of, count) = number(spots.iter().map(|s| s.room.groups[..depth].to_vec()));
            if count > nodes && count < spots.len() {
                (nodes, _) = (count, node.push(of));
            }
        }
        node.push((0..spots.len()).collect());
        let free = node.iter().map(|of| sums(spots, of)).collect();
        Self { node, free }
    }

    /// The last level, where every node is a spot.
    #[must_use]
    pub fn leaf_level(&self) -> usize {
        self.node.len() - 1
    }

    /// Deepest level at which two spots are below one node; the number of levels if they are one spot.
    #[must_use]
    pub fn common(&self, a: usize, b: usize) -> usize {
        let same = |of: &&Vec<usize>| of[a] == of[b];
        self.node.iter().take_while(same).count()
    }
}

fn number(keys: impl Iterator<Item = Vec<u32>>) -> (Vec<usize>, usize) {
    let mut index: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    let of = keys
        .map(|key| {
            let next = index.len();
            *index.entry(key).or_insert(next)
        })
        .collect();
    (of, index.len())
}

fn sums(spots: &[Spot<'_>], of: &[usize]) -> Vec<usize> {
    let mut free = vec![0; of.iter().max().map_or(0, |m| m + 1)];
    for (spot, node) in spots.iter().zip(of) {
        free[*node] += spot.free.len();
    }
    free
}

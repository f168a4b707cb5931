//! Two binary trees over the same members, such that few members send much.
//!
//! A reduction up a tree and a broadcast down it send every byte of the array over each edge once per
//! direction. A member with two children sends three times its part of the array and a leaf once, so half
//! of the array goes by each of two trees, and the members that have children in one are leaves in the
//! other. Members come in domains; inside each domain the tree is connected, and one edge joins it to
//! the next domain: `L - 1` edges cross between `L` domains, the least that connects them.
//!
//! The domains form a chain: a binary tree of `n` members whose inner members are every second one has
//! no more than one child to spare, so that a domain with two child domains would overload a member.

/// Parent of each member in both trees; `None` for the root. `domains` has the number of members of each
/// domain; members are numbered through all of them.
#[must_use]
pub fn double_tree(domains: &[u32]) -> [Vec<Option<u32>>; 2] {
    [tree(domains, 0), tree(domains, 1)]
}

fn tree(domains: &[u32], which: u32) -> Vec<Option<u32>> {
    let mut parents = vec![None; domains.iter().sum::<u32>() as usize];
    let mut first = 0;
    // The member that the next domain hangs on.
    let mut spare = None;
    for size in domains.iter().copied().filter(|size| *size > 0) {
        // Members with children: every second one, from 0 in one tree and from 1 in the other.
        let inner: Vec<u32> = (0..size).filter(|i| (first + i) % 2 == which).collect();
        // A domain of one has to pass on whatever its position.
        let inner = if inner.is_empty() { vec![0] } else { inner };
        let outer = (0..size).filter(|i| inner.binary_search(i).is_err());
        let order: Vec<u32> = inner.iter().copied().chain(outer).collect();
        for (position, member) in order.iter().enumerate() {
            let parent = if position == 0 {
                spare
            } else {
                // Every inner member has two children; if those do not suffice, the last takes a third.
                let slot = ((position - 1) / 2).min(inner.len() - 1);
                Some(first + order[slot])
            };
            parents[(first + member) as usize] = parent;
        }
        let last = ((size as usize).saturating_sub(1) / 2).min(inner.len() - 1);
        spare = Some(first + order[last]);
        first += size;
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn children(parents: &[Option<u32>]) -> Vec<u32> {
        let mut count = vec![0; parents.len()];
        for parent in parents.iter().flatten() {
            count[*parent as usize] += 1;
        }
        count
    }

    #[test]
    fn inner_members_of_one_tree_are_leaves_of_the_other() {
        let [a, b] = double_tree(&[8]);
        let (a, b) = (children(&a), children(&b));
        for (x, y) in a.iter().zip(&b) {
            assert!(*x == 0 || *y == 0, "{a:?} {b:?}");
            assert!(*x <= 2 && *y <= 2);
        }
    }

    proptest! {
        #[test]
        fn trees_span_and_cross_as_little_as_possible(
            domains in proptest::collection::vec(1u32..12, 1..8),
        ) {
            let of: Vec<usize> = domains
                .iter()
                .enumerate()
                .flat_map(|(d, n)| std::iter::repeat_n(d, *n as usize))
                .collect();
            for parents in double_tree(&domains) {
                prop_assert_eq!(parents.iter().filter(|p| p.is_none()).count(), 1);
                let crossing = parents
                    .iter()
                    .enumerate()
                    .filter(|(i, p)| p.is_some_and(|p| of[p as usize] != of[*i]))
                    .count();
                prop_assert_eq!(crossing, domains.len() - 1);
                // Everybody reaches the root.
                for start in 0..parents.len() {
                    let (mut at, mut steps) = (start, 0);
                    while let Some(parent) = parents[at] {
                        at = parent as usize;
                        steps += 1;
                        prop_assert!(steps <= parents.len());
                    }
                }
                prop_assert!(children(&parents).iter().all(|n| *n <= 4));
            }
        }
    }
}

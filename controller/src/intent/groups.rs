//! Groups of next hops as buckets, so that a lost member moves its own flows and no others.
//!
//! A group's number of buckets is fixed by the fabric as it is when everything is up. When members are
//! missing, their buckets go to the others and every other bucket stays where it is: what is not touched
//! by a failure is neither moved nor reordered. Groups that serve the same members when all is well have
//! the same layout, so that a destination can change from one group to another with the same effect.

use crate::routing::Hop;

/// How many buckets groups get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketPolicy {
    /// Buckets per unit of weight, if they fit. Twelve can be dealt out evenly to the survivors of groups
    /// of up to four members, and nearly so beyond.
    pub per_member: u16,
    /// Most buckets of a group, as long as every member gets one.
    pub most: u16,
}

impl Default for BucketPolicy {
    fn default() -> Self {
        Self {
            per_member: 12,
            most: 256,
        }
    }
}

impl BucketPolicy {
    /// Buckets of a group that has `members` when all is well.
    #[must_use]
    pub fn size(&self, members: &[Hop]) -> u16 {
        let weight: u64 = members.iter().map(|h| u64::from(h.weight)).sum();
        let most = u64::from(self.most).max(members.len() as u64);
        if weight == 0 {
            return 0;
        }
        let each = (most / weight).clamp(1, u64::from(self.per_member.max(1)));
        u16::try_from((each * weight).min(most)).unwrap_or(u16::MAX)
    }
}

/// The port of each of `size` buckets: as they are dealt out to `base` (the members when all is well),
/// with as few changes as make the shares of the `live` members even.
#[must_use]
pub fn layout(size: u16, base: &[Hop], live: &[Hop]) -> Vec<u32> {
    if live.is_empty() {
        return Vec::new();
    }
    let quotas = quotas(size, live);
    let mut left: Vec<u16> = quotas;
    let mut ports: Vec<Option<u32>> = deal(size, base)
        .into_iter()
        .map(|port| {
            let member = live.iter().position(|h| h.port == port)?;
            let room = left.get_mut(member)?;
            *room = room.checked_sub(1)?;
            Some(port)
        })
        .collect();
    ports.resize(usize::from(size), None);
    // What is open goes round the members that have room.
    let mut next = 0;
    for port in ports.iter_mut().filter(|p| p.is_none()) {
        let Some(member) = (0..live.len())
            .map(|i| (next + i) % live.len())
            .find(|m| left[*m] > 0)
        else {
            break;
        };
        left[member] -= 1;
        next = member + 1;
        *port = Some(live[member].port);
    }
    ports.into_iter().flatten().collect()
}

/// Buckets of each member by weight; the largest remainders get what division leaves over.
fn quotas(size: u16, members: &[Hop]) -> Vec<u16> {
    let weight: u64 = members
        .iter()
        .map(|h| u64::from(h.weight))
        .sum::<u64>()
        .max(1);
    let exact = |h: &Hop| u64::from(size) * u64::from(h.weight);
    let mut quotas: Vec<u16> = members
        .iter()
        .map(|h| u16::try_from(exact(h) / weight).unwrap_or(u16::MAX))
        .collect();
    let given: u64 = quotas.iter().map(|q| u64::from(*q)).sum();
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(exact(&members[*i]) % weight), *i));
    let over = usize::try_from(u64::from(size).saturating_sub(given)).unwrap_or(0);
    for i in order.into_iter().cycle().take(over) {
        quotas[i] += 1;
    }
    quotas
}

/// Deals `size` buckets to `members`, each member's as far apart as can be.
fn deal(size: u16, members: &[Hop]) -> Vec<u32> {
    if members.is_empty() {
        return Vec::new();
    }
    let mut places: Vec<(u64, usize)> = Vec::with_capacity(usize::from(size));
    for (member, quota) in quotas(size, members).into_iter().enumerate() {
        for j in 0..u64::from(quota) {
            places.push(((2 * j + 1) * (1 << 32) / (2 * u64::from(quota)), member));
        }
    }
    places.sort_unstable();
    places
        .into_iter()
        .map(|(_, member)| members[member].port)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hops(ports: &[u32]) -> Vec<Hop> {
        ports
            .iter()
            .map(|port| Hop {
                port: *port,
                weight: 1,
            })
            .collect()
    }

    fn count(layout: &[u32], port: u32) -> usize {
        layout.iter().filter(|p| **p == port).count()
    }

    #[test]
    fn buckets_alternate_between_members() {
        assert_eq!(
            layout(6, &hops(&[1, 2, 3]), &hops(&[1, 2, 3])),
            [1, 2, 3, 1, 2, 3]
        );
    }

    #[test]
    fn only_the_buckets_of_a_lost_member_move() {
        let base = hops(&[1, 2, 3, 4]);
        let size = BucketPolicy::default().size(&base);
        assert_eq!(size, 48);
        let before = layout(size, &base, &base);
        let after = layout(size, &base, &hops(&[1, 2, 4]));
        for (was, is) in before.iter().zip(&after) {
            assert!(was == is || *was == 3);
        }
        assert_eq!([1, 2, 4].map(|p| count(&after, p)), [16, 16, 16]);
    }

    #[test]
    fn weights_become_buckets() {
        let members = [Hop { port: 1, weight: 2 }, Hop { port: 2, weight: 1 }];
        let size = BucketPolicy::default().size(&members);
        let all = layout(size, &members, &members);
        assert_eq!((size, count(&all, 1), count(&all, 2)), (36, 24, 12));
    }

    #[test]
    fn large_groups_get_fewer_buckets_each() {
        let members = hops(&(1..=100).collect::<Vec<_>>());
        assert_eq!(BucketPolicy::default().size(&members), 200);
        assert_eq!(
            BucketPolicy {
                per_member: 12,
                most: 8
            }
            .size(&members),
            100
        );
    }

    #[test]
    fn members_that_were_not_there_take_over() {
        assert_eq!(layout(4, &hops(&[1, 2]), &hops(&[7])), [7, 7, 7, 7]);
        assert!(layout(4, &hops(&[1]), &[]).is_empty());
    }

    proptest! {
        #[test]
        fn shares_are_even_and_moves_are_few(
            base in proptest::collection::btree_set(1u32..40, 1..20), lost in 0usize..20,
        ) {
            let base: Vec<u32> = base.into_iter().collect();
            let live: Vec<u32> =
                base.iter().copied().enumerate().filter(|(i, _)| *i != lost).map(|b| b.1).collect();
            prop_assume!(!live.is_empty());
            let size = BucketPolicy::default().size(&hops(&base));
            let before = layout(size, &hops(&base), &hops(&base));
            let after = layout(size, &hops(&base), &hops(&live));
            prop_assert_eq!(after.len(), usize::from(size));
            let shares: Vec<usize> = live.iter().map(|p| count(&after, *p)).collect();
            let spread = shares.iter().max().unwrap_or(&0) - shares.iter().min().unwrap_or(&0);
            prop_assert!(spread <= 1, "{shares:?}");
            let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
            let gone = base.get(lost).map_or(0, |p| count(&before, *p));
            prop_assert_eq!(moved, gone);
        }
    }
}

//! Volcano's `network-topology-aware` plugin.
//!
//! Published rule: HyperNodes are tried from the lowest tier up, and the job goes into one that holds all
//! its tasks. Tasks are placed one by one on the node with the highest score: 100 in the HyperNode that
//! has the job so far, else `100 (maxTier - tier) / (maxTier - minTier)` with the tier of the lowest
//! HyperNode that spans both; among several best, nodes whose HyperNode has more tasks of the job win.
//! Ties that remain are broken by chance, as Volcano does.

use super::levels::Levels;
use crate::placement::inventory::Spot;
use rand::SeedableRng;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

/// Score of a HyperNode that shares one of `tier` with the job, with tiers from `min` to `max`.
#[must_use]
pub fn tier_score(tier: usize, min: usize, max: usize) -> f64 {
    if min == max {
        return 0.0;
    }
    100.0 * max.saturating_sub(tier) as f64 / (max - min) as f64
}

/// Hosts by Volcano's rule, in the order in which tasks are placed.
#[must_use]
pub fn volcano(spots: &[Spot<'_>], wanted: usize, seed: u64) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let levels = Levels::new(spots);
    let leaf = levels.leaf_level();
    let within = (0..=leaf).rev().find_map(|level| {
        let free = &levels.free[level];
        let fits: Vec<usize> = (0..free.len()).filter(|n| free[*n] >= wanted).collect();
        fits.choose(&mut rng).map(|node| (level, *node))
    });
    let Some((level, node)) = within else {
        return Vec::new();
    };
    let inside = (0..spots.len()).filter(|s| levels.node[level][*s] == node);
    let inside: Vec<usize> = inside.collect();
    let mut used = vec![0usize; spots.len()];
    let mut hosts = Vec::with_capacity(wanted);
    // The HyperNode that spans the job so far: a spot in it, and its level.
    let mut job: Option<(usize, usize)> = None;
    while hosts.len() < wanted {
        let open = inside
            .iter()
            .copied()
            .filter(|s| used[*s] < spots[*s].free.len());
        let scored: Vec<(usize, f64)> = open
            .map(|s| (s, score(&levels, job, s, used[s], wanted)))
            .collect();
        let best = scored
            .iter()
            .map(|(_, score)| *score)
            .fold(f64::MIN, f64::max);
        let top: Vec<usize> = scored
            .iter()
            .filter(|(_, s)| *s >= best)
            .map(|(s, _)| *s)
            .collect();
        let Some(spot) = top.choose(&mut rng).copied() else {
            break;
        };
        // The spot that is best stays best until it is full: its score only grows.
        let room = &spots[spot].free[used[spot]..];
        let some = room.len().min(wanted - hosts.len());
        hosts.extend(&room[..some]);
        used[spot] += some;
        job = Some(match job {
            None => (spot, leaf),
            Some((first, level)) => (first, level.min(levels.common(first, spot) - 1)),
        });
    }
    hosts
}

fn score(
    levels: &Levels,
    job: Option<(usize, usize)>,
    spot: usize,
    tasks: usize,
    all: usize,
) -> f64 {
    let Some((first, level)) = job else {
        return 0.0;
    };
    let leaf = levels.leaf_level();
    let tier = |level: usize| leaf - level + 1;
    let shared = level.min(levels.common(first, spot) - 1);
    let by_tier = if level == leaf && spot == first {
        100.0
    } else {
        tier_score(tier(shared), 1, tier(0))
    };
    by_tier + 100.0 * tasks as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::inventory::{Inventory, Occupancy};

    /// The design's example: eight nodes in four tier-1 HyperNodes, two of tier 2, one of tier 3.
    fn example() -> Inventory {
        let hosts = (0..8u32).map(|node| Some((vec![node / 2], [0, node / 4, node / 2])));
        Inventory::from_hosts(hosts)
    }

    #[test]
    fn scores_follow_the_tier_that_is_shared() {
        assert!((tier_score(1, 1, 3) - 100.0).abs() < 1e-9);
        assert!((tier_score(2, 1, 3) - 50.0).abs() < 1e-9);
        assert!(tier_score(3, 1, 3).abs() < 1e-9);
        assert!(tier_score(1, 1, 1).abs() < 1e-9);
    }

    #[test]
    fn the_lowest_tier_that_holds_the_job_is_used() {
        let inventory = example();
        let occupancy = Occupancy::empty(8);
        let spots = occupancy.spots(&inventory);
        for seed in 0..20 {
            let two = volcano(&spots, 2, seed);
            assert_eq!(two[0] / 2, two[1] / 2);
            let four = volcano(&spots, 4, seed);
            assert!(four.iter().all(|h| h / 4 == four[0] / 4));
        }
    }

    #[test]
    fn above_that_a_hypernode_is_filled_before_the_next_is_begun() {
        let inventory = example();
        let occupancy = Occupancy::empty(8);
        let spots = occupancy.spots(&inventory);
        for seed in 0..20 {
            let six = volcano(&spots, 6, seed);
            assert!(
                six.chunks(2).all(|pair| pair[0] / 2 == pair[1] / 2),
                "{six:?}"
            );
            assert_eq!(
                six[0] / 4,
                six[2] / 4,
                "the second tier-1 HyperNode shares tier 2"
            );
        }
    }
}

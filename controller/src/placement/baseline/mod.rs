//! How others place jobs: the rules that schedulers in use publish, to compare with.
//!
//! Each takes the same spots and gives the hosts it would choose; none of them knows anything that the
//! rule it follows does not look at. All of them see leaves (rooms), segments, pods and buildings as the
//! levels of a tree.

mod kueue;
mod levels;
mod slurm;
mod volcano;

pub use kueue::{Profile, kueue};
pub use levels::Levels;
pub use slurm::slurm_tree;
pub use volcano::{tier_score, volcano};

use super::inventory::Spot;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Any free hosts, in any order.
#[must_use]
pub fn random(spots: &[Spot<'_>], wanted: usize, seed: u64) -> Vec<u32> {
    let mut hosts: Vec<u32> = spots.iter().flat_map(|s| &s.free).copied().collect();
    hosts.sort_unstable();
    hosts.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    hosts.truncate(wanted);
    hosts
}

/// The first free hosts by number, as a scheduler without topology fills a cluster.
#[must_use]
pub fn packed(spots: &[Spot<'_>], wanted: usize) -> Vec<u32> {
    let mut hosts: Vec<u32> = spots.iter().flat_map(|s| &s.free).copied().collect();
    hosts.sort_unstable();
    hosts.truncate(wanted);
    hosts
}

/// The first free hosts of each spot: `take` lists (position in `spots`, hosts).
fn hosts_of(spots: &[Spot<'_>], take: &[(usize, usize)]) -> Vec<u32> {
    let hosts = |(spot, count): &(usize, usize)| spots[*spot].free.iter().take(*count).copied();
    take.iter().flat_map(hosts).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::placement::inventory::{Inventory, Occupancy};

    #[test]
    fn random_depends_on_the_seed_alone_and_packed_on_nothing() {
        let inventory = Inventory::flat(&[4, 4, 4]);
        let mut occupancy = Occupancy::empty(12);
        occupancy.take(1, &[1, 2, 5]).unwrap();
        let spots = occupancy.spots(&inventory);
        assert_eq!(packed(&spots, 4), [0, 3, 4, 6]);
        assert_eq!(random(&spots, 5, 3), random(&spots, 5, 3));
        assert_ne!(random(&spots, 5, 3), random(&spots, 5, 4));
    }
}

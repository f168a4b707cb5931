//! Who decides where a job goes: the placer, or one of the rules it is compared with.

use super::baseline::{self, Profile};
use super::inventory::{Inventory, Occupancy};
use super::search::{Costs, Search};

/// A way to choose hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// The placer of this crate.
    Meridian,
    /// Slurm's `topology/tree`.
    SlurmTree,
    /// Kueue's BestFit.
    KueueBestFit,
    /// Kueue's LeastFreeCapacity.
    KueueLeastFree,
    /// Volcano's `network-topology-aware` plugin.
    Volcano,
    /// The first free hosts by number.
    Packed,
    /// Any free hosts.
    Random,
}

impl Policy {
    /// All of them with their names, the placer first.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("meridian", Self::Meridian),
        ("slurm-tree", Self::SlurmTree),
        ("kueue-best-fit", Self::KueueBestFit),
        ("kueue-least-free-capacity", Self::KueueLeastFree),
        ("volcano", Self::Volcano),
        ("packed", Self::Packed),
        ("random", Self::Random),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let find = |(name, policy): &(&'static str, Self)| (*policy == self).then_some(*name);
        Self::NAMES.iter().find_map(find).unwrap_or_default()
    }

    /// Hosts for a job of `wanted`; `None` if not as many are free. `seed` is for the policies that leave
    /// something to chance.
    #[must_use]
    pub fn choose(
        self,
        inventory: &Inventory,
        occupancy: &Occupancy,
        wanted: usize,
        seed: u64,
    ) -> Option<Vec<u32>> {
        let spots = match self {
            Self::Meridian => {
                let search = Search::new(inventory, occupancy, Costs::default(), 0.0);
                return search.place(wanted, None).map(|found| found.hosts);
            }
            _ => occupancy.spots(inventory),
        };
        let free: usize = spots.iter().map(|s| s.free.len()).sum();
        if wanted == 0 || free < wanted {
            return None;
        }
        Some(match self {
            Self::SlurmTree => baseline::slurm_tree(&spots, wanted),
            Self::KueueBestFit => baseline::kueue(&spots, wanted, Profile::BestFit),
            Self::KueueLeastFree => baseline::kueue(&spots, wanted, Profile::LeastFreeCapacity),
            Self::Volcano => baseline::volcano(&spots, wanted, seed),
            Self::Random => baseline::random(&spots, wanted, seed),
            Self::Packed | Self::Meridian => baseline::packed(&spots, wanted),
        })
    }

    /// Whether jobs that start together may be placed in another order than they came. The rules that
    /// others publish place one job after the other.
    #[must_use]
    pub fn sees_queue(self) -> bool {
        self == Self::Meridian
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::placement::cut::Cut;
    use crate::placement::inventory::Holder;
    use proptest::prelude::*;

    proptest! {
        /// Whatever has been taken, released and drained: nobody gets a host that is not free, gets as many
        /// as asked for, all different, the same again for the same seed, and crosses no less than must be.
        #[test]
        fn every_policy_keeps_the_rules(
            sizes in proptest::collection::vec(1u32..9, 1..20),
            steps in proptest::collection::vec((1usize..20, any::<u64>(), any::<bool>()), 1..25),
            drained in proptest::collection::vec(0u32..100, 0..10),
        ) {
            for (_, policy) in Policy::NAMES {
                let inventory = Inventory::flat(&sizes);
                let hosts = inventory.hosts();
                let mut occupancy = Occupancy::empty(hosts);
                for host in drained.iter().filter(|h| (**h as usize) < hosts) {
                    occupancy.drain(*host).unwrap();
                }
                let mut running: Vec<(u32, Vec<u32>)> = Vec::new();
                for (job, (wanted, seed, leave)) in (0..).zip(&steps) {
                    let free = occupancy.usage(&inventory).free;
                    let chosen = policy.choose(&inventory, &occupancy, *wanted, *seed);
                    prop_assert_eq!(chosen.is_some(), free >= *wanted);
                    if let Some(chosen) = chosen {
                        let again = policy.choose(&inventory, &occupancy, *wanted, *seed);
                        prop_assert_eq!(again.as_ref(), Some(&chosen));
                        prop_assert_eq!(chosen.len(), *wanted);
                        let is_free = |h: &u32| occupancy.holder(*h) == Holder::Free;
                        prop_assert!(chosen.iter().all(is_free));
                        let bound = Cut::bound(&inventory, &occupancy, *wanted).unwrap();
                        let cut = Cut::of(&inventory, &chosen);
                        prop_assert!(cut.ring_share() >= bound.ring_share() - 1e-12);
                        // Fails if a host is named twice.
                        occupancy.take(job, &chosen).unwrap();
                        running.push((job, chosen));
                    }
                    if *leave && !running.is_empty() {
                        let (job, hosts) = running.remove(*seed as usize % running.len());
                        occupancy.release(job, &hosts);
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_unique_and_lead_back() {
        for (name, policy) in Policy::NAMES {
            assert_eq!(policy.name(), name);
        }
    }
}

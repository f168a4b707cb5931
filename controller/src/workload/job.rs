//! What a job asks for.

use super::ring::{Ring, share};

/// How a collective runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// One ring through all ranks per channel; inside a host it runs over the scale-up network.
    Ring,
    /// Reduce-scatter in the host, rings between hosts, all-gather in the host: every channel's ring has
    /// one member per host.
    Hierarchical,
    /// As hierarchical, with two binary trees between hosts instead of a ring; a host that has children
    /// in one tree has none in the other, so that each sends about as much as in a ring.
    Tree,
    /// As hierarchical, in two levels between hosts: reduce-scatter inside each LA domain, all-reduce
    /// of the parts between the domains, all-gather inside.
    TwoLevel,
}

impl Algorithm {
    /// All algorithms, with their names in job files.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("ring", Self::Ring),
        ("hierarchical", Self::Hierarchical),
        ("tree", Self::Tree),
        ("two-level", Self::TwoLevel),
    ];

    /// The name in job files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// A collective operation over all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// How it runs.
    pub algorithm: Algorithm,
    /// Bytes of the array that every rank has, and that is reduced over all.
    pub bytes_per_rank: u64,
    /// Rings in parallel, each with its part of the array; channel `c` uses rail `c` modulo rails.
    pub channels: u32,
    /// How many times in a row.
    pub iterations: u32,
}

/// A training job: who takes part and what they exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Hosts it runs on.
    pub hosts: u32,
    /// Ranks, one per GPU, on each host.
    pub ranks_per_host: u32,
    /// What it exchanges.
    pub collective: Collective,
}

impl Job {
    /// Number of ranks.
    #[must_use]
    pub fn world_size(&self) -> u64 {
        u64::from(self.hosts) * u64::from(self.ranks_per_host)
    }

    /// Members that each ring has on a host.
    #[must_use]
    pub fn members_per_host(&self) -> u32 {
        match self.collective.algorithm {
            Algorithm::Ring => self.ranks_per_host,
            Algorithm::Hierarchical | Algorithm::Tree | Algorithm::TwoLevel => 1,
        }
    }

    /// The ring of a channel.
    #[must_use]
    pub fn ring(&self, channel: u32) -> Ring {
        let Collective {
            bytes_per_rank,
            channels,
            ..
        } = self.collective;
        Ring {
            bytes: share(bytes_per_rank, channels, channel),
            members: self.hosts * self.members_per_host(),
        }
    }

    /// Bytes that all NICs together send in one iteration if no two hosts share a scale-up domain, by the
    /// closed form: `2 (n - 1) / n * S` from every host.
    #[must_use]
    pub fn bytes_between_hosts(&self) -> f64 {
        let n = f64::from(self.hosts * self.members_per_host());
        let each = 2.0 * (n - 1.0) / n * self.collective.bytes_per_rank as f64;
        each * f64::from(self.hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn job(algorithm: Algorithm, hosts: u32, ranks: u32, channels: u32) -> Job {
        let collective = Collective {
            algorithm,
            bytes_per_rank: 1 << 24,
            channels,
            iterations: 1,
        };
        Job {
            name: "job".to_owned(),
            hosts,
            ranks_per_host: ranks,
            collective,
        }
    }

    #[test]
    fn a_flat_ring_has_all_ranks_and_a_hierarchical_one_a_member_per_host() {
        assert_eq!(
            job(Algorithm::Ring, 8, 4, 4).ring(0),
            Ring {
                bytes: 1 << 22,
                members: 32
            }
        );
        assert_eq!(job(Algorithm::Hierarchical, 8, 4, 4).ring(3).members, 8);
        assert_eq!(job(Algorithm::Ring, 8, 4, 4).world_size(), 32);
    }

    proptest! {
        /// The formula of the flat and of the hierarchical ring, 2 (n - 1) / n * S / g, holds within the
        /// bytes that rounding of chunks can make: two per edge and channel.
        #[test]
        fn bytes_follow_the_formula(
            hosts in 2u32..40, ranks in 1u32..9, channels in 1u32..9,
            bytes_per_rank in 1u64..1 << 32, flat: bool,
        ) {
            let algorithm = if flat { Algorithm::Ring } else { Algorithm::Hierarchical };
            let mut job = job(algorithm, hosts, ranks, channels);
            job.collective.bytes_per_rank = bytes_per_rank;
            let each = job.members_per_host();
            let total: u64 = (0..channels)
                .map(|c| {
                    let ring = job.ring(c);
                    (0..hosts).map(|h| ring.edge_bytes(h * each + each - 1)).sum::<u64>()
                })
                .sum();
            let slack = f64::from(2 * hosts * channels);
            prop_assert!((total as f64 - job.bytes_between_hosts()).abs() <= slack);
        }
    }
}

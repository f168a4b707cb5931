//! What the fabric's owner decides about queues and marking, with defaults fit for RoCE.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ars_policy::ArsPolicy;
use crate::int_policy::{IntPolicy, int_words};
use crate::model::Tier;

/// ECN marking for ports of one speed. Depths in bytes of one queue; the controller converts them
/// to what a target counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EcnProfile {
    /// At or below this depth nothing is marked, bytes.
    pub kmin: u64,
    /// Above this depth everything is marked, bytes.
    pub kmax: u64,
    /// Marking probability just below `kmax`, in parts per million.
    pub pmax_ppm: u32,
    /// Whether packets that can't be marked (Not-ECT) are dropped by the same law.
    pub drop_not_ect: bool,
}

/// Queues, marking and classes of the whole fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// Largest IP packet, bytes (without the Ethernet header).
    pub mtu: u32,
    /// Capacity of one queue of a port, bytes.
    pub queue_depth: u64,
    /// Marking by port speed (bits/s).
    pub ecn: BTreeMap<u64, EcnProfile>,
    /// DSCP (0..=63) to traffic class (0..=15); a DSCP that is missing is class 0.
    pub dscp: BTreeMap<u8, u8>,
    /// Traffic class (0..=15) to queue (0..=7, 7 first); a class that is missing uses queue 0.
    pub queues: BTreeMap<u8, u8>,
    /// Hash seeds by tier; different, so that tiers do not polarise.
    pub seeds: TierSeeds,
    /// In-band telemetry; `None`: nothing is measured or reported.
    pub int: Option<IntPolicy>,
    /// Adaptive ECMP; `None`: groups are fixed and nobody is watched.
    pub ars: Option<ArsPolicy>,
}

/// ECMP hash seeds by tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TierSeeds {
    /// Seed of leaves.
    pub leaf: u32,
    /// Seed of spines.
    pub spine: u32,
    /// Seed of cores.
    pub core: u32,
}

impl TierSeeds {
    /// The seed of a tier.
    #[must_use]
    pub fn of(&self, tier: Tier) -> u32 {
        match tier {
            Tier::Leaf => self.leaf,
            Tier::Spine => self.spine,
            Tier::Core => self.core,
        }
    }
}

impl Default for TierSeeds {
    fn default() -> Self {
        Self {
            leaf: 0x9e37_79b9,
            spine: 0x85eb_ca6b,
            core: 0xc2b2_ae35,
        }
    }
}

/// DSCP that RoCEv2 senders mark data with.
pub const ROCE_DSCP: u8 = 26;
/// DSCP of congestion notifications.
pub const CNP_DSCP: u8 = 48;

impl Default for Policy {
    fn default() -> Self {
        // Kmin, Kmax and Pmax as SimAI's configuration has them; 800G is 400G scaled.
        let profiles = [
            (100, 400, 1600, 200_000),
            (200, 300, 1200, 800_000),
            (400, 800, 3200, 200_000),
            (800, 1600, 6400, 200_000),
        ];
        let ecn = profiles.map(|(gbps, kmin, kmax, pmax_ppm)| {
            let profile = EcnProfile {
                kmin: kmin * 1000,
                kmax: kmax * 1000,
                pmax_ppm,
                drop_not_ect: false,
            };
            (gbps * 1_000_000_000, profile)
        });
        Self {
            mtu: 4200,
            queue_depth: 16_000_000,
            ecn: ecn.into(),
            dscp: [(0, 0), (ROCE_DSCP, 3), (CNP_DSCP, 6)].into(),
            queues: [(0, 0), (3, 3), (6, 7)].into(),
            seeds: TierSeeds::default(),
            int: None,
            ars: None,
        }
    }
}

/// INT shim, INT-MD header and an added UDP header, bytes.
const INT_FIXED_BYTES: u32 = 4 + 12 + 8;
/// Largest IP packet that the data plane carries, bytes.
const LARGEST_MTU: u32 = 9216;
/// RoCEv2 over IPv6 around its payload: IP 40, UDP 8, BTH 12, RETH 16, invariant CRC 4 bytes.
const ROCE_OVERHEAD: u32 = 80;

impl Policy {
    /// The profile for ports of `speed_bps`: the one given for this speed, else that of the
    /// nearest speed by ratio, its depths scaled in proportion.
    #[must_use]
    pub fn ecn_for(&self, speed_bps: u64) -> Option<EcnProfile> {
        if let Some(profile) = self.ecn.get(&speed_bps) {
            return Some(*profile);
        }
        let ratio = |known: u64| {
            let (low, high) = (known.min(speed_bps), known.max(speed_bps));
            u128::from(high) * 1_000_000 / u128::from(low.max(1))
        };
        let (known, profile) = self.ecn.iter().min_by_key(|(known, _)| ratio(**known))?;
        let scaled = |depth: u64| {
            let depth = u128::from(depth) * u128::from(speed_bps) / u128::from((*known).max(1));
            u64::try_from(depth).unwrap_or(u64::MAX)
        };
        Some(EcnProfile {
            kmin: scaled(profile.kmin),
            kmax: scaled(profile.kmax),
            ..*profile
        })
    }

    /// Largest IP packet on links between switches, bytes: the MTU, and room for what in-band telemetry
    /// adds on the way, as far as the data plane carries.
    #[must_use]
    pub fn fabric_mtu(&self) -> u32 {
        let room = self.int.as_ref().map_or(0, |int| {
            INT_FIXED_BYTES + 4 * int_words(int.instructions) * u32::from(int.max_hops)
        });
        (self.mtu + room).min(LARGEST_MTU.max(self.mtu))
    }

    /// Largest RDMA payload (256 to 4096 bytes, a power of two) whose packet fits the MTU.
    #[must_use]
    pub fn rdma_mtu(&self) -> u32 {
        [4096, 2048, 1024, 512]
            .into_iter()
            .find(|payload| payload + ROCE_OVERHEAD <= self.mtu)
            .unwrap_or(256)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn defaults_are_those_of_the_reference() {
        let policy = Policy::default();
        for (gbps, kmin, kmax, pmax_ppm) in [
            (100, 400_000, 1_600_000, 200_000),
            (200, 300_000, 1_200_000, 800_000),
            (400, 800_000, 3_200_000, 200_000),
        ] {
            let expected = EcnProfile {
                kmin,
                kmax,
                pmax_ppm,
                drop_not_ect: false,
            };
            assert_eq!(policy.ecn_for(gbps * 1_000_000_000), Some(expected));
        }
    }

    #[test]
    fn profiles_scale_with_speed() {
        let policy = Policy::default();
        assert_eq!(policy.ecn_for(400_000_000_000).unwrap().kmin, 800_000);
        let slow = policy.ecn_for(25_000_000_000).unwrap();
        assert_eq!((slow.kmin, slow.kmax), (100_000, 400_000));
        assert_eq!(policy.ecn_for(1_600_000_000_000).unwrap().kmax, 12_800_000);
        let none = Policy {
            ecn: BTreeMap::new(),
            ..Policy::default()
        };
        assert_eq!(none.ecn_for(1), None);
    }

    #[test]
    fn rdma_mtu_fits() {
        let with = |mtu| {
            Policy {
                mtu,
                ..Policy::default()
            }
            .rdma_mtu()
        };
        assert_eq!(
            [with(4200), with(4175), with(1500), with(9216)],
            [4096, 2048, 1024, 4096]
        );
    }
}

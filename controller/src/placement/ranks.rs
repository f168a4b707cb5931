//! Which hosts a job gets, and in which order its rings visit them.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Where a host is, as far as the placer cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The host's index in the topology.
    pub host: u32,
    /// LA domain of each rail, by rail. Numbers mean nothing but equality.
    pub las: Vec<u32>,
    /// The nested groups the host is in, outermost first (building, pod, segment).
    pub groups: Vec<u32>,
}

/// Why a job cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Not enough hosts are free.
    #[error(
        "job `{job}` asks for {wanted} hosts with {rails} rails and {gpus} GPUs, and {free} such hosts are free: lower `hosts`, `channels` or `ranks_per_host` in the job, or take a fabric with more"
    )]
    TooFewHosts {
        /// The job's name.
        job: String,
        /// Hosts that it wants.
        wanted: u32,
        /// Rails that each must have.
        rails: u32,
        /// GPUs that each must have.
        gpus: u32,
        /// Hosts that have them and are free.
        free: u32,
    },
}

/// Chooses `wanted` of `free` and orders them for ranks: as few LA domains as possible, then as few
/// groups around them as possible, then the domains that leave the least behind. Returns indices into
/// `free`; fewer than `wanted` only if there are not enough.
#[must_use]
pub fn choose(free: &[Site], wanted: usize) -> Vec<usize> {
    let mut best: Option<Pick> = None;
    for scope in scopes(free) {
        if scope.len() < wanted {
            continue;
        }
        let pick = pick(free, &scope, wanted);
        if best.as_ref().is_none_or(|b| pick.cost < b.cost) {
            best = Some(pick);
        }
    }
    let mut hosts = best.map_or_else(|| (0..free.len()).collect(), |pick| pick.hosts);
    let rank = la_ranks(free, &hosts, 0);
    hosts.sort_by(|a, b| {
        let key = |i: &usize| {
            (
                free[*i].las.first().map(|la| rank[la]),
                free[*i].las.clone(),
            )
        };
        key(a).cmp(&key(b)).then(free[*a].host.cmp(&free[*b].host))
    });
    hosts
}

/// The baseline: any hosts, in any order. Indices into `free`.
#[must_use]
pub fn shuffle(free: &[Site], wanted: usize, seed: u64) -> Vec<usize> {
    let mut hosts: Vec<usize> = (0..free.len()).collect();
    hosts.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    hosts.truncate(wanted);
    hosts
}

/// The order in which a ring on `rail` visits `hosts` (indices into `sites`): every LA domain is
/// entered and left once. Returns positions in `hosts`.
#[must_use]
pub fn ring_order(sites: &[Site], hosts: &[usize], rail: usize) -> Vec<u32> {
    let rank = la_ranks(sites, hosts, rail);
    let mut order: Vec<u32> = (0..u32::try_from(hosts.len()).unwrap_or(u32::MAX)).collect();
    // Stable: within a domain the ranks keep their order.
    order.sort_by_key(|p| sites[hosts[*p as usize]].las.get(rail).map(|la| rank[la]));
    order
}

/// LA domains numbered by the groups they are in, so that domains of one group follow each other.
fn la_ranks(sites: &[Site], hosts: &[usize], rail: usize) -> BTreeMap<u32, usize> {
    let mut first: BTreeMap<u32, (&[u32], u32)> = BTreeMap::new();
    for i in hosts {
        let site = &sites[*i];
        let Some(la) = site.las.get(rail) else {
            continue;
        };
        let key = (site.groups.as_slice(), site.host);
        first
            .entry(*la)
            .and_modify(|k| *k = (*k).min(key))
            .or_insert(key);
    }
    let mut las: Vec<_> = first.into_iter().collect();
    las.sort_by_key(|(la, key)| (*key, *la));
    las.into_iter()
        .enumerate()
        .map(|(rank, (la, _))| (la, rank))
        .collect()
}

/// Every group of hosts at every level, and all of them together.
fn scopes(free: &[Site]) -> Vec<Vec<usize>> {
    let levels = free.iter().map(|s| s.groups.len()).max().unwrap_or(0);
    let mut scopes = Vec::new();
    for level in (1..=levels).rev() {
        let mut groups: BTreeMap<&[u32], Vec<usize>> = BTreeMap::new();
        for (i, site) in free.iter().enumerate() {
            groups
                .entry(&site.groups[..level.min(site.groups.len())])
                .or_default()
                .push(i);
        }
        scopes.extend(groups.into_values());
    }
    scopes.push((0..free.len()).collect());
    scopes
}

struct Pick {
    hosts: Vec<usize>,
    /// LA domains used, hosts in scope, hosts left behind in the domains that are used.
    cost: (usize, usize, usize),
}

fn pick(free: &[Site], scope: &[usize], wanted: usize) -> Pick {
    // Hosts that share all their domains are interchangeable.
    let mut alike: BTreeMap<&[u32], Vec<usize>> = BTreeMap::new();
    for i in scope {
        alike.entry(&free[*i].las).or_default().push(*i);
    }
    let mut rooms: Vec<Vec<usize>> = alike.into_values().collect();
    rooms.sort_by_key(|room| (std::cmp::Reverse(room.len()), free[room[0]].host));
    let mut hosts = Vec::with_capacity(wanted);
    let mut taken = 0;
    while hosts.len() < wanted && taken < rooms.len() {
        let missing = wanted - hosts.len();
        if rooms[taken].len() >= missing {
            break;
        }
        hosts.extend(&rooms[taken]);
        taken += 1;
    }
    let missing = wanted - hosts.len();
    let mut left = 0;
    // The last domain is the smallest that suffices, so that large holes stay large.
    if missing > 0
        && let Some(room) = rooms[taken..]
            .iter()
            .rev()
            .find(|room| room.len() >= missing)
    {
        hosts.extend(&room[..missing]);
        left = room.len() - missing;
        taken += 1;
    }
    Pick {
        hosts,
        cost: (taken, scope.len(), left),
    }
}

/// Least number of LA domains of `rail` that hold `wanted` hosts of `free`; `None` if all of them do not.
#[must_use]
pub fn least_domains(free: &[Site], wanted: usize, rail: usize) -> Option<usize> {
    let mut room: BTreeMap<u32, usize> = BTreeMap::new();
    for la in free.iter().filter_map(|site| site.las.get(rail)) {
        *room.entry(*la).or_default() += 1;
    }
    let mut sizes: Vec<usize> = room.into_values().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (i, size) in sizes.iter().enumerate() {
        sum += size;
        if sum >= wanted {
            return Some(i + 1);
        }
    }
    None
}

/// Number of edges of a closed ring over `las` that join two domains.
#[must_use]
pub fn crossings(las: &[u32]) -> usize {
    las.iter()
        .zip(las.iter().cycle().skip(1))
        .filter(|(a, b)| a != b)
        .count()
}

/// Least number of crossings of any ring over members of `domains` domains.
#[must_use]
pub fn least_crossings(domains: usize) -> usize {
    if domains < 2 { 0 } else { domains }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    /// Hosts of two rails; both rails of a host are in domains of the same place.
    fn sites(places: &[u32]) -> Vec<Site> {
        places
            .iter()
            .enumerate()
            .map(|(i, la)| Site {
                host: i as u32,
                las: vec![*la, 1000 + *la],
                groups: vec![*la / 4, *la],
            })
            .collect()
    }

    fn las_of(free: &[Site], hosts: &[usize], order: &[u32], rail: usize) -> Vec<u32> {
        order
            .iter()
            .map(|p| free[hosts[*p as usize]].las[rail])
            .collect()
    }

    #[test]
    fn interleaved_hosts_are_put_side_by_side() {
        let free = sites(&[0, 1, 0, 1, 0, 1, 0, 1]);
        let hosts = choose(&free, 8);
        assert_eq!(hosts, [0, 2, 4, 6, 1, 3, 5, 7]);
        let order = ring_order(&free, &hosts, 1);
        assert_eq!(crossings(&las_of(&free, &hosts, &order, 1)), 2);
    }

    #[test]
    fn a_job_that_fits_one_domain_gets_the_tightest() {
        let free = sites(&[0, 0, 0, 0, 1, 1, 2, 2, 2]);
        let hosts = choose(&free, 3);
        assert_eq!(hosts, [6, 7, 8]);
    }

    #[test]
    fn a_larger_job_takes_whole_domains_first() {
        let free = sites(&[0, 0, 0, 0, 1, 1, 2, 2, 2]);
        let hosts = choose(&free, 6);
        assert_eq!(hosts, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn equal_domain_counts_prefer_one_pod() {
        // Domains 3 and 4 lie in different pods; 4 and 5 in one.
        let free = sites(&[3, 3, 4, 4, 5, 5]);
        assert_eq!(choose(&free, 4), [2, 3, 4, 5]);
    }

    #[test]
    fn the_baseline_depends_on_the_seed_alone() {
        let free = sites(&[0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(shuffle(&free, 8, 7), shuffle(&free, 8, 7));
        assert_ne!(shuffle(&free, 8, 7), shuffle(&free, 8, 8));
    }

    proptest! {
        #[test]
        fn chosen_hosts_meet_the_bound(
            places in proptest::collection::vec(0u32..10, 1..60),
            wanted in 1usize..60,
        ) {
            let free = sites(&places);
            prop_assume!(wanted <= free.len());
            let hosts = choose(&free, wanted);
            let mut distinct = hosts.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), wanted);
            for rail in 0..2 {
                let order = ring_order(&free, &hosts, rail);
                let crossed = crossings(&las_of(&free, &hosts, &order, rail));
                let least = least_domains(&free, wanted, rail).unwrap();
                prop_assert_eq!(crossed, least_crossings(least));
            }
        }

        #[test]
        fn no_order_beats_the_bound(
            places in proptest::collection::vec(0u32..5, 1..30),
            seed in any::<u64>(),
        ) {
            let free = sites(&places);
            let hosts = shuffle(&free, free.len(), seed);
            let las: Vec<u32> = hosts.iter().map(|i| free[*i].las[0]).collect();
            let domains = las.iter().collect::<std::collections::BTreeSet<_>>().len();
            prop_assert!(crossings(&las) >= least_crossings(domains));
            let order = ring_order(&free, &hosts, 0);
            prop_assert_eq!(crossings(&las_of(&free, &hosts, &order, 0)), least_crossings(domains));
        }
    }
}

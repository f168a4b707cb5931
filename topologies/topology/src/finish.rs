//! The last step of building: LA domains, addresses, and whether everybody is reachable.

use std::net::IpAddr;

use ipnetwork::{Ipv4Network, Ipv6Network};
use rustc_hash::FxHashMap;

use crate::addressing::{self, MacAddr};
use crate::builder::Builder;
use crate::fault::Fault;
use crate::ids::{LaId, NicId, Node, SwitchId};
use crate::model::{La, Tier, Topology};
use crate::parts::NewLa;

/// Disjoint sets with path halving.
struct Sets(Vec<u32>);

impl Sets {
    fn new(count: usize) -> Self {
        Self((0..count as u32).collect())
    }

    fn root(&mut self, mut item: usize) -> usize {
        while self.0[item] as usize != item {
            let above = self.0[item] as usize;
            self.0[item] = self.0[above];
            item = above;
        }
        item
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        // The lower index stays the root, which makes roots a function of the sets alone.
        self.0[a.max(b)] = a.min(b) as u32;
    }
}

impl Builder {
    /// Completes the topology.
    ///
    /// # Errors
    /// All that is wrong with the whole: NICs without a link, LA domains that are no single leaf
    /// access, addresses that clash, hosts cut off from the rest.
    pub fn finish(mut self) -> Result<Topology, Vec<Fault>> {
        let mut faults = Vec::new();
        if self.topology.switches.is_empty() {
            faults.push(Fault::Nothing("switches"));
        }
        if faults.is_empty() && self.topology.hosts.is_empty() {
            faults.push(Fault::Nothing("hosts"));
        }
        if faults.is_empty() {
            self.check_connected(&mut faults);
            let domains = self.domains(&mut faults);
            if faults.is_empty() {
                self.assign(domains, &mut faults);
            }
            if faults.is_empty() {
                self.check_unique(&mut faults);
            }
        }
        if faults.is_empty() {
            Ok(self.topology)
        } else {
            Err(faults)
        }
    }

    fn check_connected(&self, faults: &mut Vec<Fault>) {
        let topology = &self.topology;
        for nic in topology
            .nics
            .iter()
            .filter(|nic| nic.ports().next().is_none())
        {
            let host = topology[nic.host].name.clone();
            faults.push(Fault::NotConnected {
                host,
                rail: nic.rail,
            });
        }
        if faults.is_empty() {
            for host in unreachable_hosts(topology) {
                faults.push(Fault::Unreachable(topology.hosts[host].name.clone()));
            }
        }
    }

    /// Explicit domains, then one for each leaf or tied pair that is left, in switch order.
    fn domains(&mut self, faults: &mut Vec<Fault>) -> Vec<NewLa> {
        let groups = leaf_groups(&self.topology);
        let mut domains = std::mem::take(&mut self.las);
        let mut of_leaf: FxHashMap<SwitchId, usize> = FxHashMap::default();
        for (index, domain) in domains.iter().enumerate() {
            for leaf in &domain.leaves {
                if let Some(first) = of_leaf.insert(*leaf, index) {
                    faults.push(Fault::LeafInTwoLas {
                        leaf: self.topology[*leaf].name.clone(),
                        first: domains[first].name.clone(),
                        second: domain.name.clone(),
                    });
                }
            }
            faults.extend(self.not_access(domain, &groups));
        }
        for group in groups
            .values()
            .flat_map(|group| group.first().map(|first| (*first, group)))
        {
            let (first, group) = group;
            if group.len() > 2 {
                faults.push(Fault::LeafChain(self.names(group)));
            } else if !of_leaf.contains_key(&first) {
                let name = format!("la-{}", self.topology[first].name);
                if !self.la_names.insert(name.clone()) {
                    faults.push(Fault::DuplicateName(name.clone()));
                }
                domains.push(NewLa {
                    name,
                    leaves: group.clone(),
                    v4: None,
                    v6: None,
                });
            }
        }
        domains
    }

    fn not_access(&self, domain: &NewLa, groups: &Groups) -> Option<Fault> {
        let tied = groups.get(&domain.leaves[0]).or_else(|| {
            groups
                .values()
                .find(|group| group.contains(&domain.leaves[0]))
        })?;
        let mut leaves = domain.leaves.clone();
        leaves.sort_unstable();
        if leaves == *tied {
            return None;
        }
        let why = match leaves[..] {
            [one] => format!(
                "dual-homed NICs tie `{}` to {}",
                self.topology[one].name,
                self.names(
                    &tied
                        .iter()
                        .copied()
                        .filter(|leaf| *leaf != one)
                        .collect::<Vec<_>>()
                )
            ),
            _ => format!("no NIC is attached to both {}", self.names(&leaves)),
        };
        Some(Fault::NotLeafAccess {
            la: domain.name.clone(),
            why,
        })
    }

    fn names(&self, leaves: &[SwitchId]) -> String {
        let names = leaves
            .iter()
            .take(8)
            .map(|leaf| format!("`{}`", self.topology[*leaf].name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Gives every domain its prefix and every NIC its address.
    fn assign(&mut self, domains: Vec<NewLa>, faults: &mut Vec<Fault>) {
        let topology = &mut self.topology;
        topology.la_of_switch = vec![None; topology.switches.len()];
        for (index, domain) in domains.iter().enumerate() {
            for leaf in &domain.leaves {
                topology.la_of_switch[leaf.index()] = Some(LaId::at(index));
            }
        }
        let mut members = vec![Vec::new(); domains.len()];
        for id in topology.nic_ids() {
            let leaf = topology[id].ports().next().map(|port| port.leaf.switch);
            if let Some(la) = leaf.and_then(|leaf| topology.la_of_switch(leaf)) {
                topology.nics[id.index()].la = la;
                members[la.index()].push(id);
            }
        }
        let largest = members.iter().map(Vec::len).max().unwrap_or(0);
        let Some(prefix_len) = addressing::v4_prefix_len(domains.len(), largest) else {
            faults.push(Fault::OutOfAddresses {
                domains: domains.len(),
                largest,
            });
            return;
        };
        for (index, (domain, nics)) in domains.into_iter().zip(members).enumerate() {
            let number = index as u32 + 1;
            let v4 = domain.v4.or_else(|| addressing::la_v4(number, prefix_len));
            let v6 = domain.v6.or_else(|| addressing::la_v6(number));
            let (Some(v4), Some(v6)) = (v4, v6) else {
                continue;
            };
            match self.domain(domain, number, nics, v4, v6) {
                Ok(la) => self.topology.las.push(la),
                Err(fault) => faults.push(fault),
            }
        }
    }

    fn domain(
        &mut self,
        new: NewLa,
        number: u32,
        nics: Vec<NicId>,
        v4: Ipv4Network,
        v6: Ipv6Network,
    ) -> Result<La, Fault> {
        let too_small = |prefix: String| Fault::PrefixTooSmall {
            la: new.name.clone(),
            prefix,
            nics: nics.len(),
        };
        let needed = nics.len() as u64 + addressing::RESERVED;
        if u64::from(v4.size()) < needed && v4.prefix() != 0 {
            return Err(too_small(v4.to_string()));
        }
        if v6.size() < u128::from(needed) && v6.prefix() != 0 {
            return Err(too_small(v6.to_string()));
        }
        let gateway_v4 = addressing::v4_at(v4, 1).ok_or_else(|| too_small(v4.to_string()))?;
        let gateway_v6 = addressing::v6_at(v6, 1).ok_or_else(|| too_small(v6.to_string()))?;
        for (k, id) in (2..).zip(&nics) {
            let given = self.given[id.index()];
            let name = |topology: &Topology| topology.nic_name(*id);
            let nic_v4 = given
                .v4
                .or_else(|| addressing::v4_at(v4, k))
                .ok_or_else(|| too_small(v4.to_string()))?;
            if !v4.contains(nic_v4) || [v4.network(), v4.broadcast(), gateway_v4].contains(&nic_v4)
            {
                return Err(Fault::AddressOutside {
                    nic: name(&self.topology),
                    address: nic_v4.into(),
                    prefix: v4.to_string(),
                });
            }
            let nic_v6 = given
                .v6
                .or_else(|| addressing::v6_at(v6, k))
                .ok_or_else(|| too_small(v6.to_string()))?;
            if !v6.contains(nic_v6) || [v6.network(), gateway_v6].contains(&nic_v6) {
                return Err(Fault::AddressOutside {
                    nic: name(&self.topology),
                    address: nic_v6.into(),
                    prefix: v6.to_string(),
                });
            }
            let nic = &mut self.topology.nics[id.index()];
            nic.v4 = nic_v4;
            nic.v6 = nic_v6;
        }
        let gateway_mac = match new.leaves[..] {
            [leaf] => self.topology[leaf].mac,
            _ => addressing::pair_mac(number),
        };
        let (name, leaves) = (new.name, new.leaves);
        Ok(La {
            name,
            number,
            leaves,
            v4,
            v6,
            gateway_v4,
            gateway_v6,
            gateway_mac,
            nics,
        })
    }

    fn check_unique(&self, faults: &mut Vec<Fault>) {
        let topology = &self.topology;
        overlaps(
            topology,
            |la| {
                (
                    IpAddr::V4(la.v4.network()),
                    IpAddr::V4(la.v4.broadcast()),
                    la.v4.to_string(),
                )
            },
            faults,
        );
        overlaps(
            topology,
            |la| {
                (
                    IpAddr::V6(la.v6.network()),
                    IpAddr::V6(la.v6.broadcast()),
                    la.v6.to_string(),
                )
            },
            faults,
        );
        let switch = |id: SwitchId| Owner::Switch(id);
        let v4 = topology
            .switch_ids()
            .map(|id| (IpAddr::V4(topology[id].loopback_v4), switch(id)));
        let v6 = topology
            .switch_ids()
            .map(|id| (IpAddr::V6(topology[id].loopback_v6), switch(id)));
        let nics = topology.nic_ids().flat_map(|id| {
            let nic = &topology[id];
            [
                (IpAddr::V4(nic.v4), Owner::Nic(id)),
                (IpAddr::V6(nic.v6), Owner::Nic(id)),
            ]
        });
        let gateways = topology.la_ids().flat_map(|id| {
            let la = &topology[id];
            [
                (IpAddr::V4(la.gateway_v4), Owner::La(id)),
                (IpAddr::V6(la.gateway_v6), Owner::La(id)),
            ]
        });
        for (address, first, second) in repeated(v4.chain(v6).chain(gateways).chain(nics).collect())
        {
            let (first, second) = (first.name(topology), second.name(topology));
            faults.push(Fault::DuplicateAddress {
                address,
                first,
                second,
            });
        }
        if self.macs_given {
            for (mac, first, second) in repeated(all_macs(topology)) {
                let (first, second) = (first.name(topology), second.name(topology));
                faults.push(Fault::DuplicateMac { mac, first, second });
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Switch(SwitchId),
    La(LaId),
    Nic(NicId),
}

impl Owner {
    fn name(self, topology: &Topology) -> String {
        match self {
            Self::Switch(id) => topology[id].name.clone(),
            Self::La(id) => topology[id].name.clone(),
            Self::Nic(id) => topology.nic_name(id),
        }
    }
}

fn all_macs(topology: &Topology) -> Vec<(MacAddr, Owner)> {
    let switches = topology
        .switch_ids()
        .map(|id| (topology[id].mac, Owner::Switch(id)));
    let nics = topology
        .nic_ids()
        .map(|id| (topology[id].mac, Owner::Nic(id)));
    let pairs = topology
        .la_ids()
        .filter(|id| topology[*id].leaves.len() > 1);
    let pairs = pairs.map(|id| (topology[id].gateway_mac, Owner::La(id)));
    switches.chain(pairs).chain(nics).collect()
}

/// Values that occur more than once, each with its first and the repeated owner.
fn repeated<T: Ord + Copy>(mut values: Vec<(T, Owner)>) -> Vec<(T, Owner, Owner)> {
    values.sort_unstable();
    let pairs = values.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    pairs
        .map(|pair| (pair[0].0, pair[0].1, pair[1].1))
        .collect()
}

/// Reports LA domains whose address ranges share something.
fn overlaps(
    topology: &Topology,
    range: impl Fn(&La) -> (IpAddr, IpAddr, String),
    faults: &mut Vec<Fault>,
) {
    let mut order: Vec<(IpAddr, IpAddr, usize)> = topology
        .las
        .iter()
        .enumerate()
        .map(|(index, la)| {
            let (first, last, _) = range(la);
            (first, last, index)
        })
        .collect();
    order.sort_unstable();
    let mut widest: Option<(IpAddr, usize)> = None;
    for (first, last, index) in order {
        if let Some((_, other)) = widest.filter(|(end, _)| *end >= first) {
            let (a, b) = (
                &topology.las[other.min(index)],
                &topology.las[other.max(index)],
            );
            faults.push(Fault::OverlappingPrefix {
                first_la: a.name.clone(),
                first: range(a).2,
                second_la: b.name.clone(),
                second: range(b).2,
            });
        }
        if widest.is_none_or(|(end, _)| last > end) {
            widest = Some((last, index));
        }
    }
}

/// Leaves tied together by dual-homed NICs, under the lowest of them.
type Groups = std::collections::BTreeMap<SwitchId, Vec<SwitchId>>;

fn leaf_groups(topology: &Topology) -> Groups {
    let mut sets = Sets::new(topology.switches.len());
    for nic in &topology.nics {
        let mut leaves = nic.ports().map(|port| port.leaf.switch.index());
        if let (Some(a), Some(b)) = (leaves.next(), leaves.next()) {
            sets.join(a, b);
        }
    }
    let mut groups = Groups::new();
    for leaf in topology.tier(Tier::Leaf) {
        groups
            .entry(SwitchId::at(sets.root(leaf.index())))
            .or_default()
            .push(leaf);
    }
    groups
}

/// Hosts outside the connected part that holds the most hosts. A host connects its NICs: a
/// rail-only fabric is whole, because traffic between rails goes through the hosts.
fn unreachable_hosts(topology: &Topology) -> Vec<usize> {
    let switches = topology.switches.len();
    let position = |node: Node| match node {
        Node::Switch(id) => id.index(),
        Node::Host(id) => switches + id.index(),
    };
    let mut sets = Sets::new(switches + topology.hosts.len());
    for link in &topology.links {
        let [lower, upper] = link.ends().map(|end| position(topology.node(end)));
        sets.join(lower, upper);
    }
    let roots: Vec<usize> = (0..topology.hosts.len())
        .map(|host| sets.root(switches + host))
        .collect();
    let mut sizes: FxHashMap<usize, usize> = FxHashMap::default();
    for root in &roots {
        *sizes.entry(*root).or_default() += 1;
    }
    let main = sizes
        .into_iter()
        .max_by_key(|(root, size)| (*size, std::cmp::Reverse(*root)));
    let main = main.map(|(root, _)| root);
    (0..roots.len())
        .filter(|host| Some(roots[*host]) != main)
        .collect()
}

//! Where the file has what a fault is about.

use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::report::At;
use crate::addressing::MacAddr;
use crate::fault::Fault;
use crate::ids::LinkId;

/// Where things stand that faults may be about.
#[derive(Default)]
pub(super) struct Index {
    /// Switches and hosts by name.
    pub(super) nodes: FxHashMap<String, At>,
    pub(super) las: FxHashMap<String, At>,
    /// Explicit prefixes by LA name: IPv4, IPv6.
    pub(super) prefixes: FxHashMap<String, [Option<At>; 2]>,
    pub(super) addresses: FxHashMap<IpAddr, Vec<At>>,
    pub(super) macs: FxHashMap<MacAddr, Vec<At>>,
    pub(super) device_ids: FxHashMap<u64, At>,
    /// Links from the file; generated ones have no place of their own.
    pub(super) links: FxHashMap<LinkId, At>,
    /// The `clos:` section, to which generated parts belong.
    pub(super) clos: Option<At>,
}

impl Index {
    fn node_at(&self, name: &str, or: At) -> At {
        let name = name.split(':').next().unwrap_or(name);
        let found = self.nodes.get(name).or_else(|| self.las.get(name));
        found.or(self.clos.as_ref()).copied().unwrap_or(or)
    }

    /// Where the file has what a fault of the finished whole is about.
    pub(super) fn place(&self, fault: &Fault, or: At) -> (At, Option<(At, String)>) {
        let twice = |places: Option<&Vec<At>>, first: &str, second: &str| {
            let second = places
                .and_then(|places| places.last().copied())
                .unwrap_or_else(|| self.node_at(second, or));
            let earlier = places
                .filter(|places| places.len() > 1)
                .map(|places| places[0]);
            let first = earlier.unwrap_or_else(|| self.node_at(first, or));
            (
                second,
                (first != second).then(|| (first, "also used here".to_owned())),
            )
        };
        match fault {
            Fault::NotConnected { host, .. } | Fault::Unreachable(host) => {
                (self.node_at(host, or), None)
            }
            Fault::NotLeafAccess { la, .. } => (self.node_at(la, or), None),
            Fault::LeafInTwoLas { first, second, .. } => {
                let first = self.node_at(first, or);
                (
                    self.node_at(second, or),
                    Some((first, "also in this one".to_owned())),
                )
            }
            Fault::LeafChain(leaves) => {
                let first = leaves
                    .trim_start_matches('`')
                    .split('`')
                    .next()
                    .unwrap_or("");
                (self.node_at(first, or), None)
            }
            Fault::OverlappingPrefix {
                first_la,
                second_la,
                first,
                ..
            } => {
                let family = usize::from(first.contains(':'));
                let at = |la: &String| {
                    let explicit = self.prefixes.get(la).and_then(|prefixes| prefixes[family]);
                    (explicit, self.node_at(la, or))
                };
                match (at(first_la), at(second_la)) {
                    ((Some(first), _), (None, second)) => {
                        (first, Some((second, "overlaps this one".to_owned())))
                    }
                    ((first, near_first), (second, near_second)) => {
                        let first = first.unwrap_or(near_first);
                        (
                            second.unwrap_or(near_second),
                            Some((first, "overlaps this one".to_owned())),
                        )
                    }
                }
            }
            Fault::PrefixTooSmall { la, prefix, .. } => {
                let family = usize::from(prefix.contains(':'));
                let explicit = self.prefixes.get(la).and_then(|prefixes| prefixes[family]);
                (explicit.unwrap_or_else(|| self.node_at(la, or)), None)
            }
            Fault::DuplicateAddress {
                address,
                first,
                second,
            } => twice(self.addresses.get(address), first, second),
            Fault::DuplicateMac { mac, first, second } => twice(self.macs.get(mac), first, second),
            Fault::AddressOutside { nic, address, .. } => {
                let explicit = self.addresses.get(address).and_then(|places| places.last());
                (
                    explicit.copied().unwrap_or_else(|| self.node_at(nic, or)),
                    None,
                )
            }
            _ => (or, None),
        }
    }
}

//! A topology prepared for decisions: its switches as a graph, its NICs as terminals, its addresses as
//! destinations.

use crate::routing::{Destination, Graph, LinkSet, Options, Routes, Switch, Wire, compute};
use std::collections::BTreeMap;
use std::sync::Arc;
use topology::{End, LaId, NicId, SwitchId, Topology};

/// What a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The prefixes of an LA domain.
    Subnet(LaId),
    /// One NIC that can't be reached in the way that its domain is: its host addresses.
    Nic(NicId),
    /// The loopback addresses of a switch.
    Loopback(SwitchId),
}

/// Everything that has to be reachable, with the links that are down taken into account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Different sets of delivering switches.
    pub destinations: Vec<Destination>,
    /// Each target and its position in `destinations`, in order.
    pub targets: Vec<(Target, usize)>,
    /// Position in `destinations` for each NIC; `None` for a NIC without a live port.
    pub of_nic: Vec<Option<usize>>,
}

/// A topology's switches as a graph.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// The topology itself.
    pub topology: Arc<Topology>,
    /// Its switches and the links between them.
    pub graph: Graph,
}

impl Fabric {
    /// Prepares `topology`.
    #[must_use]
    pub fn new(topology: Arc<Topology>) -> Self {
        let tiers = topology.switches().iter().map(|s| s.tier as u8).collect();
        let wires: Vec<Wire> = topology
            .link_ids()
            .filter_map(|id| {
                let link = &topology[id];
                let End::Switch(lower) = link.lower else {
                    return None;
                };
                let ends = [lower, link.upper].map(|p| (p.switch.0, u32::from(p.port)));
                Some(Wire {
                    link: id.0,
                    ends,
                    speed_bps: link.speed_bps,
                })
            })
            .collect();
        Self {
            topology,
            graph: Graph::new(tiers, &wires),
        }
    }

    /// Lists what has to be reachable. A domain's prefix stands for the NICs that most of the domain's
    /// switches deliver to; the others get targets of their own.
    #[must_use]
    pub fn targets(&self, down: &LinkSet, loopbacks: bool) -> Targets {
        let mut list = Targets {
            destinations: Vec::new(),
            targets: Vec::new(),
            of_nic: vec![None; self.topology.nics().len()],
        };
        let mut known: BTreeMap<Vec<Switch>, usize> = BTreeMap::new();
        let mut destination = |list: &mut Targets, switches: Vec<Switch>| {
            *known.entry(switches.clone()).or_insert_with(|| {
                list.destinations.push(Destination { switches });
                list.destinations.len() - 1
            })
        };
        for la in self.topology.la_ids() {
            let mut alike: BTreeMap<Vec<Switch>, Vec<NicId>> = BTreeMap::new();
            for nic in &self.topology[la].nics {
                alike
                    .entry(self.leaves_of(*nic, down))
                    .or_default()
                    .push(*nic);
            }
            alike.remove(&Vec::new());
            let common = alike
                .iter()
                .max_by_key(|(leaves, nics)| (nics.len(), leaves.len(), std::cmp::Reverse(*leaves)))
                .map(|(leaves, _)| leaves.clone());
            for (leaves, nics) in alike {
                let is_common = common.as_ref() == Some(&leaves);
                let position = destination(&mut list, leaves);
                for nic in &nics {
                    list.of_nic[nic.index()] = Some(position);
                }
                if is_common {
                    list.targets.push((Target::Subnet(la), position));
                } else {
                    list.targets
                        .extend(nics.into_iter().map(|nic| (Target::Nic(nic), position)));
                }
            }
        }
        if loopbacks {
            for switch in self.topology.switch_ids() {
                let position = destination(&mut list, vec![switch.0]);
                list.targets.push((Target::Loopback(switch), position));
            }
        }
        list.targets.sort_unstable();
        list
    }

    /// The leaves that a NIC has live ports on, in ascending order.
    fn leaves_of(&self, nic: NicId, down: &LinkSet) -> Vec<Switch> {
        let mut leaves: Vec<Switch> = self.topology[nic]
            .ports()
            .filter(|port| !down.contains(port.link.0))
            .map(|port| port.leaf.switch.0)
            .collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// Routes to `targets` over the links that are not in `down`.
    #[must_use]
    pub fn routes(&self, targets: &Targets, down: &LinkSet, options: Options) -> Routes {
        compute(&self.graph, &targets.destinations, down, options)
    }
}

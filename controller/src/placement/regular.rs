//! The exact case: leaf-spine, leaves with alike uplinks, flows of one size.

use super::colour::colour;
use super::flows::{Demand, Network, Path, Port, path};
use crate::routing::Switch;
use rustc_hash::FxHashMap;

/// An uplink as it looks from outside: which of the NIC's leaves, which spine, how fast.
type Uplink = (usize, Switch, u64);

/// Leaves that share NICs: one leaf, or the pair of a dual-homed NIC, in the order of the NIC's ports.
struct Node {
    leaves: Vec<Switch>,
    /// Uplinks of all its leaves in comparable order, with the port at the leaf and at the spine.
    uplinks: Vec<(Uplink, u32, u32)>,
}

/// A flow that has to leave its node, with the ports it may use, in step with the nodes' leaves.
struct Crossing {
    flow: usize,
    nodes: (u32, u32),
}

/// Paths that spread `demands` as evenly as is possible at all, or `None` if the case isn't regular:
/// more than one size of flow, more than two tiers in use, or leaves whose uplinks differ.
pub(super) fn place(network: &Network, demands: &[Demand]) -> Option<Vec<Option<Path>>> {
    let sizes = demands.iter().map(|d| d.bytes);
    let (least, most) = (sizes.clone().min()?, sizes.max()?);
    // Chunks of one ring differ by a byte or two; that is no reason to call them different.
    if most - least > most / 1000 + 2 {
        return None;
    }
    let mut nodes = Nodes::default();
    let mut crossing = Vec::new();
    let mut paths: Vec<Option<Path>> = vec![None; demands.len()];
    for (flow, demand) in demands.iter().enumerate() {
        let Some(dest) = network.terminals[demand.dst as usize].destination else {
            continue;
        };
        let (src, dst) = (
            ports(network, demand, demand.src),
            ports(network, demand, demand.dst),
        );
        if src.is_empty() || dst.is_empty() {
            continue;
        }
        let (from, to) = (nodes.node(network, &src)?, nodes.node(network, &dst)?);
        if from == to {
            // Within a leaf there is one way for each port; several would have to be balanced.
            let [port] = src[..] else { return None };
            let last = dst.first()?;
            let only = path(network, dest, &[port.leaf], &[last.leaf_port], port, *last);
            paths[flow] = Some(only);
        } else {
            crossing.push(Crossing {
                flow,
                nodes: (from, to),
            });
        }
    }
    for flows in nodes.by_uplinks(crossing)? {
        let edges: Vec<(u32, u32)> = flows.iter().map(|c| c.nodes).collect();
        let first = nodes.list.get(edges.first()?.0 as usize)?;
        let colours = colour(&edges, u32::try_from(first.uplinks.len()).ok()?);
        for (crossing, colour) in flows.iter().zip(colours) {
            let demand = &demands[crossing.flow];
            paths[crossing.flow] = Some(nodes.via(network, demand, crossing, colour as usize)?);
        }
    }
    Some(paths)
}

fn ports(network: &Network, demand: &Demand, nic: u32) -> Vec<Port> {
    let live = network.terminals[nic as usize].ports.iter();
    live.filter(|p| demand.port.is_none_or(|w| p.number == w))
        .copied()
        .collect()
}

#[derive(Default)]
struct Nodes {
    list: Vec<Node>,
    of_leaf: FxHashMap<Switch, u32>,
}

impl Nodes {
    /// The node of a NIC with these ports; `None` if a leaf would be in two nodes, or two in one.
    fn node(&mut self, network: &Network, ports: &[Port]) -> Option<u32> {
        let leaves: Vec<Switch> = ports.iter().map(|p| p.leaf).collect();
        if let Some(known) = self.of_leaf.get(leaves.first()?) {
            return (self.list[*known as usize].leaves == leaves).then_some(*known);
        }
        let id = u32::try_from(self.list.len()).ok()?;
        let mut uplinks = Vec::new();
        for (position, leaf) in leaves.iter().enumerate() {
            if self.of_leaf.insert(*leaf, id).is_some() {
                return None;
            }
            let up = network.graph.up(*leaf).iter();
            for edge in up.filter(|e| !network.down.contains(e.link)) {
                let down = network
                    .graph
                    .down(edge.peer)
                    .iter()
                    .find(|d| d.link == edge.link)?;
                uplinks.push(((position, edge.peer, edge.speed_bps), edge.port, down.port));
            }
        }
        uplinks.sort_unstable();
        // Unequal links of one node would deserve unequal shares.
        if uplinks.windows(2).any(|w| w[0].0.2 != w[1].0.2) {
            return None;
        }
        self.list.push(Node { leaves, uplinks });
        Some(id)
    }

    /// Groups the flows by the uplinks of their nodes; `None` if a flow's two ends differ.
    fn by_uplinks(&self, crossing: Vec<Crossing>) -> Option<Vec<Vec<Crossing>>> {
        let mut alike: FxHashMap<Vec<Uplink>, usize> = FxHashMap::default();
        let mut groups: Vec<Vec<Crossing>> = Vec::new();
        let of_node: Vec<usize> = self
            .list
            .iter()
            .map(|node| {
                let key = node.uplinks.iter().map(|u| u.0).collect();
                let next = alike.len();
                *alike.entry(key).or_insert(next)
            })
            .collect();
        groups.resize_with(alike.len(), Vec::new);
        for c in crossing {
            let (from, to) = (of_node[c.nodes.0 as usize], of_node[c.nodes.1 as usize]);
            if from != to {
                return None;
            }
            groups[from].push(c);
        }
        groups.retain(|g| !g.is_empty());
        Some(groups)
    }

    /// The path of a flow over uplink number `colour` of both its nodes.
    fn via(
        &self,
        network: &Network,
        demand: &Demand,
        crossing: &Crossing,
        colour: usize,
    ) -> Option<Path> {
        let (from, to) = (
            &self.list[crossing.nodes.0 as usize],
            &self.list[crossing.nodes.1 as usize],
        );
        let ((position, spine, _), up, _) = *from.uplinks.get(colour)?;
        let (_, _, down) = *to.uplinks.get(colour)?;
        let first = *ports(network, demand, demand.src).get(position)?;
        let last = *ports(network, demand, demand.dst).get(position)?;
        let dest = network.terminals[demand.dst as usize].destination?;
        let switches = [from.leaves[position], spine, to.leaves[position]];
        Some(path(
            network,
            dest,
            &switches,
            &[up, down, last.leaf_port],
            first,
            last,
        ))
    }
}

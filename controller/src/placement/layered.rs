//! First paths in fabrics of two and three tiers that are regular for the most part.
//!
//! Leaves with equally many uplinks are put together, uplink `i` of each being of class `i`. Flows between
//! them are dealt evenly over the classes, at their leaves and at their pods at once ([`super::halve`]);
//! flows between pods are then dealt over the cores that the two spines of their class share. Whatever does
//! not fit that picture (a leaf with fewer uplinks, a link that is down, spines without common cores) is left
//! without a path, for the placer to find one.

use super::flows::{Demand, Network, Path, Port, path};
use super::halve::{Item, deal};
use crate::routing::{Edge, Switch};
use rustc_hash::FxHashMap;

/// Leaves that share NICs, with all their uplinks in comparable order.
struct Node {
    leaves: Vec<Switch>,
    /// Which of the leaves, and the link.
    up: Vec<(usize, Edge)>,
    pod: u32,
}

/// A flow that leaves its node.
struct Crossing {
    flow: usize,
    nodes: [u32; 2],
    class: u32,
}

/// Paths for as many of `demands` as fit the picture.
pub(super) fn place(network: &Network, demands: &[Demand]) -> Vec<Option<Path>> {
    let mut paths: Vec<Option<Path>> = vec![None; demands.len()];
    let mut plan = Layers::new(network);
    let mut crossing = plan.crossing(demands, &mut paths);
    let ways = plan.usual_ways(&crossing);
    crossing.retain(|c| {
        c.nodes
            .iter()
            .all(|n| plan.nodes[*n as usize].up.len() == ways as usize)
    });
    let items: Vec<Item> = crossing.iter().map(|c| plan.item(c, demands)).collect();
    for (c, class) in crossing.iter_mut().zip(deal(&items, ways)) {
        c.class = class;
    }
    let mut between: FxHashMap<u32, Vec<&Crossing>> = FxHashMap::default();
    for c in &crossing {
        let [a, b] = plan.spines(c);
        if a == b {
            paths[c.flow] = plan.within_pod(demands, c);
        } else {
            between.entry(c.class).or_default().push(c);
        }
    }
    let mut classes: Vec<_> = between.into_iter().collect();
    classes.sort_unstable_by_key(|(class, _)| *class);
    for (_, flows) in classes {
        plan.between_pods(demands, &flows, &mut paths);
    }
    paths
}

struct Layers<'a> {
    network: &'a Network<'a>,
    nodes: Vec<Node>,
    of_leaf: FxHashMap<Switch, u32>,
    pods: FxHashMap<Vec<Switch>, u32>,
    /// Port at the upper end of each link between switches.
    down_port: FxHashMap<u32, u32>,
}

impl<'a> Layers<'a> {
    fn new(network: &'a Network<'a>) -> Self {
        let graph = network.graph;
        let down = graph.top_down().iter().flat_map(|s| graph.down(*s));
        Self {
            network,
            nodes: Vec::new(),
            of_leaf: FxHashMap::default(),
            pods: FxHashMap::default(),
            down_port: down.map(|edge| (edge.link, edge.port)).collect(),
        }
    }

    /// The flows between different nodes; those within one get their path if there is only one.
    fn crossing(&mut self, demands: &[Demand], paths: &mut [Option<Path>]) -> Vec<Crossing> {
        let mut list = Vec::new();
        for (flow, demand) in demands.iter().enumerate() {
            let ends = [demand.src, demand.dst].map(|nic| &self.network.terminals[nic as usize]);
            let Some(dest) = ends[1].destination else {
                continue;
            };
            let [Some(a), Some(b)] = ends.map(|t| self.node(&t.ports)) else {
                continue;
            };
            if a == b {
                if let ([first], [last]) = (&ends[0].ports[..], &ends[1].ports[..])
                    && demand
                        .port
                        .is_none_or(|p| p == first.number && p == last.number)
                {
                    let way = path(
                        self.network,
                        dest,
                        &[first.leaf],
                        &[last.leaf_port],
                        *first,
                        *last,
                    );
                    paths[flow] = Some(way);
                }
                continue;
            }
            list.push(Crossing {
                flow,
                nodes: [a, b],
                class: 0,
            });
        }
        list
    }

    /// The node of a NIC with these ports; `None` if its leaves are known otherwise.
    fn node(&mut self, ports: &[Port]) -> Option<u32> {
        let first = ports.first()?;
        if let Some(known) = self.of_leaf.get(&first.leaf) {
            let leaves = &self.nodes[*known as usize].leaves;
            let same =
                leaves.len() == ports.len() && leaves.iter().zip(ports).all(|(l, p)| *l == p.leaf);
            return same.then_some(*known);
        }
        if ports.iter().any(|p| self.of_leaf.contains_key(&p.leaf)) {
            return None;
        }
        let id = u32::try_from(self.nodes.len()).ok()?;
        let mut up: Vec<(usize, Edge)> = Vec::new();
        for (position, port) in ports.iter().enumerate() {
            self.of_leaf.insert(port.leaf, id);
            up.extend(
                self.network
                    .graph
                    .up(port.leaf)
                    .iter()
                    .map(|edge| (position, *edge)),
            );
        }
        up.sort_by_key(|(position, edge)| (*position, edge.peer, edge.port));
        let pods = self.pods.len() as u32;
        let spines = up.iter().map(|(_, edge)| edge.peer).collect();
        let pod = *self.pods.entry(spines).or_insert(pods);
        let leaves = ports.iter().map(|p| p.leaf).collect();
        self.nodes.push(Node { leaves, up, pod });
        Some(id)
    }

    /// Uplinks that most flows' nodes have.
    fn usual_ways(&self, crossing: &[Crossing]) -> u32 {
        let mut count: FxHashMap<usize, usize> = FxHashMap::default();
        for node in crossing.iter().flat_map(|c| c.nodes) {
            *count.entry(self.nodes[node as usize].up.len()).or_default() += 1;
        }
        let most = count
            .into_iter()
            .max_by_key(|(ways, flows)| (*flows, *ways));
        most.map_or(0, |(ways, _)| ways as u32)
    }

    /// Levels of a flow: its node's flows of the same reach, its node's, and its pod's to other pods.
    fn item(&self, c: &Crossing, demands: &[Demand]) -> Item {
        let pods = c.nodes.map(|n| self.nodes[n as usize].pod);
        let outside = u32::from(pods[0] != pods[1]);
        let levels = [0, 1].map(|end| {
            let node = c.nodes[end];
            // Flows that stay in the pod end with their node.
            let wide = if outside == 1 {
                pods[end]
            } else {
                u32::MAX - node
            };
            [node * 2 + outside, node, wide]
        });
        Item {
            levels,
            bytes: demands[c.flow].bytes,
        }
    }

    fn uplink(&self, node: u32, class: u32) -> (usize, Edge) {
        self.nodes[node as usize].up[class as usize]
    }

    fn spines(&self, c: &Crossing) -> [Switch; 2] {
        c.nodes.map(|node| self.uplink(node, c.class).1.peer)
    }

    /// The NIC's port on the leaf that a class goes by.
    fn port(&self, nic: u32, wanted: Option<u8>, leaf: Switch) -> Option<Port> {
        let mut ports = self.network.terminals[nic as usize].ports.iter();
        ports
            .find(|p| p.leaf == leaf && wanted.is_none_or(|w| w == p.number))
            .copied()
    }

    fn way(&self, demand: &Demand, c: &Crossing, above: &[(Switch, u32)]) -> Option<Path> {
        let dest = self.network.terminals[demand.dst as usize].destination?;
        let [(from, up), (to, last_up)] = c.nodes.map(|node| self.uplink(node, c.class));
        let leaves = [
            self.nodes[c.nodes[0] as usize].leaves[from],
            self.nodes[c.nodes[1] as usize].leaves[to],
        ];
        let first = self.port(demand.src, demand.port, leaves[0])?;
        let last = self.port(demand.dst, demand.port, leaves[1])?;
        let mut switches = vec![leaves[0]];
        let mut ports = vec![up.port];
        for (switch, port) in above {
            switches.push(*switch);
            ports.push(*port);
        }
        switches.extend([last_up.peer, leaves[1]]);
        ports.extend([*self.down_port.get(&last_up.link)?, last.leaf_port]);
        Some(path(self.network, dest, &switches, &ports, first, last))
    }

    fn within_pod(&self, demands: &[Demand], c: &Crossing) -> Option<Path> {
        self.way(&demands[c.flow], c, &[])
    }

    /// Flows of one class between pods: over the cores that their spines share.
    fn between_pods(&self, demands: &[Demand], flows: &[&Crossing], paths: &mut [Option<Path>]) {
        let mut alike: FxHashMap<Vec<Switch>, Vec<&Crossing>> = FxHashMap::default();
        for c in flows {
            let [a, b] = self.spines(c).map(|spine| self.cores(spine));
            let same = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.peer == b.peer);
            if same && !a.is_empty() {
                alike
                    .entry(a.iter().map(|e| e.peer).collect())
                    .or_default()
                    .push(c);
            }
        }
        for (cores, flows) in alike {
            let items: Vec<Item> = flows
                .iter()
                .map(|c| Item {
                    levels: self.spines(c).map(|spine| [spine, 0, 0]),
                    bytes: demands[c.flow].bytes,
                })
                .collect();
            let ways = u32::try_from(cores.len()).unwrap_or(u32::MAX);
            for (c, way) in flows.iter().zip(deal(&items, ways)) {
                let [a, b] = self.spines(c);
                let (up, down) = (self.cores(a)[way as usize], self.cores(b)[way as usize]);
                let Some(port) = self.down_port.get(&down.link) else {
                    continue;
                };
                let above = [(a, up.port), (up.peer, *port)];
                paths[c.flow] = self.way(&demands[c.flow], c, &above);
            }
        }
    }

    /// Uplinks of a spine in comparable order.
    fn cores(&self, spine: Switch) -> Vec<Edge> {
        let mut cores = self.network.graph.up(spine).to_vec();
        cores.sort_by_key(|edge| (edge.peer, edge.port));
        cores
    }
}

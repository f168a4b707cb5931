//! The general case: greedy placement and local improvement.

use super::bound::bound;
use super::flows::{Demand, FlowPlan, Network, Path, Port, Step, SwitchHop, occupancy, path};
use crate::routing::Switch;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Busiest link and total of a partial path, in ps: smaller is better.
type Cost = (u64, u64);

/// A switch that a search has reached.
#[derive(Clone, Copy)]
struct Label {
    switch: Switch,
    cost: Cost,
    /// The label it was reached from, and by which port of that switch; `None` at the source leaf.
    from: Option<(usize, u32)>,
    /// Port of the sending NIC.
    src_port: u8,
}

pub(super) struct Placer<'a> {
    network: &'a Network<'a>,
    demands: &'a [Demand],
    paths: Vec<Option<Path>>,
    /// Load in ps by directed link.
    load: Vec<u64>,
    speed: Vec<u64>,
}

impl<'a> Placer<'a> {
    pub(super) fn new(network: &'a Network<'a>, demands: &'a [Demand]) -> Self {
        let mut speed = vec![0; network.links];
        for switch in network.graph.top_down() {
            for edge in network.graph.down(*switch) {
                speed[edge.link as usize] = edge.speed_bps;
            }
        }
        for port in network.terminals.iter().flat_map(|t| &t.ports) {
            speed[port.link as usize] = port.speed_bps;
        }
        let load = vec![0; network.links * 2];
        Self {
            network,
            demands,
            paths: vec![None; demands.len()],
            load,
            speed,
        }
    }

    fn time(&self, flow: usize, link: u32) -> u64 {
        occupancy(self.demands[flow].bytes, self.speed[link as usize])
    }

    pub(super) fn take(&mut self, flow: usize, path: Path) {
        for step in &path.steps {
            let time = self.time(flow, step.link);
            self.load[step.index()] += time;
        }
        self.paths[flow] = Some(path);
    }

    fn lift(&mut self, flow: usize) -> Option<Path> {
        let path = self.paths[flow].take()?;
        for step in &path.steps {
            let time = self.time(flow, step.link);
            self.load[step.index()] -= time;
        }
        Some(path)
    }

    pub(super) fn greedy(&mut self) {
        let mut order: Vec<usize> = (0..self.demands.len())
            .filter(|f| self.paths[*f].is_none())
            .collect();
        order.sort_by_key(|f| Reverse(self.demands[*f].bytes));
        let mut search = Search::new(self.network.graph.switches());
        for flow in order {
            if let Some((_, path)) = self.best(flow, &mut search) {
                self.take(flow, path);
            }
        }
    }

    /// Moves flows off the busiest link between switches while that makes it less busy.
    pub(super) fn improve(&mut self) {
        let mut by_link: Vec<Vec<usize>> = vec![Vec::new(); self.load.len()];
        for (flow, path) in self.paths.iter().enumerate() {
            for step in path.iter().flat_map(|p| &p.steps) {
                by_link[step.index()].push(flow);
            }
        }
        let mut search = Search::new(self.network.graph.switches());
        let (bound, _) = bound(self.network, self.demands);
        let fabric: FxHashSet<usize> = self.fabric_loads().map(|(index, _)| index).collect();
        let mut heap: BinaryHeap<(u64, Reverse<usize>)> = self
            .fabric_loads()
            .map(|(index, load)| (load, Reverse(index)))
            .collect();
        let mut left = 4 * self.demands.len();
        while let Some((load, Reverse(busiest))) = heap.pop() {
            if self.load[busiest] != load {
                // Out of date: the link's load has changed since, and was pushed again.
                continue;
            }
            if load <= bound || left == 0 {
                return;
            }
            left -= 1;
            let Some(touched) = self.relieve(busiest, load, &mut by_link, &mut search) else {
                return;
            };
            let links = touched
                .iter()
                .map(|s| s.index())
                .filter(|i| fabric.contains(i));
            heap.extend(links.map(|index| (self.load[index], Reverse(index))));
        }
    }

    /// Moves one flow off `link`; the links whose load changed, or `None` if no flow can go elsewhere
    /// without making another link as busy.
    fn relieve(
        &mut self,
        link: usize,
        load: u64,
        by_link: &mut [Vec<usize>],
        search: &mut Search,
    ) -> Option<Vec<Step>> {
        for flow in by_link[link].clone() {
            let Some(old) = self.lift(flow) else { continue };
            let better = self.best(flow, search).filter(|(cost, _)| cost.0 < load);
            let Some((_, new)) = better else {
                self.take(flow, old);
                continue;
            };
            for step in &old.steps {
                by_link[step.index()].retain(|f| *f != flow);
            }
            for step in &new.steps {
                by_link[step.index()].push(flow);
            }
            let touched = old.steps.iter().chain(&new.steps).copied().collect();
            self.take(flow, new);
            return Some(touched);
        }
        None
    }

    fn busiest(&self) -> Option<(usize, u64)> {
        self.fabric_loads()
            .max_by_key(|(index, load)| (*load, Reverse(*index)))
    }

    /// Loads of the links between switches, by directed link.
    fn fabric_loads(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let graph = self.network.graph;
        graph
            .top_down()
            .iter()
            .flat_map(|s| graph.down(*s))
            .flat_map(|edge| {
                let index = edge.link as usize * 2;
                [(index, self.load[index]), (index + 1, self.load[index + 1])]
            })
    }

    /// The live ports that a demand may use at a NIC.
    fn ports(&self, flow: usize, nic: u32) -> impl Iterator<Item = &'a Port> + use<'a> {
        let wanted = self.demands[flow].port;
        self.network.terminals[nic as usize]
            .ports
            .iter()
            .filter(move |p| wanted.is_none_or(|w| p.number == w))
    }

    /// The path whose busiest link ends up least busy, among the shortest.
    fn best(&self, flow: usize, search: &mut Search) -> Option<(Cost, Path)> {
        let Demand { src, dst, .. } = self.demands[flow];
        let dest = self.network.terminals[dst as usize].destination?;
        let routes = self.network.routes;
        let nearest = self
            .ports(flow, src)
            .filter_map(|p| routes.distance(dest, p.leaf))
            .min()?;
        let mut labels: Vec<Label> = Vec::new();
        search.begin();
        for port in self.ports(flow, src) {
            if routes.distance(dest, port.leaf) == Some(nearest) {
                let step = Step {
                    link: port.link,
                    upward: true,
                };
                let cost = self.after(flow, (0, 0), step);
                let label = Label {
                    switch: port.leaf,
                    cost,
                    from: None,
                    src_port: port.number,
                };
                search.offer(&mut labels, label);
            }
        }
        let mut layer = 0..labels.len();
        for _ in 0..nearest {
            search.begin();
            for at in layer.clone() {
                self.expand(flow, dest, at, &mut labels, search);
            }
            layer = layer.end..labels.len();
        }
        let (cost, at, port) = layer
            .flat_map(|at| {
                let label = labels[at];
                self.ports(flow, dst)
                    .filter(move |p| p.leaf == label.switch)
                    .map(move |port| {
                        let step = Step {
                            link: port.link,
                            upward: false,
                        };
                        (self.after(flow, label.cost, step), at, port)
                    })
            })
            .min_by_key(|(cost, at, port)| (*cost, *at, port.number))?;
        Some((cost, self.trace(flow, dest, &labels, at, port)))
    }

    fn expand(
        &self,
        flow: usize,
        dest: usize,
        at: usize,
        labels: &mut Vec<Label>,
        search: &mut Search,
    ) {
        let label = labels[at];
        let graph = self.network.graph;
        for hop in self.network.routes.hops_to(dest, label.switch) {
            let Some(edge) = graph.edge(label.switch, hop.port) else {
                continue;
            };
            let upward = graph.tier(edge.peer) > graph.tier(label.switch);
            let cost = self.after(
                flow,
                label.cost,
                Step {
                    link: edge.link,
                    upward,
                },
            );
            let from = Some((at, hop.port));
            search.offer(
                labels,
                Label {
                    switch: edge.peer,
                    cost,
                    from,
                    ..label
                },
            );
        }
    }

    fn after(&self, flow: usize, cost: Cost, step: Step) -> Cost {
        let load = self.load[step.index()] + self.time(flow, step.link);
        (cost.0.max(load), cost.1.saturating_add(load))
    }

    fn trace(&self, flow: usize, dest: usize, labels: &[Label], at: usize, last: &Port) -> Path {
        let mut ports = vec![last.leaf_port];
        let mut switches = vec![labels[at].switch];
        let mut label = labels[at];
        while let Some((before, port)) = label.from {
            label = labels[before];
            ports.push(port);
            switches.push(label.switch);
        }
        ports.reverse();
        switches.reverse();
        let src = self.demands[flow].src;
        let first = self
            .ports(flow, src)
            .find(|p| p.number == label.src_port)
            .copied();
        path(
            self.network,
            dest,
            &switches,
            &ports,
            first.unwrap_or(*last),
            *last,
        )
    }

    /// Gives flows the paths of an earlier plan that are still up.
    pub(super) fn keep(&mut self, paths: &[Option<Path>]) {
        for (flow, path) in paths.iter().enumerate().take(self.demands.len()) {
            if let Some(path) = path
                && self.is_valid(flow, path)
            {
                let path = self.refreshed(flow, path);
                self.take(flow, path);
            }
        }
    }

    /// Whether every link of `path` is up and every hop is one that the routes allow.
    pub(super) fn is_valid(&self, flow: usize, path: &Path) -> bool {
        let Demand { src, dst, .. } = self.demands[flow];
        let Some(dest) = self.network.terminals[dst as usize].destination else {
            return false;
        };
        let routes = self.network.routes;
        let (Some((last, way)), Some(first)) = (path.hops.split_last(), path.hops.first()) else {
            return false;
        };
        let from = self
            .ports(flow, src)
            .any(|p| p.number == path.src_port && p.leaf == first.switch);
        let to = self
            .ports(flow, dst)
            .any(|p| p.number == path.dst_port && p.leaf == last.switch);
        let up = |hop: &SwitchHop| {
            routes
                .hops_to(dest, hop.switch)
                .iter()
                .any(|h| h.port == hop.port)
        };
        from && to && way.iter().all(up)
    }

    /// The same path, with the choices that today's routes leave.
    pub(super) fn refreshed(&self, flow: usize, path: &Path) -> Path {
        let mut path = path.clone();
        let dest = self.network.terminals[self.demands[flow].dst as usize].destination;
        for hop in &mut path.hops {
            hop.choice = dest.is_some_and(|d| self.network.routes.hops_to(d, hop.switch).len() > 1);
        }
        path
    }

    pub(super) fn finish(self) -> FlowPlan {
        let graph = self.network.graph;
        let uplinks: Vec<u64> = graph
            .top_down()
            .iter()
            .filter(|s| graph.tier(**s) == 0)
            .flat_map(|s| graph.up(*s))
            .filter(|edge| !self.network.down.contains(edge.link))
            .map(|edge| {
                self.load[Step {
                    link: edge.link,
                    upward: true,
                }
                .index()]
            })
            .collect();
        let (bound_ps, bound_by) = bound(self.network, self.demands);
        FlowPlan {
            max_load_ps: self.busiest().map_or(0, |(_, load)| load),
            bound_ps,
            bound_by,
            mean_uplink_ps: uplinks.iter().map(|l| *l as f64).sum::<f64>()
                / uplinks.len().max(1) as f64,
            max_uplink_ps: uplinks.iter().copied().max().unwrap_or(0),
            paths: self.paths,
        }
    }
}

/// Which label of the current layer stands for a switch.
struct Search {
    stamp: Vec<(u32, u32)>,
    round: u32,
}

impl Search {
    fn new(switches: usize) -> Self {
        Self {
            stamp: vec![(0, 0); switches],
            round: 0,
        }
    }

    fn begin(&mut self) {
        self.round += 1;
    }

    /// Adds a label, or improves the one that the layer has for its switch.
    fn offer(&mut self, labels: &mut Vec<Label>, label: Label) {
        let slot = &mut self.stamp[label.switch as usize];
        if slot.0 == self.round {
            let known = &mut labels[slot.1 as usize];
            if label.cost < known.cost {
                *known = label;
            }
        } else {
            *slot = (self.round, u32::try_from(labels.len()).unwrap_or(u32::MAX));
            labels.push(label);
        }
    }
}

//! Flows to paths: the most loaded link carries as little as possible.
//!
//! Equal flows over a leaf-spine fabric whose leaves have alike uplinks get the exact optimum, by
//! colouring ([`super::colour`]). Everything else (three tiers, missing links, mixed speeds or sizes) is
//! placed greedily, largest flow first, each on the path whose busiest link ends up least busy; then flows
//! on the busiest link are moved as long as that helps. [`bound`] says how good any answer could be.

use crate::routing::{Graph, LinkSet, Routes, Switch};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A port of a NIC, from the fabric's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Number of the port at the NIC: 0 or 1.
    pub number: u8,
    /// The leaf it is plugged into.
    pub leaf: Switch,
    /// The leaf's port.
    pub leaf_port: u32,
    /// The link.
    pub link: u32,
    /// Rate in bits/s.
    pub speed_bps: u64,
}

/// A NIC: where flows begin and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Its live ports.
    pub ports: Vec<Port>,
    /// Its destination number in the routes; `None` if it can't be reached.
    pub destination: Option<usize>,
}

/// What flows are placed on.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// The switches.
    pub graph: &'a Graph,
    /// Routes over the links that are up.
    pub routes: &'a Routes,
    /// Links that are down.
    pub down: &'a LinkSet,
    /// All NICs.
    pub terminals: &'a [Terminal],
    /// One more than the highest link index, hosts' links included.
    pub links: usize,
}

impl Network<'_> {
    /// Whether there is a way for `demand` from any port of its source.
    fn connects(&self, demand: &Demand) -> bool {
        let Some(dest) = self.terminals[demand.dst as usize].destination else {
            return false;
        };
        let ports = &self.terminals[demand.src as usize].ports;
        ports
            .iter()
            .any(|port| self.routes.distance(dest, port.leaf).is_some())
    }
}

/// A flow that wants a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Sending NIC.
    pub src: u32,
    /// Receiving NIC.
    pub dst: u32,
    /// Bytes it carries.
    pub bytes: u64,
    /// Port of both NICs to use; `None` leaves it to the placer.
    pub port: Option<u8>,
}

/// One link of a path, in the direction it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step {
    /// The link.
    pub link: u32,
    /// Towards the higher tier.
    pub upward: bool,
}

impl Step {
    fn index(self) -> usize {
        self.link as usize * 2 + usize::from(self.upward)
    }
}

/// What a switch on a path does with the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchHop {
    /// The switch.
    pub switch: Switch,
    /// Its egress port.
    pub port: u32,
    /// Whether the routes leave it a choice there, so that the flow has to be pinned.
    pub choice: bool,
}

/// The way of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Port of the sending NIC.
    pub src_port: u8,
    /// Port of the receiving NIC.
    pub dst_port: u8,
    /// Switches in order, with the port each sends the flow out of.
    pub hops: Vec<SwitchHop>,
    /// Links in order, those of the NICs included.
    pub steps: Vec<Step>,
}

/// Where all flows go, and how well that is spread.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// The path of each demand; `None` where there is no way.
    pub paths: Vec<Option<Path>>,
    /// Load of the busiest link between switches, in ps of its time.
    pub max_load_ps: u64,
    /// No plan can have a smaller `max_load_ps`.
    pub bound_ps: u64,
    /// Mean load of the links from leaves upwards that are up, in ps.
    pub mean_uplink_ps: f64,
    /// Busiest link from a leaf upwards, in ps.
    pub max_uplink_ps: u64,
}

/// Time in ps that `bytes` occupy a link of `speed_bps`.
fn occupancy(bytes: u64, speed_bps: u64) -> u64 {
    let ps = u128::from(bytes) * 8_000_000_000_000 / u128::from(speed_bps.max(1));
    u64::try_from(ps).unwrap_or(u64::MAX)
}

/// Places all `demands`.
#[must_use]
pub fn place(network: &Network, demands: &[Demand]) -> FlowPlan {
    let mut placer = Placer::new(network, demands);
    if let Some(paths) = super::regular::place(network, demands) {
        for (flow, path) in paths.into_iter().enumerate() {
            if let Some(path) = path {
                placer.take(flow, path);
            }
        }
    } else {
        placer.greedy();
        placer.improve();
    }
    placer.finish()
}

/// Places `demands` again after links changed: flows whose `old` path is still up keep it, unless the
/// result is more than `tolerance` (a fraction) above the bound; then all are placed anew.
#[must_use]
pub fn replace(
    network: &Network,
    demands: &[Demand],
    old: &[Option<Path>],
    tolerance: f64,
) -> FlowPlan {
    let mut placer = Placer::new(network, demands);
    for (flow, path) in old.iter().enumerate().take(demands.len()) {
        if let Some(path) = path
            && placer.is_valid(flow, path)
        {
            let path = placer.refreshed(flow, path);
            placer.take(flow, path);
        }
    }
    placer.greedy();
    placer.improve();
    let kept = placer.finish();
    if kept.max_load_ps as f64 <= kept.bound_ps as f64 * (1.0 + tolerance) {
        return kept;
    }
    let fresh = place(network, demands);
    if fresh.max_load_ps < kept.max_load_ps {
        fresh
    } else {
        kept
    }
}

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

struct Placer<'a> {
    network: &'a Network<'a>,
    demands: &'a [Demand],
    paths: Vec<Option<Path>>,
    /// Load in ps by directed link.
    load: Vec<u64>,
    speed: Vec<u64>,
}

impl<'a> Placer<'a> {
    fn new(network: &'a Network<'a>, demands: &'a [Demand]) -> Self {
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

    fn take(&mut self, flow: usize, path: Path) {
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

    fn greedy(&mut self) {
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
    fn improve(&mut self) {
        let mut by_link: Vec<Vec<usize>> = vec![Vec::new(); self.load.len()];
        for (flow, path) in self.paths.iter().enumerate() {
            for step in path.iter().flat_map(|p| &p.steps) {
                by_link[step.index()].push(flow);
            }
        }
        let mut search = Search::new(self.network.graph.switches());
        let bound = bound(self.network, self.demands);
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

    /// Whether every link of `path` is up and every hop is one that the routes allow.
    fn is_valid(&self, flow: usize, path: &Path) -> bool {
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
    fn refreshed(&self, flow: usize, path: &Path) -> Path {
        let mut path = path.clone();
        let dest = self.network.terminals[self.demands[flow].dst as usize].destination;
        for hop in &mut path.hops {
            hop.choice = dest.is_some_and(|d| self.network.routes.hops_to(d, hop.switch).len() > 1);
        }
        path
    }

    fn finish(self) -> FlowPlan {
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
        FlowPlan {
            max_load_ps: self.busiest().map_or(0, |(_, load)| load),
            bound_ps: bound(self.network, self.demands),
            mean_uplink_ps: uplinks.iter().map(|l| *l as f64).sum::<f64>()
                / uplinks.len().max(1) as f64,
            max_uplink_ps: uplinks.iter().copied().max().unwrap_or(0),
            paths: self.paths,
        }
    }
}

/// A path over `switches`, each left by its port in `ports`; `first` and `last` are the NICs' ports.
pub(super) fn path(
    network: &Network,
    dest: usize,
    switches: &[Switch],
    ports: &[u32],
    first: Port,
    last: Port,
) -> Path {
    let graph = network.graph;
    let mut steps = vec![Step {
        link: first.link,
        upward: true,
    }];
    let mut hops = Vec::with_capacity(switches.len());
    for (switch, port) in switches.iter().zip(ports) {
        let choice = network.routes.hops_to(dest, *switch).len() > 1;
        hops.push(SwitchHop {
            switch: *switch,
            port: *port,
            choice,
        });
        if hops.len() < switches.len()
            && let Some(edge) = graph.edge(*switch, *port)
        {
            let upward = graph.tier(edge.peer) > graph.tier(*switch);
            steps.push(Step {
                link: edge.link,
                upward,
            });
        }
    }
    steps.push(Step {
        link: last.link,
        upward: false,
    });
    Path {
        src_port: first.number,
        dst_port: last.number,
        hops,
        steps,
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

/// Least possible load of the busiest link between switches, in ps: for every part of the fabric below
/// a tier, what must leave or enter it over the capacity there is, whole flows at a time.
#[must_use]
pub fn bound(network: &Network, demands: &[Demand]) -> u64 {
    (0..network.graph.top_tier())
        .map(|tier| cut(network, demands, tier))
        .max()
        .unwrap_or(0)
}

/// What leaves or enters a part.
#[derive(Default)]
struct Crossing {
    bytes: u64,
    flows: u64,
    smallest: Option<u64>,
}

fn cut(network: &Network, demands: &[Demand], tier: u8) -> u64 {
    let graph = network.graph;
    let mut parts = Parts::new(graph.switches());
    for switch in graph.top_down().iter().filter(|s| graph.tier(**s) <= tier) {
        for edge in graph
            .down(*switch)
            .iter()
            .filter(|e| !network.down.contains(e.link))
        {
            parts.join(*switch, edge.peer);
        }
    }
    // What a NIC of two ports can do within one leaf or the other, its part can do.
    for terminal in network.terminals {
        for pair in terminal.ports.windows(2) {
            parts.join(pair[0].leaf, pair[1].leaf);
        }
    }
    let mut capacity: FxHashMap<Switch, (u64, u64, u64)> = FxHashMap::default();
    for switch in graph.top_down().iter().filter(|s| graph.tier(**s) <= tier) {
        let up = graph.up(*switch).iter();
        for edge in up.filter(|e| !network.down.contains(e.link) && graph.tier(e.peer) > tier) {
            let (sum, count, fastest) = capacity.entry(parts.find(*switch)).or_default();
            *sum = sum.saturating_add(edge.speed_bps);
            *count += 1;
            *fastest = (*fastest).max(edge.speed_bps);
        }
    }
    let mut crossing: FxHashMap<(Switch, bool), Crossing> = FxHashMap::default();
    for demand in demands {
        let part = |nic: u32, parts: &mut Parts| {
            network.terminals[nic as usize]
                .ports
                .first()
                .map(|p| parts.find(p.leaf))
        };
        let (Some(from), Some(to)) = (part(demand.src, &mut parts), part(demand.dst, &mut parts))
        else {
            continue;
        };
        if from != to && network.connects(demand) {
            for key in [(from, true), (to, false)] {
                let c = crossing.entry(key).or_default();
                c.bytes = c.bytes.saturating_add(demand.bytes);
                c.flows += 1;
                c.smallest = Some(c.smallest.map_or(demand.bytes, |s| s.min(demand.bytes)));
            }
        }
    }
    let least = |((part, _), c): (&(Switch, bool), &Crossing)| {
        let (sum, count, fastest) = capacity.get(part).copied()?;
        // Some link carries at least this many whole flows, none smaller than the smallest.
        let whole = c.flows.div_ceil(count).saturating_mul(c.smallest?);
        Some(occupancy(c.bytes, sum).max(occupancy(whole, fastest)))
    };
    crossing.iter().filter_map(least).max().unwrap_or(0)
}

/// Disjoint sets of switches.
struct Parts {
    parent: Vec<Switch>,
}

impl Parts {
    fn new(switches: usize) -> Self {
        Self {
            parent: (0..u32::try_from(switches).unwrap_or(u32::MAX)).collect(),
        }
    }

    fn find(&mut self, mut at: Switch) -> Switch {
        while self.parent[at as usize] != at {
            self.parent[at as usize] = self.parent[self.parent[at as usize] as usize];
            at = self.parent[at as usize];
        }
        at
    }

    fn join(&mut self, a: Switch, b: Switch) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a as usize] = b;
    }
}

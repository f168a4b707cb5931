//! A bound on the busiest link from the dual of the linear program.
//!
//! If flows may be split, the least load of the busiest link is a linear program. Its dual gives a bound for
//! any weights of the links that sum to one: the mean load by weight, which the busiest link is not below,
//! is at least what results if every flow takes the path that is shortest by weight. Better weights give a
//! better bound: flows are spread over nearly shortest paths, the spreads of all rounds are averaged, and links
//! that are busy on average get the weight (Frank and Wolfe's method on the soft maximum of the loads).

use super::flows::{Demand, FlowPlan, Network, Step, occupancy};
use crate::routing::Switch;
use rustc_hash::FxHashMap;

/// Rounds at each sharpness of the soft maximum, and the sharpnesses.
const ROUNDS: usize = 60;
const SHARPNESS: [f64; 5] = [20.0, 60.0, 150.0, 400.0, 1000.0];

/// Most hops in all graphs of paths together; larger problems keep the bound by cuts.
const MOST_HOPS: usize = 4_000_000;

/// Rounds stop when the bound is this near to the busiest link.
const NEAR: f64 = 0.999;

/// Demands with the same sources and destination, as a graph of their paths.
struct Bundle {
    /// By source: its entries in `nodes` and the bytes.
    sources: Vec<(Vec<u32>, f64)>,
    /// Where each node's hops end in `hops`; every hop leads to an earlier node.
    ends: Vec<u32>,
    /// Directed link, and node it leads to.
    hops: Vec<(u32, u32)>,
}

/// Least load in ps of the busiest link between switches, if flows could be split; `None` if the problem is
/// too large. `plan` is what is to be judged, and where the search for weights begins.
pub(super) fn least_load(network: &Network, demands: &[Demand], plan: &FlowPlan) -> Option<u64> {
    let bundles = bundles(network, demands)?;
    let mut search = Weights::new(network, demands, plan);
    let mut best = 0.0_f64;
    let goal = plan.max_load_ps as f64 * NEAR;
    for sharpness in SHARPNESS {
        for round in 0..ROUNDS {
            search.weigh(sharpness);
            best = best.max(search.spread(&bundles, 2.0 / (round as f64 + 4.0)));
            if best >= goal {
                break;
            }
        }
    }
    // Sums of floats may come out a little high.
    let least = (best * (1.0 - 1e-9)) as u64;
    Some(whole_flows(network, demands, least))
}

/// Rounds a bound up to what whole flows can add up to, where all links are alike: a multiple of what divides
/// the sizes of all flows that cross any.
fn whole_flows(network: &Network, demands: &[Demand], least: u64) -> u64 {
    let graph = network.graph;
    let edges = || graph.top_down().iter().flat_map(|s| graph.down(*s));
    let Some(first) = edges().next() else {
        return least;
    };
    if edges().any(|edge| edge.speed_bps != first.speed_bps) {
        return least;
    }
    let divisor = demands.iter().fold(0, |divisor, d| gcd(divisor, d.bytes));
    let one = occupancy(divisor, first.speed_bps);
    if one == 0 {
        return least;
    }
    // A sum of rounded times may be a ps per flow below its multiple.
    let slack = demands.len() as u64;
    let count = least.saturating_sub(slack).div_ceil(one);
    least.max((count * one).saturating_sub(slack))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn bundles(network: &Network, demands: &[Demand]) -> Option<Vec<Bundle>> {
    type Sources = FxHashMap<Vec<Switch>, f64>;
    let mut by_end: FxHashMap<(usize, Vec<Switch>), Sources> = FxHashMap::default();
    for demand in demands.iter().filter(|d| network.connects(d)) {
        let leaves = |nic: u32| -> Vec<Switch> {
            let ports = network.terminals[nic as usize].ports.iter();
            let usable = ports.filter(|p| demand.port.is_none_or(|w| w == p.number));
            usable.map(|p| p.leaf).collect()
        };
        let Some(dest) = network.terminals[demand.dst as usize].destination else {
            continue;
        };
        let (from, to) = (leaves(demand.src), leaves(demand.dst));
        if from.iter().any(|leaf| to.contains(leaf)) {
            // It need not leave its leaf.
            continue;
        }
        let sources = by_end.entry((dest, to)).or_default();
        *sources.entry(from).or_default() += demand.bytes as f64;
    }
    let mut ends: Vec<_> = by_end.into_iter().collect();
    ends.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut hops = 0;
    let mut list = Vec::with_capacity(ends.len());
    for ((dest, to), sources) in ends {
        let mut sources: Vec<_> = sources.into_iter().collect();
        sources.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let bundle = Paths::new(network, dest, &to).bundle(sources);
        hops += bundle.hops.len();
        if hops > MOST_HOPS {
            return None;
        }
        list.push(bundle);
    }
    Some(list)
}

/// The paths to one destination, found from the sources on.
struct Paths<'a> {
    network: &'a Network<'a>,
    dest: usize,
    node: FxHashMap<Switch, Option<u32>>,
    ends: Vec<u32>,
    hops: Vec<(u32, u32)>,
}

impl<'a> Paths<'a> {
    fn new(network: &'a Network<'a>, dest: usize, to: &[Switch]) -> Self {
        let arrived = |leaf: &&Switch| network.routes.distance(dest, **leaf) == Some(0);
        Self {
            network,
            dest,
            // All leaves of the destination are one node.
            node: to
                .iter()
                .filter(arrived)
                .map(|leaf| (*leaf, Some(0)))
                .collect(),
            ends: vec![0],
            hops: Vec::new(),
        }
    }

    fn bundle(mut self, sources: Vec<(Vec<Switch>, f64)>) -> Bundle {
        let mut list = Vec::new();
        for (leaves, bytes) in sources {
            let nodes: Vec<u32> = leaves.iter().filter_map(|leaf| self.visit(*leaf)).collect();
            if !nodes.is_empty() {
                list.push((nodes, bytes));
            }
        }
        Bundle {
            sources: list,
            ends: self.ends,
            hops: self.hops,
        }
    }

    /// The node of a switch, after those it leads to; `None` if it leads nowhere. Routes come nearer with
    /// every hop, so this ends after as many steps as the fabric has tiers up and down.
    fn visit(&mut self, switch: Switch) -> Option<u32> {
        if let Some(known) = self.node.get(&switch) {
            return *known;
        }
        let graph = self.network.graph;
        let mut hops = Vec::new();
        if self
            .network
            .routes
            .distance(self.dest, switch)
            .is_some_and(|d| d > 0)
        {
            for hop in self.network.routes.hops_to(self.dest, switch) {
                let Some(edge) = graph.edge(switch, hop.port) else {
                    continue;
                };
                let step = Step {
                    link: edge.link,
                    upward: graph.tier(edge.peer) > graph.tier(switch),
                };
                if let Some(peer) = self.visit(edge.peer) {
                    hops.push((u32::try_from(step.index()).unwrap_or(u32::MAX), peer));
                }
            }
        }
        let node = if hops.is_empty() {
            None
        } else {
            self.hops.extend(hops);
            self.ends
                .push(u32::try_from(self.hops.len()).unwrap_or(u32::MAX));
            Some(u32::try_from(self.ends.len() - 1).unwrap_or(u32::MAX))
        };
        self.node.insert(switch, node);
        node
    }
}

/// Weights of the links, and the average of the loads that they led to.
struct Weights {
    /// ps of a byte, by directed link; 0 for those of NICs.
    per_byte: Vec<f64>,
    average: Vec<f64>,
    length: Vec<f64>,
    load: Vec<f64>,
}

impl Weights {
    fn new(network: &Network, demands: &[Demand], plan: &FlowPlan) -> Self {
        let mut per_byte = vec![0.0; network.links * 2];
        let graph = network.graph;
        for edge in graph.top_down().iter().flat_map(|s| graph.down(*s)) {
            for upward in [false, true] {
                let step = Step {
                    link: edge.link,
                    upward,
                };
                per_byte[step.index()] = 8e12 / edge.speed_bps.max(1) as f64;
            }
        }
        let mut average = vec![0.0; per_byte.len()];
        for (demand, path) in demands.iter().zip(&plan.paths) {
            for step in path.iter().flat_map(|p| &p.steps) {
                average[step.index()] += demand.bytes as f64 * per_byte[step.index()];
            }
        }
        Self {
            length: vec![0.0; per_byte.len()],
            load: vec![0.0; per_byte.len()],
            per_byte,
            average,
        }
    }

    /// Gives weight to the busy links.
    fn weigh(&mut self, sharpness: f64) {
        let most = self
            .average
            .iter()
            .copied()
            .fold(f64::MIN_POSITIVE, f64::max);
        let mut sum = 0.0;
        for ((length, load), per_byte) in self
            .length
            .iter_mut()
            .zip(&self.average)
            .zip(&self.per_byte)
        {
            let weight = if *per_byte > 0.0 {
                (sharpness * (load / most - 1.0)).exp()
            } else {
                0.0
            };
            sum += weight;
            *length = weight * per_byte;
        }
        for length in &mut self.length {
            *length /= sum;
        }
    }

    /// Spreads all flows over nearly shortest paths and averages with `share`; the bound by these weights.
    fn spread(&mut self, bundles: &[Bundle], share: f64) -> f64 {
        let mut bound = 0.0;
        self.load.fill(0.0);
        let (mut distance, mut flow) = (Vec::new(), Vec::new());
        for bundle in bundles {
            self.distances(bundle, &mut distance);
            flow.clear();
            flow.resize(distance.len(), 0.0);
            for (nodes, bytes) in &bundle.sources {
                let nearest = nodes
                    .iter()
                    .map(|n| distance[*n as usize])
                    .fold(f64::INFINITY, f64::min);
                bound += bytes * nearest;
                let near = nodes
                    .iter()
                    .filter(|n| distance[**n as usize] <= slack(nearest));
                let count = near.clone().count() as f64;
                near.for_each(|n| flow[*n as usize] += bytes / count);
            }
            self.route(bundle, &distance, &mut flow);
        }
        for (average, (load, per_byte)) in self
            .average
            .iter_mut()
            .zip(self.load.iter().zip(&self.per_byte))
        {
            *average += share * (load * per_byte - *average);
        }
        bound
    }

    fn distances(&self, bundle: &Bundle, distance: &mut Vec<f64>) {
        distance.clear();
        let mut from = 0;
        for (node, end) in bundle.ends.iter().enumerate() {
            let hops = &bundle.hops[from..*end as usize];
            from = *end as usize;
            let lengths = hops
                .iter()
                .map(|(link, to)| self.length[*link as usize] + distance[*to as usize]);
            distance.push(if node == 0 {
                0.0
            } else {
                lengths.fold(f64::INFINITY, f64::min)
            });
        }
    }

    /// Sends the flow of each node on, the furthest first.
    fn route(&mut self, bundle: &Bundle, distance: &[f64], flow: &mut [f64]) {
        for node in (1..bundle.ends.len()).rev() {
            let bytes = flow[node];
            if bytes == 0.0 {
                continue;
            }
            let hops = &bundle.hops[bundle.ends[node - 1] as usize..bundle.ends[node] as usize];
            let near = hops.iter().filter(|(link, to)| {
                self.length[*link as usize] + distance[*to as usize] <= slack(distance[node])
            });
            let near: Vec<_> = near.collect();
            for (link, to) in &near {
                let part = bytes / near.len() as f64;
                flow[*to as usize] += part;
                self.load[*link as usize] += part;
            }
        }
    }
}

/// What counts as shortest still.
fn slack(shortest: f64) -> f64 {
    shortest * 1.02 + f64::MIN_POSITIVE
}

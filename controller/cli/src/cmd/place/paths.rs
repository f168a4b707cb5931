//! What a placed job's flows do to the fabric: paths, loads, bounds and time.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::topology::{HostId, NicId, Tier, Topology};
use controller::intent::{Options, Planner, View};
use controller::placement::traffic::{Order, sites_of, traffic};
use controller::placement::{Demand, FlowPlan, Path, place};
use controller::routing::LinkSet;
use controller::simulate::fill::rates;
use controller::simulate::flow::{Run, simulate};
use controller::simulate::paths::{capacities, hashed, streams};
use controller::workload::Workload;
use serde::Serialize;

/// A link that is never the reason to wait, bits/s.
const UNBOUNDED_BPS: u64 = 1 << 60;

/// Streams beyond which rates are not followed over time.
const MOST_STREAMS: usize = 4_000;

/// The fabric with nothing but the job on it.
pub(super) struct Paths<'a> {
    topology: &'a Topology,
    planner: Planner,
    view: View,
    capacity: Vec<u64>,
    /// The same with nothing to wait for above the NICs.
    nics_only: Vec<u64>,
}

/// A job's flows on the fabric.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathsReport {
    /// Flows from NIC to NIC; of these, flows that leave their LA domain, and flows without a way.
    pub(super) flows: usize,
    pub(super) crossing_flows: usize,
    pub(super) without_path: usize,
    /// Time that the busiest link between switches needs for an iteration, and the least of any plan, ms.
    pub(super) busiest_ms: f64,
    pub(super) bound_ms: f64,
    /// What the bound follows from.
    pub(super) bound_by: &'static str,
    pub(super) busiest_over_bound: f64,
    /// Busiest uplink over the mean of those that its leaf's flows can use, at the worst leaf.
    pub(super) max_over_mean: f64,
    /// Flows to pin at the switch that has most to pin.
    pub(super) most_pins: usize,
    /// Time of an iteration's bytes over the time that NICs alone would need: on these paths, and on those
    /// that ECMP hashing gives.
    pub(super) slow_down: f64,
    pub(super) slow_down_hashed: f64,
}

impl<'a> Paths<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        let options = Options {
            loopbacks: false,
            ..Options::default()
        };
        let planner = Planner::new(Arc::new(topology.clone()), options);
        let view = planner.view(&LinkSet::none());
        let capacity = capacities(topology);
        let mut nics_only = vec![UNBOUNDED_BPS; capacity.len()];
        for port in topology.nics().iter().flat_map(|nic| nic.ports()) {
            let link = port.link.0 as usize * 2;
            nics_only[link..link + 2].copy_from_slice(&capacity[link..link + 2]);
        }
        Self {
            topology,
            planner,
            view,
            capacity,
            nics_only,
        }
    }

    /// Of a job whose slots are on these hosts.
    pub(super) fn of(&self, job: &Workload, hosts: &[u32], seed: u64) -> PathsReport {
        let network = self.planner.network(&self.view);
        let (demands, chains) = self.demands(job, hosts);
        let plan = place(&network, &demands).with_linear_program(&network, &demands);
        let by_hash: Vec<Option<Path>> = demands
            .iter()
            .map(|demand| hashed(&network, demand, seed))
            .collect();
        let ideal = time(&self.nics_only, &demands, &chains, &plan.paths);
        let slow_down = |paths: &[Option<Path>]| {
            let took = time(&self.capacity, &demands, &chains, paths);
            if ideal > 0.0 { took / ideal } else { 1.0 }
        };
        let la = |nic: u32| self.topology[NicId(nic)].la;
        let crossing = demands.iter().filter(|d| la(d.src) != la(d.dst));
        PathsReport {
            flows: demands.len(),
            crossing_flows: crossing.count(),
            without_path: plan.paths.iter().filter(|p| p.is_none()).count(),
            busiest_ms: plan.max_load_ps as f64 / 1e9,
            bound_ms: plan.bound_ps as f64 / 1e9,
            bound_by: plan.bound_by.name(),
            busiest_over_bound: plan.over_bound(),
            max_over_mean: self.max_over_mean(&demands, &plan),
            most_pins: most_pins(&plan),
            slow_down: slow_down(&plan.paths),
            slow_down_hashed: slow_down(&by_hash),
        }
    }

    /// One demand per flow, two where both NICs have two ports; and the chain of each.
    fn demands(&self, job: &Workload, hosts: &[u32]) -> (Vec<Demand>, Vec<u32>) {
        let sites = sites_of(self.topology, hosts.iter().map(|h| HostId(*h)));
        let nics: Vec<Vec<NicId>> = hosts
            .iter()
            .map(|h| self.topology[HostId(*h)].nics().collect())
            .collect();
        let (mut demands, mut chains) = (Vec::new(), Vec::new());
        for flow in traffic(job, &sites, Order::ByDomain).flows {
            let [src, dst] =
                [flow.src, flow.dst].map(|end| nics[end.slot as usize][usize::from(end.nic)]);
            let both = |port: &u8| {
                [src, dst]
                    .iter()
                    .all(|nic| self.topology[*nic].port(*port).is_some())
            };
            let ports: Vec<u8> = [0, 1].into_iter().filter(both).collect();
            let parts = ports.len().max(1) as u64;
            for part in 0..parts {
                let bytes = flow.bytes / parts + u64::from(part < flow.bytes % parts);
                let port = ports.get(part as usize).copied().filter(|_| parts > 1);
                demands.push(Demand {
                    src: src.0,
                    dst: dst.0,
                    bytes,
                    port,
                });
                chains.push(flow.chain);
            }
        }
        (demands, chains)
    }

    /// At the worst leaf: its busiest uplink over the mean. A leaf with fewer flows than uplinks can't use
    /// all of them, and has the mean over as many as it has flows.
    fn max_over_mean(&self, demands: &[Demand], plan: &FlowPlan) -> f64 {
        let mut by_leaf: BTreeMap<u32, (BTreeMap<u32, f64>, usize)> = BTreeMap::new();
        for (demand, path) in demands.iter().zip(&plan.paths) {
            let Some((path, first)) = path.as_ref().and_then(|p| Some((p, p.hops.first()?))) else {
                continue;
            };
            if path.hops.len() > 1 {
                let link = path.steps[1].link;
                let time = demand.bytes as f64 / self.capacity[link as usize * 2] as f64;
                let (links, flows) = by_leaf.entry(first.switch).or_default();
                *links.entry(link).or_default() += time;
                *flows += 1;
            }
        }
        let ratio = |(leaf, (links, flows)): (&u32, &(BTreeMap<u32, f64>, usize))| {
            let leaf = ::topology::SwitchId(*leaf);
            let uplinks = match self.topology[leaf].tier {
                Tier::Leaf => self.topology.uplinks(leaf).count(),
                _ => links.len(),
            };
            let usable = uplinks.min(*flows).max(1) as f64;
            let sum: f64 = links.values().sum();
            let most = links.values().copied().fold(0.0, f64::max);
            if sum > 0.0 { most * usable / sum } else { 1.0 }
        };
        by_leaf.iter().map(ratio).fold(1.0, f64::max)
    }
}

/// Time of the flows of one iteration, ns. With many of them, that of the slowest at the rates at which they
/// begin.
fn time(capacity: &[u64], demands: &[Demand], chains: &[u32], paths: &[Option<Path>]) -> f64 {
    let flows = demands.iter().zip(chains).zip(paths);
    let all = streams(flows.map(|((demand, chain), path)| (*chain, demand.bytes, path.as_ref())));
    if all.len() > MOST_STREAMS {
        let rates = rates(capacity, &all);
        let times = all.iter().zip(rates);
        let times = times.map(|(stream, rate)| stream.bytes as f64 * 8e9 / rate);
        return times.fold(0.0, f64::max);
    }
    let run = Run {
        iterations: 1,
        streams: all,
        ..Run::default()
    };
    simulate(capacity, &[run], |_| {})
        .first()
        .map_or(0.0, |outcome| outcome.ends_ns)
}

/// Pins at the switch that has most: flows that the routes leave a choice there.
fn most_pins(plan: &FlowPlan) -> usize {
    let mut pins: BTreeMap<u32, usize> = BTreeMap::new();
    for hop in plan.paths.iter().flatten().flat_map(|path| &path.hops) {
        if hop.choice {
            *pins.entry(hop.switch).or_default() += 1;
        }
    }
    pins.into_values().max().unwrap_or(0)
}

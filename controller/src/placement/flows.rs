//! Flows to paths: the most loaded link carries as little as possible.
//!
//! Equal flows over a leaf-spine fabric whose leaves have alike uplinks get the exact optimum, by
//! colouring ([`super::colour`]). Everything else (three tiers, missing links, mixed speeds or sizes) begins
//! with what the regular part of the fabric gives ([`super::layered`]); the rest is placed greedily, largest
//! flow first, each on the path whose busiest link ends up least busy; then flows on the busiest link are
//! moved as long as that helps. [`bound`](super::bound) says how good any answer could be.

use super::bound::BoundBy;
use super::placer::Placer;
use crate::routing::{Graph, LinkSet, Routes, Switch};

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
    /// The path over `switches`, each left by its port in `ports` towards destination number `dest`;
    /// `first` and `last` are the NICs' ports.
    #[must_use]
    pub fn path(
        &self,
        dest: usize,
        switches: &[Switch],
        ports: &[u32],
        first: Port,
        last: Port,
    ) -> Path {
        path(self, dest, switches, ports, first, last)
    }

    /// Whether there is a way for `demand` from any port of its source.
    pub(super) fn connects(&self, demand: &Demand) -> bool {
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
    pub(super) fn index(self) -> usize {
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
    /// What says so.
    pub bound_by: BoundBy,
    /// Mean load of the links from leaves upwards that are up, in ps.
    pub mean_uplink_ps: f64,
    /// Busiest link from a leaf upwards, in ps.
    pub max_uplink_ps: u64,
}

impl FlowPlan {
    /// The same plan with the bound of the linear program, where that is better than the one by cuts and the
    /// problem is small enough. Takes far longer than the other: for reports, not for reactions.
    #[must_use]
    pub fn with_linear_program(mut self, network: &Network, demands: &[Demand]) -> Self {
        if self.bound_ps < self.max_load_ps
            && let Some(least) = super::dual::least_load(network, demands, &self)
            && least > self.bound_ps
        {
            (self.bound_ps, self.bound_by) = (least, BoundBy::LinearProgram);
        }
        self
    }

    /// Load of the busiest link over the bound: 1 if no plan can be better.
    #[must_use]
    pub fn over_bound(&self) -> f64 {
        if self.bound_ps == 0 {
            1.0
        } else {
            self.max_load_ps as f64 / self.bound_ps as f64
        }
    }
}

/// Time in ps that `bytes` occupy a link of `speed_bps`.
pub(super) fn occupancy(bytes: u64, speed_bps: u64) -> u64 {
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
        for (flow, path) in super::layered::place(network, demands)
            .into_iter()
            .enumerate()
        {
            if let Some(path) = path
                && placer.is_valid(flow, &path)
            {
                placer.take(flow, path);
            }
        }
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
    placer.keep(old);
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

/// The plan that has `demands` on these paths, and nothing on paths that are not up.
#[must_use]
pub fn on_paths(network: &Network, demands: &[Demand], paths: &[Option<Path>]) -> FlowPlan {
    let mut placer = Placer::new(network, demands);
    placer.keep(paths);
    placer.finish()
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

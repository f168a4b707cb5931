//! What every switch should hold.
//!
//! A [`Planner`] knows the topology and its routes with all links up. Given the links that are down and the
//! flows that are placed, it says which entries each switch should have; nothing else goes in, so the same
//! question always has the same answer.

mod ars;
mod emit;
mod groups;
mod spread;
pub mod telemetry;
#[cfg(test)]
mod tests;

pub use ars::{Ars, Beat, Hellos, Mode, Probes, beats, multicast_groups};
pub use groups::{BucketPolicy, layout};
pub use spread::{Base, Spread, Via, spread};

use crate::entries::AnyEntry;
use crate::fabric::{Fabric, Targets};
use crate::placement::{Path, Terminal, terminals};
use crate::reconcile::{Copier, Copies, State};
use crate::routing::{self, LinkSet, Routes};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use topology::{Policy, SwitchId, Topology};

/// What the fabric's owner may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Weigh next hops by the capacity behind them (WCMP) instead of equally.
    pub weighted: bool,
    /// Route to the loopback addresses of switches. Costs every switch two routes per other switch.
    pub loopbacks: bool,
    /// Buckets of groups.
    pub buckets: BucketPolicy,
    /// Bytes of the packets that queues are measured in: depths of ECN profiles are given in bytes, and the
    /// data plane counts packets. `None`: full packets of the policy's MTU and their Ethernet header.
    pub packet_bytes: Option<u64>,
    /// How groups adapt; `None`: as the topology's policy says, and without one they are fixed, and their members
    /// not watched.
    pub ars: Option<Ars>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            weighted: false,
            loopbacks: true,
            buckets: BucketPolicy::default(),
            packet_bytes: None,
            ars: None,
        }
    }
}

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: u64 = 14;

impl Options {
    /// Bytes per packet when depths are converted.
    #[must_use]
    pub fn packet_bytes(&self, policy: &Policy) -> u64 {
        self.packet_bytes
            .unwrap_or(u64::from(policy.mtu) + ETHERNET_HEADER)
            .max(1)
    }

    fn routing(&self) -> routing::Options {
        routing::Options {
            weighted: self.weighted,
        }
    }
}

/// How the data plane knows a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same version.
    pub dst: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Source port; 0 for RoCEv2, where it only spreads.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Destination queue pair of RoCEv2; 0 for all else.
    pub dest_qp: u32,
}

/// UDP, and the port that RoCEv2 has there.
const UDP: u8 = 17;
const ROCEV2: u16 = 4791;

impl FlowKey {
    /// A RoCEv2 flow to a queue pair.
    #[must_use]
    pub fn roce(src: IpAddr, dst: IpAddr, dest_qp: u32) -> Self {
        Self {
            src,
            dst,
            protocol: UDP,
            src_port: 0,
            dst_port: ROCEV2,
            dest_qp,
        }
    }
}

/// A flow that is to take a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The flow.
    pub flow: FlowKey,
    /// Its path.
    pub path: Path,
}

/// The entries of all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// By switch, as the topology numbers them.
    pub switches: Vec<Vec<AnyEntry>>,
    /// Multicast groups and clone sessions by switch; they are the same whatever fails.
    pub copies: Vec<BTreeMap<Copier, Copies>>,
    /// Pins that a switch's table had no place for, by switch. Those flows take the routes there.
    pub left_out: BTreeMap<u32, usize>,
}

/// An entry that does not fit the pipeline: a value of the topology is too wide for its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{switch}: {source}")]
pub struct Unfit {
    /// Name of the switch.
    pub switch: String,
    /// Which field, and why.
    pub source: p4runtime::typed::Error,
}

impl Intent {
    /// Number of entries in all switches.
    #[must_use]
    pub fn len(&self) -> usize {
        self.switches.iter().map(Vec::len).sum()
    }

    /// Whether no switch has entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.switches.iter().all(Vec::is_empty)
    }

    /// The entries of each switch in the form that is compared and written.
    ///
    /// # Errors
    /// A value that is too wide for its field.
    pub fn states(&self, topology: &Topology) -> Result<Vec<State>, Unfit> {
        let state = |(switch, entries): (usize, &Vec<AnyEntry>)| {
            let wire: Result<Vec<_>, _> = entries.iter().map(AnyEntry::to_table_entry).collect();
            let wire = wire.map_err(|source| Unfit {
                switch: topology.switches()[switch].name.clone(),
                source,
            })?;
            Ok(State {
                copies: self.copies.get(switch).cloned().unwrap_or_default(),
                ..State::from_unique(wire)
            })
        };
        self.switches.iter().enumerate().map(state).collect()
    }
}

/// Targets, routes and NICs as they are with some links down.
#[derive(Clone, Debug)]
pub struct View {
    /// What has to be reachable.
    pub targets: Targets,
    /// How.
    pub routes: Routes,
    /// NICs with the ports that are up.
    pub terminals: Vec<Terminal>,
    /// The links that are down.
    pub down: LinkSet,
}

/// Plans the entries of a topology's switches.
#[derive(Clone, Debug)]
pub struct Planner {
    fabric: Fabric,
    options: Options,
    base: Base,
}

impl Planner {
    /// Prepares `topology`.
    #[must_use]
    pub fn new(topology: Arc<Topology>, options: Options) -> Self {
        let of_policy = topology.policy().ars.as_ref().map(Ars::of);
        let options = Options {
            ars: options.ars.or(of_policy),
            ..options
        };
        let fabric = Fabric::new(topology);
        let none = LinkSet::none();
        let targets = fabric.targets(&none, options.loopbacks);
        let base = Base::new(&targets, fabric.routes(&targets, &none, options.routing()));
        Self {
            fabric,
            options,
            base,
        }
    }

    /// The topology.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.fabric.topology
    }

    /// How groups adapt, if they do.
    #[must_use]
    pub fn ars(&self) -> Option<&Ars> {
        self.options.ars.as_ref()
    }

    /// The topology's switches as a graph.
    #[must_use]
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Routes with `down` taken into account.
    #[must_use]
    pub fn view(&self, down: &LinkSet) -> View {
        let targets = self.fabric.targets(down, self.options.loopbacks);
        let routes = self.fabric.routes(&targets, down, self.options.routing());
        let terminals = terminals(self.topology(), &targets, down);
        View {
            targets,
            routes,
            terminals,
            down: down.clone(),
        }
    }

    /// What flows are placed on.
    #[must_use]
    pub fn network<'a>(&'a self, view: &'a View) -> crate::placement::Network<'a> {
        crate::placement::Network {
            graph: &self.fabric.graph,
            routes: &view.routes,
            down: &view.down,
            terminals: &view.terminals,
            links: self.topology().links().len(),
        }
    }

    /// The entries of all switches. Pins take effect where the routes leave a choice; elsewhere they would
    /// only take room.
    #[must_use]
    pub fn plan(&self, view: &View, pins: &[Pin]) -> Intent {
        let topology = self.topology();
        let mut intent = Intent::default();
        let mut pinned: BTreeMap<u32, Vec<(&FlowKey, u32)>> = BTreeMap::new();
        for pin in pins {
            for hop in pin.path.hops.iter().filter(|hop| hop.choice) {
                pinned
                    .entry(hop.switch)
                    .or_default()
                    .push((&pin.flow, hop.port));
            }
        }
        for switch in topology.switch_ids() {
            let pins = pinned.remove(&switch.0).unwrap_or_default();
            let room =
                usize::try_from(<crate::entries::PlacedFlow as p4runtime::typed::TableKey>::SIZE)
                    .unwrap_or(usize::MAX);
            if pins.len() > room {
                intent.left_out.insert(switch.0, pins.len() - room);
            }
            let pins = &pins[..pins.len().min(room)];
            intent.switches.push(self.switch(switch, view, pins));
            intent.copies.push(self.copies(switch));
        }
        intent
    }

    fn copies(&self, switch: SwitchId) -> BTreeMap<Copier, Copies> {
        let mut copies = telemetry::clone_sessions(self.topology());
        if self.options.ars.is_some() {
            copies.extend(multicast_groups(self.topology(), switch));
        }
        copies
    }

    fn switch(&self, switch: SwitchId, view: &View, pins: &[(&FlowKey, u32)]) -> Vec<AnyEntry> {
        let topology = self.topology();
        let now = (&view.targets, &view.routes);
        let spread = spread(topology, switch.0, &self.base, now, self.options.buckets);
        let mut emitter = emit::Emitter::new(topology, switch);
        emitter.ports();
        emitter.stations();
        emitter.classes();
        emitter.marking(&self.options);
        let ars = self.options.ars.as_ref();
        emitter.domains(ars);
        emitter.local(&view.down);
        emitter.remote(&spread, ars);
        if let Some(ars) = ars {
            emitter.watching(ars);
        }
        emitter.telemetry(&self.options, &spread);
        for (flow, port) in pins {
            emitter.pin(flow, *port, ars);
        }
        emitter.finish()
    }
}

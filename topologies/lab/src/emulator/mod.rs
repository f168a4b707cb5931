//! A fabric in virtual time.
//!
//! Every switch of a topology is a softswitch core, every link a pair of wires with a rate and a delay,
//! every NIC a model that speaks RoCEv2. One event queue in nanoseconds drives them all, so that a run depends on
//! the topology, the program and its entries, the traffic and the seed, and never on how busy the machine is.
//!
//! # A packet's way
//! A NIC's port is free: the NIC writes the next frame of a queue pair ([`nic`], [`roce`]). The wire
//! takes `(bytes + 24) / rate` to serialise it, the link its delay, the switch its latency; then
//! [`Switch::ingress`](softswitch::Switch::ingress) runs. When the egress port's wire is free,
//! [`Switch::dequeue`](softswitch::Switch::dequeue) runs the egress pipeline, and so on to the
//! receiving NIC, which acknowledges, and tells the sender of marks.
//!
//! # Two clocks
//! Control-plane operations on a switch take no virtual time: whoever drives the emulation stops it (it only
//! runs inside [`Emulator::run_until`] and [`Emulator::run_until_notice`]), lets the controller finish, and
//! decides how much fabric time that cost.
//!
//! # Link failures
//! [`Emulator::set_link`] cuts a link at once: frames on it are lost. Its ends go on sending into the void until they
//! notice ([`EmulatorConfig::detection_ns`]); then NICs with another port move their traffic there, and switches
//! tell the controller ([`Notice::Port`]).

mod build;
pub mod collective;
mod config;
mod engine;
pub mod event;
pub mod flow;
mod generator;
pub mod levels;
pub mod nic;
mod notice;
mod plane;
pub mod roce;
mod run;
mod serve;
mod stats;
mod wire;

pub use config::EmulatorConfig;
pub use flow::{Family, FlowSpec, QueuePairNumbers, Schedule};
pub use generator::GeneratorId;
pub use notice::{FlowId, Notice, PortEvent, RunId};
pub use run::{FlowResult, RunResult, StepResult};
pub use serve::ListenError;
pub use stats::{Drops, LinkReport, NicReport, Statistics};
pub use wire::WireStats;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use softswitch::server::Server;
use softswitch::{SharedSwitch, SwitchStats};
use topology::{LinkId, NicId, SwitchId, Topology};

use nic::{Nic, QueuePairConfig, QueuePairIndex};
use plane::{Event, Plane, Ports, WireIndex, downward, upward};
use roce::icrc::ZeroRun;
use run::Run;
use stats::Bins;

/// Why a schedule can't be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// No such NIC.
    #[error("flow {flow}: there is no NIC {nic}; the topology has {count}")]
    UnknownNic {
        /// Position of the flow.
        flow: usize,
        /// The NIC named.
        nic: u32,
        /// How many there are.
        count: usize,
    },
    /// The port is not there or not plugged in.
    #[error("flow {flow}: NIC {nic} has no link in port {port}; plugged in: {plugged:?}")]
    NoPort {
        /// Position of the flow.
        flow: usize,
        /// The NIC.
        nic: u32,
        /// The port named.
        port: u8,
        /// The ports that are plugged in.
        plugged: Vec<u8>,
    },
    /// A message names a flow that is not in the schedule.
    #[error("message {message} is on flow {flow}; the schedule has {count} flows")]
    UnknownFlow {
        /// Position of the message.
        message: usize,
        /// The flow named.
        flow: u32,
        /// How many there are.
        count: usize,
    },
}

struct SwitchNode {
    name: String,
    core: SharedSwitch,
    /// Its P4Runtime server, once [`Emulator::serve`] has started it.
    server: Option<Server>,
    ports: Ports,
    /// Counts when statistics were last reset.
    before: SwitchStats,
}

/// Which flow a queue pair belongs to.
#[derive(Clone, Copy, Debug)]
struct Owner {
    run: u32,
    flow: u32,
}

struct NicNode {
    nic: Nic,
    mac: [u8; 6],
    gateway: [u8; 6],
    v4: IpAddr,
    v6: IpAddr,
    /// The wire that begins at each port.
    wires: [Option<WireIndex>; 2],
    owners: Vec<Owner>,
    sent: Bins,
    received: Bins,
    /// Frames to send as they are, with the port.
    raw: VecDeque<(u8, Vec<u8>)>,
    /// Frames received that are not RoCEv2.
    inbox: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct LinkState {
    up: bool,
    /// What the ends believe.
    noticed_up: bool,
    changed_at: u64,
}

/// A running fabric. See the [module](self).
pub struct Emulator {
    config: EmulatorConfig,
    clock: Arc<serve::VirtualClock>,
    plane: Plane,
    switches: Vec<SwitchNode>,
    nics: Vec<NicNode>,
    links: Vec<LinkState>,
    runs: Vec<Run>,
    generators: Vec<generator::Generator>,
    since: u64,
    actions: Vec<nic::Action>,
    free_messages: Vec<u32>,
}

impl Emulator {
    /// Builds the fabric, with all links up, at time 0. The switches have no program yet: the controller installs it.
    #[must_use]
    pub fn new(topology: &Topology, config: EmulatorConfig) -> Self {
        let wires = topology
            .link_ids()
            .flat_map(|link| build::wires_of(topology, link, &config));
        let switches = topology
            .switch_ids()
            .map(|id| build::switch_node(topology, id, &config));
        let nic_config = Arc::new(config.nic.clone());
        let zeros = Arc::new(ZeroRun::new(config.nic.payload as usize));
        let nics = topology.nic_ids().map(|id| {
            let nic = |speeds: &[u64]| Nic::new(nic_config.clone(), zeros.clone(), speeds);
            build::nic_node(topology, id, nic, config.bin_ns)
        });
        let link = LinkState {
            up: true,
            noticed_up: true,
            changed_at: 0,
        };
        Self {
            plane: Plane::new(wires.collect()),
            switches: switches.collect(),
            nics: nics.collect(),
            links: vec![link; topology.links().len()],
            runs: Vec::new(),
            generators: Vec::new(),
            since: 0,
            actions: Vec::new(),
            free_messages: Vec::new(),
            clock: Arc::default(),
            config,
        }
    }

    /// The parameters it was built with.
    #[must_use]
    pub fn config(&self) -> &EmulatorConfig {
        &self.config
    }

    /// Virtual time, ns.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.plane.events.now()
    }

    /// Every switch's name and core, in the topology's order.
    pub fn switches(&self) -> impl ExactSizeIterator<Item = (&str, &SharedSwitch)> {
        self.switches
            .iter()
            .map(|node| (node.name.as_str(), &node.core))
    }

    /// A switch's core.
    #[must_use]
    pub fn switch(&self, id: SwitchId) -> Option<&SharedSwitch> {
        self.switches.get(id.index()).map(|node| &node.core)
    }

    /// Takes the packets that wait at a switch's CPU port, controller header first. With a P4Runtime server
    /// ([`Self::serve`]) there are none: it hands them to the controller.
    pub fn take_packet_ins(&mut self, switch: SwitchId) -> Vec<Vec<u8>> {
        let Some(node) = self.switches.get(switch.index()) else {
            return Vec::new();
        };
        let (now, port) = (self.now(), self.config.cpu_port);
        let mut core = node.core.lock();
        let packets = std::iter::from_fn(|| core.dequeue(port, now));
        packets.map(|packet| packet.bytes).collect()
    }

    /// Frames that a NIC has received and that are not RoCEv2, since the last call.
    pub fn take_frames(&mut self, nic: NicId) -> Vec<Vec<u8>> {
        let node = self.nics.get_mut(nic.index());
        node.map(|node| std::mem::take(&mut node.inbox))
            .unwrap_or_default()
    }

    /// Sends a frame as it is from a NIC's port, before the NIC's own.
    pub fn send_frame(&mut self, nic: NicId, port: u8, frame: &[u8]) {
        if let Some(node) = self.nics.get_mut(nic.index()) {
            node.raw.push_back((port, frame.to_vec()));
            self.serve_nic(nic.index());
        }
    }

    /// Starts a schedule now.
    ///
    /// # Errors
    /// [`FlowError`] when a flow names a NIC or port that is not there; nothing is started then.
    pub fn start(&mut self, schedule: Schedule) -> Result<RunId, FlowError> {
        self.check(&schedule)?;
        let id = self.runs.len() as u32;
        let mut source_qps = Vec::with_capacity(schedule.flows().len());
        for (index, flow) in schedule.flows().iter().enumerate() {
            let owner = Owner {
                run: id,
                flow: index as u32,
            };
            source_qps.push(self.connect(flow, owner));
        }
        let run = Run::new(schedule, &source_qps, self.now());
        let first = run.first_messages();
        self.runs.push(run);
        if first.is_empty() {
            let at = self.now();
            self.plane
                .notices
                .push_back(Notice::RunFinished { run: RunId(id), at });
        }
        for message in first {
            self.post(id, message);
        }
        Ok(RunId(id))
    }

    /// Starts one flow now: a schedule of its own.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_flow(&mut self, flow: FlowSpec) -> Result<FlowId, FlowError> {
        let run = self.start(Schedule::point_to_point([flow]))?;
        Ok(FlowId { run, flow: 0 })
    }

    /// What a run did so far.
    #[must_use]
    pub fn result(&self, run: RunId) -> Option<RunResult> {
        self.runs.get(run.0 as usize).map(Run::result)
    }

    /// Sets or lifts the rate that a flow must not exceed, bits/s on the wire.
    pub fn set_rate(&mut self, flow: FlowId, rate_bps: Option<u64>) {
        let run = self.runs.get(flow.run.0 as usize);
        if let Some((nic, qp)) = run.and_then(|run| run.source_qp(flow.flow)) {
            self.nics[nic.index()].nic.set_rate(qp, rate_bps);
        }
    }

    /// Asks for [`Notice::Alarm`] with this number at a time, ns.
    pub fn set_alarm(&mut self, at: u64, token: u64) {
        self.plane.events.push(at, Event::Alarm { token });
    }

    /// Cuts a link or brings it up, now.
    pub fn set_link(&mut self, link: LinkId, up: bool) {
        let now = self.now();
        let Some(state) = self.links.get_mut(link.index()) else {
            return;
        };
        if state.up == up {
            return;
        }
        state.up = up;
        state.changed_at = now;
        for wire in [upward(link), downward(link)] {
            self.plane.wires[wire as usize].set_up(up, now);
        }
        let at = now + self.config.detection_ns;
        self.plane.events.push(at, Event::Detect { link });
    }

    /// Lets a link lose `loss_ppm` millionths of the frames in one direction, by chance: a gray failure, of which nobody
    /// is told. `up_direction` is from the link's lower to its upper end.
    pub fn set_loss(&mut self, link: LinkId, up_direction: bool, loss_ppm: u32) {
        let wire = if up_direction {
            upward(link)
        } else {
            downward(link)
        };
        let seed = flow::mix(self.config.seed, u64::from(wire));
        if let Some(wire) = self.plane.wires.get_mut(wire as usize) {
            wire.set_loss(loss_ppm, seed);
        }
    }

    /// Whether a link is up.
    #[must_use]
    pub fn link_up(&self, link: LinkId) -> bool {
        self.links.get(link.index()).is_some_and(|state| state.up)
    }

    /// When the next event is due, ns; `None` when nothing will happen by itself.
    #[must_use]
    pub fn next_event_time(&self) -> Option<u64> {
        self.plane.events.next_time()
    }

    /// Runs until `until` ns. What was to be told is returned, in order.
    pub fn run_until(&mut self, until: u64) -> Vec<Notice> {
        self.wake_switches();
        while self.step(until) {}
        self.plane.events.advance_to(until);
        self.tell_servers();
        self.plane.notices.drain(..).collect()
    }

    /// Runs until there is something to tell, at most until `until` ns. `None`: the time has come, or, when it is
    /// `u64::MAX`, nothing is left to happen; see [`Self::now`].
    pub fn run_until_notice(&mut self, until: u64) -> Option<Notice> {
        self.wake_switches();
        while self.plane.notices.is_empty() && self.step(until) {}
        if self.plane.notices.is_empty() && until < u64::MAX {
            self.plane.events.advance_to(until);
        }
        self.tell_servers();
        self.plane.notices.pop_front()
    }

    /// Everything counted since the beginning or the last [`Self::reset_statistics`].
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let wire = |index: WireIndex| self.plane.wires[index as usize].stats;
        let links = (0..self.links.len() as u32)
            .map(LinkId)
            .map(|link| LinkReport {
                link,
                upward: wire(upward(link)),
                downward: wire(downward(link)),
            });
        let mut drops = Drops::default();
        for node in &self.switches {
            drops.add_switch(&node.core.lock().stats(), &node.before);
            drops.unconnected += node.ports.unconnected;
        }
        for wire in &self.plane.wires {
            drops.in_flight += wire.stats.lost_in_flight;
            drops.port_down += wire.stats.sent_while_down;
            drops.gray += wire.stats.lost_at_random;
        }
        let mut totals = nic::NicStats::default();
        let nics = self.nics.iter().enumerate().map(|(index, node)| {
            totals += node.nic.stats();
            NicReport {
                nic: NicId(index as u32),
                stats: node.nic.stats(),
                sent_bins: node.sent.bytes().to_vec(),
                received_bins: node.received.bytes().to_vec(),
            }
        });
        let nics = nics.collect();
        Statistics {
            since_ns: self.since,
            until_ns: self.now(),
            bin_ns: self.config.bin_ns,
            nics,
            links: links.collect(),
            drops,
            totals,
        }
    }

    /// Begins counting anew, with the first bin beginning now.
    pub fn reset_statistics(&mut self) {
        self.since = self.now();
        for node in &mut self.switches {
            node.before = node.core.lock().stats();
            node.ports.unconnected = 0;
        }
        for wire in &mut self.plane.wires {
            wire.stats = WireStats::default();
        }
        for node in &mut self.nics {
            node.nic.reset_stats();
            node.sent = Bins::new(self.since, self.config.bin_ns);
            node.received = node.sent.clone();
        }
    }

    fn check(&self, schedule: &Schedule) -> Result<(), FlowError> {
        for (flow, spec) in schedule.flows().iter().enumerate() {
            for (nic, port) in [(spec.src, spec.src_port), (spec.dst, spec.dst_port)] {
                let node = self.nics.get(nic.index()).ok_or(FlowError::UnknownNic {
                    flow,
                    nic: nic.0,
                    count: self.nics.len(),
                })?;
                let plugged = (0..2).filter(|p| node.wires[usize::from(*p)].is_some());
                if !plugged.clone().any(|p| p == port) {
                    return Err(FlowError::NoPort {
                        flow,
                        nic: nic.0,
                        port,
                        plugged: plugged.collect(),
                    });
                }
            }
        }
        let count = schedule.flows().len();
        let mut messages = schedule.messages().iter().enumerate();
        match messages.find(|(_, message)| message.flow as usize >= count) {
            Some((message, spec)) => Err(FlowError::UnknownFlow {
                message,
                flow: spec.flow,
                count,
            }),
            None => Ok(()),
        }
    }

    /// Makes both queue pairs of a flow; the result is the sender's.
    fn connect(&mut self, flow: &FlowSpec, owner: Owner) -> QueuePairIndex {
        let salt = u64::from(owner.run) << 32 | u64::from(owner.flow);
        let start_psn = (flow::mix(self.config.seed, salt) & 0xFF_FFFF) as u32;
        let mut connect = |near: NicId, far: NicId, local_qp, remote_qp, home_port, rate_bps| {
            let dst_ip = self.nics[far.index()].address(flow.family);
            let node = &mut self.nics[near.index()];
            node.owners.push(owner);
            let path = roce::Path {
                src_mac: node.mac,
                dst_mac: node.gateway,
                src_ip: node.address(flow.family),
                dst_ip,
                udp_source_port: flow.udp_source_port,
            };
            node.nic.connect(&QueuePairConfig {
                local_qp,
                remote_qp,
                path,
                home_port,
                start_psn,
                rate_bps,
            })
        };
        connect(
            flow.dst,
            flow.src,
            flow.dst_qp,
            flow.src_qp,
            flow.dst_port,
            None,
        );
        connect(
            flow.src,
            flow.dst,
            flow.src_qp,
            flow.dst_qp,
            flow.src_port,
            flow.rate_bps,
        )
    }
}

impl NicNode {
    fn address(&self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

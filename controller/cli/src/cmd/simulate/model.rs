//! A schedule in the flow model: what headers leave of the links' rates, shared as its senders share.

use ::topology::{NicId, Topology};
use controller::placement::Path;
use controller::simulate::fill::{Stream, rates};
use controller::simulate::flow::{Fabric, Run, simulate_on};
use controller::simulate::paths::{capacities, streams};
use controller::simulate::transport::{Recovery, Transport, Windows};
use lab::emulator::nic::NicConfig;
use lab::emulator::{EmulatorConfig, FlowSpec, Schedule};

use super::Control;
use crate::cmd::demo::bed::Bed;

/// Ethernet, IPv4, UDP, BTH and ICRC around a payload, with preamble, FCS and gap.
const FRAME_OVERHEAD: u64 = 14 + 20 + 8 + 12 + 4 + 24;

/// A schedule's streams on what payload can have of the links.
pub(super) struct Model {
    capacity: Vec<u64>,
    streams: Vec<Stream>,
    /// By flow: its stream, and its bytes over those of the stream's largest flow.
    part: Vec<(usize, f64)>,
    /// Bits on the wire per bit of payload.
    wire: f64,
    /// No message waits for another.
    independent: bool,
}

impl Model {
    pub(super) fn new(
        bed: &Bed,
        schedule: &Schedule,
        chain: &[u32],
        paths: &[Option<Path>],
    ) -> Self {
        let payload = u64::from(bed.topology.policy().rdma_mtu());
        let useful = |bps: u64| {
            let useful =
                u128::from(bps) * u128::from(payload) / u128::from(payload + FRAME_OVERHEAD);
            u64::try_from(useful).unwrap_or(u64::MAX)
        };
        let of = |index: usize| chain.get(index).copied().unwrap_or(u32::MAX);
        let flows = schedule.flows().iter().enumerate();
        let streams = streams(flows.map(|(i, flow)| (of(i), flow.bytes, paths[i].as_ref())));
        let mut order: Vec<u32> = (0..schedule.flows().len()).map(of).collect();
        order.sort_unstable();
        order.dedup();
        let part = schedule.flows().iter().enumerate().map(|(i, flow)| {
            let stream = order.binary_search(&of(i)).unwrap_or(0);
            (
                stream,
                flow.bytes as f64 / streams[stream].bytes.max(1) as f64,
            )
        });
        Self {
            part: part.collect(),
            capacity: capacities(&bed.topology).into_iter().map(useful).collect(),
            independent: (0..schedule.messages().len())
                .all(|message| schedule.after(message as u32).is_empty()),
            streams,
            wire: (payload + FRAME_OVERHEAD) as f64 / payload as f64,
        }
    }

    /// How long it takes, ns, on these paths of its flows and of their acknowledgements.
    pub(super) fn ns(
        &self,
        bed: &Bed,
        schedule: &Schedule,
        (paths, echoes): (&[Option<Path>], &[Option<Path>]),
        control: Control,
    ) -> f64 {
        let run = Run {
            iterations: 1,
            streams: self.streams.clone(),
            ..Run::default()
        };
        let times = Times::new(&bed.topology, bed.emulator.config(), schedule, paths);
        let from_nics = from_nics(&bed.topology);
        // Rates that marks set do not depend on how long acknowledgements take.
        let echoes = if self.independent && control == Control::Window {
            self.echoes(echoes)
        } else {
            Vec::new()
        };
        let fabric = Fabric {
            echoes: &echoes,
            capacity_bps: &self.capacity,
            from_nics: &from_nics,
            transport: self.transport(&bed.emulator.config().nic, &times, control),
        };
        simulate_on(&fabric, &[run], |_| {})[0].took_ns + times.last_start + times.latency
    }

    /// By stream, the directed links of its flow's acknowledgements.
    fn echoes(&self, paths: &[Option<Path>]) -> Vec<Vec<u32>> {
        let mut echoes = vec![Vec::new(); self.streams.len()];
        for ((stream, _), path) in self.part.iter().zip(paths) {
            let steps = path.iter().flat_map(|path| &path.steps);
            echoes[*stream].extend(steps.map(|step| step.link * 2 + u32::from(step.upward)));
        }
        echoes
    }

    fn transport(&self, nic: &NicConfig, times: &Times, control: Control) -> Transport {
        // Flows that wait for each other have windows and rates to spare wherever they are not held.
        let windows = (self.independent && control != Control::Rates).then(|| Windows {
            bits: f64::from(nic.window) * f64::from(nic.payload) * 8.0,
            delay_s: 2.0 * times.latency / 1e9,
        });
        let climbs = self.independent && control == Control::Dcqcn;
        let law = nic.dcqcn.as_ref().filter(|_| climbs);
        let line = self.capacity.iter().copied().max().unwrap_or(0) as f64;
        let recovery = law.map(|law| Recovery {
            interval_ns: law.increase_interval_ns,
            fast_steps: law.fast_recovery_steps,
            additive_bps: law.additive_bps as f64 / self.wire,
            hyper_bps: law.hyper_bps as f64 / self.wire,
            line_bps: line,
        });
        Transport { windows, recovery }
    }

    /// Holds every flow to its rate.
    pub(super) fn pace(&self, schedule: &mut Schedule) {
        let rates = rates(&self.capacity, &self.streams);
        for (flow, (stream, part)) in schedule.flows_mut().iter_mut().zip(&self.part) {
            flow.rate_bps = Some((rates[*stream] * part * self.wire) as u64).filter(|bps| *bps > 0);
        }
    }
}

/// By directed link, whether a NIC sends on it.
fn from_nics(topology: &Topology) -> Vec<bool> {
    let mut from = vec![false; topology.links().len() * 2];
    for nic in topology.nics() {
        for port in nic.ports() {
            // NICs are the lower ends of their links.
            from[port.link.index() * 2 + 1] = true;
        }
    }
    from
}

/// What a schedule takes besides the time that its bytes take, in ns.
struct Times {
    /// Longest way of a packet without queues.
    latency: f64,
    /// When the last flow to begin can begin: behind the first messages of those before it.
    last_start: f64,
}

impl Times {
    fn new(
        topology: &Topology,
        config: &EmulatorConfig,
        schedule: &Schedule,
        paths: &[Option<Path>],
    ) -> Self {
        let frame = u64::from(config.nic.payload) + FRAME_OVERHEAD;
        let way = |path: &Option<Path>| {
            let steps = path.as_ref().map_or(&[][..], |path| &path.steps);
            let links = steps.iter().map(|step| {
                let link = &topology.links()[step.link as usize];
                link.delay_ns as f64 + frame as f64 * 8e9 / link.speed_bps.max(1) as f64
            });
            let switches = steps.len().saturating_sub(1) as f64;
            links.sum::<f64>() + switches * config.switch_latency_ns as f64
        };
        let ways: Vec<f64> = paths.iter().map(way).collect();
        Self {
            latency: ways.iter().copied().fold(0.0, f64::max),
            last_start: last_start(
                topology,
                schedule,
                &ways,
                frame as f64 / f64::from(config.nic.payload),
            ),
        }
    }
}

/// Follows the first message of every flow through those that it waits for, each at its NIC's rate.
fn last_start(topology: &Topology, schedule: &Schedule, ways: &[f64], wire: f64) -> f64 {
    let own = |flow: &FlowSpec| wire * 8e9 / nic_bps(topology, flow.src);
    let mut arrives = Vec::with_capacity(schedule.messages().len());
    let mut begun = vec![false; schedule.flows().len()];
    let mut last: f64 = 0.0;
    for (index, message) in (0..).zip(schedule.messages()) {
        let flow = message.flow as usize;
        let after = schedule.after(index).iter();
        let ready = after
            .map(|earlier: &u32| arrives[*earlier as usize] + schedule.overhead_ns as f64)
            .fold(0.0, f64::max);
        if !std::mem::replace(&mut begun[flow], true) {
            last = last.max(ready);
        }
        arrives.push(ready + message.bytes as f64 * own(&schedule.flows()[flow]) + ways[flow]);
    }
    last
}

fn nic_bps(topology: &Topology, nic: NicId) -> f64 {
    topology.nic_speed_bps(nic).max(1) as f64
}

//! The fabric of the experiments: topology, switches, controller, traffic.

use std::sync::Arc;

use ::topology::{Clos, HostCounts, LinkId, NicId, SwitchId, Tier, Topology, generate};
use controller::desired::Desired;
use controller::intent::{Mode, Options, Planner};
use controller::session::{Config, Controller, Program};
use lab::Fabric;
use lab::emulator::{
    Emulator, EmulatorConfig, FlowSpec, Notice, QueuePairNumbers, RunId, Schedule, Statistics,
};

use super::{Setup, Traffic};
use crate::cmd::bring_up;
use crate::failure::Failure;

/// NICs of each leaf, and uplinks.
pub(super) const WIDTH: u32 = 8;
/// Speed of every link, bits/s.
pub(super) const SPEED: u64 = 400_000_000_000;
/// What every NIC sends without pause in an experiment that runs until all has arrived, bytes; and in
/// messages, so that even a flow of many has eight.
pub(super) const NIC_BYTES: u64 = 32_000_000;
pub(super) const NIC_MESSAGE_BYTES: u64 = 128_000_000;
/// Bytes of a message, and the time between its arrival and the next, ns.
const MESSAGE: u64 = 1_000_000;
const PAUSE_NS: u64 = 100_000;
/// Bytes of a full data packet on the wire: payload 4096, headers 58, preamble, check sequence and gap 24.
pub(super) const WIRE_BYTES: u64 = 4096 + 58 + 24;
/// An experiment that takes longer than this in fabric time does not end, ns.
const LONGEST_NS: u64 = 1_000_000_000;
/// Packets that NICs can put in order where packets of a flow take several paths.
const REORDER_WINDOW: u32 = 256;

/// A fabric of two leaves and eight spines; `None` of them: all NICs on one switch that never blocks.
pub(super) fn topology(spines: Option<u32>) -> Result<Topology, Failure> {
    let (segments, hosts) = if spines.is_some() {
        (2, WIDTH)
    } else {
        (1, 2 * WIDTH)
    };
    generate(&Clos {
        name: "ars".to_owned(),
        segments,
        hosts: HostCounts::Each(hosts),
        rails: 1,
        spines: Some(spines.unwrap_or(0)),
        ..Clos::default()
    })
    .map_err(Failure::run)
}

/// The fabric with the last spine's links at half the speed.
pub(super) fn halved() -> Result<Topology, Failure> {
    let text = topology(Some(WIDTH))?.to_yaml();
    let slow = format!("spine{WIDTH}");
    let mut halved = String::new();
    for line in text.lines() {
        let is_link = line.trim_start().starts_with("- [") && line.contains(&format!("{slow}:"));
        if is_link {
            let ends = line.trim_start().trim_start_matches("- ");
            halved += &format!("  - {{ends: {ends}, speed: 200G}}\n");
        } else if line.contains(&format!("name: {slow},")) {
            halved += &format!("{}\n", line.replace("400G", "200G"));
        } else if line.contains("tier: leaf") {
            halved += &format!(
                "{}\n",
                line.replace("{1-16: 400G}", "{1-15: 400G, 16: 200G}")
            );
        } else {
            halved += &format!("{line}\n");
        }
    }
    Topology::parse("halved", &halved).map_err(|report| Failure::Run(format!("{report:?}")))
}

/// What sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Senders {
    /// Flows of every NIC.
    pub(super) per_nic: u32,
    /// Whether they heed marks (DCQCN). Without, a flow has a window and no other limit, so that what is measured
    /// is how the fabric spreads packets and not how senders react.
    pub(super) dcqcn: bool,
}

/// Packets that all flows of a NIC may have on the way together: the path holds about a hundred.
const NIC_WINDOW: u32 = 256;
/// And a flow of many at least.
const LEAST_WINDOW: u32 = 16;

/// A fabric that is up, with nothing on it.
pub(super) struct Bed {
    pub(super) topology: Arc<Topology>,
    pub(super) emulator: Emulator,
    numbers: QueuePairNumbers,
    /// Keeps the sessions and the switches' servers running.
    _controller: Controller,
    _fabric: Fabric,
}

impl Bed {
    /// Brings a fabric up with the entries of `setup`, and its hellos and probes running.
    pub(super) async fn new(
        topology: Topology,
        setup: &Setup,
        senders: Senders,
        seed: u64,
    ) -> Result<Self, Failure> {
        let topology = Arc::new(topology);
        let mut config = EmulatorConfig::new(&topology, seed);
        // Nobody is told of a failure.
        config.detection_ns = LONGEST_NS;
        if !senders.dcqcn {
            config.nic.dcqcn = None;
            config.nic.window = (NIC_WINDOW / senders.per_nic).max(LEAST_WINDOW);
        }
        if let Some(Mode::PerPacketRandom | Mode::PerPacketQuality) = setup.map(|ars| ars.mode) {
            config.nic.reorder_window = REORDER_WINDOW;
        }
        let mut emulator = Emulator::new(&topology, config);
        let fabric = emulator.serve(topology.name());
        let program = Arc::new(Program::fabric().map_err(Failure::run)?);
        let endpoints = fabric.switches.iter().map(bring_up::endpoint).collect();
        let (controller, _) =
            Controller::connect(Arc::clone(&topology), program, endpoints, Config::default())
                .await
                .map_err(Failure::run)?;
        let options = Options {
            ars: *setup,
            ..Options::default()
        };
        let planner = Planner::new(Arc::clone(&topology), options);
        let desired = Desired::new(planner).map_err(Failure::run)?;
        controller.reconcile(&desired).await.map_err(Failure::run)?;
        if let Some(ars) = setup {
            bring_up::generate(&mut emulator, &topology, ars);
        }
        Ok(Self {
            numbers: QueuePairNumbers::new(seed),
            topology,
            emulator,
            _controller: controller,
            _fabric: fabric,
        })
    }

    /// Flows from every NIC of the first half to its counterpart in the second, `bytes` of each NIC.
    pub(super) fn schedule(&mut self, traffic: Traffic, per_nic: u32, bytes: u64) -> Schedule {
        let mut schedule = Schedule::new();
        for nic in 0..WIDTH {
            for _ in 0..per_nic {
                let (src, dst) = (NicId(nic), NicId(nic + WIDTH));
                let flow = FlowSpec::new(src, dst, 0, &mut self.numbers);
                let flow = schedule.add_flow(flow);
                let mut left = bytes / u64::from(per_nic);
                let mut earlier = None;
                while left > 0 {
                    let size = match traffic {
                        Traffic::Elephants => left,
                        Traffic::Messages => left.min(MESSAGE),
                    };
                    earlier = Some(schedule.add_message(flow, size, 0, earlier.as_slice()));
                    left -= size;
                }
            }
        }
        schedule.overhead_ns = match traffic {
            Traffic::Elephants => 0,
            Traffic::Messages => PAUSE_NS,
        };
        schedule
    }

    /// Lets hellos and probes find out what is there, then starts.
    pub(super) fn start(&mut self, schedule: Schedule) -> Result<RunId, Failure> {
        self.emulator.run_until(1_000_000);
        self.emulator.reset_statistics();
        self.emulator.start(schedule).map_err(Failure::run)
    }

    /// Runs until all has arrived; the time it took, ns.
    pub(super) fn finish(&mut self, run: RunId) -> Result<u64, Failure> {
        let stuck = || Failure::Run("the emulated traffic came to a standstill".to_owned());
        let limit = self.emulator.now() + LONGEST_NS;
        loop {
            match self.emulator.run_until_notice(limit) {
                Some(Notice::RunFinished { run: done, .. }) if done == run => break,
                Some(_) => {}
                None => return Err(stuck()),
            }
        }
        let result = self.emulator.result(run).ok_or_else(stuck)?;
        result.elapsed_ns().ok_or_else(stuck)
    }

    /// The link between a leaf (0 or 1) and a spine (from 0).
    pub(super) fn link(&self, leaf: usize, spine: usize) -> Option<LinkId> {
        let leaf: SwitchId = self.topology.tier(Tier::Leaf).nth(leaf)?;
        let uplink = self.topology.uplinks(leaf).nth(spine)?;
        Some(uplink.link)
    }
}

/// Packets lost; hellos and probes, which end where they are taken in, are not.
pub(super) fn lost(statistics: &Statistics) -> u64 {
    statistics.drops.total() - statistics.drops.program
}

/// Packets before their turn among a million data packets received.
pub(super) fn out_of_order_ppm(statistics: &Statistics) -> f64 {
    let received = statistics.totals.received_packets.max(1);
    statistics.totals.out_of_order as f64 * 1e6 / received as f64
}

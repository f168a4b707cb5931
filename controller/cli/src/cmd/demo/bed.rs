//! The demo's fabric: an emulator, its P4Runtime servers, and a controller with a
//! session to each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use ::topology::{LinkId, NicId, Topology};
use controller::desired::{Change, Desired, Flow};
use controller::intent::{FlowKey, Options, Planner};
use controller::placement::{Demand, JobPlan, Path};
use controller::routing::LinkSet;
use controller::session::{Config, Controller, Program};
use controller::telemetry::Telemetry;
use lab::Fabric;
use lab::emulator::collective::{Ring, RingAllReduce};
use lab::emulator::{
    Emulator, EmulatorConfig, FlowSpec, Notice, QueuePairNumbers, RunId, Schedule,
};

use super::measure::Measured;
use crate::cmd::bring_up::{endpoint, generate};
use crate::failure::Failure;
use crate::names;
use crate::output::Progress;

/// Fabric time that late acknowledgements get before counters are read, ns.
const SETTLE_NS: u64 = 200_000;

/// Fabric time between two signs of progress, ns.
const TICK_NS: u64 = 50_000;

/// A fabric that is up, with its controller.
pub(crate) struct Bed {
    pub(crate) topology: Arc<Topology>,
    pub(crate) emulator: Emulator,
    pub(crate) controller: Controller,
    pub(crate) desired: Desired,
    /// Entries written over P4Runtime so far.
    pub(crate) entries_written: u64,
    /// Wall-clock ms from nothing to entries installed and read back.
    pub(crate) cold_start_ms: f64,
    numbers: QueuePairNumbers,
    /// Keeps the switches' servers running.
    _fabric: Fabric,
}

impl Bed {
    /// Brings the fabric up: switches, servers, sessions, pipeline, entries.
    pub(crate) async fn bring_up(
        topology: Arc<Topology>,
        seed: u64,
        reports_to: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
        let config = EmulatorConfig::new(&topology, seed);
        Self::bring_up_with(topology, config, reports_to).await
    }

    /// The same with hosts and switches as `config` has them.
    pub(crate) async fn bring_up_with(
        topology: Arc<Topology>,
        config: EmulatorConfig,
        reports_to: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
        let begun = Instant::now();
        let seed = config.seed;
        let mut emulator = Emulator::new(&topology, config);
        let fabric = emulator.serve(topology.name());
        let program = Arc::new(Program::fabric().map_err(Failure::run)?);
        let (controller, _) = Controller::connect(
            Arc::clone(&topology),
            program,
            fabric.switches.iter().map(endpoint).collect(),
            Config {
                reports_to,
                ..Config::default()
            },
        )
        .await
        .map_err(Failure::run)?;
        let planner = Planner::new(Arc::clone(&topology), Options::default());
        let desired = Desired::new(planner).map_err(Failure::run)?;
        let report = controller.reconcile(&desired).await.map_err(Failure::run)?;
        if let Some(ars) = desired.planner().ars() {
            generate(&mut emulator, &topology, ars);
        }
        Ok(Self {
            cold_start_ms: begun.elapsed().as_secs_f64() * 1e3,
            entries_written: report.total().updates() as u64,
            numbers: QueuePairNumbers::new(seed),
            topology,
            emulator,
            controller,
            desired,
            _fabric: fabric,
        })
    }

    /// The job's all-reduce on the NICs that the plan chose, and its flows.
    ///
    /// # Errors
    /// The fabric has no way for one of the flows: it would be sent again for ever.
    pub(crate) fn all_reduce(
        &mut self,
        plan: &JobPlan,
        bytes: u64,
    ) -> Result<(RingAllReduce, Schedule), Failure> {
        let rings = plan.rings.iter().map(|ring| Ring {
            nics: ring.nics.clone(),
        });
        let reduce = RingAllReduce::new(rings.collect(), bytes);
        let schedule = reduce.schedule(&mut self.numbers);
        let mut trial = self.desired.clone();
        trial
            .set_flows(self.flows(&schedule))
            .map_err(Failure::run)?;
        for (flow, path) in schedule.flows().iter().zip(&trial.placed().paths) {
            if path.is_none() {
                let [src, dst] = [flow.src, flow.dst].map(|nic| names::nic(&self.topology, nic));
                return Err(Failure::Input(format!(
                    "error: the fabric has no way from {src} to {dst}: no switch above both leaves; \
                     add links, or run a job whose rings need none"
                )));
            }
        }
        Ok((reduce, schedule))
    }

    /// The flows of a schedule, as the controller places them.
    pub(crate) fn flows(&self, schedule: &Schedule) -> Vec<Flow> {
        let flow = |flow: &FlowSpec| Flow {
            key: FlowKey::roce(
                self.topology[flow.src].v4.into(),
                self.topology[flow.dst].v4.into(),
                flow.dst_qp,
            ),
            demand: Demand {
                src: flow.src.0,
                dst: flow.dst.0,
                bytes: flow.bytes,
                port: None,
            },
        };
        schedule.flows().iter().map(flow).collect()
    }

    /// Gives every flow of the schedule a path of its own, and writes it to the switches.
    pub(crate) async fn place(&mut self, schedule: &mut Schedule) -> Result<(), Failure> {
        let flows = self.flows(schedule);
        let changes = self.desired.set_flows(flows).map_err(Failure::run)?;
        for (index, flow) in schedule.flows_mut().iter_mut().enumerate() {
            if let Some(path) = self.desired.path(index) {
                flow.src_port = path.src_port;
                flow.dst_port = path.dst_port;
            }
        }
        self.apply(&changes).await
    }

    /// Puts every flow of the schedule on the path given for it.
    pub(crate) async fn place_on(
        &mut self,
        schedule: &mut Schedule,
        paths: Vec<Option<Path>>,
    ) -> Result<(), Failure> {
        let flows = self.flows(schedule);
        let changes = self.desired.set_paths(flows, paths).map_err(Failure::run)?;
        for (index, flow) in schedule.flows_mut().iter_mut().enumerate() {
            if let Some(path) = self.desired.path(index) {
                flow.src_port = path.src_port;
                flow.dst_port = path.dst_port;
            }
        }
        self.apply(&changes).await
    }

    /// Numbers for queue pairs.
    pub(crate) fn numbers(&mut self) -> &mut QueuePairNumbers {
        &mut self.numbers
    }

    /// Takes all placed flows back.
    pub(crate) async fn unplace(&mut self) -> Result<(), Failure> {
        let changes = self.desired.set_flows(Vec::new()).map_err(Failure::run)?;
        self.apply(&changes).await
    }

    async fn apply(&mut self, changes: &[Change]) -> Result<(), Failure> {
        self.controller.set_desired(&self.desired);
        let written = self.controller.apply(changes).await.map_err(Failure::run)?;
        self.entries_written += written as u64;
        Ok(())
    }

    /// Begins counting anew and starts a schedule.
    pub(crate) async fn start(
        &mut self,
        schedule: Schedule,
    ) -> Result<(RunId, Telemetry), Failure> {
        let before = self.telemetry().await?;
        self.emulator.reset_statistics();
        let run = self.emulator.start(schedule).map_err(Failure::run)?;
        Ok((run, before))
    }

    /// Runs until the schedule is done.
    pub(crate) fn finish(&mut self, run: RunId, progress: &Progress) -> Result<(), Failure> {
        let (begun, started) = (Instant::now(), self.emulator.now());
        loop {
            if self.emulator.next_event_time().is_none() {
                return Err(stuck());
            }
            let until = self.emulator.now() + TICK_NS;
            match self.emulator.run_until_notice(until) {
                Some(Notice::RunFinished { run: done, .. }) if done == run => return Ok(()),
                _ => progress.tick(format!(
                    "{} us of fabric time in {:.0} s",
                    (self.emulator.now() - started) / 1_000,
                    begun.elapsed().as_secs_f64()
                )),
            }
        }
    }

    /// What a finished run did. Waits, in fabric time, for the last acknowledgements.
    pub(crate) async fn measure(
        &mut self,
        run: RunId,
        before: &Telemetry,
    ) -> Result<Measured, Failure> {
        let statistics = self.emulator.statistics();
        let settled = self.emulator.now() + SETTLE_NS;
        self.emulator.run_until(settled);
        let telemetry = self.telemetry().await?.since(before);
        let result = self.emulator.result(run).ok_or_else(stuck)?;
        Ok(Measured {
            elapsed_ns: result.elapsed_ns().ok_or_else(stuck)?,
            lost: self.emulator.statistics().drops,
            statistics,
            telemetry,
        })
    }

    /// Rate of the slowest NIC that takes part, bits/s.
    pub(crate) fn nic_bps(&self, reduce: &RingAllReduce) -> u64 {
        let nics = reduce.rings.iter().flat_map(|ring| &ring.nics);
        nics.map(|nic: &NicId| self.topology.nic_speed_bps(*nic))
            .min()
            .unwrap_or(0)
    }

    /// The controller hears that a link is down: plans anew, writes nothing yet.
    pub(crate) fn replan(&mut self, link: LinkId) -> Result<Vec<Change>, Failure> {
        let down = LinkSet::from_iter([link.0]);
        self.desired.set_down(&down).map_err(Failure::run)
    }

    async fn telemetry(&self) -> Result<Telemetry, Failure> {
        self.controller.telemetry().await.map_err(Failure::run)
    }
}

/// A run that can't end is a fault of the fabric's, and must not look like a result.
pub(crate) fn stuck() -> Failure {
    Failure::Run(
        "the emulated job came to a standstill: nothing is left to happen and messages are missing"
            .to_owned(),
    )
}

//! A running fabric under control: sessions, desired state, status, drift.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::topology::{End, SwitchId, Topology};
use controller::desired::Desired;
use controller::intent::{Ars, Options, Planner};
use controller::session::{Config, Controller, Endpoint, Program};
use lab::SwitchEndpoint;
use serde::Serialize;

use crate::cmd::bring_up;
use crate::cmd::status::{FabricStatus, PortStatus, SwitchStatus};
use crate::failure::Failure;
use crate::{output, running};

/// How often the switches are compared with what they should hold.
const DRIFT_CHECK: Duration = Duration::from_secs(15);

/// Hellos and probes that a general-purpose machine submits to all switches stay in time at this pace, us.
const FASTEST_BEAT_US: u32 = 100_000;

/// A fabric whose switches hold what the controller wants.
pub(super) struct Live {
    topology: Arc<Topology>,
    controller: Controller,
    desired: Desired,
    switches: Vec<SwitchEndpoint>,
    target: &'static str,
    since: Instant,
    /// Summary of bringing it under control.
    pub(super) up: Up,
}

/// What `up --format json` says first.
#[derive(Debug, Serialize)]
pub(super) struct Up {
    fabric: String,
    target: &'static str,
    switches: usize,
    hosts: usize,
    entries_written: usize,
    pipelines_pushed: usize,
    milliseconds: u64,
    p4runtime: BTreeMap<String, String>,
}

impl Up {
    /// For people.
    pub(super) fn to_text(&self) -> String {
        format!(
            "{} is up on {}: {} switches, {} hosts, {} entries written in {} ms",
            self.fabric,
            self.target,
            self.switches,
            self.hosts,
            self.entries_written,
            self.milliseconds,
        )
    }
}

/// What the policy asks for, as fast as it can be had from here.
fn adaptive(topology: &Topology) -> Option<Ars> {
    let asked = Ars::of(topology.policy().ars.as_ref()?);
    let ars = asked.no_faster_than(FASTEST_BEAT_US);
    if ars != asked {
        output::say(format!(
            "hellos and probes are sent over P4Runtime, every {} ms at most: a dead neighbour is left within {} ms",
            FASTEST_BEAT_US / 1_000,
            ars.hellos.map_or(0, |hellos| hellos.detection_us()) / 1_000,
        ));
    }
    Some(ars)
}

impl Live {
    /// Connects to all switches, pushes the pipeline, brings them to the desired state. Telemetry reports
    /// that come to the controller go on to `reports_to`.
    pub(super) async fn start(
        topology: Arc<Topology>,
        switches: Vec<SwitchEndpoint>,
        target: &'static str,
        (options, reports_to): (Options, SocketAddr),
    ) -> Result<Self, Failure> {
        let begun = Instant::now();
        let program = Arc::new(Program::fabric().map_err(Failure::run)?);
        let endpoints: Vec<Endpoint> = switches.iter().map(bring_up::endpoint).collect();
        let config = Config {
            reports_to: topology.policy().int.is_some().then_some(reports_to),
            ..Config::default()
        };
        let (controller, connected) =
            Controller::connect(Arc::clone(&topology), program, endpoints, config)
                .await
                .map_err(Failure::run)?;
        let options = Options {
            ars: adaptive(&topology),
            ..options
        };
        let planner = Planner::new(Arc::clone(&topology), options);
        let desired = Desired::new(planner).map_err(Failure::run)?;
        let report = controller.reconcile(&desired).await.map_err(Failure::run)?;
        if let Some(ars) = &options.ars {
            controller.start_beats(ars).map_err(Failure::run)?;
        }
        let up = Up {
            fabric: topology.name().to_owned(),
            target,
            switches: switches.len(),
            hosts: topology.hosts().len(),
            entries_written: report.total().updates(),
            pipelines_pushed: connected.pushed,
            milliseconds: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            p4runtime: switches
                .iter()
                .map(|switch| (switch.name.clone(), switch.address.to_string()))
                .collect(),
        };
        Ok(Self {
            topology,
            controller,
            desired,
            switches,
            target,
            since: begun,
            up,
        })
    }

    /// Answers those who ask for the status and repairs drift, for ever.
    pub(super) async fn keep(&self, announcement: &running::Announcement) -> Result<(), Failure> {
        let mut check = tokio::time::interval(DRIFT_CHECK);
        check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        check.tick().await;
        loop {
            tokio::select! {
                asked = announcement.asked() => {
                    let stream = asked.map_err(Failure::run)?;
                    let json = sonic_rs::to_string(&self.status().await).map_err(Failure::run)?;
                    running::answer(stream, &json).await;
                }
                _ = check.tick() => self.repair().await,
            }
        }
    }

    /// Brings switches that differ back to the desired state. A switch that is away is
    /// brought up to date when its session is restored.
    async fn repair(&self) {
        match self.controller.reconcile(&self.desired).await {
            Ok(report) if report.total().updates() > 0 => {
                tracing::warn!(
                    updates = report.total().updates(),
                    "switches had drifted and were repaired"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "not all switches could be compared"),
        }
    }

    async fn status(&self) -> FabricStatus {
        let counters = match self.controller.telemetry().await {
            Ok(telemetry) => telemetry.switches,
            Err(error) => {
                tracing::info!(%error, "counters are missing from the status");
                Vec::new()
            }
        };
        let sessions = self.controller.status();
        let mut switches = Vec::with_capacity(self.switches.len());
        for (index, session) in sessions.into_iter().enumerate() {
            let id = SwitchId(index as u32);
            let none = controller::telemetry::SwitchCounters::default();
            let counters = counters.get(index).unwrap_or(&none);
            switches.push(SwitchStatus {
                entries: self.entries(id).await,
                ports: self.ports(id, counters),
                address: self.address(&session.name),
                session: match session.session {
                    Ok(()) => "primary".to_owned(),
                    Err(reason) => reason,
                },
                name: session.name,
                device_id: session.device_id,
            });
        }
        FabricStatus {
            fabric: self.topology.name().to_owned(),
            target: self.target.to_owned(),
            pid: std::process::id(),
            up_seconds: self.since.elapsed().as_secs(),
            switches,
        }
    }

    fn address(&self, name: &str) -> String {
        self.switches
            .iter()
            .find(|switch| switch.name == name)
            .map(|switch| switch.address.to_string())
            .unwrap_or_default()
    }

    /// Entries by table, read from the switch; none while it is away.
    async fn entries(&self, switch: SwitchId) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        let Ok(state) = self.controller.read(switch).await else {
            return counts;
        };
        for key in state.entries.keys() {
            let index = &self.controller.program().index;
            let name = index
                .table(key.table)
                .map_or_else(|_| key.table.to_string(), |table| table.name().to_owned());
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    fn ports(
        &self,
        switch: SwitchId,
        counters: &controller::telemetry::SwitchCounters,
    ) -> Vec<PortStatus> {
        self.topology
            .neighbours(switch)
            .map(|neighbour| {
                let rx = counters
                    .port_rx
                    .get(&neighbour.port)
                    .copied()
                    .unwrap_or_default();
                let tx = counters
                    .port_tx
                    .get(&neighbour.port)
                    .copied()
                    .unwrap_or_default();
                PortStatus {
                    port: neighbour.port,
                    peer: self.end_name(neighbour.far),
                    up: !self.desired.down().contains(neighbour.link.0),
                    rx_packets: rx.packets,
                    rx_bytes: rx.bytes,
                    tx_packets: tx.packets,
                    tx_bytes: tx.bytes,
                }
            })
            .collect()
    }

    fn end_name(&self, end: End) -> String {
        match end {
            End::Switch(port) => format!("{} port {}", self.topology[port.switch].name, port.port),
            End::Nic(port) => {
                let nic = &self.topology[port.nic];
                format!("{} rail {}", self.topology[nic.host].name, nic.rail)
            }
        }
    }
}

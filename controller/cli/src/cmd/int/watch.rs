//! `meridian int watch`: a collector on a UDP address that shows flows as reports come in.

use std::collections::BTreeSet;
use std::time::Duration;

use ::topology::{End, IntIndicator, Topology};
use controller::intent::telemetry::{interface_of, node_of};
use controller::telemetry::int::collector::{Collector, Config};
use controller::telemetry::int::flow::{Flow, FlowFilter};
use controller::telemetry::int::packet::Indicator;

use tokio::net::UdpSocket;
use tokio::time::{Instant, MissedTickBehavior};

use super::view::{Names, Update};
use crate::args::{Format, IntWatchArgs};
use crate::cmd::stop::Stop;
use crate::failure::Failure;
use crate::{input, output};

/// Largest UDP datagram.
const DATAGRAM: usize = 65_535;
/// Flows that are kept.
const FLOWS: usize = 10_000;

/// Runs the collector until it is interrupted, or has seen enough; in the end it shows all flows.
pub(super) fn run(args: &IntWatchArgs) -> Result<(), Failure> {
    let filter: FlowFilter = args
        .flow
        .parse()
        .map_err(|error| Failure::Input(format!("error: {error}")))?;
    let topology = args.topology.as_deref().map(input::topology).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    runtime.block_on(async {
        let stop = Stop::listen()?;
        let socket = UdpSocket::bind(args.listen).await.map_err(|error| {
            Failure::run(format!(
                "cannot listen on {}: {error}; another address is given by --listen",
                args.listen
            ))
        })?;
        output::say(format!(
            "waiting for reports on {}; Ctrl-C ends it",
            args.listen
        ));
        let collector = Collector::new(Config {
            indicators: indicators(args, topology.as_ref()),
            flows: FLOWS,
        });
        let watch = Watch {
            args,
            filter,
            names: topology.as_ref().map(names).unwrap_or_default(),
            collector,
            news: BTreeSet::new(),
            begun: Instant::now(),
        };
        watch.run(&socket, stop).await
    })
}

/// What tells of INT: as the options say, else as the topology says, else the default.
fn indicators(args: &IntWatchArgs, topology: Option<&Topology>) -> Vec<Indicator> {
    if args.dscp.is_some() || args.udp_port.is_some() {
        let dscp = args.dscp.map(Indicator::Dscp);
        return dscp
            .into_iter()
            .chain(args.udp_port.map(Indicator::Port))
            .collect();
    }
    let policy = topology.and_then(|topology| topology.policy().int.clone());
    let indicator = match policy.unwrap_or_default().indicator {
        IntIndicator::Dscp(dscp) => Indicator::Dscp(dscp),
        IntIndicator::UdpPort(port) => Indicator::Port(port),
    };
    vec![indicator]
}

/// Names of switches, and of links and NICs as logical interfaces.
fn names(topology: &Topology) -> Names {
    let mut names = Names::default();
    for id in topology.switch_ids() {
        let name = &topology[id].name;
        names.nodes.insert(node_of(topology, id), name.clone());
        for neighbour in topology.neighbours(id) {
            let interface = match neighbour.far {
                End::Nic(far) => crate::names::nic(topology, far.nic),
                // Both ends have the same: the one that comes first in the topology stands first.
                End::Switch(far) if far.switch < id => continue,
                End::Switch(far) => format!("{name} - {}", topology[far.switch].name),
            };
            names.interfaces.insert(interface_of(&neighbour), interface);
        }
    }
    names
}

struct Watch<'a> {
    args: &'a IntWatchArgs,
    filter: FlowFilter,
    names: Names,
    collector: Collector,
    news: BTreeSet<Flow>,
    begun: Instant,
}

impl Watch<'_> {
    async fn run(mut self, socket: &UdpSocket, mut stop: Stop) -> Result<(), Failure> {
        let interval = Duration::from_millis(self.args.interval_ms);
        let mut due = tokio::time::interval_at(self.begun + interval, interval);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let seconds = self.args.seconds;
        let over = tokio::time::sleep(Duration::from_secs(seconds.unwrap_or(0)));
        tokio::pin!(over);
        let mut buffer = vec![0; DATAGRAM];
        loop {
            tokio::select! {
                biased;
                () = stop.asked() => break,
                () = &mut over, if seconds.is_some() => break,
                _ = due.tick() => {
                    if !self.show()? {
                        return Ok(());
                    }
                }
                received = socket.recv(&mut buffer) => {
                    let len = received.map_err(Failure::run)?;
                    self.take(&buffer[..len]);
                    let reports = self.collector.totals().reports;
                    if self.args.count.is_some_and(|count| reports >= count) {
                        break;
                    }
                }
            }
        }
        self.show_all().map(drop)
    }

    fn take(&mut self, datagram: &[u8]) {
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match self.collector.take(datagram, now) {
            Ok(seen) => {
                let flows = seen.into_iter().map(|seen| seen.flow);
                self.news
                    .extend(flows.filter(|flow| self.filter.matches(flow)));
            }
            Err(error) => tracing::warn!(%error, "a datagram that is no report"),
        }
    }

    /// Shows flows that there is news of. False, as below, when nobody reads any more.
    fn show(&mut self) -> Result<bool, Failure> {
        let news = std::mem::take(&mut self.news);
        if news.is_empty() {
            return Ok(true);
        }
        self.print(&self.update(&news))
    }

    fn show_all(&self) -> Result<bool, Failure> {
        let known = self.collector.flows().keys().copied();
        let all = known.filter(|flow| self.filter.matches(flow)).collect();
        self.print(&self.update(&all).last())
    }

    fn update(&self, flows: &BTreeSet<Flow>) -> Update {
        Update::of(&self.collector, flows, &self.names, self.begun.elapsed())
    }

    fn print(&self, update: &Update) -> Result<bool, Failure> {
        match self.args.format {
            // One object a line, so that a stream of them can be read.
            Format::Json => {
                let line = sonic_rs::to_string(update).map_err(Failure::run)?;
                output::write_next(&format!("{line}\n"))
            }
            Format::Text => output::write_next(&update.to_text()),
        }
    }
}

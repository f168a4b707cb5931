//! `meridian int watch`: a collector on a UDP address that shows flows as reports come in.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use ::topology::{IntIndicator, Topology};
use controller::intent::telemetry::node_of;
use controller::telemetry::int::collector::{Collector, Config};
use controller::telemetry::int::flow::{Flow, FlowFilter};
use controller::telemetry::int::packet::Indicator;

use super::view::{Names, Update};
use crate::args::{Format, IntWatchArgs};
use crate::failure::Failure;
use crate::{input, output};

/// Largest UDP datagram.
const DATAGRAM: usize = 65_535;
/// Flows that are kept.
const FLOWS: usize = 10_000;

/// Runs the collector until it is interrupted, or has seen enough.
pub(super) fn run(args: &IntWatchArgs) -> Result<(), Failure> {
    let filter: FlowFilter = args
        .flow
        .parse()
        .map_err(|error| Failure::Input(format!("error: {error}")))?;
    let topology = args.topology.as_deref().map(input::topology).transpose()?;
    let socket = UdpSocket::bind(args.listen).map_err(|error| {
        Failure::run(format!(
            "cannot listen on {}: {error}; another address is given by --listen",
            args.listen
        ))
    })?;
    output::say(format!("waiting for reports on {}", args.listen));
    let collector = Collector::new(Config {
        indicators: indicators(args, topology.as_ref()),
        flows: FLOWS,
    });
    Watch {
        args,
        filter,
        names: names(topology.as_ref()),
        socket,
        collector,
        buffer: vec![0; DATAGRAM],
        begun: Instant::now(),
    }
    .run()
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

fn names(topology: Option<&Topology>) -> Names {
    let named = |topology: &Topology| {
        let ids = topology.switch_ids();
        ids.map(|id| (node_of(topology, id), topology[id].name.clone()))
            .collect()
    };
    Names(topology.map(named).unwrap_or_default())
}

struct Watch<'a> {
    args: &'a IntWatchArgs,
    filter: FlowFilter,
    names: Names,
    socket: UdpSocket,
    collector: Collector,
    buffer: Vec<u8>,
    begun: Instant,
}

impl Watch<'_> {
    fn run(mut self) -> Result<(), Failure> {
        let interval = Duration::from_millis(self.args.interval_ms);
        let mut due = self.begun + interval;
        let mut news = BTreeSet::new();
        loop {
            let now = Instant::now();
            let over = self.args.seconds.is_some_and(|seconds| {
                now.duration_since(self.begun) >= Duration::from_secs(seconds)
            });
            let enough = self
                .args
                .count
                .is_some_and(|count| self.collector.totals().reports >= count);
            if over || enough || now >= due {
                self.show(&mut news)?;
                due = now + interval;
            }
            if over || enough {
                return Ok(());
            }
            let pause = due
                .saturating_duration_since(now)
                .max(Duration::from_millis(1));
            self.receive(pause, &mut news)?;
        }
    }

    /// Takes one datagram, if there is one in time.
    fn receive(&mut self, within: Duration, news: &mut BTreeSet<Flow>) -> Result<(), Failure> {
        self.socket
            .set_read_timeout(Some(within))
            .map_err(Failure::run)?;
        let len = match self.socket.recv(&mut self.buffer) {
            Ok(len) => len,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                return Ok(());
            }
            Err(error) => return Err(Failure::run(error)),
        };
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match self.collector.take(&self.buffer[..len], now) {
            Ok(seen) => {
                let flows = seen.into_iter().map(|seen| seen.flow);
                news.extend(flows.filter(|flow| self.filter.matches(flow)));
            }
            Err(error) => tracing::warn!(%error, "a datagram that is no report"),
        }
        Ok(())
    }

    fn show(&self, news: &mut BTreeSet<Flow>) -> Result<(), Failure> {
        if news.is_empty() {
            return Ok(());
        }
        let update = Update::of(&self.collector, news, &self.names, self.begun.elapsed());
        news.clear();
        match self.args.format {
            // One object a line, so that a stream of them can be read.
            Format::Json => {
                let line = sonic_rs::to_string(&update).map_err(Failure::run)?;
                output::write_all(&format!("{line}\n"))
            }
            Format::Text => output::write_all(&update.to_text()),
        }
    }
}

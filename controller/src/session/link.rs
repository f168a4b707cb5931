//! One switch: its session, what it should hold, and the task that answers its packets and brings the
//! session back when it is lost.

use super::endpoint::Endpoint;
use super::error::SwitchError;
use super::program::Program;
use super::{Config, LIMIT};
use crate::entries::{PacketInHeader, PacketOutHeader, ranks};
use crate::intent;
use crate::neighbour::{Reason, Responder};
use crate::reconcile::{self, State};
use p4runtime::client::{Config as SessionConfig, Session, Standing, Streams};
use p4runtime::v1::{PacketIn, PacketOut, Update};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;
use topology::Topology;

/// Packets of a switch that the controller saw.
#[derive(Debug, Default)]
pub(super) struct PacketCounts {
    pub(super) received: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) reconnects: AtomicU64,
}

/// One switch.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    program: Arc<Program>,
    setup: Arc<Setup>,
    session: Mutex<Result<Arc<Session>, String>>,
    desired: Mutex<Option<Arc<State>>>,
    responder: Responder,
    pub(super) packets: PacketCounts,
    /// Serves the session, and so holds it: it has to be stopped for the session to end.
    task: Mutex<Option<AbortHandle>>,
}

/// What all links have in common.
#[derive(Debug)]
pub(super) struct Setup {
    config: Config,
    /// Written behind the pipeline.
    behind_pipeline: Vec<Update>,
    /// Where telemetry reports go on.
    reports: Option<UdpSocket>,
}

/// Ethernet, IPv4 and UDP in front of a report.
const REPORT_AT: usize = 14 + 20 + 8;

impl Setup {
    pub(super) fn new(
        config: Config,
        topology: &Topology,
        program: &Program,
    ) -> Result<Self, SwitchError> {
        let open = |to: SocketAddr| {
            let any: IpAddr = match to {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((any, 0))?;
            socket.set_nonblocking(true)?;
            socket.connect(to)?;
            Ok::<_, std::io::Error>(socket)
        };
        Ok(Self {
            config,
            behind_pipeline: intent::telemetry::resources(topology, &program.index)?,
            reports: config
                .reports_to
                .map(open)
                .transpose()
                .map_err(SwitchError::Reports)?,
        })
    }

    /// Sends a report on to the collector. It is UDP to the last: what nobody takes is lost.
    fn pass_on(&self, frame: &[u8]) {
        if let (Some(socket), Some(report)) = (&self.reports, frame.get(REPORT_AT..))
            && let Err(error) = socket.send(report)
        {
            tracing::debug!(%error, "a telemetry report was not passed on");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Every critical section is one assignment or clone: there is nothing half done to see.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Connects, wins arbitration and pushes the pipeline if the switch does not run it. The task that
    /// serves the switch ends when the link is dropped.
    pub(super) async fn open(
        endpoint: Endpoint,
        program: Arc<Program>,
        setup: Arc<Setup>,
        responder: Responder,
    ) -> Result<(Arc<Self>, bool), SwitchError> {
        let link = Arc::new(Self {
            endpoint,
            program,
            setup,
            session: Mutex::new(Err("not yet".to_owned())),
            desired: Mutex::new(None),
            responder,
            packets: PacketCounts::default(),
            task: Mutex::new(None),
        });
        let (session, streams, pushed) = link.connect().await?;
        *lock(&link.session) = Ok(Arc::clone(&session));
        let weak = Arc::downgrade(&link);
        let task = tokio::spawn(async move {
            let mut current = Some((session, streams));
            while let Some((session, streams)) = current.take() {
                serve(&weak, &session, streams).await;
                drop(session);
                let Some(link) = weak.upgrade() else { return };
                if !link.setup.config.reconnect {
                    return;
                }
                drop(link);
                current = reconnect(&weak).await;
            }
        });
        *lock(&link.task) = Some(task.abort_handle());
        Ok((link, pushed))
    }

    async fn connect(&self) -> Result<(Arc<Session>, Streams, bool), SwitchError> {
        let channel = self
            .endpoint
            .dial()
            .await
            .map_err(SwitchError::Unreachable)?;
        let config = SessionConfig::new(self.endpoint.device_id, self.setup.config.election_id);
        let (session, streams) = Session::open(channel, config).await?;
        let mut standing = session.standing();
        if let Standing::NoPrimary { highest } = standing {
            // A controller with a higher id was here and left: the role is free for that id.
            standing = session
                .arbitrate(highest.max(self.setup.config.election_id))
                .await?;
        }
        if !standing.is_primary() {
            let primary = match standing {
                Standing::Backup { primary } => primary.to_string(),
                _ => "unknown".to_owned(),
            };
            return Err(SwitchError::NotPrimary { primary });
        }
        let pipeline = &self.program.pipeline;
        let pushed = session.pipeline_cookie().await? != Some(pipeline.cookie);
        if pushed {
            session.verify_and_commit(pipeline).await?;
        }
        // Also where the pipeline runs already: the policy may be another one since.
        reconcile::write_resources(&session, &self.setup.behind_pipeline).await?;
        Ok((Arc::new(session), streams, pushed))
    }

    /// The session, if there is one now.
    pub(super) fn session(&self) -> Result<Arc<Session>, SwitchError> {
        lock(&self.session)
            .clone()
            .map_err(SwitchError::Disconnected)
    }

    /// What the switch is to hold from now on, whenever it is reconciled.
    pub(super) fn set_desired(&self, state: Arc<State>) {
        *lock(&self.desired) = Some(state);
    }

    /// Entries that the switch is to hold.
    pub(super) fn desired_entries(&self) -> usize {
        lock(&self.desired)
            .as_ref()
            .map_or(0, |state| state.entries.len())
    }

    /// Brings the switch to what it should hold.
    pub(super) async fn reconcile(&self) -> Result<reconcile::Report, SwitchError> {
        let Some(desired) = lock(&self.desired).clone() else {
            return Ok(reconcile::Report::default());
        };
        let session = self.session()?;
        Ok(reconcile::reconcile(&session, &self.program.index, &desired, &ranks()).await?)
    }

    /// Submits a frame to the switch's pipeline again and again, until the link is dropped.
    pub(super) fn start_beat(self: &Arc<Self>, beat: &intent::Beat) -> Result<(), SwitchError> {
        let header = PacketOutHeader {
            egress_port: 0,
            submit_to_ingress: 1,
            pad: 0,
        };
        let packet = PacketOut {
            payload: beat.frame.clone(),
            metadata: header.encode()?,
        };
        let every = Duration::from_micros(beat.interval_us.max(1).into());
        let weak = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(every);
            // What was missed is of no use any more.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let Some(link) = weak.upgrade() else { return };
                if let Ok(session) = link.session() {
                    // The task that serves the session finds out that it is lost.
                    let _ = session.packet_out(packet.clone()).await;
                }
            }
        });
        Ok(())
    }

    /// The answer to a punted packet, if it gets one.
    fn answer(&self, packet: &PacketIn, limit: &mut Limit) -> Option<PacketOut> {
        self.packets.received.fetch_add(1, Ordering::Relaxed);
        let header = PacketInHeader::decode(&packet.metadata).ok()?;
        let reason = Reason::from_number(header.reason)?;
        if reason == Reason::IntReport {
            self.setup.pass_on(&packet.payload);
            return None;
        }
        let payload = self
            .responder
            .answer(header.ingress_port, reason, &packet.payload)?;
        if !limit.allows(Instant::now()) {
            self.packets.limited.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let header = PacketOutHeader {
            egress_port: header.ingress_port,
            submit_to_ingress: 0,
            pad: 0,
        };
        self.packets.answered.fetch_add(1, Ordering::Relaxed);
        Some(PacketOut {
            payload,
            metadata: header.encode().ok()?,
        })
    }
}

/// Answers packets until the session ends or the link is dropped.
async fn serve(link: &std::sync::Weak<Link>, session: &Session, mut streams: Streams) {
    let mut limit = Limit::new(LIMIT);
    while let Some(packet) = streams.packets.recv().await {
        let Some(link) = link.upgrade() else { return };
        if let Some(answer) = link.answer(&packet, &mut limit)
            && session.packet_out(answer).await.is_err()
        {
            break;
        }
    }
    let Some(link) = link.upgrade() else { return };
    let reason = match session.standing() {
        Standing::Closed { reason } => reason,
        _ => "the stream ended".to_owned(),
    };
    tracing::warn!(switch = %link.endpoint.name, %reason, "session lost");
    *lock(&link.session) = Err(reason);
}

/// Connects again, with pauses that double, and brings the switch to what it should hold. `None` when the
/// link is dropped meanwhile.
async fn reconnect(weak: &std::sync::Weak<Link>) -> Option<(Arc<Session>, Streams)> {
    let mut pause = weak.upgrade()?.setup.config.first_pause;
    loop {
        tokio::time::sleep(pause).await;
        let link = weak.upgrade()?;
        pause = (pause * 2).min(link.setup.config.longest_pause);
        let reason = match link.connect().await {
            Ok((session, streams, _)) => {
                *lock(&link.session) = Ok(Arc::clone(&session));
                link.packets.reconnects.fetch_add(1, Ordering::Relaxed);
                match link.reconcile().await {
                    Ok(report) => {
                        let updates = report.updates();
                        tracing::info!(switch = %link.endpoint.name, updates, "session restored");
                        return Some((session, streams));
                    }
                    Err(error) => error.to_string(),
                }
            }
            Err(error) => error.to_string(),
        };
        *lock(&link.session) = Err(reason);
    }
}

/// A token bucket, so that a loop or a flood of hopeless packets does not become a flood of answers.
#[derive(Debug)]
struct Limit {
    per_second: f64,
    tokens: f64,
    last: Option<Instant>,
}

impl Limit {
    fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            tokens: per_second,
            last: None,
        }
    }

    fn allows(&mut self, now: Instant) -> bool {
        let passed = self
            .last
            .map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        self.tokens = (self.tokens + passed.as_secs_f64() * self.per_second).min(self.per_second);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_limited_to_a_rate() {
        let mut limit = Limit::new(10);
        let start = Instant::now();
        let burst = (0..20).filter(|_| limit.allows(start)).count();
        assert_eq!(burst, 10);
        let later = start + Duration::from_millis(500);
        assert_eq!((0..20).filter(|_| limit.allows(later)).count(), 5);
    }
}

//! The P4Runtime v1.5 service of a switch.
//!
//! # For those who run a switch
//! A [`Server`] is a handle around a [`SharedSwitch`](crate::SharedSwitch); cloning it is cheap
//! and all clones are the same server. It starts no thread and needs a tokio runtime only to
//! serve connections:
//!
//! - over TCP or TLS with [`Server::serve`];
//! - over any other transport with [`Server::serve_incoming`];
//! - within the process with [`Server::channel`], which hands a client a
//!   [`tonic::transport::Channel`] over memory. Hundreds of switches in one process are no
//!   problem; give all of them one [`PipelineCache`], so that a program is loaded once.
//!
//! # Packets
//! Packets move through the [`Switch`](crate::Switch) under its own lock; the server is not on
//! that path. Whoever moves them has three duties:
//!
//! 1. When [`Switch::take_ready`](crate::Switch::take_ready) names the CPU port (and, in any
//!    case, after a batch of packets, for digests), **release the switch's lock** and call
//!    [`Server::poll_cpu`]: it takes the packets out of the CPU port, decodes their controller
//!    header and hands them to the primaries. It never waits: what a slow client does not take
//!    is dropped and counted.
//! 2. Call [`Server::tick`] about when it says: it sends digest lists and idle timeout
//!    notifications that are due, and returns when the next ones will be.
//! 3. Tell [`Server::set_port_up`] when a port goes down or up, instead of the switch itself:
//!    multicast groups and clone sessions with backup replicas follow.
//!
//! A packet-out goes into the switch at once, with the time of [`ServerConfig::clock`]; then
//! [`ServerConfig::notify`] is called, so that who moves packets looks at the ready ports.
//! `notify` is called from the runtime's threads without any lock held and must not block: set
//! a flag, write an event descriptor, send on a channel.
//!
//! # Time
//! The clock is the configuration's: real in a real switch, the emulator's own in virtual time.
//!
//! # How requests are ordered
//! A gate lets either one writer or any number of readers in: a batch is never interleaved with
//! another, and a read sees each batch whole or not at all. Packets are let in between the
//! updates of a batch (in slices) and between the pieces of a large read. A new primary is told
//! so only when the old one's last batch has ended.

mod accept;
mod actions;
pub mod arbitration;
mod bind;
mod cache;
mod check;
mod clients;
mod config;
mod data;
mod digests;
mod domain;
mod entries;
mod fault;
mod packets;
mod pipeline;
mod poll;
mod read;
mod reconcile;
pub mod roles;
mod sdn;
mod service;
mod state;
mod transport;
mod write;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use cache::PipelineCache;
pub use fault::Fault;
pub use service::P4RuntimeService;
pub use transport::ServeError;

use clients::Clients;
use state::{State, Target, lock};

use crate::SharedSwitch;
use crate::ids::Port;

/// Where the server gets the time from.
pub trait Clock: Send + Sync {
    /// The switch's clock, ns; the one whose times go to
    /// [`Switch::ingress`](crate::Switch::ingress).
    fn now(&self) -> u64;

    /// The same moment in ns since the Unix epoch, for timestamps in messages.
    fn epoch(&self) -> u64;
}

/// The machine's clock, counted from when this was made.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
    start_epoch: u64,
}

impl Default for RealClock {
    fn default() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        RealClock {
            start: Instant::now(),
            start_epoch: nanos(since_epoch),
        }
    }
}

impl Clock for RealClock {
    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    fn epoch(&self) -> u64 {
        self.start_epoch.saturating_add(self.now())
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Called when the control plane has put packets into the switch.
pub type Notify = Arc<dyn Fn() + Send + Sync>;

/// How a server behaves, and how much memory its clients may take.
#[derive(Clone)]
pub struct ServerConfig {
    /// TCP connections at a time; more wait until one ends.
    pub max_connections: usize,
    /// Calls, streams included, that one connection may have open.
    pub max_calls: u32,
    /// Bytes of the largest request. Device configs of large programs have tens of megabytes.
    pub max_request: usize,
    /// Open `StreamChannel`s in all; more get RESOURCE_EXHAUSTED.
    pub max_streams: usize,
    /// Clients that may be live in one role; more get RESOURCE_EXHAUSTED.
    pub max_streams_per_role: usize,
    /// Roles that are remembered, with their highest election ids; a claim of one more gets
    /// RESOURCE_EXHAUSTED.
    pub max_roles: usize,
    /// Messages that may wait for one client before more are dropped.
    pub stream_depth: usize,
    /// Bytes that may wait for one client before more are dropped.
    pub stream_bytes: usize,
    /// Digest messages that may wait or be unacknowledged, for each digest.
    pub digest_messages: usize,
    /// Replicas of all multicast groups and clone sessions; more get RESOURCE_EXHAUSTED.
    pub max_replicas: usize,
    /// Cells of all counters, meters and registers of a program, in words of 8 bytes for
    /// registers; a program that wants more is refused.
    pub max_cells: usize,
    /// How long, in all, a client may leave the answer to a read request lying while writes
    /// wait.
    pub slow_reader: Duration,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Called after a packet-out went into the switch.
    pub notify: Option<Notify>,
    /// Programs loaded already, shared between servers.
    pub pipelines: PipelineCache,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            max_connections: 256,
            max_calls: 256,
            max_request: 128 << 20,
            max_streams: 1024,
            max_streams_per_role: 64,
            max_roles: 256,
            stream_depth: 1024,
            stream_bytes: 16 << 20,
            digest_messages: 65_536,
            max_replicas: 1 << 20,
            max_cells: 1 << 26,
            slow_reader: Duration::from_secs(10),
            clock: Arc::new(RealClock::default()),
            notify: None,
            pipelines: PipelineCache::default(),
        }
    }
}

/// What the server did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Open streams.
    pub streams: usize,
    /// Packets taken from the CPU port.
    pub packet_ins: u64,
    /// Packets of controllers put into the switch.
    pub packet_outs: u64,
    /// Digest lists sent.
    pub digest_lists: u64,
    /// Messages dropped because a client did not read its stream fast enough.
    pub dropped: u64,
}

/// The P4Runtime service of one switch; see the module's documentation.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// What all clones and connections of a server share.
///
/// Locks are taken in this order, and never in another: `gate`, `state`, `switch`. `clients` and
/// `live` are held only for moments in which nothing else is locked by their holder.
struct Shared {
    device_id: u64,
    cpu_port: Option<Port>,
    drop_port: Port,
    switch: SharedSwitch,
    config: ServerConfig,
    gate: Arc<tokio::sync::RwLock<Gate>>,
    state: Arc<Mutex<State>>,
    live: RwLock<Option<Target>>,
    clients: Mutex<Clients>,
    /// Writers and other changers that wait for the gate.
    waiting: AtomicUsize,
    counts: Counts,
}

/// What only a writer may change; held shared by readers.
#[derive(Default)]
struct Gate {
    saved: Option<config::Saved>,
}

#[derive(Default)]
struct Counts {
    packet_ins: AtomicU64,
    packet_outs: AtomicU64,
    digest_lists: AtomicU64,
}

impl Server {
    /// A server for `switch`, whose device id and CPU port it takes from the switch's
    /// configuration.
    pub fn new(switch: SharedSwitch, config: ServerConfig) -> Self {
        let (device_id, cpu_port, drop_port) = {
            let switch = switch.lock();
            let config = switch.config();
            (config.device_id, config.cpu_port, config.drop_port)
        };
        let clients = Clients::new(device_id, &config);
        let shared = Shared {
            device_id,
            cpu_port,
            drop_port,
            switch,
            config,
            gate: Arc::default(),
            state: Arc::default(),
            live: RwLock::new(None),
            clients: Mutex::new(clients),
            waiting: AtomicUsize::new(0),
            counts: Counts::default(),
        };
        Server {
            shared: Arc::new(shared),
        }
    }

    /// The switch it serves.
    pub fn switch(&self) -> &SharedSwitch {
        &self.shared.switch
    }

    /// The device id clients have to name.
    pub fn device_id(&self) -> u64 {
        self.shared.device_id
    }

    /// The tonic service, for a router of one's own.
    pub fn service(&self) -> P4RuntimeService {
        P4RuntimeService(self.shared.clone())
    }

    /// Installs a pipeline without a controller, as from the command line.
    ///
    /// # Errors
    /// A [`Fault`] that says what is wrong with the P4Info or the JSON.
    pub async fn install(
        &self,
        p4info: p4runtime::config::v1::P4Info,
        device_config: Vec<u8>,
    ) -> Result<(), Fault> {
        let shared = &self.shared;
        let pipeline = shared
            .config
            .pipelines
            .bind(p4info, device_config, shared.cpu_port)?;
        shared.check_room(&pipeline)?;
        let mut gate = shared.writing().await;
        shared.commit(&mut gate, pipeline, None);
        Ok(())
    }

    /// What the server did so far.
    pub fn stats(&self) -> ServerStats {
        let counts = &self.shared.counts;
        let clients = lock(&self.shared.clients);
        ServerStats {
            streams: clients.len(),
            packet_ins: counts.packet_ins.load(Ordering::Relaxed),
            packet_outs: counts.packet_outs.load(Ordering::Relaxed),
            digest_lists: counts.digest_lists.load(Ordering::Relaxed),
            dropped: clients.dropped(),
        }
    }
}

impl Shared {
    fn now(&self) -> u64 {
        self.config.clock.now()
    }

    /// The gate, for one that changes something. Readers that stall learn that somebody waits.
    async fn writing(&self) -> tokio::sync::RwLockWriteGuard<'_, Gate> {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        self.gate.write().await
    }

    /// What packets run through.
    fn live(&self) -> Option<Target> {
        self.live
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_live(&self, target: Option<Target>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = target;
    }

    /// What reads and writes refer to.
    fn target(&self, gate: &Gate) -> Option<Target> {
        match &gate.saved {
            Some(saved) => Some(saved.target.clone()),
            None => self.live(),
        }
    }
}

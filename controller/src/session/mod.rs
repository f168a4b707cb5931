//! The controller's sessions with all switches: connect, push, reconcile, write, read counters.
//!
//! What switches should hold is decided by [`Desired`], which knows no session; [`Controller`] carries it
//! out, on all switches at once. A session that is lost is opened again in the background, and the switch
//! brought to what it should hold then.

mod endpoint;
mod error;
mod link;
mod program;
#[cfg(test)]
mod tests;

pub use endpoint::Endpoint;
pub use error::{FleetError, SwitchError};
pub use program::Program;

use crate::desired::{Change, Desired};
use crate::intent::{Ars, beats};
use crate::neighbour::Responder;
use crate::reconcile::{self, State, Update};
use crate::telemetry::{SwitchCounters, Telemetry};
use link::{Link, Setup};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use topology::{SwitchId, Topology};

/// Most answers per second to packets of one switch.
const LIMIT: u32 = 1000;

/// How the controller behaves towards switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Election id; the highest among several controllers is primary. Not 0.
    pub election_id: u128,
    /// Whether sessions that are lost are opened again.
    pub reconnect: bool,
    /// Pause before the first attempt to open a session again; each further pause is twice as long.
    pub first_pause: Duration,
    /// Longest pause between attempts.
    pub longest_pause: Duration,
    /// Where telemetry reports go on, as UDP datagrams, that switches send to the controller.
    pub reports_to: Option<SocketAddr>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            election_id: 1,
            reconnect: true,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            reports_to: None,
        }
    }
}

/// What connecting did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// Switches that were given the pipeline.
    pub pushed: usize,
    /// Switches that ran it already.
    pub kept: usize,
}

/// What reconciling all switches did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetReport {
    /// By switch.
    pub switches: BTreeMap<SwitchId, reconcile::Report>,
}

impl FleetReport {
    /// The sum over all switches.
    #[must_use]
    pub fn total(&self) -> reconcile::Report {
        let mut total = reconcile::Report::default();
        for report in self.switches.values() {
            total += *report;
        }
        total
    }
}

/// One switch as the controller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchStatus {
    /// Its name.
    pub name: String,
    /// P4Runtime device id.
    pub device_id: u64,
    /// Whether there is a session; if not, why.
    pub session: Result<(), String>,
    /// Entries that it should hold.
    pub desired_entries: usize,
    /// Packets that it punted to the controller.
    pub packets_in: u64,
    /// Packets that the controller answered.
    pub answered: u64,
    /// Packets that got no answer because there were too many.
    pub limited: u64,
    /// How often the session was restored.
    pub reconnects: u64,
}

/// Sessions with all switches of a topology.
#[derive(Debug)]
pub struct Controller {
    topology: Arc<Topology>,
    program: Arc<Program>,
    links: Vec<Arc<Link>>,
}

impl Controller {
    /// Connects to all switches at once, wins arbitration on each, and pushes the pipeline to those that do
    /// not run it. `endpoints` are matched to the topology by name.
    ///
    /// # Errors
    /// A switch without an endpoint or the other way round; switches that cannot be reached, that another
    /// controller holds or that refuse the pipeline. All of them are listed.
    pub async fn connect(
        topology: Arc<Topology>,
        program: Arc<Program>,
        endpoints: Vec<Endpoint>,
        config: Config,
    ) -> Result<(Self, Connected), FleetError> {
        let endpoints = match_endpoints(&topology, endpoints)?;
        let setup = Setup::new(config, &topology, &program).map_err(|error| FleetError {
            what: "preparing",
            switches: endpoints.len(),
            failures: vec![("telemetry".to_owned(), error)],
        })?;
        let setup = Arc::new(setup);
        let tasks = endpoints.into_iter().map(|(switch, endpoint)| {
            let setup = Arc::clone(&setup);
            let responder = Responder::new(&topology, switch.0);
            let program = Arc::clone(&program);
            let name = endpoint.name.clone();
            (
                switch,
                name,
                Link::open(endpoint, program, setup, responder),
            )
        });
        let opened = all("connecting", tasks).await?;
        let pushed = opened.values().filter(|(_, pushed)| *pushed).count();
        let connected = Connected {
            pushed,
            kept: opened.len() - pushed,
        };
        let links = opened.into_values().map(|(link, _)| link).collect();
        Ok((
            Self {
                topology,
                program,
                links,
            },
            connected,
        ))
    }

    /// The program that the switches run.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Takes note of what the switches should hold; nothing is written. Sessions that are restored
    /// later bring their switches to it.
    pub fn set_desired(&self, desired: &Desired) {
        for (link, state) in self.links.iter().zip(desired.states()) {
            link.set_desired(Arc::clone(state));
        }
    }

    /// Brings all switches to `desired`: reads, compares, writes what differs, and reads again. Entries that
    /// are not desired are removed.
    ///
    /// # Errors
    /// The switches that failed, and why; the others are done.
    pub async fn reconcile(&self, desired: &Desired) -> Result<FleetReport, FleetError> {
        self.set_desired(desired);
        let tasks = self.each(|link| async move { link.reconcile().await });
        Ok(FleetReport {
            switches: all("reconciling", tasks).await?,
        })
    }

    /// Writes one batch to one switch.
    ///
    /// # Errors
    /// The switch is not connected, or did not do every update.
    pub async fn write(&self, switch: SwitchId, batch: &[Update]) -> Result<(), SwitchError> {
        let session = self.link(switch)?.session()?;
        Ok(reconcile::write_batch(&session, &self.program.index, batch).await?)
    }

    /// Writes changes to their switches, all at once, the batches of each in order. Returns the number
    /// of updates.
    ///
    /// # Errors
    /// The switches that failed, and why. [`reconcile`](Self::reconcile) repairs what is half done.
    pub async fn apply(&self, changes: &[Change]) -> Result<usize, FleetError> {
        let updates = changes.iter().map(|c| c.plan.len()).sum();
        let tasks = changes.iter().filter_map(|change| {
            let link = Arc::clone(self.links.get(change.switch.index())?);
            let (program, plan) = (Arc::clone(&self.program), change.plan.clone());
            let name = link.endpoint.name.clone();
            let write = async move {
                let session = link.session()?;
                Ok(reconcile::write_plan(&session, &program.index, &plan).await?)
            };
            Some((change.switch, name, write))
        });
        all("writing", tasks).await?;
        Ok(updates)
    }

    /// Makes every switch's hellos and probes ([`intent::beats`](crate::intent::beats)): the data plane has no timers, so
    /// its frames are submitted by the CPU port, each at its interval, until the controller is dropped. What they
    /// lead to is decided in the data plane alone. While a session is lost its switch gets none, and takes none of
    /// its neighbours for dead.
    ///
    /// # Errors
    /// The program's packet-out header is another one.
    pub fn start_beats(&self, ars: &Ars) -> Result<(), SwitchError> {
        for (switch, link) in self.topology.switch_ids().zip(&self.links) {
            for beat in beats(&self.topology, switch, ars) {
                link.start_beat(&beat)?;
            }
        }
        Ok(())
    }

    /// Reads the table entries that a switch holds.
    ///
    /// # Errors
    /// The switch is not connected, or refuses the read.
    pub async fn read(&self, switch: SwitchId) -> Result<State, SwitchError> {
        let session = self.link(switch)?.session()?;
        Ok(reconcile::read_state(&session, &self.program.index).await?)
    }

    /// Reads the counters of all switches.
    ///
    /// # Errors
    /// The switches that failed, and why.
    pub async fn telemetry(&self) -> Result<Telemetry, FleetError> {
        let program = Arc::clone(&self.program);
        let tasks = self.each(move |link| {
            let program = Arc::clone(&program);
            async move {
                let patterns = SwitchCounters::patterns(&program.index)?;
                let entities = link.session()?.read_all(patterns).await?;
                Ok(SwitchCounters::from_entities(&program.index, &entities))
            }
        });
        let counters = all("reading counters", tasks).await?;
        Ok(Telemetry {
            switches: counters.into_values().collect(),
        })
    }

    /// All switches as the controller sees them; asks none.
    #[must_use]
    pub fn status(&self) -> Vec<SwitchStatus> {
        self.links.iter().map(|link| link.status()).collect()
    }

    fn link(&self, switch: SwitchId) -> Result<&Arc<Link>, SwitchError> {
        self.links.get(switch.index()).ok_or_else(|| {
            let count = self.topology.switches().len();
            SwitchError::Mismatch(format!("there is no switch {switch} among {count}"))
        })
    }

    /// A task for every switch.
    fn each<F, R>(&self, task: F) -> impl Iterator<Item = (SwitchId, String, R)>
    where
        F: Fn(Arc<Link>) -> R,
    {
        self.topology
            .switch_ids()
            .zip(&self.links)
            .map(move |(switch, link)| (switch, link.endpoint.name.clone(), task(Arc::clone(link))))
    }
}

impl Link {
    fn status(&self) -> SwitchStatus {
        let packets = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        SwitchStatus {
            name: self.endpoint.name.clone(),
            device_id: self.endpoint.device_id,
            session: self.session().map(drop).map_err(|error| error.to_string()),
            desired_entries: self.desired_entries(),
            packets_in: packets(&self.packets.received),
            answered: packets(&self.packets.answered),
            limited: packets(&self.packets.limited),
            reconnects: packets(&self.packets.reconnects),
        }
    }
}

/// Runs a task for each of some switches, all at once.
async fn all<T, R>(
    what: &'static str,
    tasks: impl Iterator<Item = (SwitchId, String, R)>,
) -> Result<BTreeMap<SwitchId, T>, FleetError>
where
    T: Send + 'static,
    R: Future<Output = Result<T, SwitchError>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let mut names = BTreeMap::new();
    for (switch, name, task) in tasks {
        names.insert(switch, name);
        running.spawn(async move { (switch, task.await) });
    }
    let switches = names.len();
    let mut done = BTreeMap::new();
    let mut failed = BTreeMap::new();
    while let Some(joined) = running.join_next().await {
        match joined {
            Ok((switch, Ok(value))) => drop(done.insert(switch, value)),
            Ok((switch, Err(error))) => drop(failed.insert(switch, error)),
            // The tasks are never cancelled, so this one panicked: so does the caller.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
    if failed.is_empty() {
        return Ok(done);
    }
    let failures = failed
        .into_iter()
        .map(|(switch, error)| (names.remove(&switch).unwrap_or_default(), error))
        .collect();
    Err(FleetError {
        what,
        switches,
        failures,
    })
}

/// The endpoint of every switch, in the topology's order.
fn match_endpoints(
    topology: &Topology,
    endpoints: Vec<Endpoint>,
) -> Result<BTreeMap<SwitchId, Endpoint>, FleetError> {
    let mut matched = BTreeMap::new();
    let mut failures = Vec::new();
    for endpoint in endpoints {
        let fault = match topology.find_switch(&endpoint.name) {
            Err(error) => error.to_string(),
            Ok(switch) if topology[switch].device_id != endpoint.device_id => format!(
                "its endpoint has device id {}, the topology says {}",
                endpoint.device_id, topology[switch].device_id
            ),
            Ok(switch) if matched.contains_key(&switch) => "it has two endpoints".to_owned(),
            Ok(switch) => {
                matched.insert(switch, endpoint);
                continue;
            }
        };
        failures.push((endpoint.name, SwitchError::Mismatch(fault)));
    }
    for switch in topology.switch_ids().filter(|s| !matched.contains_key(s)) {
        let name = topology[switch].name.clone();
        if failures.iter().all(|(other, _)| *other != name) {
            failures.push((name, SwitchError::Mismatch("it has no endpoint".to_owned())));
        }
    }
    if failures.is_empty() {
        return Ok(matched);
    }
    let switches = topology.switches().len();
    Err(FleetError {
        what: "finding the way to switches",
        switches,
        failures,
    })
}

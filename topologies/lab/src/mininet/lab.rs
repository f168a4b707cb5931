//! The driver: brings a plan up, runs commands in its hosts, tears it down.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::time::Duration;

use tokio::sync::Mutex;
use topology::LinkId;

use crate::fabric::{Address, Fabric, SwitchEndpoint};

use super::checks;
use super::error::Error;
use super::plan::{HostPlan, NicPlan, Plan, SwitchPlan};
use super::protocol::{Event, Progress, Request, SwitchExit};
use super::runner::{Events, Runner};

/// A fabric that runs in Mininet. Dropping it tears it down and blocks until nothing is left;
/// [`tear_down`](Self::tear_down) does so without blocking an async runtime.
#[derive(Debug)]
pub struct Lab {
    plan: Plan,
    logs: PathBuf,
    runner: Runner,
    events: Mutex<Events>,
    /// How many were started.
    pub(super) measurements: AtomicU16,
}

/// What a command in a host did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Exit code, or minus the number of the signal that ended it.
    pub code: i32,
    /// It was killed because its time was over.
    pub timed_out: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// It ended by itself, with code 0.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.code == 0 && !self.timed_out
    }
}

impl Lab {
    /// Brings a fabric up: namespaces, links, addresses, one switch program per switch, all of
    /// them listening. No switch has a pipeline yet. What an earlier run of the same fabric left
    /// behind when it was killed is removed first.
    ///
    /// Dropping the future tears down what has been built, and blocks meanwhile.
    ///
    /// # Errors
    /// What is missing (root, Mininet, tools, the program, free ports), or what failed. Nothing
    /// is left behind then.
    pub async fn bring_up(
        plan: Plan,
        mut on_progress: impl FnMut(&Progress) + Send,
    ) -> Result<Self, Error> {
        let (plan, python) = on_thread(move || {
            let python = checks::check(&plan)?;
            Ok((plan, python))
        })
        .await?;
        let (runner, mut events) = Runner::start(&python, &plan)?;
        let mut failed = None;
        loop {
            match events.recv().await {
                Some(Event::Progress(progress)) => on_progress(&progress),
                Some(Event::Ready { logs }) => {
                    let (logs, events) = (PathBuf::from(logs), Mutex::new(events));
                    return Ok(Self {
                        plan,
                        logs,
                        runner,
                        events,
                        measurements: AtomicU16::new(0),
                    });
                }
                // The runner tears down before it says that it has stopped.
                Some(Event::Failed(failure)) => failed = Some(failure),
                Some(Event::SwitchExited(exit)) => {
                    tracing::debug!(exit.switch, exit.code, "a switch ended during bring-up");
                }
                Some(Event::Stopped) | None => break,
            }
        }
        let error = failed.map_or_else(|| runner.gone(), |failure| failure.into_error(&plan));
        on_thread(move || {
            drop(runner);
            Ok(())
        })
        .await?;
        Err(error)
    }

    /// What was built.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where its switches are, in the topology's order.
    #[must_use]
    pub fn endpoints(&self) -> Vec<SwitchEndpoint> {
        let endpoint = |switch: &SwitchPlan| SwitchEndpoint {
            name: switch.name.clone(),
            device_id: switch.device_id,
            address: Address::Network(format!("127.0.0.1:{}", switch.grpc_port)),
        };
        self.plan.switches.iter().map(endpoint).collect()
    }

    /// The fabric as every bring-up hands it back. It ends when the `Fabric` and all other
    /// holders of this `Arc` are gone.
    #[must_use]
    pub fn fabric(self: &Arc<Self>) -> Fabric {
        Fabric::new(&self.plan.fabric, self.endpoints(), Arc::clone(self))
    }

    /// Folder with one log per switch, `NAME.log`. Removed at teardown unless the plan's options
    /// chose it.
    #[must_use]
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// Runs a shell command in a host, as root, with no input; it is killed after `timeout`.
    ///
    /// # Errors
    /// When there is no such host or the runner has ended. A command that fails is no error.
    pub async fn exec(
        &self,
        host: &str,
        command: &str,
        timeout: Duration,
    ) -> Result<Output, Error> {
        self.host(host)?;
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let answer = self
            .runner
            .ask(|id| Request::Exec {
                id,
                host,
                command,
                timeout_ms,
            })
            .await?;
        Ok(Output {
            code: answer.code,
            timed_out: answer.timed_out,
            stdout: answer.out,
            stderr: answer.err,
        })
    }

    /// Pulls (`up` false) or plugs a link's cable: the interfaces of its switches go down or up,
    /// and what is at their other ends loses or gets carrier. Not for simple_switch_grpc: once an
    /// interface that it reads from has gone down, it forwards nothing on any port.
    ///
    /// # Errors
    /// When the runner has ended.
    pub async fn set_link(&self, link: LinkId, up: bool) -> Result<(), Error> {
        self.runner
            .ask(|id| Request::Link {
                id,
                link: link.0,
                up,
            })
            .await
            .map(|_| ())
    }

    /// Waits until a switch program ends although it should not.
    ///
    /// # Errors
    /// When the runner itself has ended.
    pub async fn switch_exited(&self) -> Result<SwitchExit, Error> {
        let mut events = self.events.lock().await;
        loop {
            match events.recv().await {
                Some(Event::SwitchExited(exit)) => return Ok(exit),
                Some(Event::Stopped) | None => return Err(self.runner.gone()),
                Some(_) => {}
            }
        }
    }

    /// Ends everything: processes, interfaces, namespaces, temporary files.
    pub async fn tear_down(self) {
        // Nobody to tell if this thread can't be joined: the runtime is ending.
        let _ = on_thread(move || {
            drop(self);
            Ok(())
        })
        .await;
    }

    pub(super) fn host(&self, name: &str) -> Result<&HostPlan, Error> {
        self.plan.host(name).ok_or_else(|| {
            let names: Vec<&str> = self
                .plan
                .hosts
                .iter()
                .map(|host| host.name.as_str())
                .collect();
            Error::NoSuchHost {
                name: name.to_owned(),
                valid: names.join(", "),
            }
        })
    }

    pub(super) fn nic(&self, host: &str, rail: u16) -> Result<&NicPlan, Error> {
        let plan = self.host(host)?;
        plan.nics
            .iter()
            .find(|nic| nic.rail == rail)
            .ok_or_else(|| {
                let rails: Vec<String> = plan.nics.iter().map(|nic| nic.rail.to_string()).collect();
                Error::NoSuchNic {
                    host: host.to_owned(),
                    rail,
                    valid: rails.join(", "),
                }
            })
    }
}

/// Runs what blocks outside the async runtime's workers.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(Error::Runner {
                message: error.to_string(),
            })
        })
}

//! P4Runtime servers for the emulated switches, in memory.
//!
//! The servers run on a tokio runtime and stand still with respect to virtual time: they stamp what they do with the
//! time at which the emulation last stopped.

use std::sync::atomic::{AtomicU64, Ordering};

use p4runtime::transport;
use softswitch::server::{Clock, PipelineCache, Server, ServerConfig};
use tokio::task::JoinHandle;

use super::Emulator;
use crate::fabric::{Address, Fabric, SwitchEndpoint};

/// Virtual time as the servers see it. The epoch is the beginning of the emulation.
#[derive(Debug, Default)]
pub(super) struct VirtualClock(AtomicU64);

impl VirtualClock {
    pub(super) fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn epoch(&self) -> u64 {
        self.now()
    }
}

/// Tasks that end when dropped.
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Emulator {
    /// Starts a P4Runtime server for every switch and says how to reach them; `name` is the fabric's. Must be called
    /// within a tokio runtime, on which the servers run until the fabric is dropped. Programs that several switches
    /// get are loaded once.
    pub fn serve(&mut self, name: &str) -> Fabric {
        self.clock.set(self.now());
        let pipelines = PipelineCache::default();
        let mut tasks = Vec::with_capacity(self.switches.len());
        let mut endpoints = Vec::with_capacity(self.switches.len());
        for node in &mut self.switches {
            let server = Server::new(
                node.core.clone(),
                ServerConfig {
                    clock: self.clock.clone(),
                    pipelines: pipelines.clone(),
                    ..ServerConfig::default()
                },
            );
            let (connector, incoming) = transport::in_memory();
            endpoints.push(SwitchEndpoint {
                name: node.name.clone(),
                device_id: server.device_id(),
                address: Address::Memory(connector),
            });
            node.server = Some(server.clone());
            let switch = node.name.clone();
            tasks.push(tokio::spawn(async move {
                if let Err(error) = server.serve_incoming(incoming).await {
                    tracing::warn!(%switch, %error, "the P4Runtime server of an emulated switch ended");
                }
            }));
        }
        Fabric::new(name, endpoints, Tasks(tasks))
    }

    /// Makes virtual time known to the servers and lets them take what the switches have for their controllers.
    pub(super) fn tell_servers(&mut self) {
        self.clock.set(self.now());
        for node in &self.switches {
            if let Some(server) = &node.server {
                server.poll_cpu();
                server.tick();
            }
        }
    }
}

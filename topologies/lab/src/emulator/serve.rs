//! P4Runtime servers for the emulated switches, in memory or on loopback ports.
//!
//! The servers run on a tokio runtime and stand still with respect to virtual time: they stamp what they do with the
//! time at which the emulation last stopped.

use std::future::pending;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

use p4runtime::transport;
use softswitch::server::{Clock, PipelineCache, ServeError, Server, ServerConfig};
use tokio::net::TcpListener;
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

fn report(switch: &str, ended: Result<(), ServeError>) {
    if let Err(error) = ended {
        tracing::warn!(%switch, %error, "the P4Runtime server of an emulated switch ended");
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// A TCP port that a switch's server can't have.
#[derive(Debug, thiserror::Error)]
#[error("switch {switch} can't listen on 127.0.0.1:{port}: {source}; choose other ports")]
pub struct ListenError {
    /// The switch.
    pub switch: String,
    /// The port.
    pub port: u32,
    /// Why not.
    pub source: std::io::Error,
}

impl Emulator {
    /// Starts a P4Runtime server for every switch and says how to reach them; `name` is the fabric's. Must be called
    /// within a tokio runtime, on which the servers run until the fabric is dropped. Programs that several switches
    /// get are loaded once.
    pub fn serve(&mut self, name: &str) -> Fabric {
        let mut tasks = Vec::with_capacity(self.switches.len());
        let mut endpoints = Vec::with_capacity(self.switches.len());
        for (switch, server) in self.servers() {
            let (connector, incoming) = transport::in_memory();
            endpoints.push(SwitchEndpoint {
                name: switch.clone(),
                device_id: server.device_id(),
                address: Address::Memory(connector),
            });
            tasks.push(tokio::spawn(async move {
                report(&switch, server.serve_incoming(incoming).await);
            }));
        }
        Fabric::new(name, endpoints, Tasks(tasks))
    }

    /// As [`Self::serve`], with every switch's server on a TCP port of 127.0.0.1, the first on `first_port`, so that
    /// other P4Runtime clients find them too.
    ///
    /// # Errors
    /// [`ListenError`] when a port is taken or there is none of that number; no server runs then.
    pub async fn serve_tcp(&mut self, name: &str, first_port: u16) -> Result<Fabric, ListenError> {
        let mut listening = Vec::with_capacity(self.switches.len());
        for (port, node) in (u32::from(first_port)..).zip(&self.switches) {
            let bound = match u16::try_from(port) {
                Ok(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await,
                Err(_) => Err(std::io::Error::other("ports end at 65535")),
            };
            listening.push(bound.map_err(|source| ListenError {
                switch: node.name.clone(),
                port,
                source,
            })?);
        }
        let mut tasks = Vec::with_capacity(listening.len());
        let mut endpoints = Vec::with_capacity(listening.len());
        for ((switch, server), listener) in self.servers().into_iter().zip(listening) {
            let address = listener.local_addr().map(|a| a.to_string());
            endpoints.push(SwitchEndpoint {
                name: switch.clone(),
                device_id: server.device_id(),
                address: Address::Network(address.unwrap_or_default()),
            });
            tasks.push(tokio::spawn(async move {
                report(&switch, server.serve(listener, None, pending()).await);
            }));
        }
        Ok(Fabric::new(name, endpoints, Tasks(tasks)))
    }

    /// A new server for every switch, with the switch's name.
    fn servers(&mut self) -> Vec<(String, Server)> {
        self.clock.set(self.now());
        let pipelines = PipelineCache::default();
        let mut servers = Vec::with_capacity(self.switches.len());
        for node in &mut self.switches {
            let server = Server::new(
                node.core.clone(),
                ServerConfig {
                    clock: self.clock.clone(),
                    pipelines: pipelines.clone(),
                    ..ServerConfig::default()
                },
            );
            node.server = Some(server.clone());
            servers.push((node.name.clone(), server));
        }
        servers
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

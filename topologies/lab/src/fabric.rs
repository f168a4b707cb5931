//! What every bring-up hands back: switches that answer P4Runtime, and a way to end it all.

use std::fmt;

use p4runtime::transport::{self, Connector};
use tonic::transport::Channel;

/// Where a switch's P4Runtime server is.
#[derive(Clone, Debug)]
pub enum Address {
    /// In this process.
    Memory(Connector),
    /// `host:port`, or a URI.
    Network(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Memory(_) => f.write_str("in-memory"),
            Address::Network(address) => f.write_str(address),
        }
    }
}

/// A switch of a running fabric.
#[derive(Clone, Debug)]
pub struct SwitchEndpoint {
    /// Its name in the topology.
    pub name: String,
    /// P4Runtime device id.
    pub device_id: u64,
    /// Where its server is.
    pub address: Address,
}

impl SwitchEndpoint {
    /// Connects; every channel is a connection of its own.
    ///
    /// # Errors
    /// When the address is none or nobody answers.
    pub async fn channel(&self) -> Result<Channel, transport::Error> {
        match &self.address {
            Address::Memory(connector) => connector.channel().await,
            Address::Network(address) => transport::connect(address).await,
        }
    }
}

/// A running fabric. Dropping it tears it down, which may block; [`Fabric::tear_down`] does so off the async
/// runtime's workers.
pub struct Fabric {
    /// The topology's name.
    pub name: String,
    /// Its switches, in the topology's order.
    pub switches: Vec<SwitchEndpoint>,
    /// What runs, and ends when dropped.
    running: Box<dyn Send>,
}

impl Fabric {
    /// A fabric with these switches; dropping `running` ends it.
    pub fn new(
        name: impl Into<String>,
        switches: Vec<SwitchEndpoint>,
        running: impl Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            switches,
            running: Box::new(running),
        }
    }

    /// The switch of this name.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<&SwitchEndpoint> {
        self.switches.iter().find(|switch| switch.name == name)
    }

    /// Ends everything that the bring-up started.
    pub async fn tear_down(self) {
        let running = self.running;
        // The thread can only be missing when the runtime is ending: the drop has then happened.
        let _ = tokio::task::spawn_blocking(move || drop(running)).await;
    }
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric")
            .field("name", &self.name)
            .field("switches", &self.switches)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn tearing_down_ends_what_runs_and_a_gone_switch_is_an_error() {
        let (connector, incoming) = transport::in_memory();
        let alive = Arc::new(());
        let switches = vec![
            SwitchEndpoint {
                name: "leaf-1".into(),
                device_id: 1,
                address: Address::Memory(connector),
            },
            SwitchEndpoint {
                name: "leaf-2".into(),
                device_id: 2,
                address: Address::Network("no port".into()),
            },
        ];
        let fabric = Fabric::new("test", switches, (incoming, alive.clone()));
        let [memory, network] = ["leaf-1", "leaf-2"].map(|n| fabric.switch(n).unwrap().clone());
        assert!(fabric.switch("spine").is_none());
        assert_eq!(Arc::strong_count(&alive), 2);
        fabric.tear_down().await;
        assert_eq!(Arc::strong_count(&alive), 1);
        assert!(memory.channel().await.is_err());
        assert!(
            network
                .channel()
                .await
                .unwrap_err()
                .to_string()
                .contains("no port")
        );
    }
}

//! How to reach a switch.

use p4runtime::transport;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tonic::transport::Channel;

type Dialled = Pin<Box<dyn Future<Output = Result<Channel, String>> + Send>>;

/// A switch's P4Runtime server.
#[derive(Clone)]
pub struct Endpoint {
    /// The switch's name in the topology.
    pub name: String,
    /// P4Runtime device id.
    pub device_id: u64,
    dial: Arc<dyn Fn() -> Dialled + Send + Sync>,
}

impl Endpoint {
    /// A switch that is reached by calling `dial`, which may happen more than once.
    pub fn new<F, R, E>(name: impl Into<String>, device_id: u64, dial: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Channel, E>> + Send + 'static,
        E: fmt::Display,
    {
        let dial = move || -> Dialled {
            let dialled = dial();
            Box::pin(async move { dialled.await.map_err(|error| error.to_string()) })
        };
        Self {
            name: name.into(),
            device_id,
            dial: Arc::new(dial),
        }
    }

    /// A switch whose server is at `address`, as `host:port`.
    pub fn at(name: impl Into<String>, device_id: u64, address: impl Into<String>) -> Self {
        let address = address.into();
        Self::new(name, device_id, move || {
            let address = address.clone();
            async move { transport::connect(&address).await }
        })
    }

    /// Connects; the error is in words.
    pub(super) async fn dial(&self) -> Result<Channel, String> {
        (self.dial)().await
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("device_id", &self.device_id)
            .finish_non_exhaustive()
    }
}

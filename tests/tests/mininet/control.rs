//! The controller on a fabric that is up.

use std::sync::Arc;

use controller::desired::Desired;
use controller::intent::{Options, Planner};
use controller::routing::LinkSet;
use controller::session::{Config, Controller, Endpoint, Program};
use lab::SwitchEndpoint;
use topology::{LinkId, Topology};

/// A controller and what it wants. It answers hosts until it is dropped.
pub(crate) struct Control {
    controller: Controller,
    desired: Desired,
}

impl Control {
    /// Pushes the pipeline to every switch and brings it to its entries.
    pub(crate) async fn start(topology: Topology, switches: &[SwitchEndpoint]) -> Self {
        let topology = Arc::new(topology);
        let program = Arc::new(Program::fabric().unwrap());
        let endpoints = switches.iter().map(endpoint).collect();
        let connecting =
            Controller::connect(Arc::clone(&topology), program, endpoints, Config::default());
        let (controller, connected) = connecting.await.unwrap();
        assert_eq!(
            connected.pushed,
            switches.len(),
            "fresh switches run nothing yet"
        );
        let desired = Desired::new(Planner::new(topology, Options::default())).unwrap();
        controller.reconcile(&desired).await.unwrap();
        Self {
            controller,
            desired,
        }
    }

    /// Tells the controller which links are down, and waits for what it changes.
    pub(crate) async fn set_down(&mut self, links: &[LinkId]) {
        let down: LinkSet = links.iter().map(|link| link.0).collect();
        let changes = self.desired.set_down(&down).unwrap();
        self.controller.set_desired(&self.desired);
        assert!(
            self.controller.apply(&changes).await.unwrap() > 0,
            "nothing changed"
        );
    }
}

fn endpoint(switch: &SwitchEndpoint) -> Endpoint {
    let reach = switch.clone();
    Endpoint::new(switch.name.clone(), switch.device_id, move || {
        let reach = reach.clone();
        async move { reach.channel().await }
    })
}

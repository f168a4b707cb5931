//! The controller on a fabric that is up.

use std::sync::Arc;

use controller::desired::Desired;
use controller::intent::{Ars, Options, Planner};
use controller::reconcile::{Copier, Copies, Update};
use controller::routing::LinkSet;
use controller::session::{Config, Controller, Endpoint, Program};
use lab::SwitchEndpoint;
use topology::{LinkId, SwitchId, Topology};

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

    /// Starts hellos and probes.
    pub(crate) fn start_beats(&self, ars: &Ars) {
        self.controller.start_beats(ars).unwrap();
    }

    /// Compares all switches with what they should hold; how many updates it took to put them right.
    pub(crate) async fn repaired(&self) -> usize {
        let report = self.controller.reconcile(&self.desired).await.unwrap();
        report.total().updates()
    }

    /// On a switch: loses a multicast group, changes another, adds one; changes the clone session of reports, adds
    /// one.
    pub(crate) async fn disturb(&self, switch: SwitchId) {
        let groups = &self.desired.states()[switch.index()].copies;
        let mut groups = groups
            .keys()
            .filter(|c| matches!(c, Copier::MulticastGroup(_)));
        let (lost, changed) = (*groups.next().unwrap(), *groups.next().unwrap());
        let to = |ports: &[u16]| Copies::to_ports(ports.iter().copied(), 1);
        let batch = [
            Update::DeleteCopies(lost),
            Update::ModifyCopies(changed, to(&[1])),
            Update::InsertCopies(Copier::MulticastGroup(77), to(&[1, 2])),
            Update::ModifyCopies(Copier::CloneSession(510), to(&[1])),
            Update::InsertCopies(Copier::CloneSession(99), to(&[2])),
        ];
        self.controller.write(switch, &batch).await.unwrap();
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

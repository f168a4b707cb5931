//! Switches, wires and NICs as a topology describes them.

use std::collections::VecDeque;

use softswitch::{SharedSwitch, Switch, SwitchConfig, SwitchStats};
use topology::{End, LinkId, NicId, NicPortRef, PortRef, SwitchId, Topology};

use super::nic::Nic;
use super::plane::{Ports, WireIndex, downward, upward};
use super::stats::Bins;
use super::wire::Wire;
use super::{EmulatorConfig, NicNode, SwitchNode, flow};

/// Queues per port: the data plane's queue numbers have three bits.
const QUEUES: u8 = 8;

pub(super) fn wires_of(topology: &Topology, link: LinkId, config: &EmulatorConfig) -> [Wire; 2] {
    let spec = &topology[link];
    let [lower, upper] = spec.ends();
    [(lower, upper), (upper, lower)].map(|(from, to)| {
        let latency = match to {
            End::Switch(_) => config.switch_latency_ns,
            End::Nic(_) => 0,
        };
        Wire::new(from, to, spec.speed_bps, spec.delay_ns, latency)
    })
}

fn wire_from(topology: &Topology, link: LinkId, end: End) -> WireIndex {
    if topology[link].lower == end {
        upward(link)
    } else {
        downward(link)
    }
}

pub(super) fn switch_node(
    topology: &Topology,
    id: SwitchId,
    config: &EmulatorConfig,
) -> SwitchNode {
    let spec = &topology[id];
    let mut wires = vec![None; spec.ports.len() + 1];
    for neighbour in topology.neighbours(id) {
        let end = End::Switch(PortRef {
            switch: id,
            port: neighbour.port,
        });
        wires[usize::from(neighbour.port)] = Some(wire_from(topology, neighbour.link, end));
    }
    let core = Switch::new(SwitchConfig {
        device_id: spec.device_id,
        cpu_port: Some(config.cpu_port),
        drop_port: config.drop_port,
        queues: QUEUES,
        queue_depth: config.queue_depth,
        seed: flow::mix(config.seed, spec.device_id),
        ..SwitchConfig::default()
    });
    SwitchNode {
        name: spec.name.clone(),
        core: SharedSwitch::new(core),
        server: None,
        ports: Ports {
            switch: id,
            cpu_port: config.cpu_port,
            queues: QUEUES,
            wires,
            unconnected: 0,
        },
        before: SwitchStats::default(),
    }
}

pub(super) fn nic_node(
    topology: &Topology,
    id: NicId,
    make: impl FnOnce(&[u64]) -> Nic,
    bin_ns: u64,
) -> NicNode {
    let spec = &topology[id];
    let mut wires = [None; 2];
    let mut speeds = [0; 2];
    for port in spec.ports() {
        let end = End::Nic(NicPortRef {
            nic: id,
            port: port.number,
        });
        let number = usize::from(port.number);
        wires[number] = Some(wire_from(topology, port.link, end));
        speeds[number] = topology[port.link].speed_bps;
    }
    let mut nic = make(&speeds);
    for port in 0..2 {
        nic.set_port(port, wires[usize::from(port)].is_some());
    }
    let bins = Bins::new(0, bin_ns);
    NicNode {
        nic,
        mac: spec.mac.0,
        gateway: topology[spec.la].gateway_mac.0,
        v4: spec.v4.into(),
        v6: spec.v6.into(),
        wires,
        owners: Vec::new(),
        sent: bins.clone(),
        received: bins,
        raw: VecDeque::new(),
        inbox: Vec::new(),
    }
}

//! The switches of a fabric, each with its entries, and packets that are handed from one to the next.

use std::sync::Arc;

use controller::desired::{self, Desired};
use controller::intent::{FlowKey, Options, Planner};
use controller::placement::Demand;
use controller::session::{Config, Controller, Endpoint, Program};
use lab::Fabric;
use lab::emulator::{Emulator, EmulatorConfig};
use topology::{End, NicId, SwitchId, Topology};

/// The port of packet-ins and packet-outs.
const CPU_PORT: u16 = 510;

/// Switches that hold what the controller wants, and stand still: packets move only when a test moves them.
pub(crate) struct Cores {
    pub(crate) topology: Arc<Topology>,
    emulator: Emulator,
    controller: Controller,
    desired: Desired,
    _fabric: Fabric,
}

/// A packet that has come to a switch.
pub(crate) struct At {
    pub(crate) switch: SwitchId,
    pub(crate) port: u16,
    pub(crate) frame: Vec<u8>,
}

impl Cores {
    pub(crate) async fn new(topology: Topology, options: Options) -> Self {
        let topology = Arc::new(topology);
        let mut emulator = Emulator::new(&topology, EmulatorConfig::new(&topology, 1));
        let fabric = emulator.serve(topology.name());
        let endpoints = fabric.switches.iter().map(|switch| {
            let reach = switch.clone();
            Endpoint::new(switch.name.clone(), switch.device_id, move || {
                let reach = reach.clone();
                async move { reach.channel().await }
            })
        });
        let program = Arc::new(Program::fabric().unwrap());
        let connecting = Controller::connect(
            Arc::clone(&topology),
            program,
            endpoints.collect(),
            Config::default(),
        );
        let (controller, _) = connecting.await.unwrap();
        let desired = Desired::new(Planner::new(Arc::clone(&topology), options)).unwrap();
        controller.reconcile(&desired).await.unwrap();
        Self {
            topology,
            emulator,
            controller,
            desired,
            _fabric: fabric,
        }
    }

    /// Gives these RoCEv2 flows between two NICs, by queue pair, paths of their own.
    pub(crate) async fn place(&mut self, from: NicId, to: NicId, queue_pairs: &[u32]) {
        let [src, dst] = [from, to].map(|nic| self.topology[nic].v4.into());
        let flows = queue_pairs.iter().map(|qp| desired::Flow {
            key: FlowKey::roce(src, dst, *qp),
            demand: Demand {
                src: from.0,
                dst: to.0,
                bytes: 1_000_000,
                port: None,
            },
        });
        let changes = self.desired.set_flows(flows.collect()).unwrap();
        assert!(self.controller.apply(&changes).await.unwrap() > 0);
    }

    /// Puts a frame into a switch at a time in us; what comes out, by port.
    pub(crate) fn pass(
        &self,
        switch: SwitchId,
        port: u16,
        frame: &[u8],
        now_us: u64,
    ) -> Vec<(u16, Vec<u8>)> {
        let now = now_us * 1_000;
        let mut core = self.emulator.switch(switch).unwrap().lock();
        core.ingress(port, frame, now);
        let (mut ready, mut out) = (Vec::new(), Vec::new());
        core.take_ready(&mut ready);
        for port in ready {
            while let Some(packet) = core.dequeue(port, now) {
                out.push((port, packet.bytes));
            }
        }
        out
    }

    /// The same for a frame of the switch's own CPU that is to be routed.
    pub(crate) fn submit(&self, switch: SwitchId, frame: &[u8], now_us: u64) {
        // Packet-out header: submit_to_ingress.
        let packet = [&[0, 0x40][..], frame].concat();
        self.pass(switch, CPU_PORT, &packet, now_us);
    }

    /// Where a NIC's packets come into the fabric: its leaf, and the port there.
    pub(crate) fn entrance(&self, nic: NicId) -> (SwitchId, u16) {
        let port = self.topology[nic].ports().next().unwrap();
        (port.leaf.switch, port.leaf.port)
    }

    /// The packet at the next switch; `None` when it has come to a NIC. Panics when it was lost.
    pub(crate) fn hop(&self, at: &At) -> (u16, Option<At>) {
        let mut out = self.pass(at.switch, at.port, &at.frame, 0);
        assert_eq!(out.len(), 1, "lost at {}", self.topology[at.switch].name);
        let (port, frame) = out.remove(0);
        let mut neighbours = self.topology.neighbours(at.switch);
        let far = neighbours.find(|n| n.port == port).unwrap().far;
        let next = match far {
            End::Nic(_) => None,
            End::Switch(far) => Some(At {
                switch: far.switch,
                port: far.port,
                frame,
            }),
        };
        (port, next)
    }
}

/// What tells flows between two NICs apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    /// Destination queue pair of RoCEv2.
    pub(crate) qp: u32,
}

/// A UDP packet over IPv4 that begins like RoCEv2, from a NIC to its gateway.
pub(crate) fn frame(topology: &Topology, from: NicId, to: NicId, flow: Flow) -> Vec<u8> {
    let leaf = topology[from].ports().next().unwrap().leaf.switch;
    let gateway = *topology.station_macs(leaf).last().unwrap();
    let mut bth = vec![0x04, 0x40, 0xff, 0xff, 0];
    bth.extend(&flow.qp.to_be_bytes()[1..]);
    bth.extend([0; 4 + 32 + 4]);
    let udp_len = 8 + bth.len() as u16;
    let mut ip = vec![0x45, 26 << 2 | 2];
    ip.extend((20 + udp_len).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
    ip.extend(topology[from].v4.octets());
    ip.extend(topology[to].v4.octets());
    let sum: u32 = ip
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp = [flow.src_port, flow.dst_port, udp_len, 0].map(u16::to_be_bytes);
    [
        &gateway.0[..],
        &topology[from].mac.0,
        &[8, 0],
        &ip,
        udp.as_flattened(),
        &bth,
    ]
    .concat()
}

//! How a fabric is emulated.

use topology::Topology;

use super::nic::NicConfig;
use super::nic::WIRE_OVERHEAD;
use super::nic::dcqcn::DcqcnConfig;

/// Parameters of an emulation. [`EmulatorConfig::new`] takes what the topology's policy says.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatorConfig {
    /// Decides all that is random: marking, queue pairs' first PSNs.
    pub seed: u64,
    /// Packets that one queue of a switch port holds.
    pub queue_depth: usize,
    /// From the last bit of a packet arriving at a switch to the packet entering the pipeline, ns: the
    /// switch's latency without queueing.
    pub switch_latency_ns: u64,
    /// From a link's going down or up to the switches' and NICs' noticing it, ns.
    pub detection_ns: u64,
    /// Width of the bins that NICs' bytes are counted in, ns.
    pub bin_ns: u64,
    /// The NICs.
    pub nic: NicConfig,
    /// The port of packet-ins and packet-outs.
    pub cpu_port: u16,
    /// The port that drops.
    pub drop_port: u16,
}

impl EmulatorConfig {
    /// Payload size and queue depth by the topology's policy, DCQCN ([`DcqcnConfig::paper`]: it is back at line rate in a
    /// few ms, [`DcqcnConfig::hpcc`] takes tens of ms) for the speed of its fastest NIC port,
    /// 500 ns per switch, link failures seen after 1 ms, bins of 10 µs.
    #[must_use]
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let policy = topology.policy();
        let ports = topology.nics().iter().flat_map(|nic| nic.ports());
        let speed = ports.map(|port| topology[port.link].speed_bps).max();
        let nic = NicConfig {
            payload: policy.rdma_mtu(),
            dcqcn: speed.map(DcqcnConfig::paper),
            ..NicConfig::default()
        };
        Self {
            seed,
            queue_depth: usize::try_from(policy.queue_depth / frame_bytes(nic.payload))
                .unwrap_or(usize::MAX)
                .max(1),
            switch_latency_ns: 500,
            detection_ns: 1_000_000,
            bin_ns: 10_000,
            nic,
            cpu_port: 510,
            drop_port: 511,
        }
    }
}

/// Bytes that a full data packet occupies: what one place in a packet-counted queue stands for.
fn frame_bytes(payload: u32) -> u64 {
    // Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4.
    u64::from(payload) + 58 + WIRE_OVERHEAD
}

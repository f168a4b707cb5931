//! How a fabric is emulated.

use std::collections::BTreeMap;

use topology::{End, Tier, Topology};

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
    /// Payload size and queue depth by the topology's policy, DCQCN ([`DcqcnConfig::new`]) for the speed of its
    /// fastest NIC port, 500 ns per switch, link failures seen after 1 ms, bins of 10 µs.
    ///
    /// The window is twice what the longest path holds at the fastest NIC's rate, 1 MiB at least. Packets count
    /// as lost after the longest path's round trip and the time in which the slowest NIC port empties a full
    /// queue, rounded up to 4.096 µs x 2^n (the InfiniBand local ACK timeout).
    #[must_use]
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let policy = topology.policy();
        let speeds = || {
            let ports = topology.nics().iter().flat_map(|nic| nic.ports());
            ports.map(|port| topology[port.link].speed_bps)
        };
        let fastest = speeds().max();
        let frame = frame_bytes(policy.rdma_mtu());
        let round_trip = round_trip_ns(topology, SWITCH_LATENCY_NS, frame);
        let default = NicConfig::default();
        let nic = NicConfig {
            payload: policy.rdma_mtu(),
            window: window(round_trip, fastest.unwrap_or(1), frame).max(default.window),
            retransmit_ns: ack_timeout_ns(
                round_trip + drain_ns(policy.queue_depth, speeds().min().unwrap_or(1)),
            ),
            dcqcn: fastest.map(DcqcnConfig::new),
            ..default
        };
        Self {
            seed,
            queue_depth: usize::try_from(policy.queue_depth / frame)
                .unwrap_or(usize::MAX)
                .max(1),
            switch_latency_ns: SWITCH_LATENCY_NS,
            detection_ns: 1_000_000,
            bin_ns: 10_000,
            nic,
            cpu_port: 510,
            drop_port: 511,
        }
    }
}

const SWITCH_LATENCY_NS: u64 = 500;

/// Bytes that a full data packet occupies: what one place in a packet-counted queue stands for.
fn frame_bytes(payload: u32) -> u64 {
    // Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4.
    u64::from(payload) + 58 + WIRE_OVERHEAD
}

/// Time in which a port empties a queue of `bytes`, ns.
fn drain_ns(bytes: u64, speed_bps: u64) -> u64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(speed_bps.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// Longest round trip between two NICs without queueing, ns, for frames of `frame` bytes one way and short ones
/// back: up through the slowest links there are and down again.
fn round_trip_ns(topology: &Topology, switch_latency_ns: u64, frame: u64) -> u64 {
    // Longest link by the tiers of its ends: NICs to leaves, leaves to spines, spines to cores.
    let mut delays: BTreeMap<(u8, u8), u64> = BTreeMap::new();
    for link in topology.links() {
        let height = |end: End| match end {
            End::Nic(_) => 0u8,
            End::Switch(port) => match topology[port.switch].tier {
                Tier::Leaf => 1,
                Tier::Spine => 2,
                Tier::Core => 3,
            },
        };
        let [lower, upper] = link.ends().map(height);
        let delay = link.delay_ns + drain_ns(frame, link.speed_bps);
        let longest = delays.entry((lower, upper)).or_default();
        *longest = (*longest).max(delay);
    }
    let hops = 2 * delays.len() as u64;
    let one_way = 2 * delays.values().sum::<u64>() + hops.saturating_sub(1) * switch_latency_ns;
    2 * one_way
}

/// Packets that twice fill a path.
fn window(round_trip_ns: u64, speed_bps: u64, frame: u64) -> u32 {
    let bits = u128::from(round_trip_ns) * u128::from(speed_bps) * 2 / 1_000_000_000;
    let packets = bits / 8 / u128::from(frame.max(1));
    // Sequence numbers tell packets apart that are less than 2^23 from each other.
    u32::try_from(packets).unwrap_or(u32::MAX).min(1 << 22)
}

/// The least 4.096 µs x 2^n that is no less than `ns`; n is at most 31.
fn ack_timeout_ns(ns: u64) -> u64 {
    let steps = (0..31).map(|n| 4_096u64 << n);
    steps
        .into_iter()
        .find(|step| *step >= ns)
        .unwrap_or(4_096 << 31)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use topology::{Clos, generate};

    fn nic(change: impl FnOnce(&mut Clos)) -> NicConfig {
        let mut clos = Clos::default();
        change(&mut clos);
        EmulatorConfig::new(&generate(&clos).unwrap(), 1).nic
    }

    #[test]
    fn short_paths_keep_the_usual_window_and_timeout() {
        let nic = nic(|_| {});
        let usual = NicConfig::default();
        assert_eq!(
            (nic.window, nic.retransmit_ns),
            (usual.window, usual.retransmit_ns)
        );
    }

    #[test]
    fn long_links_get_a_wider_window_and_a_longer_timeout() {
        let nic = nic(|clos| clos.delays.spine = 10_000_000);
        // 40 ms and some us there and back at 400 Gb/s: 2 GB, 479 000 packets of 4 178 bytes.
        assert!((957_000..970_000).contains(&nic.window), "{}", nic.window);
        assert_eq!(nic.retransmit_ns, 4_096 << 14);
    }

    #[test]
    fn slow_ports_take_longer_to_empty_a_queue() {
        let nic = nic(|clos| clos.speeds.host = 100_000_000_000);
        // 16 MB take 1.28 ms.
        assert_eq!(nic.retransmit_ns, 4_096 << 9);
    }
}

//! Does every NIC of an emulated fabric reach every other? One UDP packet per pair.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ::topology::{NicId, Topology};
use lab::emulator::Emulator;
use serde::Serialize;

use crate::failure::Failure;
use crate::names;

/// Most pairs that are tried; in larger fabrics each NIC tries a part of the others.
const MOST_PAIRS: usize = 200_000;
/// Failed pairs that are named.
const MOST_NAMED: usize = 10;
/// UDP port of probes (discard, RFC 863).
const PROBE_PORT: u16 = 9;
/// Bits that a round's probes put on one link at the most, generously: 64 probes of 128 bytes.
const ROUND_BITS: u64 = 64 * 128 * 8;
/// Links and switches that a probe passes at the most.
const HOPS: u64 = 8;
/// Latency of a switch and its queues, ns.
const SWITCH_NS: u64 = 100_000;

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Reach {
    /// Ordered pairs of NICs that there are.
    pub(crate) pairs: usize,
    /// Pairs that were tried.
    pub(crate) tried: usize,
    /// Pairs whose probe did not arrive.
    pub(crate) failed: usize,
    /// The first of them, as `host/rail -> host/rail`.
    pub(crate) examples: Vec<String>,
}

impl Reach {
    /// For people.
    pub(crate) fn to_text(&self) -> String {
        if self.failed == 0 {
            return if self.tried == self.pairs {
                format!("every NIC reaches every other ({} pairs tried)", self.tried)
            } else {
                format!(
                    "a sample of {} of {} pairs of NICs reach each other",
                    self.tried, self.pairs
                )
            };
        }
        format!(
            "{} of {} pairs of NICs do not reach each other, among them {}",
            self.failed,
            self.tried,
            self.examples.join(", "),
        )
    }

    /// A failure if a pair failed.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        if self.failed == 0 {
            Ok(())
        } else {
            Err(Failure::Run(self.to_text()))
        }
    }
}

/// Sends the probes, in rounds in which every NIC sends one and receives one.
pub(crate) fn probe(emulator: &mut Emulator, topology: &Topology) -> Reach {
    let count = topology.nics().len();
    let rounds = (MOST_PAIRS / count.max(1)).min(count.saturating_sub(1));
    let mut reach = Reach {
        pairs: count * count.saturating_sub(1),
        tried: 0,
        failed: 0,
        examples: Vec::new(),
    };
    let round_ns = round_ns(topology);
    for round in 0..rounds {
        // Spread over all distances when not all are tried.
        let shift = 1 + round * count.saturating_sub(1) / rounds.max(1);
        let target = |index: usize| NicId(((index + shift) % count) as u32);
        for (index, nic) in topology.nic_ids().enumerate() {
            for frame in probes(topology, nic, target(index)) {
                emulator.send_frame(nic, frame.0, &frame.1);
            }
        }
        let until = emulator.now() + round_ns;
        emulator.run_until(until);
        let mut arrived: BTreeMap<NicId, usize> = BTreeMap::new();
        for nic in topology.nic_ids() {
            let frames = emulator.take_frames(nic);
            arrived.insert(
                nic,
                frames
                    .iter()
                    .filter(|f| is_probe_for(topology, nic, f))
                    .count(),
            );
        }
        for (index, nic) in topology.nic_ids().enumerate() {
            let sent = topology[nic].ports().count();
            let got = arrived.get(&target(index)).copied().unwrap_or(0);
            reach.tried += 1;
            if got < sent {
                reach.failed += 1;
                if reach.examples.len() < MOST_NAMED {
                    let name = |nic| names::nic(topology, nic);
                    let pair = format!("{} -> {}", name(nic), name(target(index)));
                    reach.examples.push(pair);
                }
            }
        }
    }
    reach
}

/// Fabric time that a round of probes gets to arrive, ns: by the slowest and the longest link.
fn round_ns(topology: &Topology) -> u64 {
    let links = || topology.links().iter();
    let delay = links().map(|link| link.delay_ns).max().unwrap_or(0);
    let speed = links().map(|link| link.speed_bps).min().unwrap_or(1).max(1);
    let serialisation = ROUND_BITS.saturating_mul(1_000_000_000) / speed;
    HOPS * (SWITCH_NS + delay + serialisation)
}

/// One probe for each port of the source.
fn probes(topology: &Topology, src: NicId, dst: NicId) -> Vec<(u8, Vec<u8>)> {
    let (from, to) = (&topology[src], &topology[dst]);
    let gateway = topology[from.la].gateway_mac;
    let frame = || {
        let builder = etherparse::PacketBuilder::ethernet2(from.mac.0, gateway.0)
            .ipv4(from.v4.octets(), to.v4.octets(), 64)
            .udp(PROBE_PORT, PROBE_PORT);
        let payload = src.0.to_be_bytes();
        let mut bytes = Vec::with_capacity(builder.size(payload.len()));
        builder.write(&mut bytes, &payload).ok().map(|()| bytes)
    };
    from.ports()
        .filter_map(|port| Some((port.number, frame()?)))
        .collect()
}

fn is_probe_for(topology: &Topology, nic: NicId, frame: &[u8]) -> bool {
    let Ok(packet) = etherparse::SlicedPacket::from_ethernet(frame) else {
        return false;
    };
    let address = match packet.net {
        Some(etherparse::NetSlice::Ipv4(ip)) => ip.header().destination_addr(),
        _ => Ipv4Addr::UNSPECIFIED,
    };
    let port = match packet.transport {
        Some(etherparse::TransportSlice::Udp(udp)) => udp.destination_port(),
        _ => 0,
    };
    address == topology[nic].v4 && port == PROBE_PORT
}

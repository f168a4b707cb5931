//! Which way the switches' own hash sends a flow, and source ports that make it go where there is room.
//!
//! The data plane hashes a packet's addresses, protocol, ports and destination queue pair with CRC-32, mixes
//! in the seed of the switch's tier, and takes the bucket that the high word of hash x size names
//! (`p4/fabric/spread.p4`). The same is computed here, so that a flow that is not pinned can be steered by
//! the one field its sender is free to choose: the UDP source port.

use super::paths::walk;
use crate::intent::{BucketPolicy, layout};
use crate::placement::{Demand, Network, Path};
use crate::routing::Hop;
use crc::{CRC_32_ISO_HDLC, Crc};
use std::net::IpAddr;
use topology::{NicId, SwitchId, Topology};

/// The fields of a packet that are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same version.
    pub dst: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Source port as it is on the wire, for RoCEv2 too.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Destination queue pair of RoCEv2; 0 for all else.
    pub dest_qp: u32,
}

impl Packet {
    /// A RoCEv2 packet between the IPv4 addresses of two NICs.
    #[must_use]
    pub fn roce(topology: &Topology, src: NicId, dst: NicId, src_port: u16, dest_qp: u32) -> Self {
        Self {
            src: topology[src].v4.into(),
            dst: topology[dst].v4.into(),
            protocol: 17,
            src_port,
            dst_port: 4791,
            dest_qp,
        }
    }

    /// CRC-32 of the fields, IPv4 addresses as IPv4-mapped ones.
    #[must_use]
    pub fn hash(&self) -> u32 {
        const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
        let mapped = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        let mut bytes = [0; 40];
        bytes[..16].copy_from_slice(&mapped(self.src));
        bytes[16..32].copy_from_slice(&mapped(self.dst));
        bytes[32] = self.protocol;
        bytes[33..35].copy_from_slice(&self.src_port.to_be_bytes());
        bytes[35..37].copy_from_slice(&self.dst_port.to_be_bytes());
        bytes[37..].copy_from_slice(&self.dest_qp.to_be_bytes()[1..]);
        CRC.checksum(&bytes)
    }
}

/// The bucket of a group of `size` for a packet of this hash, at a switch with this seed.
#[must_use]
pub fn bucket(hash: u32, seed: u32, size: u16) -> u16 {
    let mut mixed = hash ^ seed;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    mixed ^= mixed >> 16;
    let high = (u64::from(mixed) * u64::from(size)) >> 32;
    u16::try_from(high).unwrap_or(0)
}

/// The port that a switch with this seed sends a packet of this hash out of, all of `hops` being as they are
/// when nothing has failed.
fn port(hops: &[Hop], hash: u32, seed: u32, policy: BucketPolicy) -> Option<u32> {
    if let [only] = hops {
        return Some(only.port);
    }
    let size = policy.size(hops);
    let ports = layout(size, hops, hops);
    ports.get(usize::from(bucket(hash, seed, size))).copied()
}

/// The path of a flow that is not pinned, from port `demand.port` of its NIC or else its first one, on a
/// fabric without failures. `None` where there is no way.
#[must_use]
pub fn natural(
    topology: &Topology,
    network: &Network,
    demand: &Demand,
    packet: &Packet,
    policy: BucketPolicy,
) -> Option<Path> {
    let hash = packet.hash();
    walk(network, demand, 0, |switch, hops| {
        port(hops, hash, topology.seed(SwitchId(switch)), policy)
    })
}

/// First source port of those that RoCEv2 senders use.
const FIRST: u16 = 0xC000;
/// How many there are.
const COUNT: u64 = 0x4000;

/// A source port for each flow, out of `tries` drawn from `seed`: that whose path's busiest link is least
/// busy with the flows before it. For flows that cannot be pinned. Returns the ports and the paths they lead
/// to.
#[must_use]
pub fn source_ports(
    topology: &Topology,
    network: &Network,
    flows: &[(Demand, Packet)],
    (tries, seed): (u32, u64),
    policy: BucketPolicy,
) -> Vec<(u16, Option<Path>)> {
    let mut load = vec![0u64; network.links * 2];
    let index = |step: &crate::placement::Step| step.link as usize * 2 + usize::from(step.upward);
    flows
        .iter()
        .zip(0u64..)
        .map(|((demand, packet), number)| {
            let best = (0..u64::from(tries.max(1)))
                .map(|attempt| {
                    let drawn = super::paths::mix(seed ^ (number << 20) ^ attempt) % COUNT;
                    let src_port = FIRST + u16::try_from(drawn).unwrap_or(0);
                    let packet = Packet {
                        src_port,
                        ..*packet
                    };
                    let path = natural(topology, network, demand, &packet, policy);
                    let steps = path.iter().flat_map(|p| &p.steps);
                    let busiest = steps.map(|s| load[index(s)]).max().unwrap_or(0);
                    (busiest, attempt, src_port, path)
                })
                .min_by_key(|(busiest, attempt, ..)| (*busiest, *attempt));
            let Some((_, _, src_port, path)) = best else {
                return (FIRST, None);
            };
            // The NICs' own links are taken whatever the port.
            for step in path.iter().flat_map(|p| &p.steps[1..p.steps.len() - 1]) {
                load[index(step)] += demand.bytes;
            }
            (src_port, path)
        })
        .collect()
}

//! RoCEv2 packets as reliable-connection RDMA WRITE traffic has them.
//!
//! Ethernet, IPv4 or IPv6, UDP to port 4791, BTH, an extended header, payload, ICRC (InfiniBand
//! Architecture Specification volume 1, chapter 9, and Annex A17). The Ethernet FCS is not part of
//! a packet here; links account for it. Payload bytes are zeros, so that the ICRC of a
//! full packet costs a few look-ups (see [`icrc`]); what switches carry are complete packets all
//! the same.

pub mod icrc;
mod parse;

pub use parse::{ParseError, Parsed, parse};

use std::net::IpAddr;
use std::sync::Arc;

use icrc::{Network, ZeroRun};

/// The UDP destination port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
/// DSCP of RDMA data and acknowledgements.
pub const DSCP_DATA: u8 = 26;
/// DSCP of congestion notification packets.
pub const DSCP_CNP: u8 = 48;
/// ECN codepoint Not-ECT.
pub const NOT_ECT: u8 = 0b00;
/// ECN codepoint ECT(0).
pub const ECT0: u8 = 0b10;
/// ECN codepoint CE: congestion experienced.
pub const CE: u8 = 0b11;
/// The default partition key.
pub const PKEY: u16 = 0xFFFF;
/// AETH syndrome of an acknowledgement without credit count.
pub const SYNDROME_ACK: u8 = 0x1F;
/// AETH syndrome of a negative acknowledgement for a PSN sequence error.
pub const SYNDROME_NAK_SEQUENCE: u8 = 0x60;

const ETHERNET: usize = 14;
const UDP: usize = 8;
const BTH: usize = 12;
const ICRC: usize = 4;
const TTL: u8 = 64;

/// A 48-bit Ethernet address.
pub type Mac = [u8; 6];

/// BTH opcodes that the NIC model sends or understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// RC RDMA WRITE First: carries a RETH.
    WriteFirst = 0x06,
    /// RC RDMA WRITE Middle.
    WriteMiddle = 0x07,
    /// RC RDMA WRITE Last.
    WriteLast = 0x08,
    /// RC RDMA WRITE Only: carries a RETH.
    WriteOnly = 0x0A,
    /// RC Acknowledge: carries an AETH.
    Acknowledge = 0x11,
    /// Congestion notification packet (Annex A17.9).
    Cnp = 0x81,
}

impl Opcode {
    /// The opcode with this number, if the model knows it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0x06 => Opcode::WriteFirst,
            0x07 => Opcode::WriteMiddle,
            0x08 => Opcode::WriteLast,
            0x0A => Opcode::WriteOnly,
            0x11 => Opcode::Acknowledge,
            0x81 => Opcode::Cnp,
            _ => return None,
        })
    }

    /// Length in bytes of the header between BTH and payload.
    #[must_use]
    pub fn extension_length(self) -> usize {
        match self {
            Opcode::WriteFirst | Opcode::WriteOnly => 16,
            Opcode::Acknowledge => 4,
            // Reserved, all zero.
            Opcode::Cnp => 16,
            Opcode::WriteMiddle | Opcode::WriteLast => 0,
        }
    }

    /// Whether this packet ends a message.
    #[must_use]
    pub fn ends_message(self) -> bool {
        matches!(self, Opcode::WriteLast | Opcode::WriteOnly)
    }
}

/// The base transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// What the packet is.
    pub opcode: Opcode,
    /// The receiver's queue pair number, 24 bits.
    pub dest_qp: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// The A bit: the sender wants an acknowledgement.
    pub ack_request: bool,
    /// The backward ECN bit, set in CNPs.
    pub becn: bool,
}

/// What follows the BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Nothing (middle and last packets), or the reserved bytes of a CNP.
    None,
    /// RDMA extended transport header: where a WRITE goes.
    Reth {
        /// Virtual address.
        address: u64,
        /// Remote key.
        key: u32,
        /// Length of the whole message in bytes.
        length: u32,
    },
    /// Acknowledgement extended transport header.
    Aeth {
        /// ACK or NAK with its code.
        syndrome: u8,
        /// Message sequence number, 24 bits.
        msn: u32,
    },
}

/// The addresses of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Source MAC: the NIC port's.
    pub src_mac: Mac,
    /// Destination MAC: the gateway's.
    pub dst_mac: Mac,
    /// Source address.
    pub src_ip: IpAddr,
    /// Destination address; the same family as the source.
    pub dst_ip: IpAddr,
    /// UDP source port, which carries the flow's entropy.
    pub udp_source_port: u16,
}

/// The UDP source port that a kernel derives from the two queue pair numbers of a connection
/// when no flow label is set (Linux `rdma_calc_flow_label`, `rdma_flow_label_to_udp_sport`): the same in both
/// directions, at most 14 bits of entropy.
#[must_use]
pub fn udp_source_port(local_qp: u32, remote_qp: u32) -> u16 {
    let mut value = u64::from(local_qp) * u64::from(remote_qp);
    value ^= value >> 20;
    value ^= value >> 40;
    let label = (value & 0xF_FFFF) as u32;
    (((label & 0x3FFF) ^ (label >> 14)) | 0xC000) as u16
}

/// The headers of one direction of a connection, ready to be stamped onto packets.
#[derive(Clone, Debug)]
pub struct Template {
    network: Network,
    /// Ethernet, IP and UDP with lengths, traffic class and IPv4 checksum left zero.
    headers: Vec<u8>,
    /// Sum of the IPv4 header's 16-bit words as it stands in `headers`.
    ipv4_sum: u32,
    full_payload: Arc<ZeroRun>,
}

impl Template {
    /// Prepares headers for `path`. `full_payload` is the zero run of the payload size that most
    /// packets have; others are summed byte by byte. When the families of the two addresses differ, both are
    /// written as IPv6 (IPv4-mapped).
    #[must_use]
    pub fn new(path: &Path, full_payload: Arc<ZeroRun>) -> Self {
        let mut headers = Vec::with_capacity(ETHERNET + 40 + UDP);
        headers.extend_from_slice(&path.dst_mac);
        headers.extend_from_slice(&path.src_mac);
        let network = match (path.src_ip, path.dst_ip) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                headers.extend_from_slice(&[0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0x40, 0]);
                headers.extend_from_slice(&[TTL, 17, 0, 0]);
                headers.extend_from_slice(&src.octets());
                headers.extend_from_slice(&dst.octets());
                Network::V4
            }
            (src, dst) => {
                headers.extend_from_slice(&[0x86, 0xDD, 0x60, 0, 0, 0, 0, 0, 17, TTL]);
                for address in [src, dst] {
                    let octets = match address {
                        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                        IpAddr::V6(v6) => v6.octets(),
                    };
                    headers.extend_from_slice(&octets);
                }
                Network::V6
            }
        };
        headers.extend_from_slice(&path.udp_source_port.to_be_bytes());
        headers.extend_from_slice(&UDP_PORT.to_be_bytes());
        // Length, and a checksum of zero: Annex A17 leaves the UDP checksum unused.
        headers.extend_from_slice(&[0; 4]);
        let ipv4_sum = match network {
            Network::V4 => words(&headers[ETHERNET..ETHERNET + 20]),
            Network::V6 => 0,
        };
        Self {
            network,
            headers,
            ipv4_sum,
            full_payload,
        }
    }

    /// The length in bytes of a packet with this opcode and payload, Ethernet header to ICRC.
    #[must_use]
    pub fn packet_length(&self, opcode: Opcode, payload: usize) -> usize {
        self.headers.len() + BTH + opcode.extension_length() + padded(payload) + ICRC
    }

    /// Writes a packet with `payload` zero bytes into `buffer`, replacing what it held.
    /// `traffic_class` is DSCP and ECN as they stand in the IP header.
    pub fn write(
        &self,
        buffer: &mut Vec<u8>,
        traffic_class: u8,
        bth: &Bth,
        extension: &Extension,
        payload: usize,
    ) {
        let length = self.packet_length(bth.opcode, payload);
        buffer.clear();
        buffer.extend_from_slice(&self.headers);
        self.stamp_lengths(buffer, traffic_class, length - ETHERNET);
        buffer.extend_from_slice(&bth_bytes(bth, padded(payload) - payload));
        let extension_start = buffer.len();
        match *extension {
            Extension::None => {}
            Extension::Reth {
                address,
                key,
                length,
            } => {
                buffer.extend_from_slice(&address.to_be_bytes());
                buffer.extend_from_slice(&key.to_be_bytes());
                buffer.extend_from_slice(&length.to_be_bytes());
            }
            Extension::Aeth { syndrome, msn } => {
                let [_, msn @ ..] = msn.to_be_bytes();
                buffer.push(syndrome);
                buffer.extend_from_slice(&msn);
            }
        }
        // A mismatched extension still gives a packet of the length its opcode says.
        let payload_start = extension_start + bth.opcode.extension_length();
        buffer.resize(payload_start, 0);
        let state = icrc::headers(self.network, &buffer[ETHERNET..]).unwrap_or_default();
        let state = icrc::update(state, &buffer[extension_start..payload_start]);
        buffer.resize(length - ICRC, 0);
        let state = if padded(payload) == self.full_payload.length() {
            self.full_payload.advance(state)
        } else {
            icrc::update(state, &buffer[payload_start..])
        };
        buffer.extend_from_slice(&icrc::wire_bytes(state));
    }

    fn stamp_lengths(&self, buffer: &mut [u8], traffic_class: u8, ip_length: usize) {
        let ip = ETHERNET;
        let udp = ip + self.network.header_length();
        // MTUs end far below 65 535 bytes.
        let total = ip_length as u16;
        let udp_length = total - self.network.header_length() as u16;
        buffer[udp + 4..udp + 6].copy_from_slice(&udp_length.to_be_bytes());
        match self.network {
            Network::V4 => {
                buffer[ip + 1] = traffic_class;
                buffer[ip + 2..ip + 4].copy_from_slice(&total.to_be_bytes());
                let mut sum = self.ipv4_sum + u32::from(traffic_class) + u32::from(total);
                sum = (sum & 0xFFFF) + (sum >> 16);
                sum = (sum & 0xFFFF) + (sum >> 16);
                let checksum = !(sum as u16);
                buffer[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            Network::V6 => {
                buffer[ip] = 0x60 | traffic_class >> 4;
                buffer[ip + 1] = traffic_class << 4;
                buffer[ip + 4..ip + 6].copy_from_slice(&udp_length.to_be_bytes());
            }
        }
    }
}

fn bth_bytes(bth: &Bth, pad: usize) -> [u8; BTH] {
    let [_, qp @ ..] = bth.dest_qp.to_be_bytes();
    let [_, psn @ ..] = bth.psn.to_be_bytes();
    let [key_high, key_low] = PKEY.to_be_bytes();
    [
        bth.opcode as u8,
        (pad as u8) << 4,
        key_high,
        key_low,
        u8::from(bth.becn) << 6,
        qp[0],
        qp[1],
        qp[2],
        u8::from(bth.ack_request) << 7,
        psn[0],
        psn[1],
        psn[2],
    ]
}

fn padded(payload: usize) -> usize {
    payload.next_multiple_of(4)
}

fn words(bytes: &[u8]) -> u32 {
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs
        .iter()
        .map(|pair| u32::from(u16::from_be_bytes(*pair)))
        .sum()
}

#[cfg(test)]
mod tests;

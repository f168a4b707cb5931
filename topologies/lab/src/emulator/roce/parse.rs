//! Reading RoCEv2 packets.

use super::icrc::{self, Network, ZeroRun};
use super::{BTH, Bth, CE, ETHERNET, Extension, ICRC, Mac, Opcode, UDP, UDP_PORT};

/// Why a frame is not a RoCEv2 packet that the model understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not IPv4 or IPv6 with UDP to port 4791.
    #[error("not RoCEv2: ether type, protocol or UDP destination port differ")]
    NotRoce,
    /// The frame ends before its headers or its stated length do.
    #[error("truncated: {0} bytes where more are stated")]
    Truncated(usize),
    /// A BTH opcode other than those of [`Opcode`].
    #[error("BTH opcode {0:#04x} is none that the NIC model knows")]
    Opcode(u8),
    /// The invariant CRC does not match.
    #[error("the invariant CRC is wrong")]
    Icrc,
}

/// A RoCEv2 packet's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Ethernet destination.
    pub dst_mac: Mac,
    /// DSCP, 6 bits.
    pub dscp: u8,
    /// ECN codepoint, 2 bits.
    pub ecn: u8,
    /// UDP source port.
    pub udp_source_port: u16,
    /// The base transport header.
    pub bth: Bth,
    /// What follows it.
    pub extension: Extension,
    /// Bytes of payload without padding.
    pub payload: usize,
}

impl Parsed {
    /// Whether a switch marked the packet.
    #[must_use]
    pub fn congestion_experienced(&self) -> bool {
        self.ecn == CE
    }
}

/// Reads `frame` (Ethernet header to ICRC) and checks its ICRC. `full_payload` is the zero run that
/// makes the check of a full packet with a payload of zeros cheap; any other payload is summed.
///
/// # Errors
/// [`ParseError`] when the frame is something else, cut short, or damaged.
pub fn parse(frame: &[u8], full_payload: &ZeroRun) -> Result<Parsed, ParseError> {
    let truncated = ParseError::Truncated(frame.len());
    let ip = frame.get(ETHERNET..).ok_or(truncated)?;
    let network = match [frame[12], frame[13]] {
        [0x08, 0x00] => Network::V4,
        [0x86, 0xDD] => Network::V6,
        _ => return Err(ParseError::NotRoce),
    };
    let header = network.header_length();
    if ip.len() < header + UDP + BTH + ICRC {
        return Err(truncated);
    }
    let (protocol, traffic_class, ip_length) = match network {
        Network::V4 if ip[0] != 0x45 => return Err(ParseError::NotRoce),
        Network::V4 => (ip[9], ip[1], usize::from(u16_at(ip, 2))),
        Network::V6 => (
            ip[6],
            ip[0] << 4 | ip[1] >> 4,
            header + usize::from(u16_at(ip, 4)),
        ),
    };
    if protocol != 17 || u16_at(ip, header + 2) != UDP_PORT {
        return Err(ParseError::NotRoce);
    }
    // Ethernet may have padded the frame: the IP length says where the packet ends.
    let ip = ip.get(..ip_length).ok_or(truncated)?;
    let bth_start = header + UDP;
    let bth = ip.get(bth_start..bth_start + BTH).ok_or(truncated)?;
    let opcode = Opcode::from_number(bth[0]).ok_or(ParseError::Opcode(bth[0]))?;
    let extension_start = bth_start + BTH;
    let payload_start = extension_start + opcode.extension_length();
    let payload_end = ip.len().checked_sub(ICRC).ok_or(truncated)?;
    let padded = ip.get(payload_start..payload_end).ok_or(truncated)?;
    let extension = &ip[extension_start..payload_start];
    check(network, ip, extension, padded, full_payload)?;
    let mut dst_mac = [0; 6];
    dst_mac.copy_from_slice(&frame[..6]);
    Ok(Parsed {
        dst_mac,
        dscp: traffic_class >> 2,
        ecn: traffic_class & 0b11,
        udp_source_port: u16_at(ip, header),
        bth: Bth {
            opcode,
            dest_qp: u24_at(bth, 5),
            psn: u24_at(bth, 9),
            ack_request: bth[8] & 0x80 != 0,
            becn: bth[4] & 0x40 != 0,
        },
        extension: read_extension(opcode, extension),
        payload: padded.len().saturating_sub(usize::from(bth[1] >> 4 & 3)),
    })
}

fn check(
    network: Network,
    ip: &[u8],
    extension: &[u8],
    payload: &[u8],
    full_payload: &ZeroRun,
) -> Result<(), ParseError> {
    let state = icrc::headers(network, ip).ok_or(ParseError::Truncated(ip.len()))?;
    let state = icrc::update(state, extension);
    let state = if payload.len() == full_payload.length() && is_zero(payload) {
        full_payload.advance(state)
    } else {
        icrc::update(state, payload)
    };
    if ip.ends_with(&icrc::wire_bytes(state)) {
        Ok(())
    } else {
        Err(ParseError::Icrc)
    }
}

/// Whether all bytes are zero; by words, so that it costs a fraction of a CRC.
fn is_zero(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks
        .iter()
        .all(|block| block.iter().fold(0, |all, byte| all | byte) == 0)
        && rest.iter().all(|byte| *byte == 0)
}

fn read_extension(opcode: Opcode, bytes: &[u8]) -> Extension {
    match (opcode, bytes) {
        (Opcode::WriteFirst | Opcode::WriteOnly, bytes) if bytes.len() == 16 => Extension::Reth {
            address: u64::from(u32_at(bytes, 0)) << 32 | u64::from(u32_at(bytes, 4)),
            key: u32_at(bytes, 8),
            length: u32_at(bytes, 12),
        },
        (Opcode::Acknowledge, bytes) if bytes.len() == 4 => Extension::Aeth {
            syndrome: bytes[0],
            msn: u24_at(bytes, 1),
        },
        _ => Extension::None,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u24_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

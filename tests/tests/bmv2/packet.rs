//! Packets as bytes, and what the fabric makes of them.

use std::net::{Ipv4Addr, Ipv6Addr};

/// MAC address of the switch's station entry.
pub(crate) const SWITCH_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// MAC address of the host that sends.
pub(crate) const HOST_MAC: [u8; 6] = [0x02, 0, 0, 0, 0x01, 0x01];

pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;

/// Ethernet header from the host to `to`.
pub(crate) fn ethernet(to: [u8; 6], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&to[..], &HOST_MAC, &ether_type.to_be_bytes(), payload].concat()
}

/// One's complement sum of RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// What can be set in an IPv4 header.
#[derive(Clone)]
pub(crate) struct Ipv4 {
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    pub(crate) tos: u8,
    pub(crate) ttl: u8,
    pub(crate) protocol: u8,
    /// Flags and fragment offset.
    pub(crate) fragment: u16,
}

impl Ipv4 {
    /// A UDP packet from 10.0.0.1 with TTL 64.
    pub(crate) fn to(dst: [u8; 4]) -> Self {
        Ipv4 {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: dst.into(),
            tos: 0,
            ttl: 64,
            protocol: UDP,
            fragment: 0,
        }
    }

    /// The header, with its checksum, before a payload.
    pub(crate) fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut header = vec![0x45, self.tos];
        header.extend((20 + payload.len() as u16).to_be_bytes());
        header.extend([0, 1]);
        header.extend(self.fragment.to_be_bytes());
        header.extend([self.ttl, self.protocol, 0, 0]);
        header.extend(self.src.octets());
        header.extend(self.dst.octets());
        let sum = checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&sum);
        header.extend(payload);
        header
    }

    /// The same in an Ethernet frame to the switch.
    pub(crate) fn frame(&self, payload: &[u8]) -> Vec<u8> {
        ethernet(SWITCH_MAC, 0x0800, &self.packet(payload))
    }
}

/// IPv6 header before a payload.
pub(crate) fn ipv6(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    class: u8,
    next_header: u8,
    hop_limit: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = ((6 << 28) | (u32::from(class) << 20))
        .to_be_bytes()
        .to_vec();
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next_header, hop_limit]);
    header.extend(src.octets());
    header.extend(dst.octets());
    header.extend(payload);
    header
}

/// UDP header without checksum before a payload.
pub(crate) fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut datagram: Vec<u8> = [src, dst, length, 0]
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect();
    datagram.extend(payload);
    datagram
}

/// RoCEv2: BTH of `opcode` to `dest_qp`, payload and room for the invariant CRC.
pub(crate) fn roce(src_port: u16, opcode: u8, dest_qp: u32, payload: &[u8]) -> Vec<u8> {
    let mut transport = vec![opcode, 0x40, 0xff, 0xff, 0];
    transport.extend(&dest_qp.to_be_bytes()[1..]);
    transport.extend([0, 0, 0, 7]);
    transport.extend(payload);
    transport.extend([0; 4]);
    udp(src_port, 4791, &transport)
}

/// A routed IPv4 frame as it should leave: new MAC addresses, TTL less one, checksum right.
pub(crate) fn routed_v4(frame: &[u8], to: [u8; 6]) -> Vec<u8> {
    let mut out = frame.to_vec();
    set_macs(&mut out, to);
    out[22] -= 1;
    refresh_checksum(&mut out);
    out
}

/// A routed IPv6 frame as it should leave.
pub(crate) fn routed_v6(frame: &[u8], to: [u8; 6]) -> Vec<u8> {
    let mut out = frame.to_vec();
    set_macs(&mut out, to);
    out[21] -= 1;
    out
}

/// The same IPv4 frame marked CE.
pub(crate) fn marked_v4(frame: &[u8]) -> Vec<u8> {
    let mut out = frame.to_vec();
    out[15] |= 3;
    refresh_checksum(&mut out);
    out
}

fn set_macs(frame: &mut [u8], to: [u8; 6]) {
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&SWITCH_MAC);
}

fn refresh_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..34]).to_be_bytes();
    frame[24..26].copy_from_slice(&sum);
}

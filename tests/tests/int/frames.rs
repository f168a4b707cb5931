//! Frames as bytes, written out by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// MAC address of every switch.
pub(crate) const SWITCH_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// MAC address of the host that sends.
pub(crate) const HOST_MAC: [u8; 6] = [0x02, 0, 0, 0, 0x01, 0x01];
/// MAC address of whoever a next hop leads to.
pub(crate) const NEXT_MAC: [u8; 6] = SWITCH_MAC;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ROCE: u16 = 4791;

/// One's complement sum (RFC 1071), folded.
pub(crate) fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A packet of a host, as its fields.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) v6: bool,
    pub(crate) tagged: bool,
    /// DSCP and ECN.
    pub(crate) tos: u8,
    pub(crate) ttl: u8,
    pub(crate) protocol: u8,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    /// The sender computed the UDP checksum.
    pub(crate) checksum: bool,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// A UDP datagram over IPv4.
    pub(crate) fn udp(payload: &[u8]) -> Self {
        Frame {
            v6: false,
            tagged: false,
            tos: 0x2a,
            ttl: 64,
            protocol: UDP,
            src_port: 40_000,
            dst_port: 5_001,
            checksum: true,
            payload: payload.to_vec(),
        }
    }

    /// A RoCEv2 packet: BTH to `qp`, payload, and its invariant CRC.
    pub(crate) fn roce(qp: u32, payload: &[u8]) -> Self {
        let mut bth = vec![0x04, 0x40, 0xff, 0xff, 0];
        bth.extend(&qp.to_be_bytes()[1..]);
        bth.extend([0x80, 0, 0, 9]);
        bth.extend(payload);
        bth.extend([0; 4]);
        let mut frame = Frame {
            dst_port: ROCE,
            src_port: 50_000,
            checksum: false,
            ..Frame::udp(&bth)
        };
        let bytes = frame.bytes();
        let end = frame.payload.len() - 4;
        frame.payload[end..].copy_from_slice(&icrc(&bytes[14..bytes.len() - 4]));
        frame
    }

    pub(crate) fn addresses(&self) -> (IpAddr, IpAddr) {
        if self.v6 {
            let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
            (address(1).into(), address(2).into())
        } else {
            (
                Ipv4Addr::new(10, 0, 0, 1).into(),
                Ipv4Addr::new(10, 0, 0, 2).into(),
            )
        }
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = [self.src_port, self.dst_port]
            .map(u16::to_be_bytes)
            .concat();
        if self.protocol == TCP {
            // Sequence number, acknowledgement, header length 5 words, ACK, window.
            bytes.extend([1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0]);
        } else {
            bytes.extend((8 + self.payload.len() as u16).to_be_bytes());
            bytes.extend([0, 0]);
        }
        bytes.extend(&self.payload);
        if self.protocol == TCP || self.checksum {
            let at = if self.protocol == TCP { 16 } else { 6 };
            let pseudo = self.pseudo_sum(bytes.len());
            let mut checksum = !sum(&bytes, pseudo.into());
            if checksum == 0 && self.protocol == UDP {
                checksum = 0xffff;
            }
            bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        bytes
    }

    /// Sum of the pseudo header of a transport packet of `len` bytes.
    fn pseudo_sum(&self, len: usize) -> u16 {
        let mut bytes = match self.addresses() {
            (IpAddr::V4(src), IpAddr::V4(dst)) => [src.octets(), dst.octets()].concat(),
            (IpAddr::V6(src), IpAddr::V6(dst)) => [src.octets(), dst.octets()].concat(),
            _ => unreachable!("one version"),
        };
        bytes.extend((len as u32).to_be_bytes());
        bytes.extend([0, 0, 0, self.protocol]);
        sum(&bytes, 0)
    }

    /// The frame, to a switch.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let transport = self.transport();
        let mut frame = [SWITCH_MAC, HOST_MAC].concat();
        if self.tagged {
            frame.extend([0x81, 0, 0x60, 0]);
        }
        match self.addresses() {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                frame.extend([8, 0]);
                let start = frame.len();
                frame.extend([0x45, self.tos]);
                frame.extend((20 + transport.len() as u16).to_be_bytes());
                frame.extend([0x12, 0x34, 0x40, 0, self.ttl, self.protocol, 0, 0]);
                frame.extend(src.octets());
                frame.extend(dst.octets());
                let checksum = !sum(&frame[start..], 0);
                frame[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                frame.extend([0x86, 0xdd]);
                frame.extend((6 << 28 | u32::from(self.tos) << 20 | 0xabcde).to_be_bytes());
                frame.extend((transport.len() as u16).to_be_bytes());
                frame.extend([self.protocol, self.ttl]);
                frame.extend(src.octets());
                frame.extend(dst.octets());
            }
            _ => unreachable!("one version"),
        }
        frame.extend(transport);
        frame
    }
}

/// The invariant CRC (InfiniBand volume 1, 7.8.1, and annex A17) of a packet from IP to payload.
pub(crate) fn icrc(packet: &[u8]) -> [u8; 4] {
    let mut masked = packet.to_vec();
    let udp = if packet[0] >> 4 == 4 {
        masked[1] = 0xff;
        masked[8] = 0xff;
        masked[10..12].fill(0xff);
        20
    } else {
        masked[0] |= 0x0f;
        masked[1..4].fill(0xff);
        masked[7] = 0xff;
        40
    };
    masked[udp + 6..udp + 8].fill(0xff);
    masked[udp + 8 + 4] = 0xff;
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
    let crc = [0xff; 8]
        .iter()
        .chain(&masked)
        .fold(!0u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step));
    (!crc).to_le_bytes()
}

/// A frame as it leaves a fabric after `hops` switches: next MAC addresses, TTL less the hops, no tag.
pub(crate) fn after_hops(frame: &[u8], hops: u8) -> Vec<u8> {
    let mut out = [NEXT_MAC, SWITCH_MAC].concat();
    let tagged = frame[12..14] == [0x81, 0];
    out.extend(&frame[if tagged { 16 } else { 12 }..]);
    if out[12..14] == [8, 0] {
        out[22] -= hops;
        out[24..26].fill(0);
        let checksum = !sum(&out[14..34], 0);
        out[24..26].copy_from_slice(&checksum.to_be_bytes());
    } else {
        out[21] -= hops;
    }
    out
}

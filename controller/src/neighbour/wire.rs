//! Ethernet and Internet checksums, as far as answers need them.

use topology::MacAddr;

/// Length of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
pub(super) const ETHERTYPE_ARP: u16 = 0x0806;
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;

/// An Ethernet header.
pub(super) struct Ethernet {
    pub(super) dst: MacAddr,
    pub(super) src: MacAddr,
    pub(super) ether_type: u16,
}

impl Ethernet {
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let header: &[u8; ETHERNET] = packet.get(..ETHERNET)?.try_into().ok()?;
        let mac = |at: usize| {
            let mut mac = [0; 6];
            mac.copy_from_slice(&header[at..at + 6]);
            MacAddr(mac)
        };
        let ether_type = u16::from_be_bytes([header[12], header[13]]);
        Some(Self {
            dst: mac(0),
            src: mac(6),
            ether_type,
        })
    }

    /// The header of an answer: back to the sender, from `from`.
    pub(super) fn reply(&self, from: MacAddr) -> Vec<u8> {
        let mut header = Vec::with_capacity(128);
        header.extend(self.src.0);
        header.extend(from.0);
        header.extend(self.ether_type.to_be_bytes());
        header
    }
}

/// The Internet checksum (RFC 1071) of `parts` one after the other; all but the last have even length.
pub(super) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            let word = [pair[0], pair.get(1).copied().unwrap_or(0)];
            sum += u32::from(u16::from_be_bytes(word));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

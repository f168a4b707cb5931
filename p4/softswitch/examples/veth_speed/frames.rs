//! The frames that are sent.

/// Builds an Ethernet, IPv4 and UDP frame of `length` bytes with right checksums of the IPv4
/// header (UDP's is 0: none).
pub(crate) fn udp(
    [to, from]: [[u8; 6]; 2],
    [source, destination]: [u32; 2],
    source_port: u16,
    tos: u8,
    length: usize,
) -> Vec<u8> {
    let length = length.max(42);
    let mut frame = Vec::with_capacity(length);
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&from);
    frame.extend_from_slice(&[0x08, 0x00]);
    let total = (length - 14) as u16;
    frame.extend_from_slice(&[0x45, tos]);
    frame.extend_from_slice(&total.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend_from_slice(&source.to_be_bytes());
    frame.extend_from_slice(&destination.to_be_bytes());
    let checksum = ipv4_checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame.extend_from_slice(&source_port.to_be_bytes());
    frame.extend_from_slice(&4791u16.to_be_bytes());
    frame.extend_from_slice(&(total - 20).to_be_bytes());
    frame.extend_from_slice(&[0, 0]);
    frame.resize(length, 0x5a);
    frame
}

/// The ones' complement of the header's sum, its checksum field taken as it is.
pub(crate) fn ipv4_checksum(header: &[u8]) -> u16 {
    let sum: u32 = header
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

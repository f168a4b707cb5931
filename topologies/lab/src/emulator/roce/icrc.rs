//! The invariant CRC of RoCEv2 (InfiniBand Architecture Specification, Annex A17, and volume 1
//! section 7.8.1).
//!
//! It is the Ethernet CRC-32 over eight bytes of ones and then the packet from the IP header to the
//! end of the payload, with every field a router may change read as ones: traffic class, flow
//! label, TTL or hop limit, the IP and UDP checksums, and the BTH byte with FECN and BECN. A switch
//! that marks CE therefore leaves it valid.
//!
//! A CRC is linear over GF(2): what a run of n zero bytes does to the register is a fixed 32x32
//! bit matrix. The emulator's payloads are zeros, so [`ZeroRun`] replaces walking over 4096
//! bytes with four table look-ups, and the result is the same bit for bit.

const POLYNOMIAL: u32 = 0xEDB8_8320;

const TABLES: [[u32; 256]; 16] = tables();

const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0u32; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut level = 1;
    while level < 16 {
        let mut byte = 0;
        while byte < 256 {
            let previous = tables[level - 1][byte];
            tables[level][byte] = previous >> 8 ^ tables[0][(previous & 0xFF) as usize];
            byte += 1;
        }
        level += 1;
    }
    tables
}

/// The CRC register after `data`, from the register `state`.
#[must_use]
pub fn update(mut state: u32, data: &[u8]) -> u32 {
    let (blocks, rest) = data.as_chunks::<16>();
    for block in blocks {
        let mut next = 0;
        for (index, byte) in block.iter().enumerate() {
            let byte = match index {
                0..4 => byte ^ (state >> (8 * index)) as u8,
                _ => *byte,
            };
            next ^= TABLES[15 - index][usize::from(byte)];
        }
        state = next;
    }
    for byte in rest {
        state = state >> 8 ^ TABLES[0][usize::from(*byte ^ state as u8)];
    }
    state
}

/// What a fixed number of zero bytes does to the CRC register.
#[derive(Clone, Debug)]
pub struct ZeroRun {
    length: usize,
    tables: Box<[[u32; 256]; 4]>,
}

impl ZeroRun {
    /// The operator for `length` zero bytes.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let mut columns = [0u32; 32];
        for (bit, column) in columns.iter_mut().enumerate() {
            *column = 1 << bit;
        }
        // Square and multiply over the one-byte operator.
        let mut power = [0u32; 32];
        for (bit, column) in power.iter_mut().enumerate() {
            *column = update(1 << bit, &[0]);
        }
        let mut left = length;
        while left > 0 {
            if left & 1 == 1 {
                columns = columns.map(|column| apply(&power, column));
            }
            power = power.map(|column| apply(&power, column));
            left >>= 1;
        }
        let mut tables = Box::new([[0u32; 256]; 4]);
        for (lane, table) in tables.iter_mut().enumerate() {
            for (byte, entry) in table.iter_mut().enumerate() {
                *entry = apply(&columns, (byte as u32) << (8 * lane));
            }
        }
        Self { length, tables }
    }

    /// The number of zero bytes this stands for.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The register after the run, from the register `state`.
    #[must_use]
    pub fn advance(&self, state: u32) -> u32 {
        let [a, b, c, d] = state.to_le_bytes().map(usize::from);
        self.tables[0][a] ^ self.tables[1][b] ^ self.tables[2][c] ^ self.tables[3][d]
    }
}

fn apply(columns: &[u32; 32], mut vector: u32) -> u32 {
    let mut result = 0;
    while vector != 0 {
        result ^= columns[vector.trailing_zeros() as usize];
        vector &= vector - 1;
    }
    result
}

/// Where the masked fields of a packet are; the packet begins with its IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A 20-byte IPv4 header (RoCEv2 forbids options).
    V4,
    /// A 40-byte IPv6 header directly followed by UDP.
    V6,
}

impl Network {
    /// Length of the IP header in bytes.
    #[must_use]
    pub const fn header_length(self) -> usize {
        match self {
            Network::V4 => 20,
            Network::V6 => 40,
        }
    }
}

/// IP (40 at most), UDP (8) and BTH (12) behind eight bytes of ones.
const PREFIX_MAX: usize = 8 + 40 + 8 + 12;

/// The CRC register after the eight ones and the masked IP, UDP and BTH headers at the start of
/// `packet`; `None` when the packet is too short for them.
#[must_use]
pub fn headers(network: Network, packet: &[u8]) -> Option<u32> {
    let ip = network.header_length();
    let length = ip + 20;
    let mut bytes = [0xFF; PREFIX_MAX];
    bytes[8..8 + length].copy_from_slice(packet.get(..length)?);
    let masked = &mut bytes[8..8 + length];
    match network {
        Network::V4 => {
            masked[1] = 0xFF;
            masked[8] = 0xFF;
            masked[10..12].fill(0xFF);
        }
        Network::V6 => {
            masked[0] |= 0x0F;
            masked[1..4].fill(0xFF);
            masked[7] = 0xFF;
        }
    }
    masked[ip + 6..ip + 8].fill(0xFF);
    masked[ip + 12] = 0xFF;
    Some(update(u32::MAX, &bytes[..8 + length]))
}

/// The four ICRC bytes as they go on the wire, from the final register.
#[must_use]
pub fn wire_bytes(state: u32) -> [u8; 4] {
    (!state).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn is_the_ethernet_crc() {
        // The check value every CRC-32 catalogue gives for this string.
        assert_eq!(!update(u32::MAX, b"123456789"), 0xCBF4_3926);
    }

    proptest! {
        #[test]
        fn blocks_agree_with_bytes(data in prop::collection::vec(any::<u8>(), 0..200), state: u32) {
            let bytewise = data.iter().fold(state, |state, byte| update(state, &[*byte]));
            prop_assert_eq!(update(state, &data), bytewise);
        }

        #[test]
        fn zero_run_is_walking_over_zeros(length in 0usize..5_000, state: u32) {
            let walked = update(state, &vec![0; length]);
            prop_assert_eq!(ZeroRun::new(length).advance(state), walked);
        }
    }
}

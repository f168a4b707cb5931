//! The hash algorithms of v1model, bit for bit as bmv2 has them.

/// A hash algorithm by the name p4c writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// CRC-16/ARC.
    Crc16,
    /// CRC-32/ISO-HDLC, that of Ethernet.
    Crc32,
    /// A CRC of so many bits with parameters of the control plane's.
    CustomCrc(u32),
    /// CRC-16/IBM-3740.
    CrcCcitt,
    /// Internet checksum (RFC 1071).
    Csum16,
    /// Exclusive or of big-endian 16-bit words.
    Xor16,
    /// Exclusive or of big-endian 32-bit words.
    Xor32,
    /// The first eight bytes, as a big-endian number.
    Identity,
    /// Any number.
    Random,
    /// xxHash64 with seed 0.
    Xxh64,
    /// FNV-1a of sign-extended bytes, with more mixing.
    HashEx,
}

impl Algorithm {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "crc16" => Self::Crc16,
            "crc32" => Self::Crc32,
            "crc16_custom" => Self::CustomCrc(16),
            "crc32_custom" => Self::CustomCrc(32),
            "crc8_custom" => Self::CustomCrc(8),
            "crc64_custom" => Self::CustomCrc(64),
            "crcCCITT" => Self::CrcCcitt,
            "csum16" | "cksum16" => Self::Csum16,
            "xor16" => Self::Xor16,
            "xor32" => Self::Xor32,
            "identity" => Self::Identity,
            "random" => Self::Random,
            "xxh64" | "bmv2_hash" => Self::Xxh64,
            "hash_ex" => Self::HashEx,
            _ => return None,
        })
    }

    /// The hash of some bytes. `Random` and `CustomCrc` are the caller's business.
    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        match self {
            Self::Crc16 => u64::from(crc16(bytes)),
            Self::Crc32 => u64::from(crc32(bytes)),
            Self::CrcCcitt => u64::from(crc_ccitt(bytes)),
            Self::Csum16 => u64::from(csum16(bytes)),
            Self::Xor16 => xor(bytes, 2),
            Self::Xor32 => xor(bytes, 4),
            Self::Identity => bytes.iter().take(8).fold(0, |h, &b| h << 8 | u64::from(b)),
            Self::Random | Self::CustomCrc(_) => 0,
            Self::HashEx => u64::from(hash_ex(bytes)),
            Self::Xxh64 => xxh64(bytes),
        }
    }
}

/// Tables of a reflected CRC for eight bytes at a time.
const fn reflected(polynomial: u32) -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ polynomial
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[t - 1][i];
            tables[t][i] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            i += 1;
        }
        t += 1;
    }
    tables
}

static CRC32: [[u32; 256]; 8] = reflected(0xedb8_8320);
static CRC16: [[u32; 256]; 8] = reflected(0xa001);

fn crc_reflected(tables: &[[u32; 256]; 8], init: u32, bytes: &[u8]) -> u32 {
    let mut crc = init;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.iter().rev().fold(0u64, |w, &b| w << 8 | u64::from(b));
        let mixed = word ^ u64::from(crc);
        let at = |table: usize, byte: u32| tables[table][(mixed >> (8 * byte) & 0xff) as usize];
        crc = at(7, 0) ^ at(6, 1) ^ at(5, 2) ^ at(4, 3) ^ at(3, 4) ^ at(2, 5) ^ at(1, 6) ^ at(0, 7);
    }
    for &byte in chunks.remainder() {
        crc = crc >> 8 ^ tables[0][((crc ^ u32::from(byte)) & 0xff) as usize];
    }
    crc
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !crc_reflected(&CRC32, u32::MAX, bytes)
}

pub(crate) fn crc16(bytes: &[u8]) -> u16 {
    crc_reflected(&CRC16, 0, bytes) as u16
}

fn hash_ex(bytes: &[u8]) -> u32 {
    let mut hash = bytes.iter().fold(2_166_136_261u32, |hash, &byte| {
        (hash ^ i32::from(byte.cast_signed()).cast_unsigned()).wrapping_mul(16_777_619)
    });
    hash = hash.wrapping_add(hash << 13);
    hash ^= hash >> 7;
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 17;
    hash.wrapping_add(hash << 5)
}

fn crc_ccitt(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc: u16, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            if crc & 0x8000 != 0 {
                crc << 1 ^ 0x1021
            } else {
                crc << 1
            }
        })
    })
}

/// One's complement sum of big-endian 16-bit words, folded but not inverted.
pub(crate) fn ones_sum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(4);
    let mut sum: u64 = 0;
    for chunk in &mut chunks {
        sum += u64::from(u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let rest = chunks.remainder();
    let mut last = [0u8; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

/// Folds a sum of 16-bit words to 16 bits.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn csum16(bytes: &[u8]) -> u16 {
    !fold(ones_sum(bytes))
}

fn xor(bytes: &[u8], size: usize) -> u64 {
    bytes
        .chunks(size)
        .map(|chunk| {
            (0..size).fold(0, |w, i| {
                w << 8 | u64::from(chunk.get(i).copied().unwrap_or(0))
            })
        })
        .fold(0, |a, b| a ^ b)
}

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

fn xxh64(bytes: &[u8]) -> u64 {
    let round = |acc: u64, lane: u64| {
        acc.wrapping_add(lane.wrapping_mul(P2))
            .rotate_left(31)
            .wrapping_mul(P1)
    };
    let lane = |chunk: &[u8]| chunk.iter().rev().fold(0u64, |w, &b| w << 8 | u64::from(b));
    let mut stripes = bytes.chunks_exact(32);
    let mut hash = if bytes.len() >= 32 {
        let mut acc = [P1.wrapping_add(P2), P2, 0, 0u64.wrapping_sub(P1)];
        for stripe in &mut stripes {
            for (acc, chunk) in acc.iter_mut().zip(stripe.chunks_exact(8)) {
                *acc = round(*acc, lane(chunk));
            }
        }
        let [a, b, c, d] = acc;
        let mixed = a
            .rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18));
        acc.iter().fold(mixed, |h, &acc| {
            (h ^ round(0, acc)).wrapping_mul(P1).wrapping_add(P4)
        })
    } else {
        P5
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let mut words = stripes.remainder().chunks_exact(8);
    for word in &mut words {
        hash = (hash ^ round(0, lane(word)))
            .rotate_left(27)
            .wrapping_mul(P1)
            .wrapping_add(P4);
    }
    let mut rest = words.remainder();
    if rest.len() >= 4 {
        hash = (hash ^ lane(&rest[..4]).wrapping_mul(P1))
            .rotate_left(23)
            .wrapping_mul(P2)
            .wrapping_add(P3);
        rest = &rest[4..];
    }
    for &byte in rest {
        hash = (hash ^ u64::from(byte).wrapping_mul(P5))
            .rotate_left(11)
            .wrapping_mul(P1);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(P2);
    hash = (hash ^ hash >> 29).wrapping_mul(P3);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    #[test]
    fn check_values_of_the_catalogue() {
        assert_eq!(crc32(CHECK), 0xcbf4_3926);
        assert_eq!(crc16(CHECK), 0xbb3d);
        assert_eq!(crc_ccitt(CHECK), 0x29b1);
    }

    #[test]
    fn eight_at_a_time_is_one_at_a_time() {
        let bytes: Vec<u8> = (0..=255).collect();
        let slow = bytes.iter().fold(u32::MAX, |crc, &b| {
            crc >> 8 ^ CRC32[0][((crc ^ u32::from(b)) & 0xff) as usize]
        });
        assert_eq!(crc32(&bytes), !slow);
    }

    #[test]
    fn internet_checksum_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(ones_sum(&bytes)), 0xddf2);
        assert_eq!(csum16(&bytes), 0x220d);
        assert_eq!(csum16(&[0xff]), 0x00ff);
    }

    #[test]
    fn xor_pads_at_the_end() {
        assert_eq!(Algorithm::Xor16.hash(&[0x12, 0x34, 0x56]), 0x1234 ^ 0x5600);
        assert_eq!(Algorithm::Identity.hash(&[1, 2]), 0x0102);
    }

    #[test]
    fn xxhash_vectors() {
        assert_eq!(xxh64(b""), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(xxh64(b"abc"), 0x44bc_2cf5_ad77_0999);
        let long = b"Nobody inspects the spammish repetition";
        assert_eq!(xxh64(long), 0xfbcea83c8a378bf1);
    }
}

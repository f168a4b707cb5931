//! What one hop tells about itself and a packet: INT-MD v2.1 section 3 and 5.8, Telemetry Report
//! v2.0 section 3.3.1. Stack and report use the same bits, but for the first and the last.

use super::{Malformed, number, split};

/// Metadata of one hop. `None`: not asked for, or the hop could not tell (all ones).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Bit 0: node that tells this.
    pub node: Option<u32>,
    /// Bit 1: ingress port. 0xffff in a report: not known.
    pub ingress_port: Option<u16>,
    /// Bit 1: egress port.
    pub egress_port: Option<u16>,
    /// Bit 2: time in the switch, in its unit (ns for the fabric's switches).
    pub latency: Option<u32>,
    /// Bit 3: queue.
    pub queue: Option<u8>,
    /// Bit 3: its occupancy, in the switch's unit (packets for the fabric's switches).
    pub queue_depth: Option<u32>,
    /// Bit 4: when the packet came in, by the switch's own clock.
    pub ingress_time: Option<u64>,
    /// Bit 5: when it left, by the switch's own clock.
    pub egress_time: Option<u64>,
    /// Bit 6: logical ingress and egress interface.
    pub logical: Option<(u32, u32)>,
    /// Bit 7: utilisation of the egress port, in the switch's unit.
    pub utilisation: Option<u32>,
    /// Bit 8: buffer and its occupancy.
    pub buffer: Option<(u8, u32)>,
    /// Bits 9 to 14, which have no meaning yet, as far as they are set: bit and word.
    pub reserved: Vec<(u8, u32)>,
    /// Domain specific metadata, as it is.
    pub domain_specific: Vec<u8>,
    /// Bit 15 in a stack: checksum complement; `None` when the hop updated the checksum itself.
    pub complement: Option<u32>,
    /// Bit 15 in a report: queue and reason of a drop.
    pub drop: Option<(u8, u8)>,
}

/// Whether a bit of a bitmap is set; bit 0 is the highest.
#[must_use]
pub fn is_set(bitmap: u16, bit: u8) -> bool {
    bitmap >> (15 - bit) & 1 == 1
}

/// Bytes that one bit stands for.
#[must_use]
pub fn bytes_of(bit: u8) -> usize {
    if (4..=6).contains(&bit) { 8 } else { 4 }
}

/// Bytes that a bitmap stands for.
#[must_use]
pub fn bytes_of_all(bitmap: u16) -> usize {
    (0..16)
        .filter(|&bit| is_set(bitmap, bit))
        .map(bytes_of)
        .sum()
}

/// Where metadata stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the stack of a packet.
    Stack,
    /// In a report.
    Report,
}

impl Metadata {
    /// Reads what a bitmap announces, then `domain_specific` bytes.
    ///
    /// # Errors
    /// When the bytes do not suffice.
    pub fn decode(
        bitmap: u16,
        domain_specific: usize,
        bytes: &[u8],
        place: Place,
    ) -> Result<Self, Malformed> {
        let mut metadata = Metadata::default();
        let mut rest = bytes;
        for bit in (0..15).filter(|&bit| is_set(bitmap, bit)) {
            let (word, after) = split(rest, bytes_of(bit), "metadata")?;
            rest = after;
            metadata.set(bit, word, place);
        }
        // In a stack the complement is last; in a report bit 15 is one of the baseline.
        let last = |metadata: &mut Metadata, rest| -> Result<_, Malformed> {
            let (word, after) = split(rest, 4, "metadata")?;
            match place {
                Place::Stack => metadata.complement = told(word).map(|value| value as u32),
                Place::Report => metadata.drop = Some((word[0], word[1])),
            }
            Ok(after)
        };
        if is_set(bitmap, 15) && place == Place::Report {
            rest = last(&mut metadata, rest)?;
        }
        let (own, after) = split(rest, domain_specific, "domain specific metadata")?;
        metadata.domain_specific = own.to_vec();
        if is_set(bitmap, 15) && place == Place::Stack {
            last(&mut metadata, after)?;
        }
        Ok(metadata)
    }

    fn set(&mut self, bit: u8, word: &[u8], place: Place) {
        if bit == 0 && place == Place::Report {
            self.reserved.push((bit, number(word) as u32));
            return;
        }
        let Some(value) = told(word) else {
            if (9..15).contains(&bit) {
                self.reserved.push((bit, u32::MAX));
            }
            return;
        };
        let pair = |value: u64| ((value >> 24) as u8, value as u32 & 0xff_ffff);
        match bit {
            0 => self.node = Some(value as u32),
            1 => {
                self.ingress_port = Some((value >> 16) as u16);
                self.egress_port = Some(value as u16);
            }
            2 => self.latency = Some(value as u32),
            3 => {
                let (queue, depth) = pair(value);
                self.queue = Some(queue);
                self.queue_depth = Some(depth);
            }
            4 => self.ingress_time = Some(value),
            5 => self.egress_time = Some(value),
            6 => self.logical = Some(((value >> 32) as u32, value as u32)),
            7 => self.utilisation = Some(value as u32),
            8 => self.buffer = Some(pair(value)),
            _ => self.reserved.push((bit, value as u32)),
        }
    }

    /// Writes what a bitmap asks for; what is not known as ones.
    #[must_use]
    pub fn encode(&self, bitmap: u16, place: Place) -> Vec<u8> {
        let mut bytes = Vec::new();
        for bit in (0..15).filter(|&bit| is_set(bitmap, bit)) {
            let len = bytes_of(bit);
            let value = self.get(bit, place).unwrap_or(u64::MAX);
            bytes.extend(&value.to_be_bytes()[8 - len..]);
        }
        let last = match place {
            Place::Stack => self.complement.unwrap_or(u32::MAX),
            Place::Report => {
                let (queue, reason) = self.drop.unwrap_or((u8::MAX, u8::MAX));
                u32::from_be_bytes([queue, reason, 0, 0])
            }
        };
        let last = if is_set(bitmap, 15) {
            &last.to_be_bytes()[..]
        } else {
            &[]
        };
        match place {
            Place::Stack => [&bytes, &self.domain_specific, last].concat(),
            Place::Report => [&bytes, last, &self.domain_specific].concat(),
        }
    }

    fn get(&self, bit: u8, place: Place) -> Option<u64> {
        let pair = |high: u8, low: u32| u64::from(high) << 24 | u64::from(low);
        match bit {
            0 if place == Place::Stack => self.node.map(u64::from),
            1 => Some(u64::from(self.ingress_port?) << 16 | u64::from(self.egress_port?)),
            2 => self.latency.map(u64::from),
            3 => Some(pair(self.queue?, self.queue_depth?)),
            4 => self.ingress_time,
            5 => self.egress_time,
            6 => self.logical.map(|(a, b)| u64::from(a) << 32 | u64::from(b)),
            7 => self.utilisation.map(u64::from),
            8 => self.buffer.map(|(id, depth)| pair(id, depth)),
            _ => {
                let mut reserved = self.reserved.iter();
                let found = reserved.find(|(reserved, _)| *reserved == bit);
                found.map(|(_, word)| u64::from(*word))
            }
        }
    }
}

/// A value that is not all ones.
fn told(word: &[u8]) -> Option<u64> {
    word.iter().any(|byte| *byte != 0xff).then(|| number(word))
}

//! The rules of INT-MD v2.1, told once more in plain code, as a yardstick for the P4 program.
//!
//! It takes frames apart and puts them together again, and computes every checksum anew from the whole
//! packet, where the program adds up differences.

use crate::frames::{TCP, UDP, sum};

/// How a source tells the next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indicator {
    Dscp(u8),
    Port(u16),
}

/// What a source asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) indicator: Indicator,
    pub(crate) instructions: u16,
    pub(crate) hop_ml: u8,
    pub(crate) max_hops: u8,
    pub(crate) domain: u16,
}

/// What a hop knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) node: u32,
    pub(crate) ingress: u16,
    pub(crate) egress: u16,
    pub(crate) queue: u8,
    pub(crate) depth: u32,
    /// ns
    pub(crate) arrived: u64,
    /// ns
    pub(crate) left: u64,
    /// Largest IP packet.
    pub(crate) mtu: usize,
    /// Logical interfaces, if they are configured.
    pub(crate) logical: Option<(u32, u32)>,
    /// Use of the egress port, if it is measured; 65 536 is all.
    pub(crate) utilisation: Option<u32>,
}

impl Hop {
    /// A hop that knows nothing but its ports and has an empty queue.
    pub(crate) fn between(node: u32, ingress: u16, egress: u16) -> Self {
        Hop {
            node,
            ingress,
            egress,
            queue: 0,
            depth: 0,
            arrived: 0,
            left: 0,
            mtu: 9000,
            logical: None,
            utilisation: None,
        }
    }
}

/// Words that one hop adds for an instruction bitmap.
pub(crate) fn words_of(instructions: u16) -> u8 {
    (0..16)
        .filter(|bit| instructions >> (15 - bit) & 1 == 1)
        .map(|bit| if (4..=6).contains(&bit) { 2 } else { 1 })
        .sum()
}

/// Metadata of one hop.
fn metadata(instructions: u16, hop_ml: u8, hop: &Hop) -> Vec<u8> {
    let asked = |bit: u16| instructions >> (15 - bit) & 1 == 1;
    let mut bytes = Vec::new();
    for bit in 0..15 {
        if !asked(bit) {
            continue;
        }
        match bit {
            0 => bytes.extend(hop.node.to_be_bytes()),
            1 => bytes.extend([hop.ingress, hop.egress].map(u16::to_be_bytes).concat()),
            2 => bytes.extend(((hop.left - hop.arrived) as u32).to_be_bytes()),
            3 => {
                bytes.push(hop.queue);
                bytes.extend(&hop.depth.to_be_bytes()[1..]);
            }
            4 => bytes.extend(hop.arrived.to_be_bytes()),
            5 => bytes.extend(hop.left.to_be_bytes()),
            6 => {
                let (from, to) = hop.logical.unwrap_or((u32::MAX, u32::MAX));
                bytes.extend([from, to].map(u32::to_be_bytes).concat());
            }
            7 => bytes.extend(hop.utilisation.unwrap_or(u32::MAX).to_be_bytes()),
            8 => {
                // A queue is a buffer of its own; its number in counters, as far as it fits.
                bytes.push((hop.egress << 3 | u16::from(hop.queue)) as u8);
                bytes.extend(&hop.depth.to_be_bytes()[1..]);
            }
            _ => bytes.extend([0xff; 4]),
        }
    }
    // Domain specific metadata, which nobody here knows, then the checksum complement.
    bytes.resize(usize::from(hop_ml) * 4, 0xff);
    bytes
}

/// A frame in pieces.
struct Parts {
    ethernet: Vec<u8>,
    ip: Vec<u8>,
    transport: Vec<u8>,
}

impl Parts {
    fn of(frame: &[u8]) -> Self {
        let ip = if frame[12..14] == [8, 0] { 20 } else { 40 };
        Parts {
            ethernet: frame[..14].to_vec(),
            ip: frame[14..14 + ip].to_vec(),
            transport: frame[14 + ip..].to_vec(),
        }
    }

    fn v4(&self) -> bool {
        self.ip[0] >> 4 == 4
    }

    fn protocol(&mut self) -> &mut u8 {
        let at = if self.v4() { 9 } else { 6 };
        &mut self.ip[at]
    }

    fn dscp(&self) -> u8 {
        if self.v4() {
            self.ip[1] >> 2
        } else {
            (self.ip[0] << 4 | self.ip[1] >> 4) >> 2
        }
    }

    fn set_dscp(&mut self, dscp: u8) {
        if self.v4() {
            self.ip[1] = dscp << 2 | self.ip[1] & 3;
        } else {
            self.ip[0] = 0x60 | dscp >> 2;
            self.ip[1] = dscp << 6 | self.ip[1] & 0x3f;
        }
    }

    /// Puts lengths and checksums right and the pieces together. A UDP checksum of 0 stays 0.
    fn whole(mut self) -> Vec<u8> {
        let len = self.transport.len() as u16;
        let protocol = *self.protocol();
        if self.v4() {
            self.ip[2..4].copy_from_slice(&(20 + len).to_be_bytes());
            self.ip[10..12].fill(0);
            let checksum = !sum(&self.ip, 0);
            self.ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            self.ip[4..6].copy_from_slice(&len.to_be_bytes());
        }
        if protocol == UDP {
            self.transport[4..6].copy_from_slice(&len.to_be_bytes());
        }
        let at = if protocol == TCP { 16 } else { 6 };
        if protocol == TCP || self.transport[at..at + 2] != [0, 0] {
            self.transport[at..at + 2].fill(0);
            let addresses = if self.v4() {
                &self.ip[12..20]
            } else {
                &self.ip[8..40]
            };
            let pseudo = sum(addresses, u32::from(protocol) + u32::from(len));
            let mut checksum = !sum(&self.transport, pseudo.into());
            if checksum == 0 && protocol == UDP {
                checksum = 0xffff;
            }
            self.transport[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        [self.ethernet, self.ip, self.transport].concat()
    }
}

/// Puts INT headers without any hop's metadata into a frame that has just been routed.
pub(crate) fn begin(frame: &[u8], watch: &Watch) -> Vec<u8> {
    let mut parts = Parts::of(frame);
    let tcp = *parts.protocol() == TCP;
    let mut int = vec![0x10, 3];
    match watch.indicator {
        Indicator::Dscp(_) => int.extend([0, parts.dscp() << 2]),
        Indicator::Port(_) if tcp => {
            int[0] |= 2 << 2;
            int.extend([0, TCP]);
        }
        Indicator::Port(_) => {
            int[0] |= 1 << 2;
            int.extend(&parts.transport[2..4]);
        }
    }
    int.extend([0x20, 0, watch.hop_ml, watch.max_hops]);
    int.extend(watch.instructions.to_be_bytes());
    int.extend(watch.domain.to_be_bytes());
    int.extend([0; 4]);
    match watch.indicator {
        Indicator::Port(port) if tcp => {
            // The source port is any dynamic one: `same_but_entropy` looks away.
            let udp = [&[0xc0, 0], &port.to_be_bytes()[..], &[0; 4]].concat();
            parts.transport.splice(0..0, [udp, int].concat());
            *parts.protocol() = UDP;
        }
        Indicator::Port(port) => {
            parts.transport[2..4].copy_from_slice(&port.to_be_bytes());
            parts.transport.splice(8..8, int);
        }
        Indicator::Dscp(dscp) => {
            parts.set_dscp(dscp);
            let at = if tcp { 20 } else { 8 };
            parts.transport.splice(at..at, int);
        }
    }
    parts.whole()
}

/// Where the shim of a measured frame stands in its transport packet.
fn shim_at(parts: &mut Parts) -> usize {
    if *parts.protocol() == TCP { 20 } else { 8 }
}

/// A hop's turn at a frame that carries INT.
pub(crate) fn push(frame: &[u8], hop: &Hop) -> Vec<u8> {
    let mut parts = Parts::of(frame);
    let shim = shim_at(&mut parts);
    let md = shim + 4;
    let hop_ml = parts.transport[md + 2] & 0x1f;
    let instructions = u16::from_be_bytes([parts.transport[md + 4], parts.transport[md + 5]]);
    let added = usize::from(hop_ml) * 4;
    if parts.transport[md + 3] == 0 {
        parts.transport[md] |= 0x04;
    } else if words_of(instructions) > hop_ml || parts.transport[shim + 1] + hop_ml > 67 {
        return frame.to_vec();
    } else if parts.ip.len() + parts.transport.len() + added > hop.mtu {
        parts.transport[md] |= 0x02;
    } else {
        parts.transport[md + 3] -= 1;
        parts.transport[shim + 1] += hop_ml;
        let own = metadata(instructions, hop_ml, hop);
        parts.transport.splice(md + 12..md + 12, own);
    }
    parts.whole()
}

/// Whether two frames are the same but for the source port of an added UDP header.
pub(crate) fn same_but_entropy(a: &[u8], b: &[u8]) -> bool {
    let blank = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        let at = if frame[12..14] == [8, 0] { 34 } else { 54 };
        let added = frame[at + 8] == 0x18;
        if added && frame[at] >= 0xc0 {
            frame[at..at + 2].fill(0);
        }
        frame
    };
    blank(a) == blank(b)
}

//! What the fabric's owner wants to be told by in-band telemetry (INT-MD v2.1).

use std::net::SocketAddrV4;

use ipnetwork::IpNetwork;
use serde::Serialize;

/// How switches tell each other that a packet carries INT. Packets of hosts must not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntIndicator {
    /// By this DSCP, which no host uses.
    Dscp(u8),
    /// By this UDP destination port; TCP gets a UDP header in front.
    UdpPort(u16),
}

/// What a hop can be asked for, by its name in files and its bit of the instruction bitmap.
pub const INT_INSTRUCTIONS: [(&str, u16); 10] = [
    ("node", 1 << 15),
    ("ports", 1 << 14),
    ("latency", 1 << 13),
    ("queue", 1 << 12),
    ("ingress_time", 1 << 11),
    ("egress_time", 1 << 10),
    ("logical_ports", 1 << 9),
    ("utilisation", 1 << 8),
    ("buffer", 1 << 7),
    ("checksum_complement", 1),
];

/// Words of 4 bytes that a hop adds for a bitmap of instructions.
#[must_use]
pub fn int_words(instructions: u16) -> u32 {
    // Bits 4 to 6 are 8 bytes.
    instructions.count_ones() + (instructions & 0x0e00).count_ones()
}

/// Words that the data plane takes in the stack of one packet.
pub const INT_STACK_WORDS: u32 = 64;

/// Which packets are measured: those that fit all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IntWatch {
    /// Sender.
    #[serde(serialize_with = "as_text")]
    pub src: Option<IpNetwork>,
    /// Receiver.
    #[serde(serialize_with = "as_text")]
    pub dst: Option<IpNetwork>,
    /// IP protocol: 6 (TCP) or 17 (UDP).
    pub protocol: Option<u8>,
    /// Source port.
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// Destination queue pair of RoCEv2.
    pub dest_qp: Option<u32>,
    /// One packet in so many, by lot.
    pub one_in: u32,
}

fn as_text<S: serde::Serializer>(prefix: &Option<IpNetwork>, to: S) -> Result<S::Ok, S::Error> {
    prefix.map(|prefix| prefix.to_string()).serialize(to)
}

/// What is reported to the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IntReports {
    /// The path of every measured packet, from the switch it leaves the fabric by.
    pub paths: bool,
    /// Packets that are dropped, with the reason.
    pub drops: bool,
    /// Packets that leave more than this in their queue, bytes; `None`: not reported.
    pub queue: Option<u64>,
    /// Packets that ECN marks or drops.
    pub marks: bool,
    /// Reports per second of one switch and kind (path, drop, queue).
    pub rate: u32,
}

/// In-band telemetry of the whole fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IntPolicy {
    /// What tells of INT.
    pub indicator: IntIndicator,
    /// Domain; 0 is the one that all switches know.
    pub domain: u16,
    /// What every hop is asked for: bits of [`INT_INSTRUCTIONS`].
    pub instructions: u16,
    /// Hops that may add theirs.
    pub max_hops: u8,
    /// Where reports go; `None`: to the controller, by P4Runtime.
    pub collector: Option<SocketAddrV4>,
    /// Which packets are measured; the first that fits decides.
    pub watch: Vec<IntWatch>,
    /// What is reported.
    pub reports: IntReports,
}

impl Default for IntPolicy {
    fn default() -> Self {
        let default = ["node", "ports", "latency", "queue"];
        let asked = INT_INSTRUCTIONS
            .iter()
            .filter(|(name, _)| default.contains(name));
        Self {
            // The specification's example; not assigned to anything else.
            indicator: IntIndicator::Dscp(0x17),
            domain: 0,
            instructions: asked.map(|(_, bit)| bit).sum(),
            max_hops: 8,
            collector: None,
            watch: Vec::new(),
            reports: IntReports {
                paths: true,
                drops: false,
                queue: None,
                marks: false,
                rate: 1000,
            },
        }
    }
}

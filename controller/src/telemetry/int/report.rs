//! Telemetry Report v2.0: a group header and one or more reports in a UDP datagram (section 3).

use super::metadata::{Metadata, Place, bytes_of_all};
use super::{Malformed, number, split};

/// Bits of a sequence number.
pub const SEQUENCE_BITS: u32 = 22;
/// A length that means: to the end of the datagram.
const TO_THE_END: u8 = 0xff;

/// The payload of a UDP datagram to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Part of the node that reports.
    pub hw_id: u8,
    /// Counts the datagrams of this node and part to this collector, modulo 2^22.
    pub sequence: u32,
    /// Node that reports.
    pub node: u32,
    /// What it reports.
    pub reports: Vec<Report>,
}

/// One report, about one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// D: the packet was dropped.
    pub dropped: bool,
    /// Q: the queue is congested.
    pub congested: bool,
    /// F: the flow is watched.
    pub tracked: bool,
    /// I: from a transit node that took the stack out.
    pub intermediate: bool,
    /// Metadata of the node that reports; `None` for RepType Inner Only.
    pub own: Option<Own>,
    /// What follows.
    pub inner: Inner,
}

/// Main contents of RepType INT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// RepMdBits: what `metadata` holds.
    pub bits: u16,
    /// Domain of the domain specific metadata.
    pub domain_id: u16,
    /// Which domain specific metadata there is.
    pub ds_bits: u16,
    /// Their status.
    pub ds_status: u16,
    /// The metadata.
    pub metadata: Metadata,
}

/// Inner contents of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inner {
    /// InType 0.
    None,
    /// InType 1.
    Tlv(Vec<Tlv>),
    /// InType 2: domain specific extension data.
    DomainSpecific(Vec<u8>),
    /// InType 3: a packet from its Ethernet header on, cut off somewhere.
    Ethernet(Vec<u8>),
    /// InType 4: a packet from its IPv4 header on.
    Ipv4(Vec<u8>),
    /// InType 5: a packet from its IPv6 header on.
    Ipv6(Vec<u8>),
}

/// One of several inner contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tlv {
    /// 0 domain specific, 1 Ethernet, 2 IPv4, 3 IPv6.
    pub kind: u8,
    /// Template of domain specific data.
    pub template: u16,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl Datagram {
    /// Reads a datagram.
    ///
    /// # Errors
    /// When it is not a Telemetry Report v2, or lengths do not fit.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (group, mut rest) = split(bytes, 8, "report group header")?;
        let version = group[0] >> 4;
        if version != 2 {
            return Err(Malformed::Unknown {
                what: "version of the report",
                found: version.into(),
                expected: "2",
            });
        }
        let first = number(&group[..4]) as u32;
        let mut datagram = Datagram {
            hw_id: (first >> SEQUENCE_BITS & 0x3f) as u8,
            sequence: first & ((1 << SEQUENCE_BITS) - 1),
            node: number(&group[4..]) as u32,
            reports: Vec::new(),
        };
        if rest.is_empty() {
            return Err(Malformed::Contradiction("a group header without a report"));
        }
        while !rest.is_empty() {
            let (report, after) = Report::decode(rest)?;
            datagram.reports.push(report);
            rest = after;
        }
        Ok(datagram)
    }

    /// Writes a datagram.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let first = 2 << 28 | u32::from(self.hw_id & 0x3f) << SEQUENCE_BITS | self.sequence;
        let mut bytes = [first, self.node].map(u32::to_be_bytes).concat();
        for report in &self.reports {
            bytes.extend(report.encode());
        }
        bytes
    }
}

impl Report {
    fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (header, rest) = split(bytes, 4, "report header")?;
        let (body, after) = match header[1] {
            TO_THE_END if rest.len() >= usize::from(TO_THE_END) * 4 => (rest, &[][..]),
            words => split(rest, usize::from(words) * 4, "report")?,
        };
        let (own, inner) = match header[0] >> 4 {
            0 => (None, body),
            1 => {
                let (own, inner) = Own::decode(body, usize::from(header[2]) * 4)?;
                (Some(own), inner)
            }
            other => {
                return Err(Malformed::Unknown {
                    what: "type of the report",
                    found: other.into(),
                    expected: "0 (Inner Only) or 1 (INT)",
                });
            }
        };
        let flag = |bit: u8| header[3] >> bit & 1 == 1;
        let report = Report {
            dropped: flag(7),
            congested: flag(6),
            tracked: flag(5),
            intermediate: flag(4),
            own,
            inner: Inner::decode(header[0] & 15, inner)?,
        };
        Ok((report, after))
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut metadata_words = 0;
        if let Some(own) = &self.own {
            let metadata = own.metadata.encode(own.bits, Place::Report);
            metadata_words = metadata.len() / 4;
            let words = [own.bits, own.domain_id, own.ds_bits, own.ds_status];
            body.extend(words.map(u16::to_be_bytes).concat());
            body.extend(metadata);
        }
        let (in_type, inner) = self.inner.encode();
        body.extend(inner);
        let flags = [
            self.dropped,
            self.congested,
            self.tracked,
            self.intermediate,
        ];
        let flags = flags.iter().fold(0, |all, flag| all << 1 | u8::from(*flag)) << 4;
        let length = (body.len() / 4).min(TO_THE_END.into()) as u8;
        let rep_type = u8::from(self.own.is_some());
        let mut bytes = vec![rep_type << 4 | in_type, length, metadata_words as u8, flags];
        bytes.extend(body);
        bytes
    }
}

impl Own {
    fn decode(body: &[u8], metadata: usize) -> Result<(Self, &[u8]), Malformed> {
        let (fixed, rest) = split(body, 8, "report contents")?;
        let (metadata, inner) = split(rest, metadata, "report metadata")?;
        let word = |at: usize| number(&fixed[at..at + 2]) as u16;
        let bits = word(0);
        let Some(domain_specific) = metadata.len().checked_sub(bytes_of_all(bits)) else {
            return Err(Malformed::Contradiction(
                "MD Length is less than RepMdBits announce",
            ));
        };
        let own = Own {
            bits,
            domain_id: word(2),
            ds_bits: word(4),
            ds_status: word(6),
            metadata: Metadata::decode(bits, domain_specific, metadata, Place::Report)?,
        };
        Ok((own, inner))
    }
}

impl Inner {
    fn decode(in_type: u8, bytes: &[u8]) -> Result<Self, Malformed> {
        let data = bytes.to_vec();
        match in_type {
            0 => Ok(Inner::None),
            1 => Tlv::decode_all(bytes).map(Inner::Tlv),
            2 => Ok(Inner::DomainSpecific(data)),
            3 => Ok(Inner::Ethernet(data)),
            4 => Ok(Inner::Ipv4(data)),
            5 => Ok(Inner::Ipv6(data)),
            other => Err(Malformed::Unknown {
                what: "type of the report's inner contents",
                found: other.into(),
                expected: "0 to 5",
            }),
        }
    }

    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            Inner::None => (0, Vec::new()),
            Inner::Tlv(all) => (1, all.iter().flat_map(Tlv::encode).collect()),
            Inner::DomainSpecific(data) => (2, data.clone()),
            Inner::Ethernet(data) => (3, data.clone()),
            Inner::Ipv4(data) => (4, data.clone()),
            Inner::Ipv6(data) => (5, data.clone()),
        }
    }

    /// The packet that the report shows, from its IP header on.
    #[must_use]
    pub fn ip(&self) -> Option<&[u8]> {
        match self {
            Inner::Ipv4(data) | Inner::Ipv6(data) => Some(data),
            Inner::Ethernet(data) => behind_ethernet(data),
            Inner::Tlv(all) => all.iter().find_map(|tlv| match tlv.kind {
                1 => behind_ethernet(&tlv.data),
                2 | 3 => Some(tlv.data.as_slice()),
                _ => None,
            }),
            Inner::None | Inner::DomainSpecific(_) => None,
        }
    }
}

fn behind_ethernet(frame: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    while let Some([0x81, 0]) = frame.get(at..at + 2) {
        at += 4;
    }
    frame.get(at + 2..)
}

impl Tlv {
    fn decode_all(mut bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (header, rest) = split(bytes, 4, "TLV header")?;
            let (data, after) = split(rest, usize::from(header[1]) * 4, "TLV")?;
            all.push(Tlv {
                kind: header[0] >> 4,
                template: number(&header[2..]) as u16,
                data: data.to_vec(),
            });
            bytes = after;
        }
        Ok(all)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind << 4, (self.data.len() / 4) as u8];
        bytes.extend(self.template.to_be_bytes());
        bytes.extend(&self.data);
        bytes
    }
}

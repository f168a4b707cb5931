//! The packet that a report shows: headers from IP on, cut off somewhere, perhaps with INT in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::flow::Flow;
use super::stack::{Next, SHIM_BYTES, Stack};
use super::{Malformed, number, split};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// UDP destination port of RoCEv2.
const ROCE: u16 = 4791;
/// Header of TCP without options, after which INT stands.
const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;

/// What tells that a packet carries INT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indicator {
    /// A DSCP.
    Dscp(u8),
    /// A UDP destination port.
    Port(u16),
}

/// A packet as far as a report shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As it was before the source changed the packet.
    pub flow: Flow,
    /// As it was before the source changed the packet.
    pub dscp: u8,
    /// ECN field; 3 is a mark.
    pub ecn: u8,
    /// INT-MD, if the packet carries it.
    pub stack: Option<Stack>,
}

impl Shown {
    /// Takes a packet apart, from its IP header on.
    ///
    /// # Errors
    /// When it is no IP packet, is cut off before its flow is known, or says that it carries INT but
    /// does not.
    pub fn of(packet: &[u8], indicators: &[Indicator]) -> Result<Self, Malformed> {
        let (mut shown, transport) = Self::ip(packet)?;
        let carries = |by: Indicator| indicators.contains(&by);
        let protocol = shown.flow.protocol;
        if protocol != TCP && protocol != UDP {
            return Ok(shown);
        }
        let (ports, _) = split(transport, 4, "ports")?;
        shown.flow.src_port = number(&ports[..2]) as u16;
        shown.flow.dst_port = number(&ports[2..]) as u16;
        let header = if protocol == TCP {
            TCP_BYTES
        } else {
            UDP_BYTES
        };
        let Some(mut payload) = transport.get(header..) else {
            return Ok(shown);
        };
        let by_port = protocol == UDP && carries(Indicator::Port(shown.flow.dst_port));
        if (by_port || carries(Indicator::Dscp(shown.dscp))) && payload.len() >= SHIM_BYTES {
            let (stack, rest) = Stack::decode(payload)?;
            payload = rest;
            match stack.next {
                Next::InPlace { dscp } => shown.dscp = dscp,
                Next::Port(port) => shown.flow.dst_port = port,
                Next::Protocol(protocol) => {
                    shown.flow.protocol = protocol;
                    let (ports, _) = split(payload, 4, "ports behind INT")?;
                    shown.flow.src_port = number(&ports[..2]) as u16;
                    shown.flow.dst_port = number(&ports[2..]) as u16;
                }
            }
            shown.stack = Some(stack);
        }
        if shown.flow.protocol == UDP
            && shown.flow.dst_port == ROCE
            && payload.len() >= SHIM_BYTES * 2
        {
            shown.flow.dest_qp = Some(number(&payload[5..8]) as u32);
        }
        Ok(shown)
    }

    fn ip(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let version = packet.first().map_or(0, |byte| byte >> 4);
        let class;
        let (src, dst, protocol, header): (IpAddr, IpAddr, u8, usize) = match version {
            4 => {
                let (ip, _) = split(packet, 20, "IPv4 header")?;
                class = ip[1];
                let address = |at: usize| Ipv4Addr::from(number(&ip[at..at + 4]) as u32);
                let header = usize::from(ip[0] & 15) * 4;
                (address(12).into(), address(16).into(), ip[9], header)
            }
            6 => {
                let (ip, _) = split(packet, 40, "IPv6 header")?;
                class = ip[0] << 4 | ip[1] >> 4;
                let address = |at: usize| {
                    let (high, low) = (number(&ip[at..at + 8]), number(&ip[at + 8..at + 16]));
                    Ipv6Addr::from(u128::from(high) << 64 | u128::from(low))
                };
                (address(8).into(), address(24).into(), ip[6], 40)
            }
            other => {
                return Err(Malformed::Unknown {
                    what: "IP version of the packet shown",
                    found: other.into(),
                    expected: "4 or 6",
                });
            }
        };
        let flow = Flow {
            src,
            dst,
            protocol,
            src_port: 0,
            dst_port: 0,
            dest_qp: None,
        };
        let (_, transport) = split(packet, header, "IP header")?;
        let shown = Shown {
            flow,
            dscp: class >> 2,
            ecn: class & 3,
            stack: None,
        };
        Ok((shown, transport))
    }
}

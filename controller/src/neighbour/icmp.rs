//! ICMP (RFC 792), ICMPv6 (RFC 4443) and the part of neighbour discovery (RFC 4861) that a router answers.

use super::wire::{Ethernet, checksum};
use std::net::{Ipv4Addr, Ipv6Addr};
use topology::MacAddr;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const TTL: u8 = 64;
/// Most bytes of an IPv4 error message (RFC 1812 section 4.3.2.3), and of the smallest IPv6 MTU.
const V4_ERROR: usize = 576;
const V6_ERROR: usize = 1280;

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const V6_TIME_EXCEEDED: u8 = 3;
const V6_ECHO_REQUEST: u8 = 128;
const V6_ECHO_REPLY: u8 = 129;
const V6_SOLICITATION: u8 = 135;
const V6_ADVERTISEMENT: u8 = 136;

/// An IPv4 packet without options.
struct V4<'a> {
    header: &'a [u8; 20],
    payload: &'a [u8],
    src: Ipv4Addr,
    dst: Ipv4Addr,
}

impl<'a> V4<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        let header: &[u8; 20] = body.get(..20)?.try_into().ok()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] != 0x45 {
            return None;
        }
        let address =
            |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        let payload = body.get(20..length)?;
        Some(Self {
            header,
            payload,
            src: address(12),
            dst: address(16),
        })
    }

    /// Neither errors nor answers go to these (RFC 1122 section 3.2.2).
    fn may_be_answered(&self) -> bool {
        !(self.src.is_unspecified() || self.src.is_multicast() || self.src.is_broadcast())
    }
}

fn v4_packet(ethernet: &Ethernet, src: Ipv4Addr, dst: Ipv4Addr, mut message: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = (20 + message.len()) as u16;
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[8] = TTL;
    header[9] = ICMP;
    header[12..16].copy_from_slice(&src.octets());
    header[16..20].copy_from_slice(&dst.octets());
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut packet = ethernet.reply(ethernet.dst);
    packet.extend(header);
    packet.extend(message);
    packet
}

/// The answer to a ping.
pub(super) fn echo_v4(ethernet: &Ethernet, body: &[u8]) -> Option<Vec<u8>> {
    let packet = V4::parse(body)?;
    let is_echo = packet.header[9] == ICMP && packet.payload.starts_with(&[ECHO_REQUEST, 0]);
    if !is_echo || packet.payload.len() < 8 || !packet.may_be_answered() {
        return None;
    }
    let mut message = packet.payload.to_vec();
    message[..4].copy_from_slice(&[ECHO_REPLY, 0, 0, 0]);
    Some(v4_packet(ethernet, packet.dst, packet.src, message))
}

/// The error for a packet whose TTL is used up, from `router`. ICMP errors get none.
pub(super) fn time_exceeded_v4(
    ethernet: &Ethernet,
    body: &[u8],
    router: Ipv4Addr,
) -> Option<Vec<u8>> {
    let packet = V4::parse(body)?;
    let error = packet.header[9] == ICMP
        && packet
            .payload
            .first()
            .is_none_or(|kind| ![ECHO_REQUEST, ECHO_REPLY].contains(kind));
    if error || !packet.may_be_answered() {
        return None;
    }
    let mut message = vec![TIME_EXCEEDED, 0, 0, 0, 0, 0, 0, 0];
    message.extend(packet.header);
    message.extend(packet.payload.iter().take(V4_ERROR - 48));
    Some(v4_packet(ethernet, router, packet.src, message))
}

/// An IPv6 packet without extension headers.
struct V6<'a> {
    header: &'a [u8; 40],
    payload: &'a [u8],
    src: Ipv6Addr,
    dst: Ipv6Addr,
}

impl<'a> V6<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        let header: &[u8; 40] = body.get(..40)?.try_into().ok()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&header[at..at + 16]);
            Ipv6Addr::from(octets)
        };
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload = body.get(40..40 + length)?;
        Some(Self {
            header,
            payload,
            src: address(8),
            dst: address(24),
        })
    }
}

fn v6_message(src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8, mut message: Vec<u8>) -> Vec<u8> {
    let length = message.len() as u16;
    let pseudo = [0, 0, (length >> 8) as u8, length as u8, 0, 0, 0, ICMPV6];
    let sum = checksum(&[&src.octets(), &dst.octets(), &pseudo, &message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([ICMPV6, hop_limit]);
    packet.extend(src.octets());
    packet.extend(dst.octets());
    packet.extend(message);
    packet
}

/// The answer to a ping.
pub(super) fn echo_v6(ethernet: &Ethernet, body: &[u8]) -> Option<Vec<u8>> {
    let packet = V6::parse(body)?;
    let is_echo = packet.header[6] == ICMPV6 && packet.payload.starts_with(&[V6_ECHO_REQUEST, 0]);
    if !is_echo || packet.payload.len() < 8 || packet.src.is_unspecified() {
        return None;
    }
    let mut message = packet.payload.to_vec();
    message[..4].copy_from_slice(&[V6_ECHO_REPLY, 0, 0, 0]);
    let mut reply = ethernet.reply(ethernet.dst);
    reply.extend(v6_message(packet.dst, packet.src, TTL, message));
    Some(reply)
}

/// The error for a packet whose hop limit is used up, from `router`. ICMPv6 errors get none.
pub(super) fn time_exceeded_v6(
    ethernet: &Ethernet,
    body: &[u8],
    router: Ipv6Addr,
) -> Option<Vec<u8>> {
    let packet = V6::parse(body)?;
    let error = packet.header[6] == ICMPV6 && packet.payload.first().is_none_or(|kind| *kind < 128);
    if error || packet.src.is_unspecified() || packet.src.is_multicast() {
        return None;
    }
    let mut message = vec![V6_TIME_EXCEEDED, 0, 0, 0, 0, 0, 0, 0];
    message.extend(packet.header);
    message.extend(packet.payload.iter().take(V6_ERROR - 88));
    let mut reply = ethernet.reply(ethernet.dst);
    reply.extend(v6_message(router, packet.src, TTL, message));
    Some(reply)
}

/// A neighbour solicitation.
pub(super) struct Solicitation {
    pub(super) source: Ipv6Addr,
    pub(super) target: Ipv6Addr,
}

impl Solicitation {
    /// `None` for anything else, and for what fails the checks of RFC 4861 section 7.1.1.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let packet = V6::parse(body)?;
        let is_solicitation =
            packet.header[6] == ICMPV6 && packet.payload.starts_with(&[V6_SOLICITATION, 0]);
        // A hop limit below 255 means that it came through a router.
        if !is_solicitation || packet.header[7] != 255 {
            return None;
        }
        let octets: [u8; 16] = packet.payload.get(8..24)?.try_into().ok()?;
        let target = Ipv6Addr::from(octets);
        (!target.is_multicast()).then_some(Self {
            source: packet.src,
            target,
        })
    }

    /// The advertisement that answers it: `mac` is the target's address. To all nodes if the question had
    /// no source (duplicate address detection, RFC 4862 section 5.4).
    pub(super) fn advertise(&self, ethernet: &Ethernet, mac: MacAddr) -> Vec<u8> {
        const ROUTER: u8 = 0x80;
        const SOLICITED: u8 = 0x40;
        const OVERRIDE: u8 = 0x20;
        let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let (to, flags) = if self.source.is_unspecified() {
            (all_nodes, ROUTER | OVERRIDE)
        } else {
            (self.source, ROUTER | SOLICITED | OVERRIDE)
        };
        let mut message = vec![V6_ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
        message.extend(self.target.octets());
        // Target link-layer address option.
        message.extend([2, 1]);
        message.extend(mac.0);
        let mut reply = ethernet.reply(mac);
        reply.extend(v6_message(self.target, to, 255, message));
        reply
    }
}

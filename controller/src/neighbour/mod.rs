//! Answers to what hosts ask their router: ARP and neighbour solicitations, pings, used-up TTLs.
//!
//! The switch punts such packets with a reason; [`Responder::answer`] makes the packet that goes back out
//! of the port it came from. Pure: packet in, packet out.
//!
//! Hosts of one LA domain share a prefix, but the leaf is a router and carries no frames between them. So
//! the leaf answers for the gateway and, as a proxy (RFC 1027, RFC 4861 section 7.2.8), for every other
//! NIC of the domain, always with the gateway's MAC.

mod icmp;
mod wire;

use crate::routing::Switch;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use topology::{End, MacAddr, SwitchId, Topology};
use wire::{ETHERNET, ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ethernet};

/// Why the data plane sends a packet to the CPU port; numbered as in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// To an address of the switch itself. Comes with `route_cpu` entries.
    Own,
    /// ARP.
    Arp,
    /// IPv6 neighbour discovery.
    Nd,
    /// LLDP.
    Lldp,
    /// TTL or hop limit used up.
    Ttl,
    /// An ACL entry asks for it.
    Acl,
    /// A neighbour's liveness packet.
    Liveness,
    /// A telemetry report.
    IntReport,
}

impl Reason {
    /// The number in controller headers and in entries.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The reason with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Own,
            Self::Arp,
            Self::Nd,
            Self::Lldp,
            Self::Ttl,
            Self::Acl,
            Self::Liveness,
            Self::IntReport,
        ];
        all.into_iter().find(|reason| reason.number() == number)
    }
}

/// What a switch answers to on one port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Face {
    mac: MacAddr,
    /// The switch's own addresses there; the first of each kind is the source of errors.
    own_v4: Vec<Ipv4Addr>,
    own_v6: Vec<Ipv6Addr>,
    /// The NIC that is plugged in: nobody answers for it but itself.
    nic: Option<(Ipv4Addr, Ipv6Addr)>,
    /// The domain, for ports that face a host.
    la: Option<usize>,
}

/// NICs of a domain by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Members {
    v4: std::collections::BTreeSet<Ipv4Addr>,
    v6: std::collections::BTreeSet<Ipv6Addr>,
}

/// Everything that one switch answers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responder {
    faces: BTreeMap<u16, Face>,
    members: Members,
}

impl Responder {
    /// What `switch` answers to.
    #[must_use]
    pub fn new(topology: &Topology, switch: Switch) -> Self {
        let id = SwitchId(switch);
        let this = &topology[id];
        let la = topology.la_of_switch(id);
        let mut members = Members::default();
        for nic in la.iter().flat_map(|la| &topology[*la].nics) {
            members.v4.insert(topology[*nic].v4);
            members.v6.insert(topology[*nic].v6);
        }
        let faces = topology.neighbours(id).map(|n| {
            let mut face = Face {
                mac: this.mac,
                own_v4: vec![this.loopback_v4],
                own_v6: vec![this.loopback_v6],
                nic: None,
                la: None,
            };
            if let (End::Nic(far), Some(la)) = (n.far, la) {
                let domain = &topology[la];
                face.mac = domain.gateway_mac;
                face.own_v4.insert(0, domain.gateway_v4);
                face.own_v6.insert(0, domain.gateway_v6);
                face.nic = Some((topology[far.nic].v4, topology[far.nic].v6));
                face.la = Some(la.index());
            }
            (n.port, face)
        });
        Self {
            faces: faces.collect(),
            members,
        }
    }

    /// The packet to send out of `port`, by which `packet` came in and was punted for `reason`; `None` if
    /// it deserves no answer.
    #[must_use]
    pub fn answer(&self, port: u16, reason: Reason, packet: &[u8]) -> Option<Vec<u8>> {
        let face = self.faces.get(&port)?;
        let ethernet = Ethernet::parse(packet)?;
        let body = packet.get(ETHERNET..)?;
        match (reason, ethernet.ether_type) {
            (Reason::Arp, ETHERTYPE_ARP) => self.arp(face, &ethernet, body),
            (Reason::Nd, ETHERTYPE_IPV6) => self.solicitation(face, &ethernet, body),
            // A solicitation for the gateway may also come by unicast, and then by way of the route.
            (Reason::Own, ETHERTYPE_IPV6) => self
                .solicitation(face, &ethernet, body)
                .or_else(|| icmp::echo_v6(&ethernet, body)),
            (Reason::Own, ETHERTYPE_IPV4) => icmp::echo_v4(&ethernet, body),
            (Reason::Ttl, ETHERTYPE_IPV4) => {
                icmp::time_exceeded_v4(&ethernet, body, *face.own_v4.first()?)
            }
            (Reason::Ttl, ETHERTYPE_IPV6) => {
                icmp::time_exceeded_v6(&ethernet, body, *face.own_v6.first()?)
            }
            _ => None,
        }
    }

    /// Answers an ARP request (RFC 826).
    fn arp(&self, face: &Face, ethernet: &Ethernet, body: &[u8]) -> Option<Vec<u8>> {
        const REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
        let body: &[u8; 28] = body.get(..28)?.try_into().ok()?;
        if body[..8] != REQUEST {
            return None;
        }
        let address = |at: usize| Ipv4Addr::new(body[at], body[at + 1], body[at + 2], body[at + 3]);
        let (sender, target) = (address(14), address(24));
        let own = face.own_v4.contains(&target);
        // A sender of 0.0.0.0 probes whether its address is taken (RFC 5227): a proxy must stay silent,
        // or no host could ever use its address.
        let proxied = face.la.is_some()
            && !sender.is_unspecified()
            && sender != target
            && self.members.v4.contains(&target)
            && face.nic.is_none_or(|nic| nic.0 != target);
        if !(own || proxied) {
            return None;
        }
        let mut reply = ethernet.reply(face.mac);
        reply.extend([0, 1, 8, 0, 6, 4, 0, 2]);
        reply.extend(face.mac.0);
        reply.extend(target.octets());
        reply.extend(&body[8..18]);
        Some(reply)
    }

    /// Answers a neighbour solicitation (RFC 4861 section 7.2.4).
    fn solicitation(&self, face: &Face, ethernet: &Ethernet, body: &[u8]) -> Option<Vec<u8>> {
        let asked = icmp::Solicitation::parse(body)?;
        let own = face.own_v6.contains(&asked.target);
        let probe = asked.source.is_unspecified();
        let proxied = face.la.is_some()
            && !probe
            && self.members.v6.contains(&asked.target)
            && face.nic.is_none_or(|nic| nic.1 != asked.target);
        (own || proxied).then(|| asked.advertise(ethernet, face.mac))
    }
}

#[cfg(test)]
mod tests;

#![allow(clippy::unwrap_used)]

use super::wire::checksum;
use super::*;
use proptest::prelude::*;
use topology::{Clos, generate};

fn topology() -> Topology {
    generate(&Clos::default()).unwrap()
}

/// The first host's first NIC, and a neighbour in its domain.
struct Setup {
    topology: Topology,
    responder: Responder,
    port: u16,
    me: topology::Nic,
    other: topology::Nic,
    la: topology::La,
}

fn setup() -> Setup {
    let topology = topology();
    let me = topology.nics()[0].clone();
    let la = topology[me.la].clone();
    let other = la
        .nics
        .iter()
        .map(|n| topology[*n].clone())
        .find(|n| n.v4 != me.v4)
        .unwrap();
    let port = me.ports().next().unwrap().leaf;
    let responder = Responder::new(&topology, port.switch.0);
    Setup {
        topology,
        responder,
        port: port.port,
        me,
        other,
        la,
    }
}

fn arp_request(mac: MacAddr, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0xff; 6];
    packet.extend(mac.0);
    packet.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
    packet.extend(mac.0);
    packet.extend(sender.octets());
    packet.extend([0; 6]);
    packet.extend(target.octets());
    packet
}

#[test]
fn the_gateway_answers_with_its_mac() {
    let s = setup();
    let ask = arp_request(s.me.mac, s.me.v4, s.la.gateway_v4);
    let reply = s.responder.answer(s.port, Reason::Arp, &ask).unwrap();
    assert_eq!(reply[..6], s.me.mac.0);
    assert_eq!(reply[6..12], s.la.gateway_mac.0);
    assert_eq!(reply[20..22], [0, 2]);
    assert_eq!(reply[22..28], s.la.gateway_mac.0);
    assert_eq!(reply[28..32], s.la.gateway_v4.octets());
    assert_eq!(reply[32..38], s.me.mac.0);
    assert_eq!(reply[38..42], s.me.v4.octets());
}

#[test]
fn hosts_of_the_domain_are_answered_for_but_not_the_asker_and_not_a_probe() {
    let s = setup();
    let ask = |sender, target| {
        s.responder
            .answer(s.port, Reason::Arp, &arp_request(s.me.mac, sender, target))
    };
    assert!(ask(s.me.v4, s.other.v4).is_some());
    assert!(ask(s.me.v4, s.me.v4).is_none());
    assert!(ask(Ipv4Addr::UNSPECIFIED, s.other.v4).is_none());
    assert!(ask(Ipv4Addr::UNSPECIFIED, s.la.gateway_v4).is_some());
    assert!(ask(s.me.v4, Ipv4Addr::new(192, 0, 2, 1)).is_none());
}

fn solicitation(s: &Setup, source: Ipv6Addr, target: Ipv6Addr, hop_limit: u8) -> Vec<u8> {
    let mut packet = vec![0x33, 0x33, 0xff, 0, 0, 1];
    packet.extend(s.me.mac.0);
    packet.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, hop_limit]);
    packet.extend(source.octets());
    packet.extend(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1).octets());
    packet.extend([135, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend(target.octets());
    packet.extend([1, 1]);
    packet.extend(s.me.mac.0);
    packet
}

#[test]
fn a_solicitation_gets_an_advertisement_with_a_right_checksum() {
    let s = setup();
    let ask = solicitation(&s, s.me.v6, s.la.gateway_v6, 255);
    let reply = s.responder.answer(s.port, Reason::Nd, &ask).unwrap();
    let body = &reply[14..];
    assert_eq!((body[6], body[7], body[40], body[44]), (58, 255, 136, 0xe0));
    assert_eq!(body[8..24], s.la.gateway_v6.octets());
    assert_eq!(body[24..40], s.me.v6.octets());
    assert_eq!(body[66..72], s.la.gateway_mac.0);
    let pseudo = [0, 0, 0, 32, 0, 0, 0, 58];
    assert_eq!(checksum(&[&body[8..40], &pseudo, &body[40..]]), 0);
}

#[test]
fn duplicate_address_detection_only_meets_the_gateway() {
    let s = setup();
    let none = Ipv6Addr::UNSPECIFIED;
    let ask = |source, target, limit| {
        s.responder
            .answer(s.port, Reason::Nd, &solicitation(&s, source, target, limit))
    };
    assert!(ask(none, s.other.v6, 255).is_none());
    let reply = ask(none, s.la.gateway_v6, 255).unwrap();
    assert_eq!(reply[14 + 24..14 + 26], [0xff, 0x02]);
    assert_eq!(reply[14 + 44], 0xa0);
    assert!(ask(s.me.v6, s.other.v6, 255).is_some());
    assert!(ask(s.me.v6, s.other.v6, 254).is_none());
}

fn v4(s: &Setup, dst: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = s.la.gateway_mac.0.to_vec();
    packet.extend(s.me.mac.0);
    packet.extend([0x08, 0x00, 0x45, 0]);
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 1, protocol, 0, 0]);
    packet.extend(s.me.v4.octets());
    packet.extend(dst.octets());
    packet.extend(payload);
    packet
}

#[test]
fn pings_of_the_gateway_are_answered() {
    let s = setup();
    let ask = v4(&s, s.la.gateway_v4, 1, &[8, 0, 0, 0, 1, 2, 3, 4, 5]);
    let reply = s.responder.answer(s.port, Reason::Own, &ask).unwrap();
    assert_eq!(reply[..6], s.me.mac.0);
    assert_eq!(reply[26..30], s.la.gateway_v4.octets());
    assert_eq!(reply[30..34], s.me.v4.octets());
    assert_eq!(reply[34], 0);
    assert_eq!(reply[38..], [1, 2, 3, 4, 5]);
    assert_eq!(checksum(&[&reply[14..34]]), 0);
    assert_eq!(checksum(&[&reply[34..]]), 0);
}

#[test]
fn a_used_up_ttl_is_reported_unless_it_is_an_error_itself() {
    let s = setup();
    let far = Ipv4Addr::new(10, 9, 9, 9);
    let udp = v4(&s, far, 17, &[0x12, 0x34, 0, 53, 0, 8, 0, 0]);
    let reply = s.responder.answer(s.port, Reason::Ttl, &udp).unwrap();
    assert_eq!(reply[34..36], [11, 0]);
    assert_eq!(reply[42..70], udp[14..42]);
    assert_eq!(checksum(&[&reply[34..]]), 0);
    let unreachable = v4(&s, far, 1, &[3, 0, 0, 0, 0, 0, 0, 0]);
    assert!(
        s.responder
            .answer(s.port, Reason::Ttl, &unreachable)
            .is_none()
    );
}

#[test]
fn ports_between_switches_answer_for_the_loopback_alone() {
    let s = setup();
    let leaf = s.me.ports().next().unwrap().leaf.switch;
    let up = s.topology.uplinks(leaf).next().unwrap();
    let peer = MacAddr([2, 0, 0, 0, 0, 9]);
    let ask = |target| {
        let request = arp_request(peer, Ipv4Addr::new(172, 16, 0, 99), target);
        s.responder.answer(up.port, Reason::Arp, &request)
    };
    assert!(ask(s.topology[leaf].loopback_v4).is_some());
    assert!(ask(s.other.v4).is_none());
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        packet in proptest::collection::vec(any::<u8>(), 0..120), reason in 0u8..8, kind in 0u8..4,
    ) {
        let s = setup();
        let mut packet = packet;
        if packet.len() > 14 && kind > 0 {
            let ether_type = [[0, 0], [8, 6], [8, 0], [0x86, 0xdd]][usize::from(kind)];
            packet[12..14].copy_from_slice(&ether_type);
            packet[14] = if kind == 2 { 0x45 } else { 0x60 };
        }
        if let Some(reason) = Reason::from_number(reason) {
            let _ = s.responder.answer(s.port, reason, &packet);
        }
    }
}

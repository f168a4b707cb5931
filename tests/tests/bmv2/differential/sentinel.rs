//! How a test knows that a switch is done with what it was given: by a frame sent behind it that comes out for sure.
//!
//! A sentinel takes the same cable as the packet before it, rides the lowest queue, and is left alone by every entry that
//! a case may draw: an address, a protocol, a DSCP and an EtherType of its own.

use std::net::Ipv4Addr;

use p4runtime::info::Index;
use p4runtime::v1::TableEntry;

use super::inputs::By;
use crate::frames::{HOST_MAC, SWITCH_MAC, sum};
use crate::switch::{SOON, Switch};

pub(super) const SENTINEL_DSCP: u8 = 63;
/// For experiments (RFC 3692).
const PROTOCOL: u8 = 253;
const ETHERTYPE: u16 = 0x88ff;
const REASON: u128 = 127;
const MARK: &[u8] = b"sentinel";
const PORTS: usize = 3;

fn address(port: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, port as u8)
}

/// Entries that lead sentinels to each port and to the controller.
pub(super) fn entries(index: &Index) -> Vec<TableEntry> {
    let mut entries: Vec<TableEntry> = (1..=PORTS)
        .map(|port| {
            let entry = index.table("route_v4").unwrap().entry().exact("vrf", 0u64);
            let way = [("nexthop_id", port as u64)];
            let entry = entry.lpm("dst_addr", address(port), 32);
            entry.action("route_nexthop", way).build().unwrap()
        })
        .collect();
    let trap = index.table("trap").unwrap().entry().priority(1_000);
    let trap = trap.ternary("ether_type", u64::from(ETHERTYPE), 0xffffu64);
    let punt = trap.action("punt", [("reason", REASON as u64)]);
    entries.push(punt.build().unwrap());
    entries
}

/// A frame to a port.
fn to_port(port: usize, number: u32) -> Vec<u8> {
    let mut ip = vec![0x45, SENTINEL_DSCP << 2];
    ip.extend((20 + MARK.len() as u16 + 4).to_be_bytes());
    ip.extend([0, 0, 0, 0, 64, PROTOCOL, 0, 0, 192, 0, 2, 100]);
    ip.extend(address(port).octets());
    let checksum = !sum(&ip, 0);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    [
        &SWITCH_MAC[..],
        &HOST_MAC,
        &[8, 0],
        &ip,
        MARK,
        &number.to_be_bytes(),
    ]
    .concat()
}

fn to_cpu(number: u32) -> Vec<u8> {
    let head = [&SWITCH_MAC[..], &HOST_MAC, &ETHERTYPE.to_be_bytes()].concat();
    [&head[..], MARK, &number.to_be_bytes(), &[0; 40]].concat()
}

fn is_sentinel(frame: &[u8], number: u32) -> bool {
    let marks = [MARK, &number.to_be_bytes()].concat();
    frame.windows(marks.len()).any(|window| window == marks)
}

/// What has come out of a switch, by port from 1, and to the controller.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outputs {
    pub(super) ports: [Vec<Vec<u8>>; PORTS],
    pub(super) packet_ins: Vec<(u128, u128, Vec<u8>)>,
}

impl Outputs {
    fn wait_at(&mut self, switch: &Switch, port: usize, number: u32) {
        loop {
            let mut frames = switch.receive(port, 1, SOON);
            assert_eq!(
                frames.len(),
                1,
                "no sentinel out of port {port}; so far {self:02x?}"
            );
            let frame = frames.remove(0);
            if is_sentinel(&frame, number) {
                return;
            }
            self.ports[port - 1].push(frame);
        }
    }

    fn wait_for_packet_in(&mut self, switch: &mut Switch, number: u32) {
        loop {
            let packet_in = switch.packet_in();
            if packet_in.1 == REASON && is_sentinel(&packet_in.2, number) {
                return;
            }
            self.packet_ins.push(packet_in);
        }
    }

    /// Waits until ingress is done with the last frame that came this way.
    pub(super) fn behind(&mut self, switch: &Switch, by: By, number: u32) {
        let out = match by {
            By::Cable(port) => {
                let out = port % PORTS + 1;
                switch.send_at_once(port, &to_port(out, number));
                out
            }
            By::Submitted | By::Direct(_) => {
                switch.packet_out(Some(1), &to_port(1, number));
                1
            }
        };
        self.wait_at(switch, out, number);
    }

    /// Waits until everything is out.
    pub(super) fn all(&mut self, switch: &mut Switch, number: u32) {
        // Every port, and again the one whose sentinel came in by another; then clones made on the way out.
        for (from, to) in [(1, 2), (1, 3), (2, 1)] {
            switch.send_at_once(from, &to_port(to, number));
            self.wait_at(switch, to, number);
        }
        for _ in 0..2 {
            switch.send_at_once(1, &to_cpu(number));
            self.wait_for_packet_in(switch, number);
        }
        // Reports that were cloned to a port.
        switch.send_at_once(1, &to_port(3, number));
        self.wait_at(switch, 3, number);
    }
}

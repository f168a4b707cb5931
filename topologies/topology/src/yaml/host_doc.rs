//! Hosts and their NICs as written.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::decode::{self, Fields, Spanned, spanned_text};
use super::doc::{mac, v4, v6};
use super::report::{At, Findings};
use super::tree::{Kind, Node};
use crate::addressing::MacAddr;

#[derive(Debug)]
pub(super) struct HostDoc {
    pub(super) at: At,
    pub(super) name: Spanned<String>,
    pub(super) segment: Option<Spanned<String>>,
    pub(super) gpus: Option<u32>,
    pub(super) scale_up: Option<u32>,
    /// Missing if the file's were no good, which has been reported.
    pub(super) nics: Option<Spanned<NicsDoc>>,
}

#[derive(Debug)]
pub(super) enum NicsDoc {
    /// So many on rails from 0, all like this one.
    Count(u16, NicDoc),
    /// One by one.
    List(Vec<NicDoc>),
}

#[derive(Clone, Debug)]
pub(super) struct NicDoc {
    pub(super) rail: u16,
    pub(super) ports: u8,
    pub(super) speed_bps: Option<u64>,
    pub(super) mac: Option<Spanned<MacAddr>>,
    pub(super) v4: Option<Spanned<Ipv4Addr>>,
    pub(super) v6: Option<Spanned<Ipv6Addr>>,
}

pub(super) fn host(node: &Node<'_>, findings: &mut Findings) -> Option<HostDoc> {
    let known = &[
        "name",
        "segment",
        "gpus",
        "scale_up",
        "nics",
        "nic_ports",
        "nic_speed",
    ];
    let fields = Fields::of(node, "a host", known, findings)?;
    let name = fields.req("name", findings, decode::name);
    let ports = fields.opt("nic_ports", findings, nic_ports).unwrap_or(1);
    let speed = fields.opt("nic_speed", findings, decode::speed);
    let doc = HostDoc {
        at: node.at,
        segment: fields.opt("segment", findings, spanned_text),
        gpus: fields.opt("gpus", findings, decode::number),
        scale_up: fields.opt("scale_up", findings, decode::number),
        nics: nics(
            &fields,
            name.as_ref().map_or(node.at, |name| name.at),
            ports,
            speed,
            findings,
        ),
        name: name?,
    };
    Some(doc)
}

fn nic_ports(node: &Node<'_>, findings: &mut Findings) -> Option<u8> {
    decode::choice(node, "number of NIC ports", &[("1", 1), ("2", 2)], findings)
}

/// Most NICs of one host.
const MAX_HOST_NICS: u16 = 64;

fn nics(
    fields: &Fields<'_, '_>,
    name: At,
    ports: u8,
    speed_bps: Option<u64>,
    findings: &mut Findings,
) -> Option<Spanned<NicsDoc>> {
    let plain = NicDoc {
        rail: 0,
        ports,
        speed_bps,
        mac: None,
        v4: None,
        v6: None,
    };
    let Some(node) = fields.get("nics") else {
        return Some(Spanned {
            at: name,
            value: NicsDoc::Count(0, plain),
        });
    };
    if let Kind::Scalar(..) = node.kind {
        let count = decode::number::<u16>(node, findings)?;
        if count > MAX_HOST_NICS {
            let message = format!("{count} NICs in one host");
            findings.add(
                node.at,
                "too-many",
                message,
                format!("a host has at most {MAX_HOST_NICS}"),
            );
            return None;
        }
        return Some(Spanned {
            at: node.at,
            value: NicsDoc::Count(count, plain),
        });
    }
    let mut nics = Vec::new();
    for mut nic in decode::list(node, findings, nic) {
        nic.rail = nic.rail.or(u16::try_from(nics.len()).ok());
        nics.push(NicDoc {
            rail: nic.rail?,
            ports: nic.ports.unwrap_or(ports),
            speed_bps: nic.speed_bps.or(speed_bps),
            mac: nic.mac,
            v4: nic.v4,
            v6: nic.v6,
        });
    }
    if nics.len() > usize::from(MAX_HOST_NICS) {
        let message = format!("{} NICs in one host", nics.len());
        findings.add(
            node.at,
            "too-many",
            message,
            format!("a host has at most {MAX_HOST_NICS}"),
        );
        return None;
    }
    Some(Spanned {
        at: node.at,
        value: NicsDoc::List(nics),
    })
}

struct NicFields {
    rail: Option<u16>,
    ports: Option<u8>,
    speed_bps: Option<u64>,
    mac: Option<Spanned<MacAddr>>,
    v4: Option<Spanned<Ipv4Addr>>,
    v6: Option<Spanned<Ipv6Addr>>,
}

fn nic(node: &Node<'_>, findings: &mut Findings) -> Option<NicFields> {
    let known = &["rail", "ports", "speed", "mac", "v4", "v6"];
    let fields = Fields::of(node, "a NIC", known, findings)?;
    Some(NicFields {
        rail: fields.opt("rail", findings, decode::number),
        ports: fields.opt("ports", findings, nic_ports),
        speed_bps: fields.opt("speed", findings, decode::speed),
        mac: fields.opt_at("mac", findings, mac),
        v4: fields.opt_at("v4", findings, v4),
        v6: fields.opt_at("v6", findings, v6),
    })
}

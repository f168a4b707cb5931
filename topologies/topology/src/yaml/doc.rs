//! The file as written: typed, each part with its place, names not yet resolved.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnetwork::{Ipv4Network, Ipv6Network};

use super::clos_doc::{self, ClosDoc};
use super::decode::{self, Fields, Spanned, spanned_text};
use super::host_doc::{self, HostDoc};
use super::policy_doc;
use super::report::{At, Findings};
use super::tree::{Kind, Node};
use crate::addressing::{self, MacAddr};
use crate::model::Tier;
use crate::naming;
use crate::policy::Policy;

#[derive(Debug, Default)]
pub(super) struct Doc {
    pub(super) name: Option<Spanned<String>>,
    pub(super) vrf: Option<u16>,
    pub(super) speed: Option<u64>,
    /// A default speed was given, though perhaps a bad one.
    pub(super) speed_given: bool,
    pub(super) delay: Option<u64>,
    pub(super) policy: Policy,
    pub(super) clos: Option<Spanned<ClosDoc>>,
    pub(super) buildings: Option<Vec<PlaceDoc>>,
    pub(super) pods: Option<Vec<PlaceDoc>>,
    pub(super) segments: Option<Vec<PlaceDoc>>,
    pub(super) switches: Vec<SwitchDoc>,
    pub(super) hosts: Vec<HostDoc>,
    pub(super) links: Vec<LinkDoc>,
    pub(super) las: Vec<LaDoc>,
    pub(super) overrides: Vec<OverrideDoc>,
}

/// A building, pod or segment and what is around it.
#[derive(Debug)]
pub(super) struct PlaceDoc {
    pub(super) name: Spanned<String>,
    pub(super) within: Option<Spanned<String>>,
}

#[derive(Debug)]
pub(super) struct SwitchDoc {
    pub(super) at: At,
    pub(super) name: Spanned<String>,
    /// Missing if the file's was no good, which has been reported.
    pub(super) tier: Option<Tier>,
    pub(super) device_id: Option<Spanned<u64>>,
    pub(super) mac: Option<Spanned<MacAddr>>,
    pub(super) loopback_v4: Option<Spanned<Ipv4Addr>>,
    pub(super) loopback_v6: Option<Spanned<Ipv6Addr>>,
    pub(super) segment: Option<Spanned<String>>,
    pub(super) pod: Option<Spanned<String>>,
    pub(super) rail: Option<u16>,
    pub(super) plane: Option<u8>,
    pub(super) ports: Vec<PortsDoc>,
}

#[derive(Debug)]
pub(super) struct PortsDoc {
    pub(super) numbers: Spanned<(u32, u32)>,
    pub(super) speed_bps: u64,
}

#[derive(Debug)]
pub(super) struct LinkDoc {
    pub(super) at: At,
    pub(super) ends: [Spanned<EndDoc>; 2],
    pub(super) speed: Option<Spanned<u64>>,
    pub(super) delay: Option<u64>,
}

#[derive(Debug)]
pub(super) struct EndDoc {
    pub(super) node: String,
    pub(super) first: u32,
    pub(super) second: Option<u32>,
}

#[derive(Debug)]
pub(super) struct LaDoc {
    pub(super) name: Spanned<String>,
    pub(super) leaves: Vec<Spanned<String>>,
    pub(super) v4: Option<Spanned<Ipv4Network>>,
    pub(super) v6: Option<Spanned<Ipv6Network>>,
}

#[derive(Debug)]
pub(super) struct OverrideDoc {
    pub(super) between: Spanned<[Spanned<String>; 2]>,
    pub(super) remove: bool,
    pub(super) speed: Option<u64>,
    pub(super) delay: Option<u64>,
}

const TOP: &[&str] = &[
    "name",
    "vrf",
    "defaults",
    "policy",
    "clos",
    "overrides",
    "buildings",
    "pods",
    "segments",
    "switches",
    "hosts",
    "links",
    "la",
];

pub(super) fn decode(root: &Node<'_>, findings: &mut Findings) -> Option<Doc> {
    let fields = Fields::of(root, "the topology", TOP, findings)?;
    let mut doc = Doc {
        name: fields.req("name", findings, decode::name),
        ..Doc::default()
    };
    doc.vrf = fields.opt("vrf", findings, decode::number);
    if let Some(node) = fields.get("defaults")
        && let Some(defaults) = Fields::of(node, "`defaults`", &["speed", "delay"], findings)
    {
        doc.speed_given = defaults.get("speed").is_some();
        doc.speed = defaults.opt("speed", findings, decode::speed);
        doc.delay = defaults.opt("delay", findings, decode::delay);
    }
    if let Some(node) = fields.get("policy") {
        policy_doc::decode(node, &mut doc.policy, findings);
    }
    doc.clos = fields.opt_at("clos", findings, clos_doc::decode);
    doc.buildings = fields.declared("buildings", findings, building);
    doc.pods = fields.declared("pods", findings, pod);
    doc.segments = fields.declared("segments", findings, segment);
    doc.switches = fields.items("switches", findings, switch);
    doc.hosts = fields.items("hosts", findings, host_doc::host);
    doc.links = fields.items("links", findings, link);
    doc.las = fields.items("la", findings, la);
    doc.overrides = fields.items("overrides", findings, override_doc);
    Some(doc)
}

/// `name`, or a mapping of its name and what is around it.
fn place(
    node: &Node<'_>,
    what: &'static str,
    around: &'static str,
    findings: &mut Findings,
) -> Option<PlaceDoc> {
    if let Kind::Scalar(..) = node.kind {
        let value = decode::name(node, findings)?;
        return Some(PlaceDoc {
            name: Spanned { at: node.at, value },
            within: None,
        });
    }
    let known: &[&str] = if around.is_empty() {
        &["name"]
    } else {
        &["name", around]
    };
    let fields = Fields::of(node, what, known, findings)?;
    let name = fields.req("name", findings, decode::name);
    let within = if around.is_empty() {
        None
    } else {
        fields.opt(around, findings, spanned_text)
    };
    Some(PlaceDoc {
        name: name?,
        within,
    })
}

fn building(node: &Node<'_>, findings: &mut Findings) -> Option<PlaceDoc> {
    place(node, "a building", "", findings)
}

fn pod(node: &Node<'_>, findings: &mut Findings) -> Option<PlaceDoc> {
    place(node, "a pod", "building", findings)
}

fn segment(node: &Node<'_>, findings: &mut Findings) -> Option<PlaceDoc> {
    place(node, "a segment", "pod", findings)
}

fn tier(node: &Node<'_>, findings: &mut Findings) -> Option<Tier> {
    decode::choice(
        node,
        "tier",
        &Tier::ALL.map(|tier| (tier.name(), tier)),
        findings,
    )
}

pub(super) fn mac(node: &Node<'_>, findings: &mut Findings) -> Option<MacAddr> {
    decode::parsed(node, "a MAC address", "02:00:00:00:00:01", findings)
}

pub(super) fn v4(node: &Node<'_>, findings: &mut Findings) -> Option<Ipv4Addr> {
    decode::parsed(node, "an IPv4 address", "10.0.1.2", findings)
}

pub(super) fn v6(node: &Node<'_>, findings: &mut Findings) -> Option<Ipv6Addr> {
    decode::parsed(node, "an IPv6 address", "fd00::2", findings)
}

fn switch(node: &Node<'_>, findings: &mut Findings) -> Option<SwitchDoc> {
    let known = &[
        "name",
        "tier",
        "device_id",
        "mac",
        "loopback_v4",
        "loopback_v6",
        "segment",
        "pod",
        "rail",
        "plane",
        "ports",
    ];
    let fields = Fields::of(node, "a switch", known, findings)?;
    let name = fields.req("name", findings, decode::name);
    let tier = fields.req("tier", findings, tier);
    let doc = SwitchDoc {
        at: node.at,
        device_id: fields.opt_at("device_id", findings, decode::number),
        mac: fields.opt_at("mac", findings, mac),
        loopback_v4: fields.opt_at("loopback_v4", findings, v4),
        loopback_v6: fields.opt_at("loopback_v6", findings, v6),
        segment: fields.opt("segment", findings, spanned_text),
        pod: fields.opt("pod", findings, spanned_text),
        rail: fields.opt("rail", findings, decode::number),
        plane: fields.opt("plane", findings, plane),
        ports: fields.opt("ports", findings, ports).unwrap_or_default(),
        name: name?,
        tier: tier.map(|tier| tier.value),
    };
    Some(doc)
}

fn plane(node: &Node<'_>, findings: &mut Findings) -> Option<u8> {
    decode::choice(node, "plane", &[("0", 0), ("1", 1)], findings)
}

/// `{1-8: 400G, 9: 100G}`.
fn ports(node: &Node<'_>, findings: &mut Findings) -> Option<Vec<PortsDoc>> {
    let pairs = decode::pairs(
        node,
        "ports and their speed",
        "{1-8: 400G, 9-16: 800G}",
        findings,
    );
    let mut ports = Vec::new();
    for (key, value) in pairs {
        let text = if let Kind::Scalar(text, _) = &key.kind {
            text
        } else {
            ""
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let numbers = first.trim().parse().ok().zip(last.trim().parse().ok());
        let speed = decode::speed(value, findings);
        match numbers.filter(|(first, last)| first <= last) {
            Some(numbers) => ports.extend(speed.map(|speed_bps| PortsDoc {
                numbers: Spanned {
                    at: key.at,
                    value: numbers,
                },
                speed_bps,
            })),
            None => findings.add(
                key.at,
                "wrong-type",
                format!("expected port numbers, found {}", key.describe()),
                "write one number or a range, like 1-8",
            ),
        }
    }
    Some(ports)
}

/// `[h1:0, leaf1:1]`, or a mapping with `ends`.
fn link(node: &Node<'_>, findings: &mut Findings) -> Option<LinkDoc> {
    if let Kind::Seq(_) = node.kind {
        return Some(LinkDoc {
            at: node.at,
            ends: ends(node, findings)?,
            speed: None,
            delay: None,
        });
    }
    let fields = Fields::of(node, "a link", &["ends", "speed", "delay"], findings)?;
    let ends = fields.req("ends", findings, ends);
    let speed = fields.opt_at("speed", findings, decode::speed);
    let delay = fields.opt("delay", findings, decode::delay);
    Some(LinkDoc {
        at: node.at,
        ends: ends?.value,
        speed,
        delay,
    })
}

fn pair<T>(
    node: &Node<'_>,
    what: &str,
    example: &str,
    findings: &mut Findings,
    decode: decode::Decode<T>,
) -> Option<[T; 2]> {
    let Kind::Seq(items) = &node.kind else {
        let message = format!("expected two {what}, found {}", node.describe());
        findings.add(
            node.at,
            "wrong-type",
            message,
            format!("write them like {example}"),
        );
        return None;
    };
    let [first, second] = &items[..] else {
        let message = format!("expected two {what}, found {}", items.len());
        findings.add(
            node.at,
            "wrong-type",
            message,
            format!("write them like {example}"),
        );
        return None;
    };
    let (first, second) = (decode(first, findings), decode(second, findings));
    Some([first?, second?])
}

fn ends(node: &Node<'_>, findings: &mut Findings) -> Option<[Spanned<EndDoc>; 2]> {
    pair(node, "ends", "[h1:0, leaf1:1]", findings, end)
}

fn end(node: &Node<'_>, findings: &mut Findings) -> Option<Spanned<EndDoc>> {
    let Some((node_name, first, second)) = (match &node.kind {
        Kind::Scalar(text, _) => naming::split_end(text),
        _ => None,
    }) else {
        let message = format!("expected one end of a link, found {}", node.describe());
        let help =
            "write `switch:port`, `host:rail` or `host:rail.port`, like leaf1:1, h1:0, h1:0.1";
        findings.add(node.at, "wrong-type", message, help);
        return None;
    };
    Some(Spanned {
        at: node.at,
        value: EndDoc {
            node: node_name.to_owned(),
            first,
            second,
        },
    })
}

fn la(node: &Node<'_>, findings: &mut Findings) -> Option<LaDoc> {
    let fields = Fields::of(
        node,
        "an LA domain",
        &["name", "leaves", "v4", "v6"],
        findings,
    )?;
    let name = fields.req("name", findings, decode::name);
    let leaves = fields.req("leaves", findings, |node, findings| {
        Some(decode::list(node, findings, spanned_text))
    });
    let v4 = fields.opt_at("v4", findings, v4_prefix);
    let v6 = fields.opt_at("v6", findings, v6_prefix);
    Some(LaDoc {
        name: name?,
        leaves: leaves?.value,
        v4,
        v6,
    })
}

fn v4_prefix(node: &Node<'_>, findings: &mut Findings) -> Option<Ipv4Network> {
    let prefix: Ipv4Network = decode::parsed(node, "an IPv4 prefix", "10.0.1.0/24", findings)?;
    let network = Ipv4Network::new(prefix.network(), prefix.prefix()).ok()?;
    let prefix = on_boundary(node, prefix, network, findings)?;
    let reserved = addressing::reserved_v4(prefix).map(|(block, what)| (block.to_string(), what));
    for_nics(node, prefix, reserved, "10.0.1.0/24", findings)
}

fn v6_prefix(node: &Node<'_>, findings: &mut Findings) -> Option<Ipv6Network> {
    let prefix: Ipv6Network = decode::parsed(node, "an IPv6 prefix", "fd00:0:0:1::/64", findings)?;
    let network = Ipv6Network::new(prefix.network(), prefix.prefix()).ok()?;
    let prefix = on_boundary(node, prefix, network, findings)?;
    let reserved = addressing::reserved_v6(prefix).map(|(block, what)| (block.to_string(), what));
    for_nics(node, prefix, reserved, "fd00:0:0:1::/64", findings)
}

fn on_boundary<T: PartialEq + ToString>(
    node: &Node<'_>,
    given: T,
    network: T,
    findings: &mut Findings,
) -> Option<T> {
    if given == network {
        return Some(given);
    }
    let message = format!("`{}` has bits beyond the prefix length", given.to_string());
    findings.add(
        node.at,
        "bad-value",
        message,
        format!("did you mean `{}`?", network.to_string()),
    );
    None
}

/// Refuses a prefix from which no NIC can have an address that others can reach.
fn for_nics<T: ToString>(
    node: &Node<'_>,
    prefix: T,
    reserved: Option<(String, &str)>,
    example: &str,
    findings: &mut Findings,
) -> Option<T> {
    let Some((block, what)) = reserved else {
        return Some(prefix);
    };
    let message = format!("`{}` overlaps {block}, which is {what}", prefix.to_string());
    let help = format!("give the NICs unicast addresses, such as {example}");
    findings.add(node.at, "bad-value", message, help);
    None
}

fn override_doc(node: &Node<'_>, findings: &mut Findings) -> Option<OverrideDoc> {
    let fields = Fields::of(
        node,
        "an override",
        &["between", "remove", "speed", "delay"],
        findings,
    )?;
    let between = fields.req("between", findings, |node, findings| {
        pair(
            node,
            "nodes or ports",
            "[leaf-s1r0, spine2]",
            findings,
            spanned_text,
        )
    });
    let doc = OverrideDoc {
        remove: fields
            .opt("remove", findings, decode::boolean)
            .unwrap_or(false),
        speed: fields.opt("speed", findings, decode::speed),
        delay: fields.opt("delay", findings, decode::delay),
        between: between?,
    };
    if !doc.remove && doc.speed.is_none() && doc.delay.is_none() {
        let help = "add `remove: true`, `speed:` or `delay:`";
        findings.add(
            doc.between.at,
            "missing-field",
            "the override changes nothing",
            help,
        );
    }
    Some(doc)
}

/// The pairs of a mapping from small number to small number, each within bounds.
pub(super) fn number_map(
    node: &Node<'_>,
    what: &'static str,
    (most_key, most_value): (u8, u8),
    findings: &mut Findings,
) -> BTreeMap<u8, u8> {
    let mut map = BTreeMap::new();
    for (key, value) in decode::pairs(node, what, "{0: 0, 26: 3}", findings) {
        let bounded = |node: &Node<'_>, most: u8, findings: &mut Findings| {
            let number: u32 = decode::number(node, findings)?;
            let fits = u8::try_from(number).ok().filter(|number| *number <= most);
            if fits.is_none() {
                let message = format!("{number} is out of range in {what}");
                findings.add(
                    node.at,
                    "out-of-range",
                    message,
                    format!("numbers here go from 0 to {most}"),
                );
            }
            fits
        };
        let key_number = bounded(key, most_key, findings);
        let value = bounded(value, most_value, findings);
        if let (Some(number), Some(value)) = (key_number, value)
            && map.insert(number, value).is_some()
        {
            findings.add(
                key.at,
                "duplicate-field",
                format!("{number} is given twice"),
                "keep one of the two",
            );
        }
    }
    map
}

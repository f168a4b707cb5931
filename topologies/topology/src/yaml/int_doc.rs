//! The `int:` part of the `policy:` section.

use std::net::SocketAddrV4;

use super::decode::{self, Fields};
use super::report::Findings;
use super::tree::{Kind, Node};
use crate::int_policy::{
    INT_INSTRUCTIONS, INT_STACK_WORDS, IntIndicator, IntPolicy, IntReports, IntWatch, int_words,
};
use crate::policy::Policy;

/// Most packets of which one is measured.
const MAX_ONE_IN: u32 = 1 << 30;

/// A number up to `most`.
fn bounded(
    fields: &Fields<'_, '_>,
    name: &str,
    range: std::ops::RangeInclusive<u32>,
    findings: &mut Findings,
) -> Option<u32> {
    let found = fields.opt_at(name, findings, decode::number::<u32>)?;
    if range.contains(&found.value) {
        return Some(found.value);
    }
    let message = format!("`{name}` is {}", found.value);
    let help = format!("use {} to {}", range.start(), range.end());
    findings.add(found.at, "out-of-range", message, help);
    None
}

/// `policy.int`: what is left out has the defaults; `none` turns it off.
pub(super) fn decode(node: &Node<'_>, policy: &mut Policy, findings: &mut Findings) {
    if matches!(&node.kind, Kind::Scalar(text, _) if text == "none") {
        policy.int = None;
        return;
    }
    let known = &[
        "dscp",
        "udp_port",
        "domain",
        "instructions",
        "max_hops",
        "collector",
        "watch",
        "reports",
    ];
    let Some(fields) = Fields::of(node, "`int`", known, findings) else {
        return;
    };
    let mut int = IntPolicy::default();
    indicator(&fields, &mut int, policy, findings);
    if let Some(domain) = bounded(&fields, "domain", 0..=0xffff, findings) {
        int.domain = domain as u16;
    }
    if let Some(list) = fields.get("instructions") {
        let bits = decode::list(list, findings, |node, findings| {
            decode::choice(node, "INT instruction", &INT_INSTRUCTIONS, findings)
        });
        int.instructions = bits.iter().fold(0, |all, bit| all | bit);
    }
    if let Some(hops) = bounded(&fields, "max_hops", 1..=255, findings) {
        int.max_hops = hops as u8;
    }
    if let Some(collector) = fields.get("collector")
        && !matches!(&collector.kind, Kind::Scalar(text, _) if text == "controller")
    {
        let example = "10.0.0.9:32766, or `controller`";
        int.collector = decode::parsed::<SocketAddrV4>(collector, "a collector", example, findings);
    }
    if let Some(list) = fields.get("watch") {
        int.watch = decode::list(list, findings, watch);
    }
    if let Some(node) = fields.get("reports") {
        reports(node, &mut int.reports, findings);
    }
    let words = int_words(int.instructions) * u32::from(int.max_hops);
    if words > INT_STACK_WORDS {
        let message = format!("{words} words of metadata in one packet");
        let help = format!(
            "instructions ask for {} words per hop, and {INT_STACK_WORDS} fit; lower `max_hops` to {}, \
             or ask for less",
            int_words(int.instructions),
            INT_STACK_WORDS / int_words(int.instructions)
        );
        let at = fields.get("max_hops").or(fields.get("instructions"));
        findings.add(
            at.map_or(fields.at, |node| node.at),
            "out-of-range",
            message,
            help,
        );
    }
    policy.int = Some(int);
}

fn indicator(
    fields: &Fields<'_, '_>,
    int: &mut IntPolicy,
    policy: &Policy,
    findings: &mut Findings,
) {
    let dscp = bounded(fields, "dscp", 0..=63, findings);
    let port = bounded(fields, "udp_port", 1..=0xffff, findings);
    if let (Some(node), Some(_)) = (fields.get("udp_port"), dscp) {
        let help = "switches tell each other of INT by one of the two; keep `dscp` or `udp_port`";
        findings.add(
            node.at,
            "conflict",
            "both `dscp` and `udp_port`".to_owned(),
            help,
        );
    }
    if let Some(port) = port {
        int.indicator = IntIndicator::UdpPort(port as u16);
        if port == 4791 {
            let node = fields.get("udp_port").map_or(fields.at, |node| node.at);
            let help = "use a port that no host sends to";
            findings.add(node, "conflict", "4791 is RoCEv2's port".to_owned(), help);
        }
    } else if let Some(dscp) = dscp {
        int.indicator = IntIndicator::Dscp(dscp as u8);
    }
    if let IntIndicator::Dscp(dscp) = int.indicator
        && policy.dscp.contains_key(&dscp)
    {
        let node = fields.get("dscp").map_or(fields.at, |node| node.at);
        let message = format!("DSCP {dscp} already means a traffic class");
        let help =
            "INT needs a DSCP of its own, which no host uses; choose one that `dscp` does not map";
        findings.add(node, "conflict", message, help);
    }
}

fn watch(node: &Node<'_>, findings: &mut Findings) -> Option<IntWatch> {
    let known = &[
        "src", "dst", "protocol", "src_port", "dst_port", "qp", "one_in",
    ];
    let fields = Fields::of(node, "an entry of `watch`", known, findings)?;
    let prefix: decode::Decode<ipnetwork::IpNetwork> =
        |node, findings| decode::parsed(node, "a prefix", "10.0.0.0/16", findings);
    let protocol: decode::Decode<u8> = |node, findings| {
        let options = [("tcp", 6), ("udp", 17), ("roce", 17)];
        decode::choice(node, "protocol", &options, findings)
    };
    let roce = fields.get("protocol").and_then(decode::text_of) == Some("roce");
    let mut watch = IntWatch {
        src: fields.opt("src", findings, prefix),
        dst: fields.opt("dst", findings, prefix),
        protocol: fields.opt("protocol", findings, protocol),
        src_port: bounded(&fields, "src_port", 0..=0xffff, findings).map(|port| port as u16),
        dst_port: bounded(&fields, "dst_port", 0..=0xffff, findings).map(|port| port as u16),
        dest_qp: bounded(&fields, "qp", 0..=0xff_ffff, findings),
        one_in: bounded(&fields, "one_in", 1..=MAX_ONE_IN, findings).unwrap_or(1),
    };
    if roce || watch.dest_qp.is_some() {
        watch.protocol = Some(17);
        watch.dst_port = watch.dst_port.or(Some(4791));
    }
    if let (Some(src), Some(dst)) = (watch.src, watch.dst)
        && src.is_ipv4() != dst.is_ipv4()
    {
        let help = "a flow has addresses of one IP version";
        let node = fields.get("dst").map_or(fields.at, |node| node.at);
        findings.add(
            node,
            "conflict",
            "`src` and `dst` of different IP versions".to_owned(),
            help,
        );
    }
    Some(watch)
}

fn reports(node: &Node<'_>, reports: &mut IntReports, findings: &mut Findings) {
    let known = &["paths", "drops", "queue", "marks", "rate"];
    let Some(fields) = Fields::of(node, "`reports`", known, findings) else {
        return;
    };
    let flag = |name, default, findings: &mut Findings| {
        fields
            .opt(name, findings, decode::boolean)
            .unwrap_or(default)
    };
    reports.paths = flag("paths", reports.paths, findings);
    reports.drops = flag("drops", reports.drops, findings);
    reports.marks = flag("marks", reports.marks, findings);
    reports.queue = fields.opt("queue", findings, decode::size);
    if let Some(rate) = bounded(&fields, "rate", 1..=10_000_000, findings) {
        reports.rate = rate;
    }
}

//! The `clos:` section.

use rustc_hash::FxHashMap;

use super::decode::{self, Decode, Fields};
use super::report::{At, Findings};
use super::tree::{Kind, Node};
use crate::clos::{Clos, HostCounts, LeafPer, PerTier, Ratio};

/// The numbers, and where those stand that the file gives.
#[derive(Debug)]
pub(super) struct ClosDoc {
    pub(super) clos: Clos,
    pub(super) places: FxHashMap<&'static str, At>,
}

const FIELDS: &[&str] = &[
    "buildings",
    "pods",
    "segments",
    "hosts",
    "rails",
    "gpus",
    "scale_up",
    "leaf_per",
    "leaves",
    "dual_tor",
    "planes",
    "spines",
    "spine_links",
    "cores",
    "core_links",
    "oversubscription",
    "speeds",
    "delays",
];

pub(super) fn decode(node: &Node<'_>, findings: &mut Findings) -> Option<ClosDoc> {
    let fields = Fields::of(node, "`clos`", FIELDS, findings)?;
    let mut places = FxHashMap::default();
    for field in FIELDS {
        if let Some(node) = fields.get(field) {
            places.insert(*field, node.at);
        }
    }
    let mut clos = Clos::default();
    let required = [
        ("segments", &mut clos.segments as &mut u32),
        ("rails", &mut clos.rails),
    ];
    for (field, target) in required {
        if let Some(value) = fields.req(field, findings, decode::number) {
            *target = value.value;
        }
    }
    if let Some(value) = fields.req("hosts", findings, hosts) {
        clos.hosts = value.value;
    }
    let optional = [
        ("buildings", &mut clos.buildings),
        ("pods", &mut clos.pods),
        ("leaves", &mut clos.leaves),
        ("planes", &mut clos.planes),
    ];
    for (field, target) in optional {
        if let Some(value) = fields.opt(field, findings, decode::number) {
            *target = value;
        }
    }
    clos.gpus = fields.opt("gpus", findings, decode::number);
    clos.scale_up = fields.opt("scale_up", findings, decode::number);
    clos.spines = fields.opt("spines", findings, decode::number);
    clos.spine_links = fields.opt("spine_links", findings, decode::number);
    clos.cores = fields.opt("cores", findings, decode::number);
    clos.core_links = fields.opt("core_links", findings, decode::number);
    clos.leaf_per = fields
        .opt("leaf_per", findings, leaf_per)
        .unwrap_or_default();
    clos.dual_tor = fields
        .opt("dual_tor", findings, decode::boolean)
        .unwrap_or(false);
    ratios(&fields, &mut clos, &mut places, findings);
    if let Some(node) = fields.get("speeds") {
        per_tier(node, "`speeds`", &mut clos.speeds, decode::speed, findings);
    }
    if let Some(node) = fields.get("delays") {
        delays(node, &mut clos, findings);
    }
    Some(ClosDoc { clos, places })
}

fn hosts(node: &Node<'_>, findings: &mut Findings) -> Option<HostCounts> {
    match &node.kind {
        Kind::Seq(_) => Some(HostCounts::List(decode::list(
            node,
            findings,
            decode::number,
        ))),
        _ => decode::number(node, findings).map(HostCounts::Each),
    }
}

fn leaf_per(node: &Node<'_>, findings: &mut Findings) -> Option<LeafPer> {
    decode::choice(
        node,
        "leaf_per",
        &[("rail", LeafPer::Rail), ("segment", LeafPer::Segment)],
        findings,
    )
}

fn ratios(
    fields: &Fields<'_, '_>,
    clos: &mut Clos,
    places: &mut FxHashMap<&'static str, At>,
    findings: &mut Findings,
) {
    let Some(node) = fields.get("oversubscription") else {
        return;
    };
    let Some(fields) = Fields::of(node, "`oversubscription`", &["leaf", "spine"], findings) else {
        return;
    };
    if let Some(leaf) = fields.opt_at("leaf", findings, ratio) {
        places.insert("oversubscription.leaf", leaf.at);
        clos.leaf_ratio = Some(leaf.value);
    }
    if let Some(spine) = fields.opt_at("spine", findings, ratio) {
        places.insert("oversubscription.spine", spine.at);
        clos.spine_ratio = Some(spine.value);
    }
}

/// `1`, `1.5` or `7:1`, in thousandths.
fn ratio(node: &Node<'_>, findings: &mut Findings) -> Option<Ratio> {
    let text = if let Kind::Scalar(text, _) = &node.kind {
        text.as_ref()
    } else {
        ""
    };
    let number = text.strip_suffix(":1").unwrap_or(text);
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let shape = !whole.is_empty()
        && digits(whole)
        && digits(decimals)
        && decimals.len() <= 3
        && !number.ends_with('.');
    let value = format!("{whole}{decimals:0<3}")
        .parse()
        .ok()
        .filter(|_| shape);
    if value.is_none() {
        let message = format!("expected a ratio, found {}", node.describe());
        findings.add(
            node.at,
            "wrong-type",
            message,
            "write downlinks over uplinks: 1, 1.5 or 7:1",
        );
    }
    value.map(Ratio)
}

fn per_tier<T>(
    node: &Node<'_>,
    what: &'static str,
    tiers: &mut PerTier<T>,
    decode: Decode<T>,
    findings: &mut Findings,
) {
    let Some(fields) = Fields::of(node, what, &["host", "spine", "core"], findings) else {
        return;
    };
    set_tiers(&fields, tiers, decode, findings);
}

fn set_tiers<T>(
    fields: &Fields<'_, '_>,
    tiers: &mut PerTier<T>,
    decode: Decode<T>,
    findings: &mut Findings,
) {
    let targets = [
        ("host", &mut tiers.host),
        ("spine", &mut tiers.spine),
        ("core", &mut tiers.core),
    ];
    for (field, target) in targets {
        if let Some(value) = fields.opt(field, findings, decode) {
            *target = value;
        }
    }
}

fn delays(node: &Node<'_>, clos: &mut Clos, findings: &mut Findings) {
    let known = &["host", "spine", "core", "building"];
    let Some(fields) = Fields::of(node, "`delays`", known, findings) else {
        return;
    };
    set_tiers(&fields, &mut clos.delays, decode::delay, findings);
    if let Some(delay) = fields.opt("building", findings, decode::delay) {
        clos.building_delay_ns = delay;
    }
}

//! The `policy:` section.

use super::decode::{self, Fields};
use super::doc::number_map;
use super::report::Findings;
use super::tree::{Kind, Node};
use crate::policy::{EcnProfile, Policy};

/// Largest packet the data plane can be asked to carry, bytes.
const MTU: std::ops::RangeInclusive<u64> = 1280..=9216;
/// Deepest queue, bytes: 4 GB.
const MAX_QUEUE: u64 = 4_000_000_000;

/// Changes `policy`, which has the defaults, to what the file says.
pub(super) fn decode(node: &Node<'_>, policy: &mut Policy, findings: &mut Findings) {
    let known = &[
        "mtu",
        "queue_depth",
        "ecn",
        "dscp",
        "queues",
        "seeds",
        "int",
        "ars",
    ];
    let Some(fields) = Fields::of(node, "`policy`", known, findings) else {
        return;
    };
    if let Some(mtu) = fields.opt_at("mtu", findings, decode::size) {
        match u32::try_from(mtu.value)
            .ok()
            .filter(|_| MTU.contains(&mtu.value))
        {
            Some(bytes) => policy.mtu = bytes,
            None => {
                let message = format!("an MTU of {} bytes", mtu.value);
                let help = format!("use {} (IPv6's least) to {} bytes", MTU.start(), MTU.end());
                findings.add(mtu.at, "out-of-range", message, help);
            }
        }
    }
    if let Some(depth) = fields.opt_at("queue_depth", findings, decode::size) {
        if (u64::from(policy.mtu)..=MAX_QUEUE).contains(&depth.value) {
            policy.queue_depth = depth.value;
        } else {
            let message = format!("a queue of {} bytes", depth.value);
            let help = format!("use at least one packet ({}) and at most 4GB", policy.mtu);
            findings.add(depth.at, "out-of-range", message, help);
        }
    }
    if let Some(ecn) = fields.get("ecn") {
        ecn_profiles(ecn, policy, findings);
    }
    if let Some(dscp) = fields.get("dscp") {
        policy.dscp = number_map(dscp, "the DSCP map (DSCP: class)", (63, 15), findings);
    }
    if let Some(queues) = fields.get("queues") {
        policy.queues = number_map(queues, "the queue map (class: queue)", (15, 7), findings);
    }
    if let Some(seeds) = fields.get("seeds")
        && let Some(fields) = Fields::of(seeds, "`seeds`", &["leaf", "spine", "core"], findings)
    {
        let current = policy.seeds;
        policy.seeds.leaf = fields
            .opt("leaf", findings, decode::number)
            .unwrap_or(current.leaf);
        policy.seeds.spine = fields
            .opt("spine", findings, decode::number)
            .unwrap_or(current.spine);
        policy.seeds.core = fields
            .opt("core", findings, decode::number)
            .unwrap_or(current.core);
    }
    // After the classes: INT's DSCP must not be one of theirs.
    if let Some(int) = fields.get("int") {
        super::int_doc::decode(int, policy, findings);
    }
    if let Some(ars) = fields.get("ars") {
        super::ars_doc::decode(ars, policy, findings);
    }
}

fn ecn_profiles(node: &Node<'_>, policy: &mut Policy, findings: &mut Findings) {
    let example = "{400G: {kmin: 800KB, kmax: 3200KB, pmax: 0.2}}";
    for (key, value) in decode::pairs(node, "ECN profiles by port speed", example, findings) {
        let Some(speed) = decode::speed(key, findings) else {
            continue;
        };
        if matches!(&value.kind, Kind::Scalar(text, _) if text == "none") {
            policy.ecn.remove(&speed);
        } else if let Some(profile) = ecn_profile(value, findings) {
            policy.ecn.insert(speed, profile);
        }
    }
}

fn ecn_profile(node: &Node<'_>, findings: &mut Findings) -> Option<EcnProfile> {
    let known = &["kmin", "kmax", "pmax", "drop_not_ect"];
    let fields = Fields::of(node, "an ECN profile", known, findings)?;
    let kmin = fields.req("kmin", findings, decode::size);
    let kmax = fields.req("kmax", findings, decode::size);
    let pmax = fields.req("pmax", findings, decode::probability);
    let drop_not_ect = fields
        .opt("drop_not_ect", findings, decode::boolean)
        .unwrap_or(false);
    let (kmin, kmax, pmax) = (kmin?, kmax?, pmax?);
    if kmin.value > kmax.value {
        let message = format!("kmin ({}) is above kmax ({})", kmin.value, kmax.value);
        findings.add(
            kmin.at,
            "out-of-range",
            message,
            "marking begins at kmin and is certain above kmax",
        );
        return None;
    }
    Some(EcnProfile {
        kmin: kmin.value,
        kmax: kmax.value,
        pmax_ppm: pmax.value,
        drop_not_ect,
    })
}

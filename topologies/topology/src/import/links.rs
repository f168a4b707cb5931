//! Cables between switches, and what is odd about them.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::fabric::{Chassis, commonest};
use super::raw::Cable;
use super::{Finding, FindingKind};
use crate::builder::Builder;
use crate::ids::{End, PortRef, SwitchId};
use crate::model::Tier;

/// Speed of a link whose rate can't be read, bits/s; reported.
pub(super) const FALLBACK_BPS: u64 = 100_000_000_000;
/// One-way delay in ns.
const DELAY_NS: u64 = 1_000;

/// Adds the links between switches and reports absent, odd and one-sided ones.
pub(super) fn add(
    boxes: &[Chassis<'_>],
    switches: &[SwitchId],
    builder: &mut Builder,
    findings: &mut Vec<Finding>,
) {
    let position: FxHashMap<&str, usize> = boxes
        .iter()
        .enumerate()
        .map(|(index, found)| (found.device.guid, index))
        .collect();
    let listed: FxHashSet<(usize, u32, usize, u32)> = boxes
        .iter()
        .enumerate()
        .flat_map(|(near, found)| found.device.ports.iter().map(move |cable| (near, cable)))
        .filter_map(|(near, cable)| {
            Some((near, cable.port, *position.get(cable.far)?, cable.far_port))
        })
        .collect();
    odd_speeds(boxes, findings);
    let mut done = FxHashSet::default();
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (near, found) in boxes.iter().enumerate() {
        for cable in found
            .device
            .ports
            .iter()
            .filter(|cable| cable.far.starts_with("S-"))
        {
            let Some(far) = position.get(cable.far).copied() else {
                let message = format!(
                    "`{}` port {} leads to {}, which is not described",
                    found.name, cable.port, cable.far
                );
                findings.push(Finding::new(
                    FindingKind::OneSidedLink,
                    cable.line,
                    &[&found.name, cable.far],
                    message,
                ));
                continue;
            };
            let ends = [(near, cable.port), (far, cable.far_port)];
            let key = [ends[0].min(ends[1]), ends[0].max(ends[1])];
            if !done.insert(key) {
                continue;
            }
            if !listed.contains(&(far, cable.far_port, near, cable.port)) {
                let message = format!(
                    "`{}` port {} leads to `{}` port {}, which does not say so",
                    found.name, cable.port, boxes[far].name, cable.far_port
                );
                findings.push(Finding::new(
                    FindingKind::OneSidedLink,
                    cable.line,
                    &[&found.name, &boxes[far].name],
                    message,
                ));
            }
            if plug(ends, cable, boxes, switches, builder, findings) {
                *counts.entry((near.min(far), near.max(far))).or_default() += 1;
            }
        }
    }
    missing_uplinks(boxes, &counts, findings);
}

fn plug(
    ends: [(usize, u32); 2],
    cable: &Cable<'_>,
    boxes: &[Chassis<'_>],
    switches: &[SwitchId],
    builder: &mut Builder,
    findings: &mut Vec<Finding>,
) -> bool {
    let [first, second] = ends.map(|(index, port)| {
        // A number that is no port is refused by the builder, as 0 is.
        End::Switch(PortRef {
            switch: switches[index],
            port: u16::try_from(port).unwrap_or(0),
        })
    });
    let speed = cable.speed_bps.unwrap_or(FALLBACK_BPS);
    let added = builder.add_link(first, second, Some(speed), DELAY_NS);
    if let Err(fault) = &added {
        let [near, far] = ends.map(|(index, _)| boxes[index].name.as_str());
        let message = format!(
            "the link from `{near}` port {} to `{far}` was left out: {fault}",
            cable.port
        );
        findings.push(Finding::new(
            FindingKind::LeftOut,
            cable.line,
            &[near, far],
            message,
        ));
    }
    added.is_ok()
}

fn odd_speeds(boxes: &[Chassis<'_>], findings: &mut Vec<Finding>) {
    let cables = || {
        boxes
            .iter()
            .flat_map(|found| found.device.ports.iter().map(move |cable| (found, cable)))
    };
    let Some(common) = commonest(cables().map(|(_, cable)| cable.rate)) else {
        return;
    };
    for (found, cable) in cables().filter(|(_, cable)| cable.rate != common) {
        let shown: String = cable
            .rate
            .chars()
            .take(20)
            .flat_map(char::escape_default)
            .collect();
        let taken = if cable.speed_bps.is_none() {
            ", which is no known rate: taken as 100G"
        } else {
            ""
        };
        let message = format!(
            "`{}` port {} runs at {shown}{taken} where most links run at {common}",
            found.name, cable.port
        );
        findings.push(Finding::new(
            FindingKind::OddSpeed,
            cable.line,
            &[&found.name],
            message,
        ));
    }
}

/// Pairs of neighbouring tiers of which most are joined by the same number of cables: those with
/// fewer are reported.
fn missing_uplinks(
    boxes: &[Chassis<'_>],
    counts: &BTreeMap<(usize, usize), usize>,
    findings: &mut Vec<Finding>,
) {
    for (lower, upper) in [(Tier::Leaf, Tier::Spine), (Tier::Spine, Tier::Core)] {
        let of = |tier: Tier| {
            boxes
                .iter()
                .enumerate()
                .filter(move |(_, found)| found.tier == tier)
        };
        let cables = |a: usize, b: usize| counts.get(&(a.min(b), a.max(b))).copied().unwrap_or(0);
        let joined = counts
            .iter()
            .filter(|((a, b), _)| boxes[*a].tier == lower && boxes[*b].tier == upper);
        let joined: Vec<usize> = joined.map(|(_, cables)| *cables).collect();
        let pairs = of(lower).count() * of(upper).count();
        let Some(common) = commonest(joined.iter().copied()) else {
            continue;
        };
        // With few of all pairs joined, the pattern is another (planes, groups of spines), and an
        // unjoined pair says nothing.
        let meshed = joined.len() * 4 >= pairs * 3;
        for (low, below) in of(lower) {
            for (high, above) in of(upper) {
                let found = cables(low, high);
                if found < common && (found > 0 || meshed) {
                    let message = format!(
                        "{} `{}` has {found} of {common} uplinks to {} `{}`",
                        lower.name(),
                        below.name,
                        upper.name(),
                        above.name
                    );
                    let about = [below.name.as_str(), above.name.as_str()];
                    findings.push(Finding::new(
                        FindingKind::MissingUplinks,
                        below.device.line,
                        &about,
                        message,
                    ));
                }
            }
        }
    }
}

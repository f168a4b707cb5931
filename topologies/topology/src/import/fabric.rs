//! From `ibnetdiscover` blocks to a topology.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::raw::{self, Device};
use super::{Finding, FindingKind, ImportError, links, oddities, unnamed};
use crate::builder::Builder;
use crate::ids::{End, NicPortRef, PortRef, SegmentId, SwitchId};
use crate::model::{Tier, Topology};
use crate::naming::{MAX_NAME, is_name};
use crate::parts::{NewHost, NewNic, NewSwitch};

/// Longest text, bytes.
const MAX_TEXT: usize = 256 << 20;
/// `ibnetdiscover` knows nothing of cable lengths; one-way delay in ns of what it reports.
const DELAY_NS: u64 = 500;

/// A switch of the source.
pub(super) struct Chassis<'a> {
    pub(super) device: &'a Device<'a>,
    pub(super) name: String,
    pub(super) tier: Tier,
}

/// An adapter port on a leaf.
#[derive(Clone, Debug)]
pub(super) struct Adapter {
    pub(super) guid: String,
    /// Position among the switches.
    pub(super) leaf: usize,
    pub(super) leaf_port: u16,
    /// The adapter's own port.
    pub(super) port: u32,
    pub(super) speed_bps: Option<u64>,
    /// The host, if the adapter's description names one.
    pub(super) host: Option<String>,
    /// Which adapter of the host, from 0, if the description says so.
    pub(super) number: Option<u16>,
    pub(super) line: usize,
}

/// Reads the output of `ibnetdiscover` and reports what is odd about the fabric.
///
/// Switches with adapters are leaves, those above them spines and cores, unless their names say
/// otherwise. Adapters say in their description which host they belong to (`node-1 mlx5_5`,
/// `node-1 HCA-6`); where one does not, its place among its neighbours may tell (see the findings).
/// Leaves that share hosts make a segment. Adapter numbers become rails from 0, in order.
///
/// # Errors
/// The text has no switch or no adapter, or what it describes makes no topology.
pub fn ibnetdiscover(text: &str) -> Result<(Topology, Vec<Finding>), ImportError> {
    if text.len() > MAX_TEXT {
        return Err(ImportError::TooLong(MAX_TEXT));
    }
    let mut findings = Vec::new();
    let devices = raw::read(text, &mut findings);
    let mut boxes = boxes(&devices, &mut findings);
    if boxes.is_empty() {
        return Err(ImportError::NoSwitch);
    }
    boxes.sort_by_key(|found| (found.tier, found.name.clone()));
    let mut adapters = adapters(&boxes, &mut findings);
    if adapters.is_empty() {
        return Err(ImportError::NoHost);
    }
    let segments = unnamed::segments(boxes.len(), &adapters);
    unnamed::name(&boxes, &segments, &mut adapters, &mut findings);
    oddities::find(&boxes, &segments, &adapters, &mut findings);
    let mut builder = Builder::new("imported").map_err(|fault| ImportError::Faults(vec![fault]))?;
    let switches = add_switches(&boxes, &segments, &mut builder)?;
    add_hosts(&adapters, &segments, &switches, &mut builder, &mut findings)?;
    links::add(&boxes, &switches, &mut builder, &mut findings);
    findings.sort_by(|a, b| (a.line, a.kind, &a.message).cmp(&(b.line, b.kind, &b.message)));
    match builder.finish() {
        Ok(topology) => Ok((topology, findings)),
        Err(faults) => Err(ImportError::Faults(faults)),
    }
}

/// `MF0;A09-LEAF-04:MQM9701/U1` is known as `A09-LEAF-04`.
fn short_name(description: &str) -> &str {
    let name = description
        .split_once(';')
        .map_or(description, |(_, name)| name);
    name.split(':').next().unwrap_or(name).trim()
}

/// A name that is usable and not taken, like `wanted`; whether it is `wanted` itself.
fn usable(wanted: &str, or: &str, taken: &mut FxHashSet<String>) -> (String, bool) {
    let clean = |text: &str| {
        let kept = |c: char| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        };
        let name: String = text.chars().map(kept).collect();
        name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric())
            .chars()
            .take(MAX_NAME - 12)
            .collect::<String>()
    };
    let base = Some(clean(wanted))
        .filter(|name| is_name(name))
        .unwrap_or_else(|| clean(&format!("x{or}")));
    let mut name = base.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    let same = name == wanted;
    (name, same)
}

fn boxes<'a>(devices: &'a [Device<'a>], findings: &mut Vec<Finding>) -> Vec<Chassis<'a>> {
    let switches: Vec<&Device<'_>> = devices.iter().filter(|device| device.is_switch).collect();
    let tiers = tiers(&switches);
    let mut taken = FxHashSet::default();
    let mut boxes = Vec::new();
    for (device, tier) in switches.into_iter().zip(tiers) {
        let wanted = short_name(device.description);
        let (name, same) = usable(wanted, device.guid, &mut taken);
        if !same {
            let message = format!(
                "switch {} is called `{wanted}`, taken as `{name}`",
                device.guid
            );
            findings.push(Finding::new(
                FindingKind::Renamed,
                device.line,
                &[&name],
                message,
            ));
        }
        boxes.push(Chassis { device, name, tier });
    }
    boxes
}

/// Leaves have adapters; a tier above is one step further away. Names that say "leaf", "spine" or
/// "core" win, because management hosts sit on spines and new leaves have no hosts yet.
fn tiers(switches: &[&Device<'_>]) -> Vec<Tier> {
    let position: FxHashMap<&str, usize> = (0..)
        .zip(switches)
        .map(|(index, device)| (device.guid, index))
        .collect();
    let named = |device: &Device<'_>| {
        let name = device.description.to_ascii_lowercase();
        Tier::ALL
            .into_iter()
            .find(|tier| name.contains(tier.name()))
    };
    let has_hosts = |device: &Device<'_>| {
        device
            .ports
            .iter()
            .any(|cable| is_host_port(cable.far, cable.far_description))
    };
    let mut tiers: Vec<Option<Tier>> = switches
        .iter()
        .map(|device| named(device).or_else(|| has_hosts(device).then_some(Tier::Leaf)))
        .collect();
    for (below, above) in [(Tier::Leaf, Tier::Spine), (Tier::Spine, Tier::Core)] {
        for index in 0..switches.len() {
            let touches = |tier: Tier| {
                let far = switches[index]
                    .ports
                    .iter()
                    .filter_map(|cable| position.get(cable.far));
                far.into_iter().any(|far| tiers[*far] == Some(tier))
            };
            if tiers[index].is_none() && touches(below) {
                tiers[index] = Some(above);
            }
        }
    }
    tiers
        .into_iter()
        .map(|tier| tier.unwrap_or(Tier::Core))
        .collect()
}

/// Adapters begin with `H-`; those inside switches (aggregation nodes) are no hosts.
fn is_host_port(guid: &str, description: &str) -> bool {
    guid.starts_with("H-") && !description.contains("Aggregation Node")
}

fn adapters(boxes: &[Chassis<'_>], findings: &mut Vec<Finding>) -> Vec<Adapter> {
    let mut adapters = Vec::new();
    let mut aggregation = None;
    let mut ports = FxHashSet::default();
    for (index, found) in boxes.iter().enumerate() {
        for cable in found
            .device
            .ports
            .iter()
            .filter(|cable| cable.far.starts_with("H-"))
        {
            let leaf_port = u16::try_from(cable.port)
                .ok()
                .filter(|port| (1..=crate::MAX_PORT).contains(port));
            if !is_host_port(cable.far, cable.far_description) {
                let (_, count) = aggregation.get_or_insert((cable.line, 0));
                *count += 1;
            } else if found.tier != Tier::Leaf || leaf_port.is_none() {
                let place = format!(
                    "port {} of {} `{}`",
                    cable.port,
                    found.tier.name(),
                    found.name
                );
                let message = format!(
                    "adapter {} on {place} was left out: hosts attach to leaves",
                    cable.far
                );
                findings.push(Finding::new(
                    FindingKind::LeftOut,
                    cable.line,
                    &[cable.far, &found.name],
                    message,
                ));
            } else if let Some(leaf_port) =
                leaf_port.filter(|_| ports.insert((cable.far, cable.far_port)))
            {
                let (host, number) = who(cable.far_description);
                adapters.push(Adapter {
                    guid: cable.far.to_owned(),
                    leaf: index,
                    leaf_port,
                    port: cable.far_port,
                    speed_bps: cable.speed_bps,
                    host,
                    number,
                    line: cable.line,
                });
            }
        }
    }
    if let Some((line, count)) = aggregation {
        let message =
            format!("{count} aggregation nodes inside switches were left out: they are no hosts");
        findings.push(Finding::new(FindingKind::LeftOut, line, &[], message));
    }
    adapters
}

/// Host and number from an adapter's description: `node-1 mlx5_5` and `node-1 HCA-6` are both the
/// sixth adapter of `node-1`. Names that many machines have say nothing.
fn who(description: &str) -> (Option<String>, Option<u16>) {
    let Some((host, adapter)) = description.trim().rsplit_once(char::is_whitespace) else {
        return (None, None);
    };
    let from_zero = adapter
        .strip_prefix("mlx5_")
        .and_then(|number| number.parse().ok());
    let from_one = || {
        adapter
            .strip_prefix("HCA-")?
            .parse::<u16>()
            .ok()?
            .checked_sub(1)
    };
    let Some(number) = from_zero.or_else(from_one) else {
        return (None, None);
    };
    let host = host.trim();
    let says_nothing =
        ["localhost", "ubuntu", "debian", "node", "host"].contains(&host) || !is_name(host);
    ((!says_nothing).then(|| host.to_owned()), Some(number))
}

/// The value that occurs most; of several, the largest.
pub(super) fn commonest<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0_usize) += 1;
    }
    counts
        .into_iter()
        .max_by(|(a, n), (b, m)| n.cmp(m).then(a.cmp(b)))
        .map(|(value, _)| value)
}

fn add_switches(
    boxes: &[Chassis<'_>],
    segments: &[Option<usize>],
    builder: &mut Builder,
) -> Result<Vec<SwitchId>, ImportError> {
    let fault = |fault| ImportError::Faults(vec![fault]);
    let building = builder.add_building("building1").map_err(fault)?;
    let pod = builder.add_pod("pod1", building).map_err(fault)?;
    for segment in 0..segments.iter().flatten().max().map_or(0, |last| last + 1) {
        builder
            .add_segment(format!("s{}", segment + 1), pod)
            .map_err(fault)?;
    }
    let mut switches = Vec::new();
    for (found, segment) in boxes.iter().zip(segments) {
        let new = NewSwitch {
            segment: segment.map(SegmentId::at),
            pod: Some(pod),
            ..NewSwitch::new(found.name.as_str(), found.tier)
        };
        switches.push(builder.add_switch(new).map_err(fault)?);
    }
    Ok(switches)
}

fn add_hosts(
    adapters: &[Adapter],
    segments: &[Option<usize>],
    switches: &[SwitchId],
    builder: &mut Builder,
    findings: &mut Vec<Finding>,
) -> Result<(), ImportError> {
    let numbers: std::collections::BTreeSet<u16> = adapters
        .iter()
        .filter_map(|adapter| adapter.number)
        .collect();
    let rails: FxHashMap<u16, u16> = numbers.into_iter().zip(0..).collect();
    let mut hosts: BTreeMap<&str, Vec<&Adapter>> = BTreeMap::new();
    for adapter in adapters {
        hosts
            .entry(adapter.host.as_deref().unwrap_or(&adapter.guid))
            .or_default()
            .push(adapter);
    }
    let names = switches.iter().map(|id| builder.so_far()[*id].name.clone());
    let mut taken: FxHashSet<String> = names.collect();
    for (host, mut adapters) in hosts {
        let (name, same) = usable(host, host, &mut taken);
        if !same {
            let message = format!("host `{host}` is taken as `{name}`");
            findings.push(Finding::new(
                FindingKind::Renamed,
                adapters[0].line,
                &[&name],
                message,
            ));
        }
        adapters.sort_by_key(|adapter| {
            (
                adapter.number,
                adapter.port,
                adapter.leaf,
                adapter.leaf_port,
            )
        });
        let mut used = FxHashSet::default();
        let mut nics = Vec::new();
        for adapter in &adapters {
            let wanted = adapter
                .number
                .and_then(|number| rails.get(&number))
                .copied()
                .unwrap_or(0);
            let free = (wanted..=u16::MAX)
                .chain(0..wanted)
                .find(|rail| used.insert(*rail));
            nics.push((free.unwrap_or(0), *adapter));
        }
        nics.sort_by_key(|(rail, _)| *rail);
        let segment = SegmentId::at(segments[adapters[0].leaf].unwrap_or(0));
        let new = NewHost {
            name: name.clone(),
            segment,
            gpus: None,
            scale_up: None,
            nics: nics.iter().map(|(rail, _)| NewNic::new(*rail, 1)).collect(),
        };
        let host = builder
            .add_host(new)
            .map_err(|fault| ImportError::Faults(vec![fault]))?;
        for (position, (_, adapter)) in nics.iter().enumerate() {
            let Some(nic) = builder.nic(host, position) else {
                continue;
            };
            let end = End::Nic(NicPortRef { nic, port: 0 });
            let leaf = End::Switch(PortRef {
                switch: switches[adapter.leaf],
                port: adapter.leaf_port,
            });
            let speed = adapter.speed_bps.unwrap_or(links::FALLBACK_BPS);
            if let Err(fault) = builder.add_link(end, leaf, Some(speed), DELAY_NS) {
                let message = format!("adapter {} was left out: {fault}", adapter.guid);
                findings.push(Finding::new(
                    FindingKind::LeftOut,
                    adapter.line,
                    &[&name],
                    message,
                ));
            }
        }
    }
    Ok(())
}

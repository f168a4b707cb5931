//! Adapters that don't say whose they are. In a rail-optimised fabric a host sits on the same port
//! of every leaf of its segment, and where the named adapters of a segment keep to that, the port
//! tells whose an unnamed one is.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::fabric::{Adapter, Chassis, commonest};
use super::{Finding, FindingKind};

/// The segment of every leaf: leaves that share two hosts or more, numbered in leaf order. Leaves
/// that share none are segments of their own.
pub(super) fn segments(switches: usize, adapters: &[Adapter]) -> Vec<Option<usize>> {
    let mut leaves_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut used = vec![false; switches];
    for adapter in adapters {
        used[adapter.leaf] = true;
        if let Some(host) = &adapter.host {
            leaves_of.entry(host).or_default().push(adapter.leaf);
        }
    }
    let mut shared: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for leaves in leaves_of.values_mut() {
        leaves.sort_unstable();
        leaves.dedup();
        // Neighbours in the list are enough to connect all, and keep this linear.
        for pair in leaves.windows(2) {
            *shared.entry((pair[0], pair[1])).or_default() += 1;
        }
    }
    let mut root: Vec<usize> = (0..switches).collect();
    let mut pairs: Vec<(usize, usize)> = shared
        .into_iter()
        .filter(|(_, hosts)| *hosts >= 2)
        .map(|(pair, _)| pair)
        .collect();
    pairs.sort_unstable();
    for (a, b) in pairs {
        let (a, b) = (find(&mut root, a), find(&mut root, b));
        root[a.max(b)] = a.min(b);
    }
    let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
    let number = |leaf: usize| {
        let root = find(&mut root, leaf);
        let next = numbers.len();
        used[leaf].then(|| *numbers.entry(root).or_insert(next))
    };
    (0..switches).map(number).collect()
}

fn find(root: &mut [usize], mut leaf: usize) -> usize {
    while root[leaf] != leaf {
        root[leaf] = root[root[leaf]];
        leaf = root[leaf];
    }
    leaf
}

/// A segment and a port number: where, by the pattern, the adapters of one host are.
type Slot = (usize, u16);

/// Gives every adapter a host: the one its slot belongs to, one made up for a slot without a name,
/// or one of its own.
pub(super) fn name(
    boxes: &[Chassis<'_>],
    segments: &[Option<usize>],
    adapters: &mut [Adapter],
    findings: &mut Vec<Finding>,
) {
    let slot = |adapter: &Adapter| (segments[adapter.leaf].unwrap_or(0), adapter.leaf_port);
    let mut slots: BTreeMap<Slot, Vec<&Adapter>> = BTreeMap::new();
    for adapter in adapters.iter() {
        slots.entry(slot(adapter)).or_default().push(adapter);
    }
    let kept = patterned(&slots);
    let mut leaves_of: FxHashSet<(String, usize)> = FxHashSet::default();
    for adapter in adapters.iter() {
        leaves_of.extend(adapter.host.clone().map(|host| (host, adapter.leaf)));
    }
    let verdicts: BTreeMap<Slot, Verdict> = slots
        .iter()
        .map(|(slot, adapters)| {
            (
                *slot,
                if kept.contains(&slot.0) {
                    verdict(adapters)
                } else {
                    Verdict::Unknown
                },
            )
        })
        .collect();
    let numbers = leaf_numbers(boxes.len(), adapters);
    for adapter in adapters.iter_mut().filter(|adapter| adapter.host.is_none()) {
        let place = slot(adapter);
        let leaf = &boxes[adapter.leaf].name;
        let verdict = verdicts.get(&place).unwrap_or(&Verdict::Unknown);
        let (host, why) = match verdict {
            Verdict::Host(host) if leaves_of.insert((host.clone(), adapter.leaf)) => {
                let why = format!(
                    "taken as one of `{host}`, which is on port {} of the segment's other leaves",
                    adapter.leaf_port
                );
                (host.clone(), why)
            }
            Verdict::Nameless => {
                let host = format!("unnamed-s{}-p{}", place.0 + 1, place.1);
                let why = format!(
                    "taken with the unnamed ones on port {} of the segment's other leaves as host `{host}`",
                    adapter.leaf_port
                );
                (host, why)
            }
            _ => {
                let host = format!("unnamed-{}", adapter.guid.trim_start_matches("H-"));
                let why = format!("its place does not tell either: taken as host `{host}`");
                (host, why)
            }
        };
        let message = format!(
            "adapter {} on `{leaf}` port {} names no host; {why}",
            adapter.guid, adapter.leaf_port
        );
        findings.push(Finding::new(
            FindingKind::UnnamedAdapter,
            adapter.line,
            &[&adapter.guid, leaf, &host],
            message,
        ));
        adapter.host = Some(host);
        adapter.number = adapter.number.or(numbers[adapter.leaf]);
    }
}

enum Verdict {
    /// All named adapters of the slot are of this host.
    Host(String),
    /// There are several adapters, and none is named.
    Nameless,
    Unknown,
}

fn verdict(adapters: &[&Adapter]) -> Verdict {
    let hosts: FxHashSet<&str> = adapters
        .iter()
        .filter_map(|adapter| adapter.host.as_deref())
        .collect();
    let mut hosts = hosts.into_iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => Verdict::Host(host.to_owned()),
        (None, _) if adapters.len() > 1 => Verdict::Nameless,
        _ => Verdict::Unknown,
    }
}

/// Segments in which at least four of five slots with several named adapters have them of one host.
fn patterned(slots: &BTreeMap<Slot, Vec<&Adapter>>) -> FxHashSet<usize> {
    let mut tally: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for ((segment, _), adapters) in slots {
        let named: Vec<&str> = adapters
            .iter()
            .filter_map(|adapter| adapter.host.as_deref())
            .collect();
        if let [first, rest @ ..] = &named[..]
            && !rest.is_empty()
        {
            let (same, all) = tally.entry(*segment).or_default();
            *same += usize::from(rest.iter().all(|host| host == first));
            *all += 1;
        }
    }
    tally
        .into_iter()
        .filter(|(_, (same, all))| same * 5 >= all * 4)
        .map(|(segment, _)| segment)
        .collect()
}

/// The adapter number that most adapters of a leaf have.
fn leaf_numbers(switches: usize, adapters: &[Adapter]) -> Vec<Option<u16>> {
    let mut numbers = vec![Vec::new(); switches];
    for adapter in adapters {
        numbers[adapter.leaf].extend(adapter.number);
    }
    numbers
        .into_iter()
        .map(|numbers| commonest(numbers.into_iter()))
        .collect()
}

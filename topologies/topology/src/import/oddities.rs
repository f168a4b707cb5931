//! What is odd about hosts and leaves; [`links`](super::links) has what is odd about cables.

use std::collections::BTreeMap;

use super::fabric::{Adapter, Chassis, commonest};
use super::{Finding, FindingKind};
use crate::model::Tier;

/// Reports leaves without hosts, swapped rails, hosts and segments that lack adapters, absent leaves.
pub(super) fn find(
    boxes: &[Chassis<'_>],
    segments: &[Option<usize>],
    adapters: &[Adapter],
    findings: &mut Vec<Finding>,
) {
    let mut on_leaf = vec![Vec::new(); boxes.len()];
    let mut of_host: BTreeMap<&str, Vec<&Adapter>> = BTreeMap::new();
    for adapter in adapters {
        on_leaf[adapter.leaf].push(adapter);
        of_host
            .entry(adapter.host.as_deref().unwrap_or(""))
            .or_default()
            .push(adapter);
    }
    for (found, adapters) in boxes
        .iter()
        .zip(&on_leaf)
        .filter(|(found, _)| found.tier == Tier::Leaf)
    {
        if adapters.is_empty() {
            let message = format!("leaf `{}` has no hosts", found.name);
            findings.push(Finding::new(
                FindingKind::LeafWithoutHosts,
                found.device.line,
                &[&found.name],
                message,
            ));
        }
        let Some(common) = commonest(adapters.iter().filter_map(|adapter| adapter.number)) else {
            continue;
        };
        let most = adapters
            .iter()
            .filter(|adapter| adapter.number == Some(common))
            .count();
        let odd = adapters
            .iter()
            .filter(|adapter| adapter.number.is_some_and(|number| number != common));
        // A leaf of a fabric without rails has all numbers alike, and no one of them is odd.
        for adapter in odd.filter(|_| most * 4 > adapters.len() * 3) {
            let host = adapter.host.as_deref().unwrap_or(&adapter.guid);
            let message = format!(
                "adapter {} of `{host}` is on `{}` port {}, where the others are number {common}: rails swapped?",
                adapter.number.unwrap_or(0),
                found.name,
                adapter.leaf_port
            );
            findings.push(Finding::new(
                FindingKind::RailMismatch,
                adapter.line,
                &[host, &found.name],
                message,
            ));
        }
    }
    missing_adapters(segments, &of_host, findings);
    missing_switches(boxes, findings);
}

/// Hosts that have fewer adapters than most of their segment, and segments whose hosts have fewer
/// than most hosts of the fabric.
fn missing_adapters(
    segments: &[Option<usize>],
    of_host: &BTreeMap<&str, Vec<&Adapter>>,
    findings: &mut Vec<Finding>,
) {
    let mut by_segment: BTreeMap<usize, Vec<(&str, &[&Adapter])>> = BTreeMap::new();
    for (host, adapters) in of_host {
        let segment = segments[adapters[0].leaf].unwrap_or(0);
        by_segment
            .entry(segment)
            .or_default()
            .push((host, adapters));
    }
    let common = commonest(of_host.values().map(Vec::len)).unwrap_or(0);
    for (segment, hosts) in by_segment {
        let usual = commonest(hosts.iter().map(|(_, adapters)| adapters.len())).unwrap_or(0);
        if let Some((_, first)) = hosts.first().filter(|_| usual < common) {
            let name = format!("s{}", segment + 1);
            let message = format!(
                "hosts of segment {name} have {usual} adapters each, where most of the fabric have {common}"
            );
            findings.push(Finding::new(
                FindingKind::MissingAdapters,
                first[0].line,
                &[&name],
                message,
            ));
        }
        for (host, adapters) in hosts.iter().filter(|(_, adapters)| adapters.len() < usual) {
            let message = format!(
                "host `{host}` has {} of the {usual} adapters that its neighbours have",
                adapters.len()
            );
            findings.push(Finding::new(
                FindingKind::MissingAdapters,
                adapters[0].line,
                &[host],
                message,
            ));
        }
    }
}

/// Leaves whose names end in two numbers form a grid; holes in a grid that is nearly full are
/// leaves that are absent.
fn missing_switches(boxes: &[Chassis<'_>], findings: &mut Vec<Finding>) {
    let mut cells: BTreeMap<(&str, &str), (&str, usize)> = BTreeMap::new();
    for found in boxes.iter().filter(|found| found.tier == Tier::Leaf) {
        let mut parts = found.name.rsplitn(3, '-');
        if let (Some(second), Some(first), Some(stem)) = (parts.next(), parts.next(), parts.next())
        {
            let number =
                |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if number(first) && number(second) {
                cells.insert((first, second), (stem, found.device.line));
            }
        }
    }
    let rows: std::collections::BTreeSet<&str> = cells.keys().map(|(row, _)| *row).collect();
    let columns: std::collections::BTreeSet<&str> =
        cells.keys().map(|(_, column)| *column).collect();
    let whole = rows.len() * columns.len();
    if cells.len() < 4 || cells.len() == whole || whole - cells.len() > cells.len() / 10 {
        return;
    }
    for row in &rows {
        for column in columns
            .iter()
            .filter(|column| !cells.contains_key(&(*row, **column)))
        {
            // The nearest relative says what the name would be, and where in the text to look.
            let relative = cells.iter().find(|((_, other), _)| other == column);
            let Some((_, (stem, line))) = relative else {
                continue;
            };
            let name = format!("{stem}-{row}-{column}");
            let message =
                format!("no leaf `{name}`, although its row and column of leaves are there");
            findings.push(Finding::new(
                FindingKind::MissingSwitch,
                *line,
                &[&name],
                message,
            ));
        }
    }
}

//! What `meridian int watch` shows of a collector.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use controller::telemetry::DropReason;
use controller::telemetry::int::collector::{Collector, FlowState, Hop, Series};
use controller::telemetry::int::flow::Flow;
use serde::Serialize;

/// All of a port's capacity, in the unit of the fabric's switches.
const FULL_USE: f64 = 65_536.0;

/// Names of nodes and of logical interfaces, where the topology is known.
#[derive(Default)]
pub(super) struct Names {
    pub(super) nodes: BTreeMap<u32, String>,
    pub(super) interfaces: BTreeMap<u32, String>,
}

impl Names {
    fn interface(&self, id: u32) -> String {
        let name = self.interfaces.get(&id).cloned();
        name.unwrap_or_else(|| format!("interface {id}"))
    }

    fn of(&self, node: Option<u32>) -> String {
        match node {
            Some(node) => {
                let name = self.nodes.get(&node).cloned();
                name.unwrap_or_else(|| format!("node {node}"))
            }
            None => "?".to_owned(),
        }
    }

    fn path(&self, hops: &[Hop]) -> String {
        let names: Vec<String> = hops.iter().map(|hop| self.of(hop.node)).collect();
        names.join(" > ")
    }
}

/// Flows that there is news of.
#[derive(Debug, Serialize)]
pub(super) struct Update {
    /// Since the collector began.
    seconds: f64,
    /// The command ends with this one, which has all flows.
    last: bool,
    flows: Vec<FlowView>,
    collector: CollectorView,
}

#[derive(Debug, Serialize)]
struct CollectorView {
    datagrams: u64,
    malformed: u64,
    unreadable: u64,
    lost: u64,
    late: u64,
    doubled: u64,
}

#[derive(Debug, Serialize)]
struct FlowView {
    flow: String,
    reports: u64,
    marked: u64,
    path_changes: u64,
    incomplete: u64,
    last_change: Option<String>,
    path: Vec<HopView>,
    congested: BTreeMap<String, u64>,
    drops: Vec<DropView>,
}

#[derive(Debug, Serialize)]
struct HopView {
    node: String,
    ingress_port: Option<u16>,
    egress_port: Option<u16>,
    queue: Option<u8>,
    latency_ns: Option<SeriesView>,
    queue_depth: Option<SeriesView>,
    /// Logical interfaces in and out, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    logical: Option<[String; 2]>,
    /// 65 536 is all of the egress port.
    #[serde(skip_serializing_if = "Option::is_none")]
    utilisation: Option<SeriesView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer_occupancy: Option<SeriesView>,
}

#[derive(Debug, Serialize)]
struct DropView {
    node: String,
    /// As the pipeline names it, else its number.
    reason: String,
    packets: u64,
}

/// In the switch's units.
#[derive(Debug, Serialize)]
struct SeriesView {
    last: u64,
    min: u64,
    mean: f64,
    max: u64,
}

fn series(series: &Series) -> Option<SeriesView> {
    (series.count > 0).then(|| SeriesView {
        last: series.last,
        min: series.min,
        mean: series.mean(),
        max: series.max,
    })
}

impl FlowView {
    fn of(flow: &Flow, state: &FlowState, names: &Names) -> Self {
        let path = state.path.iter().map(|hop| HopView {
            node: names.of(hop.hop.node),
            ingress_port: hop.hop.ingress_port,
            egress_port: hop.hop.egress_port,
            queue: hop.queue,
            latency_ns: series(&hop.latency),
            queue_depth: series(&hop.queue_depth),
            logical: hop
                .logical
                .map(|(from, to)| [from, to].map(|id| names.interface(id))),
            utilisation: series(&hop.utilisation),
            buffer: hop.buffer,
            buffer_occupancy: series(&hop.buffer_occupancy),
        });
        let change = state.changes.back();
        let congested = state.congested.iter();
        let drops = state.drops.iter();
        FlowView {
            flow: flow.to_string(),
            reports: state.reports,
            marked: state.marked,
            path_changes: state.change_count,
            incomplete: state.incomplete,
            last_change: change.map(|change| {
                format!("{} to {}", names.path(&change.from), names.path(&change.to))
            }),
            path: path.collect(),
            congested: congested
                .map(|(node, count)| (names.of(Some(*node)), *count))
                .collect(),
            drops: drops
                .map(|(&(node, reason), &packets)| DropView {
                    node: names.of(Some(node)),
                    reason: DropReason::from_number(reason.into())
                        .map_or_else(|| reason.to_string(), |known| known.name().to_owned()),
                    packets,
                })
                .collect(),
        }
    }

    fn write(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "{}: {} reports, {} marked, {} path changes",
            self.flow, self.reports, self.marked, self.path_changes
        );
        for hop in &self.path {
            let port = |port: Option<u16>| port.map_or("?".to_owned(), |port| port.to_string());
            let (from, to) = (port(hop.ingress_port), port(hop.egress_port));
            let _ = write!(out, "  {:<16} {from:>3} > {to:<3}", hop.node);
            if let Some(latency) = &hop.latency_ns {
                let us = |ns: f64| ns / 1000.0;
                let _ = write!(
                    out,
                    "  latency {:.1} us (mean {:.1}, max {:.1})",
                    us(latency.last as f64),
                    us(latency.mean),
                    us(latency.max as f64)
                );
            }
            if let (Some(queue), Some(depth)) = (hop.queue, &hop.queue_depth) {
                let _ = write!(out, "  queue {queue}: {} (max {})", depth.last, depth.max);
            }
            if let Some(used) = &hop.utilisation {
                let percent = |used: f64| used / FULL_USE * 100.0;
                let (last, mean) = (percent(used.last as f64), percent(used.mean));
                let _ = write!(out, "  port {last:.0} % used (mean {mean:.0})");
            }
            if let (Some(buffer), Some(held)) = (hop.buffer, &hop.buffer_occupancy) {
                let _ = write!(out, "  buffer {buffer}: {} (max {})", held.last, held.max);
            }
            if let Some([from, to]) = &hop.logical {
                let _ = write!(out, "  {from} > {to}");
            }
            out.push('\n');
        }
        if let Some(change) = &self.last_change {
            let _ = writeln!(out, "  last change of path: {change}");
        }
        for (node, count) in &self.congested {
            let _ = writeln!(out, "  congested at {node}: {count} reports");
        }
        for drop in &self.drops {
            let _ = writeln!(
                out,
                "  dropped at {}: {} packets, {}",
                drop.node, drop.packets, drop.reason
            );
        }
    }
}

impl Update {
    pub(super) fn of(
        collector: &Collector,
        news: &BTreeSet<Flow>,
        names: &Names,
        since: Duration,
    ) -> Self {
        let known = collector.flows();
        let flows = news
            .iter()
            .filter_map(|flow| Some(FlowView::of(flow, known.get(flow)?, names)));
        let senders = collector.senders();
        let totals = collector.totals();
        Update {
            seconds: since.as_secs_f64(),
            last: false,
            flows: flows.collect(),
            collector: CollectorView {
                datagrams: totals.datagrams,
                malformed: totals.malformed,
                unreadable: totals.unreadable,
                lost: senders.values().map(|counts| counts.lost).sum(),
                late: senders.values().map(|counts| counts.late).sum(),
                doubled: senders.values().map(|counts| counts.doubled).sum(),
            },
        }
    }

    /// The last one: all flows that the filter lets through.
    pub(super) fn last(mut self) -> Self {
        self.last = true;
        self
    }

    /// For people.
    pub(super) fn to_text(&self) -> String {
        let seen = &self.collector;
        let mut text = format!(
            "--- {}{:.1} s, {} datagrams, {} lost, {} malformed\n",
            if self.last { "in all: " } else { "" },
            self.seconds,
            seen.datagrams,
            seen.lost,
            seen.malformed
        );
        for flow in &self.flows {
            flow.write(&mut text);
        }
        text
    }
}

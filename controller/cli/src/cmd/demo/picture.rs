//! From a topology and what its links carried to the report's pictures.

use ::topology::{End, LinkId, Node as TopologyNode, Tier, Topology};
use lab::emulator::Statistics;

use crate::names;
use crate::report::{Node, Panel, Picture, PictureLink, Series, ThroughputPanel};

/// Bytes that preamble, FCS and gap add to a frame on the wire.
const WIRE_OVERHEAD: u64 = 24;

/// Switches and hosts, and the links between them; parallel links between the same
/// two nodes are drawn as one.
pub(super) struct Sketch {
    nodes: Vec<Node>,
    links: Vec<PictureLink>,
    /// For each drawn link, those of the topology it stands for.
    stands_for: Vec<Vec<LinkId>>,
}

impl Sketch {
    /// Sketches a topology.
    pub(super) fn new(topology: &Topology) -> Self {
        let hosts = topology.hosts().iter().map(|host| Node {
            label: host.name.clone(),
            tier: 0,
        });
        let switches = topology.switches().iter().map(|switch| Node {
            label: switch.name.clone(),
            tier: match switch.tier {
                Tier::Leaf => 1,
                Tier::Spine => 2,
                Tier::Core => 3,
            },
        });
        let nodes = hosts.chain(switches).collect();
        let index = |node: TopologyNode| match node {
            TopologyNode::Host(host) => host.index(),
            TopologyNode::Switch(switch) => topology.hosts().len() + switch.index(),
        };
        let mut links: Vec<PictureLink> = Vec::new();
        let mut stands_for: Vec<Vec<LinkId>> = Vec::new();
        let mut drawn = std::collections::BTreeMap::new();
        for id in topology.link_ids() {
            let [a, b] = topology[id].ends().map(|end| index(topology.node(end)));
            let at = *drawn.entry((a, b)).or_insert_with(|| {
                links.push(PictureLink { a, b });
                stands_for.push(Vec::new());
                links.len() - 1
            });
            stands_for[at].push(id);
        }
        Self {
            nodes,
            links,
            stands_for,
        }
    }

    /// One run's panel: every link's mean utilisation while the run lasted.
    pub(super) fn panel(
        &self,
        title: String,
        topology: &Topology,
        statistics: &Statistics,
        failed: Option<LinkId>,
    ) -> Panel {
        let loads: Vec<f64> = topology
            .link_ids()
            .map(|link| utilisation(topology, statistics, link))
            .collect();
        let mean = |links: &Vec<LinkId>| {
            links.iter().map(|link| loads[link.index()]).sum::<f64>() / links.len() as f64
        };
        Panel {
            title,
            loads: self.stands_for.iter().map(mean).collect(),
            failed: failed.and_then(|link| {
                self.stands_for
                    .iter()
                    .position(|links| links.contains(&link))
            }),
        }
    }

    /// The picture with these panels.
    pub(super) fn with(self, panels: Vec<Panel>) -> Picture {
        Picture {
            nodes: self.nodes,
            links: self.links,
            panels,
        }
    }
}

/// Share of its rate that the busier direction of a link carried, 0 to 1.
fn utilisation(topology: &Topology, statistics: &Statistics, link: LinkId) -> f64 {
    let elapsed = statistics.until_ns - statistics.since_ns;
    let report = &statistics.links[link.index()];
    let on_wire = |stats: &lab::emulator::WireStats| stats.bytes + stats.frames * WIRE_OVERHEAD;
    let bytes = on_wire(&report.upward).max(on_wire(&report.downward));
    let capacity = topology[link].speed_bps as f64 * elapsed as f64 / 8e9;
    if capacity > 0.0 {
        bytes as f64 / capacity
    } else {
        0.0
    }
}

/// Each NIC's sent bytes over time as a share of its rate.
pub(super) fn throughput(
    title: String,
    topology: &Topology,
    statistics: &Statistics,
    mark_ns: Option<u64>,
) -> ThroughputPanel {
    let nics = statistics
        .nics
        .iter()
        .filter(|report| report.sent_bins.iter().any(|bytes| *bytes > 0))
        .map(|report| {
            let full = topology.nic_speed_bps(report.nic) as f64 * statistics.bin_ns as f64 / 8e9;
            Series {
                share: report.sent_bins.iter().map(|b| *b as f64 / full).collect(),
            }
        })
        .collect();
    ThroughputPanel {
        title,
        bin_us: statistics.bin_ns as f64 / 1e3,
        nics,
        mark_us: mark_ns.map(|at| (at - statistics.since_ns) as f64 / 1e3),
    }
}

/// A link's name for people: the names of its two ends.
pub(super) fn link_name(topology: &Topology, link: LinkId) -> String {
    let ends = topology[link].ends().map(|end| match end {
        End::Switch(port) => topology[port.switch].name.clone(),
        End::Nic(port) => names::nic(topology, port.nic),
    });
    ends.join(" - ")
}

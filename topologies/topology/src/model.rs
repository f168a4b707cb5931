//! The model: switches, hosts, NICs, links and how they are grouped.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{Index, Range};

use ipnetwork::{Ipv4Network, Ipv6Network};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::addressing::MacAddr;
use crate::ids::{
    BuildingId, End, HostId, LaId, LinkId, NicId, NicPortRef, Node, PodId, PortRef, ScaleUpId,
    SegmentId, SwitchId,
};
use crate::policy::Policy;

/// Highest port number of a switch: 510 is the CPU port and 511 the drop port of the data plane.
pub const MAX_PORT: u16 = 509;

/// How far up a switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Leaf-access switch (ToR): hosts attach here.
    Leaf,
    /// The tier above the leaves.
    Spine,
    /// The tier above the spines.
    Core,
}

impl Tier {
    /// All tiers, from the hosts up.
    pub const ALL: [Self; 3] = [Self::Leaf, Self::Spine, Self::Core];

    /// The name in topology files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Spine => "spine",
            Self::Core => "core",
        }
    }
}

/// A port of a switch; its number is its position in [`Switch::ports`] plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Speed in bits/s; 0 for a port that is neither declared nor connected.
    pub speed_bps: u64,
    /// The link that is plugged in.
    pub link: Option<LinkId>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// Unique name.
    pub name: String,
    /// Leaf, spine or core.
    pub tier: Tier,
    /// P4Runtime device id, from 1.
    pub device_id: u64,
    /// The switch's own MAC, source of all it routes.
    pub mac: MacAddr,
    /// IPv4 loopback, a /32.
    pub loopback_v4: Ipv4Addr,
    /// IPv6 loopback, a /128.
    pub loopback_v6: Ipv6Addr,
    /// The segment it stands in, for leaves where known.
    pub segment: Option<SegmentId>,
    /// The pod it stands in, where known.
    pub pod: Option<PodId>,
    /// The rail it serves, where it serves only one.
    pub rail: Option<u16>,
    /// The plane it belongs to (0 or 1) in a dual-plane fabric.
    pub plane: Option<u8>,
    /// Ports 1, 2, ...
    pub ports: Vec<Port>,
}

impl Switch {
    /// Port by number.
    #[must_use]
    pub fn port(&self, number: u16) -> Option<&Port> {
        self.ports.get(usize::from(number).checked_sub(1)?)
    }
}

/// A GPU server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Unique name.
    pub name: String,
    /// Where it stands.
    pub segment: SegmentId,
    /// GPUs in it.
    pub gpus: u32,
    /// Its scale-up (NVLink) domain.
    pub scale_up: ScaleUpId,
    pub(crate) nics: Range<u32>,
}

impl Host {
    /// Its NICs, in rail order.
    pub fn nics(&self) -> impl ExactSizeIterator<Item = NicId> + DoubleEndedIterator + use<> {
        self.nics.clone().map(NicId)
    }
}

/// A NIC: one rail of a host, with one address on all its ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nic {
    /// The host.
    pub host: HostId,
    /// Which NIC of the host, usually from 0.
    pub rail: u16,
    /// Its MAC; both ports of a dual-homed NIC use it (a bond).
    pub mac: MacAddr,
    /// IPv4 address, in the prefix of its LA domain.
    pub v4: Ipv4Addr,
    /// IPv6 address, in the prefix of its LA domain.
    pub v6: Ipv6Addr,
    /// The LA domain.
    pub la: LaId,
    /// How many ports it has: 1, or 2 for dual-ToR.
    pub port_count: u8,
    pub(crate) ports: [Option<NicPort>; 2],
}

impl Nic {
    /// The ports that are plugged in: at least one.
    pub fn ports(&self) -> impl Iterator<Item = NicPort> + use<> {
        self.ports.into_iter().flatten()
    }

    /// The plugged-in port with this number (0 or 1).
    #[must_use]
    pub fn port(&self, number: u8) -> Option<NicPort> {
        self.ports.get(usize::from(number)).copied().flatten()
    }
}

/// A plugged-in port of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NicPort {
    /// 0 or 1.
    pub number: u8,
    /// The link to the leaf.
    pub link: LinkId,
    /// The leaf's port.
    pub leaf: PortRef,
}

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The end nearer to the hosts: a NIC, or a switch one tier below.
    pub lower: End,
    /// The end further up.
    pub upper: PortRef,
    /// Bits/s, each way.
    pub speed_bps: u64,
    /// One-way delay in ns.
    pub delay_ns: u64,
}

impl Link {
    /// Both ends, lower first.
    #[must_use]
    pub fn ends(&self) -> [End; 2] {
        [self.lower, End::Switch(self.upper)]
    }
}

/// An LA domain: NIC ports that reach each other through one leaf-access switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct La {
    /// Unique name.
    pub name: String,
    /// The number that switches carry for it, from 1; 0 means "not known" there.
    pub number: u32,
    /// Its leaf, or both leaves of a dual-ToR pair.
    pub leaves: Vec<SwitchId>,
    /// IPv4 prefix of its NICs.
    #[serde(serialize_with = "as_text")]
    pub v4: Ipv4Network,
    /// IPv6 prefix of its NICs.
    #[serde(serialize_with = "as_text")]
    pub v6: Ipv6Network,
    /// Gateway of its hosts, on every leaf of the domain.
    pub gateway_v4: Ipv4Addr,
    /// Gateway of its hosts, on every leaf of the domain.
    pub gateway_v6: Ipv6Addr,
    /// MAC that the gateway addresses resolve to; every leaf of the domain answers to it.
    pub gateway_mac: MacAddr,
    /// Its NICs in address order.
    pub nics: Vec<NicId>,
}

fn as_text<T: ToString, S: serde::Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

/// A block of hosts that share leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Unique name.
    pub name: String,
    /// The pod around it.
    pub pod: PodId,
}

/// Segments that share spines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pod {
    /// Unique name.
    pub name: String,
    /// The building around it.
    pub building: BuildingId,
}

/// Pods under one roof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Building {
    /// Unique name.
    pub name: String,
}

/// What one port of a switch leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    /// The port, from 1.
    pub port: u16,
    /// The link in it.
    pub link: LinkId,
    /// The other end of the link.
    pub far: End,
}

/// A whole fabric. Immutable: it comes from a file, a generator, an importer or a
/// [`Builder`](crate::Builder), and those leave nothing half-connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topology {
    pub(crate) name: String,
    pub(crate) vrf: u16,
    pub(crate) policy: Policy,
    pub(crate) switches: Vec<Switch>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) nics: Vec<Nic>,
    pub(crate) links: Vec<Link>,
    pub(crate) las: Vec<La>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) buildings: Vec<Building>,
    #[serde(skip)]
    pub(crate) names: FxHashMap<String, Node>,
    #[serde(skip)]
    pub(crate) la_of_switch: Vec<Option<LaId>>,
}

impl Topology {
    /// The fabric's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The VRF that all NICs and routes are in.
    #[must_use]
    pub fn vrf(&self) -> u16 {
        self.vrf
    }

    /// Queues, marking and classes.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// All switches; a [`SwitchId`] is a position here.
    #[must_use]
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// All hosts; a [`HostId`] is a position here.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// All NICs; a [`NicId`] is a position here.
    #[must_use]
    pub fn nics(&self) -> &[Nic] {
        &self.nics
    }

    /// All links; a [`LinkId`] is a position here.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// All LA domains; an [`LaId`] is a position here.
    #[must_use]
    pub fn las(&self) -> &[La] {
        &self.las
    }

    /// All segments; a [`SegmentId`] is a position here.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// All pods; a [`PodId`] is a position here.
    #[must_use]
    pub fn pods(&self) -> &[Pod] {
        &self.pods
    }

    /// All buildings; a [`BuildingId`] is a position here.
    #[must_use]
    pub fn buildings(&self) -> &[Building] {
        &self.buildings
    }

    /// Ids of all switches.
    pub fn switch_ids(&self) -> impl ExactSizeIterator<Item = SwitchId> + use<> {
        (0..self.switches.len()).map(SwitchId::at)
    }

    /// Ids of the switches of one tier.
    pub fn tier(&self, tier: Tier) -> impl Iterator<Item = SwitchId> + '_ {
        self.switch_ids().filter(move |id| self[*id].tier == tier)
    }

    /// Ids of all hosts.
    pub fn host_ids(&self) -> impl ExactSizeIterator<Item = HostId> + use<> {
        (0..self.hosts.len()).map(HostId::at)
    }

    /// Ids of all NICs.
    pub fn nic_ids(&self) -> impl ExactSizeIterator<Item = NicId> + use<> {
        (0..self.nics.len()).map(NicId::at)
    }

    /// Ids of all links.
    pub fn link_ids(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.links.len()).map(LinkId::at)
    }

    /// Ids of all LA domains.
    pub fn la_ids(&self) -> impl ExactSizeIterator<Item = LaId> + use<> {
        (0..self.las.len()).map(LaId::at)
    }

    /// What a switch's connected ports lead to, in port order.
    pub fn neighbours(&self, switch: SwitchId) -> impl Iterator<Item = Neighbour> + '_ {
        (1..)
            .zip(&self[switch].ports)
            .filter_map(move |(number, port)| {
                let link = port.link?;
                let here = End::Switch(PortRef {
                    switch,
                    port: number,
                });
                Some(Neighbour {
                    port: number,
                    link,
                    far: self.far_end(link, here),
                })
            })
    }

    /// The neighbours one tier up.
    pub fn uplinks(&self, switch: SwitchId) -> impl Iterator<Item = Neighbour> + '_ {
        self.neighbours(switch)
            .filter(move |n| self[n.link].upper.switch != switch)
    }

    /// The neighbours one tier down: switches, or NICs below a leaf.
    pub fn downlinks(&self, switch: SwitchId) -> impl Iterator<Item = Neighbour> + '_ {
        self.neighbours(switch)
            .filter(move |n| self[n.link].upper.switch == switch)
    }

    /// The end of `link` that is not `near`.
    #[must_use]
    pub fn far_end(&self, link: LinkId, near: End) -> End {
        let [lower, upper] = self[link].ends();
        if near == upper { lower } else { upper }
    }

    /// The link plugged into an end.
    #[must_use]
    pub fn link_at(&self, end: End) -> Option<LinkId> {
        match end {
            End::Switch(PortRef { switch, port }) => {
                self.switches.get(switch.index())?.port(port)?.link
            }
            End::Nic(NicPortRef { nic, port }) => {
                self.nics.get(nic.index())?.port(port).map(|port| port.link)
            }
        }
    }

    /// The links between two nodes, whichever is above.
    pub fn links_between(&self, a: Node, b: Node) -> impl Iterator<Item = LinkId> + '_ {
        let near: Vec<LinkId> = match a {
            Node::Switch(switch) => self.neighbours(switch).map(|n| n.link).collect(),
            Node::Host(host) => self.host_links(host).collect(),
        };
        near.into_iter().filter(move |link| {
            let [lower, upper] = self[*link].ends().map(|end| self.node(end));
            (lower, upper) == (a, b) || (lower, upper) == (b, a)
        })
    }

    fn host_links(&self, host: HostId) -> impl Iterator<Item = LinkId> + '_ {
        self[host]
            .nics()
            .flat_map(|nic| self[nic].ports())
            .map(|port| port.link)
    }

    /// The node that an end belongs to.
    #[must_use]
    pub fn node(&self, end: End) -> Node {
        match end {
            End::Switch(port) => Node::Switch(port.switch),
            End::Nic(port) => Node::Host(self[port.nic].host),
        }
    }

    /// The LA domain of a leaf; `None` for other switches.
    #[must_use]
    pub fn la_of_switch(&self, switch: SwitchId) -> Option<LaId> {
        self.la_of_switch.get(switch.index()).copied().flatten()
    }

    /// MACs that a switch routes for when they are the destination: its own, and the gateway MAC
    /// that it shares in a dual-ToR pair.
    #[must_use]
    pub fn station_macs(&self, switch: SwitchId) -> Vec<MacAddr> {
        let mut macs = vec![self[switch].mac];
        macs.extend(self.la_of_switch(switch).map(|la| self[la].gateway_mac));
        macs.dedup();
        macs
    }

    /// The hash seed of a switch, which is that of its tier.
    #[must_use]
    pub fn seed(&self, switch: SwitchId) -> u32 {
        self.policy.seeds.of(self[switch].tier)
    }

    /// Pod of a host.
    #[must_use]
    pub fn pod_of(&self, host: HostId) -> PodId {
        self[self[host].segment].pod
    }

    /// Building of a host.
    #[must_use]
    pub fn building_of(&self, host: HostId) -> BuildingId {
        self[self.pod_of(host)].building
    }

    /// Bits/s of a NIC over all its plugged-in ports.
    #[must_use]
    pub fn nic_speed_bps(&self, nic: NicId) -> u64 {
        self[nic]
            .ports()
            .map(|port| self[port.link].speed_bps)
            .sum()
    }
}

macro_rules! indexed {
    ($($id:ty => $field:ident: $item:ty),* $(,)?) => {$(
        /// Panics for an id of another, larger topology.
        impl Index<$id> for Topology {
            type Output = $item;

            fn index(&self, id: $id) -> &$item {
                &self.$field[id.index()]
            }
        }
    )*};
}

indexed! {
    SwitchId => switches: Switch,
    HostId => hosts: Host,
    NicId => nics: Nic,
    LinkId => links: Link,
    LaId => las: La,
    SegmentId => segments: Segment,
    PodId => pods: Pod,
    BuildingId => buildings: Building,
}

//! Typed entries from decisions.

use crate::entries::{
    AnyEntry, DscpToTc, DscpToTcAction, EcnProfile, EcnProfileAction, Group, GroupAction,
    GroupBucket, GroupBucketAction, GroupPort, GroupPortAction, LaOf, LaOfAction, Neighbour,
    NeighbourAction, Nexthop, NexthopAction, PlacedFlow, PlacedFlowAction, PortConfig,
    PortConfigAction, PortLoad, PortLoadAction, ProbePort, ProbePortAction, RouteV4, RouteV4Action,
    RouteV6, RouteV6Action, Station, StationAction, TcToQueue, TcToQueueAction, Trap, TrapAction,
};
use crate::fabric::Target;
use crate::intent::ars::{self, Ars};
use crate::intent::spread::{Spread, Via};
use crate::intent::{FlowKey, Options};
use crate::neighbour::Reason;
use ipnetwork::{IpNetwork, Ipv4Network, Ipv6Network};
use p4runtime::typed::{Lpm, Ternary};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use topology::{End, MacAddr, SwitchId, Topology};

const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_LLDP: u16 = 0x88cc;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ICMPV6: u8 = 58;
const NEIGHBOUR_SOLICITATION: u16 = 135;
/// The queue of congestion notifications and of the controller's own packets: never marked.
const CONTROL_QUEUE: u8 = 7;
/// The port of packet-ins and packet-outs.
const CPU_PORT: u16 = 510;

/// The number that an address has in fields of 128 bits: IPv4 is IPv4-mapped (RFC 4291 section 2.5.5.2).
pub(super) fn address(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// Members as a set of ports: the first, and a bit for each from there on. `None` when they don't fit: more than
/// 128 apart, or on both sides of port 256.
fn members(ports: &[u32]) -> Option<(u16, u128)> {
    let first = *ports.iter().min()?;
    let last = *ports.iter().max()?;
    if last - first > 127 || first >> 8 != last >> 8 {
        return None;
    }
    let mask = ports
        .iter()
        .fold(0, |mask, port| mask | 1 << (port - first));
    Some((u16::try_from(first).ok()?, mask))
}

/// Collects the entries of one switch.
pub(super) struct Emitter<'t> {
    pub(super) topology: &'t Topology,
    pub(super) switch: SwitchId,
    entries: Vec<AnyEntry>,
}

/// What a route does, of either IP version.
#[derive(Clone, Copy)]
enum Route {
    Nexthop(u32),
    Group(u32),
    Cpu,
}

impl<'t> Emitter<'t> {
    pub(super) fn new(topology: &'t Topology, switch: SwitchId) -> Self {
        Self {
            topology,
            switch,
            entries: Vec::new(),
        }
    }

    pub(super) fn finish(mut self) -> Vec<AnyEntry> {
        self.entries.sort_unstable();
        self.entries
    }

    pub(super) fn put<K, A>(&mut self, key: K, action: A)
    where
        AnyEntry: From<(K, A)>,
    {
        self.entries.push((key, action).into());
    }

    /// Ports and next hops. A port's next hop has the port's number.
    pub(super) fn ports(&mut self) {
        let (topology, vrf) = (self.topology, self.topology.vrf());
        let la = topology
            .la_of_switch(self.switch)
            .map_or(0, |la| topology[la].number);
        let src_mac = topology[self.switch].mac.to_u64();
        for neighbour in topology.neighbours(self.switch) {
            let ingress_port = neighbour.port;
            let (action, far_mac) = match neighbour.far {
                End::Nic(far) => (
                    PortConfigAction::HostPort { vrf, la },
                    topology[far.nic].mac,
                ),
                End::Switch(far) => (
                    PortConfigAction::FabricPort { vrf },
                    topology[far.switch].mac,
                ),
            };
            self.put(PortConfig { ingress_port }, action);
            let forward = NexthopAction::Forward {
                port: ingress_port,
                src_mac,
                dst_mac: far_mac.to_u64(),
            };
            self.put(
                Nexthop {
                    nexthop_id: u32::from(ingress_port),
                },
                forward,
            );
        }
    }

    /// What is punted, and which MACs the switch routes for.
    pub(super) fn stations(&mut self) {
        let exact = |value: u16| Ternary {
            value,
            mask: u16::MAX,
        };
        let trap = |priority, ether_type| Trap {
            priority,
            ether_type: exact(ether_type),
            dst_mac: Ternary::default(),
            ip_protocol: Ternary::default(),
            l4_dst_port: Ternary::default(),
        };
        let punt = |reason: Reason| TrapAction::Punt {
            reason: reason.number(),
        };
        self.put(trap(30, ETHERTYPE_ARP), punt(Reason::Arp));
        self.put(trap(20, ETHERTYPE_LLDP), punt(Reason::Lldp));
        let solicitation = Trap {
            ip_protocol: Ternary {
                value: ICMPV6,
                mask: u8::MAX,
            },
            l4_dst_port: exact(NEIGHBOUR_SOLICITATION),
            ..trap(10, ETHERTYPE_IPV6)
        };
        self.put(solicitation, punt(Reason::Nd));
        for mac in self.topology.station_macs(self.switch) {
            self.put(
                Station {
                    dst_mac: MacAddr::to_u64(mac),
                },
                StationAction::Accept,
            );
        }
    }

    /// Traffic classes and queues.
    pub(super) fn classes(&mut self) {
        let policy = self.topology.policy();
        for (dscp, tc) in &policy.dscp {
            self.put(DscpToTc { dscp: *dscp }, DscpToTcAction::SetTc { tc: *tc });
        }
        for (tc, queue) in &policy.queues {
            self.put(
                TcToQueue { tc: *tc },
                TcToQueueAction::SetQueue { queue: *queue },
            );
        }
    }

    /// Marking, by port and queue: of every queue that a class uses, but the control queue. The policy's
    /// bytes become packets of `options.packet_bytes`, rounded to the nearest, at least one.
    pub(super) fn marking(&mut self, options: &Options) {
        let policy = self.topology.policy();
        let size = options.packet_bytes(policy);
        let packets = |bytes: u64| {
            let packets = (bytes + size / 2) / size;
            u32::try_from(packets)
                .unwrap_or(u32::MAX)
                .clamp(1, (1 << 19) - 1)
        };
        let queues: std::collections::BTreeSet<u8> = policy
            .queues
            .values()
            .copied()
            .filter(|q| *q != CONTROL_QUEUE)
            .collect();
        for neighbour in self.topology.neighbours(self.switch) {
            let speed = self.topology[neighbour.link].speed_bps;
            let Some(profile) = policy.ecn_for(speed) else {
                continue;
            };
            let kmin = packets(profile.kmin);
            let pmax = u64::from(profile.pmax_ppm) * u64::from(u16::MAX) / 1_000_000;
            let action = EcnProfileAction::EcnMark {
                kmin,
                kmax: packets(profile.kmax).max(kmin),
                pmax: u16::try_from(pmax).unwrap_or(u16::MAX),
                drop_not_ect: profile.drop_not_ect.into(),
            };
            for queue in &queues {
                let key = EcnProfile {
                    egress_port: neighbour.port,
                    queue: *queue,
                };
                self.put(key, action.clone());
            }
        }
    }

    /// The LA domain of every destination: where packets enter the fabric, and where groups know paths by it.
    pub(super) fn domains(&mut self, ars: Option<&Ars>) {
        let topology = self.topology;
        let paths = ars.is_some_and(|ars| ars.probes.is_some())
            && topology.uplinks(self.switch).next().is_some();
        if topology.la_of_switch(self.switch).is_none() && !paths {
            return;
        }
        let vrf = topology.vrf();
        for la in topology.las() {
            let set = LaOfAction::SetDstLa { la: la.number };
            for (value, prefix_len) in [
                (
                    address(la.v4.network().into()),
                    96 + u32::from(la.v4.prefix()),
                ),
                (address(la.v6.network().into()), u32::from(la.v6.prefix())),
            ] {
                let dst_addr = Lpm { value, prefix_len };
                self.put(LaOf { vrf, dst_addr }, set.clone());
            }
        }
    }

    fn route(&mut self, prefix: IpNetwork, route: Route) {
        let vrf = self.topology.vrf();
        match prefix {
            IpNetwork::V4(p) => {
                let dst_addr = Lpm {
                    value: p.network().into(),
                    prefix_len: u32::from(p.prefix()),
                };
                let action = match route {
                    Route::Nexthop(nexthop_id) => RouteV4Action::RouteNexthop { nexthop_id },
                    Route::Group(group_id) => RouteV4Action::RouteGroup { group_id },
                    Route::Cpu => RouteV4Action::RouteCpu {
                        reason: Reason::Own.number(),
                    },
                };
                self.put(RouteV4 { vrf, dst_addr }, action);
            }
            IpNetwork::V6(p) => {
                let dst_addr = Lpm {
                    value: p.network().into(),
                    prefix_len: u32::from(p.prefix()),
                };
                let action = match route {
                    Route::Nexthop(nexthop_id) => RouteV6Action::RouteNexthop { nexthop_id },
                    Route::Group(group_id) => RouteV6Action::RouteGroup { group_id },
                    Route::Cpu => RouteV6Action::RouteCpu {
                        reason: Reason::Own.number(),
                    },
                };
                self.put(RouteV6 { vrf, dst_addr }, action);
            }
        }
    }

    fn both(&mut self, v4: Ipv4Addr, v6: Ipv6Addr, route: Route) {
        self.route(Ipv4Network::from(v4).into(), route);
        self.route(Ipv6Network::from(v6).into(), route);
    }

    /// The switch's own addresses, and the NICs that are plugged into it by links that are up.
    pub(super) fn local(&mut self, down: &crate::routing::LinkSet) {
        let topology = self.topology;
        let this = &topology[self.switch];
        self.both(this.loopback_v4, this.loopback_v6, Route::Cpu);
        if let Some(la) = topology.la_of_switch(self.switch) {
            let la = &topology[la];
            self.both(la.gateway_v4, la.gateway_v6, Route::Cpu);
        }
        for neighbour in topology.neighbours(self.switch) {
            if let End::Nic(far) = neighbour.far
                && !down.contains(neighbour.link.0)
            {
                let nic = &topology[far.nic];
                self.both(nic.v4, nic.v6, Route::Nexthop(u32::from(neighbour.port)));
            }
        }
    }

    /// A group and its buckets.
    fn group(&mut self, group_id: u32, ports: &[u32], ars: Option<&Ars>) {
        let seed = self.topology.seed(self.switch);
        let size = u16::try_from(ports.len()).unwrap_or(u16::MAX);
        let members = ars.and_then(|ars| Some((ars, members(ports)?)));
        let action = match members {
            None => GroupAction::SetGroup { size, seed },
            Some((ars, (first_port, mask))) => GroupAction::SetArsGroup {
                size,
                seed,
                mode: ars.mode.number(),
                idle: ars.idle_us,
                queue_shift: ars.queue_shift,
                use_shift: ars.use_shift,
                path_age: ars.path_age_us(),
                gray_is_dead: ars.gray_is_dead(),
                first_port,
                ports: mask,
            },
        };
        self.put(Group { group_id }, action);
        for (bucket, nexthop) in (0..size).zip(ports) {
            let nexthop_id = *nexthop;
            let action = match (members, u16::try_from(nexthop_id)) {
                (Some(_), Ok(port)) => GroupBucketAction::BucketMember { nexthop_id, port },
                _ => GroupBucketAction::BucketNexthop { nexthop_id },
            };
            self.put(GroupBucket { group_id, bucket }, action);
        }
        let watched: std::collections::BTreeSet<u32> = ports.iter().copied().collect();
        for nexthop_id in watched.into_iter().filter(|_| members.is_some()) {
            if let Ok(port) = u16::try_from(nexthop_id) {
                let action = GroupPortAction::PortNexthop { nexthop_id };
                self.put(GroupPort { group_id, port }, action);
            }
        }
    }

    /// Groups, and routes to what is behind other switches.
    pub(super) fn remote(&mut self, spread: &Spread, ars: Option<&Ars>) {
        let topology = self.topology;
        for (group_id, ports) in &spread.groups {
            self.group(*group_id, ports, ars);
        }
        for (target, via) in &spread.routes {
            let route = match via {
                Via::Port(port) => Route::Nexthop(*port),
                Via::Group(group) => Route::Group(*group),
            };
            match target {
                Target::Subnet(la) => {
                    let la = &topology[*la];
                    self.route(la.v4.into(), route);
                    self.route(la.v6.into(), route);
                }
                Target::Nic(nic) => self.both(topology[*nic].v4, topology[*nic].v6, route),
                Target::Loopback(far) => {
                    self.both(
                        topology[*far].loopback_v4,
                        topology[*far].loopback_v6,
                        route,
                    );
                }
            }
        }
    }

    /// Who is watched, how load is measured, and where hellos and probes go.
    pub(super) fn watching(&mut self, ars: &Ars) {
        let topology = self.topology;
        let (above, below) = ars::ports(topology, self.switch);
        for neighbour in topology.neighbours(self.switch) {
            let ingress_port = neighbour.port;
            if !above.contains(&ingress_port) && !below.contains(&ingress_port) {
                continue;
            }
            if let Some(hellos) = &ars.hellos {
                let watch = NeighbourAction::Watch {
                    detect: hellos.detection_us(),
                    loss_shift: hellos.loss_shift,
                    window: hellos.loss_window,
                    hold: hellos.hold_us,
                };
                self.put(Neighbour { ingress_port }, watch);
            }
            if let Some(probes) = &ars.probes {
                // From below to everybody else, from above only down.
                let onward = if below.contains(&ingress_port) {
                    ars::NEIGHBOURS
                } else {
                    ars::BELOW
                };
                let relay = ProbePortAction::Relay {
                    mcast_group: if onward == ars::BELOW && below.is_empty() {
                        0
                    } else {
                        onward
                    },
                    age: probes.age_us(),
                    queue: ars::data_queue(topology.policy()),
                    queue_shift: ars.queue_shift,
                    use_shift: ars.use_shift,
                };
                self.put(ProbePort { ingress_port }, relay);
            }
            let scale = ars.use_scale(topology[neighbour.link].speed_bps);
            let measure = PortLoadAction::Measure {
                scale,
                window: ars.use_window,
            };
            self.put(
                PortLoad {
                    egress_port: neighbour.port,
                },
                measure,
            );
        }
        let cpu = CPU_PORT;
        if let Some(hellos) = &ars.hellos {
            let allow = hellos.detection_us() / 2;
            let mcast_group = ars::NEIGHBOURS;
            self.put(
                Neighbour { ingress_port: cpu },
                NeighbourAction::SayHello { mcast_group, allow },
            );
        }
        if ars.probes.is_some() && topology.la_of_switch(self.switch).is_some() {
            let mcast_group = ars::ABOVE;
            self.put(
                ProbePort { ingress_port: cpu },
                ProbePortAction::Originate { mcast_group },
            );
        }
    }

    /// A placed flow's way out; with hellos, as long as the far end lives.
    pub(super) fn pin(&mut self, flow: &FlowKey, nexthop_id: u32, ars: Option<&Ars>) {
        let key = PlacedFlow {
            src_addr: address(flow.src),
            dst_addr: address(flow.dst),
            protocol: flow.protocol,
            src_port: flow.src_port,
            dst_port: flow.dst_port,
            dest_qp: flow.dest_qp,
        };
        let watching = ars.filter(|ars| ars.hellos.is_some());
        let action = match (watching, u16::try_from(nexthop_id)) {
            (Some(ars), Ok(port)) => PlacedFlowAction::PlaceWatched {
                nexthop_id,
                port,
                path_age: ars.path_age_us(),
            },
            _ => PlacedFlowAction::Place { nexthop_id },
        };
        self.put(key, action);
    }
}

//! Entries of in-band telemetry, from the policy.
//!
//! Every switch pushes towards switches and strips towards NICs; leaves watch. Reports go by a clone
//! session that has the number of the port they leave by, so that a change of route is a change of an
//! entry; the sessions themselves are the same all the time.

use super::Options;
use super::ars::use_scale;
use super::emit::{Emitter, address};
use super::spread::{Spread, Via};
use crate::entries::{
    IntCollector, IntCollectorAction, IntDropReport, IntDropReportAction, IntEgressInterface,
    IntEgressInterfaceAction, IntIndicator as Indicator, IntIndicatorAction, IntIngressInterface,
    IntIngressInterfaceAction, IntPort, IntPortAction, IntQueueReport, IntQueueReportAction,
    IntWatchlist, IntWatchlistAction, PortLoad, PortLoadAction,
};
use crate::fabric::Target;
use crate::reconcile::{Copier, Copies};
use crate::telemetry::DropReason;
use ipnetwork::IpNetwork;
use p4runtime::entry::{Error, modify};
use p4runtime::info::Index;
use p4runtime::typed::Ternary;
use p4runtime::v1::{MeterConfig, Update};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use topology::{End, IntIndicator, IntPolicy, IntWatch, Neighbour, SwitchId, Topology, int_words};

/// The port that packet-ins leave by.
const CPU_PORT: u16 = 510;
/// Ports that reports may leave by.
const REPORT_PORTS: u16 = 64;
/// UDP port of reports, at both ends where nothing else is said.
pub const REPORT_PORT: u16 = 32766;
/// Largest threshold of a queue, in packets.
const DEEPEST: u32 = (1 << 19) - 1;
/// Instruction bit 6: logical interfaces.
const INTERFACES: u16 = 1 << 9;
/// Instruction bit 7: use of the egress port.
const UTILISATION: u16 = 1 << 8;
/// The use of a port is measured over 2^this us, where adaptive ECMP does not measure it already.
const USE_WINDOW: u8 = 8;
/// Tells a NIC's logical interface from a link's.
const NIC_INTERFACE: u32 = 1 << 31;
/// Cells of the pipeline's `int_report_meter`.
const METER_CELLS: i64 = 3;

impl Emitter<'_> {
    /// All of it.
    pub(super) fn telemetry(&mut self, options: &Options, spread: &Spread) {
        let Some(int) = self.topology.policy().int.clone() else {
            return;
        };
        self.indicators(&int);
        let session = self.collector(&int, spread);
        self.int_ports(&int, session);
        self.interfaces(&int);
        self.utilisation(&int, options);
        if self.topology.la_of_switch(self.switch).is_some() {
            self.watchlist(&int);
        }
        if int.reports.drops {
            for reason in DropReason::ALL {
                let key = IntDropReport {
                    reason: *reason as u8,
                };
                self.put(key, IntDropReportAction::ReportDrop { session });
            }
        }
        self.queues(&int, session, options);
    }

    fn node(&self) -> u32 {
        node_of(self.topology, self.switch)
    }

    fn indicators(&mut self, int: &IntPolicy) {
        let (npts, dscp, port): (&[u8], _, _) = match int.indicator {
            IntIndicator::Dscp(value) => (&[0], Ternary { value, mask: 0x3f }, Ternary::default()),
            IntIndicator::UdpPort(value) => {
                let exact = Ternary {
                    value,
                    mask: u16::MAX,
                };
                (&[1, 2], Ternary::default(), exact)
            }
        };
        for npt in npts {
            let key = Indicator {
                priority: 1,
                npt: *npt,
                dscp,
                udp_dst_port: port,
            };
            self.put(key, IntIndicatorAction::CarriesInt);
        }
    }

    /// The collector's entry; the session that leads to it.
    fn collector(&mut self, int: &IntPolicy, spread: &Spread) -> u16 {
        let topology = self.topology;
        let this = &topology[self.switch];
        let (port, to) = match int.collector {
            Some(to) => (self.towards(*to.ip(), spread), to),
            None => (None, SocketAddrV4::new(this.loopback_v4, REPORT_PORT)),
        };
        let session = port.unwrap_or(CPU_PORT);
        let far_mac = topology
            .neighbours(self.switch)
            .find(|neighbour| neighbour.port == session)
            .map(|neighbour| match neighbour.far {
                End::Nic(far) => topology[far.nic].mac,
                End::Switch(far) => topology[far.switch].mac,
            });
        let action = IntCollectorAction::SendReport {
            slot: 0,
            node: self.node(),
            hw_id: 0,
            src_mac: this.mac.to_u64(),
            dst_mac: far_mac.unwrap_or(this.mac).to_u64(),
            src_addr: this.loopback_v4.into(),
            dst_addr: (*to.ip()).into(),
            src_port: REPORT_PORT,
            dst_port: to.port(),
        };
        self.put(IntCollector { session }, action);
        session
    }

    /// The port towards an address of a NIC; of several, the first.
    fn towards(&self, collector: Ipv4Addr, spread: &Spread) -> Option<u16> {
        let topology = self.topology;
        let nic_ids = (0..topology.nics().len() as u32).map(topology::NicId);
        let nic = nic_ids
            .into_iter()
            .find(|id| topology[*id].v4 == collector)?;
        let attached = topology
            .neighbours(self.switch)
            .find(|neighbour| matches!(neighbour.far, End::Nic(far) if far.nic == nic));
        if let Some(neighbour) = attached {
            return Some(neighbour.port);
        }
        let own = |target: &Target| *target == Target::Nic(nic);
        let subnet = |target: &Target| *target == Target::Subnet(topology[nic].la);
        let routes = &spread.routes;
        let (_, via) = routes
            .iter()
            .find(|(target, _)| own(target))
            .or_else(|| routes.iter().find(|(target, _)| subnet(target)))?;
        let port = match via {
            Via::Port(port) => *port,
            Via::Group(group) => *spread.groups.get(group)?.first()?,
        };
        u16::try_from(port).ok()
    }

    fn int_ports(&mut self, int: &IntPolicy, session: u16) {
        let (node, ip_mtu) = (self.node(), self.topology.policy().fabric_mtu() as u16);
        let topology = self.topology;
        for neighbour in topology.neighbours(self.switch) {
            let action = match neighbour.far {
                End::Switch(_) => IntPortAction::IntPush { node, ip_mtu },
                End::Nic(_) => IntPortAction::IntStrip {
                    session: if int.reports.paths { session } else { 0 },
                },
            };
            let egress_port = neighbour.port;
            self.put(IntPort { egress_port }, action);
        }
    }

    /// Logical interfaces, if hops are asked for them.
    fn interfaces(&mut self, int: &IntPolicy) {
        if int.instructions & INTERFACES == 0 {
            return;
        }
        let topology = self.topology;
        for neighbour in topology.neighbours(self.switch) {
            let (port, id) = (neighbour.port, interface_of(&neighbour));
            let came_by = IntIngressInterfaceAction::CameBy { id };
            self.put(IntIngressInterface { ingress_port: port }, came_by);
            let goes_by = IntEgressInterfaceAction::GoesBy { id };
            self.put(IntEgressInterface { egress_port: port }, goes_by);
        }
    }

    /// Ports whose use has to be measured, if hops are asked for it; adaptive ECMP measures those between switches
    /// already.
    fn utilisation(&mut self, int: &IntPolicy, options: &Options) {
        if int.instructions & UTILISATION == 0 {
            return;
        }
        let topology = self.topology;
        for neighbour in topology.neighbours(self.switch) {
            if options.ars.is_some() && matches!(neighbour.far, End::Switch(_)) {
                continue;
            }
            let measure = PortLoadAction::Measure {
                scale: use_scale(topology[neighbour.link].speed_bps, USE_WINDOW),
                window: USE_WINDOW,
            };
            let egress_port = neighbour.port;
            self.put(PortLoad { egress_port }, measure);
        }
    }

    fn watchlist(&mut self, int: &IntPolicy) {
        let hop_ml = int_words(int.instructions) as u8;
        for (number, watch) in (0..).zip(&int.watch) {
            let key = watched(watch, i32::from(u16::MAX) - number);
            let (instructions, max_hops, domain_id) = (int.instructions, int.max_hops, int.domain);
            let one_in = watch.one_in;
            let action = match int.indicator {
                IntIndicator::Dscp(dscp) => IntWatchlistAction::WatchByDscp {
                    one_in,
                    instructions,
                    hop_ml,
                    max_hops,
                    domain_id,
                    dscp,
                },
                IntIndicator::UdpPort(udp_port) => IntWatchlistAction::WatchByPort {
                    one_in,
                    instructions,
                    hop_ml,
                    max_hops,
                    domain_id,
                    udp_port,
                },
            };
            self.put(key, action);
        }
    }

    fn queues(&mut self, int: &IntPolicy, session: u16, options: &Options) {
        if int.reports.queue.is_none() && !int.reports.marks {
            return;
        }
        let unit = options.packet_bytes(self.topology.policy());
        let packets = |bytes: u64| u32::try_from(bytes / unit).unwrap_or(DEEPEST).min(DEEPEST);
        let threshold = int.reports.queue.map_or(DEEPEST, packets);
        let topology = self.topology;
        for neighbour in topology.neighbours(self.switch) {
            for queue in topology.policy().queues.values() {
                let key = IntQueueReport {
                    egress_port: neighbour.port,
                    queue: *queue,
                };
                let action = IntQueueReportAction::ReportQueue {
                    threshold,
                    ecn: int.reports.marks.into(),
                    by_session: session,
                };
                self.put(key, action);
            }
        }
    }
}

/// Number of a port's logical interface in telemetry. Both ends of a link between switches have the link's, its place
/// among the topology's links from 1; all ports of one NIC, on whatever leaves, have the NIC's, its place among
/// the NICs, with the highest bit set.
#[must_use]
pub fn interface_of(neighbour: &Neighbour) -> u32 {
    match neighbour.far {
        End::Nic(far) => NIC_INTERFACE | far.nic.0,
        End::Switch(_) => neighbour.link.0 + 1,
    }
}

/// Node number of a switch in telemetry: its P4Runtime device id.
#[must_use]
pub fn node_of(topology: &Topology, switch: SwitchId) -> u32 {
    topology[switch].device_id as u32
}

fn watched(watch: &IntWatch, priority: i32) -> IntWatchlist {
    fn exact<T: Copy + Default>(value: Option<T>, mask: T) -> Ternary<T> {
        value.map_or_else(Ternary::default, |value| Ternary { value, mask })
    }
    let prefix = |prefix: Option<IpNetwork>| {
        prefix.map_or_else(Ternary::default, |prefix| {
            let (network, bits) = match prefix {
                IpNetwork::V4(v4) => (IpAddr::V4(v4.network()), 96 + u32::from(v4.prefix())),
                IpNetwork::V6(v6) => (IpAddr::V6(v6.network()), u32::from(v6.prefix())),
            };
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            Ternary {
                value: address(network) & mask,
                mask,
            }
        })
    };
    IntWatchlist {
        priority,
        src_addr: prefix(watch.src),
        dst_addr: prefix(watch.dst),
        ip_protocol: exact(watch.protocol, u8::MAX),
        src_port: exact(watch.src_port, u16::MAX),
        dst_port: exact(watch.dst_port, u16::MAX),
        dest_qp: exact(watch.dest_qp, 0xff_ffff),
    }
}

/// The clone sessions that reports go by: one for each port that may lead to a collector, and the controller's.
#[must_use]
pub(super) fn clone_sessions(topology: &Topology) -> BTreeMap<Copier, Copies> {
    let Some(int) = &topology.policy().int else {
        return BTreeMap::new();
    };
    let front = if int.collector.is_some() {
        REPORT_PORTS
    } else {
        0
    };
    let session = |port: u16| {
        let copies = Copies::to_ports([port], 1);
        (Copier::CloneSession(port.into()), copies)
    };
    (1..=front).chain([CPU_PORT]).map(session).collect()
}

/// What a switch needs besides entries and clone sessions: the rate of reports. Written at every connection,
/// before the entries.
///
/// # Errors
/// The program has no meter of this name, or fewer cells.
pub fn resources(topology: &Topology, index: &Index) -> Result<Vec<Update>, Error> {
    let Some(int) = &topology.policy().int else {
        return Ok(Vec::new());
    };
    let mut updates = Vec::new();
    let rate = i64::from(int.reports.rate);
    for cell in 0..METER_CELLS {
        let config = MeterConfig {
            cir: rate,
            cburst: rate,
            pir: rate,
            pburst: rate,
            ..MeterConfig::default()
        };
        updates.push(modify(index.meter_entry(
            "int_report_meter",
            Some(cell),
            Some(config),
        )?));
    }
    Ok(updates)
}

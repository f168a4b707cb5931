//! What Mininet shall build, as a value: computed from the topology without I/O, handed to the
//! runner as JSON.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::Serialize;
use topology::{End, HostId, Link, Nic, NicId, PortRef, SwitchId, Topology};

use super::program::{Program, ProgramKind};
use super::setup;

/// CPU port of every switch.
pub const CPU_PORT: u16 = 510;
/// Port that stands for "drop" in every switch.
pub const DROP_PORT: u16 = 511;
/// Longest name of a Linux interface, bytes.
const LONGEST_INTERFACE: usize = 15;
/// Added to a switch's gRPC port for the Thrift port of a bmv2 that was built with Thrift.
const THRIFT_OFFSET: u16 = 1000;

/// How links behave beyond what a veth pair does by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shaping {
    /// Delay every link as the topology says. Off by default: the topology's delays are
    /// microseconds, less than what Linux adds on its own.
    pub delay: bool,
    /// Limit every link, each way, bits/s; without it links are as fast as the switches.
    pub rate_bps: Option<u64>,
}

/// What the topology does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The switch program.
    pub program: Program,
    /// The first switch listens for P4Runtime on this TCP port of 127.0.0.1, the second on the
    /// next, and so on.
    pub grpc_base_port: u16,
    /// Give hosts the gateways' MACs, so that the fabric needs no controller to answer ARP and
    /// neighbour discovery.
    pub static_neighbours: bool,
    /// Delays and rates of links.
    pub shaping: Shaping,
    /// What the switches log (`info`, `debug`, `trace`...); without it only errors.
    pub log_level: Option<String>,
    /// Folder for one log per switch, kept afterwards; without it a temporary one.
    pub log_folder: Option<PathBuf>,
}

impl Options {
    /// The usual: hosts ask for their gateway, links as fast as they go, temporary logs.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self {
            program,
            grpc_base_port: 9559,
            static_neighbours: false,
            shaping: Shaping::default(),
            log_level: None,
            log_folder: None,
        }
    }
}

/// A fabric in Mininet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The topology's name.
    pub fabric: String,
    /// Begins the names of all interfaces of the fabric outside its hosts; made from the
    /// fabric's name, so that a run that was killed is found again by the next.
    pub tag: String,
    /// The program that all switches run.
    #[serde(skip)]
    pub program: Program,
    /// In the topology's order.
    pub switches: Vec<SwitchPlan>,
    /// In the topology's order.
    pub hosts: Vec<HostPlan>,
    /// In the topology's order: a link's position is its [`LinkId`](topology::LinkId).
    pub links: Vec<LinkPlan>,
    /// Folder for logs that are kept.
    pub log_folder: Option<PathBuf>,
}

/// One switch: a process outside all network namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchPlan {
    /// The topology's name for it.
    pub name: String,
    /// P4Runtime device id.
    pub device_id: u64,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// TCP port of its P4Runtime server on 127.0.0.1.
    pub grpc_port: u16,
    /// Its connected ports.
    pub ports: Vec<PortPlan>,
    /// Shell commands that prepare its interfaces.
    pub setup: Vec<String>,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortPlan {
    /// Port number in the topology and in P4.
    pub number: u16,
    /// The Linux interface.
    pub interface: String,
}

/// One host: a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostPlan {
    /// The topology's name for it.
    pub name: String,
    /// In rail order.
    pub nics: Vec<NicPlan>,
    /// Shell commands that give it addresses and routes.
    pub setup: Vec<String>,
}

/// One NIC of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NicPlan {
    /// The rail.
    pub rail: u16,
    /// One interface per plugged-in port. A dual-ToR NIC has two with the same addresses:
    /// it receives on both and spreads its flows over those that have carrier.
    pub interfaces: Vec<String>,
    /// MAC of all its interfaces.
    pub mac: String,
    /// IPv4 address.
    pub v4: Ipv4Addr,
    /// Prefix length of the LA domain.
    pub v4_prefix: u8,
    /// IPv6 address.
    pub v6: Ipv6Addr,
    /// Prefix length of the LA domain.
    pub v6_prefix: u8,
    /// Gateway.
    pub gateway_v4: Ipv4Addr,
    /// Gateway.
    pub gateway_v6: Ipv6Addr,
    /// What both gateways resolve to.
    pub gateway_mac: String,
    /// Routing table for what leaves with this NIC's address.
    pub table: u32,
}

/// A veth pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkPlan {
    /// The lower end (nearer to the hosts) first.
    pub ends: [EndPlan; 2],
}

/// One end of a veth pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndPlan {
    /// The host or switch.
    pub node: String,
    /// The interface there.
    pub interface: String,
}

/// A topology that can't be brought up in Mininet as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Too many switches above the base port.
    #[error(
        "{switches} switches need TCP ports {base} to {last}, but ports end at 65535; \
         choose a lower base port"
    )]
    PortRange {
        /// How many switches.
        switches: usize,
        /// The base port that was asked for.
        base: u16,
        /// The port that the last switch would need.
        last: u64,
    },
    /// Interface names are limited to 15 bytes.
    #[error(
        "switch '{switch}' port {port}: the interface name '{interface}' is longer than the \
         15 bytes that Linux allows; Mininet is for fabrics of up to 999 switches"
    )]
    TooLarge {
        /// The switch.
        switch: String,
        /// The port.
        port: u16,
        /// The name it would get.
        interface: String,
    },
}

/// Plans a fabric.
///
/// # Errors
/// When TCP ports or interface names run out.
pub fn plan(topology: &Topology, options: &Options) -> Result<Plan, PlanError> {
    let tag = tag(topology.name());
    let switches = topology
        .switch_ids()
        .map(|id| switch_plan(topology, options, &tag, id))
        .collect::<Result<_, _>>()?;
    let hosts = topology
        .host_ids()
        .map(|id| host_plan(topology, options, id))
        .collect();
    let end = |end: End| EndPlan {
        node: match end {
            End::Nic(port) => topology[topology[port.nic].host].name.clone(),
            End::Switch(port) => topology[port.switch].name.clone(),
        },
        interface: match end {
            End::Nic(port) => nic_interface(&topology[port.nic], port.port),
            End::Switch(port) => switch_interface(&tag, port),
        },
    };
    let links = topology.links().iter().map(|link| LinkPlan {
        ends: link.ends().map(end),
    });
    Ok(Plan {
        fabric: topology.name().to_owned(),
        links: links.collect(),
        switches,
        hosts,
        tag,
        program: options.program.clone(),
        log_folder: options.log_folder.clone(),
    })
}

/// `m` and five letters or digits: FNV-1a of the name. Short, because interface names are.
fn tag(fabric: &str) -> String {
    let hash = fabric
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let digit = |place: u32| {
        let digit = hash / 36_u64.pow(place) % 36;
        char::from_digit(digit as u32, 36).unwrap_or('0')
    };
    std::iter::once('m').chain((0..5).map(digit)).collect()
}

fn switch_interface(tag: &str, port: PortRef) -> String {
    format!("{tag}-s{}p{}", port.switch.0, port.port)
}

fn nic_interface(nic: &Nic, port: u8) -> String {
    match (nic.ports().count(), port) {
        (1, _) => format!("rail{}", nic.rail),
        (_, 0) => format!("rail{}a", nic.rail),
        (_, _) => format!("rail{}b", nic.rail),
    }
}

fn switch_plan(
    topology: &Topology,
    options: &Options,
    tag: &str,
    id: SwitchId,
) -> Result<SwitchPlan, PlanError> {
    let switch = &topology[id];
    let wanted = u64::from(options.grpc_base_port) + u64::from(id.0);
    let grpc_port = u16::try_from(wanted).map_err(|_| PlanError::PortRange {
        switches: topology.switches().len(),
        base: options.grpc_base_port,
        last: u64::from(options.grpc_base_port) + topology.switches().len() as u64 - 1,
    })?;
    let mut ports = Vec::new();
    let mut setup = Vec::new();
    for neighbour in topology.neighbours(id) {
        let port = PortRef {
            switch: id,
            port: neighbour.port,
        };
        let interface = switch_interface(tag, port);
        if interface.len() > LONGEST_INTERFACE {
            let switch = switch.name.clone();
            return Err(PlanError::TooLarge {
                switch,
                port: port.port,
                interface,
            });
        }
        let wire = wire(topology, options, &topology[neighbour.link]);
        setup.extend(setup::switch_port(&interface, &wire));
        ports.push(PortPlan {
            number: port.port,
            interface,
        });
    }
    Ok(SwitchPlan {
        name: switch.name.clone(),
        device_id: switch.device_id,
        program: options.program.path.clone(),
        arguments: arguments(options, switch.device_id, grpc_port, &ports),
        grpc_port,
        ports,
        setup,
    })
}

/// The switch program's command line, in the form that simple_switch_grpc defines: options of
/// the target behind `--`.
fn arguments(options: &Options, device_id: u64, grpc_port: u16, ports: &[PortPlan]) -> Vec<String> {
    let mut arguments = vec![
        "--no-p4".into(),
        "--device-id".into(),
        device_id.to_string(),
    ];
    for port in ports {
        arguments.extend(["-i".into(), format!("{}@{}", port.number, port.interface)]);
    }
    if let Some(level) = &options.log_level {
        arguments.extend(["--log-console".into(), "-L".into(), level.clone()]);
    }
    if options.program.kind == ProgramKind::SimpleSwitchGrpc {
        // Otherwise all of a machine's switches would want Thrift's default port.
        let thrift = grpc_port
            .checked_add(THRIFT_OFFSET)
            .unwrap_or(grpc_port - THRIFT_OFFSET);
        arguments.extend(["--thrift-port".into(), thrift.to_string()]);
    }
    arguments.push("--".into());
    arguments.extend([
        "--grpc-server-addr".into(),
        format!("127.0.0.1:{grpc_port}"),
    ]);
    arguments.extend(["--cpu-port".into(), CPU_PORT.to_string()]);
    arguments.extend(["--drop-port".into(), DROP_PORT.to_string()]);
    arguments.extend(["--priority-queues".into(), "8".into()]);
    arguments
}

fn wire(topology: &Topology, options: &Options, link: &Link) -> setup::Wire {
    setup::Wire {
        mtu: match link.lower {
            End::Switch(_) => topology.policy().fabric_mtu(),
            End::Nic(_) => topology.policy().mtu,
        },
        delay_ns: if options.shaping.delay {
            link.delay_ns
        } else {
            0
        },
        rate_bps: options.shaping.rate_bps,
        finished_frames: options.program.kind.wants_finished_frames(),
    }
}

fn host_plan(topology: &Topology, options: &Options, id: HostId) -> HostPlan {
    let host = &topology[id];
    let nics: Vec<NicPlan> = host.nics().map(|nic| nic_plan(topology, nic)).collect();
    let mut setup = setup::host();
    for (id, nic) in host.nics().zip(&nics) {
        let wires = topology[id]
            .ports()
            .map(|port| wire(topology, options, &topology[port.link]));
        for (interface, wire) in nic.interfaces.iter().zip(wires) {
            setup.extend(setup::nic_port(nic, interface, &wire));
        }
        setup.extend(setup::nic_routes(nic, options.static_neighbours));
    }
    setup.extend(nics.first().map(setup::default_routes).unwrap_or_default());
    HostPlan {
        name: host.name.clone(),
        nics,
        setup,
    }
}

fn nic_plan(topology: &Topology, id: NicId) -> NicPlan {
    let nic = &topology[id];
    let la = &topology[nic.la];
    let interfaces = nic
        .ports()
        .map(|port| nic_interface(nic, port.number))
        .collect();
    NicPlan {
        rail: nic.rail,
        interfaces,
        mac: nic.mac.to_string(),
        v4: nic.v4,
        v4_prefix: la.v4.prefix(),
        v6: nic.v6,
        v6_prefix: la.v6.prefix(),
        gateway_v4: la.gateway_v4,
        gateway_v6: la.gateway_v6,
        gateway_mac: la.gateway_mac.to_string(),
        table: setup::FIRST_TABLE + u32::from(nic.rail),
    }
}

impl Plan {
    /// The host with this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&HostPlan> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

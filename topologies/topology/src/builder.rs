//! Puts a topology together piece by piece, checking each piece as it comes.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::addressing::{self, MAX_DEVICE_ID};
use crate::fault::Fault;
use crate::ids::{
    BuildingId, End, HostId, NicId, Node, PodId, PortRef, ScaleUpId, SegmentId, SwitchId,
};
use crate::model::{Building, Host, MAX_PORT, Nic, Pod, Port, Segment, Switch, Tier, Topology};
use crate::naming::is_name;
use crate::parts::{NewHost, NewLa, NewSwitch};
use crate::policy::Policy;
use crate::units::MAX_SPEED_BPS;

/// Most switches in one topology.
pub const MAX_SWITCHES: usize = 100_000;
/// Most hosts in one topology.
pub const MAX_HOSTS: usize = 250_000;
/// Most NICs in one topology.
pub const MAX_NICS: usize = 1_100_000;
/// Most links in one topology.
pub const MAX_LINKS: usize = 5_000_000;

/// Addresses a NIC was given, before the rest are assigned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<Ipv6Addr>,
    pub(crate) speed_bps: Option<u64>,
}

/// A topology under construction.
#[derive(Debug)]
pub struct Builder {
    pub(crate) topology: Topology,
    pub(crate) las: Vec<NewLa>,
    pub(crate) la_names: FxHashSet<String>,
    pub(crate) given: Vec<Given>,
    pub(crate) macs_given: bool,
    /// Whether `ports` of a switch were declared, so that links may use no others.
    pub(crate) declared: Vec<bool>,
    device_ids: FxHashSet<u64>,
    places: FxHashSet<(u8, String)>,
    scale_ups: FxHashMap<u32, ScaleUpId>,
    next_scale_up: usize,
}

impl Builder {
    /// An empty topology.
    ///
    /// # Errors
    /// The name can't be used.
    pub fn new(name: impl Into<String>) -> Result<Self, Fault> {
        let name = name.into();
        if !is_name(&name) {
            return Err(Fault::BadName(name));
        }
        Ok(Self {
            topology: Topology {
                name,
                vrf: 1,
                policy: Policy::default(),
                switches: Vec::new(),
                hosts: Vec::new(),
                nics: Vec::new(),
                links: Vec::new(),
                las: Vec::new(),
                segments: Vec::new(),
                pods: Vec::new(),
                buildings: Vec::new(),
                names: FxHashMap::default(),
                la_of_switch: Vec::new(),
            },
            las: Vec::new(),
            la_names: FxHashSet::default(),
            given: Vec::new(),
            macs_given: false,
            declared: Vec::new(),
            device_ids: FxHashSet::default(),
            places: FxHashSet::default(),
            scale_ups: FxHashMap::default(),
            next_scale_up: 0,
        })
    }

    /// What was added so far.
    #[must_use]
    pub fn so_far(&self) -> &Topology {
        &self.topology
    }

    /// Sets queues, marking and classes.
    pub fn set_policy(&mut self, policy: Policy) {
        self.topology.policy = policy;
    }

    /// Sets the VRF of the fabric (1 if not set).
    pub fn set_vrf(&mut self, vrf: u16) {
        self.topology.vrf = vrf;
    }

    fn place(&mut self, kind: u8, name: String) -> Result<String, Fault> {
        if !is_name(&name) {
            return Err(Fault::BadName(name));
        }
        if !self.places.insert((kind, name.clone())) {
            return Err(Fault::DuplicateName(name));
        }
        if self.places.len() > MAX_HOSTS {
            return Err(Fault::TooMany {
                what: "segments, pods and buildings",
                limit: MAX_HOSTS as u64,
            });
        }
        Ok(name)
    }

    /// Adds a building.
    ///
    /// # Errors
    /// Its name is taken or can't be used.
    pub fn add_building(&mut self, name: impl Into<String>) -> Result<BuildingId, Fault> {
        let name = self.place(0, name.into())?;
        self.topology.buildings.push(Building { name });
        Ok(BuildingId::at(self.topology.buildings.len() - 1))
    }

    /// Adds a pod to a building.
    ///
    /// # Errors
    /// Its name is taken or can't be used.
    pub fn add_pod(
        &mut self,
        name: impl Into<String>,
        building: BuildingId,
    ) -> Result<PodId, Fault> {
        let name = self.place(1, name.into())?;
        self.topology.pods.push(Pod { name, building });
        Ok(PodId::at(self.topology.pods.len() - 1))
    }

    /// Adds a segment to a pod.
    ///
    /// # Errors
    /// Its name is taken or can't be used.
    pub fn add_segment(&mut self, name: impl Into<String>, pod: PodId) -> Result<SegmentId, Fault> {
        let name = self.place(2, name.into())?;
        self.topology.segments.push(Segment { name, pod });
        Ok(SegmentId::at(self.topology.segments.len() - 1))
    }

    fn claim_name(&mut self, name: &str, node: Node) -> Result<(), Fault> {
        if !is_name(name) {
            return Err(Fault::BadName(name.to_owned()));
        }
        if self.topology.names.contains_key(name) {
            return Err(Fault::DuplicateName(name.to_owned()));
        }
        self.topology.names.insert(name.to_owned(), node);
        Ok(())
    }

    /// Adds a switch.
    ///
    /// # Errors
    /// Its name or device id is taken or can't be used, or there are [`MAX_SWITCHES`] already.
    pub fn add_switch(&mut self, new: NewSwitch) -> Result<SwitchId, Fault> {
        if self.topology.switches.len() >= MAX_SWITCHES {
            return Err(Fault::TooMany {
                what: "switches",
                limit: MAX_SWITCHES as u64,
            });
        }
        let id = SwitchId::at(self.topology.switches.len());
        let device_id = new.device_id.unwrap_or(u64::from(id.0) + 1);
        if !(1..=MAX_DEVICE_ID).contains(&device_id) {
            return Err(Fault::DeviceIdRange(device_id));
        }
        if let Some(mac) = new.mac.filter(|mac| !mac.is_station()) {
            return Err(Fault::BadMac(mac));
        }
        if self.device_ids.contains(&device_id) {
            return Err(Fault::DuplicateDeviceId(device_id));
        }
        self.claim_name(&new.name, Node::Switch(id))?;
        self.device_ids.insert(device_id);
        self.macs_given |= new.mac.is_some();
        self.topology.switches.push(Switch {
            name: new.name,
            tier: new.tier,
            device_id,
            mac: new.mac.unwrap_or_else(|| addressing::switch_mac(device_id)),
            loopback_v4: new
                .loopback_v4
                .unwrap_or_else(|| addressing::loopback_v4(device_id)),
            loopback_v6: new
                .loopback_v6
                .unwrap_or_else(|| addressing::loopback_v6(device_id)),
            segment: new.segment,
            pod: new.pod,
            rail: new.rail,
            plane: new.plane,
            ports: Vec::new(),
        });
        self.declared.push(false);
        Ok(id)
    }

    /// Declares ports of a switch and their speed; from then on links may use no others.
    ///
    /// # Errors
    /// A number outside 1..=[`MAX_PORT`], a speed no port has, or a port declared with another
    /// speed before.
    pub fn declare_ports(
        &mut self,
        switch: SwitchId,
        numbers: RangeInclusive<u16>,
        speed_bps: u64,
    ) -> Result<(), Fault> {
        check_speed(speed_bps)?;
        let (first, last) = (*numbers.start(), *numbers.end());
        let mut ends = [first, last].into_iter();
        if let Some(bad) = ends.find(|port| !(1..=MAX_PORT).contains(port)) {
            return Err(self.port_range(switch, u32::from(bad)));
        }
        for number in numbers {
            let port = self.port_mut(switch, number);
            if port.speed_bps != 0 && port.speed_bps != speed_bps {
                let first_bps = port.speed_bps;
                let end = self.port_name(PortRef {
                    switch,
                    port: number,
                });
                return Err(Fault::SpeedMismatch {
                    first: end.clone(),
                    first_bps,
                    second: end,
                    second_bps: speed_bps,
                });
            }
            port.speed_bps = speed_bps;
        }
        self.declared[switch.index()] = true;
        Ok(())
    }

    pub(crate) fn port_mut(&mut self, switch: SwitchId, number: u16) -> &mut Port {
        let ports = &mut self.topology.switches[switch.index()].ports;
        let count = usize::from(number);
        if ports.len() < count {
            ports.resize(
                count,
                Port {
                    speed_bps: 0,
                    link: None,
                },
            );
        }
        &mut ports[count - 1]
    }

    /// Adds a host with its NICs.
    ///
    /// # Errors
    /// Its name is taken or can't be used; it has no NIC, a NIC with other than 1 or 2 ports, or
    /// two on one rail; or there are too many hosts or NICs.
    pub fn add_host(&mut self, new: NewHost) -> Result<HostId, Fault> {
        self.check_host(&new)?;
        let id = HostId::at(self.topology.hosts.len());
        self.claim_name(&new.name, Node::Host(id))?;
        let scale_up = self.scale_up(new.scale_up);
        let first = self.topology.nics.len() as u32;
        let mut nics = new.nics;
        nics.sort_by_key(|nic| nic.rail);
        for nic in nics {
            let position = self.topology.nics.len() as u32;
            self.macs_given |= nic.mac.is_some();
            self.given.push(Given {
                v4: nic.v4,
                v6: nic.v6,
                speed_bps: nic.speed_bps,
            });
            self.topology.nics.push(Nic {
                host: id,
                rail: nic.rail,
                mac: nic.mac.unwrap_or_else(|| addressing::nic_mac(position)),
                v4: Ipv4Addr::UNSPECIFIED,
                v6: Ipv6Addr::UNSPECIFIED,
                la: crate::LaId(u32::MAX),
                port_count: nic.ports,
                ports: [None; 2],
            });
        }
        let nics = first..self.topology.nics.len() as u32;
        self.topology.hosts.push(Host {
            name: new.name,
            segment: new.segment,
            gpus: new.gpus.unwrap_or(nics.len() as u32),
            scale_up,
            nics,
        });
        Ok(id)
    }

    fn check_host(&self, new: &NewHost) -> Result<(), Fault> {
        if new.nics.is_empty() {
            return Err(Fault::NoNic(new.name.clone()));
        }
        if self.topology.hosts.len() >= MAX_HOSTS {
            return Err(Fault::TooMany {
                what: "hosts",
                limit: MAX_HOSTS as u64,
            });
        }
        if self.topology.nics.len() + new.nics.len() > MAX_NICS {
            return Err(Fault::TooMany {
                what: "NICs",
                limit: MAX_NICS as u64,
            });
        }
        let mut rails = FxHashSet::default();
        for nic in &new.nics {
            if !(1..=2).contains(&nic.ports) {
                return Err(Fault::NicPorts {
                    host: new.name.clone(),
                    ports: u32::from(nic.ports),
                });
            }
            if !rails.insert(nic.rail) {
                return Err(Fault::DuplicateRail {
                    host: new.name.clone(),
                    rail: nic.rail,
                });
            }
            if let Some(mac) = nic.mac.filter(|mac| !mac.is_station()) {
                return Err(Fault::BadMac(mac));
            }
            nic.speed_bps.map_or(Ok(()), check_speed)?;
        }
        Ok(())
    }

    fn scale_up(&mut self, label: Option<u32>) -> ScaleUpId {
        let next = ScaleUpId::at(self.next_scale_up);
        let id = label.map_or(next, |label| *self.scale_ups.entry(label).or_insert(next));
        if id == next {
            self.next_scale_up += 1;
        }
        id
    }

    /// Names the LA domain of a leaf or a dual-ToR pair. Leaves that no one names get one each.
    ///
    /// # Errors
    /// Its name is taken or can't be used, or it has not one or two leaves.
    pub fn add_la(&mut self, new: NewLa) -> Result<(), Fault> {
        if !is_name(&new.name) {
            return Err(Fault::BadName(new.name));
        }
        if !self.la_names.insert(new.name.clone()) {
            return Err(Fault::DuplicateName(new.name));
        }
        let not_access = |why: String| Fault::NotLeafAccess {
            la: new.name.clone(),
            why,
        };
        if new.leaves.is_empty() || new.leaves.len() > 2 {
            return Err(not_access(format!("it has {} leaves", new.leaves.len())));
        }
        for leaf in &new.leaves {
            let switch = &self.topology[*leaf];
            if switch.tier != Tier::Leaf {
                return Err(not_access(format!(
                    "`{}` is a {}",
                    switch.name,
                    switch.tier.name()
                )));
            }
        }
        if let [first, second] = new.leaves[..]
            && first == second
        {
            let name = &self.topology[first].name;
            return Err(not_access(format!("`{name}` is named twice")));
        }
        self.las.push(new);
        Ok(())
    }

    pub(crate) fn port_range(&self, switch: SwitchId, port: u32) -> Fault {
        let declared = self.declared[switch.index()].then(|| {
            let ranges = crate::write::port_ranges(&self.topology[switch].ports);
            ranges
                .into_iter()
                .map(|(numbers, _)| numbers)
                .collect::<Vec<_>>()
                .join(", ")
        });
        Fault::PortRange {
            switch: self.topology[switch].name.clone(),
            port,
            declared,
        }
    }

    fn port_name(&self, port: PortRef) -> String {
        self.topology.end_name(End::Switch(port))
    }

    /// The `n`-th NIC of a host.
    #[must_use]
    pub fn nic(&self, host: HostId, n: usize) -> Option<NicId> {
        self.topology[host].nics().nth(n)
    }
}

pub(crate) fn check_speed(speed_bps: u64) -> Result<(), Fault> {
    match speed_bps {
        1..=MAX_SPEED_BPS => Ok(()),
        _ => Err(Fault::BadSpeed(speed_bps)),
    }
}

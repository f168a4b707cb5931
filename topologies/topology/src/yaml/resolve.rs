//! From the file as written to a topology: names become ids, and whatever the builder objects to is
//! reported where the file says it.

use std::net::IpAddr;

use super::decode::Spanned;
use super::doc::{Doc, EndDoc, LaDoc, LinkDoc, OverrideDoc, SwitchDoc};
use super::host_doc::{HostDoc, NicDoc, NicsDoc};
use super::index::Index;
use super::places::Places;
use super::report::{At, Finding, Findings};
use crate::addressing::MacAddr;
use crate::builder::Builder;
use crate::clos_build;
use crate::fault::Fault;
use crate::ids::{End, LinkId, NicPortRef, Node, PortRef};
use crate::model::Topology;
use crate::naming;
use crate::parts::{NewHost, NewLa, NewNic, NewSwitch};

/// Delay of an explicit link that gives none, ns.
const DEFAULT_DELAY_NS: u64 = 500;

pub(super) struct Resolver<'f> {
    pub(super) builder: Builder,
    pub(super) findings: &'f mut Findings,
    pub(super) index: Index,
    default_speed: Option<u64>,
    speed_given: bool,
    default_delay: u64,
}

/// Builds what the document describes. `None` if anything was reported.
pub(super) fn resolve(doc: Doc, findings: &mut Findings) -> Option<Topology> {
    let at = doc.name.as_ref().map_or(At::default(), |name| name.at);
    let name = doc
        .name
        .as_ref()
        .map_or_else(|| "topology".to_owned(), |name| name.value.clone());
    let builder = match Builder::new(name) {
        Ok(builder) => builder,
        Err(fault) => {
            findings.add(at, fault.code(), fault.to_string(), fault.help());
            return None;
        }
    };
    let mut resolver = Resolver {
        builder,
        findings,
        index: Index::default(),
        default_speed: doc.speed,
        speed_given: doc.speed_given,
        default_delay: doc.delay.unwrap_or(DEFAULT_DELAY_NS),
    };
    resolver.builder.set_policy(doc.policy.clone());
    resolver.builder.set_vrf(doc.vrf.unwrap_or(1));
    resolver.clos(&doc)?;
    let mut places = Places::new(&mut resolver, &doc);
    for switch in doc.switches {
        resolver.switch(switch, &mut places);
    }
    for host in doc.hosts {
        resolver.host(host, &mut places);
    }
    for la in doc.las {
        resolver.la(la);
    }
    for link in doc.links {
        resolver.link(link);
    }
    resolver.overrides(&doc.overrides);
    resolver.finish(at)
}

impl Resolver<'_> {
    /// Generates the compact part. `None` if it can't be, as all other names may depend on it.
    fn clos(&mut self, doc: &Doc) -> Option<()> {
        let Some(clos) = &doc.clos else {
            return Some(());
        };
        self.index.clos = Some(clos.at);
        if !self.findings.is_empty() {
            return None;
        }
        let plan = match clos.value.clos.plan() {
            Ok(plan) => plan,
            Err(errors) => {
                for error in errors {
                    let at = clos
                        .value
                        .places
                        .get(error.field)
                        .copied()
                        .unwrap_or(clos.at);
                    let message = format!("`{}`: {}", error.field, error.message);
                    self.findings.add(at, "clos", message, error.help);
                }
                return None;
            }
        };
        match clos_build::build(&clos.value.clos, &plan, &mut self.builder) {
            Ok(()) => Some(()),
            Err(fault) => {
                self.fault(clos.at, &fault);
                None
            }
        }
    }

    pub(super) fn fault(&mut self, at: At, fault: &Fault) {
        self.fault_with(at, fault, None);
    }

    fn fault_with(&mut self, at: At, fault: &Fault, also: Option<(At, String)>) {
        let (code, message, help) = (fault.code(), fault.to_string(), fault.help());
        self.findings.push(Finding {
            at,
            code,
            message,
            help,
            also,
        });
    }

    fn first_time(&mut self, name: &Spanned<String>) -> bool {
        let first = self.index.nodes.get(&name.value).copied();
        // Not `find`: its error, made for every new name, compares with all names there are.
        let taken = first.is_some() || self.builder.so_far().names.contains_key(&name.value);
        if taken {
            let first = first
                .or(self.index.clos)
                .map(|at| (at, "first used here".to_owned()));
            self.fault_with(name.at, &Fault::DuplicateName(name.value.clone()), first);
        } else {
            self.index.nodes.insert(name.value.clone(), name.at);
        }
        !taken
    }

    fn switch(&mut self, doc: SwitchDoc, places: &mut Places) {
        if !self.first_time(&doc.name) {
            return;
        }
        let Some(tier) = doc.tier else { return };
        let segment = doc
            .segment
            .as_ref()
            .and_then(|name| places.segment(self, Some(name), doc.at));
        let pod = doc
            .pod
            .as_ref()
            .and_then(|name| places.pod(self, Some(name), doc.at));
        if let Some(id) = doc.device_id {
            self.device_id(id);
        }
        self.note_mac(doc.mac);
        self.note_address(doc.loopback_v4.map(|at| Spanned {
            at: at.at,
            value: at.value.into(),
        }));
        self.note_address(doc.loopback_v6.map(|at| Spanned {
            at: at.at,
            value: at.value.into(),
        }));
        let new = NewSwitch {
            device_id: doc.device_id.map(|id| id.value),
            mac: doc.mac.map(|mac| mac.value),
            loopback_v4: doc.loopback_v4.map(|address| address.value),
            loopback_v6: doc.loopback_v6.map(|address| address.value),
            segment,
            pod,
            rail: doc.rail,
            plane: doc.plane,
            ..NewSwitch::new(doc.name.value, tier)
        };
        let id = match self.builder.add_switch(new) {
            Ok(id) => id,
            Err(fault) => {
                let at = match &fault {
                    Fault::DeviceIdRange(_) | Fault::DuplicateDeviceId(_) => {
                        doc.device_id.map(|id| id.at)
                    }
                    Fault::BadMac(_) => doc.mac.map(|mac| mac.at),
                    _ => None,
                };
                return self.fault(at.unwrap_or(doc.name.at), &fault);
            }
        };
        for ports in doc.ports {
            let (first, last) = ports.numbers.value;
            let numbers = u16::try_from(first).ok().zip(u16::try_from(last).ok());
            let declared = match numbers {
                Some((first, last)) => {
                    self.builder
                        .declare_ports(id, first..=last, ports.speed_bps)
                }
                None => Err(self.builder.port_range(id, last)),
            };
            if let Err(fault) = declared {
                self.fault(ports.numbers.at, &fault);
            }
        }
    }

    fn device_id(&mut self, id: Spanned<u64>) {
        self.index.device_ids.entry(id.value).or_insert(id.at);
    }

    fn note_mac(&mut self, mac: Option<Spanned<MacAddr>>) {
        if let Some(mac) = mac {
            self.index.macs.entry(mac.value).or_default().push(mac.at);
        }
    }

    fn note_address(&mut self, address: Option<Spanned<IpAddr>>) {
        if let Some(address) = address {
            self.index
                .addresses
                .entry(address.value)
                .or_default()
                .push(address.at);
        }
    }

    fn host(&mut self, doc: HostDoc, places: &mut Places) {
        if !self.first_time(&doc.name) {
            return;
        }
        let Some(segment) = places.segment(self, doc.segment.as_ref(), doc.name.at) else {
            return;
        };
        let Some(given) = doc.nics else { return };
        let nics: Vec<NicDoc> = match given.value {
            NicsDoc::Count(count, like) => (0..count)
                .map(|rail| NicDoc {
                    rail,
                    ..like.clone()
                })
                .collect(),
            NicsDoc::List(nics) => nics,
        };
        let mut new = Vec::new();
        for nic in nics {
            self.note_mac(nic.mac);
            self.note_address(nic.v4.map(|at| Spanned {
                at: at.at,
                value: at.value.into(),
            }));
            self.note_address(nic.v6.map(|at| Spanned {
                at: at.at,
                value: at.value.into(),
            }));
            new.push(NewNic {
                rail: nic.rail,
                ports: nic.ports,
                speed_bps: nic.speed_bps,
                mac: nic.mac.map(|mac| mac.value),
                v4: nic.v4.map(|address| address.value),
                v6: nic.v6.map(|address| address.value),
            });
        }
        let name = doc.name.value;
        let host = NewHost {
            name,
            segment,
            gpus: doc.gpus,
            scale_up: doc.scale_up,
            nics: new,
        };
        if let Err(fault) = self.builder.add_host(host) {
            let at = match &fault {
                Fault::NoNic(_) | Fault::DuplicateRail { .. } => given.at,
                Fault::BadMac(mac) => self.index.macs[mac].last().copied().unwrap_or(doc.at),
                _ => doc.name.at,
            };
            self.fault(at, &fault);
        }
    }

    /// A node by name; if there is none, says so where the name stands.
    fn node(&mut self, name: &str, at: At) -> Option<Node> {
        if self.findings.full() {
            let found = self.builder.so_far().names.get(name).copied();
            if found.is_none() {
                self.findings.count();
            }
            return found;
        }
        match self.builder.so_far().find(name) {
            Ok(node) => Some(node),
            // A node that the file has but that was refused has been reported already.
            Err(_) if self.index.nodes.contains_key(name) => None,
            Err(error) => {
                self.findings
                    .add(at, "unknown-node", error.message, error.help);
                None
            }
        }
    }

    fn end(&mut self, doc: &Spanned<EndDoc>) -> Option<End> {
        let EndDoc {
            node,
            first,
            second,
        } = &doc.value;
        match (self.node(node, doc.at)?, second) {
            (Node::Switch(switch), None) => match u16::try_from(*first) {
                Ok(port) => Some(End::Switch(PortRef { switch, port })),
                Err(_) => {
                    let fault = self.builder.port_range(switch, *first);
                    self.fault(doc.at, &fault);
                    None
                }
            },
            (Node::Switch(_), Some(_)) => {
                let message =
                    format!("`{node}` is a switch, so `{node}:{first}` names a port of it");
                self.findings.add(
                    doc.at,
                    "unknown-node",
                    message,
                    "leave out what follows the `.`",
                );
                None
            }
            (Node::Host(host), second) => {
                let topology = self.builder.so_far();
                let nic = u16::try_from(*first)
                    .ok()
                    .and_then(|rail| topology.nic_on_rail(host, rail));
                let port = second.unwrap_or(0);
                match nic.map(|nic| (nic, u8::try_from(port))) {
                    Some((nic, Ok(port))) => Some(End::Nic(NicPortRef { nic, port })),
                    Some((nic, Err(_))) => {
                        let (count, nic) = (topology[nic].port_count, topology.nic_name(nic));
                        self.fault(doc.at, &Fault::NicPortRange { nic, port, count });
                        None
                    }
                    None => {
                        let rails = topology[host]
                            .nics()
                            .map(|nic| topology[nic].rail.to_string());
                        let help =
                            format!("its rails are {}", rails.collect::<Vec<_>>().join(", "));
                        let message = format!("host `{node}` has no rail {first}");
                        self.findings.add(doc.at, "unknown-node", message, help);
                        None
                    }
                }
            }
        }
    }

    fn link(&mut self, doc: LinkDoc) {
        let [first, second] = &doc.ends;
        let ends = (self.end(first), self.end(second));
        let (Some(a), Some(b)) = ends else { return };
        let speed = doc.speed.map(|speed| speed.value);
        let delay = doc.delay.unwrap_or(self.default_delay);
        let mut added = self.builder.add_link(a, b, speed, delay);
        if matches!(added, Err(Fault::NoSpeed(_))) && self.default_speed.is_some() {
            added = self.builder.add_link(a, b, self.default_speed, delay);
        }
        match added {
            Ok(link) => {
                self.index.links.insert(link, doc.at);
            }
            // That the default was no good has been reported; once is enough.
            Err(Fault::NoSpeed(_)) if self.speed_given => {}
            Err(fault) => self.link_fault(&doc, [a, b], &fault),
        }
    }

    fn link_fault(&mut self, doc: &LinkDoc, ends: [End; 2], fault: &Fault) {
        let blamed = |end_name: &str, builder: &Builder| {
            let position = ends
                .iter()
                .position(|end| builder.so_far().end_name(*end) == end_name);
            position.map_or(doc.at, |position| doc.ends[position].at)
        };
        let of_switch = |switch: &str| {
            doc.ends
                .iter()
                .find(|end| end.value.node == switch)
                .map_or(doc.at, |end| end.at)
        };
        let (at, also) = match fault {
            Fault::PortTaken { end, by } => {
                let first = self.index.links.get(by).copied().or(self.index.clos);
                (
                    blamed(end, &self.builder),
                    first.map(|at| (at, "first used here".to_owned())),
                )
            }
            Fault::PortRange { switch, .. } => (of_switch(switch), None),
            Fault::NicPortRange { nic, .. } => {
                let host = nic.split(':').next().unwrap_or(nic);
                (of_switch(host), None)
            }
            Fault::SpeedMismatch { .. } => (doc.speed.map_or(doc.at, |speed| speed.at), None),
            Fault::SelfLink(_) => (doc.ends[1].at, None),
            _ => (doc.ends[0].at, None),
        };
        self.fault_with(at, fault, also);
    }

    fn la(&mut self, doc: LaDoc) {
        let mut leaves = Vec::new();
        for leaf in &doc.leaves {
            match self.node(&leaf.value, leaf.at) {
                Some(Node::Switch(id)) => leaves.push(id),
                Some(Node::Host(_)) => {
                    let message = format!("`{}` is a host, not a leaf", leaf.value);
                    self.findings.add(
                        leaf.at,
                        "unknown-node",
                        message,
                        "name the leaves of the domain",
                    );
                }
                None => {}
            }
        }
        if leaves.len() != doc.leaves.len() {
            return;
        }
        let prefixes = [
            doc.v4.map(|prefix| prefix.at),
            doc.v6.map(|prefix| prefix.at),
        ];
        let name = doc.name.value.clone();
        let new = NewLa {
            name: name.clone(),
            leaves,
            v4: doc.v4.map(|prefix| prefix.value),
            v6: doc.v6.map(|prefix| prefix.value),
        };
        match self.builder.add_la(new) {
            Ok(()) => {
                self.index.las.insert(name.clone(), doc.name.at);
                self.index.prefixes.insert(name, prefixes);
            }
            Err(fault) => {
                let first = self.index.las.get(&name).or(self.index.clos.as_ref());
                let also = matches!(fault, Fault::DuplicateName(_))
                    .then(|| first.map(|at| (*at, "first used here".to_owned())));
                self.fault_with(doc.name.at, &fault, also.flatten());
            }
        }
    }

    fn overrides(&mut self, overrides: &[OverrideDoc]) {
        let mut removed = rustc_hash::FxHashSet::default();
        for doc in overrides {
            let Some(links) = self.links_between(doc) else {
                continue;
            };
            for link in links {
                if doc.remove {
                    removed.insert(link);
                } else {
                    self.builder.change_link(link, doc.speed, doc.delay);
                }
            }
        }
        if !removed.is_empty() {
            self.builder.remove_links(&removed);
        }
    }

    fn links_between(&mut self, doc: &OverrideDoc) -> Option<Vec<LinkId>> {
        let [first, second] = &doc.between.value;
        let (a, b) = (self.side(first), self.side(second));
        let ((a, a_end), (b, b_end)) = (a?, b?);
        let topology = self.builder.so_far();
        let given = [a_end, b_end];
        let links: Vec<LinkId> = topology
            .links_between(a, b)
            .filter(|link| {
                let ends = topology[*link].ends();
                given.iter().flatten().all(|end| ends.contains(end))
            })
            .collect();
        if links.is_empty() {
            let message = format!("no link joins `{}` and `{}`", first.value, second.value);
            let help = "name two neighbours, or two ports that one link joins";
            self.findings
                .add(doc.between.at, "unknown-node", message, help);
            return None;
        }
        Some(links)
    }

    /// A node, or one port of it.
    fn side(&mut self, name: &Spanned<String>) -> Option<(Node, Option<End>)> {
        let Some((node, first, second)) = naming::split_end(&name.value) else {
            return self.node(&name.value, name.at).map(|node| (node, None));
        };
        let end = EndDoc {
            node: node.to_owned(),
            first,
            second,
        };
        let end = self.end(&Spanned {
            at: name.at,
            value: end,
        })?;
        Some((self.builder.so_far().node(end), Some(end)))
    }

    fn finish(self, at: At) -> Option<Topology> {
        let Self {
            builder,
            findings,
            index,
            ..
        } = self;
        if !findings.is_empty() {
            return None;
        }
        match builder.finish() {
            Ok(topology) => Some(topology),
            Err(faults) => {
                for fault in faults {
                    let (at, also) = index.place(&fault, at);
                    let (code, message, help) = (fault.code(), fault.to_string(), fault.help());
                    findings.push(Finding {
                        at,
                        code,
                        message,
                        help,
                        also,
                    });
                }
                None
            }
        }
    }
}

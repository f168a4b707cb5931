//! Writes a topology in the explicit form that [`Topology::parse`] reads back to an equal one.

use std::fmt::{self, Write};

use rustc_hash::FxHashMap;

use crate::addressing;
use crate::ars_policy::ArsPolicy;
use crate::ids::{HostId, LaId, NicId, ScaleUpId, SwitchId};
use crate::int_policy::{INT_INSTRUCTIONS, IntIndicator, IntPolicy};
use crate::model::{Nic, Port, Topology};
use crate::policy::Policy;
use crate::units::{format_delay, format_probability, format_size, format_speed};

/// Declared ports as ranges of equal speed: `("1-8", 400 Gb/s)`.
pub(crate) fn port_ranges(ports: &[Port]) -> Vec<(String, u64)> {
    let mut ranges: Vec<(usize, usize, u64)> = Vec::new();
    for (number, port) in (1..).zip(ports).filter(|(_, port)| port.speed_bps != 0) {
        match ranges.last_mut() {
            Some((_, last, speed)) if *last + 1 == number && *speed == port.speed_bps => {
                *last = number
            }
            _ => ranges.push((number, number, port.speed_bps)),
        }
    }
    let text = |(first, last, speed): (usize, usize, u64)| {
        (
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            },
            speed,
        )
    };
    ranges.into_iter().map(text).collect()
}

impl Topology {
    /// The explicit form: every switch, host and link by name.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut out = String::with_capacity(64 * (self.links.len() + self.hosts.len()));
        // Writing to a String can't fail.
        let _ = self.write_yaml(&mut out);
        out
    }

    fn write_yaml(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "name: {}", self.name)?;
        writeln!(out, "vrf: {}", self.vrf)?;
        let speed = commonest(self.links.iter().map(|link| link.speed_bps)).unwrap_or(1);
        let delay = commonest(self.links.iter().map(|link| link.delay_ns)).unwrap_or(0);
        writeln!(
            out,
            "defaults: {{speed: {}, delay: {}}}",
            format_speed(speed),
            format_delay(delay)
        )?;
        write_policy(&self.policy, out)?;
        self.write_places(out)?;
        writeln!(out, "switches:")?;
        for id in self.switch_ids() {
            self.write_switch(id, out)?;
        }
        writeln!(out, "hosts:")?;
        let shared = self.shared_scale_ups();
        let explicit: Vec<bool> = self
            .la_ids()
            .map(|la| !self.has_default_addresses(la))
            .collect();
        for id in self.host_ids() {
            self.write_host(id, &shared, &explicit, out)?;
        }
        writeln!(out, "la:")?;
        for la in &self.las {
            let leaves: Vec<&str> = la
                .leaves
                .iter()
                .map(|leaf| self[*leaf].name.as_str())
                .collect();
            let (name, leaves) = (&la.name, leaves.join(", "));
            writeln!(
                out,
                "  - {{name: {name}, leaves: [{leaves}], v4: {}, v6: '{}'}}",
                la.v4, la.v6
            )?;
        }
        writeln!(out, "links:")?;
        for link in &self.links {
            let [lower, upper] = link.ends().map(|end| self.end_name(end));
            if (link.speed_bps, link.delay_ns) == (speed, delay) {
                writeln!(out, "  - [{lower}, {upper}]")?;
            } else {
                let (speed, delay) = (format_speed(link.speed_bps), format_delay(link.delay_ns));
                writeln!(
                    out,
                    "  - {{ends: [{lower}, {upper}], speed: {speed}, delay: {delay}}}"
                )?;
            }
        }
        Ok(())
    }

    fn write_places(&self, out: &mut String) -> fmt::Result {
        let names: Vec<&str> = self
            .buildings
            .iter()
            .map(|place| place.name.as_str())
            .collect();
        writeln!(out, "buildings: [{}]", names.join(", "))?;
        writeln!(out, "pods:")?;
        for pod in &self.pods {
            writeln!(
                out,
                "  - {{name: {}, building: {}}}",
                pod.name, self[pod.building].name
            )?;
        }
        writeln!(out, "segments:")?;
        for segment in &self.segments {
            writeln!(
                out,
                "  - {{name: {}, pod: {}}}",
                segment.name, self[segment.pod].name
            )?;
        }
        Ok(())
    }

    fn write_switch(&self, id: SwitchId, out: &mut String) -> fmt::Result {
        let switch = &self[id];
        write!(
            out,
            "  - {{name: {}, tier: {}",
            switch.name,
            switch.tier.name()
        )?;
        let device_id = switch.device_id;
        write!(out, ", device_id: {device_id}")?;
        if switch.mac != addressing::switch_mac(device_id) {
            write!(out, ", mac: '{}'", switch.mac)?;
        }
        if switch.loopback_v4 != addressing::loopback_v4(device_id) {
            write!(out, ", loopback_v4: {}", switch.loopback_v4)?;
        }
        if switch.loopback_v6 != addressing::loopback_v6(device_id) {
            write!(out, ", loopback_v6: '{}'", switch.loopback_v6)?;
        }
        if let Some(segment) = switch.segment {
            write!(out, ", segment: {}", self[segment].name)?;
        }
        if let Some(pod) = switch.pod {
            write!(out, ", pod: {}", self[pod].name)?;
        }
        if let Some(rail) = switch.rail {
            write!(out, ", rail: {rail}")?;
        }
        if let Some(plane) = switch.plane {
            write!(out, ", plane: {plane}")?;
        }
        let ranges = port_ranges(&switch.ports).into_iter();
        let ports: Vec<String> = ranges
            .map(|(numbers, speed)| format!("{numbers}: {}", format_speed(speed)))
            .collect();
        if !ports.is_empty() {
            write!(out, ", ports: {{{}}}", ports.join(", "))?;
        }
        writeln!(out, "}}")
    }

    /// Scale-up domains of more than one host; the others need no mention.
    fn shared_scale_ups(&self) -> FxHashMap<ScaleUpId, bool> {
        let mut shared = FxHashMap::default();
        for host in &self.hosts {
            shared
                .entry(host.scale_up)
                .and_modify(|shared| *shared = true)
                .or_insert(false);
        }
        shared
    }

    fn has_default_addresses(&self, la: LaId) -> bool {
        let la = &self[la];
        (2..).zip(&la.nics).all(|(k, nic)| {
            let nic = &self[*nic];
            addressing::v4_at(la.v4, k) == Some(nic.v4)
                && addressing::v6_at(la.v6, k) == Some(nic.v6)
        })
    }

    fn write_host(
        &self,
        id: HostId,
        shared: &FxHashMap<ScaleUpId, bool>,
        explicit: &[bool],
        out: &mut String,
    ) -> fmt::Result {
        let host = &self[id];
        write!(
            out,
            "  - {{name: {}, segment: {}, gpus: {}",
            host.name, self[host.segment].name, host.gpus
        )?;
        if shared.get(&host.scale_up).copied().unwrap_or(false) {
            write!(out, ", scale_up: {}", host.scale_up)?;
        }
        let plain = |position: usize, id: NicId| {
            let nic = &self[id];
            usize::from(nic.rail) == position
                && nic.port_count == self[NicId(host.nics.start)].port_count
                && nic.mac == addressing::nic_mac(id.0)
                && !explicit[nic.la.index()]
        };
        if host
            .nics()
            .enumerate()
            .all(|(position, nic)| plain(position, nic))
        {
            write!(out, ", nics: {}", host.nics.len())?;
            match self[NicId(host.nics.start)].port_count {
                1 => {}
                ports => write!(out, ", nic_ports: {ports}")?,
            }
        } else {
            write!(out, ", nics: [")?;
            for (position, id) in host.nics().enumerate() {
                write!(out, "{}", if position == 0 { "" } else { ", " })?;
                write_nic(
                    &self[id],
                    explicit[self[id].la.index()],
                    addressing::nic_mac(id.0),
                    out,
                )?;
            }
            write!(out, "]")?;
        }
        writeln!(out, "}}")
    }
}

fn write_nic(
    nic: &Nic,
    addresses: bool,
    mac: addressing::MacAddr,
    out: &mut String,
) -> fmt::Result {
    write!(out, "{{rail: {}, ports: {}", nic.rail, nic.port_count)?;
    if nic.mac != mac {
        write!(out, ", mac: '{}'", nic.mac)?;
    }
    if addresses {
        write!(out, ", v4: {}, v6: '{}'", nic.v4, nic.v6)?;
    }
    write!(out, "}}")
}

fn write_policy(policy: &Policy, out: &mut String) -> fmt::Result {
    writeln!(out, "policy:")?;
    writeln!(out, "  mtu: {}", policy.mtu)?;
    writeln!(out, "  queue_depth: {}", format_size(policy.queue_depth))?;
    writeln!(out, "  ecn:")?;
    for speed in Policy::default()
        .ecn
        .keys()
        .filter(|speed| !policy.ecn.contains_key(speed))
    {
        writeln!(out, "    {}: none", format_speed(*speed))?;
    }
    for (speed, ecn) in &policy.ecn {
        let (kmin, kmax) = (format_size(ecn.kmin), format_size(ecn.kmax));
        let pmax = format_probability(ecn.pmax_ppm);
        write!(
            out,
            "    {}: {{kmin: {kmin}, kmax: {kmax}, pmax: {pmax}",
            format_speed(*speed)
        )?;
        writeln!(
            out,
            "{}}}",
            if ecn.drop_not_ect {
                ", drop_not_ect: true"
            } else {
                ""
            }
        )?;
    }
    for (name, map) in [("dscp", &policy.dscp), ("queues", &policy.queues)] {
        let pairs: Vec<String> = map
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        writeln!(out, "  {name}: {{{}}}", pairs.join(", "))?;
    }
    let seeds = policy.seeds;
    writeln!(
        out,
        "  seeds: {{leaf: {}, spine: {}, core: {}}}",
        seeds.leaf, seeds.spine, seeds.core
    )?;
    policy
        .int
        .as_ref()
        .map_or(Ok(()), |int| write_int(int, out))?;
    policy
        .ars
        .as_ref()
        .map_or(Ok(()), |ars| write_ars(ars, out))
}

fn write_ars(ars: &ArsPolicy, out: &mut String) -> fmt::Result {
    let every = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), |ns| format!("{ns}ns"));
    writeln!(
        out,
        "  ars: {{mode: {}, idle: {}ns, hello: {}, probe: {}, gray_is_dead: {}}}",
        ars.mode.name(),
        ars.idle_ns,
        every(ars.hello_ns),
        every(ars.probe_ns),
        ars.gray_is_dead
    )
}

fn write_int(int: &IntPolicy, out: &mut String) -> fmt::Result {
    writeln!(out, "  int:")?;
    match int.indicator {
        IntIndicator::Dscp(dscp) => writeln!(out, "    dscp: {dscp}")?,
        IntIndicator::UdpPort(port) => writeln!(out, "    udp_port: {port}")?,
    }
    writeln!(out, "    domain: {}", int.domain)?;
    let asked = INT_INSTRUCTIONS
        .iter()
        .filter(|(_, bit)| int.instructions & bit != 0);
    let names: Vec<&str> = asked.map(|(name, _)| *name).collect();
    writeln!(out, "    instructions: [{}]", names.join(", "))?;
    writeln!(out, "    max_hops: {}", int.max_hops)?;
    if let Some(collector) = int.collector {
        writeln!(out, "    collector: '{collector}'")?;
    }
    if !int.watch.is_empty() {
        writeln!(out, "    watch:")?;
    }
    for watch in &int.watch {
        let mut fields = Vec::new();
        fields.extend(watch.src.map(|prefix| format!("src: '{prefix}'")));
        fields.extend(watch.dst.map(|prefix| format!("dst: '{prefix}'")));
        let protocol = watch
            .protocol
            .map(|protocol| if protocol == 6 { "tcp" } else { "udp" });
        fields.extend(protocol.map(|name| format!("protocol: {name}")));
        fields.extend(watch.src_port.map(|port| format!("src_port: {port}")));
        fields.extend(watch.dst_port.map(|port| format!("dst_port: {port}")));
        fields.extend(watch.dest_qp.map(|qp| format!("qp: {qp}")));
        fields.push(format!("one_in: {}", watch.one_in));
        writeln!(out, "      - {{{}}}", fields.join(", "))?;
    }
    let reports = int.reports;
    let queue = reports
        .queue
        .map(|depth| format!(", queue: {}", format_size(depth)));
    writeln!(
        out,
        "    reports: {{paths: {}, drops: {}, marks: {}, rate: {}{}}}",
        reports.paths,
        reports.drops,
        reports.marks,
        reports.rate,
        queue.unwrap_or_default()
    )
}

fn commonest(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(value, count)| (*count, *value))
        .map(|(value, _)| value)
}

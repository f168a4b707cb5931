//! What a topology amounts to: counts, tiers, LA domains, capacity.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::ids::{End, LinkId, SwitchId};
use crate::model::{Tier, Topology};
use crate::units::{format_delay, format_speed};

/// A topology in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The fabric's name.
    pub name: String,
    /// Number of buildings.
    pub buildings: usize,
    /// Number of pods.
    pub pods: usize,
    /// Number of segments.
    pub segments: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of GPUs.
    pub gpus: u64,
    /// Number of scale-up (NVLink) domains.
    pub scale_up_domains: usize,
    /// Number of NICs.
    pub nics: usize,
    /// NICs with two ports.
    pub dual_homed_nics: usize,
    /// Bits/s of all NICs together.
    pub nic_bps: u64,
    /// Number of switches.
    pub switches: usize,
    /// Tier by tier, those that have switches.
    pub tiers: Vec<TierSummary>,
    /// LA domains.
    pub la: LaSummary,
    /// Half of what the narrowest tier carries, bits/s: no cut into two halves can carry more, and
    /// a balanced Clos carries this much. 0 if some LA domains are joined by hosts only.
    pub bisection_bps: u64,
    /// Number of links.
    pub links: usize,
}

/// One tier of switches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TierSummary {
    /// Leaf, spine or core.
    pub tier: Tier,
    /// Number of switches.
    pub switches: usize,
    /// Most ports in use on one of them.
    pub ports: usize,
    /// Bits/s towards the hosts, of all together.
    pub down_bps: u64,
    /// Bits/s away from the hosts, of all together.
    pub up_bps: u64,
    /// Downlinks over uplinks in capacity, of all together; none without uplinks.
    pub oversubscription: Option<f64>,
    /// The same of the worst switch.
    pub worst_oversubscription: Option<f64>,
    /// The switch that this is, if the tier is uneven.
    pub worst: Option<String>,
    /// Links towards the hosts by speed.
    pub links_down: BTreeMap<String, usize>,
    /// Their one-way delays in ns: least and most.
    pub delay_ns: (u64, u64),
}

/// The LA domains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaSummary {
    /// How many.
    pub count: usize,
    /// How many of them are dual-ToR pairs.
    pub pairs: usize,
    /// NICs in the smallest.
    pub least_nics: usize,
    /// NICs in the largest.
    pub most_nics: usize,
}

impl Summary {
    /// Sums up a topology.
    #[must_use]
    pub fn of(topology: &Topology) -> Self {
        let tiers: Vec<TierSummary> = Tier::ALL
            .into_iter()
            .filter_map(|tier| tier_summary(topology, tier))
            .collect();
        let domains = topology
            .hosts()
            .iter()
            .map(|host| host.scale_up.index() + 1)
            .max();
        let sizes = || topology.las().iter().map(|la| la.nics.len());
        let nic_bps = topology
            .nic_ids()
            .map(|nic| topology.nic_speed_bps(nic))
            .sum();
        Self {
            name: topology.name().to_owned(),
            buildings: topology.buildings().len(),
            pods: topology.pods().len(),
            segments: topology.segments().len(),
            hosts: topology.hosts().len(),
            gpus: topology
                .hosts()
                .iter()
                .map(|host| u64::from(host.gpus))
                .sum(),
            scale_up_domains: domains.unwrap_or(0),
            nics: topology.nics().len(),
            dual_homed_nics: topology
                .nics()
                .iter()
                .filter(|nic| nic.ports().count() == 2)
                .count(),
            nic_bps,
            switches: topology.switches().len(),
            bisection_bps: bisection(topology, nic_bps, &tiers),
            tiers,
            la: LaSummary {
                count: topology.las().len(),
                pairs: topology
                    .las()
                    .iter()
                    .filter(|la| la.leaves.len() == 2)
                    .count(),
                least_nics: sizes().min().unwrap_or(0),
                most_nics: sizes().max().unwrap_or(0),
            },
            links: topology.links().len(),
        }
    }
}

fn bisection(topology: &Topology, nic_bps: u64, tiers: &[TierSummary]) -> u64 {
    let mut narrowest = nic_bps;
    for tier in tiers {
        let parts = match tier.tier {
            Tier::Leaf => topology.las().len(),
            Tier::Spine if tiers.len() > 2 => topology.pods().len(),
            _ => 1,
        };
        if parts > 1 {
            narrowest = narrowest.min(tier.up_bps);
        }
    }
    narrowest / 2
}

fn capacity(topology: &Topology, links: impl Iterator<Item = LinkId>) -> u64 {
    links.map(|link| topology[link].speed_bps).sum()
}

fn ratio(down: u64, up: u64) -> Option<f64> {
    // Three decimals, so that equal fabrics print equal numbers.
    (up > 0).then(|| (down as f64 / up as f64 * 1000.0).round() / 1000.0)
}

fn tier_summary(topology: &Topology, tier: Tier) -> Option<TierSummary> {
    let mut summary = TierSummary {
        tier,
        switches: 0,
        ports: 0,
        down_bps: 0,
        up_bps: 0,
        oversubscription: None,
        worst_oversubscription: None,
        worst: None,
        links_down: BTreeMap::new(),
        delay_ns: (u64::MAX, 0),
    };
    let mut speeds: BTreeMap<u64, usize> = BTreeMap::new();
    for id in topology.tier(tier) {
        let down = capacity(topology, topology.downlinks(id).map(|far| far.link));
        let up = capacity(topology, topology.uplinks(id).map(|far| far.link));
        summary.switches += 1;
        summary.ports = summary.ports.max(topology.neighbours(id).count());
        summary.down_bps += down;
        summary.up_bps += up;
        let own = ratio(down, up);
        if own.is_some_and(|own| {
            summary
                .worst_oversubscription
                .is_none_or(|worst| own > worst)
        }) {
            summary.worst_oversubscription = own;
            summary.worst = Some(topology[id].name.clone());
        }
        for far in topology.downlinks(id) {
            let link = &topology[far.link];
            *speeds.entry(link.speed_bps).or_default() += 1;
            let (least, most) = summary.delay_ns;
            summary.delay_ns = (least.min(link.delay_ns), most.max(link.delay_ns));
        }
    }
    summary.oversubscription = ratio(summary.down_bps, summary.up_bps);
    if summary.oversubscription == summary.worst_oversubscription {
        summary.worst = None;
    }
    summary.delay_ns.0 = summary.delay_ns.0.min(summary.delay_ns.1);
    summary.links_down = speeds
        .into_iter()
        .map(|(speed, count)| (format_speed(speed), count))
        .collect();
    (summary.switches > 0).then_some(summary)
}

fn many(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = [
            many(self.buildings, "building"),
            many(self.pods, "pod"),
            many(self.segments, "segment"),
        ];
        writeln!(f, "{}: {}", self.name, places.join(", "))?;
        writeln!(
            f,
            "  hosts     {} with {} GPUs in {}",
            self.hosts,
            self.gpus,
            many(self.scale_up_domains, "scale-up domain")
        )?;
        let dual = match self.dual_homed_nics {
            0 => String::new(),
            count => format!(", {count} of them dual-homed"),
        };
        writeln!(
            f,
            "  NICs      {}{dual}, {}",
            self.nics,
            short_speed(self.nic_bps)
        )?;
        for tier in &self.tiers {
            write!(f, "{tier}")?;
        }
        let LaSummary {
            count,
            pairs,
            least_nics,
            most_nics,
        } = self.la;
        let pairs = if pairs > 0 {
            format!(", {pairs} of them dual-ToR pairs")
        } else {
            String::new()
        };
        let sizes = if least_nics == most_nics {
            most_nics.to_string()
        } else {
            format!("{least_nics} to {most_nics}")
        };
        writeln!(
            f,
            "  LA        {}{pairs}, {sizes} NICs each",
            many(count, "domain")
        )?;
        writeln!(f, "  bisection {}", short_speed(self.bisection_bps))?;
        write!(f, "  links     {}", self.links)
    }
}

/// A sum of speeds, rounded for reading.
fn short_speed(bps: u64) -> String {
    match bps {
        0..1_000_000_000_000 => format!("{} Gb/s", bps as f64 / 1e9),
        _ => format!("{:.1} Tb/s", bps as f64 / 1e12),
    }
}

impl fmt::Display for TierSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links: Vec<String> = self
            .links_down
            .iter()
            .map(|(speed, count)| format!("{count} x {speed}"))
            .collect();
        let links = if links.is_empty() {
            "nothing".to_owned()
        } else {
            links.join(" + ")
        };
        let (least, most) = self.delay_ns;
        let delay = if least == most {
            format_delay(most)
        } else {
            format!("{} to {}", format_delay(least), format_delay(most))
        };
        let kind = format!(
            "{}{}",
            self.tier.name(),
            if self.tier == Tier::Leaf { "" } else { "s" }
        );
        let kind = if self.tier == Tier::Leaf {
            "leaves".to_owned()
        } else {
            kind
        };
        write!(
            f,
            "  {kind:<9} {} with up to {} ports; {links} down ({delay})",
            self.switches, self.ports
        )?;
        if let Some(ratio) = self.oversubscription {
            match ratio {
                ..=1.0 => write!(f, ", not oversubscribed")?,
                _ => write!(f, ", oversubscribed {ratio}:1")?,
            }
            if let (Some(worst), Some(name)) = (self.worst_oversubscription, &self.worst) {
                write!(f, " (worst {worst}:1, {name})")?;
            }
        }
        writeln!(f)
    }
}

/// One line per LA domain: name, leaves, prefix, gateway, hosts.
#[must_use]
pub fn la_table(topology: &Topology) -> String {
    let mut out = String::new();
    for la in topology.las() {
        let leaves: Vec<&str> = la
            .leaves
            .iter()
            .map(|leaf| topology[*leaf].name.as_str())
            .collect();
        let nics = la.nics.len();
        let first = la
            .nics
            .first()
            .map(|nic| topology.nic_name(*nic))
            .unwrap_or_default();
        let last = la
            .nics
            .last()
            .map(|nic| topology.nic_name(*nic))
            .unwrap_or_default();
        out += &format!(
            "{:>5}  {:<16} {:<24} {:<18} {:<26} {nics} NICs, {first} to {last}\n",
            la.number,
            la.name,
            leaves.join("+"),
            la.v4.to_string(),
            la.v6.to_string()
        );
    }
    out
}

/// One line per port of a switch: number, speed, and what it leads to.
#[must_use]
pub fn port_table(topology: &Topology, switch: SwitchId) -> String {
    let mut out = String::new();
    for (number, port) in (1..).zip(&topology[switch].ports) {
        let here = End::Switch(crate::PortRef {
            switch,
            port: number,
        });
        let far = port
            .link
            .map(|link| topology.end_name(topology.far_end(link, here)));
        let speed = if port.speed_bps == 0 {
            "-".to_owned()
        } else {
            format_speed(port.speed_bps)
        };
        out += &format!(
            "{number:>4}  {speed:<6} {}\n",
            far.as_deref().unwrap_or("-")
        );
    }
    out
}

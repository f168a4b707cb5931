//! The compact form: a folded Clos from a handful of numbers.
//!
//! Names and port numbers follow from position, so that a file can refer to generated parts:
//! leaves `leaf-s1r0` (segment 1, rail 0; `leaf-p2s1r0` with several pods; `-2` for the second
//! leaf of a rail, `a`/`b` for the two of a dual-ToR pair), spines `spine1` (`spine-p2-1`, plane
//! letter before the number), cores `core1`, hosts `h1`, `h2`, ... through the whole fabric. On a
//! leaf the hosts come first, then the uplinks by spine; on a spine the leaves, then the cores.

use crate::builder::{Builder, MAX_HOSTS, MAX_LINKS, MAX_NICS, MAX_SWITCHES};
use crate::clos_build;
use crate::fault::Fault;
use crate::model::{MAX_PORT, Topology};

/// What one leaf-access switch (or dual-ToR pair) serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeafPer {
    /// One rail of a segment: rail-optimised.
    #[default]
    Rail,
    /// All rails of its hosts.
    Segment,
}

/// Downlink capacity over uplink capacity, in thousandths: 1000 is non-blocking, 7000 is 7:1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(pub u32);

/// Hosts in each segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCounts {
    /// The same in all.
    Each(u32),
    /// Segment by segment, through all pods.
    List(Vec<u32>),
}

/// A value for the links below, within and above a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerTier<T> {
    /// Host to leaf.
    pub host: T,
    /// Leaf to spine.
    pub spine: T,
    /// Spine to core.
    pub core: T,
}

/// A folded Clos. `None` means: derive it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clos {
    /// The topology's name.
    pub name: String,
    /// Buildings; pods are dealt out to them evenly, in order.
    pub buildings: u32,
    /// Pods in all.
    pub pods: u32,
    /// Segments in each pod.
    pub segments: u32,
    /// Hosts in each segment.
    pub hosts: HostCounts,
    /// NICs of each host.
    pub rails: u32,
    /// GPUs of each host; as many as rails.
    pub gpus: Option<u32>,
    /// GPUs of a scale-up domain, a multiple of `gpus`; one host.
    pub scale_up: Option<u32>,
    /// What a leaf serves.
    pub leaf_per: LeafPer,
    /// Leaves (pairs, with `dual_tor`) per rail of a segment or per segment; the hosts of the
    /// segment are dealt out to them evenly, in order.
    pub leaves: u32,
    /// Whether every NIC has two ports, on the two leaves of a pair.
    pub dual_tor: bool,
    /// 2: the first leaves of all pairs and the second leaves have spines and cores apart.
    pub planes: u32,
    /// Spines per pod and plane; as many as the oversubscription asks for. 0: rail-only, no spines.
    pub spines: Option<u32>,
    /// Parallel links between each leaf and each spine above it.
    pub spine_links: Option<u32>,
    /// Cores per plane; none in a single pod, else as many as the oversubscription asks for.
    pub cores: Option<u32>,
    /// Parallel links between a spine and each core above it.
    pub core_links: Option<u32>,
    /// Oversubscription of leaves.
    pub leaf_ratio: Option<Ratio>,
    /// Oversubscription of spines.
    pub spine_ratio: Option<Ratio>,
    /// Link speeds in bits/s.
    pub speeds: PerTier<u64>,
    /// One-way link delays in ns.
    pub delays: PerTier<u64>,
    /// One-way delay in ns of links from a spine to a core in another building.
    pub building_delay_ns: u64,
}

impl Default for Clos {
    /// Two segments of 4 hosts with 4 rails, one leaf per rail, 4 spines, 400 Gb/s throughout.
    fn default() -> Self {
        let speed = 400_000_000_000;
        Self {
            name: "clos".to_owned(),
            buildings: 1,
            pods: 1,
            segments: 2,
            hosts: HostCounts::Each(4),
            rails: 4,
            gpus: None,
            scale_up: None,
            leaf_per: LeafPer::Rail,
            leaves: 1,
            dual_tor: false,
            planes: 1,
            spines: None,
            spine_links: None,
            cores: None,
            core_links: None,
            leaf_ratio: None,
            spine_ratio: None,
            speeds: PerTier {
                host: speed,
                spine: speed,
                core: speed,
            },
            delays: PerTier {
                host: 500,
                spine: 1_000,
                core: 2_000,
            },
            building_delay_ns: 10_000,
        }
    }
}

/// Why numbers make no fabric: the field to blame, what is wrong, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {message}; {help}")]
pub struct ClosError {
    /// The field's name in the file.
    pub field: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

pub(crate) fn error(
    field: &'static str,
    message: impl Into<String>,
    help: impl Into<String>,
) -> ClosError {
    ClosError {
        field,
        message: message.into(),
        help: help.into(),
    }
}

/// The numbers that follow from a [`Clos`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Leaves side by side per access group: 1, or 2 for dual-ToR.
    pub(crate) tors: u32,
    /// Access groups (leaf or pair) per segment.
    pub(crate) groups: u32,
    pub(crate) spines: u32,
    pub(crate) spine_links: u32,
    pub(crate) cores: u32,
    pub(crate) core_links: u32,
    /// Spines and cores are joined in this many disjoint groups per plane.
    pub(crate) core_groups: u32,
}

impl Clos {
    pub(crate) fn hosts_in(&self, segment: u32) -> u32 {
        match &self.hosts {
            HostCounts::Each(hosts) => *hosts,
            HostCounts::List(hosts) => hosts.get(segment as usize).copied().unwrap_or(0),
        }
    }

    pub(crate) fn total_segments(&self) -> u64 {
        u64::from(self.pods) * u64::from(self.segments)
    }

    fn total_hosts(&self) -> u64 {
        match &self.hosts {
            HostCounts::Each(hosts) => self.total_segments() * u64::from(*hosts),
            HostCounts::List(hosts) => hosts.iter().map(|hosts| u64::from(*hosts)).sum(),
        }
    }

    fn most_hosts(&self) -> u64 {
        match &self.hosts {
            HostCounts::Each(hosts) => u64::from(*hosts),
            HostCounts::List(hosts) => hosts.iter().copied().max().unwrap_or(0).into(),
        }
    }

    pub(crate) fn gpus_per_host(&self) -> u32 {
        self.gpus.unwrap_or(self.rails)
    }

    /// Host ports of the fullest leaf.
    fn leaf_down(&self) -> u64 {
        let hosts = self.most_hosts().div_ceil(u64::from(self.leaves.max(1)));
        match self.leaf_per {
            LeafPer::Rail => hosts,
            LeafPer::Segment => hosts * u64::from(self.rails),
        }
    }

    /// Checks the numbers and derives those that are missing.
    pub(crate) fn plan(&self) -> Result<Plan, Vec<ClosError>> {
        let mut errors = self.check_counts();
        self.check_layout(&mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let (spines, spine_links) = match self.derive_spines() {
            Ok(derived) => derived,
            Err(error) => return Err(vec![error]),
        };
        let (cores, core_links) = match self.derive_cores(spines, spine_links) {
            Ok(derived) => derived,
            Err(error) => return Err(vec![error]),
        };
        let per_rail = if self.leaf_per == LeafPer::Rail {
            self.rails
        } else {
            1
        };
        let plan = Plan {
            tors: if self.dual_tor { 2 } else { 1 },
            groups: self.leaves * per_rail,
            spines,
            spine_links,
            cores,
            core_links,
            core_groups: gcd(spines, cores),
        };
        self.check_size(&plan, &mut errors);
        if errors.is_empty() {
            Ok(plan)
        } else {
            Err(errors)
        }
    }

    fn check_counts(&self) -> Vec<ClosError> {
        let limits = [
            ("buildings", self.buildings, 1_000),
            ("pods", self.pods, 10_000),
            ("segments", self.segments, 100_000),
            ("rails", self.rails, 64),
            ("leaves", self.leaves, 1_000),
        ];
        let mut errors: Vec<ClosError> = limits
            .into_iter()
            .filter(|(_, value, limit)| !(1..=*limit).contains(value))
            .map(|(field, value, limit)| {
                error(
                    field,
                    format!("{value} is out of range"),
                    format!("give a number from 1 to {limit}"),
                )
            })
            .collect();
        let optional = [
            ("gpus", self.gpus, 1, 1_024),
            ("scale_up", self.scale_up, 1, 100_000),
            ("spines", self.spines, 0, 10_000),
            ("spine_links", self.spine_links, 1, u32::from(MAX_PORT)),
            ("cores", self.cores, 0, 50_000),
            ("core_links", self.core_links, 1, u32::from(MAX_PORT)),
        ];
        for (field, value, least, most) in optional {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                let help = format!("give a number from {least} to {most}");
                errors.push(error(field, format!("{value} is out of range"), help));
            }
        }
        for (field, ratio) in [
            ("oversubscription.leaf", self.leaf_ratio),
            ("oversubscription.spine", self.spine_ratio),
        ] {
            if ratio.is_some_and(|ratio| !(10..=1_000_000).contains(&ratio.0)) {
                errors.push(error(
                    field,
                    "the ratio is out of range",
                    "give a ratio from 0.01 to 1000, like 1 or 7:1",
                ));
            }
        }
        errors
    }

    fn check_layout(&self, errors: &mut Vec<ClosError>) {
        let segments = self.total_segments();
        if let HostCounts::List(list) = &self.hosts
            && list.len() as u64 != segments
        {
            let help = "give one number for each segment of each pod, or one for all".to_owned();
            errors.push(error(
                "hosts",
                format!("{} numbers for {segments} segments", list.len()),
                help,
            ));
        }
        let least = match &self.hosts {
            HostCounts::Each(hosts) => *hosts,
            HostCounts::List(hosts) => hosts.iter().copied().min().unwrap_or(0),
        };
        if least == 0 || self.most_hosts() > MAX_HOSTS as u64 {
            let help = format!("give a number from 1 to {MAX_HOSTS}");
            errors.push(error("hosts", "the number of hosts is out of range", help));
        } else if least < self.leaves {
            let help = "use fewer leaves or more hosts, so that every leaf has a host".to_owned();
            errors.push(error(
                "leaves",
                format!("{} leaves for {least} hosts", self.leaves),
                help,
            ));
        }
        let hosts = self.total_hosts();
        if hosts > MAX_HOSTS as u64 {
            let help = format!("a topology has at most {MAX_HOSTS} hosts");
            errors.push(error("hosts", format!("{hosts} hosts in all"), help));
        } else if hosts * u64::from(self.rails) > MAX_NICS as u64 {
            let help = format!("a topology has at most {MAX_NICS} NICs");
            errors.push(error(
                "rails",
                format!("{} NICs in all", hosts * u64::from(self.rails)),
                help,
            ));
        }
        if self.buildings > self.pods {
            let help = "use at most one building per pod".to_owned();
            errors.push(error(
                "buildings",
                format!("{} buildings for {} pods", self.buildings, self.pods),
                help,
            ));
        }
        match self.planes {
            1 => {}
            2 if self.dual_tor => {}
            2 => errors.push(error(
                "planes",
                "two planes need NICs with two ports",
                "set `dual_tor: true`, or `planes: 1`",
            )),
            _ => errors.push(error(
                "planes",
                "a fabric has one plane or two",
                "set `planes: 1` or `planes: 2`",
            )),
        }
        if let Some(scale_up) = self.scale_up {
            let gpus = self.gpus_per_host();
            if gpus == 0 || scale_up % gpus != 0 {
                let help = format!("give a multiple of the {gpus} GPUs of a host");
                errors.push(error(
                    "scale_up",
                    format!("{scale_up} GPUs are no whole number of hosts"),
                    help,
                ));
            }
        }
    }

    fn derive_spines(&self) -> Result<(u32, u32), ClosError> {
        let down = u128::from(self.leaf_down()) * u128::from(self.speeds.host);
        let up = |links: u64| u128::from(links) * u128::from(self.speeds.spine);
        let ratio = self.leaf_ratio;
        match (self.spines, self.spine_links) {
            (Some(0), _) if self.pods > 1 || self.cores.is_some_and(|cores| cores > 0) => {
                Err(error(
                    "spines",
                    "pods are joined through spines",
                    "give `spines: 1` or more, or one pod without cores",
                ))
            }
            (Some(0), _)
                if self.leaf_per == LeafPer::Segment
                    && self.total_segments() * u64::from(self.leaves) > 1 =>
            {
                Err(error(
                    "spines",
                    "nothing joins the leaves",
                    "give `spines: 1` or more",
                ))
            }
            (Some(0), _) if self.total_segments() > 1 || self.leaves > 1 => Err(error(
                "spines",
                "nothing joins the leaves of a rail",
                "give `spines: 1` or more, or one segment with one leaf per rail",
            )),
            (Some(0), _) => Ok((0, 1)),
            (Some(spines), Some(links)) => {
                let actual = actual_ratio(down, up(u64::from(spines) * u64::from(links)));
                agree(
                    "oversubscription.leaf",
                    ratio,
                    actual,
                    "spines` or `spine_links",
                )?;
                Ok((spines, links))
            }
            (Some(spines), None) => {
                let links = match ratio {
                    Some(ratio) => needed(down, ratio, up(u64::from(spines))),
                    None => 1,
                };
                let actual = actual_ratio(down, up(u64::from(spines) * links));
                agree("oversubscription.leaf", ratio, actual, "spines")?;
                Ok((spines, bounded("spine_links", links)?))
            }
            (None, links) => {
                let links = links.unwrap_or(1);
                let spines = needed(down, ratio.unwrap_or(Ratio(1000)), up(u64::from(links)));
                Ok((bounded("spines", spines)?, links))
            }
        }
    }

    fn derive_cores(&self, spines: u32, spine_links: u32) -> Result<(u32, u32), ClosError> {
        if self.pods == 1 && self.cores.is_none() {
            return Ok((0, 1));
        }
        if self.cores == Some(0) {
            return match self.pods {
                1 => Ok((0, 1)),
                _ => Err(error(
                    "cores",
                    "pods are joined through cores",
                    "give `cores: 1` or more, or leave it out",
                )),
            };
        }
        let leaves = u64::from(self.segments) * u64::from(self.leaves) * self.leaves_per_group();
        let down = u128::from(leaves) * u128::from(spine_links) * u128::from(self.speeds.spine);
        let up = |links: u64| u128::from(links) * u128::from(self.speeds.core);
        let ratio = self.spine_ratio;
        if let Some(cores) = self.cores {
            let above = u64::from(cores / gcd(spines, cores).max(1));
            let links = match (self.core_links, ratio) {
                (Some(links), _) => u64::from(links),
                (None, Some(ratio)) => needed(down, ratio, up(above)),
                (None, None) => 1,
            };
            agree(
                "oversubscription.spine",
                ratio,
                actual_ratio(down, up(above * links)),
                "cores` or `core_links",
            )?;
            return Ok((cores, bounded("core_links", links)?));
        }
        let links = self.core_links.unwrap_or(1);
        let above = needed(down, ratio.unwrap_or(Ratio(1000)), up(u64::from(links)));
        Ok((bounded("cores", above * u64::from(spines))?, links))
    }

    /// Leaves below one spine, per segment and `leaves`.
    fn leaves_per_group(&self) -> u64 {
        let rails = if self.leaf_per == LeafPer::Rail {
            u64::from(self.rails)
        } else {
            1
        };
        rails
            * if self.dual_tor && self.planes == 1 {
                2
            } else {
                1
            }
    }

    fn check_size(&self, plan: &Plan, errors: &mut Vec<ClosError>) {
        let nics = self.total_hosts() * u64::from(self.rails);
        let leaves = self.total_segments() * u64::from(plan.groups) * u64::from(plan.tors);
        let spines = u64::from(self.pods) * u64::from(self.planes) * u64::from(plan.spines);
        let cores = u64::from(self.planes) * u64::from(plan.cores);
        let uplinks = leaves * u64::from(plan.spines) * u64::from(plan.spine_links);
        let above = u64::from(plan.cores / plan.core_groups.max(1)) * u64::from(plan.core_links);
        let links = nics * u64::from(plan.tors) + uplinks + spines * above;
        let totals = [
            ("leaves", "switches", leaves + spines + cores, MAX_SWITCHES),
            ("spines", "links", links, MAX_LINKS),
        ];
        for (field, what, total, limit) in totals {
            if total > limit as u64 {
                let help = format!("a topology has at most {limit} {what}");
                errors.push(error(field, format!("{total} {what} in all"), help));
            }
        }
        let leaves_below =
            u64::from(self.segments) * u64::from(self.leaves) * self.leaves_per_group();
        let spines_below = u64::from(self.pods) * u64::from(plan.spines / plan.core_groups.max(1));
        let ports = [
            (
                "leaves",
                "leaf",
                self.leaf_down() + u64::from(plan.spines) * u64::from(plan.spine_links),
                "more `leaves`, or fewer or faster uplinks",
            ),
            (
                "segments",
                "spine",
                leaves_below * u64::from(plan.spine_links) + above,
                "fewer `segments` per pod, or more `pods`",
            ),
            (
                "pods",
                "core",
                spines_below * u64::from(plan.core_links),
                "more `cores`, or fewer or larger pods",
            ),
        ];
        for (field, tier, ports, help) in ports {
            if ports > u64::from(MAX_PORT) {
                let message =
                    format!("a {tier} would need {ports} ports; switches have {MAX_PORT}");
                errors.push(error(field, message, format!("use {help}")));
            }
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How many units of `unit` bits/s up make `down` bits/s no more than oversubscribed by `ratio`.
fn needed(down: u128, ratio: Ratio, unit: u128) -> u64 {
    let links = (down * 1000).div_ceil((unit * u128::from(ratio.0)).max(1));
    u64::try_from(links).unwrap_or(u64::MAX).max(1)
}

fn actual_ratio(down: u128, up: u128) -> u128 {
    down * 1000 / up.max(1)
}

fn agree(
    field: &'static str,
    wanted: Option<Ratio>,
    actual: u128,
    by: &str,
) -> Result<(), ClosError> {
    match wanted {
        Some(Ratio(wanted)) if actual > u128::from(wanted) => Err(error(
            field,
            format!("the links give {}.{:03}:1", actual / 1000, actual % 1000),
            format!("change the ratio, or leave out `{by}` to have it derived"),
        )),
        _ => Ok(()),
    }
}

fn bounded(field: &'static str, value: u64) -> Result<u32, ClosError> {
    u32::try_from(value)
        .ok()
        .filter(|value| *value <= 100_000)
        .ok_or_else(|| {
            error(
                field,
                format!("{value} would be needed"),
                "use faster links or a higher oversubscription",
            )
        })
}

/// Why a generated topology can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// The numbers don't fit together.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Numbers(Vec<ClosError>),
    /// The numbers do, the result doesn't.
    #[error("{}", .0.iter().map(|fault| format!("{fault}; {}", fault.help())).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
}

/// Builds the fabric that the numbers describe.
///
/// # Errors
/// Numbers out of range or that don't fit together; each names its field.
pub fn generate(clos: &Clos) -> Result<Topology, GenerateError> {
    let plan = clos.plan().map_err(GenerateError::Numbers)?;
    let fault = |fault| GenerateError::Faults(vec![fault]);
    let mut builder = Builder::new(clos.name.as_str()).map_err(fault)?;
    clos_build::build(clos, &plan, &mut builder).map_err(fault)?;
    builder.finish().map_err(GenerateError::Faults)
}

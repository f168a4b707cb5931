//! Fabrics as they grow in machine rooms: leaves with different numbers of hosts, hosts with
//! different numbers of NICs, some leaves in dual-ToR pairs, some cables missing.

use crate::builder::{Builder, MAX_HOSTS, MAX_LINKS, MAX_NICS, MAX_SWITCHES};
use crate::clos::{ClosError, GenerateError, PerTier, error};
use crate::draw::{Draw, Random};
use crate::irregular_build::{self, Cables};
use crate::model::{MAX_PORT, Topology};

/// A share in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share(pub u32);

impl Share {
    pub(crate) const WHOLE: u32 = 1_000_000;

    /// That share of `count`, to the nearest.
    pub(crate) fn of(self, count: usize) -> usize {
        let whole = u128::from(Self::WHOLE);
        ((count as u128 * u128::from(self.0) + whole / 2) / whole) as usize
    }
}

/// An irregular fabric by distributions. All is drawn from `seed`; each field has a stream of
/// random numbers of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Irregular {
    /// The topology's name.
    pub name: String,
    /// What everything is drawn from.
    pub seed: u64,
    /// Pods; the leaves are dealt out to them evenly, in order.
    pub pods: u32,
    /// Leaves, or dual-ToR pairs, in all.
    pub leaves: u32,
    /// Leaves (pairs) of each segment; a segment ends with its pod.
    pub segment_leaves: Draw,
    /// Hosts of each leaf (pair).
    pub leaf_hosts: Draw,
    /// NICs of each host, all on its leaf (pair).
    pub nics: Draw,
    /// GPUs of each host; as many as its NICs.
    pub gpus: Option<u32>,
    /// Share of the leaves that are dual-ToR pairs.
    pub dual_tor: Share,
    /// Spines of each pod.
    pub spines: u32,
    /// Cores above all spines; none in a single pod.
    pub cores: u32,
    /// Share of the cables between leaves, spines and cores that is missing. Every leaf keeps
    /// more than half of its spines and every spine more than half of the cores, so that any two
    /// can still meet.
    pub missing: Share,
    /// Link speeds in bits/s.
    pub speeds: PerTier<u64>,
    /// One-way link delays in ns.
    pub delays: PerTier<u64>,
}

impl Default for Irregular {
    /// 120 leaves with 2 to 8 hosts of 8 NICs, 32 spines, hosts at 400 Gb/s, 800 Gb/s above.
    fn default() -> Self {
        Self {
            name: "irregular".to_owned(),
            seed: 1,
            pods: 1,
            leaves: 120,
            segment_leaves: Draw::fixed(1),
            leaf_hosts: Draw::range(2, 8),
            nics: Draw::fixed(8),
            gpus: None,
            dual_tor: Share(0),
            spines: 32,
            cores: 0,
            missing: Share(0),
            speeds: PerTier {
                host: 400_000_000_000,
                spine: 800_000_000_000,
                core: 800_000_000_000,
            },
            delays: PerTier {
                host: 500,
                spine: 1_000,
                core: 2_000,
            },
        }
    }
}

/// A leaf or dual-ToR pair as drawn.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) pod: u32,
    /// Position of its segment among all.
    pub(crate) segment: u32,
    pub(crate) tors: u32,
    /// NICs of each of its hosts.
    pub(crate) hosts: Vec<u32>,
}

impl Irregular {
    fn check(&self) -> Vec<ClosError> {
        let port = u32::from(MAX_PORT);
        let ranges = [
            ("pods", self.pods, self.pods, 1, self.leaves.max(1)),
            ("leaves", self.leaves, self.leaves, 1, MAX_SWITCHES as u32),
            (
                "segment_leaves",
                self.segment_leaves.least(),
                self.segment_leaves.most(),
                1,
                1_000,
            ),
            (
                "leaf_hosts",
                self.leaf_hosts.least(),
                self.leaf_hosts.most(),
                1,
                port,
            ),
            ("nics", self.nics.least(), self.nics.most(), 1, 64),
            ("spines", self.spines, self.spines, 1, port),
            ("cores", self.cores, self.cores, 0, port),
            (
                "gpus",
                self.gpus.unwrap_or(1),
                self.gpus.unwrap_or(1),
                1,
                1_024,
            ),
            (
                "dual_tor",
                self.dual_tor.0,
                self.dual_tor.0,
                0,
                Share::WHOLE,
            ),
        ];
        let mut errors: Vec<ClosError> = ranges
            .into_iter()
            .filter_map(|(field, least, most, from, to)| {
                let bad = [least, most]
                    .into_iter()
                    .find(|value| !(from..=to).contains(value))?;
                let help = format!("give numbers from {from} to {to}");
                Some(error(field, format!("{bad} is out of range"), help))
            })
            .collect();
        if self.pods > 1 && self.cores == 0 {
            errors.push(error(
                "cores",
                "pods are joined through cores",
                "give 1 or more cores, or one pod",
            ));
        }
        errors
    }

    /// Which ports and totals the drawn fabric needs, before anything is built.
    fn check_drawn(&self, drawn: &[Access]) -> Vec<ClosError> {
        let mut errors = Vec::new();
        let limit = usize::from(MAX_PORT);
        let down = drawn.iter().map(|access| sum(&access.hosts)).max();
        let per_pod = |pod| -> usize {
            let mine = drawn.iter().filter(|access| access.pod == pod);
            mine.map(|access| access.tors as usize).sum()
        };
        let below = (0..self.pods).map(per_pod).max().unwrap_or(0);
        let (spines, cores) = (self.spines as usize, self.cores as usize);
        for (field, tier, ports, help) in [
            (
                "leaf_hosts",
                "leaf",
                down.unwrap_or(0) + spines,
                "use fewer hosts per leaf, `nics` or `spines`",
            ),
            (
                "leaves",
                "spine",
                below + cores,
                "use more `pods`, or fewer leaves or `cores`",
            ),
            (
                "spines",
                "core",
                self.pods as usize * spines,
                "use fewer `pods` or spines",
            ),
        ] {
            if ports > limit {
                let message = format!("a {tier} would need {ports} ports; switches have {limit}");
                errors.push(error(field, message, help));
            }
        }
        let hosts: usize = drawn.iter().map(|access| access.hosts.len()).sum();
        let nics: usize = drawn.iter().map(|access| sum(&access.hosts)).sum();
        let tors: usize = drawn.iter().map(|access| access.tors as usize).sum();
        let above = self.pods as usize * spines;
        for (field, what, total, limit) in [
            ("leaf_hosts", "hosts", hosts, MAX_HOSTS),
            ("nics", "NICs", nics, MAX_NICS),
            ("leaves", "switches", tors + above + cores, MAX_SWITCHES),
            (
                "spines",
                "links",
                2 * nics + tors * spines + above * cores,
                MAX_LINKS,
            ),
        ] {
            if total > limit {
                let help = format!("a topology has at most {limit} {what}");
                errors.push(error(field, format!("{total} {what} in all"), help));
            }
        }
        errors
    }

    fn draw(&self) -> Vec<Access> {
        let leaves = self.leaves as usize;
        let mut pairs: Vec<usize> = (0..leaves).collect();
        Random::new(self.seed, 1).shuffle(&mut pairs);
        let mut tors = vec![1; leaves];
        for pair in pairs.into_iter().take(self.dual_tor.of(leaves)) {
            tors[pair] = 2;
        }
        let mut sizes = Random::new(self.seed, 2);
        let mut nics = Random::new(self.seed, 3);
        let mut blocks = Random::new(self.seed, 4);
        let (mut pod, mut segment, mut left) = (0, 0, self.segment_leaves.draw(&mut blocks));
        let mut drawn = Vec::with_capacity(leaves);
        for (leaf, tors) in (0..self.leaves).zip(tors) {
            let here =
                (u64::from(leaf) * u64::from(self.pods) / u64::from(self.leaves.max(1))) as u32;
            if left == 0 || here != pod {
                (pod, segment) = (here, segment + 1);
                left = self.segment_leaves.draw(&mut blocks);
            }
            left -= 1;
            let hosts = self.leaf_hosts.draw(&mut sizes);
            drawn.push(Access {
                pod,
                segment,
                tors,
                hosts: (0..hosts).map(|_| self.nics.draw(&mut nics)).collect(),
            });
        }
        drawn
    }

    /// The cables between switches, less those that are missing.
    fn cables(&self, drawn: &[Access]) -> Result<Cables, ClosError> {
        let tors = drawn.iter().map(|access| access.tors as usize).sum();
        let spines = self.pods as usize * self.spines as usize;
        let mut cables = Cables::full(tors, self.spines as usize, spines, self.cores as usize);
        let wanted = self.missing.of(cables.count());
        let taken = cables.lose(wanted, &mut Random::new(self.seed, 5));
        if taken < wanted {
            let message = format!(
                "{wanted} of {} cables, of which {taken} can be missing without cutting switches apart",
                cables.count() + taken
            );
            let help = "give a smaller share, or more spines and cores".to_owned();
            return Err(error("missing", message, help));
        }
        Ok(cables)
    }
}

fn sum(nics: &[u32]) -> usize {
    nics.iter().map(|nics| *nics as usize).sum()
}

/// Draws and builds an irregular fabric: the same numbers and seed give the same fabric.
///
/// # Errors
/// Numbers out of range or that don't fit together; each names its field.
pub fn generate_irregular(irregular: &Irregular) -> Result<Topology, GenerateError> {
    let refuse = |errors: Vec<ClosError>| match errors.is_empty() {
        true => Ok(()),
        false => Err(GenerateError::Numbers(errors)),
    };
    refuse(irregular.check())?;
    let drawn = irregular.draw();
    refuse(irregular.check_drawn(&drawn))?;
    let cables = irregular
        .cables(&drawn)
        .map_err(|error| GenerateError::Numbers(vec![error]))?;
    let fault = |fault| GenerateError::Faults(vec![fault]);
    let mut builder = Builder::new(irregular.name.as_str()).map_err(fault)?;
    irregular_build::build(irregular, &drawn, &cables, &mut builder).map_err(fault)?;
    builder.finish().map_err(GenerateError::Faults)
}

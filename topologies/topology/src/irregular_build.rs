//! Turns a drawn irregular fabric into switches, hosts and links.

use crate::builder::Builder;
use crate::draw::Random;
use crate::fault::Fault;
use crate::free::Free;
use crate::ids::{End, NicPortRef, PodId, SegmentId};
use crate::irregular::{Access, Irregular};
use crate::model::Tier;
use crate::parts::{NewHost, NewLa, NewNic, NewSwitch};

/// Which switches are joined to which above them.
pub(crate) struct Cables {
    /// By leaf, through all pods: which of its pod's spines.
    leaf: Vec<Vec<bool>>,
    /// By spine, through all pods: which cores.
    spine: Vec<Vec<bool>>,
}

impl Cables {
    pub(crate) fn full(leaves: usize, spines_above: usize, spines: usize, cores: usize) -> Self {
        Self {
            leaf: vec![vec![true; spines_above]; leaves],
            spine: vec![vec![true; cores]; spines],
        }
    }

    pub(crate) fn count(&self) -> usize {
        let rows = self.leaf.iter().chain(&self.spine);
        rows.flatten().filter(|joined| **joined).count()
    }

    /// Takes `wanted` cables away, or as many as leave every switch with more than half of those
    /// above it: then any two of a row share one. Returns how many.
    pub(crate) fn lose(&mut self, wanted: usize, random: &mut Random) -> usize {
        let mut rows: Vec<&mut Vec<bool>> = self.leaf.iter_mut().chain(&mut self.spine).collect();
        let mut left: Vec<usize> = rows.iter().map(|row| row.len()).collect();
        let mut all: Vec<(usize, usize)> = rows
            .iter()
            .enumerate()
            .flat_map(|(row, above)| (0..above.len()).map(move |column| (row, column)))
            .collect();
        random.shuffle(&mut all);
        let mut taken = 0;
        for (row, column) in all {
            if taken == wanted {
                break;
            }
            if left[row] > rows[row].len() / 2 + 1 {
                rows[row][column] = false;
                left[row] -= 1;
                taken += 1;
            }
        }
        taken
    }
}

struct Work<'a> {
    irregular: &'a Irregular,
    builder: &'a mut Builder,
    pods: Vec<PodId>,
    segments: Vec<SegmentId>,
}

/// Adds the fabric to a builder that has none of it yet.
pub(crate) fn build(
    irregular: &Irregular,
    drawn: &[Access],
    cables: &Cables,
    builder: &mut Builder,
) -> Result<(), Fault> {
    let mut work = Work {
        irregular,
        builder,
        pods: Vec::new(),
        segments: Vec::new(),
    };
    work.places(drawn)?;
    let mut leaves = work.leaves(drawn)?;
    let mut spines = work.spines()?;
    let mut cores = Vec::new();
    for core in 1..=irregular.cores {
        let new = NewSwitch::new(format!("core{core}"), Tier::Core);
        cores.push(Free::new(work.builder.add_switch(new)?));
    }
    work.hosts(drawn, &mut leaves)?;
    work.uplinks(drawn, cables, &mut leaves, &mut spines)?;
    for (spine, above) in spines.iter_mut().flatten().zip(&cables.spine) {
        let delay = irregular.delays.core;
        join(
            work.builder,
            spine,
            &mut cores,
            above,
            irregular.speeds.core,
            delay,
        )?;
    }
    Ok(())
}

/// Joins `lower` to those of `uppers` that `joined` says.
fn join(
    builder: &mut Builder,
    lower: &mut Free,
    uppers: &mut [Free],
    joined: &[bool],
    speed_bps: u64,
    delay_ns: u64,
) -> Result<(), Fault> {
    for (upper, _) in uppers.iter_mut().zip(joined).filter(|(_, joined)| **joined) {
        let (below, above) = (End::Switch(lower.take()), End::Switch(upper.take()));
        builder.add_link(below, above, Some(speed_bps), delay_ns)?;
    }
    Ok(())
}

impl Work<'_> {
    fn places(&mut self, drawn: &[Access]) -> Result<(), Fault> {
        let building = self.builder.add_building("building1")?;
        for pod in 1..=self.irregular.pods {
            self.pods
                .push(self.builder.add_pod(format!("pod{pod}"), building)?);
        }
        for access in drawn {
            let number = access.segment as usize;
            if number == self.segments.len() {
                let pod = self.pods[access.pod as usize];
                let name = format!("s{}", number + 1);
                self.segments.push(self.builder.add_segment(name, pod)?);
            }
        }
        Ok(())
    }

    /// By access group: its leaf, or the two of a pair.
    fn leaves(&mut self, drawn: &[Access]) -> Result<Vec<Vec<Free>>, Fault> {
        let mut leaves = Vec::new();
        for (number, access) in drawn.iter().enumerate() {
            let name = format!("l{}", number + 1);
            let letters = if access.tors > 1 {
                &["a", "b"][..]
            } else {
                &[""]
            };
            let mut group = Vec::new();
            for letter in letters {
                let switch = self.builder.add_switch(NewSwitch {
                    segment: Some(self.segments[access.segment as usize]),
                    pod: Some(self.pods[access.pod as usize]),
                    ..NewSwitch::new(format!("leaf-{name}{letter}"), Tier::Leaf)
                })?;
                group.push(Free::new(switch));
            }
            self.builder.add_la(NewLa {
                name: format!("la-{name}"),
                leaves: group.iter().map(|leaf| leaf.switch).collect(),
                v4: None,
                v6: None,
            })?;
            leaves.push(group);
        }
        Ok(leaves)
    }

    /// By pod.
    fn spines(&mut self) -> Result<Vec<Vec<Free>>, Fault> {
        let mut all = Vec::new();
        for (number, pod) in (1..).zip(self.pods.clone()) {
            let prefix = match self.irregular.pods {
                1 => String::new(),
                _ => format!("-p{number}-"),
            };
            let mut row = Vec::new();
            for spine in 1..=self.irregular.spines {
                let switch = self.builder.add_switch(NewSwitch {
                    pod: Some(pod),
                    ..NewSwitch::new(format!("spine{prefix}{spine}"), Tier::Spine)
                })?;
                row.push(Free::new(switch));
            }
            all.push(row);
        }
        Ok(all)
    }

    fn hosts(&mut self, drawn: &[Access], leaves: &mut [Vec<Free>]) -> Result<(), Fault> {
        let mut number = 0_u32;
        for (access, group) in drawn.iter().zip(leaves) {
            for nics in &access.hosts {
                number += 1;
                let host = self.builder.add_host(NewHost {
                    name: format!("h{number}"),
                    segment: self.segments[access.segment as usize],
                    gpus: self.irregular.gpus,
                    scale_up: None,
                    nics: (0..*nics)
                        .map(|rail| NewNic::new(rail as u16, access.tors as u8))
                        .collect(),
                })?;
                let nics: Vec<_> = self.builder.so_far()[host].nics().collect();
                for nic in nics {
                    for (port, leaf) in (0..).zip(group.iter_mut()) {
                        let end = End::Nic(NicPortRef { nic, port });
                        let speed = Some(self.irregular.speeds.host);
                        let delay = self.irregular.delays.host;
                        self.builder
                            .add_link(end, End::Switch(leaf.take()), speed, delay)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn uplinks(
        &mut self,
        drawn: &[Access],
        cables: &Cables,
        leaves: &mut [Vec<Free>],
        spines: &mut [Vec<Free>],
    ) -> Result<(), Fault> {
        let mut rows = cables.leaf.iter();
        for (access, group) in drawn.iter().zip(leaves) {
            for (leaf, above) in group.iter_mut().zip(&mut rows) {
                let (speed, delay) = (self.irregular.speeds.spine, self.irregular.delays.spine);
                let uppers = &mut spines[access.pod as usize];
                join(self.builder, leaf, uppers, above, speed, delay)?;
            }
        }
        Ok(())
    }
}

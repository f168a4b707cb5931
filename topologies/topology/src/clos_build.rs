//! Turns the numbers of a planned Clos into switches, hosts and links.

use crate::builder::Builder;
use crate::clos::{Clos, LeafPer, Plan};
use crate::fault::Fault;
use crate::free::Free;
use crate::ids::{BuildingId, End, HostId, NicPortRef, PodId, SegmentId};
use crate::model::Tier;
use crate::parts::{NewHost, NewLa, NewNic, NewSwitch};

/// A segment and the leaves of its access groups, each of one leaf or two.
struct Block {
    id: SegmentId,
    pod: u32,
    /// Position among all segments.
    index: u32,
    groups: Vec<Vec<Free>>,
}

struct Work<'a> {
    clos: &'a Clos,
    plan: &'a Plan,
    builder: &'a mut Builder,
    buildings: Vec<BuildingId>,
    pods: Vec<PodId>,
}

/// Adds the fabric to a builder that has none of it yet.
pub(crate) fn build(clos: &Clos, plan: &Plan, builder: &mut Builder) -> Result<(), Fault> {
    let mut work = Work {
        clos,
        plan,
        builder,
        buildings: Vec::new(),
        pods: Vec::new(),
    };
    work.places()?;
    let mut blocks = work.leaves()?;
    let mut spines = work.spines()?;
    let mut cores = work.cores()?;
    work.hosts(&mut blocks)?;
    work.leaf_links(&mut blocks, &mut spines)?;
    work.core_links(&mut spines, &mut cores)
}

impl Work<'_> {
    fn places(&mut self) -> Result<(), Fault> {
        for building in 1..=self.clos.buildings {
            self.buildings
                .push(self.builder.add_building(format!("building{building}"))?);
        }
        for pod in 0..self.clos.pods {
            let building = self.buildings[self.building_of_pod(pod) as usize];
            self.pods
                .push(self.builder.add_pod(format!("pod{}", pod + 1), building)?);
        }
        Ok(())
    }

    fn building_of_pod(&self, pod: u32) -> u32 {
        share(pod, self.clos.pods, self.clos.buildings)
    }

    fn leaves(&mut self) -> Result<Vec<Block>, Fault> {
        let mut blocks = Vec::new();
        for pod in 0..self.clos.pods {
            for segment in 0..self.clos.segments {
                let name = match self.clos.pods {
                    1 => format!("s{}", segment + 1),
                    _ => format!("p{}s{}", pod + 1, segment + 1),
                };
                let id = self
                    .builder
                    .add_segment(name.as_str(), self.pods[pod as usize])?;
                let mut groups = Vec::new();
                for group in 0..self.plan.groups {
                    groups.push(self.access_group(id, pod, &name, group)?);
                }
                blocks.push(Block {
                    id,
                    pod,
                    index: pod * self.clos.segments + segment,
                    groups,
                });
            }
        }
        Ok(blocks)
    }

    /// One leaf, or a dual-ToR pair, and its LA domain.
    fn access_group(
        &mut self,
        segment: SegmentId,
        pod: u32,
        segment_name: &str,
        group: u32,
    ) -> Result<Vec<Free>, Fault> {
        let (rail, which) = match self.clos.leaf_per {
            LeafPer::Rail => (Some(group / self.clos.leaves), group % self.clos.leaves),
            LeafPer::Segment => (None, group),
        };
        let mut name = segment_name.to_owned();
        if let Some(rail) = rail {
            name += &format!("r{rail}");
        }
        if self.clos.leaves > 1 {
            name += &format!("-{}", which + 1);
        }
        let mut leaves = Vec::new();
        for tor in 0..self.plan.tors {
            let letter = if self.plan.tors > 1 {
                ["a", "b"][tor as usize]
            } else {
                ""
            };
            let switch = self.builder.add_switch(NewSwitch {
                segment: Some(segment),
                pod: Some(self.pods[pod as usize]),
                rail: rail.map(|rail| rail as u16),
                plane: (self.clos.planes > 1).then_some(tor as u8),
                ..NewSwitch::new(format!("leaf-{name}{letter}"), Tier::Leaf)
            })?;
            leaves.push(Free::new(switch));
        }
        let switches = leaves.iter().map(|leaf| leaf.switch).collect();
        self.builder.add_la(NewLa {
            name: format!("la-{name}"),
            leaves: switches,
            v4: None,
            v6: None,
        })?;
        Ok(leaves)
    }

    /// Spines by pod, then plane.
    fn spines(&mut self) -> Result<Vec<Vec<Vec<Free>>>, Fault> {
        let mut pods = Vec::new();
        for pod in 0..self.clos.pods {
            let mut planes = Vec::new();
            for plane in 0..self.clos.planes {
                let prefix = match self.clos.pods {
                    1 => String::new(),
                    _ => format!("-p{}-", pod + 1),
                };
                let place = Some(self.pods[pod as usize]);
                planes.push(self.row(Tier::Spine, self.plan.spines, &prefix, plane, |_| place)?);
            }
            pods.push(planes);
        }
        Ok(pods)
    }

    /// Cores by plane.
    fn cores(&mut self) -> Result<Vec<Vec<Free>>, Fault> {
        let planes = 0..self.clos.planes;
        planes
            .map(|plane| self.row(Tier::Core, self.plan.cores, "", plane, |_| None))
            .collect()
    }

    fn row(
        &mut self,
        tier: Tier,
        count: u32,
        prefix: &str,
        plane: u32,
        pod: impl Fn(u32) -> Option<PodId>,
    ) -> Result<Vec<Free>, Fault> {
        let several = self.clos.planes > 1;
        let letter = match (several, prefix.is_empty()) {
            (false, _) => "",
            (true, true) => ["-a", "-b"][plane as usize],
            (true, false) => ["a", "b"][plane as usize],
        };
        let mut row = Vec::new();
        for number in 0..count {
            let switch = self.builder.add_switch(NewSwitch {
                pod: pod(number),
                plane: several.then_some(plane as u8),
                ..NewSwitch::new(
                    format!("{}{prefix}{letter}{}", tier.name(), number + 1),
                    tier,
                )
            })?;
            row.push(Free::new(switch));
        }
        Ok(row)
    }

    fn hosts(&mut self, blocks: &mut [Block]) -> Result<(), Fault> {
        let gpus = self.clos.gpus_per_host();
        let domain = (self.clos.scale_up.unwrap_or(gpus) / gpus.max(1)).max(1);
        let (mut number, mut label) = (0_u32, 0_u32);
        for block in blocks {
            let hosts = self.clos.hosts_in(block.index);
            for local in 0..hosts {
                number += 1;
                // A scale-up domain is a rack or less: it ends with its segment.
                label += u32::from(local % domain == 0);
                let ports = self.plan.tors as u8;
                let host = self.builder.add_host(NewHost {
                    name: format!("h{number}"),
                    segment: block.id,
                    gpus: Some(gpus),
                    scale_up: Some(label),
                    nics: (0..self.clos.rails)
                        .map(|rail| NewNic::new(rail as u16, ports))
                        .collect(),
                })?;
                self.host_links(host, share(local, hosts, self.clos.leaves), block)?;
            }
        }
        Ok(())
    }

    fn host_links(&mut self, host: HostId, which: u32, block: &mut Block) -> Result<(), Fault> {
        for rail in 0..self.clos.rails {
            let group = match self.clos.leaf_per {
                LeafPer::Rail => rail * self.clos.leaves + which,
                LeafPer::Segment => which,
            };
            let Some(nic) = self.builder.nic(host, rail as usize) else {
                continue;
            };
            for (port, leaf) in (0..).zip(&mut block.groups[group as usize]) {
                let end = End::Nic(NicPortRef { nic, port });
                let speed = Some(self.clos.speeds.host);
                self.builder.add_link(
                    end,
                    End::Switch(leaf.take()),
                    speed,
                    self.clos.delays.host,
                )?;
            }
        }
        Ok(())
    }

    fn leaf_links(
        &mut self,
        blocks: &mut [Block],
        spines: &mut [Vec<Vec<Free>>],
    ) -> Result<(), Fault> {
        for block in blocks {
            for group in &mut block.groups {
                for (tor, leaf) in group.iter_mut().enumerate() {
                    let plane = if self.clos.planes > 1 { tor } else { 0 };
                    for spine in &mut spines[block.pod as usize][plane] {
                        for _ in 0..self.plan.spine_links {
                            let (lower, upper) =
                                (End::Switch(leaf.take()), End::Switch(spine.take()));
                            let speed = Some(self.clos.speeds.spine);
                            self.builder
                                .add_link(lower, upper, speed, self.clos.delays.spine)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn core_links(
        &mut self,
        spines: &mut [Vec<Vec<Free>>],
        cores: &mut [Vec<Free>],
    ) -> Result<(), Fault> {
        if self.plan.cores == 0 {
            return Ok(());
        }
        let groups = self.plan.core_groups as usize;
        for (pod, planes) in (0..).zip(spines) {
            let home = self.building_of_pod(pod);
            for (row, above) in planes.iter_mut().zip(cores.iter_mut()) {
                for (position, spine) in row.iter_mut().enumerate() {
                    let mine = above
                        .iter_mut()
                        .enumerate()
                        .filter(|(core, _)| core % groups == position % groups);
                    for (core, upper) in mine {
                        // Cores are dealt out to the buildings within each group, so that every
                        // spine has cores at home where there are enough.
                        let building = (core / groups) as u32 % self.clos.buildings;
                        let delay = if building == home {
                            self.clos.delays.core
                        } else {
                            self.clos.building_delay_ns
                        };
                        for _ in 0..self.plan.core_links {
                            let (lower, upper) =
                                (End::Switch(spine.take()), End::Switch(upper.take()));
                            self.builder.add_link(
                                lower,
                                upper,
                                Some(self.clos.speeds.core),
                                delay,
                            )?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Which of `parts` even parts of `whole` item `index` falls in.
fn share(index: u32, whole: u32, parts: u32) -> u32 {
    (u64::from(index) * u64::from(parts) / u64::from(whole.max(1))) as u32
}

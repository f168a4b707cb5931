//! One job on one fabric: its hosts, its rings, its flows, what crosses and what must.

use super::flows::{Demand, Port, Terminal};
use super::ranks::{
    PlaceError, Site, choose, crossings, least_crossings, least_domains, ring_order, shuffle,
};
use crate::fabric::Targets;
use crate::routing::LinkSet;
use crate::workload::{Job, Ring, share};
use std::collections::BTreeSet;
use topology::{HostId, NicId, Topology};

/// How a job's ranks are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The baseline: any free hosts in any order, the same order for all rings.
    Unplaced {
        /// Seed of the shuffle.
        seed: u64,
    },
    /// By topology.
    Placed,
}

/// One ring of a placed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingPlan {
    /// Channel of the collective, from 0.
    pub channel: u32,
    /// Rail it runs on.
    pub rail: u16,
    /// NICs in the order of the ring.
    pub nics: Vec<NicId>,
    /// The ring's bytes and members; members are ranks, of which every host may have several.
    pub ring: Ring,
    /// Bytes that each NIC sends to the next one, by position in `nics`. Zero where the two hosts share a
    /// scale-up domain.
    pub sent: Vec<u64>,
}

/// Bytes that cross and bytes that do not, of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Bytes between NICs of different LA domains.
    pub crossing: u64,
    /// Bytes that leave NICs.
    pub sent: u64,
    /// Bytes between hosts of one scale-up domain, which never reach a NIC.
    pub scale_up: u64,
    /// Least possible crossing share with the hosts that were chosen, in any order of rings.
    pub bound_of_hosts: f64,
    /// Least possible crossing share with any hosts that were free.
    pub bound: f64,
}

impl Share {
    /// Cross-LA share X; 0 if nothing was sent.
    #[must_use]
    pub fn crossing_share(&self) -> f64 {
        if self.sent == 0 {
            0.0
        } else {
            self.crossing as f64 / self.sent as f64
        }
    }
}

/// Where a job runs.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// Hosts in order of ranks: the first has ranks 0 to `ranks_per_host - 1`.
    pub hosts: Vec<HostId>,
    /// Its rings.
    pub rings: Vec<RingPlan>,
    /// What is predicted to cross.
    pub share: Share,
}

/// A flow of a placed job: one edge of a ring, or half of it on a NIC of two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobFlow {
    /// Position of the ring in the plan.
    pub ring: usize,
    /// Position of the sender in the ring.
    pub position: usize,
    /// Which NICs, how many bytes per iteration, which port.
    pub demand: Demand,
    /// Destination queue pair, unique at its NIC.
    pub dest_qp: u32,
}

/// Queue pairs below this are reserved or used for management.
const FIRST_QP: u32 = 0x100;

/// Places `job` on hosts that are not in `busy`.
///
/// # Errors
/// Not enough hosts with the rails and GPUs that the job needs.
pub fn place_job(
    topology: &Topology,
    job: &Job,
    busy: &BTreeSet<HostId>,
    strategy: Strategy,
) -> Result<JobPlan, PlaceError> {
    let widest = topology
        .hosts()
        .iter()
        .map(|h| h.nics().len())
        .max()
        .unwrap_or(0);
    let rails = widest.min(job.collective.channels as usize);
    let free = sites(topology, job, rails, busy);
    let wanted = job.hosts as usize;
    if free.len() < wanted {
        return Err(PlaceError::TooFewHosts {
            job: job.name.clone(),
            wanted: job.hosts,
            rails: u32::try_from(rails).unwrap_or(u32::MAX),
            gpus: job.ranks_per_host,
            free: u32::try_from(free.len()).unwrap_or(u32::MAX),
        });
    }
    let hosts = match strategy {
        Strategy::Unplaced { seed } => shuffle(&free, wanted, seed),
        Strategy::Placed => choose(&free, wanted),
    };
    let rings: Vec<RingPlan> = (0..job.collective.channels)
        .map(|channel| {
            let rail = channel as usize % rails.max(1);
            let order = match strategy {
                Strategy::Unplaced { .. } => (0..job.hosts).collect(),
                Strategy::Placed => ring_order(&free, &hosts, rail),
            };
            let nth = |p: &u32| HostId(free[hosts[*p as usize]].host);
            let ordered: Vec<HostId> = order.iter().map(nth).collect();
            ring(topology, job, channel, rail, &ordered)
        })
        .collect();
    let share = predict(topology, &rings, &free, &hosts);
    let hosts = hosts.into_iter().map(|i| HostId(free[i].host)).collect();
    Ok(JobPlan {
        hosts,
        rings,
        share,
    })
}

/// The hosts that can take part in `job`.
fn sites(topology: &Topology, job: &Job, rails: usize, busy: &BTreeSet<HostId>) -> Vec<Site> {
    topology
        .host_ids()
        .filter(|id| !busy.contains(id))
        .filter(|id| topology[*id].nics().len() >= rails)
        .filter(|id| topology[*id].gpus >= job.ranks_per_host)
        .map(|id| {
            let host = &topology[id];
            Site {
                host: id.0,
                las: host
                    .nics()
                    .take(rails)
                    .map(|nic| topology[nic].la.0)
                    .collect(),
                groups: vec![
                    topology.building_of(id).0,
                    topology.pod_of(id).0,
                    host.segment.0,
                ],
            }
        })
        .collect()
}

fn ring(topology: &Topology, job: &Job, channel: u32, rail: usize, hosts: &[HostId]) -> RingPlan {
    let ring = job.ring(channel);
    let last_rank = |position: usize| {
        // The rank whose successor is on the next host.
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        position * job.members_per_host() + job.members_per_host() - 1
    };
    let next = hosts.iter().cycle().skip(1);
    let sent = hosts
        .iter()
        .zip(next)
        .enumerate()
        .map(|(position, (from, to))| {
            let inside = topology[*from].scale_up == topology[*to].scale_up;
            if inside {
                0
            } else {
                ring.edge_bytes(last_rank(position))
            }
        })
        .collect();
    let nics: Vec<NicId> = hosts
        .iter()
        .filter_map(|host| topology[*host].nics().nth(rail))
        .collect();
    let rail = nics.first().map_or(0, |nic| topology[*nic].rail);
    RingPlan {
        channel,
        rail,
        nics,
        ring,
        sent,
    }
}

fn predict(topology: &Topology, rings: &[RingPlan], free: &[Site], hosts: &[usize]) -> Share {
    let mut share = Share::default();
    let (mut least, mut least_of_hosts) = (0.0, 0.0);
    for plan in rings {
        let las: Vec<u32> = plan.nics.iter().map(|nic| topology[*nic].la.0).collect();
        let next = plan.nics.iter().cycle().skip(1);
        for ((from, to), sent) in plan.nics.iter().zip(next).zip(&plan.sent) {
            share.sent += sent;
            if topology[*from].la != topology[*to].la {
                share.crossing += sent;
            }
        }
        let n = plan.nics.len();
        let edges: u64 = plan.sent.iter().sum();
        let inside = plan.sent.iter().filter(|s| **s == 0).count() as u64;
        if n > 1 {
            share.scale_up += inside * plan.ring.edge_bytes(0);
        }
        let rail = plan.channel as usize % free.first().map_or(1, |s| s.las.len()).max(1);
        let domains = las.iter().collect::<BTreeSet<_>>().len();
        let share_of = |domains| {
            // Edges inside scale-up domains can only have been ones that need not cross.
            let edge = edges as f64 / (n as f64 - inside as f64).max(1.0);
            least_crossings(domains).min(n) as f64 * edge
        };
        least_of_hosts += share_of(domains);
        least += share_of(least_domains(free, hosts.len(), rail).unwrap_or(domains));
        debug_assert!(crossings(&las) >= least_crossings(domains));
    }
    if share.sent > 0 {
        share.bound = least / share.sent as f64;
        share.bound_of_hosts = least_of_hosts / share.sent as f64;
    }
    share
}

impl JobPlan {
    /// The flows of one iteration. A NIC of two ports sends half of each edge by each; `first_qp` is the
    /// first destination QP to use beyond the reserved ones, so that jobs that share NICs do not collide.
    #[must_use]
    pub fn flows(&self, topology: &Topology, first_qp: u32) -> Vec<JobFlow> {
        let mut flows = Vec::new();
        for (ring, plan) in self.rings.iter().enumerate() {
            let next = plan.nics.iter().cycle().skip(1);
            for (position, ((src, dst), sent)) in
                plan.nics.iter().zip(next).zip(&plan.sent).enumerate()
            {
                if *sent == 0 {
                    continue;
                }
                let ports: Vec<u8> = [0, 1]
                    .into_iter()
                    .filter(|p| {
                        [*src, *dst]
                            .iter()
                            .all(|nic| topology[*nic].port(*p).is_some())
                    })
                    .collect();
                let parts = ports.len().max(1);
                for part in 0..parts {
                    let port = ports.get(part).copied().filter(|_| parts > 1);
                    let parts = u32::try_from(parts).unwrap_or(1);
                    let index = u32::try_from(part).unwrap_or(0);
                    let bytes = share(*sent, parts, index);
                    let demand = Demand {
                        src: src.0,
                        dst: dst.0,
                        bytes,
                        port,
                    };
                    let dest_qp = FIRST_QP + first_qp + plan.channel * 2 + index;
                    flows.push(JobFlow {
                        ring,
                        position,
                        demand,
                        dest_qp,
                    });
                }
            }
        }
        flows
    }
}

/// The NICs of a topology as ends of flows.
#[must_use]
pub fn terminals(topology: &Topology, targets: &Targets, down: &LinkSet) -> Vec<Terminal> {
    topology
        .nic_ids()
        .map(|nic| Terminal {
            ports: topology[nic]
                .ports()
                .filter(|port| !down.contains(port.link.0))
                .map(|port| Port {
                    number: port.number,
                    leaf: port.leaf.switch.0,
                    leaf_port: port.leaf.port.into(),
                    link: port.link.0,
                    speed_bps: topology[port.link].speed_bps,
                })
                .collect(),
            destination: targets.of_nic[nic.index()],
        })
        .collect()
}

//! A fabric with what is taken of it, and jobs placed on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ::topology::{HostId, Topology};
use controller::placement::{
    Costs, Cut, Inventory, Occupancy, Policy, Running, Search, TakeError, moves_for, seat,
};
use controller::workload::Workload;

use super::report::{CompareReport, JobReport, MoveReport, RoomReport};
use super::{PlaceArgs, occupied};
use crate::failure::Failure;
use crate::input;
use crate::output::Progress;

/// Most moves that an explanation lists.
const MOVES: usize = 3;

/// The fabric as it is now.
pub(super) struct State<'a> {
    pub(super) topology: &'a Topology,
    pub(super) occupancy: Occupancy,
    /// Names and hosts of the jobs that run; a job's number is its position.
    jobs: Vec<(String, Vec<u32>)>,
    inventories: BTreeMap<(usize, u32), Arc<Inventory>>,
}

fn wrong(message: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("error: {message}"))
}

impl<'a> State<'a> {
    /// Nothing is taken.
    pub(super) fn new(topology: &'a Topology) -> Self {
        Self {
            topology,
            occupancy: Occupancy::empty(topology.hosts().len()),
            jobs: Vec::new(),
            inventories: BTreeMap::new(),
        }
    }

    /// Takes what a file says is taken.
    pub(super) fn occupy(&mut self, path: &Path) -> Result<(), Failure> {
        let text = input::text(path)?;
        let (jobs, drained) = occupied::read(&path.display().to_string(), &text)?;
        for job in jobs {
            if self.jobs.iter().any(|(name, _)| *name == job.name) {
                return Err(wrong(format!(
                    "{}: two jobs are called `{}`",
                    path.display(),
                    job.name
                )));
            }
            let hosts = occupied::hosts(self.topology, &job.hosts)?;
            let hosts: Vec<u32> = hosts.iter().map(|h| h.0).collect();
            self.take(&job.name, &hosts, job.left_s)?;
        }
        self.drain(&drained)
    }

    fn take(&mut self, name: &str, hosts: &[u32], until: Option<f64>) -> Result<(), Failure> {
        let number = u32::try_from(self.jobs.len()).unwrap_or(u32::MAX);
        self.occupancy
            .take_until(number, hosts, until)
            .map_err(|error| self.refused(name, error))?;
        self.jobs.push((name.to_owned(), hosts.to_vec()));
        Ok(())
    }

    fn refused(&self, job: &str, error: TakeError) -> Failure {
        let host = |id: HostId| self.host(id.0);
        wrong(match error {
            TakeError::Held { host: id, holder } => {
                let holder = self
                    .jobs
                    .get(holder as usize)
                    .map_or("another job", |(name, _)| name);
                format!(
                    "job `{job}` can't have host {}: job `{holder}` holds it",
                    host(id)
                )
            }
            TakeError::Drained { host: id } => {
                format!(
                    "job `{job}` can't have ranks on host {}: it is drained",
                    host(id)
                )
            }
            TakeError::Unknown { host: id } => format!("there is no host {}", id.0),
        })
    }

    /// Takes hosts out of use.
    pub(super) fn drain(&mut self, names: &[String]) -> Result<(), Failure> {
        for id in occupied::hosts(self.topology, names)? {
            self.occupancy.drain(id.0).map_err(|error| match error {
                TakeError::Held { holder, .. } => {
                    let holder = self.jobs.get(holder as usize).map_or("a job", |(name, _)| name);
                    wrong(format!(
                        "host {} can't be drained while job `{holder}` runs on it; leave the job out with \
                         --without {holder} to see what if",
                        self.host(id.0)
                    ))
                }
                other => wrong(other),
            })?;
        }
        Ok(())
    }

    /// Ends a job.
    pub(super) fn end(&mut self, name: &str) -> Result<(), Failure> {
        let Some(at) = self.jobs.iter().position(|(n, _)| n == name) else {
            let names: Vec<&str> = self.jobs.iter().map(|(n, _)| n.as_str()).take(20).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Err(wrong(format!(
                "--without {name}: no such job runs; there are {names}"
            )));
        };
        let hosts = std::mem::take(&mut self.jobs[at].1);
        self.occupancy
            .release(u32::try_from(at).unwrap_or(u32::MAX), &hosts);
        Ok(())
    }

    /// A host's name.
    pub(super) fn host(&self, host: u32) -> &str {
        self.topology
            .hosts()
            .get(host as usize)
            .map_or("?", |h| &h.name)
    }

    /// A running job's name.
    pub(super) fn job_name(&self, job: u32) -> &str {
        self.jobs.get(job as usize).map_or("?", |(name, _)| name)
    }

    /// The jobs that run.
    pub(super) fn running(&self) -> Vec<Running> {
        let running = (0..)
            .zip(&self.jobs)
            .filter(|(_, (_, hosts))| !hosts.is_empty());
        running
            .map(|(job, (_, hosts))| Running {
                job,
                hosts: hosts.clone(),
            })
            .collect()
    }

    /// All hosts, by the rails that every one has.
    pub(super) fn widest(&mut self) -> Arc<Inventory> {
        let rails = self.topology.hosts().iter().map(|h| h.nics().len()).min();
        self.inventory(rails.unwrap_or(0), 0)
    }

    fn inventory(&mut self, rails: usize, gpus: u32) -> Arc<Inventory> {
        let topology = self.topology;
        let inventory = self
            .inventories
            .entry((rails, gpus))
            .or_insert_with(|| Arc::new(Inventory::new(topology, rails, gpus)));
        Arc::clone(inventory)
    }

    /// The hosts that can hold a job, by as many rails as enough free hosts have.
    fn fitting(&mut self, job: &Workload) -> Result<(usize, Arc<Inventory>), Failure> {
        let mut counts: Vec<usize> = self
            .topology
            .hosts()
            .iter()
            .map(|h| h.nics().len())
            .collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.dedup();
        let most = job.ranks_per_host.max(1) as usize;
        let mut rails: Vec<usize> = counts.iter().map(|c| (*c).min(most)).collect();
        rails.dedup();
        let wanted = job.hosts() as usize;
        let (mut all, mut free) = (0, 0);
        for rails in rails {
            let inventory = self.inventory(rails, job.ranks_per_host);
            all = inventory.hosts();
            free = self.occupancy.usage(&inventory).free;
            if free >= wanted {
                return Ok((rails, inventory));
            }
        }
        let (name, gpus) = (&job.name, job.ranks_per_host);
        Err(wrong(if all < wanted {
            format!(
                "job `{name}` is larger than the fabric: its parallel sizes ask for {} ranks, which is {wanted} \
                 hosts at `ranks_per_host: {gpus}`, and {all} hosts have {gpus} GPUs",
                job.grid.world_size()
            )
        } else {
            format!(
                "job `{name}` asks for {wanted} hosts with {gpus} GPUs, and {free} of the {all} that have them \
                 are free: wait, drain less, or lower its parallel sizes"
            )
        }))
    }

    /// Places jobs that start together, the largest first; reports are in the order of `jobs`.
    pub(super) fn place_all(
        &mut self,
        jobs: &[Workload],
        policy: Policy,
        args: &PlaceArgs,
        progress: &Progress,
    ) -> Result<Vec<JobReport>, Failure> {
        if !args.on.is_empty() && jobs.len() != 1 {
            return Err(wrong("--on is for one job"));
        }
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        if policy.sees_queue() {
            order.sort_by_key(|at| std::cmp::Reverse(jobs[*at].hosts()));
        }
        let mut reports: Vec<Option<JobReport>> = vec![None; jobs.len()];
        for (done, at) in order.into_iter().enumerate() {
            if done.is_multiple_of(50) {
                progress.tick(format!("{done} of {} jobs placed", jobs.len()));
            }
            reports[at] = Some(self.place(&jobs[at], policy, args)?);
        }
        Ok(reports.into_iter().flatten().collect())
    }

    fn place(
        &mut self,
        job: &Workload,
        policy: Policy,
        args: &PlaceArgs,
    ) -> Result<JobReport, Failure> {
        let (rails, inventory) = self.fitting(job)?;
        let wanted = job.hosts() as usize;
        let started = std::time::Instant::now();
        let chosen = if args.on.is_empty() {
            policy.choose(&inventory, &self.occupancy, wanted, args.seed)
        } else {
            Some(self.given(job, &args.on)?)
        };
        let chosen = chosen.ok_or_else(|| wrong(format!("no place for job `{}`", job.name)))?;
        let bound = Cut::bound(&inventory, &self.occupancy, wanted);
        let (Some(bound), Some(floor)) = (bound, Cut::floor(&inventory, wanted)) else {
            return Err(wrong(format!("no place for job `{}`", job.name)));
        };
        let costs = Costs::default();
        let seating = seat(job, &inventory, &chosen, bound.most_domains(), costs);
        let took_ms = started.elapsed().as_secs_f64() * 1e3;
        let cut = Cut::of(&inventory, &chosen);
        let rooms = self.rooms(&inventory, &seating.hosts);
        let compare = if args.compare {
            self.compare(job, &inventory, args.seed, &bound)
        } else {
            Vec::new()
        };
        let improve: Vec<MoveReport> = if args.explain && cut.ring_share() > floor.ring_share() {
            let running = self.running();
            let moves = moves_for(&inventory, &self.occupancy, &running, wanted, MOVES);
            moves.iter().map(|m| MoveReport::new(self, m)).collect()
        } else {
            Vec::new()
        };
        let lost = Search::new(&inventory, &self.occupancy, costs, 0.0);
        let lost = args
            .explain
            .then(|| lost.place(wanted, None).map(|f| f.lost))
            .flatten();
        let mut name = job.name.clone();
        let mut copy = 1;
        while self.jobs.iter().any(|(taken, _)| *taken == name) {
            copy += 1;
            name = format!("{}-{copy}", job.name);
        }
        self.take(&name, &chosen, None)?;
        Ok(JobReport {
            name,
            hosts: seating
                .hosts
                .iter()
                .map(|h| self.host(*h).to_owned())
                .collect(),
            ranks_per_host: job.ranks_per_host,
            rails,
            share: seating.share(),
            bound: seating.bound_share(),
            sent_bytes: seating.sent,
            crossing_bytes: seating.crossing[0],
            crossing_segments_bytes: seating.crossing[1],
            crossing_pods_bytes: seating.crossing[2],
            crossing_buildings_bytes: seating.crossing[3],
            ring_share: cut.ring_share(),
            ring_bound: bound.ring_share(),
            ring_floor: floor.ring_share(),
            tree_share: cut.tree_share(),
            dimensions: seating.order.iter().map(|d| d.name().to_owned()).collect(),
            leaves: cut.most_domains(),
            leaves_least: bound.most_domains(),
            leaves_idle: floor.most_domains(),
            lost,
            rooms,
            improve,
            compare,
            took_ms,
        })
    }

    /// The hosts named by `--on`, checked.
    fn given(&self, job: &Workload, names: &[String]) -> Result<Vec<u32>, Failure> {
        let hosts = occupied::hosts(self.topology, names)?;
        let hosts: Vec<u32> = hosts.iter().map(|h| h.0).collect();
        if hosts.len() != job.hosts() as usize {
            return Err(wrong(format!(
                "--on names {} hosts, and job `{}` needs {}",
                hosts.len(),
                job.name,
                job.hosts()
            )));
        }
        if let Some(small) = hosts
            .iter()
            .find(|h| self.topology.hosts()[**h as usize].gpus < job.ranks_per_host)
        {
            return Err(wrong(format!(
                "host {} has {} GPUs, and `ranks_per_host` of job `{}` is {}",
                self.host(*small),
                self.topology.hosts()[*small as usize].gpus,
                job.name,
                job.ranks_per_host
            )));
        }
        let mut trial = self.occupancy.clone();
        trial
            .take(u32::MAX, &hosts)
            .map_err(|error| self.refused(&job.name, error))?;
        Ok(hosts)
    }

    /// Rooms in the order in which ranks visit them.
    fn rooms(&self, inventory: &Inventory, hosts: &[u32]) -> Vec<RoomReport> {
        let spots = self.occupancy.spots(inventory);
        let mut rooms: Vec<RoomReport> = Vec::new();
        let mut index: BTreeMap<&[u32], usize> = BTreeMap::new();
        for host in hosts {
            let Some(room) = inventory.room_of(*host) else {
                continue;
            };
            let at = *index.entry(&room.las).or_insert_with(|| {
                let spot = spots.iter().find(|s| std::ptr::eq(s.room, room));
                let la = room
                    .las
                    .first()
                    .and_then(|la| self.topology.las().get(*la as usize));
                rooms.push(RoomReport {
                    la: la.map_or_else(String::new, |la| la.name.clone()),
                    hosts: 0,
                    free_before: spot.map_or(0, |s| s.free.len()),
                    size: room.hosts.len(),
                    shared_with: spot.map_or(0, |s| s.pieces.len()),
                });
                rooms.len() - 1
            });
            rooms[at].hosts += 1;
        }
        rooms
    }

    fn compare(
        &self,
        job: &Workload,
        inventory: &Inventory,
        seed: u64,
        bound: &Cut,
    ) -> Vec<CompareReport> {
        let one = |(name, policy): &(&'static str, Policy)| {
            let hosts = policy.choose(inventory, &self.occupancy, job.hosts() as usize, seed)?;
            let cut = Cut::of(inventory, &hosts);
            let seating = seat(
                job,
                inventory,
                &hosts,
                bound.most_domains(),
                Costs::default(),
            );
            Some(CompareReport {
                policy: name,
                share: seating.share(),
                ring_share: cut.ring_share(),
                leaves: cut.most_domains(),
                segments: cut.groups[0],
                pods: cut.groups[1],
            })
        };
        Policy::NAMES.iter().filter_map(one).collect()
    }
}

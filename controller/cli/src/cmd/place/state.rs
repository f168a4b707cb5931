//! A fabric with what is taken of it, and jobs placed on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ::topology::{HostId, Topology};
use controller::placement::{
    Costs, Cut, Found, Holder, Inventory, Occupancy, Policy, Running, Search, Seating, TakeError,
    least_crossing, moves_for, place_workload, seat,
};
use controller::workload::Workload;

use super::PlaceArgs;
use super::occupied::{self, Entry, Occupied};
use super::paths::Paths;
use super::report::{CompareReport, JobReport, MoveReport, RoomReport};
use crate::failure::Failure;
use crate::input;
use crate::output::Progress;

/// Most moves that an explanation lists.
const MOVES: usize = 3;

/// The fabric as it is now.
pub(in crate::cmd) struct State<'a> {
    pub(super) topology: &'a Topology,
    pub(super) occupancy: Occupancy,
    /// The jobs that run; a job's number is its position. One that has ended has no hosts.
    jobs: Vec<Known>,
    inventories: BTreeMap<(usize, u32), Arc<Inventory>>,
}

/// A job that runs.
struct Known {
    name: String,
    hosts: Vec<u32>,
    left_s: Option<f64>,
}

pub(super) fn wrong(message: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("error: {message}"))
}

impl<'a> State<'a> {
    /// Nothing is taken.
    pub(in crate::cmd) fn new(topology: &'a Topology) -> Self {
        Self {
            topology,
            occupancy: Occupancy::empty(topology.hosts().len()),
            jobs: Vec::new(),
            inventories: BTreeMap::new(),
        }
    }

    /// Takes what a file says is taken.
    pub(in crate::cmd) fn occupy(&mut self, path: &Path) -> Result<(), Failure> {
        let text = input::text(path)?;
        let taken = occupied::read(&path.display().to_string(), &text)?;
        for job in taken.jobs {
            if self.jobs.iter().any(|known| known.name == job.name) {
                return Err(wrong(format!(
                    "{}: two jobs are called `{}`",
                    path.display(),
                    job.name
                )));
            }
            let hosts = occupied::hosts(self.topology, &job.hosts)?;
            let hosts: Vec<u32> = hosts.iter().map(|h| h.0).collect();
            self.take(&job.name, &hosts, job.left_s.map(|s| s as f64))?;
        }
        self.drain(&taken.drained)
    }

    fn take(&mut self, name: &str, hosts: &[u32], until: Option<f64>) -> Result<(), Failure> {
        let number = u32::try_from(self.jobs.len()).unwrap_or(u32::MAX);
        self.occupancy
            .take_until(number, hosts, until)
            .map_err(|error| self.refused(name, error))?;
        self.jobs.push(Known {
            name: name.to_owned(),
            hosts: hosts.to_vec(),
            left_s: until,
        });
        Ok(())
    }

    fn refused(&self, job: &str, error: TakeError) -> Failure {
        let host = |id: HostId| self.host(id.0);
        wrong(match error {
            TakeError::Held { host: id, holder } => {
                let holder = self.job_name(holder);
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
    pub(in crate::cmd) fn drain(&mut self, names: &[String]) -> Result<(), Failure> {
        for id in occupied::hosts(self.topology, names)? {
            self.occupancy.drain(id.0).map_err(|error| match error {
                TakeError::Held { holder, .. } => {
                    let holder = self.job_name(holder);
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
        let Some(at) = self.jobs.iter().position(|known| known.name == name) else {
            let names: Vec<&str> = self
                .jobs
                .iter()
                .map(|known| known.name.as_str())
                .take(20)
                .collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Err(wrong(format!(
                "--without {name}: no such job runs; there are {names}"
            )));
        };
        let hosts = std::mem::take(&mut self.jobs[at].hosts);
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
        self.jobs
            .get(job as usize)
            .map_or("another job", |known| &known.name)
    }

    /// The jobs that run.
    pub(super) fn running(&self) -> Vec<Running> {
        let running = (0..)
            .zip(&self.jobs)
            .filter(|(_, known)| !known.hosts.is_empty());
        running
            .map(|(job, known)| Running {
                job,
                hosts: known.hosts.clone(),
            })
            .collect()
    }

    /// All that is taken, as a file of it says.
    pub(super) fn occupied(&self) -> Occupied {
        let running = self.jobs.iter().filter(|known| !known.hosts.is_empty());
        let names = |hosts: &[u32]| hosts.iter().map(|h| self.host(*h).to_owned()).collect();
        let drained = self.topology.host_ids().map(|id| id.0);
        let drained = drained.filter(|h| self.occupancy.holder(*h) == Holder::Drained);
        Occupied {
            jobs: running
                .map(|known| Entry {
                    name: known.name.clone(),
                    hosts: names(&known.hosts),
                    left_s: known.left_s.map(|s| s.round() as u64),
                })
                .collect(),
            drained: names(&drained.collect::<Vec<u32>>()),
        }
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
        paths: Option<&Paths<'_>>,
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
            let left_s = args.left_s(at);
            reports[at] = Some(self.place(&jobs[at], policy, left_s, args, paths)?);
        }
        Ok(reports.into_iter().flatten().collect())
    }

    fn place(
        &mut self,
        job: &Workload,
        policy: Policy,
        left_s: Option<f64>,
        args: &PlaceArgs,
        paths: Option<&Paths<'_>>,
    ) -> Result<JobReport, Failure> {
        let wanted = job.hosts() as usize;
        let started = std::time::Instant::now();
        let given = self.given(job, &args.on, "--on")?;
        let (rails, inventory) = self.inventory_for(job, given.as_deref())?;
        let chosen = given.or_else(|| self.chosen(policy, job, &inventory, left_s, args.seed));
        let chosen = chosen.ok_or_else(|| wrong(format!("no place for job `{}`", job.name)))?;
        let bound = Cut::bound(&inventory, &self.occupancy, wanted);
        let (Some(bound), Some(floor)) = (bound, Cut::floor(&inventory, wanted)) else {
            return Err(wrong(format!("no place for job `{}`", job.name)));
        };
        let costs = Costs::default();
        let free = |host: u32| self.occupancy.holder(host) == Holder::Free;
        let least = least_crossing(job, &inventory, free);
        let seating = seat(job, &inventory, &chosen, least, costs);
        let took_ms = started.elapsed().as_secs_f64() * 1e3;
        let cut = Cut::of(&inventory, &chosen);
        let rooms = self.rooms(&inventory, &seating.hosts);
        let compare = if args.compare {
            self.compare(job, &inventory, least, left_s, args.seed, paths)
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
        let lost = args
            .explain
            .then(|| self.search(&inventory, wanted, left_s).map(|f| f.lost))
            .flatten();
        let floor_share = least_crossing(job, &inventory, |_| true) as f64;
        let planned = paths.map(|p| p.of(job, &seating.hosts, args.seed));
        let mut name = job.name.clone();
        let mut copy = 1;
        while self.jobs.iter().any(|taken| taken.name == name) {
            copy += 1;
            name = format!("{}-{copy}", job.name);
        }
        self.take(&name, &seating.hosts, left_s)?;
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
            floor: floor_share / seating.sent.max(1) as f64,
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
            paths: planned,
            left_s,
            took_ms,
        })
    }

    /// A job's hosts in the order of its ranks, on the hosts of these names if there are any, and how a message
    /// calls the option that has them. Nothing is taken.
    pub(in crate::cmd) fn seats(
        &mut self,
        job: &Workload,
        names: &[String],
        option: &str,
    ) -> Result<Vec<HostId>, Failure> {
        let given = self.given(job, names, option)?;
        let (_, inventory) = self.inventory_for(job, given.as_deref())?;
        let wanted = job.hosts() as usize;
        let chosen = given.or_else(|| {
            self.search(&inventory, wanted, None)
                .map(|found| found.hosts)
        });
        let chosen = chosen.ok_or_else(|| wrong(format!("no place for job `{}`", job.name)))?;
        let seating = seat(job, &inventory, &chosen, 0, Costs::default());
        Ok(seating.hosts.into_iter().map(HostId).collect())
    }

    /// The hosts to choose from: all, or those given, by the rails that these have.
    fn inventory_for(
        &mut self,
        job: &Workload,
        given: Option<&[u32]>,
    ) -> Result<(usize, Arc<Inventory>), Failure> {
        let Some(hosts) = given else {
            return self.fitting(job);
        };
        let nics = hosts.iter().map(|h| self.topology[HostId(*h)].nics().len());
        let most = job.ranks_per_host.max(1) as usize;
        let rails = nics.min().unwrap_or(0).min(most);
        Ok((rails, self.inventory(rails, job.ranks_per_host)))
    }

    /// The hosts named by an option, checked; `None` if it names none.
    fn given(
        &self,
        job: &Workload,
        names: &[String],
        option: &str,
    ) -> Result<Option<Vec<u32>>, Failure> {
        if names.is_empty() {
            return Ok(None);
        }
        let hosts = occupied::hosts(self.topology, names)?;
        let hosts: Vec<u32> = hosts.iter().map(|h| h.0).collect();
        if hosts.len() != job.hosts() as usize {
            return Err(wrong(format!(
                "{option} names {} hosts, and job `{}` needs {}",
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
        Ok(Some(hosts))
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

    /// How long a job runs at most. One that does not say is taken to run as long as the others have left on
    /// average, so that what they say counts.
    fn limit(&self, left_s: Option<f64>) -> Option<f64> {
        left_s.or_else(|| self.occupancy.mean_left(0.0))
    }

    /// The placer's choice.
    fn placed(
        &self,
        job: &Workload,
        inventory: &Inventory,
        left_s: Option<f64>,
    ) -> Option<Seating> {
        let limit = self.limit(left_s);
        place_workload(
            job,
            inventory,
            &self.occupancy,
            Costs::default(),
            0.0,
            limit,
        )
    }

    /// What the placer would choose for one ring over all hosts, and what later jobs lose by it.
    fn search(&self, inventory: &Inventory, wanted: usize, left_s: Option<f64>) -> Option<Found> {
        let limit = self.limit(left_s);
        let search = Search::new(inventory, &self.occupancy, Costs::default(), 0.0);
        search.place(wanted, limit)
    }

    fn chosen(
        &self,
        policy: Policy,
        job: &Workload,
        inventory: &Inventory,
        left_s: Option<f64>,
        seed: u64,
    ) -> Option<Vec<u32>> {
        match policy {
            Policy::Meridian => self.placed(job, inventory, left_s).map(|s| s.hosts),
            other => {
                let wanted = job.hosts() as usize;
                other.choose(inventory, &self.occupancy, wanted, seed)
            }
        }
    }

    fn compare(
        &self,
        job: &Workload,
        inventory: &Inventory,
        least: u64,
        left_s: Option<f64>,
        seed: u64,
        paths: Option<&Paths<'_>>,
    ) -> Vec<CompareReport> {
        let one = |(name, policy): &(&'static str, Policy)| {
            let hosts = self.chosen(*policy, job, inventory, left_s, seed)?;
            let cut = Cut::of(inventory, &hosts);
            let seating = seat(job, inventory, &hosts, least, Costs::default());
            Some(CompareReport {
                policy: name,
                share: seating.share(),
                bound: seating.bound_share(),
                crossing_bytes: seating.crossing[0],
                ring_share: cut.ring_share(),
                leaves: cut.most_domains(),
                segments: cut.groups[0],
                pods: cut.groups[1],
                paths: paths.map(|p| p.of(job, &seating.hosts, seed)),
            })
        };
        Policy::NAMES.iter().filter_map(one).collect()
    }
}

//! What there is to place jobs on, and what of it is taken.
//!
//! Hosts whose NICs are in the same LA domains are interchangeable; such a set is a [`Room`]. In most
//! fabrics a room is what one leaf, one dual-ToR pair or one row of rail leaves serves.

use std::collections::BTreeMap;
use topology::{HostId, Topology};

/// Hosts that share all their LA domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// LA domain of each rail. Numbers mean nothing but equality.
    pub las: Vec<u32>,
    /// Building, pod and segment, outermost first.
    pub groups: [u32; 3],
    /// The hosts, in the topology's order.
    pub hosts: Vec<u32>,
}

/// Who has a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Free,
    /// Nobody, and nobody may: it is drained.
    Drained,
    /// A job, by a number that the caller gives out.
    Job(u32),
}

/// The hosts of a fabric by rooms, for jobs that use a given number of rails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    rooms: Vec<Room>,
    /// Room of each host; `None` for hosts with fewer rails or GPUs than asked for.
    room_of: Vec<Option<u32>>,
}

impl Inventory {
    /// The hosts of `topology` that have `rails` NICs and `gpus` GPUs or more.
    #[must_use]
    pub fn new(topology: &Topology, rails: usize, gpus: u32) -> Self {
        let hosts = topology.host_ids().map(|id| {
            let host = &topology[id];
            let fit = host.nics().len() >= rails && host.gpus >= gpus;
            fit.then(|| {
                let las = host.nics().take(rails).map(|n| topology[n].la.0).collect();
                let pod = topology.pod_of(id);
                (las, [topology[pod].building.0, pod.0, host.segment.0])
            })
        });
        Self::from_hosts(hosts)
    }

    /// From the LA domains and groups of each host; `None` for one that can't be used.
    pub fn from_hosts(hosts: impl IntoIterator<Item = Option<(Vec<u32>, [u32; 3])>>) -> Self {
        let mut index: BTreeMap<(Vec<u32>, [u32; 3]), u32> = BTreeMap::new();
        let mut rooms: Vec<Room> = Vec::new();
        let mut room_of = Vec::new();
        for (host, place) in (0..).zip(hosts) {
            room_of.push(place.map(|(las, groups)| {
                let room = *index
                    .entry((las, groups))
                    .or_insert_with_key(|(las, groups)| {
                        rooms.push(Room {
                            las: las.clone(),
                            groups: *groups,
                            hosts: Vec::new(),
                        });
                        u32::try_from(rooms.len() - 1).unwrap_or(u32::MAX)
                    });
                rooms[room as usize].hosts.push(host);
                room
            }));
        }
        Self { rooms, room_of }
    }

    /// Rooms with these numbers of hosts, each its own segment of one pod, with one rail.
    #[must_use]
    pub fn flat(sizes: &[u32]) -> Self {
        let hosts = (0..)
            .zip(sizes)
            .flat_map(|(room, size)| (0..*size).map(move |_| Some((vec![room], [0, 0, room]))));
        Self::from_hosts(hosts)
    }

    /// All rooms.
    #[must_use]
    pub fn rooms(&self) -> &[Room] {
        &self.rooms
    }

    /// The room of a host, if it can be used.
    #[must_use]
    pub fn room_of(&self, host: u32) -> Option<&Room> {
        let room = self.room_index(host)?;
        self.rooms.get(room)
    }

    /// Position of a host's room among the rooms.
    #[must_use]
    pub fn room_index(&self, host: u32) -> Option<usize> {
        self.room_of
            .get(host as usize)
            .copied()
            .flatten()
            .map(|r| r as usize)
    }

    /// Number of hosts that can be used.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.rooms.iter().map(|r| r.hosts.len()).sum()
    }
}

/// Why hosts can't be taken or drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeError {
    /// Somebody has it.
    #[error("host {} is held by job {holder}", .host.0)]
    Held {
        /// The host.
        host: HostId,
        /// The job that holds it.
        holder: u32,
    },
    /// It is drained.
    #[error("host {} is drained", .host.0)]
    Drained {
        /// The host.
        host: HostId,
    },
    /// There is no such host.
    #[error("there is no host {}", .host.0)]
    Unknown {
        /// The host.
        host: HostId,
    },
}

/// Ten jobs by hosts, as clusters for training see them.
const ASSUMED: [(usize, f64); 7] = [
    (1, 4.0),
    (2, 2.0),
    (4, 1.4),
    (8, 1.0),
    (16, 0.8),
    (32, 0.5),
    (64, 0.3),
];

/// Which hosts are taken, by whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    holders: Vec<Holder>,
    /// When jobs will have ended at the latest, where they say so.
    until: BTreeMap<u32, f64>,
    /// Jobs that came, by their number of hosts.
    seen: BTreeMap<usize, u32>,
}

impl Occupancy {
    /// Nothing is taken of `hosts` hosts.
    #[must_use]
    pub fn empty(hosts: usize) -> Self {
        Self {
            holders: vec![Holder::Free; hosts],
            until: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Who has `host`; drained if there is no such host.
    #[must_use]
    pub fn holder(&self, host: u32) -> Holder {
        self.holders
            .get(host as usize)
            .copied()
            .unwrap_or(Holder::Drained)
    }

    /// Gives all of `hosts` to `job`, or none.
    ///
    /// # Errors
    /// One of them is not free, or is named twice.
    pub fn take(&mut self, job: u32, hosts: &[u32]) -> Result<(), TakeError> {
        for (done, host) in hosts.iter().enumerate() {
            let id = HostId(*host);
            let error = match self.holders.get_mut(*host as usize) {
                Some(holder @ Holder::Free) => {
                    *holder = Holder::Job(job);
                    continue;
                }
                Some(Holder::Job(holder)) => TakeError::Held {
                    host: id,
                    holder: *holder,
                },
                Some(Holder::Drained) => TakeError::Drained { host: id },
                None => TakeError::Unknown { host: id },
            };
            for taken in &hosts[..done] {
                self.holders[*taken as usize] = Holder::Free;
            }
            return Err(error);
        }
        let seen = self.seen.entry(hosts.len()).or_default();
        *seen = seen.saturating_add(1);
        Ok(())
    }

    /// Moves a job that runs from some hosts to others, which may be among them.
    ///
    /// # Errors
    /// One of the new ones is not free; then the job holds none any more.
    pub fn relocate(&mut self, job: u32, from: &[u32], to: &[u32]) -> Result<(), TakeError> {
        let until = self.until.get(&job).copied();
        self.release(job, from);
        self.take_until(job, to, until)?;
        if let Some(seen) = self.seen.get_mut(&to.len()) {
            *seen = seen.saturating_sub(1);
        }
        Ok(())
    }

    /// Sizes of jobs in hosts and how often they come, as far as known: of the jobs seen, and of ten that are
    /// assumed before any is.
    #[must_use]
    pub fn sizes(&self) -> Vec<(usize, f64)> {
        let mut sizes: BTreeMap<usize, f64> = ASSUMED.into_iter().collect();
        for (size, seen) in &self.seen {
            *sizes.entry(*size).or_default() += f64::from(*seen);
        }
        let all: f64 = sizes.values().sum();
        sizes.into_iter().map(|(size, n)| (size, n / all)).collect()
    }

    /// Gives all of `hosts` to `job`, which will have ended by `until`, or none. The unit of time and its
    /// zero are the caller's.
    ///
    /// # Errors
    /// One of them is not free, or is named twice.
    pub fn take_until(
        &mut self,
        job: u32,
        hosts: &[u32],
        until: Option<f64>,
    ) -> Result<(), TakeError> {
        self.take(job, hosts)?;
        if let Some(until) = until {
            self.until.insert(job, until);
        }
        Ok(())
    }

    /// Takes a free host out of use.
    ///
    /// # Errors
    /// A job holds it, or there is no such host.
    pub fn drain(&mut self, host: u32) -> Result<(), TakeError> {
        let id = HostId(host);
        match self.holders.get_mut(host as usize) {
            Some(Holder::Job(holder)) => Err(TakeError::Held {
                host: id,
                holder: *holder,
            }),
            Some(holder) => {
                *holder = Holder::Drained;
                Ok(())
            }
            None => Err(TakeError::Unknown { host: id }),
        }
    }

    /// The job has ended: frees `hosts`, those of them that it holds.
    pub fn release(&mut self, job: u32, hosts: &[u32]) {
        self.until.remove(&job);
        for host in hosts {
            if let Some(holder) = self.holders.get_mut(*host as usize)
                && *holder == Holder::Job(job)
            {
                *holder = Holder::Free;
            }
        }
    }

    /// Mean time from `now` until the jobs that say when they end will have ended; `None` if none does.
    #[must_use]
    pub fn mean_left(&self, now: f64) -> Option<f64> {
        let sum: f64 = self
            .until
            .values()
            .map(|until| (until - now).max(0.0))
            .sum();
        (!self.until.is_empty()).then(|| sum / self.until.len() as f64)
    }

    /// What each room of `inventory` has to offer, rooms without a free host left out.
    #[must_use]
    pub fn spots<'a>(&self, inventory: &'a Inventory) -> Vec<Spot<'a>> {
        let mut spots = self.all_spots(inventory);
        spots.retain(|spot| !spot.free.is_empty());
        spots
    }

    /// The same of every room, by its number.
    #[must_use]
    pub(super) fn all_spots<'a>(&self, inventory: &'a Inventory) -> Vec<Spot<'a>> {
        inventory.rooms.iter().map(|room| self.spot(room)).collect()
    }

    /// How much of `inventory` is taken.
    #[must_use]
    pub fn usage(&self, inventory: &Inventory) -> Usage {
        let mut usage = Usage::default();
        for host in inventory.rooms.iter().flat_map(|r| &r.hosts) {
            match self.holder(*host) {
                Holder::Free => usage.free += 1,
                Holder::Job(_) => usage.taken += 1,
                Holder::Drained => usage.drained += 1,
            }
        }
        usage
    }

    fn spot<'a>(&self, room: &'a Room) -> Spot<'a> {
        let (mut free, mut drained) = (Vec::new(), 0);
        let mut jobs: Vec<(u32, u32)> = Vec::new();
        for host in &room.hosts {
            match self.holder(*host) {
                Holder::Free => free.push(*host),
                Holder::Drained => drained += 1,
                Holder::Job(job) => match jobs.iter_mut().find(|(other, _)| *other == job) {
                    Some((_, hosts)) => *hosts += 1,
                    None => jobs.push((job, 1)),
                },
            }
        }
        let piece = |(job, hosts)| Piece {
            job,
            hosts,
            until: self.until.get(&job).copied(),
        };
        let mut pieces: Vec<Piece> = jobs.into_iter().map(piece).collect();
        pieces.sort_by(Piece::order);
        Spot {
            room,
            free,
            size: room.hosts.len() - drained,
            pieces,
        }
    }
}

/// Hosts by what becomes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Free hosts.
    pub free: usize,
    /// Hosts that jobs hold.
    pub taken: usize,
    /// Hosts out of use.
    pub drained: usize,
}

impl Usage {
    /// Share of the hosts in use that jobs hold; 0 if there are none.
    #[must_use]
    pub fn occupied(&self) -> f64 {
        self.taken as f64 / (self.taken + self.free).max(1) as f64
    }
}

/// What a job that runs has of a room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The job, by its number.
    pub job: u32,
    /// Hosts.
    pub hosts: u32,
    /// When it will have ended at the latest, if it says so.
    pub until: Option<f64>,
}

impl Piece {
    /// By hosts, then by end.
    #[must_use]
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        let key = |p: &Self| p.until.unwrap_or(f64::NEG_INFINITY);
        self.hosts
            .cmp(&other.hosts)
            .then(key(self).total_cmp(&key(other)))
    }
}

/// What a room has to offer.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot<'a> {
    /// The room.
    pub room: &'a Room,
    /// Its free hosts, in the topology's order; at least one.
    pub free: Vec<u32>,
    /// Hosts that are not drained.
    pub size: usize,
    /// What each job that runs here has here, smallest first.
    pub pieces: Vec<Piece>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn hosts_are_taken_whole_or_not_at_all() {
        let mut occupancy = Occupancy::empty(4);
        occupancy.take(7, &[0, 2]).unwrap();
        let error = occupancy.take(8, &[1, 2]).unwrap_err();
        assert_eq!(
            error,
            TakeError::Held {
                host: HostId(2),
                holder: 7
            }
        );
        assert_eq!(occupancy.holder(1), Holder::Free);
        assert!(occupancy.take(8, &[1, 1]).is_err());
        assert!(occupancy.take(8, &[4]).is_err());
        occupancy.drain(1).unwrap();
        assert!(occupancy.take(8, &[1]).is_err());
        assert!(occupancy.drain(0).is_err());
        occupancy.release(8, &[0]);
        assert_eq!(occupancy.holder(0), Holder::Job(7));
        occupancy.release(7, &[0, 2]);
        assert_eq!(occupancy.holder(2), Holder::Free);
    }

    #[test]
    fn sizes_of_jobs_are_learnt_and_a_move_is_no_new_job() {
        let mut occupancy = Occupancy::empty(30);
        let share = |occupancy: &Occupancy, size| {
            let sizes = occupancy.sizes();
            assert!((sizes.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
            sizes.iter().find(|(s, _)| *s == size).map_or(0.0, |s| s.1)
        };
        assert!(share(&occupancy, 3).abs() < 1e-12);
        for job in 0..10 {
            occupancy
                .take_until(job, &[3 * job, 3 * job + 1, 3 * job + 2], Some(9.0))
                .unwrap();
            if job > 0 {
                occupancy.release(job, &[3 * job, 3 * job + 1, 3 * job + 2]);
            }
        }
        assert!((share(&occupancy, 3) - 0.5).abs() < 1e-9);
        occupancy.relocate(0, &[0, 1, 2], &[1, 2, 3]).unwrap();
        assert!((share(&occupancy, 3) - 0.5).abs() < 1e-9);
        assert_eq!(occupancy.holder(0), Holder::Free);
        assert_eq!(occupancy.holder(3), Holder::Job(0));
        assert_eq!(occupancy.mean_left(4.0), Some(5.0));
    }

    #[test]
    fn a_spot_knows_who_shares_the_room() {
        let inventory = Inventory::flat(&[3, 5, 1]);
        let mut occupancy = Occupancy::empty(9);
        occupancy.take(1, &[3, 4]).unwrap();
        occupancy.take(2, &[5, 8]).unwrap();
        occupancy.drain(0).unwrap();
        let spots = occupancy.spots(&inventory);
        assert_eq!(spots.len(), 2);
        assert_eq!((spots[0].size, &spots[0].free), (2, &vec![1, 2]));
        let pieces: Vec<u32> = spots[1].pieces.iter().map(|p| p.hosts).collect();
        assert_eq!((pieces, &spots[1].free), (vec![1, 2], &vec![6, 7]));
    }

    #[test]
    fn hosts_with_too_few_rails_have_no_room() {
        let hosts = [Some((vec![0, 1], [0; 3])), None, Some((vec![0, 1], [0; 3]))];
        let inventory = Inventory::from_hosts(hosts);
        assert_eq!((inventory.rooms().len(), inventory.hosts()), (1, 2));
        assert!(inventory.room_of(1).is_none());
    }
}

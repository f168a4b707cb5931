//! Running jobs that would be better off elsewhere, or would make room where it is worth more.

use super::{Ask, Drops, Search};
use crate::placement::inventory::Spot;

/// Crossings that moving one host has to save, over what is left of its job's run: below it a move is not worth
/// its checkpoint and restart. Chosen on simulated churn: cheaper moves hardly save more, dearer ones save less.
pub const MOVE_PRICE: f64 = 0.06;

/// A job that runs and may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resident<'b> {
    /// Its number in the occupancy.
    pub job: u32,
    /// Its hosts.
    pub hosts: &'b [u32],
    /// How long it runs yet at most, if it says so.
    pub left: Option<f64>,
    /// Part of its traffic that is still to come.
    pub share: f64,
}

/// Another place for a running job. None of the hosts that it gets is taken by anyone else, so that it can
/// start there before it stops here.
#[derive(Clone, Debug, PartialEq)]
pub struct Relocation {
    /// The job.
    pub job: u32,
    /// All its hosts then.
    pub hosts: Vec<u32>,
    /// Those of them that it does not have now.
    pub moved: usize,
    /// What it saves in crossings, its own and later jobs', less the price of the hosts moved.
    pub saved: f64,
}

/// The relocation of one of `residents` that saves the most for each host moved, of those that move at most
/// `most` hosts and save more than `price` for each; `None` if there is none.
pub fn best_relocation<'b>(
    search: &mut Search<'_>,
    residents: impl IntoIterator<Item = Resident<'b>>,
    price: f64,
    most: usize,
) -> Option<Relocation> {
    let per_host = |r: &Relocation| r.saved / r.moved as f64;
    residents
        .into_iter()
        .filter_map(|resident| search.relocate(&resident, price))
        .filter(|relocation| relocation.moved <= most)
        .max_by(|a, b| per_host(a).total_cmp(&per_host(b)))
}

/// What lifting a job off the fabric changed.
struct Lifted<'a> {
    /// Room, what it was, and hosts that the job has there.
    rooms: Vec<(usize, Spot<'a>, usize)>,
    told: Vec<Drops>,
    blind: Vec<Drops>,
}

impl<'a> Search<'a> {
    /// A better place for a job that runs, if there is one that saves more than `price` crossings for each
    /// host moved.
    pub fn relocate(&mut self, resident: &Resident<'_>, price: f64) -> Option<Relocation> {
        self.prices(resident.left);
        let lifted = self.lift(resident);
        let found = self.elsewhere(resident, &lifted, price);
        self.put_back(lifted);
        found
    }

    fn elsewhere(
        &self,
        resident: &Resident<'_>,
        lifted: &Lifted<'_>,
        price: f64,
    ) -> Option<Relocation> {
        let wanted = resident.hosts.len();
        let mut ask = self.ask(wanted, resident.left);
        ask.per_room *= resident.share;
        ask.sends *= resident.share;
        let take = lifted.rooms.iter().map(|(room, _, hosts)| (*room, *hosts));
        let here = self.cost(&self.judge(take.collect(), &ask), &ask);
        charge(&mut ask, lifted, price);
        let found = self.best(&ask)?;
        let saved = here - self.cost(&found, &ask);
        let moved = found.take.iter().map(|(room, hosts)| {
            let before = lifted.rooms.iter().find(|(r, _, _)| r == room);
            hosts.saturating_sub(before.map_or(0, |(_, _, had)| *had))
        });
        let moved = moved.sum();
        (moved > 0 && saved > 1e-6).then_some(Relocation {
            job: resident.job,
            hosts: found.hosts,
            moved,
            saved,
        })
    }

    /// As if the job were not there. Its own hosts become the first of the free ones of their rooms.
    fn lift(&mut self, resident: &Resident<'_>) -> Lifted<'a> {
        let mut hosts: Vec<(usize, u32)> = resident
            .hosts
            .iter()
            .filter_map(|host| Some((self.inventory.room_index(*host)?, *host)))
            .collect();
        hosts.sort_unstable();
        let mut lifted = Lifted {
            rooms: Vec::new(),
            told: Vec::new(),
            blind: Vec::new(),
        };
        for own in hosts.chunk_by(|a, b| a.0 == b.0) {
            let Some((room, _)) = own.first() else {
                continue;
            };
            let spot = &mut self.spots[*room];
            lifted.rooms.push((*room, spot.clone(), own.len()));
            spot.free.splice(0..0, own.iter().map(|(_, host)| *host));
            spot.pieces.retain(|piece| piece.job != resident.job);
            for (free, node) in self.levels.free.iter_mut().zip(&self.levels.node) {
                free[node[*room]] += own.len();
            }
            for (cell, saved) in [
                (&mut self.told, &mut lifted.told),
                (&mut self.blind, &mut lifted.blind),
            ] {
                if let Some(prices) = cell.get_mut() {
                    let drops = prices.worth.drops(&self.spots[*room]);
                    saved.push(std::mem::replace(&mut prices.drops[*room], drops));
                }
            }
        }
        lifted
    }

    fn put_back(&mut self, lifted: Lifted<'a>) {
        for (cell, saved) in [
            (&mut self.told, lifted.told),
            (&mut self.blind, lifted.blind),
        ] {
            if let Some(prices) = cell.get_mut() {
                for ((room, _, _), drops) in lifted.rooms.iter().zip(saved) {
                    prices.drops[*room] = drops;
                }
            }
        }
        for (room, spot, hosts) in lifted.rooms {
            self.spots[room] = spot;
            for (free, node) in self.levels.free.iter_mut().zip(&self.levels.node) {
                free[node[room]] -= hosts;
            }
        }
    }
}

/// Every host beyond those that the job has in a room costs `price`.
fn charge(ask: &mut Ask, lifted: &Lifted<'_>, price: f64) {
    let mut own = lifted.rooms.iter().peekable();
    for (room, losses) in ask.losses.iter_mut().enumerate() {
        let had = own
            .next_if(|(r, _, _)| *r == room)
            .map_or(0, |(_, _, had)| *had);
        for (more, lost) in losses.iter_mut().skip(had).enumerate() {
            *lost += price * more as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::placement::{Costs, Cut, Holder, Inventory, Occupancy};
    use proptest::prelude::*;

    fn resident(job: u32, hosts: &[u32]) -> Resident<'_> {
        Resident {
            job,
            hosts,
            left: None,
            share: 1.0,
        }
    }

    #[test]
    fn a_job_in_two_rooms_comes_together_and_keeps_the_hosts_that_it_can() {
        let inventory = Inventory::flat(&[4, 4]);
        let mut occupancy = Occupancy::empty(8);
        occupancy.take(1, &[0, 1, 2, 4]).unwrap();
        let mut search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
        let found = search.relocate(&resident(1, &[0, 1, 2, 4]), MOVE_PRICE);
        let found = found.unwrap();
        assert_eq!((found.moved, found.hosts), (1, vec![0, 1, 2, 3]));
        assert!(
            search.relocate(&resident(1, &[0, 1, 2, 4]), 5.0).is_none(),
            "not at that price"
        );
    }

    #[test]
    fn a_small_job_makes_way_in_a_large_room() {
        let inventory = Inventory::flat(&[8, 2, 2]);
        let mut occupancy = Occupancy::empty(12);
        occupancy.take(1, &[0]).unwrap();
        occupancy.take(2, &[8]).unwrap();
        let mut search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
        let all = [resident(1, &[0]), resident(2, &[8])];
        let best = best_relocation(&mut search, all, MOVE_PRICE, 1).unwrap();
        assert_eq!((best.job, best.hosts), (1, vec![9]));
        assert!(best_relocation(&mut search, all, MOVE_PRICE, 0).is_none());
    }

    proptest! {
        /// Whatever runs: a relocation is to free hosts or the job's own, crosses no more than its price
        /// allows, and looking for one changes nothing.
        #[test]
        fn looking_for_a_better_place_changes_nothing(
            sizes in proptest::collection::vec(1u32..9, 2..20),
            jobs in proptest::collection::vec((1usize..20, 0u64..1000), 1..12),
        ) {
            let inventory = Inventory::flat(&sizes);
            let mut occupancy = Occupancy::empty(inventory.hosts());
            let mut running: Vec<(u32, Vec<u32>)> = Vec::new();
            for (job, (wanted, seed)) in (0..).zip(&jobs) {
                let policy = crate::placement::Policy::Random;
                if let Some(hosts) = policy.choose(&inventory, &occupancy, *wanted, *seed) {
                    occupancy.take_until(job, &hosts, Some(1.0 + *seed as f64)).unwrap();
                    running.push((job, hosts));
                }
            }
            let mut search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
            let place = |search: &Search<'_>| (search.place(3, Some(2.0)), search.place(3, None));
            let before = place(&search);
            for (job, hosts) in &running {
                for left in [None, Some(2.0)] {
                    let resident = Resident { left, ..resident(*job, hosts) };
                    let Some(found) = search.relocate(&resident, MOVE_PRICE) else { continue };
                    let own = |h: &u32| hosts.contains(h) || occupancy.holder(*h) == Holder::Free;
                    prop_assert!(found.hosts.iter().all(own));
                    let mut distinct = found.hosts.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    prop_assert_eq!(distinct.len(), hosts.len());
                    let new = found.hosts.iter().filter(|h| !hosts.contains(h)).count();
                    prop_assert_eq!(new, found.moved);
                    let mut after = occupancy.clone();
                    after.release(*job, hosts);
                    let bound = Cut::bound(&inventory, &after, hosts.len()).unwrap();
                    let cut = Cut::of(&inventory, &found.hosts);
                    prop_assert!(cut.ring_share() >= bound.ring_share() - 1e-12);
                    prop_assert_eq!(place(&search), before.clone());
                }
            }
        }
    }
}

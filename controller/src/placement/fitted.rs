//! Hosts for a job of which the bytes of each dimension are known.
//!
//! [`Search`] looks for the hosts that a ring over all of them crosses least with, and that later jobs miss
//! least. A job of several dimensions may be better off on other numbers of hosts under its leaves: whole tensor
//! groups, whole stages. What [`Boundaries`](super::least) says is best is tried beside it, and the better seats
//! win.

use super::host_groups::host_groups;
use super::inventory::{Holder, Inventory, Occupancy};
use super::least::{Boundaries, least_crossing};
use super::search::{Costs, Search};
use super::seats::{Seating, seat};
use crate::workload::Workload;
use std::cmp::Reverse;

/// Hosts and seats for a job at time `now`, that runs for at most `limit`, if it says so; `None` if not as many
/// hosts are free.
#[must_use]
pub fn place_workload(
    workload: &Workload,
    inventory: &Inventory,
    occupancy: &Occupancy,
    costs: Costs,
    now: f64,
    limit: Option<f64>,
) -> Option<Seating> {
    let free = |host: u32| occupancy.holder(host) == Holder::Free;
    let bound = least_crossing(workload, inventory, free);
    let search = Search::new(inventory, occupancy, costs, now);
    let found = search.place(workload.hosts() as usize, limit)?;
    let seating = seat(workload, inventory, &found.hosts, bound, costs);
    if seating.crossing[0] <= bound {
        return Some(seating);
    }
    let others = by_boundary(workload, inventory, occupancy);
    let others = others
        .iter()
        .map(|hosts| seat(workload, inventory, hosts, bound, costs));
    let cheaper = |best: Seating, one: Seating| {
        if one.cost(costs) < best.cost(costs) {
            one
        } else {
            best
        }
    };
    Some(others.fold(seating, cheaper))
}

/// Sets of hosts whose numbers under the leaves have the least boundaries.
fn by_boundary(workload: &Workload, inventory: &Inventory, occupancy: &Occupancy) -> Vec<Vec<u32>> {
    let groups = host_groups(workload);
    let Some(boundaries) = Boundaries::new(workload, &groups) else {
        return Vec::new();
    };
    let mut spots = occupancy.spots(inventory);
    // Rooms of one pod and segment stay together, the fullest first.
    spots.sort_by_key(|spot| (spot.room.groups, Reverse(spot.free.len())));
    let sizes: Vec<usize> = spots.iter().map(|spot| spot.free.len()).collect();
    let hosts = |take: &Vec<usize>| -> Vec<u32> {
        let taken = spots.iter().zip(take);
        taken
            .flat_map(|(spot, n)| spot.free[..*n].to_vec())
            .collect()
    };
    boundaries.best_sizes(&sizes).iter().map(hosts).collect()
}

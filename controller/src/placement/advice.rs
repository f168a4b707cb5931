//! What would make room: jobs that could move, or that one could wait for.

use super::cut::Cut;
use super::inventory::{Inventory, Occupancy};
use super::search::{Costs, Search};

/// A job that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its number in the occupancy.
    pub job: u32,
    /// Its hosts.
    pub hosts: Vec<u32>,
}

/// One job that moves elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The job.
    pub job: u32,
    /// Where it would go.
    pub to: Vec<u32>,
    /// Hosts that it would leave.
    pub moved: usize,
    /// Its ring share before and after.
    pub share: [f64; 2],
    /// Ring share of the job that waits for a place, after; `None` if none does.
    pub newcomer: Option<f64>,
    /// Bytes that no longer cross, in arrays per iteration of a ring all-reduce.
    pub gain: f64,
}

fn weight(hosts: usize) -> f64 {
    2.0 * (hosts as f64 - 1.0).max(0.0)
}

/// Moves of one running job each that let a job of `wanted` hosts cross less, by what they save, at most
/// `most`. What the moved job loses is counted.
#[must_use]
pub fn moves_for(
    inventory: &Inventory,
    occupancy: &Occupancy,
    running: &[Running],
    wanted: usize,
    most: usize,
) -> Vec<Move> {
    let place = |state: &Occupancy, n: usize| {
        let search = Search::new(inventory, state, Costs::default(), 0.0);
        search.place(n, None).map(|found| found.hosts)
    };
    let share = |hosts: &[u32]| Cut::of(inventory, hosts).ring_share();
    let now = place(occupancy, wanted).map(|hosts| share(&hosts));
    let mut moves: Vec<Move> = Vec::new();
    for one in running {
        let mut state = occupancy.clone();
        state.release(one.job, &one.hosts);
        let Some(new) = place(&state, wanted) else {
            continue;
        };
        if state.take(u32::MAX, &new).is_err() {
            continue;
        }
        let Some(to) = place(&state, one.hosts.len()) else {
            continue;
        };
        let shares = [share(&one.hosts), share(&to)];
        let after = share(&new);
        let saved = now.unwrap_or(1.0) - after;
        let gain = weight(wanted) * saved + weight(one.hosts.len()) * (shares[0] - shares[1]);
        if gain > 1e-9 && saved > 1e-9 {
            moves.push(Move {
                job: one.job,
                moved: to.iter().filter(|h| !one.hosts.contains(h)).count(),
                to,
                share: shares,
                newcomer: Some(after),
                gain,
            });
        }
    }
    moves.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.moved.cmp(&b.moved)));
    moves.truncate(most);
    moves
}

/// Moves, one after the other, that make running jobs cross less: each is the one that saves most for each
/// host moved, after those before it. At most `most`.
#[must_use]
pub fn defragment(
    inventory: &Inventory,
    occupancy: &Occupancy,
    running: &[Running],
    most: usize,
) -> Vec<Move> {
    let (mut state, mut running) = (occupancy.clone(), running.to_vec());
    let mut plan = Vec::new();
    while plan.len() < most {
        let options = running
            .iter()
            .filter_map(|one| elsewhere(inventory, &state, one));
        let per_host = |m: &Move| m.gain / m.moved.max(1) as f64;
        let best = options.max_by(|a, b| per_host(a).total_cmp(&per_host(b)));
        let Some(best) = best else { break };
        if let Some(one) = running.iter_mut().find(|r| r.job == best.job) {
            state.release(one.job, &one.hosts);
            if state.take(one.job, &best.to).is_err() {
                break;
            }
            one.hosts.clone_from(&best.to);
        }
        plan.push(best);
    }
    plan
}

fn elsewhere(inventory: &Inventory, state: &Occupancy, one: &Running) -> Option<Move> {
    let before = Cut::of(inventory, &one.hosts).ring_share();
    if before == 0.0 {
        return None;
    }
    let mut state = state.clone();
    state.release(one.job, &one.hosts);
    let search = Search::new(inventory, &state, Costs::default(), 0.0);
    let to = search.place(one.hosts.len(), None)?.hosts;
    let after = Cut::of(inventory, &to).ring_share();
    let moved = to.iter().filter(|h| !one.hosts.contains(h)).count();
    (after < before - 1e-9).then(|| Move {
        job: one.job,
        to,
        moved,
        share: [before, after],
        newcomer: None,
        gain: weight(one.hosts.len()) * (before - after),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn fragmented() -> (Inventory, Occupancy, Vec<Running>) {
        let inventory = Inventory::flat(&[4, 4, 2]);
        let mut occupancy = Occupancy::empty(10);
        // A job of one host in each of the large rooms.
        let running = vec![
            Running {
                job: 1,
                hosts: vec![0],
            },
            Running {
                job: 2,
                hosts: vec![4],
            },
        ];
        for one in &running {
            occupancy.take(one.job, &one.hosts).unwrap();
        }
        (inventory, occupancy, running)
    }

    #[test]
    fn moving_a_small_job_makes_a_room_whole() {
        let (inventory, occupancy, running) = fragmented();
        let moves = moves_for(&inventory, &occupancy, &running, 4, 5);
        assert_eq!(moves.len(), 2);
        assert_eq!(moves[0].newcomer, Some(0.0));
        assert_eq!((moves[0].moved, moves[0].to.clone()), (1, vec![8]));
        assert!(moves_for(&inventory, &occupancy, &running, 3, 5).is_empty());
    }

    #[test]
    fn a_job_that_is_split_comes_together_when_there_is_room() {
        let (inventory, mut occupancy, mut running) = fragmented();
        occupancy.take(3, &[3, 8]).unwrap();
        running.push(Running {
            job: 3,
            hosts: vec![3, 8],
        });
        let plan = defragment(&inventory, &occupancy, &running, 10);
        assert_eq!(plan.len(), 1);
        assert_eq!((plan[0].job, plan[0].share), (3, [1.0, 0.0]));
    }
}

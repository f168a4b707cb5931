//! What free hosts are worth to jobs that have not come yet.
//!
//! A room with many free hosts can hold a job whole, or a large part of one; many rooms with a few each
//! make every later job cross. So a room's worth grows faster than its free hosts: with `f` hosts free
//! out of a largest room of `m`, `(f / m)^e` with `e > 1`. Jobs that run here leave some day, each on its
//! own, so the same is asked for what will be free some time ahead: a host beside a job that fills the rest
//! of a large room is worth keeping, though nobody wants it now. Jobs that say when they will have ended
//! (a time limit) make that a fact instead of a guess.
//!
//! Which holes are short depends on what else is free, and on which sizes of jobs come: one room of eight less
//! hurts if it is the last and jobs of eight are frequent. So what the next job would cross on all holes, now and
//! at times ahead, is counted too, over the sizes of the jobs seen so far.
//!
//! The exponents and scales were fitted on simulated churn (`meridian simulate churn`) over random fabrics and are
//! checked on other seeds and fabrics; `docs/reference-placement.md` has the figures.

use super::inventory::Spot;

/// One way to look at a room: at some time ahead, what is free then is worth
/// `scale * (free / largest)^exponent`, in crossings of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Worth of the largest room when it is free.
    pub scale: f64,
    /// How much more a large room is worth than small ones with as many hosts.
    pub exponent: f64,
    /// How far ahead, in mean times that running jobs have left. A job that has `left` to run at most has
    /// left by then with probability `(ahead / left)^3`, as limits are overstated; one that does not say
    /// with probability `1 - exp(-ahead)`.
    pub ahead: f64,
}

/// How worth is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Terms that are added up.
    pub terms: [Term; 3],
    /// What counts of the next job's crossings, at each of four times ahead ([`NEXT`]).
    pub next: [f64; 4],
    /// What it is worth, beyond the crossings it saves, that a job has one room.
    pub whole: f64,
}

/// Occupied share of the hosts up to which the calm outlook holds, and from which the crowded one does;
/// between them they are mixed.
const RANGE: [f64; 2] = [0.75, 0.92];

/// Times ahead, in mean times that jobs have left, at which the next job is looked at.
pub const NEXT: [f64; 4] = [0.0, 0.12, 0.35, 0.9];

/// Largest room for which the next job is looked at: beyond, one room more or less is no matter.
const LARGEST: usize = 32;

/// For jobs that don't say when they end, fitted at 70 % load and at 95 %.
const BLIND: [Outlook; 2] = [
    Outlook {
        terms: [
            term(0.293, 3.0, 0.0),
            term(0.42, 2.55, 0.63),
            term(0.60, 3.6, 0.97),
        ],
        next: [0.5, 0.0, 0.4, 0.0],
        whole: 0.0,
    },
    Outlook {
        terms: [
            term(0.568, 2.28, 0.0),
            term(0.01, 0.85, 0.39),
            term(0.497, 1.71, 0.475),
        ],
        next: [0.0; 4],
        whole: 0.15,
    },
];

/// For jobs that do.
const TOLD: [Outlook; 2] = [
    Outlook {
        terms: [
            term(0.556, 1.621, 0.0),
            term(0.605, 2.99, 0.328),
            term(1.097, 5.253, 1.375),
        ],
        next: [0.742, 0.36, 0.039, 0.56],
        whole: -0.256,
    },
    Outlook {
        terms: [
            term(0.203, 2.28, 0.0),
            term(1.171, 2.147, 0.421),
            term(1.01, 3.933, 1.347),
        ],
        next: [0.942, 0.755, -0.315, 0.154],
        whole: -0.172,
    },
];

const fn term(scale: f64, exponent: f64, ahead: f64) -> Term {
    Term {
        scale,
        exponent,
        ahead,
    }
}

/// When things are: now, and the unit in which time is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Now.
    pub now: f64,
    /// Mean time that running jobs have left.
    pub mean_left: f64,
}

/// Worth of free hosts, by number.
#[derive(Clone, Debug)]
pub struct Worth {
    /// How far ahead, and worth by number of free hosts.
    terms: Vec<(f64, Vec<f64>)>,
    /// How far ahead, and what the next job loses by free hosts of a room and hosts taken of them.
    next: Vec<(f64, Vec<Vec<f64>>)>,
    /// What counts of that, by [`NEXT`].
    next_counts: [f64; 4],
    largest: usize,
    whole: f64,
    times: Option<Times>,
}

/// What hosts of one spot are worth, term by term, if whoever takes them stays for ever.
#[derive(Clone, Debug, Default)]
pub struct Drops {
    /// By term, then by hosts taken, from none to all that are free.
    of: Vec<f64>,
    free: usize,
}

impl Worth {
    /// For a fabric of which the share `occupied` is taken, and whose largest room has `largest` hosts. With
    /// `times`, jobs that say when they end are believed.
    #[must_use]
    pub fn new(occupied: f64, largest: usize, times: Option<Times>) -> Self {
        let [calm, crowded] = if times.is_some() { TOLD } else { BLIND };
        let [low, high] = RANGE;
        let mixed = ((occupied - low) / (high - low)).clamp(0.0, 1.0);
        let parts = [(1.0 - mixed, calm), (mixed, crowded)];
        let unit = largest.max(1) as f64;
        let terms = parts
            .iter()
            .filter(|(part, _)| *part > 0.0)
            .flat_map(|(part, outlook)| {
                outlook.terms.iter().map(move |term| {
                    let worth =
                        |f: usize| part * term.scale * (f as f64 / unit).powf(term.exponent);
                    (term.ahead, (0..=largest).map(worth).collect())
                })
            });
        Self {
            terms: terms.collect(),
            next: Vec::new(),
            next_counts: std::array::from_fn(|at| {
                parts.iter().map(|(part, o)| part * o.next[at]).sum()
            }),
            largest,
            whole: parts
                .iter()
                .map(|(part, outlook)| part * outlook.whole)
                .sum(),
            times,
        }
    }

    /// Looks at the next job, too: `spots` are all rooms, `sizes` the sizes that jobs have and how often.
    #[must_use]
    pub fn expecting(mut self, spots: &[Spot<'_>], sizes: &[(usize, f64)]) -> Self {
        if self.largest > LARGEST {
            return self;
        }
        for (ahead, counts) in NEXT.into_iter().zip(self.next_counts) {
            if counts == 0.0 {
                continue;
            }
            let mut holes = vec![0.0; self.largest + 1];
            for spot in spots {
                let chance = self.free_later(spot, ahead);
                holes.iter_mut().zip(&chance).for_each(|(h, c)| *h += c);
            }
            let mut lost = marginal(&holes, sizes);
            lost.iter_mut().flatten().for_each(|lost| *lost *= counts);
            self.next.push((ahead, lost));
        }
        self
    }

    /// Worth of a job being whole in one room, in crossings.
    #[must_use]
    pub fn whole(&self) -> f64 {
        self.whole
    }

    /// What taking hosts of `spot` loses, before it is known for how long.
    #[must_use]
    pub fn drops(&self, spot: &Spot<'_>) -> Drops {
        let free = spot.free.len();
        let mut of = vec![0.0; (self.terms.len() + self.next.len()) * (free + 1)];
        if free > 0 {
            let (terms, next) = of.split_at_mut(self.terms.len() * (free + 1));
            for ((ahead, worth), of) in self.terms.iter().zip(terms.chunks_mut(free + 1)) {
                let chance = self.free_later(spot, *ahead);
                for (took, drop) in of.iter_mut().enumerate().skip(1) {
                    let likely = chance.iter().zip(worth).skip(took);
                    *drop = likely
                        .zip(worth)
                        .map(|((p, before), after)| p * (before - after))
                        .sum();
                }
            }
            for ((ahead, lost), of) in self.next.iter().zip(next.chunks_mut(free + 1)) {
                let chance = self.free_later(spot, *ahead);
                for (took, drop) in of.iter_mut().enumerate().skip(1) {
                    let likely = chance.iter().zip(lost).skip(took);
                    *drop = likely.map(|(p, lost)| p * lost[took]).sum();
                }
            }
        }
        Drops { of, free }
    }

    /// For each term, the probability that a job that takes at most `limit` is still there by then: only
    /// so does it make a difference.
    #[must_use]
    pub fn stays(&self, limit: Option<f64>) -> Vec<f64> {
        let stays = |ahead: f64| match (self.times, limit) {
            (Some(times), Some(limit)) => 1.0 - gone(ahead * times.mean_left, limit),
            _ => (-ahead).exp(),
        };
        let terms = self.terms.iter().map(|(ahead, _)| *ahead);
        let next = self.next.iter().map(|(ahead, _)| *ahead);
        terms.chain(next).map(stays).collect()
    }

    /// Distribution of the free hosts of a room some time ahead.
    fn free_later(&self, spot: &Spot<'_>, ahead: f64) -> Vec<f64> {
        let mut chance = vec![0.0; spot.size.max(spot.free.len()) + 1];
        chance[spot.free.len()] = 1.0;
        for piece in &spot.pieces {
            let gone = match (self.times, piece.until) {
                (Some(times), Some(until)) => gone(ahead * times.mean_left, until - times.now),
                _ => 1.0 - (-ahead).exp(),
            };
            leave(&mut chance, piece.hosts as usize, gone);
        }
        chance
    }
}

impl Drops {
    /// What is lost when a job takes `1..=most` hosts: position `t` is for `t` hosts. `stays` is
    /// [`Worth::stays`] of the job.
    #[must_use]
    pub fn losses(&self, stays: &[f64], most: usize) -> Vec<f64> {
        let mut lost = vec![0.0; most.min(self.free) + 1];
        for (stays, drops) in stays.iter().zip(self.of.chunks(self.free + 1)) {
            for (lost, drop) in lost.iter_mut().zip(drops) {
                *lost += stays * drop;
            }
        }
        lost
    }
}

/// What the next job crosses more, in arrays, if of one room with `f` hosts free `t` are taken: position `t` of
/// position `f`. `holes` is the expected number of rooms by free hosts.
fn marginal(holes: &[f64], sizes: &[(usize, f64)]) -> Vec<Vec<f64>> {
    let before = expected(holes, sizes);
    let mut changed = holes.to_vec();
    (0..holes.len())
        .map(|free| {
            // Where less than one such room is expected, the change is that of the part expected.
            let part = holes[free].min(1.0);
            let mut lost = vec![0.0; free + 1];
            for (took, lost) in lost.iter_mut().enumerate().skip(1) {
                if part > 1e-9 {
                    changed[free] -= part;
                    changed[free - took] += part;
                    *lost = (expected(&changed, sizes) - before) / part;
                    changed[free] += part;
                    changed[free - took] -= part;
                }
            }
            lost
        })
        .collect()
}

/// What the next job crosses, in arrays: over the largest holes, unless it fits one.
fn expected(holes: &[f64], sizes: &[(usize, f64)]) -> f64 {
    let one = |(size, share): &(usize, f64)| {
        let hosts = *size as f64;
        let fits: f64 = holes.iter().skip(*size).sum();
        let (mut left, mut rooms) = (hosts, 0.0);
        for (free, count) in holes.iter().enumerate().skip(1).rev() {
            let has = count * free as f64;
            if has >= left {
                rooms += left / free as f64;
                left = 0.0;
                break;
            }
            rooms += count;
            left -= has;
        }
        share * 2.0 * (hosts - 1.0) / hosts * (-fits).exp() * f64::max(rooms + left, 2.0)
    };
    sizes.iter().filter(|(size, _)| *size > 1).map(one).sum()
}

/// Probability that a job with `left` to run at most has ended after `ahead`. Few run to their limit.
fn gone(ahead: f64, left: f64) -> f64 {
    if ahead <= 0.0 {
        0.0
    } else if left <= ahead {
        1.0
    } else {
        (ahead / left).powi(3)
    }
}

/// A job with `piece` hosts leaves with probability `gone`.
fn leave(chance: &mut [f64], piece: usize, gone: f64) {
    if gone == 0.0 {
        return;
    }
    for f in (0..chance.len()).rev() {
        let came = if f >= piece { chance[f - piece] } else { 0.0 };
        chance[f] = chance[f] * (1.0 - gone) + came * gone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::inventory::{Inventory, Occupancy};

    #[test]
    fn what_may_become_free_adds_up_to_one() {
        let mut chance = vec![0.0; 9];
        chance[1] = 1.0;
        for piece in [1, 2, 4] {
            leave(&mut chance, piece, 0.5);
        }
        assert!((chance.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((chance[8] - 0.125).abs() < 1e-12);
        assert!((chance[1] - 0.125).abs() < 1e-12);
        assert!(
            (chance[4] - 0.125).abs() < 1e-12,
            "the jobs of one and two have left"
        );
    }

    #[test]
    fn a_host_of_a_small_room_is_cheaper_than_one_of_a_large() {
        let inventory = Inventory::flat(&[8, 3, 8]);
        let mut occupancy = Occupancy::empty(19);
        // One host is free in a room of eight whose other seven one job holds.
        let most: Vec<u32> = (12..19).collect();
        assert!(occupancy.take(1, &most).is_ok());
        let spots = occupancy.spots(&inventory);
        let worth = Worth::new(0.5, 8, None);
        let loss = |at: usize| worth.drops(&spots[at]).losses(&worth.stays(None), 1)[1];
        assert!(loss(1) < loss(0));
        assert!(loss(1) < loss(2), "the large room may be whole again");
    }

    #[test]
    fn a_short_job_may_sit_beside_one_that_stays_long() {
        let inventory = Inventory::flat(&[8, 8]);
        let mut occupancy = Occupancy::empty(16);
        let hosts = |from: u32| (from..from + 6).collect::<Vec<u32>>();
        assert!(occupancy.take_until(1, &hosts(0), Some(100.0)).is_ok());
        assert!(occupancy.take_until(2, &hosts(8), Some(1.0)).is_ok());
        let spots = occupancy.spots(&inventory);
        let times = Times {
            now: 0.0,
            mean_left: 50.0,
        };
        let worth = Worth::new(0.5, 8, Some(times));
        let loss = |limit: f64, at: usize| {
            let drops = worth.drops(&spots[at]);
            drops.losses(&worth.stays(Some(limit)), 2)[2]
        };
        assert!(
            loss(60.0, 0) < loss(60.0, 1),
            "the second room would be whole soon"
        );
        assert!(
            loss(0.5, 1) <= loss(60.0, 1),
            "a short job will have left by then"
        );
    }

    #[test]
    fn the_last_hole_that_frequent_jobs_fit_is_dear() {
        let inventory = Inventory::flat(&[8, 8, 3, 3, 3, 3, 3]);
        let mut occupancy = Occupancy::empty(31);
        let loss = |occupancy: &Occupancy, sizes: &[(usize, f64)]| {
            let spots = occupancy.spots(&inventory);
            let worth = Worth::new(0.3, 8, None).expecting(&spots, sizes);
            worth.drops(&spots[0]).losses(&worth.stays(None), 1)[1]
        };
        let eights = [(8, 1.0)];
        let two = loss(&occupancy, &eights);
        assert!(
            two > loss(&occupancy, &[(2, 1.0)]),
            "jobs of two fit elsewhere"
        );
        assert!(occupancy.take(1, &(8..16).collect::<Vec<u32>>()).is_ok());
        assert!(loss(&occupancy, &eights) > two);
    }

    #[test]
    fn losses_grow_with_what_is_taken() {
        let inventory = Inventory::flat(&[8]);
        let occupancy = Occupancy::empty(8);
        let spots = occupancy.spots(&inventory);
        let worth = Worth::new(0.8, 8, None);
        let losses = worth.drops(&spots[0]).losses(&worth.stays(None), 20);
        assert_eq!(losses.len(), 9);
        assert!(losses.windows(2).all(|w| w[0] < w[1]));
    }
}

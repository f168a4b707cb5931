//! How senders share links and how they come to their shares.
//!
//! Max-min fair is what the best senders would do at once. Two things of real ones are modelled, from their own
//! parameters:
//!
//! - **Windows.** A sender with a fixed window W sends it once per round trip, and the round trip grows with the
//!   queues on its path and on that of its acknowledgements: rate = W / (D + sum of queue delays), each queue such
//!   that its link is just full. A flow through two full links therefore gets less than one through either,
//!   and so does one whose acknowledgements wait. That is proportional fairness;
//!   marks, which come from every full link too, shape the rates of DCQCN senders alike.
//! - **Recovery.** A DCQCN sender gives way within a round trip, but climbs by timer when others leave: some
//!   steps of fast recovery, which bring it to where it was held, one additive step, and hyper steps that grow
//!   by one each. What its rate has not reached yet, nobody sends.

use super::fill::{Filler, Share, Stream};

/// How a DCQCN sender's rate climbs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Time between increases, ns.
    pub interval_ns: u64,
    /// Increases that do not raise the target.
    pub fast_steps: u32,
    /// What the next one adds to the target, bits/s.
    pub additive_bps: f64,
    /// What each after that adds, times its number, bits/s.
    pub hyper_bps: f64,
    /// A rate of this is no limit any more, bits/s.
    pub line_bps: f64,
}

/// How senders behave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transport {
    /// Queues share links among windows; `None`: max-min fair.
    pub windows: Option<Windows>,
    /// Rates climb by timer; `None`: at once.
    pub recovery: Option<Recovery>,
}

/// Equal windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// Bits that a sender may have on the way.
    pub bits: f64,
    /// Round trip without queues, s.
    pub delay_s: f64,
}

/// Who waits on a link.
#[derive(Clone, Debug, Default)]
struct Crowd {
    /// Streams, and how much of their rate it carries.
    senders: Vec<(usize, f64)>,
    /// Streams whose acknowledgements it carries.
    echoes: Vec<usize>,
}

/// Sweeps over all links after which queues stand as they are.
const SWEEPS: usize = 400;
/// Overload of a link that counts as none.
const PRECISION: f64 = 1e-5;

impl Windows {
    /// The rates of `streams` alone on the fabric, and the link that delays each most. Acknowledgements of each wait
    /// on the links of `echoes`.
    pub(super) fn shares(
        &self,
        filler: &Filler,
        streams: &[&Stream],
        echoes: &[&[u32]],
    ) -> Vec<Share> {
        let mut links: Vec<u32> = streams
            .iter()
            .flat_map(|s| s.uses.iter().map(|u| u.link))
            .collect();
        links.sort_unstable();
        links.dedup();
        let place = |link: u32| links.binary_search(&link).unwrap_or(0);
        let uses: Vec<Vec<(usize, f64)>> = streams
            .iter()
            .map(|s| {
                s.uses
                    .iter()
                    .map(|u| (place(u.link), f64::from(u.weight)))
                    .collect()
            })
            .collect();
        let mut on: Vec<Crowd> = vec![Crowd::default(); links.len()];
        for (stream, uses) in uses.iter().enumerate() {
            for (link, weight) in uses {
                on[*link].senders.push((stream, *weight));
            }
        }
        for (stream, echo) in echoes.iter().enumerate() {
            for link in echo
                .iter()
                .filter_map(|link| links.binary_search(link).ok())
            {
                on[link].echoes.push(stream);
            }
        }
        let capacity: Vec<f64> = links.iter().map(|l| filler.capacity(*l)).collect();
        let mut queue = vec![0.0; links.len()];
        let mut delay = vec![self.delay_s; streams.len()];
        for _ in 0..SWEEPS {
            let mut worst: f64 = 0.0;
            for (link, crowd) in on.iter().enumerate() {
                let over = self.settle(capacity[link], crowd, &mut queue[link], &mut delay);
                worst = worst.max(over);
            }
            if worst < PRECISION {
                break;
            }
        }
        let held = |uses: &[(usize, f64)]| {
            let most = uses
                .iter()
                .max_by(|(a, _), (b, _)| queue[*a].total_cmp(&queue[*b]));
            most.filter(|(link, _)| queue[*link] > 0.0)
                .map(|(link, _)| links[*link])
        };
        let share = |(uses, delay): (&Vec<(usize, f64)>, &f64)| match uses.is_empty() {
            true => Share::FREE,
            false => Share {
                bps: self.bits / delay,
                link: held(uses),
            },
        };
        uses.iter().zip(&delay).map(share).collect()
    }

    /// The queue delay, s, that makes one link just full, by Newton's method from the delay it has; the result is
    /// by how much it was over or under before, as a share of its rate.
    fn settle(&self, capacity: f64, crowd: &Crowd, queue: &mut f64, delay: &mut [f64]) -> f64 {
        let sum = |by: f64, delay: &[f64]| -> (f64, f64) {
            crowd
                .senders
                .iter()
                .fold((0.0, 0.0), |(load, slope), (stream, weight)| {
                    let trip = (delay[*stream] + by * weight).max(self.delay_s);
                    let rate = self.bits * weight / trip;
                    (load + rate, slope - rate * weight / trip)
                })
        };
        let (load, _) = sum(0.0, delay);
        let before = load / capacity - 1.0;
        if *queue <= 0.0 && before <= 0.0 {
            return 0.0;
        }
        let mut by = if before < 0.0 { -*queue } else { 0.0 };
        for _ in 0..50 {
            let (load, slope) = sum(by, delay);
            if load <= capacity * (1.0 + PRECISION / 10.0) {
                break;
            }
            by -= (load - capacity) / slope;
        }
        *queue += by;
        for (stream, weight) in &crowd.senders {
            delay[*stream] += by * weight;
        }
        for stream in &crowd.echoes {
            delay[*stream] += by;
        }
        if *queue > 0.0 {
            before.abs()
        } else {
            before.max(0.0)
        }
    }
}

/// The rate that one sender has climbed to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Climb {
    /// Bits/s; `f64::MAX` when it is no limit.
    pub(super) rate: f64,
    target: f64,
    increases: u32,
}

impl Climb {
    pub(super) const START: Self = Self {
        rate: f64::MAX,
        target: f64::MAX,
        increases: 0,
    };

    /// Marks hold it at `rate`.
    pub(super) fn hold(&mut self, rate: f64) {
        *self = Self {
            rate,
            target: rate,
            increases: 0,
        };
    }

    /// The timer of `law` runs out.
    pub(super) fn raise(&mut self, law: &Recovery) {
        self.increases += 1;
        let after = self.increases.saturating_sub(law.fast_steps);
        self.target += match after {
            0 => 0.0,
            1 => law.additive_bps,
            _ => law.hyper_bps * f64::from(after - 1),
        };
        self.target = self.target.min(law.line_bps);
        self.rate = f64::midpoint(self.rate, self.target);
        if self.rate > 0.999 * law.line_bps {
            *self = Self::START;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fill::Use;
    use super::super::flow::{Fabric, Run, simulate_on};
    use super::*;

    /// 8 Gb/s: a byte per ns.
    const LINK: u64 = 8_000_000_000;

    fn stream(bytes: u64, links: &[u32]) -> Stream {
        let uses = links.iter().map(|link| Use {
            link: *link,
            weight: 1.0,
        });
        Stream {
            bytes,
            uses: uses.collect(),
        }
    }

    fn windows(streams: &[Stream], capacity: &[u64]) -> Vec<f64> {
        let windows = Windows {
            bits: 8e6,
            delay_s: 1e-6,
        };
        let streams: Vec<&Stream> = streams.iter().collect();
        let shares = windows.shares(&Filler::new(capacity), &streams, &[]);
        shares.iter().map(|share| share.bps / 1e9).collect()
    }

    #[test]
    fn equal_windows_share_a_link_evenly() {
        let found = windows(&[stream(1, &[0]), stream(1, &[0])], &[LINK]);
        assert!(
            found.iter().all(|bps| (bps - 4.0).abs() < 0.01),
            "{found:?}"
        );
    }

    #[test]
    fn a_flow_through_two_full_links_gets_a_third() {
        // Proportional fairness: the long flow's price is the sum of both.
        let streams = [stream(1, &[0, 1]), stream(1, &[0]), stream(1, &[1])];
        let found = windows(&streams, &[LINK, LINK]);
        let expected = [8.0 / 3.0, 16.0 / 3.0, 16.0 / 3.0];
        for (bps, expected) in found.iter().zip(expected) {
            assert!((bps - expected).abs() < 0.05, "{found:?}");
        }
    }

    #[test]
    fn acknowledgements_that_wait_slow_their_flow() {
        let windows = Windows {
            bits: 8e6,
            delay_s: 1e-6,
        };
        // Link 1 is full of others; the first stream's acknowledgements cross it.
        let streams = [
            stream(1, &[0]),
            stream(1, &[0]),
            stream(1, &[1]),
            stream(1, &[1]),
        ];
        let streams: Vec<&Stream> = streams.iter().collect();
        let filler = Filler::new(&[LINK, LINK]);
        let shares = windows.shares(&filler, &streams, &[&[1], &[], &[], &[]]);
        assert!(shares[0].bps < 0.7 * shares[1].bps, "{shares:?}");
        let sum = shares[0].bps + shares[1].bps;
        assert!((sum / LINK as f64 - 1.0).abs() < 1e-3, "{shares:?}");
    }

    #[test]
    fn a_window_that_does_not_fill_the_path_is_the_limit() {
        let windows = Windows {
            bits: 8e3,
            delay_s: 2e-6,
        };
        let stream = stream(1, &[0]);
        let shares = windows.shares(&Filler::new(&[LINK]), &[&stream], &[]);
        assert!((shares[0].bps - 4e9).abs() < 1.0, "{shares:?}");
        assert_eq!(shares[0].link, None);
    }

    fn took(recovery: Option<Recovery>, from_nics: &[bool]) -> f64 {
        let run = Run {
            iterations: 1,
            streams: vec![stream(100_000, &[0, 2]), stream(300_000, &[1, 2])],
            ..Run::default()
        };
        let fabric = Fabric {
            capacity_bps: &[LINK, LINK, LINK],
            from_nics,
            echoes: &[],
            transport: Transport {
                windows: None,
                recovery,
            },
        };
        simulate_on(&fabric, &[run], |_| {})[0].took_ns
    }

    #[test]
    fn a_sender_that_was_held_climbs_by_timer() {
        let law = Recovery {
            interval_ns: 1_000,
            fast_steps: 2,
            additive_bps: 8e6,
            hyper_bps: 8e7,
            line_bps: 8e9,
        };
        let nics = [true, true, false];
        let at_once = took(None, &nics);
        assert!((at_once - 400_000.0).abs() < 1.0, "{at_once}");
        let climbing = took(Some(law), &nics);
        // From half the rate to all of it: ten hyper steps (1 + 2 + ... + 10 times 80 Mb/s) and the three before.
        assert!(
            climbing > at_once + 3_000.0 && climbing < at_once + 13_000.0,
            "{climbing}"
        );
    }

    #[test]
    fn what_waits_in_its_nic_is_not_marked() {
        let law = Recovery {
            interval_ns: 1_000_000,
            fast_steps: 2,
            additive_bps: 1.0,
            hyper_bps: 1.0,
            line_bps: 8e9,
        };
        let all = took(Some(law), &[true, true, true]);
        assert!((all - 400_000.0).abs() < 1.0, "{all}");
    }
}

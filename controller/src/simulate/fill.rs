//! Max-min fair rates by progressive filling.
//!
//! All streams' rates rise together; where a link is full, the streams on it stop rising, and the others go
//! on. A stream is a flow, or a set of flows that wait for each other (a ring, a tree): those have one rate
//! among them, and a link that carries three edges of a ring carries it three times.
//!
//! The level at which a link fills only rises as streams elsewhere stop, so a heap of levels with late
//! correction finds the next link to fill: `O(uses log links)` for all rates.

use super::order::At;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link that a stream uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// The link with its direction: twice the link's index, plus one for upward.
    pub link: u32,
    /// How much of the stream's rate it carries: the number of the stream's flows on it, if all are alike.
    pub weight: f32,
}

/// Flows with one rate among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Bytes that its largest flow carries.
    pub bytes: u64,
    /// Every link it uses, once.
    pub uses: Vec<Use>,
}

/// What a stream gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Its rate, bits/s.
    pub bps: f64,
    /// The full link that holds it there.
    pub link: Option<u32>,
}

impl Share {
    /// Of a stream that nothing holds.
    pub(super) const FREE: Self = Self {
        bps: f64::MAX,
        link: None,
    };
}

/// Scratch space for one fabric, so that filling a part of it costs what that part does.
#[derive(Clone, Debug)]
pub struct Filler {
    /// Bits/s by directed link.
    capacity: Vec<f64>,
    left: Vec<f64>,
    active: Vec<f64>,
    on: Vec<Vec<u32>>,
    touched: Vec<u32>,
}

impl Filler {
    /// For links of these rates in bits/s, by directed link.
    #[must_use]
    pub fn new(capacity_bps: &[u64]) -> Self {
        Self {
            capacity: capacity_bps.iter().map(|c| *c as f64).collect(),
            left: vec![0.0; capacity_bps.len()],
            active: vec![0.0; capacity_bps.len()],
            on: vec![Vec::new(); capacity_bps.len()],
            touched: Vec::new(),
        }
    }

    /// Number of directed links.
    #[must_use]
    pub fn links(&self) -> usize {
        self.capacity.len()
    }

    /// The rates in bits/s of `streams` alone on the fabric. A stream that uses no link is as fast as can
    /// be written.
    pub fn fill(&mut self, streams: &[&Stream]) -> Vec<f64> {
        let shares = self.shares(streams);
        shares.into_iter().map(|share| share.bps).collect()
    }

    /// The rates of `streams` alone on the fabric, and what holds each.
    pub fn shares(&mut self, streams: &[&Stream]) -> Vec<Share> {
        let mut shares = vec![Share::FREE; streams.len()];
        for (index, stream) in (0..).zip(streams) {
            for used in &stream.uses {
                let link = used.link as usize;
                if self.on[link].is_empty() {
                    self.touched.push(used.link);
                    self.left[link] = self.capacity[link];
                    self.active[link] = 0.0;
                }
                self.on[link].push(index);
                self.active[link] += f64::from(used.weight);
            }
        }
        let mut heap: BinaryHeap<Reverse<At<u32>>> = self
            .touched
            .iter()
            .map(|l| Reverse(self.level(*l)))
            .collect();
        let mut stopped = vec![false; streams.len()];
        while let Some(Reverse(At(level, link))) = heap.pop() {
            let now = self.level(link);
            if now.0 > level * (1.0 + 1e-12) {
                if now.0 < f64::MAX {
                    heap.push(Reverse(now));
                }
                continue;
            }
            for index in std::mem::take(&mut self.on[link as usize]) {
                if std::mem::replace(&mut stopped[index as usize], true) {
                    continue;
                }
                shares[index as usize] = Share {
                    bps: now.0,
                    link: Some(link),
                };
                for used in &streams[index as usize].uses {
                    let at = used.link as usize;
                    let weight = f64::from(used.weight);
                    self.left[at] = (self.left[at] - now.0 * weight).max(0.0);
                    self.active[at] -= weight;
                }
            }
            self.active[link as usize] = 0.0;
        }
        for link in self.touched.drain(..) {
            self.on[link as usize].clear();
        }
        shares
    }

    /// Bits/s of a directed link.
    #[must_use]
    pub fn capacity(&self, link: u32) -> f64 {
        self.capacity[link as usize]
    }

    /// Gives a directed link another rate, bits/s.
    pub fn set_capacity(&mut self, link: u32, bps: f64) {
        self.capacity[link as usize] = bps;
    }

    fn level(&self, link: u32) -> At<u32> {
        let (left, active) = (self.left[link as usize], self.active[link as usize]);
        // What rounding leaves of weights that were taken off again is nobody.
        let level = if active > 1e-6 {
            left / active
        } else {
            f64::MAX
        };
        At(level, link)
    }
}

/// The rates in bits/s of `streams` on links of these rates.
#[must_use]
pub fn rates(capacity_bps: &[u64], streams: &[Stream]) -> Vec<f64> {
    let streams: Vec<&Stream> = streams.iter().collect();
    Filler::new(capacity_bps).fill(&streams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(links: &[u32]) -> Stream {
        let uses = links.iter().map(|link| Use {
            link: *link,
            weight: 1.0,
        });
        Stream {
            bytes: 1,
            uses: uses.collect(),
        }
    }

    #[test]
    fn the_textbook_case() {
        // Three links of 10, 10 and 4: one flow over all, one on each of the first two, one on the last.
        let streams = [stream(&[0, 1, 2]), stream(&[0]), stream(&[1]), stream(&[2])];
        assert_eq!(rates(&[10, 10, 4], &streams), [2.0, 8.0, 8.0, 2.0]);
    }

    #[test]
    fn a_ring_with_two_edges_on_a_link_counts_twice() {
        let mut ring = stream(&[0, 1]);
        ring.uses[0].weight = 2.0;
        assert_eq!(rates(&[30, 100], &[ring, stream(&[0])]), [10.0, 10.0]);
    }

    proptest! {
        /// Max-min: nothing is over capacity, and every stream has a full link on which none is faster.
        #[test]
        fn every_stream_has_a_bottleneck(
            capacity in proptest::collection::vec(1u64..1000, 1..12),
            paths in proptest::collection::vec(proptest::collection::btree_set(0u32..12, 1..5), 1..40),
        ) {
            let n = capacity.len() as u32;
            let streams: Vec<Stream> = paths
                .iter()
                .map(|p| {
                    let links: std::collections::BTreeSet<u32> = p.iter().map(|l| l % n).collect();
                    stream(&links.into_iter().collect::<Vec<_>>())
                })
                .collect();
            let found = rates(&capacity, &streams);
            let sum = |link: u32| -> f64 {
                let on = streams.iter().zip(&found).filter(|(s, _)| s.uses.iter().any(|u| u.link == link));
                on.map(|(_, r)| r).sum()
            };
            for (link, c) in (0..).zip(&capacity) {
                prop_assert!(sum(link) <= *c as f64 * (1.0 + 1e-9));
            }
            for (stream, rate) in streams.iter().zip(&found) {
                let bottleneck = stream.uses.iter().any(|u| {
                    let full = sum(u.link) >= capacity[u.link as usize] as f64 * (1.0 - 1e-9);
                    let fastest = streams.iter().zip(&found)
                        .filter(|(s, _)| s.uses.iter().any(|v| v.link == u.link))
                        .all(|(_, r)| *r <= rate * (1.0 + 1e-9));
                    full && fastest
                });
                prop_assert!(bottleneck);
            }
        }
    }
}

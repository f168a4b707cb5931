//! Collectives as schedules of messages, and what a run of one amounts to.

use serde::Serialize;
use topology::NicId;

use super::flow::{FlowSpec, QueuePairNumbers, Schedule};

/// A ring: each NIC sends to the next, the last to the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The NICs in ring order; one per rank.
    pub nics: Vec<NicId>,
}

/// An all-reduce over one or several rings, each of which carries its share of the buffer.
///
/// A ring of n ranks cuts its share into n chunks. In n - 1 steps of reduce-scatter and n - 1 of all-gather every
/// rank sends one chunk to its successor: in step k the one it received in step k - 1. Chunks are cut into
/// slices that travel on their own, so that a rank passes on the beginning of a chunk while its end
/// is still arriving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingAllReduce {
    /// The rings ("channels"), usually one per rail.
    pub rings: Vec<Ring>,
    /// Size of the buffer that every rank reduces, bytes.
    pub bytes: u64,
    /// Largest slice, bytes.
    pub slice_bytes: u64,
    /// Time a rank needs between receiving a slice and sending it on, ns.
    pub overhead_ns: u64,
}

/// The share with this index when `total` is cut into `parts` that differ by one at most.
pub(super) fn share(total: u64, parts: u64, index: u64) -> u64 {
    total / parts + u64::from(index < total % parts)
}

impl RingAllReduce {
    /// An all-reduce of `bytes` with slices of 256 KiB and no time to reduce.
    #[must_use]
    pub fn new(rings: Vec<Ring>, bytes: u64) -> Self {
        Self {
            rings,
            bytes,
            slice_bytes: 256 << 10,
            overhead_ns: 0,
        }
    }

    /// Ranks of the largest ring.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.rings
            .iter()
            .map(|ring| ring.nics.len())
            .max()
            .unwrap_or(0)
    }

    /// The flows and messages: one flow per rank and ring, in that order: flow `r * ranks + i` goes from rank `i`
    /// of ring `r` to its successor. The step of a message is its step in the ring.
    #[must_use]
    pub fn schedule(&self, numbers: &mut QueuePairNumbers) -> Schedule {
        let mut schedule = Schedule::new();
        schedule.overhead_ns = self.overhead_ns;
        let rings = self.rings.len() as u64;
        for (index, ring) in self.rings.iter().enumerate() {
            let bytes = share(self.bytes, rings, index as u64);
            self.add_ring(ring, bytes, &mut schedule, numbers);
        }
        schedule
    }

    fn add_ring(
        &self,
        ring: &Ring,
        bytes: u64,
        schedule: &mut Schedule,
        numbers: &mut QueuePairNumbers,
    ) {
        let n = ring.nics.len();
        if n < 2 {
            return;
        }
        let successors = ring.nics.iter().cycle().skip(1);
        let flows: Vec<u32> = (ring.nics.iter().zip(successors))
            .map(|(src, dst)| schedule.add_flow(FlowSpec::new(*src, *dst, 0, numbers)))
            .collect();
        let chunk = |index: usize| share(bytes, n as u64, index as u64);
        let slices = chunk(0).div_ceil(self.slice_bytes.max(1)).max(1);
        let steps = 2 * (n - 1);
        // The slices that each rank sent in the step before.
        let mut previous: Vec<Vec<u32>> = Vec::new();
        for step in 0..steps {
            // In reduce-scatter rank i sends chunk i - k, in all-gather chunk i + 1 - k.
            let first = if step < n - 1 { n - step } else { 2 * n - step };
            let sent = (0..n).map(|rank| {
                let bytes = chunk((rank + first) % n);
                let from = (rank + n - 1) % n;
                (0..slices)
                    .map(|slice| {
                        let after: &[u32] = previous
                            .get(from)
                            .map_or(&[], |sent| std::slice::from_ref(&sent[slice as usize]));
                        let size = share(bytes, slices, slice);
                        schedule.add_message(flows[rank], size, step as u32, after)
                    })
                    .collect()
            });
            previous = sent.collect();
        }
    }

    /// What a run of the schedule that took `elapsed_ns` amounts to.
    #[must_use]
    pub fn performance(&self, elapsed_ns: u64, nic_bps: u64) -> Performance {
        let ranks = self.ranks() as u64;
        let mut nics: Vec<_> = self.rings.iter().flat_map(|ring| &ring.nics).collect();
        nics.sort_unstable();
        nics.dedup();
        let rank_bps = (u128::from(nic_bps) * nics.len() as u128 / u128::from(ranks.max(1))) as f64;
        let seconds = elapsed_ns as f64 / 1e9;
        let algbw_bps = if seconds > 0.0 {
            self.bytes as f64 * 8.0 / seconds
        } else {
            0.0
        };
        let busbw_bps = algbw_bps * 2.0 * ranks.saturating_sub(1) as f64 / ranks.max(1) as f64;
        Performance {
            elapsed_ns,
            algbw_bps,
            busbw_bps,
            busbw_ratio: if rank_bps > 0.0 {
                busbw_bps / rank_bps
            } else {
                0.0
            },
        }
    }
}

/// How fast a collective was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Performance {
    /// From the start to the last message received, ns.
    pub elapsed_ns: u64,
    /// Buffer size over time, bits/s.
    pub algbw_bps: f64,
    /// What every rank's NICs had to carry over time, bits/s: algbw x 2(n-1)/n.
    pub busbw_bps: f64,
    /// busbw over the rate of a rank's NICs together.
    pub busbw_ratio: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reduce(ranks: u32, rings: u32, bytes: u64, slice_bytes: u64) -> RingAllReduce {
        let ring = |r: u32| Ring {
            nics: (0..ranks).map(|i| NicId(i * rings + r)).collect(),
        };
        RingAllReduce {
            slice_bytes,
            ..RingAllReduce::new((0..rings).map(ring).collect(), bytes)
        }
    }

    #[test]
    fn busbw_counts_what_the_nics_carry() {
        let speed = reduce(8, 4, 64 << 20, 1 << 20).performance(1_000_000, 400_000_000_000);
        // 512 Mibit in 1 ms, times 14/8, of 1.6 Tb/s.
        assert!((speed.algbw_bps - 536.870_912e9).abs() < 1.0);
        assert!((speed.busbw_ratio - 0.587_202_56).abs() < 1e-6);
    }

    proptest! {
        /// Runs the schedule on paper: chunks as sets of contributions.
        #[test]
        fn every_rank_ends_with_every_contribution(
            ranks in 2u32..9, rings in 1u32..4, bytes in 0u64..5_000, slice in 1u64..2_000,
        ) {
            let reduce = reduce(ranks, rings, bytes, slice);
            let schedule = reduce.schedule(&mut QueuePairNumbers::new(1));
            let n = ranks as usize;
            prop_assert_eq!(schedule.flows().len(), n * rings as usize);
            let total: u64 = schedule.messages().iter().map(|m| m.bytes).sum();
            prop_assert_eq!(total, 2 * (u64::from(ranks) - 1) * bytes, "2(n-1)/n of the buffer per rank");
            let mut has = vec![vec![0u32; n]; n];
            for (rank, chunks) in has.iter_mut().enumerate() {
                chunks.fill(1 << rank);
            }
            for step in 0..2 * (n - 1) {
                let shift = if step < n - 1 { 0 } else { 1 };
                let k = step - shift * (n - 1);
                let sent: Vec<_> = (0..n).map(|r| ((r + shift + n - k) % n, has[r][(r + shift + n - k) % n])).collect();
                for (rank, (chunk, content)) in sent.into_iter().enumerate() {
                    has[(rank + 1) % n][chunk] |= content;
                }
            }
            prop_assert!(has.iter().flatten().all(|c| *c == (1 << n) - 1));
            // Sizes follow the chunks, and each slice waits for the same slice of its predecessor.
            for (index, message) in schedule.messages().iter().enumerate() {
                let after = schedule.after(index as u32);
                prop_assert_eq!(after.len(), usize::from(message.step > 0));
                for earlier in after {
                    let earlier = schedule.messages()[*earlier as usize];
                    prop_assert_eq!(earlier.step + 1, message.step);
                    prop_assert_eq!(earlier.bytes, message.bytes);
                    let (before, this) = (schedule.flows()[earlier.flow as usize], schedule.flows()[message.flow as usize]);
                    prop_assert_eq!(before.dst, this.src);
                }
            }
        }
    }
}

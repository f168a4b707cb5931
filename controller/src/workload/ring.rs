//! Bytes of one ring, to the byte.
//!
//! An array of `S` bytes is cut into as many chunks as the ring has members. In the reduce-scatter half
//! member `r` sends chunk `r - s` in step `s`; in the all-gather half it sends chunk `r + 1 - s`. Every
//! member therefore sends all chunks but one, twice: `2 (n - 1) / n * S` when `n` divides `S`, and the
//! exact figure below when it does not.

/// Size of piece `index` when `total` bytes are cut into `parts` pieces that differ by at most one byte;
/// the first pieces are the larger ones. Zero for an index past the end.
#[must_use]
pub fn share(total: u64, parts: u32, index: u32) -> u64 {
    if index >= parts {
        return 0;
    }
    let parts = u64::from(parts);
    total / parts + u64::from(u64::from(index) < total % parts)
}

/// One ring of a collective: an array and the members it travels round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Bytes of the array that this ring reduces.
    pub bytes: u64,
    /// Members of the ring.
    pub members: u32,
}

impl Ring {
    /// Size of chunk `index` in bytes.
    #[must_use]
    pub fn chunk(&self, index: u32) -> u64 {
        share(self.bytes, self.members, index)
    }

    /// Steps of an all-reduce: a reduce-scatter and an all-gather of `n - 1` steps each.
    #[must_use]
    pub fn steps(&self) -> u32 {
        2 * self.members.saturating_sub(1)
    }

    /// Bytes that the member at `position` sends to its successor in `step` (from 0 to `steps() - 1`).
    #[must_use]
    pub fn step_bytes(&self, position: u32, step: u32) -> u64 {
        let n = u64::from(self.members);
        if step >= self.steps() {
            return 0;
        }
        let half = self.members - 1;
        let (shift, step) = if step < half {
            (0, step)
        } else {
            (1, step - half)
        };
        let index = (u64::from(position) + shift + n - u64::from(step)) % n;
        self.chunk(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Bytes that the member at `position` sends to its successor in the whole all-reduce.
    #[must_use]
    pub fn edge_bytes(&self, position: u32) -> u64 {
        let n = self.members;
        if n < 2 {
            return 0;
        }
        // Each half leaves out one chunk: the one that the successor finishes with.
        let skipped = |ahead: u32| self.chunk((position % n + ahead) % n);
        2 * self.bytes - skipped(1) - skipped(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_members_of_a_divisible_array_send_one_and_a_half_times_it() {
        let ring = Ring {
            bytes: 4096,
            members: 4,
        };
        for position in 0..4 {
            assert_eq!(ring.edge_bytes(position), 6144);
        }
    }

    #[test]
    fn a_ring_of_one_sends_nothing() {
        let ring = Ring {
            bytes: 4096,
            members: 1,
        };
        assert_eq!(ring.edge_bytes(0), 0);
        assert_eq!(ring.steps(), 0);
        assert_eq!(ring.step_bytes(0, 0), 0);
    }

    proptest! {
        #[test]
        fn shares_sum_to_the_total(total in 0u64..1 << 40, parts in 1u32..300) {
            let sum: u64 = (0..parts).map(|i| share(total, parts, i)).sum();
            prop_assert_eq!(sum, total);
            prop_assert!(share(total, parts, 0) - share(total, parts, parts - 1) <= 1);
        }

        #[test]
        fn steps_sum_to_the_edge(bytes in 0u64..1 << 36, members in 1u32..64) {
            let ring = Ring { bytes, members };
            for position in 0..members {
                let sum: u64 = (0..ring.steps()).map(|s| ring.step_bytes(position, s)).sum();
                prop_assert_eq!(sum, ring.edge_bytes(position));
            }
        }

        /// Simulates the two halves on sets of chunks: what a member sends is what it holds, and at the
        /// end everybody holds the sum of everything.
        #[test]
        fn the_schedule_reduces_everything(members in 2u32..12) {
            let ring = Ring { bytes: u64::from(members), members };
            let n = members as usize;
            // held[m][c]: members whose share of chunk c member m has added up, as a bit set.
            let mut held: Vec<Vec<u32>> = (0..n).map(|m| vec![1 << m; n]).collect();
            for step in 0..ring.steps() {
                let half = members - 1;
                let before = held.clone();
                for m in 0..members {
                    let (shift, s) = if step < half { (0, step) } else { (1, step - half) };
                    let chunk = ((m + shift + members - s) % members) as usize;
                    let next = ((m + 1) % members) as usize;
                    held[next][chunk] |= before[m as usize][chunk];
                }
            }
            for row in &held {
                for chunk in row {
                    prop_assert_eq!(*chunk, (1u32 << members) - 1);
                }
            }
        }

        #[test]
        fn all_edges_together_carry_two_n_minus_one_arrays(bytes in 0u64..1 << 36, members in 1u32..200) {
            let ring = Ring { bytes, members };
            let sum: u64 = (0..members).map(|p| ring.edge_bytes(p)).sum();
            prop_assert_eq!(sum, 2 * u64::from(members - 1) * bytes);
        }
    }
}

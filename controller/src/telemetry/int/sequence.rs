//! How many reports were lost on their way, from their sequence numbers.

use super::report::SEQUENCE_BITS;

/// Numbers behind the newest one that are remembered, so that a late or doubled datagram is told
/// from a lost one.
const WINDOW: u32 = 64;
const MODULUS: u32 = 1 << SEQUENCE_BITS;
/// Numbers further ahead than this are taken as a restart of the sender, not as loss.
const HALF: u32 = MODULUS / 2;

/// What happened to the datagrams of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Came in, each once.
    pub received: u64,
    /// Did not come, so far.
    pub lost: u64,
    /// Came behind a later one.
    pub late: u64,
    /// Came twice.
    pub doubled: u64,
    /// Times that the numbers jumped back: the sender began anew.
    pub restarts: u64,
}

/// The numbers of one (node, part) at one collector.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    newest: Option<u32>,
    /// Bit i: the number i behind the newest one came.
    seen: u64,
    counts: Counts,
}

/// What a number says about its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// New: use it.
    New,
    /// Came before: leave it.
    Doubled,
}

impl Sequence {
    /// Takes the number of a datagram that came in.
    pub fn take(&mut self, number: u32) -> Arrival {
        let Some(newest) = self.newest else {
            self.begin(number);
            return Arrival::New;
        };
        let ahead = number.wrapping_sub(newest) % MODULUS;
        let behind = newest.wrapping_sub(number) % MODULUS;
        if (1..HALF).contains(&ahead) {
            self.counts.lost += u64::from(ahead - 1);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.newest = Some(number);
            self.counts.received += 1;
            return Arrival::New;
        }
        if behind >= WINDOW {
            self.counts.restarts += 1;
            self.begin(number);
            return Arrival::New;
        }
        let bit = 1 << behind;
        if self.seen & bit != 0 {
            self.counts.doubled += 1;
            return Arrival::Doubled;
        }
        self.seen |= bit;
        self.counts.received += 1;
        self.counts.late += 1;
        // Numbers before the first one were never counted as lost.
        self.counts.lost = self.counts.lost.saturating_sub(1);
        Arrival::New
    }

    fn begin(&mut self, number: u32) {
        self.newest = Some(number);
        self.seen = 1;
        self.counts.received += 1;
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: &[u32]) -> Counts {
        let mut sequence = Sequence::default();
        for &number in numbers {
            sequence.take(number);
        }
        sequence.counts()
    }

    #[test]
    fn in_order_nothing_is_lost_also_around_the_end() {
        let counts = after(&[MODULUS - 2, MODULUS - 1, 0, 1]);
        let expected = Counts {
            received: 4,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_gap_is_loss_until_the_late_one_comes() {
        assert_eq!(after(&[5, 8]).lost, 2);
        let counts = after(&[5, 8, 7]);
        assert_eq!((counts.lost, counts.late, counts.received), (1, 1, 3));
        let counts = after(&[5, 8, 7, 7, 6, 8]);
        assert_eq!((counts.lost, counts.late, counts.doubled), (0, 2, 2));
    }

    #[test]
    fn a_jump_back_is_a_restart_not_four_million_losses() {
        let counts = after(&[1000, 1001, 0, 1]);
        assert_eq!((counts.lost, counts.restarts, counts.received), (0, 1, 4));
    }
}

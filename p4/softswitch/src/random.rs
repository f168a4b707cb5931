//! The switch's random numbers: a small generator of known state, so that the
//! same packets get the same numbers.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Uniform in `low..=high`; the caller sees to `low <= high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        match (high - low).checked_add(1) {
            None => self.next(),
            Some(span) => {
                let wide = u128::from(self.next()) * u128::from(span);
                low + (wide >> 64) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_sequence() {
        let mut random = Random::new(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn bounds_are_inclusive_and_all_are_reached() {
        let mut random = Random::new(7);
        let mut seen = [false; 4];
        for _ in 0..200 {
            seen[(random.between(3, 6) - 3) as usize] = true;
        }
        assert_eq!(seen, [true; 4]);
        random.between(0, u64::MAX);
    }
}

//! Three-colour meters, colour-blind: two-rate (RFC 2698), or with an excess burst single-rate
//! (RFC 2697). Each counts what it gave which colour.

use crate::control::{CounterData, MeterConfig};

/// Tokens per unit of a bucket: rates are per second, times in ns.
const SCALE: u128 = 1_000_000_000;

/// One meter. Not configured, it says green to everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    buckets: Option<Box<Buckets>>,
    /// Green, yellow, red; there once the meter has been executed.
    counts: Option<Box<[CounterData; 3]>>,
}

#[derive(Clone, Debug)]
struct Buckets {
    config: MeterConfig,
    committed: u128,
    /// Peak tokens, or for a single-rate meter those of the excess burst.
    second: u128,
    last: u64,
}

impl Meter {
    /// Starts with full buckets.
    pub(crate) fn configure(&mut self, config: Option<MeterConfig>) {
        self.buckets = config.map(|config| {
            let second = match config.eburst {
                0 => config.pburst,
                excess => excess,
            };
            Box::new(Buckets {
                config,
                committed: u128::from(config.cburst) * SCALE,
                second: u128::from(second) * SCALE,
                last: 0,
            })
        });
    }

    pub(crate) fn config(&self) -> Option<MeterConfig> {
        self.buckets.as_ref().map(|b| b.config)
    }

    /// What got which colour: green, yellow, red.
    pub(crate) fn counts(&self) -> [CounterData; 3] {
        self.counts.as_deref().copied().unwrap_or_default()
    }

    /// Starts counting anew.
    pub(crate) fn reset_counts(&mut self) {
        self.counts = None;
    }

    /// Takes `amount` (1 packet, or bytes) of a packet of `bytes` at `now`: 0 green, 1 yellow,
    /// 2 red.
    pub(crate) fn colour(&mut self, amount: u64, bytes: u64, now: u64) -> u64 {
        let colour = match &mut self.buckets {
            None => 0,
            Some(buckets) => buckets.take(amount, now),
        };
        let count = &mut self.counts.get_or_insert_default()[colour];
        count.packets += 1;
        count.bytes += bytes;
        colour as u64
    }
}

impl Buckets {
    fn take(&mut self, amount: u64, now: u64) -> usize {
        let elapsed = u128::from(now.saturating_sub(self.last));
        self.last = self.last.max(now);
        let need = u128::from(amount) * SCALE;
        match self.config.eburst {
            0 => self.two_rate(elapsed, need),
            _ => self.single_rate(elapsed, need),
        }
    }

    fn two_rate(&mut self, elapsed: u128, need: u128) -> usize {
        let config = self.config;
        let fill = |tokens: u128, rate: u64, burst: u64| {
            (tokens + elapsed * u128::from(rate)).min(u128::from(burst) * SCALE)
        };
        self.committed = fill(self.committed, config.cir, config.cburst);
        self.second = fill(self.second, config.pir, config.pburst);
        if self.second < need {
            return 2;
        }
        self.second -= need;
        if self.committed < need {
            return 1;
        }
        self.committed -= need;
        0
    }

    /// What the committed bucket has no room for goes to the excess one.
    fn single_rate(&mut self, elapsed: u128, need: u128) -> usize {
        let config = self.config;
        let full = self.committed + elapsed * u128::from(config.cir);
        self.committed = full.min(u128::from(config.cburst) * SCALE);
        let over = full - self.committed;
        self.second = (self.second + over).min(u128::from(config.eburst) * SCALE);
        for (colour, bucket) in [&mut self.committed, &mut self.second]
            .into_iter()
            .enumerate()
        {
            if *bucket >= need {
                *bucket -= need;
                return colour;
            }
        }
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_buckets() {
        let mut meter = Meter::default();
        assert_eq!(meter.colour(1, 100, 0), 0, "not configured");
        let config = MeterConfig {
            cir: 1,
            cburst: 1,
            pir: 2,
            pburst: 3,
            eburst: 0,
        };
        meter.configure(Some(config));
        let colours: Vec<u64> = (0..4).map(|_| meter.colour(1, 100, 0)).collect();
        assert_eq!(colours, [0, 1, 1, 2]);
        // Half a second gives one packet of peak, half a committed one.
        assert_eq!(meter.colour(1, 100, 500_000_000), 1);
        assert_eq!(meter.colour(1, 100, 500_000_001), 2);
        // Another half gives the second half of the committed one.
        assert_eq!(meter.colour(1, 100, 1_000_000_000), 0);
    }

    #[test]
    fn long_run_rate_is_the_committed_one() {
        let mut meter = Meter::default();
        let config = MeterConfig {
            cir: 1000,
            cburst: 10,
            pir: 2000,
            pburst: 10,
            eburst: 0,
        };
        meter.configure(Some(config));
        // 5000 packets/s for 10 s.
        let counts = (0..50_000u64).fold([0u64; 3], |mut counts, i| {
            counts[meter.colour(1, 100, i * 200_000) as usize] += 1;
            counts
        });
        assert!((9_990..=10_020).contains(&counts[0]), "{counts:?}");
        assert!((9_990..=10_020).contains(&counts[1]), "{counts:?}");
    }

    #[test]
    fn excess_bursts_are_yellow() {
        let mut meter = Meter::default();
        meter.configure(Some(MeterConfig {
            cir: 1,
            cburst: 2,
            pir: 1,
            pburst: 2,
            eburst: 1,
        }));
        let colours: Vec<u64> = (0..4).map(|_| meter.colour(1, 64, 0)).collect();
        assert_eq!(colours, [0, 0, 1, 2]);
        // Two seconds fill the committed bucket; the third goes to the excess one.
        let colours: Vec<u64> = (0..4).map(|_| meter.colour(1, 64, 3_000_000_000)).collect();
        assert_eq!(colours, [0, 0, 1, 2]);
        let [green, yellow, red] = meter.counts();
        assert_eq!((green.packets, yellow.packets, red.packets), (4, 2, 2));
        assert_eq!(green.bytes, 4 * 64);
        meter.reset_counts();
        assert_eq!(meter.counts(), [CounterData::default(); 3]);
    }
}

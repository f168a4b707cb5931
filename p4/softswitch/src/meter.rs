//! Two-rate three-colour meters (RFC 2698), colour-blind.

use crate::control::MeterConfig;

/// Tokens per unit of a bucket: rates are per second, times in ns.
const SCALE: u128 = 1_000_000_000;

/// One meter. Not configured, it says green to everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Option<Box<Buckets>>);

#[derive(Clone, Debug)]
struct Buckets {
    config: MeterConfig,
    committed: u128,
    peak: u128,
    last: u64,
}

impl Meter {
    /// Starts with full buckets.
    pub(crate) fn configure(&mut self, config: Option<MeterConfig>) {
        self.0 = config.map(|config| {
            Box::new(Buckets {
                config,
                committed: u128::from(config.cburst) * SCALE,
                peak: u128::from(config.pburst) * SCALE,
                last: 0,
            })
        });
    }

    pub(crate) fn config(&self) -> Option<MeterConfig> {
        self.0.as_ref().map(|b| b.config)
    }

    /// Takes `amount` (1 packet, or bytes) at `now`: 0 green, 1 yellow, 2 red.
    pub(crate) fn colour(&mut self, amount: u64, now: u64) -> u64 {
        let Some(buckets) = &mut self.0 else {
            return 0;
        };
        let elapsed = u128::from(now.saturating_sub(buckets.last));
        buckets.last = buckets.last.max(now);
        let config = buckets.config;
        let fill = |tokens: u128, rate: u64, burst: u64| {
            (tokens + elapsed * u128::from(rate)).min(u128::from(burst) * SCALE)
        };
        buckets.committed = fill(buckets.committed, config.cir, config.cburst);
        buckets.peak = fill(buckets.peak, config.pir, config.pburst);
        let need = u128::from(amount) * SCALE;
        if buckets.peak < need {
            return 2;
        }
        buckets.peak -= need;
        if buckets.committed < need {
            return 1;
        }
        buckets.committed -= need;
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_buckets() {
        let mut meter = Meter::default();
        assert_eq!(meter.colour(1, 0), 0, "not configured");
        let config = MeterConfig {
            cir: 1,
            cburst: 1,
            pir: 2,
            pburst: 3,
        };
        meter.configure(Some(config));
        let colours: Vec<u64> = (0..4).map(|_| meter.colour(1, 0)).collect();
        assert_eq!(colours, [0, 1, 1, 2]);
        // Half a second gives one packet of peak, half a committed one.
        assert_eq!(meter.colour(1, 500_000_000), 1);
        assert_eq!(meter.colour(1, 500_000_001), 2);
        // Another half gives the second half of the committed one.
        assert_eq!(meter.colour(1, 1_000_000_000), 0);
    }

    #[test]
    fn long_run_rate_is_the_committed_one() {
        let mut meter = Meter::default();
        let config = MeterConfig {
            cir: 1000,
            cburst: 10,
            pir: 2000,
            pburst: 10,
        };
        meter.configure(Some(config));
        // 5000 packets/s for 10 s.
        let counts = (0..50_000u64).fold([0u64; 3], |mut counts, i| {
            counts[meter.colour(1, i * 200_000) as usize] += 1;
            counts
        });
        assert!((9_990..=10_020).contains(&counts[0]), "{counts:?}");
        assert!((9_990..=10_020).contains(&counts[1]), "{counts:?}");
    }
}

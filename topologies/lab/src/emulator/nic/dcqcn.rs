//! DCQCN, the sender's side (reaction point): a rate that halves towards what the marks ask for
//! and climbs back by timer.
//!
//! The law is that of Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015), as
//! adapters carry it out: increases come by timer (the paper's byte counter, at 10 MB, adds next to nothing to
//! them), and a decrease lowers the target rate only if the timer has raised the rate since the decrease before
//! (`CLAMP_TGT_RATE` off, `CLAMP_TGT_RATE_AFTER_TIME_INC` on, as they are delivered). Without that rule the CNPs
//! of one burst, which go on until its queue has drained, take the target down with the rate, and senders need
//! milliseconds to find the capacity again that was theirs all along.
//!
//! All its timers are evaluated when somebody asks: the state at `now` is a function of the CNPs before it, so
//! no events are needed.

/// DCQCN parameters of a sender and, for the CNP interval, of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct DcqcnConfig {
    /// Shortest time between CNPs for one queue pair, ns (notification point).
    pub cnp_interval_ns: u64,
    /// Time between updates of alpha, ns.
    pub alpha_interval_ns: u64,
    /// Shortest time between two rate decreases, ns.
    pub decrease_interval_ns: u64,
    /// Time between two rate increases, ns.
    pub increase_interval_ns: u64,
    /// Weight of the newest observation in alpha.
    pub gain: f64,
    /// Increases that only go half way back to the target rate before the target itself rises.
    pub fast_recovery_steps: u32,
    /// Additive increase of the target: the step after fast recovery, bits/s.
    pub additive_bps: u64,
    /// Hyper increase of the target: the n-th step after that adds n times this, bits/s (IEEE 802.1Qau 32.8.3).
    pub hyper_bps: u64,
    /// The rate never falls below this, bits/s.
    pub minimum_bps: u64,
}

impl DcqcnConfig {
    /// Parameters for a port of `speed_bps`. CNPs, decreases and updates of alpha 50 µs apart and gain 1/256 as in
    /// the paper, and its additive increase of 40 Mb/s at 40 Gb/s and tenfold hyper increase in proportion to
    /// the speed.
    ///
    /// Increases come every 25 µs, and two of them are fast recovery: between the paper's 55 µs and five, chosen
    /// for 40 Gb/s, and adapters' one and 32 KiB, which at 400 Gb/s is less than a µs. A queue at Kmin is empty
    /// after 16 µs at 400 Gb/s; with 55 µs ports idle after every burst.
    #[must_use]
    pub fn new(speed_bps: u64) -> Self {
        Self {
            cnp_interval_ns: 50_000,
            alpha_interval_ns: 50_000,
            decrease_interval_ns: 50_000,
            increase_interval_ns: 25_000,
            gain: 1.0 / 256.0,
            fast_recovery_steps: 2,
            additive_bps: speed_bps / 1_000,
            hyper_bps: speed_bps / 100,
            minimum_bps: speed_bps / 1_000,
        }
    }
}

/// The rate of one queue pair.
#[derive(Clone, Debug)]
pub struct RateController {
    line_bps: f64,
    rate: f64,
    target: f64,
    alpha: f64,
    /// Whether a CNP has ever arrived: before that the rate is the line's.
    engaged: bool,
    cnp_since_alpha: bool,
    cnp_since_decrease: bool,
    next_alpha: u64,
    next_decrease: u64,
    next_increase: u64,
    /// Increases since the last decrease.
    increases: u32,
}

impl RateController {
    /// A controller at line rate, bits/s.
    #[must_use]
    pub fn new(line_bps: u64) -> Self {
        Self {
            line_bps: line_bps as f64,
            rate: line_bps as f64,
            target: line_bps as f64,
            alpha: 1.0,
            engaged: false,
            cnp_since_alpha: false,
            cnp_since_decrease: false,
            next_alpha: 0,
            next_decrease: 0,
            next_increase: 0,
            increases: 0,
        }
    }

    /// The rate at `now`, bits/s. Time never goes back between calls.
    pub fn rate_bps(&mut self, config: &DcqcnConfig, now: u64) -> u64 {
        self.advance(config, now);
        self.rate as u64
    }

    /// A CNP arrived at `now`.
    pub fn on_cnp(&mut self, config: &DcqcnConfig, now: u64) {
        if !self.engaged {
            self.engaged = true;
            self.next_alpha = now + config.alpha_interval_ns;
            self.next_decrease = now;
            self.next_increase = now + config.increase_interval_ns;
        }
        self.advance(config, now);
        if !self.cnp_since_decrease {
            self.next_decrease = self.next_decrease.max(now);
        }
        self.cnp_since_alpha = true;
        self.cnp_since_decrease = true;
        self.advance(config, now);
    }

    fn advance(&mut self, config: &DcqcnConfig, now: u64) {
        if !self.engaged {
            return;
        }
        loop {
            let decrease = if self.cnp_since_decrease {
                self.next_decrease
            } else {
                u64::MAX
            };
            let increase = if self.rate < self.line_bps {
                self.next_increase
            } else {
                u64::MAX
            };
            if decrease.min(increase) > now {
                break;
            }
            if decrease <= increase {
                self.advance_alpha(config, decrease);
                self.decrease(config, decrease);
            } else {
                self.increase(config);
            }
        }
        self.advance_alpha(config, now);
    }

    fn advance_alpha(&mut self, config: &DcqcnConfig, to: u64) {
        if to < self.next_alpha {
            return;
        }
        let interval = config.alpha_interval_ns.max(1);
        let ticks = (to - self.next_alpha) / interval + 1;
        self.next_alpha += ticks * interval;
        let keep = 1.0 - config.gain;
        self.alpha *= power(keep, ticks);
        if std::mem::take(&mut self.cnp_since_alpha) {
            // The first of these ticks saw the CNP; the others let it fade.
            self.alpha += config.gain * power(keep, ticks - 1);
        }
    }

    fn decrease(&mut self, config: &DcqcnConfig, at: u64) {
        if self.increases > 0 {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(config.minimum_bps as f64);
        self.cnp_since_decrease = false;
        self.increases = 0;
        self.next_decrease = at + config.decrease_interval_ns.max(1);
        self.next_increase = at + config.increase_interval_ns.max(1);
    }

    fn increase(&mut self, config: &DcqcnConfig) {
        self.increases += 1;
        let step = match self.increases.saturating_sub(config.fast_recovery_steps) {
            0 => 0,
            1 => config.additive_bps,
            after => config.hyper_bps.saturating_mul(u64::from(after - 1)),
        };
        self.target = (self.target + step as f64).min(self.line_bps);
        self.rate = f64::midpoint(self.rate, self.target);
        // Halving the distance never quite arrives: a thousandth below line rate is line rate.
        if self.rate > 0.999 * self.line_bps {
            self.rate = self.line_bps;
        }
        self.next_increase += config.increase_interval_ns.max(1);
    }
}

/// `base` to the `exponent` by squaring; the standard library leaves the precision of `powi` open, and a run must
/// give the same report everywhere.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 400_000_000_000;

    #[test]
    fn first_cnp_halves_and_alpha_fades() {
        let config = DcqcnConfig::new(LINE);
        let mut rate = RateController::new(LINE);
        assert_eq!(rate.rate_bps(&config, 1_000_000), LINE);
        rate.on_cnp(&config, 1_000_000);
        assert_eq!(rate.rate_bps(&config, 1_000_000), LINE / 2);
        // 100 alpha updates of 1 - 1/256, one of which saw the CNP: alpha is about 0.68.
        let before = rate.rate_bps(&config, 6_000_000 - 1);
        rate.on_cnp(&config, 6_000_000);
        let after = rate.rate_bps(&config, 6_000_000);
        let alpha = 2.0 * (1.0 - after as f64 / before as f64);
        assert!((alpha - 0.679).abs() < 0.01, "alpha {alpha}");
    }

    #[test]
    fn decreases_are_spaced_and_a_waiting_cnp_acts_later() {
        let config = slow_increase();
        let mut rate = RateController::new(LINE);
        for now in [0, 10_000, 20_000] {
            rate.on_cnp(&config, now);
        }
        assert_eq!(rate.rate_bps(&config, 49_999), LINE / 2);
        let later = rate.rate_bps(&config, 50_000);
        assert!(
            later < LINE * 26 / 100 && later > LINE * 24 / 100,
            "{later}"
        );
        assert_eq!(
            rate.rate_bps(&config, 100_000),
            later,
            "three CNPs, two intervals"
        );
    }

    /// Increases that are farther apart than decreases.
    fn slow_increase() -> DcqcnConfig {
        DcqcnConfig {
            increase_interval_ns: 200_000,
            ..DcqcnConfig::new(LINE)
        }
    }

    #[test]
    fn one_burst_of_cnps_leaves_the_target_where_it_was() {
        let config = slow_increase();
        let mut rate = RateController::new(LINE);
        for now in [0, 50_000, 100_000] {
            rate.on_cnp(&config, now);
        }
        let low = rate.rate_bps(&config, 100_000);
        // Half the way back to line rate.
        let expected = u64::midpoint(low, LINE);
        assert!(rate.rate_bps(&config, 300_000).abs_diff(expected) < 10);
        // A CNP after an increase lowers the target to what the rate had become.
        rate.on_cnp(&config, 310_000);
        let low = rate.rate_bps(&config, 310_000);
        let back = rate.rate_bps(&config, 510_000);
        assert!(back.abs_diff(u64::midpoint(low, expected)) < 10, "{back}");
    }

    #[test]
    fn recovers_to_line_rate() {
        let config = DcqcnConfig::new(LINE);
        let mut rate = RateController::new(LINE);
        rate.on_cnp(&config, 0);
        // Fast recovery goes half the way each time.
        assert_eq!(rate.rate_bps(&config, 25_000), LINE * 3 / 4);
        assert_eq!(rate.rate_bps(&config, 50_000), LINE * 7 / 8);
        assert_eq!(rate.rate_bps(&config, 1_000_000), LINE);
    }

    #[test]
    fn hyper_increase_grows() {
        let config = slow_increase();
        let mut rate = RateController::new(LINE);
        // Down to a target of little, then up step by step.
        for n in 0..40 {
            rate.on_cnp(&config, n * 250_000);
        }
        let at = |rate: &mut RateController, step: u64| {
            rate.rate_bps(&config, 39 * 250_000 + step * 200_000)
        };
        let steps: Vec<u64> = (3..8).map(|step| at(&mut rate, step)).collect();
        let gains: Vec<u64> = steps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gains.windows(2).all(|pair| pair[1] > pair[0]), "{gains:?}");
    }

    #[test]
    fn asking_more_often_changes_nothing() {
        let config = DcqcnConfig::new(LINE);
        let (mut often, mut seldom) = (RateController::new(LINE), RateController::new(LINE));
        for now in (0..2_000_000).step_by(500) {
            if now % 70_000 == 0 && now < 1_000_000 {
                often.on_cnp(&config, now);
                seldom.on_cnp(&config, now);
            }
            often.rate_bps(&config, now);
        }
        let (a, b) = (
            often.rate_bps(&config, 3_000_000),
            seldom.rate_bps(&config, 3_000_000),
        );
        assert!(a.abs_diff(b) < 1_000, "{a} {b}");
    }

    #[test]
    fn never_below_the_minimum() {
        let config = DcqcnConfig::new(LINE);
        let mut rate = RateController::new(LINE);
        (0..200).for_each(|n| rate.on_cnp(&config, n * 50_000));
        assert_eq!(rate.rate_bps(&config, 199 * 50_000), config.minimum_bps);
    }
}

//! Rates of queues and ports, on the time that comes in with each call.
//!
//! Every packet that leaves takes the queue (and the port) a time that its rate gives. A packet
//! may leave when that time of the one before is over, and its own counts from the moment at
//! which it could have left, not from when somebody asked: who asks late gets what is due and
//! the rate holds on average, to the nanosecond and without drift.

/// How fast a queue or a port may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// Bits per second of the frames that leave, headers included.
    BitsPerSecond(u64),
    /// Packets per second that leave.
    PacketsPerSecond(u64),
}

/// Why a text is no [`Rate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a rate; write bits per second as 10mbit (kbit, mbit, gbit, bit), packets per \
     second as 500pps (kpps, mpps), or none"
)]
pub struct NotARate(String);

const NANOSECONDS: u128 = 1_000_000_000;

/// Units, longest first where one ends like another.
const UNITS: [(&str, u64, bool); 7] = [
    ("kbit", 1_000, true),
    ("mbit", 1_000_000, true),
    ("gbit", 1_000_000_000, true),
    ("bit", 1, true),
    ("kpps", 1_000, false),
    ("mpps", 1_000_000, false),
    ("pps", 1, false),
];

impl Rate {
    /// Reads `10mbit`, `1.5gbit`, `500pps` and the like; `none` is no limit.
    ///
    /// # Errors
    /// When it is none of these, or 0.
    pub fn parse(text: &str) -> Result<Option<Rate>, NotARate> {
        let lower = text.trim().to_ascii_lowercase();
        if lower == "none" {
            return Ok(None);
        }
        let error = || NotARate(text.to_owned());
        let (number, unit, of_bits) = UNITS
            .iter()
            .find_map(|&(unit, times, bits)| Some((lower.strip_suffix(unit)?, times, bits)))
            .ok_or_else(error)?;
        let value = scaled(number.trim(), unit).ok_or_else(error)?;
        Ok(Some(if of_bits {
            Rate::BitsPerSecond(value)
        } else {
            Rate::PacketsPerSecond(value)
        }))
    }

    /// What a packet of so many bytes takes, as ns times [`Rate::per_second`].
    fn cost(self, bytes: usize) -> u128 {
        match self {
            Rate::BitsPerSecond(_) => bytes as u128 * 8 * NANOSECONDS,
            Rate::PacketsPerSecond(_) => NANOSECONDS,
        }
    }

    fn per_second(self) -> u128 {
        let (Rate::BitsPerSecond(rate) | Rate::PacketsPerSecond(rate)) = self;
        u128::from(rate.max(1))
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Rate::BitsPerSecond(rate) | Rate::PacketsPerSecond(rate)) = *self;
        let bits = matches!(self, Rate::BitsPerSecond(_));
        let mut units = UNITS
            .iter()
            .filter(|unit| unit.2 == bits)
            .collect::<Vec<_>>();
        units.sort_by_key(|unit| std::cmp::Reverse(unit.1));
        match units.iter().find(|unit| rate % unit.1 == 0) {
            Some((name, times, _)) => write!(f, "{}{name}", rate / times),
            None => write!(f, "{rate}"),
        }
    }
}

/// A decimal number times a unit, where that comes out whole and above 0.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || number.starts_with(['+', '-']) {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut value = whole.checked_mul(unit)?;
    if !fraction.is_empty() {
        let digits: u64 = fraction
            .parse()
            .ok()
            .filter(|_| !fraction.starts_with('+'))?;
        let parts = u128::from(digits) * u128::from(unit);
        let scale = 10u128.pow(fraction.len() as u32);
        if parts % scale != 0 {
            return None;
        }
        value = value.checked_add(u64::try_from(parts / scale).ok()?)?;
    }
    (value > 0).then_some(value)
}

/// Keeps a rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shaper {
    rate: Option<Rate>,
    /// From when on (ns) the next packet may leave.
    free_at: u64,
    /// What of a ns the packets so far took beyond `free_at`, times the rate.
    rest: u128,
    /// When (ns) the last packet could have left, and its bytes.
    last: Option<(u64, usize)>,
}

impl Shaper {
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// From now on this rate. The last packet's time is counted anew: after a rate that was far
    /// too low, nobody waits for the time that it gave.
    pub(crate) fn set(&mut self, rate: Option<Rate>) {
        self.rate = rate;
        self.rest = 0;
        self.free_at = 0;
        if let Some((start, bytes)) = self.last {
            self.charge(start, bytes);
        }
    }

    /// From when on (ns) the next packet may leave; 0: from ever.
    pub(crate) fn free_at(&self) -> u64 {
        match self.rate {
            Some(_) => self.free_at,
            None => 0,
        }
    }

    /// A packet left that could have left at `start` ns.
    pub(crate) fn charge(&mut self, start: u64, bytes: usize) {
        self.last = Some((start, bytes));
        let Some(rate) = self.rate else {
            return;
        };
        if start > self.free_at {
            self.rest = 0;
        }
        let cost = rate.cost(bytes) + self.rest;
        let per_second = rate.per_second();
        let ns = u64::try_from(cost / per_second).unwrap_or(u64::MAX);
        self.rest = cost % per_second;
        self.free_at = start.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, rate) in [
            ("10mbit", Rate::BitsPerSecond(10_000_000)),
            ("1.5gbit", Rate::BitsPerSecond(1_500_000_000)),
            ("64 kbit", Rate::BitsPerSecond(64_000)),
            ("7bit", Rate::BitsPerSecond(7)),
            ("500pps", Rate::PacketsPerSecond(500)),
            ("2Kpps", Rate::PacketsPerSecond(2_000)),
            (".5mpps", Rate::PacketsPerSecond(500_000)),
        ] {
            assert_eq!(Rate::parse(text), Ok(Some(rate)), "{text}");
            assert_eq!(Rate::parse(&rate.to_string()), Ok(Some(rate)), "{rate}");
        }
        assert_eq!(Rate::parse("none"), Ok(None));
        for bad in [
            "",
            "10",
            "mbit",
            "0pps",
            "-1mbit",
            "1e3pps",
            "0.3bit",
            "99999999999gbit",
            "1.+5gbit",
        ] {
            let error = Rate::parse(bad).unwrap_err().to_string();
            assert!(error.contains("10mbit"), "{bad}");
        }
    }

    #[test]
    fn packets_are_spaced_without_drift() {
        let mut shaper = Shaper::default();
        shaper.set(Some(Rate::PacketsPerSecond(3)));
        let mut times = Vec::new();
        for _ in 0..4 {
            let start = shaper.free_at();
            times.push(start);
            shaper.charge(start, 100);
        }
        assert_eq!(times, [0, 333_333_333, 666_666_666, 1_000_000_000]);
    }

    #[test]
    fn a_packet_takes_its_bits_and_idle_time_is_not_saved_up() {
        let mut shaper = Shaper::default();
        shaper.set(Some(Rate::BitsPerSecond(8_000_000)));
        shaper.charge(1_000, 1_500);
        assert_eq!(shaper.free_at(), 1_000 + 1_500_000);
        shaper.charge(9_000_000, 1);
        assert_eq!(shaper.free_at(), 9_001_000);
        shaper.set(None);
        assert_eq!(shaper.free_at(), 0);
    }

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        let mut shaper = Shaper::default();
        shaper.set(Some(Rate::BitsPerSecond(1)));
        shaper.charge(u64::MAX - 5, 65_535);
        assert_eq!(shaper.free_at(), u64::MAX);
        shaper.set(Some(Rate::PacketsPerSecond(u64::MAX)));
        assert_eq!(shaper.free_at(), u64::MAX - 5);
    }

    #[test]
    fn a_new_rate_counts_the_last_packet_anew() {
        let mut shaper = Shaper::default();
        shaper.set(Some(Rate::BitsPerSecond(8)));
        assert_eq!(shaper.free_at(), 0, "nothing has left yet");
        shaper.charge(100, 60);
        assert_eq!(shaper.free_at(), 60_000_000_100);
        shaper.set(Some(Rate::BitsPerSecond(8_000_000)));
        assert_eq!(shaper.free_at(), 60_100);
        shaper.set(None);
        shaper.charge(90_000, 10);
        shaper.set(Some(Rate::PacketsPerSecond(1_000_000)));
        assert_eq!(shaper.free_at(), 91_000);
    }
}

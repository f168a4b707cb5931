//! Numbers drawn from a distribution: the same seed gives the same numbers.

use std::fmt;
use std::str::FromStr;

/// SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*, 2014): small,
/// and it won't change with a dependency's version, so that a seed in a document stays good.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each `aspect` of one seed, so that asking for more of one thing
    /// leaves the others as they were.
    pub(crate) fn new(seed: u64, aspect: u64) -> Self {
        let mut random = Self(seed ^ aspect.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Puts things into a random order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// What a number is drawn from: values with weights.
///
/// Written as one number (`8`), a range with all values equally likely (`2-8`), or values and
/// ranges with weights (`2-4:30,8:70`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Ranges, both ends included, with the weight of each range as a whole.
    parts: Vec<(u32, u32, u32)>,
}

impl Draw {
    /// Always `value`.
    #[must_use]
    pub fn fixed(value: u32) -> Self {
        Self {
            parts: vec![(value, value, 1)],
        }
    }

    /// All numbers from `least` to `most`, equally likely; `least` is at most `most`.
    pub(crate) fn range(least: u32, most: u32) -> Self {
        Self {
            parts: vec![(least, most, 1)],
        }
    }

    /// The smallest number that can come.
    #[must_use]
    pub fn least(&self) -> u32 {
        self.parts.iter().map(|part| part.0).min().unwrap_or(0)
    }

    /// The largest number that can come.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.parts.iter().map(|part| part.1).max().unwrap_or(0)
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let total: u64 = self.parts.iter().map(|part| u64::from(part.2)).sum();
        let mut at = random.below(total.max(1));
        for &(first, last, weight) in &self.parts {
            match at.checked_sub(u64::from(weight)) {
                Some(rest) => at = rest,
                None => return first + random.below(u64::from(last - first) + 1) as u32,
            }
        }
        self.most()
    }
}

/// Why a text is no [`Draw`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}`: {why}; write a number (8), a range (2-8), or values with weights (2-4:30,8:70)")]
pub struct BadDraw {
    /// The part to blame.
    pub part: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl FromStr for Draw {
    type Err = BadDraw;

    fn from_str(text: &str) -> Result<Self, BadDraw> {
        let mut parts = Vec::new();
        for part in text.split(',').map(str::trim) {
            let bad = |why| BadDraw {
                part: part.to_owned(),
                why,
            };
            let (range, weight) = part.split_once(':').unwrap_or((part, "1"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.trim().parse().map_err(|_| bad("no number"));
            let (first, last, weight): (u32, u32, u32) =
                (number(first)?, number(last)?, number(weight)?);
            if first > last {
                return Err(bad("the range runs backwards"));
            }
            if weight == 0 {
                return Err(bad("a weight of 0 never comes"));
            }
            parts.push((first, last, weight));
        }
        Ok(Self { parts })
    }
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (first, last, weight)) in self.parts.iter().enumerate() {
            f.write_str(if n > 0 { "," } else { "" })?;
            write!(f, "{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            if self.parts.len() > 1 {
                write!(f, ":{weight}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn draws_by_weight() {
        let draw: Draw = "2-4:30,8:70".parse().unwrap();
        let mut random = Random::new(1, 0);
        let mut counts = [0_u32; 9];
        for _ in 0..10_000 {
            counts[draw.draw(&mut random) as usize] += 1;
        }
        let near = |count: u32, wanted: u32| count.abs_diff(wanted) < 250;
        assert!(near(counts[8], 7_000), "{counts:?}");
        for value in 2..=4 {
            assert!(near(counts[value], 1_000), "{counts:?}");
        }
        assert_eq!(counts.iter().sum::<u32>(), 10_000);
        assert_eq!((draw.least(), draw.most()), (2, 8));
    }

    #[test]
    fn is_written_as_it_is_read() {
        for text in ["8", "2-8", "2-4:30,8:70"] {
            assert_eq!(text.parse::<Draw>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn names_the_part_to_blame() {
        for (text, part, why) in [
            ("2-8,x", "x", "no number"),
            ("8-2", "8-2", "the range runs backwards"),
            ("1,3:0", "3:0", "a weight of 0 never comes"),
            ("", "", "no number"),
            ("-3", "-3", "no number"),
        ] {
            let error = text.parse::<Draw>().unwrap_err();
            assert_eq!((error.part.as_str(), error.why), (part, why));
        }
    }

    #[test]
    fn a_shuffle_keeps_all() {
        let mut things: Vec<u32> = (0..50).collect();
        Random::new(3, 1).shuffle(&mut things);
        assert_ne!(things, (0..50).collect::<Vec<u32>>());
        things.sort_unstable();
        assert_eq!(things, (0..50).collect::<Vec<u32>>());
    }
}

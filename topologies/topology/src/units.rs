//! Quantities as people write them: `400G`, `500ns`, `64KiB`.

use std::fmt::Write as _;

/// Fastest link speed that is accepted, in bits/s: 100 Tb/s.
pub const MAX_SPEED_BPS: u64 = 100_000_000_000_000;
/// Longest one-way link delay that is accepted, in ns: one second.
pub const MAX_DELAY_NS: u64 = 1_000_000_000;

/// Why a quantity was not understood, and how to write it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnitError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

fn wrong(message: impl Into<String>, help: impl Into<String>) -> UnitError {
    UnitError {
        message: message.into(),
        help: help.into(),
    }
}

/// A decimal number and its unit, `1.5us` as (15, 1, "us"): digits, how many of them are
/// decimals, the rest.
fn split(text: &str) -> Option<(u64, u32, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || decimals.len() > 9 {
        return None;
    }
    let digits = format!("{whole}{decimals}").parse().ok()?;
    Some((digits, decimals.len() as u32, unit.trim()))
}

fn scale(digits: u64, decimals: u32, factor: u64) -> Option<u64> {
    let scaled = u128::from(digits) * u128::from(factor);
    let divisor = 10_u128.pow(decimals);
    (scaled % divisor == 0).then(|| u64::try_from(scaled / divisor).ok())?
}

/// Reads a speed such as `400G`, `400Gb/s`, `1.6T` into bits/s.
///
/// # Errors
/// No number, no unit or an unknown one, zero, or more than [`MAX_SPEED_BPS`].
pub fn parse_speed(text: &str) -> Result<u64, UnitError> {
    let help = "write a number and a unit: 100M, 25G, 400G, 1.6T (bits per second)";
    let (digits, decimals, unit) =
        split(text).ok_or_else(|| wrong(format!("`{text}` is no speed"), help))?;
    let prefix = ["bit/s", "b/s", "bps"]
        .iter()
        .find_map(|suffix| unit.strip_suffix(suffix));
    let factor = match prefix.unwrap_or(unit) {
        "" if prefix.is_some() => 1,
        "" => {
            return Err(wrong(
                format!("the speed `{text}` has no unit"),
                format!("did you mean `{text}G`? {help}"),
            ));
        }
        "K" | "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        other => return Err(wrong(format!("`{other}` is no unit of speed"), help)),
    };
    let value = scale(digits, decimals, factor).ok_or_else(|| {
        wrong(
            format!("`{text}` is no whole number of bits per second"),
            help,
        )
    })?;
    match value {
        0 => Err(wrong(
            "a speed of zero",
            "a link that carries nothing is a link to leave out",
        )),
        1..=MAX_SPEED_BPS => Ok(value),
        _ => Err(wrong(
            format!("`{text}` is faster than any port"),
            "speeds go up to 100T",
        )),
    }
}

/// Reads a delay such as `500ns`, `1.5us` into ns.
///
/// # Errors
/// No number, no unit or an unknown one, or more than [`MAX_DELAY_NS`].
pub fn parse_delay(text: &str) -> Result<u64, UnitError> {
    let help = "write a number and a unit: 500ns, 1.5us, 2ms";
    let (digits, decimals, unit) =
        split(text).ok_or_else(|| wrong(format!("`{text}` is no delay"), help))?;
    let factor = match unit {
        "" => {
            return Err(wrong(
                format!("the delay `{text}` has no unit"),
                format!("did you mean `{text}ns`? {help}"),
            ));
        }
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        other => return Err(wrong(format!("`{other}` is no unit of time"), help)),
    };
    let value = scale(digits, decimals, factor)
        .ok_or_else(|| wrong(format!("`{text}` is no whole number of nanoseconds"), help))?;
    if value > MAX_DELAY_NS {
        return Err(wrong(
            format!("a link delay of `{text}`"),
            "delays go up to 1s",
        ));
    }
    Ok(value)
}

/// Reads a size such as `64KiB`, `3200KB`, `9216` into bytes.
///
/// # Errors
/// No number or an unknown unit.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let help = "write bytes, or a number and a unit: 4200, 64KiB, 3200KB, 16MiB (KB is 1000 bytes, KiB is 1024)";
    let (digits, decimals, unit) =
        split(text).ok_or_else(|| wrong(format!("`{text}` is no size"), help))?;
    let factor = match unit {
        "" | "B" => 1,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => return Err(wrong(format!("`{other}` is no unit of size"), help)),
    };
    scale(digits, decimals, factor)
        .ok_or_else(|| wrong(format!("`{text}` is no whole number of bytes"), help))
}

/// Reads a probability such as `0.2` or `20%` into parts per million.
///
/// # Errors
/// No number, above 1, or finer than a millionth.
pub fn parse_probability(text: &str) -> Result<u32, UnitError> {
    let help = "write a number from 0 to 1, or a percentage: 0.2, 20%";
    let (digits, decimals, unit) =
        split(text).ok_or_else(|| wrong(format!("`{text}` is no probability"), help))?;
    let factor = match unit {
        "" => 1_000_000,
        "%" => 10_000,
        _ => return Err(wrong(format!("`{text}` is no probability"), help)),
    };
    scale(digits, decimals, factor)
        .and_then(|ppm| u32::try_from(ppm).ok())
        .filter(|ppm| *ppm <= 1_000_000)
        .ok_or_else(|| wrong(format!("`{text}` is no probability in millionths"), help))
}

fn format_exact(value: u64, units: &[(u64, &str)]) -> String {
    let (factor, unit) = units
        .iter()
        .find(|(factor, _)| value.is_multiple_of(*factor) && value >= *factor)
        .or(units.last())
        .copied()
        .unwrap_or((1, ""));
    format!("{}{unit}", value / factor)
}

/// A speed in the largest unit that keeps it exact: `400G`.
#[must_use]
pub fn format_speed(bps: u64) -> String {
    let units = [
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "K"),
        (1, "bps"),
    ];
    format_exact(bps, &units)
}

/// A delay in the largest unit that keeps it exact: `500ns`.
#[must_use]
pub fn format_delay(ns: u64) -> String {
    format_exact(
        ns,
        &[
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ],
    )
}

/// A size in the unit that keeps it exact and short: `3200KB`, `64KiB`, `4200`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let units = [
        (1 << 30, "GiB"),
        (1_000_000_000, "GB"),
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1_000, "KB"),
    ];
    units
        .iter()
        .filter(|(factor, _)| bytes > 0 && bytes.is_multiple_of(*factor))
        .map(|(factor, unit)| format!("{}{unit}", bytes / factor))
        .chain([bytes.to_string()])
        .min_by_key(String::len)
        .unwrap_or_default()
}

/// A probability as a decimal: `0.2`.
#[must_use]
pub fn format_probability(ppm: u32) -> String {
    let mut text = (ppm / 1_000_000).to_string();
    if !ppm.is_multiple_of(1_000_000) {
        let _ = write!(text, ".{:06}", ppm % 1_000_000);
        text.truncate(text.trim_end_matches('0').len());
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_as_people_write_them() {
        for text in [
            "400G",
            "400Gb/s",
            "400Gbps",
            "400 Gbit/s",
            "0.4T",
            "400000M",
        ] {
            assert_eq!(parse_speed(text).unwrap(), 400_000_000_000, "{text}");
        }
        assert_eq!(parse_delay("1.5us").unwrap(), 1500);
        assert_eq!(parse_delay("1µs").unwrap(), 1000);
        assert_eq!(parse_size("64KiB").unwrap(), 65_536);
        assert_eq!(parse_size("9216").unwrap(), 9216);
        assert_eq!(parse_probability("20%").unwrap(), 200_000);
        assert_eq!(parse_probability("1").unwrap(), 1_000_000);
    }

    #[test]
    fn what_is_no_quantity_says_how_to_write_one() {
        assert!(parse_speed("400").unwrap_err().help.contains("400G"));
        assert!(parse_delay("500").unwrap_err().help.contains("500ns"));
        for bad in [
            "",
            "G",
            "-1G",
            "400X",
            "0G",
            "1.G",
            "101T",
            "99999999999999999999G",
            "0.1bps",
        ] {
            assert!(parse_speed(bad).is_err(), "{bad}");
        }
        for bad in ["2s", "0.1ns", "1h", "ns"] {
            assert!(parse_delay(bad).is_err(), "{bad}");
        }
        for bad in ["1.1", "101%", "0.0000001", "x"] {
            assert!(parse_probability(bad).is_err(), "{bad}");
        }
        assert!(parse_size("1KB2").is_err());
    }

    proptest! {
        #[test]
        fn formatting_is_exact(bps in 1..=MAX_SPEED_BPS, ns in 0..=MAX_DELAY_NS, bytes: u64, ppm in 0..=1_000_000_u32) {
            prop_assert_eq!(parse_speed(&format_speed(bps)).unwrap(), bps);
            prop_assert_eq!(parse_delay(&format_delay(ns)).unwrap(), ns);
            prop_assert_eq!(parse_size(&format_size(bytes)).unwrap(), bytes);
            prop_assert_eq!(parse_probability(&format_probability(ppm)).unwrap(), ppm);
        }

        #[test]
        fn any_text_is_a_value_or_an_error(text: String) {
            let _ = (parse_speed(&text), parse_delay(&text), parse_size(&text), parse_probability(&text));
        }
    }
}

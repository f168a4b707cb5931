//! `ibnetdiscover` text, line by line:
//!
//! ```text
//! Switch  65 "S-2c5eab0300b87b40"  # "MF0;LEAF-04:MQM9701/U1" enhanced port 0 lid 73 lmc 0
//! [1]  "H-e09d7303007a4bd8"[1](e09d7303007a4bd8)  # "node-1 mlx5_5" lid 647 4xNDR
//! Ca  1 "H-e09d7303007a4bd8"  # "node-1 mlx5_5"
//! [1](e09d7303007a4bd8)  "S-2c5eab0300b87b40"[1]  # lid 647 lmc 0 "MF0;LEAF-04:MQM9701/U1" lid 73 4xNDR
//! ```

use rustc_hash::FxHashMap;

use super::{Finding, FindingKind};

/// A block: a switch or a channel adapter.
#[derive(Debug)]
pub(super) struct Device<'a> {
    pub(super) guid: &'a str,
    pub(super) is_switch: bool,
    pub(super) description: &'a str,
    pub(super) line: usize,
    pub(super) ports: Vec<Cable<'a>>,
}

/// A port line.
#[derive(Clone, Debug)]
pub(super) struct Cable<'a> {
    pub(super) port: u32,
    pub(super) far: &'a str,
    pub(super) far_port: u32,
    /// Description of the far device.
    pub(super) far_description: &'a str,
    pub(super) speed_bps: Option<u64>,
    /// Width and rate as written, `4xNDR`.
    pub(super) rate: &'a str,
    pub(super) line: usize,
}

/// Most findings about lines that can't be read.
const MAX_UNKNOWN: usize = 20;

/// The blocks, in order; a device that occurs twice keeps its first block.
pub(super) fn read<'a>(text: &'a str, findings: &mut Vec<Finding>) -> Vec<Device<'a>> {
    let mut devices: Vec<Device<'a>> = Vec::new();
    let mut known: FxHashMap<&str, usize> = FxHashMap::default();
    let mut current: Option<usize> = None;
    let mut unknown = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end();
        if line.is_empty() {
            current = None;
        } else if line.starts_with('#') || is_property(line) {
        } else if let Some(device) = device(line, number) {
            current = Some(*known.entry(device.guid).or_insert(devices.len()));
            if current == Some(devices.len()) {
                devices.push(device);
            }
        } else if let (Some(cable), Some(device)) = (cable(line, number), current) {
            devices[device].ports.push(cable);
        } else {
            unknown += 1;
            if unknown <= MAX_UNKNOWN {
                let shown: String = line
                    .chars()
                    .take(60)
                    .flat_map(char::escape_default)
                    .collect();
                let message = format!("line {number} is in no known form: {shown}");
                findings.push(Finding::new(FindingKind::UnknownLine, number, &[], message));
            }
        }
    }
    devices
}

/// `vendid=0x2c9` and the like.
fn is_property(line: &str) -> bool {
    line.split_once('=')
        .is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// What stands between the first two quotes of `text`, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once('"')?;
    rest.split_once('"')
}

fn device(line: &str, number: usize) -> Option<Device<'_>> {
    let kind = line.split_whitespace().next()?;
    let is_switch = match kind {
        "Switch" => true,
        "Ca" | "Rt" => false,
        _ => return None,
    };
    let (guid, rest) = quoted(line)?;
    let description = rest
        .split_once('#')
        .and_then(|(_, comment)| quoted(comment))
        .map_or("", |(text, _)| text);
    Some(Device {
        guid,
        is_switch,
        description,
        line: number,
        ports: Vec::new(),
    })
}

fn bracketed(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, rest))
}

fn cable(line: &str, number: usize) -> Option<Cable<'_>> {
    let (port, rest) = bracketed(line)?;
    let (far, rest) = quoted(rest)?;
    let (far_port, rest) = bracketed(rest)?;
    let comment = rest.split_once('#').map_or("", |(_, comment)| comment);
    let far_description = quoted(comment).map_or("", |(text, _)| text);
    let rate = comment.split_whitespace().next_back().unwrap_or("");
    Some(Cable {
        port,
        far,
        far_port,
        far_description,
        speed_bps: speed(rate),
        rate,
        line: number,
    })
}

/// Data rate of a width and a rate, `4xNDR`, in bits/s.
fn speed(rate: &str) -> Option<u64> {
    let (width, rate) = rate.split_once('x')?;
    let lanes: u64 = width
        .parse()
        .ok()
        .filter(|lanes| (1..=16).contains(lanes))?;
    let mbps = match rate {
        "SDR" => 2_000,
        "DDR" => 4_000,
        "QDR" => 8_000,
        "FDR10" => 10_000,
        "FDR" => 13_640,
        "EDR" => 25_000,
        "HDR" => 50_000,
        "NDR" => 100_000,
        "XDR" => 200_000,
        _ => return None,
    };
    Some(lanes * mbps * 1_000_000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines() {
        let from_switch = cable(
            "[35]\t\"S-26280\"[32]\t\t# \"MF0;SPINE-02:MQM9701/U1\" lid 236 4xNDR",
            7,
        )
        .unwrap();
        assert_eq!(
            (from_switch.port, from_switch.far, from_switch.far_port),
            (35, "S-26280", 32)
        );
        assert_eq!(from_switch.far_description, "MF0;SPINE-02:MQM9701/U1");
        assert_eq!(from_switch.speed_bps, Some(400_000_000_000));
        let from_adapter = cable(
            "[1](e09d) \t\"S-26480\"[5]\t\t# lid 130 lmc 0 \"LEAF\" lid 119 1xHDR",
            8,
        )
        .unwrap();
        assert_eq!(
            (from_adapter.port, from_adapter.far, from_adapter.far_port),
            (1, "S-26480", 5)
        );
        assert_eq!(
            (from_adapter.far_description, from_adapter.speed_bps),
            ("LEAF", Some(50_000_000_000))
        );
        for junk in [
            "",
            "[",
            "[]",
            "[x] \"S\"[1]",
            "[1] \"S",
            "[1] S[1]",
            "[1] \"S\"[99999999999]",
        ] {
            assert!(cable(junk, 1).is_none(), "{junk}");
        }
        assert!(device("Switch 65", 1).is_none());
        assert_eq!(speed("99999xNDR"), None);
    }
}

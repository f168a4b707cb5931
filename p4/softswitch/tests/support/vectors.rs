//! Vectors: what a controller writes, packets that come in, and what leaves.
//!
//! One step a line; `#` begins a comment, numbers are decimal or `0x...`.
//! ```text
//! multicast GROUP PORT/INSTANCE...        session ID LENGTH PORT/INSTANCE...
//! member PROFILE ID ACTION VALUE...       select PROFILE GROUP MEMBER...
//! entry TABLE KEY group ID|member ID|ACTION VALUE...
//! meter NAME INDEX CIR CBURST PIR PBURST  direct TABLE KEY CIR CBURST PIR PBURST
//! in PORT HEX                             out PORT HEX
//! ```
//! `out` lines say what leaves after the `in` before them, in any order. Where
//! bmv2 deviates from the specifications, `bmv2` lines say what leaves there.

use std::collections::BTreeMap;

use p4runtime::entry::{self, Error};
use p4runtime::info::Index;
use p4runtime::v1::{DirectMeterEntry, Entity, MeterConfig, Update};

/// Packets by port, each port's in order of their bytes: which of several
/// copies leaves first is not specified.
pub(crate) type Packets = BTreeMap<u16, Vec<Vec<u8>>>;

/// A line, or an `in` with its `out`s.
#[derive(Debug)]
pub(crate) enum Step {
    /// Something for the controller to write: the words of the line.
    Write(Vec<String>),
    /// A packet, and what is to leave because of it.
    Packet {
        line: usize,
        port: u16,
        bytes: Vec<u8>,
        out: Packets,
        /// The same on bmv2, if that deviates.
        #[allow(dead_code, reason = "only where bmv2 runs")]
        bmv2: Packets,
    },
}

/// Puts each port's packets in order.
pub(crate) fn in_order(mut packets: Packets) -> Packets {
    packets.values_mut().for_each(|packets| packets.sort());
    packets
}

fn number(word: &str) -> u64 {
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("{word:?} is not a number"))
}

fn bytes(words: &[&str]) -> Vec<u8> {
    let hex = words.concat();
    let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16);
    (0..hex.len() / 2)
        .map(|i| byte(i).unwrap_or_else(|_| panic!("{hex:?} is not hexadecimal")))
        .collect()
}

/// Reads vectors.
pub(crate) fn parse(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["in", port, rest @ ..] => steps.push(Step::Packet {
                line,
                port: number(port) as u16,
                bytes: bytes(rest),
                out: Packets::new(),
                bmv2: Packets::new(),
            }),
            [what @ ("out" | "bmv2"), port, rest @ ..] => {
                let Some(Step::Packet { out, bmv2, .. }) = steps.last_mut() else {
                    panic!("line {line}: {what} without in");
                };
                let side = if *what == "out" { out } else { bmv2 };
                let packets = side.entry(number(port) as u16).or_default();
                packets.push(bytes(rest));
                packets.sort();
            }
            words => steps.push(Step::Write(words.iter().map(|w| (*w).to_owned()).collect())),
        }
    }
    steps
}

fn replicas(words: &[&str]) -> Vec<p4runtime::v1::Replica> {
    let replicas = words.iter().map(|word| {
        let (port, instance) = word.split_once('/').expect("PORT/INSTANCE");
        entry::replica(number(port), number(instance) as u32)
    });
    replicas.collect()
}

fn config(words: &[&str]) -> MeterConfig {
    let at = |i: usize| number(words[i]).cast_signed();
    MeterConfig {
        cir: at(0),
        cburst: at(1),
        pir: at(2),
        pburst: at(3),
        eburst: 0,
    }
}

/// An action with its parameters in order.
fn arguments<'i>(index: &'i Index, action: &str, values: &[&str]) -> Vec<(&'i str, u64)> {
    let params = &index
        .action(action)
        .expect("an action of the program")
        .params;
    let names = params.iter().map(|p| p.name.as_str());
    names.zip(values.iter().map(|v| number(v))).collect()
}

/// The update that a line asks for.
pub(crate) fn update(index: &Index, words: &[String]) -> Result<Update, Error> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let entity: Entity = match words.as_slice() {
        ["multicast", group, rest @ ..] => {
            entry::multicast_group(number(group) as u32, replicas(rest)).into()
        }
        ["session", id, length, rest @ ..] => {
            entry::clone_session(number(id) as u32, number(length) as i32, replicas(rest)).into()
        }
        ["member", profile, id, action, values @ ..] => {
            let call = index.call(*action, arguments(index, action, values))?;
            index.member(*profile, number(id) as u32, call)?.into()
        }
        ["select", profile, group, members @ ..] => {
            let members = members.iter().map(|m| (number(m) as u32, 1));
            index
                .group(*profile, number(group) as u32, 8, members)?
                .into()
        }
        ["entry", table, key, target @ ..] => {
            let table = index.table(*table)?;
            let field = table.fields().next().expect("a key")?;
            let entry = table.entry().exact(field.name(), number(key));
            let entry = match target {
                ["group", id] => entry.group(number(id) as u32),
                ["member", id] => entry.member(number(id) as u32),
                [action, values @ ..] => entry.action(*action, arguments(index, action, values)),
                [] => panic!("an entry without action"),
            };
            entry.build()?.into()
        }
        ["meter", name, cell, rest @ ..] => {
            let cell = Some(number(cell).cast_signed());
            let meter = index.meter_entry(*name, cell, Some(config(rest)))?;
            return Ok(entry::modify(meter));
        }
        ["direct", table, key, rest @ ..] => {
            let table = index.table(*table)?;
            let field = table.fields().next().expect("a key")?;
            let meter = DirectMeterEntry {
                table_entry: Some(table.entry().exact(field.name(), number(key)).build_key()?),
                config: Some(config(rest)),
                counter_data: None,
            };
            return Ok(entry::modify(meter));
        }
        other => panic!("no step {other:?}"),
    };
    Ok(entry::insert(entity))
}

/// Vectors with what really left in place of what was to leave.
#[allow(dead_code, reason = "only where vectors are recorded")]
pub(crate) fn record(text: &str, sent: &BTreeMap<usize, Packets>) -> String {
    let mut recorded = String::new();
    let lines = (1..).zip(text.lines());
    for (line, content) in lines.filter(|(_, content)| !content.starts_with("out ")) {
        recorded.push_str(content);
        recorded.push('\n');
        for (port, packets) in sent.get(&line).into_iter().flatten() {
            for packet in packets {
                let hex: String = packet.iter().map(|b| format!("{b:02x}")).collect();
                recorded.push_str(&format!("out {port} {hex}\n"));
            }
        }
    }
    recorded
}

//! The vectors of the softswitch's test programs, on a switch between cables.
//!
//! `VECTORS_RECORD=1` writes what the switch does into the files instead.

#[path = "../../../p4/softswitch/tests/support/vectors.rs"]
mod format;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::switch::{SOON, Switch, Target};
use format::{Packets, Step};

/// Long enough for a packet that should not come.
const A_WHILE: Duration = Duration::from_millis(200);
const PORTS: u16 = 3;

pub(crate) fn run(target: Target, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../p4/softswitch/tests/programs")
        .join(name);
    let switch = Switch::start(target, &folder.join(name), 0);
    let file = folder.join("vectors");
    let text = std::fs::read_to_string(&file).unwrap();
    let is_recorded = std::env::var_os("VECTORS_RECORD").is_some();
    let mut sent = BTreeMap::new();
    for step in format::parse(&text) {
        match step {
            Step::Write(words) => {
                let update = format::update(switch.index(), &words).unwrap();
                switch.write(vec![update]);
            }
            Step::Packet {
                line,
                port,
                bytes,
                out,
                bmv2,
            } => {
                let out = match target {
                    Target::Bmv2 if !bmv2.is_empty() => bmv2,
                    _ => out,
                };
                switch.send(port.into(), &bytes);
                let wait = |port: u16| match out.get(&port).map_or(0, Vec::len) {
                    _ if is_recorded => (100, A_WHILE),
                    0 => (0, A_WHILE),
                    count => (count, SOON),
                };
                let left = format::in_order(collect(&switch, wait));
                if !is_recorded {
                    assert_eq!(left, out, "{name}/vectors, line {line}");
                }
                sent.insert(line, left);
            }
        }
    }
    assert_eq!(
        collect(&switch, |_| (1, A_WHILE)),
        Packets::new(),
        "more than expected"
    );
    if is_recorded {
        std::fs::write(file, format::record(&text, &sent)).unwrap();
    }
}

/// What leaves by each port: up to so many packets, within so long.
fn collect(switch: &Switch, wait: impl Fn(u16) -> (usize, Duration)) -> Packets {
    let frames = (1..=PORTS).map(|port| {
        let (count, within) = wait(port);
        (port, switch.receive(port.into(), count, within))
    });
    frames.filter(|(_, frames)| !frames.is_empty()).collect()
}

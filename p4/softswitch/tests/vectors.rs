//! The vectors beside the test programs. They were recorded on
//! simple_switch_grpc, except where docs/reference-v1model.md says that it
//! deviates from the specifications; `tests/tests/bmv2` compares with it anew.
//!
//! `VECTORS_RECORD=1` writes what this switch does into the files instead.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/vectors.rs"]
mod vectors;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use p4runtime::client::{Config, Session};
use p4runtime::info::Index;
use softswitch::server::{Server, ServerConfig};
use softswitch::trace::Event;
use softswitch::{Program, SharedSwitch, Switch, SwitchConfig};
use vectors::{Packets, Step};

/// Sends a packet in and collects what leaves, `now` in ns.
fn through(switch: &SharedSwitch, port: u16, bytes: &[u8], now: u64) -> Packets {
    let mut switch = switch.lock();
    let mut sent = Packets::new();
    switch.ingress(port, bytes, now);
    let mut ready = Vec::new();
    loop {
        switch.take_ready(&mut ready);
        if ready.is_empty() {
            return sent;
        }
        for &port in &ready {
            while let Some(packet) = switch.dequeue(port, now) {
                sent.entry(port).or_default().push(packet.bytes);
            }
        }
    }
}

async fn run(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let switch: SharedSwitch = SharedSwitch::new(Switch::new(SwitchConfig {
        device_id: 1,
        cpu_port: Some(510),
        queues: 8,
        ..SwitchConfig::default()
    }));
    let server = Server::new(switch.clone(), ServerConfig::default());
    let index = Index::parse_text(&read(&format!("{name}.p4info.txtpb"))).unwrap();
    let json = read(&format!("{name}.json")).into_bytes();
    server.install(index.p4info().clone(), json).await.unwrap();
    let (session, _streams) = Session::open(server.channel(), Config::new(1, 1))
        .await
        .unwrap();

    let text = read("vectors");
    let is_recorded = std::env::var_os("VECTORS_RECORD").is_some();
    let mut sent = BTreeMap::new();
    let mut now = 1_000_000_000;
    for step in vectors::parse(&text) {
        match step {
            Step::Write(words) => {
                let update =
                    vectors::update(&index, &words).unwrap_or_else(|e| panic!("{words:?}: {e}"));
                session
                    .write_all(vec![update])
                    .await
                    .unwrap_or_else(|e| panic!("{words:?}: {e}"));
            }
            Step::Packet {
                line,
                port,
                bytes,
                out,
                ..
            } => {
                now += 1_000;
                let left = vectors::in_order(through(&switch, port, &bytes, now));
                if !is_recorded {
                    assert_eq!(left, out, "{name}/vectors, line {line}");
                }
                sent.insert(line, left);
            }
        }
    }
    if is_recorded {
        std::fs::write(folder.join("vectors"), vectors::record(&text, &sent)).unwrap();
    }
}

#[tokio::test]
async fn paths() {
    run("paths").await;
}

#[tokio::test]
async fn hashes() {
    run("hashes").await;
}

#[tokio::test]
async fn choice() {
    run("choice").await;
}

#[tokio::test]
async fn shapes() {
    run("shapes").await;
}

/// The compiler says `header` where a condition asks whether a union in a stack is valid, which
/// bmv2 does not take.
#[test]
fn a_union_in_a_stack_may_be_called_a_header() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shapes");
    let json = std::fs::read_to_string(folder.join("shapes.json")).unwrap();
    let json: String = json.split_whitespace().collect();
    let member =
        r#"{"op":"d2b","left":null,"right":{"type":"field","value":["items[1].s","$valid$"]}}"#;
    let union = r#"{"op":"valid_union","left":null,"right":{"type":"header","value":"items[1]"}}"#;
    assert!(json.contains(member));
    let program = Program::load(json.replace(member, union).as_bytes()).unwrap();
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    let mut holds = |packet: &[u8]| {
        let (trace, _) = switch.trace(1, packet, 0).unwrap();
        let asked = trace.events.into_iter().find_map(|event| match event {
            Event::Condition { source, holds } if source.contains("items[1]") => Some(holds),
            _ => None,
        });
        asked.unwrap()
    };
    // One item; two, of either kind.
    assert!(!holds(&[3, 4, 1, 9, 0x77]));
    assert!(holds(&[3, 4, 1, 9, 1, 8, 0x77]));
    assert!(holds(&[3, 4, 1, 9, 2, 8, 8, 8, 0x77]));
}

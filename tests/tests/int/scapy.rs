//! A decoder written from the specifications alone, in Python with scapy, agrees on every field.
//!
//! `cargo test -p tests --test int -- --ignored scapy`; needs scapy from PyPI, or a python that has it in
//! MERIDIAN_SCAPY_PYTHON.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use controller::telemetry::int::metadata::Metadata;
use controller::telemetry::int::packet::Shown;
use controller::telemetry::int::report::{Datagram, Own, Report};
use controller::telemetry::int::stack::{Next, Stack};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use sonic_rs::{Value, json};

use crate::chain::{Chain, INDICATORS, kinds, watch};
use crate::model::Watch;
use crate::node::{INT_DSCP, INT_PORT};
use crate::reports::config;

/// A python that has scapy: the one named in the environment, else a new environment with it.
fn python(folder: &std::path::Path) -> PathBuf {
    if let Some(named) = std::env::var_os("MERIDIAN_SCAPY_PYTHON") {
        return named.into();
    }
    let done = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    done(Command::new("python3").args(["-m", "venv"]).arg(folder));
    let python = folder.join("bin/python");
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "scapy",
    ];
    done(Command::new(&python).args(install));
    python
}

/// What a stack or report says, bit by bit, as the numbers on the wire.
fn words(bitmap: u16, metadata: &Metadata, in_stack: bool) -> Value {
    let all = |bits: u32| (1u64 << bits) - 1;
    let mut words = json!({});
    let pair = |high: Option<u8>, low: Option<u32>| Some(u64::from(high?) << 24 | u64::from(low?));
    for bit in (0..16u8).filter(|bit| bitmap >> (15 - bit) & 1 == 1) {
        let reserved = metadata.reserved.iter().find(|(at, _)| *at == bit);
        let reserved = reserved.map(|(_, word)| u64::from(*word));
        let ports = metadata.ingress_port.zip(metadata.egress_port);
        let value = match bit {
            0 if in_stack => metadata.node.map(u64::from),
            1 => ports.map(|(from, to)| u64::from(from) << 16 | u64::from(to)),
            2 => metadata.latency.map(u64::from),
            3 => pair(metadata.queue, metadata.queue_depth),
            4 => metadata.ingress_time,
            5 => metadata.egress_time,
            6 => metadata
                .logical
                .map(|(from, to)| u64::from(from) << 32 | u64::from(to)),
            7 => metadata.utilisation.map(u64::from),
            8 => metadata
                .buffer
                .and_then(|(id, depth)| pair(Some(id), Some(depth))),
            15 if in_stack => metadata.complement.map(u64::from),
            15 => metadata
                .drop
                .map(|(queue, reason)| u64::from(queue) << 24 | u64::from(reason) << 16),
            _ => reserved,
        };
        let ones = if (4..=6).contains(&bit) {
            u64::MAX
        } else {
            all(32)
        };
        words[bit.to_string().as_str()] = json!(value.unwrap_or(ones));
    }
    words
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn stack(stack: &Stack) -> Value {
    let (npt, field) = match stack.next {
        Next::InPlace { dscp } => (0, u16::from(dscp) << 2),
        Next::Port(port) => (1, port),
        Next::Protocol(protocol) => (2, protocol.into()),
    };
    let hops = stack.hops.iter().map(|hop| {
        json!({"words": words(stack.instructions, hop, true), "ds": hex(&hop.domain_specific)})
    });
    json!({
        "discard": u8::from(stack.discard),
        "hops_exceeded": u8::from(stack.hops_exceeded),
        "mtu_exceeded": u8::from(stack.mtu_exceeded),
        "hop_ml": stack.hop_ml,
        "remaining_hops": stack.remaining_hops,
        "instructions": stack.instructions,
        "domain_id": stack.domain_id,
        "ds_instructions": stack.ds_instructions,
        "ds_flags": stack.ds_flags,
        "npt": npt,
        "field": field,
        "hops": hops.collect::<Vec<_>>(),
        "source_only": hex(&stack.source_only),
    })
}

fn packet(bytes: &[u8]) -> Value {
    let shown = Shown::of(bytes, &config().indicators).unwrap();
    let flow = shown.flow;
    let mut value = json!({
        "src": flow.src.to_string(),
        "dst": flow.dst.to_string(),
        "dscp": shown.dscp,
        "ecn": shown.ecn,
        "protocol": flow.protocol,
        "ports": [flow.src_port, flow.dst_port],
    });
    if let Some(qp) = flow.dest_qp {
        value["qp"] = json!(qp);
    }
    if let Some(int) = &shown.stack {
        value["int"] = stack(int);
    }
    value
}

fn report(report: &Report) -> Value {
    let mut value = json!({
        "in_type": if report.inner.ip().unwrap()[0] >> 4 == 4 { 4 } else { 5 },
        "dropped": report.dropped,
        "congested": report.congested,
        "tracked": report.tracked,
        "intermediate": report.intermediate,
        "packet": packet(report.inner.ip().unwrap()),
    });
    if let Some(own) = &report.own {
        value["own"] = json!({
            "md_bits": own.bits,
            "domain_id": own.domain_id,
            "ds_md_bits": own.ds_bits,
            "ds_md_status": own.ds_status,
            "words": words(own.bits, &own.metadata, false),
            "ds": hex(&own.metadata.domain_specific),
        });
    }
    value
}

fn datagram(datagram: &Datagram) -> Value {
    json!({
        "hw_id": datagram.hw_id,
        "sequence": datagram.sequence,
        "node_id": datagram.node,
        "reports": datagram.reports.iter().map(report).collect::<Vec<_>>(),
    })
}

/// Datagrams of our switches: every kind of packet, indicator and instruction.
fn from_switches() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for indicator in INDICATORS {
        for instructions in (0..16).map(|bit| 1 << bit).chain([0xffff, 0xfc00, 0x9001]) {
            for frame in kinds().into_iter().step_by(4) {
                let plain = watch(indicator, instructions);
                let watch = Watch {
                    hop_ml: plain.hop_ml + (instructions == 0x9001) as u8,
                    max_hops: 2,
                    domain: instructions,
                    ..plain
                };
                let passed = Chain::new(4, watch).send(&frame.bytes());
                all.extend(passed.reports.iter().map(|report| report[42..].to_vec()));
            }
        }
    }
    all
}

/// Datagrams that our switches never send: several reports, any metadata, domain specific parts.
fn invented(from: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let fields = (
        any::<u16>(),
        any::<[u8; 64]>(),
        any::<[u16; 3]>(),
        any::<[bool; 4]>(),
        0usize..3,
    );
    let mut runner = TestRunner::deterministic();
    let reports = from.iter().map(|bytes| {
        let ((bits, bytes_of, words, flags, extra), inner) = (
            fields.new_tree(&mut runner).unwrap().current(),
            Datagram::decode(bytes).unwrap().reports[0].inner.clone(),
        );
        let place = controller::telemetry::int::metadata::Place::Report;
        let mut bytes_of = bytes_of.to_vec();
        bytes_of.resize(
            controller::telemetry::int::metadata::bytes_of_all(bits) + extra * 4,
            7,
        );
        // The padding behind a drop reason is zero.
        let mut metadata = Metadata::decode(bits, extra * 4, &bytes_of, place).unwrap();
        metadata.reserved.retain(|(bit, _)| *bit != 0);
        Report {
            dropped: flags[0],
            congested: flags[1],
            tracked: flags[2],
            intermediate: flags[3],
            own: Some(Own {
                bits: bits & 0x7fff,
                domain_id: words[0],
                ds_bits: words[1],
                ds_status: words[2],
                metadata,
            }),
            inner,
        }
    });
    let reports: Vec<Report> = reports.collect();
    reports
        .chunks(3)
        .zip(0..)
        .map(|(reports, number)| {
            let datagram = Datagram {
                hw_id: number as u8 & 0x3f,
                sequence: (number * 4099) & 0x3f_ffff,
                node: number.wrapping_mul(0x9e37_79b9),
                reports: reports.to_vec(),
            };
            datagram.encode()
        })
        .collect()
}

#[test]
#[ignore = "needs scapy from PyPI"]
fn scapy_layers_agree_on_every_field() {
    let mut datagrams = from_switches();
    datagrams.extend(invented(&datagrams));
    assert!(datagrams.len() > 300);
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = Command::new(python(folder.path()))
        .arg(tests::root().join("tests/clients/int_layers.py"))
        .args([INT_DSCP.to_string(), INT_PORT.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = decoder.stdin.take().unwrap();
    let lines: String = datagrams.iter().map(|bytes| hex(bytes) + "\n").collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = decoder.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.lines().count(), datagrams.len());
    for (line, bytes) in told.lines().zip(&datagrams) {
        let theirs: Value = sonic_rs::from_str(line).unwrap();
        let ours = datagram(&Datagram::decode(bytes).unwrap());
        assert_eq!(ours, theirs, "{}", hex(bytes));
    }
}

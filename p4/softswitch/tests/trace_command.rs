//! `meridian-switch trace`, as a user calls it.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/programs/paths/paths.json"
);
/// Clones to session 7; the program's own header follows with zeros.
const CLONED: &str = "1:01 07 0000 00000000 0000 00000000 0000 0000 00 01020304";

fn trace(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meridian-switch"));
    command
        .args(["trace", PROGRAM])
        .args(arguments)
        .output()
        .unwrap()
}

fn printed(output: Output) -> String {
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

const SESSION: &str = "entities { packet_replication_engine_entry { clone_session_entry {
    session_id: 7 replicas { egress_port: 3 instance: 0 } } } }";

#[test]
fn entries_are_written_before_packets_come() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("entries.txtpb");
    let without = printed(trace(&["--packet", CLONED]));
    assert!(without.contains("session 7: 0 copies"), "{without}");

    let request = SESSION.replace("entities", "updates { type: INSERT entity") + "}";
    for text in [SESSION, &request] {
        std::fs::write(&file, text).unwrap();
        let with = printed(trace(&["--entries", path(&file), "--packet", CLONED]));
        assert!(with.contains("session 7: 1 copy"), "{with}");
        assert!(with.contains("port 3"), "{with}");
    }
}

#[test]
fn packets_of_files_are_one_line_of_json_each() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.pcap");
    let mut capture = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    capture.extend_from_slice(&[0; 20]);
    for micros in [5_u32, 9] {
        // Second, microseconds, bytes kept, bytes.
        for word in [1, micros, 19, 19] {
            capture.extend_from_slice(&word.to_le_bytes());
        }
        capture.extend_from_slice(&[0, 2]);
        capture.extend_from_slice(&[0; 17]);
    }
    std::fs::write(&file, capture).unwrap();
    let pcap = format!("3:{}", path(&file));
    let json = printed(trace(&[
        "--pcap", &pcap, "--packet", CLONED, "--format", "json",
    ]));
    let lines: Vec<&str> = json.lines().collect();
    assert_eq!(lines.len(), 3, "{json}");
    for (number, line) in (1..).zip(&lines) {
        assert!(line.starts_with(&format!("{{\"packet\":{number},")));
        let port = if number == 1 { 1 } else { 3 };
        let received = format!("{{\"event\":\"received\",\"port\":{port},");
        assert!(line.contains(&received), "{line}");
        assert!(line.contains("\"event\":\"sent\""), "{line}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("entries.txtpb");
    let fails = |arguments: &[&str], expected: &str| {
        let output = trace(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(said.contains(expected), "{said}");
    };
    fails(&[], "--packet");
    fails(&["--packet", "1:0"], "hexadecimal");
    fails(&["--pcap", "1:none.pcap"], "none.pcap");
    let with_entries = ["--entries", path(&file), "--packet", CLONED];
    fails(&with_entries, "cannot read");
    std::fs::write(&file, "entities {\n table_entry { table: 1 } }").unwrap();
    fails(&with_entries, "line 2");
    std::fs::write(&file, "entities { table_entry { table_id: 77 } }").unwrap();
    fails(&with_entries, "no table with id 77");
}

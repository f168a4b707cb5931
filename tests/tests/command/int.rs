//! In-band telemetry as a user has it: what it shows, and what it costs.

use std::net::UdpSocket;
use std::process::Stdio;

use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _, Value};

use super::{json, meridian, stderr, stdout};

/// Bus bandwidth of the placed run on a topology; reports go to this address.
fn placed(topology: &str, reports_to: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let output = meridian(folder.path())
        .args(["demo", "--format", "json", "--topology", topology])
        .args(["--int-reports", reports_to, "--report"])
        .arg(folder.path().join("report"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    json(&stdout(&output))["runs"][1]["busbw_ratio"]
        .as_f64()
        .unwrap()
}

/// A UDP address that is free now.
fn free_address() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().to_string()
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn one_packet_in_64_costs_little_and_shows_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let watch = meridian(folder.path())
        .args([
            "int",
            "watch",
            "proto=roce",
            "--format",
            "json",
            "--listen",
            &address,
        ])
        .args([
            "--topology",
            "topologies/demo-int.yaml",
            "--seconds",
            "60",
            "--count",
            "200",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let measured = placed("topologies/demo-int.yaml", &address);
    let plain = placed("topologies/demo.yaml", &address);
    println!("busbw / NIC rate: {measured:.4} measured, {plain:.4} not");
    assert!(
        measured > 0.95 * plain,
        "{measured} with INT, {plain} without"
    );
    assert!(measured != plain, "nothing was measured");

    let output = watch.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let updates: Vec<Value> = text.lines().map(json).collect();
    let flows: Vec<&Value> = updates
        .iter()
        .flat_map(|update| update["flows"].as_array().unwrap())
        .collect();
    assert!(!flows.is_empty());
    let mut across = 0;
    for flow in flows {
        let path = flow["path"].as_array().unwrap();
        if path.is_empty() {
            continue;
        }
        let names: Vec<&str> = path
            .iter()
            .map(|hop| hop["node"].as_str().unwrap())
            .collect();
        // From leaf to leaf through a spine, or within one leaf.
        assert!(names.len() == 1 || names.len() == 3, "{names:?}");
        assert!(
            names
                .iter()
                .all(|name| name.starts_with("leaf") || name.starts_with("spine"))
        );
        across += usize::from(names.len() == 3);
    }
    assert!(across > 0);
    let last = updates.last().unwrap();
    assert_eq!(last["collector"]["malformed"].as_u64(), Some(0));
    assert_eq!(last["collector"]["unreadable"].as_u64(), Some(0));
}

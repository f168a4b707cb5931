//! Fabrics that stay up: status, interruption, what is left behind.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _};

use super::{json, meridian, stderr, stdout};

/// First of a run of TCP ports that are free now.
fn free_ports() -> u16 {
    let mut base = 20_000;
    loop {
        let mut range = base..base + 12;
        if range.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return base;
        }
        base += 100;
        assert!(base < 60_000, "no run of free ports");
    }
}

fn up(run_dir: &Path, base_port: u16) -> Child {
    meridian(run_dir)
        .args(["up", "topologies/demo.yaml", "--grpc-base-port"])
        .arg(base_port.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Asks for the status until the fabric answers.
fn status(run_dir: &Path) -> sonic_rs::Value {
    let begun = Instant::now();
    loop {
        let output = meridian(run_dir)
            .args(["status", "demo", "--format", "json"])
            .output()
            .unwrap();
        if output.status.success() {
            return json(&stdout(&output));
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{}",
            stderr(&output)
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn signal(child: &Child, signal: i32) {
    let sent = std::process::Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn a_fabric_comes_up_tells_its_status_and_ends_on_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let base = free_ports();
    let child = up(folder.path(), base);
    let status = status(folder.path());
    let fabric = &status["fabrics"].as_array().unwrap()[0];
    let switches = fabric["switches"].as_array().unwrap();
    assert_eq!(switches.len(), 12);
    for switch in switches {
        assert_eq!(switch["session"].as_str(), Some("primary"));
        assert!(switch["entries"]["route_v4"].as_u64().unwrap() > 0);
        assert_eq!(switch["ports"].as_array().unwrap().len(), 8);
    }

    // A second one of its name, and one that wants its ports, are refused.
    let second = up(folder.path(), base).wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        stderr(&second).contains("running already"),
        "{}",
        stderr(&second)
    );
    let other = tempfile::tempdir().unwrap();
    let third = up(other.path(), base).wait_with_output().unwrap();
    assert_eq!(third.status.code(), Some(1));
    assert!(
        stderr(&third).contains(&base.to_string()),
        "{}",
        stderr(&third)
    );
    assert_eq!(entries(other.path()), 0);

    signal(&child, 2);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("every NIC reaches every other (992 pairs tried)"));
    assert_eq!(entries(folder.path()), 0);
    assert!(TcpListener::bind(("127.0.0.1", base)).is_ok());
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn what_a_killed_fabric_leaves_is_cleared_by_the_next_command() {
    let folder = tempfile::tempdir().unwrap();
    let child = up(folder.path(), free_ports());
    status(folder.path());
    signal(&child, 9);
    child.wait_with_output().unwrap();
    assert_eq!(entries(folder.path()), 1);
    let output = meridian(folder.path()).arg("status").output().unwrap();
    assert!(output.status.success());
    assert!(stdout(&output).contains("no fabric is running"));
    assert_eq!(entries(folder.path()), 0);
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn a_switch_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_ports();
    let mut command = meridian(folder.path());
    command.args(["up", "topologies/two-leaves.yaml", "--target", "external"]);
    let shown = meridian(folder.path())
        .args(["topology", "generate", "topologies/two-leaves.yaml"])
        .output()
        .unwrap();
    let names: Vec<String> = topology::Topology::parse("two-leaves", &stdout(&shown))
        .unwrap()
        .switches()
        .iter()
        .map(|switch| switch.name.clone())
        .collect();
    for name in &names {
        command
            .arg("--switch")
            .arg(format!("{name}=127.0.0.1:{port}"));
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    for name in &names {
        assert!(
            stderr(&output).contains(name.as_str()),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(entries(folder.path()), 0);
}

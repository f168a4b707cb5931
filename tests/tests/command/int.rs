//! In-band telemetry as a user has it: what it shows, and what it costs.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::process::{Child, ChildStderr, Stdio};

use controller::telemetry::int::metadata::Metadata;
use controller::telemetry::int::report::{Datagram, Inner, Own, Report};
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

/// A collector that is waiting for reports, as a process; what it says, and a way to it.
fn watching(arguments: &[&str]) -> (Child, BufReader<ChildStderr>, UdpSocket) {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let mut child = meridian(folder.path())
        .args(["int", "watch", "--listen", &address, "--interval-ms", "20"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for reports"), "{line}");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    (child, said, socket)
}

fn interrupt(child: &Child) {
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: a plain system call on a process that this test started and still owns.
    #[allow(unsafe_code)]
    let sent = unsafe { libc::kill(pid, libc::SIGINT) };
    assert_eq!(sent, 0);
}

/// A node's report of a UDP packet from 10.0.0.1 that it delivered, or dropped for a reason.
fn report(node: u32, sequence: u32, dropped: Option<u8>) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 1, 0x40, 0, 62, 17, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend([1000u16, 2000, 8, 0].map(u16::to_be_bytes).concat());
    let metadata = Metadata {
        ingress_port: Some(3),
        egress_port: Some(4),
        queue: Some(5),
        queue_depth: Some(6),
        drop: dropped.map(|reason| (5, reason)),
        ..Metadata::default()
    };
    let report = Report {
        dropped: dropped.is_some(),
        congested: false,
        tracked: dropped.is_none(),
        intermediate: false,
        own: Some(Own {
            bits: if dropped.is_some() { 0x5001 } else { 0x5000 },
            metadata,
            ..Own::default()
        }),
        inner: Inner::Ipv4(packet),
    };
    Datagram {
        hw_id: 0,
        sequence,
        node,
        reports: vec![report],
    }
    .encode()
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn ctrl_c_ends_watching_with_all_that_was_seen() {
    let (mut child, _said, socket) = watching(&["--format", "json", "proto=udp"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || json(&lines.next().unwrap().unwrap());
    socket.send(&report(7, 1, None)).unwrap();
    let first = next();
    assert_eq!(first["last"].as_bool(), Some(false));
    assert_eq!(
        first["flows"][0]["flow"].as_str(),
        Some("10.0.0.1 > 10.0.0.2 udp 1000 > 2000")
    );
    // One that is none, a drop behind a number left out, the same again, another path.
    for datagram in [
        b"no report".to_vec(),
        report(7, 3, Some(5)),
        report(7, 3, Some(5)),
        report(8, 0, None),
    ] {
        socket.send(&datagram).unwrap();
    }
    while next()["collector"]["datagrams"].as_u64() != Some(5) {}
    interrupt(&child);
    let last = next();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(last["last"].as_bool(), Some(true));
    let flow = &last["flows"][0];
    assert_eq!(flow["path_changes"].as_u64(), Some(1));
    assert_eq!(flow["drops"][0]["reason"].as_str(), Some("no_route"));
    assert_eq!(flow["path"][0]["queue_depth"]["last"].as_u64(), Some(6));
    let collector = &last["collector"];
    let counts = ["datagrams", "malformed", "lost", "doubled"].map(|name| collector[name].as_u64());
    assert_eq!(counts, [5, 1, 1, 1].map(Some), "{last:?}");
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn a_reader_that_goes_away_ends_watching() {
    let (mut child, _said, socket) = watching(&[]);
    socket.send(&report(7, 1, None)).unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 3];
    out.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"---");
    drop(out);
    for number in 2.. {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        assert!(number < 500, "it goes on");
        // Nobody listens once it has ended.
        let _ = socket.send(&report(7, number, None));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

//! In-band telemetry as a user has it: `meridian up` on real links, `meridian int watch` beside it.

use std::net::UdpSocket;
use std::process::{Command, Stdio};

use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _, Value};
use topology::Topology;

use crate::fabrics::{binary, options, program};
use crate::leftovers::{Traces, signal};

const FABRIC: &str = "
name: measured
clos: {segments: 2, hosts: 1, rails: 1, spines: 2}
policy:
  mtu: 1500
  int:
    instructions: [node, ports, latency, queue, logical_ports, utilisation, buffer]
    max_hops: 4
    watch: [{protocol: tcp, one_in: 5}, {protocol: udp, one_in: 5}]
    reports: {drops: true, marks: true, queue: 1MB, rate: 5000}
";

#[test]
#[ignore = "needs root and Mininet"]
fn paths_of_iperf3_are_seen_and_ctrl_c_ends_with_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("measured.yaml");
    std::fs::write(&file, FABRIC).unwrap();
    let topology = Topology::parse("measured", FABRIC).unwrap();
    let plan = lab::mininet::plan(&topology, &options(20_440)).unwrap();
    let target = plan.hosts[1].nics[0].v4;
    let address = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let watch = Command::new(binary("meridian"))
        .args([
            "int",
            "watch",
            &format!("dst={target}"),
            "--format",
            "json",
            "--listen",
            &address,
        ])
        .arg("--topology")
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let iperf3 = format!("h1:sleep 1; iperf3 -c {target}");
    let up = Command::new(binary("meridian"))
        .arg("up")
        .arg(&file)
        .args([
            "--target",
            "mininet",
            "--grpc-base-port",
            "20440",
            "--int-reports",
            &address,
        ])
        .args(["--program", &program().kind.name().replace('_', "-")])
        .args(["--exec", "h2:iperf3 -s -D"])
        .args(["--exec", &format!("{iperf3} -t 2")])
        .args(["--exec", &format!("{iperf3} -u -b 5M -t 2")])
        .output()
        .unwrap();
    assert!(
        up.status.success(),
        "{}",
        String::from_utf8_lossy(&up.stderr)
    );
    signal(&watch, libc::SIGINT);
    let output = watch.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let updates: Vec<Value> = text
        .lines()
        .map(|line| sonic_rs::from_str(line).unwrap())
        .collect();
    let last = updates.last().unwrap();
    assert_eq!(last["last"].as_bool(), Some(true), "{text}");
    assert!(
        updates[..updates.len() - 1]
            .iter()
            .all(|u| u["last"].as_bool() == Some(false))
    );
    assert_eq!(last["collector"]["malformed"].as_u64(), Some(0), "{text}");
    assert_eq!(last["collector"]["unreadable"].as_u64(), Some(0), "{text}");
    let flows = last["flows"].as_array().unwrap();
    for protocol in [" tcp ", " udp "] {
        let of_protocol = flows
            .iter()
            .filter(|f| f["flow"].as_str().unwrap().contains(protocol));
        let reports: Vec<u64> = of_protocol
            .clone()
            .map(|f| f["reports"].as_u64().unwrap())
            .collect();
        println!(
            "{}: reports of{protocol}flows: {reports:?}",
            program().kind.name()
        );
        assert!(reports.iter().any(|count| *count > 20), "{text}");
        for flow in of_protocol {
            check(flow);
        }
    }
    Traces::of_plan(&plan).assert_gone();
}

/// Leaf, spine, leaf; every hop tells all that it was asked for.
fn check(flow: &Value) {
    let path = flow["path"].as_array().unwrap();
    let names: Vec<&str> = path
        .iter()
        .map(|hop| hop["node"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!((names[0], names[2]), ("leaf-s1r0", "leaf-s2r0"));
    assert!(names[1].starts_with("spine"), "{names:?}");
    let logical = |hop: usize, end: usize| path[hop]["logical"][end].as_str().unwrap().to_owned();
    assert_eq!(
        (logical(0, 0), logical(2, 1)),
        ("h1/0".to_owned(), "h2/0".to_owned())
    );
    // Both ends of a link call it the same.
    assert_eq!(logical(0, 1), logical(1, 0));
    assert_eq!(logical(1, 1), logical(2, 0));
    for hop in path {
        for name in [
            "latency_ns",
            "queue_depth",
            "utilisation",
            "buffer_occupancy",
        ] {
            assert!(hop[name]["max"].as_u64().is_some(), "{name} of {hop:?}");
        }
        let port = hop["egress_port"].as_u64().unwrap();
        let queue = hop["queue"].as_u64().unwrap();
        assert_eq!(hop["buffer"].as_u64(), Some((port << 3 | queue) & 0xff));
    }
    assert_eq!(flow["path_changes"].as_u64(), Some(0));
}

#[test]
#[ignore = "needs root and Mininet"]
fn drops_are_told_with_their_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dropped.yaml");
    let text = FABRIC.replace("measured", "dropped");
    std::fs::write(&file, &text).unwrap();
    let plan = lab::mininet::plan(
        &Topology::parse("dropped", &text).unwrap(),
        &options(20_460),
    )
    .unwrap();
    let address = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let watch = Command::new(binary("meridian"))
        .args([
            "int",
            "watch",
            "dst=198.51.100.1",
            "--format",
            "json",
            "--listen",
            &address,
        ])
        .arg("--topology")
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let up = Command::new(binary("meridian"))
        .arg("up")
        .arg(&file)
        .args([
            "--target",
            "mininet",
            "--grpc-base-port",
            "20460",
            "--int-reports",
            &address,
        ])
        .args(["--program", &program().kind.name().replace('_', "-")])
        .args([
            "--exec",
            "h1:bash -c 'for n in 1 2 3; do echo x > /dev/udp/198.51.100.1/9; done'; sleep 1",
        ])
        .output()
        .unwrap();
    assert!(
        up.status.success(),
        "{}",
        String::from_utf8_lossy(&up.stderr)
    );
    signal(&watch, libc::SIGTERM);
    let output = watch.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Value = sonic_rs::from_str(text.lines().last().unwrap()).unwrap();
    // Each of the three has a source port of its own.
    let flows = last["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 3, "{text}");
    for flow in flows {
        let drops = &flow["drops"][0];
        assert_eq!(drops["node"].as_str(), Some("leaf-s1r0"), "{text}");
        assert_eq!(drops["reason"].as_str(), Some("no_route"), "{text}");
        assert_eq!(drops["packets"].as_u64(), Some(1), "{text}");
    }
    Traces::of_plan(&plan).assert_gone();
}

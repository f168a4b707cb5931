//! The same by the `meridian` command: as its users bring a fabric up, and stop it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lab::mininet::Plan;
use serde::Deserialize;
use topology::Topology;

use crate::fabrics::{binary, options, program};
use crate::leftovers::{Traces, interfaces, signal};

/// User and group that own nothing.
const NOBODY: u32 = 65534;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/demo.yaml")
}

fn demo_plan() -> Plan {
    lab::mininet::plan(&Topology::load(demo()).unwrap(), &options(20_300)).unwrap()
}

/// `meridian up topologies/demo.yaml --target mininet`, on ports of this test.
fn up_demo() -> Command {
    let mut command = Command::new(binary("meridian"));
    command
        .arg("up")
        .arg(demo())
        .args(["--target", "mininet", "--grpc-base-port", "20300"]);
    command.args(["--program", &program().kind.name().replace('_', "-")]);
    command
}

#[derive(Deserialize)]
struct Done {
    ping: Ping,
    exec: Vec<Executed>,
}

#[derive(Deserialize)]
struct Ping {
    tried: usize,
    failed: Vec<String>,
}

#[derive(Deserialize)]
struct Executed {
    host: String,
    code: i32,
    stdout: String,
}

#[test]
#[ignore = "needs root and Mininet"]
fn one_command_pings_all_and_measures() {
    let plan = demo_plan();
    let target = plan.host("h5").unwrap().nics[0].v4;
    let output = up_demo()
        .args(["--once", "--format", "json"])
        .args(["--exec", "h5:iperf3 -s -D"])
        .args(["--exec", &format!("h1:sleep 1; iperf3 -c {target} -t 2")])
        .args(["--exec", &format!("h1:iperf3 -c {target} -u -b 10M -t 2")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    let done: Done = sonic_rs::from_slice(&output.stdout).unwrap();
    // 32 NICs, each to the 28 of the other hosts.
    assert_eq!(
        (done.ping.tried, done.ping.failed.len()),
        (896, 0),
        "{:?}",
        done.ping.failed
    );
    for run in &done.exec {
        assert_eq!(run.code, 0, "{}: {}", run.host, run.stdout);
    }
    let clients = done
        .exec
        .iter()
        .filter(|run| run.stdout.contains("receiver"));
    assert_eq!(clients.count(), 2);
    Traces::of_plan(&plan).assert_gone();
}

fn complaint(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Starts the command and waits until the fabric is up.
fn running_demo() -> Child {
    // A session of its own, as in a terminal; the signals below go to its process alone.
    let mut child = up_demo()
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_up = lines.any(|line| line.unwrap().contains("is up on mininet"));
    assert!(is_up, "ended without being up: {}", child.wait().unwrap());
    child
}

#[test]
#[ignore = "needs root and Mininet"]
fn ctrl_c_ends_a_fabric_and_leaves_nothing() {
    let plan = demo_plan();
    let mut child = running_demo();
    let traces = Traces::of_running(&plan);
    let status = Command::new(binary("meridian"))
        .args(["status", "demo"])
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", complaint(&status));
    signal(&child, libc::SIGINT);
    let start = Instant::now();
    let code = child.wait().unwrap();
    assert!(code.success(), "{code}");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    traces.assert_gone();
}

#[test]
#[ignore = "needs root and Mininet"]
fn ctrl_c_during_bring_up_leaves_nothing() {
    let plan = demo_plan();
    let mut child = up_demo()
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    while interfaces(&plan.tag).len() < 20 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    Traces::of_plan(&plan).assert_gone();
}

#[test]
#[ignore = "needs root and Mininet"]
fn a_killed_command_leaves_nothing() {
    let plan = demo_plan();
    let mut child = running_demo();
    let traces = Traces::of_running(&plan);
    child.kill().unwrap();
    child.wait().unwrap();
    traces.assert_gone_soon();
}

#[test]
#[ignore = "needs root and Mininet"]
fn a_port_in_use_is_named() {
    let _taken = std::net::TcpListener::bind("127.0.0.1:20303").unwrap();
    let output = up_demo().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("20303") && said.contains("--grpc-base-port"),
        "{said}"
    );
    Traces::of_plan(&demo_plan()).assert_gone();
}

#[test]
#[ignore = "needs root and Mininet"]
fn another_user_is_told_that_root_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["meridian", "meridian-switch"] {
        std::fs::copy(binary(name), folder.path().join(name)).unwrap();
    }
    std::fs::copy(demo(), folder.path().join("demo.yaml")).unwrap();
    let output = Command::new(folder.path().join("meridian"))
        .args(["up", "demo.yaml", "--target", "mininet"])
        .current_dir(folder.path())
        .env("MERIDIAN_RUN_DIR", folder.path().join("run"))
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", complaint(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("sudo"), "{said}");
}

#[test]
#[ignore = "needs root and Mininet"]
fn a_container_without_the_right_is_told_so() {
    // Root as unprivileged containers have it.
    let up = up_demo();
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-sys_admin"])
        .arg(up.get_program())
        .args(up.get_args())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--privileged"), "{said}");
    Traces::of_plan(&demo_plan()).assert_gone();
}

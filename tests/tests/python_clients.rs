//! Python P4Runtime clients from PyPI against `meridian-switch`: they push the fabric's pipeline,
//! write entries and read them back.
//!
//! Each client gets a virtual environment of its own in a temporary folder, because they want
//! different versions of protobuf. `tests/run` looks whether pip reaches them before it runs these.
#![allow(clippy::unwrap_used)]

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `meridian-switch`, killed when dropped.
struct Switch {
    process: Child,
    address: SocketAddr,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Switch {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let process = Command::new(tests::binary("meridian-switch").unwrap())
            .args(["--device-id", "1", "--no-p4", "--", "--cpu-port", "510"])
            .args([
                "--priority-queues",
                "8",
                "--grpc-server-addr",
                &free.to_string(),
            ])
            .spawn()
            .unwrap();
        let switch = Switch {
            process,
            address: free,
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(free).is_err() {
            assert!(
                Instant::now() < deadline,
                "the switch does not listen on {free}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        switch
    }
}

/// A python with `package` from PyPI, or why there is none.
fn python_with(package: &str, folder: &Path) -> Result<PathBuf, String> {
    let run = |command: &mut Command| -> Result<(), String> {
        let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(said.lines().last().unwrap_or("no reason given").to_owned())
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let python = folder.join("bin/python");
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        package,
    ];
    run(Command::new(&python).args(install))?;
    Ok(python)
}

fn run_client(package: &str, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let python = python_with(package, folder.path())
        .unwrap_or_else(|why| panic!("pip cannot install {package}: {why}"));
    let switch = Switch::start();
    let compiled = tests::root().join("p4/compiled");
    let mut client = Command::new(python)
        .arg(tests::root().join("tests/clients").join(script))
        .arg(switch.address.to_string())
        .args([
            compiled.join("fabric.p4info.txtpb"),
            compiled.join("fabric.json"),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = client.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            client.kill().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let (mut out, mut err) = (String::new(), String::new());
    client
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    client
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert!(
        status.is_some_and(|s| s.success()),
        "{package} ended with {status:?}\n{out}\n{err}"
    );
    assert!(out.contains("ok"), "{out}");
}

#[test]
#[ignore = "installs packages from PyPI"]
fn p4runtime_shell() {
    run_client("p4runtime-shell", "shell_client.py");
}

#[test]
#[ignore = "installs packages from PyPI"]
fn finsy() {
    run_client("finsy", "finsy_client.py");
}

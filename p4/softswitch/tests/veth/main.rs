//! `meridian-switch` between two network namespaces: frames, checksums that the kernel left
//! undone, segmentation, VLAN tags, ports that go down or away, rates, and clean ends.
//!
//! Those that lay cables need root and `ip`, and are run by the `switch` part of `tests/run`.
#![allow(clippy::unwrap_used)]

mod kinds;
mod net;
mod process;
mod queues;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use net::{Net, ip, must_ip};
use process::{Switch, binary};

#[test]
#[ignore = "needs root and network namespaces"]
fn frames_pass_with_checksums_segments_and_tags() {
    let net = Net::new("f");
    let switch = Switch::between(&net, &[]);
    switch.connect_sides();

    let ping = net
        .command("a", "ping")
        .args(["-c", "3", "-i", "0.2", "-W", "2", "10.99.0.2"])
        .output();
    if let Ok(ping) = &ping
        && !String::from_utf8_lossy(&ping.stderr).contains("exec of")
    {
        assert!(
            ping.status.success(),
            "{}",
            String::from_utf8_lossy(&ping.stdout)
        );
    }
    // TCP, with the kernel's checksum and segmentation offload as they are by default.
    transfer(&net, 4 << 20);

    if net.move_to_vlan() {
        transfer(&net, 1 << 20);
    } else {
        println!("skipped: this kernel has no VLAN interfaces");
    }
    let log = switch.stop("-TERM");
    assert!(log.contains("terminated"), "{log}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn jumbo_frames_pass() {
    let net = Net::new("j");
    for side in ["a", "b"] {
        must_ip(&format!("link set {} mtu 9000", net.port(side)));
        must_ip(&format!("-n {} link set eth0 mtu 9000", net.space(side)));
    }
    let switch = Switch::between(&net, &["--threads", "1"]);
    switch.connect_sides();
    transfer(&net, 4 << 20);
    switch.stop("-TERM");
}

/// Sends `bytes` over TCP from one side to the other with python3, where there is one.
fn transfer(net: &Net, bytes: usize) {
    let receiver = "import socket,sys\n\
        s=socket.create_server(('10.99.0.2',5001))\nprint('ready',flush=True)\n\
        c,_=s.accept()\nn=0\n\
        while True:\n d=c.recv(1<<20)\n if not d: break\n n+=len(d)\n\
        print(n,flush=True)";
    let sender = format!(
        "import socket\ns=socket.create_connection(('10.99.0.2',5001),timeout=10)\n\
         s.sendall(b'x'*{bytes})\ns.close()"
    );
    let Ok(mut receiving) = net
        .command("b", "python3")
        .args(["-c", receiver])
        .stdout(Stdio::piped())
        .spawn()
    else {
        return;
    };
    let mut ready = [0u8; 6];
    receiving
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
    let start = Instant::now();
    let sent = net
        .command("a", "python3")
        .args(["-c", &sender])
        .output()
        .unwrap();
    assert!(
        sent.status.success(),
        "{}",
        String::from_utf8_lossy(&sent.stderr)
    );
    let done = receiving.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&done.stdout).trim(),
        bytes.to_string()
    );
    // Retransmission after retransmission would also get there, at some kB/s.
    let took = start.elapsed();
    assert!(took < Duration::from_secs(8), "{bytes} bytes took {took:?}");
    let _ = std::io::stdout().flush();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn ports_follow_their_interfaces() {
    let net = Net::new("p");
    let switch = Switch::between(&net, &[]);
    switch.connect_sides();
    must_ip(&format!("link set {} down", net.port("b")));
    std::thread::sleep(Duration::from_millis(300));
    must_ip(&format!("link set {} up", net.port("b")));
    std::thread::sleep(Duration::from_millis(300));
    transfer(&net, 100_000);
    // The carrier goes with the other end.
    must_ip(&format!("-n {} link set eth0 down", net.space("a")));
    std::thread::sleep(Duration::from_millis(300));
    let ports = switch.ask("port show --format json");
    let ports = String::from_utf8_lossy(&ports.stdout).into_owned();
    assert!(ports.contains("\"up\": false"), "{ports}");
    let log = switch.stop("-INT");
    assert!(log.contains("up=false"), "{log}");
    assert!(log.contains("up=true"), "{log}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_interface_may_go_and_come_back() {
    let net = Net::new("g");
    let switch = Switch::between(&net, &[]);
    switch.connect_sides();
    must_ip(&format!("link delete {}", net.port("a")));
    std::thread::sleep(Duration::from_millis(300));
    net.lay("a");
    std::thread::sleep(Duration::from_millis(500));
    transfer(&net, 100_000);
    must_ip(&format!("link delete {}", net.port("a")));
    must_ip(&format!("link delete {}", net.port("b")));
    std::thread::sleep(Duration::from_millis(100));
    let log = switch.stop("-TERM");
    assert!(log.contains("up=true"), "{log}");
    assert!(!ip(&format!("link show {}", net.port("a"))).status.success());
}

fn fails(words: &[&str]) -> String {
    let output = binary().args(words).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn errors_say_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    let said = fails(&["--no-p4", "--grpc-server-addr", free, "--metrics", &address]);
    assert!(
        said.contains("in use") && said.contains("--metrics"),
        "{said}"
    );
    let said = fails(&["--no-p4", "--grpc-server-addr", &address]);
    assert!(
        said.contains("in use") && said.contains("--grpc-server-addr"),
        "{said}"
    );
    let said = fails(&[
        "--no-p4",
        "-i",
        "1@no-such-if0",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ]);
    assert!(said.contains("no-such-if0"), "{said}");
    let said = fails(&["no-such.json"]);
    assert!(said.contains("no-such.json"), "{said}");
    let said = fails(&["--no-p4", "--grpc-server-addr", "nonsense"]);
    assert!(said.contains("nonsense"), "{said}");
    let said = fails(&[]);
    assert!(said.contains("--no-p4"), "{said}");
    let said = fails(&["queue", "show", "--address", &process::free_address()]);
    assert!(said.contains("--address"), "{said}");
}

#[test]
fn a_bad_program_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.json");
    std::fs::write(&path, "{\"program\": ").unwrap();
    let said = fails(&[path.to_str().unwrap()]);
    assert!(said.contains("bad.json"), "{said}");
}

//! `meridian-switch` between two network namespaces: frames, checksums that the kernel left
//! undone, segmentation, VLAN tags, ports that go down, and clean ends.
//!
//! Those that lay cables need root and `ip`, and are run by the `switch` part of `tests/run`.
#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const CONTROL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/control");

fn ip(words: &str) -> Output {
    Command::new("ip")
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

fn must_ip(words: &str) {
    let output = ip(words);
    assert!(
        output.status.success(),
        "ip {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Two namespaces with one interface each; the other ends are for the switch. All of it goes
/// when dropped.
struct Net {
    name: String,
}

impl Net {
    fn new(test: &str) -> Net {
        let net = Net {
            name: format!("ms{}{test}", std::process::id() % 10_000),
        };
        must_ip(&format!("netns add {}a", net.name));
        must_ip(&format!("netns add {}b", net.name));
        for side in ["a", "b"] {
            let (space, port) = (net.space(side), net.port(side));
            must_ip(&format!(
                "link add {port} type veth peer name eth0 netns {space}"
            ));
            must_ip(&format!("link set {port} up"));
            let number = if side == "a" { 1 } else { 2 };
            must_ip(&format!(
                "-n {space} link set eth0 address 02:00:00:00:00:0{number}"
            ));
            must_ip(&format!(
                "-n {space} address add 10.99.0.{number}/24 dev eth0"
            ));
            must_ip(&format!("-n {space} link set eth0 up"));
            let other = 3 - number;
            must_ip(&format!(
                "-n {space} neighbour add 10.99.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0"
            ));
        }
        net
    }

    fn space(&self, side: &str) -> String {
        format!("{}{side}", self.name)
    }

    fn port(&self, side: &str) -> String {
        format!("{}p{side}", self.name)
    }

    /// Moves the addresses to interfaces of VLAN 7, whose tags the kernel hands over beside the
    /// frames. False where it has no such interfaces.
    fn move_to_vlan(&self) -> bool {
        for (side, number, other) in [("a", 1, 2), ("b", 2, 1)] {
            let space = self.space(side);
            let add = format!("-n {space} link add link eth0 name eth0.7 type vlan id 7");
            if !ip(&add).status.success() {
                return false;
            }
            must_ip(&format!("-n {space} address flush dev eth0"));
            must_ip(&format!(
                "-n {space} address add 10.99.0.{number}/24 dev eth0.7"
            ));
            must_ip(&format!("-n {space} link set eth0.7 up"));
            must_ip(&format!(
                "-n {space} neighbour replace 10.99.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0.7"
            ));
        }
        true
    }

    /// Runs a program in a namespace.
    fn command(&self, side: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(side), program]);
        command
    }

    fn switch(&self) -> Switch {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_meridian-switch"))
            .args([
                "-i",
                &format!("1@{}", self.port("a")),
                "-i",
                &format!("2@{}", self.port("b")),
            ])
            .args([
                "--p4info",
                &format!("{CONTROL}.p4info.txtpb"),
                &format!("{CONTROL}.json"),
            ])
            .args(["--log-console", "--", "--cpu-port", "510"])
            .args(["--grpc-server-addr", &address.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "the switch does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Switch {
            process,
            address: address.to_string(),
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for side in ["a", "b"] {
            ip(&format!("link delete {}", self.port(side)));
            ip(&format!("netns delete {}", self.space(side)));
        }
    }
}

struct Switch {
    process: Child,
    address: String,
}

impl Switch {
    /// Frames for each side's MAC go to its port.
    fn connect_sides(&self) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            use p4runtime::v1::{self, entity::Entity};
            let channel = tonic::transport::Endpoint::new(format!("http://{}", self.address))
                .unwrap()
                .connect()
                .await
                .unwrap();
            let mut client = v1::p4_runtime_client::P4RuntimeClient::new(channel);
            let election_id = Some(v1::Uint128 { high: 0, low: 1 });
            let claim = v1::StreamMessageRequest {
                update: Some(v1::stream_message_request::Update::Arbitration(
                    v1::MasterArbitrationUpdate {
                        election_id,
                        ..Default::default()
                    },
                )),
            };
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            sender.send(claim).await.unwrap();
            let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
            let mut answers = client.stream_channel(requests).await.unwrap().into_inner();
            answers.message().await.unwrap().unwrap();
            let info = std::fs::read_to_string(format!("{CONTROL}.p4info.txtpb")).unwrap();
            let info = p4runtime::info::Index::parse_text(&info).unwrap();
            let id = |name: &str| {
                let tables = info.p4info().tables.iter().map(|t| &t.preamble);
                let actions = info.p4info().actions.iter().map(|a| &a.preamble);
                tables
                    .chain(actions)
                    .flatten()
                    .find(|p| p.alias == name)
                    .unwrap()
                    .id
            };
            let forward = |side: u8| v1::Update {
                r#type: v1::update::Type::Insert as i32,
                entity: Some(v1::Entity {
                    entity: Some(Entity::TableEntry(v1::TableEntry {
                        table_id: id("l2"),
                        r#match: vec![v1::FieldMatch {
                            field_id: 1,
                            field_match_type: Some(v1::field_match::FieldMatchType::Exact(
                                v1::field_match::Exact {
                                    value: vec![2, 0, 0, 0, 0, side],
                                },
                            )),
                        }],
                        action: Some(v1::TableAction {
                            r#type: Some(v1::table_action::Type::Action(v1::Action {
                                action_id: id("send"),
                                params: vec![v1::action::Param {
                                    param_id: 1,
                                    value: vec![side],
                                }],
                            })),
                        }),
                        ..Default::default()
                    })),
                }),
            };
            let updates = vec![forward(1), forward(2)];
            let request = v1::WriteRequest {
                election_id,
                updates,
                ..Default::default()
            };
            client.write(request).await.unwrap();
        });
    }

    /// Ends it with a signal; everything it logged.
    fn stop(mut self, signal: &str) -> String {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break;
            }
            assert!(Instant::now() < deadline, "the switch does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut log = String::new();
        self.process
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        log
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn frames_pass_with_checksums_segments_and_tags() {
    let net = Net::new("f");
    let switch = net.switch();
    switch.connect_sides();
    assert!(Path::new("/proc/self/ns/net").exists());

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
    let switch = net.switch();
    switch.connect_sides();
    must_ip(&format!("link set {} down", net.port("b")));
    std::thread::sleep(Duration::from_millis(300));
    must_ip(&format!("link set {} up", net.port("b")));
    std::thread::sleep(Duration::from_millis(300));
    transfer(&net, 100_000);
    let log = switch.stop("-INT");
    assert!(log.contains("up=false"), "{log}");
    assert!(log.contains("up=true"), "{log}");
}

fn fails(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_meridian-switch"))
        .args(words)
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn errors_say_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
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
}

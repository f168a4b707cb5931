//! A running `meridian-switch` and its controller.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::net::Net;

const CONTROL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/control");

/// A `meridian-switch`, ended when dropped.
pub(crate) struct Switch {
    process: Child,
    pub(crate) address: String,
}

pub(crate) fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_meridian-switch"))
}

/// An address of this machine that nobody listens on now.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

impl Switch {
    /// Between the two sides of a net, with the program and more options.
    pub(crate) fn between(net: &Net, options: &[&str]) -> Switch {
        let (a, b) = (net.port("a"), net.port("b"));
        Switch::start(binary(), [&*a, &*b], options)
    }

    /// With two interfaces, the program and more options.
    pub(crate) fn start(mut command: Command, interfaces: [&str; 2], options: &[&str]) -> Switch {
        let address = free_address();
        for (port, interface) in interfaces.iter().enumerate() {
            command.args(["-i", &format!("{}@{interface}", port + 1)]);
        }
        let process = command
            .args(["--p4info", &format!("{CONTROL}.p4info.txtpb")])
            .args([&format!("{CONTROL}.json"), "--log-console"])
            .args(options)
            .args(["--", "--cpu-port", "510", "--grpc-server-addr", &address])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < deadline, "the switch does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Switch { process, address }
    }

    /// Runs `meridian-switch` against it.
    pub(crate) fn ask(&self, words: &str) -> Output {
        binary()
            .args(words.split_whitespace())
            .args(["--address", &self.address])
            .output()
            .unwrap()
    }

    /// Frames for each side's MAC go to its port.
    pub(crate) fn connect_sides(&self) {
        self.forward(&[([2, 0, 0, 0, 0, 1], 1), ([2, 0, 0, 0, 0, 2], 2)]);
    }

    /// Frames for a MAC go to a port.
    pub(crate) fn forward(&self, routes: &[([u8; 6], u8)]) {
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
            let forward = |(mac, port): ([u8; 6], u8)| v1::Update {
                r#type: v1::update::Type::Insert as i32,
                entity: Some(v1::Entity {
                    entity: Some(Entity::TableEntry(v1::TableEntry {
                        table_id: id("l2"),
                        r#match: vec![v1::FieldMatch {
                            field_id: 1,
                            field_match_type: Some(v1::field_match::FieldMatchType::Exact(
                                v1::field_match::Exact {
                                    value: p4runtime::bytes::canonical(&mac),
                                },
                            )),
                        }],
                        action: Some(v1::TableAction {
                            r#type: Some(v1::table_action::Type::Action(v1::Action {
                                action_id: id("send"),
                                params: vec![v1::action::Param {
                                    param_id: 1,
                                    value: vec![port],
                                }],
                            })),
                        }),
                        ..Default::default()
                    })),
                }),
            };
            let updates = routes.iter().map(|route| forward(*route)).collect();
            let request = v1::WriteRequest {
                election_id,
                updates,
                ..Default::default()
            };
            client.write(request).await.unwrap();
        });
    }

    /// Ends it with a signal; everything it logged. It has a second.
    pub(crate) fn stop(mut self, signal: &str) -> String {
        let pid = self.process.id().to_string();
        let start = Instant::now();
        let killed = Command::new("kill").args([signal, &pid]).status();
        assert!(killed.unwrap().success());
        let status = self.wait(Duration::from_secs(1));
        assert!(status.success(), "{status}");
        assert!(start.elapsed() < Duration::from_millis(1_500));
        let mut log = String::new();
        let mut stdout = self.process.stdout.take().unwrap();
        stdout.read_to_string(&mut log).unwrap();
        log
    }

    fn wait(&mut self, limit: Duration) -> std::process::ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the switch does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

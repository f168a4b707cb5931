//! A running simple_switch_grpc with three cables, in a network namespace of its own.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use p4runtime::entry;
use p4runtime::info::Index;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{
    CounterData, CounterEntry, DirectCounterEntry, Entity, ForwardingPipelineConfig,
    MasterArbitrationUpdate, PacketIn, ReadRequest, SetForwardingPipelineConfigRequest,
    StreamMessageRequest, StreamMessageResponse, TableEntry, Uint128, WriteRequest, entity,
    stream_message_request, stream_message_response,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::wire::Wire;

const DEVICE_ID: u64 = 1;
const ELECTION_ID: Uint128 = Uint128 { high: 0, low: 1 };
const GRPC: &str = "127.0.0.1:9559";
/// Ports of the switch that have a cable: 1 to this.
const PORTS: u32 = 3;
/// Where bmv2 takes its Thrift calls.
pub(crate) const THRIFT_PORT: u16 = 9090;
/// Long enough for a packet through an idle switch, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(5);

const IN_NAMESPACE: &str = "MERIDIAN_TEST_NAMESPACE";

/// Runs a test in network and process namespaces that vanish with it, whatever becomes of it:
/// the test program runs once more, inside, for this one test.
pub(crate) fn isolated(test: &str, body: impl FnOnce(&mut Switch)) {
    if std::env::var_os(IN_NAMESPACE).is_some() {
        body(&mut Switch::start());
        return;
    }
    // bmv2 reads the state of interfaces from /sys, which shows those of the namespace it was
    // mounted in.
    let inside = "mount -t sysfs sysfs /sys && exec \"$@\"";
    let status = Command::new("unshare")
        .args(["--net", "--pid", "--mount", "--fork", "--kill-child", "--"])
        .args(["sh", "-c", inside, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(IN_NAMESPACE, "yes")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed in its namespace");
}

fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// The process, ended when this goes.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The switch, its cables and a controller's session with it.
pub(crate) struct Switch {
    runtime: Runtime,
    client: P4RuntimeClient<Channel>,
    requests: mpsc::Sender<StreamMessageRequest>,
    responses: Streaming<StreamMessageResponse>,
    pub(crate) index: Index,
    wires: Vec<Wire>,
    _process: Process,
}

impl Switch {
    /// Lays the cables, starts the switch, becomes its primary controller and gives it the pipeline.
    fn start() -> Self {
        ip("link set lo up");
        for port in 1..=PORTS {
            ip(&format!("link add s{port} type veth peer name h{port}"));
            for end in ["s", "h"] {
                // No addresses, so that the kernel sends nothing of its own.
                ip(&format!(
                    "link set {end}{port} addrgenmode none mtu 9000 up"
                ));
            }
        }
        let wires = (1..=PORTS)
            .map(|port| Wire::open(&format!("h{port}")).unwrap())
            .collect();
        let process = spawn();

        let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/compiled");
        let info = std::fs::read_to_string(compiled.join("fabric.p4info.txtpb")).unwrap();
        let json = std::fs::read(compiled.join("fabric.json")).unwrap();
        let index = Index::parse_text(&info).unwrap();

        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (client, requests, responses) = runtime.block_on(async {
            let mut client = connect().await;
            let (requests, receiver) = mpsc::channel(16);
            requests.send(arbitration()).await.unwrap();
            let mut responses = client
                .stream_channel(ReceiverStream::new(receiver))
                .await
                .unwrap()
                .into_inner();
            let answer = responses.message().await.unwrap().unwrap().update.unwrap();
            assert!(
                matches!(answer, stream_message_response::Update::Arbitration(_)),
                "{answer:?}"
            );
            let request = SetForwardingPipelineConfigRequest {
                device_id: DEVICE_ID,
                election_id: Some(ELECTION_ID),
                action: Action::VerifyAndCommit.into(),
                config: Some(ForwardingPipelineConfig {
                    p4info: Some(index.p4info().clone()),
                    p4_device_config: json,
                    cookie: None,
                }),
                ..Default::default()
            };
            client
                .set_forwarding_pipeline_config(request)
                .await
                .unwrap();
            (client, requests, responses)
        });
        Switch {
            runtime,
            client,
            requests,
            responses,
            index,
            wires,
            _process: process,
        }
    }

    /// Adds the entries.
    pub(crate) fn insert(&mut self, entries: Vec<TableEntry>) {
        let request = WriteRequest {
            device_id: DEVICE_ID,
            election_id: Some(ELECTION_ID),
            updates: entries.into_iter().map(entry::insert).collect(),
            ..Default::default()
        };
        self.runtime.block_on(self.client.write(request)).unwrap();
    }

    fn read(&mut self, entity: impl Into<Entity>) -> Vec<entity::Entity> {
        let request = ReadRequest {
            device_id: DEVICE_ID,
            entities: vec![entity.into()],
            ..Default::default()
        };
        let client = &mut self.client;
        self.runtime.block_on(async {
            let mut stream = client.read(request).await.unwrap().into_inner();
            let mut found = Vec::new();
            while let Some(response) = stream.message().await.unwrap() {
                found.extend(
                    response
                        .entities
                        .into_iter()
                        .filter_map(|entity| entity.entity),
                );
            }
            found
        })
    }

    /// Cells of a counter that are not zero: index and packets.
    pub(crate) fn counter(&mut self, name: &str) -> Vec<(i64, i64)> {
        let all: CounterEntry = self.index.counter_entry(name, None, None).unwrap();
        self.read(all)
            .into_iter()
            .filter_map(|found| match found {
                entity::Entity::CounterEntry(cell) => {
                    let packets = cell.data.map_or(0, |data: CounterData| data.packet_count);
                    (packets != 0).then(|| (cell.index.map_or(0, |index| index.index), packets))
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// Packets of every entry of a table with a direct counter.
    pub(crate) fn direct_counter(&mut self, table: &str) -> Vec<i64> {
        let table_entry = self.index.table(table).unwrap().all(false);
        let all = DirectCounterEntry {
            table_entry: Some(table_entry),
            data: None,
        };
        self.read(all)
            .into_iter()
            .map(|found| match found {
                entity::Entity::DirectCounterEntry(entry) => entry.data.unwrap().packet_count,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// Sends a frame into a port, and gives bmv2 time to take it: its receive ring has 32 places.
    pub(crate) fn send(&self, port: usize, frame: &[u8]) {
        self.wires[port - 1].send(frame).unwrap();
        std::thread::sleep(Duration::from_micros(500));
    }

    /// Up to `count` frames out of a port.
    pub(crate) fn receive(&self, port: usize, count: usize, within: Duration) -> Vec<Vec<u8>> {
        self.wires[port - 1].receive(count, within).unwrap()
    }

    /// The next packet-in: ingress port, reason and frame.
    pub(crate) fn packet_in(&mut self) -> (u128, u128, Vec<u8>) {
        let responses = &mut self.responses;
        let packet: PacketIn = self.runtime.block_on(async {
            loop {
                let next = tokio::time::timeout(SOON, responses.message()).await;
                let response = next.expect("no packet-in").unwrap().expect("stream ended");
                if let Some(stream_message_response::Update::Packet(packet)) = response.update {
                    return packet;
                }
            }
        });
        let fields = self.index.packet_in_fields(&packet).unwrap();
        let number = |at: usize| p4runtime::bytes::decode(fields[at].1.as_bytes()).unwrap();
        assert_eq!((fields[0].0, fields[1].0), ("ingress_port", "reason"));
        (number(0), number(1), packet.payload)
    }

    /// Sends a packet-out: out of `port`, or through the pipeline.
    pub(crate) fn packet_out(&mut self, port: Option<u64>, frame: &[u8]) {
        let fields = [
            ("egress_port", port.unwrap_or(0)),
            ("submit_to_ingress", u64::from(port.is_none())),
            ("pad", 0),
        ];
        let packet = self.index.packet_out(frame, fields).unwrap();
        let update = stream_message_request::Update::Packet(packet);
        let request = StreamMessageRequest {
            update: Some(update),
        };
        let requests = &self.requests;
        let responses = &mut self.responses;
        self.runtime.block_on(async {
            requests.send(request).await.unwrap();
            // The stream moves only while something waits on it.
            let _ = tokio::time::timeout(Duration::from_millis(50), responses.message()).await;
        });
    }
}

fn spawn() -> Process {
    let mut command = Command::new("simple_switch_grpc");
    command.args([
        "--no-p4",
        "--device-id",
        "1",
        "--thrift-port",
        &THRIFT_PORT.to_string(),
    ]);
    for port in 1..=PORTS {
        command.args(["-i", &format!("{port}@s{port}")]);
    }
    command.args([
        "--",
        "--grpc-server-addr",
        GRPC,
        "--cpu-port",
        "510",
        "--priority-queues",
        "8",
    ]);
    Process(command.stdout(Stdio::null()).spawn().unwrap())
}

async fn connect() -> P4RuntimeClient<Channel> {
    let start = Instant::now();
    loop {
        match P4RuntimeClient::connect(format!("http://{GRPC}")).await {
            Ok(client) => return client.max_decoding_message_size(64 << 20),
            Err(error) => assert!(start.elapsed() < 4 * SOON, "simple_switch_grpc: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn arbitration() -> StreamMessageRequest {
    let update = MasterArbitrationUpdate {
        device_id: DEVICE_ID,
        election_id: Some(ELECTION_ID),
        ..Default::default()
    };
    StreamMessageRequest {
        update: Some(stream_message_request::Update::Arbitration(update)),
    }
}

/// Sets how fast a port's queues are served, in packets per second.
pub(crate) fn queue_rate(port: i32, rate: i64) -> io::Result<()> {
    crate::thrift::set_queue_rate(THRIFT_PORT, port, rate)
}

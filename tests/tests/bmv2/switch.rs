//! A running switch with three cables, in a network namespace of its own.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use p4runtime::client::{Config, Pipeline, Session, Streams};
use p4runtime::entry;
use p4runtime::info::Index;
use p4runtime::switch::v1::switch_control_client::SwitchControlClient;
use p4runtime::switch::v1::{Rate, SetQueuesRequest, rate::Limit};
use p4runtime::transport;
use p4runtime::v1::{
    CounterEntry, DirectCounterEntry, Entity, P4Data, TableEntry, entity, p4_data,
};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use crate::entries;
use crate::wire::Wire;

/// First port for P4Runtime; a second switch in the same namespace has the next one.
const GRPC_PORT: u16 = 9559;
/// Ports of the switch that have a cable: 1 to this.
const PORTS: u32 = 3;
/// Where bmv2 takes its Thrift calls.
const THRIFT_PORT: u16 = 9090;
/// Long enough for a packet through an idle switch, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(5);

const IN_NAMESPACE: &str = "MERIDIAN_TEST_NAMESPACE";

/// What runs the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// simple_switch_grpc on PATH.
    Bmv2,
    /// meridian-switch, built beside this test.
    MeridianSwitch,
}

impl Target {
    fn command(self) -> Command {
        match self {
            Target::Bmv2 => {
                let mut command = Command::new("simple_switch_grpc");
                command.args(["--thrift-port", &THRIFT_PORT.to_string()]);
                command
            }
            Target::MeridianSwitch => Command::new(tests::binary("meridian-switch").unwrap()),
        }
    }
}

/// Runs a scenario in network and process namespaces that vanish with it, whatever becomes of it:
/// the test program runs once more, inside, for this one `test`, which is its path with the crate's
/// name in front.
pub(crate) fn isolated(test: &str, target: Target, scenario: impl FnOnce(&mut Switch)) {
    in_namespaces(test, || {
        let fabric = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/compiled/fabric");
        let mut switch = Switch::start(target, &fabric, 0);
        switch.insert(entries::all(&switch.index).unwrap());
        scenario(&mut switch);
    });
}

/// [`isolated`], without a switch.
pub(crate) fn in_namespaces(test: &str, scenario: impl FnOnce()) {
    if std::env::var_os(IN_NAMESPACE).is_some() {
        return scenario();
    }
    let (_, test) = test.split_once("::").unwrap();
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
    session: Session,
    streams: Streams,
    index: Index,
    wires: Vec<Wire>,
    process: Process,
    target: Target,
    place: u16,
}

impl Switch {
    /// Lays the cables, starts the switch, becomes its primary controller and gives it the
    /// pipeline: `program` is the path of its JSON and P4Info without their extensions. `place` tells
    /// switches of one namespace apart, from 0.
    pub(crate) fn start(target: Target, program: &Path, place: u16) -> Self {
        let wires = lay_cables(place);
        let process = spawn(target, place);
        let info = std::fs::read_to_string(program.with_extension("p4info.txtpb")).unwrap();
        let json = std::fs::read(program.with_extension("json")).unwrap();
        let index = Index::parse_text(&info).unwrap();

        // The session's own task needs a thread while the test waits for packets.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (session, streams) = runtime.block_on(async {
            let channel = connect(place).await;
            let (session, streams) = Session::open(channel, Config::new(1, 1)).await.unwrap();
            assert!(session.standing().is_primary());
            let pipeline = Pipeline::new(index.p4info().clone(), json);
            session.verify_and_commit(&pipeline).await.unwrap();
            (session, streams)
        });
        Switch {
            runtime,
            session,
            streams,
            index,
            wires,
            process,
            target,
            place,
        }
    }

    /// Adds the entries.
    pub(crate) fn insert(&self, entries: Vec<TableEntry>) {
        let updates = entries.into_iter().map(entry::insert).collect();
        let write = self.session.write_all(updates);
        self.runtime.block_on(write).unwrap();
    }

    /// Writes whatever there is to write.
    pub(crate) fn write(&self, updates: Vec<p4runtime::v1::Update>) {
        self.runtime
            .block_on(self.session.write_all(updates))
            .unwrap();
    }

    /// The program by names.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    fn read(&self, pattern: impl Into<Entity>) -> Vec<entity::Entity> {
        let read = self.session.read_all(vec![pattern.into()]);
        let entities = self.runtime.block_on(read).unwrap();
        entities
            .into_iter()
            .map(|found| found.entity.unwrap())
            .collect()
    }

    /// Cells of a counter that are not zero: index and packets.
    pub(crate) fn counter(&self, name: &str) -> Vec<(i64, i64)> {
        let all: CounterEntry = self.index.counter_entry(name, None, None).unwrap();
        let cells = self.read(all).into_iter().map(|found| match found {
            entity::Entity::CounterEntry(cell) => {
                (cell.index.unwrap().index, cell.data.unwrap().packet_count)
            }
            other => panic!("{other:?}"),
        });
        cells.filter(|(_, packets)| *packets != 0).collect()
    }

    /// Packets of every entry of a table with a direct counter.
    pub(crate) fn direct_counter(&self, table: &str) -> Vec<i64> {
        let counts = self.direct_counts(table).into_iter();
        counts.map(|(_, packets)| packets).collect()
    }

    /// Every entry of a table with a direct counter, and its packets.
    pub(crate) fn direct_counts(&self, table: &str) -> Vec<(TableEntry, i64)> {
        let all = DirectCounterEntry {
            table_entry: Some(self.index.table(table).unwrap().all(false)),
            data: None,
        };
        self.read(all)
            .into_iter()
            .map(|found| match found {
                entity::Entity::DirectCounterEntry(entry) => {
                    (entry.table_entry.unwrap(), entry.data.unwrap().packet_count)
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// Sends a frame into a port, and gives bmv2 time to take it: its receive ring has 32 places.
    pub(crate) fn send(&self, port: usize, frame: &[u8]) {
        self.send_at_once(port, frame);
        std::thread::sleep(Duration::from_micros(500));
    }

    /// Sends a frame into a port.
    pub(crate) fn send_at_once(&self, port: usize, frame: &[u8]) {
        self.wires[port - 1].send(frame).unwrap();
    }

    /// Up to `count` frames out of a port.
    pub(crate) fn receive(&self, port: usize, count: usize, within: Duration) -> Vec<Vec<u8>> {
        self.wires[port - 1].receive(count, within).unwrap()
    }

    /// The next packet-in: ingress port, reason and frame.
    pub(crate) fn packet_in(&mut self) -> (u128, u128, Vec<u8>) {
        let packets = &mut self.streams.packets;
        let next = async { tokio::time::timeout(SOON, packets.recv()).await };
        let packet = self.runtime.block_on(next).expect("no packet-in").unwrap();
        self.opened(packet)
    }

    /// The next list of digests of structs that end in a number: its id and those numbers.
    pub(crate) fn digest(&mut self, within: Duration) -> Option<(u64, Vec<u32>)> {
        let digests = &mut self.streams.digests;
        let next = async { tokio::time::timeout(within, digests.recv()).await };
        let list = self.runtime.block_on(next).ok()??;
        let number = |data: &P4Data| match &data.data {
            Some(p4_data::Data::Struct(fields)) => {
                fields.members.last().and_then(|m| match &m.data {
                    Some(p4_data::Data::Bitstring(bytes)) => p4runtime::bytes::decode(bytes).ok(),
                    _ => None,
                })
            }
            _ => None,
        };
        let numbers = list.data.iter().map(|data| number(data).unwrap() as u32);
        Some((list.list_id, numbers.collect()))
    }

    /// Acknowledges a list of digests.
    pub(crate) fn acknowledge(&self, digest: u32, list: u64) {
        let sent = self.session.acknowledge(digest, list);
        self.runtime.block_on(sent).unwrap();
    }

    /// Serves each queue of a port at so many packets per second.
    pub(crate) fn queue_rate(&self, port: u16, rate: u64) {
        match self.target {
            Target::Bmv2 => queue_rate(port.into(), rate as i64).unwrap(),
            Target::MeridianSwitch => {
                let request = SetQueuesRequest {
                    port: Some(port.into()),
                    rate: Some(Rate {
                        limit: Some(Limit::PacketsPerSecond(rate)),
                    }),
                    ..Default::default()
                };
                self.runtime.block_on(async {
                    let mut client = SwitchControlClient::new(connect(self.place).await);
                    client.set_queues(request).await.unwrap();
                });
            }
        }
    }

    /// Lets the switch's process stand still for a while.
    pub(crate) fn pause(&self, time: Duration) {
        let signal = |name: &str| {
            let pid = self.process.0.id().to_string();
            let done = Command::new("kill").args([name, &pid]).status().unwrap();
            assert!(done.success());
        };
        signal("-STOP");
        std::thread::sleep(time);
        signal("-CONT");
    }

    fn opened(&self, packet: p4runtime::v1::PacketIn) -> (u128, u128, Vec<u8>) {
        let fields = self.index.packet_in_fields(&packet).unwrap();
        let number = |at: usize| p4runtime::bytes::decode(fields[at].1.as_bytes()).unwrap();
        assert_eq!((fields[0].0, fields[1].0), ("ingress_port", "reason"));
        (number(0), number(1), packet.payload)
    }

    /// Sends a packet-out: out of `port`, or through the pipeline.
    pub(crate) fn packet_out(&self, port: Option<u64>, frame: &[u8]) {
        let fields = [
            ("egress_port", port.unwrap_or(0)),
            ("submit_to_ingress", u64::from(port.is_none())),
            ("pad", 0),
        ];
        let packet = self.index.packet_out(frame, fields).unwrap();
        self.runtime
            .block_on(self.session.packet_out(packet))
            .unwrap();
    }
}

/// Name of an end of a cable.
fn interface(end: &str, place: u16, port: u32) -> String {
    format!("{end}{place}p{port}")
}

fn grpc(place: u16) -> String {
    format!("127.0.0.1:{}", GRPC_PORT + place)
}

fn lay_cables(place: u16) -> Vec<Wire> {
    ip("link set lo up");
    for port in 1..=PORTS {
        let (near, far) = (interface("s", place, port), interface("h", place, port));
        ip(&format!("link add {near} type veth peer name {far}"));
        for end in [near, far] {
            // No addresses, so that the kernel sends nothing of its own.
            let settings = "addrgenmode none mtu 9000 up";
            ip(&format!("link set {end} {settings}"));
        }
    }
    (1..=PORTS)
        .map(|port| Wire::open(&interface("h", place, port)).unwrap())
        .collect()
}

fn spawn(target: Target, place: u16) -> Process {
    let mut command = target.command();
    command.args(["--no-p4", "--device-id", "1"]);
    for port in 1..=PORTS {
        command.args(["-i", &format!("{port}@{}", interface("s", place, port))]);
    }
    command.args(["--", "--grpc-server-addr", &grpc(place)]);
    command.args(["--cpu-port", "510", "--priority-queues", "8"]);
    let child = command.stdout(Stdio::null()).spawn();
    Process(child.unwrap_or_else(|error| panic!("{target:?}: {error}")))
}

async fn connect(place: u16) -> Channel {
    let start = Instant::now();
    loop {
        match transport::connect(&grpc(place)).await {
            Ok(channel) => return channel,
            Err(error) => assert!(start.elapsed() < 4 * SOON, "no switch: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Sets how fast a port's queues are served, in packets per second.
pub(crate) fn queue_rate(port: i32, rate: i64) -> io::Result<()> {
    crate::thrift::set_queue_rate(THRIFT_PORT, port, rate)
}

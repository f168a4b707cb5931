#![allow(clippy::unwrap_used)]

use super::*;
use crate::intent::{Options, Planner};
use crate::placement::Demand;
use crate::reconcile::{Action, Key, Match};
use crate::routing::LinkSet;
use crate::telemetry::Locality;
use softswitch::server::{Server, ServerConfig};
use softswitch::{SharedSwitch, Switch, SwitchConfig};
use topology::{Clos, HostCounts, NicId, Tier, generate};

fn small() -> Arc<Topology> {
    let clos = Clos {
        hosts: HostCounts::Each(2),
        rails: 2,
        spines: Some(2),
        ..Clos::default()
    };
    Arc::new(generate(&clos).unwrap())
}

fn server(device_id: u64) -> Server {
    let config = SwitchConfig {
        device_id,
        cpu_port: Some(510),
        queues: 8,
        ..SwitchConfig::default()
    };
    Server::new(
        SharedSwitch::new(Switch::new(config)),
        ServerConfig::default(),
    )
}

struct Running {
    topology: Arc<Topology>,
    servers: Vec<Server>,
}

impl Running {
    fn start() -> Self {
        let topology = small();
        let servers = topology
            .switches()
            .iter()
            .map(|s| server(s.device_id))
            .collect();
        Self { topology, servers }
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        let switches = self.topology.switches().iter().zip(&self.servers);
        switches
            .map(|(switch, server)| {
                let server = server.clone();
                Endpoint::new(&switch.name, switch.device_id, move || {
                    let channel = server.channel();
                    async move { Ok::<_, String>(channel) }
                })
            })
            .collect()
    }

    async fn connect(&self, config: Config) -> Result<(Controller, Connected), FleetError> {
        let program = Arc::new(Program::fabric().unwrap());
        Controller::connect(
            Arc::clone(&self.topology),
            program,
            self.endpoints(),
            config,
        )
        .await
    }

    fn desired(&self) -> Desired {
        let planner = Planner::new(Arc::clone(&self.topology), Options::default());
        Desired::new(planner).unwrap()
    }

    async fn controller(&self) -> (Controller, Desired) {
        let (controller, _) = self.connect(Config::default()).await.unwrap();
        let desired = self.desired();
        controller.reconcile(&desired).await.unwrap();
        (controller, desired)
    }
}

#[tokio::test]
async fn cold_switches_are_filled_and_warm_ones_left_alone() {
    let running = Running::start();
    let (controller, connected) = running.connect(Config::default()).await.unwrap();
    let switches = running.topology.switches().len();
    assert_eq!(
        connected,
        Connected {
            pushed: switches,
            kept: 0
        }
    );
    let desired = running.desired();
    let first = controller.reconcile(&desired).await.unwrap().total();
    assert_eq!(
        (first.inserted, first.modified, first.deleted),
        (desired.intent().len(), 0, 0)
    );
    let second = controller.reconcile(&desired).await.unwrap().total();
    assert_eq!(
        (second.updates(), second.found),
        (0, desired.intent().len())
    );
    // A controller that takes over finds all as it should be.
    drop(controller);
    let (controller, connected) = running
        .connect(Config {
            election_id: 2,
            ..Config::default()
        })
        .await
        .unwrap();
    assert_eq!(
        connected,
        Connected {
            pushed: 0,
            kept: switches
        }
    );
    assert_eq!(
        controller
            .reconcile(&desired)
            .await
            .unwrap()
            .total()
            .updates(),
        0
    );
}

/// The clone sessions and the rate of reports that a switch holds.
async fn resources(controller: &Controller) -> (usize, i64) {
    use p4runtime::v1::{self, entity::Entity, packet_replication_engine_entry::Type};
    let session = controller.links[0].session().unwrap();
    let meter = controller
        .program
        .index
        .meter_entry("int_report_meter", Some(2), None);
    let sessions = v1::PacketReplicationEngineEntry {
        r#type: Some(Type::CloneSessionEntry(v1::CloneSessionEntry::default())),
    };
    let pattern = |entity| v1::Entity {
        entity: Some(entity),
    };
    let patterns = vec![
        pattern(Entity::PacketReplicationEngineEntry(sessions)),
        pattern(Entity::MeterEntry(meter.unwrap())),
    ];
    let (mut sessions, mut rate) = (0, 0);
    for entity in session.read_all(patterns).await.unwrap() {
        match entity.entity.unwrap() {
            Entity::MeterEntry(meter) => rate = meter.config.map_or(0, |config| config.cir),
            _ => sessions += 1,
        }
    }
    (sessions, rate)
}

#[tokio::test]
async fn another_policy_of_reports_reaches_switches_that_run_the_pipeline() {
    let mut running = Running::start();
    let switches = running.topology.switches().len();
    drop(running.controller().await);
    // Reports to the controller, then to a NIC at another rate, by a session per port.
    let policies = [
        ("reports: {rate: 100}", (1, 100)),
        ("collector: 10.0.0.2:32766, reports: {rate: 300}", (65, 300)),
        ("reports: {rate: 200}", (1, 200)),
    ];
    for (election_id, (int, expected)) in (2..).zip(policies) {
        let text = format!(
            "name: small\nclos: {{segments: 2, hosts: 2, rails: 2, spines: 2}}\npolicy: {{int: {{{int}}}}}\n"
        );
        running.topology = Arc::new(Topology::parse("small", &text).unwrap());
        let config = Config {
            election_id,
            ..Config::default()
        };
        let (controller, connected) = running.connect(config).await.unwrap();
        assert_eq!((connected.pushed, connected.kept), (0, switches));
        controller.reconcile(&running.desired()).await.unwrap();
        assert_eq!(resources(&controller).await, expected, "{int}");
    }
}

#[tokio::test]
async fn drift_is_found_and_repaired() {
    let running = Running::start();
    let (controller, desired) = running.controller().await;
    let switch = running.topology.tier(Tier::Leaf).next().unwrap();
    let state = &desired.states()[switch.index()];
    let route = 43955427;
    let mut routes = state.entries.iter().filter(|(key, _)| key.table == route);
    let (gone, _) = routes.next().unwrap();
    let (changed, action) = routes.next().unwrap();
    let foreign = Key {
        table: route,
        fields: vec![
            (1, Match::Exact(vec![9])),
            (2, Match::Lpm(vec![192, 0, 2, 0], 24)),
        ],
        priority: 0,
    };
    let dropped = Action::Direct {
        id: 20819968,
        params: vec![],
    };
    assert_ne!(*action, dropped);
    let batch = [
        Update::Delete(gone.clone()),
        Update::Modify(changed.clone(), dropped.clone()),
        Update::Insert(foreign, dropped),
    ];
    controller.write(switch, &batch).await.unwrap();
    let report = controller.reconcile(&desired).await.unwrap().total();
    assert_eq!(
        (report.inserted, report.modified, report.deleted),
        (1, 1, 1)
    );
    assert_eq!(controller.read(switch).await.unwrap(), **state);
}

#[tokio::test]
async fn a_refused_update_is_named_with_table_and_key() {
    let running = Running::start();
    let (controller, desired) = running.controller().await;
    let switch = running.topology.tier(Tier::Leaf).next().unwrap();
    let (key, action) = desired.states()[switch.index()]
        .entries
        .iter()
        .next()
        .unwrap();
    let again = [Update::Insert(key.clone(), action.clone())];
    let error = controller
        .write(switch, &again)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("insert table entry") && error.contains("ALREADY_EXISTS"),
        "{error}"
    );
}

#[tokio::test]
async fn changes_of_links_and_flows_reach_the_switches() {
    let running = Running::start();
    let (controller, mut desired) = running.controller().await;
    let topology = &running.topology;
    let leaf = topology.tier(Tier::Leaf).next().unwrap();
    let lost = topology.uplinks(leaf).next().unwrap().link;
    let half = topology.nics().len() as u32 / 2;
    let flow = |n: u32| {
        let [src, dst] = [n, n + half].map(|n| topology[NicId(n)].v4.into());
        crate::desired::Flow {
            key: crate::intent::FlowKey::roce(src, dst, 0x100),
            demand: Demand {
                src: n,
                dst: n + half,
                bytes: 1000,
                port: None,
            },
        }
    };
    let placed = desired.set_flows((0..half).map(flow).collect()).unwrap();
    controller.apply(&placed).await.unwrap();
    let failed = desired.set_down(&LinkSet::from_iter([lost.0])).unwrap();
    let updates = controller.apply(&failed).await.unwrap();
    assert!(updates > 0);
    for switch in topology.switch_ids() {
        let held = controller.read(switch).await.unwrap();
        assert_eq!(
            held,
            *desired.states()[switch.index()],
            "{}",
            topology[switch].name
        );
    }
}

/// A packet to be routed: UDP from one NIC to another.
fn udp(topology: &Topology, from: NicId, to: NicId) -> Vec<u8> {
    let (src, dst) = (&topology[from], &topology[to]);
    let mut packet = topology[src.la].gateway_mac.0.to_vec();
    packet.extend(src.mac.0);
    packet.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(src.v4.octets());
    packet.extend(dst.v4.octets());
    packet.extend([0, 9, 0, 9, 0, 8, 0, 0]);
    let words = packet[14..34]
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[tokio::test]
async fn counters_tell_local_from_crossing_traffic() {
    let running = Running::start();
    let (controller, _) = running.controller().await;
    let topology = &running.topology;
    let from = NicId(0);
    let port = topology[from].ports().next().unwrap().leaf;
    let la = &topology[topology[from].la];
    let near = *la.nics.iter().find(|nic| **nic != from).unwrap();
    let far = *topology.las().last().unwrap().nics.first().unwrap();
    {
        let mut switch = running.servers[port.switch.index()].switch().lock();
        for to in [near, far, far] {
            switch.ingress(port.port, &udp(topology, from, to), 0);
        }
        for uplink in topology.neighbours(port.switch) {
            while switch.dequeue(uplink.port, 0).is_some() {}
        }
    }
    let telemetry = controller.telemetry().await.unwrap();
    assert_eq!(telemetry.locality(Locality::Local).packets, 1);
    assert_eq!(telemetry.locality(Locality::Crossing).packets, 2);
    assert!((telemetry.cross_la_share().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert!(telemetry.drops().is_empty(), "{:?}", telemetry.drops());
    assert!(telemetry.uplinks(topology, &LinkSet::none()).max_ns > 0.0);
}

#[tokio::test]
async fn arp_for_the_gateway_is_answered_through_the_switch() {
    let running = Running::start();
    let (controller, _) = running.controller().await;
    let topology = &running.topology;
    let nic = &topology.nics()[0];
    let port = nic.ports().next().unwrap().leaf;
    let mut request = vec![0xff; 6];
    request.extend(nic.mac.0);
    request.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    request.extend(nic.mac.0);
    request.extend(nic.v4.octets());
    request.extend([0; 6]);
    request.extend(topology[nic.la].gateway_v4.octets());
    let server = &running.servers[port.switch.index()];
    server.switch().lock().ingress(port.port, &request, 0);
    server.poll_cpu();
    let reply = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            let packet = server.switch().lock().dequeue(port.port, 0);
            if let Some(packet) = packet {
                return packet.bytes;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(reply[..6], nic.mac.0);
    assert_eq!(reply[22..28], topology[nic.la].gateway_mac.0);
    assert_eq!(controller.status()[port.switch.index()].answered, 1);
}

#[tokio::test]
async fn what_cannot_be_reached_or_won_is_named() {
    let running = Running::start();
    let (_first, _) = running
        .connect(Config {
            election_id: 5,
            ..Config::default()
        })
        .await
        .unwrap();
    let error = running.connect(Config::default()).await.unwrap_err();
    assert!(error.to_string().contains("election id 5"), "{error}");

    let mut endpoints = running.endpoints();
    let name = endpoints[1].name.clone();
    endpoints[1] = Endpoint::at(&name, endpoints[1].device_id, "127.0.0.1:1");
    let program = Arc::new(Program::fabric().unwrap());
    let config = Config {
        election_id: 6,
        ..Config::default()
    };
    let topology = Arc::clone(&running.topology);
    let connected = Controller::connect(topology, Arc::clone(&program), endpoints, config).await;
    let error = connected.unwrap_err();
    assert_eq!(error.failures.len(), 1);
    assert!(
        error.to_string().contains(&name) && error.to_string().contains("127.0.0.1:1"),
        "{error}"
    );

    let endpoints = running.endpoints().into_iter().skip(1).collect();
    let topology = Arc::clone(&running.topology);
    let connected = Controller::connect(topology, program, endpoints, config).await;
    assert!(
        connected
            .unwrap_err()
            .to_string()
            .contains("has no endpoint")
    );
}

/// A switch with a server on TCP, in a runtime of its own, so that it can die with all its connections.
fn process(listener: std::net::TcpListener, device_id: u64) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    listener.set_nonblocking(true).unwrap();
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        server(device_id)
            .serve(listener, None, std::future::pending())
            .await
    });
    runtime
}

#[tokio::test]
async fn a_switch_that_starts_again_is_filled_again_and_says_hello() {
    let mut running = Running::start();
    let text = "name: small\nclos: {segments: 2, hosts: 2, rails: 2, spines: 2}\n\
                policy: {ars: {hello: 10ms, probe: 10ms}}\n";
    running.topology = Arc::new(Topology::parse("small", text).unwrap());
    let topology = Arc::clone(&running.topology);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let device_id = topology.switches()[0].device_id;
    let first = process(listener, device_id);
    let mut endpoints = running.endpoints();
    endpoints[0] = Endpoint::at(endpoints[0].name.clone(), device_id, address.to_string());
    let program = Arc::new(Program::fabric().unwrap());
    let config = Config {
        first_pause: Duration::from_millis(10),
        longest_pause: Duration::from_millis(200),
        ..Config::default()
    };
    let (controller, _) = Controller::connect(Arc::clone(&topology), program, endpoints, config)
        .await
        .unwrap();
    let desired = running.desired();
    controller.reconcile(&desired).await.unwrap();
    controller
        .start_beats(desired.planner().ars().unwrap())
        .unwrap();
    // All neighbours, and those above.
    assert_eq!(controller.read(SwitchId(0)).await.unwrap().copies.len(), 2);

    first.shutdown_background();
    let gone = async {
        while controller.status()[0].session.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .unwrap();
    let listener = loop {
        match std::net::TcpListener::bind(address) {
            Ok(listener) => break listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let again = process(listener, device_id);
    let restored = async {
        loop {
            let held = controller.read(SwitchId(0)).await;
            if held.is_ok_and(|held| held == *desired.states()[0]) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), restored)
        .await
        .unwrap();
    assert_eq!(controller.status()[0].reconnects, 1);
    let repaired = controller.reconcile(&desired).await.unwrap().total();
    assert_eq!(repaired.updates(), 0);
    let beating = async {
        let beats = |telemetry: Telemetry| {
            let of_cpu = telemetry.switches[0].port_rx.get(&510).copied();
            of_cpu.unwrap_or_default().packets
        };
        while beats(controller.telemetry().await.unwrap()) < 10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), beating)
        .await
        .unwrap();
    again.shutdown_background();
}

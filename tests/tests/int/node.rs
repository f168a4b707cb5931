//! The fabric program on one embedded switch, as a node of a chain.
//!
//! Port 1 leads back towards the sender, port 2 onwards to the receiver, port 3 to a second host; port 7
//! to the collector.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use softswitch::control::{ActionCall, CloneSession, EntryAction, MatchField, Replica, TableEntry};
use softswitch::program::MatchKind;
use softswitch::{Program, Switch, SwitchConfig, TableId, Value};

use crate::frames::{NEXT_MAC, SWITCH_MAC};
use crate::model::{Indicator, Watch};

/// Port towards the collector.
pub(crate) const COLLECTOR_PORT: u16 = 7;
/// Clone session and collector number.
pub(crate) const COLLECTOR: u128 = 1;
/// DSCP and UDP port that tell of INT in these tests.
pub(crate) const INT_DSCP: u8 = 0x17;
pub(crate) const INT_PORT: u16 = 0x4242;

pub(crate) static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/compiled/fabric.json");
    Arc::new(Program::load(&std::fs::read(path).unwrap()).unwrap())
});

/// What a port leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Host,
    Switch,
}

/// How a node is set up.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) node: u32,
    /// What ports 1 and 2 lead to.
    pub(crate) ends: [Next; 2],
    pub(crate) mtu: u16,
    /// The sink reports paths.
    pub(crate) reports: bool,
    pub(crate) watch: Option<Watch>,
    /// One packet in so many.
    pub(crate) one_in: u32,
}

impl Setup {
    pub(crate) fn new(node: u32, ends: [Next; 2]) -> Self {
        Setup {
            node,
            ends,
            mtu: 9000,
            reports: true,
            watch: None,
            one_in: 1,
        }
    }

    /// Number of a port's logical interface.
    pub(crate) fn interface(&self, port: u16) -> u32 {
        self.node.rotate_left(7) ^ u32::from(port)
    }
}

/// A field of a key: exact value, prefix or mask.
pub(crate) type Field = (u128, u128);
/// An exact field.
pub(crate) const fn is(value: u128) -> Field {
    (value, u128::MAX)
}
/// A ternary field that matches anything.
pub(crate) const ANY: Field = (0, 0);

/// A switch with its entries.
pub(crate) struct Node {
    pub(crate) switch: Switch,
    pub(crate) setup: Setup,
}

impl Node {
    pub(crate) fn new(setup: Setup) -> Self {
        let mut switch = Switch::new(SwitchConfig {
            cpu_port: Some(510),
            queues: 8,
            seed: 7,
            ..SwitchConfig::default()
        });
        switch.install(PROGRAM.clone());
        let mut node = Node { switch, setup };
        node.forwarding();
        node.telemetry();
        node
    }

    fn forwarding(&mut self) {
        let mac = |mac: [u8; 6]| {
            mac.iter()
                .fold(0u128, |all, byte| all << 8 | u128::from(*byte))
        };
        for port in [1u128, 2, 3, COLLECTOR_PORT.into()] {
            let role = match port {
                1 | 2 if self.setup.ends[port as usize - 1] == Next::Switch => "fabric_port",
                _ => "host_port",
            };
            let args: &[u128] = if role == "fabric_port" { &[0] } else { &[0, 1] };
            self.insert("port_config", &[is(port)], role, args);
            let hop = [port, mac(SWITCH_MAC), mac(NEXT_MAC)];
            self.insert("nexthop", &[is(port)], "forward", &hop);
        }
        self.insert("station", &[is(mac(SWITCH_MAC))], "accept", &[]);
        self.insert(
            "route_v4",
            &[is(0), (0x0a00_0002, 32)],
            "route_nexthop",
            &[2],
        );
        self.insert(
            "route_v4",
            &[is(0), (0x0a00_0001, 32)],
            "route_nexthop",
            &[1],
        );
        let v6 = 0x2001_0db8 << 96;
        self.insert("route_v6", &[is(0), (v6 | 2, 128)], "route_nexthop", &[2]);
    }

    fn telemetry(&mut self) {
        let node = u128::from(self.setup.node);
        for (port, next) in [1u128, 2].into_iter().zip(self.setup.ends) {
            let (action, args) = match next {
                Next::Switch => ("int_push", vec![node, self.setup.mtu.into()]),
                Next::Host => (
                    "int_strip",
                    vec![u128::from(self.setup.reports) * COLLECTOR],
                ),
            };
            self.insert("int_port", &[is(port)], action, &args);
            let interface = [self.setup.interface(port as u16).into()];
            self.insert("int_ingress_interface", &[is(port)], "came_by", &interface);
            self.insert("int_egress_interface", &[is(port)], "goes_by", &interface);
        }
        let by_dscp = [is(0), (INT_DSCP.into(), 0x3f), ANY];
        self.insert("int_indicator", &by_dscp, "carries_int", &[]);
        for npt in [1, 2] {
            let by_port = [is(npt), ANY, (INT_PORT.into(), 0xffff)];
            self.insert("int_indicator", &by_port, "carries_int", &[]);
        }
        if let Some(watch) = self.setup.watch {
            self.watch(&watch);
        }
        let host = [0x0200_0000_0901, 0x0200_0000_0909];
        let args = [
            0,
            node,
            5,
            host[0],
            host[1],
            0x0a00_0901,
            0x0a00_0909,
            40_001,
            32_766,
        ];
        self.insert("int_collector", &[is(COLLECTOR)], "send_report", &args);
        let session = CloneSession {
            id: COLLECTOR as u32,
            replicas: vec![Replica {
                port: COLLECTOR_PORT,
                instance: 1,
            }],
            class_of_service: 0,
            packet_length: 0,
        };
        self.switch.clone_insert(&session).unwrap();
    }

    fn watch(&mut self, watch: &Watch) {
        let (action, mark) = match watch.indicator {
            Indicator::Dscp(dscp) => ("watch_by_dscp", u128::from(dscp)),
            Indicator::Port(port) => ("watch_by_port", u128::from(port)),
        };
        let args = [
            self.setup.one_in.into(),
            watch.instructions.into(),
            watch.hop_ml.into(),
            watch.max_hops.into(),
            watch.domain.into(),
            mark,
        ];
        self.insert("int_watchlist", &[ANY; 6], action, &args);
    }

    /// Adds an entry, by the last parts of the names.
    pub(crate) fn insert(&mut self, table: &str, key: &[Field], action: &str, args: &[u128]) {
        let last = |name: &str, wanted: &str| name.rsplit('.').next() == Some(wanted);
        let tables = PROGRAM.tables();
        let number = tables.iter().position(|t| last(&t.name, table)).unwrap();
        let info = &tables[number];
        assert_eq!(info.keys.len(), key.len(), "key of {table}");
        let action = info
            .actions
            .iter()
            .copied()
            .find(|id| last(&PROGRAM.actions()[id.index()].name, action))
            .unwrap();
        let fields = info.keys.iter().zip(key).map(|(field, &(value, rest))| {
            let value = Value::new(value);
            match field.kind {
                MatchKind::Lpm => MatchField::Lpm {
                    value,
                    prefix_len: rest as u32,
                },
                MatchKind::Ternary => MatchField::Ternary {
                    value,
                    mask: Value::new(rest),
                },
                _ => MatchField::Exact(value),
            }
        });
        let entry = TableEntry {
            key: fields.collect(),
            priority: i32::from(info.has_priority),
            action: EntryAction::Call(ActionCall {
                action,
                params: args.iter().map(|&arg| Value::new(arg)).collect(),
            }),
            idle_timeout: 0,
            metadata: Vec::new(),
        };
        self.switch
            .table_insert(TableId(number as u32), &entry, 0)
            .unwrap();
    }

    /// Puts a frame in, and takes out what comes: port and bytes. Times in ns.
    pub(crate) fn pass(
        &mut self,
        port: u16,
        frame: &[u8],
        arrives: u64,
        leaves: u64,
    ) -> Vec<(u16, Vec<u8>)> {
        self.switch.ingress(port, frame, arrives);
        self.drain(leaves)
    }

    /// All that is queued.
    pub(crate) fn drain(&mut self, now: u64) -> Vec<(u16, Vec<u8>)> {
        let mut out = Vec::new();
        for port in [1, 2, 3, COLLECTOR_PORT, 510] {
            while let Some(packet) = self.switch.dequeue(port, now) {
                out.push((port, packet.bytes));
            }
        }
        out
    }

    /// Packets that a counter's cell has counted.
    pub(crate) fn counted(&self, counter: &str, index: u64) -> u64 {
        let id = PROGRAM
            .counters()
            .iter()
            .position(|c| c.name.rsplit('.').next() == Some(counter))
            .unwrap();
        let id = softswitch::CounterId(id as u32);
        self.switch.counter_read(id, index).unwrap().packets
    }
}

//! The fabric program on one switch, with entries for a router of sixteen
//! ports, and packets for it.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod l3;

use std::path::Path;
use std::sync::Arc;

use softswitch::control::{ActionCall, EntryAction, MatchField, TableEntry};
use softswitch::program::MatchKind;
use softswitch::{Program, Switch, SwitchConfig, TableId, Value};

/// MAC address of the router.
pub(crate) const ROUTER: u64 = 0x0200_0000_0001;
/// Ports of next hops: 1 to this.
pub(crate) const PORTS: u16 = 16;
/// A host port that no next hop uses.
pub(crate) const ENTRANCE: u16 = PORTS + 1;

/// The compiled fabric program.
pub(crate) fn program() -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiled/fabric.json");
    let json = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Arc::new(Program::load(&json).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// The table whose name ends in `table`.
pub(crate) fn table(switch: &Switch, table: &str) -> TableId {
    let tables = switch.program().expect("a program").tables();
    let number = tables
        .iter()
        .position(|t| t.name.rsplit('.').next() == Some(table))
        .unwrap_or_else(|| panic!("no table {table}"));
    TableId(number as u32)
}

/// A key of a table. A field is `(value, qualifier)`: the prefix length, the
/// mask, or nothing that counts.
pub(crate) fn key(switch: &Switch, table: TableId, key: &[(u128, u128)]) -> Vec<MatchField> {
    let info = &switch.program().expect("a program").tables()[table.index()];
    info.keys
        .iter()
        .zip(key)
        .map(|(field, &(value, qualifier))| match field.kind {
            MatchKind::Lpm => MatchField::Lpm {
                value: Value::new(value),
                prefix_len: qualifier as u32,
            },
            MatchKind::Ternary => MatchField::Ternary {
                value: Value::new(value),
                mask: Value::new(qualifier),
            },
            _ => MatchField::Exact(Value::new(value)),
        })
        .collect()
}

/// A call of the action of the table whose name ends in `action`.
pub(crate) fn call(switch: &Switch, table: TableId, action: &str, args: &[u128]) -> ActionCall {
    let program = switch.program().expect("a program");
    let id = program.tables()[table.index()]
        .actions
        .iter()
        .copied()
        .find(|a| program.actions()[a.index()].name.rsplit('.').next() == Some(action))
        .unwrap_or_else(|| panic!("no action {action}"));
    ActionCall {
        action: id,
        params: args.iter().map(|&v| Value::new(v)).collect(),
    }
}

/// Adds an entry. `table` and `action` are the last parts of their names.
pub(crate) fn insert(
    switch: &mut Switch,
    table: &str,
    key: &[(u128, u128)],
    action: &str,
    args: &[u128],
) {
    let table = self::table(switch, table);
    let entry = TableEntry {
        key: self::key(switch, table, key),
        priority: i32::from(
            switch.program().expect("a program").tables()[table.index()].has_priority,
        ),
        action: EntryAction::Call(call(switch, table, action, args)),
        idle_timeout: 0,
        metadata: Vec::new(),
    };
    switch
        .table_insert(table, &entry, 0)
        .expect("the entry fits");
}

/// A switch with routes `10.0.x.0/24` to groups of four next hops.
pub(crate) fn router() -> Switch {
    let mut switch = Switch::new(SwitchConfig {
        cpu_port: Some(510),
        queues: 8,
        ..SwitchConfig::default()
    });
    switch.install(program());
    insert(
        &mut switch,
        "port_config",
        &[(ENTRANCE.into(), 0)],
        "host_port",
        &[0, 9],
    );
    for port in 1..=PORTS {
        let args = [0, u128::from(port / 4)];
        insert(
            &mut switch,
            "port_config",
            &[(port.into(), 0)],
            "host_port",
            &args,
        );
        let next_hop = [
            port.into(),
            ROUTER.into(),
            0x0200_0000_1000 + u128::from(port),
        ];
        insert(
            &mut switch,
            "nexthop",
            &[(port.into(), 0)],
            "forward",
            &next_hop,
        );
        for queue in 0..8 {
            let key = [(port.into(), 0), (queue, 0)];
            insert(
                &mut switch,
                "ecn_profile",
                &key,
                "ecn_mark",
                &[4, 40, 32_768, 0],
            );
        }
    }
    insert(&mut switch, "station", &[(ROUTER.into(), 0)], "accept", &[]);
    insert(&mut switch, "dscp_to_tc", &[(26, 0)], "set_tc", &[3]);
    insert(&mut switch, "tc_to_queue", &[(3, 0)], "set_queue", &[3]);
    for subnet in 0..64u128 {
        let prefix = 0x0a00_0000 | subnet << 8;
        let group = subnet % 4;
        insert(
            &mut switch,
            "route_v4",
            &[(0, 0), (prefix, 24)],
            "route_group",
            &[group],
        );
        let mapped = 0xffff << 32 | prefix;
        insert(
            &mut switch,
            "la_of",
            &[(0, 0), (mapped, 120)],
            "set_dst_la",
            &[group],
        );
    }
    for group in 0..4u128 {
        insert(
            &mut switch,
            "group",
            &[(group, 0)],
            "set_group",
            &[4, 0x1234_5678],
        );
        for bucket in 0..4u128 {
            let key = [(group, 0), (bucket, 0)];
            insert(
                &mut switch,
                "group_bucket",
                &key,
                "bucket_nexthop",
                &[group * 4 + bucket + 1],
            );
        }
    }
    switch
}

pub(crate) fn put(packet: &mut [u8], at: usize, value: u64, bytes: usize) {
    packet[at..at + bytes].copy_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

/// Internet checksum of a header.
pub(crate) fn checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// A RoCEv2 packet of `len` bytes to the router, ECT(0), DSCP 26.
pub(crate) fn rocev2(dst: u32, source_port: u16, queue_pair: u32, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    put(&mut packet, 0, ROUTER, 6);
    put(&mut packet, 6, 0x0200_0000_2000, 6);
    put(&mut packet, 12, 0x0800, 2);
    put(&mut packet, 14, 0x45, 1);
    put(&mut packet, 15, 26 << 2 | 2, 1);
    put(&mut packet, 16, len as u64 - 14, 2);
    put(&mut packet, 20, 0x4000, 2);
    put(&mut packet, 22, 64, 1);
    put(&mut packet, 23, 17, 1);
    put(&mut packet, 26, 0x0a00_3f01, 4);
    put(&mut packet, 30, dst.into(), 4);
    let sum = checksum(&packet[14..34]);
    put(&mut packet, 24, sum.into(), 2);
    put(&mut packet, 34, source_port.into(), 2);
    put(&mut packet, 36, 4791, 2);
    put(&mut packet, 38, len as u64 - 34, 2);
    put(&mut packet, 42, 0x04, 1);
    put(&mut packet, 47, queue_pair.into(), 3);
    packet
}

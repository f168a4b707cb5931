//! What a lookup costs among few and among many entries, with the rest of a
//! packet's way through the switch, and how fast tables are written.

use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use softswitch::control::{ActionCall, EntryAction, MatchField, TableEntry};
use softswitch::program::MatchKind;
use softswitch::{Program, Switch, SwitchConfig, TableId, Value};

/// Tables of the program, in the order of its packets' kinds.
const TABLES: [&str; 5] = ["exact_mac", "prefix_v4", "prefix_v6", "masks", "ranges"];
const PORT: u16 = 1;

/// What entry `i` of a table matches, and what a packet asks for to hit it.
#[derive(Clone, Copy)]
struct Query {
    port: u16,
    mac: u64,
    v4: u32,
    v6: u128,
}

/// A bijection that scatters.
fn scatter(i: u32) -> u32 {
    let i = i.wrapping_mul(0x9e37_79b1);
    (i ^ i >> 15).wrapping_mul(0x85eb_ca77)
}

fn query(i: u32) -> Query {
    let a = scatter(i);
    Query {
        port: (a >> 7) as u16,
        mac: u64::from(a) << 16 | u64::from(i & 0xffff),
        v4: a,
        v6: 0x2001 << 112 | u128::from(a) << 64 | u128::from(scatter(!i)),
    }
}

fn packet(kind: u8, query: Query) -> Vec<u8> {
    let mut packet = vec![kind, 0, 7];
    packet.extend(query.port.to_be_bytes());
    packet.extend(&query.mac.to_be_bytes()[2..]);
    packet.extend(query.v4.to_be_bytes());
    packet.extend(query.v6.to_be_bytes());
    packet.resize(64, 0);
    packet
}

fn switch() -> Switch {
    let program = Program::load(include_bytes!("../tests/programs/lookups.json"));
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program.expect("it loads")));
    switch
}

/// The masks of entry `i`: two prefixes of any length, a port or none.
fn masks(i: u32) -> [u64; 3] {
    let pick = scatter(i ^ 0x5555);
    let prefix =
        |width: u32, length: u32| (u64::MAX << (width - length)) & (u64::MAX >> (64 - width));
    [
        prefix(32, 8 + pick % 25),
        prefix(48, 8 + (pick >> 8) % 41),
        if pick >> 20 & 1 == 0 { 0xffff } else { 0 },
    ]
}

fn entry(switch: &Switch, table: TableId, i: u32) -> TableEntry {
    let program = switch.program().expect("a program");
    let info = &program.tables()[table.index()];
    let q = query(i);
    let mut mask = masks(i).into_iter();
    let key = info.keys.iter().map(|key| {
        let (value, width) = match key.name.rsplit('.').next() {
            Some("vrf") => (7, 16),
            Some("port") => (q.port.into(), 16),
            Some("mac") => (q.mac.into(), 48),
            Some("v4") => (q.v4.into(), 32),
            _ => (q.v6, 128),
        };
        match key.kind {
            MatchKind::Exact => MatchField::Exact(Value::new(value)),
            MatchKind::Lpm => {
                // IPv4: hosts; IPv6: /96.
                let length = width.min(96);
                MatchField::Lpm {
                    value: Value::new(value >> (width - length) << (width - length)),
                    prefix_len: length,
                }
            }
            MatchKind::Ternary if info.name.ends_with("masks") => {
                let mask = u128::from(mask.next().unwrap_or(0));
                MatchField::Ternary {
                    value: Value::new(value & mask),
                    mask: Value::new(mask),
                }
            }
            MatchKind::Ternary | MatchKind::Optional => {
                let all = u128::from(u32::MAX);
                MatchField::Ternary {
                    value: Value::new(value),
                    mask: Value::new(all),
                }
            }
            MatchKind::Range => MatchField::Range {
                low: Value::new(value.saturating_sub(20)),
                high: Value::new((value + 20).min(0xffff)),
            },
        }
    });
    let action = program.table_action(table, "In.send").expect("an action");
    TableEntry {
        key: key.collect(),
        priority: i32::from(info.has_priority) * (1 + i as i32),
        action: EntryAction::Call(ActionCall {
            action,
            params: vec![Value::new(PORT.into())],
        }),
        idle_timeout: 0,
        metadata: Vec::new(),
    }
}

fn table(switch: &Switch, kind: usize) -> TableId {
    let program = switch.program().expect("a program");
    let name = format!("In.{}", TABLES[kind]);
    program.table_id(&name).expect("a table")
}

fn filled(kind: usize, entries: u32) -> Switch {
    let mut switch = switch();
    let table = table(&switch, kind);
    for i in 0..entries {
        let entry = entry(&switch, table, i);
        switch.table_insert(table, &entry, 0).expect("it fits");
    }
    switch
}

/// Packets that hit entries all over the table.
fn lookups(c: &mut Criterion) {
    for (kind, name) in TABLES.into_iter().enumerate() {
        let mut group = c.benchmark_group(format!("lookup/{name}"));
        group.throughput(Throughput::Elements(1));
        let sizes: &[u32] = match kind {
            0..=2 => &[1_000, 10_000, 100_000, 1_000_000],
            _ => &[100, 1_000, 10_000],
        };
        for &size in sizes {
            let mut switch = filled(kind, size);
            let packets: Vec<Vec<u8>> = (0..1_000)
                .map(|i| packet(kind as u8, query(i * (size / 1_000).max(1) % size)))
                .collect();
            let mut next = 0;
            group.bench_function(BenchmarkId::from_parameter(size), |b| {
                b.iter(|| {
                    next = (next + 1) % packets.len();
                    switch.ingress(0, &packets[next], 0);
                    switch.dequeue_with(PORT, 0, <[u8]>::len)
                });
            });
            assert_eq!(switch.stats().sent, switch.stats().received, "all hit");
        }
        group.finish();
    }
}

/// Whole tables written, and emptied again.
fn writes(c: &mut Criterion) {
    for (kind, name) in TABLES.into_iter().enumerate() {
        let size: u32 = if kind < 3 { 1_000_000 } else { 10_000 };
        let mut group = c.benchmark_group(format!("write/{name}"));
        group.throughput(Throughput::Elements(size.into()));
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(5));
        let blank = switch();
        let table = table(&blank, kind);
        let entries: Vec<TableEntry> = (0..size).map(|i| entry(&blank, table, i)).collect();
        group.bench_function("insert", |b| {
            b.iter_with_large_drop(|| {
                let mut switch = switch();
                for entry in &entries {
                    switch.table_insert(table, entry, 0).expect("it fits");
                }
                switch
            });
        });
        group.bench_function("insert and delete", |b| {
            b.iter_with_large_drop(|| {
                let mut switch = switch();
                for entry in &entries {
                    switch.table_insert(table, entry, 0).expect("it fits");
                }
                for entry in &entries {
                    let gone = switch.table_delete(table, &entry.key, entry.priority);
                    gone.expect("it is there");
                }
                switch
            });
        });
        group.finish();
    }
}

criterion_group!(benches, lookups, writes);
criterion_main!(benches);

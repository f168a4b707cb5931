//! Tables of a million entries: how fast they fill, what they take, that they
//! are read back in pieces, and that a lookup costs about as much as among a
//! thousand. One test, in its own process: it measures memory.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::{Duration, Instant};

use softswitch::control::{EntryAction, EntryHandle, MatchField, TableEntry};
use softswitch::{Switch, TableId, Value};
use support::l3;

const ENTRIES: u32 = 1_000_000;

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().nth(1));
    1024 * kib.unwrap().parse::<u64>().unwrap()
}

/// Distinct for distinct `i`, and spread over the whole range.
fn address(i: u32) -> u32 {
    i.wrapping_mul(0x9e37_79b1)
}

fn route(address: u32) -> TableEntry {
    TableEntry {
        key: vec![MatchField::Lpm {
            value: Value::new(address.into()),
            prefix_len: 32,
        }],
        priority: 0,
        action: EntryAction::Group(1),
        idle_timeout: 0,
        metadata: Vec::new(),
    }
}

fn fill(switch: &mut Switch, table: TableId, entries: std::ops::Range<u32>) {
    for i in entries {
        switch.table_insert(table, &route(address(i)), 0).unwrap();
    }
}

/// Time per packet, the best of several runs, over the first thousand routes.
fn packet_time(switch: &mut Switch) -> Duration {
    let packets: Vec<Vec<u8>> = (0..1_000)
        .map(|i| l3::packet_to(address(i), i as u16, 128))
        .collect();
    let mut ready = Vec::new();
    let run = |switch: &mut Switch, ready: &mut Vec<u16>| {
        let start = Instant::now();
        for packet in &packets {
            switch.ingress(1, packet, 0);
            switch.take_ready(ready);
            for &port in ready.iter() {
                while switch.dequeue_with(port, 0, |_| ()).is_some() {}
            }
        }
        start.elapsed() / packets.len() as u32
    };
    let best = (0..20).map(|_| run(switch, &mut ready)).min().unwrap();
    assert_eq!(switch.stats().sent, switch.stats().received);
    best
}

#[test]
fn a_million_prefixes() {
    let mut switch = l3::bare();
    l3::add_paths(&mut switch);
    let table = support::table(&switch, "route");
    fill(&mut switch, table, 0..1_000);
    let few = packet_time(&mut switch);

    let start = Instant::now();
    fill(&mut switch, table, 1_000..ENTRIES);
    let rate = f64::from(ENTRIES - 1_000) / start.elapsed().as_secs_f64();
    println!("{rate:.0} inserts/s, one after the other");
    assert!(rate > 200_000.0, "{rate:.0} inserts/s");
    let many = packet_time(&mut switch);
    println!("a packet takes {few:?} among 1 000 routes, {many:?} among {ENTRIES}");
    assert!(many < 3 * few, "{few:?} became {many:?}");

    // In pieces, as a reader does that lets go of the switch in between.
    let mut after: Option<EntryHandle> = None;
    let mut count = 0;
    while let Some(entry) = switch.table_next(table, after).unwrap() {
        let view = switch.table_get(table, entry).unwrap();
        assert_eq!(view.entry, route(address(entry.0)));
        after = Some(entry);
        count += 1;
    }
    assert_eq!(count, ENTRIES);
    let memory = resident();
    println!("{} MB at most", memory / 1_000_000);
    assert!(memory < 300_000_000, "{memory} bytes");

    let start = Instant::now();
    for i in 0..ENTRIES {
        switch
            .table_delete(table, &route(address(i)).key, 0)
            .unwrap();
    }
    let rate = f64::from(ENTRIES) / start.elapsed().as_secs_f64();
    println!("{rate:.0} deletes/s");
    assert!(rate > 200_000.0, "{rate:.0} deletes/s");
    assert_eq!(switch.table_next(table, None).unwrap(), None);
}

//! Tables that are written and emptied over and over answer as a list of
//! entries does that is searched one by one.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use softswitch::control::{ActionCall, EntryAction, EntryHandle, MatchField, TableEntry};
use softswitch::{Program, Switch, SwitchConfig, TableId, Value};

/// Pseudo-random numbers: the same ones each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Some bytes, most of them often seen before.
    fn bytes(&mut self, count: u32) -> u128 {
        const USUAL: [u8; 4] = [0, 1, 0x80, 0xff];
        (0..count).fold(0, |value, _| {
            let byte = match self.below(8) {
                0 => self.below(256) as u8,
                n => USUAL[n as usize % 4],
            };
            value << 8 | u128::from(byte)
        })
    }
}

#[derive(Clone, Copy)]
struct Query {
    vrf: u128,
    port: u128,
    mac: u128,
    v4: u128,
    v6: u128,
}

impl Query {
    fn random(numbers: &mut Numbers) -> Self {
        Query {
            vrf: u128::from(numbers.below(3)),
            port: numbers.bytes(2),
            mac: numbers.bytes(6),
            v4: numbers.bytes(4),
            // Long runs of bytes that all have.
            v6: 0x2001_0db8 << 96
                | numbers.bytes(1) << 88
                | numbers.bytes(2) << 8
                | numbers.bytes(1),
        }
    }

    fn packet(&self, kind: u8) -> Vec<u8> {
        let mut packet = vec![kind];
        packet.extend(&self.vrf.to_be_bytes()[14..]);
        packet.extend(&self.port.to_be_bytes()[14..]);
        packet.extend(&self.mac.to_be_bytes()[10..]);
        packet.extend(&self.v4.to_be_bytes()[12..]);
        packet.extend(self.v6.to_be_bytes());
        packet
    }
}

fn top(length: u32, width: u32) -> u128 {
    match length {
        0 => 0,
        n => (u128::MAX >> (128 - n)) << (width - n),
    }
}

fn lpm(value: u128, width: u32, numbers: &mut Numbers) -> MatchField {
    let prefix_len = match numbers.below(3) {
        0 => 8 * numbers.below(u64::from(width) / 8 + 1) as u32,
        _ => numbers.below(u64::from(width) + 1) as u32,
    };
    MatchField::Lpm {
        value: Value::new(value & top(prefix_len, width)),
        prefix_len,
    }
}

fn ternary(value: u128, width: u32, numbers: &mut Numbers) -> MatchField {
    let all = top(width, width);
    let mask = match numbers.below(4) {
        0 => 0,
        1 => all,
        2 => top(numbers.below(u64::from(width) + 1) as u32, width),
        _ => (numbers.bytes(8) | numbers.bytes(8)) & all,
    };
    MatchField::Ternary {
        value: Value::new(value & mask),
        mask: Value::new(mask),
    }
}

/// The tables by the kind of packet that asks them: how a random key is made.
fn key(kind: u8, numbers: &mut Numbers) -> Vec<MatchField> {
    let q = Query::random(numbers);
    match kind {
        0 => vec![MatchField::Exact(Value::new(q.mac))],
        1 => vec![lpm(q.v4, 32, numbers)],
        2 => vec![
            MatchField::Exact(Value::new(q.vrf)),
            lpm(q.v6, 128, numbers),
        ],
        3 => vec![
            ternary(q.v4, 32, numbers),
            ternary(q.mac, 48, numbers),
            ternary(q.port, 16, numbers),
        ],
        _ => {
            let width = 1 << numbers.below(15);
            let high = (q.port + u128::from(numbers.below(width))).min(0xffff);
            vec![
                MatchField::Range {
                    low: Value::new(q.port),
                    high: Value::new(high),
                },
                match numbers.below(2) {
                    0 => ternary(0, 32, &mut Numbers(4)),
                    _ => MatchField::Optional(Some(Value::new(q.v4))),
                },
            ]
        }
    }
}

fn values(kind: u8, q: &Query) -> Vec<u128> {
    match kind {
        0 => vec![q.mac],
        1 => vec![q.v4],
        2 => vec![q.vrf, q.v6],
        3 => vec![q.v4, q.mac, q.port],
        _ => vec![q.port, q.v4],
    }
}

fn number(value: &Value) -> u128 {
    value.as_u128().unwrap()
}

fn hits(field: &MatchField, value: u128) -> bool {
    match field {
        MatchField::Exact(v) => number(v) == value,
        MatchField::Lpm {
            value: v,
            prefix_len,
        } => {
            // The values of IPv4 are as wide as what is compared.
            let width = if number(v).max(value) >> 32 == 0 {
                32
            } else {
                128
            };
            let width = width.max(*prefix_len);
            value & top(*prefix_len, width) == number(v)
        }
        MatchField::Ternary { value: v, mask } => value & number(mask) == number(v),
        MatchField::Range { low, high } => (number(low)..=number(high)).contains(&value),
        MatchField::Optional(v) => v.as_ref().is_none_or(|v| number(v) == value),
    }
}

struct Listed {
    entry: TableEntry,
    handle: EntryHandle,
    port: u16,
}

/// Where the winner of the list sends: by priority, then the lowest number;
/// or by prefix length.
fn winner(kind: u8, list: &[Listed], q: &Query) -> u16 {
    let values = values(kind, q);
    let matching = list.iter().filter(|listed| {
        let mut fields = listed.entry.key.iter().zip(&values);
        fields.all(|(field, &value)| hits(field, value))
    });
    let rank = |listed: &&Listed| {
        let length = listed.entry.key.iter().find_map(|field| match field {
            MatchField::Lpm { prefix_len, .. } => Some(*prefix_len as i32),
            _ => None,
        });
        (
            length.unwrap_or(listed.entry.priority),
            std::cmp::Reverse(listed.handle),
        )
    };
    matching.max_by_key(rank).map_or(0, |listed| listed.port)
}

fn ask(switch: &mut Switch, kind: u8, q: &Query) -> u16 {
    switch.ingress(0, &q.packet(kind), 0);
    let mut ready = Vec::new();
    switch.take_ready(&mut ready);
    let port = ready[0];
    assert!(switch.dequeue(port, 0).is_some());
    port
}

fn churn(kind: u8, name: &str, most: usize) {
    let program = Program::load(include_bytes!("programs/lookups.json")).unwrap();
    let table: TableId = program.table_id(name).unwrap();
    let action = program.table_action(table, "In.send").unwrap();
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    let mut numbers = Numbers(0x1234_5678_9abc_def1 + u64::from(kind));
    let mut list: Vec<Listed> = Vec::new();
    // Up and down: nearly empty, full, empty again.
    for round in 0..6 {
        let grow = round % 2 == 0;
        for _ in 0..most {
            if numbers.below(10) < if grow { 8 } else { 1 } {
                let port = 1 + numbers.below(500) as u16;
                let entry = TableEntry {
                    key: key(kind, &mut numbers),
                    priority: match kind {
                        0..=2 => 0,
                        _ => 1 + numbers.below(40) as i32,
                    },
                    action: EntryAction::Call(ActionCall {
                        action,
                        params: vec![Value::new(port.into())],
                    }),
                    idle_timeout: 0,
                    metadata: Vec::new(),
                };
                let same =
                    |l: &Listed| l.entry.key == entry.key && l.entry.priority == entry.priority;
                match switch.table_insert(table, &entry, 0) {
                    Ok(handle) => {
                        let view = switch.table_get(table, handle).unwrap();
                        // An optional field reads back as the ternary one it is.
                        if kind != 4 {
                            assert_eq!(view.entry, entry);
                        }
                        assert!(!list.iter().any(same), "there already: {entry:?}");
                        list.push(Listed {
                            entry,
                            handle,
                            port,
                        });
                    }
                    Err(_) => assert!(list.iter().any(same), "refused: {entry:?}"),
                }
            } else if !list.is_empty() {
                let gone = list.swap_remove(numbers.below(list.len() as u64) as usize);
                let entry = &gone.entry;
                switch
                    .table_delete(table, &entry.key, entry.priority)
                    .unwrap();
            }
            let q = Query::random(&mut numbers);
            assert_eq!(
                ask(&mut switch, kind, &q),
                winner(kind, &list, &q),
                "{name} with {} entries",
                list.len()
            );
        }
    }
    assert_eq!(switch.table_len(table).unwrap(), list.len());
    for gone in list {
        let entry = &gone.entry;
        switch
            .table_delete(table, &entry.key, entry.priority)
            .unwrap();
    }
    let q = Query::random(&mut numbers);
    assert_eq!(ask(&mut switch, kind, &q), 0, "the table is empty");
}

#[test]
fn exact() {
    churn(0, "In.exact_mac", 3_000);
}

#[test]
fn prefixes() {
    churn(1, "In.prefix_v4", 3_000);
}

#[test]
fn wide_prefixes_beside_an_exact_field() {
    churn(2, "In.prefix_v6", 3_000);
}

#[test]
fn masks() {
    churn(3, "In.masks", 3_000);
}

#[test]
fn ranges() {
    churn(4, "In.ranges", 3_000);
}

//! Seeded random input of every kind that comes from outside: changed
//! programs, packets, P4Runtime messages. Nothing may panic, and nothing may
//! take long.
//!
//! `SOFTSWITCH_FUZZ_SEED` chooses another sequence, `SOFTSWITCH_FUZZ_PACKETS`
//! another number of packets than a million.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/fuzz.rs"]
mod fuzz;

use std::sync::Arc;

use p4runtime::v1::{self, entity::Entity};
use prost::Message;
use softswitch::Program;

const PROGRAMS: [&str; 4] = [
    include_str!("programs/arithmetic.json"),
    include_str!("programs/control.json"),
    include_str!("programs/matching.json"),
    include_str!("programs/router.json"),
];

/// A small generator of known state.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = std::env::var("SOFTSWITCH_FUZZ_SEED").ok();
        Random(seed.and_then(|s| s.parse().ok()).unwrap_or(1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Where JSON has values: numbers, strings, words, objects and lists.
fn values(json: &[u8]) -> Vec<(usize, usize)> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < json.len() {
        let start = at;
        match json[at] {
            b'{' | b'[' => open.push(at),
            b'}' | b']' => found.extend(open.pop().map(|from| (from, at + 1))),
            b'"' => {
                at += 1;
                while at < json.len() && json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                let is_name = json[at + 1..].iter().find(|b| !b.is_ascii_whitespace());
                if is_name != Some(&b':') {
                    found.push((start, at + 1));
                }
            }
            b if b.is_ascii_alphanumeric() || b == b'-' => {
                while json[at + 1].is_ascii_alphanumeric() {
                    at += 1;
                }
                found.push((start, at + 1));
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Puts other values in some places, so that it still is JSON.
fn mutate(json: &str, values: &[(usize, usize)], random: &mut Random) -> Vec<u8> {
    const NUMBERS: [&str; 12] = [
        "0", "1", "2", "7", "8", "63", "64", "65", "255", "1024", "65535", "-1",
    ];
    const STRINGS: [&str; 6] = ["\"0x0\"", "\"0xffff\"", "\"-0x1\"", "null", "[]", "{}"];
    let mut json = json.as_bytes().to_vec();
    let mut places: Vec<_> = (0..1 + random.below(3))
        .map(|_| values[random.below(values.len())])
        .collect();
    // From the end, so that places in front stay where they are; none within another.
    places.sort_unstable_by(|a, b| b.cmp(a));
    let mut end = json.len();
    for (from, to) in places {
        if to > end {
            continue;
        }
        end = from;
        let (other_from, other_to) = values[random.below(values.len())];
        let other = match random.below(4) {
            0 => NUMBERS[random.below(NUMBERS.len())].as_bytes().to_vec(),
            1 => STRINGS[random.below(STRINGS.len())].as_bytes().to_vec(),
            _ if other_to < end && other_to - other_from < 4000 => {
                json[other_from..other_to].to_vec()
            }
            _ => b"0".to_vec(),
        };
        json.splice(from..to, other);
    }
    json
}

#[test]
fn a_million_packets_through_changed_programs() {
    let wanted = std::env::var("SOFTSWITCH_FUZZ_PACKETS").ok();
    let wanted = wanted.and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let places: Vec<_> = PROGRAMS.iter().map(|p| values(p.as_bytes())).collect();
    let mut random = Random::new();
    let (mut sent, mut loaded, mut refused) = (0, 0, 0);
    while sent < wanted {
        let which = random.below(PROGRAMS.len());
        // One in eight is left as it is.
        let json = match random.below(8) {
            0 => PROGRAMS[which].as_bytes().to_vec(),
            _ => mutate(PROGRAMS[which], &places[which], &mut random),
        };
        let Ok(program) = Program::load(&json) else {
            refused += 1;
            continue;
        };
        loaded += 1;
        sent += fuzz::packets(Arc::new(program), &random.bytes(60_000));
    }
    eprintln!("{sent} packets through {loaded} programs; {refused} were refused");
    assert!(refused > 0 && loaded > 0);
}

#[test]
fn damaged_text_is_refused_or_runs() {
    let mut random = Random::new();
    for round in 0..2_000 {
        let mut json = PROGRAMS[round % PROGRAMS.len()].as_bytes().to_vec();
        for _ in 0..1 + random.below(3) {
            let at = random.below(json.len());
            match random.below(3) {
                0 => json[at] = random.next() as u8,
                1 => json.truncate(at.max(1)),
                _ => {
                    json.remove(at);
                }
            }
        }
        fuzz::loader(&json);
    }
}

/// Requests that a controller could send, as bytes.
fn requests() -> Vec<Vec<u8>> {
    let info = include_str!("programs/control.p4info.txtpb");
    let index = p4runtime::info::Index::parse_text(info).unwrap();
    let info = index.p4info();
    let id = |p: &Option<p4runtime::config::v1::Preamble>| p.as_ref().unwrap().id;
    let mut entities = Vec::new();
    for table in &info.tables {
        let fields = table.match_fields.iter().map(|field| v1::FieldMatch {
            field_id: field.id,
            field_match_type: Some(v1::field_match::FieldMatchType::Exact(
                v1::field_match::Exact { value: vec![1] },
            )),
        });
        let action = info
            .actions
            .iter()
            .find(|a| id(&a.preamble) == table.action_refs[0].id);
        let params = action
            .iter()
            .flat_map(|a| &a.params)
            .map(|p| v1::action::Param {
                param_id: p.id,
                value: vec![1],
            });
        entities.push(Entity::TableEntry(v1::TableEntry {
            table_id: id(&table.preamble),
            r#match: fields.collect(),
            priority: 1,
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(v1::Action {
                    action_id: table.action_refs[0].id,
                    params: params.collect(),
                })),
            }),
            ..Default::default()
        }));
    }
    for profile in &info.action_profiles {
        entities.push(Entity::ActionProfileGroup(v1::ActionProfileGroup {
            action_profile_id: id(&profile.preamble),
            group_id: 1,
            max_size: 4,
            members: vec![v1::action_profile_group::Member {
                member_id: 1,
                weight: 1,
                ..Default::default()
            }],
        }));
    }
    entities.extend(info.counters.iter().map(|c| {
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: id(&c.preamble),
            index: Some(v1::Index { index: 3 }),
            data: Some(v1::CounterData::default()),
        })
    }));
    entities.extend(info.registers.iter().map(|r| {
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: id(&r.preamble),
            index: Some(v1::Index { index: 3 }),
            data: None,
        })
    }));
    let mut requests = Vec::new();
    for entity in entities {
        let entity = Some(v1::Entity {
            entity: Some(entity),
        });
        let write = v1::WriteRequest {
            updates: vec![v1::Update {
                r#type: 1,
                entity: entity.clone(),
            }],
            ..Default::default()
        };
        requests.push([&[0], &write.encode_to_vec()[..]].concat());
        let read = v1::ReadRequest {
            entities: entity.into_iter().collect(),
            ..Default::default()
        };
        requests.push([&[1], &read.encode_to_vec()[..]].concat());
    }
    let packet = v1::stream_message_request::Update::Packet(v1::PacketOut {
        payload: vec![0; 20],
        metadata: vec![v1::PacketMetadata {
            metadata_id: 1,
            value: vec![1],
        }],
    });
    let packet = v1::StreamMessageRequest {
        update: Some(packet),
    };
    requests.push([&[2], &packet.encode_to_vec()[..]].concat());
    requests
}

#[test]
fn changed_messages_are_answered() {
    let json = include_bytes!("programs/control.json");
    let info = include_str!("programs/control.p4info.txtpb");
    let mut controller = fuzz::Controller::new(json, info);
    let requests = requests();
    let mut random = Random::new();
    for _ in 0..20_000 {
        let mut bytes = requests[random.below(requests.len())].clone();
        for _ in 0..random.below(4) {
            let at = 1 + random.below(bytes.len().saturating_sub(1));
            match random.below(3) {
                0 => bytes.insert(at.min(bytes.len()), random.next() as u8),
                1 if at < bytes.len() => {
                    bytes.remove(at);
                }
                _ if at < bytes.len() => bytes[at] = random.next() as u8,
                _ => {}
            }
        }
        controller.message(&bytes);
    }
}

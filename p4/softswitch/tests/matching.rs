//! Lookups agree with a list of entries searched one by one.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use proptest::prelude::*;
use softswitch::control::{
    ActionCall, ControlError, EntryAction, ErrorKind, MatchField, TableEntry,
};
use softswitch::program::{KeyInfo, MatchKind};
use softswitch::{Program, Switch, SwitchConfig, TableId, Value};

const TABLES: [&str; 6] = [
    "exact_keys",
    "prefix",
    "wide_prefix",
    "ternary_keys",
    "ranges",
    "optionals",
];
const MISS: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Query {
    flag: u8,
    a: u16,
    b: u32,
    c: u128,
}

fn switch() -> Switch {
    let program = Program::load(include_bytes!("programs/matching.json")).unwrap();
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    switch
}

fn table(switch: &Switch, which: usize) -> TableId {
    switch
        .program()
        .unwrap()
        .table_id(&format!("MyIngress.{}", TABLES[which]))
        .unwrap()
}

/// What the switch answers.
fn ask(switch: &mut Switch, which: u8, query: Query) -> u32 {
    let mut packet = vec![which, query.flag];
    packet.extend(query.a.to_be_bytes());
    packet.extend(query.b.to_be_bytes());
    packet.extend(query.c.to_be_bytes());
    packet.extend([0; 4]);
    switch.ingress(0, &packet, 0);
    let out = switch.dequeue(1, 0).unwrap().bytes;
    u32::from_be_bytes(out[24..28].try_into().unwrap())
}

fn field_value(key: &KeyInfo, query: Query) -> u128 {
    match key.name.rsplit('.').next().unwrap() {
        "flag" => query.flag.into(),
        "a" => query.a.into(),
        "b" => query.b.into(),
        "c" => query.c,
        other => panic!("key {other}"),
    }
}

fn number(value: &Value) -> u128 {
    value.as_u128().unwrap()
}

fn prefix_mask(length: u32, width: u32) -> u128 {
    let all = u128::MAX >> (128 - width);
    if length == 0 {
        0
    } else {
        all & !((1u128 << (width - length)).wrapping_sub(1))
    }
}

fn field_matches(field: &MatchField, key: &KeyInfo, value: u128) -> bool {
    match field {
        MatchField::Exact(v) => number(v) == value,
        MatchField::Lpm {
            value: v,
            prefix_len,
        } => value & prefix_mask(*prefix_len, key.width) == number(v),
        MatchField::Ternary { value: v, mask } => value & number(mask) == number(v),
        MatchField::Range { low, high } => (number(low)..=number(high)).contains(&value),
        MatchField::Optional(v) => v.as_ref().is_none_or(|v| number(v) == value),
    }
}

/// The entry that wins: by priority, or else by prefix length.
fn naive(entries: &[TableEntry], keys: &[KeyInfo], query: Query) -> Vec<u32> {
    let rank = |entry: &TableEntry| {
        let prefix = entry.key.iter().find_map(|f| match f {
            MatchField::Lpm { prefix_len, .. } => Some(*prefix_len as i32),
            _ => None,
        });
        if entry.priority > 0 {
            entry.priority
        } else {
            prefix.unwrap_or(0)
        }
    };
    let hits: Vec<&TableEntry> = entries
        .iter()
        .filter(|entry| {
            let fields = entry.key.iter().zip(keys);
            fields
                .into_iter()
                .all(|(f, k)| field_matches(f, k, field_value(k, query)))
        })
        .collect();
    let best = hits.iter().map(|e| rank(e)).max();
    let winners = hits.iter().filter(|e| Some(rank(e)) == best);
    winners
        .map(|e| match &e.action {
            EntryAction::Call(call) => call.params[0].low_u64() as u32,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Few values, so that entries and queries meet.
fn small(width: u32) -> impl Strategy<Value = u128> {
    let top = width - 2;
    (0u128..4, 0u128..4).prop_map(move |(low, high)| low | high << top)
}

fn field(key: &KeyInfo) -> BoxedStrategy<MatchField> {
    let width = key.width;
    let all = u128::MAX >> (128 - width);
    match key.kind {
        MatchKind::Exact => small(width)
            .prop_map(|v| MatchField::Exact(Value::new(v)))
            .boxed(),
        MatchKind::Lpm => (small(width), 0..=width)
            .prop_map(move |(v, prefix_len)| MatchField::Lpm {
                value: Value::new(v & prefix_mask(prefix_len, width)),
                prefix_len,
            })
            .boxed(),
        // p4c writes optional as ternary; half of these are one or the other.
        MatchKind::Ternary | MatchKind::Optional => (small(width), small(width), 0..3)
            .prop_map(move |(v, mask, form)| match form {
                0 => MatchField::Optional(Some(Value::new(v))),
                1 => MatchField::Optional(None),
                _ => MatchField::Ternary {
                    value: Value::new(v & mask & all),
                    mask: Value::new(mask & all),
                },
            })
            .boxed(),
        MatchKind::Range => (small(width), small(width))
            .prop_map(|(a, b)| MatchField::Range {
                low: Value::new(a.min(b)),
                high: Value::new(a.max(b)),
            })
            .boxed(),
    }
}

fn query() -> impl Strategy<Value = Query> {
    (small(8), small(16), small(32), small(128)).prop_map(|(flag, a, b, c)| Query {
        flag: flag as u8,
        a: a as u16,
        b: b as u32,
        c,
    })
}

fn entries(which: usize) -> impl Strategy<Value = Vec<(Vec<MatchField>, i32, bool)>> {
    let switch = switch();
    let info = switch.program().unwrap().tables()[table(&switch, which).index()].clone();
    let key: Vec<_> = info.keys.iter().map(field).collect();
    let priority = if info.has_priority { 1..6 } else { 0..1 };
    // The flag deletes the entry again after all were added.
    proptest::collection::vec((key, priority, any::<bool>()), 0..40)
}

/// The entry's key with each don't-care in one form.
fn normal(key: &[MatchField], keys: &[KeyInfo]) -> Vec<(u128, u128, u128)> {
    key.iter()
        .zip(keys)
        .map(|(field, key)| {
            let all = u128::MAX >> (128 - key.width);
            match field {
                MatchField::Exact(v) | MatchField::Optional(Some(v)) => (0, number(v), all),
                MatchField::Optional(None) => (0, 0, 0),
                MatchField::Lpm { value, prefix_len } => {
                    (0, number(value), prefix_mask(*prefix_len, key.width))
                }
                MatchField::Ternary { value, mask } => (0, number(value), number(mask)),
                MatchField::Range { low, high } => (1, number(low), number(high)),
            }
        })
        .collect()
}

fn check(
    which: usize,
    planned: Vec<(Vec<MatchField>, i32, bool)>,
    queries: &[Query],
) -> std::result::Result<(), TestCaseError> {
    let mut switch = switch();
    let id = table(&switch, which);
    let program = switch.program().unwrap().clone();
    let keys = &program.tables()[id.index()].keys;
    let action = program.table_action(id, "MyIngress.answer").unwrap();
    let mut kept: Vec<TableEntry> = Vec::new();
    let mut doomed = Vec::new();
    for (number, (key, priority, delete)) in planned.into_iter().enumerate() {
        let entry = TableEntry {
            key,
            priority,
            action: EntryAction::Call(ActionCall {
                action,
                params: vec![Value::new(number as u128)],
            }),
            idle_timeout: 0,
            metadata: Vec::new(),
        };
        let same = |other: &TableEntry| {
            other.priority == entry.priority && normal(&other.key, keys) == normal(&entry.key, keys)
        };
        let is_new = !kept.iter().any(same);
        match switch.table_insert(id, &entry, 0) {
            Ok(handle) => {
                prop_assert!(is_new);
                let view = switch.table_get(id, handle).unwrap().entry;
                prop_assert_eq!(normal(&view.key, keys), normal(&entry.key, keys));
                prop_assert_eq!(view.priority, entry.priority);
                if delete {
                    doomed.push(kept.len());
                }
                kept.push(entry);
            }
            Err(error) => {
                prop_assert!(!is_new, "{error}");
                prop_assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            }
        }
    }
    for at in doomed.into_iter().rev() {
        let entry = kept.remove(at);
        switch.table_delete(id, &entry.key, entry.priority).unwrap();
        prop_assert_eq!(switch.table_find(id, &entry.key, entry.priority), Ok(None));
    }
    prop_assert_eq!(switch.table_len(id), Ok(kept.len()));
    for &query in queries {
        let answer = ask(&mut switch, which as u8, query);
        let wanted = naive(&kept, keys, query);
        match wanted.as_slice() {
            [] => prop_assert_eq!(answer, MISS),
            wanted => prop_assert!(wanted.contains(&answer), "{answer} not in {wanted:?}"),
        }
    }
    Ok(())
}

macro_rules! agrees {
    ($($name:ident: $which:expr),*) => {$(
        proptest! {
            #[test]
            fn $name(planned in entries($which), queries in proptest::collection::vec(query(), 20)) {
                check($which, planned, &queries)?;
            }
        }
    )*};
}

agrees!(
    exact_keys: 0,
    one_prefix: 1,
    wide_prefix: 2,
    ternary_with_prefix: 3,
    ranges: 4,
    optionals: 5
);

#[test]
fn const_entries_keep_the_programs_order_and_cannot_be_changed() {
    let mut switch = switch();
    let at = |a| Query {
        flag: 0,
        a,
        b: 0,
        c: 0,
    };
    let answers: Vec<u32> = [0x1234, 0x1299, 0x9934, 0x9999]
        .map(|a| ask(&mut switch, 6, at(a)))
        .into();
    assert_eq!(answers, [1, 1, 3, MISS]);
    let program = switch.program().unwrap().clone();
    let id = program.table_id("MyIngress.constants").unwrap();
    let first = switch.table_next(id, None).unwrap().unwrap();
    let view = switch.table_get(id, first).unwrap();
    assert!(view.is_const);
    assert!(view.entry.priority > 0);
    let error = switch
        .table_delete(id, &view.entry.key, view.entry.priority)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let mut switch = switch();
    let program = switch.program().unwrap().clone();
    let id = table(&switch, 1);
    let action = program.table_action(id, "MyIngress.answer").unwrap();
    let mut attempt = |key: Vec<MatchField>, priority, params: Vec<Value>| {
        let action = EntryAction::Call(ActionCall { action, params });
        let entry = TableEntry {
            key,
            priority,
            action,
            idle_timeout: 0,
            metadata: Vec::new(),
        };
        switch.table_insert(id, &entry, 0).unwrap_err()
    };
    let exact = |v| MatchField::Exact(Value::new(v));
    let lpm = |value, prefix_len| MatchField::Lpm {
        value: Value::new(value),
        prefix_len,
    };
    let one = || vec![Value::new(1)];
    assert!(matches!(
        attempt(vec![exact(1)], 0, one()),
        ControlError::KeyLength { .. }
    ));
    assert!(matches!(
        attempt(vec![exact(1 << 16), lpm(0, 0)], 0, one()),
        ControlError::TooWide { .. }
    ));
    assert!(matches!(
        attempt(vec![exact(1), exact(1)], 0, one()),
        ControlError::KeyKind { .. }
    ));
    assert!(matches!(
        attempt(vec![exact(1), lpm(1, 31)], 0, one()),
        ControlError::BadKey { .. }
    ));
    assert!(matches!(
        attempt(vec![exact(1), lpm(0, 33)], 0, one()),
        ControlError::BadKey { .. }
    ));
    assert!(matches!(
        attempt(vec![exact(1), lpm(0, 0)], 7, one()),
        ControlError::BadPriority { .. }
    ));
    assert!(matches!(
        attempt(vec![exact(1), lpm(0, 0)], 0, vec![]),
        ControlError::ParamCount { .. }
    ));
    let wide = vec![Value::new(1 << 32)];
    assert!(matches!(
        attempt(vec![exact(1), lpm(0, 0)], 0, wide),
        ControlError::TooWide { .. }
    ));
}

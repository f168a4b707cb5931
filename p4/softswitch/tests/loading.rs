//! What is not a program is refused, with the place and the thing; what is
//! loaded cannot be made to panic by packets.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use proptest::prelude::*;
use softswitch::{Program, Switch, SwitchConfig};

const MATCHING: &str = include_str!("programs/matching.json");

fn refused(json: &str) -> String {
    match Program::load(json.as_bytes()) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    }
}

/// The first `from` becomes `to`.
fn changed(from: &str, to: &str) -> String {
    assert!(MATCHING.contains(from), "the program has {from}");
    MATCHING.replacen(from, to, 1)
}

#[test]
fn unknown_features_are_named_with_their_place() {
    let error = refused(&changed(r#""op" : "assign""#, r#""op" : "teleport""#));
    assert!(
        error.contains("teleport") && error.contains("action "),
        "{error}"
    );
    let error = refused(&changed(r#""op" : "==""#, r#""op" : "<=>""#));
    assert!(
        error.contains("operator <=>") && error.contains("node "),
        "{error}"
    );
    let error = refused(&changed(r#""op" : "extract""#, r#""op" : "extricate""#));
    assert!(
        error.contains("extricate") && error.contains("parser state start"),
        "{error}"
    );
    let error = refused(&changed(
        r#""match_type" : "lpm""#,
        r#""match_type" : "fuzzy""#,
    ));
    assert!(
        error.contains("fuzzy") && error.contains("table MyIngress.prefix"),
        "{error}"
    );
}

#[test]
fn contradictions_are_named_with_their_place() {
    let error = refused(&changed(r#"["query", "flag"]"#, r#"["query", "flak"]"#));
    assert!(error.contains("flak"), "{error}");
    let error = refused(&changed(
        r#""init_table" : "tbl_matching71""#,
        r#""init_table" : "node_x""#,
    ));
    assert!(
        error.contains("node_x") && error.contains("pipeline ingress"),
        "{error}"
    );
}

#[test]
fn hash_algorithms_are_known_or_refused_by_name() {
    let hashes = include_str!("programs/hashes/hashes.json");
    let place = r#""algo" : "crc32_custom""#;
    let with = |algorithm: &str| hashes.replacen(place, &format!("\"algo\": {algorithm:?}"), 1);
    // All that p4c writes for v1model, and what else bmv2 has under a name of its own.
    for known in [
        "crc32",
        "crc32_custom",
        "crc16",
        "crc16_custom",
        "random",
        "identity",
        "csum16",
        "xor16",
        "cksum16",
        "crcCCITT",
        "xor32",
        "xxh64",
        "crc8_custom",
        "crc64_custom",
    ] {
        Program::load(with(known).as_bytes()).unwrap();
    }
    for unknown in ["toeplitz", "round_robin", "round_robin_consistent", "md5"] {
        let error = refused(&with(unknown));
        assert!(
            error.contains("calculation calc_0") && error.contains(unknown),
            "{error}"
        );
    }
}

#[test]
fn what_is_not_a_program_is_not_loaded() {
    for text in ["", "{", "[]", "{}", "null", "{\"parsers\": 7}"] {
        refused(text);
    }
}

#[test]
fn control_flow_that_never_ends_is_refused() {
    let error = refused(&changed(
        r#""false_next" : "node_7""#,
        r#""false_next" : "node_3""#,
    ));
    assert!(error.contains("can come after itself"), "{error}");
}

fn play(program: Program, packets: &[Vec<u8>]) {
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    let mut ready = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        switch.ingress(i as u16 % 600, packet, 1_000 * i as u64);
        switch.take_ready(&mut ready);
        for &port in &ready {
            while let Some(packet) = switch.dequeue(port, 1_000 * i as u64) {
                switch.recycle(packet);
            }
        }
    }
}

fn packets() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Bytes changed at random places: an error or a program, never a panic.
    #[test]
    fn damaged_programs_do_not_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), 0x20u8..0x7f), 1..4),
        packets in packets(),
    ) {
        let mut json = MATCHING.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(json.len());
            json[at] = byte;
        }
        if let Ok(program) = Program::load(&json) {
            play(program, &packets);
        }
    }

    /// Numbers in the program changed: still no panic.
    #[test]
    fn wrong_numbers_do_not_panic(
        which in any::<proptest::sample::Index>(),
        digits in "[0-9]{1,6}",
        packets in packets(),
    ) {
        let bytes = MATCHING.as_bytes();
        let starts: Vec<usize> = (1..bytes.len())
            .filter(|&i| bytes[i].is_ascii_digit() && !bytes[i - 1].is_ascii_alphanumeric())
            .collect();
        let start = starts[which.index(starts.len())];
        let end = (start..).find(|&i| !bytes[i].is_ascii_digit()).unwrap();
        let json = [&bytes[..start], digits.as_bytes(), &bytes[end..]].concat();
        if let Ok(program) = Program::load(&json) {
            play(program, &packets);
        }
    }
}

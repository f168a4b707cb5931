//! The P4 program as its readers, and as bmv2, need it.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use p4runtime::info::Index;
use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _, Value};

/// What bmv2 reserves in front of a packet for headers that it did not bring.
const BMV2_HEADROOM_BYTES: u64 = 512;

fn p4() -> PathBuf {
    tests::root().join("p4")
}

#[test]
fn every_file_has_one_control_and_says_what_it_reads_decides_and_writes() {
    let mut controls = 0;
    for file in fs::read_dir(p4().join("fabric")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let blocks = text
            .lines()
            .filter(|line| line.starts_with("control ") || line.starts_with("parser "));
        let count = blocks.count();
        assert!(count <= 1, "{name} has {count} controls");
        let header: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("//"))
            .collect();
        assert!(!header.is_empty(), "{name} does not say what it is");
        if count == 1 {
            let says = |words: &[&str]| {
                header
                    .iter()
                    .any(|line| words.iter().any(|word| line.contains(word)))
            };
            assert!(
                says(&["Reads:", "reads:"]),
                "{name} does not say what it reads"
            );
            assert!(
                says(&["Decides", "Writes"]),
                "{name} says neither what it decides nor writes"
            );
            controls += 1;
        }
    }
    assert!(controls > 30, "{controls}");
}

/// The marking law stands in ecn.p4, as the design has it, and nowhere else.
#[test]
fn the_marking_law_is_found_by_its_names() {
    for file in fs::read_dir(p4().join("fabric")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.contains("profile.kmin") && text.contains("The marking law"),
            path.ends_with("ecn.p4"),
            "{}",
            path.display()
        );
    }
}

/// bmv2 ends with SIGFPE when every watched member of an action selector is down. This program has neither
/// selectors nor profiles: no entry can lead there.
#[test]
fn there_is_no_selector_whose_members_could_all_be_down() {
    let text = fs::read_to_string(p4().join("compiled/fabric.p4info.txtpb")).unwrap();
    let index = Index::parse_text(&text).unwrap();
    assert!(index.p4info().action_profiles.is_empty());
    for table in &index.p4info().tables {
        assert_eq!(table.implementation_id, 0);
    }
    let json = json();
    for pipeline in json["pipelines"].as_array().unwrap() {
        assert!(
            pipeline["action_profiles"]
                .as_array()
                .is_none_or(|all| all.is_empty())
        );
        for table in pipeline["tables"].as_array().unwrap() {
            assert_eq!(table["type"].as_str(), Some("simple"));
        }
    }
}

fn json() -> Value {
    sonic_rs::from_slice(&fs::read(p4().join("compiled/fabric.json")).unwrap()).unwrap()
}

/// Bytes of each header, at most.
fn sizes(json: &Value) -> BTreeMap<String, u64> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let types: BTreeMap<String, u64> = json["header_types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| {
            let fields = kind["fields"].as_array().unwrap();
            let bits: u64 = fields.iter().filter_map(|field| field[1].as_u64()).sum();
            let longest = kind["max_length"].as_u64().unwrap_or(0);
            (text(&kind["name"]), longest.max(bits.div_ceil(8)))
        })
        .collect();
    let headers = json["headers"].as_array().unwrap().iter();
    headers
        .map(|header| (text(&header["name"]), types[&text(&header["header_type"])]))
        .collect()
}

#[test]
fn added_headers_fit_what_bmv2_reserves() {
    let json = json();
    let sizes = sizes(&json);
    // Headers that an action makes valid. One that gets back what was kept of the same packet adds nothing to it.
    let mut added: BTreeSet<&str> = BTreeSet::new();
    for action in json["actions"].as_array().unwrap() {
        for primitive in action["primitives"].as_array().unwrap() {
            let value = |at: usize| primitive["parameters"][at]["value"].as_str().unwrap_or("");
            match primitive["op"].as_str().unwrap() {
                "add_header" => drop(added.insert(value(0))),
                "assign_header" if !value(1).starts_with("kept_") => drop(added.insert(value(0))),
                _ => {}
            }
        }
    }
    let order = json["deparsers"][0]["order"].as_array().unwrap();
    let sent: Vec<&str> = order.iter().map(|name| name.as_str().unwrap()).collect();
    let all: u64 = added
        .iter()
        .filter(|name| sent.contains(*name))
        .map(|name| sizes[*name])
        .sum();
    println!("{all} bytes at most, of {BMV2_HEADROOM_BYTES}");
    assert!(added.contains("int_shim") && added.contains("report_ipv4"));
    assert!((200..=BMV2_HEADROOM_BYTES).contains(&all), "{all}");
}

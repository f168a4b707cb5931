#![allow(clippy::unwrap_used)]

use super::*;

/// A small program with one object of most kinds.
pub(crate) const SAMPLE: &str = include_str!("../../tests/data/sample.p4info.txtpb");

fn sample() -> Index {
    Index::parse_text(SAMPLE).unwrap()
}

#[test]
fn objects_are_found_by_id_name_and_alias() {
    let index = sample();
    let route = index.table("route").unwrap();
    assert_eq!(index.table("ingress.route").unwrap().id(), route.id());
    assert_eq!(index.table(route.id()).unwrap().name(), "route");
    assert_eq!(route.field("dst_addr").unwrap().kind, MatchKind::Lpm);
    assert_eq!(route.field(1).unwrap().name(), "vrf");
    assert_eq!(route.field(1).unwrap().width(), 16);
    assert!(!route.needs_priority());
    assert!(index.table("acl").unwrap().needs_priority());
    let (forward, _) = route.action("forward").unwrap();
    assert_eq!(index.param(forward, "port").unwrap().bitwidth, 9);
    assert_eq!(index.param(forward, 2).unwrap().name, "dst_mac");
    assert!(index.table("acl").unwrap().direct_counter().is_some());
    assert!(index.table("acl").unwrap().direct_meter().is_none());
    assert_eq!(index.counter("drops").unwrap().size, 512);
    assert_eq!(index.meter("limits").unwrap().size, 64);
    assert_eq!(index.register("last_seen").unwrap().size, 128);
    assert_eq!(
        index
            .digest("learn_t")
            .unwrap()
            .preamble
            .as_ref()
            .unwrap()
            .id,
        385875969
    );
    assert_eq!(
        index.packet_field("packet_in", "reason").unwrap().bitwidth,
        7
    );
    assert!(
        index
            .action_profile("spread_profile")
            .unwrap()
            .with_selector
    );
    assert_eq!(index.arch(), "v1model");
    assert_eq!(index.kind_of(route.id()), Some(Kind::Table));
    assert_eq!(index.name_of(Kind::Action, 1), "0x00000001");
}

#[test]
fn unknown_names_list_the_names_there_are() {
    let index = sample();
    let text = index.table("rout").unwrap_err().to_string();
    assert_eq!(
        text,
        "the program has no table `rout`; did you mean `route`?; there are: route, acl, spread, session_watch, fixed"
    );
    let route = index.table("route").unwrap();
    let text = route.field("destination").unwrap_err().to_string();
    assert_eq!(
        text,
        "`route` has no match field `destination`; there are: vrf, dst_addr"
    );
    let text = route.action("deny").unwrap_err().to_string();
    assert!(
        text.contains("there are: forward, drop, NoAction"),
        "{text}"
    );
    let text = index.value_set("x").unwrap_err().to_string();
    assert!(
        text.ends_with("has no value set `x`; it has none"),
        "{text}"
    );
    assert_eq!(
        index.table(5).unwrap_err().code(),
        crate::rpc::Code::InvalidArgument
    );
}

#[test]
fn broken_programs_are_refused() {
    let broken = |from: &str, to: &str| {
        assert!(SAMPLE.contains(from), "{from}");
        Index::parse_text(&SAMPLE.replacen(from, to, 1)).unwrap_err()
    };
    let double = broken("id: 33554433", "id: 33554434");
    assert!(
        matches!(
            double,
            Error::DoubleId {
                kind: Kind::Table,
                ..
            }
        ),
        "{double}"
    );
    let dangling = broken(
        "action_refs { id: 16777217 }",
        "action_refs { id: 16777299 }",
    );
    assert!(matches!(dangling, Error::Dangling { .. }), "{dangling}");
    let nameless = broken("name: \"ingress.route\"", "name: \"\"");
    assert!(matches!(nameless, Error::Nameless { .. }), "{nameless}");
    let double = broken("name: \"ingress.acl\"", "name: \"ingress.route\"");
    assert!(matches!(double, Error::DoubleName { .. }), "{double}");
    let syntax = broken("tables {", "tabels {").to_string();
    assert!(
        syntax.contains("line ") && syntax.contains("tabels"),
        "{syntax}"
    );
}

#[test]
fn text_is_read_back() {
    let index = sample();
    let again = Index::parse_text(&index.to_text().unwrap()).unwrap();
    assert_eq!(index.p4info(), again.p4info());
}

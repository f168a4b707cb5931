#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::check::Intent;
use super::*;
use crate::info::Index;
use crate::v1::{
    Action, CounterData, FieldMatch, MeterConfig, MeterCounterData, PacketIn, PacketMetadata,
    TableAction, action, field_match, table_action,
};

const SAMPLE: &str = include_str!("../../tests/data/sample.p4info.txtpb");

fn sample() -> Index {
    Index::parse_text(SAMPLE).unwrap()
}

fn forward(index: &Index) -> Action {
    let port: Value = 3u8.into();
    let mac: Value = [2, 0, 0, 0, 0, 1].into();
    index
        .call("forward", [("port", port), ("dst_mac", mac)])
        .unwrap()
}

fn route(index: &Index) -> TableEntry {
    let entry = index.table("route").unwrap().entry();
    let entry = entry
        .lpm("dst_addr", [10, 1, 0, 0], 16)
        .exact("vrf", 7u16)
        .action("forward", [("dst_mac", 1u64), ("port", 3u64)]);
    entry.build().unwrap()
}

/// What the rules say about a changed entry.
fn refusal(index: &Index, entry: &TableEntry, intent: Intent) -> (Code, String) {
    let error = check::table_entry(index, entry, intent).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn entries_are_canonical() {
    let index = sample();
    let entry = route(&index);
    assert_eq!(entry.r#match[0].field_id, 1, "the order is that of P4Info");
    let Some(table_action::Type::Action(action)) = entry.action.clone().unwrap().r#type else {
        panic!("{entry:?}");
    };
    assert_eq!(action.params[0].value, [3]);
    assert_eq!(action.params[1].value, [1]);
    assert_eq!(
        check::table_entry(&index, &entry, Intent::Insert).unwrap(),
        entry
    );
}

#[test]
fn padding_is_accepted_and_removed() {
    let index = sample();
    let mut padded = route(&index);
    padded.r#match.reverse();
    let exact = field_match::Exact {
        value: vec![0, 0, 0, 7],
    };
    padded.r#match[1].field_match_type = Some(field_match::FieldMatchType::Exact(exact));
    assert_eq!(
        check::table_entry(&index, &padded, Intent::Insert).unwrap(),
        route(&index)
    );
}

#[test]
fn builders_name_the_mistake() {
    let index = sample();
    let table = index.table("route").unwrap();
    let text = |builder: TableEntryBuilder<'_>| builder.build().unwrap_err().to_string();
    let good = || table.entry().exact("vrf", 1u8);
    let none: [(&str, u8); 0] = [];

    let unknown = text(good().lpm("dst", 0u8, 0));
    assert!(unknown.contains("no match field `dst`") && unknown.contains("vrf, dst_addr"));
    let wide = table
        .entry()
        .exact("vrf", 0x1_0000u32)
        .action("drop", none)
        .build();
    assert_eq!(wide.unwrap_err().code(), Code::OutOfRange);
    let missing = text(table.entry().action("drop", none));
    assert!(missing.contains("field `vrf`: it is missing"), "{missing}");
    let twice = text(good().exact("vrf", 1u8).action("drop", none));
    assert!(twice.contains("given twice"), "{twice}");
    let kind = text(good().exact("dst_addr", 1u8).action("drop", none));
    assert!(
        kind.contains("matches by lpm, but exact is given"),
        "{kind}"
    );
    let long = text(good().lpm("dst_addr", 1u8, 33).action("drop", none));
    assert!(long.contains("33 bits is not between 0 and 32"), "{long}");
    let unmasked = text(
        good()
            .lpm("dst_addr", [10, 0, 0, 1], 8)
            .action("drop", none),
    );
    assert!(unmasked.contains("0x0a000001 has ones outside of the prefix 0xff000000"));
    let priority = text(good().priority(1).action("drop", none));
    assert!(priority.contains("must be 0"), "{priority}");
    let argument = text(good().action("forward", [("port", 1u8)]));
    assert!(
        argument.contains("parameter `dst_mac`: it is missing"),
        "{argument}"
    );
    let wide = text(good().action("forward", [("port", 512u64), ("dst_mac", 0)]));
    assert!(
        wide.contains("parameter `port`: the value 0x0200 needs 10 bits"),
        "{wide}"
    );
    let scope = good().action("NoAction", none).build().unwrap_err();
    assert_eq!(scope.code(), Code::PermissionDenied);
    assert!(text(good()).contains("no action"));
    assert!(text(good().member(1)).contains("no action profile"));
}

#[test]
fn what_matches_everything_is_left_out() {
    let index = sample();
    let none: [(&str, u8); 0] = [];
    let entry = index.table("acl").unwrap().entry().priority(10);
    let entry = entry
        .ternary("src_addr", 0u8, 0u8)
        .range("dst_port", 0u8, 0xffffu16)
        .action("drop", none);
    assert!(entry.build().unwrap().r#match.is_empty());
    let route = index.table("route").unwrap().entry();
    let route = route.exact("vrf", 1u8).lpm("dst_addr", 0u8, 0);
    assert_eq!(route.build_key().unwrap().r#match.len(), 1);

    // A server refuses the same.
    let mask = field_match::Ternary {
        value: vec![0],
        mask: vec![0],
    };
    let entry = TableEntry {
        table_id: index.table("acl").unwrap().id(),
        priority: 1,
        r#match: vec![FieldMatch {
            field_id: 1,
            field_match_type: Some(field_match::FieldMatchType::Ternary(mask)),
        }],
        ..Default::default()
    };
    let (code, text) = refusal(&index, &entry, Intent::Delete);
    assert_eq!(code, Code::InvalidArgument);
    assert!(text.contains("leave the field out"), "{text}");
}

#[test]
fn ternary_and_range_rules() {
    let index = sample();
    let acl = index.table("acl").unwrap();
    let none: [(&str, u8); 0] = [];
    let text = |builder: TableEntryBuilder<'_>| {
        builder
            .action("drop", none)
            .build()
            .unwrap_err()
            .to_string()
    };
    let one = || acl.entry().priority(1);
    assert!(text(one().ternary("src_addr", 3u8, 1u8)).contains("outside of the mask 0x01"));
    assert!(text(one().range("dst_port", 5u8, 4u8)).contains("is empty"));
    assert!(text(acl.entry().optional("type", 1u8)).contains("one above 0"));
    assert!(text(acl.entry().priority(-1)).contains("one above 0"));
    let entry = one()
        .optional("type", 0u8)
        .action("drop", none)
        .build()
        .unwrap();
    assert_eq!(entry.r#match.len(), 1, "a zero is a value, not everything");
}

#[test]
fn default_entries() {
    let index = sample();
    let route = index.table("route").unwrap();
    let none: [(&str, u8); 0] = [];
    let default = || route.entry().default_entry();
    let entry = default().action("drop", none).build().unwrap();
    assert!(entry.is_default_action && entry.r#match.is_empty());
    assert!(
        default().build().unwrap().action.is_none(),
        "no action resets"
    );
    assert_eq!(
        refusal(&index, &entry, Intent::Insert).0,
        Code::InvalidArgument
    );
    assert_eq!(
        refusal(&index, &entry, Intent::Delete).0,
        Code::InvalidArgument
    );
    assert!(default().priority(1).build().is_err());
    assert!(default().exact("vrf", 1u8).build().is_err());
    let acl = index.table("acl").unwrap().entry().default_entry();
    let constant = acl.action("drop", none).build().unwrap_err();
    assert_eq!(constant.code(), Code::PermissionDenied);
    let watch = index
        .table("session_watch")
        .unwrap()
        .entry()
        .default_entry();
    assert!(watch.idle_timeout_ns(5).build().is_err());
    let spread = index.table("spread").unwrap().entry().default_entry();
    assert!(
        spread.build().is_err(),
        "indirect tables keep their default"
    );
}

#[test]
fn constant_tables() {
    let index = sample();
    let fixed = index.table("fixed").unwrap();
    let none: [(&str, u8); 0] = [];
    let entry = fixed.entry().exact("code", 1u8).build_key().unwrap();
    assert_eq!(
        refusal(&index, &entry, Intent::Delete).0,
        Code::PermissionDenied
    );
    assert!(check::table_entry(&index, &entry, Intent::Modify).is_ok());
    let insert = fixed
        .entry()
        .exact("code", 1u8)
        .action("drop", none)
        .build();
    assert_eq!(insert.unwrap_err().code(), Code::PermissionDenied);
    let constant = TableEntry {
        is_const: true,
        ..entry
    };
    assert_eq!(
        refusal(&index, &constant, Intent::Modify).0,
        Code::InvalidArgument
    );
}

#[test]
fn deletion_looks_at_the_key_alone() {
    let index = sample();
    let mut entry = route(&index);
    let nonsense = Action {
        action_id: 99,
        params: Vec::new(),
    };
    entry.action = Some(TableAction {
        r#type: Some(table_action::Type::Action(nonsense)),
    });
    let deleted = check::table_entry(&index, &entry, Intent::Delete).unwrap();
    assert_eq!(deleted, table_key(&route(&index)));
}

#[test]
fn direct_resources_and_timeouts() {
    let index = sample();
    let route_entry = TableEntry {
        counter_data: Some(CounterData::default()),
        ..route(&index)
    };
    let (_, text) = refusal(&index, &route_entry, Intent::Insert);
    assert_eq!(text, "table `route`: it has no direct counter");
    let idle = TableEntry {
        idle_timeout_ns: 1,
        ..route(&index)
    };
    assert!(
        refusal(&index, &idle, Intent::Insert)
            .1
            .contains("no idle timeout")
    );

    let watch = index.table("session_watch").unwrap();
    let entry = watch
        .entry()
        .exact("session", 5u8)
        .action("count", [("match", 9u8)]);
    let entry = entry.idle_timeout_ns(1_000).build().unwrap();
    let with = |meter_config| TableEntry {
        meter_config,
        ..entry.clone()
    };
    let config = MeterConfig {
        cir: 10,
        cburst: 1,
        pir: 20,
        pburst: 2,
        eburst: 0,
    };
    assert!(check::table_entry(&index, &with(Some(config)), Intent::Insert).is_ok());
    let excess = MeterConfig {
        eburst: 1,
        ..config
    };
    assert!(
        refusal(&index, &with(Some(excess)), Intent::Insert)
            .1
            .contains("eburst")
    );
    let green = Some(CounterData {
        byte_count: 1,
        packet_count: 1,
    });
    let counted = TableEntry {
        meter_counter_data: Some(MeterCounterData {
            green,
            ..Default::default()
        }),
        ..entry.clone()
    };
    assert!(
        refusal(&index, &counted, Intent::Modify)
            .1
            .contains("only be set to 0")
    );
    assert!(watch.all(true).meter_config.is_some());
    assert!(watch.all(false).meter_config.is_none());
}

#[test]
fn action_profiles() {
    let index = sample();
    let member = index.member("spread_profile", 1, forward(&index)).unwrap();
    assert!(index.member("spread_profile", 0, forward(&index)).is_err());
    let none: [(&str, u8); 0] = [];
    let default_only = index.call("NoAction", none).unwrap();
    let error = index.member("spread_profile", 2, default_only).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);

    let group = |size, members: &[(u32, i32)]| {
        index.group("spread_profile", 4, size, members.iter().copied())
    };
    assert!(group(8, &[(1, 4), (2, 4)]).is_ok());
    for (size, members) in [
        (0, vec![(1, 1)]),
        (9, vec![(1, 1)]),
        (8, vec![(1, 0)]),
        (8, vec![(1, 1), (1, 1)]),
        (8, vec![(1, 5), (2, 4)]),
    ] {
        let error = group(size, &members).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{size} {members:?}");
    }

    let spread = index.table("spread").unwrap();
    let entry = || spread.entry().exact("group", 1u8);
    assert!(entry().group(4).build().is_ok());
    assert!(entry().member(1).build().is_ok());
    let one = |weight| OneShot {
        action: forward(&index),
        weight,
        watch_port: Some(3u8.into()),
    };
    assert!(entry().one_shot([one(1), one(2)]).build().is_ok());
    assert!(entry().one_shot([one(8), one(1)]).build().is_err());
    assert!(entry().one_shot([one(0)]).build().is_err());
    let direct = entry().action("forward", [("port", 1u8), ("dst_mac", 1)]);
    assert!(direct.build().unwrap_err().to_string().contains("selector"));
    assert_eq!(key(&member.clone().into()), {
        let key: Entity = ActionProfileMember {
            action: None,
            ..member
        }
        .into();
        key
    });
}

#[test]
fn arrays() {
    let index = sample();
    assert!(index.counter_entry("drops", Some(511), None).is_ok());
    let error = index.counter_entry("drops", Some(512), None).unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
    let error = index.counter_entry("drops", Some(-1), None).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let entry = index.counter_entry("drops", None, None).unwrap();
    assert!(check::update(&index, &insert(entry)).is_err());
    assert!(check::update(&index, &modify(entry)).is_ok());
    assert!(index.meter_entry("limits", Some(0), None).is_ok());
    assert!(index.register_entry("last_seen", 5, 77u64).is_ok());
    assert!(index.register_entry("last_seen", 128, 77u64).is_err());
    let config = crate::v1::digest_entry::Config {
        max_list_size: -1,
        ..Default::default()
    };
    assert!(index.digest_entry("learn_t", config).is_err());
}

#[test]
fn replication() {
    let index = sample();
    let good = multicast_group(1, [replica(1u8, 0), replica(1u8, 1)]);
    let update = check::update(&index, &insert(good.clone())).unwrap();
    assert_eq!(update, insert(good));
    for bad in [
        multicast_group(0, []),
        multicast_group(1, [replica(1u8, 0), replica(1u16, 0)]),
    ] {
        assert!(
            check::update(&index, &insert(bad.clone())).is_err(),
            "{bad:?}"
        );
    }
    let session = clone_session(5, 128, [replica(510u16, 1)]);
    let deleted = check::update(&index, &delete(session)).unwrap();
    assert_eq!(deleted, delete(clone_session(5, 0, [])));
}

#[test]
fn packets() {
    let index = sample();
    let out = |fields: &[(&'static str, u16)]| index.packet_out(vec![1], fields.iter().copied());
    let packet = out(&[("pad", 0), ("egress_port", 300), ("submit_to_ingress", 1)]).unwrap();
    assert_eq!(packet.metadata[0].value, [1, 44]);
    assert_eq!(packet.metadata[2].value, [0]);
    assert!(
        out(&[("egress_port", 3)])
            .unwrap_err()
            .to_string()
            .contains("submit_to_ingress")
    );
    assert!(
        out(&[("port", 3)])
            .unwrap_err()
            .to_string()
            .contains("egress_port")
    );
    let metadata = [(2, vec![0, 5]), (1, vec![9])]
        .map(|(metadata_id, value)| PacketMetadata { metadata_id, value });
    let packet = PacketIn {
        payload: vec![],
        metadata: metadata.to_vec(),
    };
    let fields = index.packet_in_fields(&packet).unwrap();
    let expected: Vec<(&str, Value)> = vec![("ingress_port", 9u8.into()), ("reason", 5u8.into())];
    assert_eq!(fields, expected);
}

#[test]
fn updates_need_a_type_and_an_entity() {
    let index = sample();
    let no_type = Update {
        r#type: 0,
        ..insert(route(&index))
    };
    assert!(check::update(&index, &no_type).is_err());
    let empty = Update {
        entity: Some(Entity::default()),
        ..no_type
    };
    assert!(check::update(&index, &Update { r#type: 1, ..empty }).is_err());
    let unknown = TableEntry {
        table_id: 1,
        ..route(&index)
    };
    let error = check::update(&index, &insert(unknown)).unwrap_err();
    let error: crate::v1::Error = error.into();
    assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
    assert!(
        error.message.contains("there are: route"),
        "{}",
        error.message
    );
}

#[test]
fn readable() {
    let index = sample();
    let text = |entity: Entity| read_entity(&index, &entity).to_string();
    assert_eq!(
        text(route(&index).into()),
        "table entry route vrf=7 dst_addr=10.1.0.0/16 -> forward(port=3, dst_mac=00:00:00:00:00:01)"
    );
    let none: [(&str, u8); 0] = [];
    let acl = index.table("acl").unwrap().entry().priority(3);
    let acl = acl
        .ternary(
            "src_addr",
            "::ffff:10.0.0.1".parse::<std::net::Ipv6Addr>().unwrap(),
            [0xff; 16],
        )
        .range("dst_port", 80u8, 443u16)
        .action("drop", none);
    let acl = acl.counter(CounterData {
        byte_count: 64,
        packet_count: 1,
    });
    assert_eq!(
        text(acl.build().unwrap().into()),
        "table entry acl src_addr=::ffff:10.0.0.1 dst_port=80..443 priority=3 -> drop() [packets 1] [bytes 64]"
    );
    assert_eq!(
        text(multicast_group(9, [replica(4u8, 1)]).into()),
        "multicast group 9 [replicas 4:1]"
    );
    let strange = TableEntry {
        table_id: 5,
        r#match: vec![FieldMatch {
            field_id: 3,
            field_match_type: None,
        }],
        ..Default::default()
    };
    assert_eq!(text(strange.into()), "table entry 0x00000005 #3=?");
    let action = Action {
        action_id: 16777217,
        params: vec![action::Param {
            param_id: 9,
            value: vec![1],
        }],
    };
    assert_eq!(read_action(&index, &action), "forward(#9=0x01)");
}

proptest! {
    /// Whatever padding and order a client chooses, the canonical entry is the same.
    #[test]
    fn canonical_form_is_unique(
        vrf: u16, address: u32, len in 1u32..=32, zeros in 0usize..4, swap: bool
    ) {
        let index = sample();
        let mask = u32::MAX << (32 - len);
        let table = index.table("route").unwrap();
        let entry = table.entry().exact("vrf", vrf).lpm("dst_addr", address & mask, len);
        let canonical = entry.action("drop", [("", 0u8); 0]).build().unwrap();
        let mut other = canonical.clone();
        for field in &mut other.r#match {
            let value = match field.field_match_type.as_mut().unwrap() {
                field_match::FieldMatchType::Exact(exact) => &mut exact.value,
                field_match::FieldMatchType::Lpm(lpm) => &mut lpm.value,
                other => panic!("{other:?}"),
            };
            value.splice(0..0, std::iter::repeat_n(0, zeros));
        }
        if swap {
            other.r#match.reverse();
        }
        prop_assert_eq!(check::table_entry(&index, &other, Intent::Insert).unwrap(), canonical.clone());
        // And canonicalising twice changes nothing.
        prop_assert_eq!(check::table_entry(&index, &canonical, Intent::Insert).unwrap(), canonical);
    }
}

//! Table entries, default entries, direct counters and meters.

use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, table_action::Type as Does, update::Type, write_request::Atomicity,
};

use super::common::{
    Bench, DENIED, EXISTS, FULL, INVALID, MISSING, OUT_OF_RANGE, acl, details, does, exact, id, l2,
    lpm, optional, range, route, table, ternary,
};

#[tokio::test]
async fn updates_need_a_type_and_an_entity() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    assert_eq!(one.write(Type::Unspecified, table(l2(1, 1))).await, INVALID);
    let empty = v1::Update {
        r#type: Type::Insert as i32,
        entity: None,
    };
    let status = one
        .write_as(Atomicity::ContinueOnError, vec![empty])
        .await
        .unwrap_err();
    assert_eq!(details(&status), [Code::InvalidArgument]);
    assert_eq!(
        one.insert(Entity::ExternEntry(v1::ExternEntry {
            extern_type_id: 0x81,
            ..Default::default()
        }))
        .await,
        Err(Code::Unimplemented)
    );
}

#[tokio::test]
async fn entries_come_change_and_go() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    assert_eq!(one.modify(table(l2(1, 1))).await, MISSING);
    assert_eq!(one.delete(table(l2(1, 1))).await, MISSING);
    assert_eq!(one.insert(table(l2(1, 1))).await, Ok(()));
    assert_eq!(one.insert(table(l2(1, 2))).await, EXISTS);
    assert_eq!(one.modify(table(l2(1, 3))).await, Ok(()));
    assert_eq!(one.tables(l2(1, 0)).await[0].action, does("send", &[&[3]]));
    // A delete looks at the key only.
    let nonsense = v1::TableEntry {
        action: does("learn", &[]),
        idle_timeout_ns: -4,
        ..l2(1, 0)
    };
    assert_eq!(one.delete(table(nonsense)).await, Ok(()));
    assert_eq!(one.delete(table(l2(1, 1))).await, MISSING);
}

#[tokio::test]
async fn ids_are_checked() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut check = async |entry, result| assert_eq!(one.insert(table(entry)).await, result);
    check(
        v1::TableEntry {
            table_id: 0,
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            table_id: 0x0200_0001,
            ..l2(1, 1)
        },
        MISSING,
    )
    .await;
    check(
        v1::TableEntry {
            r#match: vec![exact(2, &[1])],
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            r#match: vec![exact(1, &[1]), exact(1, &[1])],
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            r#match: vec![],
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: None,
            }],
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            r#match: vec![lpm(1, &[1], 48)],
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            action: None,
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            action: Some(v1::TableAction { r#type: None }),
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            action: does("learn", &[]),
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            action: does("send", &[]),
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            action: does("send", &[&[1], &[1]]),
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            action: does("send", &[&[]]),
            ..l2(1, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            action: does("drop", &[]),
            ..l2(1, 1)
        },
        DENIED,
    )
    .await;
    check(
        v1::TableEntry {
            action: does("mirror", &[&[1]]),
            ..l2(1, 1)
        },
        Ok(()),
    )
    .await;
    let member = Some(v1::TableAction {
        r#type: Some(Does::ActionProfileMemberId(1)),
    });
    check(
        v1::TableEntry {
            action: member,
            ..l2(2, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            is_const: true,
            ..l2(2, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            priority: 1,
            ..l2(2, 1)
        },
        INVALID,
    )
    .await;
    let hit = Some(v1::table_entry::IdleTimeout::default());
    check(
        v1::TableEntry {
            time_since_last_hit: hit,
            ..l2(2, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            idle_timeout_ns: -1,
            ..l2(2, 1)
        },
        INVALID,
    )
    .await;
    check(
        v1::TableEntry {
            idle_timeout_ns: 5,
            ..route([10, 0, 0, 0], 8, 1)
        },
        INVALID,
    )
    .await;
}

#[tokio::test]
async fn byte_strings_fit_their_width() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let with = |value: &[u8]| v1::TableEntry {
        r#match: vec![exact(1, value)],
        ..l2(1, 1)
    };
    assert_eq!(
        one.insert(table(with(&[1, 0, 0, 0, 0, 0, 0]))).await,
        OUT_OF_RANGE
    );
    assert_eq!(one.insert(table(with(&[]))).await, OUT_OF_RANGE);
    assert_eq!(
        one.insert(table(with(&[0, 0, 0, 0, 0, 0, 0, 0, 5]))).await,
        Ok(())
    );
    assert_eq!(
        one.insert(table(with(&[5]))).await,
        EXISTS,
        "the same value"
    );
    let wide = v1::TableEntry {
        action: does("send", &[&[0x02, 0x00]]),
        ..l2(6, 1)
    };
    assert_eq!(one.insert(table(wide)).await, OUT_OF_RANGE);
    let read = one.tables(with(&[5])).await;
    assert_eq!(
        read[0].r#match,
        [exact(1, &[5])],
        "read back in shortest form"
    );
}

#[tokio::test]
async fn lpm_rules() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let with = |m| v1::TableEntry {
        r#match: vec![m],
        ..route([0; 4], 8, 1)
    };
    assert_eq!(
        one.insert(table(with(lpm(1, &[10, 0, 0, 1], 8)))).await,
        INVALID
    );
    assert_eq!(one.insert(table(with(lpm(1, &[0], 0)))).await, INVALID);
    assert_eq!(
        one.insert(table(with(lpm(1, &[10, 0, 0, 0], 33)))).await,
        INVALID
    );
    assert_eq!(
        one.insert(table(with(lpm(1, &[10, 0, 0, 0], -1)))).await,
        INVALID
    );
    assert_eq!(
        one.insert(table(with(lpm(1, &[10, 0, 0, 0], 8)))).await,
        Ok(())
    );
    assert_eq!(
        one.insert(table(with(lpm(1, &[10, 0, 0, 0], 9)))).await,
        Ok(())
    );
    let any = v1::TableEntry {
        r#match: vec![],
        ..route([0; 4], 8, 1)
    };
    assert_eq!(one.insert(table(any.clone())).await, Ok(()));
    assert_eq!(one.insert(table(any)).await, EXISTS);
}

#[tokio::test]
async fn ternary_range_and_optional_rules() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let with = |m: Vec<v1::FieldMatch>| {
        let mut entry = acl(10, &[10, 0, 0, 0], &[255, 0, 0, 0]);
        entry.r#match = [m, vec![exact(4, &[1])]].concat();
        entry
    };
    let mut check = async |m, result| assert_eq!(one.insert(table(with(m))).await, result);
    check(vec![ternary(1, &[10, 0, 0, 1], &[255, 0, 0, 0])], INVALID).await;
    check(vec![ternary(1, &[0], &[0])], INVALID).await;
    check(vec![ternary(1, &[10, 0, 0, 0], &[])], OUT_OF_RANGE).await;
    check(vec![range(3, &[9], &[8])], INVALID).await;
    check(vec![range(3, &[0], &[255])], INVALID).await;
    check(vec![range(3, &[0], &[1, 0])], OUT_OF_RANGE).await;
    check(vec![optional(2, &[])], OUT_OF_RANGE).await;
    check(vec![ternary(2, &[6], &[255])], INVALID).await;
    check(
        vec![
            ternary(1, &[10, 0, 0, 0], &[255, 0, 0, 0]),
            optional(2, &[6]),
            range(3, &[1], &[64]),
        ],
        Ok(()),
    )
    .await;
    check(vec![optional(2, &[0])], Ok(())).await;
    check(vec![], Ok(())).await;
    for priority in [0, -1] {
        let entry = v1::TableEntry {
            priority,
            ..acl(1, &[10, 0, 0, 0], &[255, 0, 0, 0])
        };
        assert_eq!(one.insert(table(entry)).await, INVALID);
    }
    // Priority is part of the key.
    for (priority, result) in [(11, Ok(())), (12, Ok(())), (12, EXISTS)] {
        assert_eq!(
            one.insert(table(acl(priority, &[10, 0, 0, 0], &[255, 0, 0, 0])))
                .await,
            result
        );
    }
}

#[tokio::test]
async fn tables_fill_up() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    for mac in 1..=8 {
        assert_eq!(one.insert(table(l2(mac, 1))).await, Ok(()));
    }
    assert_eq!(one.insert(table(l2(9, 1))).await, FULL);
    assert_eq!(one.delete(table(l2(1, 1))).await, Ok(()));
    assert_eq!(one.insert(table(l2(9, 1))).await, Ok(()));
}

#[tokio::test]
async fn default_entries() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let default = |alias: &str| v1::TableEntry {
        table_id: id(alias),
        is_default_action: true,
        ..Default::default()
    };
    let with = |alias, a| v1::TableEntry {
        action: a,
        ..default(alias)
    };
    assert_eq!(
        one.insert(table(with("l2", does("drop", &[])))).await,
        INVALID
    );
    assert_eq!(one.delete(table(default("l2"))).await, INVALID);
    assert_eq!(
        one.modify(table(with("l2", does("send", &[&[3]])))).await,
        Ok(())
    );
    assert_eq!(
        one.tables(default("l2")).await[0].action,
        does("send", &[&[3]])
    );
    assert_eq!(
        one.modify(table(with("l2", does("mirror", &[&[3]])))).await,
        DENIED,
        "@tableonly"
    );
    assert_eq!(
        one.modify(table(default("l2"))).await,
        Ok(()),
        "no action resets"
    );
    assert_eq!(one.tables(default("l2")).await[0].action, does("drop", &[]));
    assert_eq!(
        one.modify(table(with("routes", does("send", &[&[3]]))))
            .await,
        DENIED,
        "const"
    );
    assert!(one.tables(default("routes")).await[0].is_const);
    let groups = one.tables(default("groups")).await.remove(0);
    assert_eq!(
        (groups.action, groups.is_const),
        (does("NoAction", &[]), true)
    );
    assert_eq!(
        one.modify(table(with("groups", does("send", &[&[3]]))))
            .await,
        DENIED
    );
    let with_match = v1::TableEntry {
        r#match: vec![exact(1, &[1])],
        ..with("l2", does("drop", &[]))
    };
    assert_eq!(one.modify(table(with_match)).await, INVALID);
    let with_priority = v1::TableEntry {
        priority: 1,
        ..with("acl", does("drop", &[]))
    };
    assert_eq!(one.modify(table(with_priority)).await, INVALID);
    let with_timeout = v1::TableEntry {
        idle_timeout_ns: 1,
        ..with("l2", does("drop", &[]))
    };
    assert_eq!(one.modify(table(with_timeout)).await, INVALID);
    let keyless = v1::TableEntry {
        table_id: id("keyless"),
        action: does("drop", &[]),
        ..Default::default()
    };
    assert_eq!(one.insert(table(keyless)).await, INVALID);
}

#[tokio::test]
async fn const_tables_cannot_change() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = |priority| v1::TableEntry {
        table_id: id("fixed_types"),
        r#match: vec![ternary(1, &[0x88, 0xcc], &[0xff, 0xff])],
        priority,
        action: does("NoAction", &[]),
        ..Default::default()
    };
    let entries = one
        .tables(v1::TableEntry {
            table_id: id("fixed_types"),
            ..Default::default()
        })
        .await;
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|e| e.is_const));
    let lldp = entries
        .iter()
        .find(|e| e.r#match == entry(1).r#match)
        .unwrap();
    assert_eq!(lldp.action, does("to_cpu", &[&[3]]));
    assert_eq!(lldp.priority, 2, "of two entries the first has priority 2");
    assert_eq!(one.insert(table(entry(7))).await, DENIED);
    assert_eq!(one.modify(table(entry(2))).await, DENIED);
    assert_eq!(one.delete(table(entry(2))).await, DENIED);
    let default = v1::TableEntry {
        table_id: id("fixed_types"),
        is_default_action: true,
        action: does("to_cpu", &[&[1]]),
        ..Default::default()
    };
    assert_eq!(
        one.modify(table(default)).await,
        Ok(()),
        "its default action is not const"
    );
}

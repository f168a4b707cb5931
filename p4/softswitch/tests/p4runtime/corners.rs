//! Rules at the edges: ids out of range, deprecated forms, everything that a reconcile keeps.

use p4runtime::config::v1::action_ref::Scope;
use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, packet_replication_engine_entry::Type as Replication,
    set_forwarding_pipeline_config_request::Action as PipelineAction, table_action::Type as Does,
};

use super::common::{
    Bench, DENIED, INVALID, MISSING, OUT_OF_RANGE, acl, action, claim, does, exact, id, l2,
    pipeline, route, table,
};
use super::profiles::{group, member};

fn replication(entry: Option<Replication>) -> Entity {
    Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: entry })
}

fn multicast(id: u32, replicas: Vec<v1::Replica>) -> Entity {
    replication(Some(Replication::MulticastGroupEntry(
        v1::MulticastGroupEntry {
            multicast_group_id: id,
            replicas,
            metadata: Vec::new(),
        },
    )))
}

fn session(id: u32, replicas: Vec<v1::Replica>) -> Entity {
    replication(Some(Replication::CloneSessionEntry(
        v1::CloneSessionEntry {
            session_id: id,
            replicas,
            ..Default::default()
        },
    )))
}

#[tokio::test]
async fn replication_ids_and_deprecated_ports() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    assert_eq!(one.insert(multicast(0x1_0000, vec![])).await, OUT_OF_RANGE);
    assert_eq!(one.insert(multicast(0xffff, vec![])).await, Ok(()));
    assert_eq!(one.insert(session(0x8000, vec![])).await, OUT_OF_RANGE);
    assert_eq!(one.insert(session(0x7fff, vec![])).await, Ok(()));
    assert_eq!(one.insert(replication(None)).await, INVALID);
    #[allow(deprecated)]
    let old = |port| v1::Replica {
        port_kind: Some(v1::replica::PortKind::EgressPort(port)),
        ..Default::default()
    };
    assert_eq!(one.insert(multicast(1, vec![old(7)])).await, Ok(()));
    assert_eq!(
        one.read(multicast(1, vec![])).await,
        [multicast(1, vec![old(7)])],
        "as it was given"
    );
    assert_eq!(one.modify(multicast(1, vec![old(512)])).await, INVALID);
    assert_eq!(one.insert(session(3, vec![old(0xffff_fffd)])).await, Ok(()));
    // The two ways to name a port name the same port.
    let mut mixed = old(1);
    mixed.backup_replicas.push(v1::BackupReplica {
        port: vec![1],
        instance: 1,
    });
    assert_eq!(one.insert(multicast(4, vec![mixed.clone()])).await, INVALID);
    assert_eq!(one.insert(session(4, vec![mixed.clone()])).await, INVALID);
    mixed.backup_replicas[0].port = vec![0, 2];
    assert_eq!(one.insert(multicast(4, vec![mixed.clone()])).await, Ok(()));
    mixed.backup_replicas[0].port = vec![2];
    assert_eq!(
        one.read(multicast(4, vec![])).await,
        [multicast(4, vec![mixed])]
    );
    assert_eq!(one.delete(multicast(0x2_0000, vec![])).await, MISSING);
}

#[tokio::test]
async fn entities_that_are_not_there() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let extern_ = |extern_type_id| {
        Entity::ExternEntry(v1::ExternEntry {
            extern_type_id,
            ..Default::default()
        })
    };
    assert_eq!(one.insert(extern_(0x81)).await, Err(Code::Unimplemented));
    assert_eq!(one.read_error(extern_(0x81)).await, Code::Unimplemented);
    assert!(one.read(extern_(0)).await.is_empty());
    let (found, messages, error) = one.read_all("", Vec::new()).await;
    assert!(found.is_empty() && messages == 0 && error.is_none());
    assert_eq!(
        one.read_error(replication(None)).await,
        Code::InvalidArgument
    );
    let other = v1::FieldMatch {
        field_id: 1,
        field_match_type: Some(v1::field_match::FieldMatchType::Other(
            prost_types::Any::default(),
        )),
    };
    let entry = v1::TableEntry {
        r#match: vec![other],
        ..l2(1, 1)
    };
    assert_eq!(one.insert(table(entry)).await, INVALID);
    let all = v1::TableEntry::default();
    assert!(one.tables(all).await.iter().any(|e| e.is_const));
}

#[tokio::test]
async fn choices_of_an_action_set() {
    use v1::action_profile_action::WatchKind;
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = |action, watch_kind| {
        let set = v1::ActionProfileActionSet {
            action_profile_actions: vec![v1::ActionProfileAction {
                action,
                weight: 1,
                watch_kind,
            }],
            ..Default::default()
        };
        table(v1::TableEntry {
            table_id: id("groups"),
            r#match: vec![exact(1, &[1])],
            action: Some(v1::TableAction {
                r#type: Some(Does::ActionProfileActionSet(set)),
            }),
            ..Default::default()
        })
    };
    let send = || Some(action("send", &[&[1]]));
    assert_eq!(one.insert(entry(None, None)).await, INVALID);
    let port = |bytes: &[u8]| Some(WatchKind::WatchPort(bytes.to_vec()));
    assert_eq!(one.insert(entry(send(), port(&[2, 0]))).await, INVALID);
    #[allow(deprecated)]
    let old = entry(send(), Some(WatchKind::Watch(5)));
    for good in [entry(send(), port(&[5])), entry(send(), port(&[])), old] {
        assert_eq!(one.insert(good.clone()).await, Ok(()));
        let all = Entity::TableEntry(v1::TableEntry {
            table_id: id("groups"),
            ..Default::default()
        });
        assert_eq!(one.read(all).await, std::slice::from_ref(&good));
        assert_eq!(one.delete(good).await, Ok(()));
    }
}

#[tokio::test]
async fn actions_for_groups_only() {
    let bench = Bench::new();
    let mut config = pipeline(1);
    for table in &mut config.p4info.as_mut().unwrap().tables {
        if table.preamble.as_ref().unwrap().alias == "l2" {
            table.action_refs[0].scope = Scope::GroupAction as i32;
        }
    }
    let mut one = bench.primary(1).await;
    one.push(PipelineAction::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    assert_eq!(one.insert(table(l2(1, 1))).await, DENIED);
}

#[tokio::test]
async fn wildcards_of_direct_resources() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    for n in 1..=3 {
        assert_eq!(one.insert(table(acl(n, &[10], &[255]))).await, Ok(()));
    }
    for table_id in [0, id("acl")] {
        let table_entry = Some(v1::TableEntry {
            table_id,
            ..Default::default()
        });
        let counters = Entity::DirectCounterEntry(v1::DirectCounterEntry {
            table_entry: table_entry.clone(),
            data: None,
        });
        assert_eq!(one.read(counters).await.len(), 3);
        let meters = Entity::DirectMeterEntry(v1::DirectMeterEntry {
            table_entry,
            ..Default::default()
        });
        assert_eq!(one.read(meters).await.len(), 3);
    }
}

#[tokio::test]
async fn a_commit_forgets_what_was_saved() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.push(PipelineAction::VerifyAndSave, Some(pipeline(2)))
        .await
        .unwrap();
    one.push(PipelineAction::VerifyAndCommit, Some(pipeline(3)))
        .await
        .unwrap();
    let error = one.push(PipelineAction::Commit, None).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn a_reconcile_keeps_every_kind() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut qos = bench.connect().await;
    qos.claim(claim("qos", Some(5))).await;
    qos.arbitration().await;
    qos.election_id = Some(5);
    let cell = |index| Some(v1::Index { index });
    let counted = Some(v1::CounterData {
        packet_count: 3,
        byte_count: 4,
    });
    let config = Some(v1::MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
        eburst: 0,
    });
    let members = [exact(1, &[0x86, 0xdd])];
    let written = [
        table(route([10, 0, 0, 0], 8, 1)),
        table(v1::TableEntry {
            counter_data: counted,
            meter_config: config,
            ..acl(3, &[10], &[255])
        }),
        member(1, 1),
        group(1, &[(1, 2)], 4),
        multicast(9, Vec::new()),
        session(9, Vec::new()),
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: id("port_count"),
            index: cell(2),
            data: counted,
        }),
        Entity::MeterEntry(v1::MeterEntry {
            meter_id: id("port_meter"),
            index: cell(2),
            config,
            counter_data: None,
        }),
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: id("last_src"),
            index: cell(2),
            data: Some(v1::P4Data {
                data: Some(v1::p4_data::Data::Bitstring(vec![7])),
            }),
        }),
        Entity::ValueSetEntry(v1::ValueSetEntry {
            value_set_id: id("as_ipv4"),
            members: vec![v1::ValueSetMember {
                r#match: members.to_vec(),
            }],
        }),
        Entity::DigestEntry(v1::DigestEntry {
            digest_id: id("learn_t"),
            config: Some(v1::digest_entry::Config {
                max_timeout_ns: 1,
                max_list_size: 2,
                ack_timeout_ns: 3,
            }),
        }),
    ];
    for entity in &written {
        let modify = matches!(
            entity,
            Entity::CounterEntry(_)
                | Entity::MeterEntry(_)
                | Entity::RegisterEntry(_)
                | Entity::ValueSetEntry(_)
        );
        let result = match modify {
            true => one.modify(entity.clone()).await,
            false => one.insert(entity.clone()).await,
        };
        assert_eq!(result, Ok(()), "{entity:?}");
    }
    qos.insert(table(l2(2, 2))).await.unwrap();
    qos.insert(multicast(10, Vec::new())).await.unwrap();
    // Another program: the same with a table that has more room.
    let mut config = pipeline(2);
    let json = String::from_utf8(config.p4_device_config).unwrap();
    config.p4_device_config = json
        .replace("\"max_size\" : 8,", "\"max_size\" : 9,")
        .into_bytes();
    for config in [config, pipeline(3)] {
        one.push(PipelineAction::ReconcileAndCommit, Some(config))
            .await
            .unwrap();
        for entity in &written {
            let request = match entity {
                Entity::ValueSetEntry(set) => Entity::ValueSetEntry(v1::ValueSetEntry {
                    members: Vec::new(),
                    ..set.clone()
                }),
                other => other.clone(),
            };
            let found = one.read(request).await;
            assert!(found.contains(entity), "{entity:?} {found:?}");
        }
        let mine = one.read_all("qos", vec![multicast(0, Vec::new())]).await.0;
        assert_eq!(mine, [multicast(10, Vec::new())]);
        let mine = one.read_all("qos", vec![table(v1::TableEntry::default())]);
        assert_eq!(mine.await.0, [table(l2(2, 2))]);
    }
    // The program's own default action is the new program's.
    let default = v1::TableEntry {
        table_id: id("l2"),
        is_default_action: true,
        ..Default::default()
    };
    assert_eq!(one.tables(default).await[0].action, does("drop", &[]));
}

#[tokio::test]
async fn a_modify_of_nothing_changes_nothing() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = v1::TableEntry {
        metadata: b"mine".to_vec(),
        idle_timeout_ns: 1_000_000,
        ..l2(1, 1)
    };
    assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
    let key = v1::TableEntry {
        action: None,
        ..l2(1, 0)
    };
    assert_eq!(one.modify(table(key.clone())).await, Ok(()));
    assert_eq!(one.tables(key.clone()).await, std::slice::from_ref(&entry));
    let other = v1::TableEntry {
        metadata: b"other".to_vec(),
        ..key.clone()
    };
    assert_eq!(one.modify(table(other)).await, Ok(()));
    assert_eq!(one.tables(key.clone()).await[0].metadata, b"other");
    assert_eq!(one.modify(table(l2(1, 1))).await, Ok(()));
    assert_eq!(
        one.tables(key).await,
        [l2(1, 1)],
        "an action is the whole state"
    );
}

#[tokio::test]
async fn programs_beyond_the_switchs_memory_are_refused() {
    let bench = Bench::with(|config| config.max_cells = 16 * 3);
    let mut one = bench.ready().await;
    let mut config = pipeline(1);
    let json = String::from_utf8(config.p4_device_config).unwrap();
    let large = json.replace("\"size\" : 16,", "\"size\" : 16000000000,");
    assert_ne!(large, json);
    config.p4_device_config = large.into_bytes();
    let info = config.p4info.as_mut().unwrap();
    info.counters[0].size = 16_000_000_000;
    info.meters[0].size = 16_000_000_000;
    let error = one
        .push(PipelineAction::VerifyAndCommit, Some(config))
        .await
        .unwrap_err();
    assert_eq!(error.code(), tonic::Code::InvalidArgument, "{error:?}");
    let mut config = pipeline(1);
    let info = config.p4info.as_mut().unwrap();
    info.controller_packet_metadata[0].metadata[0].bitwidth = i32::MAX;
    let error = one.push(PipelineAction::Verify, Some(config)).await;
    assert_eq!(error.unwrap_err().code(), tonic::Code::InvalidArgument);
}

/// The matrix names tests that there are.
#[test]
fn the_matrix_names_tests_that_there_are() {
    let matrix = include_str!("../../../../docs/reference-p4runtime.md");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4runtime");
    let mut named = 0;
    let rows = matrix.lines().filter(|line| line.starts_with("| "));
    let parts = rows.flat_map(|row| row.split('`'));
    for name in parts.filter(|part| part.contains("::") && !part.contains(' ')) {
        let (file, test) = name.split_once("::").unwrap();
        let source = std::fs::read_to_string(folder.join(format!("{file}.rs")));
        let source = source.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(source.contains(&format!("fn {test}()")), "{name}");
        named += 1;
    }
    assert!(named > 400, "{named}");
}

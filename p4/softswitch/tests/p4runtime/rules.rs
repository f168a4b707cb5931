//! Single rules: default entries' resources, meters' counts, idle timers, roles on reads, the
//! order of checks.

use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, set_forwarding_pipeline_config_request::Action as PipelineAction,
    stream_message_response::Update, update::Type as Kind, write_request::Atomicity,
};

use prost::Message as _;
use softswitch::server::roles::{ROLE_CONFIG_TYPE_URL, RoleConfig};

use super::common::{
    Bench, DENIED, DEVICE, EXISTS, INVALID, MISSING, acl, claim, does, exact, id, l2, pipeline,
    table, ternary, update,
};
use super::profiles::{group, member};

#[tokio::test]
async fn default_entries_count_misses() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let default = |counter: Option<(i64, i64)>, meter| v1::TableEntry {
        table_id: id("acl"),
        is_default_action: true,
        counter_data: counter.map(|(packet_count, byte_count)| v1::CounterData {
            packet_count,
            byte_count,
        }),
        meter_config: meter,
        ..Default::default()
    };
    let meter = Some(v1::MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 1,
        pburst: 1,
        eburst: 0,
    });
    let with = |entry: v1::TableEntry| v1::TableEntry {
        action: does("NoAction", &[]),
        ..entry
    };
    assert_eq!(
        one.modify(table(with(default(Some((7, 70)), meter)))).await,
        Ok(())
    );
    let mut ip = vec![0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 2, 8, 0, 0x45];
    ip.resize(60, 0);
    for _ in 0..3 {
        bench.switch.lock().ingress(3, &ip, 0);
    }
    let asked = v1::TableEntry {
        meter_counter_data: Some(Default::default()),
        ..default(Some((0, 0)), meter)
    };
    let read = one.tables(asked.clone()).await.remove(0);
    assert_eq!(read.counter_data.unwrap().packet_count, 10);
    assert_eq!(read.counter_data.unwrap().byte_count, 70 + 180);
    assert_eq!(read.meter_config, meter);
    let counts = read.meter_counter_data.unwrap();
    assert_eq!(counts.green.unwrap().packet_count, 1);
    assert_eq!(counts.red.unwrap().packet_count, 2);
    let plain = one.tables(default(None, None)).await.remove(0);
    assert_eq!((plain.counter_data, plain.meter_config), (None, None));
    // The entities of their own.
    let direct = |data| {
        Entity::DirectCounterEntry(v1::DirectCounterEntry {
            table_entry: Some(default(None, None)),
            data,
        })
    };
    let five = Some(v1::CounterData {
        packet_count: 5,
        byte_count: 50,
    });
    assert_eq!(one.modify(direct(five)).await, Ok(()));
    assert_eq!(one.read(direct(None)).await, [direct(five)]);
    let direct = |config, counter_data| {
        Entity::DirectMeterEntry(v1::DirectMeterEntry {
            table_entry: Some(default(None, None)),
            config,
            counter_data,
        })
    };
    assert_eq!(one.read(direct(None, None)).await, [direct(meter, None)]);
    let zeros = Some(v1::MeterCounterData::default());
    assert_eq!(one.modify(direct(meter, zeros)).await, Ok(()));
    let zero = Some(v1::CounterData::default());
    let counts = Some(v1::MeterCounterData {
        green: zero,
        yellow: zero,
        red: zero,
    });
    assert_eq!(one.read(direct(None, zeros)).await, [direct(meter, counts)]);
    // Resetting the entry resets its resources.
    assert_eq!(one.modify(table(default(None, None))).await, Ok(()));
    let read = one.tables(asked).await.remove(0);
    assert_eq!(read.counter_data, zero);
    assert_eq!(read.meter_config, None);
    // A table without direct counter.
    let none = Entity::DirectCounterEntry(v1::DirectCounterEntry {
        table_entry: Some(v1::TableEntry {
            table_id: id("l2"),
            is_default_action: true,
            ..Default::default()
        }),
        data: five,
    });
    assert_eq!(one.modify(none).await, INVALID);
}

#[tokio::test]
async fn meters_count_by_colour() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let meter = |config, counter_data| {
        Entity::MeterEntry(v1::MeterEntry {
            meter_id: id("port_meter"),
            index: Some(v1::Index { index: 3 }),
            config,
            counter_data,
        })
    };
    let zeros = Some(v1::MeterCounterData::default());
    let frame = [0; 64];
    bench.switch.lock().ingress(3, &frame, 0);
    let count = |packet_count, byte_count| {
        Some(v1::CounterData {
            packet_count,
            byte_count,
        })
    };
    let counts = |green, yellow, red| Some(v1::MeterCounterData { green, yellow, red });
    let none = count(0, 0);
    assert_eq!(
        one.read(meter(None, zeros)).await,
        [meter(None, counts(count(1, 64), none, none))],
        "without a configuration everything is green"
    );
    let config = Some(v1::MeterConfig {
        cir: 1,
        cburst: 64,
        pir: 1,
        pburst: 128,
        eburst: 0,
    });
    assert_eq!(
        one.modify(meter(config, zeros)).await,
        Ok(()),
        "resets the counts"
    );
    for _ in 0..3 {
        bench.switch.lock().ingress(3, &frame, 0);
    }
    let after = counts(count(1, 64), count(1, 64), count(1, 64));
    assert_eq!(one.read(meter(None, zeros)).await, [meter(config, after)]);
    assert_eq!(
        one.read(meter(None, None)).await,
        [meter(config, None)],
        "not asked for"
    );
    let set = counts(count(1, 0), None, None);
    assert_eq!(one.modify(meter(config, set)).await, INVALID, "only zeros");
    assert_eq!(one.modify(meter(config, None)).await, Ok(()));
    assert_eq!(
        one.read(meter(None, zeros)).await,
        [meter(config, after)],
        "unset leaves the counts"
    );
    // With entries.
    let entry = v1::TableEntry {
        meter_counter_data: counts(count(0, 1), None, None),
        ..acl(10, &[10, 0, 0, 0], &[255, 0, 0, 0])
    };
    assert_eq!(one.insert(table(entry.clone())).await, INVALID);
    let entry = v1::TableEntry {
        meter_counter_data: zeros,
        ..entry
    };
    assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
    let read = one.tables(entry.clone()).await.remove(0);
    assert_eq!(read.meter_counter_data, counts(none, none, none));
    let elsewhere = v1::TableEntry {
        meter_counter_data: zeros,
        ..l2(1, 1)
    };
    assert_eq!(one.insert(table(elsewhere)).await, INVALID);
}

#[tokio::test]
async fn idle_entries_are_reported_again() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    const MS: u64 = 1_000_000;
    let entry = |mac, timeout: u64| v1::TableEntry {
        idle_timeout_ns: (timeout * MS) as i64,
        ..l2(mac, 1)
    };
    one.insert(table(entry(1, 50))).await.unwrap();
    one.insert(table(entry(2, 200))).await.unwrap();
    let at = async |ms: u64| {
        bench.clock.set(ms * MS);
        bench.server.tick()
    };
    assert_eq!(at(0).await, Some(50 * MS));
    assert_eq!(at(50).await, Some(100 * MS));
    at(99).await;
    at(100).await;
    let mut idle = async || match one.next().await.unwrap() {
        Update::IdleTimeoutNotification(notification) => notification,
        other => panic!("{other:?}"),
    };
    for time in [50, 100] {
        let notification = idle().await;
        assert_eq!(notification.table_entry.len(), 1);
        assert_eq!(notification.table_entry[0].r#match, [exact(1, &[1])]);
        assert_eq!(notification.timestamp, 1_000_000_000_000 + time * MS as i64);
    }
    // Being hit is what stops it; being reported is no hit.
    let hit = Some(v1::table_entry::IdleTimeout::default());
    let asked = v1::TableEntry {
        time_since_last_hit: hit,
        ..entry(1, 50)
    };
    let since = one.tables(asked.clone()).await[0].time_since_last_hit;
    assert_eq!(since.unwrap().elapsed_ns, 100 * MS as i64);
    let mut frame = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0x12, 0x34];
    frame.push(0);
    bench.switch.lock().ingress(3, &frame, 140 * MS);
    bench.clock.set(150 * MS);
    assert_eq!(bench.server.tick(), Some(190 * MS));
    one.quiet().await;
    // A modified timeout counts from then; a deleted entry is silent.
    one.modify(table(entry(1, 20))).await.unwrap();
    one.delete(table(entry(2, 0))).await.unwrap();
    bench.clock.set(169 * MS);
    bench.server.tick();
    one.quiet().await;
    bench.clock.set(170 * MS);
    bench.server.tick();
    assert!(matches!(
        one.next().await.unwrap(),
        Update::IdleTimeoutNotification(n) if n.table_entry.len() == 1
    ));
    one.modify(table(l2(1, 1))).await.unwrap();
    bench.clock.set(1000 * MS);
    assert_eq!(bench.server.tick(), None, "no timeouts are left");
    one.quiet().await;
}

#[tokio::test]
async fn tiny_timeouts_are_rounded_up() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = v1::TableEntry {
        idle_timeout_ns: 1,
        ..l2(1, 1)
    };
    assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
    assert_eq!(one.tables(l2(1, 1)).await, [entry], "read back exactly");
    const MS: u64 = 1_000_000;
    let mut reported = 0;
    for ms in 1..=50 {
        bench.clock.set(ms * MS);
        bench.server.tick();
    }
    while let Ok(Ok(Some(_))) = tokio::time::timeout(
        std::time::Duration::from_millis(50),
        one.responses.message(),
    )
    .await
    {
        reported += 1;
    }
    assert!((4..=6).contains(&reported), "once in 10 ms, not {reported}");
}

#[tokio::test]
async fn reads_by_match_without_a_priority() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let (low, high) = (acl(3, &[10], &[255]), acl(9, &[10], &[255]));
    for entry in [&low, &high, &acl(3, &[11], &[255])] {
        assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
    }
    let key = v1::TableEntry {
        table_id: id("acl"),
        r#match: low.r#match.clone(),
        ..Default::default()
    };
    assert_eq!(one.tables(key.clone()).await, [low.clone(), high.clone()]);
    let nine = v1::TableEntry {
        priority: 9,
        ..key.clone()
    };
    assert_eq!(one.tables(nine).await, [high]);
    let missing = v1::TableEntry {
        r#match: vec![ternary(1, &[12], &[255]), exact(4, &[1])],
        ..key
    };
    assert!(one.tables(missing.clone()).await.is_empty());
    let counter = Entity::DirectCounterEntry(v1::DirectCounterEntry {
        table_entry: Some(missing),
        data: None,
    });
    assert_eq!(one.read_error(counter).await, Code::NotFound);
    // A resource that the table lacks is left out, not refused.
    assert_eq!(one.insert(table(l2(1, 1))).await, Ok(()));
    let asked = v1::TableEntry {
        counter_data: Some(Default::default()),
        meter_config: Some(Default::default()),
        ..l2(1, 1)
    };
    assert_eq!(one.tables(asked).await, [l2(1, 1)]);
}

#[tokio::test]
async fn const_entries_take_direct_resources_only() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let all = v1::TableEntry {
        table_id: id("fixed_types"),
        ..Default::default()
    };
    let read = one.tables(all).await;
    assert_eq!(read.len(), 2);
    let key = v1::TableEntry {
        is_const: false,
        action: None,
        ..read[0].clone()
    };
    assert_eq!(
        one.modify(table(key.clone())).await,
        Ok(()),
        "nothing to do"
    );
    let with = v1::TableEntry {
        metadata: vec![1],
        ..key.clone()
    };
    assert_eq!(one.modify(table(with)).await, DENIED);
    assert_eq!(one.delete(table(key.clone())).await, DENIED);
    let other = v1::TableEntry {
        priority: key.priority + 50,
        ..key.clone()
    };
    assert_eq!(one.modify(table(other)).await, MISSING);
    assert_eq!(
        one.modify(table(read[0].clone())).await,
        INVALID,
        "is_const is set"
    );
}

#[tokio::test]
async fn reads_by_role_cover_every_entity() {
    use v1::packet_replication_engine_entry::Type::MulticastGroupEntry as T;
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut qos = bench.connect().await;
    qos.claim(claim("qos", Some(5))).await;
    qos.arbitration().await;
    qos.election_id = Some(5);
    let multicast = |id| {
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
            r#type: Some(T(v1::MulticastGroupEntry {
                multicast_group_id: id,
                ..Default::default()
            })),
        })
    };
    for n in 1..=2 {
        let writer = if n == 1 { &mut one } else { &mut qos };
        assert_eq!(writer.insert(member(n, 1)).await, Ok(()));
        assert_eq!(writer.insert(group(n, &[(n, 1)], 0)).await, Ok(()));
        assert_eq!(writer.insert(multicast(n)).await, Ok(()));
    }
    for request in [member(0, 0), group(0, &[], 0), multicast(0)] {
        assert_eq!(one.read_all("", vec![request.clone()]).await.0.len(), 2);
        assert_eq!(one.read_all("qos", vec![request.clone()]).await.0.len(), 1);
        assert!(one.read_all("other", vec![request]).await.0.is_empty());
    }
    // What is rolled back is not the role's.
    let updates = vec![
        update(Kind::Modify, multicast(1)),
        update(Kind::Insert, multicast(1)),
    ];
    qos.write_as(Atomicity::RollbackOnError, updates)
        .await
        .unwrap_err();
    assert_eq!(
        one.read_all("qos", vec![multicast(0)]).await.0,
        [multicast(2)]
    );
    // Cells are everybody's whose config does not say otherwise.
    let cells = Entity::CounterEntry(v1::CounterEntry::default());
    let found = one.read_all("qos", vec![cells.clone()]).await.0;
    assert_eq!(found.len(), 16);
    // And a config that names other things does.
    let mut only_meters = claim("qos", Some(5));
    only_meters.role.as_mut().unwrap().config = Some(prost_types::Any {
        type_url: ROLE_CONFIG_TYPE_URL.into(),
        value: RoleConfig {
            p4_ids: vec![id("port_meter")],
            ..Default::default()
        }
        .encode_to_vec(),
    });
    qos.claim(only_meters).await;
    qos.arbitration().await;
    let meters = Entity::MeterEntry(v1::MeterEntry::default());
    let registers = Entity::RegisterEntry(v1::RegisterEntry::default());
    for (request, count) in [(cells, 0), (meters, 16), (registers, 0)] {
        assert_eq!(one.read_all("qos", vec![request]).await.0.len(), count);
    }
}

#[tokio::test]
async fn checks_come_in_their_order() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut request = v1::WriteRequest {
        device_id: DEVICE + 1,
        role: "nobody".into(),
        atomicity: 77,
        ..Default::default()
    };
    let mut code = async |request: &v1::WriteRequest| {
        one.client.write(request.clone()).await.unwrap_err().code()
    };
    assert_eq!(code(&request).await, tonic::Code::NotFound, "device");
    request.device_id = DEVICE;
    assert_eq!(code(&request).await, tonic::Code::NotFound, "role");
    request.role.clear();
    assert_eq!(code(&request).await, tonic::Code::PermissionDenied);
    request.election_id = Some(v1::Uint128 { high: 0, low: 1 });
    assert_eq!(code(&request).await, tonic::Code::FailedPrecondition);
    one.push(PipelineAction::VerifyAndCommit, Some(pipeline(1)))
        .await
        .unwrap();
    let error = one.client.write(request.clone()).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::InvalidArgument);
    assert!(error.details().is_empty(), "no details for the whole RPC");
    request.atomicity = 0;
    one.client.write(request).await.expect("an empty batch");
    let asked = v1::GetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        response_type: 9,
    };
    let error = one.client.get_forwarding_pipeline_config(asked).await;
    assert_eq!(error.unwrap_err().code(), tonic::Code::InvalidArgument);
}

#[tokio::test]
async fn rollback_undoes_entries_that_moved() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let counted = |packets| v1::TableEntry {
        counter_data: Some(v1::CounterData {
            packet_count: packets,
            byte_count: 0,
        }),
        ..acl(3, &[10], &[255])
    };
    assert_eq!(one.insert(table(counted(5))).await, Ok(()));
    assert_eq!(one.insert(table(acl(3, &[11], &[255]))).await, Ok(()));
    let updates = vec![
        update(Kind::Modify, table(counted(6))),
        update(Kind::Delete, table(counted(0))),
        update(Kind::Delete, table(acl(3, &[11], &[255]))),
        update(Kind::Insert, table(acl(3, &[12], &[255]))),
        update(Kind::Insert, table(acl(3, &[12], &[255]))),
    ];
    for mode in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        one.write_as(mode, updates.clone()).await.unwrap_err();
        assert_eq!(one.tables(counted(0)).await, [counted(5)]);
        let all = v1::TableEntry {
            table_id: id("acl"),
            ..Default::default()
        };
        assert_eq!(one.tables(all).await.len(), 2);
    }
    assert_eq!(one.insert(table(counted(0))).await, EXISTS);
}

#[tokio::test]
async fn saved_state_is_committed_whole() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.insert(table(l2(1, 1))).await.unwrap();
    one.push(PipelineAction::VerifyAndSave, Some(pipeline(2)))
        .await
        .unwrap();
    bench.server.set_port_up(4, false);
    one.insert(table(l2(2, 4))).await.unwrap();
    one.insert(member(1, 1)).await.unwrap();
    assert_eq!(one.tables(l2(1, 1)).await.len(), 0, "the saved one is read");
    let goes_to = |mac| {
        let frame = [0, 0, 0, 0, 0, mac, 0, 0, 0, 0, 0, 9, 0x12, 0x34, 0];
        let mut switch = bench.switch.lock();
        switch.ingress(3, &frame, 0);
        let mut ready = Vec::new();
        switch.take_ready(&mut ready);
        for port in &ready {
            while switch.dequeue(*port, 0).is_some() {}
        }
        ready
    };
    assert_eq!(goes_to(1), [1], "packets go by the committed one");
    assert!(goes_to(2).is_empty());
    one.push(PipelineAction::Commit, None).await.unwrap();
    assert!(goes_to(1).is_empty());
    assert_eq!(goes_to(2), [4]);
    assert_eq!(one.tables(l2(2, 4)).await, [l2(2, 4)]);
    assert_eq!(one.tables(l2(1, 1)).await.len(), 0);
    assert_eq!(one.read(member(0, 0)).await, [member(1, 1)]);
    let error = one.push(PipelineAction::Commit, None).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::NotFound, "committed already");
}

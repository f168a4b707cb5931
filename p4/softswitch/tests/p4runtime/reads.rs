//! Reading: wildcards, filters, several messages, errors of single requests.
use super::common::{Bench, acl, claim, details, does, id, l2, lpm, route, update};
use p4runtime::rpc::Code;
use p4runtime::v1::{self, entity::Entity, update::Type, write_request::Atomicity};

#[tokio::test]
async fn filters() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let tagged = v1::TableEntry {
        metadata: b"tag".to_vec(),
        ..l2(1, 1)
    };
    #[allow(deprecated)]
    let cookied = v1::TableEntry {
        controller_metadata: 77,
        ..l2(2, 2)
    };
    let flood = v1::TableEntry {
        action: does("flood", &[&[3]]),
        ..l2(3, 0)
    };
    for entry in [tagged.clone(), cookied.clone(), flood.clone()] {
        one.insert(Entity::TableEntry(entry)).await.unwrap();
    }
    for priority in [5, 6] {
        let entry = acl(priority, &[10, 0, 0, 0], &[255, 0, 0, 0]);
        one.insert(Entity::TableEntry(entry)).await.unwrap();
    }
    let all = v1::TableEntry {
        table_id: id("l2"),
        ..Default::default()
    };
    assert_eq!(one.tables(all.clone()).await.len(), 3);
    // Two const entries are there from the start.
    assert_eq!(one.tables(v1::TableEntry::default()).await.len(), 3 + 2 + 2);
    let by = v1::TableEntry {
        metadata: b"tag".to_vec(),
        ..all.clone()
    };
    assert_eq!(one.tables(by).await, [tagged.clone()]);
    #[allow(deprecated)]
    let by = v1::TableEntry {
        controller_metadata: 77,
        ..all.clone()
    };
    assert_eq!(one.tables(by).await, [cookied]);
    let by = v1::TableEntry {
        action: does("flood", &[]),
        ..all.clone()
    };
    assert_eq!(one.tables(by).await, [flood]);
    let by = v1::TableEntry {
        r#match: tagged.r#match.clone(),
        ..all.clone()
    };
    assert_eq!(one.tables(by).await, [tagged.clone()]);
    let by = v1::TableEntry {
        r#match: l2(9, 0).r#match,
        ..all.clone()
    };
    assert!(one.tables(by).await.is_empty());
    let by = v1::TableEntry {
        table_id: id("acl"),
        priority: 6,
        ..Default::default()
    };
    assert_eq!(one.tables(by).await.len(), 1);
    assert_eq!(
        one.tables(v1::TableEntry {
            table_id: id("acl"),
            ..Default::default()
        })
        .await
        .len(),
        2
    );

    let mut refused = async |entry, code| {
        assert_eq!(one.read_error(Entity::TableEntry(entry)).await, code);
    };
    refused(
        v1::TableEntry {
            table_id: 0x0200_0001,
            ..Default::default()
        },
        Code::NotFound,
    )
    .await;
    refused(
        v1::TableEntry {
            priority: 3,
            ..Default::default()
        },
        Code::InvalidArgument,
    )
    .await;
    refused(
        v1::TableEntry {
            action: does("learn", &[]),
            ..all.clone()
        },
        Code::InvalidArgument,
    )
    .await;
    refused(
        v1::TableEntry {
            r#match: vec![lpm(1, &[1], 3)],
            ..all.clone()
        },
        Code::InvalidArgument,
    )
    .await;
    let hit = Some(v1::table_entry::IdleTimeout::default());
    let routes = v1::TableEntry {
        table_id: id("routes"),
        ..Default::default()
    };
    // Tables without idle timeouts, and default entries, have neither of the two fields.
    let l2_default = v1::TableEntry {
        table_id: id("l2"),
        is_default_action: true,
        ..Default::default()
    };
    for entry in [routes, l2_default] {
        refused(
            v1::TableEntry {
                time_since_last_hit: hit,
                ..entry.clone()
            },
            Code::InvalidArgument,
        )
        .await;
        refused(
            v1::TableEntry {
                idle_timeout_ns: 5,
                ..entry
            },
            Code::InvalidArgument,
        )
        .await;
    }
}

#[tokio::test]
async fn times_since_the_last_hit() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    bench.clock.set(1000);
    let entry = v1::TableEntry {
        idle_timeout_ns: 9_000,
        ..l2(1, 1)
    };
    one.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    bench.clock.set(4000);
    assert_eq!(one.tables(l2(1, 0)).await, [entry.clone()]);
    let asked = v1::TableEntry {
        time_since_last_hit: Some(Default::default()),
        ..l2(1, 0)
    };
    let read = one
        .tables(v1::TableEntry {
            action: None,
            ..asked
        })
        .await
        .remove(0);
    assert_eq!(read.time_since_last_hit.unwrap().elapsed_ns, 3000);
    assert_eq!(read.idle_timeout_ns, 9000);
    // Also of entries that never expire.
    one.insert(Entity::TableEntry(l2(2, 1))).await.unwrap();
    bench.clock.set(4500);
    let asked = v1::TableEntry {
        time_since_last_hit: Some(Default::default()),
        action: None,
        ..l2(2, 0)
    };
    let read = one.tables(asked).await.remove(0);
    assert_eq!(read.time_since_last_hit.unwrap().elapsed_ns, 500);
}

#[tokio::test]
async fn entries_that_have_no_match() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let defaults = v1::TableEntry {
        is_default_action: true,
        ..Default::default()
    };
    let found = one.tables(defaults).await;
    assert!(
        found
            .iter()
            .all(|e| e.is_default_action && e.r#match.is_empty())
    );
    for table in super::common::p4info().tables {
        let table = table.preamble.unwrap();
        let has = |e: &v1::TableEntry| e.table_id == table.id;
        assert_eq!(found.iter().filter(|e| has(e)).count(), 1, "{}", table.name);
    }
    // An LPM entry that matches everything cannot be asked for alone.
    let any = v1::TableEntry {
        r#match: vec![],
        ..route([0; 4], 8, 1)
    };
    for entry in [any.clone(), route([10, 0, 0, 0], 8, 1)] {
        one.insert(Entity::TableEntry(entry)).await.unwrap();
    }
    let key = v1::TableEntry {
        action: None,
        ..any
    };
    assert_eq!(one.tables(key).await.len(), 2);
}

#[tokio::test]
async fn batches_answer_what_they_can() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.insert(Entity::TableEntry(l2(1, 1))).await.unwrap();
    let good = Entity::TableEntry(v1::TableEntry {
        table_id: id("l2"),
        ..Default::default()
    });
    let bad = Entity::TableEntry(v1::TableEntry {
        table_id: 0x0200_0001,
        ..Default::default()
    });
    let (found, _, error) = one.read_all("", vec![good.clone(), bad, good]).await;
    assert_eq!(found.len(), 2);
    assert_eq!(
        details(&error.unwrap()),
        [Code::Ok, Code::NotFound, Code::Ok]
    );
    let request = v1::ReadRequest {
        device_id: super::common::DEVICE,
        entities: vec![v1::Entity { entity: None }],
        ..Default::default()
    };
    let mut answers = one.client.read(request).await.unwrap().into_inner();
    assert_eq!(
        details(&answers.message().await.unwrap_err()),
        [Code::InvalidArgument]
    );
    let wrong = v1::ReadRequest {
        device_id: 99,
        ..Default::default()
    };
    assert_eq!(
        one.client.read(wrong).await.unwrap_err().code(),
        tonic::Code::NotFound
    );
}

#[tokio::test]
async fn large_reads_come_in_several_messages() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    // 1024 entries with 4 kB of metadata each.
    let routes: Vec<v1::Update> = (0..1024u32)
        .map(|n| {
            let [.., high, low] = n.to_be_bytes();
            let entry = v1::TableEntry {
                metadata: vec![1; 4096],
                ..route([10, 0, high, low], 32, 1)
            };
            update(Type::Insert, Entity::TableEntry(entry))
        })
        .collect();
    for part in routes.chunks(256) {
        one.write_as(Atomicity::ContinueOnError, part.to_vec())
            .await
            .unwrap();
    }
    let all = Entity::TableEntry(v1::TableEntry {
        table_id: id("routes"),
        ..Default::default()
    });
    let (found, messages, error) = one.read_all("", vec![all]).await;
    assert!(error.is_none());
    assert_eq!(found.len(), 1024);
    assert!(messages > 3, "{messages}");
}

#[tokio::test]
async fn a_reader_that_stalls_does_not_hold_up_writers_for_ever() {
    let bench = Bench::with(|config| config.slow_reader = std::time::Duration::from_millis(200));
    let mut one = bench.ready().await;
    let counters = Entity::CounterEntry(v1::CounterEntry::default());
    let many = vec![
        v1::Entity {
            entity: Some(counters)
        };
        100_000
    ];
    let request = v1::ReadRequest {
        device_id: super::common::DEVICE,
        entities: many,
        ..Default::default()
    };
    let mut answers = one.client.read(request).await.unwrap().into_inner();
    one.insert(Entity::TableEntry(l2(1, 1))).await.unwrap();
    let end = loop {
        match answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(status) => break Some(status),
        }
    };
    assert_eq!(end.map(|s| s.code()), Some(tonic::Code::Aborted));
}

#[tokio::test]
async fn reads_by_role() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut qos = bench.connect().await;
    qos.claim(claim("qos", Some(5))).await;
    qos.arbitration().await;
    qos.election_id = Some(5);
    one.insert(Entity::TableEntry(l2(1, 1))).await.unwrap();
    qos.insert(Entity::TableEntry(l2(2, 2))).await.unwrap();
    let all = Entity::TableEntry(v1::TableEntry {
        table_id: id("l2"),
        ..Default::default()
    });
    assert_eq!(one.read_all("", vec![all.clone()]).await.0.len(), 2);
    let found = one.read_all("qos", vec![all.clone()]).await.0;
    assert_eq!(found, [Entity::TableEntry(l2(2, 2))]);
    assert!(one.read_all("other", vec![all]).await.0.is_empty());
}

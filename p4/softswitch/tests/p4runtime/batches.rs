//! Batches and their atomicity.

use p4runtime::rpc::Code;
use p4runtime::v1::{self, entity::Entity, update::Type, write_request::Atomicity};

use super::common::{Bench, Controller, DEVICE, acl, details, does, exact, id, l2, table, update};
use super::profiles::{group, member};

async fn macs(one: &mut Controller) -> usize {
    one.tables(v1::TableEntry {
        table_id: id("l2"),
        ..Default::default()
    })
    .await
    .len()
}

#[tokio::test]
async fn batches_continue_on_error() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let batch = [l2(1, 1), l2(1, 1), l2(2, 1)].map(|e| update(Type::Insert, table(e)));
    let status = one
        .write_as(Atomicity::ContinueOnError, batch.to_vec())
        .await
        .unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unknown);
    assert_eq!(details(&status), [Code::Ok, Code::AlreadyExists, Code::Ok]);
    assert_eq!(macs(&mut one).await, 2);
    let request = v1::WriteRequest {
        atomicity: 7,
        device_id: DEVICE,
        election_id: Some(v1::Uint128 { high: 0, low: 1 }),
        ..Default::default()
    };
    assert_eq!(
        one.client.write(request).await.unwrap_err().code(),
        tonic::Code::InvalidArgument
    );
}

#[tokio::test]
async fn large_batches_have_short_errors() {
    use prost::Message as _;
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let batch = vec![update(Type::Modify, table(l2(1, 1))); 2000];
    let status = one
        .write_as(Atomicity::ContinueOnError, batch)
        .await
        .unwrap_err();
    assert!(status.details().len() < 8192 + 100 * 2000);
    let inner = p4runtime::rpc::Status::decode(status.details()).unwrap();
    assert_eq!(inner.details.len(), 2000);
    let error = |i: usize| v1::Error::decode(&inner.details[i].value[..]).unwrap();
    assert!(!error(0).message.is_empty());
    let bare = v1::Error {
        canonical_code: Code::NotFound as i32,
        ..Default::default()
    };
    assert_eq!(error(1999), bare);
}

#[tokio::test]
async fn failed_batches_roll_back() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = v1::TableEntry {
        counter_data: Some(v1::CounterData {
            packet_count: 4,
            byte_count: 5,
        }),
        meter_config: Some(v1::MeterConfig {
            cir: 1,
            cburst: 1,
            pir: 1,
            pburst: 1,
            eburst: 0,
        }),
        metadata: b"m".to_vec(),
        ..acl(3, &[10, 0, 0, 0], &[255, 0, 0, 0])
    };
    let digest = |n| {
        Entity::DigestEntry(v1::DigestEntry {
            digest_id: id("learn_t"),
            config: Some(v1::digest_entry::Config {
                max_timeout_ns: n,
                ..Default::default()
            }),
        })
    };
    let data = |n| {
        Some(v1::CounterData {
            packet_count: n,
            byte_count: n,
        })
    };
    let counter = |n| {
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: id("port_count"),
            index: None,
            data: data(n),
        })
    };
    for e in [
        table(l2(1, 1)),
        table(entry.clone()),
        member(1, 1),
        group(1, &[(1, 1)], 0),
        digest(1),
    ] {
        assert_eq!(one.insert(e).await, Ok(()));
    }
    let all = vec![
        table(v1::TableEntry {
            table_id: id("l2"),
            ..Default::default()
        }),
        table(v1::TableEntry {
            table_id: id("l2"),
            is_default_action: true,
            ..Default::default()
        }),
        table(v1::TableEntry {
            table_id: id("acl"),
            counter_data: data(0),
            meter_config: Some(Default::default()),
            ..Default::default()
        }),
        Entity::ActionProfileMember(Default::default()),
        group(0, &[], 0),
        Entity::CounterEntry(Default::default()),
        Entity::RegisterEntry(Default::default()),
        Entity::ValueSetEntry(Default::default()),
        Entity::DigestEntry(Default::default()),
    ];
    let before = one.read_all("", all.clone()).await.0;
    let default = v1::TableEntry {
        table_id: id("l2"),
        is_default_action: true,
        action: does("send", &[&[9]]),
        ..Default::default()
    };
    let values = Entity::ValueSetEntry(v1::ValueSetEntry {
        value_set_id: id("as_ipv4"),
        members: vec![v1::ValueSetMember {
            r#match: vec![exact(1, &[1])],
        }],
    });
    let register = Entity::RegisterEntry(v1::RegisterEntry {
        register_id: id("last_src"),
        index: None,
        data: Some(v1::P4Data {
            data: Some(v1::p4_data::Data::Bitstring(vec![7])),
        }),
    });
    let mut batch = vec![
        update(Type::Insert, table(l2(2, 2))),
        update(Type::Modify, table(l2(1, 9))),
        update(Type::Delete, table(entry.clone())),
        update(Type::Modify, table(default)),
        update(Type::Insert, member(2, 2)),
        update(Type::Modify, group(1, &[(2, 5)], 0)),
        update(Type::Modify, member(1, 5)),
        update(Type::Modify, counter(3)),
        update(Type::Modify, register),
        update(Type::Modify, values),
        update(Type::Delete, digest(0)),
        update(Type::Insert, table(l2(1, 1))),
        update(Type::Insert, table(l2(3, 3))),
    ];
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let status = one.write_as(atomicity, batch.clone()).await.unwrap_err();
        let codes = details(&status);
        assert_eq!(codes.len(), batch.len());
        assert!(
            codes.iter().enumerate().all(|(i, c)| *c
                == if i == 11 {
                    Code::AlreadyExists
                } else {
                    Code::Aborted
                }),
            "{codes:?}"
        );
        assert_eq!(one.read_all("", all.clone()).await.0, before);
    }
    batch.remove(11);
    one.write_as(Atomicity::DataplaneAtomic, batch)
        .await
        .unwrap();
    assert_ne!(one.read_all("", all).await.0, before);
}

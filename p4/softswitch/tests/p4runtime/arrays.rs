//! Counters, meters and registers by index; value sets; digest settings.

use p4runtime::config::v1::match_field::{Match, MatchType};
use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, set_forwarding_pipeline_config_request::Action as PipelineAction,
};

use super::common::{
    Bench, EXISTS, FULL, INVALID, MISSING, OUT_OF_RANGE, exact, id, lpm, pipeline, range, ternary,
};

#[tokio::test]
async fn indirect_arrays() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let index = |i| Some(v1::Index { index: i });
    let data = Some(v1::CounterData {
        packet_count: 3,
        byte_count: 30,
    });
    let counter = |i, data| {
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: id("port_count"),
            index: i,
            data,
        })
    };
    assert_eq!(one.insert(counter(index(1), data)).await, INVALID);
    assert_eq!(one.delete(counter(index(1), None)).await, INVALID);
    assert_eq!(one.modify(counter(index(16), data)).await, OUT_OF_RANGE);
    assert_eq!(one.modify(counter(index(-1), data)).await, INVALID);
    assert_eq!(one.modify(counter(index(1), data)).await, Ok(()));
    assert_eq!(one.modify(counter(index(1), None)).await, Ok(()));
    assert_eq!(
        one.read(counter(index(1), None)).await,
        [counter(index(1), data)]
    );
    assert_eq!(one.read(counter(None, None)).await.len(), 16);
    assert_eq!(one.modify(counter(None, data)).await, Ok(()), "all cells");
    assert!(
        one.read(counter(None, None))
            .await
            .iter()
            .enumerate()
            .all(|(i, c)| *c == counter(index(i as i64), data))
    );
    let unknown = |counter_id| {
        Entity::CounterEntry(v1::CounterEntry {
            counter_id,
            ..Default::default()
        })
    };
    assert_eq!(one.modify(unknown(0x1200_0001)).await, MISSING);
    assert_eq!(one.modify(unknown(0)).await, INVALID);
    assert_eq!(one.read(unknown(0)).await.len(), 16);
    assert_eq!(one.read_error(unknown(0x1200_0001)).await, Code::NotFound);
    assert_eq!(
        one.read_error(counter(index(16), None)).await,
        Code::OutOfRange
    );
    assert_eq!(
        one.read_error(counter(index(-1), None)).await,
        Code::InvalidArgument
    );

    let config = Some(v1::MeterConfig {
        cir: 10,
        cburst: 20,
        pir: 30,
        pburst: 40,
        eburst: 0,
    });
    let meter = |i, config| {
        Entity::MeterEntry(v1::MeterEntry {
            meter_id: id("port_meter"),
            index: i,
            config,
            counter_data: None,
        })
    };
    assert_eq!(one.insert(meter(index(1), config)).await, INVALID);
    assert_eq!(one.modify(meter(index(1), config)).await, Ok(()));
    assert_eq!(
        one.read(meter(index(1), None)).await,
        [meter(index(1), config)]
    );
    assert_eq!(
        one.modify(meter(index(1), None)).await,
        Ok(()),
        "unset config resets"
    );
    assert_eq!(
        one.read(meter(index(1), None)).await,
        [meter(index(1), None)]
    );
    let colours = Entity::MeterEntry(v1::MeterEntry {
        meter_id: id("port_meter"),
        counter_data: Some(Default::default()),
        ..Default::default()
    });
    assert_eq!(one.modify(colours).await, Ok(()));

    let bits = |b: &[u8]| {
        Some(v1::P4Data {
            data: Some(v1::p4_data::Data::Bitstring(b.to_vec())),
        })
    };
    let register = |i, data| {
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: id("last_src"),
            index: i,
            data,
        })
    };
    assert_eq!(one.modify(register(index(2), bits(&[0, 9]))).await, Ok(()));
    assert_eq!(
        one.read(register(index(2), None)).await,
        [register(index(2), bits(&[9]))]
    );
    assert_eq!(one.modify(register(index(2), None)).await, INVALID);
    assert_eq!(
        one.modify(register(index(2), bits(&[1; 7]))).await,
        OUT_OF_RANGE
    );
    let wrong = Some(v1::P4Data {
        data: Some(v1::p4_data::Data::Bool(true)),
    });
    assert_eq!(one.modify(register(index(2), wrong)).await, INVALID);
    assert_eq!(
        one.modify(register(index(16), bits(&[1]))).await,
        OUT_OF_RANGE
    );
    assert_eq!(one.insert(register(index(2), bits(&[1]))).await, INVALID);
    assert_eq!(one.modify(register(None, bits(&[1]))).await, Ok(()));
    assert_eq!(one.read(register(None, None)).await.len(), 16);
}

#[tokio::test]
async fn value_sets() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let set = |values: &[&[u8]]| {
        Entity::ValueSetEntry(v1::ValueSetEntry {
            value_set_id: id("as_ipv4"),
            members: values
                .iter()
                .map(|v| v1::ValueSetMember {
                    r#match: vec![exact(1, v)],
                })
                .collect(),
        })
    };
    assert_eq!(one.insert(set(&[&[1]])).await, INVALID);
    assert_eq!(one.delete(set(&[])).await, INVALID);
    assert_eq!(one.modify(set(&[&[1], &[2]])).await, Ok(()));
    assert_eq!(one.read(set(&[])).await, [set(&[&[1], &[2]])]);
    assert_eq!(
        one.modify(set(&[&[1], &[0, 1]])).await,
        EXISTS,
        "the same value twice"
    );
    assert_eq!(one.modify(set(&[&[1], &[2], &[3], &[4], &[5]])).await, FULL);
    assert_eq!(one.modify(set(&[&[1, 0, 0]])).await, OUT_OF_RANGE);
    assert_eq!(
        one.read_error(set(&[&[1]])).await,
        Code::InvalidArgument,
        "members in a read"
    );
    assert_eq!(one.modify(set(&[])).await, Ok(()));
    assert_eq!(
        one.read(Entity::ValueSetEntry(Default::default())).await,
        [set(&[])]
    );
}

/// The rules of tables' matches hold for every kind of match of a value set.
#[tokio::test]
async fn value_set_members_are_well_formed() {
    for (kind, good, wrong) in [
        (
            MatchType::Ternary,
            ternary(1, &[1], &[3]),
            [ternary(1, &[4], &[3]), ternary(1, &[0], &[0])],
        ),
        (
            MatchType::Lpm,
            lpm(1, &[0x80, 0], 1),
            [lpm(1, &[0xc0, 0], 1), lpm(1, &[0], 0)],
        ),
        (
            MatchType::Range,
            range(1, &[3], &[4]),
            [range(1, &[4], &[3]), range(1, &[0], &[0xff, 0xff])],
        ),
    ] {
        let bench = Bench::new();
        let mut one = bench.primary(1).await;
        let mut config = pipeline(1);
        let info = config.p4info.as_mut().unwrap();
        info.value_sets[0].r#match[0].r#match = Some(Match::MatchType(kind as i32));
        one.push(PipelineAction::VerifyAndCommit, Some(config))
            .await
            .unwrap();
        let set = |m: &v1::FieldMatch| {
            Entity::ValueSetEntry(v1::ValueSetEntry {
                value_set_id: id("as_ipv4"),
                members: vec![v1::ValueSetMember {
                    r#match: vec![m.clone()],
                }],
            })
        };
        assert_eq!(one.modify(set(&good)).await, Ok(()), "{kind:?}");
        for m in &wrong {
            assert_eq!(one.modify(set(m)).await, INVALID, "{m:?}");
        }
        let all = Entity::ValueSetEntry(Default::default());
        assert_eq!(one.read(all).await, [set(&good)], "as before");
    }
}

#[tokio::test]
async fn digest_settings() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let digest = |max_timeout_ns| {
        Entity::DigestEntry(v1::DigestEntry {
            digest_id: id("learn_t"),
            config: Some(v1::digest_entry::Config {
                max_timeout_ns,
                max_list_size: 3,
                ack_timeout_ns: 4,
            }),
        })
    };
    assert_eq!(one.modify(digest(1)).await, MISSING);
    assert_eq!(one.delete(digest(1)).await, MISSING);
    assert_eq!(one.insert(digest(-1)).await, INVALID);
    assert_eq!(one.insert(digest(1)).await, Ok(()));
    assert_eq!(one.insert(digest(1)).await, EXISTS);
    assert_eq!(one.modify(digest(2)).await, Ok(()));
    assert_eq!(
        one.read(Entity::DigestEntry(Default::default())).await,
        [digest(2)]
    );
    assert_eq!(one.delete(digest(0)).await, Ok(()));
    assert!(
        one.read(Entity::DigestEntry(Default::default()))
            .await
            .is_empty()
    );
}

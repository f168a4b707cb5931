//! Sizes of requests and notifications, and what a program from the command line leaves unset.

use p4runtime::config::v1 as config;
use p4runtime::v1::{
    self, entity::Entity, set_forwarding_pipeline_config_request::Action as PipelineAction,
    stream_message_request::Update as Say, stream_message_response::Update,
};

use super::common::{
    Bench, DEVICE, INVALID, JSON, OUT_OF_RANGE, acl, exact, id, l2, p4info, pipeline, range, table,
    ternary,
};

/// A pipeline whose JSON has so many bytes.
fn padded(bytes: usize) -> v1::ForwardingPipelineConfig {
    let mut config = pipeline(1);
    config.p4_device_config.resize(bytes, b' ');
    config
}

#[tokio::test]
async fn large_configs_are_received() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let config = padded(120 << 20);
    one.push(PipelineAction::Verify, Some(config))
        .await
        .unwrap();
}

#[tokio::test]
async fn requests_are_bounded() {
    let bench = Bench::with(|config| config.max_request = 1 << 20);
    let mut one = bench.primary(1).await;
    one.push(PipelineAction::VerifyAndCommit, Some(padded(900 << 10)))
        .await
        .unwrap();
    let refused = one.push(PipelineAction::VerifyAndCommit, Some(padded(1100 << 10)));
    assert_eq!(refused.await.unwrap_err().code(), tonic::Code::OutOfRange);
    let large = v1::TableEntry {
        metadata: vec![1; 1100 << 10],
        ..l2(1, 1)
    };
    let updates = vec![super::common::update(
        v1::update::Type::Insert,
        table(large),
    )];
    let refused = one.write_as(v1::write_request::Atomicity::ContinueOnError, updates);
    assert_eq!(refused.await.unwrap_err().code(), tonic::Code::OutOfRange);
    assert_eq!(one.insert(table(l2(1, 1))).await, Ok(()), "it goes on");
}

#[tokio::test]
async fn a_program_from_the_command_line_has_no_cookie() {
    let bench = Bench::new();
    bench.server.install(p4info(), JSON.to_vec()).await.unwrap();
    let mut one = bench.primary(1).await;
    let request = v1::GetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        response_type: 0,
    };
    let answer = one.client.get_forwarding_pipeline_config(request).await;
    let found = answer.unwrap().into_inner().config.unwrap();
    assert_eq!(found.cookie, None);
    assert_eq!(found.p4info, Some(p4info()));
    assert_eq!(found.p4_device_config, JSON);
    assert_eq!(one.insert(table(l2(1, 1))).await, Ok(()));
}

#[tokio::test]
async fn the_order_of_match_fields_does_not_matter() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let fields = [
        ternary(1, &[10], &[255]),
        range(3, &[1], &[9]),
        exact(4, &[1]),
    ];
    let entry = |order: [usize; 3]| v1::TableEntry {
        r#match: order.map(|at| fields[at].clone()).to_vec(),
        ..acl(4, &[10], &[255])
    };
    assert_eq!(one.insert(table(entry([2, 0, 1]))).await, Ok(()));
    for order in [[0, 1, 2], [1, 2, 0], [2, 1, 0]] {
        let again = one.insert(table(entry(order))).await;
        assert_eq!(again, super::common::EXISTS, "{order:?}");
        assert_eq!(one.tables(entry(order)).await, [entry([0, 1, 2])]);
    }
    assert_eq!(one.delete(table(entry([1, 0, 2]))).await, Ok(()));
}

#[tokio::test]
async fn serializable_enums_are_their_value() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut pushed = pipeline(1);
    let info = pushed.p4info.as_mut().unwrap();
    let named = config::P4DataTypeSpec {
        type_spec: Some(config::p4_data_type_spec::TypeSpec::SerializableEnum(
            config::P4NamedType {
                name: "vendor".into(),
            },
        )),
    };
    let member = |name: &str, value: u8| config::p4_serializable_enum_type_spec::Member {
        name: name.into(),
        value: vec![value],
        ..Default::default()
    };
    let spec = config::P4SerializableEnumTypeSpec {
        underlying_type: Some(config::P4BitTypeSpec { bitwidth: 48 }),
        members: vec![member("one", 1), member("two", 2)],
        ..Default::default()
    };
    let types = info.type_info.get_or_insert_default();
    types.serializable_enums.insert("vendor".into(), spec);
    info.registers[0].type_spec = Some(named);
    one.push(PipelineAction::VerifyAndCommit, Some(pushed))
        .await
        .unwrap();
    let cell = |data: Option<v1::p4_data::Data>| {
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: id("last_src"),
            index: Some(v1::Index { index: 2 }),
            data: data.map(|data| v1::P4Data { data: Some(data) }),
        })
    };
    use v1::p4_data::Data;
    // Values without a name are values too.
    for value in [2, 77] {
        let written = cell(Some(Data::EnumValue(vec![value])));
        assert_eq!(one.modify(written.clone()).await, Ok(()));
        assert_eq!(one.read(cell(None)).await, [written]);
    }
    let wide = cell(Some(Data::EnumValue(vec![1; 7])));
    assert_eq!(one.modify(wide).await, OUT_OF_RANGE);
    for other in [Data::Enum("one".into()), Data::Bitstring(vec![1])] {
        assert_eq!(one.modify(cell(Some(other))).await, INVALID);
    }
}

#[tokio::test]
async fn idle_entries_of_a_table_come_together() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut json: sonic_rs::Value = sonic_rs::from_slice(JSON).unwrap();
    make_room(&mut json);
    let mut config = pipeline(1);
    config.p4_device_config = sonic_rs::to_vec(&json).unwrap();
    one.push(PipelineAction::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    let updates = (0..2500u16).map(|n| {
        let entry = v1::TableEntry {
            r#match: vec![exact(1, &p4runtime::bytes::canonical(&n.to_be_bytes()))],
            idle_timeout_ns: 1_000_000_000,
            ..l2(0, 1)
        };
        super::common::update(v1::update::Type::Insert, table(entry))
    });
    one.write_as(
        v1::write_request::Atomicity::ContinueOnError,
        updates.collect(),
    )
    .await
    .unwrap();
    bench.clock.set(1_000_000_000);
    bench.server.tick();
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 2500 {
        match one.next().await.unwrap() {
            Update::IdleTimeoutNotification(n) => sizes.push(n.table_entry.len()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sizes, [1024, 1024, 452]);
    one.quiet().await;
}

/// Lets every table hold 4096 entries.
fn make_room(json: &mut sonic_rs::Value) {
    use sonic_rs::{JsonValueMutTrait, Value};
    let pipelines = json["pipelines"].as_array_mut().unwrap();
    for pipeline in pipelines.iter_mut() {
        for table in pipeline["tables"].as_array_mut().unwrap().iter_mut() {
            let table = table.as_object_mut().unwrap();
            table.insert("max_size", Value::from(4096));
        }
    }
}

#[tokio::test]
async fn without_a_packet_out_header_the_payload_is_the_packet() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut config = pipeline(1);
    let headers = &mut config.p4info.as_mut().unwrap().controller_packet_metadata;
    headers.retain(|h| h.preamble.as_ref().unwrap().name != "packet_out");
    one.push(PipelineAction::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    // The program's own header of two bytes comes first: port 4.
    let frame = [9, 9, 9, 9, 9, 9, 8, 8, 8, 8, 8, 8, 0x12, 0x34, 0x55];
    let payload = [&[0x02, 0x00][..], &frame].concat();
    one.send(Say::Packet(v1::PacketOut {
        payload,
        metadata: Vec::new(),
    }))
    .await;
    one.quiet().await;
    let left = bench.switch.lock().dequeue(4, 0).unwrap();
    assert_eq!(left.bytes, frame);
    // Metadata that nothing describes is refused.
    one.send(Say::Packet(v1::PacketOut {
        payload: frame.to_vec(),
        metadata: vec![v1::PacketMetadata {
            metadata_id: 1,
            value: vec![1],
        }],
    }))
    .await;
    assert!(matches!(one.next().await.unwrap(), Update::Error(_)));
}

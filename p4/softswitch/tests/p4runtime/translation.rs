//! Types that the controller sees otherwise than the program: numbers of another width, strings.

use p4runtime::config::v1 as config;
use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, set_forwarding_pipeline_config_request::Action as PipelineAction,
    stream_message_request::Update as Say, stream_message_response::Update,
};

use super::common::{
    Bench, Controller, INVALID, OUT_OF_RANGE, action, exact, id, l2, pipeline, table, ternary,
};

/// What the program's port type is to the controller.
fn port_type(sdn: config::p4_new_type_translation::SdnType) -> config::P4NewTypeSpec {
    let translation = config::P4NewTypeTranslation {
        uri: "p4.org/v1model/v1/PortId_t".into(),
        sdn_type: Some(sdn),
    };
    config::P4NewTypeSpec {
        representation: Some(config::p4_new_type_spec::Representation::TranslatedType(
            translation,
        )),
        ..Default::default()
    }
}

/// The program, with ports of type `port_t` wherever they are.
fn translated(spec: config::P4NewTypeSpec, width: i32) -> v1::ForwardingPipelineConfig {
    let mut config = pipeline(1);
    let info = config.p4info.as_mut().unwrap();
    let types = info.type_info.get_or_insert_default();
    types.new_types.insert("port_t".into(), spec);
    let named = || {
        Some(config::P4NamedType {
            name: "port_t".into(),
        })
    };
    for action in &mut info.actions {
        for param in action.params.iter_mut().filter(|p| p.name == "port") {
            (param.bitwidth, param.type_name) = (width, named());
        }
    }
    for table in &mut info.tables {
        for field in &mut table.match_fields {
            if field.bitwidth == 9 {
                (field.bitwidth, field.type_name) = (width, named());
            }
        }
    }
    for header in &mut info.controller_packet_metadata {
        for m in header.metadata.iter_mut().filter(|m| m.bitwidth == 9) {
            (m.bitwidth, m.type_name) = (width, named());
        }
    }
    for counter in &mut info.counters {
        if width > 0 {
            counter.index_type_name = named();
        }
    }
    config
}

async fn ready(bench: &Bench, config: v1::ForwardingPipelineConfig) -> Controller {
    let mut one = bench.primary(1).await;
    one.push(PipelineAction::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    one
}

fn to(port: &[u8]) -> v1::TableEntry {
    let does = v1::table_action::Type::Action(action("send", &[port]));
    v1::TableEntry {
        action: Some(v1::TableAction { r#type: Some(does) }),
        ..l2(1, 0)
    }
}

fn acl_at(port: &[u8]) -> v1::TableEntry {
    v1::TableEntry {
        r#match: vec![ternary(1, &[10, 0, 0, 0], &[255, 0, 0, 0]), exact(4, port)],
        ..super::common::acl(3, &[10, 0, 0, 0], &[255, 0, 0, 0])
    }
}

#[tokio::test]
async fn ports_of_32_bits() {
    use config::p4_new_type_translation::SdnType::SdnBitwidth;
    let bench = Bench::new();
    let mut one = ready(&bench, translated(port_type(SdnBitwidth(32)), 32)).await;
    const CPU: [u8; 4] = [0xff, 0xff, 0xff, 0xfd];
    for port in [&[7][..], &CPU] {
        let entry = to(port);
        assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
        assert_eq!(one.tables(l2(1, 0)).await, std::slice::from_ref(&entry));
        assert_eq!(one.delete(table(entry)).await, Ok(()));
        let entry = acl_at(port);
        assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
        assert_eq!(one.tables(entry.clone()).await, [entry]);
    }
    let wide = table(to(&[1, 0, 0]));
    assert_eq!(one.insert(wide).await, OUT_OF_RANGE, "no such port");
    let wide = table(to(&[1, 0, 0, 0, 0]));
    assert_eq!(one.insert(wide).await, OUT_OF_RANGE, "not 32 bits");
    // The packet-out's header is 16 bits in the program, whatever the controller sees.
    let metadata = |metadata_id, value: &[u8]| v1::PacketMetadata {
        metadata_id,
        value: value.to_vec(),
    };
    one.send(Say::Packet(v1::PacketOut {
        payload: vec![1; 20],
        metadata: vec![metadata(1, &[0, 0, 0, 9]), metadata(2, &[0])],
    }))
    .await;
    let sent = loop {
        tokio::task::yield_now().await;
        let mut ports = Vec::new();
        bench.switch.lock().take_ready(&mut ports);
        if let Some(port) = ports.first() {
            break bench.switch.lock().dequeue(*port, 0).unwrap();
        }
    };
    assert_eq!((sent.port, sent.bytes), (9, vec![1; 20]));
}

#[tokio::test]
async fn cpu_port_as_replica_index_and_watch() {
    use config::p4_new_type_translation::SdnType::SdnBitwidth;
    use v1::packet_replication_engine_entry::Type::CloneSessionEntry as T;
    let bench = Bench::new();
    let mut one = ready(&bench, translated(port_type(SdnBitwidth(32)), 32)).await;
    let session = |port: &[u8]| {
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
            r#type: Some(T(v1::CloneSessionEntry {
                session_id: 5,
                replicas: vec![v1::Replica {
                    port_kind: Some(v1::replica::PortKind::Port(port.to_vec())),
                    ..Default::default()
                }],
                ..Default::default()
            })),
        })
    };
    let cpu = session(&[0xff, 0xff, 0xff, 0xfd]);
    assert_eq!(one.insert(cpu.clone()).await, Ok(()));
    assert_eq!(one.read(cpu.clone()).await, [cpu.clone()]);
    let sessions = bench.switch.lock().clone_sessions();
    assert_eq!(sessions[0].replicas[0].port, 510);
    assert_eq!(
        one.modify(session(&[0xff, 0xff, 0xff, 0xfa])).await,
        INVALID
    );
    assert_eq!(
        one.modify(session(&[0x01, 0xff])).await,
        INVALID,
        "drop port"
    );
    let cell = |index| {
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: id("port_count"),
            index: Some(v1::Index { index }),
            data: Some(v1::CounterData {
                packet_count: 1,
                byte_count: 2,
            }),
        })
    };
    assert_eq!(one.modify(cell(3)).await, Ok(()));
    assert_eq!(one.read(cell(3)).await, [cell(3)]);
    assert_eq!(
        one.modify(cell(0xffff_fffd)).await,
        OUT_OF_RANGE,
        "port 510 of 16 cells"
    );
}

#[tokio::test]
async fn ports_as_strings() {
    use config::p4_new_type_translation::{SdnString, SdnType};
    let bench = Bench::new();
    let string = SdnType::SdnString(SdnString::default());
    let mut one = ready(&bench, translated(port_type(string), 0)).await;
    for port in ["7", "Ethernet1/1", "007"] {
        let entry = to(port.as_bytes());
        assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
        assert_eq!(one.tables(l2(1, 0)).await, std::slice::from_ref(&entry));
        assert_eq!(one.delete(table(entry)).await, Ok(()));
        let entry = acl_at(port.as_bytes());
        assert_eq!(one.insert(table(entry.clone())).await, Ok(()));
        assert_eq!(one.tables(entry.clone()).await, [entry]);
    }
    assert_eq!(one.insert(table(to(b""))).await, INVALID);
    // Packet-ins name the port by its string.
    let punt = v1::TableEntry {
        action: super::common::does("to_cpu", &[&[5]]),
        ..l2(2, 0)
    };
    assert_eq!(one.insert(table(punt)).await, Ok(()));
    let mut frame = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0x12, 0x34];
    frame.push(1);
    bench.switch.lock().ingress(3, &frame, 0);
    bench.server.poll_cpu();
    match one.next().await.unwrap() {
        Update::Packet(packet) => assert_eq!(packet.metadata[0].value, b"3"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn translations_that_cannot_be() {
    use config::p4_new_type_translation::{SdnString, SdnType};
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut refused = async |config| {
        let error = one
            .push(PipelineAction::Verify, Some(config))
            .await
            .unwrap_err();
        assert_eq!(error.code(), tonic::Code::InvalidArgument, "{error:?}");
    };
    let bits = || port_type(SdnType::SdnBitwidth(32));
    // P4Info's width is that of the translation.
    refused(translated(bits(), 9)).await;
    let string = || port_type(SdnType::SdnString(SdnString::default()));
    refused(translated(string(), 32)).await;
    let nothing = config::P4NewTypeSpec::default();
    refused(translated(nothing, 9)).await;
    let mut unknown = translated(bits(), 32);
    let types = unknown.p4info.as_mut().unwrap().type_info.as_mut().unwrap();
    types.new_types.clear();
    refused(unknown).await;
    // Strings have no bits to mask.
    let mut masked = translated(string(), 0);
    let info = masked.p4info.as_mut().unwrap();
    let acl = info
        .tables
        .iter_mut()
        .find(|t| t.preamble.as_ref().unwrap().alias == "acl");
    let field = &mut acl.unwrap().match_fields[0];
    field.bitwidth = 0;
    field.type_name = Some(config::P4NamedType {
        name: "port_t".into(),
    });
    refused(masked).await;
}

#[tokio::test]
async fn masks_of_translated_types_are_all_or_nothing() {
    use config::p4_new_type_translation::SdnType::SdnBitwidth;
    let bench = Bench::new();
    let mut config = translated(port_type(SdnBitwidth(40)), 40);
    let info = config.p4info.as_mut().unwrap();
    let acl = info
        .tables
        .iter_mut()
        .find(|t| t.preamble.as_ref().unwrap().alias == "acl");
    let fields = &mut acl.unwrap().match_fields;
    for field in fields.iter_mut().take(3) {
        field.bitwidth = 40;
        field.type_name = Some(config::P4NamedType {
            name: "port_t".into(),
        });
    }
    let mut one = ready(&bench, config).await;
    let entry = |m: Vec<v1::FieldMatch>| v1::TableEntry {
        r#match: m.into_iter().chain([exact(4, &[1])]).collect(),
        ..super::common::acl(3, &[1], &[1])
    };
    let all = [0xff; 5];
    let good = entry(vec![
        ternary(1, &[9], &all),
        super::common::range(3, &[6], &[6]),
    ]);
    assert_eq!(one.insert(table(good.clone())).await, Ok(()));
    assert_eq!(one.tables(good.clone()).await, [good]);
    for bad in [
        vec![ternary(1, &[9], &[0xff, 0xff, 0xff, 0xff])],
        vec![ternary(1, &[0], &[0])],
        vec![super::common::range(3, &[6], &[7])],
    ] {
        assert_eq!(one.insert(table(entry(bad))).await, INVALID);
    }
    assert_eq!(
        one.read_error(table(entry(vec![ternary(1, &[9], &[1])])))
            .await,
        Code::InvalidArgument
    );
}

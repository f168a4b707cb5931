//! Bytes that are no messages, and messages that make no sense: a status for each, and nothing
//! broken afterwards.

use p4runtime::v1::{
    self, entity::Entity, set_forwarding_pipeline_config_request::Action, stream_message_request,
};
use prost::Message as _;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Request, Status};

use super::common::{Bench, Controller, DEVICE, acl, id, l2, pipeline, route, table, update};

/// Sends and takes whatever bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        prost::bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; prost::bytes::Buf::remaining(buffer)];
        prost::bytes::Buf::copy_to_slice(buffer, &mut bytes);
        Ok(Some(bytes))
    }
}

async fn call(bench: &Bench, method: &str, bytes: Vec<u8>) -> Result<(), Status> {
    let mut grpc = Grpc::new(bench.server.channel());
    grpc.ready().await.unwrap();
    let path = PathAndQuery::try_from(format!("/p4.v1.P4Runtime/{method}")).unwrap();
    let once = tokio_stream::once(bytes);
    let answer = grpc.streaming(Request::new(once), path, Raw).await?;
    let mut answers = answer.into_inner();
    while answers.message().await?.is_some() {}
    Ok(())
}

const METHODS: [&str; 6] = [
    "Write",
    "Read",
    "SetForwardingPipelineConfig",
    "GetForwardingPipelineConfig",
    "StreamChannel",
    "Capabilities",
];

#[tokio::test]
async fn undecodable_bytes_are_an_invalid_argument() {
    let bench = Bench::new();
    for method in METHODS {
        for bytes in [&[0xff; 9][..], &[0x0a, 0x7f, 1], &[0x1a, 0x02, 0x08]] {
            let error = call(&bench, method, bytes.to_vec()).await.unwrap_err();
            assert_eq!(
                error.code(),
                tonic::Code::InvalidArgument,
                "{method} {error:?}"
            );
        }
    }
}

/// Numbers that are the same at every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }

    /// Changes a few bytes, or cuts or doubles a part.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.roll(3) {
            if bytes.is_empty() {
                return;
            }
            let at = self.roll(bytes.len());
            match self.roll(4) {
                0 => bytes[at] = self.roll(256) as u8,
                1 => bytes[at] ^= 1 << self.roll(8),
                2 => bytes.truncate(at),
                _ => {
                    let part = bytes[at..].to_vec();
                    bytes.extend_from_slice(&part);
                }
            }
        }
    }
}

/// One of every entity, with ids of the program.
fn entities() -> Vec<Entity> {
    let action = super::common::action("send", &[&[1]]);
    let replica = v1::Replica {
        port_kind: Some(v1::replica::PortKind::Port(vec![3])),
        instance: 1,
        backup_replicas: vec![v1::BackupReplica {
            port: vec![4],
            instance: 2,
        }],
    };
    let replication = |t| {
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(t) })
    };
    use v1::packet_replication_engine_entry::Type as T;
    vec![
        table(l2(1, 1)),
        table(route([10, 0, 0, 0], 8, 2)),
        table(acl(3, &[10, 0, 0, 0], &[255, 0, 0, 0])),
        Entity::ActionProfileMember(v1::ActionProfileMember {
            action_profile_id: id("spread"),
            member_id: 1,
            action: Some(action),
        }),
        Entity::ActionProfileGroup(v1::ActionProfileGroup {
            action_profile_id: id("spread"),
            group_id: 1,
            members: vec![v1::action_profile_group::Member {
                member_id: 1,
                weight: 3,
                watch_kind: None,
            }],
            max_size: 9,
        }),
        Entity::CounterEntry(v1::CounterEntry {
            counter_id: id("port_count"),
            index: Some(v1::Index { index: 3 }),
            data: Some(v1::CounterData::default()),
        }),
        Entity::MeterEntry(v1::MeterEntry {
            meter_id: id("port_meter"),
            index: Some(v1::Index { index: 3 }),
            config: Some(v1::MeterConfig {
                cir: 1,
                cburst: 1,
                pir: 2,
                pburst: 2,
                eburst: 0,
            }),
            counter_data: Some(v1::MeterCounterData::default()),
        }),
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: id("last_src"),
            index: Some(v1::Index { index: 3 }),
            data: Some(v1::P4Data {
                data: Some(v1::p4_data::Data::Bitstring(vec![1, 2])),
            }),
        }),
        replication(T::MulticastGroupEntry(v1::MulticastGroupEntry {
            multicast_group_id: 7,
            replicas: vec![replica],
            metadata: vec![1],
        })),
        replication(T::CloneSessionEntry(v1::CloneSessionEntry {
            session_id: 7,
            ..Default::default()
        })),
        Entity::ValueSetEntry(v1::ValueSetEntry {
            value_set_id: id("as_ipv4"),
            members: vec![v1::ValueSetMember {
                r#match: vec![super::common::exact(1, &[8, 0])],
            }],
        }),
        Entity::DigestEntry(v1::DigestEntry {
            digest_id: id("learn_t"),
            config: Some(v1::digest_entry::Config {
                max_timeout_ns: 5,
                max_list_size: 6,
                ack_timeout_ns: 7,
            }),
        }),
        Entity::DirectCounterEntry(v1::DirectCounterEntry {
            table_entry: Some(acl(3, &[10, 0, 0, 0], &[255, 0, 0, 0])),
            data: None,
        }),
    ]
}

async fn works(one: &mut Controller) {
    let _ = one.delete(table(l2(77, 1))).await;
    assert_eq!(one.insert(table(l2(77, 1))).await, Ok(()));
    assert_eq!(one.delete(table(l2(77, 1))).await, Ok(()));
}

#[tokio::test]
async fn spoilt_writes_and_reads_break_nothing() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut dice = Dice(0x9e37_79b9);
    let kinds = [
        v1::update::Type::Insert,
        v1::update::Type::Modify,
        v1::update::Type::Delete,
    ];
    let all = entities();
    for round in 0..2000 {
        let entity = all[dice.roll(all.len())].clone();
        let kind = kinds[dice.roll(3)];
        // The entity alone is spoilt: the frame around it has to arrive.
        let mut bytes = update(kind, entity).encode_to_vec();
        dice.spoil(&mut bytes);
        let Ok(spoilt) = v1::Update::decode(&bytes[..]) else {
            continue;
        };
        let request = v1::WriteRequest {
            device_id: DEVICE,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            updates: vec![spoilt.clone()],
            atomicity: dice.roll(3) as i32,
            ..Default::default()
        };
        let _ = one.client.write(request).await;
        let request = v1::ReadRequest {
            device_id: DEVICE,
            entities: spoilt.entity.into_iter().collect(),
            ..Default::default()
        };
        if let Ok(answers) = one.client.read(request).await {
            let mut answers = answers.into_inner();
            while let Ok(Some(_)) = answers.message().await {}
        }
        if round % 200 == 0 {
            works(&mut one).await;
        }
    }
    works(&mut one).await;
}

#[tokio::test]
async fn spoilt_pipelines_break_nothing() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut dice = Dice(77);
    for _ in 0..40 {
        let mut config = pipeline(1);
        let mut bytes = config.p4info.take().unwrap().encode_to_vec();
        dice.spoil(&mut bytes);
        if let Ok(info) = p4runtime::config::v1::P4Info::decode(&bytes[..]) {
            config.p4info = Some(info);
            let _ = one.push(Action::Verify, Some(config)).await;
        }
        let mut config = pipeline(1);
        dice.spoil(&mut config.p4_device_config);
        let _ = one.push(Action::Verify, Some(config)).await;
    }
    works(&mut one).await;
}

#[tokio::test]
async fn spoilt_stream_messages_break_nothing() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut dice = Dice(3);
    use stream_message_request::Update as Say;
    let messages = [
        Say::Packet(v1::PacketOut {
            payload: vec![1; 20],
            metadata: vec![v1::PacketMetadata {
                metadata_id: 1,
                value: vec![1],
            }],
        }),
        Say::DigestAck(v1::DigestListAck {
            digest_id: id("learn_t"),
            list_id: 1,
        }),
        Say::Arbitration(super::common::claim("other", Some(9))),
    ];
    for _ in 0..300 {
        let update = Some(messages[dice.roll(messages.len())].clone());
        let mut bytes = v1::StreamMessageRequest { update }.encode_to_vec();
        dice.spoil(&mut bytes);
        let _ = call(&bench, "StreamChannel", bytes).await;
    }
    works(&mut one).await;
}

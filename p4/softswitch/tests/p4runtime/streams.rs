//! Packet-ins and packet-outs, digests, idle timeouts, stream errors, slow clients.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::common::{Bench, Controller, claim, does, exact, id, l2};
use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, stream_error::Details, stream_message_request::Update as Say,
    stream_message_response::Update,
};
use prost::Message as _;
use softswitch::server::roles::{ROLE_CONFIG_TYPE_URL, RoleConfig};

/// An Ethernet frame that no parser state follows.
fn frame(dst: u8, src: u8) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 0, 0, dst, 0, 0, 0, 0, 0, src, 0x12, 0x34];
    frame.extend_from_slice(b"payload");
    frame
}

fn metadata(values: &[(u32, &[u8])]) -> Vec<v1::PacketMetadata> {
    let one = |(metadata_id, value): &(u32, &[u8])| v1::PacketMetadata {
        metadata_id: *metadata_id,
        value: value.to_vec(),
    };
    values.iter().map(one).collect()
}

async fn stream_error(controller: &mut Controller) -> (Code, Details) {
    match controller.next().await.unwrap() {
        Update::Error(error) => {
            assert!(!error.message.is_empty());
            assert_eq!(error.space, "meridian-v1model");
            (
                Code::try_from(error.canonical_code).unwrap(),
                error.details.unwrap(),
            )
        }
        other => panic!("no error: {other:?}"),
    }
}

/// Sends every frame of MAC 1 to the CPU, with reason 5.
async fn punt(one: &mut Controller) {
    let entry = v1::TableEntry {
        action: does("to_cpu", &[&[5]]),
        ..l2(1, 0)
    };
    one.insert(Entity::TableEntry(entry)).await.unwrap();
}

#[tokio::test]
async fn packets_go_up_with_metadata() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let mut backup = bench.connect().await;
    backup.claim(claim("", None)).await;
    backup.arbitration().await;
    punt(&mut one).await;
    bench.switch.lock().ingress(3, &frame(1, 2), 10);
    assert_eq!(bench.server.poll_cpu(), 1);
    assert_eq!(bench.server.poll_cpu(), 0);
    match one.next().await.unwrap() {
        Update::Packet(packet) => {
            assert_eq!(packet.payload, frame(1, 2));
            assert_eq!(packet.metadata, metadata(&[(1, &[3]), (2, &[5])]));
        }
        other => panic!("{other:?}"),
    }
    backup.quiet().await;
    assert_eq!(bench.server.stats().packet_ins, 1);
}

#[tokio::test]
async fn packets_go_down_and_wake() {
    let woken = Arc::new(AtomicUsize::new(0));
    let counted = woken.clone();
    let bench = Bench::with(|config| {
        config.notify = Some(Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }));
    });
    let mut one = bench.ready().await;
    let packet = v1::PacketOut {
        payload: frame(9, 9),
        metadata: metadata(&[(1, &[4]), (2, &[0])]),
    };
    one.send(Say::Packet(packet)).await;
    // An acknowledgement of a digest that is not there comes back behind it.
    one.send(Say::DigestAck(v1::DigestListAck {
        digest_id: 1,
        list_id: 1,
    }))
    .await;
    stream_error(&mut one).await;
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    let mut switch = bench.switch.lock();
    let mut ready = Vec::new();
    switch.take_ready(&mut ready);
    assert_eq!(ready, [4]);
    assert_eq!(switch.dequeue(4, 20).unwrap().bytes, frame(9, 9));
}

#[tokio::test]
async fn messages_of_no_session_and_of_no_kind_are_reported() {
    let bench = Bench::new();
    let _one = bench.ready().await;
    let mut other = bench.connect().await;
    other.send(Say::Packet(v1::PacketOut::default())).await;
    let (code, details) = stream_error(&mut other).await;
    assert_eq!(code, Code::PermissionDenied);
    assert!(matches!(details, Details::PacketOut(_)));
    let mut ready = Vec::new();
    bench.switch.lock().take_ready(&mut ready);
    assert!(ready.is_empty(), "dropped");
    let nothing = v1::StreamMessageRequest { update: None };
    other.sender.send(nothing).await.unwrap();
    assert_eq!(stream_error(&mut other).await.0, Code::InvalidArgument);
}

#[tokio::test]
async fn bad_stream_messages_are_reported() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    for given in [
        metadata(&[(1, &[4])]),
        metadata(&[(1, &[4]), (2, &[0]), (3, &[0])]),
        metadata(&[(1, &[4]), (2, &[0]), (2, &[0])]),
        metadata(&[(1, &[4]), (2, &[0x80])]),
        metadata(&[]),
    ] {
        let packet = v1::PacketOut {
            payload: vec![1],
            metadata: given,
        };
        one.send(Say::Packet(packet.clone())).await;
        let (code, details) = stream_error(&mut one).await;
        assert_eq!(code, Code::InvalidArgument);
        assert_eq!(
            details,
            Details::PacketOut(v1::PacketOutError {
                packet_out: Some(packet)
            })
        );
    }
    one.send(Say::DigestAck(v1::DigestListAck {
        digest_id: 4,
        list_id: 1,
    }))
    .await;
    let (code, details) = stream_error(&mut one).await;
    assert_eq!(code, Code::InvalidArgument);
    assert!(matches!(details, Details::DigestListAck(_)));
    one.send(Say::Other(prost_types::Any::default())).await;
    assert!(matches!(
        stream_error(&mut one).await,
        (Code::Unimplemented, Details::Other(_))
    ));

    let mut backup = bench.connect().await;
    backup.claim(claim("", None)).await;
    backup.arbitration().await;
    let packet = v1::PacketOut {
        payload: vec![1],
        metadata: metadata(&[(1, &[4]), (2, &[0])]),
    };
    backup.send(Say::Packet(packet)).await;
    assert_eq!(stream_error(&mut backup).await.0, Code::PermissionDenied);
    let stats = bench.switch.lock().stats();
    assert_eq!(stats.received, 0, "none of them got into the switch");
}

#[tokio::test]
async fn packet_out_before_a_pipeline_is_reported() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    one.send(Say::Packet(v1::PacketOut::default())).await;
    assert_eq!(stream_error(&mut one).await.0, Code::FailedPrecondition);
}

#[tokio::test]
async fn digests_are_listed_acknowledged_and_timed() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let config = v1::digest_entry::Config {
        max_timeout_ns: 1000,
        max_list_size: 2,
        ack_timeout_ns: 1_000_000,
    };
    let entry = v1::DigestEntry {
        digest_id: id("learn_t"),
        config: Some(config),
    };
    one.insert(Entity::DigestEntry(entry)).await.unwrap();
    let learn = |src| {
        bench.switch.lock().ingress(2, &frame(9, src), 0);
        bench.server.poll_cpu();
    };
    let list = async |one: &mut Controller| match one.next().await.unwrap() {
        Update::Digest(list) => list,
        other => panic!("{other:?}"),
    };
    learn(1);
    learn(1);
    learn(2);
    let first = list(&mut one).await;
    assert_eq!((first.digest_id, first.data.len()), (id("learn_t"), 2));
    assert!(first.timestamp >= 1_000_000_000_000);
    let bits = |b: &[u8]| v1::P4Data {
        data: Some(v1::p4_data::Data::Bitstring(b.to_vec())),
    };
    let want = v1::p4_data::Data::Struct(v1::P4StructLike {
        members: vec![bits(&[1]), bits(&[2])],
    });
    assert_eq!(first.data[0].data, Some(want));

    learn(1); // not acknowledged yet: suppressed
    learn(3);
    assert_eq!(bench.server.tick(), Some(1000));
    bench.clock.set(1000);
    bench.server.tick();
    let second = list(&mut one).await;
    assert_eq!(second.data.len(), 1);
    one.send(Say::DigestAck(v1::DigestListAck {
        digest_id: first.digest_id,
        list_id: first.list_id,
    }))
    .await;
    // Ensures the acknowledgement was handled.
    one.send(Say::Other(prost_types::Any::default())).await;
    stream_error(&mut one).await;
    learn(1);
    learn(2);
    assert_eq!(list(&mut one).await.data.len(), 2);
}

#[tokio::test]
async fn idle_entries_are_reported() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = v1::TableEntry {
        idle_timeout_ns: 5000,
        metadata: b"m".to_vec(),
        ..l2(1, 1)
    };
    one.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    one.insert(Entity::TableEntry(l2(2, 2))).await.unwrap();
    bench.clock.set(4000);
    bench.server.tick();
    bench.switch.lock().ingress(2, &frame(1, 2), 4000);
    bench.clock.set(8000);
    bench.server.tick();
    one.quiet().await;
    bench.clock.set(9000);
    bench.server.tick();
    match one.next().await.unwrap() {
        Update::IdleTimeoutNotification(notification) => {
            assert_eq!(notification.table_entry.len(), 1);
            assert_eq!(notification.table_entry[0].r#match, [exact(1, &[1])]);
            assert_eq!(notification.table_entry[0].metadata, b"m");
            assert_eq!(notification.table_entry[0].idle_timeout_ns, 5000);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_nothing() {
    let bench = Bench::with(|config| config.stream_depth = 8);
    let mut one = bench.ready().await;
    punt(&mut one).await;
    let big = [frame(1, 2), vec![0; 1400]].concat();
    for n in 0..2000 {
        bench.switch.lock().ingress(3, &big, n);
        assert_eq!(bench.server.poll_cpu(), 1);
        if n % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert!(bench.server.stats().dropped > 0);
    // Its arbitration news still gets through.
    let _two = bench.primary(50).await;
    loop {
        match one.next().await.unwrap() {
            Update::Packet(_) => {}
            Update::Arbitration(update) => {
                assert_eq!(update.status.unwrap().code, Code::AlreadyExists as i32);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn roles_get_what_their_config_says() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    punt(&mut one).await;
    let mut qos = bench.connect().await;
    let config = RoleConfig {
        p4_ids: vec![id("routes")],
        ..RoleConfig::default()
    };
    let mut update = claim("qos", Some(1));
    update.role.as_mut().unwrap().config = Some(prost_types::Any {
        type_url: ROLE_CONFIG_TYPE_URL.into(),
        value: config.encode_to_vec(),
    });
    qos.claim(update).await;
    qos.arbitration().await;
    qos.election_id = Some(1);
    qos.insert(Entity::TableEntry(super::common::route(
        [10, 0, 0, 0],
        8,
        1,
    )))
    .await
    .unwrap();
    let denied = Err(Code::PermissionDenied);
    assert_eq!(qos.insert(Entity::TableEntry(l2(5, 5))).await, denied);
    let counter = v1::CounterEntry {
        counter_id: id("port_count"),
        ..Default::default()
    };
    assert_eq!(qos.modify(Entity::CounterEntry(counter)).await, denied);
    let action = v1::set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    let refused = qos
        .push(action, Some(super::common::pipeline(1)))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    qos.send(Say::Packet(v1::PacketOut::default())).await;
    assert_eq!(stream_error(&mut qos).await.0, Code::PermissionDenied);
    bench.switch.lock().ingress(3, &frame(1, 2), 10);
    bench.server.poll_cpu();
    assert!(matches!(one.next().await.unwrap(), Update::Packet(_)));
    qos.quiet().await;
}

#[tokio::test]
async fn backup_replicas_take_over_when_a_port_goes_down() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let group = v1::MulticastGroupEntry {
        multicast_group_id: 3,
        replicas: vec![v1::Replica {
            port_kind: Some(v1::replica::PortKind::Port(vec![4])),
            instance: 1,
            backup_replicas: vec![v1::BackupReplica {
                port: vec![5],
                instance: 1,
            }],
        }],
        ..Default::default()
    };
    let entry = v1::PacketReplicationEngineEntry {
        r#type: Some(v1::packet_replication_engine_entry::Type::MulticastGroupEntry(group)),
    };
    one.insert(Entity::PacketReplicationEngineEntry(entry))
        .await
        .unwrap();
    let flood = v1::TableEntry {
        action: does("flood", &[&[3]]),
        ..l2(3, 0)
    };
    one.insert(Entity::TableEntry(flood)).await.unwrap();
    let goes_to = || {
        let mut switch = bench.switch.lock();
        switch.ingress(2, &frame(3, 1), 0);
        let mut ready = Vec::new();
        switch.take_ready(&mut ready);
        ready
            .iter()
            .for_each(|port| while switch.dequeue(*port, 0).is_some() {});
        ready
    };
    assert_eq!(goes_to(), [4]);
    bench.server.set_port_up(4, false);
    assert_eq!(goes_to(), [5]);
    bench.server.set_port_up(4, true);
    assert_eq!(goes_to(), [4]);
}

#[tokio::test]
async fn backup_replicas_of_a_clone_session_take_over() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    bench.server.set_port_up(6, false);
    let backup = |port: u8| v1::BackupReplica {
        port: vec![port],
        instance: 1,
    };
    let session = v1::CloneSessionEntry {
        session_id: 3,
        replicas: vec![v1::Replica {
            port_kind: Some(v1::replica::PortKind::Port(vec![4])),
            instance: 1,
            backup_replicas: vec![backup(6), backup(5)],
        }],
        ..Default::default()
    };
    let entry = v1::PacketReplicationEngineEntry {
        r#type: Some(v1::packet_replication_engine_entry::Type::CloneSessionEntry(session)),
    };
    one.insert(Entity::PacketReplicationEngineEntry(entry))
        .await
        .unwrap();
    let mirror = v1::TableEntry {
        action: does("mirror", &[&[3]]),
        ..l2(3, 0)
    };
    one.insert(Entity::TableEntry(mirror)).await.unwrap();
    let goes_to = || {
        let mut switch = bench.switch.lock();
        switch.ingress(2, &frame(3, 1), 0);
        let mut ready = Vec::new();
        switch.take_ready(&mut ready);
        for port in &ready {
            while switch.dequeue(*port, 0).is_some() {}
        }
        // The original goes to port 0.
        ready.retain(|port| *port != 0);
        ready
    };
    assert_eq!(goes_to(), [4]);
    bench.server.set_port_up(4, false);
    assert_eq!(goes_to(), [5], "port 6 was down from the start");
    bench.server.set_port_up(6, true);
    assert_eq!(goes_to(), [6]);
    bench.server.set_port_up(6, false);
    bench.server.set_port_up(5, false);
    assert!(goes_to().is_empty(), "none is up");
    bench.server.set_port_up(5, true);
    assert_eq!(goes_to(), [5]);
    bench.server.set_port_up(4, true);
    assert_eq!(goes_to(), [4]);
}

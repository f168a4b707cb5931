//! Controllers that flood, stall or vanish: forwarding goes on, and memory stays what the
//! configuration allows.

use std::time::{Duration, Instant};

use p4runtime::v1::{
    self, entity::Entity, stream_message_request::Update as Say, write_request::Atomicity,
};
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::Endpoint;

use super::common::{Bench, DEVICE, claim, does, exact, id, l2, route, table, update};

/// A frame to MAC 1.
fn frame() -> Vec<u8> {
    vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0x12, 0x34, 1, 2, 3]
}

/// Forwards frames until `until` is ready; how many, and the longest time one took.
async fn forward_until(bench: &Bench, until: impl Future<Output = ()>) -> (u64, Duration) {
    let switch = bench.switch.clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let forwarding = tokio::task::spawn_blocking(move || {
        let (mut count, mut longest) = (0, Duration::ZERO);
        while stopped.try_recv().is_err() {
            let start = Instant::now();
            let mut switch = switch.lock();
            switch.ingress(3, &frame(), 0);
            count += u64::from(switch.dequeue(1, 0).is_some());
            drop(switch);
            longest = longest.max(start.elapsed());
        }
        (count, longest)
    });
    until.await;
    let _ = stop.send(());
    forwarding.await.unwrap()
}

fn routes(from: u32, to: u32) -> Vec<v1::Update> {
    let one = |n: u32| {
        let entry = route((0x0a00_0000 + n).to_be_bytes(), 32, 1);
        update(v1::update::Type::Insert, table(entry))
    };
    (from..to).map(one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarding_goes_on_under_a_flood_of_batches() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.insert(table(l2(1, 1))).await.unwrap();
    let (count, longest) = forward_until(&bench, async {
        for _ in 0..20 {
            one.write_as(Atomicity::ContinueOnError, routes(0, 1000))
                .await
                .unwrap();
            let delete = routes(0, 1000).into_iter().map(|mut u| {
                u.r#type = v1::update::Type::Delete as i32;
                u
            });
            one.write_as(Atomicity::RollbackOnError, delete.collect())
                .await
                .unwrap();
        }
    })
    .await;
    assert!(count > 1000, "{count}");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_packet_outs_from_a_client_that_never_reads() {
    let bench = Bench::with(|config| {
        config.stream_depth = 16;
        config.stream_bytes = 4096;
    });
    let mut one = bench.ready().await;
    one.insert(table(l2(1, 1))).await.unwrap();
    let bad = Say::Packet(v1::PacketOut {
        payload: vec![7; 1000],
        metadata: Vec::new(),
    });
    let sends = async {
        // Each is answered by an error that nobody reads.
        for _ in 0..2000 {
            one.send(bad.clone()).await;
        }
    };
    let (count, _) = forward_until(&bench, sends).await;
    assert!(count > 0);
    // Still there for those who read.
    assert_eq!(one.insert(table(l2(2, 1))).await, Ok(()));
    let waited = Instant::now();
    while bench.server.stats().dropped < 1000 {
        assert!(waited.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_waits_for_a_client_is_bounded_in_bytes() {
    let bench = Bench::with(|config| config.stream_bytes = 10_000);
    let mut one = bench.ready().await;
    let punt = v1::TableEntry {
        action: does("to_cpu", &[&[5]]),
        ..l2(1, 0)
    };
    one.insert(table(punt)).await.unwrap();
    let mut large = frame();
    large.resize(4000, 0);
    for _ in 0..50 {
        bench.switch.lock().ingress(3, &large, 0);
        bench.server.poll_cpu();
    }
    let dropped = bench.server.stats().dropped;
    assert!((40..50).contains(&dropped), "{dropped}");
    // What was read makes room again.
    for _ in 0..50 - dropped {
        one.next().await.unwrap();
    }
    bench.switch.lock().ingress(3, &large, 0);
    bench.server.poll_cpu();
    one.next().await.unwrap();
    assert_eq!(bench.server.stats().dropped, dropped);
}

#[tokio::test]
async fn streams_and_roles_are_limited() {
    let bench = Bench::with(|config| {
        config.max_streams = 3;
        config.max_roles = 2;
    });
    let mut first = bench.connect().await;
    first.claim(claim("a", Some(1))).await;
    first.arbitration().await;
    let mut second = bench.connect().await;
    second.claim(claim("b", Some(1))).await;
    second.arbitration().await;
    let mut third = bench.connect().await;
    third.claim(claim("c", Some(1))).await;
    assert_eq!(third.end().await, Code::ResourceExhausted);
    // Its place is free again.
    let mut third = loop {
        let mut next = bench.connect().await;
        next.claim(claim("a", Some(2))).await;
        match next.next().await {
            Ok(_) => break next,
            Err(status) => assert_eq!(status.code(), Code::ResourceExhausted),
        }
    };
    let mut client = third.client.clone();
    let (_sender, receiver) = tokio::sync::mpsc::channel::<v1::StreamMessageRequest>(1);
    let fourth = client
        .stream_channel(tokio_stream::wrappers::ReceiverStream::new(receiver))
        .await;
    assert_eq!(fourth.unwrap_err().code(), Code::ResourceExhausted);
    third.quiet().await;
}

#[tokio::test]
async fn replicas_are_limited() {
    use v1::packet_replication_engine_entry::Type::MulticastGroupEntry as T;
    let bench = Bench::with(|config| config.max_replicas = 5);
    let mut one = bench.ready().await;
    let group = |id, count: u8| {
        let replicas = (0..count).map(|port| v1::Replica {
            port_kind: Some(v1::replica::PortKind::Port(vec![port])),
            ..Default::default()
        });
        Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
            r#type: Some(T(v1::MulticastGroupEntry {
                multicast_group_id: id,
                replicas: replicas.collect(),
                metadata: Vec::new(),
            })),
        })
    };
    assert_eq!(one.insert(group(1, 3)).await, Ok(()));
    assert_eq!(one.insert(group(2, 3)).await, super::common::FULL);
    assert_eq!(one.modify(group(1, 5)).await, Ok(()));
    assert_eq!(one.modify(group(1, 1)).await, Ok(()));
    assert_eq!(one.insert(group(2, 4)).await, Ok(()));
    assert_eq!(one.delete(group(1, 0)).await, Ok(()));
    assert_eq!(one.modify(group(2, 5)).await, Ok(()));
}

/// A server on loopback TCP, and its address.
async fn serve(bench: &Bench) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = bench.server.clone();
    tokio::spawn(async move { server.serve(listener, None, std::future::pending()).await });
    address
}

#[tokio::test]
async fn a_client_that_vanishes_mid_write_leaves_a_whole_batch_or_none() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let address = serve(&bench).await;
    for round in 0..20u64 {
        let channel = Endpoint::from_shared(address.clone()).unwrap();
        let channel = channel.connect().await.unwrap();
        let mut client = v1::p4_runtime_client::P4RuntimeClient::new(channel);
        let request = v1::WriteRequest {
            device_id: DEVICE,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            updates: routes(0, 1000),
            ..Default::default()
        };
        let wait = Duration::from_micros(200 * round);
        let _ = tokio::time::timeout(wait, client.write(request)).await;
        drop(client);
        // Whatever arrived is done before the next write.
        assert_eq!(one.insert(table(l2(5, 1))).await, Ok(()));
        assert_eq!(one.delete(table(l2(5, 1))).await, Ok(()));
        let all = v1::TableEntry {
            table_id: id("routes"),
            ..Default::default()
        };
        let found = one.tables(all.clone()).await;
        assert!([0, 1000].contains(&found.len()), "{}", found.len());
        let deletes = found
            .into_iter()
            .map(|e| update(v1::update::Type::Delete, table(e)))
            .collect();
        one.write_as(Atomicity::ContinueOnError, deletes)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_vanished_primary_is_forgotten() {
    let bench = Bench::new();
    let _one = bench.ready().await;
    let address = serve(&bench).await;
    for _ in 0..50 {
        let channel = Endpoint::from_shared(address.clone()).unwrap();
        let mut client = v1::p4_runtime_client::P4RuntimeClient::connect(channel)
            .await
            .unwrap();
        let update = Some(Say::Arbitration(claim("", None)));
        let once = tokio_stream::once(v1::StreamMessageRequest { update });
        let _ = client.stream_channel(once).await.unwrap();
    }
    let waited = Instant::now();
    while bench.server.stats().streams > 1 {
        assert!(waited.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let bench = Bench::with(|config| config.max_connections = 2);
    let address = serve(&bench).await;
    let connect = async || {
        let channel = Endpoint::from_shared(address.clone()).unwrap();
        let mut client = v1::p4_runtime_client::P4RuntimeClient::connect(channel.clone())
            .await
            .unwrap();
        let asked = client.capabilities(v1::CapabilitiesRequest::default());
        let answer = tokio::time::timeout(Duration::from_millis(500), asked).await;
        answer.ok().map(|a| (client, a.unwrap()))
    };
    let first = connect().await.unwrap();
    let _second = connect().await.unwrap();
    assert!(connect().await.is_none());
    drop(first);
    assert!(connect().await.is_some());
}

#[tokio::test]
async fn a_stalled_reader_holds_up_nobody_who_only_reads() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.insert(table(l2(1, 1))).await.unwrap();
    let counters = v1::Entity {
        entity: Some(Entity::CounterEntry(v1::CounterEntry::default())),
    };
    let request = v1::ReadRequest {
        device_id: DEVICE,
        entities: vec![counters; 100_000],
        ..Default::default()
    };
    let stalled = one.client.read(request).await.unwrap();
    for _ in 0..3 {
        assert_eq!(one.tables(l2(1, 1)).await.len(), 1);
        let key = v1::TableEntry {
            r#match: vec![exact(1, &[1])],
            ..l2(1, 1)
        };
        assert_eq!(one.tables(key).await.len(), 1);
    }
    drop(stalled);
    assert_eq!(one.insert(table(l2(2, 1))).await, Ok(()));
}

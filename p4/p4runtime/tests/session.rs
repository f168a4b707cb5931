//! A client session against a server in the same process.

#![allow(clippy::unwrap_used)]

mod fake;

use std::time::Duration;

use fake::Fake;
use p4runtime::client::{Config, Dropped, Error, Outcome, Pipeline, Session, Standing, Streams};
use p4runtime::config::v1::P4Info;
use p4runtime::entry;
use p4runtime::rpc::Code;
use p4runtime::transport::Connector;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::stream_message_response::Update as Told;
use p4runtime::v1::write_request::Atomicity;
use p4runtime::v1::*;
use tonic::Status;

async fn open(connector: &Connector, config: Config) -> (Session, Streams) {
    let channel = connector.channel().await.unwrap();
    Session::open(channel, config).await.unwrap()
}

/// Waits until the server has got that far.
async fn until(fake: &Fake, reached: impl Fn(&fake::State) -> bool) {
    for _ in 0..1000 {
        if reached(&fake.0.lock().unwrap()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the server never got there");
}

fn entry(table_id: u32, metadata: usize) -> TableEntry {
    TableEntry {
        table_id,
        metadata: vec![7; metadata],
        ..Default::default()
    }
}

#[tokio::test]
async fn the_highest_id_is_primary() {
    let (_, connector, _) = Fake::serve();
    let low = u128::from(u64::MAX); // a larger number than (1, 0) has low bits
    let (backup, _streams) = open(&connector, Config::new(1, low)).await;
    assert_eq!(backup.standing(), Standing::Primary);
    let (primary, _streams2) = open(&connector, Config::new(1, 1 << 64)).await;
    assert_eq!(primary.standing(), Standing::Primary);
    let mut watch = backup.watch_standing();
    watch
        .wait_for(|s| *s == Standing::Backup { primary: 1 << 64 })
        .await
        .unwrap();

    let refused = backup
        .write_all(vec![entry::insert(entry(1, 0))])
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("not primary"), "{refused}");

    // The primary leaves; nobody takes its place below the highest id ever seen.
    primary.close().await;
    watch
        .wait_for(|s| *s == Standing::NoPrimary { highest: 1 << 64 })
        .await
        .unwrap();
    let standing = backup.arbitrate((1 << 64) + 1).await.unwrap();
    assert_eq!(standing, Standing::Primary);
    assert_eq!(backup.election_id(), (1 << 64) + 1);
    backup
        .write_all(vec![entry::insert(entry(1, 0))])
        .await
        .unwrap();
    // And gives the role up again.
    let standing = backup.arbitrate(5).await.unwrap();
    assert_eq!(
        standing,
        Standing::NoPrimary {
            highest: (1 << 64) + 1
        }
    );
}

#[tokio::test]
async fn ids_that_cannot_work() {
    let (_, connector, _) = Fake::serve();
    let channel = connector.channel().await.unwrap();
    let zero = Session::open(channel.clone(), Config::new(1, 0))
        .await
        .unwrap_err();
    assert!(matches!(zero, Error::ElectionId { device: 1 }));
    let (_session, _streams) = open(&connector, Config::new(1, 5)).await;
    let taken = Session::open(channel, Config::new(1, 5)).await.unwrap_err();
    assert!(matches!(taken, Error::Closed { .. }), "{taken}");
    assert!(taken.to_string().contains("the id is taken"), "{taken}");
}

#[tokio::test]
async fn every_update_has_its_outcome() {
    let (fake, connector, _) = Fake::serve();
    let mut config = Config::new(1, 1);
    config.max_request_updates = 2;
    let (session, _streams) = open(&connector, config).await;
    let tables = [1, 2, 3, 0xbad, 5];
    let updates: Vec<_> = tables
        .iter()
        .map(|table| entry::insert(entry(*table, 0)))
        .collect();
    let report = session
        .write(updates.clone(), Atomicity::ContinueOnError)
        .await
        .unwrap();
    assert!(!report.is_done());
    let failures: Vec<_> = report.failures().collect();
    assert_eq!(failures.len(), 1);
    assert_eq!(
        (failures[0].0, failures[0].1.code),
        (3, Code::ResourceExhausted)
    );
    assert_eq!(report.outcomes[4], Outcome::Done);
    let sizes: Vec<usize> = fake
        .0
        .lock()
        .unwrap()
        .requests
        .iter()
        .map(|r| r.updates.len())
        .collect();
    assert_eq!(sizes, [2, 2, 1]);

    // An atomic batch is one request or none.
    let split = session
        .write(updates.clone(), Atomicity::RollbackOnError)
        .await
        .unwrap_err();
    assert!(
        matches!(split, Error::TooLarge { updates: 5, .. }),
        "{split}"
    );
    let two = session
        .write(updates[..2].to_vec(), Atomicity::DataplaneAtomic)
        .await
        .unwrap();
    assert!(two.is_done());
    let sent = fake.0.lock().unwrap().requests.last().unwrap().atomicity();
    assert_eq!(sent, Atomicity::DataplaneAtomic);
    let empty = Update::default();
    let error = session.write_all(vec![empty]).await.unwrap_err();
    assert!(matches!(error, Error::EmptyEntity { place: 0, .. }));

    // A call that fails as a whole ends the batch.
    fake.0.lock().unwrap().refuse = Some(Status::unavailable("busy"));
    let report = session
        .write(updates, Atomicity::ContinueOnError)
        .await
        .unwrap();
    assert_eq!(report.outcomes[..2], [Outcome::Unknown, Outcome::Unknown]);
    assert_eq!(report.outcomes[2..], [const { Outcome::NotSent }; 3]);
    assert_eq!(report.ended.unwrap().code(), tonic::Code::Unavailable);
}

#[tokio::test]
async fn a_thousand_failures_fit_the_headers() {
    let (_, connector, _) = Fake::serve();
    let (session, _streams) = open(&connector, Config::new(1, 1)).await;
    let updates = vec![entry::insert(entry(0xbad, 0)); 1000];
    let report = session
        .write(updates, Atomicity::ContinueOnError)
        .await
        .unwrap();
    assert_eq!(report.failures().count(), 1000, "{report}");
}

#[tokio::test]
async fn reads_and_writes_of_many_megabytes() {
    let (_, connector, _) = Fake::serve();
    let (session, _streams) = open(&connector, Config::new(1, 1)).await;
    let updates: Vec<_> = (1..=9)
        .map(|table| entry::insert(entry(table, 1 << 20)))
        .collect();
    session.write_all(updates).await.unwrap();
    let pattern = || vec![Entity::from(entry(0, 0))];
    let read = session.read_all(pattern()).await.unwrap();
    assert_eq!(read.len(), 9);
    let mut one = session.read(pattern()).await.unwrap();
    assert_eq!(one.next().await.unwrap(), Some(entry(1, 1 << 20).into()));
    let empty = session.read(vec![Entity::default()]).await.unwrap_err();
    assert!(matches!(empty, Error::EmptyEntity { .. }));
    let (elsewhere, _streams) = open(&connector, Config::new(9, 2)).await;
    let error = elsewhere.read_all(pattern()).await.unwrap_err().to_string();
    assert_eq!(error, "device 9: Read failed: NotFound: no such device");
}

#[tokio::test]
async fn pipelines() {
    let (fake, connector, _) = Fake::serve();
    let mut config = Config::new(1, 7);
    config.role = Some(p4runtime::client::Role {
        name: "routes".to_owned(),
        config: None,
    });
    let (session, _streams) = open(&connector, config).await;
    assert_eq!(session.api_version().await.unwrap(), "1.5.0");
    assert_eq!(session.pipeline().await.unwrap(), None);
    let pipeline = Pipeline::new(P4Info::default(), b"{}".to_vec());
    session.verify(&pipeline).await.unwrap();
    session.save(&pipeline).await.unwrap();
    session.commit().await.unwrap();
    session.verify_and_commit(&pipeline).await.unwrap();
    session.reconcile_and_commit(&pipeline).await.unwrap();
    assert_eq!(
        session.pipeline_cookie().await.unwrap(),
        Some(pipeline.cookie)
    );
    assert_eq!(session.pipeline().await.unwrap(), Some(pipeline.clone()));
    let other = Pipeline::new(P4Info::default(), b"{ }".to_vec());
    assert_ne!(pipeline.cookie, other.cookie);

    let state = fake.0.lock().unwrap();
    let actions: Vec<Action> = state.pushes.iter().map(|push| push.action()).collect();
    assert_eq!(
        actions,
        [
            Action::Verify,
            Action::VerifyAndSave,
            Action::Commit,
            Action::VerifyAndCommit,
            Action::ReconcileAndCommit
        ]
    );
    assert!(state.pushes[2].config.is_none());
    assert!(
        state
            .pushes
            .iter()
            .all(|push| push.role == "routes" && push.device_id == 1)
    );
}

#[tokio::test]
async fn what_the_switch_says_is_sorted() {
    let (fake, connector, _) = Fake::serve();
    let mut config = Config::new(1, 1);
    config.queue = 2;
    let (session, mut streams) = open(&connector, config).await;
    let packet = |payload| PacketIn {
        payload: vec![payload],
        ..Default::default()
    };
    {
        let state = fake.0.lock().unwrap();
        state.broadcast(Told::Digest(DigestList {
            list_id: 4,
            ..Default::default()
        }));
        state.broadcast(Told::IdleTimeoutNotification(
            IdleTimeoutNotification::default(),
        ));
        state.broadcast(Told::Error(StreamError {
            message: "no".into(),
            ..Default::default()
        }));
        for payload in 0..5 {
            state.broadcast(Told::Packet(packet(payload)));
        }
    }
    assert_eq!(streams.digests.recv().await.unwrap().list_id, 4);
    assert!(streams.idle_timeouts.recv().await.is_some());
    assert_eq!(streams.errors.recv().await.unwrap().message, "no");
    // Two packets fit; the others are counted, and arbitration goes on.
    session.arbitrate(2).await.unwrap();
    assert_eq!(
        session.dropped(),
        Dropped {
            packets: 3,
            ..Default::default()
        }
    );
    assert_eq!(streams.packets.recv().await, Some(packet(0)));
    assert_eq!(streams.packets.recv().await, Some(packet(1)));

    session.acknowledge(3, 4).await.unwrap();
    let out = PacketOut {
        payload: vec![9],
        ..Default::default()
    };
    session.packet_out(out.clone()).await.unwrap();
    until(&fake, |state| !state.packets.is_empty()).await;
    let state = fake.0.lock().unwrap();
    assert_eq!(state.packets, [out]);
    assert_eq!(
        state.acks,
        [DigestListAck {
            digest_id: 3,
            list_id: 4
        }]
    );
}

#[tokio::test]
async fn a_lost_stream_is_told() {
    let (fake, connector, _) = Fake::serve();
    let (session, mut streams) = open(&connector, Config::new(1, 1)).await;
    fake.0
        .lock()
        .unwrap()
        .hang_up(&Status::unavailable("going down"));
    let mut watch = session.watch_standing();
    watch.wait_for(Standing::is_closed).await.unwrap();
    assert!(
        streams.packets.recv().await.is_none(),
        "the channels end, too"
    );
    for error in [
        session.packet_out(PacketOut::default()).await.unwrap_err(),
        session.arbitrate(2).await.unwrap_err(),
        session.until_primary().await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("going down"), "{error}");
    }
}

#[tokio::test]
async fn nothing_stays_behind() {
    let (fake, connector, server) = Fake::serve();
    let channel = connector.channel().await.unwrap();
    let (dropped, _streams) = Session::open(channel.clone(), Config::new(1, 1))
        .await
        .unwrap();
    drop(dropped);
    until(&fake, |state| state.streams_ended == 1).await;
    let (closed, _streams) = Session::open(channel, Config::new(1, 1)).await.unwrap();
    closed.close().await;
    assert_eq!(
        fake.0.lock().unwrap().streams_ended,
        2,
        "close waits for the server"
    );
    // The last channel and connector are gone, and so the server ends.
    drop(connector);
    tokio::time::timeout(Duration::from_secs(5), server)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for_forever() {
    let (connector, _incoming) = p4runtime::transport::in_memory();
    let channel = connector.channel().await.unwrap();
    let mut config = Config::new(1, 1);
    config.answer_timeout = Duration::from_millis(50);
    let error = Session::open(channel, config).await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
}

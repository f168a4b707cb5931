//! Multicast groups and clone sessions.

use p4runtime::v1::{self, entity::Entity};

use super::common::{Bench, EXISTS, INVALID, MISSING};

fn replica(port: u8, instance: u32) -> v1::Replica {
    v1::Replica {
        port_kind: Some(v1::replica::PortKind::Port(vec![port])),
        instance,
        backup_replicas: vec![],
    }
}

fn replication(entry: v1::packet_replication_engine_entry::Type) -> Entity {
    Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
        r#type: Some(entry),
    })
}

#[tokio::test]
async fn multicast_groups() {
    use v1::packet_replication_engine_entry::Type::MulticastGroupEntry as T;
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let group = |id, replicas: Vec<v1::Replica>| {
        replication(T(v1::MulticastGroupEntry {
            multicast_group_id: id,
            replicas,
            metadata: b"m".to_vec(),
        }))
    };
    assert_eq!(one.insert(group(0, vec![])).await, INVALID);
    assert_eq!(
        one.insert(group(1, vec![replica(1, 1), replica(1, 1)]))
            .await,
        INVALID
    );
    assert_eq!(one.insert(group(1, vec![replica(1, 70000)])).await, INVALID);
    assert_eq!(one.modify(group(1, vec![])).await, MISSING);
    let mut backed = replica(1, 1);
    backed.backup_replicas.push(v1::BackupReplica {
        port: vec![2],
        instance: 1,
    });
    let first = group(1, vec![backed, replica(3, 1), replica(3, 2)]);
    assert_eq!(one.insert(first.clone()).await, Ok(()));
    assert_eq!(one.insert(first.clone()).await, EXISTS);
    assert_eq!(
        one.read(group(0, vec![])).await,
        std::slice::from_ref(&first)
    );
    assert_eq!(one.read(group(1, vec![])).await, [first]);
    assert!(one.read(group(2, vec![])).await.is_empty());
    assert_eq!(one.modify(group(1, vec![replica(5, 0)])).await, Ok(()));
    assert_eq!(one.delete(group(1, vec![])).await, Ok(()));
    assert_eq!(one.delete(group(1, vec![])).await, MISSING);
}

#[tokio::test]
async fn clone_sessions() {
    use v1::packet_replication_engine_entry::Type::CloneSessionEntry as T;
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let session = |id, replicas: Vec<v1::Replica>, class_of_service, packet_length_bytes| {
        replication(T(v1::CloneSessionEntry {
            session_id: id,
            replicas,
            class_of_service,
            packet_length_bytes,
        }))
    };
    assert_eq!(
        one.insert(session(0, vec![replica(1, 1)], 0, 0)).await,
        INVALID
    );
    assert_eq!(
        one.insert(session(5, vec![replica(1, 1)], 8, 0)).await,
        INVALID
    );
    assert_eq!(
        one.insert(session(5, vec![replica(1, 1)], 0, -1)).await,
        INVALID
    );
    assert_eq!(one.modify(session(5, vec![], 0, 0)).await, MISSING);
    assert_eq!(
        one.insert(session(5, vec![replica(1, 1)], 2, 128)).await,
        Ok(())
    );
    assert_eq!(one.insert(session(5, vec![], 0, 0)).await, EXISTS);
    assert_eq!(
        one.read(session(0, vec![], 0, 0)).await,
        [session(5, vec![replica(1, 1)], 2, 128)]
    );
    assert_eq!(
        one.modify(session(5, vec![replica(2, 1)], 0, 0)).await,
        Ok(())
    );
    assert_eq!(one.delete(session(5, vec![], 0, 0)).await, Ok(()));
    assert_eq!(one.delete(session(5, vec![], 0, 0)).await, MISSING);
}

/// Replicas of one port each, with backups on others.
fn backed(port: u8, backups: &[(&[u8], u32)]) -> v1::Replica {
    let backups = backups.iter().map(|(port, instance)| v1::BackupReplica {
        port: port.to_vec(),
        instance: *instance,
    });
    v1::Replica {
        backup_replicas: backups.collect(),
        ..replica(port, 1)
    }
}

#[tokio::test]
async fn backup_replicas_of_groups_and_sessions() {
    use v1::packet_replication_engine_entry::Type;
    let group = |replicas: Vec<v1::Replica>| {
        replication(Type::MulticastGroupEntry(v1::MulticastGroupEntry {
            multicast_group_id: 9,
            replicas,
            ..Default::default()
        }))
    };
    let session = |replicas: Vec<v1::Replica>| {
        replication(Type::CloneSessionEntry(v1::CloneSessionEntry {
            session_id: 9,
            replicas,
            ..Default::default()
        }))
    };
    let bench = Bench::new();
    let mut one = bench.ready().await;
    for entry in [&group as &dyn Fn(_) -> Entity, &session] {
        for (wrong, why) in [
            (vec![backed(1, &[(&[1], 2)])], "on its replica's port"),
            (vec![backed(1, &[(&[2], 1), (&[2], 1)])], "twice"),
            (
                vec![backed(1, &[(&[2], 1)]), replica(2, 1)],
                "another replica",
            ),
            (
                vec![replica(2, 1), backed(1, &[(&[0, 2], 1)])],
                "another replica, padded",
            ),
            (vec![backed(1, &[(&[2], 70000)])], "instance"),
            (vec![backed(1, &[(&[9, 9], 1)])], "port"),
            (vec![backed(1, &[(&[], 1)])], "no port"),
        ] {
            assert_eq!(one.insert(entry(wrong)).await, INVALID, "{why}");
        }
        // The same port with another instance is another replica.
        let same_port = vec![backed(1, &[(&[2], 1), (&[2], 2)]), backed(3, &[(&[1], 9)])];
        assert_eq!(one.insert(entry(same_port.clone())).await, Ok(()));
        assert_eq!(one.read(entry(vec![])).await, [entry(same_port)]);
        // In the order of preference, whatever the numbers.
        let order = vec![backed(8, &[(&[7], 3), (&[6], 9), (&[7], 1)])];
        assert_eq!(one.modify(entry(order.clone())).await, Ok(()));
        assert_eq!(one.read(entry(vec![])).await, [entry(order)]);
    }
}

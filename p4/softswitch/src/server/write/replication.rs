//! Multicast groups and clone sessions.

use std::collections::BTreeSet;

use p4runtime::v1::{self, packet_replication_engine_entry::Type, replica::PortKind};

use super::{Op, Writer};
use crate::control::{CloneSession, Replica};
use crate::ids::Port;
use crate::server::actions::decode_port;
use crate::server::fault::Fault;

/// Largest multicast group and clone session ids: v1model's `mcast_grp` has 16 bits, and clone
/// sessions beyond 15 bits do not fit the mirror ids of the target this one stands in for.
const MULTICAST_ID_MAX: u32 = 0xffff;
const SESSION_ID_MAX: u32 = 0x7fff;

impl Writer<'_> {
    pub(super) fn replication(
        &mut self,
        op: Op,
        entry: &v1::PacketReplicationEngineEntry,
    ) -> Result<(), Fault> {
        self.author.scope.check_replication()?;
        match &entry.r#type {
            Some(Type::MulticastGroupEntry(group)) => self.multicast(op, group),
            Some(Type::CloneSessionEntry(session)) => self.clone_session(op, session),
            None => Err(Fault::invalid(
                "the packet replication engine's entry is not set",
            )),
        }
    }

    fn multicast(&mut self, op: Op, group: &v1::MulticastGroupEntry) -> Result<(), Fault> {
        let id = group.multicast_group_id;
        if id == 0 {
            return Err(Fault::invalid("multicast_group_id must be above 0"));
        }
        if id > MULTICAST_ID_MAX {
            return Err(Fault::out_of_range(format!(
                "multicast_group_id {id} is above {MULTICAST_ID_MAX}"
            )));
        }
        let old = self.state.multicast.get(&id).cloned();
        let down = &self.state.down;
        if op == Op::Delete {
            self.switch.multicast_delete(id)?;
            self.state.multicast.remove(&id);
            if let Some(old) = old {
                self.on_undo(move |switch, state| {
                    switch.multicast_insert(id, &effective_replicas(&old, &state.down))?;
                    state.multicast.insert(id, old);
                    Ok(())
                });
            }
            return Ok(());
        }
        check_multicast(group)?;
        let replicas = effective_replicas(group, down);
        if op == Op::Insert {
            self.switch.multicast_insert(id, &replicas)?;
        } else {
            self.switch.multicast_modify(id, &replicas)?;
        }
        self.state.multicast.insert(id, canonical_group(group));
        self.on_undo(move |switch, state| match old {
            Some(old) => {
                switch.multicast_modify(id, &effective_replicas(&old, &state.down))?;
                state.multicast.insert(id, old);
                Ok(())
            }
            None => {
                state.multicast.remove(&id);
                switch.multicast_delete(id)
            }
        });
        Ok(())
    }

    fn clone_session(&mut self, op: Op, given: &v1::CloneSessionEntry) -> Result<(), Fault> {
        let id = given.session_id;
        if id == 0 {
            return Err(Fault::invalid("session_id must be above 0"));
        }
        if id > SESSION_ID_MAX {
            return Err(Fault::out_of_range(format!(
                "session_id {id} is above {SESSION_ID_MAX}"
            )));
        }
        let old = self.state.clones.get(&id).cloned();
        if op == Op::Delete {
            self.switch.clone_delete(id)?;
            self.state.clones.remove(&id);
            if let Some(message) = old {
                let session = decode_session(&message)?;
                self.on_undo(move |switch, state| {
                    state.clones.insert(id, message);
                    switch.clone_insert(&session)
                });
            }
            return Ok(());
        }
        let session = decode_session(given)?;
        if op == Op::Insert {
            self.switch.clone_insert(&session)?;
        } else {
            self.switch.clone_modify(&session)?;
        }
        let mut message = given.clone();
        message.replicas.iter_mut().for_each(canonical_replica);
        self.state.clones.insert(id, message);
        match old {
            None => self.on_undo(move |switch, state| {
                state.clones.remove(&id);
                switch.clone_delete(id)
            }),
            Some(message) => {
                let session = decode_session(&message)?;
                self.on_undo(move |switch, state| {
                    state.clones.insert(id, message);
                    switch.clone_modify(&session)
                });
            }
        }
        Ok(())
    }
}

fn decode_session(given: &v1::CloneSessionEntry) -> Result<CloneSession, Fault> {
    let packet_length = u32::try_from(given.packet_length_bytes)
        .map_err(|_| Fault::invalid("packet_length_bytes is negative"))?;
    // v1model's priority has three bits, whatever number of queues a port has.
    if given.class_of_service > 7 {
        return Err(Fault::invalid(format!(
            "class_of_service {} is above 7",
            given.class_of_service
        )));
    }
    if given.replicas.iter().any(|r| !r.backup_replicas.is_empty()) {
        return Err(Fault::invalid(
            "backup_replicas are for multicast groups only",
        ));
    }
    let mut seen = BTreeSet::new();
    let replicas = given.replicas.iter().map(|r| {
        let replica = decode_replica(r)?;
        check_unique(&mut seen, replica)?;
        Ok(replica)
    });
    Ok(CloneSession {
        id: given.session_id,
        replicas: replicas.collect::<Result<_, Fault>>()?,
        class_of_service: given.class_of_service,
        packet_length,
    })
}

fn check_multicast(group: &v1::MulticastGroupEntry) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for replica in &group.replicas {
        let primary = decode_replica(replica)?;
        check_unique(&mut seen, primary)?;
        for backup in &replica.backup_replicas {
            let backup = decode_backup(backup)?;
            if backup.port == primary.port {
                return Err(Fault::invalid(format!(
                    "multicast group {}: a replica and its backup have the same port, {}",
                    group.multicast_group_id, backup.port
                )));
            }
            check_unique(&mut seen, backup)?;
        }
    }
    Ok(())
}

fn check_unique(seen: &mut BTreeSet<(Port, u16)>, replica: Replica) -> Result<(), Fault> {
    if seen.insert((replica.port, replica.instance)) {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "two replicas have port {} and instance {}",
        replica.port, replica.instance
    )))
}

/// The replicas to make while the ports of `down` are down: of each replica and its backups the
/// first whose port is up, and none if all are down.
pub(crate) fn effective_replicas(
    group: &v1::MulticastGroupEntry,
    down: &BTreeSet<Port>,
) -> Vec<Replica> {
    let first_up = |replica: &v1::Replica| {
        let primary = decode_replica(replica).ok()?;
        if replica.backup_replicas.is_empty() {
            return Some(primary);
        }
        let backups = replica
            .backup_replicas
            .iter()
            .filter_map(|b| decode_backup(b).ok());
        std::iter::once(primary)
            .chain(backups)
            .find(|r| !down.contains(&r.port))
    };
    group.replicas.iter().filter_map(first_up).collect()
}

fn decode_replica(replica: &v1::Replica) -> Result<Replica, Fault> {
    #[allow(deprecated)]
    let port = match &replica.port_kind {
        Some(PortKind::Port(port)) => decode_port(port, "replica")?,
        Some(PortKind::EgressPort(port)) => decode_port(&port.to_be_bytes(), "replica")?,
        None => return Err(Fault::invalid("a replica has no port")),
    };
    Ok(Replica {
        port,
        instance: decode_instance(replica.instance)?,
    })
}

fn decode_backup(backup: &v1::BackupReplica) -> Result<Replica, Fault> {
    Ok(Replica {
        port: decode_port(&backup.port, "backup replica")?,
        instance: decode_instance(backup.instance)?,
    })
}

fn decode_instance(instance: u32) -> Result<u16, Fault> {
    u16::try_from(instance)
        .map_err(|_| Fault::invalid(format!("instance {instance} is above 65535 (egress_rid)")))
}

fn canonical_group(group: &v1::MulticastGroupEntry) -> v1::MulticastGroupEntry {
    let mut group = group.clone();
    for replica in &mut group.replicas {
        canonical_replica(replica);
        for backup in &mut replica.backup_replicas {
            backup.port = p4runtime::bytes::canonical(&backup.port);
        }
    }
    group
}

fn canonical_replica(replica: &mut v1::Replica) {
    if let Some(PortKind::Port(port)) = &mut replica.port_kind {
        *port = p4runtime::bytes::canonical(port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(replicas: &[&[u8]]) -> v1::MulticastGroupEntry {
        let replica = |ports: &&[u8]| v1::Replica {
            port_kind: Some(PortKind::Port(vec![ports[0]])),
            instance: 1,
            backup_replicas: ports[1..]
                .iter()
                .map(|p| v1::BackupReplica {
                    port: vec![*p],
                    instance: 2,
                })
                .collect(),
        };
        v1::MulticastGroupEntry {
            multicast_group_id: 1,
            replicas: replicas.iter().map(replica).collect(),
            ..Default::default()
        }
    }

    fn ports(group: &v1::MulticastGroupEntry, down: &[Port]) -> Vec<Port> {
        let down = down.iter().copied().collect();
        effective_replicas(group, &down)
            .iter()
            .map(|r| r.port)
            .collect()
    }

    #[test]
    fn backups_take_over_in_order() {
        let g = group(&[&[1, 2, 3], &[4]]);
        assert_eq!(ports(&g, &[]), [1, 4]);
        assert_eq!(ports(&g, &[1]), [2, 4]);
        assert_eq!(ports(&g, &[1, 2]), [3, 4]);
        assert_eq!(ports(&g, &[1, 2, 3]), [4]);
        assert_eq!(ports(&g, &[2]), [1, 4]);
        assert_eq!(
            ports(&g, &[4]),
            [1, 4],
            "without backups the copy is made all the same"
        );
    }

    #[test]
    fn malformed_groups_are_refused() {
        assert!(check_multicast(&group(&[&[1, 2], &[3]])).is_ok());
        assert!(
            check_multicast(&group(&[&[1], &[1]])).is_err(),
            "same port and instance"
        );
        assert!(
            check_multicast(&group(&[&[1, 1]])).is_err(),
            "backup on the replica's port"
        );
        assert!(
            check_multicast(&group(&[&[1, 2], &[3, 2]])).is_err(),
            "same backup twice"
        );
        let mut no_port = group(&[&[1]]);
        no_port.replicas[0].port_kind = None;
        assert!(check_multicast(&no_port).is_err());
        let mut instance = group(&[&[1]]);
        instance.replicas[0].instance = 0x1_0000;
        assert!(check_multicast(&instance).is_err());
    }
}

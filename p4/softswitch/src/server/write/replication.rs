//! Multicast groups and clone sessions.

use std::collections::BTreeSet;

use p4runtime::rpc::Code;
use p4runtime::v1::{self, packet_replication_engine_entry::Type, replica::PortKind};

use super::{Op, Writer};
use crate::control::Replica;
use crate::ids::Port;
use crate::server::fault::Fault;
use crate::server::sdn::{Ports, canonical_port};
use crate::server::state::{Mirror, Multicast, State, effective_replicas};

/// Largest multicast group and clone session ids: v1model's `mcast_grp` has 16 bits, and clone
/// sessions beyond 15 bits do not fit the mirror ids of the target this one stands in for.
pub(crate) const MULTICAST_ID_MAX: u32 = 0xffff;
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

    fn multicast(&mut self, op: Op, given: &v1::MulticastGroupEntry) -> Result<(), Fault> {
        let id = given.multicast_group_id;
        if id == 0 {
            return Err(Fault::invalid("multicast_group_id must be above 0"));
        }
        if op == Op::Delete {
            self.switch.multicast_delete(id)?;
            let old = self.state.put_multicast(id, None);
            self.on_undo(move |switch, state| {
                if let Some(old) = old {
                    switch.multicast_insert(id, &effective_replicas(&old.choices, &state.down))?;
                    state.put_multicast(id, Some(old));
                }
                Ok(())
            });
            return Ok(());
        }
        if id > MULTICAST_ID_MAX {
            return Err(Fault::out_of_range(format!(
                "multicast_group_id {id} is above {MULTICAST_ID_MAX}"
            )));
        }
        let choices = decode_choices(&given.replicas, &self.ports())?;
        let before = self.state.multicast.get(&id).map_or(0, Multicast::replicas);
        let group = Multicast {
            message: canonical_group(given),
            choices,
        };
        self.check_replicas(before, group.replicas())?;
        let replicas = effective_replicas(&group.choices, &self.state.down);
        if op == Op::Insert {
            self.switch.multicast_insert(id, &replicas)?;
        } else {
            self.switch.multicast_modify(id, &replicas)?;
        }
        let old = self.state.put_multicast(id, Some(group));
        self.on_undo(move |switch, state| {
            match &old {
                Some(old) => {
                    switch.multicast_modify(id, &effective_replicas(&old.choices, &state.down))?;
                }
                None => switch.multicast_delete(id)?,
            }
            state.put_multicast(id, old);
            Ok(())
        });
        Ok(())
    }

    fn clone_session(&mut self, op: Op, given: &v1::CloneSessionEntry) -> Result<(), Fault> {
        let id = given.session_id;
        if id == 0 {
            return Err(Fault::invalid("session_id must be above 0"));
        }
        if op == Op::Delete {
            self.switch.clone_delete(id)?;
            let old = self.state.put_clone(id, None);
            self.on_undo(move |switch, state| {
                if let Some(old) = old {
                    switch.clone_insert(&old.effective(&state.down))?;
                    state.put_clone(id, Some(old));
                }
                Ok(())
            });
            return Ok(());
        }
        if id > SESSION_ID_MAX {
            return Err(Fault::out_of_range(format!(
                "session_id {id} is above {SESSION_ID_MAX}"
            )));
        }
        let session = decode_session(given, &self.ports())?;
        let before = self.state.clones.get(&id).map_or(0, Mirror::replicas);
        self.check_replicas(before, session.replicas())?;
        let effective = session.effective(&self.state.down);
        if op == Op::Insert {
            self.switch.clone_insert(&effective)?;
        } else {
            self.switch.clone_modify(&effective)?;
        }
        let old = self.state.put_clone(id, Some(session));
        self.on_undo(move |switch, state| {
            match &old {
                Some(old) => switch.clone_modify(&old.effective(&state.down))?,
                None => switch.clone_delete(id)?,
            }
            state.put_clone(id, old);
            Ok(())
        });
        Ok(())
    }

    /// Whether there is room for as many replicas in place of as many.
    fn check_replicas(&self, before: usize, after: usize) -> Result<(), Fault> {
        let most = self.author.limits.replicas;
        if self.state.replicas - before + after > most {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("groups and sessions may have {most} replicas in all"),
            ));
        }
        Ok(())
    }
}

fn decode_session(given: &v1::CloneSessionEntry, ports: &Ports<'_>) -> Result<Mirror, Fault> {
    let packet_length = u32::try_from(given.packet_length_bytes)
        .map_err(|_| Fault::invalid("packet_length_bytes is negative"))?;
    // v1model's priority has three bits, whatever number of queues a port has.
    if given.class_of_service > 7 {
        return Err(Fault::invalid(format!(
            "class_of_service {} is above 7",
            given.class_of_service
        )));
    }
    let choices = decode_choices(&given.replicas, ports)?;
    let mut message = given.clone();
    message.replicas.iter_mut().for_each(canonical_replica);
    Ok(Mirror {
        message,
        packet_length,
        choices,
    })
}

/// Of each replica: itself, then its backups.
fn decode_choices(replicas: &[v1::Replica], ports: &Ports<'_>) -> Result<Vec<Vec<Replica>>, Fault> {
    let mut seen = BTreeSet::new();
    let choices = replicas.iter().map(|replica| {
        let primary = decode_replica(replica, ports)?;
        check_unique(&mut seen, primary)?;
        let mut choices = vec![primary];
        for backup in &replica.backup_replicas {
            let backup = Replica {
                port: ports.decode(&backup.port, "backup replica")?,
                instance: decode_instance(backup.instance)?,
            };
            if backup.port == primary.port {
                return Err(Fault::invalid(format!(
                    "a replica and its backup have the same port, {}",
                    backup.port
                )));
            }
            check_unique(&mut seen, backup)?;
            choices.push(backup);
        }
        Ok(choices)
    });
    choices.collect()
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

impl State {
    /// Replaces what is noted of a multicast group; what was noted.
    pub(crate) fn put_multicast(&mut self, id: u32, group: Option<Multicast>) -> Option<Multicast> {
        self.replicas += group.as_ref().map_or(0, Multicast::replicas);
        let old = match group {
            Some(group) => self.multicast.insert(id, group),
            None => self.multicast.remove(&id),
        };
        self.replicas -= old.as_ref().map_or(0, Multicast::replicas);
        old
    }

    /// Replaces what is noted of a clone session; what was noted.
    fn put_clone(&mut self, id: u32, session: Option<Mirror>) -> Option<Mirror> {
        self.replicas += session.as_ref().map_or(0, Mirror::replicas);
        let old = match session {
            Some(session) => self.clones.insert(id, session),
            None => self.clones.remove(&id),
        };
        self.replicas -= old.as_ref().map_or(0, Mirror::replicas);
        old
    }
}

fn decode_replica(replica: &v1::Replica, ports: &Ports<'_>) -> Result<Replica, Fault> {
    #[allow(deprecated)]
    let port = match &replica.port_kind {
        Some(PortKind::Port(port)) => ports.decode(port, "replica")?,
        Some(PortKind::EgressPort(port)) => ports.decode_number(u64::from(*port), "replica")?,
        None => return Err(Fault::invalid("a replica has no port")),
    };
    Ok(Replica {
        port,
        instance: decode_instance(replica.instance)?,
    })
}

fn decode_instance(instance: u32) -> Result<u16, Fault> {
    u16::try_from(instance)
        .map_err(|_| Fault::invalid(format!("instance {instance} is above 65535 (egress_rid)")))
}

fn canonical_group(group: &v1::MulticastGroupEntry) -> v1::MulticastGroupEntry {
    let mut group = group.clone();
    group.replicas.iter_mut().for_each(canonical_replica);
    group
}

fn canonical_replica(replica: &mut v1::Replica) {
    if let Some(PortKind::Port(port)) = &mut replica.port_kind {
        canonical_port(port);
    }
    for backup in &mut replica.backup_replicas {
        canonical_port(&mut backup.port);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

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

    const PORTS: Ports<'static> = Ports {
        cpu: None,
        drop: 511,
        names: None,
    };

    fn check_multicast(group: &v1::MulticastGroupEntry) -> Result<(), Fault> {
        decode_choices(&group.replicas, &PORTS).map(|_| ())
    }

    fn ports(group: &v1::MulticastGroupEntry, down: &[Port]) -> Vec<Port> {
        let down = down.iter().copied().collect();
        effective_replicas(&decode_choices(&group.replicas, &PORTS).unwrap(), &down)
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

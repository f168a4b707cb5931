//! Where packets are copied to: multicast groups and clone sessions as values that can be compared.
//!
//! Both are lists of ports. The program's entries refer to them by number, so they are written before all entries
//! and deleted after all; what nobody asked for goes, as entries do.

use p4runtime::bytes::decode;
use p4runtime::entry::{clone_session, multicast_group, replica};
use p4runtime::v1;
use p4runtime::v1::packet_replication_engine_entry::Type;
use std::fmt;

/// What makes copies, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Copier {
    /// A multicast group.
    MulticastGroup(u32),
    /// A clone session.
    CloneSession(u32),
}

impl fmt::Display for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MulticastGroup(id) => write!(f, "multicast group {id}"),
            Self::CloneSession(id) => write!(f, "clone session {id}"),
        }
    }
}

/// The copies that are made of each packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Copies {
    /// Port and instance of each, in order.
    pub to: Vec<(u32, u32)>,
    /// Bytes of a clone that are kept; 0: all.
    pub packet_length: i32,
    /// Class of service of clones.
    pub class_of_service: u32,
}

impl Copies {
    /// Whole packets, one copy to each port, with this instance.
    #[must_use]
    pub fn to_ports(ports: impl IntoIterator<Item = u16>, instance: u32) -> Self {
        let mut to: Vec<(u32, u32)> = ports
            .into_iter()
            .map(|port| (port.into(), instance))
            .collect();
        to.sort_unstable();
        Self {
            to,
            ..Self::default()
        }
    }

    fn of(replicas: &[v1::Replica]) -> Self {
        let mut to: Vec<(u32, u32)> = replicas
            .iter()
            .map(|replica| (port(replica), replica.instance))
            .collect();
        to.sort_unstable();
        Self {
            to,
            ..Self::default()
        }
    }
}

/// Port of a replica, in either of the forms that there have been; `u32::MAX`, which is no port, where there is none.
fn port(replica: &v1::Replica) -> u32 {
    use v1::replica::PortKind;
    match &replica.port_kind {
        Some(PortKind::Port(bytes)) => decode(bytes)
            .ok()
            .and_then(|port| u32::try_from(port).ok())
            .unwrap_or(u32::MAX),
        #[allow(deprecated, reason = "bmv2's server answers in this form")]
        Some(PortKind::EgressPort(port)) => *port,
        None => u32::MAX,
    }
}

/// The comparable form of what a switch says; `None` for kinds that are not known.
pub(super) fn read(entry: &v1::PacketReplicationEngineEntry) -> Option<(Copier, Copies)> {
    match entry.r#type.as_ref()? {
        Type::MulticastGroupEntry(group) => Some((
            Copier::MulticastGroup(group.multicast_group_id),
            Copies::of(&group.replicas),
        )),
        Type::CloneSessionEntry(session) => Some((
            Copier::CloneSession(session.session_id),
            Copies {
                packet_length: session.packet_length_bytes,
                class_of_service: session.class_of_service,
                ..Copies::of(&session.replicas)
            },
        )),
    }
}

/// The wire form; without copies for deletion.
pub(super) fn entity(copier: Copier, copies: Option<&Copies>) -> v1::Entity {
    let none = Copies::default();
    let copies = copies.unwrap_or(&none);
    let to = copies
        .to
        .iter()
        .map(|(port, instance)| replica(u64::from(*port), *instance));
    let kind = match copier {
        Copier::MulticastGroup(id) => Type::MulticastGroupEntry(multicast_group(id, to)),
        Copier::CloneSession(id) => Type::CloneSessionEntry(v1::CloneSessionEntry {
            class_of_service: copies.class_of_service,
            ..clone_session(id, copies.packet_length, to)
        }),
    };
    pre(kind)
}

/// Patterns that read all groups and all sessions.
pub(super) fn patterns() -> [v1::Entity; 2] {
    [
        pre(Type::MulticastGroupEntry(v1::MulticastGroupEntry::default())),
        pre(Type::CloneSessionEntry(v1::CloneSessionEntry::default())),
    ]
}

fn pre(kind: Type) -> v1::Entity {
    let entry = v1::PacketReplicationEngineEntry { r#type: Some(kind) };
    v1::Entity {
        entity: Some(v1::entity::Entity::PacketReplicationEngineEntry(entry)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn there_and_back(copier: Copier, copies: &Copies) -> (Copier, Copies) {
        let Some(v1::entity::Entity::PacketReplicationEngineEntry(entry)) =
            entity(copier, Some(copies)).entity
        else {
            panic!("another kind");
        };
        read(&entry).unwrap()
    }

    #[test]
    fn both_kinds_survive_the_wire() {
        let session = Copies {
            packet_length: 128,
            class_of_service: 3,
            ..Copies::to_ports([510], 1)
        };
        for (copier, copies) in [
            (Copier::MulticastGroup(3), Copies::to_ports([9, 2, 300], 0)),
            (Copier::CloneSession(510), session),
        ] {
            assert_eq!(there_and_back(copier, &copies), (copier, copies));
        }
    }

    #[test]
    fn order_and_form_of_ports_do_not_matter() {
        #[allow(deprecated, reason = "bmv2's server answers in this form")]
        let replicas = [9u32, 2].map(|port| v1::Replica {
            port_kind: Some(v1::replica::PortKind::EgressPort(port)),
            ..v1::Replica::default()
        });
        assert_eq!(Copies::of(&replicas), Copies::to_ports([2, 9], 0));
    }
}

//! What the service remembers beside the switch: what P4Runtime gives back on read and the
//! packet path has no use for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use p4runtime::v1::{self, entity::Entity, packet_replication_engine_entry::Type as Replication};

use super::digests::Digests;
use super::entries::Notes;
use super::pipeline::Pipeline;
use crate::control::{CloneSession, Replica};
use crate::ids::Port;
use crate::switch::Switch;
use crate::{Exclusive, SharedSwitch};

/// Locks a mutex whose holders never leave it half-changed, so that a panic elsewhere does not
/// take the switch down.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The service's own state for one pipeline.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) multicast: BTreeMap<u32, Multicast>,
    pub(crate) clones: BTreeMap<u32, Mirror>,
    /// Replicas of all of these, backups included.
    pub(crate) replicas: usize,
    /// Groups as written, by profile and group id.
    pub(crate) groups: BTreeMap<(u32, u32), v1::ActionProfileGroup>,
    /// Notes of default entries, by table id.
    pub(crate) default_notes: BTreeMap<u32, Notes>,
    /// How much of each selector is in use, by profile id.
    pub(crate) loads: BTreeMap<u32, Load>,
    pub(crate) digests: Digests,
    /// The named role that wrote an entity; those of the default role are not listed.
    pub(crate) owners: HashMap<Owned, String>,
    /// Ports that are down, for backup replicas.
    pub(crate) down: BTreeSet<Port>,
}

/// How much of a selector is in use.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Entries with choices of their own.
    pub(crate) one_shots: i64,
    /// What all groups come to, one-shot ones included, as the selector counts size.
    pub(crate) size: i64,
}

/// A multicast group: the switch has each replica's chosen port only.
#[derive(Debug)]
pub(crate) struct Multicast {
    /// As written.
    pub(crate) message: v1::MulticastGroupEntry,
    /// Of each replica: itself, then its backups.
    pub(crate) choices: Vec<Vec<Replica>>,
}

impl Multicast {
    /// Replicas, backups included.
    pub(crate) fn replicas(&self) -> usize {
        self.choices.iter().map(Vec::len).sum()
    }
}

/// A clone session: the switch has each replica's chosen port only.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// As written.
    pub(crate) message: v1::CloneSessionEntry,
    /// Truncated to this many bytes; 0: not.
    pub(crate) packet_length: u32,
    /// Of each replica: itself, then its backups.
    pub(crate) choices: Vec<Vec<Replica>>,
}

impl Mirror {
    /// Replicas, backups included.
    pub(crate) fn replicas(&self) -> usize {
        self.choices.iter().map(Vec::len).sum()
    }

    /// What the switch is told while these ports are down.
    pub(crate) fn effective(&self, down: &BTreeSet<Port>) -> CloneSession {
        CloneSession {
            id: self.message.session_id,
            replicas: effective_replicas(&self.choices, down),
            class_of_service: self.message.class_of_service,
            packet_length: self.packet_length,
        }
    }
}

/// The replicas to make while the ports of `down` are down: of each replica and its backups the
/// first whose port is up, and none if all are down. A replica without backups is always made.
pub(crate) fn effective_replicas(choices: &[Vec<Replica>], down: &BTreeSet<Port>) -> Vec<Replica> {
    let first_up = |choices: &Vec<Replica>| match &choices[..] {
        [only] => Some(*only),
        several => several.iter().find(|r| !down.contains(&r.port)).copied(),
    };
    choices.iter().filter_map(first_up).collect()
}

impl State {
    /// Tells the switch which replicas to make now, of the groups and sessions that have backups.
    pub(crate) fn settle_backups(&self, switch: &mut Switch) {
        let backed = |choices: &[Vec<Replica>]| choices.iter().any(|c| c.len() > 1);
        for (id, group) in &self.multicast {
            if backed(&group.choices) {
                let replicas = effective_replicas(&group.choices, &self.down);
                if let Err(error) = switch.multicast_modify(*id, &replicas) {
                    tracing::error!(%error, group = id, "backup replicas could not take over");
                }
            }
        }
        for (id, session) in &self.clones {
            if backed(&session.choices)
                && let Err(error) = switch.clone_modify(&session.effective(&self.down))
            {
                tracing::error!(%error, session = id, "backup replicas could not take over");
            }
        }
    }
}

/// What belongs to the role that wrote it, table entries apart, which know it themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owned {
    /// Action profile and member id.
    Member(u32, u32),
    /// Action profile and group id.
    Group(u32, u32),
    Multicast(u32),
    Clone(u32),
    ValueSet(u32),
    Digest(u32),
}

impl Owned {
    /// The key of an entity of these kinds.
    pub(crate) fn of(entity: &Entity) -> Option<Self> {
        Some(match entity {
            Entity::ActionProfileMember(m) => Owned::Member(m.action_profile_id, m.member_id),
            Entity::ActionProfileGroup(g) => Owned::Group(g.action_profile_id, g.group_id),
            Entity::PacketReplicationEngineEntry(entry) => match entry.r#type.as_ref()? {
                Replication::MulticastGroupEntry(g) => Owned::Multicast(g.multicast_group_id),
                Replication::CloneSessionEntry(s) => Owned::Clone(s.session_id),
            },
            Entity::ValueSetEntry(set) => Owned::ValueSet(set.value_set_id),
            Entity::DigestEntry(digest) => Owned::Digest(digest.digest_id),
            _ => return None,
        })
    }
}

impl State {
    /// Notes who wrote an entity; `None`: it is gone.
    pub(crate) fn set_owner(&mut self, key: Owned, role: Option<&str>) {
        match role {
            Some(role) if !role.is_empty() => {
                self.owners.insert(key, role.to_owned());
            }
            _ => {
                if !self.owners.is_empty() {
                    self.owners.remove(&key);
                }
            }
        }
    }

    /// Whether the entity belongs to the role; every one does to the role "".
    pub(crate) fn belongs(&self, key: Owned, role: &str) -> bool {
        role.is_empty() || self.owners.get(&key).is_some_and(|owner| owner == role)
    }
}

/// A pipeline and the switch that runs it, or will run it once committed.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) cookie: Option<u64>,
    pub(crate) switch: SharedSwitch,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Target {
    /// Locks the state, then the switch: always in this order.
    pub(crate) fn lock(&self) -> (MutexGuard<'_, State>, Exclusive<'_>) {
        let state = lock(&self.state);
        let switch = self.switch.lock();
        (state, switch)
    }

    /// Lets those in who wait for the switch: its lock is not a fair one, and who takes it again
    /// at once would starve them.
    pub(crate) fn pause() {
        std::thread::yield_now();
    }
}

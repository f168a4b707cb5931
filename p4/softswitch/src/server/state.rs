//! What the service remembers beside the switch: what P4Runtime gives back on read and the
//! packet path has no use for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use p4runtime::v1;

use super::digests::Digests;
use super::entries::Notes;
use super::pipeline::Pipeline;
use crate::SharedSwitch;
use crate::ids::Port;
use crate::switch::Switch;

/// Locks a mutex whose holders never leave it half-changed, so that a panic elsewhere does not
/// take the switch down.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The service's own state for one pipeline.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Multicast groups as written: the switch has each replica's chosen port only.
    pub(crate) multicast: BTreeMap<u32, v1::MulticastGroupEntry>,
    /// Clone sessions as written.
    pub(crate) clones: BTreeMap<u32, v1::CloneSessionEntry>,
    /// Groups as written, by profile and group id.
    pub(crate) groups: BTreeMap<(u32, u32), v1::ActionProfileGroup>,
    /// Notes of default entries, by table id.
    pub(crate) default_notes: BTreeMap<u32, Notes>,
    /// Entries with one-shot action sets, by profile id.
    pub(crate) one_shots: BTreeMap<u32, usize>,
    pub(crate) digests: Digests,
    /// Ports that are down, for backup replicas.
    pub(crate) down: BTreeSet<Port>,
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
    pub(crate) fn lock(&self) -> (MutexGuard<'_, State>, MutexGuard<'_, Switch>) {
        let state = lock(&self.state);
        let switch = lock(&self.switch);
        (state, switch)
    }
}

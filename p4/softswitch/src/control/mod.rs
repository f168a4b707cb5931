//! The control plane's side of a [`Switch`]: typed operations by dense ids.
//!
//! Names are resolved once, with [`crate::Program`]'s `*_id` functions. All
//! operations are synchronous and validate everything; a refused operation
//! changes nothing. Times are the switch's clock in ns, as given to
//! [`Switch::ingress`].
//!
//! Entries of tables without priorities are identified by their key, the
//! others by key and priority.

mod error;
mod types;

pub use error::{ControlError, ErrorKind};
pub use types::*;

use crate::ids::{CounterId, MeterId, Port, ProfileId, RegisterId, TableId, ValueSetId};
use crate::switch::Switch;
use crate::value::Value;

type Result<T> = std::result::Result<T, ControlError>;

/// Tables.
impl Switch {
    /// Adds an entry. Its direct counter starts at zero, its direct meter
    /// unset; `now` counts as its first hit for the idle timeout.
    pub fn table_insert(
        &mut self,
        table: TableId,
        entry: &TableEntry,
        now: u64,
    ) -> Result<EntryHandle> {
        unimplemented!("{table:?} {entry:?} {now}")
    }

    /// Replaces action, idle timeout and metadata of the entry with this key
    /// (and priority). Counter and meter stay.
    pub fn table_modify(
        &mut self,
        table: TableId,
        entry: &TableEntry,
        now: u64,
    ) -> Result<EntryHandle> {
        unimplemented!("{table:?} {entry:?} {now}")
    }

    /// Removes the entry with this key (and priority).
    pub fn table_delete(
        &mut self,
        table: TableId,
        key: &[MatchField],
        priority: i32,
    ) -> Result<()> {
        unimplemented!("{table:?} {key:?} {priority}")
    }

    /// The entry with this key (and priority), if it is there. The key is
    /// validated as for an insert.
    pub fn table_find(
        &self,
        table: TableId,
        key: &[MatchField],
        priority: i32,
    ) -> Result<Option<EntryHandle>> {
        unimplemented!("{table:?} {key:?} {priority}")
    }

    /// Reads an entry back.
    pub fn table_get(&self, table: TableId, entry: EntryHandle) -> Result<EntryView> {
        unimplemented!("{table:?} {entry:?}")
    }

    /// The first entry after `after` (or the first at all), in handle order:
    /// lets a reader stream a large table without holding the switch.
    pub fn table_next(
        &self,
        table: TableId,
        after: Option<EntryHandle>,
    ) -> Result<Option<EntryHandle>> {
        unimplemented!("{table:?} {after:?}")
    }

    /// Entries in the table, the program's own included.
    pub fn table_len(&self, table: TableId) -> Result<usize> {
        unimplemented!("{table:?}")
    }

    /// What a miss does now; `None`: nothing.
    pub fn default_action(&self, table: TableId) -> Result<Option<EntryAction>> {
        unimplemented!("{table:?}")
    }

    /// Sets what a miss does. Refused for const default actions.
    pub fn set_default_action(&mut self, table: TableId, action: &EntryAction) -> Result<()> {
        unimplemented!("{table:?} {action:?}")
    }

    /// Back to the program's own default action.
    pub fn reset_default_action(&mut self, table: TableId) -> Result<()> {
        unimplemented!("{table:?}")
    }

    /// Sets the direct counter of an entry.
    pub fn set_entry_counter(
        &mut self,
        table: TableId,
        entry: EntryHandle,
        data: CounterData,
    ) -> Result<()> {
        unimplemented!("{table:?} {entry:?} {data:?}")
    }

    /// Sets the direct meter of an entry; `None`: always green.
    pub fn set_entry_meter(
        &mut self,
        table: TableId,
        entry: EntryHandle,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        unimplemented!("{table:?} {entry:?} {config:?}")
    }

    /// Entries whose idle timeout has run out at `now`. Each is reported once,
    /// and again only after another hit or write.
    pub fn take_idle(&mut self, now: u64) -> Vec<(TableId, EntryHandle)> {
        unimplemented!("{now}")
    }
}

/// Action profiles and selectors.
impl Switch {
    /// Adds a member.
    pub fn member_insert(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        unimplemented!("{profile:?} {member:?}")
    }

    /// Replaces a member's action.
    pub fn member_modify(&mut self, profile: ProfileId, member: &Member) -> Result<()> {
        unimplemented!("{profile:?} {member:?}")
    }

    /// Removes a member that no entry and no group uses.
    pub fn member_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        unimplemented!("{profile:?} {id}")
    }

    /// All members, by number.
    pub fn members(&self, profile: ProfileId) -> Result<Vec<Member>> {
        unimplemented!("{profile:?}")
    }

    /// Adds a group.
    pub fn group_insert(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        unimplemented!("{profile:?} {group:?}")
    }

    /// Replaces a group's members.
    pub fn group_modify(&mut self, profile: ProfileId, group: &Group) -> Result<()> {
        unimplemented!("{profile:?} {group:?}")
    }

    /// Removes a group that no entry uses.
    pub fn group_delete(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        unimplemented!("{profile:?} {id}")
    }

    /// All groups, by number.
    pub fn groups(&self, profile: ProfileId) -> Result<Vec<Group>> {
        unimplemented!("{profile:?}")
    }

    /// Tells selectors that a port went up or down, for watched members. All
    /// ports are up until said otherwise.
    pub fn set_port_up(&mut self, port: Port, up: bool) {
        unimplemented!("{port} {up}")
    }
}

/// Counters, meters, registers and value sets.
impl Switch {
    /// Reads a cell of an indirect counter.
    pub fn counter_read(&self, counter: CounterId, index: u64) -> Result<CounterData> {
        unimplemented!("{counter:?} {index}")
    }

    /// Sets a cell of an indirect counter.
    pub fn counter_write(
        &mut self,
        counter: CounterId,
        index: u64,
        data: CounterData,
    ) -> Result<()> {
        unimplemented!("{counter:?} {index} {data:?}")
    }

    /// Reads a cell of an indirect meter; `None`: not set, always green.
    pub fn meter_read(&self, meter: MeterId, index: u64) -> Result<Option<MeterConfig>> {
        unimplemented!("{meter:?} {index}")
    }

    /// Sets a cell of an indirect meter, with full buckets; `None`: unset.
    pub fn meter_write(
        &mut self,
        meter: MeterId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        unimplemented!("{meter:?} {index} {config:?}")
    }

    /// Reads a cell of a register array.
    pub fn register_read(&self, register: RegisterId, index: u64) -> Result<Value> {
        unimplemented!("{register:?} {index}")
    }

    /// Writes a cell of a register array.
    pub fn register_write(
        &mut self,
        register: RegisterId,
        index: u64,
        value: &Value,
    ) -> Result<()> {
        unimplemented!("{register:?} {index} {value:?}")
    }

    /// The members of a parser value set.
    pub fn value_set(&self, set: ValueSetId) -> Result<Vec<ValueSetMember>> {
        unimplemented!("{set:?}")
    }

    /// Replaces the members of a parser value set.
    pub fn set_value_set(&mut self, set: ValueSetId, members: &[ValueSetMember]) -> Result<()> {
        unimplemented!("{set:?} {members:?}")
    }
}

/// Replication and digests.
impl Switch {
    /// Adds a multicast group. Group 0 does not exist.
    pub fn multicast_insert(&mut self, id: u32, replicas: &[Replica]) -> Result<()> {
        unimplemented!("{id} {replicas:?}")
    }

    /// Replaces a multicast group's replicas.
    pub fn multicast_modify(&mut self, id: u32, replicas: &[Replica]) -> Result<()> {
        unimplemented!("{id} {replicas:?}")
    }

    /// Removes a multicast group.
    pub fn multicast_delete(&mut self, id: u32) -> Result<()> {
        unimplemented!("{id}")
    }

    /// All multicast groups, by number.
    pub fn multicast_groups(&self) -> Vec<(u32, Vec<Replica>)> {
        unimplemented!()
    }

    /// Adds a clone session.
    pub fn clone_insert(&mut self, session: &CloneSession) -> Result<()> {
        unimplemented!("{session:?}")
    }

    /// Replaces a clone session.
    pub fn clone_modify(&mut self, session: &CloneSession) -> Result<()> {
        unimplemented!("{session:?}")
    }

    /// Removes a clone session.
    pub fn clone_delete(&mut self, id: u32) -> Result<()> {
        unimplemented!("{id}")
    }

    /// All clone sessions, by number.
    pub fn clone_sessions(&self) -> Vec<CloneSession> {
        unimplemented!()
    }

    /// Takes the digest messages sent since the last call. At most
    /// [`crate::SwitchConfig::digest_limit`] are kept; later ones are dropped
    /// and counted.
    pub fn take_digests(&mut self) -> Vec<DigestMessage> {
        unimplemented!()
    }
}

//! Values that the control plane hands to the switch and gets back.

use crate::ids::{ActionId, DigestId, Port};
use crate::value::Value;

/// One field of an entry's key. The kind must be the table's; `Ternary`,
/// `Range` and `Optional` fields that match anything have their own form so
/// that don't-care is unambiguous.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatchField {
    /// The whole field equals the value.
    Exact(Value),
    /// The first `prefix_len` bits equal those of the value. Length 0 matches
    /// anything.
    Lpm {
        /// Bits beyond the prefix must be zero.
        value: Value,
        /// 0 to the field's width.
        prefix_len: u32,
    },
    /// The bits of the mask equal those of the value. Mask 0 matches anything.
    Ternary {
        /// Bits outside the mask must be zero.
        value: Value,
        /// Which bits count.
        mask: Value,
    },
    /// `low <= field <= high`.
    Range {
        /// Inclusive lower bound.
        low: Value,
        /// Inclusive upper bound, at least `low`.
        high: Value,
    },
    /// The value, or anything.
    Optional(Option<Value>),
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// One value per parameter.
    pub params: Vec<Value>,
}

/// One choice of a one-shot action set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedCall {
    /// What to run.
    pub call: ActionCall,
    /// Share of the flows, at least 1.
    pub weight: u32,
    /// The choice is used only while this port is up.
    pub watch_port: Option<Port>,
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// Run an action (tables without profile).
    Call(ActionCall),
    /// Run a member's action.
    Member(u32),
    /// Run the action of a member of the group, chosen by hash.
    Group(u32),
    /// Like a group of its own, written with the entry (selectors only).
    OneShot {
        /// What is chosen from.
        choices: Vec<WeightedCall>,
        /// Chosen at random for every packet, rather than by the selector's hash.
        random: bool,
    },
}

/// A table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// One match per key field, in the table's order.
    pub key: Vec<MatchField>,
    /// Higher wins. At least 1 in tables with priorities, 0 elsewhere.
    pub priority: i32,
    /// What to do on a hit.
    pub action: EntryAction,
    /// ns without a hit after which the entry is reported; 0 never.
    pub idle_timeout: u64,
    /// The controller's own bytes, given back on read.
    pub metadata: Vec<u8>,
}

/// Names an entry until it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryHandle(pub u32);

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterData {
    /// Packets.
    pub packets: u64,
    /// Bytes, as the packets were when they entered the switch.
    pub bytes: u64,
}

/// A three-colour meter's rates (RFC 2698, RFC 2697), in the meter's unit per
/// second, and burst sizes in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate.
    pub cir: u64,
    /// Committed burst size.
    pub cburst: u64,
    /// Peak information rate, at least `cir`.
    pub pir: u64,
    /// Peak burst size.
    pub pburst: u64,
    /// Excess burst size. If it is not 0, the meter is a single-rate one (RFC 2697), and the
    /// peak rate and burst are those committed.
    pub eburst: u64,
}

/// An entry as read back, with its direct resources.
#[derive(Clone, Debug)]
pub struct EntryView {
    /// The entry as it was written.
    pub entry: TableEntry,
    /// The program's own (`const entries`).
    pub is_const: bool,
    /// Direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// Direct meter configuration, if the table has one and it was set.
    pub meter: Option<MeterConfig>,
    /// What the direct meter gave which colour (green, yellow, red), if the table has one.
    pub meter_counts: Option<[CounterData; 3]>,
    /// When it was last hit, or else inserted, in ns of the switch's clock.
    /// Kept only for tables with idle timeouts.
    pub last_hit: u64,
}

/// The direct resources of a table's default entry: what misses count and meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultResources {
    /// Direct counter, if the table has one.
    pub counter: Option<CounterData>,
    /// Direct meter configuration, if the table has one and it was set. Misses are metered only
    /// then.
    pub meter: Option<MeterConfig>,
    /// What the direct meter gave which colour (green, yellow, red), if the table has one.
    pub meter_counts: Option<[CounterData; 3]>,
}

/// A member of an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The controller's number.
    pub id: u32,
    /// What it runs.
    pub call: ActionCall,
}

/// A member within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The member's number.
    pub member: u32,
    /// Share of the flows, at least 1.
    pub weight: u32,
    /// The member is used only while this port is up.
    pub watch_port: Option<Port>,
}

/// A group of an action selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The controller's number.
    pub id: u32,
    /// Largest sum of weights it may reach; 0: no limit of its own.
    pub max_size: u32,
    /// Its members.
    pub members: Vec<GroupMember>,
}

/// One copy made by a multicast group or a clone session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Where the copy goes.
    pub port: Port,
    /// `standard_metadata.egress_rid` of the copy.
    pub instance: u16,
}

/// A clone session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneSession {
    /// Number that the program passes to `clone`.
    pub id: u32,
    /// The copies.
    pub replicas: Vec<Replica>,
    /// Queue (priority) of the copies.
    pub class_of_service: u32,
    /// Copies are cut to this many bytes; 0: not cut.
    pub packet_length: u32,
}

/// A member of a parser value set: value and mask per field, as ternary,
/// exact (`mask` all ones) or, for a single field, a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueSetMember {
    /// One match per field of the set.
    pub fields: Vec<MatchField>,
}

/// One message that the program sent to the controller with `digest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestMessage {
    /// Which digest.
    pub digest: DigestId,
    /// One value per field.
    pub values: Vec<Value>,
}

//! What a loaded program declares, as the control plane needs to know it.

use crate::ids::{ActionId, CounterId, MeterId, ProfileId, TableId};

/// How one key field of a table is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// The whole field.
    Exact,
    /// Longest prefix; at most one per table.
    Lpm,
    /// Value and mask; the entry's priority decides. p4c writes P4's
    /// `optional` as this kind.
    Ternary,
    /// From low to high, both inclusive; the entry's priority decides.
    Range,
    /// The field or nothing; the entry's priority decides.
    Optional,
}

/// One key field of a table.
#[derive(Clone, Debug)]
pub struct KeyInfo {
    /// Name of the match field, as in P4Info.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// How it is matched.
    pub kind: MatchKind,
}

/// Where a table's actions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// Each entry has its own action.
    Direct,
    /// Entries refer to members of an action profile.
    Profile(ProfileId),
    /// Entries refer to members or groups of an action selector.
    Selector(ProfileId),
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Full P4 name, as in P4Info.
    pub name: String,
    /// Most entries it holds.
    pub size: usize,
    /// Key fields in the order of [`crate::control::TableEntry::key`].
    pub keys: Vec<KeyInfo>,
    /// Actions it may run.
    pub actions: Vec<ActionId>,
    /// Where the actions of entries come from.
    pub implementation: Implementation,
    /// The default action may not be changed.
    pub const_default: bool,
    /// The entries are the program's own and may not be changed; see
    /// [`crate::Program::set_preinitialized`].
    pub const_entries: bool,
    /// Entries have a priority (a key field is ternary, range or optional).
    pub has_priority: bool,
    /// Direct counter, if it has one.
    pub direct_counter: Option<CounterId>,
    /// Direct meter, if it has one.
    pub direct_meter: Option<MeterId>,
    /// Entries may have an idle timeout.
    pub idle_timeout: bool,
}

/// A parameter of an action.
#[derive(Clone, Debug)]
pub struct ParamInfo {
    /// Name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
}

/// An action. p4c gives some actions (`NoAction`) one copy per table, so a name
/// alone is not unique: resolve it with [`crate::Program::table_action`].
#[derive(Clone, Debug)]
pub struct ActionInfo {
    /// Full P4 name, as in P4Info.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<ParamInfo>,
}

/// An action profile or selector.
#[derive(Clone, Debug)]
pub struct ProfileInfo {
    /// Full P4 name.
    pub name: String,
    /// Most members (for a selector: most members over all groups).
    pub size: usize,
    /// Has groups.
    pub selector: bool,
    /// Tables that use it.
    pub tables: Vec<TableId>,
    /// Actions that its tables share.
    pub actions: Vec<ActionId>,
}

/// A counter array. Packets and bytes are always both counted.
#[derive(Clone, Debug)]
pub struct CounterInfo {
    /// Full P4 name.
    pub name: String,
    /// Cells; for a direct counter the size of its table.
    pub size: usize,
    /// The table, if the counter is direct.
    pub direct: Option<TableId>,
}

/// A CRC whose parameters are the control plane's (`crc16_custom`, `crc32_custom`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomHashInfo {
    /// The JSON's name of the calculation, or the full name of the action selector.
    pub name: String,
    /// Bits of the CRC.
    pub bits: u32,
    /// The statement that it is for, on one line, if the JSON has it.
    pub source: String,
}

/// What a meter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterUnit {
    /// Rates in packets/s, bursts in packets.
    Packets,
    /// Rates in bytes/s, bursts in bytes.
    Bytes,
}

/// A meter array.
#[derive(Clone, Debug)]
pub struct MeterInfo {
    /// Full P4 name.
    pub name: String,
    /// Cells; for a direct meter the size of its table.
    pub size: usize,
    /// What it measures.
    pub unit: MeterUnit,
    /// The table, if the meter is direct.
    pub direct: Option<TableId>,
}

/// A register array.
#[derive(Clone, Debug)]
pub struct RegisterInfo {
    /// Full P4 name.
    pub name: String,
    /// Cells.
    pub size: usize,
    /// Width of a cell in bits.
    pub width: u32,
}

/// A parser value set.
#[derive(Clone, Debug)]
pub struct ValueSetInfo {
    /// Full P4 name.
    pub name: String,
    /// Widths in bits of the fields of one member, in order.
    pub widths: Vec<u32>,
}

/// A digest.
#[derive(Clone, Debug)]
pub struct DigestInfo {
    /// Full P4 name.
    pub name: String,
    /// Widths in bits of the fields of one message.
    pub widths: Vec<u32>,
}

/// A name that the program does not have.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the program has no {kind} {name:?}; it has {}", list(.known))]
pub struct UnknownName {
    /// What was looked for: "table", "action"...
    pub kind: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// The names there are.
    pub known: Vec<String>,
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        _ => names.join(", "),
    }
}

/// Everything a program declares; part of [`crate::Program`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Info {
    pub(crate) tables: Vec<TableInfo>,
    pub(crate) actions: Vec<ActionInfo>,
    pub(crate) profiles: Vec<ProfileInfo>,
    pub(crate) counters: Vec<CounterInfo>,
    pub(crate) meters: Vec<MeterInfo>,
    pub(crate) registers: Vec<RegisterInfo>,
    pub(crate) value_sets: Vec<ValueSetInfo>,
    pub(crate) digests: Vec<DigestInfo>,
    pub(crate) custom_hashes: Vec<CustomHashInfo>,
}

impl RegisterInfo {
    /// 64-bit limbs per cell.
    pub(crate) fn limbs(&self) -> usize {
        self.width.div_ceil(64).max(1) as usize
    }
}

pub(crate) fn find<T>(
    kind: &'static str,
    name: &str,
    items: &[T],
    name_of: impl Fn(&T) -> &str,
) -> Result<u32, UnknownName> {
    items
        .iter()
        .position(|item| name_of(item) == name)
        .map(|index| index as u32)
        .ok_or_else(|| UnknownName {
            kind,
            name: name.to_owned(),
            known: items.iter().map(|i| name_of(i).to_owned()).collect(),
        })
}

impl CounterInfo {
    /// The counter is indexed by number rather than by table entry.
    pub fn is_indirect(&self) -> bool {
        self.direct.is_none()
    }
}

impl MeterInfo {
    /// The meter is indexed by number rather than by table entry.
    pub fn is_indirect(&self) -> bool {
        self.direct.is_none()
    }
}

impl TableInfo {
    /// The direct resources' owner has no key: it only ever runs its default
    /// action.
    pub fn is_keyless(&self) -> bool {
        self.keys.is_empty()
    }
}

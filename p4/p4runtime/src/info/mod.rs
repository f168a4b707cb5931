//! The P4Info of a program, indexed: objects by id, full name or alias, and
//! errors that say which names there are.

mod error;
mod objects;

use std::collections::HashMap;

pub use error::Error;
pub use objects::{Field, MatchKind, Table};
pub(crate) use objects::{as_default, in_entries};

use crate::config::v1::{
    Action, ActionProfile, ControllerPacketMetadata, Counter, Digest, DirectCounter, DirectMeter,
    ExternInstance, MatchField, Meter, P4Info, Preamble, Register, ValueSet, action, match_field,
};

/// The kinds of objects that a P4Info lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A match-action table.
    Table,
    /// An action.
    Action,
    /// An action profile or selector.
    ActionProfile,
    /// An array of counters.
    Counter,
    /// A counter per entry of a table.
    DirectCounter,
    /// An array of meters.
    Meter,
    /// A meter per entry of a table.
    DirectMeter,
    /// The header of packet-in or packet-out.
    PacketMetadata,
    /// A parser value set.
    ValueSet,
    /// An array of registers.
    Register,
    /// A digest.
    Digest,
    /// An instance of an extern of the architecture.
    Extern,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Table => "table",
            Kind::Action => "action",
            Kind::ActionProfile => "action profile",
            Kind::Counter => "counter",
            Kind::DirectCounter => "direct counter",
            Kind::Meter => "meter",
            Kind::DirectMeter => "direct meter",
            Kind::PacketMetadata => "controller header",
            Kind::ValueSet => "value set",
            Kind::Register => "register",
            Kind::Digest => "digest",
            Kind::Extern => "extern instance",
        })
    }
}

/// How to ask for an object: by id, or by full name or alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector<'s> {
    /// By its P4Info id.
    Id(u32),
    /// By its full name or its alias.
    Name(&'s str),
}

impl From<u32> for Selector<'_> {
    fn from(id: u32) -> Self {
        Selector::Id(id)
    }
}

impl<'s> From<&'s str> for Selector<'s> {
    fn from(name: &'s str) -> Self {
        Selector::Name(name)
    }
}

impl<'s> From<&'s String> for Selector<'s> {
    fn from(name: &'s String) -> Self {
        Selector::Name(name)
    }
}

impl std::fmt::Display for Selector<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Selector::Id(id) => write!(f, "id {id} (0x{id:08x})"),
            Selector::Name(name) => write!(f, "`{name}`"),
        }
    }
}

/// A P4Info that has been checked for consistency and can be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    info: P4Info,
    /// Where each object is: its kind, and its place in that kind's list.
    by_id: HashMap<(Kind, u32), usize>,
    /// Full names and aliases to places.
    by_name: HashMap<(Kind, String), usize>,
    /// Extern instances in one list: (extern type, instance).
    externs: Vec<(usize, usize)>,
}

/// Full name of the message, for the text format.
const P4INFO: &str = "p4.config.v1.P4Info";

impl Index {
    /// Indexes a P4Info.
    ///
    /// # Errors
    /// When ids or names are missing or double, or refer to nothing.
    pub fn new(info: P4Info) -> Result<Self, Error> {
        let externs = info
            .externs
            .iter()
            .enumerate()
            .flat_map(|(kind, list)| (0..list.instances.len()).map(move |i| (kind, i)))
            .collect();
        let mut index = Index {
            info,
            by_id: HashMap::new(),
            by_name: HashMap::new(),
            externs,
        };
        for kind in ALL_KINDS {
            index.enter(kind)?;
        }
        index.check_references()?;
        Ok(index)
    }

    /// Reads p4c's text format and indexes it.
    ///
    /// # Errors
    /// As [`Index::new`], and when the text is not a P4Info.
    pub fn parse_text(text: &str) -> Result<Self, Error> {
        Self::new(crate::text::parse(P4INFO, text)?)
    }

    /// The P4Info in the text format.
    ///
    /// # Errors
    /// Never for a message that was made with this crate's types.
    pub fn to_text(&self) -> Result<String, crate::text::Error> {
        crate::text::print(P4INFO, &self.info, true)
    }

    /// What was indexed.
    #[must_use]
    pub fn p4info(&self) -> &P4Info {
        &self.info
    }

    /// The architecture, such as `v1model`; empty when P4Info does not say.
    #[must_use]
    pub fn arch(&self) -> &str {
        self.info.pkg_info.as_ref().map_or("", |pkg| &pkg.arch)
    }

    fn enter(&mut self, kind: Kind) -> Result<(), Error> {
        let mut ids = Vec::new();
        let mut names = Vec::new();
        for (place, preamble) in self.preambles(kind).into_iter().enumerate() {
            let Some(preamble) = preamble.filter(|p| p.id != 0 && !p.name.is_empty()) else {
                return Err(Error::Nameless { kind, place });
            };
            ids.push((preamble.id, preamble.name.clone(), place));
            names.push((preamble.name.clone(), place));
            if !preamble.alias.is_empty() && preamble.alias != preamble.name {
                names.push((preamble.alias.clone(), place));
            }
        }
        for (id, name, place) in ids {
            // The types of externs have id spaces of their own.
            if self.by_id.insert((kind, id), place).is_some() && kind != Kind::Extern {
                return Err(Error::DoubleId { kind, id, name });
            }
        }
        for (name, place) in names {
            if let Some(other) = self.by_name.insert((kind, name.clone()), place)
                && other != place
            {
                return Err(Error::DoubleName { kind, name });
            }
        }
        Ok(())
    }

    /// The preambles of a kind, in the order of P4Info.
    fn preambles(&self, kind: Kind) -> Vec<Option<&Preamble>> {
        macro_rules! list {
            ($field:ident) => {
                self.info
                    .$field
                    .iter()
                    .map(|o| o.preamble.as_ref())
                    .collect()
            };
        }
        match kind {
            Kind::Table => list!(tables),
            Kind::Action => list!(actions),
            Kind::ActionProfile => list!(action_profiles),
            Kind::Counter => list!(counters),
            Kind::DirectCounter => list!(direct_counters),
            Kind::Meter => list!(meters),
            Kind::DirectMeter => list!(direct_meters),
            Kind::PacketMetadata => list!(controller_packet_metadata),
            Kind::ValueSet => list!(value_sets),
            Kind::Register => list!(registers),
            Kind::Digest => list!(digests),
            Kind::Extern => (self.externs.iter())
                .map(|&(kind, i)| self.info.externs[kind].instances[i].preamble.as_ref())
                .collect(),
        }
    }

    fn check_references(&self) -> Result<(), Error> {
        let check = |kind, id: u32, from: &str| {
            if self.by_id.contains_key(&(kind, id)) {
                return Ok(());
            }
            let from = from.to_owned();
            Err(Error::Dangling { from, kind, id })
        };
        for table in self.tables() {
            let name = table.name();
            for action in &table.proto().action_refs {
                check(Kind::Action, action.id, name)?;
            }
            if table.proto().implementation_id != 0 {
                check(Kind::ActionProfile, table.proto().implementation_id, name)?;
            }
            for &id in &table.proto().direct_resource_ids {
                let meter = self.by_id.contains_key(&(Kind::DirectMeter, id));
                if !meter {
                    check(Kind::DirectCounter, id, name)?;
                }
            }
            for field in &table.proto().match_fields {
                if field.id == 0 || field.bitwidth < 0 || field.r#match.is_none() {
                    return Err(Error::BadField {
                        within: name.to_owned(),
                        field: field.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    fn place(&self, kind: Kind, selector: Selector<'_>) -> Result<usize, Error> {
        let found = match selector {
            Selector::Id(id) => self.by_id.get(&(kind, id)),
            Selector::Name(name) => self.by_name.get(&(kind, name.to_owned())),
        };
        found
            .copied()
            .ok_or_else(|| Error::unknown(kind.to_string(), selector, None, self.names(kind)))
    }

    /// The names of a kind's objects (the alias, where there is one), in the
    /// order of P4Info.
    #[must_use]
    pub fn names(&self, kind: Kind) -> Vec<&str> {
        (self.preambles(kind).into_iter().flatten())
            .map(short_name)
            .collect()
    }

    /// The kind of the object with this id, whatever it is.
    #[must_use]
    pub fn kind_of(&self, id: u32) -> Option<Kind> {
        ALL_KINDS
            .into_iter()
            .find(|kind| self.by_id.contains_key(&(*kind, id)))
    }

    /// The short name of an object, or the id in hexadecimal if there is none.
    #[must_use]
    pub fn name_of(&self, kind: Kind, id: u32) -> String {
        (self.by_id.get(&(kind, id)))
            .and_then(|&place| self.preambles(kind)[place])
            .map_or_else(|| format!("0x{id:08x}"), |p| short_name(p).to_owned())
    }

    /// A table.
    ///
    /// # Errors
    /// When there is none; the error lists the tables there are. The same holds
    /// for every kind below.
    pub fn table<'s>(&self, table: impl Into<Selector<'s>>) -> Result<Table<'_>, Error> {
        let place = self.place(Kind::Table, table.into())?;
        Ok(Table::new(self, &self.info.tables[place]))
    }

    /// Every table, in the order of P4Info.
    pub fn tables(&self) -> impl Iterator<Item = Table<'_>> {
        (self.info.tables.iter()).map(|table| Table::new(self, table))
    }

    /// A field of a controller header by id or name.
    ///
    /// # Errors
    /// When there is no such header or field.
    pub fn packet_field<'s>(
        &self,
        header: &str,
        field: impl Into<Selector<'s>>,
    ) -> Result<&crate::config::v1::controller_packet_metadata::Metadata, Error> {
        let fields = &self.packet_metadata(header)?.metadata;
        let selector = field.into();
        objects::find(fields, selector, |f| f.id, |f| &f.name)
            .ok_or_else(|| objects::no_such("field", selector, header, fields, |f| &f.name))
    }

    /// A parameter of an action by id or name.
    ///
    /// # Errors
    /// When the action has no such parameter.
    pub fn param<'i, 's>(
        &'i self,
        action: &'i Action,
        param: impl Into<Selector<'s>>,
    ) -> Result<&'i action::Param, Error> {
        let selector = param.into();
        objects::find(&action.params, selector, |p| p.id, |p| &p.name).ok_or_else(|| {
            let within = action.preamble.as_ref().map_or("", short_name);
            objects::no_such("parameter", selector, within, &action.params, |p| &p.name)
        })
    }

    /// An instance of an extern that P4Runtime does not know.
    ///
    /// # Errors
    /// When there is none.
    pub fn extern_instance<'s>(
        &self,
        instance: impl Into<Selector<'s>>,
    ) -> Result<&ExternInstance, Error> {
        let place = self.place(Kind::Extern, instance.into())?;
        let (kind, i) = self.externs[place];
        Ok(&self.info.externs[kind].instances[i])
    }
}

macro_rules! lookups {
    ($($doc:literal $name:ident $kind:ident $list:ident $type:ident;)*) => {
        impl Index {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// When there is none; the error lists the names there are.
                pub fn $name<'s>(&self, which: impl Into<Selector<'s>>) -> Result<&$type, Error> {
                    Ok(&self.info.$list[self.place(Kind::$kind, which.into())?])
                }
            )*
        }
    };
}

lookups! {
    "An action." action Action actions Action;
    "An action profile." action_profile ActionProfile action_profiles ActionProfile;
    "An array of counters." counter Counter counters Counter;
    "A direct counter." direct_counter DirectCounter direct_counters DirectCounter;
    "An array of meters." meter Meter meters Meter;
    "A direct meter." direct_meter DirectMeter direct_meters DirectMeter;
    "The header of `packet_in` or `packet_out`."
        packet_metadata PacketMetadata controller_packet_metadata ControllerPacketMetadata;
    "A parser value set." value_set ValueSet value_sets ValueSet;
    "An array of registers." register Register registers Register;
    "A digest." digest Digest digests Digest;
}

const ALL_KINDS: [Kind; 12] = [
    Kind::Table,
    Kind::Action,
    Kind::ActionProfile,
    Kind::Counter,
    Kind::DirectCounter,
    Kind::Meter,
    Kind::DirectMeter,
    Kind::PacketMetadata,
    Kind::ValueSet,
    Kind::Register,
    Kind::Digest,
    Kind::Extern,
];

/// The alias, or the name where there is none.
#[must_use]
pub fn short_name(preamble: &Preamble) -> &str {
    if preamble.alias.is_empty() {
        &preamble.name
    } else {
        &preamble.alias
    }
}

/// How a match field matches.
///
/// # Errors
/// [`Error::UnsupportedMatch`] for kinds of the architecture's own.
pub fn match_kind(field: &MatchField) -> Result<MatchKind, Error> {
    use match_field::{Match, MatchType};
    let unsupported = |kind: &str| Error::UnsupportedMatch {
        field: field.name.clone(),
        kind: kind.to_owned(),
    };
    match &field.r#match {
        Some(Match::OtherMatchType(kind)) => Err(unsupported(kind)),
        Some(Match::MatchType(kind)) => match MatchType::try_from(*kind) {
            Ok(MatchType::Exact) => Ok(MatchKind::Exact),
            Ok(MatchType::Lpm) => Ok(MatchKind::Lpm),
            Ok(MatchType::Ternary) => Ok(MatchKind::Ternary),
            Ok(MatchType::Range) => Ok(MatchKind::Range),
            Ok(MatchType::Optional) => Ok(MatchKind::Optional),
            Ok(MatchType::Unspecified) | Err(_) => Err(unsupported(&kind.to_string())),
        },
        None => Err(unsupported("none")),
    }
}

#[cfg(test)]
mod tests;

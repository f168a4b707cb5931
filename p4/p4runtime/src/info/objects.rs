//! Views of tables and fields that know their program.

use super::{Error, Index, Kind, Selector, match_kind, short_name};
use crate::config::v1::{
    self, Action, ActionProfile, ActionRef, DirectCounter, DirectMeter, MatchField, action_ref,
};

/// How a field of a key matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Equal in the first bits; the longest prefix wins.
    Lpm,
    /// Equal under a mask.
    Ternary,
    /// Between two values, both included.
    Range,
    /// Equal, or anything.
    Optional,
}

impl MatchKind {
    /// Whether a table with such a field orders its entries by priority.
    #[must_use]
    pub fn needs_priority(self) -> bool {
        matches!(
            self,
            MatchKind::Ternary | MatchKind::Range | MatchKind::Optional
        )
    }
}

impl std::fmt::Display for MatchKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MatchKind::Exact => "exact",
            MatchKind::Lpm => "lpm",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
        })
    }
}

/// A field of a key.
#[derive(Debug, Clone, Copy)]
pub struct Field<'i> {
    proto: &'i MatchField,
    /// How it matches.
    pub kind: MatchKind,
}

impl<'i> Field<'i> {
    /// Views a match field, of a table or of a value set.
    ///
    /// # Errors
    /// [`Error::UnsupportedMatch`].
    pub fn new(proto: &'i MatchField) -> Result<Self, Error> {
        let kind = match_kind(proto)?;
        Ok(Field { proto, kind })
    }

    /// As P4Info has it.
    #[must_use]
    pub fn proto(&self) -> &'i MatchField {
        self.proto
    }

    /// Unique in its table.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.proto.id
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'i str {
        &self.proto.name
    }

    /// Width in bits; 0 for types that P4Info shows as strings.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.proto.bitwidth.unsigned_abs()
    }
}

/// A table of an [`Index`].
#[derive(Debug, Clone, Copy)]
pub struct Table<'i> {
    index: &'i Index,
    proto: &'i v1::Table,
}

impl<'i> Table<'i> {
    pub(super) fn new(index: &'i Index, proto: &'i v1::Table) -> Self {
        Table { index, proto }
    }

    /// As P4Info has it.
    #[must_use]
    pub fn proto(&self) -> &'i v1::Table {
        self.proto
    }

    /// The program it belongs to.
    #[must_use]
    pub fn index(&self) -> &'i Index {
        self.index
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.proto.preamble.as_ref().map_or(0, |p| p.id)
    }

    /// Its alias, or its full name where there is no alias.
    #[must_use]
    pub fn name(&self) -> &'i str {
        self.proto.preamble.as_ref().map_or("", short_name)
    }

    /// The fields of its key, in order.
    pub fn fields(&self) -> impl Iterator<Item = Result<Field<'i>, Error>> + use<'i> {
        self.proto.match_fields.iter().map(Field::new)
    }

    /// A field of its key by id or name.
    ///
    /// # Errors
    /// When there is none; the error lists the fields there are.
    pub fn field<'s>(&self, field: impl Into<Selector<'s>>) -> Result<Field<'i>, Error> {
        let selector = field.into();
        let fields = &self.proto.match_fields;
        match find(fields, selector, |f| f.id, |f| &f.name) {
            Some(field) => Field::new(field),
            None => Err(no_such("match field", selector, self.name(), fields, |f| {
                &f.name
            })),
        }
    }

    /// Whether its entries need a priority above 0.
    #[must_use]
    pub fn needs_priority(&self) -> bool {
        self.fields()
            .flatten()
            .any(|field| field.kind.needs_priority())
    }

    /// An action of the table and how the table refers to it.
    ///
    /// # Errors
    /// When the table has no such action; the error lists those it has.
    pub fn action<'s>(
        &self,
        action: impl Into<Selector<'s>>,
    ) -> Result<(&'i Action, &'i ActionRef), Error> {
        let selector = action.into();
        self.actions()
            .find(|(action, _)| is(action.preamble.as_ref(), selector))
            .ok_or_else(|| {
                let names = self.actions().map(|(action, _)| {
                    let preamble = action.preamble.as_ref();
                    preamble.map_or("", short_name)
                });
                Error::unknown("action", selector, Some(self.name()), names.collect())
            })
    }

    /// The actions of the table, in order.
    pub fn actions(&self) -> impl Iterator<Item = (&'i Action, &'i ActionRef)> + use<'i> {
        let index = self.index;
        self.proto.action_refs.iter().filter_map(move |action_ref| {
            let action = index.action(action_ref.id).ok()?;
            Some((action, action_ref))
        })
    }

    /// Its action profile, or none for a direct table.
    #[must_use]
    pub fn action_profile(&self) -> Option<&'i ActionProfile> {
        self.index.action_profile(self.proto.implementation_id).ok()
    }

    /// Its direct counter.
    #[must_use]
    pub fn direct_counter(&self) -> Option<&'i DirectCounter> {
        let mut ids = self.proto.direct_resource_ids.iter();
        ids.find_map(|id| self.index.direct_counter(*id).ok())
    }

    /// Its direct meter.
    #[must_use]
    pub fn direct_meter(&self) -> Option<&'i DirectMeter> {
        let mut ids = self.proto.direct_resource_ids.iter();
        ids.find_map(|id| self.index.direct_meter(*id).ok())
    }

    /// Whether its entries can time out.
    #[must_use]
    pub fn has_idle_timeout(&self) -> bool {
        self.proto.idle_timeout_behavior() == v1::table::IdleTimeoutBehavior::NotifyControl
    }
}

/// Whether an action may be the action of an entry that is not the default.
#[must_use]
pub(crate) fn in_entries(action: &ActionRef) -> bool {
    action.scope() != action_ref::Scope::DefaultOnly
}

/// Whether an action may be the default action.
#[must_use]
pub(crate) fn as_default(action: &ActionRef) -> bool {
    matches!(
        action.scope(),
        action_ref::Scope::TableAndDefault | action_ref::Scope::DefaultOnly
    )
}

fn is(preamble: Option<&v1::Preamble>, selector: Selector<'_>) -> bool {
    preamble.is_some_and(|preamble| match selector {
        Selector::Id(id) => preamble.id == id,
        Selector::Name(name) => preamble.name == name || preamble.alias == name,
    })
}

/// An object of a short list that has no index of its own.
pub(super) fn find<'l, T>(
    list: &'l [T],
    selector: Selector<'_>,
    id: impl Fn(&T) -> u32,
    name: impl Fn(&T) -> &str,
) -> Option<&'l T> {
    list.iter().find(|object| match selector {
        Selector::Id(wanted) => id(object) == wanted,
        Selector::Name(wanted) => name(object) == wanted,
    })
}

pub(super) fn no_such<T>(
    what: &str,
    wanted: Selector<'_>,
    within: &str,
    list: &[T],
    name: impl Fn(&T) -> &str,
) -> Error {
    let names = list.iter().map(name).collect();
    Error::unknown(what, wanted, Some(within), names)
}

impl Index {
    /// The direct counter or meter of an id, whichever it is, and its table.
    #[must_use]
    pub fn direct_resource_table(&self, id: u32) -> Option<Table<'_>> {
        let table = match self.kind_of(id)? {
            Kind::DirectCounter => self.direct_counter(id).ok()?.direct_table_id,
            Kind::DirectMeter => self.direct_meter(id).ok()?.direct_table_id,
            _ => return None,
        };
        self.table(table).ok()
    }
}

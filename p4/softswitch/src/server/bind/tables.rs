//! Tables, their keys and actions, and what implements them.

use std::collections::BTreeMap;

use p4runtime::config::v1 as config;

use super::{Binder, differ, preamble};
use crate::ids::{ActionId, ProfileId};
use crate::program::{Implementation, MatchKind, TableInfo, UnknownName};
use crate::server::fault::Fault;
use crate::server::pipeline::{ActionRef, Field, Kind, Profile, Table};

impl Binder<'_> {
    /// Whether P4Info has every table that only a controller can fill.
    pub(super) fn check_complete(&self, ids: &[Option<u32>]) -> Result<(), Fault> {
        let filled = |info: &TableInfo| !info.keys.is_empty() && !info.const_entries;
        let mut tables = self.program.tables().iter().zip(ids);
        match tables.find(|(info, id)| id.is_none() && filled(info)) {
            None => Ok(()),
            Some((info, _)) => Err(Fault::invalid(format!(
                "P4Info lacks table {}, which the device config has; both must come from the same \
                 compilation",
                info.name
            ))),
        }
    }

    pub(super) fn action_refs(
        &self,
        table: &config::Table,
        resolve: impl Fn(&str) -> Result<ActionId, UnknownName>,
    ) -> Result<Vec<ActionRef>, Fault> {
        let name_of = |id: u32| {
            let action = self
                .p4info
                .actions
                .iter()
                .filter_map(|a| a.preamble.as_ref())
                .find(|p| p.id == id);
            action.map(|p| p.name.as_str()).ok_or_else(|| {
                Fault::invalid(format!(
                    "P4Info refers to an action with id {id:#x} it lacks"
                ))
            })
        };
        let of = |r: &config::ActionRef| {
            Ok(ActionRef {
                id: r.id,
                core: resolve(name_of(r.id)?)?,
                scope: r.scope(),
            })
        };
        table.action_refs.iter().map(of).collect()
    }

    pub(super) fn field(
        &self,
        owner: &str,
        info: &config::MatchField,
        width: u32,
        core_kind: MatchKind,
    ) -> Result<Field, Fault> {
        let what = format!("match field {} of {owner}", info.name);
        let kind = match info.r#match {
            Some(config::match_field::Match::MatchType(kind)) => {
                Kind::try_from(kind).unwrap_or(Kind::Unspecified)
            }
            _ => Kind::Unspecified,
        };
        let agrees = matches!(
            (kind, core_kind),
            (Kind::Exact, MatchKind::Exact)
                | (Kind::Lpm, MatchKind::Lpm)
                | (Kind::Ternary, MatchKind::Ternary)
                | (Kind::Range, MatchKind::Range)
                | (Kind::Optional, MatchKind::Optional | MatchKind::Ternary)
        );
        if !agrees {
            return Err(Fault::invalid(format!(
                "{what} is matched as {} in P4Info and as {core_kind:?} in the device config",
                kind.as_str_name()
            )));
        }
        let domain = self.domain(&what, info.bitwidth, info.type_name.as_ref(), width)?;
        if domain.is_string() && !matches!(kind, Kind::Exact | Kind::Optional) {
            return Err(Fault::invalid(format!(
                "{what} is a string to the controller, and so cannot be matched as {}",
                kind.as_str_name()
            )));
        }
        Ok(Field {
            id: info.id,
            name: info.name.clone(),
            kind,
            core_kind,
            domain,
        })
    }

    /// The table's key in the program's order: by name, or by position where the JSON names
    /// fields otherwise.
    pub(super) fn fields(
        &self,
        info: &config::Table,
        core: &TableInfo,
    ) -> Result<Vec<Field>, Fault> {
        if info.match_fields.len() != core.keys.len() {
            return Err(Fault::invalid(format!(
                "table {} has {} match fields in P4Info and {} in the device config",
                core.name,
                info.match_fields.len(),
                core.keys.len()
            )));
        }
        let by_name = core
            .keys
            .iter()
            .all(|key| info.match_fields.iter().any(|m| m.name == key.name));
        let keys = core.keys.iter().enumerate();
        keys.map(|(at, key)| {
            let found = info
                .match_fields
                .iter()
                .find(|m| by_name && m.name == key.name);
            let described = found.unwrap_or(&info.match_fields[at]);
            self.field(
                &format!("table {}", core.name),
                described,
                key.width,
                key.kind,
            )
        })
        .collect()
    }

    pub(super) fn tables(&self) -> Result<BTreeMap<u32, Table>, Fault> {
        let mut tables = BTreeMap::new();
        for info in &self.p4info.tables {
            let p = preamble("table", info.preamble.as_ref())?;
            let core = self.program.table_id(&p.name)?;
            let core_info = &self.program.tables()[core.index()];
            let direct_meter = self
                .p4info
                .direct_meters
                .iter()
                .find(|m| m.direct_table_id == p.id)
                .map(|m| m.spec.as_ref().map(|s| s.r#type()).unwrap_or_default());
            let profile = self.implementation(&p.name, info, core_info)?;
            let table = Table {
                id: p.id,
                core,
                name: p.name.clone(),
                fields: self.fields(info, core_info)?,
                actions: self.action_refs(info, |name| self.program.table_action(core, name))?,
                is_const: info.is_const_table || core_info.const_entries,
                const_default: info.const_default_action_id != 0 || core_info.const_default,
                has_priority: core_info.has_priority,
                idle_timeout: core_info.idle_timeout,
                profile,
                direct_counter: core_info.direct_counter.is_some(),
                direct_meter: direct_meter.filter(|_| core_info.direct_meter.is_some()),
            };
            tables.insert(p.id, table);
        }
        Ok(tables)
    }

    /// P4Info's id of the action profile that implements a table.
    pub(super) fn implementation(
        &self,
        table: &str,
        info: &config::Table,
        core: &TableInfo,
    ) -> Result<Option<u32>, Fault> {
        let name_of = |profile: ProfileId| self.program.profiles()[profile.index()].name.as_str();
        let there = match core.implementation {
            Implementation::Direct => None,
            Implementation::Profile(id) | Implementation::Selector(id) => Some(name_of(id)),
        };
        let id = info.implementation_id;
        let preambles = self.p4info.action_profiles.iter();
        let described = preambles
            .filter_map(|a| a.preamble.as_ref())
            .find(|p| id != 0 && p.id == id)
            .map(|p| p.name.as_str());
        if described != there {
            let none = "no action profile";
            return Err(differ(
                &format!("table {table} has"),
                described.unwrap_or(none),
                there.unwrap_or(none),
            ));
        }
        Ok((id != 0).then_some(id))
    }

    pub(super) fn profiles(&self) -> Result<BTreeMap<u32, Profile>, Fault> {
        let mut profiles = BTreeMap::new();
        for info in &self.p4info.action_profiles {
            let p = preamble("action profile", info.preamble.as_ref())?;
            let core = self.program.profile_id(&p.name)?;
            let selector = self.program.profiles()[core.index()].selector;
            if info.with_selector != selector {
                let what = format!("{} has a selector", p.name);
                return Err(differ(&what, info.with_selector, selector));
            }
            let first = info.table_ids.first().and_then(|id| {
                self.p4info
                    .tables
                    .iter()
                    .find(|t| t.preamble.as_ref().is_some_and(|p| p.id == *id))
            });
            let actions = match first {
                Some(table) => {
                    self.action_refs(table, |name| self.program.profile_action(core, name))?
                }
                None => Vec::new(),
            };
            use config::action_profile::SelectorSizeSemantics;
            let sum_of_members = match &info.selector_size_semantics {
                Some(SelectorSizeSemantics::SumOfMembers(m)) => Some(m.max_member_weight),
                _ => None,
            };
            let profile = Profile {
                id: p.id,
                core,
                name: p.name.clone(),
                selector: info.with_selector,
                size: info.size,
                max_group_size: info.max_group_size,
                sum_of_members,
                weights_disallowed: info.weights_disallowed,
                actions,
            };
            profiles.insert(p.id, profile);
        }
        Ok(profiles)
    }
}

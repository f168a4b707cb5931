//! Actions, members' weights and action sets between P4Runtime's messages and the switch's
//! (P4Runtime, "Action Specification" and "One Shot Action Selector Programming").

use p4runtime::config::v1::action_ref::Scope;
use p4runtime::v1::{self, table_action};
use prost::Message as _;

use super::entries::{Notes, find_action};
use super::fault::Fault;
use super::pipeline::{Action, ActionRef, Pipeline, Profile, Table};
use super::sdn::Ports;
use crate::control::{ActionCall, EntryAction, WeightedCall};
use crate::value::Value;

impl Action {
    /// Reads the arguments, one per parameter.
    pub(crate) fn decode_params(&self, given: &[v1::action::Param]) -> Result<Vec<Value>, Fault> {
        if let Some(extra) = given
            .iter()
            .find(|g| !self.params.iter().any(|p| p.id == g.param_id))
        {
            return Err(Fault::invalid(format!(
                "action {} has no parameter with id {}",
                self.name, extra.param_id
            )));
        }
        let params = self.params.iter().map(|param| {
            let what = || format!("action {}: parameter {}", self.name, param.name);
            let mut values = given.iter().filter(|g| g.param_id == param.id);
            match (values.next(), values.next()) {
                (Some(value), None) if value.value.is_empty() => {
                    Err(Fault::invalid(format!("{} has no value", what())))
                }
                (Some(value), None) => param.domain.decode(&value.value, what),
                (None, _) => Err(Fault::invalid(format!("{} is missing", what()))),
                _ => Err(Fault::invalid(format!("{} is given twice", what()))),
            }
        });
        params.collect()
    }
}

/// Actions and what entries do.
impl Pipeline {
    /// Reads an action that entries (or the default entry) of `table` may run.
    pub(crate) fn decode_call(
        &self,
        table: &Table,
        action: &v1::Action,
        default: bool,
    ) -> Result<ActionCall, Fault> {
        let action_ref = table.action(action.action_id, default)?;
        self.call(action_ref, action)
    }

    /// Reads an action that members of `profile` may run.
    pub(crate) fn decode_member_call(
        &self,
        profile: &Profile,
        action: &v1::Action,
    ) -> Result<ActionCall, Fault> {
        let found = find_action(&profile.name, &profile.actions, action.action_id)?;
        if found.scope == Scope::DefaultOnly {
            return Err(Fault::denied(format!(
                "action {:#x} is annotated @defaultonly",
                action.action_id
            )));
        }
        self.call(found, action)
    }

    fn call(&self, found: &ActionRef, action: &v1::Action) -> Result<ActionCall, Fault> {
        let info = self
            .actions
            .get(&found.id)
            .ok_or_else(|| Fault::invalid(format!("no action with id {:#x}", found.id)))?;
        Ok(ActionCall {
            action: found.core,
            params: info.decode_params(&action.params)?,
        })
    }

    /// Writes an action; `actions` are those of the table or profile it belongs to.
    pub(crate) fn encode_call(
        &self,
        actions: &[ActionRef],
        call: &ActionCall,
    ) -> Option<v1::Action> {
        let found = actions.iter().find(|a| a.core == call.action)?;
        let info = self.actions.get(&found.id)?;
        let params = info
            .params
            .iter()
            .zip(&call.params)
            .map(|(param, value)| v1::action::Param {
                param_id: param.id,
                value: param.domain.encode(value),
            });
        Some(v1::Action {
            action_id: found.id,
            params: params.collect(),
        })
    }

    /// Reads what an entry does.
    pub(crate) fn decode_action(
        &self,
        table: &Table,
        action: &v1::TableAction,
        ports: &Ports<'_>,
    ) -> Result<EntryAction, Fault> {
        use table_action::Type as T;
        let given = action
            .r#type
            .as_ref()
            .ok_or_else(|| Fault::invalid(format!("{}: the action is empty", table.name)))?;
        let Some(profile) = table.profile.and_then(|id| self.profiles.get(&id)) else {
            return match given {
                T::Action(action) => Ok(EntryAction::Call(self.decode_call(table, action, false)?)),
                _ => Err(Fault::invalid(format!(
                    "{} has no action profile; its entries need an action",
                    table.name
                ))),
            };
        };
        match given {
            T::ActionProfileMemberId(id) => Ok(EntryAction::Member(*id)),
            T::ActionProfileGroupId(id) if profile.selector => Ok(EntryAction::Group(*id)),
            T::ActionProfileActionSet(set) if profile.selector => {
                self.decode_action_set(table, profile, set, ports)
            }
            T::Action(_) => Err(Fault::invalid(format!(
                "the entries of {} refer to members of {}, not to actions",
                table.name, profile.name
            ))),
            _ => Err(Fault::invalid(format!(
                "{} is an action profile without selector; entries of {} need a member id",
                profile.name, table.name
            ))),
        }
    }

    fn decode_action_set(
        &self,
        table: &Table,
        profile: &Profile,
        set: &v1::ActionProfileActionSet,
        ports: &Ports<'_>,
    ) -> Result<EntryAction, Fault> {
        use v1::action_profile_action::WatchKind;
        if set.group_action.is_some() {
            return Err(Fault::unimplemented(
                "a group_action is not supported; P4Runtime has it from 1.6 on",
            ));
        }
        let (random, size_of) =
            profile.check_set_modes(set.action_selection_mode, set.size_semantics)?;
        let weights = set.action_profile_actions.iter().map(|a| a.weight);
        profile.check_weights(weights, size_of, profile.max_group_size)?;
        let choices = set.action_profile_actions.iter().map(|choice| {
            let action = choice.action.as_ref().ok_or_else(|| {
                Fault::invalid(format!(
                    "{}: a choice of the action set has no action",
                    table.name
                ))
            })?;
            #[allow(deprecated)]
            let watch_port = match &choice.watch_kind {
                Some(WatchKind::WatchPort(port)) => ports.decode_watch(port)?,
                Some(WatchKind::Watch(port)) => ports.deprecated_watch(*port)?,
                None => None,
            };
            Ok(WeightedCall {
                call: self.decode_call(table, action, false)?,
                weight: profile.core_weight(choice.weight),
                watch_port,
            })
        });
        Ok(EntryAction::OneShot {
            choices: choices.collect::<Result<_, Fault>>()?,
            random,
        })
    }

    /// What a table without a default action of its own does on a miss.
    pub(crate) fn no_action(&self, table: &Table) -> Option<v1::TableAction> {
        let named = |a: &&ActionRef| {
            self.actions
                .get(&a.id)
                .is_some_and(|i| i.name == "NoAction")
        };
        let action_id = table.actions.iter().find(named)?.id;
        let action = v1::Action {
            action_id,
            params: Vec::new(),
        };
        Some(v1::TableAction {
            r#type: Some(table_action::Type::Action(action)),
        })
    }

    /// Writes what an entry does.
    pub(crate) fn encode_action(
        &self,
        table: &Table,
        action: &EntryAction,
        notes: &Notes,
    ) -> Option<v1::TableAction> {
        use table_action::Type as T;
        let encoded = match action {
            EntryAction::Call(call) => T::Action(self.encode_call(&table.actions, call)?),
            EntryAction::Member(id) => T::ActionProfileMemberId(*id),
            EntryAction::Group(id) => T::ActionProfileGroupId(*id),
            EntryAction::OneShot { .. } => T::ActionProfileActionSet(
                v1::ActionProfileActionSet::decode(&notes.action_set[..]).unwrap_or_default(),
            ),
        };
        Some(v1::TableAction {
            r#type: Some(encoded),
        })
    }
}

/// How the size of a group is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeOf {
    Members,
    Weights,
}

impl SizeOf {
    /// The size of a group of members of these weights.
    pub(crate) fn of(self, weights: impl Iterator<Item = i32>) -> i64 {
        match self {
            SizeOf::Members => weights.count() as i64,
            SizeOf::Weights => weights.map(i64::from).sum(),
        }
    }
}

/// How the size of an entry's own group is counted, which its action set may say.
pub(crate) fn set_semantics(profile: &Profile, notes: &Notes) -> SizeOf {
    let set = v1::ActionProfileActionSet::decode(&notes.action_set[..]).unwrap_or_default();
    let modes = profile.check_set_modes(set.action_selection_mode, set.size_semantics);
    modes.map_or(profile.size_of(), |(_, size_of)| size_of)
}

impl Profile {
    /// Checks weights against each other and the group's size.
    pub(crate) fn check_weights(
        &self,
        weights: impl Iterator<Item = i32>,
        size_of: SizeOf,
        max_size: i32,
    ) -> Result<(), Fault> {
        let (mut members, mut total) = (0i64, 0i64);
        for weight in weights {
            let valid = if self.weights_disallowed {
                weight == 0
            } else {
                weight > 0
            };
            if !valid {
                return Err(Fault::invalid(format!(
                    "{}: weight {weight} is not allowed; {}",
                    self.name,
                    if self.weights_disallowed {
                        "leave it unset"
                    } else {
                        "it must be above 0"
                    }
                )));
            }
            if let Some(most) = self.sum_of_members
                && most > 0
                && weight > most
            {
                return Err(Fault::invalid(format!(
                    "{}: weight {weight} is above max_member_weight, {most}",
                    self.name
                )));
            }
            members += 1;
            total += i64::from(weight);
        }
        let size = match size_of {
            SizeOf::Members => members,
            SizeOf::Weights => total,
        };
        if max_size > 0 && size > i64::from(max_size) {
            return Err(Fault::invalid(format!(
                "{}: size {size} is above the group's largest, {max_size}",
                self.name
            )));
        }
        Ok(())
    }

    /// The weight for the switch, which gives every member at least 1.
    pub(crate) fn core_weight(&self, weight: i32) -> u32 {
        u32::try_from(weight).unwrap_or(1).max(1)
    }

    /// How the selector counts the size of its groups.
    pub(crate) fn size_of(&self) -> SizeOf {
        // Without weights every member counts once.
        if self.sum_of_members.is_some() || self.weights_disallowed {
            SizeOf::Members
        } else {
            SizeOf::Weights
        }
    }

    /// What an action set's mode and size semantics ask for: random choice, and how its size is
    /// counted.
    fn check_set_modes(&self, mode: i32, semantics: i32) -> Result<(bool, SizeOf), Fault> {
        use v1::action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics as Size};
        let (Ok(mode), Ok(size)) = (Mode::try_from(mode), Size::try_from(semantics)) else {
            return Err(Fault::invalid(format!(
                "{}: unknown action_selection_mode {mode} or size_semantics {semantics}",
                self.name
            )));
        };
        let size_of = match size {
            Size::DefaultSizeDeterminedByActionSelector => self.size_of(),
            Size::SumOfMembers => SizeOf::Members,
            Size::SumOfWeights if self.weights_disallowed => {
                return Err(Fault::invalid(format!(
                    "{}: a size by weights, where weights are not allowed",
                    self.name
                )));
            }
            Size::SumOfWeights => SizeOf::Weights,
        };
        Ok((mode == Mode::Random, size_of))
    }
}

//! The rules for everything that is not a table entry.

use std::collections::HashSet;

use super::check::{self, Intent, arguments, entry_action};
use super::{Error, key};
use crate::bytes;
use crate::config::v1::{
    self as config, MeterSpec, action_profile::SelectorSizeSemantics, meter_spec,
};
use crate::info::{Index, Table};
use crate::rpc::Code;
use crate::v1::{
    ActionProfileAction, ActionProfileActionSet, ActionProfileGroup, ActionProfileMember,
    CounterData, CounterEntry, DigestEntry, Entity, Index as Cell, MeterConfig, MeterCounterData,
    MeterEntry, PacketReplicationEngineEntry, RegisterEntry, Replica, ValueSetEntry,
    ValueSetMember, action_profile_action, action_profile_group, packet_replication_engine_entry,
    replica,
};

/// Cells of arrays and direct resources are always there.
pub(super) fn only_modify(at: &str, what: &str, intent: Intent) -> Result<(), Error> {
    if intent == Intent::Modify {
        return Ok(());
    }
    let rule = format!("{what} is always there; it can only be modified");
    Err(Error::invalid(at, rule))
}

/// A place in an array; unset stands for all of it.
fn cell(at: &str, cell: Option<Cell>, size: i64) -> Result<(), Error> {
    match cell.map(|cell| cell.index) {
        Some(index) if index < 0 => {
            Err(Error::invalid(at, format!("the index {index} is negative")))
        }
        Some(index) if index >= size => Err(Error::rule(
            Code::OutOfRange,
            at,
            format!("the index {index} is too large; there are {size} cells, from 0"),
        )),
        _ => Ok(()),
    }
}

pub(super) fn counter(
    index: &Index,
    counter: &CounterEntry,
    intent: Intent,
) -> Result<CounterEntry, Error> {
    let info = index.counter(counter.counter_id)?;
    let at = named("counter", info.preamble.as_ref());
    only_modify(&at, "a counter", intent)?;
    cell(&at, counter.index, info.size)?;
    if let Some(data) = &counter.data {
        counter_data(&at, data)?;
    }
    Ok(*counter)
}

pub(super) fn counter_data(at: &str, data: &CounterData) -> Result<(), Error> {
    if data.byte_count < 0 || data.packet_count < 0 {
        return Err(Error::invalid(at, "a counter cannot be negative"));
    }
    Ok(())
}

pub(super) fn meter(
    index: &Index,
    meter: &MeterEntry,
    intent: Intent,
) -> Result<MeterEntry, Error> {
    let info = index.meter(meter.meter_id)?;
    let at = named("meter", info.preamble.as_ref());
    only_modify(&at, "a meter", intent)?;
    cell(&at, meter.index, info.size)?;
    meter_state(&at, info.spec.as_ref(), meter.config, meter.counter_data)?;
    Ok(*meter)
}

pub(super) fn meter_state(
    at: &str,
    spec: Option<&MeterSpec>,
    config: Option<MeterConfig>,
    counters: Option<MeterCounterData>,
) -> Result<(), Error> {
    if let Some(data) = counters {
        let zero = |data: Option<CounterData>| data.unwrap_or_default() == CounterData::default();
        if !(zero(data.green) && zero(data.yellow) && zero(data.red)) {
            return Err(Error::invalid(
                at,
                "a meter's counters can only be set to 0",
            ));
        }
    }
    let Some(config) = config else { return Ok(()) };
    let MeterConfig {
        cir,
        cburst,
        pir,
        pburst,
        eburst,
    } = config;
    if [cir, cburst, pir, pburst, eburst].iter().any(|v| *v < 0) {
        return Err(Error::invalid(at, "a rate or burst is negative"));
    }
    let kind = spec.map_or(meter_spec::Type::TwoRateThreeColor, MeterSpec::r#type);
    let one_rate = pir == cir && pburst == cburst;
    let rule = match kind {
        meter_spec::Type::TwoRateThreeColor if eburst != 0 => {
            "a meter with two rates has no excess burst; leave `eburst` unset"
        }
        meter_spec::Type::TwoRateThreeColor if pir < cir => {
            "the peak rate is below the committed rate"
        }
        meter_spec::Type::SingleRateThreeColor | meter_spec::Type::SingleRateTwoColor
            if !one_rate =>
        {
            "a meter with one rate has `pir` equal to `cir` and `pburst` equal to `cburst`"
        }
        meter_spec::Type::SingleRateTwoColor if eburst != 0 => {
            "a meter with two colours has no excess burst; leave `eburst` unset"
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(at, rule))
}

pub(super) fn register(
    index: &Index,
    register: &RegisterEntry,
    intent: Intent,
) -> Result<RegisterEntry, Error> {
    let info = index.register(register.register_id)?;
    let at = named("register", info.preamble.as_ref());
    only_modify(&at, "a register", intent)?;
    cell(&at, register.index, info.size.into())?;
    if register.data.is_none() {
        return Err(Error::invalid(at, "it has no data"));
    }
    Ok(register.clone())
}

pub(super) fn digest(
    index: &Index,
    digest: &DigestEntry,
    intent: Intent,
) -> Result<DigestEntry, Error> {
    let info = index.digest(digest.digest_id)?;
    let at = named("digest", info.preamble.as_ref());
    if intent == Intent::Delete {
        return Ok(DigestEntry {
            config: None,
            ..*digest
        });
    }
    let Some(config) = digest.config else {
        return Err(Error::invalid(at, "it has no config"));
    };
    if config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0 {
        return Err(Error::invalid(at, "a timeout or the list size is negative"));
    }
    Ok(*digest)
}

pub(super) fn value_set(
    index: &Index,
    set: &ValueSetEntry,
    intent: Intent,
) -> Result<ValueSetEntry, Error> {
    let info = index.value_set(set.value_set_id)?;
    let at = named("value set", info.preamble.as_ref());
    only_modify(&at, "a value set", intent)?;
    if set.members.len() > usize::try_from(info.size).unwrap_or(0) {
        let rule = format!(
            "{} members are too many; it holds {}",
            set.members.len(),
            info.size
        );
        return Err(Error::rule(Code::ResourceExhausted, at, rule));
    }
    let members = set.members.iter().map(|member| {
        let r#match = check::value_set_member(&at, &info.r#match, &member.r#match)?;
        Ok(ValueSetMember { r#match })
    });
    Ok(ValueSetEntry {
        value_set_id: set.value_set_id,
        members: members.collect::<Result<_, Error>>()?,
    })
}

pub(super) fn member(
    index: &Index,
    member: &ActionProfileMember,
    intent: Intent,
) -> Result<ActionProfileMember, Error> {
    let profile = index.action_profile(member.action_profile_id)?;
    let at = format!(
        "{}, member {}",
        named("action profile", profile.preamble.as_ref()),
        member.member_id
    );
    if member.member_id == 0 {
        return Err(Error::invalid(at, "0 is not the id of a member"));
    }
    let key = ActionProfileMember {
        action: None,
        ..*member
    };
    if intent == Intent::Delete {
        return Ok(key);
    }
    let Some(action) = &member.action else {
        return Err(Error::invalid(at, "it has no action"));
    };
    // The tables of one profile have the same actions.
    let action = match profile.table_ids.first() {
        Some(table) => entry_action(&index.table(*table)?, action)?,
        None => arguments(index, action)?,
    };
    Ok(ActionProfileMember {
        action: Some(action),
        ..key
    })
}

pub(super) fn group(
    index: &Index,
    group: &ActionProfileGroup,
    intent: Intent,
) -> Result<ActionProfileGroup, Error> {
    let profile = index.action_profile(group.action_profile_id)?;
    let at = format!(
        "{}, group {}",
        named("action profile", profile.preamble.as_ref()),
        group.group_id
    );
    if !profile.with_selector {
        return Err(Error::invalid(
            at,
            "groups need a selector; the profile has none",
        ));
    }
    if group.group_id == 0 {
        return Err(Error::invalid(at, "0 is not the id of a group"));
    }
    let key = ActionProfileGroup {
        action_profile_id: group.action_profile_id,
        group_id: group.group_id,
        ..Default::default()
    };
    if intent == Intent::Delete {
        return Ok(key);
    }
    let largest = profile.max_group_size;
    let size_is_fine = match largest {
        ..=0 => group.max_size >= 0,
        1.. => (1..=largest).contains(&group.max_size),
    };
    if !size_is_fine {
        let rule = format!(
            "`max_size` is {}; it must be from 1 to {largest}",
            group.max_size
        );
        return Err(Error::invalid(at, rule));
    }
    let mut seen = HashSet::new();
    let mut members = Vec::with_capacity(group.members.len());
    for member in &group.members {
        if !seen.insert(member.member_id) {
            let rule = format!("member {} is there twice; use its weight", member.member_id);
            return Err(Error::invalid(at, rule));
        }
        let weight = check_weight(&at, profile, member.weight)?;
        use action_profile_group::member::WatchKind;
        let watch_kind = match &member.watch_kind {
            Some(WatchKind::WatchPort(port)) => watched(port)?.map(WatchKind::WatchPort),
            other => other.clone(),
        };
        members.push(action_profile_group::Member {
            member_id: member.member_id,
            weight,
            watch_kind,
        });
    }
    let weights = members.iter().map(|member| i64::from(member.weight));
    check_size(&at, profile, group.max_size, members.len(), weights.sum())?;
    Ok(ActionProfileGroup {
        members,
        max_size: group.max_size,
        ..key
    })
}

pub(super) fn action_set(
    table: &Table<'_>,
    profile: &config::ActionProfile,
    set: &ActionProfileActionSet,
) -> Result<ActionProfileActionSet, Error> {
    let at = format!("{}, set of actions", check::table_at(table));
    let mut actions = Vec::with_capacity(set.action_profile_actions.len());
    for member in &set.action_profile_actions {
        let Some(action) = &member.action else {
            return Err(Error::invalid(at, "a member has no action"));
        };
        use action_profile_action::WatchKind;
        let watch_kind = match &member.watch_kind {
            Some(WatchKind::WatchPort(port)) => watched(port)?.map(WatchKind::WatchPort),
            other => other.clone(),
        };
        actions.push(ActionProfileAction {
            action: Some(entry_action(table, action)?),
            weight: check_weight(&at, profile, member.weight)?,
            watch_kind,
        });
    }
    let weights = actions.iter().map(|action| i64::from(action.weight));
    let largest = profile.max_group_size;
    check_size(&at, profile, largest, actions.len(), weights.sum())?;
    let group_action = set.group_action.as_ref();
    Ok(ActionProfileActionSet {
        action_profile_actions: actions,
        group_action: group_action
            .map(|action| arguments(table.index(), action))
            .transpose()?,
        action_selection_mode: set.action_selection_mode,
        size_semantics: set.size_semantics,
    })
}

fn check_weight(at: &str, profile: &config::ActionProfile, weight: i32) -> Result<i32, Error> {
    let largest = match &profile.selector_size_semantics {
        Some(SelectorSizeSemantics::SumOfMembers(members)) => members.max_member_weight,
        _ => 0,
    };
    let rule = match (profile.weights_disallowed, weight) {
        (true, 0) => return Ok(weight),
        (true, _) => "its members have no weights; leave `weight` at 0".to_owned(),
        (false, ..=0) => format!("a weight is {weight}; it must be at least 1"),
        (false, _) if largest > 0 && weight > largest => {
            format!("a weight is {weight}; the largest is {largest}")
        }
        (false, _) => return Ok(weight),
    };
    Err(Error::invalid(at, rule))
}

fn check_size(
    at: &str,
    profile: &config::ActionProfile,
    largest: i32,
    members: usize,
    weights: i64,
) -> Result<(), Error> {
    let size = match &profile.selector_size_semantics {
        Some(SelectorSizeSemantics::SumOfMembers(_)) => members as i64,
        _ => weights,
    };
    if largest > 0 && size > i64::from(largest) {
        let rule = format!("its size is {size}, which is more than {largest}");
        return Err(Error::invalid(at, rule));
    }
    Ok(())
}

/// An empty watch port is none.
fn watched(port: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    Ok((!port.is_empty()).then(|| bytes::canonical(port)))
}

pub(super) fn replication(
    entry: &PacketReplicationEngineEntry,
    intent: Intent,
) -> Result<Entity, Error> {
    use packet_replication_engine_entry::Type;
    let (at, id, replicas) = match &entry.r#type {
        Some(Type::MulticastGroupEntry(group)) => {
            let id = group.multicast_group_id;
            (format!("multicast group {id}"), id, &group.replicas)
        }
        Some(Type::CloneSessionEntry(session)) => {
            let id = session.session_id;
            (format!("clone session {id}"), id, &session.replicas)
        }
        None => return Err(Error::invalid("the replication entry", "it is empty")),
    };
    if id == 0 {
        return Err(Error::invalid(at, "0 is only for reading"));
    }
    if intent == Intent::Delete {
        return Ok(key(&(*entry).clone().into()));
    }
    let replicas = canonical_replicas(&at, replicas)?;
    Ok(match entry.r#type.clone() {
        Some(Type::MulticastGroupEntry(mut group)) => {
            group.replicas = replicas;
            group.into()
        }
        Some(Type::CloneSessionEntry(mut session)) => {
            if session.packet_length_bytes < 0 {
                return Err(Error::invalid(at, "`packet_length_bytes` is negative"));
            }
            session.replicas = replicas;
            session.into()
        }
        None => Entity::default(),
    })
}

fn canonical_replicas(at: &str, replicas: &[Replica]) -> Result<Vec<Replica>, Error> {
    let mut seen = HashSet::new();
    let mut unique = |port: &[u8], instance: u32| {
        if seen.insert((port.to_vec(), instance)) {
            return Ok(());
        }
        let port = bytes::hex(port);
        let rule = format!("port 0x{port} with instance {instance} is there twice");
        Err(Error::invalid(at, rule))
    };
    let mut canonical = Vec::with_capacity(replicas.len());
    for replica in replicas {
        let mut replica = replica.clone();
        let port = match &replica.port_kind {
            Some(replica::PortKind::Port(port)) if !port.is_empty() => bytes::canonical(port),
            // From controllers older than version 1.4.
            #[allow(deprecated)]
            Some(replica::PortKind::EgressPort(port)) => bytes::shortest((*port).into()),
            _ => return Err(Error::invalid(at, "a replica has no port")),
        };
        unique(&port, replica.instance)?;
        for backup in &mut replica.backup_replicas {
            backup.port = bytes::canonical(&backup.port);
            if backup.port == port {
                let rule = "a replica has its own port as a backup";
                return Err(Error::invalid(at, rule));
            }
            unique(&backup.port, backup.instance)?;
        }
        replica.port_kind = Some(replica::PortKind::Port(port));
        canonical.push(replica);
    }
    Ok(canonical)
}

fn named(kind: &str, preamble: Option<&config::Preamble>) -> String {
    format!("{kind} `{}`", preamble.map_or("", crate::info::short_name))
}

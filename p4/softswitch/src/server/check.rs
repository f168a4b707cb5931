//! What a P4Info must be on its own, whatever program it describes (P4Runtime, "The P4Info
//! Message").

use std::collections::{BTreeMap, BTreeSet};

use p4runtime::config::v1::{self as config, p4_ids::Prefix};

use super::fault::Fault;
use super::write::MULTICAST_ID_MAX;

/// Bits of the widest metadata of a controller header: more than a packet's fields have.
const METADATA_BITS: i32 = 4096;

/// Checks a P4Info.
///
/// # Errors
/// `InvalidArgument` naming what is wrong.
pub(crate) fn p4info(info: &config::P4Info) -> Result<(), Fault> {
    check_ids(info)?;
    check_names(info)?;
    for table in &info.tables {
        check_table(info, table)?;
    }
    for action in &info.actions {
        let name = name_of(action.preamble.as_ref());
        unique(
            &format!("action {name}"),
            "parameter",
            action.params.iter().map(|p| p.id),
        )?;
    }
    for profile in &info.action_profiles {
        check_profile(info, profile)?;
    }
    check_direct(info)?;
    check_sizes(info)?;
    check_packet_metadata(info)?;
    if let Some(extern_) = info.externs.first() {
        return Err(Fault::invalid(format!(
            "P4Info has extern {}; v1model has no externs beyond P4Runtime's own",
            extern_.extern_type_name
        )));
    }
    match info
        .pkg_info
        .as_ref()
        .and_then(|p| p.platform_properties.as_ref())
    {
        Some(wanted) => check_platform(wanted),
        None => Ok(()),
    }
}

fn name_of(preamble: Option<&config::Preamble>) -> &str {
    preamble.map_or("", |p| &p.name)
}

fn id_of(preamble: Option<&config::Preamble>) -> u32 {
    preamble.map_or(0, |p| p.id)
}

/// Every preamble, with the prefix its id must have; controller headers may have any.
fn preambles(
    info: &config::P4Info,
) -> Vec<(&'static str, Option<Prefix>, Option<&config::Preamble>)> {
    let mut all = Vec::new();
    macro_rules! add {
        ($field:ident, $kind:literal, $prefix:expr) => {
            all.extend(
                info.$field
                    .iter()
                    .map(|x| ($kind, $prefix, x.preamble.as_ref())),
            );
        };
    }
    add!(tables, "table", Some(Prefix::Table));
    add!(actions, "action", Some(Prefix::Action));
    add!(
        action_profiles,
        "action profile",
        Some(Prefix::ActionProfile)
    );
    add!(counters, "counter", Some(Prefix::Counter));
    add!(
        direct_counters,
        "direct counter",
        Some(Prefix::DirectCounter)
    );
    add!(meters, "meter", Some(Prefix::Meter));
    add!(direct_meters, "direct meter", Some(Prefix::DirectMeter));
    add!(value_sets, "value set", Some(Prefix::ValueSet));
    add!(registers, "register", Some(Prefix::Register));
    add!(digests, "digest", Some(Prefix::Digest));
    add!(controller_packet_metadata, "controller header", None);
    all
}

/// Ids are set, have the prefix of their kind, and are of one thing each.
fn check_ids(info: &config::P4Info) -> Result<(), Fault> {
    let mut seen = BTreeMap::new();
    for (kind, prefix, preamble) in preambles(info) {
        let p = preamble
            .filter(|p| p.id != 0)
            .ok_or_else(|| Fault::invalid(format!("P4Info has a {kind} without an id")))?;
        if let Some(prefix) = prefix.filter(|prefix| p.id >> 24 != *prefix as u32) {
            return Err(Fault::invalid(format!(
                "P4Info gives {kind} {} the id {:#x}; ids of its kind begin with {:#04x}",
                p.name, p.id, prefix as u32
            )));
        }
        if let Some(other) = seen.insert(p.id, &p.name) {
            return Err(Fault::invalid(format!(
                "P4Info gives id {:#x} to both {other} and {}",
                p.id, p.name
            )));
        }
    }
    Ok(())
}

/// Names are set, and of one thing of a kind each.
fn check_names(info: &config::P4Info) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for (kind, _, preamble) in preambles(info) {
        let name = name_of(preamble);
        if name.is_empty() {
            return Err(Fault::invalid(format!(
                "P4Info has a {kind} without a name"
            )));
        }
        if !seen.insert((kind, name)) {
            return Err(Fault::invalid(format!("P4Info has two of {kind} {name}")));
        }
    }
    Ok(())
}

/// The ids of an owner's parts are set and differ.
fn unique(owner: &str, what: &str, ids: impl Iterator<Item = u32>) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if id == 0 || !seen.insert(id) {
            return Err(Fault::invalid(format!(
                "{owner} has a {what} with id {id}, which is not set or taken"
            )));
        }
    }
    Ok(())
}

fn check_table(info: &config::P4Info, table: &config::Table) -> Result<(), Fault> {
    let name = format!("table {}", name_of(table.preamble.as_ref()));
    unique(
        &name,
        "match field",
        table.match_fields.iter().map(|f| f.id),
    )?;
    unique(&name, "action", table.action_refs.iter().map(|r| r.id))?;
    let bad = |what: &str| Err(Fault::invalid(format!("{name}: {what}")));
    if table.size < 0 {
        return bad(&format!("its size is {}", table.size));
    }
    let default = table.const_default_action_id;
    if default != 0 && !table.action_refs.iter().any(|r| r.id == default) {
        return bad(&format!(
            "its const default action {default:#x} is none of its actions"
        ));
    }
    let own = id_of(table.preamble.as_ref());
    for id in &table.direct_resource_ids {
        let counters = info.direct_counters.iter();
        let counters = counters.map(|c| (c.preamble.as_ref(), c.direct_table_id));
        let meters = info.direct_meters.iter();
        let meters = meters.map(|m| (m.preamble.as_ref(), m.direct_table_id));
        let mut all = counters.chain(meters);
        if !all.any(|(p, table)| id_of(p) == *id && table == own) {
            return bad(&format!("P4Info has no direct resource {id:#x} of it"));
        }
    }
    Ok(())
}

fn check_profile(info: &config::P4Info, profile: &config::ActionProfile) -> Result<(), Fault> {
    let own = id_of(profile.preamble.as_ref());
    let name = name_of(profile.preamble.as_ref());
    let bad = |what: &str| Err(Fault::invalid(format!("action profile {name}: {what}")));
    let (size, group) = (profile.size, i64::from(profile.max_group_size));
    if size < 0 || group < 0 {
        return bad("its size or max_group_size is negative");
    }
    if size > 0 && group > size {
        return bad(&format!(
            "its max_group_size, {group}, is above its size, {size}"
        ));
    }
    let selects =
        group != 0 || profile.weights_disallowed || profile.selector_size_semantics.is_some();
    if selects && !profile.with_selector {
        return bad("it has no selector, and so no group sizes and weights");
    }
    use config::action_profile::SelectorSizeSemantics as Semantics;
    if let Some(Semantics::SumOfMembers(sum)) = &profile.selector_size_semantics
        && sum.max_member_weight < 0
    {
        return bad("its max_member_weight is negative");
    }
    for id in &profile.table_ids {
        let mut tables = info.tables.iter();
        let uses =
            |t: &config::Table| id_of(t.preamble.as_ref()) == *id && t.implementation_id == own;
        if !tables.any(uses) {
            return bad(&format!("table {id:#x} does not use it"));
        }
    }
    Ok(())
}

/// Direct counters and meters are those of a table that lists them.
fn check_direct(info: &config::P4Info) -> Result<(), Fault> {
    let counters = info.direct_counters.iter();
    let counters = counters.map(|c| (c.preamble.as_ref(), c.direct_table_id));
    let meters = info.direct_meters.iter();
    let meters = meters.map(|m| (m.preamble.as_ref(), m.direct_table_id));
    for (preamble, table_id) in counters.chain(meters) {
        let listed = |t: &config::Table| {
            id_of(t.preamble.as_ref()) == table_id
                && t.direct_resource_ids.contains(&id_of(preamble))
        };
        if !info.tables.iter().any(listed) {
            return Err(Fault::invalid(format!(
                "{} is a direct resource of table {table_id:#x}, which does not list it",
                name_of(preamble)
            )));
        }
    }
    Ok(())
}

fn check_sizes(info: &config::P4Info) -> Result<(), Fault> {
    let counters = info.counters.iter().map(|c| (c.preamble.as_ref(), c.size));
    let meters = info.meters.iter().map(|m| (m.preamble.as_ref(), m.size));
    let registers = info.registers.iter();
    let registers = registers.map(|r| (r.preamble.as_ref(), i64::from(r.size)));
    let sets = info.value_sets.iter();
    let sets = sets.map(|s| (s.preamble.as_ref(), i64::from(s.size)));
    let mut all = counters.chain(meters).chain(registers).chain(sets);
    match all.find(|(_, size)| *size < 0) {
        Some((preamble, size)) => Err(Fault::invalid(format!(
            "{} has size {size}",
            name_of(preamble)
        ))),
        None => {
            for set in &info.value_sets {
                let name = format!("value set {}", name_of(set.preamble.as_ref()));
                unique(&name, "match field", set.r#match.iter().map(|f| f.id))?;
            }
            Ok(())
        }
    }
}

fn check_packet_metadata(info: &config::P4Info) -> Result<(), Fault> {
    for header in &info.controller_packet_metadata {
        let name = name_of(header.preamble.as_ref());
        let ids = header.metadata.iter().map(|m| m.id);
        unique(&format!("controller header {name}"), "metadata", ids)?;
        let fits = |bits: i32| (0..=METADATA_BITS).contains(&bits);
        if let Some(m) = header.metadata.iter().find(|m| !fits(m.bitwidth)) {
            return Err(Fault::invalid(format!(
                "metadata {} of {name} has bitwidth {}",
                m.name, m.bitwidth
            )));
        }
    }
    Ok(())
}

fn check_platform(wanted: &config::PlatformProperties) -> Result<(), Fault> {
    let groups = wanted.multicast_group_table_size;
    let total = wanted.multicast_group_table_total_replicas;
    let each = wanted.multicast_group_table_max_replicas_per_entry;
    if groups < 0 || total < 0 || each < 0 {
        return Err(Fault::invalid("platform_properties are negative"));
    }
    if each > total {
        return Err(Fault::invalid(format!(
            "platform_properties: {each} replicas per multicast group are more than {total} in all"
        )));
    }
    if groups.unsigned_abs() > MULTICAST_ID_MAX {
        return Err(Fault::invalid(format!(
            "the program wants {groups} multicast groups; the switch has {MULTICAST_ID_MAX}"
        )));
    }
    Ok(())
}

//! What a switch sends, for people: names for ids, and values as they are
//! usually written.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::bytes;
use crate::config::v1::MatchField;
use crate::info::{Field, Index, Kind, MatchKind, Table};
use crate::v1::{
    Action, CounterData, Entity, FieldMatch, P4Data, PacketReplicationEngineEntry, Replica,
    TableAction, TableEntry, entity, field_match, p4_data, packet_replication_engine_entry,
    replica, table_action,
};
use field_match::FieldMatchType as Match;

/// Names and values in order.
pub type Fields = Vec<(String, String)>;

/// An entity as text and as JSON. Ids that the program does not know show as
/// hexadecimal numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readable {
    /// What it is, such as `table entry`.
    pub kind: String,
    /// The table, profile, counter, ... it belongs to.
    pub name: String,
    /// What tells it from others: match fields, or an id, or an index.
    #[serde(with = "pairs")]
    pub key: Fields,
    /// Its priority; 0 where there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// What it does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub action: String,
    /// Everything else that is set.
    #[serde(with = "pairs", skip_serializing_if = "Vec::is_empty")]
    pub state: Fields,
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

/// Pairs as a JSON object that keeps their order.
mod pairs {
    use serde::{Serializer, ser::SerializeMap};

    pub(super) fn serialize<S: Serializer>(
        pairs: &[(String, String)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(pairs.len()))?;
        for (name, value) in pairs {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        for (name, value) in &self.key {
            write!(f, " {name}={value}")?;
        }
        if self.priority != 0 {
            write!(f, " priority={}", self.priority)?;
        }
        if !self.action.is_empty() {
            write!(f, " -> {}", self.action)?;
        }
        for (name, value) in &self.state {
            write!(f, " [{name} {value}]")?;
        }
        Ok(())
    }
}

/// An entity with names for ids; nothing is refused, so that errors can show
/// what was wrong.
#[must_use]
pub fn read_entity(index: &Index, entity: &Entity) -> Readable {
    use entity::Entity as E;
    let of = |kind: Kind, id: u32, key: Fields| Readable {
        kind: kind.to_string(),
        name: index.name_of(kind, id),
        key,
        priority: 0,
        action: String::new(),
        state: Vec::new(),
    };
    let cell = |cell: Option<crate::v1::Index>| match cell {
        Some(cell) => pair("index", cell.index),
        None => pair("index", "*"),
    };
    match &entity.entity {
        None => unknown("empty entity"),
        Some(E::TableEntry(entry)) => table_entry(index, entry, "table entry"),
        Some(E::ActionProfileMember(member)) => Readable {
            action: read_optional_action(index, member.action.as_ref()),
            ..of(
                Kind::ActionProfile,
                member.action_profile_id,
                pair("member", member.member_id),
            )
        },
        Some(E::ActionProfileGroup(group)) => {
            let members = (group.members.iter()).map(|m| format!("{}*{}", m.member_id, m.weight));
            Readable {
                state: pair("members", members.collect::<Vec<_>>().join(" ")),
                ..of(
                    Kind::ActionProfile,
                    group.action_profile_id,
                    pair("group", group.group_id),
                )
            }
        }
        Some(E::MeterEntry(meter)) => Readable {
            state: meter.config.map_or(Vec::new(), meter_state),
            ..of(Kind::Meter, meter.meter_id, cell(meter.index))
        },
        Some(E::CounterEntry(counter)) => Readable {
            state: counter.data.map_or(Vec::new(), counter_state),
            ..of(Kind::Counter, counter.counter_id, cell(counter.index))
        },
        Some(E::RegisterEntry(register)) => Readable {
            state: (register.data.as_ref())
                .map_or(Vec::new(), |data| pair("value", read_data(data))),
            ..of(Kind::Register, register.register_id, cell(register.index))
        },
        Some(E::DirectMeterEntry(meter)) => {
            let entry = meter.table_entry.clone().unwrap_or_default();
            let mut readable = table_entry(index, &entry, "direct meter of");
            readable
                .state
                .extend(meter.config.into_iter().flat_map(meter_state));
            readable
        }
        Some(E::DirectCounterEntry(counter)) => {
            let entry = counter.table_entry.clone().unwrap_or_default();
            let mut readable = table_entry(index, &entry, "direct counter of");
            readable
                .state
                .extend(counter.data.into_iter().flat_map(counter_state));
            readable
        }
        Some(E::PacketReplicationEngineEntry(entry)) => replication(entry),
        Some(E::ValueSetEntry(set)) => Readable {
            state: pair("members", set.members.len()),
            ..of(Kind::ValueSet, set.value_set_id, Vec::new())
        },
        Some(E::DigestEntry(digest)) => of(Kind::Digest, digest.digest_id, Vec::new()),
        Some(E::ExternEntry(entry)) => of(Kind::Extern, entry.extern_id, Vec::new()),
    }
}

/// An action with its arguments: `forward(port=3, dst_mac=02:00:00:00:00:01)`.
#[must_use]
pub fn read_action(index: &Index, action: &Action) -> String {
    let name = index.name_of(Kind::Action, action.action_id);
    let info = index.action(action.action_id).ok();
    let arguments = action.params.iter().map(|given| {
        let param = info.and_then(|info| index.param(info, given.param_id).ok());
        match param {
            Some(param) => {
                let value = value_text(&given.value, param.bitwidth, &param.annotations);
                format!("{}={value}", param.name)
            }
            None => format!("#{}=0x{}", given.param_id, bytes::hex(&given.value)),
        }
    });
    format!("{name}({})", arguments.collect::<Vec<_>>().join(", "))
}

fn read_optional_action(index: &Index, action: Option<&Action>) -> String {
    action.map_or(String::new(), |action| read_action(index, action))
}

fn table_entry(index: &Index, entry: &TableEntry, kind: &str) -> Readable {
    let table = index.table(entry.table_id).ok();
    let mut key: Fields = (entry.r#match.iter())
        .map(|given| match_text(table.as_ref(), given))
        .collect();
    if entry.is_default_action {
        key = pair("default", "*");
    }
    let mut state = Vec::new();
    state.extend(entry.counter_data.into_iter().flat_map(counter_state));
    state.extend(entry.meter_config.into_iter().flat_map(meter_state));
    if entry.idle_timeout_ns != 0 {
        state.extend(pair("idle_timeout_ns", entry.idle_timeout_ns));
    }
    if !entry.metadata.is_empty() {
        state.extend(pair(
            "metadata",
            format!("0x{}", bytes::hex(&entry.metadata)),
        ));
    }
    Readable {
        kind: kind.to_owned(),
        name: index.name_of(Kind::Table, entry.table_id),
        key,
        priority: entry.priority,
        action: (entry.action.as_ref()).map_or(String::new(), |a| table_action(index, a)),
        state,
    }
}

fn table_action(index: &Index, action: &TableAction) -> String {
    use table_action::Type;
    match &action.r#type {
        None => String::new(),
        Some(Type::Action(action)) => read_action(index, action),
        Some(Type::ActionProfileMemberId(id)) => format!("member {id}"),
        Some(Type::ActionProfileGroupId(id)) => format!("group {id}"),
        Some(Type::ActionProfileActionSet(set)) => {
            let actions = set.action_profile_actions.iter().map(|member| {
                let action = read_optional_action(index, member.action.as_ref());
                format!("{action}*{}", member.weight)
            });
            format!("one of {}", actions.collect::<Vec<_>>().join(", "))
        }
    }
}

fn match_text(table: Option<&Table<'_>>, given: &FieldMatch) -> (String, String) {
    let field = table.and_then(|table| table.field(given.field_id).ok());
    let name = field.map_or_else(|| format!("#{}", given.field_id), |f| f.name().to_owned());
    let info = field.as_ref().map(Field::proto);
    let value = |bytes: &[u8]| field_text(info, bytes);
    let text = match &given.field_match_type {
        Some(Match::Exact(exact)) => value(&exact.value),
        Some(Match::Optional(optional)) => value(&optional.value),
        Some(Match::Lpm(lpm)) => match field {
            // What matches a prefix of 32 bits is an address, or looks best as one.
            Some(field) if field.width() == 32 && field.kind == MatchKind::Lpm => {
                let address = bytes::decode(&lpm.value).unwrap_or(0) as u32;
                format!("{}/{}", Ipv4Addr::from(address), lpm.prefix_len)
            }
            _ => format!("{}/{}", value(&lpm.value), lpm.prefix_len),
        },
        Some(Match::Ternary(ternary)) => {
            let ones = info.map(|info| bytes::all_ones(info.bitwidth.unsigned_abs()));
            if ones.is_some_and(|ones| bytes::compare(&ones, &ternary.mask).is_eq()) {
                value(&ternary.value)
            } else {
                let (value, mask) = (bytes::hex(&ternary.value), bytes::hex(&ternary.mask));
                format!("0x{value}&&&0x{mask}")
            }
        }
        Some(Match::Range(range)) => format!("{}..{}", value(&range.low), value(&range.high)),
        Some(Match::Other(_)) | None => "?".to_owned(),
    };
    (name, text)
}

fn field_text(info: Option<&MatchField>, value: &[u8]) -> String {
    match info {
        Some(info) => value_text(value, info.bitwidth, &info.annotations),
        None => format!("0x{}", bytes::hex(value)),
    }
}

/// A value as it is usually written: by `@format`, else 48 bits as a MAC
/// address, 128 bits as an IPv6 address, up to 32 bits in decimal.
fn value_text(value: &[u8], width: i32, annotations: &[String]) -> String {
    let format = annotations
        .iter()
        .find_map(|a| a.strip_prefix("@format(")?.strip_suffix(')'));
    let number = bytes::decode(value).ok();
    match (format, width, number) {
        (_, 0, _) => String::from_utf8_lossy(value).into_owned(),
        (Some("IPV4_ADDRESS"), _, Some(number)) => Ipv4Addr::from(number as u32).to_string(),
        (Some("MAC_ADDRESS"), _, Some(number)) | (None, 48, Some(number)) => {
            let octets = number.to_be_bytes();
            let octets = octets[10..].iter().map(|octet| format!("{octet:02x}"));
            octets.collect::<Vec<_>>().join(":")
        }
        (Some("IPV6_ADDRESS"), _, Some(number)) | (None, 128, Some(number)) => {
            Ipv6Addr::from(number).to_string()
        }
        (None, ..=32, Some(number)) => number.to_string(),
        _ => format!("0x{}", bytes::hex(value)),
    }
}

fn replication(entry: &PacketReplicationEngineEntry) -> Readable {
    use packet_replication_engine_entry::Type;
    let (kind, id, replicas) = match &entry.r#type {
        Some(Type::MulticastGroupEntry(group)) => {
            ("multicast group", group.multicast_group_id, &group.replicas)
        }
        Some(Type::CloneSessionEntry(session)) => {
            ("clone session", session.session_id, &session.replicas)
        }
        None => return unknown("empty replication entry"),
    };
    let port = |replica: &Replica| match &replica.port_kind {
        Some(replica::PortKind::Port(port)) => {
            bytes::decode(port).map_or_else(|_| "?".to_owned(), |port| port.to_string())
        }
        #[allow(deprecated)] // older switches still send it
        Some(replica::PortKind::EgressPort(port)) => port.to_string(),
        None => "?".to_owned(),
    };
    let replicas = replicas
        .iter()
        .map(|r| format!("{}:{}", port(r), r.instance));
    Readable {
        kind: kind.to_owned(),
        name: id.to_string(),
        state: pair("replicas", replicas.collect::<Vec<_>>().join(" ")),
        ..unknown(kind)
    }
}

fn unknown(kind: &str) -> Readable {
    Readable {
        kind: kind.to_owned(),
        name: String::new(),
        key: Vec::new(),
        priority: 0,
        action: String::new(),
        state: Vec::new(),
    }
}

fn pair(name: &str, value: impl ToString) -> Fields {
    vec![(name.to_owned(), value.to_string())]
}

fn counter_state(data: CounterData) -> Fields {
    vec![
        ("packets".to_owned(), data.packet_count.to_string()),
        ("bytes".to_owned(), data.byte_count.to_string()),
    ]
}

fn meter_state(config: crate::v1::MeterConfig) -> Fields {
    vec![
        ("cir".to_owned(), config.cir.to_string()),
        ("cburst".to_owned(), config.cburst.to_string()),
        ("pir".to_owned(), config.pir.to_string()),
        ("pburst".to_owned(), config.pburst.to_string()),
    ]
}

fn read_data(data: &P4Data) -> String {
    match &data.data {
        Some(p4_data::Data::Bitstring(value) | p4_data::Data::EnumValue(value)) => {
            bytes::decode(value)
                .map_or_else(|_| format!("0x{}", bytes::hex(value)), |v| v.to_string())
        }
        Some(p4_data::Data::Bool(value)) => value.to_string(),
        Some(p4_data::Data::Enum(name) | p4_data::Data::Error(name)) => name.clone(),
        Some(p4_data::Data::Struct(members) | p4_data::Data::Tuple(members)) => {
            let members = members.members.iter().map(read_data);
            format!("({})", members.collect::<Vec<_>>().join(", "))
        }
        Some(other) => format!("{other:?}"),
        None => "unset".to_owned(),
    }
}

//! Entities by name.

use super::check::{self, Intent};
use super::matches::DontCare;
use super::{Error, Value};
use crate::info::{Index, Selector, Table};
use crate::v1::{
    self, Action, ActionProfileAction, ActionProfileActionSet, ActionProfileGroup,
    ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry, DigestEntry, FieldMatch,
    Index as Cell, MeterConfig, MeterEntry, MulticastGroupEntry, P4Data, PacketIn, PacketMetadata,
    PacketOut, RegisterEntry, Replica, TableAction, TableEntry, action_profile_action,
    action_profile_group, field_match, p4_data, replica, table_action,
};
use field_match::FieldMatchType as Match;

/// One action of an entry's own group.
#[derive(Debug, Clone, PartialEq)]
pub struct OneShot {
    /// From [`Index::call`].
    pub action: Action,
    /// At least 1, unless the selector has no weights.
    pub weight: i32,
    /// The action takes part only while this port is up.
    pub watch_port: Option<Value>,
}

/// Builds an entry of one table from names.
///
/// Methods do not fail; [`build`](Self::build) reports the first mistake. A
/// field that matches everything may be given or left out: it is left out of
/// the entry.
#[derive(Debug)]
#[must_use]
pub struct TableEntryBuilder<'i> {
    table: Table<'i>,
    entry: TableEntry,
    mistake: Option<Error>,
}

impl<'i> Table<'i> {
    /// Starts an entry of this table.
    pub fn entry(&self) -> TableEntryBuilder<'i> {
        TableEntryBuilder {
            table: *self,
            entry: TableEntry {
                table_id: self.id(),
                ..Default::default()
            },
            mistake: None,
        }
    }

    /// What to ask for to read every entry of this table, with the values of
    /// its direct counter and meter if `with_resources`.
    #[must_use]
    pub fn all(&self, with_resources: bool) -> TableEntry {
        let counter = self.direct_counter().filter(|_| with_resources);
        let meter = self.direct_meter().filter(|_| with_resources);
        TableEntry {
            table_id: self.id(),
            counter_data: counter.map(|_| CounterData::default()),
            meter_config: meter.map(|_| MeterConfig::default()),
            ..Default::default()
        }
    }
}

impl<'i> TableEntryBuilder<'i> {
    fn try_to(mut self, step: impl FnOnce(&mut Self) -> Result<(), Error>) -> Self {
        if self.mistake.is_none() {
            self.mistake = step(&mut self).err();
        }
        self
    }

    fn field<'s>(self, field: impl Into<Selector<'s>>, matched: Match) -> Self {
        self.try_to(|builder| {
            let field_id = builder.table.field(field)?.id();
            builder.entry.r#match.push(FieldMatch {
                field_id,
                field_match_type: Some(matched),
            });
            Ok(())
        })
    }

    /// The field equals `value`.
    pub fn exact<'s>(self, field: impl Into<Selector<'s>>, value: impl Into<Value>) -> Self {
        let value = value.into().into_bytes();
        self.field(field, Match::Exact(field_match::Exact { value }))
    }

    /// The first `prefix_len` bits of the field equal those of `value`, whose
    /// other bits are zero.
    pub fn lpm<'s>(
        self,
        field: impl Into<Selector<'s>>,
        value: impl Into<Value>,
        prefix_len: u32,
    ) -> Self {
        let value = value.into().into_bytes();
        let prefix_len = i32::try_from(prefix_len).unwrap_or(i32::MAX);
        self.field(field, Match::Lpm(field_match::Lpm { value, prefix_len }))
    }

    /// The field equals `value` where `mask` has ones; elsewhere `value` is zero.
    pub fn ternary<'s>(
        self,
        field: impl Into<Selector<'s>>,
        value: impl Into<Value>,
        mask: impl Into<Value>,
    ) -> Self {
        let (value, mask) = (value.into().into_bytes(), mask.into().into_bytes());
        self.field(field, Match::Ternary(field_match::Ternary { value, mask }))
    }

    /// The field lies between `low` and `high`, both included.
    pub fn range<'s>(
        self,
        field: impl Into<Selector<'s>>,
        low: impl Into<Value>,
        high: impl Into<Value>,
    ) -> Self {
        let (low, high) = (low.into().into_bytes(), high.into().into_bytes());
        self.field(field, Match::Range(field_match::Range { low, high }))
    }

    /// The field, of the optional kind, equals `value`.
    pub fn optional<'s>(self, field: impl Into<Selector<'s>>, value: impl Into<Value>) -> Self {
        let value = value.into().into_bytes();
        self.field(field, Match::Optional(field_match::Optional { value }))
    }

    /// Above 0; the larger number wins. Only for tables with a ternary, range or
    /// optional field.
    pub fn priority(mut self, priority: i32) -> Self {
        self.entry.priority = priority;
        self
    }

    /// The default entry, which has neither key nor priority.
    pub fn default_entry(mut self) -> Self {
        self.entry.is_default_action = true;
        self
    }

    /// What the entry does, with the arguments by name.
    pub fn action<'s, 'p, V: Into<Value>>(
        self,
        action: impl Into<Selector<'s>>,
        arguments: impl IntoIterator<Item = (&'p str, V)>,
    ) -> Self {
        self.try_to(|builder| {
            let (action, _) = builder.table.action(action)?;
            let call = call(builder.table.index(), action, arguments)?;
            builder.does(table_action::Type::Action(call));
            Ok(())
        })
    }

    fn does(&mut self, action: table_action::Type) {
        self.entry.action = Some(TableAction {
            r#type: Some(action),
        });
    }

    /// The member of the table's action profile that the entry uses.
    pub fn member(mut self, member_id: u32) -> Self {
        self.does(table_action::Type::ActionProfileMemberId(member_id));
        self
    }

    /// The group of the table's selector that the entry uses.
    pub fn group(mut self, group_id: u32) -> Self {
        self.does(table_action::Type::ActionProfileGroupId(group_id));
        self
    }

    /// A group of the entry's own.
    pub fn one_shot(mut self, actions: impl IntoIterator<Item = OneShot>) -> Self {
        let actions = actions.into_iter().map(|one| ActionProfileAction {
            action: Some(one.action),
            weight: one.weight,
            watch_kind: one
                .watch_port
                .map(|port| action_profile_action::WatchKind::WatchPort(port.into_bytes())),
        });
        let set = ActionProfileActionSet {
            action_profile_actions: actions.collect(),
            ..Default::default()
        };
        self.does(table_action::Type::ActionProfileActionSet(set));
        self
    }

    /// The controller's own note, which the switch keeps.
    pub fn metadata(mut self, metadata: impl Into<Vec<u8>>) -> Self {
        self.entry.metadata = metadata.into();
        self
    }

    /// Nanoseconds without a hit before the switch reports the entry; 0 is never.
    pub fn idle_timeout_ns(mut self, timeout: i64) -> Self {
        self.entry.idle_timeout_ns = timeout;
        self
    }

    /// The entry's direct meter; an entry that is modified without one loses it.
    pub fn meter(mut self, config: MeterConfig) -> Self {
        self.entry.meter_config = Some(config);
        self
    }

    /// Sets the entry's direct counter.
    pub fn counter(mut self, data: CounterData) -> Self {
        self.entry.counter_data = Some(data);
        self
    }

    /// The entry, complete and canonical.
    ///
    /// # Errors
    /// The first mistake that was made on the way, or a rule that the whole
    /// breaks.
    pub fn build(self) -> Result<TableEntry, Error> {
        let intent = match self.entry.is_default_action {
            true => Intent::Modify,
            false => Intent::Insert,
        };
        let (table, entry) = self.with_key()?;
        check::table_entry(table.index(), &entry, intent)
    }

    /// Only the entry's key, canonical: for deleting and reading.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_key(self) -> Result<TableEntry, Error> {
        let (_, entry) = self.with_key()?;
        Ok(super::table_key(&entry))
    }

    fn with_key(self) -> Result<(Table<'i>, TableEntry), Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let mut entry = self.entry;
        entry.r#match = check::key_of(&self.table, &entry, DontCare::Omit)?.r#match;
        Ok((self.table, entry))
    }
}

fn call<'p, V: Into<Value>>(
    index: &Index,
    action: &crate::config::v1::Action,
    arguments: impl IntoIterator<Item = (&'p str, V)>,
) -> Result<Action, Error> {
    let mut params = Vec::with_capacity(action.params.len());
    for (name, value) in arguments {
        params.push(v1::action::Param {
            param_id: index.param(action, name)?.id,
            value: value.into().into_bytes(),
        });
    }
    let action_id = action.preamble.as_ref().map_or(0, |p| p.id);
    check::arguments(index, &Action { action_id, params })
}

impl Index {
    /// An action with its arguments by name.
    ///
    /// # Errors
    /// When the action or an argument is unknown, missing, double or too large.
    pub fn call<'s, 'p, V: Into<Value>>(
        &self,
        action: impl Into<Selector<'s>>,
        arguments: impl IntoIterator<Item = (&'p str, V)>,
    ) -> Result<Action, Error> {
        call(self, self.action(action)?, arguments)
    }

    /// A member of an action profile.
    ///
    /// # Errors
    /// When the profile is unknown, the id is 0 or the action does not suit.
    pub fn member<'s>(
        &self,
        profile: impl Into<Selector<'s>>,
        member_id: u32,
        action: Action,
    ) -> Result<ActionProfileMember, Error> {
        let profile = self.action_profile(profile)?;
        let member = ActionProfileMember {
            action_profile_id: id_of(profile.preamble.as_ref()),
            member_id,
            action: Some(action),
        };
        super::resources::member(self, &member, Intent::Insert)
    }

    /// A group of members, each with its weight.
    ///
    /// # Errors
    /// When the profile is unknown or has no selector, or a size or weight does
    /// not suit.
    pub fn group<'s>(
        &self,
        profile: impl Into<Selector<'s>>,
        group_id: u32,
        max_size: i32,
        members: impl IntoIterator<Item = (u32, i32)>,
    ) -> Result<ActionProfileGroup, Error> {
        let profile = self.action_profile(profile)?;
        let members = members.into_iter();
        let group = ActionProfileGroup {
            action_profile_id: id_of(profile.preamble.as_ref()),
            group_id,
            members: members
                .map(|(member_id, weight)| action_profile_group::Member {
                    member_id,
                    weight,
                    watch_kind: None,
                })
                .collect(),
            max_size,
        };
        super::resources::group(self, &group, Intent::Insert)
    }

    /// A cell of a counter array, or all of it; to read or, with `data`, to write.
    ///
    /// # Errors
    /// When there is no such counter or cell.
    pub fn counter_entry<'s>(
        &self,
        counter: impl Into<Selector<'s>>,
        cell: Option<i64>,
        data: Option<CounterData>,
    ) -> Result<CounterEntry, Error> {
        let counter = self.counter(counter)?;
        let entry = CounterEntry {
            counter_id: id_of(counter.preamble.as_ref()),
            index: cell.map(|index| Cell { index }),
            data,
        };
        super::resources::counter(self, &entry, Intent::Modify)
    }

    /// A cell of a meter array, or all of it; without `config` every packet is
    /// green.
    ///
    /// # Errors
    /// When there is no such meter or cell, or the config does not suit its type.
    pub fn meter_entry<'s>(
        &self,
        meter: impl Into<Selector<'s>>,
        cell: Option<i64>,
        config: Option<MeterConfig>,
    ) -> Result<MeterEntry, Error> {
        let meter = self.meter(meter)?;
        let entry = MeterEntry {
            meter_id: id_of(meter.preamble.as_ref()),
            index: cell.map(|index| Cell { index }),
            config,
            counter_data: None,
        };
        super::resources::meter(self, &entry, Intent::Modify)
    }

    /// A cell of a register array with a new value.
    ///
    /// # Errors
    /// When there is no such register or cell.
    pub fn register_entry<'s>(
        &self,
        register: impl Into<Selector<'s>>,
        cell: i64,
        value: impl Into<Value>,
    ) -> Result<RegisterEntry, Error> {
        let register = self.register(register)?;
        let entry = RegisterEntry {
            register_id: id_of(register.preamble.as_ref()),
            index: Some(Cell { index: cell }),
            data: Some(P4Data {
                data: Some(p4_data::Data::Bitstring(value.into().into_bytes())),
            }),
        };
        super::resources::register(self, &entry, Intent::Modify)
    }

    /// How a digest is sent.
    ///
    /// # Errors
    /// When there is no such digest, or a number is negative.
    pub fn digest_entry<'s>(
        &self,
        digest: impl Into<Selector<'s>>,
        config: v1::digest_entry::Config,
    ) -> Result<DigestEntry, Error> {
        let digest = self.digest(digest)?;
        let entry = DigestEntry {
            digest_id: id_of(digest.preamble.as_ref()),
            config: Some(config),
        };
        super::resources::digest(self, &entry, Intent::Insert)
    }

    /// A packet-out, with the fields of its header by name.
    ///
    /// # Errors
    /// When a field is unknown, missing, double or too large.
    pub fn packet_out<'p, V: Into<Value>>(
        &self,
        payload: impl Into<Vec<u8>>,
        fields: impl IntoIterator<Item = (&'p str, V)>,
    ) -> Result<PacketOut, Error> {
        let mut metadata = Vec::new();
        for (name, value) in fields {
            let field = self.packet_field("packet_out", name)?;
            metadata.push(PacketMetadata {
                metadata_id: field.id,
                value: value.into().into_bytes(),
            });
        }
        let packet = PacketOut {
            payload: payload.into(),
            metadata,
        };
        self.check_packet_out(&packet)
    }

    /// A packet-out in canonical form: exactly one value for each field of the
    /// header, in order (specification section 16.1).
    ///
    /// # Errors
    /// When a field is unknown, missing, double or too large.
    pub fn check_packet_out(&self, packet: &PacketOut) -> Result<PacketOut, Error> {
        Ok(PacketOut {
            metadata: self.header("packet_out", &packet.metadata)?,
            payload: packet.payload.clone(),
        })
    }

    /// The fields of a packet-in's header by name, in the order of P4Info.
    ///
    /// # Errors
    /// When a field is unknown, missing, double or too large.
    pub fn packet_in_fields(&self, packet: &PacketIn) -> Result<Vec<(&str, Value)>, Error> {
        let values = self.header("packet_in", &packet.metadata)?;
        let fields = &self.packet_metadata("packet_in")?.metadata;
        Ok((fields.iter().zip(values))
            .map(|(field, value)| (field.name.as_str(), value.value.into()))
            .collect())
    }

    fn header(&self, header: &str, given: &[PacketMetadata]) -> Result<Vec<PacketMetadata>, Error> {
        let info = self.packet_metadata(header)?;
        let mut metadata = Vec::with_capacity(info.metadata.len());
        for field in &info.metadata {
            let at = || format!("{header}, field `{}`", field.name);
            let mut values = given.iter().filter(|m| m.metadata_id == field.id);
            let value = match (values.next(), values.next()) {
                (Some(given), None) => &given.value,
                (Some(_), Some(_)) => return Err(Error::invalid(at(), "it is given twice")),
                (None, _) => return Err(Error::invalid(at(), "it is missing")),
            };
            let value = crate::bytes::fit(value, field.bitwidth.unsigned_abs())
                .map_err(|source| Error::Value { at: at(), source })?;
            metadata.push(PacketMetadata {
                metadata_id: field.id,
                value: value.to_vec(),
            });
        }
        for given in given {
            self.packet_field(header, given.metadata_id)?;
        }
        Ok(metadata)
    }
}

fn id_of(preamble: Option<&crate::config::v1::Preamble>) -> u32 {
    preamble.map_or(0, |p| p.id)
}

/// A copy of a packet for a multicast group or clone session.
#[must_use]
pub fn replica(port: impl Into<Value>, instance: u32) -> Replica {
    Replica {
        instance,
        port_kind: Some(replica::PortKind::Port(port.into().into_bytes())),
        backup_replicas: Vec::new(),
    }
}

/// A multicast group.
#[must_use]
pub fn multicast_group(
    group: u32,
    replicas: impl IntoIterator<Item = Replica>,
) -> MulticastGroupEntry {
    MulticastGroupEntry {
        multicast_group_id: group,
        replicas: replicas.into_iter().collect(),
        metadata: Vec::new(),
    }
}

/// A clone session whose clones keep `packet_length_bytes`, or everything if 0.
#[must_use]
pub fn clone_session(
    session: u32,
    packet_length_bytes: i32,
    replicas: impl IntoIterator<Item = Replica>,
) -> CloneSessionEntry {
    CloneSessionEntry {
        session_id: session,
        replicas: replicas.into_iter().collect(),
        class_of_service: 0,
        packet_length_bytes,
    }
}

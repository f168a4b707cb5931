//! Binds P4Info to the program it describes.

use std::collections::BTreeMap;
use std::sync::Arc;

use p4runtime::config::v1 as config;

use super::check;
use super::data::DataType;
use super::domain::{Domain, Translations};
use super::fault::Fault;
use super::packets::PacketHeader;
use super::pipeline::{
    Action, ActionRef, Array, Digest, Field, Kind, Meter, Param, Pipeline, Profile, Register,
    Table, ValueSet,
};
use crate::ids::{ActionId, CounterId, DigestId, Port, ProfileId};
use crate::program::layout::HeaderLayout;
use crate::program::{Implementation, MatchKind, Program, TableInfo, UnknownName};

impl From<UnknownName> for Fault {
    fn from(error: UnknownName) -> Self {
        Fault::invalid(format!("P4Info does not fit the device config: {error}"))
    }
}

/// Digests by P4Info's id, and P4Info's id by the program's.
type DigestMaps = (BTreeMap<u32, Digest>, Vec<Option<u32>>);

/// What binding needs at every turn.
struct Binder<'a> {
    p4info: &'a config::P4Info,
    types: &'a config::P4TypeInfo,
    translations: Translations<'a>,
    program: &'a Program,
}

impl Pipeline {
    /// Loads the device config and binds P4Info to it.
    ///
    /// # Errors
    /// `InvalidArgument` naming what is wrong in the JSON, or the first thing on which P4Info
    /// and JSON disagree.
    pub(crate) fn bind(
        p4info: config::P4Info,
        device_config: Vec<u8>,
        cpu_port: Option<Port>,
    ) -> Result<Pipeline, Fault> {
        if device_config.is_empty() {
            return Err(Fault::invalid(
                "p4_device_config is empty; it must hold the JSON that p4c writes for bmv2",
            ));
        }
        check::p4info(&p4info)?;
        let program = Program::load(device_data(&device_config))
            .map_err(|error| Fault::invalid(format!("p4_device_config: {error}")))?;
        let no_types = config::P4TypeInfo::default();
        let types = p4info.type_info.as_ref().unwrap_or(&no_types);
        let binder = Binder {
            p4info: &p4info,
            types,
            translations: Translations::of(types, cpu_port),
            program: &program,
        };
        let actions = binder.actions()?;
        let profiles = binder.profiles()?;
        let tables = binder.tables()?;
        let mut table_ids = vec![None; program.tables().len()];
        for table in tables.values() {
            table_ids[table.core.index()] = Some(table.id);
        }
        binder.check_complete(&table_ids)?;
        let (digests, digest_ids) = binder.digests()?;
        Ok(Pipeline {
            counters: binder.counters()?,
            meters: binder.meters()?,
            registers: binder.registers()?,
            value_sets: binder.value_sets()?,
            packet_in: binder.packet_header("packet_in")?,
            packet_out: binder.packet_header("packet_out")?,
            port_names: binder.translations.port_names(),
            cpu_port,
            tables,
            table_ids,
            actions,
            profiles,
            digests,
            digest_ids,
            program: Arc::new(program),
            p4info,
            device_config,
        })
    }
}

fn preamble<'a>(
    kind: &str,
    preamble: Option<&'a config::Preamble>,
) -> Result<&'a config::Preamble, Fault> {
    preamble
        .filter(|p| p.id != 0)
        .ok_or_else(|| Fault::invalid(format!("P4Info has a {kind} without an id")))
}

/// The JSON of a device config: on its own, or as older controllers send it in the `device_data`
/// of a `p4.tmp.P4DeviceConfig`.
fn device_data(config: &[u8]) -> &[u8] {
    const DEVICE_DATA: u32 = 3;
    if config.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{') {
        return config;
    }
    let mut rest = config;
    while !rest.is_empty() {
        let Ok((tag, wire)) = prost::encoding::decode_key(&mut rest) else {
            break;
        };
        if tag == DEVICE_DATA && wire == prost::encoding::WireType::LengthDelimited {
            let length = prost::encoding::decode_varint(&mut rest);
            let length = length.ok().and_then(|l| usize::try_from(l).ok());
            return length.and_then(|l| rest.get(..l)).unwrap_or(config);
        }
        let context = prost::encoding::DecodeContext::default();
        if prost::encoding::skip_field(wire, tag, &mut rest, context).is_err() {
            break;
        }
    }
    config
}

/// What P4Info and device config say differently of something.
fn differ(what: &str, p4info: impl std::fmt::Display, program: impl std::fmt::Display) -> Fault {
    Fault::invalid(format!(
        "{what}: {p4info} in P4Info and {program} in the device config; both must come from the \
         same compilation"
    ))
}

/// Whether an array has the size that P4Info says.
fn check_size(what: &str, p4info: i64, program: u64) -> Result<(), Fault> {
    if u64::try_from(p4info) == Ok(program) {
        return Ok(());
    }
    Err(differ(&format!("{what} has size"), p4info, program))
}

impl Binder<'_> {
    fn domain(
        &self,
        what: &str,
        bitwidth: i32,
        type_name: Option<&config::P4NamedType>,
        core_width: u32,
    ) -> Result<Domain, Fault> {
        Domain::of(what, bitwidth, type_name, &self.translations, core_width)
    }

    /// How an array's indices translate, if their type does.
    fn index(
        &self,
        array: &str,
        type_name: Option<&config::P4NamedType>,
    ) -> Result<Option<Domain>, Fault> {
        /// Bits of an index in the program; its type is not told.
        const INDEX_BITS: u32 = 32;
        let Some(name) = type_name else {
            return Ok(None);
        };
        let what = format!("index of {array}");
        let domain = Domain::translated(&what, &name.name, &self.translations, INDEX_BITS)?;
        if domain.is_string() {
            return Err(Fault::invalid(format!(
                "{what} is translated to a string, which an index cannot be"
            )));
        }
        Ok(Some(domain))
    }

    /// Whether P4Info has every table that only a controller can fill.
    fn check_complete(&self, ids: &[Option<u32>]) -> Result<(), Fault> {
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

    fn actions(&self) -> Result<BTreeMap<u32, Action>, Fault> {
        let mut actions = BTreeMap::new();
        for info in &self.p4info.actions {
            let p = preamble("action", info.preamble.as_ref())?;
            // p4c copies an action per table; the copies have the same parameters. An action
            // that no table uses is in P4Info but not in the JSON.
            let Some(core) = self.program.actions().iter().find(|a| a.name == p.name) else {
                let used = self
                    .p4info
                    .tables
                    .iter()
                    .any(|t| t.action_refs.iter().any(|r| r.id == p.id));
                if used {
                    return Err(Fault::invalid(format!(
                        "P4Info names action {}, which the device config does not have",
                        p.name
                    )));
                }
                continue;
            };
            if core.params.len() != info.params.len() {
                return Err(Fault::invalid(format!(
                    "action {} has {} parameters in P4Info and {} in the device config",
                    p.name,
                    info.params.len(),
                    core.params.len()
                )));
            }
            let mut params = Vec::with_capacity(core.params.len());
            for param in &core.params {
                let what = format!("parameter {} of action {}", param.name, p.name);
                let described = info
                    .params
                    .iter()
                    .find(|i| i.name == param.name)
                    .ok_or_else(|| Fault::invalid(format!("P4Info lacks {what}")))?;
                let domain = self.domain(
                    &what,
                    described.bitwidth,
                    described.type_name.as_ref(),
                    param.width,
                )?;
                params.push(Param {
                    id: described.id,
                    name: param.name.clone(),
                    domain,
                });
            }
            actions.insert(
                p.id,
                Action {
                    name: p.name.clone(),
                    params,
                },
            );
        }
        Ok(actions)
    }

    fn action_refs(
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

    fn field(
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
    fn fields(&self, info: &config::Table, core: &TableInfo) -> Result<Vec<Field>, Fault> {
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

    fn tables(&self) -> Result<BTreeMap<u32, Table>, Fault> {
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
    fn implementation(
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

    fn profiles(&self) -> Result<BTreeMap<u32, Profile>, Fault> {
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

    fn counters(&self) -> Result<BTreeMap<u32, Array<CounterId>>, Fault> {
        let mut counters = BTreeMap::new();
        for info in &self.p4info.counters {
            let p = preamble("counter", info.preamble.as_ref())?;
            let core = self.program.counter_id(&p.name)?;
            let size = self.program.counters()[core.index()].size as u64;
            check_size(&p.name, info.size, size)?;
            let index = self.index(&p.name, info.index_type_name.as_ref())?;
            counters.insert(
                p.id,
                Array {
                    core,
                    name: p.name.clone(),
                    size,
                    index,
                },
            );
        }
        Ok(counters)
    }

    fn meters(&self) -> Result<BTreeMap<u32, Meter>, Fault> {
        let mut meters = BTreeMap::new();
        for info in &self.p4info.meters {
            let p = preamble("meter", info.preamble.as_ref())?;
            let core = self.program.meter_id(&p.name)?;
            let size = self.program.meters()[core.index()].size as u64;
            check_size(&p.name, info.size, size)?;
            let array = Array {
                core,
                name: p.name.clone(),
                size,
                index: self.index(&p.name, info.index_type_name.as_ref())?,
            };
            let kind = info.spec.as_ref().map(|s| s.r#type()).unwrap_or_default();
            meters.insert(p.id, Meter { array, kind });
        }
        Ok(meters)
    }

    fn registers(&self) -> Result<BTreeMap<u32, Register>, Fault> {
        let mut registers = BTreeMap::new();
        for info in &self.p4info.registers {
            let p = preamble("register", info.preamble.as_ref())?;
            let core = self.program.register_id(&p.name)?;
            let core_info = &self.program.registers()[core.index()];
            check_size(&p.name, i64::from(info.size), core_info.size as u64)?;
            let mut data = DataType::of(&p.name, info.type_spec.as_ref(), self.types)?;
            data.bind(&p.name, &[core_info.width], &self.translations)?;
            let array = Array {
                core,
                name: p.name.clone(),
                size: core_info.size as u64,
                index: self.index(&p.name, info.index_type_name.as_ref())?,
            };
            registers.insert(p.id, Register { array, data });
        }
        Ok(registers)
    }

    fn value_sets(&self) -> Result<BTreeMap<u32, ValueSet>, Fault> {
        let mut sets = BTreeMap::new();
        for info in &self.p4info.value_sets {
            let p = preamble("value set", info.preamble.as_ref())?;
            let core = self.program.value_set_id(&p.name)?;
            let owner = format!("value set {}", p.name);
            let widths = &self.program.value_sets()[core.index()].widths;
            if widths.len() != info.r#match.len() {
                let what = format!("{owner} has fields");
                return Err(differ(&what, info.r#match.len(), widths.len()));
            }
            let field = |(m, width): (&config::MatchField, &u32)| {
                let kind = match m.r#match {
                    Some(config::match_field::Match::MatchType(kind)) => Kind::try_from(kind),
                    _ => Ok(Kind::Unspecified),
                };
                let core_kind = match kind {
                    Ok(Kind::Ternary | Kind::Optional) => MatchKind::Ternary,
                    Ok(Kind::Lpm) => MatchKind::Lpm,
                    Ok(Kind::Range) => MatchKind::Range,
                    _ => MatchKind::Exact,
                };
                self.field(&owner, m, *width, core_kind)
            };
            let fields = info.r#match.iter().zip(widths).map(field);
            let fields = fields.collect::<Result<_, _>>()?;
            let size = usize::try_from(info.size).unwrap_or(0);
            sets.insert(
                p.id,
                ValueSet {
                    core,
                    name: p.name.clone(),
                    size,
                    fields,
                },
            );
        }
        Ok(sets)
    }

    fn digests(&self) -> Result<DigestMaps, Fault> {
        let mut digests = BTreeMap::new();
        let mut ids = vec![None; self.program.digests().len()];
        for info in &self.p4info.digests {
            let p = preamble("digest", info.preamble.as_ref())?;
            let core: DigestId = self.program.digest_id(&p.name)?;
            let mut data = DataType::of(&p.name, info.type_spec.as_ref(), self.types)?;
            let widths = &self.program.digests()[core.index()].widths;
            data.bind(&p.name, widths, &self.translations)?;
            // The compiler makes a list of every call; those of one type are one digest.
            for (list, id) in self.program.digests().iter().zip(&mut ids) {
                if list.name == p.name && list.widths == *widths {
                    *id = Some(p.id);
                }
            }
            digests.insert(p.id, Digest { data });
        }
        Ok((digests, ids))
    }

    fn packet_header(&self, name: &str) -> Result<Option<PacketHeader>, Fault> {
        let found = self
            .p4info
            .controller_packet_metadata
            .iter()
            .find(|c| c.preamble.as_ref().is_some_and(|p| p.name == name));
        let of = |info| PacketHeader::of(name, info, &self.translations, &self.widths(info));
        found.map(of).transpose()
    }

    /// The widths of a controller header's fields in the program, where the header is known by
    /// its fields' names: the annotation is not in the JSON.
    fn widths(&self, info: &config::ControllerPacketMetadata) -> Vec<u32> {
        let names = || info.metadata.iter().map(|m| m.name.as_str());
        let fields_of = |header: &'_ HeaderLayout| {
            let fields = header.fields.iter();
            let own = fields.filter(|f| !f.name.starts_with(PADDING));
            own.map(|f| (f.name.clone(), f.bits)).collect::<Vec<_>>()
        };
        let headers = self.program.headers.iter().filter(|h| !h.metadata);
        let mut same = headers
            .map(fields_of)
            .filter(|fields| names().eq(fields.iter().map(|(name, _)| name.as_str())));
        match same.next() {
            Some(fields) => fields.into_iter().map(|(_, bits)| bits).collect(),
            None => {
                let widths = info.metadata.iter().map(|m| m.bitwidth.unsigned_abs());
                widths.collect()
            }
        }
    }
}

/// What p4c calls the fields that fill a header up to whole bytes.
const PADDING: &str = "_padding";

//! Binds P4Info to the program it describes.

mod arrays;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use p4runtime::config::v1 as config;

use super::check;
use super::domain::{Domain, Translations};
use super::fault::Fault;
use super::packets::PacketHeader;
use super::pipeline::{Action, Param, Pipeline};
use crate::ids::Port;
use crate::program::layout::HeaderLayout;
use crate::program::{Program, UnknownName};

impl From<UnknownName> for Fault {
    fn from(error: UnknownName) -> Self {
        Fault::invalid(format!("P4Info does not fit the device config: {error}"))
    }
}

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
        let mut program = Program::load(device_data(&device_config))
            .map_err(|error| Fault::invalid(format!("p4_device_config: {error}")))?;
        for table in &p4info.tables {
            if table.has_initial_entries && !table.is_const_table {
                let p = preamble("table", table.preamble.as_ref())?;
                let size = usize::try_from(table.size).unwrap_or(0);
                program.set_preinitialized(program.table_id(&p.name)?, size);
            }
        }
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

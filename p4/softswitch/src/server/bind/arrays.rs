//! Counters, meters, registers, value sets and digests.

use std::collections::BTreeMap;

use p4runtime::config::v1 as config;

use super::{Binder, differ, preamble};
use crate::ids::{CounterId, DigestId};
use crate::program::MatchKind;
use crate::server::data::DataType;
use crate::server::domain::Domain;
use crate::server::fault::Fault;
use crate::server::pipeline::{Array, Digest, Kind, Meter, Register, ValueSet};

/// Digests by P4Info's id, and P4Info's id by the program's.
pub(super) type DigestMaps = (BTreeMap<u32, Digest>, Vec<Option<u32>>);

/// Whether an array has the size that P4Info says.
fn check_size(what: &str, p4info: i64, program: u64) -> Result<(), Fault> {
    if u64::try_from(p4info) == Ok(program) {
        return Ok(());
    }
    Err(differ(&format!("{what} has size"), p4info, program))
}

impl Binder<'_> {
    /// How an array's indices translate, if their type does.
    pub(super) fn index(
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

    pub(super) fn counters(&self) -> Result<BTreeMap<u32, Array<CounterId>>, Fault> {
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

    pub(super) fn meters(&self) -> Result<BTreeMap<u32, Meter>, Fault> {
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

    pub(super) fn registers(&self) -> Result<BTreeMap<u32, Register>, Fault> {
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

    pub(super) fn value_sets(&self) -> Result<BTreeMap<u32, ValueSet>, Fault> {
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

    pub(super) fn digests(&self) -> Result<DigestMaps, Fault> {
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
}

//! From the JSON to a [`Program`].

use std::collections::HashMap;

use super::ast::{Ex, HeaderRef, Names, Part, StackRef};
use super::calc::{self, Calculation, Checksum};
use super::code::{Ins, Pc, Slot};
use super::emit::{Emitter, Operand};
use super::form::{Bodies, Form, Ways};
use super::info::*;
use super::law::{self, Law};
use super::layout::Layout;
use super::place::Place;
use super::primitives::{Calls, Primitives};
use super::tables::{self, TableDef};
use super::{LoadError, Parts, Program, Standard, invalid, optimise, parser, raw, unsupported};
use crate::ids::*;

/// Field lists, digests and stacks by the numbers the JSON has for them.
pub(super) struct Lists {
    field_lists: HashMap<u32, u16>,
    digests: HashMap<u32, u16>,
    stacks: u16,
}

impl Lists {
    /// Number of the list among the program's; list 0 is the empty one.
    pub(super) fn field_list(&self, id: u64) -> Option<u16> {
        if id == 0 {
            return Some(0);
        }
        self.field_lists.get(&u32::try_from(id).ok()?).copied()
    }

    pub(super) fn digest(&self, id: u64) -> Option<u16> {
        self.digests.get(&u32::try_from(id).ok()?).copied()
    }

    /// Number among all stacks, those of headers first.
    pub(super) fn stack_number(&self, stack: StackRef) -> u16 {
        match stack {
            StackRef::Headers(s) => s,
            StackRef::Unions(s) => self.stacks + s,
        }
    }
}

fn by_name<'a>(names: impl Iterator<Item = &'a String>) -> HashMap<String, u16> {
    names
        .enumerate()
        .map(|(i, n)| (n.clone(), i as u16))
        .collect()
}

pub(super) fn load(json: &[u8]) -> Result<Program, LoadError> {
    let root: raw::Root = sonic_rs::from_slice(json).map_err(|e| LoadError::Json(e.to_string()))?;
    if let Some(instance) = root.extern_instances.first() {
        return Err(unsupported(
            format!("extern instance {}", instance.name),
            format!("extern {}", instance.kind),
        ));
    }
    let names = Names {
        layout: Layout::build(&root)?,
        registers: by_name(root.register_arrays.iter().map(|r| &r.name)),
        counters: by_name(root.counter_arrays.iter().map(|r| &r.name)),
        meters: by_name(root.meter_arrays.iter().map(|r| &r.name)),
        calculations: by_name(root.calculations.iter().map(|r| &r.name)),
        register_widths: root.register_arrays.iter().map(|r| r.bitwidth).collect(),
    };
    let standard = Standard::find(&names.layout)?;
    let mut info = info(&root)?;
    let mut parts = compile(&root, &names, &info)?;
    describe(&parts, &root, &mut info);
    info.custom_hashes = super::custom::number(&root, &info.profiles, &mut parts);
    let Names { layout, .. } = names;
    let mut stacks = layout.stacks;
    stacks.extend(layout.union_stacks);
    let fast = parts.plain.clone();
    let mut program = Program {
        info,
        headers: layout.headers,
        stacks,
        packet_words: layout.words,
        metadata: layout.metadata,
        standard,
        parts,
        errors: super::ParserErrors::find(&root.errors),
        error_names: root.errors,
        fast,
        needs: optimise::Needs::default(),
    };
    (program.fast, program.needs) = optimise::optimise(&program);
    Ok(program)
}

/// The parameters of actions, laid out behind the packet's words.
fn action_params(root: &raw::Root, base: usize) -> (Vec<Vec<Operand>>, usize) {
    let mut most = 0;
    let params = root
        .actions
        .iter()
        .map(|action| {
            let mut next = base;
            let operands = action
                .runtime_data
                .iter()
                .map(|param| {
                    let slot = next as Slot;
                    next += super::code::limbs(param.bitwidth);
                    Operand {
                        slot,
                        bits: param.bitwidth,
                        signed: false,
                    }
                })
                .collect();
            most = most.max(next - base);
            operands
        })
        .collect();
    (params, most)
}

fn compile(root: &raw::Root, names: &Names, info: &Info) -> Result<Parts, LoadError> {
    let lists = Lists {
        field_lists: root
            .field_lists
            .iter()
            .enumerate()
            .map(|(i, l)| (l.id, i as u16 + 1))
            .collect(),
        digests: root
            .learn_lists
            .iter()
            .enumerate()
            .map(|(i, l)| (l.id, i as u16))
            .collect(),
        stacks: names.layout.stacks.len() as u16,
    };
    let (params, param_words) = action_params(root, names.layout.words);
    let mut emitter = Emitter::new(names, param_words);
    let mut calls = Calls::default();

    let errors = super::ParserErrors::find(&root.errors);
    let value_sets = by_name(root.parse_vsets.iter().map(|v| &v.name));
    let parsed = match root.parsers.as_slice() {
        [one] => {
            let mut primitives = Primitives {
                emitter: &mut emitter,
                calls: &mut calls,
                lists: &lists,
            };
            parser::compile(one, &value_sets, errors.no_match, &mut primitives)?
        }
        other => {
            return Err(invalid(
                "parsers",
                format!("there are {} parsers, not 1", other.len()),
            ));
        }
    };
    let verify = checksum_code(root, names, &mut emitter, true)?;
    let actions = action_code(root, params, &mut emitter, &mut calls, &lists)?;
    let tables = tables::compile(root, names, info, &actions.entries, &mut emitter)?;
    let deparse = deparser_code(root, &mut emitter, &mut calls, &lists)?;
    let update = checksum_code(root, names, &mut emitter, false)?;

    emitter.places.sort_by_key(|(at, _)| *at);
    let mut field_lists = vec![Vec::new()];
    for list in &root.field_lists {
        field_lists.push(list_slots(list, names)?);
    }
    let params_base = names.layout.words as Slot;
    let constants_base = emitter.constants_base();
    let plain = plain(
        emitter.code,
        parsed.selects,
        &actions,
        &tables.tables,
        info,
        params_base,
    );
    let digests = root
        .learn_lists
        .iter()
        .map(|list| digest_fields(list, names))
        .collect::<Result<_, _>>()?;
    let mut parts = Parts {
        params_base,
        constants_base,
        plain,
        places: emitter.places,
        constants: emitter.constants,
        indexed: emitter.indexed,
        hashes: calls.hashes,
        logs: calls.logs,
        parser: parsed.entry,
        verify,
        update,
        deparse,
        deparse_order: deparse_order(root, names)?,
        ingress: tables.ingress,
        egress: tables.egress,
        action_words: actions.words,
        tables: tables.tables,
        selectors: tables.selectors,
        calculations: calculations(root, names)?,
        checksums: checksums(root, names)?,
        field_lists,
        digests,
        law: Law::default(),
    };
    let actions = info.tables.iter();
    let actions = actions.map(|t| t.actions.iter().map(|a| a.index()).collect());
    let is_wide = root.register_arrays.iter().map(|r| r.bitwidth > 64);
    let is_wide: Vec<bool> = is_wide.collect();
    parts.law = law::find(&mut parts, &actions.collect::<Vec<_>>(), &is_wide);
    Ok(parts)
}

/// Where actions begin, and the words of their parameters.
pub(super) struct Actions {
    pub(super) entries: Vec<Pc>,
    words: Vec<u16>,
}

fn action_code(
    root: &raw::Root,
    params: Vec<Vec<Operand>>,
    emitter: &mut Emitter<'_>,
    calls: &mut Calls,
    lists: &Lists,
) -> Result<Actions, LoadError> {
    let mut actions = Actions {
        entries: Vec::new(),
        words: Vec::new(),
    };
    for (action, operands) in root.actions.iter().zip(params) {
        actions.entries.push(emitter.here());
        emitter.params = operands;
        let mut primitives = Primitives {
            emitter,
            calls,
            lists,
        };
        primitives.body(&action.primitives, &action.name)?;
        emitter.emit(Ins::Return);
        let words = emitter.params.iter().map(|p| p.limbs()).sum::<usize>();
        actions.words.push(words as u16);
    }
    emitter.params = Vec::new();
    Ok(actions)
}

/// The code as compiled, ready to run.
fn plain(
    code: Vec<Ins>,
    selects: Vec<parser::Select>,
    actions: &Actions,
    tables: &[TableDef],
    info: &Info,
    params_base: Slot,
) -> Form {
    let bodies = Bodies {
        code: &code,
        entries: &actions.entries,
        words: &actions.words,
        params_base,
    };
    let ways = info.tables.iter().zip(tables).map(|(table, def)| {
        let profile = def.profile.map(|id| &info.profiles[id.index()].actions);
        let default = def.default.as_ref().map(|call| &call.action);
        let all = table
            .actions
            .iter()
            .chain(profile.into_iter().flatten())
            .chain(default);
        let all: Vec<usize> = all.map(|id| id.index()).collect();
        Ways::new(def, &all, &bodies)
    });
    let tables = ways.collect();
    Form {
        at: (0..code.len() as Pc).collect(),
        selects,
        actions: actions.entries.clone(),
        tables,
        code: code.into(),
    }
}

/// Code that verifies, or updates, all checksums. Ends in `Halt`.
fn checksum_code(
    root: &raw::Root,
    names: &Names,
    emitter: &mut Emitter<'_>,
    verify: bool,
) -> Result<Pc, LoadError> {
    let entry = emitter.here();
    for (x, checksum) in root.checksums.iter().enumerate() {
        if !(if verify {
            checksum.verify
        } else {
            checksum.update
        }) {
            continue;
        }
        emitter.place = format!("checksum {}", checksum.name);
        emitter.mark(Place::Checksum(checksum.name.clone()));
        emitter.release_temps();
        let mut skips = Vec::new();
        if verify {
            // A field that is not there has nothing to verify.
            let header = names.layout.header(&checksum.target.0, &emitter.place)?;
            let is_metadata = names.layout.headers[usize::from(header)].metadata;
            if !is_metadata {
                let valid = Ex::Get(HeaderRef::Fixed(header), Part::Valid);
                emitter.jump_if(&valid, false, &mut skips)?;
            }
        }
        if let Some(cond) = checksum.if_cond.as_ref().filter(|c| !is_null(c)) {
            let ex = names.ex(cond, &emitter.place)?;
            emitter.jump_if(&ex, false, &mut skips)?;
        }
        emitter.emit(match verify {
            true => Ins::VerifyChecksum { x: x as u16 },
            false => Ins::UpdateChecksum { x: x as u16 },
        });
        let to = emitter.here();
        emitter.land(&skips, to)?;
    }
    emitter.emit(Ins::Halt);
    Ok(entry)
}

fn is_null(json: &sonic_rs::Value) -> bool {
    use sonic_rs::JsonValueTrait;
    json.is_null()
}

fn deparser(root: &raw::Root) -> Result<&raw::Deparser, LoadError> {
    match root.deparsers.as_slice() {
        [one] => Ok(one),
        other => Err(invalid(
            "deparsers",
            format!("there are {} deparsers, not 1", other.len()),
        )),
    }
}

fn deparser_code(
    root: &raw::Root,
    emitter: &mut Emitter<'_>,
    calls: &mut Calls,
    lists: &Lists,
) -> Result<Pc, LoadError> {
    let entry = emitter.here();
    for (number, call) in deparser(root)?.primitives.iter().enumerate() {
        emitter.place = format!("deparser, primitive {number} ({})", call.op);
        emitter.release_temps();
        Primitives {
            emitter,
            calls,
            lists,
        }
        .call(call)?;
    }
    emitter.emit(Ins::Halt);
    Ok(entry)
}

fn deparse_order(root: &raw::Root, names: &Names) -> Result<Vec<u16>, LoadError> {
    let order = &deparser(root)?.order;
    order
        .iter()
        .map(|name| names.layout.header(name, "deparser"))
        .collect()
}

fn list_slots(list: &raw::FieldList, names: &Names) -> Result<Vec<(Slot, u8)>, LoadError> {
    let place = format!("field list {}", list.name);
    let mut slots = Vec::new();
    for element in &list.elements {
        match names.ex(element, &place)? {
            Ex::Get(HeaderRef::Fixed(header), Part::Field(field)) => {
                let field = &names.layout.headers[usize::from(header)].fields[usize::from(field)];
                slots.push((field.slot, field.limbs() as u8));
            }
            Ex::Header(HeaderRef::Fixed(header)) => {
                let layout = &names.layout.headers[usize::from(header)];
                slots.extend(layout.fields.iter().map(|f| (f.slot, f.limbs() as u8)));
            }
            // There is nowhere to keep a constant, nor need.
            Ex::Number(_) => {}
            _ => return Err(unsupported(&place, "an element that is not a field")),
        }
    }
    Ok(slots)
}

/// The fields of a digest: constants have no slot.
fn digest_fields(
    list: &raw::FieldList,
    names: &Names,
) -> Result<Vec<super::DigestField>, LoadError> {
    let place = format!("digest {}", list.name);
    let mut fields = Vec::new();
    for element in &list.elements {
        match names.ex(element, &place)? {
            Ex::Get(HeaderRef::Fixed(header), part) => {
                let layout = &names.layout.headers[usize::from(header)];
                let (slot, bits) = match part {
                    Part::Valid => (layout.valid, 1),
                    Part::Field(f) => {
                        let field = &layout.fields[usize::from(f)];
                        (field.slot, field.bits)
                    }
                };
                fields.push(super::DigestField::Word { slot, bits });
            }
            Ex::Number(number) => {
                fields.push(super::DigestField::Constant(crate::Value::from_limbs(
                    &number.words(super::code::limbs(number.bits())),
                )));
            }
            Ex::Header(HeaderRef::Fixed(header)) => {
                let layout = &names.layout.headers[usize::from(header)];
                fields.extend(layout.fields.iter().map(|f| super::DigestField::Word {
                    slot: f.slot,
                    bits: f.bits,
                }));
            }
            _ => return Err(unsupported(&place, "an element that is not a field")),
        }
    }
    Ok(fields)
}

fn calculations(root: &raw::Root, names: &Names) -> Result<Vec<Calculation>, LoadError> {
    root.calculations
        .iter()
        .map(|c| calc::compile(&c.name, &c.algo, &c.input, names))
        .collect()
}

fn checksums(root: &raw::Root, names: &Names) -> Result<Vec<Checksum>, LoadError> {
    root.checksums
        .iter()
        .map(|checksum| {
            let place = format!("checksum {}", checksum.name);
            let header = names.layout.header(&checksum.target.0, &place)?;
            let field = names.layout.field(header, &checksum.target.1, &place)?;
            let field = &names.layout.headers[usize::from(header)].fields[usize::from(field)];
            let calculation = names
                .calculations
                .get(&checksum.calculation)
                .copied()
                .ok_or_else(|| {
                    invalid(
                        &place,
                        format!("there is no calculation {}", checksum.calculation),
                    )
                })?;
            Ok(Checksum {
                slot: field.slot,
                bits: field.bits.min(64) as u8,
                calculation,
            })
        })
        .collect()
}

fn info(root: &raw::Root) -> Result<Info, LoadError> {
    let mut info = Info::default();
    for action in &root.actions {
        let params = action.runtime_data.iter();
        info.actions.push(ActionInfo {
            name: action.name.clone(),
            params: params
                .map(|p| ParamInfo {
                    name: p.name.clone(),
                    width: p.bitwidth,
                })
                .collect(),
        });
    }
    tables::info(root, &mut info)?;
    let table = |name: &Option<String>| {
        let name = name.as_deref()?;
        info.tables
            .iter()
            .position(|t| t.name == name)
            .map(|t| TableId(t as u32))
    };
    let (mut counters, mut meters) = (Vec::new(), Vec::new());
    for counter in &root.counter_arrays {
        let direct = counter.is_direct.then(|| table(&counter.binding)).flatten();
        let size = direct.map_or(counter.size as usize, |t| info.tables[t.index()].size);
        check_size("counter", &counter.name, size)?;
        counters.push(CounterInfo {
            name: counter.name.clone(),
            size,
            direct,
        });
    }
    for meter in &root.meter_arrays {
        let direct = meter.is_direct.then(|| table(&meter.binding)).flatten();
        let place = format!("meter {}", meter.name);
        if meter.rate_count.unwrap_or(2) != 2 {
            return Err(unsupported(place, "a meter with other than two rates"));
        }
        let unit = match meter.kind.as_str() {
            "packets" => MeterUnit::Packets,
            "bytes" => MeterUnit::Bytes,
            other => return Err(unsupported(place, format!("a meter of {other}"))),
        };
        check_size("meter", &meter.name, meter.size as usize)?;
        meters.push(MeterInfo {
            name: meter.name.clone(),
            size: meter.size as usize,
            unit,
            direct,
        });
    }
    for (id, counter) in counters.iter().enumerate() {
        if let Some(table) = counter.direct {
            info.tables[table.index()].direct_counter = Some(CounterId(id as u32));
        }
    }
    for (id, meter) in meters.iter().enumerate() {
        if let Some(table) = meter.direct {
            info.tables[table.index()].direct_meter = Some(MeterId(id as u32));
        }
    }
    info.counters = counters;
    info.meters = meters;
    for register in &root.register_arrays {
        check_size("register", &register.name, register.size as usize)?;
        info.registers.push(RegisterInfo {
            name: register.name.clone(),
            size: register.size as usize,
            width: register.bitwidth,
        });
    }
    for set in &root.parse_vsets {
        info.value_sets.push(ValueSetInfo {
            name: set.name.clone(),
            widths: vec![set.compressed_bitwidth],
        });
    }
    Ok(info)
}

/// What only compilation finds out: the fields of value sets and digests.
fn describe(parts: &Parts, root: &raw::Root, info: &mut Info) {
    for select in &parts.plain.selects {
        for case in &select.cases {
            if let parser::Case::Set { set, .. } = case {
                let widths = select.parts.iter().map(|p| p.bits);
                info.value_sets[usize::from(*set)].widths = widths.collect();
            }
        }
    }
    for (list, fields) in root.learn_lists.iter().zip(&parts.digests) {
        let widths = fields.iter().map(|field| match field {
            super::DigestField::Word { bits, .. } => *bits,
            super::DigestField::Constant(value) => value.bits(),
        });
        info.digests.push(DigestInfo {
            name: list.name.clone(),
            widths: widths.collect(),
        });
    }
}

fn check_size(kind: &str, name: &str, size: usize) -> Result<(), LoadError> {
    if size > 1 << 26 {
        return Err(unsupported(
            format!("{kind} {name}"),
            format!("an array of {size} cells"),
        ));
    }
    Ok(())
}

impl TableDef {
    /// The most words any of the table's actions takes.
    pub(super) fn data_words(actions: &[ActionId], code: &[ActionInfo]) -> usize {
        let words = |id: &ActionId| -> usize {
            code[id.index()]
                .params
                .iter()
                .map(|p| super::code::limbs(p.width))
                .sum()
        };
        actions.iter().map(words).max().unwrap_or(0)
    }
}

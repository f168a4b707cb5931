//! Parser states to instructions.

use std::collections::HashMap;

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value as Json};

use super::ast::{Ex, HeaderRef, Part, StackRef, text};
use super::code::{Ins, Pc, Slot, limbs, ones};
use super::emit::Operand;
use super::number::Number;
use super::place::Place;
use super::primitives::Primitives;
use super::{LoadError, raw};

/// A transition of a parser state.
#[derive(Clone)]
pub(crate) struct Select {
    /// The words that make the key, and their widths, first field first.
    pub(crate) parts: Vec<KeyWord>,
    /// The whole key fits one word.
    pub(crate) is_word: bool,
    pub(crate) cases: Vec<Case>,
    /// The cases before the first value set, if the key fits one word.
    pub(crate) words: Vec<WordCase>,
    pub(crate) has_sets: bool,
    pub(crate) default: Pc,
}

/// A case of a select whose key fits a word.
#[derive(Clone, Copy)]
pub(crate) struct WordCase {
    pub(crate) value: u64,
    pub(crate) mask: u64,
    pub(crate) to: Pc,
}

/// One field of a select key.
#[derive(Clone, Copy)]
pub(crate) struct KeyWord {
    pub(crate) slot: Slot,
    pub(crate) limbs: u8,
    pub(crate) bits: u32,
    /// For keys of up to 64 bits in all: where the field goes in the key.
    pub(crate) shift: u8,
    pub(crate) mask: u64,
}

/// One case of a select.
#[derive(Clone)]
pub(crate) enum Case {
    /// The whole key fits a word.
    Word { value: u64, mask: u64, to: Pc },
    /// Words of all fields, one field after the other.
    Wide {
        value: Box<[u64]>,
        mask: Box<[u64]>,
        to: Pc,
    },
    /// Membership in a value set, under a mask.
    Set {
        set: u16,
        mask: Option<Box<[u64]>>,
        to: Pc,
    },
}

impl Case {
    /// Where it goes.
    pub(crate) fn to(&self) -> Pc {
        match self {
            Case::Word { to, .. } | Case::Wide { to, .. } | Case::Set { to, .. } => *to,
        }
    }

    fn set_to(&mut self, goal: Pc) {
        match self {
            Case::Word { to, .. } | Case::Wide { to, .. } | Case::Set { to, .. } => *to = goal,
        }
    }
}

impl Select {
    /// Puts other goals in place.
    pub(crate) fn relocate(&mut self, goal: impl Fn(Pc) -> Pc) {
        for case in &mut self.cases {
            case.set_to(goal(case.to()));
        }
        self.default = goal(self.default);
        self.index();
    }

    /// Brings `words` up to date with `cases`.
    fn index(&mut self) {
        let words = self.cases.iter().map_while(|case| match *case {
            Case::Word { value, mask, to } => Some(WordCase { value, mask, to }),
            _ => None,
        });
        self.words = words.collect();
        self.has_sets = self
            .cases
            .iter()
            .any(|case| matches!(case, Case::Set { .. }));
    }
}

/// What a parser is compiled into.
pub(super) struct Parsed {
    pub(super) entry: Pc,
    pub(super) selects: Vec<Select>,
}

pub(super) fn compile(
    parser: &raw::Parser,
    value_sets: &HashMap<String, u16>,
    no_match: u64,
    primitives: &mut Primitives<'_, '_>,
) -> Result<Parsed, LoadError> {
    let mut selects: Vec<Transition> = Vec::new();
    let mut labels: HashMap<&str, Pc> = HashMap::new();
    let mut jumps: Vec<(usize, &str)> = Vec::new();
    for state in &parser.parse_states {
        labels.insert(&state.name, primitives.emitter.here());
        primitives.emitter.mark(Place::State(state.name.clone()));
        for (number, op) in state.parser_ops.iter().enumerate() {
            primitives.emitter.place = format!(
                "parser state {}, operation {number} ({})",
                state.name, op.op
            );
            primitives.emitter.release_temps();
            operation(op, primitives)?;
        }
        primitives.emitter.place = format!("parser state {}, transition", state.name);
        primitives.emitter.release_temps();
        if state.transition_key.is_empty() {
            let next = state
                .transitions
                .first()
                .and_then(|t| t.next_state.as_deref());
            match next {
                Some(next) => {
                    jumps.push((primitives.emitter.code.len(), next));
                    primitives.emitter.emit(Ins::Goto { to: 0 });
                }
                None => primitives.emitter.emit(Ins::Halt),
            }
        } else {
            let number = selects.len() as u16;
            selects.push(transition(state, value_sets, primitives)?);
            primitives.emitter.emit(Ins::Select { select: number });
        }
    }
    let unmatched = primitives.emitter.here();
    let (cond, error) = (
        primitives.emitter.number(0)?,
        primitives.emitter.number(no_match)?,
    );
    primitives.emitter.emit(Ins::Verify { cond, error });
    let halt = primitives.emitter.here();
    primitives.emitter.emit(Ins::Halt);
    let resolve = |name: Option<&str>| -> Result<Pc, LoadError> {
        match name {
            None => Ok(halt),
            Some(name) => labels.get(name).copied().ok_or_else(|| LoadError::Invalid {
                place: format!("parser {}", parser.name),
                why: format!("there is no state {name}"),
            }),
        }
    };
    for (at, name) in jumps {
        primitives.emitter.code[at] = Ins::Goto {
            to: resolve(Some(name))?,
        };
    }
    let entry = resolve(parser.init_state.as_deref())?;
    let selects = selects
        .into_iter()
        .map(|(mut select, nexts, default)| {
            for (case, next) in select.cases.iter_mut().zip(nexts) {
                case.set_to(resolve(next.as_deref())?);
            }
            select.default = match default {
                Some(next) => resolve(next.as_deref())?,
                None => unmatched,
            };
            select.index();
            Ok(select)
        })
        .collect::<Result<_, LoadError>>()?;
    Ok(Parsed { entry, selects })
}

fn operation(op: &raw::Call, primitives: &mut Primitives<'_, '_>) -> Result<(), LoadError> {
    let place = primitives.emitter.place.clone();
    let param = |index: usize| -> Result<&Json, LoadError> {
        op.parameters
            .get(index)
            .ok_or_else(|| super::invalid(&place, format!("parameter {index} is missing")))
    };
    let ex = |index: usize, primitives: &Primitives<'_, '_>| -> Result<Ex, LoadError> {
        primitives.emitter.names.ex(param(index)?, &place)
    };
    match op.op.as_str() {
        "extract" => extract(param(0)?, None, primitives),
        "extract_VL" => {
            let length = ex(1, primitives)?;
            let bits = primitives.emitter.narrow(&length)?;
            extract(param(0)?, Some(bits), primitives)
        }
        "set" => {
            let (to, from) = (ex(0, primitives)?, ex(1, primitives)?);
            primitives.assign_to(&to, &from)
        }
        "verify" => {
            let (cond, error) = (ex(0, primitives)?, ex(1, primitives)?);
            let cond = primitives.emitter.exact(&cond)?.slot;
            let error = primitives.emitter.narrow(&error)?;
            primitives.emitter.emit(Ins::Verify { cond, error });
            Ok(())
        }
        "advance" => {
            let amount = ex(0, primitives)?;
            let bits = primitives.emitter.narrow(&amount)?;
            primitives.emitter.emit(Ins::Advance { bits });
            Ok(())
        }
        "shift" => {
            let bytes = param(0)?
                .as_u64()
                .ok_or_else(|| super::invalid(&place, "shift takes a number of bytes"))?;
            let bits = primitives.emitter.number(bytes * 8)?;
            primitives.emitter.emit(Ins::Advance { bits });
            Ok(())
        }
        "primitive" => {
            let call = nested_call(param(0)?, &place)?;
            primitives.emitter.place = format!("{place}, {}", call.op);
            primitives.call(&call)
        }
        other => Err(super::unsupported(
            &place,
            format!("parser operation {other}"),
        )),
    }
}

/// A call that is the parameter of another.
fn nested_call(json: &Json, place: &str) -> Result<raw::Call, LoadError> {
    let op = json.get("op").and_then(|op| op.as_str());
    let parameters = json.get("parameters").and_then(|p| p.as_array());
    Ok(raw::Call {
        source_info: None,
        op: op
            .ok_or_else(|| super::invalid(place, "a primitive has no name"))?
            .to_owned(),
        parameters: parameters
            .map(|p| p.iter().cloned().collect())
            .unwrap_or_default(),
    })
}

/// Compiles `extract`, with the length of the varbit field if there is one.
fn extract(
    what: &Json,
    bits: Option<Slot>,
    primitives: &mut Primitives<'_, '_>,
) -> Result<(), LoadError> {
    let place = primitives.emitter.place.clone();
    let names = primitives.emitter.names;
    let kind = what
        .get("type")
        .and_then(|t| t.as_str())
        .unwrap_or("regular");
    let value = what
        .get("value")
        .ok_or_else(|| super::invalid(&place, "extract without a header"))?;
    let (ins, header) = match kind {
        "regular" => {
            let h = names.layout.header(text(value, &place)?, &place)?;
            let ins = bits.map_or(Ins::Extract { h }, |bits| Ins::ExtractVl { h, bits });
            (ins, h)
        }
        "stack" => {
            let number = names.layout.stack(text(value, &place)?, &place)?;
            let stack = primitives.lists.stack_number(StackRef::Headers(number));
            let ins = bits.map_or(Ins::ExtractNext { stack }, |bits| Ins::ExtractNextVl {
                stack,
                bits,
            });
            (ins, names.stack(StackRef::Headers(number)).first)
        }
        "union_stack" => {
            let pair = value.as_array().filter(|a| a.len() == 2);
            let pair =
                pair.ok_or_else(|| super::invalid(&place, "extract not of [stack, member]"))?;
            let number = names.layout.union_stack(text(&pair[0], &place)?, &place)?;
            let member = names.union_member(number, text(&pair[1], &place)?, &place)?;
            let stack = primitives.lists.stack_number(StackRef::Unions(number));
            let ins = match bits {
                None => Ins::ExtractUnionNext { stack, member },
                Some(bits) => Ins::ExtractUnionNextVl {
                    stack,
                    member: member as u8,
                    bits,
                },
            };
            (ins, names.stack(StackRef::Unions(number)).first + member)
        }
        other => return Err(super::unsupported(&place, format!("extract of a {other}"))),
    };
    let varbit = names.layout.headers[usize::from(header)].varbit.is_some();
    if varbit && bits.is_none() {
        return Err(super::unsupported(
            &place,
            "extract of a varbit header without a length (P4_14)",
        ));
    }
    primitives.emitter.emit(ins);
    Ok(())
}

/// A select, where its cases go, and where it goes when none matches: `None`
/// for a select without default, of which that is an error.
type Transition = (Select, Vec<Option<String>>, Option<Option<String>>);

fn transition(
    state: &raw::ParseState,
    value_sets: &HashMap<String, u16>,
    primitives: &mut Primitives<'_, '_>,
) -> Result<Transition, LoadError> {
    let place = primitives.emitter.place.clone();
    let mut operands: Vec<Operand> = Vec::new();
    for key in &state.transition_key {
        let ex = primitives.emitter.names.ex(key, &place)?;
        let bits = key_width(&ex, primitives);
        let operand = primitives.emitter.exact(&ex)?;
        operands.push(Operand {
            bits: bits.unwrap_or(operand.bits),
            ..operand
        });
    }
    let total: u32 = operands.iter().map(|o| o.bits).sum();
    let mut below = total;
    let parts: Vec<KeyWord> = operands
        .iter()
        .map(|o| {
            below -= o.bits;
            KeyWord {
                slot: o.slot,
                limbs: o.limbs() as u8,
                bits: o.bits,
                shift: if total <= 64 { below as u8 } else { 0 },
                mask: ones(o.bits.min(64) as u8),
            }
        })
        .collect();
    let mut cases = Vec::new();
    let mut nexts = Vec::new();
    let mut default = None;
    for transition in &state.transitions {
        let kind = transition
            .kind
            .as_deref()
            .unwrap_or(match transition.value.as_deref() {
                Some("default") | None => "default",
                Some(_) => "hexstr",
            });
        let to = 0;
        match kind {
            "default" => {
                default = Some(transition.next_state.clone());
                break;
            }
            "parse_vset" => {
                let name = transition.value.as_deref().unwrap_or_default();
                let set = *value_sets.get(name).ok_or_else(|| {
                    super::invalid(&place, format!("there is no value set {name}"))
                })?;
                let mask = match &transition.mask {
                    None => None,
                    Some(mask) => Some(fields(&Number::parse(mask, &place)?, &parts)),
                };
                cases.push(Case::Set { set, mask, to });
            }
            "hexstr" => {
                let value = transition.value.as_deref().unwrap_or_default();
                let value = fields(&Number::parse(value, &place)?, &parts);
                let mask = match &transition.mask {
                    None => parts.iter().flat_map(all_ones).collect(),
                    Some(mask) => fields(&Number::parse(mask, &place)?, &parts),
                };
                let value: Box<[u64]> = value.iter().zip(&mask).map(|(v, m)| v & m).collect();
                cases.push(match total <= 64 {
                    true => Case::Word {
                        value: pack(&value, &parts),
                        mask: pack(&mask, &parts),
                        to,
                    },
                    false => Case::Wide { value, mask, to },
                });
            }
            other => {
                return Err(super::unsupported(
                    &place,
                    format!("a transition on {other}"),
                ));
            }
        }
        nexts.push(transition.next_state.clone());
    }
    let is_word = total <= 64;
    Ok((
        Select {
            parts,
            is_word,
            cases,
            words: Vec::new(),
            has_sets: false,
            default: 0,
        },
        nexts,
        default,
    ))
}

/// The declared width of a key field.
fn key_width(ex: &Ex, primitives: &Primitives<'_, '_>) -> Option<u32> {
    match ex {
        Ex::Lookahead { width, .. } => Some(*width),
        Ex::Get(header, Part::Field(field)) => {
            let number = match header {
                HeaderRef::Fixed(h) => *h,
                other => primitives.emitter.names.header_number(other),
            };
            let layout = &primitives.emitter.names.layout.headers[usize::from(number)];
            Some(layout.fields[usize::from(*field)].bits)
        }
        _ => None,
    }
}

/// Cuts a number, in which each field is padded to bytes, into the fields'
/// words.
fn fields(number: &Number, parts: &[KeyWord]) -> Box<[u64]> {
    let mut below: u32 = parts.iter().map(|p| p.bits.div_ceil(8) * 8).sum();
    parts
        .iter()
        .flat_map(|part| {
            below -= part.bits.div_ceil(8) * 8;
            number.slice(below, part.bits)
        })
        .collect()
}

fn all_ones(part: &KeyWord) -> Vec<u64> {
    (0..limbs(part.bits))
        .map(|i| ones((part.bits - 64 * i as u32).min(64) as u8))
        .collect()
}

fn pack(words: &[u64], parts: &[KeyWord]) -> u64 {
    words
        .iter()
        .zip(parts)
        .map(|(w, p)| w << p.shift)
        .fold(0, |a, w| a | w)
}

//! Calculations: what hashes and checksums are computed over.

use sonic_rs::{JsonValueTrait, Value as Json};

use super::ast::{Ex, HeaderRef, Names, Part, text};
use super::code::{Slot, limbs, ones};
use super::number::Number;
use super::{LoadError, invalid, unsupported};
use crate::hash::Algorithm;

/// A hash or checksum and its input.
pub(crate) struct Calculation {
    pub(crate) algorithm: Algorithm,
    /// Which of the state's CRCs it is, if its parameters are the control plane's.
    pub(crate) custom: Option<u16>,
    pub(crate) input: Vec<Input>,
    /// Whatever follows the parsed headers is input too.
    pub(crate) payload: bool,
    /// The same input ready to be summed up, if it is simple enough.
    pub(crate) terms: Option<Terms>,
}

/// Input of an internet checksum, all of it from one header and in narrow
/// fields.
pub(crate) struct Terms {
    /// The sum is 0 unless this word is set.
    pub(crate) valid: Option<Slot>,
    pub(crate) terms: Box<[Term]>,
}

/// A field and its place among other bits.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    /// The field's bits, shifted down.
    pub(crate) mask: u64,
    pub(crate) slot: Slot,
    pub(crate) shift: u8,
}

/// Terms of which a sum of words of 64 bits cannot overflow.
const MOST_TERMS: usize = 1 << 12;
/// Bits that a term has at most: those of its field, shifted up.
const TERM_BITS: u32 = 48;

impl Terms {
    fn of(calculation: &Calculation) -> Option<Self> {
        if calculation.algorithm != Algorithm::Csum16 || calculation.payload {
            return None;
        }
        let mut common = None;
        let mut end = 0;
        let mut terms = Vec::new();
        for input in &calculation.input {
            let Input::Field {
                slot,
                bits: bits @ 1..=48,
                valid,
            } = *input
            else {
                return None;
            };
            if *common.get_or_insert(valid) != valid {
                return None;
            }
            end += bits;
            let shift = (end.wrapping_neg() % 16) as u8;
            if bits + u32::from(shift) > TERM_BITS {
                return None;
            }
            terms.push(Term {
                mask: ones(bits as u8),
                slot,
                shift,
            });
        }
        if terms.len() > MOST_TERMS {
            return None;
        }
        Some(Terms {
            valid: common?,
            terms: terms.into(),
        })
    }
}

/// A piece of input. Fields of headers that are not valid are left out.
pub(crate) enum Input {
    Field {
        slot: Slot,
        bits: u32,
        valid: Option<Slot>,
    },
    /// A varbit field: its length is in the word before.
    Varbit {
        slot: Slot,
        valid: Slot,
    },
    Constant {
        words: Box<[u64]>,
        bits: u32,
    },
    /// Fields of one header that make up to 64 bits.
    Packed {
        terms: Box<[Term]>,
        bits: u32,
        valid: Option<Slot>,
    },
}

/// Puts together what fits one word.
fn pack(input: Vec<Input>) -> Vec<Input> {
    let mut out: Vec<Input> = Vec::new();
    for piece in input {
        let Input::Field {
            slot,
            bits: bits @ 1..=64,
            valid,
        } = piece
        else {
            out.push(piece);
            continue;
        };
        let term = Term {
            mask: ones(bits as u8),
            slot,
            shift: 0,
        };
        match out.last_mut() {
            Some(Input::Packed {
                terms,
                bits: before,
                valid: same,
            }) if *same == valid && *before + bits <= 64 => {
                let mut all = std::mem::take(terms).into_vec();
                for earlier in &mut all {
                    earlier.shift += bits as u8;
                }
                all.push(term);
                *terms = all.into();
                *before += bits;
            }
            _ => out.push(Input::Packed {
                terms: [term].into(),
                bits,
                valid,
            }),
        }
    }
    out
}

/// Where a checksum goes, or is compared with.
pub(crate) struct Checksum {
    pub(crate) slot: Slot,
    pub(crate) bits: u8,
    pub(crate) calculation: u16,
}

pub(super) fn compile(
    name: &str,
    algorithm: &str,
    input: &[Json],
    names: &Names,
) -> Result<Calculation, LoadError> {
    let place = format!("calculation {name}");
    let algorithm = Algorithm::by_name(algorithm)
        .ok_or_else(|| unsupported(&place, format!("hash algorithm {algorithm}")))?;
    let mut calculation = Calculation {
        algorithm,
        custom: None,
        input: Vec::new(),
        payload: false,
        terms: None,
    };
    for piece in input {
        let kind = piece
            .get("type")
            .and_then(|t| t.as_str())
            .unwrap_or_default();
        match kind {
            "payload" => calculation.payload = true,
            "hexstr" => calculation.input.push(constant(piece, &place)?),
            "header" => {
                let value = piece
                    .get("value")
                    .ok_or_else(|| invalid(&place, "no header"))?;
                let header = names.layout.header(text(value, &place)?, &place)?;
                let fields = names.layout.headers[usize::from(header)].fields.len();
                let parts = (0..fields).map(|f| input_field(names, header, f as u16));
                calculation.input.extend(parts);
            }
            _ => match names.ex(piece, &place)? {
                Ex::Get(HeaderRef::Fixed(header), Part::Field(field)) => {
                    calculation.input.push(input_field(names, header, field));
                }
                _ => return Err(unsupported(&place, format!("input of type {kind}"))),
            },
        }
    }
    calculation.terms = Terms::of(&calculation);
    if calculation.algorithm != Algorithm::Csum16 {
        calculation.input = pack(calculation.input);
    }
    Ok(calculation)
}

fn constant(piece: &Json, place: &str) -> Result<Input, LoadError> {
    let value = piece
        .get("value")
        .ok_or_else(|| invalid(place, "a constant has no value"))?;
    let number = Number::parse(text(value, place)?, place)?;
    let bits = piece
        .get("bitwidth")
        .and_then(|b| b.as_u64())
        .filter(|b| (1..=16_000).contains(b))
        .ok_or_else(|| invalid(place, "a constant has no bitwidth from 1 to 16000"))?;
    let words = number.words(limbs(bits as u32)).into();
    Ok(Input::Constant {
        words,
        bits: bits as u32,
    })
}

fn input_field(names: &Names, header: u16, field: u16) -> Input {
    let layout = &names.layout.headers[usize::from(header)];
    let field = &layout.fields[usize::from(field)];
    match field.varbit {
        true => Input::Varbit {
            slot: field.slot,
            valid: layout.valid,
        },
        false => Input::Field {
            slot: field.slot,
            bits: field.bits,
            valid: (!layout.metadata).then_some(layout.valid),
        },
    }
}

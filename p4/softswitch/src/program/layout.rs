//! Where each header field lives in the frame, and how headers are read from
//! and written to packets.

use std::collections::HashMap;

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::code::{Slot, limbs, ones};
use super::{LoadError, raw};

/// All headers, stacks and unions of a program.
#[derive(Default)]
pub(crate) struct Layout {
    pub(crate) headers: Vec<HeaderLayout>,
    pub(crate) stacks: Vec<StackLayout>,
    pub(crate) unions: Vec<UnionLayout>,
    pub(crate) union_stacks: Vec<StackLayout>,
    header_names: HashMap<String, u16>,
    stack_names: HashMap<String, u16>,
    union_names: HashMap<String, u16>,
    union_stack_names: HashMap<String, u16>,
    aliases: HashMap<String, (String, String)>,
    /// Words that belong to a packet: `0..words`.
    pub(crate) words: usize,
    /// Words of metadata: part of `0..words`.
    pub(crate) metadata: std::ops::Range<usize>,
}

pub(crate) struct HeaderLayout {
    pub(crate) name: String,
    pub(crate) metadata: bool,
    pub(crate) valid: Slot,
    /// First word of the fields.
    pub(crate) first: Slot,
    /// Words of the fields.
    pub(crate) words: u16,
    /// Bytes on the wire, without the varbit field.
    pub(crate) bytes: u16,
    /// Most bytes on the wire; 0: no limit given.
    pub(crate) max_bytes: u32,
    pub(crate) fields: Vec<FieldLayout>,
    /// How the header is read and written, when it has no varbit field: its
    /// fields in order, but for those in `slow`.
    pub(crate) parts: Vec<Part>,
    /// Fields that are not in `parts`, and their first bits.
    pub(crate) slow: Vec<(u32, u16)>,
    /// Signed fields among `parts`, with their widths.
    pub(crate) signed: Vec<(Slot, u8)>,
    /// The varbit field, if there is one.
    pub(crate) varbit: Option<usize>,
    /// Other members of its union.
    pub(crate) siblings: Vec<u16>,
}

#[derive(Clone)]
pub(crate) struct FieldLayout {
    pub(crate) name: String,
    /// First word. A varbit's length in bits is in the word before.
    pub(crate) slot: Slot,
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    pub(crate) varbit: bool,
}

impl FieldLayout {
    pub(crate) fn limbs(&self) -> usize {
        limbs(self.bits)
    }
}

/// A field within a byte-aligned run of up to 8 bytes of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The field's bits, shifted down.
    pub(crate) mask: u64,
    pub(crate) slot: Slot,
    /// First byte of the run.
    pub(crate) byte: u16,
    /// Bits between the field's least significant bit and that of the eight
    /// bytes from `byte` on.
    pub(crate) shift: u8,
    /// It is the last one of its run.
    pub(crate) last: bool,
}

/// A stack of headers or of unions.
pub(crate) struct StackLayout {
    pub(crate) name: String,
    /// Word that counts the elements pushed or extracted.
    pub(crate) next: Slot,
    /// Header number of the first element (its first member).
    pub(crate) first: u16,
    /// Headers per element: 1, or the members of the union.
    pub(crate) members: u16,
    /// Elements.
    pub(crate) depth: u16,
    /// Words per element.
    pub(crate) stride: u16,
    /// Names of the union's members.
    pub(crate) member_names: Vec<String>,
}

pub(crate) struct UnionLayout {
    pub(crate) members: Vec<u16>,
}

fn invalid(place: impl Into<String>, why: impl Into<String>) -> LoadError {
    LoadError::Invalid {
        place: place.into(),
        why: why.into(),
    }
}

struct Type {
    fields: Vec<FieldLayout>,
    max_bytes: u32,
}

struct Builder<'a> {
    layout: Layout,
    types: HashMap<&'a str, Type>,
    by_id: HashMap<u32, &'a raw::Header>,
    placed: HashMap<u32, u16>,
}

impl Layout {
    pub(super) fn build(root: &raw::Root) -> Result<Layout, LoadError> {
        let mut types = HashMap::new();
        for raw_type in &root.header_types {
            types.insert(raw_type.name.as_str(), header_type(raw_type)?);
        }
        let mut builder = Builder {
            layout: Layout::default(),
            types,
            by_id: root.headers.iter().map(|h| (h.id, h)).collect(),
            placed: HashMap::new(),
        };
        builder.place(root)?;
        let mut layout = builder.layout;
        layout.assign_words()?;
        layout.aliases = root.field_aliases.iter().cloned().collect();
        Ok(layout)
    }

    /// Gives every flag, counter and field its word.
    fn assign_words(&mut self) -> Result<(), LoadError> {
        let mut next: usize = 0;
        let mut take = |words: usize| {
            let slot = next;
            next += words;
            slot
        };
        for header in &mut self.headers {
            header.valid = take(1) as Slot;
        }
        for stack in self.stacks.iter_mut().chain(&mut self.union_stacks) {
            stack.next = take(1) as Slot;
        }
        let metadata = take(0);
        for header in self.headers.iter_mut().filter(|h| h.metadata) {
            header.assign(&mut take);
        }
        self.metadata = metadata..take(0);
        for header in self.headers.iter_mut().filter(|h| !h.metadata) {
            header.assign(&mut take);
        }
        self.words = take(0);
        if self.words > 40_000 {
            return Err(invalid(
                "headers",
                format!("{} words of headers are more than 40000", self.words),
            ));
        }
        for header in &mut self.headers {
            header.plan();
        }
        for stack in self.stacks.iter_mut().chain(&mut self.union_stacks) {
            let at = |i: u16| self.headers[usize::from(stack.first + i)].first;
            stack.stride = match stack.depth {
                0 | 1 => 0,
                _ => at(stack.members) - at(0),
            };
        }
        Ok(())
    }

    pub(super) fn header(&self, name: &str, place: &str) -> Result<u16, LoadError> {
        self.header_names
            .get(name)
            .copied()
            .ok_or_else(|| invalid(place, format!("there is no header {name}")))
    }

    pub(super) fn stack(&self, name: &str, place: &str) -> Result<u16, LoadError> {
        self.stack_names
            .get(name)
            .copied()
            .ok_or_else(|| invalid(place, format!("there is no header stack {name}")))
    }

    pub(super) fn union(&self, name: &str, place: &str) -> Result<u16, LoadError> {
        self.union_names
            .get(name)
            .copied()
            .ok_or_else(|| invalid(place, format!("there is no header union {name}")))
    }

    pub(super) fn union_stack(&self, name: &str, place: &str) -> Result<u16, LoadError> {
        self.union_stack_names
            .get(name)
            .copied()
            .ok_or_else(|| invalid(place, format!("there is no header union stack {name}")))
    }

    pub(super) fn field(&self, header: u16, name: &str, place: &str) -> Result<u16, LoadError> {
        let layout = &self.headers[usize::from(header)];
        layout
            .fields
            .iter()
            .position(|f| f.name == name)
            .map(|f| f as u16)
            .ok_or_else(|| invalid(place, format!("header {} has no field {name}", layout.name)))
    }

    /// A field of the architecture by the name bmv2 has for it, through the
    /// program's aliases.
    pub(super) fn standard(&self, name: &str) -> Option<&FieldLayout> {
        let (header, field) = match self.aliases.get(name) {
            Some((header, field)) => (header.as_str(), field.as_str()),
            None => name.split_once('.')?,
        };
        let header = *self.header_names.get(header)?;
        let layout = &self.headers[usize::from(header)];
        layout.fields.iter().find(|f| f.name == field)
    }
}

impl<'a> Builder<'a> {
    /// Numbers the headers so that the elements of each stack are consecutive.
    fn place(&mut self, root: &'a raw::Root) -> Result<(), LoadError> {
        let unions: HashMap<u32, &raw::Union> =
            root.header_unions.iter().map(|u| (u.id, u)).collect();
        for stack in &root.header_union_stacks {
            self.place_union_stack(stack, &unions, root)?;
        }
        for stack in &root.header_stacks {
            let first = self.layout.headers.len() as u16;
            for id in &stack.header_ids {
                self.place_header(*id, &stack.name)?;
            }
            let number = self.layout.stacks.len() as u16;
            self.layout.stack_names.insert(stack.name.clone(), number);
            self.layout.stacks.push(StackLayout {
                name: stack.name.clone(),
                next: 0,
                first,
                members: 1,
                depth: stack.header_ids.len() as u16,
                stride: 0,
                member_names: Vec::new(),
            });
        }
        for union in &root.header_unions {
            self.place_union(union)?;
        }
        for header in &root.headers {
            self.place_header(header.id, "headers")?;
        }
        Ok(())
    }

    fn place_union_stack(
        &mut self,
        stack: &raw::UnionStack,
        unions: &HashMap<u32, &raw::Union>,
        root: &raw::Root,
    ) -> Result<(), LoadError> {
        let first = self.layout.headers.len() as u16;
        let mut union_type = None;
        for id in &stack.header_union_ids {
            let union = unions
                .get(id)
                .ok_or_else(|| invalid(&stack.name, format!("there is no union {id}")))?;
            union_type = Some(union.union_type.as_str());
            for header in &union.header_ids {
                self.place_header(*header, &stack.name)?;
            }
        }
        let member_names: Vec<String> = root
            .header_union_types
            .iter()
            .find(|t| Some(t.name.as_str()) == union_type)
            .map(|t| t.headers.iter().map(|(name, _)| name.clone()).collect())
            .unwrap_or_default();
        let number = self.layout.union_stacks.len() as u16;
        self.layout
            .union_stack_names
            .insert(stack.name.clone(), number);
        self.layout.union_stacks.push(StackLayout {
            name: stack.name.clone(),
            next: 0,
            first,
            members: member_names.len().max(1) as u16,
            depth: stack.header_union_ids.len() as u16,
            stride: 0,
            member_names,
        });
        Ok(())
    }

    fn place_union(&mut self, union: &raw::Union) -> Result<(), LoadError> {
        let mut members = Vec::new();
        for id in &union.header_ids {
            members.push(self.place_header(*id, &union.name)?);
        }
        for &member in &members {
            self.layout.headers[usize::from(member)].siblings =
                members.iter().copied().filter(|&m| m != member).collect();
        }
        let number = self.layout.unions.len() as u16;
        self.layout.union_names.insert(union.name.clone(), number);
        self.layout.unions.push(UnionLayout { members });
        Ok(())
    }

    fn place_header(&mut self, id: u32, place: &str) -> Result<u16, LoadError> {
        if let Some(&number) = self.placed.get(&id) {
            return Ok(number);
        }
        let raw_header = *self
            .by_id
            .get(&id)
            .ok_or_else(|| invalid(place, format!("there is no header with id {id}")))?;
        let header_type = self
            .types
            .get(raw_header.header_type.as_str())
            .ok_or_else(|| {
                invalid(
                    format!("header {}", raw_header.name),
                    format!("there is no header type {}", raw_header.header_type),
                )
            })?;
        let number = self.layout.headers.len() as u16;
        let fields = header_type.fields.clone();
        self.layout.headers.push(HeaderLayout {
            name: raw_header.name.clone(),
            metadata: raw_header.metadata,
            valid: 0,
            first: 0,
            words: 0,
            bytes: 0,
            max_bytes: header_type.max_bytes,
            varbit: fields.iter().position(|f| f.varbit),
            fields,
            slow: Vec::new(),
            parts: Vec::new(),
            signed: Vec::new(),
            siblings: Vec::new(),
        });
        self.placed.insert(id, number);
        self.layout
            .header_names
            .insert(raw_header.name.clone(), number);
        Ok(number)
    }
}

fn header_type(raw_type: &raw::HeaderType) -> Result<Type, LoadError> {
    let place = || format!("header type {}", raw_type.name);
    let mut fields = Vec::new();
    for field in &raw_type.fields {
        let entry = field
            .as_array()
            .ok_or_else(|| invalid(place(), "a field is not [name, width]"))?;
        let name = entry
            .first()
            .and_then(|n| n.as_str())
            .ok_or_else(|| invalid(place(), "a field has no name"))?;
        let width = entry.get(1);
        let varbit = width.and_then(|w| w.as_str()) == Some("*");
        let bits = match width.and_then(|w| w.as_u64()) {
            Some(bits @ 1..=16_000) => bits as u32,
            None if varbit => 0,
            _ => {
                return Err(invalid(
                    place(),
                    format!("the width of field {name} is not between 1 and 16000 bits"),
                ));
            }
        };
        fields.push(FieldLayout {
            name: name.to_owned(),
            slot: 0,
            bits,
            signed: entry.get(2).and_then(|s| s.as_bool()).unwrap_or(false),
            varbit,
        });
    }
    let max_bytes = raw_type.max_length.unwrap_or(0);
    let fixed: u32 = fields.iter().map(|f| f.bits).sum();
    for field in fields.iter_mut().filter(|f| f.varbit) {
        field.bits = (max_bytes * 8).saturating_sub(fixed).clamp(8, 16_000);
    }
    if fields.iter().filter(|f| f.varbit).count() > 1 {
        return Err(invalid(place(), "it has more than one varbit field"));
    }
    Ok(Type { fields, max_bytes })
}

impl HeaderLayout {
    fn assign(&mut self, take: &mut impl FnMut(usize) -> usize) {
        self.first = take(0) as Slot;
        for field in &mut self.fields {
            if field.varbit {
                take(1);
            }
            field.slot = take(field.limbs()) as Slot;
        }
        self.words = take(0) as u16 - self.first;
        let fixed: u32 = self
            .fields
            .iter()
            .filter(|f| !f.varbit)
            .map(|f| f.bits)
            .sum();
        self.bytes = fixed.div_ceil(8) as u16;
    }

    /// Cuts the header into byte-aligned words of at most 64 bits.
    fn plan(&mut self) {
        if self.varbit.is_some() || self.metadata {
            return;
        }
        let mut bit: u32 = 0;
        let mut at = 0;
        while at < self.fields.len() {
            match self.word_from(at) {
                Some((count, bits)) if bit.is_multiple_of(8) => {
                    let mut shift = 64;
                    for (i, field) in self.fields[at..at + count].iter().enumerate() {
                        shift -= field.bits;
                        self.parts.push(Part {
                            mask: ones(field.bits as u8),
                            slot: field.slot,
                            byte: (bit / 8) as u16,
                            shift: shift as u8,
                            last: i + 1 == count,
                        });
                        if field.signed {
                            self.signed.push((field.slot, field.bits as u8));
                        }
                    }
                    at += count;
                    bit += bits;
                }
                None if self.splits(at, bit) => {
                    self.split(at, bit);
                    bit += self.fields[at].bits;
                    at += 1;
                }
                _ => {
                    self.slow.push((bit, at as u16));
                    bit += self.fields[at].bits;
                    at += 1;
                }
            }
        }
    }

    /// Whether a wide field is whole bytes.
    fn splits(&self, at: usize, bit: u32) -> bool {
        let field = &self.fields[at];
        field.bits > 64 && !field.signed && field.bits.is_multiple_of(8) && bit.is_multiple_of(8)
    }

    /// A run for each word of a wide field.
    fn split(&mut self, at: usize, bit: u32) {
        let field = &self.fields[at];
        let mut byte = bit / 8;
        for limb in (0..field.limbs()).rev() {
            let bits = (field.bits - 64 * limb as u32).min(64);
            self.parts.push(Part {
                mask: ones(bits as u8),
                slot: field.slot + limb as Slot,
                byte: byte as u16,
                shift: (64 - bits) as u8,
                last: true,
            });
            byte += bits / 8;
        }
    }

    /// The longest run of fields from `at` that ends on a byte boundary within
    /// 64 bits: how many fields, how many bits.
    fn word_from(&self, at: usize) -> Option<(usize, u32)> {
        let mut bits = 0;
        let mut best = None;
        for (count, field) in self.fields[at..].iter().enumerate() {
            bits += field.bits;
            if bits > 64 {
                break;
            }
            if bits % 8 == 0 {
                best = Some((count + 1, bits));
            }
        }
        best
    }
}

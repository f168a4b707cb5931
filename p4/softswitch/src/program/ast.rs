//! Typed values and expressions of the JSON, with names resolved.

use std::collections::HashMap;

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value as Json};

use super::layout::Layout;
use super::number::Number;
use super::{LoadError, invalid, unsupported};

/// Where names of a program lead.
pub(super) struct Names {
    pub(super) layout: Layout,
    pub(super) registers: HashMap<String, u16>,
    pub(super) counters: HashMap<String, u16>,
    pub(super) meters: HashMap<String, u16>,
    pub(super) calculations: HashMap<String, u16>,
    pub(super) register_widths: Vec<u32>,
}

/// What is asked of a header: a field or its validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Field(u16),
    Valid,
}

/// A header, known at load or found by an index.
#[derive(Clone, Debug)]
pub(super) enum HeaderRef {
    Fixed(u16),
    /// Member `member` of element `index` of a (union) stack.
    At {
        stack: StackRef,
        member: u16,
        index: Box<Ex>,
    },
    /// Member `member` of the last element of a (union) stack.
    Last {
        stack: StackRef,
        member: u16,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum StackRef {
    Headers(u16),
    Unions(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    BitNot,
    Negate,
    ToBool,
    ToData,
    LastIndex,
    Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    TwoCompMod,
    UsatCast,
    SatCast,
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) enum Ex {
    Number(Number),
    Bool(bool),
    Get(HeaderRef, Part),
    Local(usize),
    Lookahead { offset: u32, width: u32 },
    Register { register: u16, index: Box<Ex> },
    Header(HeaderRef),
    Union(u16),
    UnionAt { stack: u16, index: Box<Ex> },
    Stack(StackRef),
    Unary(Unary, Box<Ex>),
    Binary(Binary, Box<Ex>, Box<Ex>),
    If(Box<Ex>, Box<Ex>, Box<Ex>),
}

impl Ex {
    /// Whether it stands for headers rather than for a number.
    pub(super) fn is_headers(&self) -> bool {
        matches!(
            self,
            Ex::Header(_) | Ex::Union(_) | Ex::UnionAt { .. } | Ex::Stack(_)
        )
    }
}

impl Names {
    /// Reads a typed value (`{"type": ..., "value": ...}`).
    pub(super) fn ex(&self, json: &Json, place: &str) -> Result<Ex, LoadError> {
        let Some(kind) = json.get("type").and_then(|t| t.as_str()) else {
            return self.operation(json, place);
        };
        let value = json
            .get("value")
            .ok_or_else(|| invalid(place, format!("a {kind} has no value")))?;
        match kind {
            "expression" => match value.get("op") {
                Some(_) => self.operation(value, place),
                None => self.ex(value, place),
            },
            "hexstr" => Ok(Ex::Number(Number::parse(text(value, place)?, place)?)),
            "bool" => value
                .as_bool()
                .map(Ex::Bool)
                .ok_or_else(|| invalid(place, "a bool is neither true nor false")),
            "field" => self.field(value, place),
            "local" | "runtime_data" => value
                .as_u64()
                .map(|i| Ex::Local(i as usize))
                .ok_or_else(|| invalid(place, "an action parameter has no index")),
            "lookahead" => match (pair_u32(value, 0), pair_u32(value, 1)) {
                (Some(offset), Some(width)) => Ok(Ex::Lookahead { offset, width }),
                _ => Err(invalid(place, "a lookahead is not [offset, width]")),
            },
            "header" => {
                let name = text(value, place)?;
                // The compiler calls the unions in a stack headers.
                if let Ok(union) = self.layout.union(name, place) {
                    return Ok(Ex::Union(union));
                }
                let header = self.layout.header(name, place)?;
                Ok(Ex::Header(HeaderRef::Fixed(header)))
            }
            "header_stack" => self
                .layout
                .stack(text(value, place)?, place)
                .map(|s| Ex::Stack(StackRef::Headers(s))),
            "header_union" => self.layout.union(text(value, place)?, place).map(Ex::Union),
            "header_union_stack" => self
                .layout
                .union_stack(text(value, place)?, place)
                .map(|s| Ex::Stack(StackRef::Unions(s))),
            "stack_field" => self.stack_field(value, place),
            "union_stack_field" => self.union_stack_field(value, place),
            "register" => self.register(value, place),
            other => Err(unsupported(place, format!("a value of type {other}"))),
        }
    }

    fn field(&self, value: &Json, place: &str) -> Result<Ex, LoadError> {
        let pair = value.as_array().filter(|a| a.len() == 2);
        let pair = pair.ok_or_else(|| invalid(place, "a field is not [header, field]"))?;
        let name = text(&pair[1], place)?;
        let header = match pair[0].as_str() {
            Some(header) => HeaderRef::Fixed(self.layout.header(header, place)?),
            None => match self.ex(&pair[0], place)? {
                Ex::Header(header) => header,
                _ => return Err(invalid(place, "a field is of something not a header")),
            },
        };
        let part = self.part(&header, name, place)?;
        Ok(Ex::Get(header, part))
    }

    fn part(&self, header: &HeaderRef, name: &str, place: &str) -> Result<Part, LoadError> {
        if name == "$valid$" {
            return Ok(Part::Valid);
        }
        let number = self.header_number(header);
        self.layout.field(number, name, place).map(Part::Field)
    }

    /// The header, or the first of those it may be.
    pub(super) fn header_number(&self, header: &HeaderRef) -> u16 {
        match header {
            HeaderRef::Fixed(header) => *header,
            HeaderRef::At { stack, member, .. } | HeaderRef::Last { stack, member } => {
                self.stack(*stack).first + member
            }
        }
    }

    pub(super) fn stack(&self, stack: StackRef) -> &super::layout::StackLayout {
        match stack {
            StackRef::Headers(s) => &self.layout.stacks[usize::from(s)],
            StackRef::Unions(s) => &self.layout.union_stacks[usize::from(s)],
        }
    }

    fn stack_field(&self, value: &Json, place: &str) -> Result<Ex, LoadError> {
        let pair = value.as_array().filter(|a| a.len() == 2);
        let pair = pair.ok_or_else(|| invalid(place, "a stack field is not [stack, field]"))?;
        let stack = StackRef::Headers(self.layout.stack(text(&pair[0], place)?, place)?);
        let header = HeaderRef::Last { stack, member: 0 };
        let part = self.part(&header, text(&pair[1], place)?, place)?;
        Ok(Ex::Get(header, part))
    }

    fn union_stack_field(&self, value: &Json, place: &str) -> Result<Ex, LoadError> {
        let triple = value.as_array().filter(|a| a.len() == 3);
        let triple = triple
            .ok_or_else(|| invalid(place, "a union stack field is not [stack, member, field]"))?;
        let number = self.layout.union_stack(text(&triple[0], place)?, place)?;
        let member = self.union_member(number, text(&triple[1], place)?, place)?;
        let stack = StackRef::Unions(number);
        let header = HeaderRef::Last { stack, member };
        let part = self.part(&header, text(&triple[2], place)?, place)?;
        Ok(Ex::Get(header, part))
    }

    pub(super) fn union_member(
        &self,
        stack: u16,
        name: &str,
        place: &str,
    ) -> Result<u16, LoadError> {
        let layout = &self.layout.union_stacks[usize::from(stack)];
        layout
            .member_names
            .iter()
            .position(|m| m == name)
            .map(|m| m as u16)
            .ok_or_else(|| invalid(place, format!("{} has no member {name}", layout.name)))
    }

    fn register(&self, value: &Json, place: &str) -> Result<Ex, LoadError> {
        let pair = value.as_array().filter(|a| a.len() == 2);
        let pair = pair.ok_or_else(|| invalid(place, "a register is not [array, index]"))?;
        let register = lookup(&self.registers, "register", &pair[0], place)?;
        let index = Box::new(self.ex(&pair[1], place)?);
        Ok(Ex::Register { register, index })
    }

    fn operation(&self, json: &Json, place: &str) -> Result<Ex, LoadError> {
        let op = json
            .get("op")
            .and_then(|op| op.as_str())
            .ok_or_else(|| invalid(place, "an expression has neither type nor op"))?;
        let side = |name: &str| -> Result<Ex, LoadError> {
            let operand = json.get(name).filter(|o| !o.is_null());
            let operand =
                operand.ok_or_else(|| invalid(place, format!("operator {op} has no {name}")))?;
            self.ex(operand, place)
        };
        if let Some(binary) = binary(op) {
            let is_unary = json.get("left").is_none_or(|l| l.is_null());
            match op {
                "-" if is_unary => return Ok(Ex::Unary(Unary::Negate, Box::new(side("right")?))),
                "+" if is_unary => return side("right"),
                _ => {}
            }
            return Ok(Ex::Binary(
                binary,
                Box::new(side("left")?),
                Box::new(side("right")?),
            ));
        }
        if let Some(unary) = unary(op) {
            return Ok(Ex::Unary(unary, Box::new(side("right")?)));
        }
        match op {
            "?" => Ok(Ex::If(
                Box::new(side("cond")?),
                Box::new(side("left")?),
                Box::new(side("right")?),
            )),
            "valid" => match side("right")? {
                Ex::Header(header) => Ok(Ex::Get(header, Part::Valid)),
                _ => Err(invalid(place, "valid is asked of something not a header")),
            },
            "valid_union" => side("right"),
            "dereference_header_stack" | "dereference_stack" => {
                self.at(side("left")?, side("right")?, place)
            }
            "dereference_union_stack" => match side("left")? {
                Ex::Stack(StackRef::Unions(stack)) => Ok(Ex::UnionAt {
                    stack,
                    index: Box::new(side("right")?),
                }),
                _ => Err(invalid(
                    place,
                    "a union index into something not a union stack",
                )),
            },
            "access_union_header" => {
                let member = json.get("right").and_then(|r| r.as_u64()).unwrap_or(0);
                self.union_header(side("left")?, member as u16, place)
            }
            "access_field" => {
                let field = json.get("right").and_then(|r| r.as_u64());
                let field = field.ok_or_else(|| invalid(place, "a field has no number"))?;
                self.access_field(side("left")?, field as usize, place)
            }
            other => Err(unsupported(place, format!("operator {other}"))),
        }
    }

    fn at(&self, stack: Ex, index: Ex, place: &str) -> Result<Ex, LoadError> {
        match stack {
            Ex::Stack(stack @ StackRef::Headers(_)) => Ok(Ex::Header(HeaderRef::At {
                stack,
                member: 0,
                index: Box::new(index),
            })),
            _ => Err(invalid(place, "an index into something not a header stack")),
        }
    }

    fn union_header(&self, union: Ex, member: u16, place: &str) -> Result<Ex, LoadError> {
        match union {
            Ex::Union(union) => {
                let members = &self.layout.unions[usize::from(union)].members;
                let header = members
                    .get(usize::from(member))
                    .ok_or_else(|| invalid(place, "a union has no such member"))?;
                Ok(Ex::Header(HeaderRef::Fixed(*header)))
            }
            Ex::UnionAt { stack, index } => Ok(Ex::Header(HeaderRef::At {
                stack: StackRef::Unions(stack),
                member,
                index,
            })),
            _ => Err(invalid(place, "a member of something not a union")),
        }
    }

    fn access_field(&self, header: Ex, field: usize, place: &str) -> Result<Ex, LoadError> {
        let Ex::Header(header) = header else {
            return Err(invalid(place, "a field of something not a header"));
        };
        let layout = &self.layout.headers[usize::from(self.header_number(&header))];
        match field.cmp(&layout.fields.len()) {
            std::cmp::Ordering::Less => Ok(Ex::Get(header, Part::Field(field as u16))),
            std::cmp::Ordering::Equal => Ok(Ex::Get(header, Part::Valid)),
            std::cmp::Ordering::Greater => Err(invalid(
                place,
                format!("{} has no field {field}", layout.name),
            )),
        }
    }
}

pub(super) fn text<'a>(json: &'a Json, place: &str) -> Result<&'a str, LoadError> {
    json.as_str()
        .ok_or_else(|| invalid(place, "a name is not a string"))
}

fn pair_u32(json: &Json, index: usize) -> Option<u32> {
    json.as_array()?.get(index)?.as_u64().map(|v| v as u32)
}

/// Resolves a name given as JSON string.
pub(super) fn lookup(
    names: &HashMap<String, u16>,
    kind: &str,
    json: &Json,
    place: &str,
) -> Result<u16, LoadError> {
    let name = text(json, place)?;
    names
        .get(name)
        .copied()
        .ok_or_else(|| invalid(place, format!("there is no {kind} {name}")))
}

fn unary(op: &str) -> Option<Unary> {
    Some(match op {
        "not" => Unary::Not,
        "~" => Unary::BitNot,
        "d2b" => Unary::ToBool,
        "b2d" => Unary::ToData,
        "last_stack_index" => Unary::LastIndex,
        "size_stack" => Unary::Size,
        _ => return None,
    })
}

fn binary(op: &str) -> Option<Binary> {
    Some(match op {
        "+" => Binary::Add,
        "-" => Binary::Sub,
        "*" => Binary::Mul,
        "/" => Binary::Div,
        "%" => Binary::Mod,
        "&" | "and" => Binary::And,
        "|" | "or" => Binary::Or,
        "^" => Binary::Xor,
        "<<" => Binary::Shl,
        ">>" => Binary::Shr,
        "==" => Binary::Eq,
        "!=" => Binary::Ne,
        "<" => Binary::Lt,
        "<=" => Binary::Le,
        ">" => Binary::Gt,
        ">=" => Binary::Ge,
        "two_comp_mod" => Binary::TwoCompMod,
        "usat_cast" => Binary::UsatCast,
        "sat_cast" => Binary::SatCast,
        _ => return None,
    })
}

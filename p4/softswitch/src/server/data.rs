//! `P4Data`: values of the types that registers hold and digests carry (P4Runtime,
//! "Representation of Arbitrary P4 Types").

use p4runtime::config::v1 as config;
use p4runtime::v1::{self, p4_data::Data};

use super::domain::{Domain, Translations, ones};
use super::fault::Fault;
use crate::value::Value;

/// A type, resolved from P4Info's description.
#[derive(Clone, Debug)]
pub(crate) enum DataType {
    Bits(u32),
    /// Of a type that translates; what it is in the program is known once bound to it.
    Translated(String, Option<Domain>),
    Int(u32),
    Bool,
    SerializableEnum(u32),
    Struct(Vec<DataType>),
    Tuple(Vec<DataType>),
    /// Widths of the fields; always valid in a digest.
    Header(Vec<u32>),
}

/// Types may refer to each other; a P4Info in which they do so in a circle is refused.
const DEPTH_LIMIT: usize = 32;

impl DataType {
    /// Resolves the type of `owner` (a register's or digest's name).
    pub(crate) fn of(
        owner: &str,
        spec: Option<&config::P4DataTypeSpec>,
        types: &config::P4TypeInfo,
    ) -> Result<Self, Fault> {
        Resolver { owner, types }.resolve(spec, 0)
    }

    /// Binds the type, flattened, to the widths that the program says.
    ///
    /// # Errors
    /// When they are not those of the type.
    pub(crate) fn bind(
        &mut self,
        owner: &str,
        widths: &[u32],
        translations: &Translations<'_>,
    ) -> Result<(), Fault> {
        let mut left = widths.iter().copied();
        let fits = self.take_widths(owner, &mut left, translations)?;
        if fits && left.next().is_none() {
            return Ok(());
        }
        Err(Fault::invalid(format!(
            "{owner} holds values of type {self:?} in P4Info and of {widths:?} bits in the device \
             config"
        )))
    }

    fn take_widths(
        &mut self,
        owner: &str,
        left: &mut impl Iterator<Item = u32>,
        translations: &Translations<'_>,
    ) -> Result<bool, Fault> {
        Ok(match self {
            DataType::Bits(w) | DataType::Int(w) | DataType::SerializableEnum(w) => {
                left.next() == Some(*w)
            }
            DataType::Bool => left.next() == Some(1),
            DataType::Struct(members) | DataType::Tuple(members) => {
                for member in members {
                    if !member.take_widths(owner, left, translations)? {
                        return Ok(false);
                    }
                }
                true
            }
            DataType::Header(widths) => widths.iter().all(|w| left.next() == Some(*w)),
            DataType::Translated(name, domain) => match left.next() {
                Some(width) => {
                    *domain = Some(Domain::translated(owner, name, translations, width)?);
                    true
                }
                None => false,
            },
        })
    }

    /// Makes a message of the flattened values.
    pub(crate) fn encode(&self, values: &mut impl Iterator<Item = Value>) -> v1::P4Data {
        let mut next = || values.next().unwrap_or(Value::ZERO);
        let data = match self {
            DataType::Bits(_) => Data::Bitstring(next().to_be_bytes()),
            DataType::Translated(_, domain) => {
                let value = next();
                let bytes = domain.as_ref().map(|d| d.encode(&value));
                Data::Bitstring(bytes.unwrap_or_else(|| value.to_be_bytes()))
            }
            DataType::Int(width) => Data::Bitstring(signed_bytes(&next(), *width)),
            DataType::Bool => Data::Bool(next() != Value::ZERO),
            DataType::SerializableEnum(_) => Data::EnumValue(next().to_be_bytes()),
            DataType::Header(widths) => Data::Header(v1::P4Header {
                is_valid: true,
                bitstrings: widths.iter().map(|_| next().to_be_bytes()).collect(),
            }),
            DataType::Struct(members) => Data::Struct(v1::P4StructLike {
                members: members.iter().map(|m| m.encode(values)).collect(),
            }),
            DataType::Tuple(members) => Data::Tuple(v1::P4StructLike {
                members: members.iter().map(|m| m.encode(values)).collect(),
            }),
        };
        v1::P4Data { data: Some(data) }
    }

    /// Reads a message of one value.
    ///
    /// # Errors
    /// `InvalidArgument` for another kind of message, `OutOfRange` for a number that does not
    /// fit.
    pub(crate) fn decode_one(&self, owner: &str, data: &v1::P4Data) -> Result<Value, Fault> {
        let what = || owner.to_owned();
        match (self, &data.data) {
            (DataType::Bits(width), Some(Data::Bitstring(bytes)))
            | (DataType::SerializableEnum(width), Some(Data::EnumValue(bytes))) => {
                Domain::plain(*width).decode(bytes, what)
            }
            (DataType::Translated(_, Some(domain)), Some(Data::Bitstring(bytes))) => {
                domain.decode(bytes, what)
            }
            (DataType::Int(width), Some(Data::Bitstring(bytes))) => {
                signed_value(owner, bytes, *width)
            }
            (DataType::Bool, Some(Data::Bool(value))) => Ok(Value::from(u64::from(*value))),
            (_, None) => Err(Fault::invalid(format!("{owner}: the data is not set"))),
            _ => Err(Fault::invalid(format!(
                "{owner}: the data is not of type {self:?}"
            ))),
        }
    }
}

struct Resolver<'a> {
    owner: &'a str,
    types: &'a config::P4TypeInfo,
}

impl Resolver<'_> {
    fn unsupported(&self, what: &str) -> Fault {
        Fault::invalid(format!(
            "{} has a type that is not supported: {what}",
            self.owner
        ))
    }

    fn unknown(&self, name: &str) -> Fault {
        Fault::invalid(format!(
            "{} has type {name}, which P4Info does not describe",
            self.owner
        ))
    }

    fn resolve(
        &self,
        spec: Option<&config::P4DataTypeSpec>,
        depth: usize,
    ) -> Result<DataType, Fault> {
        use config::p4_data_type_spec::TypeSpec;
        if depth > DEPTH_LIMIT {
            return Err(self.unsupported("types nested too deeply"));
        }
        let spec = spec.and_then(|s| s.type_spec.as_ref());
        match spec.ok_or_else(|| self.unsupported("no type"))? {
            TypeSpec::Bitstring(bits) => self.bits(bits),
            TypeSpec::Bool(_) => Ok(DataType::Bool),
            TypeSpec::Tuple(tuple) => {
                let members = tuple
                    .members
                    .iter()
                    .map(|m| self.resolve(Some(m), depth + 1));
                Ok(DataType::Tuple(members.collect::<Result<_, _>>()?))
            }
            TypeSpec::Struct(name) => {
                let spec = self
                    .types
                    .structs
                    .get(&name.name)
                    .ok_or_else(|| self.unknown(&name.name))?;
                let members = spec
                    .members
                    .iter()
                    .map(|m| self.resolve(m.type_spec.as_ref(), depth + 1));
                Ok(DataType::Struct(members.collect::<Result<_, _>>()?))
            }
            TypeSpec::Header(name) => self.header(&name.name),
            TypeSpec::SerializableEnum(name) => {
                let spec = self
                    .types
                    .serializable_enums
                    .get(&name.name)
                    .ok_or_else(|| self.unknown(&name.name))?;
                let width = spec.underlying_type.as_ref().map_or(0, |t| t.bitwidth);
                Ok(DataType::SerializableEnum(
                    u32::try_from(width).unwrap_or(0),
                ))
            }
            TypeSpec::NewType(name) => self.new_type(&name.name, depth),
            TypeSpec::HeaderUnion(_) => Err(self.unsupported("a header union")),
            TypeSpec::HeaderStack(_) | TypeSpec::HeaderUnionStack(_) => {
                Err(self.unsupported("a header stack"))
            }
            TypeSpec::Enum(_) => Err(self.unsupported("an enum without values")),
            TypeSpec::Error(_) => Err(self.unsupported("error")),
        }
    }

    fn bits(&self, bits: &config::P4BitstringLikeTypeSpec) -> Result<DataType, Fault> {
        use config::p4_bitstring_like_type_spec::TypeSpec;
        let width = |w: i32| u32::try_from(w).unwrap_or(0);
        match &bits.type_spec {
            Some(TypeSpec::Bit(bit)) => Ok(DataType::Bits(width(bit.bitwidth))),
            Some(TypeSpec::Int(int)) => Ok(DataType::Int(width(int.bitwidth))),
            _ => Err(self.unsupported("varbit")),
        }
    }

    fn header(&self, name: &str) -> Result<DataType, Fault> {
        let spec = self
            .types
            .headers
            .get(name)
            .ok_or_else(|| self.unknown(name))?;
        let widths = spec.members.iter().map(|m| {
            let bits = m
                .type_spec
                .as_ref()
                .ok_or_else(|| self.unsupported("no type"))?;
            match self.bits(bits)? {
                DataType::Bits(w) | DataType::Int(w) => Ok(w),
                _ => Err(self.unsupported("a header field that is no number")),
            }
        });
        Ok(DataType::Header(widths.collect::<Result<_, _>>()?))
    }

    fn new_type(&self, name: &str, depth: usize) -> Result<DataType, Fault> {
        use config::p4_new_type_spec::Representation;
        let spec = self
            .types
            .new_types
            .get(name)
            .ok_or_else(|| self.unknown(name))?;
        match &spec.representation {
            Some(Representation::OriginalType(original)) => self.resolve(Some(original), depth + 1),
            Some(Representation::TranslatedType(_)) => {
                Ok(DataType::Translated(name.to_owned(), None))
            }
            None => Err(self.unknown(name)),
        }
    }
}

/// The shortest two's complement form of a `width`-bit value.
fn signed_bytes(value: &Value, width: u32) -> Vec<u8> {
    let len = width.div_ceil(8).max(1) as usize;
    let negative =
        width > 0 && value.limb(((width - 1) / 64) as usize) >> ((width - 1) % 64) & 1 == 1;
    let mut bytes: Vec<u8> = (0..len)
        .rev()
        .map(|i| (value.limb(i / 8) >> (8 * (i % 8))) as u8)
        .collect();
    let fill = if negative { 0xff } else { 0 };
    if negative && !width.is_multiple_of(8) {
        bytes[0] |= 0xff << (width % 8);
    }
    while bytes.len() > 1 && bytes[0] == fill && (bytes[1] & 0x80 != 0) == negative {
        bytes.remove(0);
    }
    bytes
}

fn signed_value(owner: &str, bytes: &[u8], width: u32) -> Result<Value, Fault> {
    let Some(first) = bytes.first() else {
        return Err(Fault::out_of_range(format!("{owner}: the value is empty")));
    };
    let fill = if first & 0x80 != 0 { 0xff } else { 0 };
    let len = (width.div_ceil(8) as usize + 1).max(bytes.len());
    let mut extended = vec![fill; len - bytes.len()];
    extended.extend_from_slice(bytes);
    // In range if all bits from the sign bit up are equal.
    let bit = |i: u32| extended[len - 1 - (i / 8) as usize] >> (i % 8) & 1;
    let sign = bit(len as u32 * 8 - 1);
    if width == 0 || (width - 1..len as u32 * 8).any(|i| bit(i) != sign) {
        return Err(Fault::out_of_range(format!(
            "{owner}: the value does not fit int<{width}>"
        )));
    }
    let mask = ones(width);
    let value = Value::from_be_bytes(&extended);
    let limbs: Vec<u64> = (0..width.div_ceil(64) as usize)
        .map(|i| value.limb(i) & mask.limb(i))
        .collect();
    Ok(Value::from_limbs(&limbs))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn signed_values_of_the_specifications_table() {
        for (width, bytes, canonical) in [
            (8, &[0x63][..], &[0x63][..]),
            (8, &[0x9d], &[0x9d]),
            (8, &[0xff, 0x9d], &[0x9d]),
            (12, &[0xfd, 0x1d], &[0xfd, 0x1d]),
            (16, &[0x00, 0x00], &[0x00]),
            (100, &[0xff], &[0xff]),
            (100, &[0x00, 0x80], &[0x00, 0x80]),
        ] {
            let value = signed_value("x", bytes, width).unwrap();
            assert!(value.bits() <= width);
            assert_eq!(
                signed_bytes(&value, width),
                canonical,
                "int<{width}> {bytes:?}"
            );
        }
        for (width, bytes) in [(8, &[0x00, 0x9d][..]), (12, &[0x8d, 0x1d]), (16, &[])] {
            assert!(
                signed_value("x", bytes, width).is_err(),
                "int<{width}> {bytes:?}"
            );
        }
    }

    #[test]
    fn structs_nest() {
        let inner = DataType::Struct(vec![DataType::Bits(9), DataType::Bool]);
        let mut ty = DataType::Struct(vec![
            DataType::Bits(48),
            inner,
            DataType::Header(vec![4, 4]),
        ]);
        let types = config::P4TypeInfo::default();
        let translations = Translations::of(&types, None);
        ty.bind("d", &[48, 9, 1, 4, 4], &translations).unwrap();
        assert!(ty.clone().bind("d", &[48, 9], &translations).is_err());
        assert!(
            ty.clone()
                .bind("d", &[48, 9, 1, 4, 4, 4], &translations)
                .is_err()
        );
        let mut values = [1u64, 2, 1, 3, 4].map(Value::from).into_iter();
        let Some(Data::Struct(message)) = ty.encode(&mut values).data else {
            panic!("no struct")
        };
        assert_eq!(message.members[0].data, Some(Data::Bitstring(vec![1])));
        let Some(Data::Struct(nested)) = &message.members[1].data else {
            panic!("no struct")
        };
        assert_eq!(nested.members[1].data, Some(Data::Bool(true)));
        let Some(Data::Header(header)) = &message.members[2].data else {
            panic!("no header")
        };
        assert_eq!(header.bitstrings, [vec![3], vec![4]]);
    }

    #[test]
    fn circular_types_are_refused() {
        let named = |name: &str| config::P4DataTypeSpec {
            type_spec: Some(config::p4_data_type_spec::TypeSpec::Struct(
                config::P4NamedType { name: name.into() },
            )),
        };
        let mut types = config::P4TypeInfo::default();
        types.structs.insert(
            "a".into(),
            config::P4StructTypeSpec {
                members: vec![config::p4_struct_type_spec::Member {
                    name: "m".into(),
                    type_spec: Some(named("a")),
                }],
                ..Default::default()
            },
        );
        assert!(DataType::of("d", Some(&named("a")), &types).is_err());
        assert!(DataType::of("d", Some(&named("b")), &types).is_err());
        assert!(DataType::of("d", None, &types).is_err());
    }
}

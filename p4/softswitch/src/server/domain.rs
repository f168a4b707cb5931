//! Values between P4Runtime's byte strings and the program's bit strings (P4Runtime,
//! "Bytestrings" and "PSA Metadata Translation").

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use p4runtime::config::v1 as config;

use super::fault::Fault;
use super::sdn::{Names, SDN_PORT_CPU};
use crate::ids::Port;
use crate::value::Value;

/// What values a field, parameter or metadata may have, and how they translate.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// Bits on the controller's side, as P4Info says; 0 for strings.
    pub(crate) width: u32,
    /// Bits in the program.
    core_width: u32,
    /// For translated port numbers: the switch's CPU port, if it has one.
    cpu_port: Option<Port>,
    /// For types that are strings to the controller.
    names: Option<Arc<Names>>,
}

/// What there is to know of types that translate.
pub(crate) struct Translations<'a> {
    types: &'a config::P4TypeInfo,
    cpu_port: Option<Port>,
    /// By type name, for types that are strings to the controller.
    pub(crate) names: RefCell<BTreeMap<String, Arc<Names>>>,
}

/// How a named type is seen by the controller.
enum Seen {
    /// As the program has it.
    Plain,
    Bits(u32, Option<Port>),
    String,
}

/// Whether a translated type is that of ports.
pub(crate) fn is_port(type_name: &str, uri: &str) -> bool {
    [type_name, uri]
        .iter()
        .any(|text| text.to_ascii_lowercase().contains("port"))
}

impl<'a> Translations<'a> {
    /// Those of a P4Info.
    pub(crate) fn of(types: &'a config::P4TypeInfo, cpu_port: Option<Port>) -> Self {
        Translations {
            types,
            cpu_port,
            names: Default::default(),
        }
    }

    /// The strings of the program's ports, if a type of ports translates to strings.
    pub(crate) fn port_names(&self) -> Option<Arc<Names>> {
        use config::p4_new_type_spec::Representation;
        let names = self.names.borrow();
        let mut ports = names.iter().filter(|(name, _)| {
            let spec = self.types.new_types.get(*name);
            let representation = spec.and_then(|s| s.representation.as_ref());
            match representation {
                Some(Representation::TranslatedType(t)) => is_port(name, &t.uri),
                _ => false,
            }
        });
        ports.next().map(|(_, names)| names.clone())
    }

    fn seen(&self, what: &str, name: &str) -> Result<Seen, Fault> {
        use config::p4_new_type_spec::Representation;
        use config::p4_new_type_translation::SdnType;

        // Compilers name enums here too; they are the numbers that stand for them.
        if self.types.serializable_enums.contains_key(name) || self.types.enums.contains_key(name) {
            return Ok(Seen::Plain);
        }
        let spec = self.types.new_types.get(name).ok_or_else(|| {
            Fault::invalid(format!(
                "{what} has type {name}, which P4Info does not describe"
            ))
        })?;
        match &spec.representation {
            Some(Representation::OriginalType(_)) => Ok(Seen::Plain),
            Some(Representation::TranslatedType(translation)) => match translation.sdn_type {
                Some(SdnType::SdnBitwidth(width)) if width > 0 => {
                    let cpu = self.cpu_port.filter(|_| is_port(name, &translation.uri));
                    Ok(Seen::Bits(width.unsigned_abs(), cpu))
                }
                Some(SdnType::SdnString(_)) => Ok(Seen::String),
                _ => Err(Fault::invalid(format!(
                    "type {name} translates to neither bits nor a string"
                ))),
            },
            None => Err(Fault::invalid(format!(
                "type {name} has no representation in P4Info"
            ))),
        }
    }

    /// The strings of a type that has `width` bits in the program.
    fn names(&self, what: &str, name: &str, width: u32) -> Result<Arc<Names>, Fault> {
        if width > 64 {
            return Err(Fault::invalid(format!(
                "{what} is {width} bits wide; strings stand for numbers of up to 64"
            )));
        }
        let mut all = self.names.borrow_mut();
        let names = all.entry(name.to_owned());
        Ok(names.or_insert_with(|| Arc::new(Names::new(width))).clone())
    }
}

impl Domain {
    /// For a value of `width` bits that the program holds in as many.
    pub(crate) fn plain(width: u32) -> Self {
        Domain {
            width,
            core_width: width,
            cpu_port: None,
            names: None,
        }
    }

    /// From what P4Info says of a value: its width and, if named, its type.
    ///
    /// # Errors
    /// For widths that differ between P4Info and program without a translation, and for types
    /// that P4Info does not describe.
    pub(crate) fn of(
        what: &str,
        bitwidth: i32,
        type_name: Option<&config::P4NamedType>,
        translations: &Translations<'_>,
        core_width: u32,
    ) -> Result<Self, Fault> {
        let width = u32::try_from(bitwidth)
            .map_err(|_| Fault::invalid(format!("{what} has bitwidth {bitwidth}")))?;
        let seen = match type_name {
            Some(name) => translations.seen(what, &name.name)?,
            None => Seen::Plain,
        };
        let wrong = |expected: u32, because: &str| {
            Err(Fault::invalid(format!(
                "{what} is {width} bits wide in P4Info and {expected} {because}"
            )))
        };
        match (seen, type_name) {
            (Seen::Plain, _) if width != core_width => wrong(
                core_width,
                "in the device config; both must come from the same compilation",
            ),
            (Seen::Bits(sdn, _), _) if width != sdn => wrong(sdn, "by its type's translation"),
            (Seen::String, _) if width != 0 => wrong(0, "by its type's translation to strings"),
            (Seen::String, Some(name)) => Ok(Domain {
                names: Some(translations.names(what, &name.name, core_width)?),
                width: 0,
                core_width,
                cpu_port: None,
            }),
            (Seen::Bits(_, cpu_port), _) => Ok(Domain {
                width,
                core_width,
                cpu_port,
                names: None,
            }),
            _ => Ok(Domain::plain(width)),
        }
    }

    /// For a value of a named type that the program holds in `core_width` bits.
    ///
    /// # Errors
    /// For a type that P4Info does not describe.
    pub(crate) fn translated(
        what: &str,
        type_name: &str,
        translations: &Translations<'_>,
        core_width: u32,
    ) -> Result<Self, Fault> {
        let bitwidth = match translations.seen(what, type_name)? {
            Seen::Plain => core_width,
            Seen::Bits(width, _) => width,
            Seen::String => 0,
        };
        let name = config::P4NamedType {
            name: type_name.to_owned(),
        };
        let bitwidth = i32::try_from(bitwidth).unwrap_or(i32::MAX);
        Domain::of(what, bitwidth, Some(&name), translations, core_width)
    }

    /// Whether the controller's values differ from the program's.
    pub(crate) fn is_translated(&self) -> bool {
        self.width != self.core_width || self.cpu_port.is_some() || self.names.is_some()
    }

    /// Whether the controller's values are strings.
    pub(crate) fn is_string(&self) -> bool {
        self.names.is_some()
    }

    /// Bits in the program.
    pub(crate) fn core_width(&self) -> u32 {
        self.core_width
    }

    /// Reads a byte string.
    ///
    /// # Errors
    /// `OutOfRange` for an empty string and for a number that does not fit.
    pub(crate) fn decode(&self, bytes: &[u8], what: impl Fn() -> String) -> Result<Value, Fault> {
        if bytes.is_empty() {
            return Err(Fault::out_of_range(format!(
                "{}: the value is empty",
                what()
            )));
        }
        if let Some(names) = &self.names {
            return names.number(bytes).map(Value::from);
        }
        let value = Value::from_be_bytes(bytes);
        if value.bits() > self.width {
            return Err(Fault::out_of_range(format!(
                "{}: {value} does not fit {} bits",
                what(),
                self.width
            )));
        }
        if let Some(cpu) = self.cpu_port
            && value.as_u128() == Some(u128::from(SDN_PORT_CPU))
        {
            return Ok(Value::from(u64::from(cpu)));
        }
        if value.bits() > self.core_width {
            return Err(Fault::out_of_range(format!(
                "{}: {value} does not translate to the switch's {} bits",
                what(),
                self.core_width
            )));
        }
        Ok(value)
    }

    /// Writes the shortest byte string.
    pub(crate) fn encode(&self, value: &Value) -> Vec<u8> {
        if let Some(names) = &self.names {
            return names.string(value.low_u64());
        }
        if let Some(cpu) = self.cpu_port
            && value.as_u128() == Some(u128::from(cpu))
        {
            return Value::from(SDN_PORT_CPU).to_be_bytes();
        }
        value.to_be_bytes()
    }

    /// The largest value in the program.
    pub(crate) fn max(&self) -> Value {
        ones(self.core_width)
    }
}

/// `width` one bits.
pub(crate) fn ones(width: u32) -> Value {
    let mut bytes = vec![0xff; width.div_ceil(8) as usize];
    if let (Some(first), true) = (bytes.first_mut(), !width.is_multiple_of(8)) {
        *first = 0xff >> (8 - width % 8);
    }
    Value::from_be_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use p4runtime::rpc::Code;

    use super::*;

    fn decode(domain: &Domain, bytes: &[u8]) -> Result<Value, Code> {
        domain
            .decode(bytes, || "x".into())
            .map_err(|fault| fault.code)
    }

    #[test]
    fn byte_strings_of_the_specifications_table() {
        let of = Domain::plain;
        assert_eq!(decode(&of(8), &[0x63]), Ok(Value::new(99)));
        assert_eq!(decode(&of(16), &[0x00, 0x63]), Ok(Value::new(99)));
        assert_eq!(decode(&of(16), &[0x00, 0x30, 0x64]), Ok(Value::new(12388)));
        assert_eq!(decode(&of(12), &[0x00, 0x00, 0x63]), Ok(Value::new(99)));
        for (width, bytes) in [
            (8, &[0x01, 0x63][..]),
            (8, &[]),
            (16, &[0x01, 0x00, 0x63]),
            (12, &[0x10, 0x63]),
            (12, &[0x01, 0x00, 0x63]),
            (12, &[0x00, 0x40, 0x63]),
        ] {
            assert_eq!(
                decode(&of(width), bytes),
                Err(Code::OutOfRange),
                "{width} {bytes:?}"
            );
        }
        assert_eq!(of(16).encode(&Value::ZERO), [0]);
        assert_eq!(of(16).encode(&Value::new(99)), [0x63]);
    }

    #[test]
    fn translated_ports_know_the_cpu() {
        let port = Domain {
            width: 32,
            core_width: 9,
            cpu_port: Some(510),
            names: None,
        };
        assert_eq!(
            decode(&port, &[0xff, 0xff, 0xff, 0xfd]),
            Ok(Value::new(510))
        );
        assert_eq!(port.encode(&Value::new(510)), [0xff, 0xff, 0xff, 0xfd]);
        assert_eq!(decode(&port, &[0, 0, 0, 7]), Ok(Value::new(7)));
        assert_eq!(decode(&port, &[0xff, 0xff]), Err(Code::OutOfRange));
    }

    #[test]
    fn ones_has_width_bits() {
        for width in [1, 7, 8, 9, 48, 127, 128, 129, 200] {
            assert_eq!(ones(width).bits(), width);
        }
        assert_eq!(ones(9), Value::new(511));
        assert_eq!(ones(0), Value::ZERO);
    }
}

//! Values between P4Runtime's byte strings and the program's bit strings (P4Runtime,
//! "Bytestrings" and "PSA Metadata Translation").

use p4runtime::config::v1 as config;

use super::fault::Fault;
use crate::ids::Port;
use crate::value::Value;

/// `SDN_PORT_CPU`.
const SDN_PORT_CPU: u128 = 0xffff_fffd;

/// What values a field, parameter or metadata may have, and how they translate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    /// Bits on the controller's side, as P4Info says.
    pub(crate) width: u32,
    /// Bits in the program.
    core_width: u32,
    /// For translated port numbers: the switch's CPU port, if it has one.
    cpu_port: Option<Port>,
}

impl Domain {
    /// For a value of `width` bits that the program holds in as many.
    pub(crate) fn plain(width: u32) -> Self {
        Domain {
            width,
            core_width: width,
            cpu_port: None,
        }
    }

    /// From what P4Info says of a value: its width and, if named, its type.
    ///
    /// # Errors
    /// For widths that differ between P4Info and program without a translation, and for types
    /// that translate to strings.
    pub(crate) fn of(
        what: &str,
        bitwidth: i32,
        type_name: Option<&config::P4NamedType>,
        types: &config::P4TypeInfo,
        core_width: u32,
        cpu_port: Option<Port>,
    ) -> Result<Self, Fault> {
        use config::p4_new_type_spec::Representation;
        use config::p4_new_type_translation::SdnType;

        let translation = type_name
            .and_then(|name| types.new_types.get(&name.name))
            .and_then(|spec| match &spec.representation {
                Some(Representation::TranslatedType(translation)) => Some(translation),
                _ => None,
            });
        let width = u32::try_from(bitwidth).unwrap_or(0);
        let Some(translation) = translation else {
            if width != core_width {
                return Err(Fault::invalid(format!(
                    "{what} is {width} bits wide in P4Info and {core_width} in the device config; \
                     both must come from the same compilation"
                )));
            }
            return Ok(Domain::plain(width));
        };
        match translation.sdn_type {
            Some(SdnType::SdnBitwidth(sdn)) => Ok(Domain {
                width: u32::try_from(sdn).unwrap_or(0),
                core_width,
                cpu_port: cpu_port.filter(|_| translation.uri.contains("PortId")),
            }),
            _ => Err(Fault::unimplemented(format!(
                "{what} is translated to a string (@p4runtime_translation(\"{}\", string)); only \
                 translation to numbers is supported",
                translation.uri
            ))),
        }
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
        let value = Value::from_be_bytes(bytes);
        if value.bits() > self.width {
            return Err(Fault::out_of_range(format!(
                "{}: {value} does not fit {} bits",
                what(),
                self.width
            )));
        }
        if let Some(cpu) = self.cpu_port
            && value.as_u128() == Some(SDN_PORT_CPU)
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
        if let Some(cpu) = self.cpu_port
            && value.as_u128() == Some(u128::from(cpu))
        {
            return Value::new(SDN_PORT_CPU).to_be_bytes();
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

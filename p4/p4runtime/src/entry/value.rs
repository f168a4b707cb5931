//! Values on their way into entities.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes;

/// An unsigned value of any width, in its shortest form.
///
/// Numbers, addresses and byte strings become values; a MAC address is a
/// `[u8; 6]`. Whether the value fits is known once it meets its field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Value(Vec<u8>);

impl Value {
    /// The byte string, as short as it can be.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The byte string, as short as it can be.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            impl From<$number> for Value {
                fn from(value: $number) -> Self {
                    Value(bytes::shortest(value.into()))
                }
            }
        )*
    };
}

numbers! { bool u8 u16 u32 u64 u128 }

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Value(bytes::canonical(value))
    }
}

impl<const N: usize> From<[u8; N]> for Value {
    fn from(value: [u8; N]) -> Self {
        value.as_slice().into()
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        value.as_slice().into()
    }
}

impl From<Ipv4Addr> for Value {
    fn from(value: Ipv4Addr) -> Self {
        value.octets().into()
    }
}

impl From<Ipv6Addr> for Value {
    fn from(value: Ipv6Addr) -> Self {
        value.octets().into()
    }
}

impl From<IpAddr> for Value {
    fn from(value: IpAddr) -> Self {
        match value {
            IpAddr::V4(value) => value.into(),
            IpAddr::V6(value) => value.into(),
        }
    }
}

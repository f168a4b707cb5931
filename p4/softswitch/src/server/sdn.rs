//! Values as controllers know them: ports outside of P4 types, and translation of types to strings
//! (P4Runtime, "PSA Metadata Translation" and "User-defined types").

use std::collections::HashMap;
use std::sync::Mutex;

use p4runtime::rpc::Code;

use super::fault::Fault;
use super::state::lock;
use crate::ids::Port;
use crate::switch::queue::PORTS;
use crate::value::Value;

/// `SDN_PORT_CPU`.
pub(crate) const SDN_PORT_CPU: u64 = 0xffff_fffd;

/// Strings of one type that are remembered.
const NAMES_MAX: usize = 1 << 20;

/// Which number stands for which string of a translated type.
///
/// A string that is a number without leading zeros stands for that number, so that ports can be
/// named. Any other gets the highest number that is free when it is first seen, and keeps it.
#[derive(Debug)]
pub(crate) struct Names {
    width: u32,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Vec<u8>, u64>,
    strings: HashMap<u64, Vec<u8>>,
    next: u64,
}

impl Names {
    /// For a type that has `width` bits in the program.
    pub(crate) fn new(width: u32) -> Self {
        Names {
            width,
            known: Mutex::default(),
        }
    }

    fn max(&self) -> u64 {
        match self.width {
            0 => 0,
            64.. => u64::MAX,
            width => (1 << width) - 1,
        }
    }

    /// The number of a string.
    ///
    /// # Errors
    /// `ResourceExhausted` when there is none left.
    pub(crate) fn number(&self, string: &[u8]) -> Result<u64, Fault> {
        let mut known = lock(&self.known);
        if let Some(number) = known.numbers.get(string) {
            return Ok(*number);
        }
        let plain =
            plain_number(string).filter(|n| *n <= self.max() && !known.strings.contains_key(n));
        let number = plain.or_else(|| known.free(self.max()));
        let number = number
            .filter(|_| known.numbers.len() < NAMES_MAX)
            .ok_or_else(|| {
                Fault::new(
                    Code::ResourceExhausted,
                    format!("no number is left for the string {:?}", show(string)),
                )
            })?;
        known.pair(number, string.to_vec());
        Ok(number)
    }

    /// The string of a number.
    pub(crate) fn string(&self, number: u64) -> Vec<u8> {
        let mut known = lock(&self.known);
        if let Some(string) = known.strings.get(&number) {
            return string.clone();
        }
        // From now on no other string may stand for it.
        let string = number.to_string().into_bytes();
        if known.numbers.len() < NAMES_MAX {
            known.pair(number, string.clone());
        }
        string
    }
}

impl Known {
    fn pair(&mut self, number: u64, string: Vec<u8>) {
        self.numbers.insert(string.clone(), number);
        self.strings.insert(number, string);
    }

    /// The highest number that no string has yet.
    fn free(&mut self, max: u64) -> Option<u64> {
        while self.next <= max {
            let number = max - self.next;
            self.next += 1;
            if !self.strings.contains_key(&number) {
                return Some(number);
            }
        }
        None
    }
}

fn plain_number(string: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(string).ok()?;
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let canonical = digits && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| canonical)
}

fn show(string: &[u8]) -> String {
    String::from_utf8_lossy(string).into_owned()
}

/// How port numbers of replicas and watched ports are read.
pub(crate) struct Ports<'a> {
    pub(crate) cpu: Option<Port>,
    /// What is sent here is dropped: no port of the device.
    pub(crate) drop: Port,
    /// If the program translates its ports to strings.
    pub(crate) names: Option<&'a Names>,
}

impl Ports<'_> {
    /// Reads a port.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no port of the device.
    pub(crate) fn decode(&self, bytes: &[u8], what: &str) -> Result<Port, Fault> {
        if bytes.is_empty() {
            return Err(Fault::invalid(format!("{what}: the port is empty")));
        }
        if let Some(names) = self.names {
            return self.decode_number(names.number(bytes)?, what);
        }
        let value = Value::from_be_bytes(bytes);
        match value.as_u128().and_then(|v| u64::try_from(v).ok()) {
            Some(number) => self.decode_number(number, what),
            None => Err(Fault::invalid(format!("{what}: {value} is not a port"))),
        }
    }

    /// Reads a port given as a number.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no port of the device.
    pub(crate) fn decode_number(&self, number: u64, what: &str) -> Result<Port, Fault> {
        if number == SDN_PORT_CPU {
            return self.cpu.ok_or_else(|| {
                Fault::invalid(format!("{what}: the switch was started without a CPU port"))
            });
        }
        match Port::try_from(number) {
            Ok(port) if usize::from(port) < PORTS && port != self.drop => Ok(port),
            _ => Err(Fault::invalid(format!(
                "{what}: {number} is not a port (0 to {}, {} excepted)",
                PORTS - 1,
                self.drop
            ))),
        }
    }

    /// Reads a port to watch; empty is none.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub(crate) fn decode_watch(&self, bytes: &[u8]) -> Result<Option<Port>, Fault> {
        if bytes.is_empty() {
            Ok(None)
        } else {
            self.decode(bytes, "watch_port").map(Some)
        }
    }

    /// Reads a port to watch in the deprecated form, where 0 is none.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub(crate) fn deprecated_watch(&self, port: i32) -> Result<Option<Port>, Fault> {
        match u64::try_from(port) {
            Ok(0) => Ok(None),
            Ok(number) => self.decode_number(number, "watch").map(Some),
            Err(_) => Err(Fault::invalid(format!("watch: {port} is negative"))),
        }
    }
}

/// Makes a port's bytes the shortest ones.
pub(crate) fn canonical_port(port: &mut Vec<u8>) {
    if !port.is_empty() {
        *port = p4runtime::bytes::canonical(port);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn strings_get_numbers_of_their_own() {
        let names = Names::new(4);
        assert_eq!(names.number(b"3").unwrap(), 3);
        assert_eq!(names.number(b"eth0").unwrap(), 15);
        assert_eq!(names.number(b"eth1").unwrap(), 14);
        assert_eq!(names.number(b"eth0").unwrap(), 15);
        assert_eq!(names.number(b"03").unwrap(), 13, "not the same string as 3");
        assert_eq!(names.number(b"15").unwrap(), 12, "15 stands for eth0");
        assert_eq!(names.string(15), b"eth0");
        assert_eq!(names.string(12), b"15");
        assert_eq!(names.string(3), b"3");
        assert_eq!(names.number(b"99").unwrap(), 11, "too large for 4 bits");
    }

    #[test]
    fn numbers_run_out() {
        let names = Names::new(1);
        names.number(b"a").unwrap();
        names.number(b"b").unwrap();
        assert_eq!(
            names.number(b"c").unwrap_err().code,
            Code::ResourceExhausted
        );
        assert_eq!(names.number(b"a").unwrap(), 1);
    }

    #[test]
    fn ports_are_those_of_the_device() {
        let ports = Ports {
            cpu: Some(510),
            drop: 511,
            names: None,
        };
        assert_eq!(ports.decode(&[0, 7], "p").unwrap(), 7);
        assert_eq!(ports.decode(&[0xff, 0xff, 0xff, 0xfd], "p").unwrap(), 510);
        for bytes in [&[][..], &[1, 0xff], &[2, 0], &[0xff; 20]] {
            assert_eq!(
                ports.decode(bytes, "p").unwrap_err().code,
                Code::InvalidArgument
            );
        }
        assert_eq!(ports.decode_watch(&[]).unwrap(), None);
        assert!(ports.deprecated_watch(-1).is_err());
    }
}

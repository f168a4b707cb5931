//! Hashes with parameters, as the command line reads and writes them.

use clap::Args;
use p4runtime::switch::v1::{self, SetHashRequest};
use serde::Serialize;

use crate::Failure;
use crate::client::{Format, print_json};

/// What a hash is to compute.
#[derive(Debug, Args)]
pub(crate) struct Wanted {
    /// The hash, as `hash show` names it; without it: the only one there is.
    #[arg(long)]
    name: Option<String>,
    /// The generator polynomial without its highest term, such as 0x1021.
    #[arg(long, value_name = "NUMBER", value_parser = number, required_unless_present = "standard")]
    polynomial: Option<u64>,
    /// What the register begins with.
    #[arg(long, value_name = "NUMBER", value_parser = number, default_value = "0")]
    init: u64,
    /// What the result is combined with by exclusive or.
    #[arg(long, value_name = "NUMBER", value_parser = number, default_value = "0")]
    xor_out: u64,
    /// Bytes go in with their lowest bit first.
    #[arg(long)]
    reflect_in: bool,
    /// The register is turned round at the end.
    #[arg(long)]
    reflect_out: bool,
    /// The parameters that the hash begins with.
    #[arg(
        long,
        conflicts_with_all = ["polynomial", "init", "xor_out", "reflect_in", "reflect_out"]
    )]
    standard: bool,
}

impl Wanted {
    pub(crate) fn request(self) -> SetHashRequest {
        SetHashRequest {
            name: self.name,
            crc: self.polynomial.map(|polynomial| v1::Crc {
                polynomial,
                init: self.init,
                xor_out: self.xor_out,
                reflect_in: self.reflect_in,
                reflect_out: self.reflect_out,
            }),
        }
    }
}

/// Reads a decimal number, or a hexadecimal one after 0x.
fn number(text: &str) -> Result<u64, String> {
    let digits = text.to_ascii_lowercase();
    let read = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    read.map_err(|_| format!("{text:?} is not a number below 2^64, such as 4129 or 0x1021"))
}

/// A hash, as JSON tells it.
#[derive(Serialize)]
struct HashRow<'a> {
    name: &'a str,
    bits: u32,
    polynomial: u64,
    init: u64,
    xor_out: u64,
    reflect_in: bool,
    reflect_out: bool,
    source: &'a str,
}

impl<'a> From<&'a v1::Hash> for HashRow<'a> {
    fn from(hash: &'a v1::Hash) -> Self {
        let crc = hash.crc.unwrap_or_default();
        HashRow {
            name: &hash.name,
            bits: hash.bits,
            polynomial: crc.polynomial,
            init: crc.init,
            xor_out: crc.xor_out,
            reflect_in: crc.reflect_in,
            reflect_out: crc.reflect_out,
            source: &hash.source,
        }
    }
}

pub(crate) fn print(hashes: &[v1::Hash], format: Format) -> Result<(), Failure> {
    let rows: Vec<HashRow<'_>> = hashes.iter().map(HashRow::from).collect();
    if format == Format::Json {
        return print_json(&rows);
    }
    println!(
        "{:<24} {:>4} {:>18} {:>18} {:>18} {:<9} statement",
        "name", "bits", "polynomial", "init", "xor-out", "reflect"
    );
    for row in rows {
        let reflect = match (row.reflect_in, row.reflect_out) {
            (true, true) => "in, out",
            (true, false) => "in",
            (false, true) => "out",
            (false, false) => "no",
        };
        println!(
            "{:<24} {:>4} {:>#18x} {:>#18x} {:>#18x} {reflect:<9} {}",
            row.name, row.bits, row.polynomial, row.init, row.xor_out, row.source
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number("4129").unwrap(), 4129);
        assert_eq!(number("0x1021").unwrap(), 0x1021);
        assert_eq!(number("0XFFFFFFFFFFFFFFFF").unwrap(), u64::MAX);
        for bad in ["", "0x", "-1", "1021h", "0x10000000000000000"] {
            assert!(number(bad).unwrap_err().contains("0x1021"), "{bad}");
        }
    }
}

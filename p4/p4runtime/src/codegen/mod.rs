//! From a P4Info, Rust source of typed entries, so that a table that is renamed
//! or a field that gets wider is an error of the compiler.
//!
//! A build script writes the result of [`generate`] to `OUT_DIR`, and the crate
//! includes it in a module of its own. For every table there is a struct of its
//! match fields that implements [`TableKey`](crate::typed::TableKey), and an
//! enum of its actions that implements [`Call`](crate::typed::Call); `AnyEntry`
//! is an entry of any table. The controller headers are structs; counters,
//! meters, registers and digests are constants in modules of these names.

mod names;
mod tables;

use std::fmt::Write as _;

use names::Names;

use crate::config::v1::{ControllerPacketMetadata, P4Info, Preamble, counter_spec};
use crate::info::{self, Index, Kind, short_name};

/// Why there is no code for a P4Info.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The P4Info is inconsistent.
    #[error(transparent)]
    Info(#[from] info::Error),
    /// Two names of the program become one in Rust.
    #[error("`{first}` and `{second}` are both called `{name}` in Rust; rename one in the program")]
    Clash {
        /// The name in Rust.
        name: String,
        /// One name of the program.
        first: String,
        /// The other.
        second: String,
    },
    /// A name has no letter or digit to make a Rust name of.
    #[error("`{0}` cannot be a name in Rust")]
    Unusable(String),
}

/// Rust source of typed entries; see the [module](self).
///
/// # Errors
/// When the P4Info is inconsistent, or two of its names clash in Rust.
pub fn generate(p4info: &P4Info) -> Result<String, Error> {
    let index = Index::new(p4info.clone())?;
    let mut types = Names::new();
    let mut code = String::new();
    let program = p4info.pkg_info.as_ref().map_or("", |pkg| &pkg.name);
    line(
        &mut code,
        &format!("// Generated from the P4Info of `{program}`."),
    );
    types.take("AnyEntry", "AnyEntry")?;
    for table in index.tables() {
        tables::table(&mut code, &mut types, table)?;
    }
    for profile in &p4info.action_profiles {
        tables::profile(&mut code, &mut types, &index, profile)?;
    }
    tables::any_entry(&mut code, &index)?;
    for header in &p4info.controller_packet_metadata {
        packet_header(&mut code, &mut types, header)?;
    }
    constants(&mut code, &index)?;
    Ok(code)
}

fn line(code: &mut String, text: &str) {
    code.push_str(text);
    code.push('\n');
}

/// The smallest type that holds so many bits.
fn rust_type(width: i32) -> &'static str {
    match width {
        1..=8 => "u8",
        9..=16 => "u16",
        17..=32 => "u32",
        33..=64 => "u64",
        65..=128 => "u128",
        _ => "::std::vec::Vec<u8>",
    }
}

/// What a value of that width is called in documentation.
fn width_text(width: i32) -> String {
    match width {
        0 => "a string of the target's".to_owned(),
        width => format!("`bit<{width}>`"),
    }
}

/// A Rust string literal.
fn literal(text: &str) -> String {
    format!("{text:?}")
}

fn name_of(preamble: Option<&Preamble>) -> &str {
    preamble.map_or("", short_name)
}

fn full_name(preamble: Option<&Preamble>) -> &str {
    preamble.map_or("", |p| &p.name)
}

const DERIVES: &str = "#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]";
const RESULT: &str = "::std::result::Result";
const TYPED: &str = "::p4runtime::typed";
const V1: &str = "::p4runtime::v1";

fn packet_header(
    code: &mut String,
    types: &mut Names,
    header: &ControllerPacketMetadata,
) -> Result<(), Error> {
    let name = name_of(header.preamble.as_ref());
    let ty = types.take(&format!("{}Header", names::camel(name)?), name)?;
    let label = literal(name);
    let mut fields = Names::new();
    let (mut declared, mut written, mut read) = (String::new(), String::new(), String::new());
    for field in &header.metadata {
        let rust = fields.take(&names::snake(&field.name)?, &field.name)?;
        let (id, width, ty) = (field.id, field.bitwidth, rust_type(field.bitwidth));
        let args = format!("{id}, {}, {width}", literal(&field.name));
        let _ = writeln!(declared, "    /// {}.", width_text(width));
        let _ = writeln!(declared, "    pub {rust}: {ty},");
        let _ = writeln!(written, "        values.put({args}, &self.{rust})?;");
        let _ = writeln!(read, "            {rust}: values.get({args})?,");
    }
    let count = header.metadata.len();
    let _ = write!(
        code,
        "
/// The header `{name}`.
{derives}
#[derive(Default)]
pub struct {ty} {{
{declared}}}

impl {ty} {{
    /// As a message carries it.
    ///
    /// # Errors
    /// When a value has more bits than its field.
    pub fn encode(&self) -> {RESULT}<::std::vec::Vec<{V1}::PacketMetadata>, {TYPED}::Error> {{
        #[allow(unused_mut)]
        let mut values = {TYPED}::ArgumentWriter::new({label});
{written}        Ok(values.into_metadata())
    }}

    /// From what a message carries.
    ///
    /// # Errors
    /// When a field is missing, unknown or too wide.
    pub fn decode(metadata: &[{V1}::PacketMetadata]) -> {RESULT}<Self, {TYPED}::Error> {{
        #[allow(unused_variables)]
        let values = {TYPED}::ArgumentReader::of_header({label}, metadata, {count})?;
        Ok(Self {{
{read}        }})
    }}
}}
",
        derives = DERIVES,
    );
    Ok(())
}

/// Counters, meters, registers and digests.
fn constants(code: &mut String, index: &Index) -> Result<(), Error> {
    let info = index.p4info();
    let counters = info.counters.iter().map(|counter| {
        let unit = counter.spec.as_ref().map(|spec| spec.unit());
        let unit = match unit {
            Some(counter_spec::Unit::Bytes) => "bytes",
            Some(counter_spec::Unit::Packets) => "packets",
            _ => "packets and bytes",
        };
        let doc = format!("counts {unit}; {} cells", counter.size);
        (counter.preamble.as_ref(), Some(counter.size), doc)
    });
    module(code, "counters", "Counter", Kind::Counter, counters)?;
    let meters = info.meters.iter().map(|meter| {
        let doc = format!("{} cells", meter.size);
        (meter.preamble.as_ref(), Some(meter.size), doc)
    });
    module(code, "meters", "Meter", Kind::Meter, meters)?;
    let registers = info.registers.iter().map(|register| {
        let doc = format!("{} cells", register.size);
        (register.preamble.as_ref(), Some(register.size.into()), doc)
    });
    module(code, "registers", "Register", Kind::Register, registers)?;
    let digests = info.digests.iter();
    let digests = digests.map(|digest| (digest.preamble.as_ref(), None, "a digest".to_owned()));
    module(code, "digests", "Digest", Kind::Digest, digests)
}

fn module<'i>(
    code: &mut String,
    module: &str,
    ty: &str,
    kind: Kind,
    objects: impl Iterator<Item = (Option<&'i Preamble>, Option<i64>, String)>,
) -> Result<(), Error> {
    let mut names = Names::new();
    let _ = write!(
        code,
        "\n/// Every {kind} of the program.\npub mod {module} {{\n"
    );
    for (preamble, size, doc) in objects {
        let name = name_of(preamble);
        let rust = names.take(&names::snake(name)?.to_uppercase(), name)?;
        let id = preamble.map_or(0, |p| p.id);
        let size = size.map_or(String::new(), |size| format!(", size: {size}"));
        let _ = write!(
            code,
            "    /// `{}`: {doc}.\n    pub const {rust}: {TYPED}::{ty} = {TYPED}::{ty} {{ id: {id}, name: {}{size} }};\n",
            full_name(preamble),
            literal(name),
        );
    }
    line(code, "}");
    Ok(())
}

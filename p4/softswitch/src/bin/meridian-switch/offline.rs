//! `meridian-switch trace`: the way of packets from files, without interfaces and without a server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{CommandFactory as _, Parser, error::ErrorKind};
use p4runtime::client::{Config, Error, Session};
use p4runtime::entry;
use p4runtime::info::Index;
use p4runtime::text;
use p4runtime::v1::{Entity, ReadResponse, Update, WriteRequest, entity};
use softswitch::ports::each_frame;
use softswitch::server::{Clock, Server, ServerConfig};
use softswitch::{Port, Program, SharedSwitch, Switch, SwitchConfig};

use crate::Failure;
use crate::args::TraceFormat;
use crate::trace;

/// Where the switch's clock (ns) stands when entries are written and the first packet comes: the
/// buckets of meters are full.
const START: u64 = 1_000_000_000;
/// ns between packets of the command line.
const STEP: u64 = 1_000_000;
const DEVICE: u64 = 1;

/// Prints the way of packets through a program, without a running switch.
///
/// Needs neither interfaces nor privileges.
#[derive(Debug, Parser)]
#[command(
    name = "meridian-switch trace",
    infer_long_args = true,
    after_help = "\
Entries are a p4.v1.WriteRequest, or a p4.v1.ReadResponse as read from a switch, in protobuf's text
format. Packets of the command line come first, 1 ms apart, then those of the files at their times.
Registers, meters and counters keep what earlier packets left in them.

Examples:
  meridian-switch trace router.json --packet 1:ffffffffffff0200000000010800
  meridian-switch trace router.json --p4info router.p4info.txtpb --entries routes.txtpb \\
      --pcap 1:in.pcap --format json"
)]
struct Offline {
    /// The program: JSON that p4c wrote for bmv2.
    #[arg(value_name = "JSON")]
    program: PathBuf,

    /// The program's P4Info in text form [default: the .p4info.txtpb or .p4info.txt beside it].
    #[arg(long, value_name = "FILE")]
    p4info: Option<PathBuf>,

    /// Entries to write before the first packet. Repeat for more.
    #[arg(long, value_name = "FILE")]
    entries: Vec<PathBuf>,

    /// A packet: the port it comes in by, its bytes in hexadecimal. Repeat for more.
    #[arg(long, value_name = "PORT:HEX")]
    packet: Vec<TracePacket>,

    /// The packets of a pcap file, which come in by PORT. Repeat for more.
    #[arg(long, value_name = "[PORT:]FILE")]
    pcap: Vec<TraceFile>,

    /// How to write it down: json is one line for each packet.
    #[arg(long, value_enum, default_value = "text")]
    format: TraceFormat,

    /// The port whose packets are packet-ins and packet-outs.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..=511))]
    cpu_port: Option<Port>,

    /// The port that packets to be dropped are sent to.
    #[arg(long, default_value_t = 511, value_name = "PORT", value_parser = clap::value_parser!(u16).range(0..=511))]
    drop_port: Port,

    /// Queues per port; the highest goes first.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    priority_queues: u8,

    /// Seed of the switch's random numbers.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

fn port(text: &str) -> Result<Port, String> {
    let port = text.parse().ok().filter(|port| *port <= 511);
    port.ok_or_else(|| format!("{text:?} is not a port from 0 to 511"))
}

/// A packet to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TracePacket {
    /// Where it comes in.
    port: Port,
    /// Its bytes.
    bytes: Vec<u8>,
}

impl std::str::FromStr for TracePacket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (port, hex) = text
            .split_once(':')
            .ok_or("write the port, a colon and the packet's bytes in hexadecimal")?;
        let port = self::port(port)?;
        let digits: Vec<u32> = hex
            .chars()
            .filter(|c| !c.is_whitespace())
            .map(|c| {
                c.to_digit(16)
                    .ok_or_else(|| format!("{c:?} is not a hexadecimal digit"))
            })
            .collect::<Result<_, _>>()?;
        if digits.len() % 2 == 1 {
            return Err("a byte has two hexadecimal digits; one is missing".to_owned());
        }
        let bytes = digits.chunks(2).map(|d| (d[0] << 4 | d[1]) as u8).collect();
        Ok(TracePacket { port, bytes })
    }
}

/// A file of packets to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TraceFile {
    port: Port,
    path: PathBuf,
}

impl std::str::FromStr for TraceFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, path) = match text.split_once(':') {
            Some((number, path)) if !number.contains(['/', '.']) => (port(number)?, path),
            _ => (0, text),
        };
        Ok(TraceFile {
            port: number,
            path: path.into(),
        })
    }
}

/// A clock that stands: writing entries takes no time.
struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        0
    }

    fn epoch(&self) -> u64 {
        0
    }
}

/// Whether a command line is this one.
pub(crate) fn is_meant(words: &[String]) -> bool {
    words.get(1).is_some_and(|word| word == "trace")
}

/// Carries out a command line.
///
/// # Errors
/// When a file cannot be read, and when an entry is refused: which, and why.
pub(crate) async fn run(words: Vec<String>) -> Result<(), Failure> {
    let args = Offline::parse_from(words.into_iter().skip(1));
    if args.packet.is_empty() && args.pcap.is_empty() {
        let said = "give a packet to trace: --packet PORT:HEX or --pcap [PORT:]FILE";
        Offline::command()
            .error(ErrorKind::MissingRequiredArgument, said)
            .exit();
    }
    let switch = prepare(&args).await?;
    match trace_all(&args, &switch) {
        // Whoever read the traces has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()).into())
}

fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path)?).map_err(|_| {
        format!(
            "{} is not text; protobuf's text form is wanted",
            path.display()
        )
        .into()
    })
}

/// A switch with the program and the entries.
async fn prepare(args: &Offline) -> Result<SharedSwitch, Failure> {
    let json = read(&args.program)?;
    let mut switch = Switch::new(SwitchConfig {
        device_id: DEVICE,
        cpu_port: args.cpu_port,
        drop_port: args.drop_port,
        queues: args.priority_queues,
        seed: args.seed,
        ..SwitchConfig::default()
    });
    if args.entries.is_empty() && args.p4info.is_none() {
        let program =
            Program::load(&json).map_err(|e| format!("{}: {e}", args.program.display()))?;
        switch.install(Arc::new(program));
        return Ok(SharedSwitch::new(switch));
    }
    let switch: SharedSwitch = SharedSwitch::new(switch);
    let path = p4info_path(args)?;
    let index =
        Index::parse_text(&read_text(&path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    let config = ServerConfig {
        clock: Arc::new(Still),
        ..ServerConfig::default()
    };
    let server = Server::new(switch.clone(), config);
    server.install(index.p4info().clone(), json).await?;
    let (session, _streams) = Session::open(server.channel(), Config::new(DEVICE, 1)).await?;
    for path in &args.entries {
        let updates = updates(&read_text(path)?).map_err(|e| format!("{}: {e}", path.display()))?;
        let written = session.write_in_order(updates).await;
        written.map_err(|error| refusal(path, &error))?;
    }
    session.close().await;
    Ok(switch)
}

fn p4info_path(args: &Offline) -> Result<PathBuf, Failure> {
    if let Some(path) = &args.p4info {
        return Ok(path.clone());
    }
    let beside = ["p4info.txtpb", "p4info.txt"].map(|end| args.program.with_extension(end));
    match beside.iter().find(|path| path.exists()) {
        Some(path) => Ok(path.clone()),
        None => Err(format!(
            "entries need the program's P4Info, and there is no {}; name it with --p4info",
            beside[0].display()
        )
        .into()),
    }
}

/// What a file of entries says to write.
fn updates(text: &str) -> Result<Vec<Update>, text::Error> {
    let written = text::parse::<WriteRequest>("p4.v1.WriteRequest", text);
    let error = match written {
        Ok(request) => return Ok(request.updates),
        Err(error) => error,
    };
    match text::parse::<ReadResponse>("p4.v1.ReadResponse", text) {
        Ok(response) => Ok(response.entities.into_iter().map(restore).collect()),
        // The error of what the file seems to be.
        Err(other) if text.contains("entities") => Err(other),
        Err(_) => Err(error),
    }
}

/// The update that makes a fresh switch have an entity: some are always there.
fn restore(entity: Entity) -> Update {
    use entity::Entity as E;
    let is_there = match &entity.entity {
        Some(E::TableEntry(entry)) => entry.is_default_action,
        Some(
            E::CounterEntry(_)
            | E::DirectCounterEntry(_)
            | E::MeterEntry(_)
            | E::DirectMeterEntry(_)
            | E::RegisterEntry(_)
            | E::ValueSetEntry(_),
        ) => true,
        _ => false,
    };
    match is_there {
        true => entry::modify(entity),
        false => entry::insert(entity),
    }
}

fn refusal(path: &Path, error: &Error) -> Failure {
    let mut said = format!("{}: {error}", path.display());
    if let Error::Updates { report, .. } = error {
        // Their places are those after ordering, which tell nothing of the file.
        for (_, failure) in report.failures() {
            said.push_str(&format!("\n  {}", failure.message));
        }
    }
    said.into()
}

/// Traces the command line's packets, then the files'.
fn trace_all(args: &Offline, switch: &SharedSwitch) -> io::Result<()> {
    let mut switch = switch.lock();
    let mut number = 0;
    let mut one = |now: u64, port: Port, bytes: &[u8]| {
        let (mut trace, _) = switch.trace(port, bytes, now).map_err(io::Error::other)?;
        number += 1;
        trace.packet = number;
        trace::print(&trace, args.format)
    };
    let mut now = START;
    for packet in &args.packet {
        one(now, packet.port, &packet.bytes)?;
        now += STEP;
    }
    let files = args.pcap.iter().map(|file| (file.port, file.path.clone()));
    let mut first = None;
    each_frame(&files.collect::<Vec<_>>(), |time, port, bytes| {
        let first = *first.get_or_insert(time);
        one(now + (time - first), port, bytes)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use p4runtime::v1::update;

    use super::*;

    #[test]
    fn packets_and_files_are_of_ports() {
        let packet: TracePacket = "7:01 aB".parse().unwrap();
        assert_eq!((packet.port, packet.bytes), (7, vec![1, 0xab]));
        for (text, said) in [
            ("0102", "colon"),
            ("512:00", "not a port"),
            ("1:0", "missing"),
            ("1:0g", "not a hexadecimal"),
        ] {
            let error = text.parse::<TracePacket>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        for (text, port, path) in [
            ("3:a.pcap", 3, "a.pcap"),
            ("a.pcap", 0, "a.pcap"),
            ("./1:2.pcap", 0, "./1:2.pcap"),
        ] {
            let path = PathBuf::from(path);
            assert_eq!(text.parse(), Ok(TraceFile { port, path }));
        }
        assert!("x:a.pcap".parse::<TraceFile>().is_err());
    }

    #[test]
    fn entries_are_requests_or_responses() {
        let request = "updates { type: DELETE entity { table_entry { table_id: 1 } } }";
        let updates_of = |text| updates(text).unwrap();
        assert_eq!(updates_of(request)[0].r#type(), update::Type::Delete);
        let response = "
            entities { table_entry { table_id: 1 } }
            entities { table_entry { table_id: 1 is_default_action: true } }
            entities { register_entry { register_id: 1 } }";
        let kinds: Vec<_> = updates_of(response).iter().map(Update::r#type).collect();
        use update::Type::{Insert, Modify};
        assert_eq!(kinds, [Insert, Modify, Modify]);
        let wrong = "entities { table_entry { table: 1 } }";
        let said = updates(wrong).unwrap_err().to_string();
        assert!(said.contains("table"), "{said}");
        assert!(!said.contains("entities"), "{said}");
    }
}

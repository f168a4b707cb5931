//! `meridian-switch queue`, `port` and `hash`: a running switch's queues, ports and hashes.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use p4runtime::switch::v1::switch_control_client::SwitchControlClient;
use p4runtime::switch::v1::{
    self, ListHashesRequest, ListPortsRequest, ListQueuesRequest, SetQueuesRequest,
};
use p4runtime::transport::{self, Tls};
use serde::Serialize;
use softswitch::manage::{rate_from_message, rate_to_message};
use softswitch::{Port, Rate};
use tonic::transport::Channel;

use crate::Failure;
use crate::{hashes, limits};

/// Shows and sets queues and ports of a running switch.
#[derive(Debug, Parser)]
#[command(name = "meridian-switch", version, infer_long_args = true)]
struct Client {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Shows and sets queues.
    #[command(
        subcommand_required = true,
        after_help = "\
Examples:
  meridian-switch queue show
  meridian-switch queue set --port 1 --queue 0 --rate 10mbit --depth 100
  meridian-switch queue set --port 1 --port-rate 1gbit
  meridian-switch queue set --rate none"
    )]
    Queue {
        #[command(subcommand)]
        command: QueueCommand,
    },
    /// Shows ports, their interfaces and what passed them.
    #[command(after_help = "Example: meridian-switch port show --address 127.0.0.1:9559")]
    Port {
        #[command(subcommand)]
        command: PortCommand,
    },
    /// Shows and sets the parameters of the program's crc16_custom and crc32_custom hashes.
    #[command(
        subcommand_required = true,
        after_help = "\
Examples:
  meridian-switch hash show
  meridian-switch hash set --name calc_0 --polynomial 0x1021 --init 0xffff
  meridian-switch hash set --polynomial 0x1edc6f41 --init 0xffffffff --xor-out 0xffffffff \\
      --reflect-in --reflect-out
  meridian-switch hash set --name calc_0 --standard"
    )]
    Hash {
        #[command(subcommand)]
        command: HashCommand,
    },
}

#[derive(Debug, Subcommand)]
enum PortCommand {
    /// Shows the ports.
    Show {
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Shows the queues of all ports, or of one.
    Show {
        /// The port.
        #[arg(long, value_parser = limits::port)]
        port: Option<Port>,
        #[command(flatten)]
        common: Common,
    },
    /// Sets rate and depth: of every queue, of a port's, or of one.
    Set {
        /// The port; without it: all ports.
        #[arg(long, value_parser = limits::port)]
        port: Option<Port>,
        /// The queue; without it: each of the port's.
        #[arg(long, requires = "port", value_parser = limits::queue)]
        queue: Option<u8>,
        /// How fast each of the queues sends, such as 10mbit or 500pps; none: as fast as it goes.
        #[arg(long, value_parser = Limit::read, required_unless_present_any = ["depth", "port_rate"])]
        rate: Option<Limit>,
        /// How many packets each of the queues holds.
        #[arg(long, value_name = "PACKETS")]
        depth: Option<u64>,
        /// How fast all of the port's queues together send.
        #[arg(long, value_name = "RATE", value_parser = Limit::read, requires = "port", conflicts_with = "queue")]
        port_rate: Option<Limit>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Subcommand)]
enum HashCommand {
    /// Shows the hashes and their parameters.
    Show {
        #[command(flatten)]
        common: Common,
    },
    /// Sets the parameters of a hash, until the next pipeline is committed.
    Set {
        #[command(flatten)]
        wanted: hashes::Wanted,
        #[command(flatten)]
        common: Common,
    },
}

/// A rate, or none.
#[derive(Clone, Copy, Debug)]
struct Limit(Option<Rate>);

impl Limit {
    fn read(text: &str) -> Result<Limit, softswitch::NotARate> {
        Rate::parse(text).map(Limit)
    }

    fn message(self) -> v1::Rate {
        rate_to_message(self.0)
    }
}

#[derive(Debug, Args)]
struct Common {
    /// Where the switch serves P4Runtime.
    #[arg(long, default_value = "127.0.0.1:9559", value_name = "ADDRESS:PORT")]
    address: String,
    /// Certificates (PEM) of the authority that the switch's certificate is from: uses TLS.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// This client's certificate (PEM), if the switch asks for one.
    #[arg(long, value_name = "FILE", requires_all = ["cacert", "key"])]
    cert: Option<PathBuf>,
    /// This client's private key (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Whether a command line is one of these.
pub(crate) fn is_meant(words: &[String]) -> bool {
    matches!(
        words.get(1).map(String::as_str),
        Some("queue" | "queues" | "port" | "ports" | "hash" | "hashes")
    )
}

/// Carries out a command line.
///
/// # Errors
/// When the switch is not reached, or refuses.
pub(crate) async fn run(words: Vec<String>) -> Result<(), Failure> {
    let singular = words.into_iter().enumerate().map(|(at, word)| match at {
        1 if word == "hashes" => "hash".to_owned(),
        1 => word.trim_end_matches('s').to_owned(),
        _ => word,
    });
    let client = match Client::try_parse_from(singular) {
        Ok(client) => client,
        Err(error) => error.exit(),
    };
    match client.what {
        What::Port {
            command: PortCommand::Show { common },
        } => {
            let mut switch = connect(&common).await?;
            let answer = switch.list_ports(ListPortsRequest {}).await;
            print_ports(&said(answer)?.ports, common.format)?;
        }
        What::Hash {
            command: HashCommand::Show { common },
        } => {
            let mut switch = connect(&common).await?;
            let answer = switch.list_hashes(ListHashesRequest {}).await;
            hashes::print(&said(answer)?.hashes, common.format)?;
        }
        What::Hash {
            command: HashCommand::Set { wanted, common },
        } => {
            let mut switch = connect(&common).await?;
            let answer = switch.set_hash(wanted.request()).await;
            hashes::print(said(answer)?.hash.as_slice(), common.format)?;
        }
        What::Queue {
            command: QueueCommand::Show { port, common },
        } => {
            let mut switch = connect(&common).await?;
            let request = ListQueuesRequest {
                port: port.map(u32::from),
            };
            let answer = switch.list_queues(request).await;
            print_queues(&said(answer)?.queues, common.format)?;
        }
        What::Queue {
            command:
                QueueCommand::Set {
                    port,
                    queue,
                    rate,
                    depth,
                    port_rate,
                    common,
                },
        } => {
            let mut switch = connect(&common).await?;
            let request = SetQueuesRequest {
                port: port.map(u32::from),
                queue: queue.map(u32::from),
                depth_packets: depth,
                rate: rate.map(Limit::message),
                port_rate: port_rate.map(Limit::message),
            };
            let answer = switch.set_queues(request).await;
            print_queues(&said(answer)?.queues, common.format)?;
        }
    }
    Ok(())
}

fn said<T>(answer: Result<tonic::Response<T>, tonic::Status>) -> Result<T, Failure> {
    match answer {
        Ok(answer) => Ok(answer.into_inner()),
        Err(status) if status.code() == tonic::Code::Unimplemented => Err(
            "the switch there has no such service; is it a meridian-switch of this version?".into(),
        ),
        Err(status) => Err(status.message().to_owned().into()),
    }
}

async fn connect(common: &Common) -> Result<SwitchControlClient<Channel>, Failure> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
    };
    let tls = match &common.cacert {
        Some(authority) => Some(Tls {
            ca: Some(read(authority)?),
            identity: match (&common.cert, &common.key) {
                (Some(cert), Some(key)) => Some((read(cert)?, read(key)?)),
                _ => None,
            },
            domain: None,
        }),
        None => None,
    };
    let channel = transport::connect_tls(&common.address, tls.as_ref()).await;
    let channel =
        channel.map_err(|error| format!("{error}; --address says where the switch is"))?;
    Ok(SwitchControlClient::new(channel))
}

fn rate_text(rate: Option<&v1::Rate>) -> String {
    match rate.and_then(rate_from_message) {
        Some(rate) => rate.to_string(),
        None => "none".to_owned(),
    }
}

/// A port, as JSON tells it.
#[derive(Serialize)]
struct PortRow<'a> {
    port: u32,
    interface: &'a str,
    up: bool,
    rate: String,
    received_packets: u64,
    received_bytes: u64,
    receive_drops: u64,
    sent_packets: u64,
    sent_bytes: u64,
    send_drops: u64,
}

impl<'a> From<&'a v1::Port> for PortRow<'a> {
    fn from(port: &'a v1::Port) -> Self {
        let counters = port.counters.unwrap_or_default();
        PortRow {
            port: port.port,
            interface: &port.interface,
            up: port.up,
            rate: rate_text(port.rate.as_ref()),
            received_packets: counters.received_packets,
            received_bytes: counters.received_bytes,
            receive_drops: counters.receive_drops,
            sent_packets: counters.sent_packets,
            sent_bytes: counters.sent_bytes,
            send_drops: counters.send_drops,
        }
    }
}

/// A queue, as JSON tells it.
#[derive(Serialize)]
struct QueueRow {
    port: u32,
    queue: u32,
    packets: u64,
    depth_packets: u64,
    rate: String,
    packets_in: u64,
    packets_out: u64,
    bytes_out: u64,
    drops: u64,
}

impl From<&v1::Queue> for QueueRow {
    fn from(queue: &v1::Queue) -> Self {
        let counters = queue.counters.unwrap_or_default();
        QueueRow {
            port: queue.port,
            queue: queue.queue,
            packets: queue.packets,
            depth_packets: queue.depth_packets,
            rate: rate_text(queue.rate.as_ref()),
            packets_in: counters.packets_in,
            packets_out: counters.packets_out,
            bytes_out: counters.bytes_out,
            drops: counters.drops,
        }
    }
}

fn print_ports(ports: &[v1::Port], format: Format) -> Result<(), Failure> {
    let rows: Vec<PortRow<'_>> = ports.iter().map(PortRow::from).collect();
    if format == Format::Json {
        return print_json(&rows);
    }
    println!(
        "{:>4}  {:<15} {:<5} {:>10} {:>14} {:>14} {:>10}",
        "port", "interface", "state", "rate", "received", "sent", "not sent"
    );
    for row in rows {
        println!(
            "{:>4}  {:<15} {:<5} {:>10} {:>14} {:>14} {:>10}",
            row.port,
            row.interface,
            if row.up { "up" } else { "down" },
            row.rate,
            row.received_packets,
            row.sent_packets,
            row.send_drops
        );
    }
    Ok(())
}

fn print_queues(queues: &[v1::Queue], format: Format) -> Result<(), Failure> {
    let rows: Vec<QueueRow> = queues.iter().map(QueueRow::from).collect();
    if format == Format::Json {
        return print_json(&rows);
    }
    println!(
        "{:>4} {:>5} {:>8} {:>8} {:>10} {:>14} {:>14} {:>10}",
        "port", "queue", "packets", "depth", "rate", "in", "out", "dropped"
    );
    for row in rows {
        println!(
            "{:>4} {:>5} {:>8} {:>8} {:>10} {:>14} {:>14} {:>10}",
            row.port,
            row.queue,
            row.packets,
            row.depth_packets,
            row.rate,
            row.packets_in,
            row.packets_out,
            row.drops
        );
    }
    Ok(())
}

pub(crate) fn print_json(rows: &impl Serialize) -> Result<(), Failure> {
    println!("{}", sonic_rs::to_string_pretty(rows)?);
    Ok(())
}

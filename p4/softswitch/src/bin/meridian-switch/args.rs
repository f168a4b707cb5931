//! The command line: the flags of simple_switch_grpc that labs use, and a few of our own.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use softswitch::Port;
use softswitch::ports::PortSpec;

/// A v1model switch that runs the JSON that p4c writes for bmv2 and serves P4Runtime.
///
/// Takes the flags of simple_switch_grpc. The options that it wants after `--` may stand before
/// or after.
#[derive(Debug, Parser)]
#[command(
    name = "meridian-switch",
    version,
    after_help = "Example: meridian-switch --device-id 1 -i 1@s1-eth1 -i 2@s1-eth2 --no-p4 \
                  -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510"
)]
pub(crate) struct Args {
    /// Makes INTERFACE the port PORT; repeat for more.
    #[arg(short, long = "interface", value_name = "PORT@INTERFACE")]
    pub(crate) interfaces: Vec<PortSpec>,

    /// The device id that P4Runtime clients have to name.
    #[arg(long, default_value_t = 0, value_name = "ID")]
    pub(crate) device_id: u64,

    /// Starts without a program; a controller pushes one.
    #[arg(long, conflicts_with = "program")]
    pub(crate) no_p4: bool,

    /// The program: JSON that p4c wrote for bmv2.
    #[arg(value_name = "JSON")]
    pub(crate) program: Option<PathBuf>,

    /// The program's P4Info in text form: controllers can then write without pushing a
    /// pipeline first.
    #[arg(
        long,
        requires = "program",
        conflicts_with = "no_p4",
        value_name = "FILE"
    )]
    pub(crate) p4info: Option<PathBuf>,

    /// Logs to standard output.
    #[arg(long)]
    pub(crate) log_console: bool,

    /// Logs to FILE.txt.
    #[arg(long, value_name = "FILE", conflicts_with = "log_console")]
    pub(crate) log_file: Option<PathBuf>,

    /// Logs this much.
    #[arg(short = 'L', long, default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: LogLevel,

    /// Log lines are always written at once; accepted for compatibility.
    #[arg(long, hide = true)]
    pub(crate) log_flush: bool,

    /// Writes every interface's frames to INTERFACE_in.pcap and INTERFACE_out.pcap in FOLDER.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
    pub(crate) pcap: Option<PathBuf>,

    /// Accepted for compatibility: there is no Thrift server.
    #[arg(long, value_name = "PORT")]
    pub(crate) thrift_port: Option<u16>,

    /// Accepted for compatibility: there is no nanomsg logger.
    #[arg(long, hide = true)]
    pub(crate) nanolog: Option<String>,

    /// Accepted for compatibility: there are no nanomsg notifications.
    #[arg(long, hide = true)]
    pub(crate) notifications_addr: Option<String>,

    /// Accepted for compatibility: there is no bmv2 debugger.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    pub(crate) debugger: Option<String>,

    /// Accepted for compatibility: programs can always be swapped.
    #[arg(long, hide = true)]
    pub(crate) enable_swap: bool,

    /// Where to serve P4Runtime. Only this machine can reach the default; 0.0.0.0 serves all.
    #[arg(long, default_value = "127.0.0.1:9559", value_name = "ADDRESS:PORT")]
    pub(crate) grpc_server_addr: String,

    /// The port whose packets are packet-ins and packet-outs.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(0..=511))]
    pub(crate) cpu_port: Option<Port>,

    /// The port that packets to be dropped are sent to.
    #[arg(long, default_value_t = 511, value_name = "PORT", value_parser = clap::value_parser!(u16).range(0..=511))]
    pub(crate) drop_port: Port,

    /// Queues per port; the highest goes first.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) priority_queues: u8,

    /// Packets that a queue holds.
    #[arg(long, default_value_t = 64, value_name = "PACKETS")]
    pub(crate) queue_depth: usize,

    /// Seed of the switch's random numbers.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,

    /// Serves P4Runtime over TLS.
    #[arg(long, requires_all = ["grpc_server_cert", "grpc_server_key"])]
    pub(crate) grpc_server_ssl: bool,

    /// Certificates (PEM) of the authorities whose clients are trusted.
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    pub(crate) grpc_server_cacert: Option<PathBuf>,

    /// The server's certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    pub(crate) grpc_server_cert: Option<PathBuf>,

    /// The server's private key (PEM).
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    pub(crate) grpc_server_key: Option<PathBuf>,

    /// Requires clients to show a certificate.
    #[arg(long, requires = "grpc_server_cacert")]
    pub(crate) grpc_server_with_client_auth: bool,
}

/// How much to log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Off,
}

impl LogLevel {
    pub(crate) fn filter(self) -> tracing_subscriber::filter::LevelFilter {
        use tracing_subscriber::filter::LevelFilter;
        match self {
            LogLevel::Trace => LevelFilter::TRACE,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Off => LevelFilter::OFF,
        }
    }
}

impl Args {
    /// Reads a command line, in which `--` separates nothing: the options after it are ours as
    /// well.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, clap::Error> {
        let args = Args::try_parse_from(words.filter(|word| word != "--"))?;
        if args.program.is_none() && !args.no_p4 {
            return Err(<Args as clap::CommandFactory>::command().error(
                clap::error::ErrorKind::MissingRequiredArgument,
                "give a program's JSON file, or --no-p4 to wait for a controller's",
            ));
        }
        Ok(args)
    }

    /// What was accepted without effect, to be said once.
    pub(crate) fn ignored(&self) -> Vec<&'static str> {
        let mut ignored = Vec::new();
        let mut note = |given: bool, what| {
            if given {
                ignored.push(what);
            }
        };
        note(
            self.thrift_port.is_some(),
            "--thrift-port: there is no Thrift server; use P4Runtime",
        );
        note(
            self.nanolog.is_some(),
            "--nanolog: there is no nanomsg logger; use --log-console",
        );
        note(
            self.notifications_addr.is_some(),
            "--notifications-addr: there are none",
        );
        note(self.debugger.is_some(), "--debugger: there is none");
        ignored
    }

    /// The address to listen on; names such as `localhost` are not looked up.
    pub(crate) fn listen_address(&self) -> Result<SocketAddr, String> {
        let text = self.grpc_server_addr.replace("localhost", "127.0.0.1");
        text.parse().map_err(|_| {
            format!(
                "--grpc-server-addr {:?} is not ADDRESS:PORT, such as 127.0.0.1:9559",
                self.grpc_server_addr
            )
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(line: &str) -> Result<Args, clap::Error> {
        Args::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn takes_what_labs_pass() {
        let args = read(
            "meridian-switch --device-id 3 -i 1@s3-eth1 --interface 2@s3-eth2 --thrift-port 9090 \
             --pcap /tmp --nanolog ipc:///tmp/x --log-console -L debug prog.json -- \
             --grpc-server-addr 0.0.0.0:50051 --cpu-port 255 --drop-port 510 --priority-queues 8",
        )
        .unwrap();
        assert_eq!(args.device_id, 3);
        assert_eq!(args.interfaces.len(), 2);
        assert_eq!(args.cpu_port, Some(255));
        assert_eq!(args.drop_port, 510);
        assert_eq!(args.priority_queues, 8);
        assert_eq!(args.program, Some("prog.json".into()));
        assert_eq!(
            args.listen_address().unwrap(),
            "0.0.0.0:50051".parse().unwrap()
        );
        assert_eq!(args.ignored().len(), 2);
    }

    #[test]
    fn serves_only_this_machine_unless_told() {
        let args = read("meridian-switch --no-p4").unwrap();
        assert!(args.listen_address().unwrap().ip().is_loopback());
    }

    #[test]
    fn refuses_nonsense() {
        for line in [
            "meridian-switch",
            "meridian-switch --no-p4 prog.json",
            "meridian-switch --no-p4 -i eth0",
            "meridian-switch --no-p4 --priority-queues 9",
            "meridian-switch --no-p4 --cpu-port 600",
            "meridian-switch --no-p4 --grpc-server-ssl",
            "meridian-switch --no-p4 --p4info x",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
        assert!(
            read("s --no-p4 --grpc-server-addr 9559")
                .unwrap()
                .listen_address()
                .is_err()
        );
    }
}

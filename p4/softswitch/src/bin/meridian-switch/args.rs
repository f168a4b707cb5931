//! The command line: every flag of simple_switch_grpc, and a few of our own.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use softswitch::Port;
use softswitch::ports::PortSpec;

use crate::limits::{DepthLimit, PortRateLimit, RateLimit};

/// A v1model switch that runs the JSON that p4c writes for bmv2 and serves P4Runtime.
///
/// Takes the flags of simple_switch_grpc. The options that it wants after `--` may stand before
/// or after.
#[derive(Debug, Parser)]
#[command(
    name = "meridian-switch",
    version,
    disable_version_flag = true,
    infer_long_args = true,
    after_help = "\
Queues and ports of a running switch: meridian-switch queue --help, meridian-switch port --help
The way of single packets, without a running switch: meridian-switch trace --help

Examples:
  meridian-switch -i 1@s1-eth1 -i 2@s1-eth2 router.json
  meridian-switch --device-id 1 -i 1@s1-eth1 -i 2@s1-eth2 --no-p4 \\
      -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510
  meridian-switch -i 1@s1-eth1 --priority-queues 8 --queue-rate 10mbit --queue-depth 1/7:16 \\
      --metrics 127.0.0.1:9090 --no-p4"
)]
pub(crate) struct Args {
    /// Makes INTERFACE the port PORT; repeat for more.
    #[arg(short, long = "interface", value_name = "PORT@INTERFACE")]
    pub(crate) interfaces: Vec<PortSpec>,

    /// The device id that P4Runtime clients have to name.
    #[arg(long, default_value_t = 0, value_name = "ID")]
    pub(crate) device_id: u64,

    /// Starts without a program; a controller pushes one.
    #[arg(long)]
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

    /// Accepted for compatibility: the log file is not rotated.
    #[arg(long, value_name = "BYTES", hide = true)]
    pub(crate) log_file_max_size: Option<u64>,

    /// Accepted for compatibility: the log file is not rotated.
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) log_file_max_files: Option<u64>,

    /// Logs the first BYTES bytes of each packet that comes and goes, at level info.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) dump_packet_data: usize,

    /// Writes every interface's frames to INTERFACE_in.pcap and INTERFACE_out.pcap in FOLDER.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
    pub(crate) pcap: Option<PathBuf>,

    /// Makes ports of files: after SECONDS, reads all packets of INTERFACE_in.pcap in this
    /// folder, in the order of their times and as fast as it goes; writes to INTERFACE_out.pcap.
    #[arg(
        long,
        value_name = "SECONDS",
        conflicts_with = "pcap",
        allow_negative_numbers = true
    )]
    pub(crate) use_files: Option<i64>,

    /// Refused: packets come by interfaces or files, not by nanomsg.
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub(crate) packet_in: Option<String>,

    /// Refused: packets come by interfaces or files, not by gRPC.
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub(crate) dp_grpc_server_addr: Option<String>,

    /// Refused: there is no state of bmv2 to restore.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) restore_state: Option<PathBuf>,

    /// Refused: bmv2's modules are C++ libraries.
    #[arg(long, value_name = "FILES", hide = true)]
    pub(crate) load_modules: Option<String>,

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
    #[arg(long, hide = true)]
    pub(crate) debugger: bool,

    /// Accepted for compatibility: there is no bmv2 debugger.
    #[arg(long, hide = true)]
    pub(crate) debugger_addr: Option<String>,

    /// Accepted for compatibility: programs can always be swapped.
    #[arg(long, hide = true)]
    pub(crate) enable_swap: bool,

    /// Accepted for compatibility: programs can always be swapped.
    #[arg(long, hide = true)]
    pub(crate) disable_swap: bool,

    /// Accepted for compatibility: a switch has up to 512 ports.
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) max_port_count: Option<u32>,

    /// Accepted for compatibility: there is no such limit.
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_mc_groups: Option<u32>,

    /// Accepted for compatibility: there is no such limit.
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_l1_entries: Option<u32>,

    /// Accepted for compatibility: there is no such limit.
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_l2_entries: Option<u32>,

    /// Prints every packet's whole way through the program on standard output.
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text"
    )]
    pub(crate) trace: Option<TraceFormat>,

    /// Where to serve P4Runtime. Only this machine can reach the default; 0.0.0.0 serves all.
    #[arg(long, default_value = "127.0.0.1:9559", value_name = "ADDRESS:PORT")]
    pub(crate) grpc_server_addr: String,

    /// The port whose packets are packet-ins and packet-outs.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..=511))]
    pub(crate) cpu_port: Option<Port>,

    /// The port that packets to be dropped are sent to.
    #[arg(long, default_value_t = 511, value_name = "PORT", value_parser = clap::value_parser!(u16).range(0..=511))]
    pub(crate) drop_port: Port,

    /// Queues per port; the highest goes first.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) priority_queues: u8,

    /// Packets that a queue holds [default: 64]: of each, of a port's, or of one. Repeat for more.
    #[arg(long, value_name = "[PORT[/QUEUE]:]PACKETS")]
    pub(crate) queue_depth: Vec<DepthLimit>,

    /// How fast a queue sends, such as 10mbit or 500pps: of each, of a port's, or of one. Repeat
    /// for more.
    #[arg(long, value_name = "[PORT[/QUEUE]:]RATE")]
    pub(crate) queue_rate: Vec<RateLimit>,

    /// How fast all of a port's queues send together. Repeat for more.
    #[arg(long, value_name = "PORT:RATE")]
    pub(crate) port_rate: Vec<PortRateLimit>,

    /// Threads that receive, process and send packets at the same time [default: one per core,
    /// and no more than interfaces; 1 with --trace and --use-files].
    #[arg(long, value_name = "N", alias = "threads")]
    pub(crate) workers: Option<std::num::NonZeroUsize>,

    /// Serves metrics for Prometheus at http://ADDRESS:PORT/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,

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

    /// Prints the version.
    #[arg(short, long, action = clap::ArgAction::Version)]
    version: Option<bool>,

    /// Prints the newest version of bmv2's JSON that is understood.
    #[arg(long)]
    pub(crate) json_version: bool,
}

/// How traces are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// A line for each step.
    Text,
    /// One line of JSON for each packet's way from its arrival to a queue, and from there on.
    Json,
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
        let mut args = Args::try_parse_from(words.filter(|word| word != "--"))?;
        args.take_program_from_pcap();
        args.check().map_err(|(kind, message)| {
            <Args as clap::CommandFactory>::command().error(kind, message)
        })?;
        Ok(args)
    }

    /// `--pcap prog.json` means `--pcap` and a program: its folder may be left out.
    fn take_program_from_pcap(&mut self) {
        let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        if self.program.is_none() && self.pcap.as_ref().is_some_and(is_json) {
            self.program = self.pcap.replace(".".into());
        }
    }

    /// What one flag alone does not show.
    fn check(&self) -> Result<(), (clap::error::ErrorKind, String)> {
        use clap::error::ErrorKind;
        if self.json_version {
            return Ok(());
        }
        self.refuse()
            .map_err(|said| (ErrorKind::InvalidValue, said))?;
        if self.program.is_none() && !self.no_p4 {
            let said = "give a program's JSON file, or --no-p4 to wait for a controller's";
            return Err((ErrorKind::MissingRequiredArgument, said.into()));
        }
        let conflict = |said: String| Err((ErrorKind::ArgumentConflict, said));
        if self.cpu_port == Some(self.drop_port) {
            return conflict(format!(
                "--cpu-port {0} is the drop port; choose another, or another --drop-port",
                self.drop_port
            ));
        }
        for spec in &self.interfaces {
            if spec.port == self.drop_port {
                return conflict(format!(
                    "-i {0}@{1}: {0} is the drop port; choose another, or another --drop-port",
                    spec.port, spec.interface
                ));
            }
        }
        let scopes = self.queue_depth.iter().map(|limit| &limit.scope);
        let scopes = scopes.chain(self.queue_rate.iter().map(|limit| &limit.scope));
        for queue in scopes.filter_map(|scope| scope.queue) {
            if queue >= self.priority_queues {
                return conflict(format!(
                    "there is no queue {queue}: --priority-queues {} makes queues 0 to {}",
                    self.priority_queues,
                    self.priority_queues - 1
                ));
            }
        }
        Ok(())
    }

    /// Flags of bmv2 for which there is nothing here: better said than ignored.
    fn refuse(&self) -> Result<(), String> {
        let refused = [
            (
                self.packet_in.is_some(),
                "--packet-in: packets cannot come over nanomsg; make interfaces ports with -i, or \
                 files with --use-files",
            ),
            (
                self.dp_grpc_server_addr.is_some(),
                "--dp-grpc-server-addr: packets cannot come over gRPC; make interfaces ports with \
                 -i, or files with --use-files",
            ),
            (
                self.restore_state.is_some(),
                "--restore-state: bmv2's state files cannot be read; have a controller write the \
                 entries over P4Runtime",
            ),
            (
                self.load_modules.is_some(),
                "--load-modules: bmv2's modules are C++ libraries and cannot be loaded; write what \
                 they do in P4",
            ),
        ];
        match refused.iter().find(|(given, _)| *given) {
            Some((_, said)) => Err((*said).to_owned()),
            None => Ok(()),
        }
    }

    /// What was accepted without effect, to be said once.
    pub(crate) fn ignored(&self) -> Vec<&'static str> {
        let given = [
            (
                self.no_p4 && self.program.is_some(),
                "the JSON file: --no-p4 waits for a controller's program",
            ),
            (
                self.thrift_port.is_some(),
                "--thrift-port: there is no Thrift server; use P4Runtime, and `meridian-switch \
                 queue` for queues",
            ),
            (
                self.nanolog.is_some(),
                "--nanolog: there is no nanomsg logger; use --log-console",
            ),
            (
                self.notifications_addr.is_some(),
                "--notifications-addr: digests and idle timeouts come over P4Runtime",
            ),
            (
                self.debugger || self.debugger_addr.is_some(),
                "--debugger: there is none",
            ),
            (
                self.log_file_max_size.is_some() || self.log_file_max_files.is_some(),
                "--log-file-max-size, --log-file-max-files: the log file is not rotated",
            ),
            (
                self.disable_swap,
                "--disable-swap: programs can always be swapped",
            ),
            (
                self.max_port_count.is_some(),
                "--max-port-count: a switch has up to 512 ports",
            ),
            (
                self.max_mc_groups.is_some()
                    || self.max_l1_entries.is_some()
                    || self.max_l2_entries.is_some(),
                "--max-mc-groups, --max-l1-entries, --max-l2-entries: there are no such limits",
            ),
        ];
        let given = given.into_iter().filter(|(given, _)| *given);
        given.map(|(_, what)| what).collect()
    }

    /// The address to serve metrics on.
    pub(crate) fn metrics_address(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = &self.metrics else {
            return Ok(None);
        };
        let address = text.replace("localhost", "127.0.0.1").parse();
        address
            .map(Some)
            .map_err(|_| format!("--metrics {text:?} is not ADDRESS:PORT, such as 127.0.0.1:9090"))
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

    /// Each flag that simple_switch_grpc has: accepted, or refused by its name.
    #[test]
    fn knows_every_flag() {
        for flag in [
            "--pcap=/tmp",
            "--pcap",
            "--use-files 0",
            "--use-files -1",
            "--log-console",
            "--log-file /tmp/x",
            "--log-level=off",
            "-Ltrace",
            "--log-flush",
            "--log-file-max-size 9",
            "--log-file-max-files 2",
            "--notifications-addr ipc:///tmp/n",
            "--debugger",
            "--debugger-addr ipc:///tmp/d",
            "--dump-packet-data 64",
            "--max-port-count 64",
            "--disable-swap",
            "--enable-swap",
            "--max-mc-groups 9",
            "--max-l1-entries 9",
            "--max-l2-entries 9",
            "-i1@a -i=2@b --interface=3@c",
            "--thrift 9090",
        ] {
            let line = format!("meridian-switch --no-p4 {flag}");
            assert!(read(&line).is_ok(), "{line}");
        }
        for flag in [
            "--packet-in ipc:///tmp/p",
            "--dp-grpc-server-addr 0.0.0.0:50052",
            "--restore-state /tmp/s",
            "--load-modules a.so",
        ] {
            let line = format!("meridian-switch --no-p4 {flag}");
            let said = read(&line).unwrap_err().to_string();
            let name = flag.split(' ').next().unwrap();
            assert!(said.contains(&format!("{name}: ")), "{said}");
        }
        for flag in ["--version", "-v", "--help", "-h"] {
            let error = read(&format!("meridian-switch {flag}")).unwrap_err();
            assert_eq!(error.exit_code(), 0, "{flag}");
        }
        assert!(read("meridian-switch --json-version").unwrap().json_version);
    }

    #[test]
    fn a_program_after_pcap_is_a_program() {
        let args = read("meridian-switch --pcap prog.json").unwrap();
        assert_eq!(args.program, Some("prog.json".into()));
        assert_eq!(args.pcap, Some(".".into()));
        let args = read("meridian-switch --no-p4 prog.json").unwrap();
        assert_eq!(args.ignored().len(), 1);
    }

    #[test]
    fn serves_only_this_machine_unless_told() {
        let args = read("meridian-switch --no-p4").unwrap();
        assert!(args.listen_address().unwrap().ip().is_loopback());
    }

    #[test]
    fn refuses_nonsense_and_names_the_flag() {
        for (line, said) in [
            ("", "--no-p4"),
            ("--no-p4 -i eth0", "--interface"),
            ("--no-p4 --priority-queues 9", "--priority-queues"),
            ("--no-p4 --cpu-port 600", "--cpu-port"),
            ("--no-p4 --cpu-port 0", "--cpu-port"),
            ("--no-p4 --cpu-port 511", "--drop-port"),
            ("--no-p4 -i 511@eth0", "--drop-port"),
            ("--no-p4 --grpc-server-ssl", "--grpc-server-cert"),
            ("--no-p4 --grpc-server-key x", "--grpc-server-ssl"),
            ("--no-p4 --p4info x", "--p4info"),
            ("--no-p4 --log-console --log-file x", "--log-file"),
            ("--no-p4 --use-files 1 --pcap", "--pcap"),
            ("--no-p4 --workers 0", "--workers"),
            ("--no-p4 --queue-rate 1/1:9mbit", "--priority-queues"),
            ("--no-p4 --queue-depth 1/x:9", "--queue-depth"),
            ("--no-p4 --port-rate 9mbit", "--port-rate"),
            ("--no-p4 --nonsense", "--nonsense"),
        ] {
            let error = read(&format!("meridian-switch {line}"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{line}: {error}");
        }
        for line in ["--grpc-server-addr 9559", "--metrics 9090"] {
            let args = read(&format!("meridian-switch --no-p4 {line}")).unwrap();
            assert!(args.listen_address().is_err() || args.metrics_address().is_err());
        }
    }
}

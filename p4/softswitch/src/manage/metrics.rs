//! Metrics in Prometheus' text format, over HTTP.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::rpcs::RpcCounts;
use crate::ids::{Port, TableId};
use crate::ports::Ports;
use crate::server::Server;
use crate::switch::{ProgramDrops, QueueState, SwitchStats};

/// How long a client may take for one request.
const CLIENT_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of a request's head at most.
const HEAD_MAX: usize = 8 << 10;

/// Where the figures come from.
#[derive(Clone)]
pub struct Metrics {
    /// The switch's P4Runtime server.
    pub server: Server,
    /// Its ports.
    pub ports: Ports,
    /// The calls of its gRPC server.
    pub rpcs: RpcCounts,
    /// Threads that move packets.
    pub workers: usize,
}

/// A switch's figures of one moment.
struct Snapshot {
    stats: SwitchStats,
    drops: Vec<(Port, ProgramDrops)>,
    queues: Vec<(Port, QueueState)>,
    /// Every table's name and its number of entries.
    tables: Vec<(String, usize)>,
}

impl Metrics {
    /// All metrics as text.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        self.ports_text(&mut text);
        let snapshot = self.switch_state();
        queues_text(&mut text, &snapshot.queues);
        drops_text(&mut text, &snapshot.stats);
        program_drops_text(&mut text, &snapshot.drops);
        text.family("meridian_table_entries", "gauge", "Entries of a table.");
        for (name, entries) in snapshot.tables {
            text.value(
                "meridian_table_entries",
                &[("table", &name)],
                entries as u64,
            );
        }
        text.single(
            "meridian_workers",
            "gauge",
            "Threads that move packets.",
            self.workers as u64,
        );
        self.server_text(&mut text);
        text.0
    }

    fn ports_text(&self, text: &mut Text) {
        let ports = self.ports.list();
        text.family(
            "meridian_port_up",
            "gauge",
            "1 when the port's interface is up.",
        );
        for info in &ports {
            let labels = [
                ("port", &*info.port.to_string()),
                ("interface", &*info.interface),
            ];
            text.value("meridian_port_up", &labels, info.is_up.into());
        }
        type Of = fn(&crate::ports::InterfaceStats) -> u64;
        let families: [(&str, &str, Of); 6] = [
            (
                "meridian_port_received_packets_total",
                "Frames received.",
                |s| s.received,
            ),
            (
                "meridian_port_received_bytes_total",
                "Bytes received.",
                |s| s.received_bytes,
            ),
            (
                "meridian_port_receive_drops_total",
                "Frames that arrived but were lost: too many, or not to be had whole.",
                |s| s.receive_drops,
            ),
            ("meridian_port_sent_packets_total", "Frames sent.", |s| {
                s.sent
            }),
            ("meridian_port_sent_bytes_total", "Bytes sent.", |s| {
                s.sent_bytes
            }),
            (
                "meridian_port_send_drops_total",
                "Frames that the interface did not take.",
                |s| s.send_drops,
            ),
        ];
        for (name, help, of) in families {
            text.family(name, "counter", help);
            for info in &ports {
                let labels = [
                    ("port", &*info.port.to_string()),
                    ("interface", &*info.interface),
                ];
                text.value(name, &labels, of(&info.stats));
            }
        }
    }

    /// What the switch's lock is needed for.
    fn switch_state(&self) -> Snapshot {
        let switch = self.server.switch().lock();
        let queues = switch
            .used_ports()
            .flat_map(|port| {
                let states = switch.queue_states(port);
                states.into_iter().map(move |state| (port, state))
            })
            .collect();
        let tables = switch.program().map_or(Vec::new(), |program| {
            let tables = program.tables().iter().enumerate();
            tables
                .filter_map(|(number, table)| {
                    let entries = switch.table_len(TableId(number as u32)).ok()?;
                    Some((table.name.to_string(), entries))
                })
                .collect()
        });
        Snapshot {
            stats: switch.stats(),
            drops: switch.program_drops(),
            queues,
            tables,
        }
    }

    fn server_text(&self, text: &mut Text) {
        let stats = self.server.stats();
        let streams = stats.streams as u64;
        text.single(
            "meridian_streams",
            "gauge",
            "Open P4Runtime streams.",
            streams,
        );
        for (name, help, value) in [
            (
                "meridian_packet_ins_total",
                "Packets for controllers.",
                stats.packet_ins,
            ),
            (
                "meridian_packet_outs_total",
                "Packets of controllers.",
                stats.packet_outs,
            ),
            (
                "meridian_digest_lists_total",
                "Digest lists sent.",
                stats.digest_lists,
            ),
            (
                "meridian_stream_drops_total",
                "Messages dropped because a client did not read its stream fast enough.",
                stats.dropped,
            ),
        ] {
            text.single(name, "counter", help, value);
        }
        text.family(
            "meridian_rpcs_total",
            "counter",
            "Calls of the gRPC server.",
        );
        for (method, count) in self.rpcs.list() {
            text.value("meridian_rpcs_total", &[("method", &method)], count);
        }
    }

    /// Answers `GET /metrics` on a listener, for ever.
    pub async fn serve(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let metrics = self.clone();
                    tokio::spawn(async move {
                        let answered = answer(stream, || metrics.text());
                        let _ = tokio::time::timeout(CLIENT_LIMIT, answered).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "metrics: accepting");
                    // Such as too many open files; those end sometime.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

fn queues_text(text: &mut Text, queues: &[(Port, QueueState)]) {
    type Of = fn(&QueueState) -> u64;
    let families: [(&str, &str, &str, Of); 6] = [
        (
            "meridian_queue_packets",
            "gauge",
            "Packets in the queue.",
            |q| q.packets as u64,
        ),
        (
            "meridian_queue_depth_packets",
            "gauge",
            "Packets it holds at most.",
            |q| q.depth as u64,
        ),
        (
            "meridian_queue_in_packets_total",
            "counter",
            "Packets put into it.",
            |q| q.counts.packets_in,
        ),
        (
            "meridian_queue_out_packets_total",
            "counter",
            "Packets that left by it.",
            |q| q.counts.packets_out,
        ),
        (
            "meridian_queue_out_bytes_total",
            "counter",
            "Bytes of those.",
            |q| q.counts.bytes_out,
        ),
        (
            "meridian_queue_drops_total",
            "counter",
            "Packets dropped because it was full.",
            |q| q.counts.drops,
        ),
    ];
    for (name, kind, help, of) in families {
        text.family(name, kind, help);
        for (port, state) in queues {
            let labels = [
                ("port", &*port.to_string()),
                ("queue", &*state.queue.to_string()),
            ];
            text.value(name, &labels, of(state));
        }
    }
}

fn program_drops_text(text: &mut Text, drops: &[(Port, ProgramDrops)]) {
    const NAME: &str = "meridian_program_drops_total";
    let help = "Packets that the program dropped: in ingress by the port they came in on, in egress by \
                the port they would have left by.";
    text.family(NAME, "counter", help);
    for (port, drops) in drops {
        let port = port.to_string();
        for (pipeline, value) in [("ingress", drops.ingress), ("egress", drops.egress)] {
            text.value(NAME, &[("port", &port), ("pipeline", pipeline)], value);
        }
    }
}

fn drops_text(text: &mut Text, stats: &SwitchStats) {
    for (name, help, value) in [
        (
            "meridian_packets_in_total",
            "Packets given to the program.",
            stats.received,
        ),
        (
            "meridian_packets_out_total",
            "Packets that left the program.",
            stats.sent,
        ),
    ] {
        text.single(name, "counter", help, value);
    }
    const DROPS: &str = "meridian_drops_total";
    text.family(DROPS, "counter", "Packets that did not leave, by reason.");
    for (reason, value) in [
        ("ingress", stats.ingress_drops),
        ("egress", stats.egress_drops),
        ("queue_full", stats.queue_drops),
        ("no_such_queue", stats.priority_drops),
        ("loop", stats.loop_drops),
        ("no_program", stats.no_program_drops),
        ("failed_assert", stats.failed_asserts),
    ] {
        text.value(DROPS, &[("reason", reason)], value);
    }
    text.single(
        "meridian_digest_drops_total",
        "counter",
        "Digest messages dropped because too many waited.",
        stats.digest_drops,
    );
}

/// Text in the exposition format, version 0.0.4.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A family of one value without labels.
    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        self.value(name, &[], value);
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.0.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            let escaped = text
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let open = if number == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{escaped}\"");
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// Reads one HTTP request and answers it; then the connection ends, as in HTTP/1.0.
async fn answer(mut stream: TcpStream, text: impl FnOnce() -> String) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).await?;
        if count == 0 || head.len() + count > HEAD_MAX {
            return Ok(());
        }
        head.extend_from_slice(&bytes[..count]);
    }
    let line = String::from_utf8_lossy(&head);
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (status, body) = match (method, path.split('?').next()) {
        ("GET" | "HEAD", Some("/metrics")) => ("200 OK", text()),
        ("GET" | "HEAD", _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET and HEAD\n".to_owned()),
    };
    let mut answer = format!(
        "HTTP/1.0 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method != "HEAD" {
        answer.push_str(&body);
    }
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.family("a_total", "counter", "What it is.");
        text.value("a_total", &[("x", "q\"b\\n\n"), ("y", "")], 7);
        text.value("a_total", &[], 8);
        assert_eq!(
            text.0,
            "# HELP a_total What it is.\n# TYPE a_total counter\n\
             a_total{x=\"q\\\"b\\\\n\\n\",y=\"\"} 7\na_total 8\n"
        );
    }

    async fn ask(request: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            answer(stream, || "figures\n".to_owned()).await.unwrap();
        });
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        server.await.unwrap();
        said
    }

    #[tokio::test]
    async fn answers_what_scrapers_ask() {
        let said = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.0 200 OK\r\n") && said.ends_with("\r\n\r\nfigures\n"));
        let said = ask("HEAD /metrics?a=b HTTP/1.1\r\n\r\n").await;
        assert!(said.contains("Content-Length: 8\r\n") && said.ends_with("\r\n\r\n"));
        let said = ask("GET / HTTP/1.1\r\n\r\n").await;
        assert!(said.contains("404") && said.contains("/metrics"));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").await.contains("405"));
    }
}

//! Throughput between two NICs, measured by iperf3.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Deserialize;

use super::error::Error;
use super::lab::Lab;

/// iperf3's own TCP port. Measurements take turns with the ports from here on, so that one can
/// start, in the same host too, while the server of another still ends.
const FIRST_PORT: u16 = 5201;
const PORTS: u16 = 1000;
/// What start and end of a measurement may take beside its duration.
const SLACK: Duration = Duration::from_secs(10);

/// A NIC to measure from or to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicRef<'a> {
    /// The host's name.
    pub host: &'a str,
    /// The rail.
    pub rail: u16,
}

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// TCP, as fast as it goes.
    Tcp,
    /// UDP at a rate.
    Udp {
        /// Bits/s.
        rate_bps: u64,
    },
}

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Bits/s of payload at the receiver.
    pub bits_per_second: f64,
    /// Bytes of payload at the receiver.
    pub bytes: u64,
    /// UDP: datagrams that were lost.
    pub lost_packets: Option<u64>,
    /// UDP: datagrams that were sent.
    pub packets: Option<u64>,
    /// TCP: segments that were sent again.
    pub retransmits: Option<u64>,
}

#[derive(Deserialize)]
struct Report {
    end: End,
}

#[derive(Deserialize)]
struct End {
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    bytes: u64,
    bits_per_second: f64,
    lost_packets: Option<u64>,
    packets: Option<u64>,
    retransmits: Option<u64>,
}

impl Lab {
    /// Sends over IPv4 from one NIC to another for `duration` (whole seconds, at least one).
    ///
    /// # Errors
    /// When a host or rail does not exist, iperf3 is missing or fails, or the runner has ended.
    pub async fn iperf3(
        &self,
        from: NicRef<'_>,
        to: NicRef<'_>,
        load: Load,
        duration: Duration,
    ) -> Result<Throughput, Error> {
        let source: IpAddr = self.nic(from.host, from.rail)?.v4.into();
        let target: IpAddr = self.nic(to.host, to.rail)?.v4.into();
        let seconds = duration.as_secs().max(1);
        let timeout = Duration::from_secs(seconds) + SLACK;
        let turn = self.measurements.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + turn % PORTS;
        let server = format!("exec iperf3 -s -1 -B {target} -p {port}");
        let load = match load {
            Load::Tcp => String::new(),
            Load::Udp { rate_bps } => format!("-u -b {rate_bps}"),
        };
        let client =
            format!("exec iperf3 -c {target} -B {source} -p {port} -t {seconds} -J {load}");
        let measure = async {
            let listening = format!(
                "for i in $(seq 100); do ss -Hltn 'sport = :{port}' | grep -q . && exit 0; \
                 sleep 0.05; done; exit 1"
            );
            self.exec(to.host, &listening, SLACK).await?;
            self.exec(from.host, &client, timeout).await
        };
        let serve = self.exec(to.host, &server, timeout + SLACK);
        let failed = |output: String| Error::Tool {
            tool: "iperf3",
            from: from.host.to_owned(),
            to: to.host.to_owned(),
            output,
        };
        tokio::pin!(measure, serve);
        let output = tokio::select! {
            output = &mut measure => output?,
            // The server ends first when it can't listen; the client then says what it saw.
            served = &mut serve => {
                let served = served?;
                if !served.ok() {
                    return Err(failed(served.stdout + &served.stderr));
                }
                measure.await?
            }
        };
        if !output.ok() {
            return Err(failed(output.stdout + &output.stderr));
        }
        parse(&output.stdout).ok_or_else(|| failed(output.stdout))
    }
}

fn parse(json: &str) -> Option<Throughput> {
    let end = sonic_rs::from_str::<Report>(json).ok()?.end;
    let retransmits = end.sum_sent.and_then(|sent| sent.retransmits);
    // UDP sums up in `sum`, which counts what was sent but knows what was lost.
    let (sum, udp) = match (end.sum, end.sum_received) {
        (Some(sum), _) => (sum, true),
        (None, received) => (received?, false),
    };
    let arrived = match (udp, sum.packets, sum.lost_packets) {
        (true, Some(packets), Some(lost)) if packets > 0 => 1.0 - lost as f64 / packets as f64,
        _ => 1.0,
    };
    Some(Throughput {
        bits_per_second: sum.bits_per_second * arrived,
        bytes: (sum.bytes as f64 * arrived) as u64,
        lost_packets: sum.lost_packets.filter(|_| udp),
        packets: sum.packets.filter(|_| udp),
        retransmits,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tcp_counts_what_was_received() {
        let report = r#"{"start":{},"end":{"streams":[],
            "sum_sent":{"bytes":2000,"bits_per_second":16.0,"retransmits":3},
            "sum_received":{"bytes":1000,"bits_per_second":8.0}}}"#;
        let throughput = parse(report).unwrap();
        assert_eq!((throughput.bytes, throughput.retransmits), (1000, Some(3)));
        assert_eq!(throughput.lost_packets, None);
    }

    #[test]
    fn udp_takes_off_what_was_lost() {
        let report = r#"{"end":{"sum":{"bytes":1000,"bits_per_second":800.0,
            "jitter_ms":0.1,"lost_packets":1,"packets":4,"lost_percent":25.0}}}"#;
        let throughput = parse(report).unwrap();
        assert_eq!(throughput.bytes, 750);
        assert!((throughput.bits_per_second - 600.0).abs() < 1e-9);
        assert_eq!(
            (throughput.lost_packets, throughput.packets),
            (Some(1), Some(4))
        );
    }

    #[test]
    fn an_error_report_is_no_measurement() {
        assert_eq!(
            parse(r#"{"error":"unable to connect to server","end":{}}"#),
            None
        );
        assert_eq!(parse("iperf3: command not found"), None);
    }
}

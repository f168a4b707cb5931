//! `meridian status`: what runs on this machine, and how it is.

use std::collections::BTreeMap;

use comfy_table::Table;
use serde::{Deserialize, Serialize};

use crate::args::{Format, StatusArgs};
use crate::failure::Failure;
use crate::{output, running};

/// A running fabric, as `meridian up` describes it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FabricStatus {
    /// The topology's name.
    pub(crate) fabric: String,
    /// `embedded`, `mininet` or `external`.
    pub(crate) target: String,
    /// Process id of `meridian up`.
    pub(crate) pid: u32,
    /// Seconds since it came up.
    pub(crate) up_seconds: u64,
    /// Its switches, in the topology's order.
    pub(crate) switches: Vec<SwitchStatus>,
}

/// One switch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SwitchStatus {
    /// Its name.
    pub(crate) name: String,
    /// P4Runtime device id.
    pub(crate) device_id: u64,
    /// Where its P4Runtime server is.
    pub(crate) address: String,
    /// `primary`, `backup`, or why there is no session.
    pub(crate) session: String,
    /// Entries by table, as the switch itself reports them.
    pub(crate) entries: BTreeMap<String, usize>,
    /// Its connected ports.
    pub(crate) ports: Vec<PortStatus>,
}

/// One port.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PortStatus {
    /// Its number.
    pub(crate) port: u16,
    /// What is at the other end.
    pub(crate) peer: String,
    /// Whether the link is up, as far as the controller knows.
    pub(crate) up: bool,
    /// Packets received, by the pipeline's counter.
    pub(crate) rx_packets: u64,
    /// Bytes received.
    pub(crate) rx_bytes: u64,
    /// Packets sent.
    pub(crate) tx_packets: u64,
    /// Bytes sent.
    pub(crate) tx_bytes: u64,
}

/// What `status --format json` prints.
#[derive(Debug, Serialize)]
struct Running {
    fabrics: Vec<FabricStatus>,
}

/// Runs the command. That nothing runs is an answer, except when a fabric was named.
pub(crate) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let folder = running::folder();
    let answers = running::ask(&folder, args.fabric.as_deref())?;
    let mut fabrics = Vec::with_capacity(answers.len());
    for answer in answers {
        let status = sonic_rs::from_str(&answer.json).map_err(|error| {
            Failure::Run(format!(
                "fabric '{}' answered with something else than a status: {error}",
                answer.fabric
            ))
        })?;
        fabrics.push(status);
    }
    if let (Some(name), true) = (&args.fabric, fabrics.is_empty()) {
        return Err(Failure::Run(format!(
            "no fabric named '{name}' is running ({} has no answer); \
             `meridian status` without a name lists those that are",
            folder.display()
        )));
    }
    let ports = args.ports || args.format == Format::Json;
    output::print(args.format, &Running { fabrics }, |running| {
        text(&running.fabrics, ports)
    })
}

fn text(fabrics: &[FabricStatus], ports: bool) -> String {
    if fabrics.is_empty() {
        return "no fabric is running; start one with `meridian up FILE`".to_owned();
    }
    let mut text = String::new();
    for fabric in fabrics {
        text.push_str(&format!(
            "{} on {} (pid {}), up {}\n{}\n",
            fabric.fabric,
            fabric.target,
            fabric.pid,
            duration(fabric.up_seconds),
            switches(fabric),
        ));
        if ports {
            text.push_str(&format!("{}\n", port_table(fabric)));
        }
    }
    text
}

fn switches(fabric: &FabricStatus) -> Table {
    let header = [
        "switch",
        "P4Runtime",
        "session",
        "device",
        "entries",
        "ports up",
    ];
    let mut table = output::table(header, 3);
    for switch in &fabric.switches {
        let up = switch.ports.iter().filter(|port| port.up).count();
        table.add_row([
            switch.name.clone(),
            switch.address.clone(),
            shorten(&switch.session),
            switch.device_id.to_string(),
            switch.entries.values().sum::<usize>().to_string(),
            format!("{up}/{}", switch.ports.len()),
        ]);
    }
    table
}

fn port_table(fabric: &FabricStatus) -> Table {
    let mut table = output::table(["switch", "to", "link", "port", "received", "sent"], 3);
    for switch in &fabric.switches {
        for port in &switch.ports {
            table.add_row([
                switch.name.clone(),
                port.peer.clone(),
                if port.up { "up" } else { "down" }.to_owned(),
                port.port.to_string(),
                port.rx_packets.to_string(),
                port.tx_packets.to_string(),
            ]);
        }
    }
    table
}

/// The beginning of what fits a column; `--format json` has all of it.
fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let start: String = text.chars().take(MOST - 3).collect();
    format!("{start}...")
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(duration(59), "59 s");
        assert_eq!(duration(61), "1 min 1 s");
        assert_eq!(duration(7_260), "2 h 1 min");
    }

    #[test]
    fn nothing_running_says_how_to_start() {
        assert!(text(&[], false).contains("meridian up"));
    }

    #[test]
    fn entries_and_ports_are_summed() {
        let port = |port, up| PortStatus {
            port,
            peer: "spine-1".into(),
            up,
            rx_packets: 1,
            rx_bytes: 2,
            tx_packets: 30,
            tx_bytes: 4,
        };
        let fabric = FabricStatus {
            fabric: "demo".into(),
            target: "embedded".into(),
            pid: 1,
            up_seconds: 5,
            switches: vec![SwitchStatus {
                name: "leaf-1".into(),
                device_id: 1,
                address: "127.0.0.1:9559".into(),
                session: "primary".into(),
                entries: [("route_v4".to_owned(), 40), ("group".to_owned(), 2)].into(),
                ports: vec![port(1, true), port(2, false)],
            }],
        };
        let text = text(&[fabric], true);
        assert!(text.contains("42") && text.contains("1/2") && text.contains("spine-1"));
    }
}

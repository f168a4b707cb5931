//! The figures of a demo, as JSON and as a table.

use serde::Serialize;

use crate::output;

/// Everything a demo measured. Field names are part of `demo --format json`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DemoReport {
    /// The topology's name.
    pub(crate) topology: String,
    /// The job's name.
    pub(crate) job: String,
    /// Seed of everything drawn by chance.
    pub(crate) seed: u64,
    /// Switches brought up.
    pub(crate) switches: usize,
    /// NICs that took part.
    pub(crate) nics: usize,
    /// Wall-clock ms from nothing to all entries installed and read back.
    pub(crate) cold_start_ms: f64,
    /// Entries written over P4Runtime in the whole demo.
    pub(crate) entries_written: u64,
    /// The runs, in order.
    pub(crate) runs: Vec<RunReport>,
    /// What the link failure did in the third run.
    pub(crate) failure: FailureReport,
}

/// One run of the job.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunReport {
    /// `unplaced`, `placed` or `failure`.
    pub(crate) name: &'static str,
    /// Bytes that crossed LA domains / bytes that left NICs, from the P4 locality counters.
    pub(crate) cross_la_share: f64,
    /// The least share that any order of this job's ranks on these hosts can have.
    pub(crate) cross_la_bound: f64,
    /// Bus bandwidth / NIC rate.
    pub(crate) busbw_ratio: f64,
    /// Busiest leaf uplink's bytes / mean of all leaf uplinks, from the P4 port counters.
    pub(crate) max_over_mean_uplink: f64,
    /// Packets that were marked CE, from the P4 counters.
    pub(crate) ecn_marks: u64,
    /// Packets lost anywhere: P4 drops, full queues, cut links.
    pub(crate) drops: u64,
    /// Fabric time from the first packet to the last acknowledgement, µs.
    pub(crate) duration_us: f64,
    /// Data packets sent again by NICs.
    pub(crate) retransmitted_packets: u64,
    /// Why the figures are what they are.
    pub(crate) because: String,
}

/// The link failure in the third run, in fabric time.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FailureReport {
    /// The link that was cut.
    pub(crate) link: String,
    /// Packets lost because of it.
    pub(crate) lost_packets: u64,
    /// From the cut to the last repaired entry, µs.
    pub(crate) repair_us: f64,
    /// Of which: until the controller heard of it, µs (the stated model).
    pub(crate) detect_us: f64,
    /// Entries written for the repair.
    pub(crate) entries_written: u64,
    /// Flows whose path was moved.
    pub(crate) flows_moved: usize,
}

impl DemoReport {
    /// The table and the sentences below it, for a terminal.
    pub(crate) fn to_text(&self) -> String {
        let mut header = vec![format!("{} on {}", self.job, self.topology)];
        header.extend(self.runs.iter().map(|run| run.name.to_owned()));
        let mut table = output::table(header, 1);
        for (label, show) in ROWS {
            let mut row = vec![(*label).to_owned()];
            row.extend(self.runs.iter().map(show));
            table.add_row(row);
        }
        let mut text = format!("{table}\n\n");
        for run in &self.runs {
            text.push_str(&format!("{}: {}\n", run.name, run.because));
        }
        let f = &self.failure;
        text.push_str(&format!(
            "\nlink {} cut: {} packets lost, repaired in {:.0} us of fabric time \
             ({:.0} us to hear of it), {} entries rewritten, {} flows moved\n",
            f.link, f.lost_packets, f.repair_us, f.detect_us, f.entries_written, f.flows_moved,
        ));
        text.push_str(&format!(
            "{} switches, {} NICs, {} entries written; from cold to forwarding {:.0} ms; seed {}\n",
            self.switches, self.nics, self.entries_written, self.cold_start_ms, self.seed,
        ));
        text
    }
}

/// How a run fills one cell.
type Cell = fn(&RunReport) -> String;

const ROWS: &[(&str, Cell)] = &[
    ("cross-LA share (P4 counters)", |r| {
        format!("{:.4}", r.cross_la_share)
    }),
    ("  its lower bound", |r| format!("{:.4}", r.cross_la_bound)),
    ("busbw / NIC rate", |r| format!("{:.3}", r.busbw_ratio)),
    ("max / mean uplink load", |r| {
        format!("{:.2}", r.max_over_mean_uplink)
    }),
    ("ECN marks", |r| r.ecn_marks.to_string()),
    ("drops", |r| r.drops.to_string()),
    ("retransmitted packets", |r| {
        r.retransmitted_packets.to_string()
    }),
    ("fabric time, us", |r| format!("{:.0}", r.duration_us)),
];

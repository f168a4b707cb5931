//! A workload as a job file.

use super::exchange::{Exchange, Operation, Workload};
use super::grid::Dimension;
use super::job::Algorithm;
use std::fmt::Write as _;

impl Workload {
    /// The job file that reads as this workload.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let grid = &self.grid;
        let [tp, cp, dp, pp] = Dimension::NAMES.map(|(_, d)| grid.size(d));
        let order: Vec<&str> = grid.order().iter().map(|d| d.name()).collect();
        let mut text = format!(
            "name: {}\nranks_per_host: {}\nscale_up: {}\nparallel: {{tp: {tp}, cp: {cp}, dp: {dp}, pp: {pp}, ep: {}, order: [{}]}}\n",
            self.name,
            self.ranks_per_host,
            self.scale_up,
            grid.expert_size(),
            order.join(", ")
        );
        if let Some(channels) = self.channels {
            let _ = writeln!(text, "channels: {channels}");
        }
        if self.offload_ppm > 0 {
            let _ = writeln!(text, "nvlink_offload: {}", share(self.offload_ppm));
        }
        if self.compute_ns > 0 {
            let _ = writeln!(text, "compute: {}ns", self.compute_ns);
        }
        if self.exchanges.is_empty() {
            text.push_str("collectives: []\n");
            return text;
        }
        text.push_str("collectives:\n");
        for exchange in &self.exchanges {
            line(&mut text, exchange);
        }
        text
    }
}

/// Millionths as job files have them.
fn share(ppm: u32) -> String {
    format!("{}.{:06}", ppm / 1_000_000, ppm % 1_000_000)
}

fn line(text: &mut String, e: &Exchange) {
    let _ = write!(
        text,
        "  - {{name: {}, kind: {}, over: {}, bytes_per_rank: {}B, times: {}",
        e.name,
        e.operation.name(),
        e.over.name(),
        e.bytes,
        e.times
    );
    if e.algorithm != Algorithm::Ring {
        let _ = write!(text, ", algorithm: {}", e.algorithm.name());
    }
    if e.wraps > 0 {
        let _ = write!(text, ", wraps: {}", e.wraps);
    }
    if e.operation == Operation::AllToAll && !e.rail_aligned {
        text.push_str(", rail_aligned: false");
    }
    if e.overlap_ppm > 0 {
        let _ = write!(text, ", overlap: {}", share(e.overlap_ppm));
    }
    text.push_str("}\n");
}

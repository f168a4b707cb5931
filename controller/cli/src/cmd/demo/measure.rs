//! What one run did, and what it says about the fabric.

use ::topology::Topology;
use controller::placement::JobPlan;
use controller::routing::LinkSet;
use controller::telemetry::Telemetry;
use lab::emulator::collective::RingAllReduce;
use lab::emulator::{Drops, Statistics};

use crate::report::RunReport;

/// Raw results of one run.
pub(crate) struct Measured {
    /// From the first message posted to the last received, ns.
    pub(crate) elapsed_ns: u64,
    /// Links and NICs at the moment the run ended.
    pub(crate) statistics: Statistics,
    /// Packets lost, those that were lost while things settled included.
    pub(crate) lost: Drops,
    /// The switches' own counters.
    pub(crate) telemetry: Telemetry,
}

impl Measured {
    /// The figures of the run.
    pub(crate) fn report(
        &self,
        name: &'static str,
        topology: &Topology,
        (plan, reduce, nic_bps): (&JobPlan, &RingAllReduce, u64),
        because: String,
    ) -> RunReport {
        let performance = reduce.performance(self.elapsed_ns, nic_bps);
        let uplinks = self.telemetry.uplinks(topology, &LinkSet::none());
        RunReport {
            name,
            cross_la_share: self.telemetry.cross_la_share().unwrap_or(0.0),
            cross_la_bound: plan.share.bound,
            busbw_ratio: performance.busbw_ratio,
            max_over_mean_uplink: uplinks.max_over_mean(),
            ecn_marks: self.telemetry.marks(),
            // Hellos and probes end in the program by design: it says itself what it dropped.
            drops: self.lost.total() - self.lost.program
                + self.telemetry.drops().values().sum::<u64>(),
            duration_us: self.elapsed_ns as f64 / 1e3,
            retransmitted_packets: self.statistics.totals.retransmitted,
            because,
        }
    }
}

/// How many of a plan's ring edges go between NICs, and how many of those cross LA
/// domains.
pub(crate) fn edges(topology: &Topology, plan: &JobPlan) -> (usize, usize) {
    let (mut all, mut crossing) = (0, 0);
    for ring in &plan.rings {
        let next = ring.nics.iter().cycle().skip(1);
        for ((from, to), sent) in ring.nics.iter().zip(next).zip(&ring.sent) {
            if *sent > 0 {
                all += 1;
                crossing += usize::from(topology[*from].la != topology[*to].la);
            }
        }
    }
    (all, crossing)
}

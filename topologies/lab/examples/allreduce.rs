//! How fast the emulator is: ring all-reduces on the demo fabric (32 NICs), ranks in order and plain ECMP.
//!
//! ```sh
//! cargo run --release -p lab --example allreduce -- [RUNS] [MIB_PER_RANK]
//! ```
#![allow(clippy::unwrap_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use lab::emulator::collective::{Ring, RingAllReduce};
use lab::emulator::{Emulator, EmulatorConfig, Notice, QueuePairNumbers};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |a| a.parse().unwrap());
    let (runs, mib) = (number(3), number(64));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo.yaml");
    let topology = topology::Topology::load(path).unwrap();
    let config = EmulatorConfig::new(&topology, 1);
    println!("queue depth {} packets", config.queue_depth);
    let mut emulator = Emulator::new(&topology, config);
    support::install(&emulator, &topology, &support::program(), 4178);
    let rings = (0..4).map(|rail| Ring {
        nics: topology
            .hosts()
            .iter()
            .map(|h| h.nics().nth(rail).unwrap())
            .collect(),
    });
    let reduce = RingAllReduce::new(rings.collect(), mib << 20);
    let mut numbers = QueuePairNumbers::new(1);
    for run in 0..runs {
        let begin = Instant::now();
        emulator.reset_statistics();
        let id = emulator.start(reduce.schedule(&mut numbers)).unwrap();
        while let Some(notice) = emulator.run_until_notice(u64::MAX) {
            if matches!(notice, Notice::RunFinished { .. }) {
                break;
            }
        }
        let wall = begin.elapsed().as_secs_f64();
        let result = emulator.result(id).unwrap();
        let performance = reduce.performance(result.elapsed_ns().unwrap(), 400_000_000_000);
        let statistics = emulator.statistics();
        let frames: u64 = statistics
            .links
            .iter()
            .map(|l| l.upward.frames + l.downward.frames)
            .sum();
        let deepest = statistics
            .links
            .iter()
            .map(|l| l.upward.queue_max.max(l.downward.queue_max))
            .max();
        println!(
            "run {run}: {wall:.2} s, {} data packets, {} frames on links, {:.0} ns each; \
             {:.1} us virtual, busbw ratio {:.3}, marks {}, retransmitted {}, deepest queue {:?}, {:?}",
            statistics.totals.data_packets,
            frames,
            wall * 1e9 / frames as f64,
            performance.elapsed_ns as f64 / 1e3,
            performance.busbw_ratio,
            statistics.totals.ecn_marks,
            statistics.totals.retransmitted,
            deepest,
            statistics.drops,
        );
    }
}

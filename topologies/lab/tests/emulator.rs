//! The emulator with the compiled fabric program on every switch.
#![allow(clippy::unwrap_used)]

mod support;

use lab::emulator::collective::{Ring, RingAllReduce};
use lab::emulator::{
    Emulator, EmulatorConfig, Family, FlowSpec, Notice, QueuePairNumbers, RunId, Schedule,
    Statistics,
};
use topology::{Clos, HostCounts, NicId, Topology, generate};

const FRAME: u64 = 4096 + 58 + 24;
const LINE: u64 = 400_000_000_000;

fn clos(segments: u32, hosts: u32, rails: u32, spines: u32) -> Topology {
    generate(&Clos {
        segments,
        hosts: HostCounts::Each(hosts),
        rails,
        spines: Some(spines),
        ..Clos::default()
    })
    .unwrap()
}

fn emulator(topology: &Topology, config: EmulatorConfig) -> Emulator {
    let emulator = Emulator::new(topology, config);
    support::install(&emulator, topology, &support::program(), FRAME);
    emulator
}

fn finish(emulator: &mut Emulator, run: RunId) -> Vec<Notice> {
    let mut notices = Vec::new();
    while let Some(notice) = emulator.run_until_notice(10_000_000_000) {
        notices.push(notice);
        if matches!(notice, Notice::RunFinished { run: finished, .. } if finished == run) {
            return notices;
        }
    }
    panic!("the run did not finish: {:?}", emulator.statistics().drops);
}

fn rings(topology: &Topology) -> Vec<Ring> {
    let rails = topology.hosts()[0].nics().len();
    (0..rails)
        .map(|rail| Ring {
            nics: topology
                .hosts()
                .iter()
                .map(|h| h.nics().nth(rail).unwrap())
                .collect(),
        })
        .collect()
}

#[test]
fn an_uncontended_ring_runs_near_the_nics_rate() {
    // Two leaves, two hosts below each: two flows stay local, two cross, one each way.
    let topology = clos(2, 2, 1, 2);
    let mut emulator = emulator(&topology, EmulatorConfig::new(&topology, 1));
    let reduce = RingAllReduce::new(rings(&topology), 16 << 20);
    let schedule = reduce.schedule(&mut QueuePairNumbers::new(1));
    let run = emulator.start(schedule).unwrap();
    finish(&mut emulator, run);
    let result = emulator.result(run).unwrap();
    let performance = reduce.performance(result.elapsed_ns().unwrap(), LINE);
    assert!(performance.busbw_ratio > 0.85, "{performance:?}");
    assert!(
        performance.busbw_ratio < 0.99,
        "headers take their share: {performance:?}"
    );
    let statistics = emulator.statistics();
    assert_eq!(statistics.drops.total(), 0, "{:?}", statistics.drops);
    assert_eq!(statistics.totals.retransmitted, 0);
    assert_eq!(statistics.totals.received_bytes, 6 * (16 << 20));
    assert_eq!(result.steps.len(), 6);
}

#[test]
fn both_families_reach_every_nic() {
    let topology = clos(2, 2, 2, 2);
    let mut emulator = emulator(&topology, EmulatorConfig::new(&topology, 2));
    let mut numbers = QueuePairNumbers::new(2);
    let mut flows = Vec::new();
    for src in topology.nic_ids() {
        for dst in topology.nic_ids().filter(|dst| *dst != src) {
            for family in [Family::V4, Family::V6] {
                let flow = FlowSpec::new(src, dst, 10_000, &mut numbers);
                flows.push(FlowSpec { family, ..flow });
            }
        }
    }
    let count = flows.len();
    let run = emulator.start(Schedule::point_to_point(flows)).unwrap();
    let notices = finish(&mut emulator, run);
    let finished = notices
        .iter()
        .filter(|n| matches!(n, Notice::FlowFinished { .. }))
        .count();
    assert_eq!(finished, count);
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    sum * sum / (rates.len() as f64 * squares)
}

#[test]
fn four_senders_into_one_port_share_it() {
    let topology = clos(1, 5, 1, 1);
    let mut emulator = emulator(&topology, EmulatorConfig::new(&topology, 3));
    let mut numbers = QueuePairNumbers::new(3);
    let flows = (1..5).map(|src| FlowSpec::new(NicId(src), NicId(0), 1 << 30, &mut numbers));
    emulator.start(Schedule::point_to_point(flows)).unwrap();
    // All start at line rate; what that does to the queue is over after a few ms.
    emulator.run_until(8_000_000);
    emulator.reset_statistics();
    emulator.run_until(24_000_000);
    let statistics = emulator.statistics();
    let gbps = |bytes: u64| bytes as f64 * 8.0 / 16e6;
    let rates: Vec<f64> = statistics.nics[1..]
        .iter()
        .map(|n| gbps(n.stats.data_bytes))
        .collect();
    assert!(jain(&rates) > 0.98, "{rates:?}");
    let goodput = gbps(statistics.nics[0].stats.received_bytes);
    assert!(
        goodput > 0.97 * 400.0 * 4096.0 / FRAME as f64,
        "{goodput} Gb/s"
    );
    let profile = topology.policy().ecn_for(LINE).unwrap();
    let queue = statistics
        .links
        .iter()
        .map(|link| link.downward.queue_max)
        .max()
        .unwrap();
    assert!(
        queue > profile.kmin / FRAME && queue <= profile.kmax / FRAME,
        "{queue} packets"
    );
    assert!(statistics.totals.ecn_marks > 0 && statistics.totals.cnps_received > 0);
    assert_eq!(statistics.drops.total(), 0, "{:?}", statistics.drops);
}

fn report(seed: u64) -> (String, Statistics) {
    let topology = clos(2, 2, 2, 2);
    let mut emulator = emulator(&topology, EmulatorConfig::new(&topology, seed));
    let reduce = RingAllReduce::new(rings(&topology), 4 << 20);
    let run = emulator
        .start(reduce.schedule(&mut QueuePairNumbers::new(seed)))
        .unwrap();
    emulator.run_until(50_000);
    let uplink = topology.uplinks(topology::SwitchId(0)).next().unwrap().link;
    emulator.set_link(uplink, false);
    let told = emulator.run_until(3_000_000);
    emulator.set_link(uplink, true);
    let mut notices = told;
    notices.extend(finish(&mut emulator, run));
    let statistics = emulator.statistics();
    (
        format!("{notices:?}{:?}{statistics:?}", emulator.result(run)),
        statistics,
    )
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let ((first, statistics), (second, _)) = (report(7), report(7));
    assert!(first == second, "two runs with one seed differ");
    assert!(first != report(8).0, "the seed has no effect");
    let drops = statistics.drops;
    assert!(drops.in_flight + drops.port_down > 0, "{drops:?}");
    assert!(statistics.totals.retransmitted > 0);
}

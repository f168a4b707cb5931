#![allow(clippy::unwrap_used)]

use super::fill::{Stream, Use};
use super::flow::{Run, simulate, slow_downs};
use super::hash::{Packet, bucket, source_ports};
use super::paths::{capacities, hashed, streams};
use crate::intent::{Options, Planner};
use crate::placement::traffic::{End, Order, anywhere, traffic};
use crate::placement::{Demand, place};
use crate::routing::LinkSet;
use crate::workload::Workload;
use std::sync::Arc;
use topology::{Clos, NicId, generate};

fn stream(bytes: u64, links: &[u32]) -> Stream {
    let uses = links.iter().map(|link| Use {
        link: *link,
        weight: 1.0,
    });
    Stream {
        bytes,
        uses: uses.collect(),
    }
}

fn run(begins_ns: u64, streams: Vec<Stream>) -> Run {
    Run {
        begins_ns,
        iterations: 1,
        streams,
        ..Run::default()
    }
}

#[test]
fn the_second_flow_halves_the_rate_while_it_lasts() {
    // 8 Gb/s: a byte per ns. 1000 bytes alone for 400 ns, then two share.
    let runs = [
        run(0, vec![stream(1000, &[0])]),
        run(400, vec![stream(300, &[0])]),
    ];
    let found = simulate(&[8_000_000_000], &runs, |_| {});
    assert!((found[1].ends_ns - 1000.0).abs() < 1e-6, "{found:?}");
    assert!((found[0].ends_ns - 1300.0).abs() < 1e-6, "{found:?}");
    assert!((found[1].slow_down() - 2.0).abs() < 1e-9);
    assert!((found[0].slow_down() - 1.3).abs() < 1e-9);
}

#[test]
fn overlap_hides_communication_behind_computing() {
    let job = |overlap_ppm| Run {
        iterations: 3,
        compute_ns: 1000,
        overlap_ppm,
        ..run(0, vec![stream(500, &[0])])
    };
    let ends = |ppm| simulate(&[8_000_000_000], &[job(ppm)], |_| {})[0];
    assert!((ends(0).ends_ns - 4500.0).abs() < 1e-6);
    assert!((ends(1_000_000).ends_ns - 3000.0).abs() < 1e-6);
    assert!((ends(400_000).ends_ns - 3900.0).abs() < 1e-6);
    for ppm in [0, 400_000, 1_000_000] {
        assert!((ends(ppm).slow_down() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_job_without_streams_only_computes() {
    let job = Run {
        iterations: 2,
        compute_ns: 70,
        ..run(5, Vec::new())
    };
    assert!((simulate(&[], &[job], |_| {})[0].ends_ns - 145.0).abs() < 1e-9);
}

#[test]
fn jobs_on_one_link_slow_each_other_down() {
    let jobs = [
        vec![stream(10, &[0])],
        vec![stream(10, &[0, 1])],
        vec![stream(10, &[2])],
    ];
    assert_eq!(slow_downs(&[100, 100, 100], &jobs), [2.0, 2.0, 1.0]);
}

#[test]
fn a_placed_reduction_runs_at_the_nics_rate_and_a_hashed_one_does_not() {
    let topology = Arc::new(generate(&Clos::default()).unwrap());
    let text = "
name: job
ranks_per_host: 4
parallel: {dp: 32}
channels: 16
collectives: [{kind: all-reduce, algorithm: hierarchical, bytes_per_rank: 64MiB}]
";
    let job = Workload::parse("job.yaml", text).unwrap();
    let planner = Planner::new(Arc::clone(&topology), Options::default());
    let view = planner.view(&LinkSet::none());
    let network = planner.network(&view);
    let sites = anywhere(&job, 4);
    let flows = traffic(&job, &sites, Order::AsNumbered).flows;
    // Hosts of the two segments take turns, so that every edge crosses.
    let nic = |end: End| (end.slot % 2 * 4 + end.slot / 2) * 4 + u32::from(end.nic);
    let demands: Vec<Demand> = flows
        .iter()
        .map(|f| Demand {
            src: nic(f.src),
            dst: nic(f.dst),
            bytes: f.bytes,
            port: None,
        })
        .collect();
    let capacity = capacities(&topology);
    let time = |paths: &[Option<crate::placement::Path>]| {
        let list = flows
            .iter()
            .zip(paths)
            .map(|(f, p)| (f.chain, f.bytes, p.as_ref()));
        simulate(&capacity, &[run(0, streams(list))], |_| {})[0].ends_ns
    };
    let placed = time(&place(&network, &demands).paths);
    // Each NIC sends 2 x 7/8 x 64 MiB / 4 at 400 Gb/s.
    let least = 2.0 * 7.0 / 8.0 * f64::from(64 << 20) / 4.0 * 8.0 / 400.0;
    assert!((placed / least - 1.0).abs() < 1e-3, "{placed} {least}");
    let paths: Vec<_> = demands
        .iter()
        .zip(0..)
        .map(|(d, i)| hashed(&network, d, i))
        .collect();
    assert!(paths.iter().all(Option::is_some));
    assert!(time(&paths) > placed * 1.2);
}

#[test]
fn source_ports_steer_what_cannot_be_pinned() {
    let topology = Arc::new(generate(&Clos::default()).unwrap());
    let planner = Planner::new(Arc::clone(&topology), Options::default());
    let view = planner.view(&LinkSet::none());
    let network = planner.network(&view);
    let policy = Options::default().buckets;
    // Every NIC of the first segment, four flows each to its counterpart.
    let flows: Vec<(Demand, Packet)> = (0..64)
        .map(|i| {
            let (src, dst) = (i / 4, i / 4 + 16);
            let demand = Demand {
                src,
                dst,
                bytes: 1 << 20,
                port: None,
            };
            (
                demand,
                Packet::roce(&topology, NicId(src), NicId(dst), 0xC000, 0x100 + i),
            )
        })
        .collect();
    let busiest = |tries| {
        let chosen = source_ports(&topology, &network, &flows, (tries, 1), policy);
        let mut load = vec![0u32; topology.links().len() * 2];
        for path in chosen.iter().filter_map(|(_, path)| path.as_ref()) {
            for step in &path.steps[1..path.steps.len() - 1] {
                load[step.link as usize * 2 + usize::from(step.upward)] += 1;
            }
        }
        load.into_iter().max().unwrap()
    };
    // 64 flows over 16 uplinks: four each at best.
    assert_eq!(busiest(64), 4);
    assert!(busiest(1) > 5);
}

#[test]
fn hashed_flows_fill_buckets_evenly() {
    let packet = |src_port| Packet {
        src: "10.0.0.1".parse().unwrap(),
        dst: "10.0.1.1".parse().unwrap(),
        protocol: 17,
        src_port,
        dst_port: 4791,
        dest_qp: 0x123,
    };
    let mut count = [0u32; 8];
    for port in 0xC000..0xD000 {
        count[usize::from(bucket(packet(port).hash(), 7, 8))] += 1;
    }
    assert!(count.iter().all(|n| (400..630).contains(n)), "{count:?}");
    assert_eq!(bucket(u32::MAX, 0, 0), 0);
}

//! Paths for the flows of jobs that fill `topologies/gpus-100k.yaml`, and their rates in the flow model.
//!
//! ```sh
//! cargo bench -p controller --bench flows
//! ```
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use controller::intent::{Options, Planner};
use controller::placement::{Demand, Path, place};
use controller::routing::LinkSet;
use controller::simulate::fill::{Stream, rates};
use controller::simulate::flow::{Run, simulate};
use controller::simulate::paths::{capacities, streams};
use criterion::{Criterion, criterion_group, criterion_main};
use topology::Topology;

/// Options without what placement does not need.
fn planner() -> Planner {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../topologies/gpus-100k.yaml");
    let topology = Arc::new(Topology::load(file).unwrap());
    let options = Options {
        loopbacks: false,
        ..Options::default()
    };
    Planner::new(topology, options)
}

/// One flow from every NIC, to the same rail `hosts` further on.
fn shifted(topology: &Topology, hosts: u32) -> Vec<Demand> {
    let rails = topology.nics().len() as u32 / topology.hosts().len() as u32;
    let nics = topology.nics().len() as u32;
    (0..nics)
        .map(|src| Demand {
            src,
            dst: (src + hosts * rails) % nics,
            bytes: 1 << 20,
            port: None,
        })
        .collect()
}

fn benches(c: &mut Criterion) {
    let planner = planner();
    let view = planner.view(&LinkSet::none());
    let network = planner.network(&view);
    let topology = planner.topology();
    let mut group = c.benchmark_group("flows");
    group.sample_size(10);
    // Rings of whole segments, to the next segment, to the next pod.
    for (name, hosts) in [("ring", 1), ("next-segment", 128), ("next-pod", 14 * 128)] {
        let demands = shifted(topology, hosts);
        let plan = place(&network, &demands);
        println!(
            "{name}: {} flows, busiest link {:.3} of the bound, busiest uplink {:.3} of the mean",
            demands.len(),
            plan.max_load_ps as f64 / plan.bound_ps as f64,
            plan.max_uplink_ps as f64 / plan.mean_uplink_ps,
        );
        group.bench_function(format!("place/{name}"), |b| {
            b.iter(|| place(&network, black_box(&demands)));
        });
        let capacity = capacities(topology);
        let list: Vec<Stream> = streams(
            (0..)
                .zip(&plan.paths)
                .map(|(i, path): (u32, &Option<Path>)| (i, 1 << 20, path.as_ref())),
        );
        group.bench_function(format!("rates/{name}"), |b| {
            b.iter(|| rates(black_box(&capacity), black_box(&list)));
        });
    }
    let (demands, chains) = jobs(topology);
    let plan = place(&network, &demands);
    println!(
        "1000 jobs: {} flows, busiest link {:.3} of the bound",
        demands.len(),
        plan.max_load_ps as f64 / plan.bound_ps.max(1) as f64,
    );
    let capacity = capacities(topology);
    let runs: Vec<Run> = (0..JOBS)
        .map(|job| {
            let own = (0..demands.len()).filter(|i| chains[*i] / RAILS == job);
            Run {
                begins_ns: u64::from(job) * 10_000,
                iterations: 3,
                compute_ns: 1_000_000,
                overlap_ppm: 500_000,
                streams: streams(
                    own.map(|i| (chains[i], demands[i].bytes, plan.paths[i].as_ref())),
                ),
            }
        })
        .collect();
    group.bench_function("simulate/1000-jobs", |b| {
        b.iter(|| simulate(black_box(&capacity), black_box(&runs), |_| {}));
    });
    group.finish();
}

const JOBS: u32 = 1000;
const RAILS: u32 = 8;
const HOSTS: u32 = 12;

/// Jobs of twelve hosts, a ring on every rail, hosts taken one from each of twelve segments so that every
/// edge crosses; and the ring of each flow.
fn jobs(topology: &Topology) -> (Vec<Demand>, Vec<u32>) {
    let hosts = topology.hosts().len() as u32;
    let mut demands = Vec::new();
    let mut chains = Vec::new();
    for job in 0..JOBS {
        let host = |i: u32| (job + (i % HOSTS) * (hosts / HOSTS)) % hosts;
        for rail in 0..RAILS {
            for i in 0..HOSTS {
                demands.push(Demand {
                    src: host(i) * RAILS + rail,
                    dst: host(i + 1) * RAILS + rail,
                    bytes: 1 << 24,
                    port: None,
                });
                chains.push(job * RAILS + rail);
            }
        }
    }
    (demands, chains)
}

criterion_group!(all, benches);
criterion_main!(all);

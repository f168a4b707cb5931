//! Placing jobs: one into a fabric of 100 000 GPUs, a queue that fills it, and a churn run.

use controller::placement::{Costs, Inventory, Occupancy, Policy, Search, least_crossing, seat};
use controller::simulate::churn::{Contender, Discipline, Setup, run};
use controller::workload::Workload;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;
use topology::Topology;

fn load(file: &str) -> Option<Topology> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies");
    Topology::load(folder.join(file)).ok()
}

fn one_job(c: &mut Criterion) {
    let Some(topology) = load("gpus-100k.yaml") else {
        return;
    };
    let inventory = Inventory::new(&topology, 8, 8);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/jobs/allreduce-1024.yaml");
    let Ok(job) = Workload::load(file) else {
        return;
    };
    c.bench_function(
        "1024 GPUs into 100 000, with inventory, bound and ranks",
        |b| {
            b.iter(|| {
                let inventory = Inventory::new(&topology, 8, 8);
                let occupancy = Occupancy::empty(topology.hosts().len());
                let search = Search::new(&inventory, &occupancy, Costs::default(), 0.0);
                let found = search.place(128, None);
                let bound = least_crossing(&job, &inventory, |_| true);
                found.map(|f| seat(&job, &inventory, &f.hosts, bound, Costs::default()))
            });
        },
    );
    c.bench_function("1 000 jobs fill 100 000 GPUs", |b| {
        b.iter_batched(
            || Occupancy::empty(topology.hosts().len()),
            |mut occupancy| fill(&inventory, &mut occupancy),
            BatchSize::LargeInput,
        );
    });
}

/// A thousand jobs that together take all hosts: 544 of 13 and 456 of 12.
fn fill(inventory: &Inventory, occupancy: &mut Occupancy) -> usize {
    let sizes = (0..1000).map(|job| if job < 544 { 13 } else { 12 });
    let placed = (0..).zip(sizes).filter(|(job, size)| {
        let hosts = Policy::Meridian.choose(inventory, occupancy, *size, 0);
        hosts.is_some_and(|hosts| occupancy.take(*job, &hosts).is_ok())
    });
    placed.count()
}

fn churn(c: &mut Criterion) {
    let Some(topology) = load("irregular-120.yaml") else {
        return;
    };
    let inventory = Inventory::new(&topology, 8, 0);
    let setup = Setup {
        load: 0.95,
        sizes: vec![
            (1, 40),
            (2, 20),
            (4, 14),
            (8, 10),
            (16, 8),
            (32, 5),
            (64, 3),
        ],
        jobs: 1000,
        discipline: Discipline::Reject,
        overstated: 1.5,
        moves: 0.1,
    };
    for contender in [
        Contender::Policy(Policy::Meridian),
        Contender::Policy(Policy::SlurmTree),
    ] {
        c.bench_function(&format!("1 000 jobs of churn, {}", contender.name()), |b| {
            b.iter(|| black_box(run(&inventory, &setup, contender, 1, &|| false)));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(5));
    targets = one_job, churn
}
criterion_main!(benches);

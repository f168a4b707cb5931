//! How long fabrics take to make, write and read.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use topology::Topology;

fn load(name: &str) -> Topology {
    Topology::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

fn topologies(c: &mut Criterion) {
    let mut group = c.benchmark_group("topology");
    group.sample_size(10);
    group.bench_function("generate 100 352 GPUs", |b| {
        b.iter(|| load("gpus-100k.yaml"))
    });
    let large = load("gpus-100k.yaml");
    group.bench_function("write 100 352 GPUs", |b| b.iter(|| large.to_yaml()));
    let text = large.to_yaml();
    group.bench_function("read 100 352 GPUs", |b| {
        b.iter(|| Topology::parse("large", &text).unwrap())
    });
    group.finish();
}

criterion_group!(benches, topologies);
criterion_main!(benches);

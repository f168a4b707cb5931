//! Packets per second of one switch, in process, on one core: from ingress to
//! the bytes that leave. The router program (10 000 routes through a group of
//! 64, an access list, ECN, checksums) and the fabric program (a RoCEv2 packet
//! through route, group, bucket, next hop, ECN profile, counters, checksums).

use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
};

#[path = "../tests/support/mod.rs"]
mod support;

use softswitch::Switch;
use support::{ENTRANCE, l3, program, rocev2, router};

/// One packet after the other, each out before the next.
fn pass(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut switch: Switch,
    port: u16,
    packets: &[Vec<u8>],
) {
    let mut ready = Vec::new();
    let mut next = 0;
    let mut now = 0;
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |b| {
        b.iter(|| {
            now += 1_000;
            next = (next + 1) % packets.len();
            switch.ingress(port, &packets[next], now);
            switch.take_ready(&mut ready);
            for &port in &ready {
                while switch.dequeue_with(port, now, <[u8]>::len).is_some() {}
            }
        });
    });
    assert_eq!(
        switch.stats().received,
        switch.stats().sent,
        "all packets are forwarded"
    );
}

fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("router");
    for len in [64, 128, 1_500] {
        let packets: Vec<Vec<u8>> = (0..1_024)
            .map(|i| l3::packet(i * 7, i as u16 * 13, len))
            .collect();
        let name = format!("{len} bytes");
        pass(&mut group, &name, l3::router(), 1, &packets);
    }
    group.finish();
    let mut group = c.benchmark_group("fabric");
    for len in [128, 1024, 4096] {
        let packets: Vec<Vec<u8>> = (0..256)
            .map(|i| rocev2(0x0a00_0000 | i << 6 | 5, 40_000 + i as u16, i, len))
            .collect();
        let name = format!("{len} bytes");
        pass(&mut group, &name, router(), ENTRANCE, &packets);
    }
    group.finish();
}

fn load(c: &mut Criterion) {
    c.bench_function("load", |b| {
        b.iter_batched(|| (), |()| program(), BatchSize::SmallInput)
    });
}

criterion_group!(benches, forward, load);
criterion_main!(benches);

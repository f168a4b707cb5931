//! Packets per second of one switch on the fabric program: a RoCEv2 packet
//! from ingress to the bytes that leave, through route, group, bucket, next
//! hop, ECN profile, counters and checksums.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

#[path = "../tests/support/mod.rs"]
mod support;

use support::{ENTRANCE, program, rocev2, router};

fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("fabric");
    for len in [128, 1024, 4096] {
        let mut switch = router();
        let packets: Vec<Vec<u8>> = (0..256)
            .map(|i| rocev2(0x0a00_0000 | i << 6 | 5, 40_000 + i as u16, i, len))
            .collect();
        let mut ready = Vec::new();
        let mut next = 0;
        let mut now = 0;
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("{len} bytes"), |b| {
            b.iter(|| {
                now += 1_000;
                next = (next + 1) % packets.len();
                switch.ingress(ENTRANCE, &packets[next], now);
                switch.take_ready(&mut ready);
                for &port in &ready {
                    while let Some(packet) = switch.dequeue(port, now) {
                        switch.recycle(packet);
                    }
                }
            });
        });
        assert_eq!(
            switch.stats().received,
            switch.stats().sent,
            "all packets are forwarded"
        );
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

//! What a RoCEv2 packet costs the NIC model, and what its ICRC would cost byte by byte.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lab::emulator::roce::icrc::{self, ZeroRun};
use lab::emulator::roce::{Bth, DSCP_DATA, ECT0, Extension, Opcode, Path, Template, parse};

const PAYLOAD: usize = 4096;

fn packets(criterion: &mut Criterion) {
    let zeros = Arc::new(ZeroRun::new(PAYLOAD));
    let path = Path {
        src_mac: [2, 0, 0, 0, 0, 1],
        dst_mac: [2, 0, 0, 0, 0, 2],
        src_ip: [10, 0, 1, 2].into(),
        dst_ip: [10, 0, 2, 2].into(),
        udp_source_port: 0xC001,
    };
    let template = Template::new(&path, zeros.clone());
    let bth = Bth {
        opcode: Opcode::WriteMiddle,
        dest_qp: 7,
        psn: 1,
        ack_request: false,
        becn: false,
    };
    let class = DSCP_DATA << 2 | ECT0;
    let mut frame = Vec::new();
    let mut group = criterion.benchmark_group("roce-4096");
    group.throughput(Throughput::Elements(1));
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            template.write(
                &mut frame,
                class,
                black_box(&bth),
                &Extension::None,
                PAYLOAD,
            )
        });
    });
    template.write(&mut frame, class, &bth, &Extension::None, PAYLOAD);
    group.bench_function("parse", |bencher| {
        bencher.iter(|| parse(black_box(&frame), &zeros).is_ok());
    });
    group.bench_function("icrc byte by byte", |bencher| {
        bencher.iter(|| icrc::update(black_box(u32::MAX), black_box(&frame)));
    });
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);

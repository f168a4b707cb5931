//! What in-band telemetry costs one switch: RoCEv2 packets of 1024 bytes without INT entries, with a
//! watchlist and one packet in 64 measured, and with every packet measured, as source, and a stack of
//! two hops taken out, as sink.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use softswitch::Switch;

#[path = "../tests/support/mod.rs"]
mod support;

use support::{ENTRANCE, PORTS, insert, rocev2, router};

const DSCP: u128 = 0x17;
/// Node, ports, latency and queue: 4 words.
const INSTRUCTIONS: u128 = 0xf000;

/// A router that measures one packet in so many, if any, and pushes or strips at all ports.
fn measuring(one_in: Option<u128>, strips: bool) -> Switch {
    let mut switch = router();
    let any = (0, 0);
    if let Some(one_in) = one_in {
        let args = [one_in, INSTRUCTIONS, 4, 8, 0, DSCP];
        insert(
            &mut switch,
            "int_watchlist",
            &[any; 6],
            "watch_by_dscp",
            &args,
        );
    }
    for port in 1..=PORTS {
        let (action, args): (_, &[u128]) = if strips {
            ("int_strip", &[0])
        } else {
            ("int_push", &[7, 9000])
        };
        insert(&mut switch, "int_port", &[(port.into(), 0)], action, args);
    }
    insert(
        &mut switch,
        "int_indicator",
        &[(0, 0), (DSCP, 0x3f), any],
        "carries_int",
        &[],
    );
    switch
}

/// Sends the packets in turn; every one comes out.
fn run(c: &mut Criterion, name: &str, mut switch: Switch, port: u16, packets: &[Vec<u8>]) {
    let mut group = c.benchmark_group("telemetry");
    group.throughput(Throughput::Elements(1));
    let mut ready = Vec::new();
    let mut next = 0;
    let mut now = 0;
    group.bench_function(name, |b| {
        b.iter(|| {
            now += 1_000;
            next = (next + 1) % packets.len();
            switch.ingress(port, &packets[next], now);
            switch.take_ready(&mut ready);
            for &port in &ready {
                while let Some(packet) = switch.dequeue(port, now) {
                    switch.recycle(packet);
                }
            }
        });
    });
    assert_eq!(switch.stats().received, switch.stats().sent);
    group.finish();
}

fn telemetry(c: &mut Criterion) {
    let packets: Vec<Vec<u8>> = (0..256)
        .map(|i| rocev2(0x0a00_0000 | i << 6 | 5, 40_000 + i as u16, i, 1024))
        .collect();
    run(c, "no entries", router(), ENTRANCE, &packets);
    run(
        c,
        "one in 64",
        measuring(Some(64), false),
        ENTRANCE,
        &packets,
    );
    run(c, "source", measuring(Some(1), false), ENTRANCE, &packets);

    // What two hops make of them, for a switch whose ports lead to switches.
    let mut source = measuring(Some(1), false);
    let carried: Vec<Vec<u8>> = packets
        .iter()
        .map(|packet| {
            source.ingress(ENTRANCE, packet, 0);
            (1..=PORTS)
                .find_map(|port| source.dequeue(port, 0))
                .expect("it is forwarded")
                .bytes
        })
        .map(|mut bytes| {
            // To the next router, which has the same address.
            bytes.copy_within(6..12, 0);
            bytes
        })
        .collect();
    let fabric = ENTRANCE + 1;
    for (name, strips) in [("transit", false), ("sink", true)] {
        let mut switch = measuring(None, strips);
        insert(
            &mut switch,
            "port_config",
            &[(fabric.into(), 0)],
            "fabric_port",
            &[0],
        );
        run(c, name, switch, fabric, &carried);
    }
}

criterion_group!(benches, telemetry);
criterion_main!(benches);

//! Packets per second of one switch in process, moved by one worker and by several.
//!
//! `cargo run --release -p softswitch --example cores -- [router|fabric] [WORKERS] [SECONDS]`
//!
//! Each worker is a thread with a lane of the same switch; it receives packets on a port of its
//! own and sends what becomes ready, by whatever port. All take turns with one worker alone, in
//! rounds, and the medians are printed.

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use softswitch::{SharedSwitch, Switch};
use support::{ENTRANCE, l3, rocev2, router};

/// Packets of one turn.
const BATCH: usize = 64;
const ROUNDS: usize = 5;

struct Load {
    switch: Switch,
    packets: Vec<Vec<u8>>,
    /// By which port a worker's packets come in.
    port: fn(usize) -> u16,
}

fn load(program: &str) -> Option<Load> {
    match program {
        "router" => Some(Load {
            switch: l3::router(),
            packets: (0..1_024u16)
                .map(|i| l3::packet(u32::from(i) * 7, i.wrapping_mul(13), 128))
                .collect(),
            port: |worker| 1 + worker as u16,
        }),
        "fabric" => Some(Load {
            switch: router(),
            packets: (0..256u16)
                .map(|i| {
                    rocev2(
                        0x0a00_0000 | u32::from(i) << 6 | 5,
                        40_000 + i,
                        i.into(),
                        128,
                    )
                })
                .collect(),
            port: |_| ENTRANCE,
        }),
        _ => None,
    }
}

/// Moves packets until told to stop; how many left.
fn work(
    switch: &SharedSwitch,
    lane: Option<usize>,
    load: (&[Vec<u8>], u16),
    stop: &AtomicBool,
) -> u64 {
    let (packets, port) = load;
    let (mut ready, mut sent, mut next, mut now) = (Vec::new(), 0, 0, 0);
    while !stop.load(Ordering::Relaxed) {
        switch.turn(lane, |work| {
            let Some(work) = work else { return };
            for _ in 0..BATCH {
                now += 1_000;
                next = (next + 1) % packets.len();
                work.ingress(port, &packets[next], now);
                work.take_ready(&mut ready);
                for &port in &ready {
                    while work.dequeue_with(port, now, <[u8]>::len).is_some() {
                        sent += 1;
                    }
                    work.leave(port);
                }
            }
        });
    }
    sent
}

/// Packets per second of so many workers.
fn measure(switch: &SharedSwitch, load: &Load, workers: usize, time: Duration) -> f64 {
    switch.set_lanes(if workers > 1 { workers } else { 0 });
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let sent: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|number| {
                let lane = (workers > 1).then_some(number);
                let (packets, port) = (&load.packets[..], (load.port)(number));
                let stop = &stop;
                scope.spawn(move || work(switch, lane, (packets, port), stop))
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|t| t.join().unwrap_or(0)).sum()
    });
    sent as f64 / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut args = std::env::args().skip(1);
    let program = args.next().unwrap_or_else(|| "router".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = args.next().and_then(|n| n.parse().ok()).unwrap_or(cores);
    let seconds = args.next().and_then(|n| n.parse().ok()).unwrap_or(2.0);
    let Some(mut load) = load(&program) else {
        eprintln!("there is no program {program}; there are router and fabric");
        std::process::exit(2);
    };
    let blank = Switch::new(load.switch.config().clone());
    let switch = SharedSwitch::new(std::mem::replace(&mut load.switch, blank));
    let time = Duration::from_secs_f64(seconds);
    let mut results = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (count, results) in [1, workers].into_iter().zip(&mut results) {
            results.push(measure(&switch, &load, count, time));
        }
    }
    let [one, several] = results.map(median);
    println!("{program}: 1 worker {one:.0} packets/s, {workers} workers {several:.0} packets/s");
    println!("ratio {:.2}", several / one);
}

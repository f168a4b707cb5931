//! One switch, packets moved through it by two threads at a time.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use softswitch::{Program, RegisterId, SharedSwitch, Switch, SwitchConfig, Work};

/// Packets of each thread.
const PACKETS: u64 = 60_000;
/// Packets of one turn.
const BATCH: u64 = 32;
const LANES: usize = 2;

/// A packet of a thread: for one of eight cells, with its number as the source address.
fn packet(lane: usize, number: u64) -> [u8; 14] {
    let mut packet = [0; 14];
    packet[5] = (number * 5 % 8) as u8;
    packet[6..12].copy_from_slice(&number.to_be_bytes()[2..]);
    packet[12] = lane as u8;
    packet[13] = (number % 2) as u8;
    packet
}

fn shared(rate: Option<softswitch::Rate>) -> SharedSwitch {
    let program = Program::load(include_bytes!("programs/lanes.json")).unwrap();
    let mut switch = Switch::new(SwitchConfig {
        queue_depth: 1 << 20,
        ..SwitchConfig::default()
    });
    switch.set_all_queue_rates(rate);
    switch.install(Arc::new(program));
    let switch = SharedSwitch::new(switch);
    switch.set_lanes(LANES);
    switch
}

/// What left, by port.
type Sent = [Mutex<Vec<Vec<u8>>>; 2];

/// Takes out what may leave.
fn take_out(work: &mut Work<'_>, now: u64, sent: &Sent) {
    work.make_due_ready(now);
    let mut ready = Vec::new();
    work.take_ready(&mut ready);
    for port in ready {
        let out = &sent[usize::from(port)];
        let take = |bytes: &[u8]| out.lock().unwrap().push(bytes.to_vec());
        while work.dequeue_with(port, now, take).is_some() {}
        work.leave(port);
    }
}

/// Sends all packets of one thread through its lane.
fn send(switch: &SharedSwitch, lane: usize, sent: &Sent) {
    for batch in 0..PACKETS / BATCH {
        switch.turn(Some(lane), |work| {
            let work = work.unwrap();
            for number in batch * BATCH..(batch + 1) * BATCH {
                work.ingress(lane as u16, &packet(lane, number), number * 1_000);
                if number % 7 == 0 {
                    take_out(work, number * 1_000, sent);
                }
            }
            take_out(work, batch * BATCH * 1_000, sent);
        });
    }
}

fn register(switch: &mut Switch, name: &str, cells: u64) -> u64 {
    let program = switch.program().unwrap();
    let id: RegisterId = program.register_id(name).unwrap();
    let read = |cell| switch.register_read(id, cell).unwrap().low_u64();
    (0..cells).map(read).sum()
}

/// Packets of a thread that left by a port are in the order in which they came.
fn assert_order(sent: &Sent) {
    for port in sent {
        for lane in 0..LANES {
            let sent = port.lock().unwrap();
            let own = sent.iter().filter(|packet| packet[12] == lane as u8);
            assert!(own.is_sorted_by_key(|packet| &packet[6..12]), "lane {lane}");
        }
    }
}

#[test]
fn nothing_is_lost_between_lanes_and_steps_of_registers_are_whole() {
    let switch = shared(None);
    let sent = Sent::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..LANES)
            .map(|lane| {
                let (switch, sent) = (&switch, &sent);
                scope.spawn(move || send(switch, lane, sent))
            })
            .collect();
        // Who has the switch alone now and then sees whole packets only.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut switch = switch.lock();
                let total = register(&mut switch, "Enter.total", 8);
                assert_eq!(total, switch.stats().received);
                drop(switch);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        threads.into_iter().for_each(|t| t.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let all = LANES as u64 * PACKETS;
    let mut switch = switch.lock();
    assert_eq!(switch.stats().received, all);
    assert_eq!(switch.stats().sent, all);
    assert_eq!(register(&mut switch, "Enter.total", 8), all);
    assert_eq!(register(&mut switch, "Enter.spanned", 8), all);
    assert_eq!(register(&mut switch, "Leave.left", 2), all);
    assert_eq!(register(&mut switch, "Enter.torn", 1), 0);
    let seen = switch.program().unwrap().counter_id("Enter.seen").unwrap();
    let cells = (0..8).map(|cell| switch.counter_read(seen, cell).unwrap());
    assert_eq!(cells.map(|c| c.packets).sum::<u64>(), all / 2);
    drop(switch);
    assert_eq!(
        sent.iter().map(|p| p.lock().unwrap().len()).sum::<usize>(),
        all as usize
    );
    assert_order(&sent);
}

#[test]
fn rates_hold_and_order_stays_when_lanes_change_at_a_port() {
    // Each port sends a packet per 4 µs; the threads bring one per µs, and take turns at taking
    // them out.
    let switch = shared(Some(softswitch::Rate::PacketsPerSecond(250_000)));
    let sent = Sent::default();
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let (switch, sent) = (&switch, &sent);
            scope.spawn(move || send(switch, lane, sent));
        }
    });
    let left: usize = sent.iter().map(|p| p.lock().unwrap().len()).sum();
    assert!(left as u64 <= 2 * PACKETS / 4 + 2, "{left}");
    let mut now = PACKETS * 1_000;
    for round in 0.. {
        let due = switch.turn(Some(round % LANES), |work| {
            let work = work.unwrap();
            take_out(work, now, &sent);
            work.next_due()
        });
        now += 1_000_000;
        if due.is_none() && switch.lock().stats().sent == LANES as u64 * PACKETS {
            break;
        }
        assert!(round < 1_000, "packets are left behind");
    }
    assert_order(&sent);
}

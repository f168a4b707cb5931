//! What happens over time, on both switches: queues, meters, digests, truncation.
//!
//! The program is `p4/softswitch/tests/programs/traffic`. What time decides to the microsecond is not
//! compared; what it decides by a margin is.

use std::time::{Duration, Instant};

use p4runtime::entry::{clone_session, insert, modify, replica};
use p4runtime::v1::{MeterConfig, digest_entry};

use crate::switch::{SOON, Switch, Target, in_namespaces};

const A_WHILE: Duration = Duration::from_millis(400);
/// Long enough for a list of digests that waits for its time.
const LATE: Duration = Duration::from_millis(2_500);
const MS: i64 = 1_000_000;
/// Bytes of the header that a packet comes with, and of the one that it gets.
const WISH: usize = 8;
const SEEN: usize = 20;

/// A packet that asks for something.
#[derive(Clone, Copy, Default)]
struct Wish {
    op: u8,
    priority: u8,
    cut: u16,
    number: u32,
}

impl Wish {
    fn frame(self, payload: usize) -> Vec<u8> {
        let mut frame = vec![self.op, self.priority];
        frame.extend(self.cut.to_be_bytes());
        frame.extend(self.number.to_be_bytes());
        frame.extend((0..payload).map(|at| at as u8));
        frame
    }
}

/// A packet that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    number: u32,
    /// By packets, by bytes, of the entry.
    colours: [u8; 3],
    queue: u8,
    enq_depth: u32,
    deq_depth: u32,
}

impl Seen {
    fn of(frame: &[u8]) -> Seen {
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        Seen {
            number: word(4),
            colours: [frame[WISH], frame[WISH + 1], frame[WISH + 2]],
            queue: frame[WISH + 3],
            enq_depth: word(WISH + 4),
            deq_depth: word(WISH + 8),
        }
    }
}

fn start(target: Target) -> Switch {
    let program = tests::root().join("p4/softswitch/tests/programs/traffic/traffic");
    Switch::start(target, &program, 0)
}

fn out(switch: &Switch, count: usize) -> Vec<Seen> {
    let frames = switch.receive(2, count, SOON);
    frames.iter().map(|frame| Seen::of(frame)).collect()
}

/// Sets the rate of port 2's queues. bmv2 lets the first packet of a queue wait for one interval from
/// then on, so one goes ahead through each queue that is to be used.
fn serve_at(switch: &Switch, rate: u64, queues: &[u8]) {
    switch.queue_rate(2, rate);
    for &priority in queues {
        let wish = Wish {
            priority,
            ..Wish::default()
        };
        switch.send(1, &wish.frame(60));
    }
    assert_eq!(out(switch, queues.len()).len(), queues.len());
    std::thread::sleep(Duration::from_millis(1_200 / rate));
}

/// A queue takes 64 packets and no more, those that leave are told how many wait, in order.
fn depths(target: Target) {
    let switch = start(target);
    // The first leaves at once, and none of the others before all have come.
    serve_at(&switch, 1, &[0]);
    for number in 0..80 {
        let wish = Wish {
            number,
            ..Wish::default()
        };
        switch.send(1, &wish.frame(60));
    }
    let first = out(&switch, 1);
    assert_eq!((first[0].number, first[0].enq_depth), (0, 0));
    let rest = switch.receive(2, 4, Duration::from_secs(6));
    for (at, frame) in (1u32..).zip(&rest) {
        let seen = Seen::of(frame);
        assert_eq!(seen.number, at, "in order");
        assert_eq!(seen.enq_depth, at - 1, "those that waited already");
        // 64 waited; this one does not any more.
        assert_eq!(seen.deq_depth, 64 - at, "packet {at}");
    }
    assert_eq!(rest.len(), 4);
}

/// What waits in several queues leaves by priority, the highest first.
fn priorities(target: Target) {
    let switch = start(target);
    serve_at(&switch, 4, &[0, 1, 2, 3, 4, 5, 6, 7]);
    for number in 0..2 {
        for priority in [3, 0, 7, 5, 1, 6, 2, 4] {
            let wish = Wish {
                priority,
                number,
                ..Wish::default()
            };
            switch.send(1, &wish.frame(60));
        }
    }
    // The first of each queue leaves at once. While the switch stands still the time of all the
    // others comes.
    let first = out(&switch, 8);
    let order: Vec<u8> = first.iter().map(|seen| seen.queue).collect();
    assert_eq!(order, [3, 0, 7, 5, 1, 6, 2, 4]);
    switch.pause(Duration::from_millis(900));
    let second = out(&switch, 8);
    let order: Vec<(u8, u32)> = second.iter().map(|s| (s.queue, s.number)).collect();
    let expected: Vec<(u8, u32)> = (0..8).rev().map(|queue| (queue, 1)).collect();
    assert_eq!(order, expected);
}

/// Each queue is served at its own rate.
fn rates(target: Target) {
    let switch = start(target);
    serve_at(&switch, 20, &[2, 6]);
    for number in 0..6 {
        for priority in [2, 6] {
            let wish = Wish {
                priority,
                number,
                ..Wish::default()
            };
            switch.send(1, &wish.frame(60));
        }
    }
    let start = Instant::now();
    let seen = out(&switch, 12);
    let took = start.elapsed();
    for queue in [2, 6] {
        let own = seen.iter().filter(|s| s.queue == queue);
        let numbers: Vec<u32> = own.map(|s| s.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5], "queue {queue}");
    }
    // Five intervals of 50 ms, less what passed while packets were sent.
    assert!(took > Duration::from_millis(180), "{took:?}");
    assert!(took < Duration::from_millis(900), "{took:?}");
}

fn meter(switch: &Switch, name: &str, cell: i64, config: MeterConfig) {
    let entry = switch.index().meter_entry(name, Some(cell), Some(config));
    switch.write(vec![modify(entry.unwrap())]);
}

/// Sends packets of one kind, as fast as a switch takes them, and says their colours.
fn colours(switch: &Switch, op: u8, count: usize, payload: usize) -> Vec<[u8; 3]> {
    for number in 0..count as u32 {
        let wish = Wish {
            op,
            number,
            ..Wish::default()
        };
        switch.send(1, &wish.frame(payload));
    }
    out(switch, count).iter().map(|seen| seen.colours).collect()
}

/// Has bursts of one kind coloured by a meter of 1 packet/s and 2, with bursts of 5 and 9: when it is
/// full, when a while has passed, and when it is full again.
fn bursts(switch: &Switch, op: u8, place: usize, payload: usize) {
    let picked = |count| {
        let start = Instant::now();
        let all = colours(switch, op, count, payload);
        let picked: Vec<u8> = all.iter().map(|c| c[place]).collect();
        (start, picked, Instant::now())
    };
    let full = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2];
    let (began, first, ended) = picked(full.len());
    assert_eq!(first, full, "op {op}: bursts");
    std::thread::sleep(Duration::from_millis(2_200));
    let (again, second, over) = picked(6);
    // So many packets as the time is worth, however long the machine stood still meanwhile.
    let (least, most) = (again - ended, over - began);
    let worth = |rate: f64| {
        let of = |time: Duration| ((time.as_secs_f64() * rate) as usize).min(6);
        of(least)..=of(most)
    };
    let count = |colours: &[u8]| second.iter().filter(|c| colours.contains(c)).count();
    assert!(worth(1.0).contains(&count(&[0])), "op {op}: {second:?}");
    assert!(worth(2.0).contains(&count(&[0, 1])), "op {op}: {second:?}");
    assert!(second.is_sorted(), "op {op}: {second:?}");
    std::thread::sleep(Duration::from_millis(6_000));
    assert_eq!(picked(full.len()).1, full, "op {op}: full again");
}

/// Bursts, and what is there again after a while: of packets, of bytes, of an entry's own meter.
fn meters(target: Target) {
    let switch = start(target);
    let untouched = colours(&switch, 0, 3, 60);
    // Not configured: green. Not executed: as before.
    assert_eq!(untouched, [[0, 0, 9]; 3]);

    let config = MeterConfig {
        cir: 1,
        cburst: 5,
        pir: 2,
        pburst: 9,
        eburst: 0,
    };
    meter(&switch, "by_packets", 1, config);
    bursts(&switch, 1, 0, 60);
    let classes = switch.index().table("classes").unwrap();
    let own = classes.entry().exact("hdr.wish.op", 3u64).meter(config);
    let own = own.action("metered", [("", 0u64); 0]).build();
    switch.insert(vec![own.unwrap()]);
    bursts(&switch, 3, 2, 60);

    // Frames of 100 bytes; the bursts are a little more than five and nine of them.
    let config = MeterConfig {
        cir: 100,
        cburst: 520,
        pir: 200,
        pburst: 920,
        eburst: 0,
    };
    meter(&switch, "by_bytes", 2, config);
    bursts(&switch, 2, 1, 100 - WISH);
}

/// Packets are cut when they leave, to what they ask for, and not below what they are.
fn truncation(target: Target) {
    let switch = start(target);
    switch.write(vec![insert(clone_session(5, 0, [replica(3u64, 1)]))]);
    let payload = 60;
    let whole = WISH + SEEN + payload;
    // An interface takes no frame that is shorter than 14 bytes.
    for cut in [0, 14, 15, 20, 27, 28, 29, 60, 87, 88, 89, 200, 65535] {
        for op in [0, 2] {
            let wish = Wish {
                op,
                cut,
                ..Wish::default()
            };
            let frame = wish.frame(payload);
            switch.send(1, &frame);
            let left = switch.receive(2, 1, SOON);
            let expected = match usize::from(cut) {
                0 => whole,
                cut => cut.min(whole),
            };
            assert_eq!(left[0].len(), expected, "cut to {cut}");
            assert_eq!(left[0][..WISH], frame[..WISH], "cut to {cut}");
            if op == 2 {
                let clone = switch.receive(3, 1, SOON);
                assert_eq!(clone[0].len(), whole, "clones are not cut");
            }
        }
    }
}

/// Lists by size and by time, no duplicates until they are acknowledged or the time for it is over.
fn digests(target: Target) {
    let mut switch = start(target);
    let config = digest_entry::Config {
        max_timeout_ns: 300 * MS,
        max_list_size: 3,
        ack_timeout_ns: 10_000 * MS,
    };
    let entry = switch.index().digest_entry("learn_t", config).unwrap();
    let digest_id = entry.digest_id;
    switch.write(vec![insert(entry)]);
    let learn = |switch: &Switch, numbers: &[u32]| {
        for &number in numbers {
            let wish = Wish {
                op: 1,
                number,
                ..Wish::default()
            };
            switch.send(1, &wish.frame(60));
        }
    };
    // A full list comes at once, duplicates within it left out.
    let start = Instant::now();
    learn(&switch, &[1, 2, 2, 1, 3]);
    let (list, first) = switch.digest(A_WHILE).expect("a list of three");
    assert_eq!(first, [1, 2, 3]);
    assert!(start.elapsed() < Duration::from_millis(250), "not by time");
    // One that waits comes when its time is over.
    let start = Instant::now();
    learn(&switch, &[4]);
    // bmv2 looks at the time now and then only.
    let (_, second) = switch.digest(LATE).expect("a list of one");
    assert_eq!(second, [4]);
    let (sent, took) = (Instant::now(), start.elapsed());
    assert!(took > Duration::from_millis(200), "{took:?}");
    // What was sent is not sent again,
    learn(&switch, &[1, 2, 3, 4]);
    assert_eq!(switch.digest(LATE), None);
    // but when it is acknowledged,
    switch.acknowledge(digest_id, list);
    std::thread::sleep(A_WHILE);
    learn(&switch, &[1, 2, 3, 4]);
    assert_eq!(switch.digest(A_WHILE).map(|d| d.1), Some(vec![1, 2, 3]));
    // or the time for it is over, which bmv2 does not mind.
    if matches!(target, Target::Bmv2) {
        return;
    }
    std::thread::sleep(Duration::from_secs(11).saturating_sub(sent.elapsed()));
    learn(&switch, &[4]);
    assert_eq!(switch.digest(LATE).map(|d| d.1), Some(vec![4]));
}

macro_rules! on_both {
    ($($scenario:ident)*) => {
        mod on_bmv2 {
            $(
                #[test]
                #[ignore = "needs root and simple_switch_grpc"]
                fn $scenario() {
                    let test = concat!(module_path!(), "::", stringify!($scenario));
                    super::in_namespaces(test, || super::$scenario(super::Target::Bmv2));
                }
            )*
        }
        mod on_meridian_switch {
            $(
                #[test]
                #[ignore = "needs root and a built meridian-switch"]
                fn $scenario() {
                    let test = concat!(module_path!(), "::", stringify!($scenario));
                    super::in_namespaces(test, || super::$scenario(super::Target::MeridianSwitch));
                }
            )*
        }
    };
}

on_both! { depths priorities rates meters truncation digests }

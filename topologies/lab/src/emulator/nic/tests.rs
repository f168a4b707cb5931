#![allow(clippy::unwrap_used)]

use super::dcqcn::DcqcnConfig;
use super::*;
use crate::emulator::roce::Path;

const SPEED: u64 = 400_000_000_000;

fn nic(config: NicConfig) -> Nic {
    let zeros = Arc::new(ZeroRun::new(config.payload as usize));
    Nic::new(Arc::new(config), zeros, &[SPEED, SPEED])
}

fn qp(local_qp: u32, remote_qp: u32) -> QueuePairConfig {
    let (src, dst) = (local_qp as u8, remote_qp as u8);
    QueuePairConfig {
        local_qp,
        remote_qp,
        path: Path {
            src_mac: [2, 0, 0, 0, 0, src],
            dst_mac: [2, 0, 0, 0, 0, dst],
            src_ip: [10, 0, 0, src].into(),
            dst_ip: [10, 0, 0, dst].into(),
            udp_source_port: roce::udp_source_port(local_qp, remote_qp),
        },
        home_port: 0,
        start_psn: 0xFF_FFF0,
        rate_bps: None,
    }
}

/// Two NICs wired back to back without delay; `fate` says what becomes of the n-th frame.
/// The result is how many messages were received and acknowledged, and the time at the end.
fn exchange_until(
    a: &mut Nic,
    b: &mut Nic,
    mut fate: impl FnMut(u64, &mut Vec<u8>) -> bool,
) -> (u64, u64, u64) {
    let (mut buffer, mut actions) = (Vec::new(), Vec::new());
    let (mut frames, mut now) = (0, 0);
    let mut timers = Vec::new();
    let mut done = (0, 0);
    loop {
        let mut moved = false;
        let mut wait = u64::MAX;
        for a_sends in [true, false] {
            let (from, to) = if a_sends {
                (&mut *a, &mut *b)
            } else {
                (&mut *b, &mut *a)
            };
            for port in 0..2 {
                match from.poll(port, now, &mut buffer, &mut actions) {
                    Poll::Frame => {
                        moved = true;
                        frames += 1;
                        if fate(frames, &mut buffer) {
                            let _ = to.receive(&buffer, now, &mut actions);
                        }
                    }
                    Poll::Wait(until) => wait = wait.min(until),
                    Poll::Idle => {}
                }
            }
            for action in actions.drain(..) {
                match action {
                    Action::Received(_) => done.0 += 1,
                    Action::Acknowledged(_) => done.1 += 1,
                    Action::Timer(qp, at) => timers.push((at, a_sends, qp)),
                }
            }
        }
        if moved {
            now += 100;
            continue;
        }
        timers.sort_unstable();
        if timers.first().is_none_or(|(at, ..)| wait < *at) && wait < u64::MAX {
            now = wait;
            continue;
        }
        if timers.is_empty() {
            return (done.0, done.1, now);
        }
        let (at, of_a, qp) = timers.remove(0);
        now = now.max(at);
        let nic = if of_a { &mut *a } else { &mut *b };
        nic.timer(qp, now, &mut actions);
        for action in actions.drain(..) {
            if let Action::Timer(qp, at) = action {
                timers.push((at, of_a, qp));
            }
        }
    }
}

fn exchange(a: &mut Nic, b: &mut Nic, fate: impl FnMut(u64, &mut Vec<u8>) -> bool) -> (u64, u64) {
    let (received, acknowledged, _) = exchange_until(a, b, fate);
    (received, acknowledged)
}

fn pair(config: &NicConfig) -> (Nic, Nic) {
    let (mut a, mut b) = (nic(config.clone()), nic(config.clone()));
    a.connect(&qp(1, 2));
    b.connect(&qp(2, 1));
    (a, b)
}

#[test]
fn messages_arrive_and_are_acknowledged() {
    let (mut a, mut b) = pair(&NicConfig::default());
    [10, 4096, 1_000_000]
        .iter()
        .for_each(|bytes| a.post(0, *bytes));
    assert_eq!(exchange(&mut a, &mut b, |_, _| true), (3, 3));
    assert_eq!(b.stats().received_bytes, 1_004_106);
    assert_eq!((a.stats().retransmitted, b.stats().naks), (0, 0));
    assert!(
        b.stats().acks < 25,
        "acknowledgements are coalesced: {}",
        b.stats().acks
    );
}

#[test]
fn loss_is_repaired_by_nak_and_by_timer() {
    for period in [2, 7, 10, 50] {
        let (mut a, mut b) = pair(&NicConfig::default());
        a.post(0, 2_000_000);
        a.post(0, 5);
        // A deterministic hash, so that no packet is unlucky for ever.
        let kept = |n: u64, _: &mut Vec<u8>| {
            !(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).is_multiple_of(period)
        };
        assert_eq!(
            exchange(&mut a, &mut b, kept),
            (2, 2),
            "one in {period} lost"
        );
        assert!(a.stats().retransmitted > 0);
        let distinct = b.stats().received_packets - b.stats().duplicates - b.stats().out_of_order;
        assert_eq!(distinct, 2_000_000_u64.div_ceil(4096) + 1);
    }
}

#[test]
fn damage_is_loss() {
    let (mut a, mut b) = pair(&NicConfig::default());
    a.post(0, 100_000);
    let mut damaged = 0;
    let done = exchange(&mut a, &mut b, |n, frame| {
        if n % 9 == 4 {
            let at = frame.len() - 6;
            frame[at] ^= 0x40;
            damaged += 1;
        }
        true
    });
    assert_eq!(done, (1, 1));
    assert_eq!(a.stats().errors + b.stats().errors, damaged);
    assert!(damaged > 0);
}

#[test]
fn marks_bring_cnps_and_cnps_lower_the_rate() {
    let config = NicConfig {
        // No increase before the test has looked.
        dcqcn: Some(DcqcnConfig {
            increase_interval_ns: 100_000_000,
            ..DcqcnConfig::new(SPEED)
        }),
        ..NicConfig::default()
    };
    let (mut a, mut b) = pair(&config);
    a.post(0, 100_000);
    let (.., now) = exchange_until(&mut a, &mut b, |_, frame| {
        if frame[15] & 3 == ECT0 {
            frame[15] |= roce::CE;
        }
        true
    });
    assert_eq!(b.stats().ecn_marks, b.stats().received_packets);
    assert!(b.stats().cnps_sent >= 1 && b.stats().cnps_sent < b.stats().ecn_marks);
    assert_eq!(a.stats().cnps_received, b.stats().cnps_sent);
    a.post(0, 100_000);
    let (mut buffer, mut actions) = (Vec::new(), Vec::new());
    assert_eq!(a.poll(0, now, &mut buffer, &mut actions), Poll::Frame);
    a.poll(0, now, &mut buffer, &mut actions);
    let Poll::Wait(until) = a.poll(0, now, &mut buffer, &mut actions) else {
        panic!("a slowed queue pair waits");
    };
    assert!(until > now + 84, "{until}");
}

#[test]
fn a_set_rate_is_kept_on_average() {
    let (mut a, _) = pair(&NicConfig {
        window: 1_000,
        ..NicConfig::default()
    });
    a.set_rate(0, Some(SPEED / 4));
    a.post(0, 4_096_000);
    let (mut buffer, mut actions) = (Vec::new(), Vec::new());
    let (mut now, mut bits) = (1_000, 0);
    while bits < 900 * 4_178 * 8 {
        match a.poll(0, now, &mut buffer, &mut actions) {
            Poll::Frame => {
                bits += (buffer.len() as u64 + WIRE_OVERHEAD) * 8;
                now += 84;
            }
            Poll::Wait(until) => now = until,
            Poll::Idle => panic!("there is more to send"),
        }
    }
    let rate = bits as f64 / (now - 1_000) as f64;
    assert!((rate - 100.0).abs() < 1.0, "{rate} Gb/s");
}

#[test]
fn queue_pairs_take_turns_and_move_when_a_port_fails() {
    let mut a = nic(NicConfig::default());
    for number in 1..=3 {
        a.connect(&qp(number, 100 + number));
        a.post(number - 1, 100_000);
    }
    let (mut buffer, mut actions) = (Vec::new(), Vec::new());
    let mut turn = |a: &mut Nic, port| {
        assert_eq!(a.poll(port, 0, &mut buffer, &mut actions), Poll::Frame);
        roce::parse(&buffer, &ZeroRun::new(4096))
            .unwrap()
            .bth
            .dest_qp
            - 100
    };
    let order: Vec<_> = (0..6).map(|_| turn(&mut a, 0)).collect();
    assert_eq!(order, [1, 2, 3, 1, 2, 3]);
    a.set_port(0, false);
    let order: Vec<_> = (0..3).map(|_| turn(&mut a, 1)).collect();
    assert_eq!(order, [1, 2, 3]);
    a.set_port(0, true);
    assert_eq!(turn(&mut a, 0), 1, "back home");
    let (mut buffer, mut actions) = (Vec::new(), Vec::new());
    assert_eq!(a.poll(1, 0, &mut buffer, &mut actions), Poll::Idle);
}

#[test]
fn a_reorder_window_takes_packets_as_they_come() {
    let (mut a, mut b) = pair(&NicConfig {
        reorder_window: 64,
        ..NicConfig::default()
    });
    a.post(0, 400_000);
    let (mut buffer, mut actions) = (Vec::new(), Vec::new());
    let mut frames = Vec::new();
    while a.poll(0, 0, &mut buffer, &mut actions) == Poll::Frame {
        frames.push(buffer.clone());
    }
    for chunk in frames.chunks_mut(8) {
        chunk.reverse();
    }
    for frame in &frames {
        b.receive(frame, 0, &mut actions).unwrap();
    }
    assert!(actions.contains(&Action::Received(0)));
    assert_eq!(b.stats().naks, 0);
    assert!(b.stats().out_of_order > 50);
}

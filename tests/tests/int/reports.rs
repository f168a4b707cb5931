//! Reports: what the switches tell collectors, field by field.

use std::net::{IpAddr, Ipv4Addr};

use controller::telemetry::int::collector::{Collector, Config, Hop, Kind};
use controller::telemetry::int::flow::Flow;
use controller::telemetry::int::packet;
use controller::telemetry::int::report::{Datagram, Inner, Report};
use softswitch::MeterId;
use softswitch::control::MeterConfig;

use crate::chain::{Chain, INDICATORS, NODE, kinds, times, watch};
use crate::frames::{Frame, after_hops, sum};
use crate::model::{Indicator, Watch};
use crate::node::{
    ANY, COLLECTOR, COLLECTOR_PORT, INT_DSCP, INT_PORT, Next, Node, PROGRAM, Setup, is,
};

/// Checks Ethernet, IPv4 and UDP of a report and hands out what it says.
pub(crate) fn opened(frame: &[u8]) -> Datagram {
    assert_eq!(frame[..6], [2, 0, 0, 0, 9, 9]);
    assert_eq!(frame[6..14], [2, 0, 0, 0, 9, 1, 8, 0]);
    let ip = &frame[14..34];
    assert_eq!((ip[0], ip[1], ip[9]), (0x45, 0, 17));
    assert_eq!(
        usize::from(u16::from_be_bytes([ip[2], ip[3]])),
        frame.len() - 14
    );
    assert_eq!(ip[6..8], [0x40, 0], "don't fragment");
    assert_eq!(sum(ip, 0), 0xffff, "checksum of the report");
    assert_eq!(ip[12..20], [10, 0, 9, 1, 10, 0, 9, 9]);
    let udp = &frame[34..42];
    assert_eq!(udp[..4], [40_001u16, 32_766].map(u16::to_be_bytes).concat());
    assert_eq!(
        usize::from(u16::from_be_bytes([udp[4], udp[5]])),
        frame.len() - 34
    );
    assert_eq!(udp[6..8], [0, 0], "no checksum");
    let datagram = Datagram::decode(&frame[42..]).unwrap();
    assert_eq!(
        datagram.encode(),
        frame[42..],
        "written again, it is the same"
    );
    datagram
}

fn only(datagram: &Datagram) -> &Report {
    assert_eq!(datagram.reports.len(), 1);
    &datagram.reports[0]
}

pub(crate) fn config() -> Config {
    Config {
        indicators: vec![
            packet::Indicator::Dscp(INT_DSCP),
            packet::Indicator::Port(INT_PORT),
        ],
        flows: 1000,
    }
}

fn shown(report: &Report) -> &[u8] {
    match &report.inner {
        Inner::Ipv4(bytes) | Inner::Ipv6(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_path_report_shows_the_packet_as_it_came_to_the_sink() {
    for indicator in INDICATORS {
        for frame in kinds() {
            let watch = watch(indicator, 0xfc00);
            let passed = Chain::new(3, watch).check(&frame, &watch);
            let datagram = opened(&passed.reports[0]);
            assert_eq!((datagram.node, datagram.hw_id), (NODE + 3, 5));
            assert_eq!(datagram.sequence, 0);
            let report = only(&datagram);
            assert!(report.tracked && !report.dropped && !report.congested);
            // The sink is a router: what it shows has its TTL less one, and the rest as it came.
            let at_sink = after_hops(&passed.frames[1], 1);
            let bytes = shown(report);
            assert_eq!(bytes.len() % 4, 0);
            assert_eq!(bytes, &at_sink[14..14 + bytes.len()]);
            assert!(bytes.len() + 3 >= (at_sink.len() - 14).min(60));
        }
    }
}

#[test]
fn a_path_report_has_the_sinks_own_hop_towards_the_host() {
    let watch = watch(INDICATORS[0], 0xffff);
    let mut chain = Chain::new(3, watch);
    let passed = chain.check(&Frame::roce(3, &[0; 100]), &watch);
    let datagram = opened(&passed.reports[0]);
    let own = only(&datagram).own.as_ref().unwrap();
    // What cannot be told is not announced; the node stands in the group header.
    assert_eq!(own.bits, 0x7f80);
    let (arrives, leaves) = times(2);
    let told = &own.metadata;
    assert_eq!((told.ingress_port, told.egress_port), (Some(1), Some(2)));
    assert_eq!(told.latency, Some((leaves - arrives) as u32));
    assert_eq!((told.queue, told.queue_depth), (Some(0), Some(0)));
    assert_eq!(told.ingress_time, Some(arrives));
    assert_eq!(told.egress_time, Some(leaves));
    let setup = &chain.nodes[2].setup;
    assert_eq!(told.logical, Some((setup.interface(1), setup.interface(2))));
    assert_eq!(told.utilisation, None, "not measured at this port");
    assert_eq!(told.buffer, Some((2 << 3, 0)));
}

/// What `port_load` makes of packets of some length at some times, in fractions of full use: as the pipeline's
/// reference says, in floating point.
fn used(times_us: &[u64], len: usize, scale: u64, window: u32) -> Vec<f64> {
    let (mut share, mut last) = (0.0, 0);
    let mut all = Vec::new();
    for &now in times_us {
        let faded = (now - last) as f64 / f64::from(1 << window);
        share = if faded < 1.0 {
            share * (1.0 - faded)
        } else {
            0.0
        };
        share += (len as u64 * scale) as f64 / 65_536.0;
        last = now;
        all.push(share);
    }
    all
}

#[test]
fn use_of_the_port_is_told_where_it_is_measured() {
    // 1 Gb/s, over 2^8 us: 32 000 bytes are all.
    let (scale, window) = ((1u64 << 32) / 32_000, 8);
    for (ends, stack) in [
        ([Next::Host, Next::Switch], true),
        ([Next::Host, Next::Host], false),
    ] {
        let mut setup = Setup::new(NODE, ends);
        setup.watch = Some(watch(INDICATORS[0], 0x0380));
        let mut node = Node::new(setup);
        let measure = [scale.into(), window.into()];
        node.insert("port_load", &[is(2)], "measure", &measure);
        let frame = Frame::udp(&[0; 1_000]).bytes();
        // Six times as fast as the port, at its rate, at half of it, after a pause.
        let steps = [vec![1; 9], vec![8; 40], vec![16; 40], vec![300]].concat();
        let times: Vec<u64> = steps
            .iter()
            .scan(1_000, |now, step| {
                *now += step;
                Some(*now)
            })
            .collect();
        let expected = used(&times, frame.len(), scale, window);
        for (now, expected) in times.iter().zip(expected) {
            let out = node.pass(1, &frame, now * 1_000, now * 1_000);
            let told = if stack {
                let shown = packet::Shown::of(&out[0].1[14..], &config().indicators).unwrap();
                shown.stack.unwrap().hops[0].utilisation
            } else {
                let report = out.iter().find(|(port, _)| *port == COLLECTOR_PORT);
                let datagram = opened(&report.unwrap().1);
                only(&datagram).own.as_ref().unwrap().metadata.utilisation
            };
            let told = f64::from(told.unwrap());
            assert!(
                (told - expected).abs() < 0.01 * expected + 64.0,
                "{told}, not {expected}"
            );
        }
    }
}

#[test]
fn the_collector_puts_the_path_together() {
    for (indicator, len) in [(INDICATORS[0], 1), (INDICATORS[0], 3), (INDICATORS[1], 5)] {
        let watch = watch(indicator, 0xfc00);
        let mut chain = Chain::new(len, watch);
        let mut collector = Collector::new(config());
        for _ in 0..3 {
            let passed = chain.send(&Frame::roce(0xabc, &[0; 100]).bytes());
            let seen = collector.take(&passed.reports[0][42..], 1).unwrap();
            assert_eq!(seen[0].kind, Kind::Path { changed: false });
        }
        let flow = Flow {
            src: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            dst: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
            protocol: 17,
            src_port: 50_000,
            dst_port: 4791,
            dest_qp: Some(0xabc),
        };
        let state = &collector.flows()[&flow];
        assert_eq!((state.reports, state.paths, state.change_count), (3, 3, 0));
        let expected: Vec<Hop> = (1..=len as u32)
            .map(|number| Hop {
                node: Some(NODE + number),
                ingress_port: Some(1),
                egress_port: Some(2),
            })
            .collect();
        assert_eq!(state.hops(), expected);
        for (number, hop) in state.path.iter().enumerate() {
            let (arrives, leaves) = times(number);
            assert_eq!(hop.latency.last, leaves - arrives);
            assert_eq!((hop.latency.count, hop.queue), (3, Some(0)));
        }
        let counts = collector.senders()[&(NODE + len as u32, 5)];
        assert_eq!((counts.received, counts.lost), (3, 0));
    }
}

#[test]
fn sequence_numbers_count_every_report_of_a_node() {
    let watch = watch(INDICATORS[0], 0x9000);
    let mut chain = Chain::new(2, watch);
    for number in 0..5 {
        let passed = chain.send(&Frame::udp(b"payload").bytes());
        assert_eq!(opened(&passed.reports[0]).sequence, number);
    }
}

#[test]
fn drops_are_reported_with_their_reason() {
    let mut node = Node::new(Setup::new(NODE, [Next::Host, Next::Host]));
    for reason in [5, 8] {
        node.insert(
            "int_drop_report",
            &[is(reason)],
            "report_drop",
            &[COLLECTOR],
        );
    }
    let denied = [ANY, ANY, ANY, ANY, ANY, (6666, 0xffff), ANY];
    node.insert("acl", &denied, "deny", &[]);

    // No route; the access list; a reason that is not reported (not the switch's address).
    let mut lost = Frame::udp(b"payload").bytes();
    lost[33] = 99;
    let ip = 14..34;
    lost[24..26].fill(0);
    let checksum = !sum(&lost[ip], 0);
    lost[24..26].copy_from_slice(&checksum.to_be_bytes());
    let denied = Frame {
        v6: true,
        dst_port: 6666,
        ..Frame::udp(b"payload")
    };
    let denied = denied.bytes();
    let mut unheard = Frame::udp(b"payload").bytes();
    unheard[5] = 0x55;

    for (frame, reason, egress) in [(&lost, 5, 0xffff), (&denied, 8, 2)] {
        let out = node.pass(1, frame, 7_000, 9_000);
        assert_eq!(out.len(), 1);
        let datagram = opened(&out[0].1);
        let report = only(&datagram);
        assert!(report.dropped && !report.tracked && !report.congested);
        let own = report.own.as_ref().unwrap();
        assert_eq!(own.metadata.drop, Some((0, reason)));
        assert_eq!(own.metadata.ingress_port, Some(1));
        assert_eq!(own.metadata.egress_port.unwrap_or(0xffff), egress);
        assert_eq!(own.metadata.ingress_time, Some(7_000));
        let bytes = shown(report);
        assert_eq!(bytes, &frame[14..14 + bytes.len()], "as it came in");
    }
    assert!(node.pass(1, &unheard, 7_000, 9_000).is_empty());
    assert_eq!(node.counted("drops", 1 << 5 | 4), 1);
}

/// Puts `count` packets into the queue of port 2 and takes all out.
fn burst(node: &mut Node, frame: &[u8], count: usize) -> Vec<(u16, Vec<u8>)> {
    for _ in 0..count {
        node.switch.ingress(1, frame, 1_000);
    }
    node.drain(50_000)
}

#[test]
fn a_queue_above_its_threshold_is_reported() {
    let mut node = Node::new(Setup::new(NODE, [Next::Host, Next::Switch]));
    node.insert(
        "int_queue_report",
        &[is(2), is(0)],
        "report_queue",
        &[5, 0, COLLECTOR],
    );
    let frame = Frame::udp(b"payload").bytes();
    let out = burst(&mut node, &frame, 10);
    let reports: Vec<_> = out
        .iter()
        .filter(|(port, _)| *port == COLLECTOR_PORT)
        .collect();
    // Ten packets leave 9, 8, 7, 6 behind them, then 5 and fewer.
    assert_eq!(reports.len(), 4);
    for (number, (_, frame)) in (0..).zip(reports) {
        let datagram = opened(frame);
        let report = only(&datagram);
        assert!(report.congested && !report.dropped && !report.tracked);
        let told = &report.own.as_ref().unwrap().metadata;
        assert_eq!(told.queue_depth, Some(9 - number));
        assert_eq!(told.egress_port, Some(2));
        assert_eq!(told.latency, Some(49_000));
    }
}

#[test]
fn a_congested_transit_reports_what_a_measured_packet_carries() {
    let watch = watch(INDICATORS[0], 0xfc00);
    let mut chain = Chain::new(3, watch);
    let carried = chain.send(&Frame::udp(b"payload").bytes()).frames[0].clone();
    let mut node = Node::new(Setup::new(NODE + 2, [Next::Switch, Next::Switch]));
    node.insert(
        "int_queue_report",
        &[is(2), is(0)],
        "report_queue",
        &[0, 0, COLLECTOR],
    );
    let out = burst(&mut node, &carried, 2);
    let report = out
        .iter()
        .find(|(port, _)| *port == COLLECTOR_PORT)
        .unwrap();
    let datagram = opened(&report.1);
    let report = only(&datagram);
    assert!(report.congested && report.tracked && report.intermediate);
    let mut collector = Collector::new(config());
    let seen = collector.take(&datagram.encode(), 1).unwrap();
    assert_eq!(seen[0].kind, Kind::Queue);
    assert_eq!(seen[0].flow.dst_port, 5_001);
    let shown = packet::Shown::of(shown(report), &config().indicators).unwrap();
    let nodes: Vec<_> = shown
        .stack
        .unwrap()
        .hops
        .iter()
        .map(|hop| hop.node)
        .collect();
    assert_eq!(nodes, [Some(NODE + 1), Some(NODE + 2)]);
}

#[test]
fn marks_and_ecn_drops_are_reported_if_asked_for() {
    for (tos, asked) in [(2u8, 1), (0, 1), (2, 0)] {
        let mut node = Node::new(Setup::new(NODE, [Next::Host, Next::Switch]));
        let never = 0x7ffff;
        node.insert(
            "int_queue_report",
            &[is(2), is(0)],
            "report_queue",
            &[never, asked, COLLECTOR],
        );
        node.insert("ecn_profile", &[is(2), is(0)], "ecn_mark", &[2, 2, 0, 1]);
        let frame = Frame {
            tos,
            ..Frame::udp(b"payload")
        };
        let out = burst(&mut node, &frame.bytes(), 6);
        let reports: Vec<_> = out
            .iter()
            .filter(|(port, _)| *port == COLLECTOR_PORT)
            .collect();
        // 5, 4 and 3 are above 2.
        assert_eq!(reports.len(), if asked == 1 { 3 } else { 0 });
        for (_, frame) in reports {
            let datagram = opened(frame);
            let report = only(&datagram);
            assert_eq!(report.dropped, tos == 0);
            assert!(report.congested);
            assert_eq!(shown(report)[1] & 3, if tos == 0 { 0 } else { 3 });
            let drop = report.own.as_ref().unwrap().metadata.drop;
            assert_eq!(drop, (tos == 0).then_some((0, 10)));
        }
    }
}

#[test]
fn reports_are_limited_in_rate() {
    let watch = watch(INDICATORS[0], 0x9000);
    let mut setup = Setup::new(NODE, [Next::Host, Next::Host]);
    setup.watch = Some(watch);
    let mut node = Node::new(setup);
    let meters = PROGRAM.meters();
    let at = meters
        .iter()
        .position(|meter| meter.name.ends_with("int_report_meter"));
    let limit = MeterConfig {
        cir: 100,
        cburst: 10,
        pir: 100,
        pburst: 10,
        ..MeterConfig::default()
    };
    node.switch
        .meter_write(MeterId(at.unwrap() as u32), 0, Some(limit))
        .unwrap();
    let frame = Frame::udp(b"payload").bytes();
    let mut reports = 0u32;
    let mut last = None;
    for number in 0..1000u64 {
        let now = number * 1_000_000;
        for (port, frame) in node.pass(1, &frame, now, now) {
            if port == COLLECTOR_PORT {
                reports += 1;
                let sequence = opened(&frame).sequence;
                assert_eq!(sequence, last.map_or(0, |last| last + 1), "no gap");
                last = Some(sequence);
            }
        }
    }
    // A second at 100 per second, and the burst.
    assert!((100..=112).contains(&reports), "{reports}");
}

#[test]
fn a_collector_behind_the_controller_gets_packet_ins() {
    let watch = watch(INDICATORS[0], 0xfc00);
    let mut setup = Setup::new(NODE, [Next::Host, Next::Host]);
    setup.watch = Some(watch);
    let mut node = Node::new(setup);
    let session = softswitch::control::CloneSession {
        id: COLLECTOR as u32,
        replicas: vec![softswitch::control::Replica {
            port: 510,
            instance: 1,
        }],
        class_of_service: 0,
        packet_length: 0,
    };
    node.switch.clone_modify(&session).unwrap();
    let out = node.pass(1, &Frame::udp(&[1; 500]).bytes(), 1_000, 2_000);
    let packet_in = &out.iter().find(|(port, _)| *port == 510).unwrap().1;
    // Ingress port 1 in nine bits, then reason 7 (INT report).
    assert_eq!(packet_in[..2], (1u16 << 7 | 7).to_be_bytes());
    opened(&packet_in[2..]);
}

#[test]
fn every_prefix_of_a_report_and_every_bit_flip_is_digested() {
    let mut watches: Vec<Watch> = INDICATORS.iter().map(|by| watch(*by, 0xfc00)).collect();
    watches.push(watch(Indicator::Dscp(INT_DSCP), 0xffff));
    let mut collector = Collector::new(config());
    let mut taken = 0;
    for watch in watches {
        let passed = Chain::new(3, watch).send(&Frame::roce(7, &[0; 64]).bytes());
        let report = &passed.reports[0][42..];
        for end in 0..report.len() {
            let _ = collector.take(&report[..end], 1);
            taken += 1;
        }
        for bit in 0..report.len() * 8 {
            let mut broken = report.to_vec();
            broken[bit / 8] ^= 1 << (bit % 8);
            let _ = collector.take(&broken, 1);
            taken += 1;
        }
    }
    let totals = collector.totals();
    assert_eq!(totals.datagrams, taken);
    assert!(totals.malformed > 0 && totals.malformed < taken);
}

//! In-band telemetry on a running switch: as source, and as sink, with reports for the controller.

use controller::telemetry::int::collector::{Collector, Config, Kind};
use controller::telemetry::int::packet::Indicator as Told;
use controller::telemetry::int::report::{Datagram, Inner};
use p4runtime::entry::{self, Error};
use p4runtime::info::Index;
use p4runtime::v1::{TableEntry, Update};

use crate::entries::{NEIGHBOUR_2, NEIGHBOUR_3};
use crate::frames::{Frame, TCP, after_hops};
use crate::model::{Hop, Indicator, Watch, begin, push, same_but_entropy, words_of};
use crate::switch::{SOON, Switch};

const NODE: u32 = 0xa0b0_c0d0;
const DSCP: u8 = 0x17;
const PORT: u16 = 0x4242;
const CPU: u64 = 510;
/// Node, ports, queue, logical interfaces, use of the port (not measured) and buffer: what can be foretold on
/// a real switch.
const INSTRUCTIONS: u16 = 0xd380;
/// Added to a port's number.
const INTERFACE: u32 = 0x4321_0000;
/// Ethernet, IPv4 and UDP before a report.
const BEFORE_REPORT: usize = 42;

fn watch(indicator: Indicator) -> Watch {
    Watch {
        indicator,
        instructions: INSTRUCTIONS,
        hop_ml: words_of(INSTRUCTIONS),
        max_hops: 8,
        domain: 3,
    }
}

/// What this switch knows of a packet.
fn hop(ingress: u16, egress: u16) -> Hop {
    Hop {
        logical: Some((
            INTERFACE + u32::from(ingress),
            INTERFACE + u32::from(egress),
        )),
        ..Hop::between(NODE, ingress, egress)
    }
}

/// Entries that make port 3 lead to a switch and port 2 to a host, for telemetry.
pub(crate) fn telemetry(index: &Index, watch: &Watch) -> Result<Vec<TableEntry>, Error> {
    let entry = |table: &str| Ok::<_, Error>(index.table(table)?.entry());
    let nothing: [(&str, u64); 0] = [];
    let number = |value: u64| value.to_be_bytes().to_vec();
    let (action, mark) = match watch.indicator {
        Indicator::Dscp(dscp) => ("watch_by_dscp", ("dscp", u64::from(dscp))),
        Indicator::Port(port) => ("watch_by_port", ("udp_port", u64::from(port))),
    };
    let asked = [
        ("one_in", 1),
        ("instructions", watch.instructions.into()),
        ("hop_ml", watch.hop_ml.into()),
        ("max_hops", watch.max_hops.into()),
        ("domain_id", watch.domain.into()),
        mark,
    ];
    let to_collector = [
        ("slot", number(0)),
        ("node", number(NODE.into())),
        ("hw_id", number(1)),
        ("src_mac", vec![2, 0, 0, 0, 9, 1]),
        ("dst_mac", vec![2, 0, 0, 0, 9, 9]),
        ("src_addr", vec![10, 0, 9, 1]),
        ("dst_addr", vec![10, 0, 9, 9]),
        ("src_port", number(40_001)),
        ("dst_port", number(32_766)),
    ];
    let push = [("node", u64::from(NODE)), ("ip_mtu", 9000)];
    let mut entries = vec![
        entry("int_watchlist")?
            .priority(1)
            .action(action, asked)
            .build()?,
        entry("int_port")?
            .exact("egress_port", 3u64)
            .action("int_push", push)
            .build()?,
        entry("int_port")?
            .exact("egress_port", 2u64)
            .action("int_strip", [("session", CPU)])
            .build()?,
        entry("int_collector")?
            .exact("session", CPU)
            .action("send_report", to_collector)
            .build()?,
        entry("int_drop_report")?
            .exact("reason", 5u64)
            .action("report_drop", [("session", CPU)])
            .build()?,
        entry("int_indicator")?
            .exact("npt", 0u64)
            .ternary("dscp", u64::from(DSCP), 0x3fu64)
            .priority(1)
            .action("carries_int", nothing)
            .build()?,
    ];
    for port in 1..=3u64 {
        let id = [("id", u64::from(INTERFACE) + port)];
        let came_by = entry("int_ingress_interface")?.exact("ingress_port", port);
        entries.push(came_by.action("came_by", id).build()?);
        let goes_by = entry("int_egress_interface")?.exact("egress_port", port);
        entries.push(goes_by.action("goes_by", id).build()?);
    }
    for npt in [1u64, 2] {
        let indicator = entry("int_indicator")?
            .exact("npt", npt)
            .ternary("udp_dst_port", u64::from(PORT), 0xffffu64)
            .priority(1)
            .action("carries_int", nothing);
        entries.push(indicator.build()?);
    }
    Ok(entries)
}

/// Routes to the receiver, out of a port.
pub(crate) fn routes(index: &Index, nexthop: u64) -> Result<Vec<TableEntry>, Error> {
    let way = [("nexthop_id", nexthop)];
    let frame = Frame::udp(b"");
    let (v4, v6) = (
        frame.addresses().1,
        Frame { v6: true, ..frame }.addresses().1,
    );
    let table = |name: &str| Ok::<_, Error>(index.table(name)?.entry().exact("vrf", 0u64));
    Ok(vec![
        table("route_v4")?
            .lpm("dst_addr", v4, 32)
            .action("route_nexthop", way)
            .build()?,
        table("route_v6")?
            .lpm("dst_addr", v6, 128)
            .action("route_nexthop", way)
            .build()?,
    ])
}

fn updates(entries: Vec<TableEntry>, make: fn(TableEntry) -> Update) -> Vec<Update> {
    entries.into_iter().map(make).collect()
}

fn kinds() -> Vec<Frame> {
    let mut all = vec![Frame::roce(0x1234, &[7; 128])];
    for v6 in [false, true] {
        let plain = Frame {
            v6,
            ..Frame::udp(b"some payload of odd length.")
        };
        all.push(Frame {
            checksum: false,
            ..plain.clone()
        });
        all.push(Frame {
            protocol: TCP,
            tagged: true,
            ..plain.clone()
        });
        all.push(plain);
    }
    all
}

/// A frame as it leaves this switch: one hop on, to the neighbour.
fn routed(frame: &[u8], neighbour: [u8; 6]) -> Vec<u8> {
    let mut out = after_hops(frame, 1);
    out[..6].copy_from_slice(&neighbour);
    out
}

fn comes_out(switch: &Switch, port: usize) -> Vec<u8> {
    let mut frames = switch.receive(port, 1, SOON);
    assert_eq!(frames.len(), 1, "nothing came out of port {port}");
    frames.remove(0)
}

fn measure(switch: &mut Switch, indicator: Indicator) {
    let watch = watch(indicator);
    let entries = telemetry(switch.index(), &watch).unwrap();
    switch.write(updates(entries, entry::insert));
    let session = entry::clone_session(CPU as u32, 0, [entry::replica(CPU, 1)]);
    switch.write(vec![entry::insert(session)]);

    // Source: from the host at port 1 to the switch at port 3.
    let to_fabric = routes(switch.index(), 3).unwrap();
    switch.write(updates(to_fabric, entry::insert));
    for frame in kinds() {
        let sent = frame.bytes();
        switch.send(1, &sent);
        let out = comes_out(switch, 3);
        let expected = push(&begin(&routed(&sent, NEIGHBOUR_3), &watch), &hop(1, 3));
        assert!(
            same_but_entropy(&out, &expected),
            "source of {frame:?}:\n{out:02x?}, not\n{expected:02x?}"
        );
    }

    // Sink: from the switch at port 3 to the host at port 2.
    let to_host = routes(switch.index(), 2).unwrap();
    switch.write(updates(to_host, entry::modify));
    let far = Hop::between(77, 4, 5);
    let mut collector = Collector::new(Config {
        indicators: vec![Told::Dscp(DSCP), Told::Port(PORT)],
        flows: 100,
    });
    for (sequence, frame) in (0..).zip(kinds()) {
        let carried = push(&begin(&after_hops(&frame.bytes(), 1), &watch), &far);
        switch.send(3, &carried);
        let expected = routed(&after_hops(&frame.bytes(), 1), NEIGHBOUR_2);
        assert_eq!(comes_out(switch, 2), expected, "sink of {frame:?}");

        let (ingress, reason, report) = switch.packet_in();
        assert_eq!((ingress, reason), (3, 7));
        let datagram = Datagram::decode(&report[BEFORE_REPORT..]).unwrap();
        assert_eq!(
            (datagram.node, datagram.hw_id, datagram.sequence),
            (NODE, 1, sequence)
        );
        let own = datagram.reports[0].own.as_ref().unwrap();
        assert_eq!(own.bits, INSTRUCTIONS & 0x7f80);
        let told = &own.metadata;
        assert_eq!((told.ingress_port, told.egress_port), (Some(3), Some(2)));
        assert_eq!((told.queue, told.queue_depth), (Some(0), Some(0)));
        assert_eq!(told.logical, Some((INTERFACE + 3, INTERFACE + 2)));
        assert_eq!((told.utilisation, told.buffer), (None, Some((2 << 3, 0))));
        let (Inner::Ipv4(shown) | Inner::Ipv6(shown)) = &datagram.reports[0].inner else {
            panic!("{:?}", datagram.reports[0].inner);
        };
        assert_eq!(
            shown[..],
            routed(&carried, NEIGHBOUR_2)[14..14 + shown.len()]
        );
        let seen = collector.take(&report[BEFORE_REPORT..], 1).unwrap();
        assert_eq!(seen[0].kind, Kind::Path { changed: false });
        let nodes: Vec<_> = collector.flows()[&seen[0].flow]
            .hops()
            .iter()
            .map(|hop| hop.node)
            .collect();
        assert_eq!(nodes, [Some(77), Some(NODE)]);
    }

    // A packet without a route.
    let lost = Frame {
        ttl: 9,
        ..Frame::udp(b"to nowhere")
    };
    let mut lost = lost.bytes();
    lost[30..34].copy_from_slice(&[10, 99, 0, 1]);
    refresh(&mut lost);
    switch.send(1, &lost);
    let (ingress, reason, report) = switch.packet_in();
    assert_eq!((ingress, reason), (1, 7));
    let datagram = Datagram::decode(&report[BEFORE_REPORT..]).unwrap();
    let report = &datagram.reports[0];
    assert!(report.dropped && !report.tracked);
    assert_eq!(report.own.as_ref().unwrap().metadata.drop, Some((0, 5)));
    let Inner::Ipv4(shown) = &report.inner else {
        panic!("{:?}", report.inner);
    };
    assert_eq!(shown[..], lost[14..14 + shown.len()], "as it came in");
}

fn refresh(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let checksum = !crate::frames::sum(&frame[14..34], 0);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

/// With the DSCP telling of INT.
pub(crate) fn measures_packets_by_dscp(switch: &mut Switch) {
    measure(switch, Indicator::Dscp(DSCP));
}

/// With the UDP port telling of INT.
pub(crate) fn measures_packets_by_udp_port(switch: &mut Switch) {
    measure(switch, Indicator::Port(PORT));
}

//! A packet's way, step by step.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::{Arc, Mutex};

use softswitch::trace::{Event, Trace};

/// Events by their names in JSON, with the number of times in a row.
fn kinds(trace: &Trace) -> Vec<String> {
    let json = trace.to_json();
    let kinds = json.split(r#"{"event":""#).skip(1);
    kinds
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

fn is_table(event: &Event, name: &str, expected: Option<bool>) -> bool {
    match event {
        Event::Table { table, hit, .. } => {
            table.ends_with(name) && expected.is_none_or(|e| e == *hit)
        }
        _ => false,
    }
}

#[test]
fn a_routed_packet_is_followed_to_its_port() {
    let mut switch = support::router();
    let packet = support::rocev2(0x0a00_0301, 4001, 7, 100);
    let (trace, sent) = switch.trace(support::ENTRANCE, &packet, 5_000).unwrap();
    let [out] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    let events = &trace.events;
    let at = |what: &dyn Fn(&Event) -> bool| {
        events
            .iter()
            .position(what)
            .unwrap_or_else(|| panic!("{trace}"))
    };
    let order = [
        at(&|e| matches!(e, Event::Received { port, .. } if *port == support::ENTRANCE)),
        at(&|e| matches!(e, Event::Stage { name: "parser" })),
        at(&|e| matches!(e, Event::Extract { header, .. } if header.contains("ethernet"))),
        at(&|e| matches!(e, Event::Stage { name: "ingress" })),
        at(&|e| is_table(e, "port_config", Some(true))),
        at(&|e| is_table(e, "route_v4", Some(true))),
        at(&|e| is_table(e, "nexthop", Some(true))),
        at(&|e| matches!(e, Event::Enqueue { port, .. } if *port == out.port)),
        at(&|e| matches!(e, Event::Dequeue { port, .. } if *port == out.port)),
        at(&|e| matches!(e, Event::Stage { name: "egress" })),
        at(&|e| matches!(e, Event::Sent { port, .. } if *port == out.port)),
    ];
    assert!(order.is_sorted(), "{order:?}\n{trace}");
    // The destination's address is rewritten to that of the next hop.
    assert!(
        events
            .iter()
            .any(|e| matches!(e, Event::Set { field, old, new }
            if field.contains("ethernet.dst") && old != new)),
        "{trace}"
    );
}

#[test]
fn a_miss_and_a_drop_say_why() {
    let mut switch = support::router();
    // No port configuration for this port.
    let (trace, sent) = switch
        .trace(77, &support::rocev2(0x0a00_0301, 4000, 7, 100), 0)
        .unwrap();
    assert!(sent.is_empty());
    assert!(
        trace
            .events
            .iter()
            .any(|e| is_table(e, "port_config", Some(false)))
    );
    let Some(Event::Drop { reason }) = trace.events.last() else {
        panic!("{trace}")
    };
    assert!(reason.contains("drop port"), "{reason}");
    let (trace, _) = switch.trace(support::ENTRANCE, &[1, 2, 3], 0).unwrap();
    let error = Event::ParserError {
        error: "PacketTooShort".to_owned(),
    };
    assert!(trace.events.contains(&error), "{trace}");
}

#[test]
fn tracing_changes_nothing() {
    let (mut plain, mut traced) = (support::router(), support::router());
    let parts: Arc<Mutex<Vec<Trace>>> = Arc::default();
    let sink = parts.clone();
    traced.set_trace_sink(Some(Box::new(move |trace| {
        sink.lock().unwrap().push(trace)
    })));
    for i in 0..200u16 {
        let packet = support::rocev2(0x0a00_0001 | u32::from(i % 64) << 8, i, 7, 100);
        let now = u64::from(i) * 10_000;
        plain.ingress(support::ENTRANCE, &packet, now);
        traced.ingress(support::ENTRANCE, &packet, now);
        for port in 1..=support::PORTS {
            assert_eq!(plain.dequeue(port, now), traced.dequeue(port, now));
        }
    }
    assert_eq!(plain.stats(), traced.stats());
    let parts = parts.lock().unwrap();
    assert_eq!(parts.len(), 400, "a part into a queue and one out of it");
    assert_eq!(
        (parts[0].packet, parts[1].packet, parts[399].packet),
        (1, 1, 200)
    );
    assert_eq!(kinds(&parts[0])[0], "received");
    assert_eq!(kinds(&parts[1]).last().unwrap(), "sent");
}

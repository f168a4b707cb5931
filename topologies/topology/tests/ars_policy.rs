//! `policy.ars`: what it means, what is wrong with it and where, and that it survives being written out.
#![allow(clippy::unwrap_used)]

use topology::{ArsMode, ArsPolicy, Policy, Topology};

fn with(ars: &str) -> String {
    format!(
        "name: adaptive\nclos: {{segments: 2, hosts: 2, rails: 1, spines: 2}}\npolicy:\n  ars: {ars}\n"
    )
}

fn parsed(ars: &str) -> Option<ArsPolicy> {
    Topology::parse("f.yaml", &with(ars)).unwrap().policy().ars
}

#[test]
fn what_is_left_out_has_defaults() {
    assert_eq!(Policy::default().ars, None);
    assert_eq!(parsed("none"), None);
    assert_eq!(parsed("{}"), Some(ArsPolicy::default()));
    let ars = parsed("{mode: flowlet-quality}").unwrap();
    assert_eq!((ars.mode, ars.idle_ns), (ArsMode::FlowletQuality, 50_000));
    assert_eq!((ars.hello_ns, ars.probe_ns), (Some(100_000), Some(50_000)));
}

#[test]
fn everything_can_be_said_and_is_written_out_again() {
    let text = with(
        "{mode: per-packet-quality, idle: 30us, hello: 200ms, probe: none, gray_is_dead: true}",
    );
    let topology = Topology::parse("f.yaml", &text).unwrap();
    let expected = ArsPolicy {
        mode: ArsMode::PerPacketQuality,
        idle_ns: 30_000,
        hello_ns: Some(200_000_000),
        probe_ns: None,
        gray_is_dead: true,
    };
    assert_eq!(topology.policy().ars, Some(expected));
    let again = Topology::parse("again.yaml", &topology.to_yaml()).unwrap();
    assert_eq!(again.policy(), topology.policy());
}

#[test]
fn mistakes_are_found_where_they_are() {
    for (ars, message, help) in [
        ("{mode: flowlet}", "unknown mode", "flowlet-random"),
        ("{idle: 500ns}", "`idle` is 500 ns", "1us to 1s"),
        (
            "{hello: 1500ns}",
            "`hello` is 1500 ns",
            "whole microseconds",
        ),
        ("{probe: fast}", "delay", "a number and a unit"),
        (
            "{hello: none, gray_is_dead: true}",
            "`gray_is_dead` without hellos",
            "hellos tell of packets",
        ),
        ("{hallo: 1ms}", "no field `hallo`", "hello"),
    ] {
        let report = Topology::parse("f.yaml", &with(ars)).unwrap_err();
        let problem = &report.problems()[0];
        assert_eq!(problem.line, 4, "{ars}");
        assert!(problem.message.contains(message), "{ars}: {problem:?}");
        assert!(problem.help.contains(help), "{ars}: {problem:?}");
    }
}

//! `policy.int`: what it means, what is wrong with it and where, and that it survives being written out.
#![allow(clippy::unwrap_used)]

use topology::{IntIndicator, IntPolicy, Policy, Topology};

const CLOS: &str = "\
name: measured
clos: {segments: 2, hosts: 2, rails: 1, spines: 2}
policy:
  int:
";

fn with(int: &str) -> String {
    let lines = int.lines().map(|line| format!("    {line}\n"));
    CLOS.to_owned() + &lines.collect::<String>()
}

fn parsed(int: &str) -> IntPolicy {
    let topology = Topology::parse("f.yaml", &with(int)).unwrap();
    topology.policy().int.clone().unwrap()
}

#[test]
fn what_is_left_out_has_defaults() {
    assert_eq!(Policy::default().int, None);
    let int = parsed("watch: [{protocol: roce, one_in: 64}]");
    assert_eq!(int.indicator, IntIndicator::Dscp(0x17));
    assert_eq!(
        (int.instructions, int.max_hops, int.collector),
        (0xf000, 8, None)
    );
    assert!(int.reports.paths && !int.reports.drops && !int.reports.marks);
    let watch = &int.watch[0];
    assert_eq!(
        (watch.protocol, watch.dst_port, watch.one_in),
        (Some(17), Some(4791), 64)
    );
    assert_eq!((watch.src, watch.dst, watch.dest_qp), (None, None, None));
    let off = with("").replace("int:", "int: none");
    assert_eq!(Topology::parse("f.yaml", &off).unwrap().policy().int, None);
}

#[test]
fn everything_can_be_said_and_is_written_out_again() {
    let text = with(
        "\
udp_port: 16962
domain: 48879
instructions: [node, egress_time, checksum_complement]
max_hops: 5
collector: 10.0.0.2:9999
watch:
  - {src: 10.0.0.0/24, dst: 10.0.1.2/32, protocol: tcp, src_port: 5, dst_port: 6}
  - {qp: 17, one_in: 9}
  - {src: 'fd00::/8'}
reports: {paths: false, drops: true, marks: true, queue: 2MB, rate: 7}",
    );
    let topology = Topology::parse("f.yaml", &text).unwrap();
    let int = topology.policy().int.as_ref().unwrap();
    assert_eq!(int.indicator, IntIndicator::UdpPort(16_962));
    assert_eq!(
        (int.domain, int.instructions, int.max_hops),
        (0xbeef, 0x8401, 5)
    );
    assert_eq!(int.collector.unwrap().to_string(), "10.0.0.2:9999");
    assert_eq!(int.watch.len(), 3);
    assert_eq!(int.watch[1].dest_qp, Some(17));
    assert_eq!((int.reports.queue, int.reports.rate), (Some(2_000_000), 7));
    let again = Topology::parse("again.yaml", &topology.to_yaml()).unwrap();
    assert_eq!(again.policy(), topology.policy());
}

#[test]
fn mistakes_are_found_where_they_are() {
    let cases = [
        ("dscp: 64", 5, "`dscp` is 64", "0 to 63"),
        (
            "dscp: 26",
            5,
            "DSCP 26 already means a traffic class",
            "of its own",
        ),
        (
            "dscp: 23\nudp_port: 5",
            6,
            "both `dscp` and `udp_port`",
            "one of the two",
        ),
        (
            "udp_port: 4791",
            5,
            "4791 is RoCEv2's port",
            "no host sends to",
        ),
        ("instructions: [nod]", 5, "unknown INT instruction", "node"),
        (
            "max_hops: 17",
            5,
            "68 words of metadata",
            "lower `max_hops` to 16",
        ),
        ("collector: here", 5, "collector", "10.0.0.9:32766"),
        ("watch: [{src: 10.0.0/8}]", 5, "prefix", "10.0.0.0/16"),
        ("watch: [{protocol: icmp}]", 5, "unknown protocol", "tcp"),
        ("watch: [{one_in: 0}]", 5, "`one_in` is 0", "1 to"),
        (
            "watch: [{qp: 16777216}]",
            5,
            "`qp` is 16777216",
            "0 to 16777215",
        ),
        (
            "watch: [{src: 10.0.0.0/8, dst: 'fd00::/8'}]",
            5,
            "different IP versions",
            "one IP",
        ),
        ("reports: {rate: 0}", 5, "`rate` is 0", "1 to"),
        ("reports: {path: true}", 5, "no field `path`", "paths"),
        ("hops: 8", 5, "no field `hops`", "max_hops"),
    ];
    for (int, line, message, help) in cases {
        let report = Topology::parse("f.yaml", &with(int)).unwrap_err();
        let problems = report.problems();
        assert_eq!(problems.len(), 1, "{int}: {problems:?}");
        let problem = &problems[0];
        assert_eq!(problem.line, line, "{int}: {problem:?}");
        assert!(problem.message.contains(message), "{int}: {problem:?}");
        assert!(problem.help.contains(help), "{int}: {problem:?}");
    }
}

//! One test per kind of error: its code, line, column, and what it tells the reader to do.
#![allow(clippy::unwrap_used)]

use topology::{MAX_PROBLEMS, Problem, Topology};

/// Two leaves, two spines, two hosts; cases below replace parts of it. Line numbers matter.
const GOOD: &str = "\
name: small
defaults: {speed: 400G, delay: 500ns}
segments: [s1, s2]
switches:
  - {name: leaf1, tier: leaf}
  - {name: leaf2, tier: leaf}
  - {name: spine1, tier: spine, ports: {1-4: 400G}}
  - {name: spine2, tier: spine}
hosts:
  - {name: h1, segment: s1, nics: 1}
  - {name: h2, segment: s2, nics: 1, nic_speed: 400G}
la:
  - {name: la1, leaves: [leaf1], v4: 10.1.0.0/24}
  - {name: la2, leaves: [leaf2], v4: 10.2.0.0/24}
links:
  - [h1:0, leaf1:1]
  - [h2:0, leaf2:1]
  - [leaf1:2, spine1:1]
  - [leaf1:3, spine2:1]
  - [leaf2:2, spine1:2]
  - {ends: [leaf2:3, spine2:2], speed: 400G}
";

fn problems(text: &str) -> Vec<Problem> {
    match Topology::parse("f.yaml", text) {
        Ok(_) => Vec::new(),
        Err(report) => {
            assert!(!report.render(true).is_empty() && !report.render(false).is_empty());
            report.problems().to_vec()
        }
    }
}

/// The good file with one replacement has exactly one problem, of this kind, where `|` stands in
/// the part of the line that is given.
fn wrong(
    replace: (&str, &str),
    code: &str,
    (line, place): (usize, &str),
    message: &str,
    help: &str,
) {
    assert_eq!(
        GOOD.matches(replace.0).count(),
        1,
        "{:?} is not there once",
        replace.0
    );
    only(
        &GOOD.replace(replace.0, replace.1),
        code,
        (line, place),
        message,
        help,
    );
}

fn only(text: &str, code: &str, (line, place): (usize, &str), message: &str, help: &str) {
    let found = problems(text);
    let shown: Vec<String> = found
        .iter()
        .map(|p| format!("{}:{} {} {p} ({})", p.line, p.column, p.code, p.help))
        .collect();
    assert_eq!(found.len(), 1, "in\n{text}\n{shown:#?}");
    let problem = &found[0];
    assert_eq!(problem.code, code, "{shown:?}");
    assert_eq!(
        (problem.line, problem.column),
        (line, column(text, line, place)),
        "{shown:?}"
    );
    assert!(
        problem.message.contains(message),
        "{shown:?} lacks {message:?}"
    );
    assert!(problem.help.contains(help), "{shown:?} lacks {help:?}");
}

/// The column of the `|` of `place` in a line.
fn column(text: &str, line: usize, place: &str) -> usize {
    let line = text.lines().nth(line - 1).unwrap_or("");
    let (before, after) = place.split_once('|').unwrap();
    let found: Vec<_> = line.match_indices(&format!("{before}{after}")).collect();
    let [(start, _)] = found[..] else {
        panic!("{place:?} is not once in {line:?}")
    };
    line[..start].chars().count() + before.chars().count() + 1
}

#[test]
fn the_good_file_is_good() {
    assert!(problems(GOOD).is_empty(), "{:?}", problems(GOOD));
}

#[test]
fn yaml_syntax() {
    wrong(
        ("[s1, s2]", "[s1, s2"),
        "syntax",
        (4, "switches|:"),
        "not YAML",
        "brackets",
    );
    only(
        "name: x\n\tclos: {}\n",
        "syntax",
        (2, "|\tclos"),
        "not YAML",
        "no tabs",
    );
    only(
        "name: x\n---\nname: y\n",
        "syntax",
        (2, "|---"),
        "second document",
        "one topology per file",
    );
    only(
        "a: &a [*a]\n",
        "syntax",
        (1, "[|*a"),
        "alias",
        "complete before",
    );
}

#[test]
fn empty_and_not_text() {
    only("", "empty", (1, "|"), "empty", "`clos:`");
    only(
        "# nothing\n",
        "empty",
        (1, "|# nothing"),
        "empty",
        "`switches:`",
    );
    let report = Topology::parse_bytes("f.yaml", b"name: x\nvrf: \xff1\n").unwrap_err();
    let problem = &report.problems()[0];
    assert_eq!(
        (problem.code, problem.line, problem.column),
        ("not-utf8", 2, 6)
    );
    assert!(problem.message.contains("0xff") && problem.help.contains("UTF-8"));
    only(
        "name: x\n",
        "nothing",
        (1, "|x"),
        "without switches",
        "`clos:`",
    );
}

#[test]
fn unknown_missing_and_repeated_fields() {
    wrong(
        ("leaf1, tier: leaf}", "leaf1, teir: leaf, tier: leaf}"),
        "unknown-field",
        (5, "|teir"),
        "no field `teir`",
        "did you mean `tier`?",
    );
    wrong(
        ("segments: [s1, s2]", "colour: red\nsegments: [s1, s2]"),
        "unknown-field",
        (3, "|colour"),
        "no field `colour`",
        "are name, vrf",
    );
    wrong(
        ("name: small", "vrf: 1"),
        "missing-field",
        (1, "|vrf"),
        "no `name`",
        "add `name: ...`",
    );
    wrong(
        ("{name: spine2, tier: spine}", "{name: spine2}"),
        "missing-field",
        (8, "|name"),
        "no `tier`",
        "add `tier",
    );
    wrong(
        ("name: small", "name: small\nname: large"),
        "duplicate-field",
        (2, "|name"),
        "twice",
        "keep one",
    );
    wrong(
        ("{name: h1, segment: s1, nics: 1}", "{name: h1, nics: 1}"),
        "missing-field",
        (10, "|h1"),
        "which segment",
        "segment: NAME",
    );
    let slow = "name: x\nswitches: [{name: leaf1, tier: leaf}]\nhosts: [{name: h1, nics: 1}]\nlinks:\n  - [h1:0, leaf1:1]\n";
    only(
        slow,
        "missing-field",
        (5, "|h1:0"),
        "the speed of the link `h1:0 - leaf1:1` is not known",
        "defaults: {speed: 400G}",
    );
}

#[test]
fn types_and_units() {
    wrong(
        ("segment: s1, nics: 1", "segment: s1, nics: one"),
        "wrong-type",
        (10, "|one"),
        "whole number, found `one`",
        "digits",
    );
    wrong(
        ("speed: 400G, delay", "speed: 400, delay"),
        "bad-value",
        (2, "|400,"),
        "no unit",
        "`400G`",
    );
    wrong(
        ("spine2:2], speed: 400G", "spine2:2], speed: 400Gx"),
        "bad-value",
        (21, "|400Gx"),
        "`Gx` is no unit",
        "400G",
    );
    wrong(
        ("500ns", "500"),
        "bad-value",
        (2, "|500}"),
        "no unit",
        "500ns",
    );
    wrong(
        ("500ns", "2s"),
        "bad-value",
        (2, "|2s"),
        "delay",
        "up to 1s",
    );
    wrong(
        ("spine2:2], speed: 400G", "spine2:2], speed: 0G"),
        "bad-value",
        (21, "|0G"),
        "zero",
        "leave out",
    );
    wrong(
        ("links:", "vrf: 70000\nlinks:"),
        "out-of-range",
        (15, "|70000"),
        "out of range",
        "65535",
    );
    wrong(
        ("segments: [s1, s2]", "segments: 5"),
        "wrong-type",
        (3, "|5"),
        "expected a list",
        "- ",
    );
    wrong(
        ("[h1:0, leaf1:1]", "[h1:0]"),
        "wrong-type",
        (16, "|[h1"),
        "two ends, found 1",
        "[h1:0, leaf1:1]",
    );
    wrong(
        ("[h1:0, leaf1:1]", "[h1:0, leaf1]"),
        "wrong-type",
        (16, "|leaf1"),
        "one end",
        "switch:port",
    );
    wrong(
        ("v4: 10.1.0.0/24", "v4: 10.1.0.0/33"),
        "wrong-type",
        (13, "|10.1.0.0/33"),
        "IPv4 prefix",
        "10.0.1.0/24",
    );
    wrong(
        ("v4: 10.1.0.0/24", "v4: 10.1.0.1/24"),
        "bad-value",
        (13, "|10.1.0.1/24"),
        "beyond the prefix",
        "`10.1.0.0/24`",
    );
    for (prefix, block) in [
        ("224.0.0.0/24", "224.0.0.0/4, which is multicast"),
        ("127.1.0.0/16", "127.0.0.0/8, which is loopback"),
        ("0.0.0.0/0", "0.0.0.0/8"),
    ] {
        wrong(
            ("v4: 10.1.0.0/24", &format!("v4: {prefix}")),
            "bad-value",
            (13, &format!("|{prefix}")),
            block,
            "unicast",
        );
    }
    wrong(
        ("v4: 10.1.0.0/24", "v6: 'ff02::/16'"),
        "bad-value",
        (13, "|'ff02::/16'"),
        "multicast",
        "unicast",
    );
    wrong(
        ("leaf1, tier: leaf", "leaf1, mac: 02:00, tier: leaf"),
        "wrong-type",
        (5, "|02:00"),
        "MAC",
        "02:00:00:00:00:01",
    );
    wrong(
        ("name: small", "name: 'a b'"),
        "bad-name",
        (1, "|'a b'"),
        "no usable name",
        "letters, digits",
    );
    wrong(
        ("ports: {1-4: 400G}", "ports: {1-x: 400G}"),
        "wrong-type",
        (7, "|1-x"),
        "port numbers",
        "1-8",
    );
    only(
        "- a\n",
        "wrong-type",
        (1, "|- a"),
        "should be a mapping",
        "name",
    );
}

#[test]
fn names() {
    wrong(
        ("[leaf2:2, spine1:2]", "[leaf2:2, spin1:2]"),
        "unknown-node",
        (20, "|spin1"),
        "called `spin1`",
        "did you mean `spine1`?",
    );
    wrong(
        ("[h1:0, leaf1:1]", "[host-one:0, leaf1:1]"),
        "unknown-node",
        (16, "|host-one"),
        "called `host-one`",
        "there are h1, h2, leaf1",
    );
    wrong(
        ("[h1:0, leaf1:1]", "[h1:1, leaf1:1]"),
        "unknown-node",
        (16, "|h1:1"),
        "no rail 1",
        "rails are 0",
    );
    wrong(
        ("leaves: [leaf2]", "leaves: [leaf3]"),
        "unknown-node",
        (14, "|leaf3"),
        "called `leaf3`",
        "did you mean `leaf",
    );
    wrong(
        ("leaf2, tier: leaf", "leaf2, tier: lead"),
        "unknown-value",
        (6, "|lead"),
        "unknown tier `lead`",
        "did you mean `leaf`?; use one of leaf, spine, core",
    );
    wrong(
        ("segment: s2", "segment: s3"),
        "unknown-place",
        (11, "|s3"),
        "no segment is called `s3`",
        "did you mean",
    );
    wrong(
        ("nics: 1}", "nics: 1}\n  - {name: h1, nics: 2}"),
        "duplicate-name",
        (11, "|h1"),
        "`h1` is used twice",
        "rename",
    );
    wrong(
        ("name: la2", "name: la1"),
        "duplicate-name",
        (14, "|la1"),
        "`la1` is used twice",
        "rename",
    );
    wrong(
        (
            "leaf1, tier: leaf}",
            "leaf1, tier: leaf}\n  - {name: leaf1, tier: spine}",
        ),
        "duplicate-name",
        (6, "|leaf1"),
        "`leaf1` is used twice",
        "rename",
    );
    wrong(
        ("[s1, s2]", "[s1, s2, s1]"),
        "duplicate-name",
        (3, "s2, |s1"),
        "`s1` is used twice",
        "rename",
    );
    wrong(
        (
            "{name: spine2, tier: spine}",
            "{name: spine2, tier: spine, device_id: 2}",
        ),
        "duplicate-device-id",
        (8, "device_id: |2"),
        "device id 2",
        "position",
    );
    wrong(
        (
            "{name: spine2, tier: spine}",
            "{name: spine2, tier: spine, device_id: 0}",
        ),
        "out-of-range",
        (8, "device_id: |0"),
        "device id 0",
        "from 1 to",
    );
}

#[test]
fn links() {
    wrong(
        ("[leaf2:2, spine1:2]", "[leaf2:2, spine1:1]"),
        "port-used-twice",
        (20, "|spine1:1"),
        "`spine1:1` is used twice",
        "free port",
    );
    wrong(
        ("[h2:0, leaf2:1]", "[h1:0, leaf2:1]"),
        "port-used-twice",
        (17, "|h1:0"),
        "`h1:0` is used twice",
        "free port",
    );
    wrong(
        ("[leaf2:2, spine1:2]", "[leaf2:2, spine1:5]"),
        "port-out-of-range",
        (20, "|spine1:5"),
        "`spine1` has no port 5",
        "its ports are 1-4",
    );
    wrong(
        ("[leaf1:3, spine2:1]", "[leaf1:510, spine2:1]"),
        "port-out-of-range",
        (19, "|leaf1:510"),
        "no port 510",
        "from 1 to 509",
    );
    wrong(
        ("[leaf1:3, spine2:1]", "[leaf1:0, spine2:1]"),
        "port-out-of-range",
        (19, "|leaf1:0"),
        "no port 0",
        "from 1 to 509",
    );
    wrong(
        ("[leaf1:3, spine2:1]", "[leaf1:3000000, spine2:1]"),
        "port-out-of-range",
        (19, "|leaf1:3000000"),
        "no port 3000000",
        "from 1 to 509",
    );
    wrong(
        ("ports: {1-4: 400G}", "ports: {1-510: 400G}"),
        "port-out-of-range",
        (7, "|1-510"),
        "no port 510",
        "from 1 to 509",
    );
    wrong(
        ("[h1:0, leaf1:1]", "[h1:0.1, leaf1:1]"),
        "port-out-of-range",
        (16, "|h1:0.1"),
        "NIC `h1:0` has no port 1",
        "nic_ports: 2",
    );
    wrong(
        (
            "[leaf2:2, spine1:2]",
            "{ends: [leaf2:2, spine1:2], speed: 100G}",
        ),
        "speed-mismatch",
        (20, "|100G"),
        "`spine1:2` is 400G, the link is 100G",
        "one speed",
    );
    wrong(
        ("[h2:0, leaf2:1]", "{ends: [h2:0, leaf2:1], speed: 200G}"),
        "speed-mismatch",
        (17, "|200G"),
        "`h2:0` is 400G, the link is 200G",
        "one speed",
    );
    wrong(
        (
            "leaf2, tier: leaf",
            "leaf2, tier: leaf, ports: {1: 200G, 2-9: 400G}",
        ),
        "speed-mismatch",
        (17, "|[h2"),
        "`h2:0` is 400G, `leaf2:1` is 200G",
        "one speed",
    );
    wrong(
        ("[leaf1:3, spine2:1]", "[leaf1:3, leaf1:4]"),
        "self-link",
        (19, "|leaf1:4"),
        "`leaf1` to itself",
        "different nodes",
    );
    wrong(
        ("[leaf1:3, spine2:1]", "[leaf1:3, leaf2:9]"),
        "not-neighbours",
        (19, "|leaf1:3"),
        "leaf `leaf1` and leaf `leaf2`",
        "neighbouring tiers",
    );
    wrong(
        ("[h1:0, leaf1:1]", "[h1:0, spine1:4]"),
        "not-neighbours",
        (16, "|h1:0"),
        "host `h1` and spine `spine1`",
        "host and leaf",
    );
}

#[test]
fn hosts() {
    wrong(
        ("segment: s1, nics: 1", "segment: s1, nics: 0"),
        "no-nic",
        (10, "nics: |0"),
        "`h1` has no NIC",
        "nics: 1",
    );
    wrong(
        (
            "{name: h1, segment: s1, nics: 1}",
            "{name: h1, segment: s1}",
        ),
        "no-nic",
        (10, "|h1"),
        "`h1` has no NIC",
        "nics: 1",
    );
    wrong(
        ("segment: s1, nics: 1", "segment: s1, nics: 2"),
        "unreachable-host",
        (10, "|h1"),
        "`h1` is unreachable on rail 1",
        "[h1:1, LEAF:PORT]",
    );
    wrong(
        ("segment: s1, nics: 1", "segment: s1, nics: 1000"),
        "too-many",
        (10, "|1000"),
        "1000 NICs",
        "at most 64",
    );
    wrong(
        ("nics: 1}", "nics: [{rail: 0}, {rail: 0}]}"),
        "duplicate-rail",
        (10, "|[{rail"),
        "rail 0",
        "own",
    );
    let cut = GOOD
        .replace("  - [leaf2:2, spine1:2]\n", "")
        .replace("  - {ends: [leaf2:3, spine2:2], speed: 400G}\n", "");
    only(
        &cut,
        "unreachable-host",
        (11, "|h2"),
        "`h2` is unreachable",
        "spines",
    );
}

#[test]
fn addresses() {
    wrong(
        ("10.2.0.0/24", "10.1.0.128/25"),
        "overlapping-prefix",
        (14, "|10.1.0.128"),
        "10.1.0.0/24 of `la1` overlaps 10.1.0.128/25",
        "of its own",
    );
    wrong(
        ("10.2.0.0/24", "10.2.0.0/31"),
        "prefix-too-small",
        (14, "|10.2.0.0/31"),
        "10.2.0.0/31",
        "shorter",
    );
    let address = |v4: &str| format!("nics: [{{rail: 0, v4: {v4}}}]}}");
    let h1 = "nics: 1}";
    wrong(
        (h1, &address("10.1.0.1")),
        "address-outside-prefix",
        (10, "|10.1.0.1"),
        "10.1.0.1 of `h1:0`",
        "gateway",
    );
    wrong(
        (h1, &address("10.9.0.1")),
        "address-outside-prefix",
        (10, "|10.9.0.1"),
        "10.9.0.1 of `h1:0` is not a host address in 10.1.0.0/24",
        "address of the prefix",
    );
    let twice = GOOD
        .replace(
            "{name: spine1, tier: spine,",
            "{name: spine1, tier: spine, loopback_v4: 172.16.0.9,",
        )
        .replace(
            "{name: spine2, tier: spine",
            "{name: spine2, tier: spine, loopback_v4: 172.16.0.9",
        );
    only(
        &twice,
        "duplicate-address",
        (8, "|172.16.0.9"),
        "172.16.0.9 is used twice, by `spine1` and `spine2`",
        "change one",
    );
    let twice = twice.replace("loopback_v4: 172.16.0.9", "mac: '02:00:00:00:00:77'");
    only(
        &twice,
        "duplicate-mac",
        (8, "|'02:00"),
        "02:00:00:00:00:77 is used twice",
        "change one",
    );
    wrong(
        (
            "leaf1, tier: leaf",
            "leaf1, mac: '03:00:00:00:00:01', tier: leaf",
        ),
        "bad-value",
        (5, "|'03"),
        "no station",
        "even",
    );
}

#[test]
fn la_domains() {
    wrong(
        ("leaves: [leaf2]", "leaves: [spine1]"),
        "not-leaf-access",
        (14, "|la2"),
        "`spine1` is a spine",
        "one leaf, or two",
    );
    wrong(
        ("leaves: [leaf2]", "leaves: []"),
        "not-leaf-access",
        (14, "|la2"),
        "0 leaves",
        "one leaf, or two",
    );
    let both = GOOD.replace("  - {name: la2, leaves: [leaf2], v4: 10.2.0.0/24}\n", "");
    let both = both.replace("leaves: [leaf1]", "leaves: [leaf1, leaf2]");
    only(
        &both,
        "not-leaf-access",
        (13, "|la1"),
        "no NIC is attached to both `leaf1`, `leaf2`",
        "dual-homed",
    );
    let tied = GOOD
        .replace("segment: s1, nics: 1", "segment: s1, nics: 1, nic_ports: 2")
        .replace(
            "  - [h2:0, leaf2:1]",
            "  - [h2:0, leaf2:1]\n  - [h1:0.1, leaf2:4]",
        );
    let found = problems(&tied);
    assert_eq!(found.len(), 2);
    assert!(
        found[0]
            .message
            .contains("dual-homed NICs tie `leaf1` to `leaf2`"),
        "{}",
        found[0]
    );
    let la2 = "  - {name: la2, leaves: [leaf2], v4: 10.2.0.0/24}";
    wrong(
        (
            la2,
            "  - {name: la2, leaves: [leaf2]}\n  - {name: la3, leaves: [leaf2]}",
        ),
        "not-leaf-access",
        (15, "|la3"),
        "`leaf2` is in two LA domains",
        "one domain only",
    );
    let chain = "name: chain\nclos: {segments: 1, hosts: 1, rails: 3, spines: 1, dual_tor: true}\noverrides:\n  - {between: [h1:0.1, leaf-s1r0b:1], remove: true}\nlinks:\n  - {ends: [h1:1.1, leaf-s1r0b:9], speed: 400G}\n";
    assert_eq!(problems(chain)[0].code, "port-used-twice");
}

#[test]
fn clos_numbers() {
    let clos =
        |fields: &str| format!("name: c\nclos: {{segments: 2, hosts: 4, rails: 4, {fields}}}\n");
    only(
        "name: c\nclos: {segments: 2, hosts: 4}\n",
        "missing-field",
        (2, "|segments"),
        "no `rails`",
        "add `rails",
    );
    only(
        &clos("spines: 4, planes: 2"),
        "clos",
        (2, "planes: |2"),
        "two ports",
        "dual_tor: true",
    );
    only(
        &clos("leaves: 5"),
        "clos",
        (2, "|5"),
        "5 leaves for 4 hosts",
        "every leaf has a host",
    );
    only(
        &clos("scale_up: 6"),
        "clos",
        (2, "|6"),
        "no whole number of hosts",
        "multiple of the 4",
    );
    only(
        &clos("pods: 4, cores: 0"),
        "clos",
        (2, "cores: |0"),
        "joined through cores",
        "cores: 1",
    );
    only(
        &clos("spines: 0"),
        "clos",
        (2, "|0"),
        "nothing joins",
        "spines: 1",
    );
    only(
        &clos("spines: 1, spine_links: 1, oversubscription: {leaf: '3:1'}"),
        "clos",
        (2, "|'3:1"),
        "4.000:1",
        "derived",
    );
    only(
        &clos("oversubscription: {leaf: 1:3}"),
        "wrong-type",
        (2, "|1:3"),
        "a ratio",
        "7:1",
    );
    only(
        &clos("spines: 10001"),
        "clos",
        (2, "|10001"),
        "out of range",
        "10000",
    );
    only(
        &clos("spines: 600"),
        "clos",
        (2, "|{segments"),
        "a leaf would need 604 ports",
        "fewer or faster uplinks",
    );
}

#[test]
fn absurd_sizes_are_errors() {
    only(
        "name: c\nclos: {segments: 2, hosts: 1000000000000, rails: 4}\n",
        "out-of-range",
        (2, "|1000000000000"),
        "1000000000000 is out of range",
        "4294967295",
    );
    only(
        "name: c\nclos: {segments: 100000, hosts: 250000, rails: 4}\n",
        "clos",
        (2, "|250000"),
        "25000000000 hosts in all",
        "at most 250000",
    );
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    only(bomb, "syntax", (6, "|&f"), "repeat too much", "clos");
    for open in ["[", "{a: ", "- ", "? "] {
        let found = problems(&open.repeat(100_000));
        assert_eq!(found.len(), 1, "{open}");
        assert_eq!(found[0].code, "syntax", "{open}");
    }
}

#[test]
fn all_problems_at_once_in_file_order() {
    let text = GOOD
        .replace("nics: 1}", "nics: 0}")
        .replace("leaf2, tier: leaf", "leaf2, tier: lead")
        .replace("[leaf1:3, spine2:1]", "[leaf1:3, spine9:1]")
        .replace("500ns", "500");
    let found = problems(&text);
    let codes: Vec<&str> = found.iter().map(|problem| problem.code).collect();
    assert_eq!(
        codes,
        ["bad-value", "unknown-value", "no-nic", "unknown-node"]
    );
}

#[test]
fn the_list_is_bounded() {
    let mut text = GOOD.to_owned();
    for _ in 0..1000 {
        text += "  - [nobody:0, leaf1:9]\n";
    }
    let report = Topology::parse("f.yaml", &text).unwrap_err();
    assert_eq!(
        (report.problems().len(), report.dropped()),
        (MAX_PROBLEMS, 1000 - MAX_PROBLEMS)
    );
    assert!(report.to_string().ends_with("and 950 more"));
}

#[test]
fn rendered_with_line_and_help() {
    let text = GOOD.replace("[leaf2:2, spine1:2]", "[leaf2:2, spine1:1]");
    let report = Topology::parse("f.yaml", &text).unwrap_err();
    let shown = report.render(false);
    for part in [
        "f.yaml:20:15",
        "[leaf2:2, spine1:1]",
        "first used here",
        "help: ",
        "free port",
        "port-used-twice",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    assert!(
        report
            .to_string()
            .starts_with("f.yaml:20:15: port `spine1:1` is used twice\n  help: ")
    );
}

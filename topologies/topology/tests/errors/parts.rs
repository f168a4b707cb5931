//! What is wrong with names, links and hosts.

use crate::{GOOD, only, wrong};

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

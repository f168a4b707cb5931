//! What is wrong with a value: its kind, its unit, its range.

use crate::{only, wrong};

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

//! What is wrong with addresses, prefixes and LA domains.

use crate::{GOOD, only, problems, wrong};

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

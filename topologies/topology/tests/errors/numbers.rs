//! Numbers that make no fabric.

use crate::{only, problems};

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

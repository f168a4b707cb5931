//! What is wrong with the text: syntax, fields, and the report as a whole.

use topology::{MAX_PROBLEMS, Topology};

use crate::{GOOD, only, problems, wrong};

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

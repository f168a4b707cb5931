//! Files and arguments, good and bad.

use std::io::Write as _;

use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _};

use super::{json, run, stderr, stdout};

fn file(text: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text).unwrap();
    file
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn every_ready_topology_is_sound() {
    let mut checked = 0;
    for entry in std::fs::read_dir(tests::root().join("topologies")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            let output = run(&["check", path.to_str().unwrap()]);
            assert!(output.status.success(), "{}", stderr(&output));
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked} topologies");
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn a_bad_topology_is_refused_with_file_line_and_column() {
    let bad = file(b"name: bad\nclos:\n  segments: 2\n  hots: 4\n");
    let path = bad.path().to_str().unwrap();
    let output = run(&["check", path]);
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(text.contains(path) && text.contains(":4:3"), "{text}");
    assert!(
        text.contains("hosts"),
        "suggests the field that was meant: {text}"
    );

    let output = run(&["check", path, "--format", "json"]);
    assert_eq!(output.status.code(), Some(3));
    let checked = json(&stdout(&output));
    let problems = checked["problems"].as_array().unwrap();
    let of_kind = |code| problems.iter().find(|p| p["code"].as_str() == Some(code));
    let problem = of_kind("unknown-field").unwrap();
    assert_eq!(problem["line"].as_u64(), Some(4));
    assert_eq!(problem["column"].as_u64(), Some(3));
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn input_that_is_no_topology_is_an_error_and_no_crash() {
    for text in [
        &b""[..],
        b"\xff\xfe\x00",
        b"[]",
        b"{{{{",
        b"name: x",
        b"name: [a",
    ] {
        let bad = file(text);
        let output = run(&["check", bad.path().to_str().unwrap()]);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{text:?}: {}",
            stderr(&output)
        );
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
    for argument in ["/nonexistent.yaml", "/"] {
        let output = run(&["check", argument]);
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(argument), "{}", stderr(&output));
    }
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn the_explicit_form_describes_the_same_fabric() {
    let compact = run(&[
        "topology",
        "show",
        "topologies/demo.yaml",
        "--format",
        "json",
    ]);
    let generated = run(&["topology", "generate", "topologies/demo.yaml"]);
    assert!(generated.status.success());
    let target = tempfile::tempdir().unwrap();
    let target = target.path().join("explicit.yaml");
    let target = target.to_str().unwrap();
    let source = "topologies/demo.yaml";
    let said = run(&[
        "topology", "generate", source, "-o", target, "--format", "json",
    ]);
    assert_eq!(
        json(&stdout(&said))["summary"]["switches"].as_u64(),
        Some(12)
    );
    assert_eq!(std::fs::read(target).unwrap(), generated.stdout);
    let explicit = file(&generated.stdout);
    let path = explicit.path().to_str().unwrap();
    let explicit = run(&["topology", "show", path, "--format", "json"]);
    assert_eq!(stdout(&compact), stdout(&explicit));
    assert_eq!(json(&stdout(&explicit))["switches"].as_u64(), Some(12));
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn a_real_fabric_is_imported_and_its_oddities_named() {
    let source = "topologies/topology/tests/data/rail-fabric.ibnetdiscover";
    let written = tempfile::tempdir().unwrap();
    let target = written.path().join("imported.yaml");
    let target = target.to_str().unwrap();
    let output = run(&[
        "topology", "import", source, "-o", target, "--format", "json",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let imported = json(&stdout(&output));
    assert_eq!(imported["summary"]["switches"].as_u64(), Some(31 + 9));
    let findings = imported["findings"].as_array().unwrap();
    let count = |kind| {
        findings
            .iter()
            .filter(|f| f["kind"].as_str() == Some(kind))
            .count()
    };
    assert!(count("missing-uplinks") > 0 && count("unnamed-adapter") > 0);
    assert!(findings.iter().all(|f| f["line"].as_u64().unwrap() > 0));
    assert!(run(&["check", target]).status.success());
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn every_command_has_help_with_an_example() {
    let commands: [&[&str]; 9] = [
        &[],
        &["demo"],
        &["check"],
        &["up"],
        &["status"],
        &["topology"],
        &["topology", "generate"],
        &["topology", "show"],
        &["topology", "import"],
    ];
    for command in commands {
        let output = run(&[command, &["--help"]].concat());
        assert!(output.status.success());
        assert!(stdout(&output).contains("Examples:"), "{command:?}");
    }
    assert_eq!(run(&["dmeo"]).status.code(), Some(2));
}

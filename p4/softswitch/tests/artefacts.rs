//! The compiled test programs are what their sources compile to, where p4c is
//! at hand.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;

/// Programs whose artefacts are compared, and whether they have a P4Info.
const PROGRAMS: [(&str, bool); 4] = [
    ("router", true),
    ("copies", false),
    ("lanes", false),
    ("lookups", false),
];

#[test]
fn compiled_programs_match_their_sources() {
    if Command::new("p4c-bm2-ss")
        .arg("--version")
        .output()
        .is_err()
    {
        return eprintln!("skipped: no p4c-bm2-ss on PATH");
    }
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let work = tempfile::tempdir().unwrap();
    for (name, with_info) in PROGRAMS {
        let source = format!("{name}.p4");
        std::fs::copy(programs.join(&source), work.path().join(&source)).unwrap();
        let (json, info) = (format!("{name}.json"), format!("{name}.p4info.txt"));
        let output = Command::new("p4c-bm2-ss")
            .current_dir(work.path())
            .args(["--std", "p4-16", "--p4runtime-files", &info])
            .args(["-o", &json, &source])
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let same = read(&work.path().join(&json)) == read(&programs.join(&json));
        assert!(same, "{json} is not what {source} compiles to");
        if with_info {
            let committed = programs.join(format!("{info}pb"));
            assert_eq!(read(&work.path().join(&info)), read(&committed), "{name}");
        }
    }
}

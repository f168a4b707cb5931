//! The compiled pipeline in `p4/compiled` is what its sources in `p4/fabric` say.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

const REMEDY: &str = "run p4/compile and commit p4/compiled";

fn p4_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// The digest file as a map from its first word to the rest of the line.
fn digest(dir: &Path) -> BTreeMap<String, String> {
    fs::read_to_string(dir.join("fabric.digest"))
        .unwrap()
        .lines()
        .map(|line| {
            let (key, value) = line.split_once(' ').unwrap();
            (key.to_owned(), value.to_owned())
        })
        .collect()
}

/// SHA-256 of the `sha256sum` listing of all sources in the order of their names.
fn sources_digest() -> String {
    let mut names: Vec<String> = fs::read_dir(p4_dir().join("fabric"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".p4"))
        .collect();
    names.sort_unstable();
    let mut listing = String::new();
    for name in names {
        let source = fs::read(p4_dir().join("fabric").join(&name)).unwrap();
        let _ = writeln!(listing, "{}  {name}", sha256(&source));
    }
    sha256(listing.as_bytes())
}

/// Version of the compiler on PATH, if there is one.
fn compiler_version() -> Option<String> {
    let output = Command::new("p4c-bm2-ss").arg("--version").output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().find_map(|line| {
        line.strip_prefix("Version ")?
            .split(' ')
            .next()
            .map(str::to_owned)
    })
}

#[test]
fn sources_are_those_that_were_compiled() {
    let recorded = digest(&p4_dir().join("compiled"));
    assert_eq!(
        recorded["sources"],
        sources_digest(),
        "p4/fabric changed since it was compiled: {REMEDY}"
    );
}

#[test]
fn artifacts_are_those_that_the_compiler_wrote() {
    let dir = p4_dir().join("compiled");
    let recorded = digest(&dir);
    for name in ["fabric.json", "fabric.p4info.txtpb"] {
        assert_eq!(
            recorded[name],
            sha256(&fs::read(dir.join(name)).unwrap()),
            "{name} was changed by hand: {REMEDY}"
        );
    }
}

#[test]
fn json_names_no_path_of_the_machine_that_compiled_it() {
    let json = fs::read_to_string(p4_dir().join("compiled/fabric.json")).unwrap();
    for line in json.lines().filter(|line| line.contains("\"filename\"")) {
        assert!(!line.contains('/'), "path in source info: {line}");
    }
    assert!(json.contains("\"program\" : \"fabric.p4\""));
}

#[test]
fn compiling_again_gives_the_same_files() {
    let compiled = p4_dir().join("compiled");
    let recorded = digest(&compiled)["compiler"].clone();
    match compiler_version() {
        None => return eprintln!("skipped: no p4c-bm2-ss on PATH"),
        Some(version) if format!("p4c-bm2-ss {version}") != recorded => {
            return eprintln!(
                "skipped: p4c-bm2-ss is {version}, the artifacts are from {recorded}"
            );
        }
        Some(_) => {}
    }
    let out = tempfile::tempdir().unwrap();
    let status = Command::new(p4_dir().join("compile"))
        .arg("--out")
        .arg(out.path())
        .status()
        .unwrap();
    assert!(status.success(), "p4/compile failed");
    for name in ["fabric.json", "fabric.p4info.txtpb", "fabric.digest"] {
        let fresh = fs::read(out.path().join(name)).unwrap();
        let committed = fs::read(compiled.join(name)).unwrap();
        assert!(
            fresh == committed,
            "{name} is not what p4c makes of it: {REMEDY}"
        );
    }
}

//! The matrix of P4Runtime's rules names tests that there are.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// What is between backticks, or the name before "(unit, ...)".
fn shown_by(cell: &str) -> Option<&str> {
    let cell = cell.trim();
    match cell.split_once(" (unit") {
        Some((name, _)) => Some(name),
        None => cell.strip_prefix('`')?.strip_suffix('`'),
    }
}

#[test]
fn every_rule_that_holds_names_a_test() {
    let matrix = root().join("../../docs/reference-p4runtime.md");
    let matrix = std::fs::read_to_string(matrix).unwrap();
    let mut unit = String::new();
    sources(&root().join("src"), &mut unit);
    let (mut rules, mut hold) = (0, 0);
    for line in matrix.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [number, rule, holds, shown] = cells[..] else {
            continue;
        };
        let Ok(number) = number.trim().parse::<u32>() else {
            continue;
        };
        rules += 1;
        assert_eq!(number, rules, "{rule}");
        if holds.trim() != "yes" {
            continue;
        }
        hold += 1;
        let test = shown_by(shown).unwrap_or_else(|| panic!("rule {number} names no test"));
        let there = match test.split_once("::") {
            Some((file, name)) => {
                let file = root().join(format!("tests/p4runtime/{file}.rs"));
                let text = std::fs::read_to_string(&file);
                text.is_ok_and(|t| t.contains(&format!("fn {name}(")))
            }
            None if test.starts_with("tests/") => root().join(test).exists(),
            None => unit.contains(&format!("fn {test}(")),
        };
        assert!(there, "rule {number} names {test}, which is not there");
    }
    let said = format!("{rules} rules, of which {hold} hold");
    assert!(matrix.contains(&said), "it should say: {said}");
}

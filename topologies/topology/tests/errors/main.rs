//! One test per kind of error: its code, line, column, and what it tells the reader to do.
#![allow(clippy::unwrap_used)]

mod addresses;
mod numbers;
mod parts;
mod text;
mod values;

use topology::{Problem, Topology};

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

//! `docs/reference-pipeline.md` says what the compiled pipeline serves.
//!
//! Its tables stand between `<!-- generated: NAME -->` and `<!-- end -->`; with `UPDATE=1` in the
//! environment the test writes them instead of comparing.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use p4runtime::config::v1::{P4Info, Preamble, Table, action_ref, counter_spec, match_field};
use p4runtime::info::{Index, short_name};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What the program says of an object, fit for a cell of a table.
fn brief(preamble: &Preamble) -> String {
    let brief = preamble.doc.as_ref().map_or("", |doc| doc.brief.as_str());
    brief.replace('|', "\\|")
}

fn preamble(preamble: &Option<Preamble>) -> &Preamble {
    preamble.as_ref().unwrap()
}

/// Stage of a table: the control instance in `Pipeline.stage.table`.
fn stage(table: &Table) -> (&str, &str) {
    let mut parts = preamble(&table.preamble).name.split('.');
    (parts.next().unwrap(), parts.next().unwrap())
}

/// The stages and their tables, in the order of the program.
fn diagram(info: &P4Info) -> String {
    let mut nodes: Vec<(String, Vec<String>)> = Vec::new();
    for table in &info.tables {
        let (pipeline, stage) = stage(table);
        let label = format!("{stage} ({})", pipeline.trim_start_matches("Fabric"));
        if nodes.last().is_none_or(|(last, _)| *last != label) {
            nodes.push((label, Vec::new()));
        }
        let name = short_name(preamble(&table.preamble)).to_owned();
        nodes.last_mut().unwrap().1.push(name);
    }
    let mut text = String::from("```mermaid\nflowchart TD\n    in([packet in])");
    for (number, (label, tables)) in nodes.iter().enumerate() {
        let _ = write!(
            text,
            " --> s{number}\n    s{number}[\"<b>{label}</b><br/>{}\"]",
            tables.join("<br/>")
        );
    }
    text.push_str(" --> out([packet out])\n```\n");
    text
}

fn kind(kind: i32) -> &'static str {
    match match_field::MatchType::try_from(kind).unwrap() {
        match_field::MatchType::Exact => "exact",
        match_field::MatchType::Lpm => "lpm",
        match_field::MatchType::Ternary => "ternary",
        match_field::MatchType::Range => "range",
        match_field::MatchType::Optional => "optional",
        match_field::MatchType::Unspecified => "unspecified",
    }
}

fn tables(info: &P4Info) -> String {
    let mut text = String::new();
    for table in &info.tables {
        let about = preamble(&table.preamble);
        let _ = writeln!(text, "### `{}`\n\n{}", short_name(about), brief(about));
        let description = about.doc.as_ref().map_or("", |doc| &doc.description);
        if !description.is_empty() {
            let _ = writeln!(text, "{description}");
        }
        let _ = writeln!(
            text,
            "Stage {}, {} entries.\n\n| key | match | bits |\n|---|---|---|",
            stage(table).1,
            table.size
        );
        for field in &table.match_fields {
            let Some(match_field::Match::MatchType(match_type)) = field.r#match else {
                panic!("{} has a match kind of another architecture", field.name);
            };
            let _ = writeln!(
                text,
                "| `{}` | {} | {} |",
                field.name,
                kind(match_type),
                field.bitwidth
            );
        }
        text.push_str("\n| action | |\n|---|---|\n");
        for reference in &table.action_refs {
            actions_row(&mut text, info, table, reference.id, reference.scope());
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn actions_row(text: &mut String, info: &P4Info, table: &Table, id: u32, scope: action_ref::Scope) {
    let action = info
        .actions
        .iter()
        .find(|action| preamble(&action.preamble).id == id)
        .unwrap();
    let about = preamble(&action.preamble);
    let params: Vec<String> = action
        .params
        .iter()
        .map(|param| format!("{}: bit<{}>", param.name, param.bitwidth))
        .collect();
    let default = match (table.const_default_action_id == id, scope) {
        (true, action_ref::Scope::DefaultOnly) => "On a miss.",
        (true, _) => "Also on a miss.",
        _ => "",
    };
    let what = [&brief(about), default].join(" ");
    let _ = writeln!(
        text,
        "| `{}({})` | {} |",
        short_name(about),
        params.join(", "),
        what.trim()
    );
}

fn counters(info: &P4Info) -> String {
    let mut text = String::from("| counter | size | unit | |\n|---|---|---|---|\n");
    for counter in &info.counters {
        let about = preamble(&counter.preamble);
        let unit = unit(counter.spec.as_ref().unwrap().unit);
        let _ = writeln!(
            text,
            "| `{}` | {} | {unit} | {} |",
            short_name(about),
            counter.size,
            brief(about)
        );
    }
    for counter in &info.direct_counters {
        let about = preamble(&counter.preamble);
        let table = info
            .tables
            .iter()
            .find(|table| preamble(&table.preamble).id == counter.direct_table_id)
            .unwrap();
        let unit = unit(counter.spec.as_ref().unwrap().unit);
        let _ = writeln!(
            text,
            "| `{}` | entries of `{}` | {unit} | {} |",
            short_name(about),
            short_name(preamble(&table.preamble)),
            brief(about)
        );
    }
    text
}

fn unit(unit: i32) -> &'static str {
    match counter_spec::Unit::try_from(unit).unwrap() {
        counter_spec::Unit::Both => "packets, bytes",
        counter_spec::Unit::Bytes => "bytes",
        counter_spec::Unit::Packets => "packets",
        counter_spec::Unit::Unspecified => "unspecified",
    }
}

fn packets(info: &P4Info) -> String {
    let mut text = String::from("| header | field | bits |\n|---|---|---|\n");
    for header in &info.controller_packet_metadata {
        let name = &preamble(&header.preamble).name;
        for field in &header.metadata {
            let _ = writeln!(text, "| `{name}` | `{}` | {} |", field.name, field.bitwidth);
        }
    }
    text
}

/// Numbered constants of one type, with the comment beside them.
fn constants(source: &str, kind: &str, prefix: &str) -> String {
    let mut text = String::from("| value | name | |\n|---|---|---|\n");
    let start = format!("const {kind} {prefix}");
    for line in source.lines().filter_map(|line| line.strip_prefix(&start)) {
        let (name, rest) = line.split_once('=').unwrap();
        let (value, comment) = rest.split_once(';').unwrap();
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            value.trim(),
            name.trim().to_lowercase(),
            comment.trim().trim_start_matches('/').trim()
        );
    }
    text
}

fn replace(page: &str, name: &str, text: &str) -> String {
    let start = format!("<!-- generated: {name} -->\n");
    let (before, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("no part {name}"));
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    format!("{before}{start}\n{text}\n<!-- end -->{after}")
}

#[test]
fn page_says_what_the_pipeline_serves() {
    let compiled = root().join("p4/compiled/fabric.p4info.txtpb");
    let index = Index::parse_text(&fs::read_to_string(compiled).unwrap()).unwrap();
    let info = index.p4info();
    let source = fs::read_to_string(root().join("p4/fabric/constants.p4")).unwrap();
    let path = root().join("docs/reference-pipeline.md");
    let page = fs::read_to_string(&path).unwrap();

    let parts = [
        ("diagram", diagram(info)),
        ("tables", tables(info)),
        ("punt", constants(&source, "punt_reason_t", "PUNT_")),
        ("drop", constants(&source, "drop_reason_t", "DROP_")),
        ("locality", constants(&source, "locality_t", "LOCALITY_")),
        ("counters", counters(info)),
        ("packets", packets(info)),
    ];
    let fresh = parts.iter().fold(page.clone(), |page, (name, text)| {
        replace(&page, name, text)
    });
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, fresh).unwrap();
    } else {
        assert!(
            page == fresh,
            "docs/reference-pipeline.md is out of date: UPDATE=1 cargo test -p tests --test pipeline_reference"
        );
    }
}

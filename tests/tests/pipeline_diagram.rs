//! `docs/images/pipeline.svg` shows the compiled pipeline: drawn from its P4Info, never by hand.
//!
//! With `UPDATE=1` in the environment the test draws it instead of comparing.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use p4runtime::config::v1::{P4Info, Table};
use p4runtime::info::{Index, short_name};

const WIDTH: usize = 720;
const BOX: usize = 300;
const LEFT: usize = 30;
const RIGHT: usize = 390;
const TOP: usize = 70;
const LINE: usize = 18;
const GAP: usize = 16;

/// A control of the pipeline: its name, and its tables with their keys.
struct Stage {
    name: String,
    tables: Vec<String>,
}

impl Stage {
    fn height(&self) -> usize {
        (self.tables.len() + 1) * LINE + 10
    }
}

fn describe(table: &Table) -> String {
    let fields: Vec<&str> = table.match_fields.iter().map(|f| f.name.as_str()).collect();
    let name = short_name(table.preamble.as_ref().unwrap());
    let text = format!("{name} ({})", fields.join(", "));
    match text.char_indices().nth(44) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The stages of one pipeline, in the program's order.
fn stages(info: &P4Info, pipeline: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for table in &info.tables {
        let name = &table.preamble.as_ref().unwrap().name;
        let mut parts = name.split('.');
        if parts.next() != Some(pipeline) {
            continue;
        }
        let stage = parts.next().unwrap();
        if stages.last().is_none_or(|last| last.name != stage) {
            stages.push(Stage {
                name: stage.to_owned(),
                tables: Vec::new(),
            });
        }
        stages.last_mut().unwrap().tables.push(describe(table));
    }
    stages
}

/// Draws a column of stages; gives where it ends.
fn column(svg: &mut String, stages: &[Stage], left: usize, title: &str) -> usize {
    let middle = left + BOX / 2;
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" class=\"title\">{title}</text>",
        TOP - 24
    );
    let mut top = TOP;
    for (number, stage) in stages.iter().enumerate() {
        if number > 0 {
            let _ = writeln!(
                svg,
                "<path d=\"M{middle} {} V{top}\" class=\"way\"/>",
                top - GAP
            );
        }
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{BOX}\" height=\"{}\" rx=\"5\"/>",
            stage.height()
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" class=\"stage\">{}</text>",
            left + 10,
            top + LINE,
            stage.name
        );
        for (line, table) in stage.tables.iter().enumerate() {
            let y = top + LINE * (line + 2);
            let _ = writeln!(svg, "<text x=\"{}\" y=\"{y}\">{table}</text>", left + 10);
        }
        top += stage.height() + GAP;
    }
    top
}

fn draw(info: &P4Info) -> String {
    let mut body = String::new();
    let ingress = stages(info, "FabricIngress");
    let egress = stages(info, "FabricEgress");
    let left = column(&mut body, &ingress, LEFT, "ingress");
    let right = column(&mut body, &egress, RIGHT, "egress");
    let height = left.max(right) + 10;
    // From the last stage of ingress through the queues to the first of egress.
    let between = RIGHT - 30;
    let _ = writeln!(
        body,
        "<path d=\"M{} {} H{between} V{} H{RIGHT}\" class=\"way\"/>\n\
         <text x=\"{}\" y=\"{}\" class=\"queue\">queues</text>",
        LEFT + BOX,
        left - GAP - 12,
        TOP + 12,
        between + 6,
        left - GAP - 20
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\">\n<title>The stages of the fabric pipeline and their tables</title>\n\
         <style>svg{{background:#fff}}text{{font:12px sans-serif;fill:#333}}.stage{{font-weight:bold}}\
         .title{{font-size:15px;text-anchor:middle}}.queue{{font-style:italic}}\
         rect{{fill:#eef3fa;stroke:#5878a8}}.way{{fill:none;stroke:#5878a8;stroke-width:1.5}}</style>\n\
         {body}</svg>\n"
    )
}

#[test]
fn diagram_shows_the_compiled_pipeline() {
    let compiled = tests::root().join("p4/compiled/fabric.p4info.txtpb");
    let index = Index::parse_text(&std::fs::read_to_string(compiled).unwrap()).unwrap();
    let svg = draw(index.p4info());
    for table in &index.p4info().tables {
        let name = short_name(table.preamble.as_ref().unwrap());
        assert!(svg.contains(name.rsplit('.').next().unwrap()), "no {name}");
    }
    let path = tests::root().join("docs/images/pipeline.svg");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, svg).unwrap();
    } else {
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == svg,
            "docs/images/pipeline.svg is out of date: \
             UPDATE=1 cargo test -p tests --test pipeline_diagram"
        );
    }
}

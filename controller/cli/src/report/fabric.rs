//! A picture of the fabric: one panel per run, tiers above each other, links as
//! wide and as warm as they were loaded.

use std::collections::BTreeMap;

use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text, Title};

/// A switch or a host.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// What is written on it.
    pub(crate) label: String,
    /// 0 for hosts, 1 for leaves, and so on upwards.
    pub(crate) tier: usize,
}

/// A link between two nodes, by their index.
#[derive(Debug, Clone)]
pub(crate) struct PictureLink {
    /// One end.
    pub(crate) a: usize,
    /// The other end.
    pub(crate) b: usize,
}

/// The loads of one run.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    /// The panel's title.
    pub(crate) title: String,
    /// Mean utilisation of each link's busier direction, 0 to 1, in the order of the links.
    pub(crate) loads: Vec<f64>,
    /// The link that was cut, if one was.
    pub(crate) failed: Option<usize>,
}

/// Everything that is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// Switches and hosts.
    pub(crate) nodes: Vec<Node>,
    /// Links.
    pub(crate) links: Vec<PictureLink>,
    /// One panel per run, drawn from top to bottom.
    pub(crate) panels: Vec<Panel>,
}

const WIDTH: f64 = 1200.0;
const TIER_HEIGHT: f64 = 110.0;
const MARGIN: f64 = 40.0;
const TITLE_HEIGHT: f64 = 36.0;
const NODE_HEIGHT: f64 = 24.0;

/// Draws the picture as SVG text.
pub(crate) fn draw(picture: &Picture) -> String {
    let tiers = picture.nodes.iter().map(|n| n.tier).max().unwrap_or(0) + 1;
    let panel_height = TITLE_HEIGHT + tiers as f64 * TIER_HEIGHT;
    let height = MARGIN + panel_height * picture.panels.len() as f64 + 30.0;
    let places = places(&picture.nodes, tiers);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH as u32, height as u32))
        .set("font-family", "sans-serif")
        .add(
            Rectangle::new()
                .set("width", "100%")
                .set("height", "100%")
                .set("fill", "#ffffff"),
        );
    for (index, panel) in picture.panels.iter().enumerate() {
        let top = MARGIN / 2.0 + index as f64 * panel_height;
        document = document.add(draw_panel(picture, panel, &places, top));
    }
    document = document.add(legend(height - 18.0));
    document.to_string()
}

/// Where each node's centre is, within a panel.
fn places(nodes: &[Node], tiers: usize) -> Vec<Place> {
    let mut count: BTreeMap<usize, usize> = BTreeMap::new();
    for node in nodes {
        *count.entry(node.tier).or_default() += 1;
    }
    let mut next: BTreeMap<usize, usize> = BTreeMap::new();
    nodes
        .iter()
        .map(|node| {
            let slot = (WIDTH - 2.0 * MARGIN) / count[&node.tier] as f64;
            let index = next.entry(node.tier).or_default();
            let x = MARGIN + slot * (*index as f64 + 0.5);
            *index += 1;
            let y = TITLE_HEIGHT + TIER_HEIGHT * ((tiers - 1 - node.tier) as f64 + 0.3);
            Place {
                x,
                y,
                width: (slot * 0.86).min(96.0),
            }
        })
        .collect()
}

struct Place {
    x: f64,
    y: f64,
    width: f64,
}

fn draw_panel(picture: &Picture, panel: &Panel, places: &[Place], top: f64) -> Group {
    let mut group = Group::new().set("transform", format!("translate(0,{top})"));
    group = group.add(
        Text::new(panel.title.clone())
            .set("x", MARGIN)
            .set("y", 18)
            .set("font-size", 17)
            .set("font-weight", "bold"),
    );
    for (index, link) in picture.links.iter().enumerate() {
        let load = panel.loads.get(index).copied().unwrap_or(0.0);
        let failed = panel.failed == Some(index);
        group = group.add(draw_link(picture, link, places, load, failed));
    }
    for (node, place) in picture.nodes.iter().zip(places) {
        group = draw_node(group, node, place);
    }
    group
}

fn draw_link(
    picture: &Picture,
    link: &PictureLink,
    places: &[Place],
    load: f64,
    failed: bool,
) -> Line {
    let (a, b) = (&places[link.a], &places[link.b]);
    let line = Line::new()
        .set("x1", round(a.x))
        .set("y1", round(a.y))
        .set("x2", round(b.x))
        .set("y2", round(b.y))
        .set(
            "stroke",
            if failed {
                "#000000".into()
            } else {
                colour(load)
            },
        )
        .set("stroke-width", round(1.0 + 5.0 * load.clamp(0.0, 1.0)));
    let line = if failed {
        line.set("stroke-dasharray", "6,5")
    } else {
        line
    };
    line.add(Title::new(format!(
        "{} - {}: {:.0} %{}",
        picture.nodes[link.a].label,
        picture.nodes[link.b].label,
        load * 100.0,
        if failed { ", cut" } else { "" },
    )))
}

fn draw_node(group: Group, node: &Node, place: &Place) -> Group {
    let fill = ["#f2f2f2", "#dbe9f6", "#c6dbef", "#b0cbe6"][node.tier.min(3)];
    let size = (place.width / (node.label.len().max(1) as f64) * 1.55).clamp(3.0, 12.0);
    group
        .add(
            Rectangle::new()
                .set("x", round(place.x - place.width / 2.0))
                .set("y", round(place.y - NODE_HEIGHT / 2.0))
                .set("width", round(place.width))
                .set("height", NODE_HEIGHT)
                .set("rx", 4)
                .set("fill", fill)
                .set("stroke", "#5b6b7b"),
        )
        .add(
            Text::new(node.label.clone())
                .set("x", round(place.x))
                .set("y", round(place.y + size * 0.35))
                .set("font-size", round(size))
                .set("text-anchor", "middle"),
        )
}

fn legend(y: f64) -> Group {
    let mut group = Group::new().add(
        Text::new("mean load of a link's busier direction:")
            .set("x", MARGIN)
            .set("y", y)
            .set("font-size", 13),
    );
    for step in 0..=4_u32 {
        let load = f64::from(step) / 4.0;
        let x = MARGIN + 270.0 + 110.0 * f64::from(step);
        group = group
            .add(
                Line::new()
                    .set("x1", x)
                    .set("y1", y - 4.0)
                    .set("x2", x + 40.0)
                    .set("y2", y - 4.0)
                    .set("stroke", colour(load))
                    .set("stroke-width", round(1.0 + 5.0 * load)),
            )
            .add(
                Text::new(format!("{:.0} %", load * 100.0))
                    .set("x", x + 48.0)
                    .set("y", y)
                    .set("font-size", 13),
            );
    }
    group
}

/// From grey (idle) over blue to red (full).
fn colour(load: f64) -> String {
    const STOPS: [(f64, [f64; 3]); 4] = [
        (0.0, [205.0, 205.0, 205.0]),
        (0.4, [66.0, 133.0, 200.0]),
        (0.75, [240.0, 165.0, 40.0]),
        (1.0, [205.0, 30.0, 40.0]),
    ];
    let load = load.clamp(0.0, 1.0);
    let above = STOPS.iter().position(|s| s.0 >= load).unwrap_or(3).max(1);
    let (low, high) = (STOPS[above - 1], STOPS[above]);
    let t = (load - low.0) / (high.0 - low.0);
    let mix = |i: usize| (low.1[i] + t * (high.1[i] - low.1[i])).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_nodes() -> Picture {
        Picture {
            nodes: vec![
                Node {
                    label: "h<1>".into(),
                    tier: 0,
                },
                Node {
                    label: "leaf1".into(),
                    tier: 1,
                },
            ],
            links: vec![PictureLink { a: 0, b: 1 }],
            panels: vec![Panel {
                title: "placed & cut".into(),
                loads: vec![0.5],
                failed: Some(0),
            }],
        }
    }

    #[test]
    fn a_cut_link_is_dashed_and_says_so() {
        let text = draw(&two_nodes());
        assert!(text.contains("stroke-dasharray"));
        assert!(text.contains("50 %, cut"));
        assert!(text.contains("h&lt;1&gt;"), "labels are escaped");
        assert!(text.contains("placed &amp; cut"));
    }

    #[test]
    fn colours_reach_both_ends() {
        assert_eq!(colour(0.0), "#cdcdcd");
        assert_eq!(colour(1.0), "#cd1e28");
        assert_eq!(colour(7.0), colour(1.0));
    }

    #[test]
    fn nothing_to_draw_is_still_a_document() {
        let text = draw(&Picture {
            nodes: vec![],
            links: vec![],
            panels: vec![],
        });
        assert!(text.starts_with("<svg"));
    }
}

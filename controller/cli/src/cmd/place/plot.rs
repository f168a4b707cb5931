//! The policies side by side, as bars: what crosses, and how much slower the job is for it.

use plotters::prelude::*;

use super::report::{PlaceReport, Total};
use crate::failure::Failure;

const SIZE: (u32, u32) = (960, 640);

/// One row of bars.
struct Panel<'a> {
    title: &'a str,
    percent: bool,
    /// What a bar should not be below.
    line: Option<(f64, &'a str)>,
    bars: Vec<(&'static str, f64)>,
}

/// Draws the comparison of a report.
pub(super) fn draw(report: &PlaceReport) -> Result<String, Failure> {
    let bars = |of: fn(&Total) -> Option<f64>| -> Vec<(&'static str, f64)> {
        let all = report.compared.iter();
        all.filter_map(|t| Some((t.policy, of(t)?))).collect()
    };
    let bound = report.compared.first().map_or(0.0, |t| t.bound);
    let title = format!("Cross-LA share, {} on {}", jobs(report), report.topology);
    let panels = [
        Panel {
            title: &title,
            percent: true,
            line: Some((bound, "bound")),
            bars: bars(|t| Some(t.share)),
        },
        Panel {
            title: "Slow-down, planned paths (time of an iteration's bytes over that of NICs alone)",
            percent: false,
            line: Some((1.0, "NICs alone")),
            bars: bars(|t| t.slow_down),
        },
        Panel {
            title: "Slow-down, paths by ECMP hashing",
            percent: false,
            line: Some((1.0, "NICs alone")),
            bars: bars(|t| t.slow_down_hashed),
        },
    ];
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(Failure::run)?;
        for (area, panel) in root.split_evenly((3, 1)).iter().zip(&panels) {
            draw_panel(area, panel).map_err(Failure::run)?;
        }
        root.present().map_err(Failure::run)?;
    }
    Ok(text)
}

fn jobs(report: &PlaceReport) -> String {
    match &report.jobs[..] {
        [one] => one.name.clone(),
        several => format!("{} jobs", several.len()),
    }
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    panel: &Panel<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let line = panel.line.map_or(0.0, |(value, _)| value);
    let bars = panel.bars.iter().map(|(_, value)| *value);
    let most = bars.fold(line, f64::max).max(1e-6) * 1.2;
    let count = panel.bars.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(26)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..count.max(1.0), 0.0..most)?;
    let shown = |value: &f64| match panel.percent {
        true => format!("{:.1} %", value * 100.0),
        false => format!("{value:.2}"),
    };
    // The labels of a mesh stand at its ticks; the names belong in the middle of the bars.
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(5)
        .y_label_formatter(&shown)
        .draw()?;
    for (at, (name, value)) in panel.bars.iter().enumerate() {
        let (left, middle) = (at as f64 + 0.2, at as f64 + 0.5);
        let colour = HSLColor(at as f64 / count, 0.6, 0.5);
        let bar = Rectangle::new([(left, 0.0), (left + 0.6, *value)], colour.filled());
        let style = ("sans-serif", 12).into_font().color(&BLACK);
        let centred = style.pos(plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Center,
            plotters::style::text_anchor::VPos::Bottom,
        ));
        let label = format!("{name} {}", shown(value));
        chart.draw_series([bar])?;
        chart.draw_series([Text::new(label, (middle, *value), centred)])?;
    }
    if let Some((value, name)) = panel.line {
        let whole = [(0.0, value), (count, value)];
        chart.draw_series(LineSeries::new(whole, BLACK.stroke_width(1)))?;
        chart.draw_series([Text::new(
            name.to_owned(),
            (0.02, value),
            ("sans-serif", 11).into_font(),
        )])?;
    }
    Ok(())
}

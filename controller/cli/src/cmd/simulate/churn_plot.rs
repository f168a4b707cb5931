//! Ring shares over load: a line per policy, the spread between seeds as whiskers.

use plotters::prelude::*;

use super::churn::{ChurnReport, Spread};
use crate::failure::Failure;

const SIZE: (u32, u32) = (900, 560);

/// Draws the comparison.
pub(crate) fn draw(report: &ChurnReport) -> Result<String, Failure> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(Failure::run)?;
        panel(&root, report).map_err(Failure::run)?;
        root.present().map_err(Failure::run)?;
    }
    Ok(text)
}

fn panel(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    report: &ChurnReport,
) -> Result<(), Box<dyn std::error::Error>> {
    let loads: Vec<f64> = report.loads.iter().map(|l| l.load).collect();
    let low = loads.iter().copied().fold(f64::INFINITY, f64::min) - 0.03;
    let high = loads.iter().copied().fold(0.0, f64::max) + 0.03;
    let rings = report
        .loads
        .iter()
        .flat_map(|l| l.policies.iter().map(|p| p.ring.max));
    let most = rings.fold(0.01, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(root)
        .caption(
            format!(
                "Cross-LA share of rings, {} ({} seeds)",
                report.topology,
                report.seeds.len()
            ),
            ("sans-serif", 20),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(low..high, 0.0..most)?;
    chart
        .configure_mesh()
        .x_desc(format!("offered load (queue: {})", report.queue))
        .y_desc("byte-weighted cross-LA share")
        .y_label_formatter(&|share| format!("{:.0} %", share * 100.0))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    let names: Vec<&str> = report
        .loads
        .first()
        .map_or(Vec::new(), |l| l.policies.iter().map(|p| p.name).collect());
    for (index, name) in names.iter().enumerate() {
        let colour = HSLColor(index as f64 / names.len() as f64, 0.75, 0.42);
        let points: Vec<(f64, &Spread)> = report
            .loads
            .iter()
            .filter_map(|l| l.policies.get(index).map(|p| (l.load, &p.ring)))
            .collect();
        let line = points.iter().map(|(load, ring)| (*load, ring.mean));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)).point_size(3))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        let whisker = |(load, ring): &(f64, &Spread)| {
            PathElement::new(
                [(*load, ring.min), (*load, ring.max)],
                colour.stroke_width(1),
            )
        };
        chart.draw_series(points.iter().map(whisker))?;
    }
    let floors = report.loads.iter().map(|l| (l.load, l.floor.mean));
    chart
        .draw_series(LineSeries::new(floors, BLACK.stroke_width(1)))?
        .label("floor (empty fabric)")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK.stroke_width(1)));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.4))
        .draw()?;
    Ok(())
}

//! Each NIC's throughput over time, one panel per run.

use plotters::prelude::*;

use crate::failure::Failure;

/// One NIC's line.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Sent bits/s in each bin, as a share of the NIC's rate.
    pub(crate) share: Vec<f64>,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct ThroughputPanel {
    /// The panel's title.
    pub(crate) title: String,
    /// Width of a bin, µs.
    pub(crate) bin_us: f64,
    /// The NICs.
    pub(crate) nics: Vec<Series>,
    /// A moment to mark (the failure), µs.
    pub(crate) mark_us: Option<f64>,
}

const PANEL_SIZE: (u32, u32) = (1200, 300);

/// Draws the panels below each other, with one time axis for all.
pub(crate) fn draw(panels: &[ThroughputPanel]) -> Result<String, Failure> {
    let mut text = String::new();
    let longest = panels
        .iter()
        .flat_map(|p| p.nics.iter().map(|n| n.share.len() as f64 * p.bin_us))
        .fold(1.0, f64::max);
    {
        let rows = panels.len().max(1);
        let size = (PANEL_SIZE.0, PANEL_SIZE.1 * rows as u32);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE).map_err(Failure::run)?;
        for (area, panel) in root.split_evenly((rows, 1)).iter().zip(panels) {
            draw_panel(area, panel, longest).map_err(Failure::run)?;
        }
        root.present().map_err(Failure::run)?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_panel(
    area: &Area<'_>,
    panel: &ThroughputPanel,
    longest_us: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let lines = if panel.mark_us.is_some() {
        "a line per NIC; black: the link is cut"
    } else {
        "a line per NIC"
    };
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{} ({lines})", panel.title), ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(34)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..longest_us, 0.0..1.05)?;
    chart
        .configure_mesh()
        .x_desc("fabric time, us")
        .y_desc("sent / NIC rate")
        .x_label_formatter(&|us| format!("{us:.0}"))
        .y_label_formatter(&|share| format!("{:.0} %", share * 100.0))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for (index, nic) in panel.nics.iter().enumerate() {
        let hue = index as f64 / panel.nics.len().max(1) as f64;
        let colour = HSLColor(hue, 0.6, 0.45).mix(0.55);
        let points = nic
            .share
            .iter()
            .enumerate()
            .map(|(bin, share)| ((bin as f64 + 0.5) * panel.bin_us, *share));
        chart.draw_series(LineSeries::new(points, &colour))?;
    }
    if let Some(at) = panel.mark_us {
        chart.draw_series(LineSeries::new(
            [(at, 0.0), (at, 1.05)],
            BLACK.stroke_width(2),
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_panel_has_its_title_and_the_same_input_the_same_bytes() {
        let panels =
            [("unplaced", None), ("failure", Some(12.0))].map(|(title, mark_us)| ThroughputPanel {
                title: title.into(),
                bin_us: 10.0,
                nics: vec![Series {
                    share: vec![0.0, 0.9, 0.4],
                }],
                mark_us,
            });
        let text = draw(&panels).unwrap();
        assert!(text.contains("unplaced") && text.contains("failure"));
        assert_eq!(text, draw(&panels).unwrap());
    }

    #[test]
    fn no_panels_is_no_error() {
        assert!(draw(&[]).unwrap().contains("<svg"));
    }
}

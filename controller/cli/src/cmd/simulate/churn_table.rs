//! The results as text.

use super::churn::{ChurnReport, LoadReport};
use crate::output;

/// A table for each load.
pub(crate) fn text(report: &ChurnReport) -> String {
    let sizes: Vec<String> = report
        .sizes
        .iter()
        .map(|(n, w)| format!("{n}:{w}"))
        .collect();
    let mut text = format!(
        "{}: {} hosts on {} leaves or rows of leaves; {} jobs a run of sizes {}; queue {}; {} seeds\n",
        report.topology,
        report.hosts,
        report.rooms,
        report.jobs,
        sizes.join(","),
        report.queue,
        report.seeds.len(),
    );
    for load in &report.loads {
        text += &one(load);
    }
    text
}

fn one(load: &LoadReport) -> String {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let header = [
        "policy",
        "ring share",
        "+-",
        "least",
        "most",
        "two-level",
        "bound",
        "vs slurm-tree",
        "above floor",
    ];
    let mut table = output::table(header, 1);
    for policy in &load.policies {
        let versus = policy
            .over_slurm
            .map(|over| format!("{:+.1} %", 100.0 * (over - 1.0)));
        table.add_row([
            policy.name.to_owned(),
            percent(policy.ring.mean),
            percent(policy.ring.sd),
            percent(policy.ring.min),
            percent(policy.ring.max),
            percent(policy.tree.mean),
            percent(policy.bound.mean),
            versus.unwrap_or_default(),
            format!("{:+.2} points", policy.above_floor_points),
        ]);
    }
    format!(
        "\nload {}: {} of the hosts occupied, {} of the jobs turned away; floor {}, and no placement below {}\n{table}\n",
        load.load,
        percent(load.occupied.mean),
        percent(load.rejected),
        percent(load.floor.mean),
        percent(load.packing.mean),
    )
}

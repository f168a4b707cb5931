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
    let over = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let header = [
        "policy",
        "ring share",
        "+-",
        "least",
        "most",
        "two-level",
        "bound",
        "vs slurm-tree",
        "over floor",
        "over packing",
        "hosts moved",
    ];
    let mut table = output::table(header, 1);
    for policy in &load.policies {
        let moved = policy.moved.mean;
        table.add_row([
            policy.name.to_owned(),
            percent(policy.ring.mean),
            percent(policy.ring.sd),
            percent(policy.ring.min),
            percent(policy.ring.max),
            percent(policy.tree.mean),
            percent(policy.bound.mean),
            policy.over_slurm.map(over).unwrap_or_default(),
            over(policy.over_floor),
            over(policy.over_packing),
            if moved > 0.0 {
                percent(moved)
            } else {
                String::new()
            },
        ]);
    }
    format!(
        "\nload {}: {} of the hosts occupied, {} of the jobs turned away, waiting {} of the run time\n\
         floor (each job on an empty fabric): {}; packing (no placement is below, even with moves): {}, \
         two-level {}\n{table}\n",
        load.load,
        percent(load.occupied.mean),
        percent(load.rejected),
        percent(load.waited.mean),
        percent(load.floor.mean),
        percent(load.packing.mean),
        percent(load.packing_tree.mean),
    )
}

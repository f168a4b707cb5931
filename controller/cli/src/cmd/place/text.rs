//! What `meridian place` prints, for people.

use std::fmt::Write as _;

use super::report::{JobReport, MoveReport, PlaceReport};
use crate::output;

/// Hosts in a line before the rest is only counted.
const HOSTS: usize = 16;

/// The whole report.
pub(super) fn text(report: &PlaceReport, explain: bool) -> String {
    let mut text = String::new();
    let many = report.jobs.len() > 8 && !explain;
    if many {
        text += &table(&report.jobs);
    } else {
        for job in &report.jobs {
            text += &one(job, explain);
        }
    }
    if let Some(moves) = &report.moves {
        text += if moves.is_empty() {
            "no move of one running job makes it cross less\n"
        } else {
            "moves of running jobs, one after the other:\n"
        };
        for one in moves {
            text += &moved(one);
        }
    }
    let _ = writeln!(
        text,
        "{}: {} hosts free, {} taken, {} drained",
        report.topology, report.free_after, report.taken_after, report.drained
    );
    text
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn table(jobs: &[JobReport]) -> String {
    let mut table = output::table(
        ["job", "hosts", "leaves", "share", "bound", "first host"],
        1,
    );
    for job in jobs {
        table.add_row([
            job.name.clone(),
            job.hosts.len().to_string(),
            job.leaves.to_string(),
            percent(job.share),
            percent(job.bound),
            job.hosts.first().cloned().unwrap_or_default(),
        ]);
    }
    format!("{table}\n")
}

fn one(job: &JobReport, explain: bool) -> String {
    let mut text = format!(
        "{}: {} hosts of {} ranks on {} leaves, {} of its bytes cross LA domains (bound {})\n",
        job.name,
        job.hosts.len(),
        job.ranks_per_host,
        job.leaves,
        percent(job.share),
        percent(job.bound),
    );
    let shown = job
        .hosts
        .iter()
        .take(HOSTS)
        .map(String::as_str)
        .collect::<Vec<_>>();
    let rest = job.hosts.len().saturating_sub(HOSTS);
    let rest = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    let _ = writeln!(text, "  hosts by rank: {}{rest}", shown.join(" "));
    if explain {
        text += &why(job);
    }
    if !job.compare.is_empty() {
        let header = ["policy", "share", "one ring", "leaves", "segments", "pods"];
        let mut table = output::table(header, 1);
        for other in &job.compare {
            table.add_row([
                other.policy.to_owned(),
                percent(other.share),
                percent(other.ring_share),
                other.leaves.to_string(),
                other.segments.to_string(),
                other.pods.to_string(),
            ]);
        }
        let _ = writeln!(text, "{table}");
    }
    text
}

fn why(job: &JobReport) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "  why here:");
    for room in &job.rooms {
        let left = room.free_before.saturating_sub(room.hosts);
        let company = match room.shared_with {
            0 => "alone".to_owned(),
            1 => "beside one job".to_owned(),
            n => format!("beside {n} jobs"),
        };
        let _ = writeln!(
            text,
            "    {}: {} of {} free hosts (size {}, {company}), {left} left",
            room.la, room.hosts, room.free_before, room.size
        );
    }
    if job.dimensions.len() > 1 {
        let _ = writeln!(
            text,
            "    hosts count through {}, outermost first: of all orders the one whose cut carries least",
            job.dimensions.join(", ")
        );
    }
    let least = job.leaves_least;
    let _ = match job.leaves {
        leaves if leaves > least => writeln!(
            text,
            "    {leaves} leaves where {least} would do: the hosts spared are worth more to later jobs"
        ),
        _ => writeln!(
            text,
            "    no choice of free hosts is on fewer leaves than {least}"
        ),
    };
    if let Some(lost) = job.lost {
        let _ = writeln!(
            text,
            "    costs later jobs {lost:.2} crossings of a ring, by outlook"
        );
    }
    let _ = writeln!(
        text,
        "  bounds: one ring over its hosts crosses with {} of its bytes here, {} at least with what is free, \
         {} on an idle fabric; in two levels {}",
        percent(job.ring_share),
        percent(job.ring_bound),
        percent(job.ring_floor),
        percent(job.tree_share),
    );
    let outer = [
        ("segments", job.crossing_segments_bytes),
        ("pods", job.crossing_pods_bytes),
        ("buildings", job.crossing_buildings_bytes),
    ];
    for (border, bytes) in outer.iter().filter(|(_, bytes)| *bytes > 0) {
        let share = *bytes as f64 / job.sent_bytes.max(1) as f64;
        let _ = writeln!(text, "  {} of its bytes cross {border}", percent(share));
    }
    if job.leaves_least > job.leaves_idle {
        if job.improve.is_empty() {
            let _ = writeln!(
                text,
                "  to improve: wait; no move of one running job helps ({} leaves on an idle fabric)",
                job.leaves_idle
            );
        } else {
            let _ = writeln!(text, "  to improve, move one of:");
            for one in &job.improve {
                text += &moved(one);
            }
        }
    } else {
        let _ = writeln!(
            text,
            "  to improve: nothing; an idle fabric would be no better"
        );
    }
    text
}

fn moved(one: &MoveReport) -> String {
    let shown: Vec<&str> = one.to.iter().take(HOSTS).map(String::as_str).collect();
    let newcomer = one
        .newcomer_share
        .map(|share| format!("; this job then crosses with {}", percent(share)))
        .unwrap_or_default();
    format!(
        "    {}: {} hosts move, to {}{}; its ring share {} -> {}{newcomer}\n",
        one.job,
        one.moved_hosts,
        shown.join(" "),
        if one.to.len() > HOSTS { " ..." } else { "" },
        percent(one.share_before),
        percent(one.share_after),
    )
}

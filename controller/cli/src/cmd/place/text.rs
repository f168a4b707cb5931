//! What `meridian place` prints, for people.

use std::fmt::Write as _;

use super::paths::PathsReport;
use super::report::{JobReport, MoveReport, PlaceReport};
use crate::output;

/// Hosts in a line before the rest is only counted.
const HOSTS: usize = 16;

/// Leaves that an explanation lists before the rest is only counted.
const ROOMS: usize = 24;

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

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
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
        "{}: {} of {} on {}, {} of its bytes cross LA domains (bound {}, on an idle fabric {})\n",
        job.name,
        counted(job.hosts.len(), "host", "hosts"),
        counted(job.ranks_per_host as usize, "rank", "ranks"),
        counted(job.leaves, "leaf", "leaves"),
        percent(job.share),
        percent(job.bound),
        percent(job.floor),
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
    if let Some(paths) = &job.paths {
        text += &flows(paths);
    }
    if !job.compare.is_empty() {
        let _ = writeln!(text, "{}", compared(job));
    }
    text
}

fn flows(paths: &PathsReport) -> String {
    let mut text = format!(
        "  flows: {}, {} of them across LA domains",
        paths.flows, paths.crossing_flows
    );
    if paths.without_path > 0 {
        let _ = write!(text, ", {} without a way", paths.without_path);
    }
    if paths.busiest_ms > 0.0 {
        let _ = write!(
            text,
            "; busiest link {:.3} ms an iteration, {:.3} of its bound ({}), {:.3} of its leaf's mean; \
             at most {} pins on a switch",
            paths.busiest_ms,
            paths.busiest_over_bound,
            paths.bound_by,
            paths.max_over_mean,
            paths.most_pins
        );
    }
    let _ = writeln!(
        text,
        "\n  time of an iteration's bytes: {:.3} of what the NICs alone need; {:.3} with paths by hashing",
        paths.slow_down, paths.slow_down_hashed
    );
    text
}

fn compared(job: &JobReport) -> comfy_table::Table {
    let header = [
        "policy",
        "share",
        "bound",
        "one ring",
        "leaves",
        "segments",
        "pods",
        "max/mean",
        "max/bound",
        "slow-down",
        "by hashing",
    ];
    let mut table = output::table(header, 1);
    for other in &job.compare {
        let path = |of: fn(&PathsReport) -> f64| {
            let value = other.paths.as_ref().map(of);
            value.map_or_else(String::new, |v| format!("{v:.3}"))
        };
        table.add_row([
            other.policy.to_owned(),
            percent(other.share),
            percent(other.bound),
            percent(other.ring_share),
            other.leaves.to_string(),
            other.segments.to_string(),
            other.pods.to_string(),
            path(|p| p.max_over_mean),
            path(|p| p.busiest_over_bound),
            path(|p| p.slow_down),
            path(|p| p.slow_down_hashed),
        ]);
    }
    table
}

fn why(job: &JobReport) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "  why here:");
    for room in job.rooms.iter().take(ROOMS) {
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
    if job.rooms.len() > ROOMS {
        let _ = writeln!(text, "    and {} leaves more", job.rooms.len() - ROOMS);
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
            "    no choice of free hosts is on fewer than {}",
            counted(least, "leaf", "leaves")
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

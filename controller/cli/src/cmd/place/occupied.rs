//! Files that say which jobs run where, and which hosts are drained.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ::topology::section::{Section, parse};
use ::topology::{HostId, Topology};
use serde::Serialize;

use crate::failure::Failure;
use crate::input;

/// A job that runs.
#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cmd) struct Entry {
    pub(in crate::cmd) name: String,
    pub(in crate::cmd) hosts: Vec<String>,
    /// Time until it ends at the latest, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd) left_s: Option<u64>,
}

/// All that is taken of a fabric.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(in crate::cmd) struct Occupied {
    pub(in crate::cmd) jobs: Vec<Entry>,
    pub(in crate::cmd) drained: Vec<String>,
}

impl Occupied {
    /// The file that [`read`] reads.
    pub(in crate::cmd) fn to_yaml(&self) -> String {
        let list = |names: &[String]| names.join(", ");
        let mut text = String::from(if self.jobs.is_empty() { "" } else { "jobs:\n" });
        for job in &self.jobs {
            let left = job
                .left_s
                .map(|s| format!(", left_s: {s}"))
                .unwrap_or_default();
            let _ = writeln!(
                text,
                "  - {{name: {}, hosts: [{}]{left}}}",
                job.name,
                list(&job.hosts)
            );
        }
        let _ = writeln!(text, "drained: [{}]", list(&self.drained));
        text
    }
}

/// What `meridian place --format json` has beside [`Occupied`].
const REPORT: [&str; 9] = [
    "topology",
    "policy",
    "free_after",
    "taken_after",
    "drained",
    "jobs",
    "moves",
    "compared",
    "occupied",
];

/// Reads such a file, or what `meridian place --format json` printed.
pub(in crate::cmd) fn read(name: &str, text: &str) -> Result<Occupied, Failure> {
    let what = "a list of what is taken";
    let is_report = text.contains("\"occupied\"") && text.contains("\"topology\"");
    let known = if is_report {
        &REPORT[..]
    } else {
        &["jobs", "drained"][..]
    };
    let read = parse(name, text, what, known, |file| {
        if is_report {
            file.section("occupied", what, &["jobs", "drained"], occupied)
        } else {
            occupied(file)
        }
    });
    read.map_err(|report| input::render(&report))
}

fn occupied(section: &mut Section<'_, '_, '_>) -> Option<Occupied> {
    let entry = |job: &mut Section<'_, '_, '_>| {
        let left_s = if job.has("left_s") {
            Some(u64::from(job.number("left_s")?))
        } else {
            None
        };
        Some(Entry {
            name: job.name("name")?,
            hosts: job.words("hosts")?,
            left_s,
        })
    };
    let jobs = if section.has("jobs") {
        section.sections(
            "jobs",
            "a job that runs",
            &["name", "hosts", "left_s"],
            entry,
        )?
    } else {
        Vec::new()
    };
    let drained = if section.has("drained") {
        section.words("drained")?
    } else {
        Vec::new()
    };
    Some(Occupied { jobs, drained })
}

/// Hosts by name; `h[3-7]` stands for five of them.
pub(in crate::cmd) fn hosts(topology: &Topology, names: &[String]) -> Result<Vec<HostId>, Failure> {
    let mut seen = BTreeSet::new();
    let mut hosts = Vec::new();
    for name in names.iter().flat_map(|name| expand(name)) {
        let id = topology
            .find_host(&name)
            .map_err(|error| Failure::Input(format!("error: {error}")))?;
        if !seen.insert(id) {
            return Err(Failure::Input(format!("error: host {name} is named twice")));
        }
        hosts.push(id);
    }
    Ok(hosts)
}

fn expand(name: &str) -> Vec<String> {
    let range = || {
        let (prefix, rest) = name.split_once('[')?;
        let (from, to) = rest.strip_suffix(']')?.split_once('-')?;
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to && to - from < 1 << 20)
            .then(|| (from..=to).map(|n| format!("{prefix}{n}")).collect())
    };
    range().unwrap_or_else(|| vec![name.to_owned()])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranges_are_names() {
        assert_eq!(expand("h[3-5]"), ["h3", "h4", "h5"]);
        assert_eq!(expand("h[5-3]"), ["h[5-3]"]);
        assert_eq!(expand("h7"), ["h7"]);
    }

    #[test]
    fn a_file_has_jobs_and_drained_hosts() {
        let text = "jobs:\n  - {name: a, hosts: [h1, 'h[5-8]'], left_s: 90}\n  - name: b\n    hosts: [h2]\ndrained: [h9]\n";
        let read_back = read("now.yaml", text).unwrap();
        assert_eq!(read_back.jobs.len(), 2);
        assert_eq!(read_back.drained, ["h9"]);
        assert_eq!(read_back.jobs[0].left_s, Some(90));
        assert!(read("now.yaml", "jobs:\n  - {name: a, host: [h1]}\n").is_err());
    }

    #[test]
    fn what_is_written_is_read_back() {
        let entry = |name: &str, left_s| Entry {
            name: name.to_owned(),
            hosts: vec!["h1".to_owned(), format!("{name}-2")],
            left_s,
        };
        let all = Occupied {
            jobs: vec![entry("a", Some(7)), entry("b", None)],
            drained: vec!["h9".to_owned()],
        };
        assert_eq!(read("now.yaml", &all.to_yaml()).unwrap(), all);
        assert_eq!(
            read("now.yaml", &Occupied::default().to_yaml()).unwrap(),
            Occupied::default()
        );
        let json = format!(
            r#"{{"topology": "t", "jobs": [{{"share": 0.5}}], "occupied": {}}}"#,
            sonic_rs::to_string(&all).unwrap()
        );
        assert_eq!(read("first.json", &json).unwrap(), all);
    }
}

//! Files that say which jobs run where, and which hosts are drained.

use std::collections::BTreeSet;

use ::topology::section::parse;
use ::topology::{HostId, Topology};

use crate::failure::Failure;
use crate::input;

/// A job that runs.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) hosts: Vec<String>,
    /// Time until it ends at the latest, s.
    pub(super) left_s: Option<f64>,
}

/// Reads such a file: jobs, and drained hosts.
pub(super) fn read(name: &str, text: &str) -> Result<(Vec<Entry>, Vec<String>), Failure> {
    let known = ["jobs", "drained"];
    let read = parse(name, text, "a list of what is taken", &known, |file| {
        let known = ["name", "hosts", "left_s"];
        let entry = |job: &mut ::topology::section::Section<'_, '_, '_>| {
            let left_s = if job.has("left_s") {
                Some(f64::from(job.number("left_s")?))
            } else {
                None
            };
            Some(Entry {
                name: job.name("name")?,
                hosts: job.words("hosts")?,
                left_s,
            })
        };
        let jobs = if file.has("jobs") {
            file.sections("jobs", "a job that runs", &known, entry)?
        } else {
            Vec::new()
        };
        let drained = if file.has("drained") {
            file.words("drained")?
        } else {
            Vec::new()
        };
        Some((jobs, drained))
    });
    read.map_err(|report| input::render(&report))
}

/// Hosts by name; `h[3-7]` stands for five of them.
pub(super) fn hosts(topology: &Topology, names: &[String]) -> Result<Vec<HostId>, Failure> {
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
        let (jobs, drained) = read("now.yaml", text).unwrap();
        assert_eq!((jobs.len(), drained), (2, vec!["h9".to_owned()]));
        assert_eq!(jobs[0].left_s, Some(90.0));
        assert!(read("now.yaml", "jobs:\n  - {name: a, host: [h1]}\n").is_err());
    }
}

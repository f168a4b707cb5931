//! Job files.
//!
//! ```yaml
//! name: allreduce
//! hosts: 8                # hosts that take part
//! ranks_per_host: 4       # one rank per GPU
//! collective:
//!   kind: all-reduce
//!   algorithm: hierarchical   # or ring: one ring through all ranks
//!   bytes_per_rank: 16MiB     # the array that is reduced
//!   channels: 4               # rings in parallel; channel c runs on rail c
//!   iterations: 1             # may be left out
//! ```

use super::job::{Algorithm, Collective, Job};
use std::path::{Path, PathBuf};
use topology::Report;
use topology::section::{Section, parse};

/// Why a job could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The file can't be read.
    #[error("cannot read the job file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file was read and is wrong.
    #[error("{0}")]
    Invalid(Report),
}

/// Most hosts, ranks on a host, and channels; far above what there is.
const MAX_HOSTS: u32 = 1 << 20;
const MAX_RANKS: u32 = 1 << 10;
pub(super) const MAX_CHANNELS: u32 = 256;
/// Most bytes of an array: a petabyte.
pub(super) const MAX_BYTES: u64 = 1 << 50;

impl Job {
    /// Reads a job file.
    ///
    /// # Errors
    /// The file can't be read, or is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, JobError> {
        let path = path.as_ref();
        let read = |source| JobError::Read {
            path: path.to_owned(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(read)?;
        Self::parse(&path.display().to_string(), &text).map_err(JobError::Invalid)
    }

    /// Reads a job from text; `name` is for messages.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Report> {
        let known = ["name", "hosts", "ranks_per_host", "collective"];
        parse(name, text, "a job", &known, |job| {
            let name = job.name("name");
            let hosts = count(job, "hosts", MAX_HOSTS);
            let ranks_per_host = count(job, "ranks_per_host", MAX_RANKS);
            let known = [
                "kind",
                "algorithm",
                "bytes_per_rank",
                "channels",
                "iterations",
            ];
            let collective = job.section("collective", "a collective", &known, collective);
            let ranks = u64::from(hosts?) * u64::from(ranks_per_host?);
            if ranks > u64::from(super::grid::MAX_RANKS) {
                let message = format!("{ranks} ranks on all hosts");
                let most = super::grid::MAX_RANKS;
                job.reject("hosts", message, format!("a job has at most {most} ranks"));
                return None;
            }
            Some(Self {
                name: name?,
                hosts: hosts?,
                ranks_per_host: ranks_per_host?,
                collective: collective?,
            })
        })
    }
}

fn collective(section: &mut Section<'_, '_, '_>) -> Option<Collective> {
    let kind = section.choice("kind", &[("all-reduce", ())]);
    let algorithm = section.choice("algorithm", &Algorithm::NAMES);
    let bytes_per_rank = section.size("bytes_per_rank");
    if bytes_per_rank.is_some_and(|bytes| !(1..=MAX_BYTES).contains(&bytes)) {
        let message = "an array has at least one byte and at most a petabyte";
        section.reject(
            "bytes_per_rank",
            message,
            "write the size of the gradients, like 16MiB",
        );
    }
    let channels = count(section, "channels", MAX_CHANNELS);
    let iterations = if section.has("iterations") {
        count(section, "iterations", u32::MAX)
    } else {
        Some(1)
    };
    kind?;
    Some(Collective {
        algorithm: algorithm?,
        bytes_per_rank: bytes_per_rank?,
        channels: channels?,
        iterations: iterations?,
    })
}

/// A number from 1 to `most`.
pub(super) fn count(section: &mut Section<'_, '_, '_>, field: &str, most: u32) -> Option<u32> {
    let number = section.number(field)?;
    if !(1..=most).contains(&number) {
        let message = format!("`{field}` is {number}");
        section.reject(field, message, format!("write a number from 1 to {most}"));
        return None;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const GOOD: &str = "\
name: allreduce
hosts: 8
ranks_per_host: 4
collective:
  kind: all-reduce
  algorithm: ring
  bytes_per_rank: 16MiB
  channels: 4
";

    #[test]
    fn a_job_reads_as_it_is_written() {
        let job = Job::parse("job.yaml", GOOD).unwrap();
        assert_eq!(
            (job.name.as_str(), job.hosts, job.ranks_per_host),
            ("allreduce", 8, 4)
        );
        let collective = Collective {
            algorithm: Algorithm::Ring,
            bytes_per_rank: 16 << 20,
            channels: 4,
            iterations: 1,
        };
        assert_eq!(job.collective, collective);
    }

    #[test]
    fn all_that_is_wrong_is_said_where_it_is() {
        let bad = GOOD
            .replace("hosts: 8", "hosts: 0")
            .replace("algorithm: ring", "algorithm: rinq")
            .replace("channels: 4", "chanels: 4");
        let report = Job::parse("job.yaml", &bad).unwrap_err();
        let lines: Vec<usize> = report.problems().iter().map(|p| p.line).collect();
        let text = report.to_string();
        assert!(
            lines.contains(&2) && lines.contains(&6) && lines.contains(&8),
            "{text}"
        );
        assert!(text.contains("1 to 1048576"), "{text}");
        assert!(text.contains("ring, hierarchical"), "{text}");
        assert!(text.contains("channels"), "{text}");
    }

    #[test]
    fn the_ready_jobs_are_good() {
        let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/jobs");
        let mut seen = 0;
        for file in std::fs::read_dir(jobs).unwrap() {
            crate::workload::Workload::load(file.unwrap().path()).unwrap();
            seen += 1;
        }
        assert!(seen >= 2);
    }
}

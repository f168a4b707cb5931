//! Arguments of `meridian simulate churn`, and what is wrong with them.

use std::path::PathBuf;

use clap::Args;
use controller::simulate::churn::{Contender, Discipline, Setup};

use crate::args::Format;
use crate::failure::Failure;

/// Arguments of `meridian simulate churn`.
#[derive(Debug, Args)]
#[command(after_help = "\
Jobs arrive in a Poisson stream and run for exponential times; all policies see the same jobs start and
end at the same times. docs/reference-placement.md defines every figure.

Examples:
  meridian simulate churn topologies/irregular-120.yaml --load 0.7
  meridian simulate churn topologies/irregular-120.yaml --load 0.7,0.95 --queue fifo --format json
  meridian simulate churn fabric.yaml --load 0.5,0.6,0.7,0.8,0.9 --plot churn.svg")]
pub(crate) struct ChurnArgs {
    /// The topology file.
    pub(crate) topology: PathBuf,
    /// Offered loads: hosts that jobs ask for on average, as a share of all.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SHARE,...",
        default_value = "0.7"
    )]
    pub(crate) load: Vec<f64>,
    /// Sizes of jobs in hosts, and how often each comes.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "HOSTS:WEIGHT,...",
        default_value = "1:40,2:20,4:14,8:10,16:8,32:5,64:3"
    )]
    pub(crate) sizes: Vec<String>,
    /// Who places: `all`, or names of policies.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        default_value = "all"
    )]
    pub(crate) policies: Vec<String>,
    /// Runs with seeds of their own, at each load.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: u32,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Jobs that arrive in a run.
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u32).range(20..=10_000_000))]
    pub(crate) jobs: u32,
    /// Jobs that don't fit at once: `reject` (they go away), `fifo` (they wait, and nobody overtakes) or
    /// `backfill` (who fits overtakes).
    #[arg(long, value_name = "NAME", default_value = "reject")]
    pub(crate) queue: String,
    /// Jobs state a time limit of between 1 and this many times what they take.
    #[arg(long, default_value_t = 1.5, value_name = "TIMES")]
    pub(crate) overstated: f64,
    /// Hosts that `meridian-defrag` may move running jobs to, for each host that a job starts on.
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    pub(crate) moves: f64,
    /// NICs per host that a job's rings use [default: as many as every host has].
    #[arg(long, value_name = "N")]
    pub(crate) rails: Option<usize>,
    /// Write a plot of the shares over the loads.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

impl ChurnArgs {
    /// The setup at one load.
    pub(crate) fn setup(&self, load: f64) -> Result<Setup, Failure> {
        let sizes: Result<Vec<(u32, u32)>, Failure> = self.sizes.iter().map(|s| size(s)).collect();
        let queues: Vec<&str> = Discipline::NAMES.iter().map(|(name, _)| *name).collect();
        let queue = Discipline::NAMES
            .iter()
            .find(|(name, _)| *name == self.queue);
        let (_, discipline) = queue.ok_or_else(|| {
            input(format!(
                "--queue {}: there are {}",
                self.queue,
                queues.join(", ")
            ))
        })?;
        Ok(Setup {
            load,
            sizes: sizes?,
            jobs: self.jobs as usize,
            discipline: *discipline,
            overstated: self.overstated,
            moves: self.moves,
        })
    }

    /// Who takes part.
    pub(crate) fn contenders(&self) -> Result<Vec<Contender>, Failure> {
        let all = Contender::all();
        if self.policies.iter().any(|name| name == "all") {
            return Ok(all);
        }
        for name in &self.policies {
            if !all.iter().any(|c| c.name() == name) {
                let names: Vec<&str> = all.iter().map(|c| c.name()).collect();
                return Err(input(format!(
                    "--policies {name}: no policy is called that; there are all, {}",
                    names.join(", ")
                )));
            }
        }
        let named = |c: &Contender| self.policies.iter().any(|name| name == c.name());
        Ok(all.into_iter().filter(named).collect())
    }
}

fn size(text: &str) -> Result<(u32, u32), Failure> {
    let parsed = text.split_once(':').and_then(|(hosts, weight)| {
        let hosts = hosts.trim().parse().ok().filter(|h| *h > 0)?;
        Some((hosts, weight.trim().parse().ok()?))
    });
    parsed.ok_or_else(|| {
        input(format!(
            "--sizes {text}: write hosts and weight, like 8:10, with at least one host"
        ))
    })
}

fn input(message: String) -> Failure {
    Failure::Input(format!("error: {message}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes_are_hosts_and_weights() {
        assert_eq!(size("8:10").unwrap(), (8, 10));
        for bad in ["8", "0:3", "8:x", ":3", "-1:2", "8:-1"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}

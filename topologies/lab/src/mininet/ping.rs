//! Who reaches whom.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::try_join_all;
use rustc_hash::FxHashSet;

use super::error::Error;
use super::lab::Lab;
use super::plan::{HostPlan, NicPlan, Plan};

/// Pings that run at once in one host.
const PARALLEL: usize = 6;
/// Seconds that one ping waits. A lost one is repeated once.
const WAIT_S: u64 = 1;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A NIC by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicName {
    /// Its host.
    pub host: String,
    /// Its rail.
    pub rail: u16,
    /// Its address.
    pub address: IpAddr,
}

/// A ping from one NIC's address to another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where it was sent.
    pub from: NicName,
    /// Where it should have been answered.
    pub to: NicName,
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { from, to } = self;
        write!(
            f,
            "{} rail {} ({}) -> {} rail {} ({})",
            from.host, from.rail, from.address, to.host, to.rail, to.address
        )
    }
}

/// What [`Lab::ping_all`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingReport {
    /// Pairs that were tried.
    pub tried: usize,
    /// Those that got no answer, twice.
    pub failed: Vec<Pair>,
}

impl Lab {
    /// Pings every NIC from every NIC of every other host.
    ///
    /// # Errors
    /// When the runner has ended or a host can't run `ping`. Lost pings are in the report.
    pub async fn ping_all(&self, family: Family) -> Result<PingReport, Error> {
        let plan = self.plan();
        let hosts = plan.hosts.iter().map(|from| async move {
            let pairs = pairs(plan, from, family);
            let failed = self.ping(from, &pairs).await?;
            Ok((pairs.len(), pairs, failed))
        });
        let mut report = PingReport::default();
        for (tried, pairs, failed) in try_join_all(hosts).await? {
            report.tried += tried;
            report.failed.extend(
                pairs
                    .into_iter()
                    .filter(|pair| failed.contains(&(pair.from.address, pair.to.address))),
            );
        }
        Ok(report)
    }

    async fn ping(
        &self,
        from: &HostPlan,
        pairs: &[Pair],
    ) -> Result<FxHashSet<(IpAddr, IpAddr)>, Error> {
        let script = script(pairs);
        let rounds = pairs.len().div_ceil(PARALLEL) as u64;
        let timeout = Duration::from_secs(30 + rounds * 2 * (WAIT_S + 1));
        let output = self.exec(&from.name, &script, timeout).await?;
        let failed = parse(&output.stdout);
        match failed {
            Some(failed) if output.ok() => Ok(failed),
            _ => Err(Error::Tool {
                tool: "ping",
                from: from.name.clone(),
                to: format!("{} addresses", pairs.len()),
                output: output.stdout + &output.stderr,
            }),
        }
    }
}

fn pairs(plan: &Plan, from: &HostPlan, family: Family) -> Vec<Pair> {
    let name = |host: &HostPlan, nic: &NicPlan| NicName {
        host: host.name.clone(),
        rail: nic.rail,
        address: match family {
            Family::V4 => nic.v4.into(),
            Family::V6 => nic.v6.into(),
        },
    };
    let others = || plan.hosts.iter().filter(|to| to.name != from.name);
    from.nics
        .iter()
        .flat_map(|source| {
            others().flat_map(move |to| {
                to.nics.iter().map(move |nic| Pair {
                    from: name(from, source),
                    to: name(to, nic),
                })
            })
        })
        .collect()
}

/// Prints the pairs that failed, one per line.
fn script(pairs: &[Pair]) -> String {
    let list: Vec<String> = pairs
        .iter()
        .map(|pair| format!("{} {}", pair.from.address, pair.to.address))
        .collect();
    let ping = format!("ping -n -q -c 1 -W {WAIT_S} -I \"$0\" \"$1\" > /dev/null 2>&1");
    format!(
        "command -v ping > /dev/null || {{ echo 'ping is not installed: apt-get install \
         iputils-ping' >&2; exit 127; }}\n\
         xargs -P {PARALLEL} -n 2 sh -c '{ping} || {ping} || echo \"$0 $1\"' <<'END'\n{}\nEND\n",
        list.join("\n")
    )
}

/// The pairs that the script printed; `None` when it printed something else.
fn parse(printed: &str) -> Option<FxHashSet<(IpAddr, IpAddr)>> {
    printed
        .lines()
        .map(|line| {
            let (from, to) = line.split_once(' ')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_pairs_are_understood() {
        let failed = parse("10.0.1.2 10.0.2.2\nfd00::1 fd00::2\n").unwrap();
        assert_eq!(failed.len(), 2);
        assert!(failed.contains(&("10.0.1.2".parse().unwrap(), "10.0.2.2".parse().unwrap())));
        assert_eq!(parse("sh: ping: not found\n"), None);
        assert_eq!(parse(""), Some(FxHashSet::default()));
    }
}

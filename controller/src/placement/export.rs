//! A placement as files that launchers and schedulers read today.
//!
//! All writers take the hosts by slot: the first has ranks 0 to `ranks_per_host - 1`, and so on. NCCL lays its
//! rings by rank, so the order of hosts is the order of rings.

use std::fmt::Write as _;

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line per rank: rank, host, GPU, address of the NIC beside it. For launchers that set `RANK`
    /// and `LOCAL_RANK` themselves, and for libraries that take a list of addresses in order.
    Ranks,
    /// One `torchrun` command per host.
    Torchrun,
    /// Open MPI's hostfile: `host slots=8`.
    Hostfile,
    /// Open MPI's rankfile: `rank 0=host slot=0`.
    Rankfile,
    /// The hostfile of MPICH's and Intel MPI's `mpiexec -f`: `host:8`.
    Mpich,
    /// Slurm's compressed list of nodes, for `--nodelist`.
    SlurmNodes,
    /// One host name per rank, for `SLURM_HOSTFILE` with `--distribution=arbitrary`.
    SlurmHostfile,
    /// Kubernetes: node affinity for the job's pods, as a patch of its pod template.
    Kubernetes,
    /// Kubernetes: the first rank of each node, as a ConfigMap.
    KubernetesRanks,
}

impl Format {
    /// All formats, with their names.
    pub const NAMES: [(&'static str, Self); 9] = [
        ("ranks", Self::Ranks),
        ("torchrun", Self::Torchrun),
        ("hostfile", Self::Hostfile),
        ("rankfile", Self::Rankfile),
        ("mpich", Self::Mpich),
        ("slurm-nodes", Self::SlurmNodes),
        ("slurm-hostfile", Self::SlurmHostfile),
        ("kubernetes", Self::Kubernetes),
        ("kubernetes-ranks", Self::KubernetesRanks),
    ];
}

/// A host of a placed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedHost {
    /// Its name, as the launcher knows it.
    pub name: String,
    /// Address of the NIC beside each rank's GPU.
    pub addresses: Vec<String>,
}

/// The placement of `job` in this format. Ends with a newline unless there are no hosts.
#[must_use]
pub fn export(format: Format, job: &str, hosts: &[PlacedHost], ranks_per_host: u32) -> String {
    match format {
        Format::Ranks => lines(hosts, ranks_per_host, |rank, local, host| {
            let address = host
                .addresses
                .get(local as usize)
                .map_or("", String::as_str);
            format!("{rank} {} {local} {address}", host.name)
        }),
        Format::Torchrun => torchrun(hosts, ranks_per_host),
        Format::Hostfile => by_host(hosts, |host| format!("{host} slots={ranks_per_host}")),
        Format::Mpich => by_host(hosts, |host| format!("{host}:{ranks_per_host}")),
        Format::Rankfile => lines(hosts, ranks_per_host, |rank, local, host| {
            format!("rank {rank}={} slot={local}", host.name)
        }),
        Format::SlurmNodes => {
            let names: Vec<&str> = hosts.iter().map(|h| h.name.as_str()).collect();
            let mut text = node_list(&names);
            if !text.is_empty() {
                text.push('\n');
            }
            text
        }
        Format::SlurmHostfile => lines(hosts, ranks_per_host, |_, _, host| host.name.clone()),
        Format::Kubernetes => affinity(job, hosts),
        Format::KubernetesRanks => config_map(job, hosts, ranks_per_host),
    }
}

fn by_host(hosts: &[PlacedHost], line: impl Fn(&str) -> String) -> String {
    hosts.iter().map(|host| line(&host.name) + "\n").collect()
}

/// The first host has the rendezvous, at the address of its first NIC.
fn torchrun(hosts: &[PlacedHost], ranks_per_host: u32) -> String {
    let Some(first) = hosts.first() else {
        return String::new();
    };
    let master = first.addresses.first().unwrap_or(&first.name);
    let nodes = hosts.len();
    let line = |(rank, host): (usize, &PlacedHost)| {
        format!(
            "{}: torchrun --nnodes={nodes} --nproc-per-node={ranks_per_host} --node-rank={rank} \
             --master-addr={master} --master-port=29500\n",
            host.name
        )
    };
    hosts.iter().enumerate().map(line).collect()
}

fn lines(
    hosts: &[PlacedHost],
    ranks_per_host: u32,
    line: impl Fn(u64, u32, &PlacedHost) -> String,
) -> String {
    let mut text = String::new();
    for (slot, host) in (0u64..).zip(hosts) {
        for local in 0..ranks_per_host {
            let rank = slot * u64::from(ranks_per_host) + u64::from(local);
            text.push_str(&line(rank, local, host));
            text.push('\n');
        }
    }
    text
}

/// Names as Slurm writes a set of nodes: `gpu[001-003,007],login`. Names that end in digits are put
/// together where they agree in what is before and in the number of digits; the set is in order of names.
#[must_use]
pub fn node_list(names: &[&str]) -> String {
    let mut groups: std::collections::BTreeMap<(&str, usize), Vec<u64>> =
        std::collections::BTreeMap::new();
    let mut plain: std::collections::BTreeSet<&str> = std::collections::BTreeSet::new();
    for name in names {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[stem.len()..];
        match digits.parse::<u64>() {
            // A number without leading zeros has any width.
            Ok(number) => {
                let padded = digits.len() > 1 && digits.starts_with('0');
                let width = if padded { digits.len() } else { 0 };
                groups.entry((stem, width)).or_default().push(number);
            }
            Err(_) => {
                plain.insert(name);
            }
        }
    }
    join_widths(&mut groups);
    let mut parts: Vec<String> = plain.into_iter().map(str::to_owned).collect();
    for ((stem, width), mut numbers) in groups {
        numbers.sort_unstable();
        numbers.dedup();
        if let [number] = numbers[..] {
            parts.push(format!("{stem}{number:0width$}"));
        } else {
            parts.push(format!("{stem}[{}]", runs(&numbers, width)));
        }
    }
    parts.sort_unstable();
    parts.join(",")
}

/// Numbers that fill the width of padded ones belong to them: 100 to 001 to 099.
fn join_widths(groups: &mut std::collections::BTreeMap<(&str, usize), Vec<u64>>) {
    let padded: Vec<(&str, usize)> = groups
        .keys()
        .copied()
        .filter(|(_, width)| *width > 0)
        .collect();
    for (stem, width) in padded {
        let Some(free) = groups.get_mut(&(stem, 0)) else {
            continue;
        };
        let (fill, rest): (Vec<u64>, Vec<u64>) =
            free.iter().partition(|n| n.to_string().len() == width);
        *free = rest;
        if free.is_empty() {
            groups.remove(&(stem, 0));
        }
        groups.entry((stem, width)).or_default().extend(fill);
    }
}

fn runs(numbers: &[u64], width: usize) -> String {
    let mut text = String::new();
    let mut from = 0;
    while from < numbers.len() {
        let mut to = from;
        while to + 1 < numbers.len() && numbers[to + 1] == numbers[to] + 1 {
            to += 1;
        }
        let comma = if text.is_empty() { "" } else { "," };
        let first = numbers[from];
        let _ = match to - from {
            0 => write!(text, "{comma}{first:0width$}"),
            _ => write!(text, "{comma}{first:0width$}-{:0width$}", numbers[to]),
        };
        from = to + 1;
    }
    text
}

fn affinity(job: &str, hosts: &[PlacedHost]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let name = dns_name(job);
    let mut text = format!(
        "\
# kubectl patch statefulset {name} --patch-file THIS: one pod per host, on these hosts.
spec:
  template:
    metadata:
      labels:
        meridian.io/job: {name}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  meridian.io/job: {name}
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - key: kubernetes.io/hostname
                    operator: In
                    values:
"
    );
    for host in hosts {
        let _ = writeln!(text, "                      - {}", quoted(&host.name));
    }
    text
}

fn config_map(job: &str, hosts: &[PlacedHost], ranks_per_host: u32) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let name = dns_name(job);
    let mut text = format!(
        "\
# kubectl apply -f THIS: the pod on a node has the ranks from the number beside the node's name on.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}-ranks
data:
"
    );
    for (slot, host) in (0u64..).zip(hosts) {
        let first = slot * u64::from(ranks_per_host);
        let _ = writeln!(text, "  {}: \"{first}\"", quoted(&host.name));
    }
    text
}

/// A name as Kubernetes allows it: lower-case letters, digits and dashes, at most 50 of them.
fn dns_name(name: &str) -> String {
    let mapped: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .take(50)
        .collect();
    let trimmed = mapped.trim_matches('-');
    if trimmed.is_empty() {
        "job".to_owned()
    } else {
        trimmed.to_owned()
    }
}

/// A name that YAML reads as text, even if it looks like a number.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host(name: &str) -> PlacedHost {
        PlacedHost {
            name: name.to_owned(),
            addresses: vec!["10.0.0.1".to_owned(), "10.0.1.1".to_owned()],
        }
    }

    #[test]
    fn every_launcher_gets_its_form() {
        let hosts = [host("h2"), host("h1")];
        let text = |format| export(format, "My Job", &hosts, 2);
        assert_eq!(
            text(Format::Ranks),
            "0 h2 0 10.0.0.1\n1 h2 1 10.0.1.1\n2 h1 0 10.0.0.1\n3 h1 1 10.0.1.1\n"
        );
        assert_eq!(text(Format::Hostfile), "h2 slots=2\nh1 slots=2\n");
        assert_eq!(
            text(Format::Rankfile),
            "rank 0=h2 slot=0\nrank 1=h2 slot=1\nrank 2=h1 slot=0\nrank 3=h1 slot=1\n"
        );
        assert_eq!(text(Format::SlurmHostfile), "h2\nh2\nh1\nh1\n");
        assert_eq!(text(Format::SlurmNodes), "h[1-2]\n");
        assert_eq!(text(Format::Mpich), "h2:2\nh1:2\n");
        let torchrun = text(Format::Torchrun);
        let second = torchrun.lines().nth(1).unwrap_or("");
        assert_eq!(
            second,
            "h1: torchrun --nnodes=2 --nproc-per-node=2 --node-rank=1 --master-addr=10.0.0.1 --master-port=29500"
        );
        let affinity = text(Format::Kubernetes);
        assert!(affinity.contains("meridian.io/job: my-job"), "{affinity}");
        assert!(
            affinity.ends_with("- \"h2\"\n                      - \"h1\"\n"),
            "{affinity}"
        );
        let map = text(Format::KubernetesRanks);
        assert!(map.contains("name: my-job-ranks"), "{map}");
        assert!(map.ends_with("  \"h2\": \"0\"\n  \"h1\": \"2\"\n"), "{map}");
    }

    #[test]
    fn node_lists_are_as_slurm_writes_them() {
        assert_eq!(
            node_list(&["gpu001", "gpu003", "gpu002", "gpu007", "login"]),
            "gpu[001-003,007],login"
        );
        assert_eq!(node_list(&["n9", "n10", "n11"]), "n[9-11]");
        assert_eq!(node_list(&["n099", "n100", "n1000"]), "n1000,n[099-100]");
        assert_eq!(node_list(&["a1"]), "a1");
        assert_eq!(node_list(&[]), "");
    }

    /// What Slurm would make of a list.
    fn expand(list: &str) -> Vec<String> {
        let mut names = Vec::new();
        let mut rest = list;
        while !rest.is_empty() {
            let end = rest.find([',', '[']).unwrap_or(rest.len());
            let stem = &rest[..end];
            if rest[end..].starts_with('[') {
                let close = rest.find(']').unwrap_or(rest.len());
                for range in rest[end + 1..close].split(',') {
                    let (a, b) = range.split_once('-').unwrap_or((range, range));
                    let (from, to): (u64, u64) = (a.parse().unwrap_or(0), b.parse().unwrap_or(0));
                    let width = if a.starts_with('0') { a.len() } else { 0 };
                    names.extend((from..=to).map(|n| format!("{stem}{n:0width$}")));
                }
                rest = &rest[close + 1..];
            } else {
                names.push(stem.to_owned());
                rest = &rest[end..];
            }
            rest = rest.trim_start_matches(',');
        }
        names.sort_unstable();
        names
    }

    proptest! {
        #[test]
        fn node_lists_expand_to_what_went_in(
            numbers in proptest::collection::btree_set((0u64..300, 0usize..4, 0u8..2), 0..40),
        ) {
            let mut names: Vec<String> = numbers
                .iter()
                .map(|(n, width, stem)| format!("{}{n:0width$}", if *stem == 0 { "gpu-" } else { "n" }))
                .collect();
            names.sort_unstable();
            names.dedup();
            let list = node_list(&names.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(expand(&list), names);
        }
    }
}

//! Switches that are already there: containers, another lab, hardware. The topology says which
//! switches there must be; a list of `NAME=HOST:PORT` says where their P4Runtime servers are.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use p4runtime::v1::CapabilitiesRequest;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use tonic::Code;
use topology::Topology;

use crate::fabric::{Address, Fabric, SwitchEndpoint};

/// One thing that is wrong with the list or with a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not `NAME=HOST:PORT`.
    #[error("'{text}' is not NAME=HOST:PORT ({reason}); an example is leaf1=127.0.0.1:9559")]
    Malformed {
        /// What was given.
        text: String,
        /// What does not fit.
        reason: &'static str,
    },
    /// The topology has no such switch.
    #[error("there is no switch '{name}' in the topology; switches are: {valid}")]
    UnknownSwitch {
        /// What was given.
        name: String,
        /// Those there are.
        valid: String,
    },
    /// A switch has more than one address.
    #[error("switch '{name}' has two addresses, {first} and {second}; give one")]
    Twice {
        /// The switch.
        name: String,
        /// Its first address.
        first: String,
        /// Its second address.
        second: String,
    },
    /// A switch has no address.
    #[error("no address for switch '{name}'; add {name}=HOST:PORT")]
    Missing {
        /// The switch.
        name: String,
    },
    /// Nobody answers.
    #[error("switch '{name}': {reason}; is its P4Runtime server running there?")]
    Unreachable {
        /// The switch.
        name: String,
        /// What happened, with the address.
        reason: String,
    },
    /// Somebody answers, but not P4Runtime.
    #[error("switch '{name}': what listens at {address} does not speak P4Runtime: {reason}")]
    NotP4Runtime {
        /// The switch.
        name: String,
        /// Where it was tried.
        address: String,
        /// What it answered.
        reason: String,
    },
}

/// Everything that is wrong, one line per fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error(
    /// At least one.
    pub Vec<Fault>,
);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Reads a list of `NAME=HOST:PORT` against a topology; the endpoints are in its order. An IPv6
/// host stands in brackets. Several switches may share an address: their device ids differ.
///
/// # Errors
/// With all that is wrong: malformed entries, unknown names, switches named twice or not at all.
pub fn endpoints(
    topology: &Topology,
    list: &[impl AsRef<str>],
) -> Result<Vec<SwitchEndpoint>, Error> {
    let mut faults = Vec::new();
    let mut addresses: BTreeMap<&str, &str> = BTreeMap::new();
    for text in list.iter().map(AsRef::as_ref) {
        let (name, address) = match parse(text) {
            Ok(entry) => entry,
            Err(reason) => {
                faults.push(Fault::Malformed {
                    text: text.to_owned(),
                    reason,
                });
                continue;
            }
        };
        let known = topology.switches().iter().any(|switch| switch.name == name);
        if !known {
            faults.push(Fault::UnknownSwitch {
                name: name.to_owned(),
                valid: names(topology),
            });
        } else if let Some(first) = addresses.insert(name, address) {
            faults.push(Fault::Twice {
                name: name.to_owned(),
                first: first.to_owned(),
                second: address.to_owned(),
            });
        }
    }
    let mut endpoints = Vec::new();
    for switch in topology.switches() {
        match addresses.get(switch.name.as_str()) {
            Some(address) => endpoints.push(SwitchEndpoint {
                name: switch.name.clone(),
                device_id: switch.device_id,
                address: Address::Network((*address).to_owned()),
            }),
            None => faults.push(Fault::Missing {
                name: switch.name.clone(),
            }),
        }
    }
    if faults.is_empty() {
        Ok(endpoints)
    } else {
        Err(Error(faults))
    }
}

fn parse(text: &str) -> Result<(&str, &str), &'static str> {
    let (name, address) = text.split_once('=').ok_or("there is no '='")?;
    let (host, port) = address
        .rsplit_once(':')
        .ok_or("there is no port after a ':'")?;
    match port.parse::<u16>() {
        Ok(1..) => {}
        _ => return Err("the port is not a number from 1 to 65535"),
    }
    let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    match () {
        () if name.is_empty() => Err("the name is empty"),
        () if host.is_empty() => Err("the host is empty"),
        () if bare_v6 => Err("an IPv6 address must stand in brackets"),
        () if host.contains(['/', '@', ' ']) => Err("the host is no name and no IP address"),
        () => Ok((name, address)),
    }
}

fn names(topology: &Topology) -> String {
    let names: Vec<&str> = topology
        .switches()
        .iter()
        .map(|switch| switch.name.as_str())
        .collect();
    names.join(", ")
}

/// Checks that a P4Runtime server answers at every address, all at once, and hands back the
/// fabric. Tearing it down leaves the servers as they are.
///
/// # Errors
/// As [`endpoints`], and with all servers that did not answer within `timeout`.
pub async fn bring_up(
    topology: &Topology,
    list: &[impl AsRef<str>],
    timeout: Duration,
) -> Result<Fabric, Error> {
    let endpoints = endpoints(topology, list)?;
    let checks = endpoints.iter().map(|endpoint| check(endpoint, timeout));
    let faults: Vec<Fault> = join_all(checks)
        .await
        .into_iter()
        .filter_map(Result::err)
        .collect();
    if faults.is_empty() {
        Ok(Fabric::new(topology.name(), endpoints, ()))
    } else {
        Err(Error(faults))
    }
}

async fn check(endpoint: &SwitchEndpoint, timeout: Duration) -> Result<(), Fault> {
    let name = endpoint.name.clone();
    let address = endpoint.address.to_string();
    let ask = async {
        let channel = endpoint
            .channel()
            .await
            .map_err(|error| Fault::Unreachable {
                name: name.clone(),
                reason: error.to_string(),
            })?;
        let answer = P4RuntimeClient::new(channel)
            .capabilities(CapabilitiesRequest::default())
            .await;
        match answer {
            Ok(_) => Ok(()),
            // Servers older than P4Runtime 1.1 don't know the call, but know it for P4Runtime's.
            Err(status) if status.code() == Code::Unimplemented => Ok(()),
            Err(status) => Err(Fault::NotP4Runtime {
                name: name.clone(),
                address: address.clone(),
                reason: status.message().to_owned(),
            }),
        }
    };
    let silent = || Fault::Unreachable {
        name: name.clone(),
        reason: format!("no answer from {address} within {timeout:?}"),
    };
    tokio::time::timeout(timeout, ask)
        .await
        .unwrap_or_else(|_| Err(silent()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use topology::{Clos, HostCounts, generate};

    fn topology() -> Topology {
        let clos = Clos {
            segments: 2,
            hosts: HostCounts::Each(1),
            rails: 1,
            spines: Some(1),
            ..Clos::default()
        };
        generate(&clos).unwrap()
    }

    fn faults(list: &[&str]) -> Vec<Fault> {
        endpoints(&topology(), list).unwrap_err().0
    }

    #[test]
    fn a_full_list_is_in_the_topologys_order() {
        let topology = topology();
        let mut list: Vec<String> = topology
            .switches()
            .iter()
            .map(|switch| format!("{}=[::1]:{}", switch.name, 9000 + switch.device_id))
            .collect();
        list.reverse();
        let endpoints = endpoints(&topology, &list).unwrap();
        for (endpoint, switch) in endpoints.iter().zip(topology.switches()) {
            assert_eq!(endpoint.name, switch.name);
            let expected = format!("[::1]:{}", 9000 + switch.device_id);
            assert_eq!(endpoint.address.to_string(), expected);
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let names: Vec<String> = topology()
            .switches()
            .iter()
            .map(|switch| switch.name.clone())
            .collect();
        let given = [
            format!("{}=a:1", names[0]),
            format!("{}=b:2", names[0]),
            "leaf9=c:3".to_owned(),
            names[1].clone(),
        ];
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let faults = faults(&given);
        assert_eq!(faults.len(), 5, "{faults:?}");
        assert!(matches!(&faults[0], Fault::Twice { first, second, .. }
            if first == "a:1" && second == "b:2"));
        assert!(matches!(&faults[1], Fault::UnknownSwitch { name, valid }
            if name == "leaf9" && *valid == names.join(", ")));
        assert!(matches!(&faults[2], Fault::Malformed { .. }));
        assert!(matches!(&faults[3], Fault::Missing { name } if *name == names[1]));
        assert!(matches!(&faults[4], Fault::Missing { name } if *name == names[2]));
    }

    #[test]
    fn addresses_are_checked_before_anything_is_tried() {
        for bad in [
            "leaf",
            "leaf=",
            "leaf=host",
            "leaf=host:",
            "leaf=host:0",
            "leaf=host:70000",
            "=host:1",
            "leaf=:1",
            "leaf=::1:1",
            "leaf=http://host:1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(parse("leaf=host:1"), Ok(("leaf", "host:1")));
        assert_eq!(parse("leaf=[::1]:1"), Ok(("leaf", "[::1]:1")));
    }

    #[tokio::test]
    async fn servers_that_are_absent_or_silent_are_named() {
        let topology = topology();
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let absent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (silent_at, absent_at) = (silent.local_addr().unwrap(), absent.local_addr().unwrap());
        drop(absent);
        let list: Vec<String> = topology
            .switches()
            .iter()
            .enumerate()
            .map(|(n, switch)| {
                let at = if n == 0 { silent_at } else { absent_at };
                format!("{}={at}", switch.name)
            })
            .collect();
        let error = bring_up(&topology, &list, Duration::from_millis(300)).await;
        let faults = error.unwrap_err().0;
        assert_eq!(faults.len(), topology.switches().len());
        for (n, (fault, switch)) in faults.iter().zip(topology.switches()).enumerate() {
            let Fault::Unreachable { name, reason } = fault else {
                panic!("{fault:?}")
            };
            assert_eq!(*name, switch.name);
            let address = if n == 0 { silent_at } else { absent_at };
            assert!(reason.contains(&address.to_string()), "{reason}");
        }
    }
}

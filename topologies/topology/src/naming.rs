//! Names and back: `leaf-s1r0:5` is port 5 of a switch, `h1:2` is rail 2 of a host and `h1:2.1` the
//! second port of that NIC.

use crate::ids::{End, HostId, LinkId, NicId, NicPortRef, Node, PortRef, SwitchId};
use crate::model::Topology;

/// A name stands for nothing in this topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct NameError {
    /// What was not found.
    pub message: String,
    /// The nearest name, or what there is.
    pub help: String,
}

/// "did you mean" for the known name nearest to `name`, or a list of some that exist.
pub(crate) fn suggest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let limit = (name.chars().count() / 3).max(2);
    // Distances cost time in proportion to both lengths; a far longer or shorter name is no typo.
    let near = known
        .clone()
        .filter(|other| other.len().abs_diff(name.len()) <= limit && other.len() <= MAX_NAME)
        .map(|other| (strsim::osa_distance(name, other), other))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance);
    if let Some((_, other)) = near {
        return format!("did you mean `{other}`?");
    }
    let mut some = known.clone().take(8).collect::<Vec<_>>();
    some.sort_unstable();
    match known.count() {
        0 => "there are none in this file".to_owned(),
        n if n > some.len() => format!("there are {n}, such as {}", some.join(", ")),
        _ => format!("there are {}", some.join(", ")),
    }
}

/// Longest name of anything, in bytes.
pub(crate) const MAX_NAME: usize = 64;

/// Whether a name can be used: letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// The parts of an end's name: node, first number, second number.
pub(crate) fn split_end(text: &str) -> Option<(&str, u32, Option<u32>)> {
    let (node, numbers) = text.rsplit_once(':')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    match numbers.split_once('.') {
        Some((first, second)) => Some((node, number(first)?, Some(number(second)?))),
        None => Some((node, number(numbers)?, None)),
    }
}

impl Topology {
    /// The node of this name.
    ///
    /// # Errors
    /// There is none; the message names the nearest.
    pub fn find(&self, name: &str) -> Result<Node, NameError> {
        self.names.get(name).copied().ok_or_else(|| NameError {
            message: format!("no switch or host is called `{name}`"),
            help: suggest(name, self.names.keys().map(String::as_str)),
        })
    }

    /// The switch of this name.
    ///
    /// # Errors
    /// There is none; the message names the nearest.
    pub fn find_switch(&self, name: &str) -> Result<SwitchId, NameError> {
        match self.names.get(name) {
            Some(Node::Switch(id)) => Ok(*id),
            _ => Err(NameError {
                message: format!("no switch is called `{name}`"),
                help: suggest(
                    name,
                    self.switches.iter().map(|switch| switch.name.as_str()),
                ),
            }),
        }
    }

    /// The host of this name.
    ///
    /// # Errors
    /// There is none; the message names the nearest.
    pub fn find_host(&self, name: &str) -> Result<HostId, NameError> {
        match self.names.get(name) {
            Some(Node::Host(id)) => Ok(*id),
            _ => Err(NameError {
                message: format!("no host is called `{name}`"),
                help: suggest(name, self.hosts.iter().map(|host| host.name.as_str())),
            }),
        }
    }

    /// The NIC of a host on a rail.
    #[must_use]
    pub fn nic_on_rail(&self, host: HostId, rail: u16) -> Option<NicId> {
        self[host].nics().find(|nic| self[*nic].rail == rail)
    }

    /// The end of this name: `leaf-s1r0:5`, `h1:2`, `h1:2.1`.
    ///
    /// # Errors
    /// It has another form, or names a node, rail or port that is not there.
    pub fn find_end(&self, text: &str) -> Result<End, NameError> {
        let (node, first, second) = split_end(text).ok_or_else(|| NameError {
            message: format!("`{text}` names no port"),
            help: "write `switch:port`, `host:rail` or `host:rail.port`".to_owned(),
        })?;
        let missing = |what: String| NameError {
            message: format!("`{text}`: {what}"),
            help: "see `meridian topology show` for what there is".to_owned(),
        };
        match self.find(node)? {
            Node::Switch(switch) => {
                let port = u16::try_from(first)
                    .ok()
                    .filter(|port| self[switch].port(*port).is_some());
                let port = port.filter(|_| second.is_none());
                let port = port.ok_or_else(|| missing(format!("`{node}` has no such port")))?;
                Ok(End::Switch(PortRef { switch, port }))
            }
            Node::Host(host) => {
                let nic = u16::try_from(first)
                    .ok()
                    .and_then(|rail| self.nic_on_rail(host, rail));
                let nic = nic.ok_or_else(|| missing(format!("`{node}` has no rail {first}")))?;
                let port = u8::try_from(second.unwrap_or(0)).ok();
                let port = port.filter(|port| *port < self[nic].port_count);
                let port = port.ok_or_else(|| missing("the NIC has no such port".to_owned()))?;
                Ok(End::Nic(NicPortRef { nic, port }))
            }
        }
    }

    /// The name of an end, as [`find_end`](Self::find_end) reads it.
    #[must_use]
    pub fn end_name(&self, end: End) -> String {
        match end {
            End::Switch(PortRef { switch, port }) => format!("{}:{port}", self[switch].name),
            End::Nic(NicPortRef { nic, port }) if self[nic].port_count > 1 => {
                format!("{}.{port}", self.nic_name(nic))
            }
            End::Nic(NicPortRef { nic, .. }) => self.nic_name(nic),
        }
    }

    /// The name of a NIC: host and rail, `h1:2`.
    #[must_use]
    pub fn nic_name(&self, nic: NicId) -> String {
        let nic = &self[nic];
        format!("{}:{}", self[nic.host].name, nic.rail)
    }

    /// The name of a link: `leaf-s1r0:5 - spine1:1`, lower end first.
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> String {
        let [lower, upper] = self[link].ends();
        format!("{} - {}", self.end_name(lower), self.end_name(upper))
    }
}

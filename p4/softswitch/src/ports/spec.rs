//! Which interface is which port, and why one cannot be.

use std::io;

use crate::ids::Port;

/// A switch port and the interface that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The port's number in the switch.
    pub port: Port,
    /// The interface's name.
    pub interface: String,
}

impl std::str::FromStr for PortSpec {
    type Err = String;

    /// Reads `PORT@INTERFACE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (port, interface) = text
            .split_once('@')
            .ok_or_else(|| format!("{text:?} is not PORT@INTERFACE, such as 1@eth0"))?;
        let port = port
            .parse()
            .ok()
            .filter(|port| *port <= 511)
            .ok_or_else(|| format!("{port:?} is not a port number from 0 to 511"))?;
        if interface.is_empty() {
            return Err(format!("{text:?} names no interface"));
        }
        Ok(PortSpec {
            port,
            interface: interface.to_owned(),
        })
    }
}

/// Why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such interface in this network namespace.
    #[error(
        "port {port}: there is no interface {interface} in this network namespace (see `ip link`)"
    )]
    Missing {
        /// The port.
        port: Port,
        /// The interface.
        interface: String,
    },
    /// The process may not open packet sockets.
    #[error("port {port}: opening {interface} needs root, or CAP_NET_RAW and CAP_NET_ADMIN")]
    NotAllowed {
        /// The port.
        port: Port,
        /// The interface.
        interface: String,
    },
    /// Two ports have one number, or one interface.
    #[error("-i: {0} is given twice")]
    Twice(String),
    /// A port has the CPU port's number.
    #[error("-i {port}@{interface}: {port} is the CPU port, which has no interface")]
    CpuPort {
        /// The port.
        port: Port,
        /// The interface.
        interface: String,
    },
    /// Anything else the system says.
    #[error("port {port}: {interface}: {source}")]
    System {
        /// The port.
        port: Port,
        /// The interface.
        interface: String,
        /// What it said.
        source: io::Error,
    },
    /// A resource that no interface has to do with.
    #[error("cannot watch interfaces: {0}")]
    Monitor(#[from] io::Error),
}

impl OpenError {
    pub(super) fn of(spec: &PortSpec, source: io::Error) -> Self {
        let (port, interface) = (spec.port, spec.interface.clone());
        match source.kind() {
            io::ErrorKind::NotFound => OpenError::Missing { port, interface },
            io::ErrorKind::PermissionDenied => OpenError::NotAllowed { port, interface },
            _ => OpenError::System {
                port,
                interface,
                source,
            },
        }
    }
}

/// Checks that no port and no interface is there twice, and none is the CPU port.
pub(super) fn check(specs: &[PortSpec], cpu_port: Option<Port>) -> Result<(), OpenError> {
    for (at, spec) in specs.iter().enumerate() {
        if cpu_port == Some(spec.port) {
            return Err(OpenError::CpuPort {
                port: spec.port,
                interface: spec.interface.clone(),
            });
        }
        for other in &specs[..at] {
            if other.port == spec.port {
                return Err(OpenError::Twice(format!("port {}", spec.port)));
            }
            if other.interface == spec.interface {
                return Err(OpenError::Twice(format!("interface {}", spec.interface)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn port_specs() {
        let spec: PortSpec = "3@s1-eth3".parse().unwrap();
        assert_eq!(
            spec,
            PortSpec {
                port: 3,
                interface: "s1-eth3".into()
            }
        );
        for bad in ["eth0", "@eth0", "x@eth0", "512@eth0", "-1@eth0", "1@"] {
            assert!(bad.parse::<PortSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_is_there_twice() {
        let specs = |words: &[&str]| -> Vec<PortSpec> {
            words.iter().map(|word| word.parse().unwrap()).collect()
        };
        assert!(check(&specs(&["1@a", "2@b"]), Some(3)).is_ok());
        for (words, said) in [
            (&["1@a", "1@b"], "port 1"),
            (&["1@a", "2@a"], "interface a"),
            (&["1@a", "3@b"], "CPU port"),
        ] {
            let error = check(&specs(words), Some(3)).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}

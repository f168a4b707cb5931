//! What must be there before anything is built.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::error::Error;
use super::plan::Plan;
use super::program::{Program, is_executable};

/// Debian's interpreter, which Debian's Mininet is installed for, before whatever PATH has.
const INTERPRETERS: [&str; 2] = ["/usr/bin/python3", "python3"];

/// Tools of the runner and of the hosts' set-up, with their Debian packages.
const TOOLS: [(&str, &str); 4] = [
    ("mnexec", "mininet"),
    ("ip", "iproute2"),
    ("setpriv", "util-linux"),
    ("sysctl", "procps"),
];

/// Folders of tools that a user's PATH may lack.
pub(super) const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// Checks everything and returns the Python interpreter to use.
pub(super) fn check(plan: &Plan) -> Result<PathBuf, Error> {
    if std::fs::metadata("/proc/self").map_or(1, |own| own.uid()) != 0 {
        return Err(Error::NotRoot);
    }
    for (tool, package) in TOOLS {
        if !on_path(tool) {
            return Err(Error::NoTool { tool, package });
        }
    }
    namespaces()?;
    if plan.program.kind.wants_finished_frames() && !on_path("ethtool") {
        return Err(Error::NoTool {
            tool: "ethtool",
            package: "ethtool",
        });
    }
    let Program { kind, path } = &plan.program;
    if !is_executable(path) {
        return Err(Error::NoProgram {
            path: path.clone(),
            kind: *kind,
        });
    }
    free_ports(plan)?;
    interpreter()
}

/// Root in a container may lack the right; Mininet would only say that a shell ended.
fn namespaces() -> Result<(), Error> {
    let tried = Command::new("unshare")
        .args(["--net", "true"])
        .stdin(Stdio::null())
        .output();
    let reason = match tried {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::NoNamespaces { reason })
}

/// Fails with all ports that are taken.
fn free_ports(plan: &Plan) -> Result<(), Error> {
    let taken: Vec<(u16, String)> = plan
        .switches
        .iter()
        .filter(|switch| TcpListener::bind((Ipv4Addr::LOCALHOST, switch.grpc_port)).is_err())
        .map(|switch| (switch.grpc_port, switch.name.clone()))
        .collect();
    if taken.is_empty() {
        Ok(())
    } else {
        Err(Error::PortsInUse { taken })
    }
}

/// The first interpreter that can import Mininet.
fn interpreter() -> Result<PathBuf, Error> {
    let mut reason = None;
    for python in INTERPRETERS {
        let tried = Command::new(python)
            .args(["-c", "import mininet.net"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output();
        match tried {
            Ok(output) if output.status.success() => return Ok(PathBuf::from(python)),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                reason = said.lines().last().map(str::to_owned).or(reason);
            }
            Err(_) => {}
        }
    }
    Err(Error::NoMininet {
        tried: INTERPRETERS.join(", "),
        reason,
    })
}

fn on_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.map(PathBuf::from))
        .any(|folder| is_executable(&folder.join(tool)))
}

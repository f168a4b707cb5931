//! What can go wrong, and what to do about it.

use std::path::PathBuf;

use crate::mininet::program::{ProgramKind, how_to_get};

/// Why a fabric in Mininet could not be brought up or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Network namespaces need root.
    #[error("Mininet needs root: run this with sudo, or use the embedded target, which does not")]
    NotRoot,
    /// The kernel, or the container around this process, refuses network namespaces.
    #[error(
        "network namespaces can't be made here ({reason}); in a container, start it with \
         --privileged, or use the embedded target, which needs none"
    )]
    NoNamespaces {
        /// What the system said.
        reason: String,
    },
    /// No Python interpreter can import Mininet.
    #[error(
        "Mininet is not installed (tried {tried}): on Debian or Ubuntu, \
         `apt-get install --no-install-recommends mininet`{}",
        .reason.as_ref().map(|reason| format!("; Python said: {reason}")).unwrap_or_default()
    )]
    NoMininet {
        /// The interpreters that were tried.
        tried: String,
        /// What the last one said.
        reason: Option<String>,
    },
    /// A tool is missing.
    #[error("`{tool}` is not on PATH; on Debian or Ubuntu, `apt-get install {package}`")]
    NoTool {
        /// The command.
        tool: &'static str,
        /// Debian package that has it.
        package: &'static str,
    },
    /// The switch program is not there or not executable.
    #[error("there is no executable `{}`; {}", .path.display(), how_to_get(*.kind))]
    NoProgram {
        /// Where it should be.
        path: PathBuf,
        /// Which it is.
        kind: ProgramKind,
    },
    /// TCP ports for P4Runtime servers are taken.
    #[error(
        "TCP port {} of 127.0.0.1 is in use, perhaps by a fabric that is already up; stop what \
         listens there (`ss -ltnp` shows it), or choose another base port (--grpc-base-port)",
        describe_ports(.taken)
    )]
    PortsInUse {
        /// Port and the switch that would have it.
        taken: Vec<(u16, String)>,
    },
    /// The same fabric is up.
    #[error(
        "the fabric '{fabric}' is already up in Mininet (process {pid}); stop it first, or give \
         this topology another name"
    )]
    Busy {
        /// Its name.
        fabric: String,
        /// The process that runs it; 0 if it could not be found out.
        pid: u32,
    },
    /// A switch program ended during start.
    #[error(
        "switch '{switch}' did not start: {program} ended with code {code}; its log ends:\n{log}"
    )]
    SwitchFailed {
        /// The switch.
        switch: String,
        /// Its program.
        program: String,
        /// Exit code, or minus the signal that killed it.
        code: i32,
        /// The end of its log.
        log: String,
    },
    /// A switch program runs but does not listen.
    #[error("switch '{switch}' does not listen on 127.0.0.1:{port}; its log ends:\n{log}")]
    SwitchSilent {
        /// The switch.
        switch: String,
        /// Where it should listen.
        port: u16,
        /// The end of its log.
        log: String,
    },
    /// A set-up command failed.
    #[error("'{node}' could not be set up: {output}")]
    Setup {
        /// The host or switch.
        node: String,
        /// The command and what it said.
        output: String,
    },
    /// The runner failed or ended unexpectedly.
    #[error("Mininet's runner ended: {message}")]
    Runner {
        /// What it said.
        message: String,
    },
    /// The runner could not be started or spoken to.
    #[error("can't {action}: {source}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// No host has this name.
    #[error("there is no host '{name}'; hosts are: {valid}")]
    NoSuchHost {
        /// The name.
        name: String,
        /// Those there are.
        valid: String,
    },
    /// A host has no such NIC.
    #[error("host '{host}' has no rail {rail}; it has: {valid}")]
    NoSuchNic {
        /// The host.
        host: String,
        /// The rail that was asked for.
        rail: u16,
        /// Those there are.
        valid: String,
    },
    /// A tool in a host failed.
    #[error("{tool} from '{from}' to '{to}' failed: {output}")]
    Tool {
        /// The tool.
        tool: &'static str,
        /// Host that ran it.
        from: String,
        /// Its target.
        to: String,
        /// What it said.
        output: String,
    },
}

fn describe_ports(taken: &[(u16, String)]) -> String {
    let ports: Vec<String> = taken
        .iter()
        .map(|(port, switch)| format!("{port} (switch '{switch}')"))
        .collect();
    ports.join(", ")
}

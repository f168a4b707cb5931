//! Network namespaces with cables, and what goes over them.

use std::process::{Command, Output};

pub(crate) fn ip(words: &str) -> Output {
    Command::new("ip")
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

pub(crate) fn must_ip(words: &str) {
    let output = ip(words);
    assert!(
        output.status.success(),
        "ip {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Two namespaces with one interface each; the other ends are for the switch. All of it goes
/// when dropped.
pub(crate) struct Net {
    name: String,
}

impl Net {
    pub(crate) fn new(test: &str) -> Net {
        let net = Net {
            name: format!("ms{}{test}", std::process::id() % 10_000),
        };
        must_ip(&format!("netns add {}a", net.name));
        must_ip(&format!("netns add {}b", net.name));
        for side in ["a", "b"] {
            net.lay(side);
        }
        net
    }

    /// Lays the cable of a side.
    pub(crate) fn lay(&self, side: &str) {
        let (space, port) = (self.space(side), self.port(side));
        must_ip(&format!(
            "link add {port} type veth peer name eth0 netns {space}"
        ));
        must_ip(&format!("link set {port} up"));
        let number = if side == "a" { 1 } else { 2 };
        must_ip(&format!(
            "-n {space} link set eth0 address 02:00:00:00:00:0{number}"
        ));
        must_ip(&format!(
            "-n {space} address add 10.99.0.{number}/24 dev eth0"
        ));
        must_ip(&format!("-n {space} link set eth0 up"));
        let other = 3 - number;
        must_ip(&format!(
            "-n {space} neighbour add 10.99.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0"
        ));
    }

    pub(crate) fn space(&self, side: &str) -> String {
        format!("{}{side}", self.name)
    }

    pub(crate) fn port(&self, side: &str) -> String {
        format!("{}p{side}", self.name)
    }

    /// Moves the addresses to interfaces of VLAN 7, whose tags the kernel hands over beside the
    /// frames. False where it has no such interfaces.
    pub(crate) fn move_to_vlan(&self) -> bool {
        for (side, number, other) in [("a", 1, 2), ("b", 2, 1)] {
            let space = self.space(side);
            let add = format!("-n {space} link add link eth0 name eth0.7 type vlan id 7");
            if !ip(&add).status.success() {
                return false;
            }
            must_ip(&format!("-n {space} address flush dev eth0"));
            must_ip(&format!(
                "-n {space} address add 10.99.0.{number}/24 dev eth0.7"
            ));
            must_ip(&format!("-n {space} link set eth0.7 up"));
            must_ip(&format!(
                "-n {space} neighbour replace 10.99.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0.7"
            ));
        }
        true
    }

    /// Runs a program in a namespace.
    pub(crate) fn command(&self, side: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(side), program]);
        command
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for side in ["a", "b"] {
            ip(&format!("link delete {}", self.port(side)));
            ip(&format!("netns delete {}", self.space(side)));
        }
    }
}

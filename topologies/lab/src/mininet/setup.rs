//! The shell commands that prepare interfaces inside hosts and at switches.

use super::plan::NicPlan;

/// Routing table of rail 0; rail k uses the k-th after it.
pub(super) const FIRST_TABLE: u32 = 100;

/// A link as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    /// Bytes of the largest IP packet.
    pub(super) mtu: u32,
    /// One way, ns.
    pub(super) delay_ns: u64,
    /// Bits/s.
    pub(super) rate_bps: Option<u64>,
    /// The switch program can't complete checksums and segments that Linux leaves open.
    pub(super) finished_frames: bool,
}

/// A switch's port: a bare wire to the switch program. The machine's own IP stack must neither
/// answer ARP there nor send anything.
pub(super) fn switch_port(interface: &str, wire: &Wire) -> Vec<String> {
    let mut commands = vec![
        quiet_v6(interface),
        format!("ip link set dev {interface} mtu {} arp off", wire.mtu),
        format!("ip link set dev {interface} up"),
    ];
    commands.extend(traffic(interface, wire));
    commands
}

/// Before everything else in a host.
pub(super) fn host() -> Vec<String> {
    let settings = [
        // Answers to a NIC's address leave by that NIC: asymmetric in the kernel's eyes.
        "net.ipv4.conf.all.rp_filter=0",
        "net.ipv4.conf.default.rp_filter=0",
        // An address is asked for and answered only on its own NIC.
        "net.ipv4.conf.all.arp_ignore=1",
        "net.ipv4.conf.all.arp_announce=2",
        // Both ports of a dual-ToR NIC are used, flow by flow, while they have carrier.
        "net.ipv4.fib_multipath_hash_policy=1",
        "net.ipv4.conf.all.ignore_routes_with_linkdown=1",
        "net.ipv4.conf.default.ignore_routes_with_linkdown=1",
    ];
    let settings_v6 = [
        "net.ipv6.fib_multipath_hash_policy=1",
        "net.ipv6.conf.all.ignore_routes_with_linkdown=1",
        "net.ipv6.conf.default.ignore_routes_with_linkdown=1",
        // Nobody advertises routers here; don't ask.
        "net.ipv6.conf.default.accept_ra=0",
        "net.ipv6.conf.default.router_solicitations=0",
    ];
    vec![
        "ip link set dev lo up".into(),
        format!("sysctl -qw {}", settings.join(" ")),
        if_v6(&format!("sysctl -qw {}", settings_v6.join(" "))),
    ]
}

/// One port of a NIC: its addresses, without the route to its prefix. Leaves route, they don't
/// bridge, so that neighbours in the same prefix are reached through the gateway too.
pub(super) fn nic_port(nic: &NicPlan, interface: &str, wire: &Wire) -> Vec<String> {
    let NicPlan {
        mac,
        v4,
        v4_prefix,
        v6,
        v6_prefix,
        ..
    } = nic;
    let mut commands = vec![
        format!(
            "ip link set dev {interface} address {mac} mtu {} addrgenmode none",
            wire.mtu
        ),
        format!("ip link set dev {interface} up"),
        format!("ip address add {v4}/{v4_prefix} dev {interface} noprefixroute"),
        if_v6(&format!(
            "ip address add {v6}/{v6_prefix} dev {interface} nodad noprefixroute"
        )),
    ];
    commands.extend(traffic(interface, wire));
    commands
}

/// What leaves with a NIC's address leaves by that NIC.
pub(super) fn nic_routes(nic: &NicPlan, static_neighbours: bool) -> Vec<String> {
    let mut commands = Vec::new();
    let table = nic.table;
    for (family, address, gateway) in families(nic) {
        let mut commands_of = vec![format!("ip {family} rule add from {address} table {table}")];
        for (metric, interface) in (1..).zip(&nic.interfaces) {
            for table in ["main".to_owned(), table.to_string()] {
                commands_of.push(format!(
                    "ip {family} route add {gateway} dev {interface} src {address} \
                     metric {metric} table {table}"
                ));
            }
            if static_neighbours {
                commands_of.push(format!(
                    "ip {family} neighbour replace {gateway} lladdr {} dev {interface} \
                     nud permanent",
                    nic.gateway_mac
                ));
            }
        }
        commands_of.push(default_route(nic, family, &gateway, &table.to_string()));
        commands.extend(
            commands_of
                .into_iter()
                .map(|command| guarded(family, command)),
        );
    }
    commands
}

/// What has no address yet leaves by the first NIC.
pub(super) fn default_routes(first: &NicPlan) -> Vec<String> {
    families(first)
        .into_iter()
        .map(|(family, _, gateway)| guarded(family, default_route(first, family, &gateway, "main")))
        .collect()
}

/// Option of `ip`, the NIC's address, its gateway.
fn families(nic: &NicPlan) -> [(&'static str, String, String); 2] {
    [
        ("-4", nic.v4.to_string(), nic.gateway_v4.to_string()),
        ("-6", nic.v6.to_string(), nic.gateway_v6.to_string()),
    ]
}

fn default_route(nic: &NicPlan, family: &str, gateway: &str, table: &str) -> String {
    let hops: Vec<String> = match nic.interfaces.as_slice() {
        [interface] => vec![format!("via {gateway} dev {interface}")],
        several => several
            .iter()
            .map(|interface| format!("nexthop via {gateway} dev {interface}"))
            .collect(),
    };
    format!(
        "ip {family} route add default table {table} {}",
        hops.join(" ")
    )
}

fn guarded(family: &str, command: String) -> String {
    if family == "-6" {
        if_v6(&command)
    } else {
        command
    }
}

/// The command, where the kernel has IPv6.
fn if_v6(command: &str) -> String {
    format!("if [ -d /proc/sys/net/ipv6 ]; then {command}; fi")
}

/// No IPv6 on an interface, where the kernel has IPv6 at all.
fn quiet_v6(interface: &str) -> String {
    let file = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
    format!("if [ -e {file} ]; then echo 1 > {file}; fi")
}

fn traffic(interface: &str, wire: &Wire) -> Vec<String> {
    let mut commands = Vec::new();
    if wire.finished_frames {
        commands.push(format!("ethtool -K {interface} rx off tx off > /dev/null"));
    }
    let mut netem = String::new();
    if wire.delay_ns > 0 {
        netem += &format!(" delay {}ns", wire.delay_ns);
    }
    if let Some(rate) = wire.rate_bps {
        netem += &format!(" rate {rate}bit");
    }
    if !netem.is_empty() {
        commands.push(format!("tc qdisc add dev {interface} root netem{netem}"));
    }
    commands
}

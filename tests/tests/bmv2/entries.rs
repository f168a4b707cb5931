//! The entries of the switch under test: two host ports, one fabric port, routes to each.

use std::net::{Ipv4Addr, Ipv6Addr};

use p4runtime::entry::{Error, TableEntryBuilder};
use p4runtime::info::Index;
use p4runtime::v1::TableEntry;

use crate::packet::SWITCH_MAC;

pub(crate) const VRF: u64 = 0;
/// LA domain of ports 1 and 2.
const LA: u64 = 10;
pub(crate) const NEIGHBOUR_2: [u8; 6] = [0x02, 0, 0, 0, 0x02, 0x02];
pub(crate) const NEIGHBOUR_3: [u8; 6] = [0x02, 0, 0, 0, 0x03, 0x03];
/// Route to port 2.
pub(crate) const LOCAL: [u8; 4] = [10, 0, 1, 5];
/// Route to the group: ports 2 and 3, in another LA domain.
pub(crate) const REMOTE: [u8; 4] = [10, 0, 2, 5];
/// Route to port 3, LA domain not known.
pub(crate) const ELSEWHERE: [u8; 4] = [10, 0, 3, 5];
/// Route back to port 1.
pub(crate) const BACK: [u8; 4] = [10, 0, 4, 5];
/// Route whose group has no bucket.
pub(crate) const EMPTY_GROUP: [u8; 4] = [10, 0, 5, 5];
/// Route to a next hop that is not there.
pub(crate) const NO_NEXTHOP: [u8; 4] = [10, 0, 6, 5];
/// Route that the access list denies.
pub(crate) const DENIED: [u8; 4] = [10, 0, 7, 5];
/// Route that the access list punts.
pub(crate) const WATCHED: [u8; 4] = [10, 0, 8, 5];
/// The switch's own address.
pub(crate) const OWN: [u8; 4] = [10, 0, 0, 254];
pub(crate) const OWN_REASON: u64 = 20;
pub(crate) const IPV6_HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
pub(crate) const IPV6_SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Destination QP of the placed flow, from 10.0.0.1 to [`REMOTE`].
pub(crate) const PLACED_QP: u32 = 0x1234;
/// DSCP that rides queue 3, where ECN marks.
pub(crate) const MARKED_DSCP: u64 = 26;
pub(crate) const MARKED_QUEUE: u64 = 3;
pub(crate) const KMIN: u64 = 10;
pub(crate) const KMAX: u64 = 20;

const GROUP: u64 = 7;
const GROUP_WITHOUT_BUCKETS: u64 = 8;
/// Seed of the group's hash.
pub(crate) const GROUP_SEED: u64 = 0x1357_9bdf;
/// Buckets of the group.
pub(crate) const BUCKETS: u64 = 4;

type Entries = Result<Vec<TableEntry>, Error>;

fn mapped(address: [u8; 4]) -> Ipv6Addr {
    Ipv4Addr::from(address).to_ipv6_mapped()
}

/// Every entry of the switch.
pub(crate) fn all(index: &Index) -> Entries {
    let parts = [
        ports(index)?,
        classes(index)?,
        routes(index)?,
        spread(index)?,
        policy(index)?,
    ];
    Ok(parts.concat())
}

fn start<'i>(index: &'i Index, table: &str) -> Result<TableEntryBuilder<'i>, Error> {
    Ok(index.table(table)?.entry())
}

fn ports(index: &Index) -> Entries {
    let mut entries = Vec::new();
    for port in [1u64, 2] {
        entries.push(
            start(index, "port_config")?
                .exact("ingress_port", port)
                .action("host_port", [("vrf", VRF), ("la", LA)])
                .build()?,
        );
    }
    entries.push(
        start(index, "port_config")?
            .exact("ingress_port", 3u64)
            .action("fabric_port", [("vrf", VRF)])
            .build()?,
    );
    entries.push(
        start(index, "station")?
            .exact("dst_mac", SWITCH_MAC)
            .action("accept", NOTHING)
            .build()?,
    );
    Ok(entries)
}

const NOTHING: [(&str, u64); 0] = [];

fn classes(index: &Index) -> Entries {
    Ok(vec![
        start(index, "trap")?
            .ternary("ether_type", 0x0806u64, 0xffffu64)
            .priority(10)
            .action("punt", [("reason", 1u64)])
            .build()?,
        start(index, "trap")?
            .ternary("ip_protocol", 58u64, 0xffu64)
            .ternary("l4_dst_port", 135u64, 0xffffu64)
            .priority(10)
            .action("punt", [("reason", 2u64)])
            .build()?,
        start(index, "dscp_to_tc")?
            .exact("dscp", MARKED_DSCP)
            .action("set_tc", [("tc", 5u64)])
            .build()?,
        start(index, "tc_to_queue")?
            .exact("tc", 5u64)
            .action("set_queue", [("queue", MARKED_QUEUE)])
            .build()?,
        start(index, "ecn_profile")?
            .exact("egress_port", 2u64)
            .exact("queue", MARKED_QUEUE)
            .action(
                "ecn_mark",
                [
                    ("kmin", KMIN),
                    ("kmax", KMAX),
                    ("pmax", 13_107u64),
                    ("drop_not_ect", 0u64),
                ],
            )
            .build()?,
        start(index, "ecn_profile")?
            .exact("egress_port", 2u64)
            .exact("queue", 0u64)
            .action(
                "ecn_mark",
                [
                    ("kmin", KMIN),
                    ("kmax", KMIN),
                    ("pmax", 0u64),
                    ("drop_not_ect", 1u64),
                ],
            )
            .build()?,
    ])
}

fn routes(index: &Index) -> Entries {
    let mut entries = Vec::new();
    let ways = [
        (LOCAL, "route_nexthop", "nexthop_id", 2u64),
        (REMOTE, "route_group", "group_id", GROUP),
        (ELSEWHERE, "route_nexthop", "nexthop_id", 3),
        (BACK, "route_nexthop", "nexthop_id", 1),
        (
            EMPTY_GROUP,
            "route_group",
            "group_id",
            GROUP_WITHOUT_BUCKETS,
        ),
        (NO_NEXTHOP, "route_nexthop", "nexthop_id", 99),
        (DENIED, "route_nexthop", "nexthop_id", 2),
        (WATCHED, "route_nexthop", "nexthop_id", 3),
    ];
    for (address, action, parameter, value) in ways {
        let prefix = [address[0], address[1], address[2], 0];
        entries.push(
            start(index, "route_v4")?
                .exact("vrf", VRF)
                .lpm("dst_addr", Ipv4Addr::from(prefix), 24)
                .action(action, [(parameter, value)])
                .build()?,
        );
    }
    entries.push(
        start(index, "route_v4")?
            .exact("vrf", VRF)
            .lpm("dst_addr", Ipv4Addr::from(OWN), 32)
            .action("route_cpu", [("reason", OWN_REASON)])
            .build()?,
    );
    entries.push(
        start(index, "route_v6")?
            .exact("vrf", VRF)
            .lpm(
                "dst_addr",
                Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0),
                48,
            )
            .action("route_nexthop", [("nexthop_id", 2u64)])
            .build()?,
    );
    for (id, mac) in [(1u64, [2; 6]), (2, NEIGHBOUR_2), (3, NEIGHBOUR_3)] {
        entries.push(
            start(index, "nexthop")?
                .exact("nexthop_id", id)
                .action(
                    "forward",
                    [
                        ("port", id.to_be_bytes().to_vec()),
                        ("src_mac", SWITCH_MAC.to_vec()),
                        ("dst_mac", mac.to_vec()),
                    ],
                )
                .build()?,
        );
    }
    Ok(entries)
}

fn spread(index: &Index) -> Entries {
    let mut entries = vec![
        start(index, "group")?
            .exact("group_id", GROUP)
            .action("set_group", [("size", BUCKETS), ("seed", GROUP_SEED)])
            .build()?,
        start(index, "group")?
            .exact("group_id", GROUP_WITHOUT_BUCKETS)
            .action("set_group", [("size", 0u64), ("seed", 0u64)])
            .build()?,
        start(index, "placed_flow")?
            .exact("src_addr", mapped([10, 0, 0, 1]))
            .exact("dst_addr", mapped(REMOTE))
            .exact("protocol", 17u64)
            .exact("src_port", 0u64)
            .exact("dst_port", 4791u64)
            .exact("dest_qp", u64::from(PLACED_QP))
            .action("place", [("nexthop_id", 3u64)])
            .build()?,
    ];
    for bucket in 0..BUCKETS {
        entries.push(
            start(index, "group_bucket")?
                .exact("group_id", GROUP)
                .exact("bucket", bucket)
                .action("bucket_nexthop", [("nexthop_id", 2 + bucket % 2)])
                .build()?,
        );
    }
    Ok(entries)
}

fn policy(index: &Index) -> Entries {
    let mut entries = Vec::new();
    for (address, action) in [(DENIED, "deny"), (WATCHED, "acl_punt")] {
        entries.push(
            start(index, "acl")?
                .ternary("dst_addr", mapped(address), u128::MAX)
                .priority(10)
                .action(action, NOTHING)
                .build()?,
        );
    }
    for (address, la) in [(LOCAL, LA), (REMOTE, LA + 1)] {
        entries.push(
            start(index, "la_of")?
                .exact("vrf", VRF)
                .lpm("dst_addr", mapped(address), 128)
                .action("set_dst_la", [("la", la)])
                .build()?,
        );
    }
    Ok(entries)
}

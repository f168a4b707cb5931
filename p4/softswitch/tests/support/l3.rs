//! The router program on one switch: 10 000 routes through one group of 64
//! members, an access list, ECN, and packets for it.

use std::sync::Arc;

use softswitch::control::{EntryAction, Group, GroupMember, Member, TableEntry};
use softswitch::{Program, Switch, SwitchConfig};

use super::{call, checksum, insert, key, put, table};

/// Members of the group that all routes lead to.
pub(crate) const PATHS: u32 = 64;
/// Routes.
pub(crate) const ROUTES: u32 = 10_000;

/// The router program, without entries.
pub(crate) fn bare() -> Switch {
    let program = Program::load(include_bytes!("../programs/router.json")).expect("it loads");
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    switch
}

/// The router with its entries.
pub(crate) fn router() -> Switch {
    let mut switch = bare();
    add_paths(&mut switch);
    let mut routes = 0;
    for route in 0.. {
        // Short prefixes repeat.
        routes += u32::from(add_route(&mut switch, prefix(route), EntryAction::Group(1)));
        if routes == ROUTES {
            break;
        }
    }
    add_access_list(&mut switch);
    for port in 1..=PATHS {
        insert(&mut switch, "ecn", &[(port.into(), 0)], "mark_above", &[16]);
    }
    switch
}

/// Prefix and length of a route: all lengths from 12 to 32, most of them 24.
pub(crate) fn prefix(route: u32) -> (u32, u32) {
    let length = match route % 8 {
        0 => 12 + route / 8 % 21,
        1 => 16,
        2 => 20,
        3 => 32,
        _ => 24,
    };
    let spread = route.wrapping_mul(0x9e37_79b1) | 1;
    // 0 to 223.255.255.255: distinct multipliers give distinct /32; the rest
    // may fall together.
    ((spread % 0xe000_0000) & (u32::MAX << (32 - length)), length)
}

/// Members 1 to 64, each out of its own port, in group 1.
pub(crate) fn add_paths(switch: &mut Switch) {
    let route = table(switch, "route");
    let program = switch.program().expect("a program").clone();
    let profile = program.profile_id("In.paths").expect("a profile");
    for id in 1..=PATHS {
        let args = [
            id.into(),
            0x0200_0000_0001,
            0x0200_0000_1000 + u128::from(id),
        ];
        let call = call(switch, route, "forward", &args);
        let member = Member { id, call };
        switch.member_insert(profile, &member).expect("it fits");
    }
    let members = (1..=PATHS).map(|member| GroupMember {
        member,
        weight: 1,
        watch_port: None,
    });
    let group = Group {
        id: 1,
        max_size: 0,
        members: members.collect(),
    };
    switch.group_insert(profile, &group).expect("it fits");
}

/// Adds a route unless there is one for the prefix; whether it did.
pub(crate) fn add_route(
    switch: &mut Switch,
    (prefix, length): (u32, u32),
    action: EntryAction,
) -> bool {
    let route = table(switch, "route");
    let entry = TableEntry {
        key: key(switch, route, &[(prefix.into(), length.into())]),
        priority: 0,
        action,
        idle_timeout: 0,
        metadata: Vec::new(),
    };
    switch.table_insert(route, &entry, 0).is_ok()
}

/// Sixty-four entries under eight masks.
fn add_access_list(switch: &mut Switch) {
    let acl = table(switch, "acl");
    let (net, host, port, all) = (0xffff_ff00, 0xffff_ffff, 0xffff, 0xff);
    for i in 0..64u128 {
        let source = (0xe100_0000 + (i << 8), net);
        let target = (0xe200_0000 + i, host);
        let none = (0, 0);
        let (fields, action) = match i % 8 {
            0 => ([none, source, none, none, none, none], "deny"),
            1 => ([none, none, target, none, none, none], "deny"),
            2 => ([none, none, none, (6, all), none, (i + 1, port)], "deny"),
            3 => ([none, none, target, (17, all), none, none], "deny"),
            4 => ([(i, 0x1ff), source, none, none, none, none], "deny"),
            5 => ([none, source, target, (6, all), none, (80, port)], "permit"),
            6 => ([none, none, none, (200, all), none, none], "deny"),
            _ => (
                [none, none, none, (17, all), (i, port), (4791, port)],
                "permit",
            ),
        };
        let entry = TableEntry {
            key: key(switch, acl, &fields),
            priority: 1000 - i as i32,
            action: EntryAction::Call(call(switch, acl, action, &[])),
            idle_timeout: 0,
            metadata: Vec::new(),
        };
        // Fields that do not depend on `i` repeat; with other priorities they
        // are other entries.
        switch.table_insert(acl, &entry, 0).expect("it fits");
    }
}

/// A UDP packet of `len` bytes, ECT(0), to an address within the route.
pub(crate) fn packet(route: u32, flow: u16, len: usize) -> Vec<u8> {
    let (prefix, length) = prefix(route);
    let host = u32::MAX.checked_shr(length).unwrap_or(0) & u32::from(flow);
    packet_to(prefix | host, flow, len)
}

/// A UDP packet of `len` bytes, ECT(0), to an address.
pub(crate) fn packet_to(address: u32, flow: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    put(&mut packet, 0, 0x0200_0000_0001, 6);
    put(&mut packet, 6, 0x0200_0000_2000, 6);
    put(&mut packet, 12, 0x0800, 2);
    put(&mut packet, 14, 0x45, 1);
    put(&mut packet, 15, 2, 1);
    put(&mut packet, 16, len as u64 - 14, 2);
    put(&mut packet, 22, 64, 1);
    put(&mut packet, 23, 17, 1);
    put(&mut packet, 26, 0x0a00_0001 + u64::from(flow), 4);
    put(&mut packet, 30, address.into(), 4);
    let sum = checksum(&packet[14..34]);
    put(&mut packet, 24, sum.into(), 2);
    put(&mut packet, 34, 1024 + u64::from(flow), 2);
    put(&mut packet, 36, 443, 2);
    put(&mut packet, 38, len as u64 - 34, 2);
    packet
}

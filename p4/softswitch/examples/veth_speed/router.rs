//! The program that the switches run, its entries, and frames that take every way through it.

use p4runtime::client::Pipeline;
use p4runtime::entry;
use p4runtime::info::Index;
use p4runtime::v1::Update;

use crate::forwarders::Pipelined;
use crate::frames;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/router");
/// The port that leads to the sink.
const OUT: u16 = 2;
const ROUTES: u32 = 10_000;
const PATHS: u32 = 64;
const GROUP: u32 = 1;
const ACL_ENTRIES: u32 = 64;
/// Different frames; each flow takes its own way through the group.
const FRAMES: u32 = 8192;
const ROUTER_MAC: u64 = 0x0200_0000_0001;
const FIRST_HOP_MAC: u64 = 0x0200_0000_1000;
/// Packets in the queue from which on ECT is marked: more than an idle switch ever holds.
const MARK_ABOVE: u32 = 60;

/// The router: 10 000 prefixes through a group of 64 next hops, an access list, ECN.
pub(crate) fn pipelined() -> Result<Pipelined, Failure> {
    let info = std::fs::read_to_string(format!("{PROGRAM}.p4info.txtpb"))?;
    let index = Index::parse_text(&info)?;
    let json = std::fs::read(format!("{PROGRAM}.json"))?;
    let mut updates = paths(&index)?;
    for number in 0..ROUTES {
        let (prefix, length) = prefix(number);
        let route = index.table("route")?.entry();
        let route = route
            .lpm("hdr.ipv4.dst", prefix, length)
            .group(GROUP)
            .build()?;
        updates.push(entry::insert(route));
    }
    updates.extend(access_list(&index)?);
    let ecn = index.table("ecn")?.entry().exact("std.egress_port", OUT);
    let ecn = ecn.action("mark_above", [("depth", MARK_ABOVE)]).build()?;
    updates.push(entry::insert(ecn));
    Ok(Pipelined {
        pipeline: Pipeline::new(index.p4info().clone(), json),
        updates,
    })
}

fn paths(index: &Index) -> Result<Vec<Update>, Failure> {
    let mut updates = Vec::new();
    let mut members = Vec::new();
    for id in 1..=PATHS {
        let hop = FIRST_HOP_MAC + u64::from(id);
        let params = [("port", u64::from(OUT)), ("src", ROUTER_MAC), ("dst", hop)];
        let member = index.member("paths", id, index.call("forward", params)?)?;
        updates.push(entry::insert(member));
        members.push((id, 1));
    }
    let group = index.group("paths", GROUP, 0, members)?;
    updates.push(entry::insert(group));
    Ok(updates)
}

/// Entries under several masks, of which no frame meets a denying one.
fn access_list(index: &Index) -> Result<Vec<Update>, Failure> {
    let mut updates = Vec::new();
    for number in 0..ACL_ENTRIES {
        let acl = index.table("acl")?.entry();
        let net = 0xe100_0000 + (number << 8);
        let acl = match number % 4 {
            0 => acl.ternary("hdr.ipv4.src", net, 0xffff_ff00u32),
            1 => acl.ternary("hdr.ipv4.dst", net + 7, 0xffff_ffffu32),
            2 => acl.ternary("hdr.ipv4.protocol", 6u8, 0xffu8).ternary(
                "hdr.ports.dst",
                number as u16 + 1,
                0xffffu16,
            ),
            _ => acl
                .ternary("std.ingress_port", (number % 500) as u16, 0x1ffu16)
                .ternary("hdr.ipv4.src", net, 0xffff_ff00u32),
        };
        let none: [(&str, u32); 0] = [];
        let acl = acl.priority(number as i32 + 1).action("deny", none);
        updates.push(entry::insert(acl.build()?));
    }
    Ok(updates)
}

/// Prefix and length of a route, each another one: 16 to 32 bits, most of them 24.
fn prefix(number: u32) -> (u32, u32) {
    let length = match number % 8 {
        0 => 32,
        1 => 28,
        2 => 20,
        3 if number < 2048 => 16,
        _ => 24,
    };
    let base = match length {
        32 => 0x1000_0000 + number,
        28 => 0x2000_0000 + (number << 4),
        20 => 0x3000_0000 + (number << 12),
        16 => 0x7000_0000 + (number << 13 & 0xffff_0000),
        _ => 0x9000_0000 + (number << 8),
    };
    (base, length)
}

/// Frames to addresses in all the routes.
pub(crate) fn frames(length: usize) -> Vec<Vec<u8>> {
    let frame = |number: u32| {
        let route = number.wrapping_mul(2_654_435_761) % ROUTES;
        let source = 0x0a00_0000 + number;
        let ect = 2;
        let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0x20, 0]];
        frames::udp(macs, [source, prefix(route).0], number as u16, ect, length)
    };
    (0..FRAMES).map(frame).collect()
}

/// Checks that what arrived is what a router makes of what was sent.
pub(crate) fn check(sent: &[Vec<u8>], arrived: &[Vec<u8>]) -> Result<(), String> {
    if arrived.len() != sent.len() {
        return Err(format!(
            "of {} frames {} arrived",
            sent.len(),
            arrived.len()
        ));
    }
    let mut hops = std::collections::BTreeSet::new();
    for (before, after) in sent.iter().zip(arrived) {
        let hop = u64::from_be_bytes([
            0, 0, after[0], after[1], after[2], after[3], after[4], after[5],
        ]);
        hops.insert(hop);
        let is_routed = after.len() == before.len()
            && after[30..] == before[30..]
            && after[22] == before[22] - 1
            && frames::ipv4_checksum(&after[14..34]) == 0
            && (FIRST_HOP_MAC + 1..=FIRST_HOP_MAC + u64::from(PATHS)).contains(&hop);
        if !is_routed {
            return Err(format!("{before:02x?} became {after:02x?}"));
        }
    }
    if hops.len() < PATHS as usize / 2 {
        return Err(format!("it uses {} of {PATHS} next hops", hops.len()));
    }
    Ok(())
}

//! Where addresses come from. Everything is a function of position, so that two runs over the same
//! file give the same addresses, and a reader can tell a device from its address:
//!
//! | what | value | from |
//! |---|---|---|
//! | LA domain *n* (from 1), IPv4 | `10.0.0.0/8` cut into equal blocks, /24 unless larger are needed: block *n*, `10.0.n.0/24` | order of the LA domains |
//! | LA domain *n*, IPv6 | `fd00:6d65:nnnn:nnnn::/64` | the same |
//! | gateway | first address of the block: `.1`, `::1` | |
//! | NIC *k* (from 0) of the domain | `.2 + k`, `::2 + k` | host order, then rail order |
//! | loopback of a switch | `172.16.0.0/12` + device id, `fd00:6d65:ffff:ffff::` + device id | device id |
//! | MAC of a switch | `02:00` + device id | device id |
//! | gateway MAC of a domain | its leaf's MAC; for a dual-ToR pair the shared `06:00` + *n* | |
//! | MAC of a NIC | `0a:00` + position of the NIC + 1; both ports of a bond share it | order of NICs |
//!
//! A domain has one prefix, so a switch needs one route per domain, not one per NIC: some 800
//! routes for 100 000 GPUs. Only the leaves of a domain hold a route per NIC.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnetwork::{Ipv4Network, Ipv6Network};
use serde::{Serialize, Serializer};

/// An Ethernet address. Those made here are locally administered and unicast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The address as the number that a 48-bit P4 field holds.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// Whether this can be a station's own address: neither group nor all zero.
    #[must_use]
    pub fn is_station(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Serialize for MacAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is no MAC address of the form `02:00:00:00:00:01`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no MAC address; write six hexadecimal bytes, like 02:00:00:00:00:01")]
pub struct BadMac(String);

impl FromStr for MacAddr {
    type Err = BadMac;

    fn from_str(text: &str) -> Result<Self, BadMac> {
        let bad = || BadMac(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts
                .next()
                .filter(|part| part.len() == 2)
                .ok_or_else(bad)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if parts.next().is_some() {
            return Err(bad());
        }
        Ok(Self(bytes))
    }
}

fn numbered_mac(kind: u8, number: u32) -> MacAddr {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddr([kind, 0, a, b, c, d])
}

pub(crate) fn switch_mac(device_id: u64) -> MacAddr {
    // Device ids in use are below 2^32 (checked when a switch is added).
    numbered_mac(0x02, device_id as u32)
}

pub(crate) fn pair_mac(la_number: u32) -> MacAddr {
    numbered_mac(0x06, la_number)
}

pub(crate) fn nic_mac(position: u32) -> MacAddr {
    numbered_mac(0x0a, position + 1)
}

const V6_FABRIC: u128 = 0xfd00_6d65 << 96;

/// Loopback addresses are `172.16.0.0/12` plus the device id.
pub(crate) const MAX_DEVICE_ID: u64 = (1 << 20) - 2;

pub(crate) fn loopback_v4(device_id: u64) -> Ipv4Addr {
    Ipv4Addr::from(0xac10_0000 | device_id as u32)
}

pub(crate) fn loopback_v6(device_id: u64) -> Ipv6Addr {
    Ipv6Addr::from(V6_FABRIC | 0xffff_ffff << 64 | u128::from(device_id))
}

/// Addresses of a block that are not a NIC's: network, gateway, broadcast.
pub(crate) const RESERVED: u64 = 3;

/// The prefix length that all LA domains share: /24, or shorter when a domain is larger than that,
/// or longer when there are more domains than /24s. `None` when 10.0.0.0/8 is too small.
pub(crate) fn v4_prefix_len(domains: usize, largest: usize) -> Option<u8> {
    let host_bits = |addresses: u64| 64 - (addresses - 1).leading_zeros();
    let needed = host_bits(largest as u64 + RESERVED);
    let available = 24_u32.checked_sub(host_bits(domains as u64 + 1))?;
    (needed <= available).then(|| (32 - needed.max(8.min(available))) as u8)
}

/// IPv4 block number `n` of the given length.
pub(crate) fn la_v4(number: u32, prefix_len: u8) -> Option<Ipv4Network> {
    let base = u32::from(Ipv4Addr::new(10, 0, 0, 0));
    let offset = u64::from(number) << (32 - u32::from(prefix_len));
    let offset = u32::try_from(offset)
        .ok()
        .filter(|offset| *offset < 1 << 24)?;
    Ipv4Network::new(Ipv4Addr::from(base + offset), prefix_len).ok()
}

/// IPv6 /64 number `n`.
pub(crate) fn la_v6(number: u32) -> Option<Ipv6Network> {
    Ipv6Network::new(Ipv6Addr::from(V6_FABRIC | u128::from(number) << 64), 64).ok()
}

/// The `k`-th address of an IPv4 prefix.
pub(crate) fn v4_at(prefix: Ipv4Network, k: u64) -> Option<Ipv4Addr> {
    u32::try_from(k).ok().and_then(|k| prefix.nth(k))
}

/// The `k`-th address of an IPv6 prefix.
pub(crate) fn v6_at(prefix: Ipv6Network, k: u64) -> Option<Ipv6Addr> {
    let address = Ipv6Addr::from(u128::from(prefix.network()) + u128::from(k));
    prefix.contains(address).then_some(address)
}

/// Blocks that no NIC's address may come from: RFC 6890, RFC 5771 and RFC 1112 section 4.
const RESERVED_V4: [(Ipv4Addr, u8, &str); 5] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "\"this network\""),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// Blocks that no NIC's address may come from: RFC 4291 section 2.4, RFC 6890.
const RESERVED_V6: [(Ipv6Addr, u8, &str); 3] = [
    (
        Ipv6Addr::UNSPECIFIED,
        8,
        "unspecified, loopback and IPv4-mapped",
    ),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// The reserved block that a prefix overlaps, and what it is for.
pub(crate) fn reserved_v4(prefix: Ipv4Network) -> Option<(Ipv4Network, &'static str)> {
    RESERVED_V4.iter().find_map(|&(base, length, what)| {
        let block = Ipv4Network::new(base, length).ok()?;
        block.overlaps(prefix).then_some((block, what))
    })
}

/// The reserved block that a prefix overlaps, and what it is for.
pub(crate) fn reserved_v6(prefix: Ipv6Network) -> Option<(Ipv6Network, &'static str)> {
    RESERVED_V6.iter().find_map(|&(base, length, what)| {
        let block = Ipv6Network::new(base, length).ok()?;
        block.overlaps(prefix).then_some((block, what))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn mac_round_trips_and_refuses_other_shapes() {
        let mac: MacAddr = "0a:00:00:00:01:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "0a:00:00:00:01:ff");
        assert_eq!(mac.to_u64(), 0x0a00_0000_01ff);
        for bad in [
            "",
            "0a:00:00:00:01",
            "0a:00:00:00:01:ff:00",
            "0a:00:00:00:01:f",
            "zz:00:00:00:01:ff",
        ] {
            assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
        }
    }

    #[test]
    fn blocks_are_24s_until_something_does_not_fit() {
        assert_eq!(v4_prefix_len(8, 4), Some(24));
        assert_eq!(v4_prefix_len(8, 253), Some(24));
        assert_eq!(v4_prefix_len(8, 254), Some(23));
        assert_eq!(v4_prefix_len(65_535, 253), Some(24));
        assert_eq!(v4_prefix_len(65_536, 100), Some(25));
        assert_eq!(v4_prefix_len(1 << 20, 4000), None);
    }

    #[test]
    fn addresses_follow_numbers() {
        let block = la_v4(3, 24).unwrap();
        assert_eq!(block.to_string(), "10.0.3.0/24");
        assert_eq!(v4_at(block, 2).unwrap(), Ipv4Addr::new(10, 0, 3, 2));
        assert_eq!(v4_at(block, 256), None);
        assert_eq!(la_v6(0x1_0002).unwrap().to_string(), "fd00:6d65:1:2::/64");
        assert_eq!(loopback_v4(1), Ipv4Addr::new(172, 16, 0, 1));
        assert_eq!(loopback_v6(1).to_string(), "fd00:6d65:ffff:ffff::1");
        assert_eq!(la_v4(1 << 16, 24), None);
    }
}

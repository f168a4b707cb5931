//! What can be wrong with a topology, apart from how it is written down.

use std::net::IpAddr;

use crate::addressing::{MAX_DEVICE_ID, MacAddr};
use crate::ids::LinkId;
use crate::model::MAX_PORT;
use crate::naming::MAX_NAME;
use crate::units::format_speed;

/// Something that a topology can't be. Names are those of the file or generator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A name that can't be used.
    #[error("`{0}` is no usable name")]
    BadName(String),
    /// Two things of one kind, or a switch and a host, have one name.
    #[error("the name `{0}` is used twice")]
    DuplicateName(String),
    /// More of something than fits any fabric.
    #[error("too many {what}: more than {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
    /// A device id outside 1..=2^20-2.
    #[error("device id {0} is out of range")]
    DeviceIdRange(u64),
    /// Two switches have one device id.
    #[error("device id {0} is used twice")]
    DuplicateDeviceId(u64),
    /// A switch has no such port.
    #[error("`{switch}` has no port {port}")]
    PortRange {
        /// The switch.
        switch: String,
        /// The port asked for.
        port: u32,
        /// Port numbers it has, if they were declared.
        declared: Option<String>,
    },
    /// A NIC has no such port.
    #[error("NIC `{nic}` has no port {port}: it has {count}")]
    NicPortRange {
        /// The NIC.
        nic: String,
        /// The port asked for.
        port: u32,
        /// How many it has.
        count: u8,
    },
    /// An end that another link uses.
    #[error("port `{end}` is used twice")]
    PortTaken {
        /// The end.
        end: String,
        /// The link that was there first.
        by: LinkId,
    },
    /// The two ends of a link, or the link itself, disagree about its speed.
    #[error("speed mismatch: {first} is {}, {second} is {}", format_speed(*.first_bps), format_speed(*.second_bps))]
    SpeedMismatch {
        /// An end, or "the link".
        first: String,
        /// Its speed.
        first_bps: u64,
        /// The other.
        second: String,
        /// Its speed.
        second_bps: u64,
    },
    /// Nothing says how fast a link is.
    #[error("the speed of the link `{0}` is not known")]
    NoSpeed(String),
    /// A speed of zero or beyond the fastest port.
    #[error("a speed of {0} bits/s")]
    BadSpeed(u64),
    /// A link from a node to itself.
    #[error("a link from `{0}` to itself")]
    SelfLink(String),
    /// A link between nodes that are not in neighbouring tiers.
    #[error("a link between {first} and {second}")]
    NotNeighbours {
        /// One end's name and kind.
        first: String,
        /// The other's.
        second: String,
    },
    /// A host without NIC.
    #[error("host `{0}` has no NIC")]
    NoNic(String),
    /// Two NICs of a host with the same rail.
    #[error("host `{host}` has two NICs on rail {rail}")]
    DuplicateRail {
        /// The host.
        host: String,
        /// The rail.
        rail: u16,
    },
    /// A NIC must have one or two ports.
    #[error("a NIC of `{host}` has {ports} ports")]
    NicPorts {
        /// The host.
        host: String,
        /// The number asked for.
        ports: u32,
    },
    /// A NIC without a link.
    #[error("host `{host}` is unreachable on rail {rail}: no link to a leaf")]
    NotConnected {
        /// The host.
        host: String,
        /// The NIC's rail.
        rail: u16,
    },
    /// A host that the larger part of the fabric can't reach.
    #[error("host `{0}` is unreachable: no path to the rest of the fabric")]
    Unreachable(String),
    /// A group of leaves that is no single leaf access.
    #[error("LA domain `{la}` is no single leaf access: {why}")]
    NotLeafAccess {
        /// The domain.
        la: String,
        /// What is wrong with it.
        why: String,
    },
    /// A leaf named by two LA domains.
    #[error("leaf `{leaf}` is in two LA domains, `{first}` and `{second}`")]
    LeafInTwoLas {
        /// The leaf.
        leaf: String,
        /// One domain.
        first: String,
        /// The other.
        second: String,
    },
    /// Dual-homed hosts that tie more than two leaves together.
    #[error(
        "the leaves {0} are tied together by dual-homed hosts, so no single leaf reaches all of them"
    )]
    LeafChain(String),
    /// Two prefixes that share addresses.
    #[error("prefix {first} of `{first_la}` overlaps {second} of `{second_la}`")]
    OverlappingPrefix {
        /// The earlier domain.
        first_la: String,
        /// Its prefix.
        first: String,
        /// The later domain.
        second_la: String,
        /// Its prefix.
        second: String,
    },
    /// A prefix with too few addresses.
    #[error("prefix {prefix} of `{la}` is too small for {nics} NICs and a gateway")]
    PrefixTooSmall {
        /// The domain.
        la: String,
        /// Its prefix.
        prefix: String,
        /// How many NICs it has.
        nics: usize,
    },
    /// All of 10.0.0.0/8 is used up.
    #[error("10.0.0.0/8 is too small for {domains} LA domains of up to {largest} NICs")]
    OutOfAddresses {
        /// Number of domains.
        domains: usize,
        /// NICs in the largest.
        largest: usize,
    },
    /// Two things have one address.
    #[error("address {address} is used twice, by `{first}` and `{second}`")]
    DuplicateAddress {
        /// The address.
        address: IpAddr,
        /// Who had it first.
        first: String,
        /// Who has it too.
        second: String,
    },
    /// Two things have one MAC.
    #[error("MAC {mac} is used twice, by `{first}` and `{second}`")]
    DuplicateMac {
        /// The address.
        mac: MacAddr,
        /// Who had it first.
        first: String,
        /// Who has it too.
        second: String,
    },
    /// A group MAC, or all zeros.
    #[error("MAC {0} is no station address")]
    BadMac(MacAddr),
    /// A NIC's address outside the prefix of its LA domain, or one that hosts can't have.
    #[error("address {address} of `{nic}` is not a host address in {prefix}")]
    AddressOutside {
        /// The NIC.
        nic: String,
        /// Its address.
        address: IpAddr,
        /// The prefix of the domain.
        prefix: String,
    },
    /// Nothing to build.
    #[error("a topology without {0}")]
    Nothing(&'static str),
}

impl Fault {
    /// The kind of problem, in a form that stays the same.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName(_) => "bad-name",
            Self::DuplicateName(_) => "duplicate-name",
            Self::TooMany { .. } => "too-many",
            Self::DeviceIdRange(_) => "out-of-range",
            Self::DuplicateDeviceId(_) => "duplicate-device-id",
            Self::PortRange { .. } | Self::NicPortRange { .. } => "port-out-of-range",
            Self::PortTaken { .. } => "port-used-twice",
            Self::SpeedMismatch { .. } => "speed-mismatch",
            Self::NoSpeed(_) => "missing-field",
            Self::BadSpeed(_) => "bad-value",
            Self::SelfLink(_) => "self-link",
            Self::NotNeighbours { .. } => "not-neighbours",
            Self::NoNic(_) => "no-nic",
            Self::DuplicateRail { .. } => "duplicate-rail",
            Self::NicPorts { .. } => "out-of-range",
            Self::NotConnected { .. } | Self::Unreachable(_) => "unreachable-host",
            Self::NotLeafAccess { .. } | Self::LeafInTwoLas { .. } | Self::LeafChain(_) => {
                "not-leaf-access"
            }
            Self::OverlappingPrefix { .. } => "overlapping-prefix",
            Self::PrefixTooSmall { .. } | Self::OutOfAddresses { .. } => "prefix-too-small",
            Self::DuplicateAddress { .. } => "duplicate-address",
            Self::DuplicateMac { .. } => "duplicate-mac",
            Self::BadMac(_) => "bad-value",
            Self::AddressOutside { .. } => "address-outside-prefix",
            Self::Nothing(_) => "nothing",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::BadName(_) => format!(
                "use letters, digits, `-`, `_` and `.`, beginning with a letter or digit, at most {MAX_NAME} characters"
            ),
            Self::DuplicateName(_) => {
                "rename one of them; switches and hosts share one set of names".to_owned()
            }
            Self::TooMany { .. } => "split the fabric, or check the number for a typing error".to_owned(),
            Self::DeviceIdRange(_) => format!("device ids run from 1 to {MAX_DEVICE_ID}"),
            Self::DuplicateDeviceId(_) => {
                "change one; without `device_id`, a switch gets its position in the file, from 1".to_owned()
            }
            Self::PortRange { declared: Some(declared), .. } => {
                format!("its ports are {declared}; change the link or extend `ports:`")
            }
            Self::PortRange { .. } => format!("switch ports are numbered from 1 to {MAX_PORT}"),
            Self::NicPortRange { .. } => {
                "write `host:rail` for the first port, `host:rail.1` for the second; a dual-ToR NIC needs `nic_ports: 2`".to_owned()
            }
            Self::PortTaken { .. } => "a port takes one link: move one of the two to a free port".to_owned(),
            Self::SpeedMismatch { .. } => {
                "both ends of a link run at one speed: correct the port's or the link's `speed`".to_owned()
            }
            Self::NoSpeed(_) => {
                "give the link a `speed`, or set one for all with `defaults: {speed: 400G}`".to_owned()
            }
            Self::BadSpeed(_) => "speeds go from 1bps to 100T".to_owned(),
            Self::SelfLink(_) => "a link joins two different nodes: correct one end".to_owned(),
            Self::NotNeighbours { .. } => {
                "links join neighbouring tiers: host and leaf, leaf and spine, spine and core".to_owned()
            }
            Self::NoNic(_) => "give it `nics: 1` or more, or remove it".to_owned(),
            Self::DuplicateRail { .. } => "give each NIC of a host a rail of its own".to_owned(),
            Self::NicPorts { .. } => "a NIC has 1 port, or 2 for dual-ToR".to_owned(),
            Self::NotConnected { host, rail } => {
                format!("add a link such as `[{host}:{rail}, LEAF:PORT]`, or remove the NIC")
            }
            Self::Unreachable(_) => "connect its leaves to the spines of the others".to_owned(),
            Self::NotLeafAccess { .. } => {
                "a domain is one leaf, or two leaves that share dual-homed NICs; leave `la:` out to have it derived".to_owned()
            }
            Self::LeafInTwoLas { .. } => "name each leaf in one domain only".to_owned(),
            Self::LeafChain(_) => {
                "attach both ports of a dual-homed NIC to the same pair of leaves as its neighbours".to_owned()
            }
            Self::OverlappingPrefix { .. } => {
                "each LA domain needs a prefix of its own: change one, or leave it out to have it assigned".to_owned()
            }
            Self::PrefixTooSmall { .. } => "use a shorter prefix length".to_owned(),
            Self::OutOfAddresses { .. } => "use fewer or smaller LA domains".to_owned(),
            Self::DuplicateAddress { .. } | Self::DuplicateMac { .. } => {
                "change one, or leave it out to have it assigned".to_owned()
            }
            Self::BadMac(_) => "the first byte must be even, like 02:00:00:00:00:01".to_owned(),
            Self::AddressOutside { .. } => {
                "use an address of the prefix other than the first (gateway) and the network and broadcast addresses".to_owned()
            }
            Self::Nothing(_) => "describe the fabric with `clos:`, or with `switches:`, `hosts:` and `links:`".to_owned(),
        }
    }
}

//! What a [`Builder`](crate::Builder) is asked to add.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnetwork::{Ipv4Network, Ipv6Network};

use crate::addressing::MacAddr;
use crate::ids::{PodId, SegmentId, SwitchId};
use crate::model::Tier;

/// A switch to add. `None` means: assign it.
#[derive(Clone, Debug)]
pub struct NewSwitch {
    /// Unique name.
    pub name: String,
    /// Leaf, spine or core.
    pub tier: Tier,
    /// P4Runtime device id; its position from 1.
    pub device_id: Option<u64>,
    /// Its MAC.
    pub mac: Option<MacAddr>,
    /// IPv4 loopback.
    pub loopback_v4: Option<Ipv4Addr>,
    /// IPv6 loopback.
    pub loopback_v6: Option<Ipv6Addr>,
    /// Where it stands, if known.
    pub segment: Option<SegmentId>,
    /// Where it stands, if known.
    pub pod: Option<PodId>,
    /// The one rail it serves.
    pub rail: Option<u16>,
    /// Its plane.
    pub plane: Option<u8>,
}

impl NewSwitch {
    /// A switch of which only name and tier matter.
    #[must_use]
    pub fn new(name: impl Into<String>, tier: Tier) -> Self {
        Self {
            name: name.into(),
            tier,
            device_id: None,
            mac: None,
            loopback_v4: None,
            loopback_v6: None,
            segment: None,
            pod: None,
            rail: None,
            plane: None,
        }
    }
}

/// A NIC to add. `None` means: assign it.
#[derive(Clone, Debug)]
pub struct NewNic {
    /// Its rail.
    pub rail: u16,
    /// Number of ports, 1 or 2.
    pub ports: u8,
    /// Speed of each port if it is known apart from the links.
    pub speed_bps: Option<u64>,
    /// Its MAC.
    pub mac: Option<MacAddr>,
    /// IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address.
    pub v6: Option<Ipv6Addr>,
}

impl NewNic {
    /// A NIC with addresses to be assigned.
    #[must_use]
    pub fn new(rail: u16, ports: u8) -> Self {
        Self {
            rail,
            ports,
            speed_bps: None,
            mac: None,
            v4: None,
            v6: None,
        }
    }
}

/// A host to add.
#[derive(Clone, Debug)]
pub struct NewHost {
    /// Unique name.
    pub name: String,
    /// Where it stands.
    pub segment: SegmentId,
    /// GPUs in it; as many as NICs if `None`.
    pub gpus: Option<u32>,
    /// Label of its scale-up domain; one of its own if `None`.
    pub scale_up: Option<u32>,
    /// Its NICs.
    pub nics: Vec<NewNic>,
}

/// An LA domain to add. `None` means: assign it.
#[derive(Clone, Debug)]
pub struct NewLa {
    /// Unique name.
    pub name: String,
    /// One leaf, or both of a dual-ToR pair.
    pub leaves: Vec<SwitchId>,
    /// IPv4 prefix.
    pub v4: Option<Ipv4Network>,
    /// IPv6 prefix.
    pub v6: Option<Ipv6Network>,
}

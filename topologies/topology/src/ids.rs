//! Dense index types: a topology keeps its parts in vectors and refers to them by position.

use std::fmt;

use serde::Serialize;

macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position as a `usize`, to index slices and side tables.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn at(index: usize) -> Self {
                // Builders bound every vector far below 2^32 entries.
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

index_type!(
    /// Position of a switch in [`Topology::switches`](crate::Topology::switches).
    SwitchId
);
index_type!(
    /// Position of a host in [`Topology::hosts`](crate::Topology::hosts).
    HostId
);
index_type!(
    /// Position of a NIC in [`Topology::nics`](crate::Topology::nics). The NICs of one host are
    /// neighbours, in rail order.
    NicId
);
index_type!(
    /// Position of a link in [`Topology::links`](crate::Topology::links).
    LinkId
);
index_type!(
    /// Position of an LA domain in [`Topology::las`](crate::Topology::las). The number that
    /// switches carry is [`La::number`](crate::La::number), which starts at 1.
    LaId
);
index_type!(
    /// Position of a segment in [`Topology::segments`](crate::Topology::segments).
    SegmentId
);
index_type!(
    /// Position of a pod in [`Topology::pods`](crate::Topology::pods).
    PodId
);
index_type!(
    /// Position of a building in [`Topology::buildings`](crate::Topology::buildings).
    BuildingId
);
index_type!(
    /// A scale-up (NVLink) domain: hosts with the same id reach each other without the fabric.
    /// Dense from 0, numbered in host order.
    ScaleUpId
);

/// A numbered port of a switch. Numbers run from 1 to [`MAX_PORT`](crate::MAX_PORT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PortRef {
    /// The switch.
    pub switch: SwitchId,
    /// The port number, from 1.
    pub port: u16,
}

/// A port of a NIC: 0, or 1 for the second port of a dual-homed NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NicPortRef {
    /// The NIC.
    pub nic: NicId,
    /// 0 or 1.
    pub port: u8,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// A NIC port of a host.
    Nic(NicPortRef),
    /// A switch port.
    Switch(PortRef),
}

impl End {
    /// The switch port, if this end is one.
    #[must_use]
    pub fn switch_port(self) -> Option<PortRef> {
        match self {
            Self::Switch(port) => Some(port),
            Self::Nic(_) => None,
        }
    }

    /// The NIC port, if this end is one.
    #[must_use]
    pub fn nic_port(self) -> Option<NicPortRef> {
        match self {
            Self::Nic(port) => Some(port),
            Self::Switch(_) => None,
        }
    }
}

/// A named node of the fabric: what a name in a topology file stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Node {
    /// A switch.
    Switch(SwitchId),
    /// A host.
    Host(HostId),
}

//! The counters of one switch, as the pipeline numbers their cells.

use p4runtime::info::{Error, Index};
use p4runtime::v1;
use std::collections::BTreeMap;

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut sum, count| {
            sum += count;
            sum
        })
    }
}

impl Count {
    fn since(self, earlier: Self) -> Self {
        // A switch that started again counts from zero.
        let difference = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
        Self {
            packets: difference(self.packets, earlier.packets),
            bytes: difference(self.bytes, earlier.bytes),
        }
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant = $number),* }

        impl $name {
            /// All of them, in order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The one with this number in the pipeline.
            #[must_use]
            pub fn from_number(number: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| *v as u64 == number)
            }
        }
    };
}

numbered! {
    /// Why a packet was dropped; numbered as in the pipeline.
    DropReason {
        /// Truncated, or an IP header with a wrong version or length.
        Parser = 0 "parser",
        /// IPv4 header checksum wrong.
        Checksum = 1 "checksum",
        /// TTL used up on a fragment that nobody may answer.
        Ttl = 2 "ttl",
        /// The port has no role.
        PortOff = 3 "port_off",
        /// Sent to a MAC that is not the switch's.
        NotStation = 4 "not_station",
        /// No route, or a route that says drop.
        NoRoute = 5 "no_route",
        /// Group or bucket unknown, or a group without members.
        NoGroup = 6 "no_group",
        /// Next hop unknown.
        NoNexthop = 7 "no_nexthop",
        /// Denied by the access list.
        Acl = 8 "acl",
        /// Would leave by the port it came in on.
        SamePort = 9 "same_port",
        /// Not-ECT packet that the marking law hit.
        Ecn = 10 "ecn",
        /// Tagged for a VLAN.
        Vlan = 11 "vlan",
        /// Group MAC, or not IP.
        NotRouted = 12 "not_routed",
        /// Address that must not cross a router.
        Martian = 13 "martian",
        /// IPv4 header with options.
        IpOptions = 14 "ip_options",
        /// In-band telemetry that a host forged, or whose flag D ended the packet at the sink.
        Int = 15 "int",
        /// Every member of the group is dead.
        NoLiveMember = 16 "no_live_member",
    }
}

numbered! {
    /// Where a packet goes, seen from the LA domain it enters the fabric by; numbered as in the pipeline.
    Locality {
        /// Stays in the LA domain.
        Local = 0 "local",
        /// Leaves it.
        Crossing = 1 "crossing",
        /// Was counted where it entered the fabric.
        Transit = 2 "transit",
        /// The destination's domain is not known.
        Unknown = 3 "unknown",
    }
}

/// Counters of one switch; cells that are zero are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Received by port.
    pub port_rx: BTreeMap<u16, Count>,
    /// Sent by port.
    pub port_tx: BTreeMap<u16, Count>,
    /// Sent by port and queue.
    pub queue_tx: BTreeMap<(u16, u8), Count>,
    /// Marked CE by egress port and queue.
    pub queue_marks: BTreeMap<(u16, u8), Count>,
    /// Dropped by ingress port and reason.
    pub drops: BTreeMap<(u16, DropReason), Count>,
    /// Forwarded by ingress port and class.
    pub locality: BTreeMap<(u16, Locality), Count>,
}

/// The counters that a snapshot reads.
const NAMES: [&str; 6] = [
    "port_rx",
    "port_tx",
    "queue_tx",
    "queue_marks",
    "drops",
    "locality",
];

impl SwitchCounters {
    /// What to read from a switch.
    ///
    /// # Errors
    /// The program lacks one of the counters.
    pub fn patterns(index: &Index) -> Result<Vec<v1::Entity>, Error> {
        NAMES
            .iter()
            .map(|name| {
                let counter = index.counter(*name)?;
                let entry = v1::CounterEntry {
                    counter_id: counter.preamble.as_ref().map_or(0, |p| p.id),
                    ..Default::default()
                };
                Ok(v1::Entity {
                    entity: Some(v1::entity::Entity::CounterEntry(entry)),
                })
            })
            .collect()
    }

    /// Sorts what was read. Cells that the pipeline does not number are left out.
    #[must_use]
    pub fn from_entities(index: &Index, entities: &[v1::Entity]) -> Self {
        let names: BTreeMap<u32, &str> = NAMES
            .iter()
            .filter_map(|name| {
                let preamble = index.counter(*name).ok()?.preamble.as_ref()?;
                Some((preamble.id, *name))
            })
            .collect();
        let mut counters = Self::default();
        for entity in entities {
            let Some(v1::entity::Entity::CounterEntry(entry)) = &entity.entity else {
                continue;
            };
            let (Some(cell), Some(data)) = (entry.index, entry.data) else {
                continue;
            };
            let count = Count {
                packets: u64::try_from(data.packet_count).unwrap_or(0),
                bytes: u64::try_from(data.byte_count).unwrap_or(0),
            };
            if let (Some(name), Ok(cell)) =
                (names.get(&entry.counter_id), u64::try_from(cell.index))
                && count != Count::default()
            {
                counters.enter(name, cell, count);
            }
        }
        counters
    }

    fn enter(&mut self, name: &str, cell: u64, count: Count) {
        let port = |bits: u32| u16::try_from(cell >> bits).unwrap_or(u16::MAX);
        let low = |bits: u32| cell & ((1 << bits) - 1);
        let queue = (port(3), low(3) as u8);
        match name {
            "port_rx" => *self.port_rx.entry(port(0)).or_default() += count,
            "port_tx" => *self.port_tx.entry(port(0)).or_default() += count,
            "queue_tx" => *self.queue_tx.entry(queue).or_default() += count,
            "queue_marks" => *self.queue_marks.entry(queue).or_default() += count,
            "drops" => {
                if let Some(reason) = DropReason::from_number(low(5)) {
                    *self.drops.entry((port(5), reason)).or_default() += count;
                }
            }
            _ => {
                if let Some(class) = Locality::from_number(low(2)) {
                    *self.locality.entry((port(2), class)).or_default() += count;
                }
            }
        }
    }

    /// What was counted after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        fn difference<K: Ord + Copy>(
            now: &BTreeMap<K, Count>,
            then: &BTreeMap<K, Count>,
        ) -> BTreeMap<K, Count> {
            now.iter()
                .map(|(k, count)| (*k, count.since(then.get(k).copied().unwrap_or_default())))
                .filter(|(_, count)| *count != Count::default())
                .collect()
        }
        Self {
            port_rx: difference(&self.port_rx, &earlier.port_rx),
            port_tx: difference(&self.port_tx, &earlier.port_tx),
            queue_tx: difference(&self.queue_tx, &earlier.queue_tx),
            queue_marks: difference(&self.queue_marks, &earlier.queue_marks),
            drops: difference(&self.drops, &earlier.drops),
            locality: difference(&self.locality, &earlier.locality),
        }
    }
}

//! Adaptive ECMP: what is configured, and what it asks of a switch besides table entries.
//!
//! Modes are those of the Switch Abstraction Interface (`SAI_ARS_MODE_*`). Without [`Ars`] groups are fixed and
//! watch nobody. With it the members of groups are watched: switches say hello to their neighbours, and
//! leaves send probes of their LA domains. The data plane has no timers, so something at each switch's CPU port
//! has to send the frames of [`beats`], each at its interval; a multicast group carries them to the ports.
//!
//! What is configured comes from the topology's policy (`policy.ars`, [`Ars::of`]), unless the caller's options
//! say otherwise.

use crate::reconcile::{Copier, Copies};
use std::collections::BTreeMap;
use topology::{ArsMode, ArsPolicy, End, MacAddr, Policy, SwitchId, Topology};

/// How a packet's member of a group is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By the flow's hash: ECMP.
    #[default]
    Fixed,
    /// Each burst of a flow at random, by weight.
    FlowletRandom,
    /// Each burst of a flow by quality: two random members and the one in use are compared.
    FlowletQuality,
    /// Each packet at random, by weight. Receivers must put packets in order.
    PerPacketRandom,
    /// Each packet by quality. Receivers must put packets in order.
    PerPacketQuality,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] = [
        Self::Fixed,
        Self::FlowletRandom,
        Self::FlowletQuality,
        Self::PerPacketRandom,
        Self::PerPacketQuality,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::FlowletRandom => "flowlet-random",
            Self::FlowletQuality => "flowlet-quality",
            Self::PerPacketRandom => "per-packet-random",
            Self::PerPacketQuality => "per-packet-quality",
        }
    }

    /// Its number in the pipeline (`ARS_*` in `constants.p4`).
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Fixed => 0,
            Self::FlowletRandom => 1,
            Self::FlowletQuality => 2,
            Self::PerPacketRandom => 3,
            Self::PerPacketQuality => 4,
        }
    }
}

impl From<ArsMode> for Mode {
    fn from(mode: ArsMode) -> Self {
        match mode {
            ArsMode::Fixed => Self::Fixed,
            ArsMode::FlowletRandom => Self::FlowletRandom,
            ArsMode::FlowletQuality => Self::FlowletQuality,
            ArsMode::PerPacketRandom => Self::PerPacketRandom,
            ArsMode::PerPacketQuality => Self::PerPacketQuality,
        }
    }
}

/// Hellos between neighbouring switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hellos {
    /// Time between two, us. A neighbour is dead 2 1/4 intervals after its last hello: one may be lost, and a cut
    /// is noticed within three.
    pub interval_us: u32,
    /// A link is gray when it loses more than one in 2^this of its packets.
    pub loss_shift: u8,
    /// Packets over which loss is judged.
    pub loss_window: u32,
    /// A gray link stays so for at least this, us.
    pub hold_us: u32,
    /// Gray links are not used at all, even in modes without quality.
    pub gray_is_dead: bool,
}

impl Default for Hellos {
    /// Every 100 us; gray above one in 256 of at least 256 packets, for 10 ms.
    fn default() -> Self {
        Self {
            interval_us: 100,
            loss_shift: 8,
            loss_window: 256,
            hold_us: 10_000,
            gray_is_dead: false,
        }
    }
}

impl Hellos {
    /// From a neighbour's last hello to its being dead, us.
    #[must_use]
    pub fn detection_us(&self) -> u32 {
        self.interval_us.saturating_mul(9) / 4
    }
}

/// Probes of the paths to LA domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// Time between two, us. A path is lost when none came for three intervals.
    pub interval_us: u32,
}

impl Default for Probes {
    /// Every 50 us.
    fn default() -> Self {
        Self { interval_us: 50 }
    }
}

impl Probes {
    /// From a path's last probe to its being lost, us.
    #[must_use]
    pub fn age_us(&self) -> u32 {
        self.interval_us.saturating_mul(3)
    }
}

/// How groups adapt. See `docs/explanation-ars.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ars {
    /// How members are chosen.
    pub mode: Mode,
    /// A flow that has not sent for this long may take another member, us. Longer than paths differ in delay, and
    /// packets stay in order.
    pub idle_us: u32,
    /// A band of congestion is 2^this packets waiting...
    pub queue_shift: u8,
    /// ...or 2^this of 65 536 parts of the port's capacity in use.
    pub use_shift: u8,
    /// Use is measured over 2^this us.
    pub use_window: u8,
    /// Whether neighbours are watched.
    pub hellos: Option<Hellos>,
    /// Whether paths beyond neighbours are.
    pub probes: Option<Probes>,
}

impl Ars {
    /// The mode with hellos and probes: flowlets end after 50 us; 8 packets or a sixteenth of the capacity, over
    /// 32 us, are a band; for single packets one packet is, and use does not count.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        let packets = mode == Mode::PerPacketQuality;
        Self {
            mode,
            idle_us: 50,
            queue_shift: if packets { 0 } else { 3 },
            use_shift: if packets { 31 } else { 12 },
            use_window: 5,
            hellos: Some(Hellos::default()),
            probes: Some(Probes::default()),
        }
    }

    /// What the topology's policy asks for.
    #[must_use]
    pub fn of(policy: &ArsPolicy) -> Self {
        let us = |ns: u64| u32::try_from(ns / 1_000).unwrap_or(u32::MAX);
        let hellos = policy.hello_ns.map(|ns| {
            let interval_us = us(ns);
            Hellos {
                interval_us,
                gray_is_dead: policy.gray_is_dead,
                ..Hellos::default()
            }
        });
        let ars = Self {
            idle_us: us(policy.idle_ns),
            hellos,
            probes: policy.probe_ns.map(|ns| Probes {
                interval_us: us(ns),
            }),
            ..Self::new(policy.mode.into())
        };
        ars.no_faster_than(1)
    }

    /// The same with hellos and probes at least so far apart: what makes them may not keep up with the policy.
    #[must_use]
    pub fn no_faster_than(mut self, interval_us: u32) -> Self {
        if let Some(hellos) = &mut self.hellos {
            hellos.interval_us = hellos.interval_us.max(interval_us);
            // A link is found gray, or not, hello by hello.
            hellos.hold_us = hellos
                .hold_us
                .max(hellos.interval_us.saturating_mul(GRAY_HELLOS));
        }
        if let Some(probes) = &mut self.probes {
            probes.interval_us = probes.interval_us.max(interval_us);
        }
        self
    }

    pub(super) fn path_age_us(&self) -> u32 {
        self.probes.map_or(0, |probes| probes.age_us())
    }

    pub(super) fn gray_is_dead(&self) -> u8 {
        self.hellos.is_some_and(|hellos| hellos.gray_is_dead).into()
    }

    /// What a byte is of a port's capacity in the window, of which all is 65 536, times 65 536.
    pub(super) fn use_scale(&self, speed_bps: u64) -> u32 {
        use_scale(speed_bps, self.use_window)
    }
}

/// Hellos that a gray link stays gray for, at least.
const GRAY_HELLOS: u32 = 10;

/// What a byte is of a port's capacity in 2^`window` us, of which all is 65 536, times 65 536.
pub(super) fn use_scale(speed_bps: u64, window: u8) -> u32 {
    let bytes = u128::from(speed_bps) * (1u128 << window.min(40)) / 8_000_000;
    u32::try_from((1u128 << 32) / bytes.max(1)).unwrap_or(u32::MAX)
}

/// Multicast groups: all neighbouring switches, those above, those below.
pub(super) const NEIGHBOURS: u16 = 1;
pub(super) const ABOVE: u16 = 2;
pub(super) const BELOW: u16 = 3;

/// The queue whose depth says how congested a port is for probes: the highest that data rides.
pub(super) fn data_queue(policy: &Policy) -> u8 {
    let data = policy.queues.values().copied().filter(|queue| *queue != 7);
    data.max().unwrap_or(0)
}

/// Ports of `switch` to switches above, and to switches below.
pub(super) fn ports(topology: &Topology, switch: SwitchId) -> (Vec<u16>, Vec<u16>) {
    let above: Vec<u16> = topology.uplinks(switch).map(|n| n.port).collect();
    let below = topology
        .neighbours(switch)
        .filter(|n| matches!(n.far, End::Switch(_)) && !above.contains(&n.port))
        .map(|n| n.port)
        .collect();
    (above, below)
}

/// The multicast groups that a switch needs. They do not depend on failures.
#[must_use]
pub fn multicast_groups(topology: &Topology, switch: SwitchId) -> BTreeMap<Copier, Copies> {
    let (above, below) = ports(topology, switch);
    let all = [&above[..], &below[..]].concat();
    [(NEIGHBOURS, all), (ABOVE, above), (BELOW, below)]
        .into_iter()
        .filter(|(_, ports)| !ports.is_empty())
        .map(|(group, ports)| {
            let copies = Copies::to_ports(ports, 0);
            (Copier::MulticastGroup(group.into()), copies)
        })
        .collect()
}

/// A frame that has to enter the pipeline by the CPU port again and again: a packet-out with `submit_to_ingress`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Time between two, us.
    pub interval_us: u32,
    /// The frame, without the packet-out header.
    pub frame: Vec<u8>,
}

const ETHERTYPE_LINK: u16 = 0x88b5;
/// The nearest bridge, which passes nothing on (IEEE 802.1Q 8.6.3).
const LINK_LOCAL: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
const HELLO: u8 = 0x11;
const PROBE: u8 = 0x12;
/// Bytes of the shortest Ethernet frame, without its check sequence.
const SHORTEST_FRAME: usize = 60;

fn frame(source: MacAddr, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = LINK_LOCAL.to_vec();
    frame.extend(source.0);
    frame.extend(ETHERTYPE_LINK.to_be_bytes());
    frame.push(kind);
    frame.extend(body);
    frame.resize(SHORTEST_FRAME, 0);
    frame
}

/// What has to be sent at a switch: hellos everywhere, probes at leaves.
#[must_use]
pub fn beats(topology: &Topology, switch: SwitchId, ars: &Ars) -> Vec<Beat> {
    let mac = topology[switch].mac;
    let hello = ars.hellos.map(|hellos| Beat {
        interval_us: hellos.interval_us,
        frame: frame(mac, HELLO, &[0; 5]),
    });
    let la = topology.la_of_switch(switch).map(|la| topology[la].number);
    let probe = ars.probes.zip(la).map(|(probes, la)| Beat {
        interval_us: probes.interval_us,
        frame: frame(mac, PROBE, &[&[0, 0][..], &la.to_be_bytes()].concat()),
    });
    hello.into_iter().chain(probe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use topology::{Clos, Tier, generate};

    #[test]
    fn a_full_port_uses_all_of_its_capacity() {
        let ars = Ars::new(Mode::FlowletQuality);
        for speed in [10_000_000_000, 100_000_000_000, 400_000_000_000u64] {
            let bytes = speed / 8 * 32 / 1_000_000;
            let used = (bytes * u64::from(ars.use_scale(speed))) >> 16;
            assert!((65_000..=65_536).contains(&used), "{speed}: {used}");
        }
    }

    #[test]
    fn a_policy_becomes_microseconds_and_intervals_can_be_stretched() {
        let policy = ArsPolicy {
            mode: ArsMode::FlowletQuality,
            idle_ns: 30_000,
            hello_ns: Some(40_000),
            probe_ns: None,
            gray_is_dead: true,
        };
        let ars = Ars::of(&policy);
        assert_eq!(
            (ars.mode, ars.idle_us, ars.probes),
            (Mode::FlowletQuality, 30, None)
        );
        let hellos = ars.hellos.unwrap_or_default();
        assert_eq!(
            (hellos.interval_us, hellos.detection_us(), hellos.hold_us),
            (40, 90, 10_000)
        );
        assert!(hellos.gray_is_dead);
        let slow = ars.no_faster_than(100_000).hellos.unwrap_or_default();
        assert_eq!(
            (slow.interval_us, slow.detection_us(), slow.hold_us),
            (100_000, 225_000, 1_000_000)
        );
        for mode in Mode::ALL {
            let named = topology::ARS_MODES
                .iter()
                .find(|(name, _)| *name == mode.name());
            assert_eq!(
                named.map(|(_, of_policy)| Mode::from(*of_policy)),
                Some(mode)
            );
        }
    }

    #[test]
    fn leaves_probe_and_everybody_says_hello() {
        let Ok(topology) = generate(&Clos::default()) else {
            panic!("the default fabric is sound");
        };
        let ars = Ars::new(Mode::Fixed);
        for switch in topology.switch_ids() {
            let leaf = topology[switch].tier == Tier::Leaf;
            let kinds: Vec<u8> = beats(&topology, switch, &ars)
                .iter()
                .map(|beat| beat.frame[14])
                .collect();
            assert_eq!(
                kinds,
                if leaf {
                    vec![HELLO, PROBE]
                } else {
                    vec![HELLO]
                }
            );
            let (above, below) = ports(&topology, switch);
            assert_eq!(
                (above.len(), below.len()),
                if leaf { (4, 0) } else { (0, 8) }
            );
            assert_eq!(multicast_groups(&topology, switch).len(), 2);
        }
    }
}

//! How groups of next hops adapt to load and failure, without the controller.

use serde::Serialize;

/// How a packet's member of a group is chosen, named as the Switch Abstraction Interface names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArsMode {
    /// By the flow's hash: ECMP. With hellos and probes, dead members are left out all the same.
    #[default]
    Fixed,
    /// Each burst of a flow at random, by weight.
    FlowletRandom,
    /// Each burst of a flow by quality.
    FlowletQuality,
    /// Each packet at random, by weight.
    PerPacketRandom,
    /// Each packet by quality.
    PerPacketQuality,
}

/// Modes by their names in files.
pub const ARS_MODES: [(&str, ArsMode); 5] = [
    ("fixed", ArsMode::Fixed),
    ("flowlet-random", ArsMode::FlowletRandom),
    ("flowlet-quality", ArsMode::FlowletQuality),
    ("per-packet-random", ArsMode::PerPacketRandom),
    ("per-packet-quality", ArsMode::PerPacketQuality),
];

impl ArsMode {
    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = ARS_MODES.iter().find(|(_, mode)| *mode == self);
        found.map_or("fixed", |(name, _)| name)
    }
}

/// Adaptive ECMP of the whole fabric. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ArsPolicy {
    /// How members are chosen.
    pub mode: ArsMode,
    /// A flow that has not sent for this long may take another member.
    pub idle_ns: u64,
    /// Time between hellos of neighbouring switches; `None`: neighbours are not watched.
    pub hello_ns: Option<u64>,
    /// Time between probes of the paths to LA domains; `None`: paths beyond neighbours are not looked at.
    pub probe_ns: Option<u64>,
    /// Links that lose packets are not used at all, in any mode.
    pub gray_is_dead: bool,
}

impl Default for ArsPolicy {
    /// Fixed, flowlets end after 50 us, hellos every 100 us, probes every 50 us.
    fn default() -> Self {
        Self {
            mode: ArsMode::Fixed,
            idle_ns: 50_000,
            hello_ns: Some(100_000),
            probe_ns: Some(50_000),
            gray_is_dead: false,
        }
    }
}

//! The switches and the links between them, laid out for walking.

use std::ops::Range;

/// Index of a link, as the topology numbers them.
pub type Link = u32;
/// Index of a switch, as the topology numbers them.
pub type Switch = u32;

/// One direction of a link between two switches, seen from the switch that sends into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The link.
    pub link: Link,
    /// The switch at the far end.
    pub peer: Switch,
    /// Egress port of the sending switch.
    pub port: u32,
    /// Rate in bits/s.
    pub speed_bps: u64,
}

/// A link between switches, as it is given to [`Graph::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The link's index.
    pub link: Link,
    /// Switch and port of both ends.
    pub ends: [(Switch, u32); 2],
    /// Rate in bits/s.
    pub speed_bps: u64,
}

/// Links that are down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSet {
    down: std::collections::BTreeSet<Link>,
}

impl LinkSet {
    /// No link is down.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether `link` is in the set.
    #[must_use]
    pub fn contains(&self, link: Link) -> bool {
        !self.down.is_empty() && self.down.contains(&link)
    }

    /// Puts `link` into the set, or takes it out; says whether that changed anything.
    pub fn set(&mut self, link: Link, down: bool) -> bool {
        if down {
            self.down.insert(link)
        } else {
            self.down.remove(&link)
        }
    }

    /// The links, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Link> + '_ {
        self.down.iter().copied()
    }

    /// Whether no link is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.down.is_empty()
    }
}

impl FromIterator<Link> for LinkSet {
    fn from_iter<I: IntoIterator<Item = Link>>(links: I) -> Self {
        Self {
            down: links.into_iter().collect(),
        }
    }
}

/// Lists of edges, one per switch, in one allocation.
#[derive(Clone, Debug, Default)]
struct Adjacency {
    starts: Vec<u32>,
    edges: Vec<Edge>,
}

impl Adjacency {
    fn new(switches: usize, mut list: Vec<(Switch, Edge)>) -> Self {
        list.sort_by_key(|(from, edge)| (*from, edge.port));
        let mut starts = vec![0u32; switches + 1];
        for (from, _) in &list {
            starts[*from as usize + 1] += 1;
        }
        for i in 0..switches {
            starts[i + 1] += starts[i];
        }
        Self {
            starts,
            edges: list.into_iter().map(|(_, edge)| edge).collect(),
        }
    }

    fn of(&self, switch: Switch) -> &[Edge] {
        let range: Range<usize> =
            self.starts[switch as usize] as usize..self.starts[switch as usize + 1] as usize;
        &self.edges[range]
    }
}

/// The switches with their tiers, and the links between different tiers.
///
/// Links within a tier are left out: a packet that went down must not go up again, and a path across
/// such a link would have to be forbidden nearly everywhere for that to hold.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    tier: Vec<u8>,
    by_tier: Vec<Switch>,
    up: Adjacency,
    down: Adjacency,
    links: u32,
}

impl Graph {
    /// Builds the graph from the tier of every switch (0 = leaf) and the wires between them.
    #[must_use]
    pub fn new(tier: Vec<u8>, wires: &[Wire]) -> Self {
        let mut up = Vec::new();
        let mut down = Vec::new();
        let mut links = 0;
        for wire in wires {
            links = links.max(wire.link + 1);
            for (near, far) in [(0, 1), (1, 0)] {
                let (from, port) = wire.ends[near];
                let (peer, _) = wire.ends[far];
                let edge = Edge {
                    link: wire.link,
                    peer,
                    port,
                    speed_bps: wire.speed_bps,
                };
                match tier[from as usize].cmp(&tier[peer as usize]) {
                    std::cmp::Ordering::Less => up.push((from, edge)),
                    std::cmp::Ordering::Greater => down.push((from, edge)),
                    std::cmp::Ordering::Equal => {}
                }
            }
        }
        let switches = tier.len();
        let mut by_tier: Vec<Switch> = (0..u32::try_from(switches).unwrap_or(u32::MAX)).collect();
        by_tier.sort_by_key(|s| std::cmp::Reverse(tier[*s as usize]));
        Self {
            tier,
            by_tier,
            up: Adjacency::new(switches, up),
            down: Adjacency::new(switches, down),
            links,
        }
    }

    /// Number of switches.
    #[must_use]
    pub fn switches(&self) -> usize {
        self.tier.len()
    }

    /// One more than the highest link index.
    #[must_use]
    pub fn links(&self) -> usize {
        self.links as usize
    }

    /// Tier of a switch: 0 for a leaf.
    #[must_use]
    pub fn tier(&self, switch: Switch) -> u8 {
        self.tier[switch as usize]
    }

    /// Highest tier there is.
    #[must_use]
    pub fn top_tier(&self) -> u8 {
        self.tier.iter().copied().max().unwrap_or(0)
    }

    /// All switches, the highest tier first.
    #[must_use]
    pub fn top_down(&self) -> &[Switch] {
        &self.by_tier
    }

    /// Edges to higher tiers, by port.
    #[must_use]
    pub fn up(&self, switch: Switch) -> &[Edge] {
        self.up.of(switch)
    }

    /// The edge that leaves `switch` by `port`, if a switch of another tier is at its far end.
    #[must_use]
    pub fn edge(&self, switch: Switch, port: u32) -> Option<Edge> {
        [self.up(switch), self.down(switch)]
            .into_iter()
            .find_map(|edges| {
                edges
                    .binary_search_by_key(&port, |e| e.port)
                    .ok()
                    .map(|i| edges[i])
            })
    }

    /// Edges to lower tiers, by port.
    #[must_use]
    pub fn down(&self, switch: Switch) -> &[Edge] {
        self.down.of(switch)
    }
}

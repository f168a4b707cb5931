//! Shortest up-down paths: a [`Graph`] and a set of links that are down become, for every destination
//! and every switch, the set of equal-cost next hops.
//!
//! A packet climbs until it meets a switch from which its destination can be reached by going down
//! only, and from there it goes down. It never climbs again, so there are no loops, and no deadlock
//! where priority flow control is used. Where a link has failed somewhere, the switches above it lose
//! their way down, and every switch below those leaves them out **for that destination only**.
//!
//! Destinations are sets of leaves (one for a single-homed subnet, two for a dual-ToR pair), never
//! hosts. Destinations that look the same from the upper tiers share one answer for all the switches
//! that have to climb, which is what makes a fabric of 100 000 NICs a matter of milliseconds.

mod graph;
#[cfg(test)]
pub(crate) mod tests;

pub use graph::{Edge, Graph, Link, LinkSet, Switch, Wire};

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// One way out of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Egress port.
    pub port: u32,
    /// Share of the traffic, relative to the other hops of the set; 1 when weights are off.
    pub weight: u32,
}

/// Index of a next-hop set in [`Routes::hops`].
pub type SetId = u32;

/// The set of a switch that is itself the destination: deliver locally.
pub const LOCAL: SetId = 0;
/// The set of a switch that cannot reach the destination.
pub const UNREACHABLE: SetId = 1;

/// What traffic may be for: any of these switches delivers it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Destination {
    /// The switches that deliver, in ascending order.
    pub switches: Vec<Switch>,
}

/// How routes are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Weigh next hops by the capacity that is left behind them (WCMP) instead of equally (ECMP).
    pub weighted: bool,
}

/// Next hops of every switch towards every destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    sets: Vec<Box<[Hop]>>,
    climbing: Vec<Arc<[Reach]>>,
    dests: Vec<DestRoutes>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct DestRoutes {
    climb: u32,
    /// The switches that go down or deliver, in ascending order.
    descend: Vec<(Switch, Reach)>,
}

/// Distance to the destination in switch-to-switch links, and the set of next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach {
    distance: u32,
    set: SetId,
    capacity: u64,
}

const NOWHERE: Reach = Reach {
    distance: u32::MAX,
    set: UNREACHABLE,
    capacity: 0,
};

impl Routes {
    fn reach(&self, dest: usize, switch: Switch) -> Reach {
        let routes = &self.dests[dest];
        match routes.descend.binary_search_by_key(&switch, |(s, _)| *s) {
            Ok(i) => routes.descend[i].1,
            Err(_) => self.climbing[routes.climb as usize][switch as usize],
        }
    }

    /// The next-hop set of `switch` towards destination number `dest`.
    #[must_use]
    pub fn set(&self, dest: usize, switch: Switch) -> SetId {
        self.reach(dest, switch).set
    }

    /// Links between `switch` and destination number `dest`; `None` when there is no way.
    #[must_use]
    pub fn distance(&self, dest: usize, switch: Switch) -> Option<u32> {
        Some(self.reach(dest, switch).distance).filter(|d| *d != u32::MAX)
    }

    /// The hops of a set, by port. Empty for [`LOCAL`] and [`UNREACHABLE`].
    #[must_use]
    pub fn hops(&self, set: SetId) -> &[Hop] {
        &self.sets[set as usize]
    }

    /// The hops of `switch` towards destination number `dest`.
    #[must_use]
    pub fn hops_to(&self, dest: usize, switch: Switch) -> &[Hop] {
        self.hops(self.set(dest, switch))
    }

    /// Number of destinations.
    #[must_use]
    pub fn destinations(&self) -> usize {
        self.dests.len()
    }
}

/// Computes the routes of all `dests` over the links that are not in `down`.
#[must_use]
pub fn compute(graph: &Graph, dests: &[Destination], down: &LinkSet, options: Options) -> Routes {
    let mut work = Work {
        walk: Walk {
            graph,
            down,
            weighted: options.weighted,
        },
        sets: Sets {
            list: vec![Box::from([]), Box::from([])],
            ids: FxHashMap::default(),
        },
        climbs: FxHashMap::default(),
        climbing: Vec::new(),
        reach: vec![NOWHERE; graph.switches()],
    };
    let dests = dests.iter().map(|dest| work.destination(dest)).collect();
    Routes {
        sets: work.sets.list,
        climbing: work.climbing,
        dests,
    }
}

/// What the climbing switches can see of a destination: who above the leaves has a way down to it.
type View = Vec<(Switch, u32, u64)>;

struct Work<'a> {
    walk: Walk<'a>,
    sets: Sets,
    climbs: FxHashMap<View, u32>,
    climbing: Vec<Arc<[Reach]>>,
    /// Scratch: the descending switches of the destination at hand, `NOWHERE` elsewhere.
    reach: Vec<Reach>,
}

impl Work<'_> {
    fn destination(&mut self, dest: &Destination) -> DestRoutes {
        let graph = self.walk.graph;
        // Nearest first, so that the capacity below a switch is known before its own.
        let mut descend = self.walk.descending(dest);
        for (switch, reach) in &mut descend {
            if reach.distance > 0 {
                let edges = graph.down(*switch);
                *reach = self
                    .walk
                    .resolve(&mut self.sets, edges, reach.distance, &self.reach);
            }
            self.reach[*switch as usize] = *reach;
        }
        // A leaf is never on anybody's way up, so it is no part of what the others see.
        let view: View = descend
            .iter()
            .filter(|(switch, _)| graph.tier(*switch) > 0)
            .map(|(switch, reach)| {
                (
                    *switch,
                    reach.distance,
                    if self.walk.weighted {
                        reach.capacity
                    } else {
                        0
                    },
                )
            })
            .collect();
        let climb = match self.climbs.get(&view) {
            Some(known) => *known,
            None => self.climb(view),
        };
        for (switch, _) in &descend {
            self.reach[*switch as usize] = NOWHERE;
        }
        descend.sort_unstable_by_key(|(switch, _)| *switch);
        DestRoutes { climb, descend }
    }

    /// The answer of every switch that has no way down, highest tier first.
    fn climb(&mut self, view: View) -> u32 {
        let graph = self.walk.graph;
        let mut answer = vec![NOWHERE; graph.switches()];
        for (switch, ..) in &view {
            answer[*switch as usize] = self.reach[*switch as usize];
        }
        for switch in graph.top_down() {
            if answer[*switch as usize].distance != u32::MAX {
                continue;
            }
            let edges = graph.up(*switch);
            let nearest = edges
                .iter()
                .filter(|edge| !self.walk.down.contains(edge.link))
                .map(|edge| answer[edge.peer as usize].distance)
                .min()
                .unwrap_or(u32::MAX);
            if nearest != u32::MAX {
                answer[*switch as usize] =
                    self.walk
                        .resolve(&mut self.sets, edges, nearest + 1, &answer);
            }
        }
        let id = u32::try_from(self.climbing.len()).unwrap_or(u32::MAX);
        self.climbing.push(answer.into());
        self.climbs.insert(view, id);
        id
    }
}

/// The graph without the links that are down.
struct Walk<'a> {
    graph: &'a Graph,
    down: &'a LinkSet,
    weighted: bool,
}

impl Walk<'_> {
    /// All switches with a way down to `dest`, breadth first from the destination upwards. Only the
    /// distances are filled in.
    fn descending(&self, dest: &Destination) -> Vec<(Switch, Reach)> {
        let delivers = Reach {
            distance: 0,
            set: LOCAL,
            capacity: u64::MAX,
        };
        let mut found: Vec<(Switch, Reach)> =
            dest.switches.iter().map(|s| (*s, delivers)).collect();
        let mut seen: FxHashSet<Switch> = dest.switches.iter().copied().collect();
        let mut next = 0;
        while let Some((switch, reach)) = found.get(next).copied() {
            next += 1;
            for edge in self.graph.up(switch) {
                if !self.down.contains(edge.link) && seen.insert(edge.peer) {
                    found.push((
                        edge.peer,
                        Reach {
                            distance: reach.distance + 1,
                            ..NOWHERE
                        },
                    ));
                }
            }
        }
        found
    }

    /// The hops among `edges` that bring a packet one link nearer, as an interned set.
    fn resolve(&self, sets: &mut Sets, edges: &[Edge], distance: u32, reach: &[Reach]) -> Reach {
        let nearer: Vec<&Edge> = edges
            .iter()
            .filter(|edge| {
                !self.down.contains(edge.link) && reach[edge.peer as usize].distance == distance - 1
            })
            .collect();
        if !self.weighted {
            let set = nearer
                .iter()
                .map(|edge| Hop {
                    port: edge.port,
                    weight: 1,
                })
                .collect();
            return Reach {
                distance,
                set: sets.intern(set),
                capacity: 0,
            };
        }
        let capacity_by = |edge: &&Edge| {
            // Parallel links share what lies beyond their common far end.
            let parallel = nearer.iter().filter(|e| e.peer == edge.peer).count() as u64;
            edge.speed_bps
                .min(reach[edge.peer as usize].capacity / parallel)
        };
        let capacities: Vec<u64> = nearer.iter().map(capacity_by).collect();
        let unit = capacities.iter().copied().fold(0, gcd).max(1);
        let set = nearer
            .iter()
            .zip(&capacities)
            .map(|(edge, c)| Hop {
                port: edge.port,
                weight: u32::try_from(c / unit).unwrap_or(u32::MAX).max(1),
            })
            .collect();
        let capacity = capacities.into_iter().fold(0, u64::saturating_add);
        Reach {
            distance,
            set: sets.intern(set),
            capacity,
        }
    }
}

/// Every different set of next hops, once.
struct Sets {
    list: Vec<Box<[Hop]>>,
    ids: FxHashMap<Box<[Hop]>, SetId>,
}

impl Sets {
    fn intern(&mut self, set: Box<[Hop]>) -> SetId {
        if let Some(id) = self.ids.get(&set) {
            return *id;
        }
        let id = SetId::try_from(self.list.len()).unwrap_or(SetId::MAX);
        self.list.push(set.clone());
        self.ids.insert(set, id);
        id
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

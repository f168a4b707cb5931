use super::*;
use proptest::prelude::*;

/// `leaves` leaves (0..), `spines` spines after them, one link each: link `leaf * spines + spine`,
/// leaf port `spine + 1`, spine port `leaf + 1`.
fn leaf_spine(leaves: u32, spines: u32) -> Graph {
    let tiers = (0..leaves)
        .map(|_| 0)
        .chain((0..spines).map(|_| 1))
        .collect();
    let wires: Vec<Wire> = (0..leaves)
        .flat_map(|l| {
            (0..spines).map(move |s| Wire {
                link: l * spines + s,
                ends: [(l, s + 1), (leaves + s, l + 1)],
                speed_bps: 400_000_000_000,
            })
        })
        .collect();
    Graph::new(tiers, &wires)
}

fn each_leaf(leaves: u32) -> Vec<Destination> {
    (0..leaves)
        .map(|l| Destination { switches: vec![l] })
        .collect()
}

fn ports(hops: &[Hop]) -> Vec<u32> {
    hops.iter().map(|h| h.port).collect()
}

#[test]
fn a_leaf_spreads_over_all_spines_and_a_spine_goes_straight_down() {
    let routes = compute(
        &leaf_spine(4, 3),
        &each_leaf(4),
        &LinkSet::none(),
        Options::default(),
    );
    assert_eq!(ports(routes.hops_to(2, 0)), [1, 2, 3]);
    assert_eq!(ports(routes.hops_to(2, 5)), [3]);
    assert_eq!(routes.set(2, 2), LOCAL);
    assert_eq!(routes.distance(2, 0), Some(2));
    // Destinations share what the upper tiers look like, but not who delivers.
    assert_eq!(ports(routes.hops_to(0, 2)), [1, 2, 3]);
}

#[test]
fn a_lost_uplink_removes_the_spine_for_that_destination_only() {
    let graph = leaf_spine(4, 3);
    // Leaf 2 loses spine 1 (switch 5).
    let down = LinkSet::from_iter([2 * 3 + 1]);
    let routes = compute(&graph, &each_leaf(4), &down, Options::default());
    assert_eq!(ports(routes.hops_to(2, 0)), [1, 3]);
    assert_eq!(ports(routes.hops_to(3, 0)), [1, 2, 3]);
    assert_eq!(ports(routes.hops_to(0, 2)), [1, 3]);
    assert_eq!(routes.set(2, 5), UNREACHABLE);
}

#[test]
fn a_leaf_without_uplinks_is_unreachable() {
    let down = LinkSet::from_iter([0, 1]);
    let routes = compute(&leaf_spine(3, 2), &each_leaf(3), &down, Options::default());
    assert_eq!(routes.set(0, 1), UNREACHABLE);
    assert_eq!(routes.distance(0, 1), None);
    assert_eq!(routes.set(1, 0), UNREACHABLE);
    assert_eq!(routes.set(0, 0), LOCAL);
}

#[test]
fn a_pair_of_leaves_is_one_destination() {
    let graph = leaf_spine(4, 2);
    let pair = [Destination {
        switches: vec![2, 3],
    }];
    let routes = compute(&graph, &pair, &LinkSet::none(), Options::default());
    assert_eq!(ports(routes.hops_to(0, 4)), [3, 4]);
    // Spine 0 loses leaf 2, and goes on through leaf 3; nobody else notices.
    let routes = compute(&graph, &pair, &LinkSet::from_iter([4]), Options::default());
    assert_eq!(ports(routes.hops_to(0, 4)), [4]);
    assert_eq!(ports(routes.hops_to(0, 0)), [1, 2]);
}

#[test]
fn weights_follow_the_capacity_beyond() {
    // Two spines; spine 0 reaches leaf 1 by two links, spine 1 by one.
    let wire = |link, leaf, leaf_port, spine, spine_port| Wire {
        link,
        ends: [(leaf, leaf_port), (spine, spine_port)],
        speed_bps: 100,
    };
    let wires = [
        Wire {
            speed_bps: 400,
            ..wire(0, 0, 1, 2, 1)
        },
        Wire {
            speed_bps: 400,
            ..wire(1, 0, 2, 3, 1)
        },
        wire(2, 1, 1, 2, 2),
        wire(3, 1, 2, 2, 3),
        wire(4, 1, 3, 3, 2),
    ];
    let graph = Graph::new(vec![0, 0, 1, 1], &wires);
    let options = Options { weighted: true };
    let routes = compute(&graph, &each_leaf(2), &LinkSet::none(), options);
    assert_eq!(
        routes.hops_to(1, 0),
        [Hop { port: 1, weight: 2 }, Hop { port: 2, weight: 1 }]
    );
    let routes = compute(&graph, &each_leaf(2), &LinkSet::from_iter([3]), options);
    assert_eq!(
        routes.hops_to(1, 0),
        [Hop { port: 1, weight: 1 }, Hop { port: 2, weight: 1 }]
    );
}

/// `pods` pods of `leaves` leaves and `spines` spines; `cores` cores per spine plane.
pub(crate) fn three_tier(pods: u32, leaves: u32, spines: u32, cores: u32) -> Graph {
    let (all_leaves, all_spines) = (pods * leaves, pods * spines);
    let mut tiers = vec![0; all_leaves as usize];
    tiers.extend(vec![1; all_spines as usize]);
    tiers.extend(vec![2; (spines * cores) as usize]);
    let mut wires = Vec::new();
    let speed_bps = 400_000_000_000;
    for pod in 0..pods {
        for s in 0..spines {
            let spine = all_leaves + pod * spines + s;
            for l in 0..leaves {
                let ends = [(pod * leaves + l, s + 1), (spine, l + 1)];
                wires.push(Wire {
                    link: wires.len() as u32,
                    ends,
                    speed_bps,
                });
            }
            for c in 0..cores {
                let core = all_leaves + all_spines + s * cores + c;
                let ends = [(spine, leaves + c + 1), (core, pod + 1)];
                wires.push(Wire {
                    link: wires.len() as u32,
                    ends,
                    speed_bps,
                });
            }
        }
    }
    Graph::new(tiers, &wires)
}

#[test]
fn three_tiers_climb_only_as_far_as_needed() {
    let graph = three_tier(2, 2, 2, 2);
    let routes = compute(&graph, &each_leaf(4), &LinkSet::none(), Options::default());
    assert_eq!(routes.distance(1, 0), Some(2));
    assert_eq!(routes.distance(2, 0), Some(4));
    // Spine 0 of pod 0 is switch 4: ports 1, 2 to its leaves, 3, 4 to its cores.
    assert_eq!(ports(routes.hops_to(1, 4)), [2]);
    assert_eq!(ports(routes.hops_to(2, 4)), [3, 4]);
}

#[test]
fn a_failure_two_tiers_away_moves_traffic_at_the_source_leaf() {
    let graph = three_tier(2, 2, 2, 2);
    // Leaf 2 (pod 1) loses spine 0 of its pod; cores of plane 0 lose leaf 2, so leaf 0 must use plane 1.
    let lost = graph.up(2).iter().find(|e| e.port == 1).map(|e| e.link);
    let routes = compute(
        &graph,
        &each_leaf(4),
        &lost.into_iter().collect::<LinkSet>(),
        Options::default(),
    );
    assert_eq!(ports(routes.hops_to(2, 0)), [2]);
    assert_eq!(ports(routes.hops_to(3, 0)), [1, 2]);
}

#[test]
fn a_hundred_thousand_nics_take_moments() {
    // 16 pods of 96 leaves of 64 NICs: 98 304 NICs.
    let graph = three_tier(16, 96, 32, 16);
    let started = std::time::Instant::now();
    let routes = compute(
        &graph,
        &each_leaf(16 * 96),
        &LinkSet::from_iter([5]),
        Options::default(),
    );
    assert_eq!(routes.destinations(), 16 * 96);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

/// Follows every next hop from everywhere: each must get nearer, never climb after going down, and
/// switches without a route must really have no up-down path.
fn check(graph: &Graph, dests: &[Destination], down: &LinkSet) -> Result<(), TestCaseError> {
    let routes = compute(graph, dests, down, Options::default());
    for (d, dest) in dests.iter().enumerate() {
        let reach = up_down_reachable(graph, dest, down);
        for s in 0..graph.switches() as u32 {
            prop_assert_eq!(routes.distance(d, s).is_some(), reach.contains(&s));
            for hop in routes.hops_to(d, s) {
                let edge = graph
                    .up(s)
                    .iter()
                    .chain(graph.down(s))
                    .find(|e| e.port == hop.port);
                let edge = edge
                    .copied()
                    .ok_or_else(|| TestCaseError::fail("no such port"))?;
                prop_assert!(!down.contains(edge.link));
                let (here, there) = (routes.distance(d, s), routes.distance(d, edge.peer));
                prop_assert_eq!(here, there.map(|n| n + 1));
                if graph.tier(edge.peer) < graph.tier(s) {
                    for next in routes.hops_to(d, edge.peer) {
                        prop_assert!(graph.down(edge.peer).iter().any(|e| e.port == next.port));
                    }
                }
            }
        }
    }
    Ok(())
}

fn up_down_reachable(graph: &Graph, dest: &Destination, down: &LinkSet) -> FxHashSet<Switch> {
    let mut reach: FxHashSet<Switch> = dest.switches.iter().copied().collect();
    let live = |e: &&Edge| !down.contains(e.link);
    let mut order: Vec<Switch> = graph.top_down().to_vec();
    order.reverse();
    for s in &order {
        if graph
            .down(*s)
            .iter()
            .filter(live)
            .any(|e| reach.contains(&e.peer))
        {
            reach.insert(*s);
        }
    }
    order.reverse();
    for s in order {
        if graph
            .up(s)
            .iter()
            .filter(live)
            .any(|e| reach.contains(&e.peer))
        {
            reach.insert(s);
        }
    }
    reach
}

proptest! {
    #[test]
    fn routes_are_shortest_up_down_and_complete(
        pods in 1u32..4, leaves in 1u32..4, spines in 1u32..4, cores in 0u32..3,
        lost in proptest::collection::vec(any::<u32>(), 0..12),
    ) {
        let graph = three_tier(pods, leaves, spines, cores);
        let links = graph.links().max(1) as u32;
        let down: LinkSet = lost.into_iter().map(|l| l % links).collect();
        check(&graph, &each_leaf(pods * leaves), &down)?;
    }
}

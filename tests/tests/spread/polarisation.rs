//! Three tiers choose by the hash of the same fields: the third must spread what the first two left it as evenly
//! as if each had thrown dice of its own.

use std::collections::BTreeMap;

use controller::intent::Options;
use topology::{NicId, SwitchId, Topology};

use crate::fabric::{At, Cores, Flow, frame};

/// Sixteen spines above the leaf; three cores above a spine; four spines of the other pod below a core.
const FABRIC: &str = "
name: three-tiers
clos: {pods: 2, segments: 1, hosts: 1, rails: 1, spines: 16, cores: 12}
";
const SAME_SEEDS: &str = "policy: {seeds: {leaf: 7, spine: 7, core: 7}}\n";
const FLOWS: u32 = 96_000;
const ROCE: u16 = 4791;

/// Packets by core, and there by port.
type Third = BTreeMap<SwitchId, BTreeMap<u16, u64>>;

/// How even the third tier is: mean over its switches, weighted by packets.
#[derive(Debug)]
struct Evenness {
    /// Entropy over the members, bits.
    entropy: f64,
    max_over_mean: f64,
}

impl Evenness {
    fn of<'a>(all: impl Iterator<Item = &'a [u64]>) -> Self {
        let (mut packets, mut entropy, mut skew) = (0.0, 0.0, 0.0);
        for counts in all {
            let sum = counts.iter().sum::<u64>() as f64;
            let share = |count: &u64| *count as f64 / sum;
            let most = counts.iter().max().map_or(0.0, share);
            let shares = counts.iter().map(share).filter(|share| *share > 0.0);
            entropy -= sum * shares.map(|share| share * share.log2()).sum::<f64>();
            skew += sum * most * counts.len() as f64;
            packets += sum;
        }
        Self {
            entropy: entropy / packets,
            max_over_mean: skew / packets,
        }
    }
}

/// Sends every flow's packet from the first NIC to the last, and looks at what the third switch does.
fn third_tier(cores: &Cores, flows: impl Iterator<Item = Flow>) -> Third {
    let topology = &cores.topology;
    let (from, to) = (NicId(0), NicId(topology.nics().len() as u32 - 1));
    let (leaf, entrance) = cores.entrance(from);
    let mut third = Third::new();
    for flow in flows {
        let mut at = At {
            switch: leaf,
            port: entrance,
            frame: frame(topology, from, to, flow),
        };
        for _ in 0..2 {
            at = cores.hop(&at).1.unwrap();
        }
        let (port, next) = cores.hop(&at);
        assert!(next.is_some());
        *third.entry(at.switch).or_default().entry(port).or_default() += 1;
    }
    third
}

/// Packets by member; all cores have four.
fn by_member(third: &Third) -> Vec<Vec<u64>> {
    let members = |ports: &BTreeMap<u16, u64>| {
        let mut counts: Vec<u64> = ports.values().copied().collect();
        counts.resize(4, 0);
        counts
    };
    third.values().map(members).collect()
}

/// The same packets, had every one of the three switches drawn lots.
fn independent() -> Vec<Vec<u64>> {
    let mut state = 1u64;
    let mut counts = vec![vec![0; 4]; 12];
    // SplitMix64, of which the high half is taken.
    let mut draw = |n: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) >> 32) * n) >> 32
    };
    for _ in 0..FLOWS {
        // A spine leads to the cores that have its number modulo four.
        let spine: u64 = draw(16);
        let core = spine % 4 + 4 * draw(3);
        counts[core as usize][draw(4) as usize] += 1;
    }
    counts
}

fn of(counts: &[Vec<u64>]) -> Evenness {
    Evenness::of(counts.iter().map(Vec::as_slice))
}

/// The whole tier as one: every member of every core.
fn overall(counts: &[Vec<u64>]) -> Evenness {
    let mut all = counts.concat();
    all.resize(48, 0);
    Evenness::of(std::iter::once(all.as_slice()))
}

fn flows(kind: &str) -> Box<dyn Iterator<Item = Flow>> {
    let base = Flow {
        src_port: 50_000,
        dst_port: ROCE,
        qp: 0x1000,
    };
    match kind {
        "queue pair" => Box::new((0..FLOWS).map(move |n| Flow { qp: n + 17, ..base })),
        "source port and queue pair" => Box::new((0..FLOWS).map(move |n| Flow {
            src_port: 0xc000 | (n % 0x4000) as u16,
            qp: 0x100 + n / 0x4000,
            ..base
        })),
        _ => Box::new((0..FLOWS).map(move |n| Flow {
            src_port: (n % 60_000) as u16,
            dst_port: 5_000 + (n / 60_000) as u16,
            qp: 0,
        })),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_third_tier_is_as_even_as_independent_choices_make_it() {
    let topology = Topology::parse("three-tiers", FABRIC).unwrap();
    let cores = Cores::new(topology, Options::default()).await;
    let drawn = independent();
    let (lots, all_lots) = (of(&drawn), overall(&drawn));
    println!("independent: {lots:.4?}, whole tier {all_lots:.4?}");
    for kind in ["queue pair", "source port and queue pair", "ports"] {
        let third = by_member(&third_tier(&cores, flows(kind)));
        assert_eq!(third.len(), 12, "every core is reached");
        let (even, all) = (of(&third), overall(&third));
        println!("{kind}: {even:.4?}, whole tier {all:.4?}");
        for (got, expected) in [(&even, &lots), (&all, &all_lots)] {
            let entropy = got.entropy / expected.entropy;
            let skew = got.max_over_mean / expected.max_over_mean;
            assert!(
                (entropy - 1.0).abs() < 0.03,
                "{kind}: {got:?}, {expected:?}"
            );
            assert!((skew - 1.0).abs() < 0.03, "{kind}: {got:?}, {expected:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_seed_for_all_tiers_it_is_not() {
    let text = format!("{FABRIC}{SAME_SEEDS}");
    let topology = Topology::parse("three-tiers", &text).unwrap();
    let cores = Cores::new(topology, Options::default()).await;
    let third = by_member(&third_tier(&cores, flows("queue pair")));
    let polarised = overall(&third);
    println!("one seed: {polarised:.4?}");
    assert!(polarised.max_over_mean > 2.0, "{polarised:?}");
}

//! Drawn irregular fabrics are what was asked for, and sound.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use topology::{Draw, GenerateError, Irregular, Node, Share, Tier, Topology, generate_irregular};

fn draw(text: &str) -> Draw {
    text.parse().unwrap()
}

fn odd() -> Irregular {
    Irregular {
        leaves: 40,
        leaf_hosts: draw("2-8"),
        nics: draw("4:10,8:90"),
        segment_leaves: draw("1-3"),
        dual_tor: Share(250_000),
        spines: 8,
        missing: Share(50_000),
        seed: 7,
        ..Irregular::default()
    }
}

/// Cables between switches.
fn cables(fabric: &Topology) -> usize {
    let upper = |node| matches!(node, Node::Switch(_));
    let lower = fabric.links().iter().map(|link| fabric.node(link.lower));
    lower.filter(|node| upper(*node)).count()
}

#[test]
fn has_what_was_asked_for() {
    let fabric = generate_irregular(&odd()).unwrap();
    let pairs = fabric.las().iter().filter(|la| la.leaves.len() == 2);
    assert_eq!(pairs.count(), 10);
    assert_eq!(fabric.tier(Tier::Leaf).count(), 50);
    assert_eq!(cables(&fabric), 50 * 8 - 20);
    let mut sizes = std::collections::BTreeSet::new();
    for la in fabric.las() {
        let mut hosts: Vec<_> = la.nics.iter().map(|nic| fabric[*nic].host).collect();
        hosts.dedup();
        assert!((2..=8).contains(&hosts.len()), "{} hosts", hosts.len());
        sizes.insert(hosts.len());
        for host in hosts {
            let nics = fabric[host].nics();
            assert!([4, 8].contains(&nics.len()));
            for nic in nics {
                assert_eq!(fabric[nic].ports().count(), la.leaves.len());
            }
        }
    }
    assert_eq!(sizes.len(), 7, "40 leaves have all sizes from 2 to 8");
    let few = fabric.hosts().iter().filter(|host| host.nics().len() == 4);
    let share = few.count() as f64 / fabric.hosts().len() as f64;
    assert!((0.04..0.2).contains(&share), "{share}");
    assert!((14..=40).contains(&fabric.segments().len()));
}

#[test]
fn missing_cables_leave_the_rest_as_it_was() {
    let less = generate_irregular(&odd()).unwrap();
    let full = generate_irregular(&Irregular {
        missing: Share(0),
        ..odd()
    })
    .unwrap();
    assert_eq!(less.hosts(), full.hosts());
    assert_eq!(cables(&full) - cables(&less), 20);
    let other = generate_irregular(&Irregular { seed: 8, ..odd() }).unwrap();
    assert_ne!(less, other);
    assert_eq!(less, generate_irregular(&odd()).unwrap());
}

#[test]
fn every_two_spines_of_two_pods_meet_in_a_core() {
    let pods = Irregular {
        pods: 3,
        cores: 5,
        missing: Share(200_000),
        ..odd()
    };
    let fabric = generate_irregular(&pods).unwrap();
    assert_eq!(fabric.tier(Tier::Spine).count(), 24);
    assert_eq!(fabric.pods().len(), 3);
    for spine in fabric.tier(Tier::Spine) {
        assert!(fabric.uplinks(spine).count() >= 3);
    }
}

fn refused(irregular: &Irregular) -> String {
    match generate_irregular(irregular) {
        Err(GenerateError::Numbers(errors)) => errors[0].to_string(),
        Err(other) => panic!("{other}"),
        Ok(fabric) => panic!("a fabric of {} hosts", fabric.hosts().len()),
    }
}

#[test]
fn names_the_field_and_the_limit() {
    let base = odd();
    for (irregular, field, part) in [
        (
            Irregular {
                leaves: 0,
                ..base.clone()
            },
            "leaves",
            "from 1 to 100000",
        ),
        (
            Irregular {
                spines: 0,
                ..base.clone()
            },
            "spines",
            "from 1 to 509",
        ),
        (
            Irregular {
                leaf_hosts: draw("0-3"),
                ..base.clone()
            },
            "leaf_hosts",
            "0 is out of range",
        ),
        (
            Irregular {
                nics: draw("8,65"),
                ..base.clone()
            },
            "nics",
            "65 is out of range",
        ),
        (
            Irregular {
                pods: 2,
                ..base.clone()
            },
            "cores",
            "1 or more cores",
        ),
        (
            Irregular {
                leaf_hosts: draw("200"),
                ..base.clone()
            },
            "leaf_hosts",
            "switches have 509",
        ),
        (
            Irregular {
                leaves: 600,
                ..base.clone()
            },
            "leaves",
            "switches have 509",
        ),
        (
            Irregular {
                spines: 2,
                ..base.clone()
            },
            "missing",
            "of which 0 can be missing",
        ),
    ] {
        let text = refused(&irregular);
        assert!(
            text.starts_with(&format!("`{field}`")) && text.contains(part),
            "{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn is_read_back_as_it_was(
        seed in any::<u64>(),
        (leaves, spines, pods) in (1..20_u32, 1..7_u32, 1..4_u32),
        (dual, missing) in (0..=1_000_000_u32, 0..150_000_u32),
    ) {
        let irregular = Irregular {
            seed,
            leaves,
            spines,
            pods,
            cores: if pods > 1 { 4 } else { 0 },
            dual_tor: Share(dual),
            missing: Share(missing),
            ..odd()
        };
        match generate_irregular(&irregular) {
            Ok(fabric) => {
                let again = Topology::parse("odd.yaml", &fabric.to_yaml()).unwrap();
                prop_assert_eq!(again, fabric);
            }
            Err(GenerateError::Numbers(errors)) => {
                prop_assert!(["missing", "pods"].contains(&errors[0].field), "{:?}", errors);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

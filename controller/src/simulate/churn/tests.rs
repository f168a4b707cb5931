#![allow(clippy::unwrap_used)]

use super::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Leaves of 2 to 8 hosts, by a seed of their own.
fn irregular(seed: u64) -> Inventory {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<u32> = (0..120).map(|_| rng.random_range(2..=8)).collect();
    Inventory::flat(&sizes)
}

fn setup(load: f64, jobs: usize, discipline: Discipline) -> Setup {
    Setup {
        load,
        sizes: vec![
            (1, 40),
            (2, 20),
            (4, 14),
            (8, 10),
            (16, 8),
            (32, 5),
            (64, 3),
        ],
        jobs,
        discipline,
        overstated: 1.5,
        moves: 0.1,
    }
}

fn outcome(inventory: &Inventory, setup: &Setup, contender: Contender, seed: u64) -> Outcome {
    run(inventory, setup, contender, seed, &|| false).unwrap()
}

#[test]
fn nobody_is_below_what_must_be() {
    let inventory = irregular(1);
    for (_, discipline) in Discipline::NAMES {
        let setup = setup(0.9, 300, discipline);
        let conditions = conditions(&inventory, &setup, 3);
        assert!(
            conditions.packing > 1.02 * conditions.floor,
            "{conditions:?}"
        );
        assert!(conditions.packing_tree < conditions.packing);
        for contender in Contender::all() {
            let outcome = outcome(&inventory, &setup, contender, 3);
            let name = contender.name();
            assert!(outcome.bound >= conditions.floor - 1e-12, "{name}");
            assert!(outcome.tree <= outcome.ring, "{name}");
            if contender != Contender::Defrag {
                assert!(outcome.ring >= outcome.bound - 1e-12, "{name}");
                assert_eq!((outcome.moves, outcome.moved), (0.0, 0.0), "{name}");
            }
        }
    }
}

#[test]
fn moving_jobs_pays_and_keeps_to_its_budget() {
    let inventory = irregular(5);
    let mut setup = setup(0.95, 1000, Discipline::Reject);
    let stay = outcome(&inventory, &setup, Contender::Policy(Policy::Meridian), 2);
    let moves = outcome(&inventory, &setup, Contender::Defrag, 2);
    assert!(moves.ring < 0.99 * stay.ring, "{moves:?}, {stay:?}");
    assert!((0.001..=0.12).contains(&moves.moved), "{moves:?}");
    setup.moves = 0.0;
    assert_eq!(outcome(&inventory, &setup, Contender::Defrag, 2), stay);
}

#[test]
fn a_seed_gives_the_same_run_again_and_another_does_not() {
    let inventory = irregular(2);
    let setup = setup(0.8, 200, Discipline::Fifo);
    for contender in Contender::all() {
        let first = outcome(&inventory, &setup, contender, 5);
        assert_eq!(first, outcome(&inventory, &setup, contender, 5));
        assert_ne!(first, outcome(&inventory, &setup, contender, 6));
    }
}

#[test]
fn occupancy_follows_the_load_where_nobody_is_turned_away() {
    let inventory = irregular(3);
    let half = conditions(&inventory, &setup(0.5, 4000, Discipline::Fifo), 1);
    assert!((0.4..0.6).contains(&half.occupied), "{half:?}");
    assert!(half.rejected == 0 && half.waited < 1e-3, "{half:?}");
    let over = conditions(&inventory, &setup(1.2, 1500, Discipline::Reject), 1);
    assert!(over.rejected > 0 && over.occupied < 1.0, "{over:?}");
    let queue = conditions(&inventory, &setup(1.2, 1500, Discipline::Fifo), 1);
    assert!(queue.waited > 0.1 && queue.rejected == 0, "{queue:?}");
}

/// The figure that the placer is for: fewer crossings than the best of the rules of others, on fabrics and
/// seeds that nothing was fitted on.
#[test]
fn the_placer_crosses_less_than_every_rule() {
    let rules = [
        Policy::SlurmTree,
        Policy::KueueBestFit,
        Policy::KueueLeastFree,
        Policy::Volcano,
    ];
    for load in [0.7, 0.95] {
        let setup = setup(load, 1500, Discipline::Reject);
        let mean = |contender| {
            let seeds = [(71, 11), (72, 12), (73, 13), (74, 14)];
            let rings = seeds
                .map(|(fabric, seed)| outcome(&irregular(fabric), &setup, contender, seed).ring);
            rings.iter().sum::<f64>() / 4.0
        };
        let placer = mean(Contender::Policy(Policy::Meridian));
        for rule in rules {
            let theirs = mean(Contender::Policy(rule));
            assert!(
                placer < 0.92 * theirs,
                "{load}: {placer} and {} {theirs}",
                rule.name()
            );
        }
        assert!(mean(Contender::Blind) > placer, "{load}: limits are of use");
    }
}

#[test]
fn setups_that_cannot_be_say_why() {
    let inventory = Inventory::flat(&[4, 4]);
    let good = Setup {
        sizes: vec![(8, 1)],
        ..setup(0.5, 10, Discipline::Fifo)
    };
    good.check(&inventory).unwrap();
    let text = |setup: Setup| setup.check(&inventory).unwrap_err().to_string();
    let large = text(Setup {
        sizes: vec![(9, 1)],
        ..good.clone()
    });
    assert!(
        large.contains("9 hosts") && large.contains("has 8"),
        "{large}"
    );
    assert!(
        text(Setup {
            load: 0.0,
            ..good.clone()
        })
        .contains("above 0")
    );
    assert!(
        text(Setup {
            load: f64::NAN,
            ..good.clone()
        })
        .contains("above 0")
    );
    assert!(
        text(Setup {
            sizes: vec![(4, 0)],
            ..good.clone()
        })
        .contains("weight")
    );
    assert!(
        text(Setup {
            overstated: 0.5,
            ..good.clone()
        })
        .contains("0.5")
    );
}

#[test]
fn an_interrupted_run_has_no_outcome() {
    let inventory = irregular(4);
    let setup = setup(0.7, 500, Discipline::Fifo);
    assert_eq!(run(&inventory, &setup, Contender::Blind, 1, &|| true), None);
}

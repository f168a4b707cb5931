#![allow(clippy::unwrap_used)]

use super::*;

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
    }
}

fn outcome(inventory: &Inventory, setup: &Setup, contender: Contender, seed: u64) -> Outcome {
    run(inventory, setup, contender, seed, &|| false).unwrap()
}

#[test]
fn all_see_the_same_jobs_start_and_end() {
    let inventory = irregular(1);
    for (_, discipline) in Discipline::NAMES {
        let setup = setup(0.9, 300, discipline);
        let all = Contender::all();
        let outcomes: Vec<Outcome> = all
            .iter()
            .map(|contender| outcome(&inventory, &setup, *contender, 3))
            .collect();
        for (contender, outcome) in all.iter().zip(&outcomes) {
            let name = contender.name();
            assert_eq!(outcome.started, outcomes[0].started, "{name}");
            assert_eq!(outcome.rejected, outcomes[0].rejected, "{name}");
            assert!((outcome.floor - outcomes[0].floor).abs() < 1e-12, "{name}");
            assert!(
                (outcome.occupied - outcomes[0].occupied).abs() < 1e-12,
                "{name}"
            );
            assert!(outcome.ring >= outcome.bound - 1e-12, "{name}");
            assert!(outcome.bound >= outcome.floor - 1e-12, "{name}");
            assert!(outcome.tree <= outcome.ring, "{name}");
        }
    }
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
    let placer = Contender::Policy(Policy::Packed);
    let half = outcome(&inventory, &setup(0.5, 4000, Discipline::Fifo), placer, 1);
    assert!((0.4..0.6).contains(&half.occupied), "{half:?}");
    assert_eq!(half.rejected, 0);
    let over = outcome(&inventory, &setup(1.2, 1500, Discipline::Reject), placer, 1);
    assert!(over.rejected > 0 && over.occupied < 1.0, "{over:?}");
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

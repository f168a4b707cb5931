#![allow(clippy::unwrap_used)]

use super::ranks::Site;
use super::traffic::*;
use crate::workload::{Algorithm, Dimension, Exchange, Grid, Operation, Over, Workload};
use proptest::prelude::*;

/// GPT-3 with 175e9 parameters on 128 hosts of 8: bf16, sequences of 2 048, 96 micro-batches.
fn gpt3() -> Workload {
    let text = "
name: gpt3-175b
ranks_per_host: 8
parallel: {tp: 8, dp: 16, pp: 8}
micro_batches: 96
model: {layers: 96, hidden: 12288, sequence: 2048, parameters: 175000000000}
";
    Workload::parse("gpt3.yaml", text).unwrap()
}

/// Host slots in two segments of 64 by `second`, each rail of a segment an LA domain.
fn two_segments(second: impl Fn(u32) -> bool) -> Vec<Site> {
    (0..128)
        .map(|slot| {
            let segment = u32::from(second(slot));
            Site {
                host: slot,
                las: (0..8).map(|rail| segment * 8 + rail).collect(),
                groups: vec![0, 0, segment],
            }
        })
        .collect()
}

#[test]
fn the_worked_example_shows_which_dimension_is_cut() {
    let mut job = gpt3();
    assert_eq!(job.hosts(), 128);
    let by = |job: &Workload, second: &dyn Fn(u32) -> bool| {
        traffic(job, &two_segments(second), Order::ByDomain)
    };
    let whole = by(&job, &|_| false);
    let gradients = job
        .exchanges
        .iter()
        .position(|e| e.name == "gradients")
        .unwrap();
    let stages = job
        .exchanges
        .iter()
        .position(|e| e.name == "stages")
        .unwrap();
    // 10.25 GB per NIC and iteration, 9.3 % of the bytes between stages.
    let per_nic = whole.volumes[gradients].sent as f64 / 1024.0;
    assert!((per_nic / 1e9 - 10.254).abs() < 0.001, "{per_nic}");
    let share = whole.volumes[stages].sent as f64 / whole.total().sent as f64;
    assert!((share - 0.0934).abs() < 0.0002, "{share}");
    assert_eq!(job.exchanges[stages].bytes * 8, 50_331_648);
    // Ranks count tp, dp, pp: a stage is 16 hosts, and data-parallel neighbours are next to each other.
    let stage = by(&job, &|slot| slot >= 64).total().share();
    assert!((stage - 0.0133).abs() < 0.0002, "{stage}");
    let rings = by(&job, &|slot| slot % 16 >= 8).total().share();
    assert!((rings - 0.1133).abs() < 0.0002, "{rings}");
    job.exchanges[gradients].algorithm = Algorithm::TwoLevel;
    let two_level = by(&job, &|slot| slot % 16 >= 8).total().share();
    assert!((two_level - 0.0604).abs() < 0.0002, "{two_level}");
    job.exchanges[gradients].algorithm = Algorithm::Tree;
    let tree = by(&job, &|slot| slot % 16 >= 8).total().share();
    assert!((tree - 0.0604).abs() < 0.0002, "{tree}");
}

#[test]
fn the_placer_sees_the_same_costs() {
    let job = gpt3();
    for second in [|slot: u32| slot >= 64, |slot: u32| slot % 16 >= 8] {
        let measured = traffic(&job, &two_segments(second), Order::ByDomain).total();
        let groups = host_groups(&job);
        let crossing: u64 = groups
            .iter()
            .map(|g| g.crossing(|slot| u32::from(second(slot))))
            .sum();
        let off = (crossing as f64 / measured.crossing as f64 - 1.0).abs();
        assert!(off < 1e-6, "{crossing} {}", measured.crossing);
    }
}

fn workload(grid: Grid, ranks_per_host: u32, exchange: Exchange) -> Workload {
    Workload {
        name: "job".to_owned(),
        grid,
        ranks_per_host,
        scale_up: ranks_per_host,
        channels: None,
        offload_ppm: 0,
        compute_ns: 0,
        exchanges: vec![exchange],
    }
}

/// Hosts with `nics` NICs, in domains by `las`.
fn sites(las: &[u32], nics: u32) -> Vec<Site> {
    (0..)
        .zip(las)
        .map(|(host, la)| Site {
            host,
            las: (0..nics).map(|nic| la * nics + nic).collect(),
            groups: vec![*la / 2],
        })
        .collect()
}

#[test]
fn aligned_rails_keep_an_all_to_all_in_its_segment() {
    let mut exchange = Exchange::new("tokens", Operation::AllToAll, Over::World, 64 << 20);
    let all = |exchange: &Exchange| {
        let job = workload(Grid::flat(64), 8, exchange.clone());
        traffic(&job, &sites(&[0; 8], 8), Order::ByDomain).total()
    };
    let aligned = all(&exchange);
    assert_eq!(aligned.crossing, 0);
    exchange.rail_aligned = false;
    let across = all(&exchange);
    assert!((across.share() - 7.0 / 8.0).abs() < 1e-9);
    assert_eq!(across.sent, aligned.sent);
    // Seven of eight bytes to other hosts are first handed to the GPU of the right rail.
    assert_eq!(aligned.scale_up - across.scale_up, aligned.sent * 7 / 8);
}

#[test]
fn offload_moves_bytes_from_the_scale_up_domain_to_nics() {
    let exchange = Exchange::new("layers", Operation::AllReduce, Over::Tensor, 1001);
    let grid = Grid::new(8, 1, 2, 1, 1).unwrap();
    let mut job = workload(grid, 8, exchange);
    let before = traffic(&job, &sites(&[0, 0], 8), Order::ByDomain).total();
    assert_eq!((before.sent, before.scale_up), (0, 2 * 2 * 7 * 1001));
    job.offload_ppm = 250_000;
    let after = traffic(&job, &sites(&[0, 0], 8), Order::ByDomain).total();
    assert_eq!(after.sent + after.scale_up, before.scale_up);
    assert_eq!(after.sent, 2 * (2 * 7 * 1001 / 4));
}

#[test]
fn node_limited_routing_caps_the_copies() {
    let text = |limit: &str| {
        format!(
            "
name: moe
ranks_per_host: 8
parallel: {{dp: 64, ep: 64}}
model: {{layers: 4, hidden: 1024, sequence: 128, moe_layers: 2, experts: 256, top_k: 8{limit}}}
"
        )
    };
    let bytes = |limit| {
        let job = Workload::parse("moe.yaml", &text(limit)).unwrap();
        let tokens = job
            .exchanges
            .iter()
            .find(|e| e.name == "tokens")
            .unwrap()
            .clone();
        assert_eq!(tokens.times, 4 * 2);
        tokens.bytes
    };
    assert_eq!(bytes(""), 8 * 128 * 1024 * 2);
    assert_eq!(bytes(", node_limit: 4"), 4 * 128 * 1024 * 2);
    assert_eq!(bytes(", node_limit: 16"), bytes(""));
}

#[test]
fn impossible_jobs_are_refused_with_field_and_limit() {
    let good = "
name: job
ranks_per_host: 8
parallel: {tp: 8, dp: 4, pp: 2}
collectives:
  - {kind: all-reduce, over: dp, bytes_per_rank: 1MiB}
";
    Workload::parse("job.yaml", good).unwrap();
    for (from, to, line, said) in [
        ("dp: 4", "dp: 4, ep: 3", 4, "`ep` is 3"),
        ("pp: 2}", "pp: 2, order: [tp, zp, dp]}", 4, "zp"),
        ("pp: 2}", "pp: 2, order: [tp, dp]}", 4, "`pp` 0 times"),
        ("ranks_per_host: 8", "ranks_per_host: 7", 3, "hosts of 7"),
        (
            "ranks_per_host: 8",
            "ranks_per_host: 8\nhosts: 9",
            4,
            "need 8",
        ),
        ("over: dp", "over: ep", 6, "one rank"),
        ("over: dp", "over: xp", 6, "expert-dp"),
        (
            "bytes_per_rank: 1MiB",
            "bytes_per_rank: 1MiB, times: 0",
            6,
            "from 1 to",
        ),
        ("kind: all-reduce", "kind: pipeline", 6, "over: pp"),
        (
            "ranks_per_host: 8",
            "ranks_per_host: 8\nscale_up: 12",
            4,
            "multiple",
        ),
        (
            "ranks_per_host: 8",
            "ranks_per_host: 8\nworld_size: 65",
            4,
            "is 64",
        ),
        ("1MiB}", "900000GiB, times: 1000000000}", 6, "2^64 bytes"),
    ] {
        let bad = good.replace(from, to);
        let report = Workload::parse("job.yaml", &bad).unwrap_err();
        let text = report.to_string();
        assert!(report.problems().iter().any(|p| p.line == line), "{text}");
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn jobs_that_are_too_large_to_count_are_refused() {
    for (text, said) in [
        (
            "name: a\nranks_per_host: 8\nparallel: {dp: 1048576}\ncollectives: [{kind: all-to-all, bytes_per_rank: 1MiB}]\n",
            "pairs of ranks",
        ),
        (
            "name: a\nranks_per_host: 8\nparallel: {dp: 8}\nmodel: {layers: 65536, hidden: 1048576, sequence: 67108864, \
             moe_layers: 65536, experts: 1048576, top_k: 1048576}\n",
            "2^64 bytes",
        ),
        (
            "name: a\nhosts: 1048576\nranks_per_host: 1024\n\
             collective: {kind: all-reduce, algorithm: ring, bytes_per_rank: 1MiB, channels: 1}\n",
            "at most 4194304 ranks",
        ),
    ] {
        let report = Workload::parse("job.yaml", text).unwrap_err();
        assert!(report.to_string().contains(said), "{said}: {report}");
    }
}

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::Ring,
    Algorithm::Hierarchical,
    Algorithm::Tree,
    Algorithm::TwoLevel,
];

proptest! {
    /// 2 (n - 1) S of an all-reduce, half that of a reduce-scatter or all-gather: to the byte, whatever
    /// divides what.
    #[test]
    fn collectives_send_what_the_formulas_say(
        las in proptest::collection::vec(0u32..4, 2..12), ranks in 1u32..5, bytes in 1u64..100_000,
        channels in 1u32..6, algorithm in 0usize..4, operation in 0usize..3, placed: bool,
    ) {
        let (hosts, algorithm) = (las.len() as u64, ALGORITHMS[algorithm]);
        let operation = [Operation::AllReduce, Operation::ReduceScatter, Operation::AllGather][operation];
        let mut exchange = Exchange::new("x", operation, Over::World, bytes);
        exchange.algorithm = algorithm;
        exchange.times = 3;
        let mut job = workload(Grid::flat(las.len() as u32 * ranks), ranks, exchange);
        job.channels = Some(channels);
        let order = if placed { Order::ByDomain } else { Order::AsNumbered };
        let found = traffic(&job, &sites(&las, ranks), order);
        let arrays = 3 * if operation == Operation::AllReduce { 2 } else { 1 };
        let total = found.total();
        let n = hosts * u64::from(ranks);
        if algorithm == Algorithm::Ring {
            prop_assert_eq!(total.sent + total.scale_up, arrays * (n - 1) * bytes);
        } else {
            prop_assert_eq!(total.sent, arrays * (hosts - 1) * bytes);
            prop_assert_eq!(total.scale_up, arrays * hosts * u64::from(ranks - 1) * bytes);
        }
        prop_assert_eq!(total.sent, found.flows.iter().map(|f| f.bytes).sum::<u64>());
        // No order crosses less than the domains need.
        let mut domains = las.clone();
        domains.sort_unstable();
        domains.dedup();
        let (l, whole) = (domains.len() as u64, operation == Operation::AllReduce);
        if placed && algorithm == Algorithm::TwoLevel {
            prop_assert_eq!(total.crossing, arrays * (l - 1) * bytes);
        }
        if placed && algorithm == Algorithm::Tree && whole {
            prop_assert_eq!(total.crossing, arrays * (l - 1) * bytes);
        }
        if placed && algorithm != Algorithm::Tree && l == 1 {
            prop_assert_eq!(total.crossing, 0);
        }
    }

    #[test]
    fn all_to_all_sends_all_but_what_stays(
        hosts in 2u32..7, ranks in 1u32..5, bytes in 1u64..100_000, aligned: bool,
    ) {
        let mut exchange = Exchange::new("x", Operation::AllToAll, Over::World, bytes);
        exchange.rail_aligned = aligned;
        let job = workload(Grid::flat(hosts * ranks), ranks, exchange);
        let las: Vec<u32> = (0..hosts).map(|h| h % 2).collect();
        let found = traffic(&job, &sites(&las, ranks), Order::ByDomain).total();
        // Every rank keeps its own part; the parts of all ranks differ by a byte at most.
        let own: u64 = (0..hosts * ranks).map(|r| crate::workload::share(bytes, hosts * ranks, r)).sum();
        let all = u64::from(hosts * ranks) * bytes - own;
        let per_host = |h: u32| -> u64 {
            (0..ranks).map(|r| crate::workload::share(bytes, hosts * ranks, h * ranks + r)).sum()
        };
        let inside: u64 = (0..hosts).map(|h| u64::from(ranks) * per_host(h)).sum::<u64>() - own;
        prop_assert_eq!(found.sent, all - inside);
        prop_assert!(found.scale_up >= inside);
    }

    #[test]
    fn pipelines_send_both_ways_over_every_boundary(
        tp in 1u32..4, pp in 2u32..6, dp in 1u32..4, bytes in 1u64..10_000, times in 1u64..5, inner: bool,
    ) {
        let mut exchange = Exchange::new("x", Operation::Pipeline, Over::Pipeline, bytes);
        exchange.times = times;
        let mut grid = Grid::new(tp, 1, dp, pp, 1).unwrap();
        if inner {
            grid = grid.ordered(&[Dimension::Tensor, Dimension::Pipeline, Dimension::Data, Dimension::Context]).unwrap();
        }
        let job = workload(grid, tp, exchange);
        let las = vec![0; job.hosts() as usize];
        let found = traffic(&job, &sites(&las, tp), Order::ByDomain).total();
        prop_assert_eq!(found.sent, u64::from(tp * dp * (pp - 1)) * 2 * bytes * times);
    }
}

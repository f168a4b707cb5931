//! The demo's promises.

use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _, Value};

use super::{json, run, stderr, stdout};

fn demo(seed: &str) -> (Value, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let report = report.to_str().unwrap();
    let output = run(&[
        "demo", "--format", "json", "--seed", seed, "--report", report,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    (json(&stdout(&output)), folder)
}

fn number(value: &Value, field: &str) -> f64 {
    value[field]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {field} in {value:?}"))
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn placed_is_at_its_bound_and_fast_and_unplaced_visibly_worse() {
    let (report, folder) = demo("1");
    let runs = report["runs"].as_array().unwrap();
    let names: Vec<_> = runs.iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["unplaced", "placed", "failure"]);
    let (unplaced, placed) = (&runs[0], &runs[1]);

    let bound = number(placed, "cross_la_bound");
    assert!((number(placed, "cross_la_share") - bound).abs() < 1e-6);
    assert!(number(placed, "busbw_ratio") >= 0.85);
    assert_eq!(number(placed, "drops"), 0.0);
    assert!(number(placed, "max_over_mean_uplink") < 1.05);

    assert!(number(unplaced, "cross_la_share") > 1.5 * bound);
    assert!(number(unplaced, "busbw_ratio") < 0.8 * number(placed, "busbw_ratio"));
    assert!(number(unplaced, "max_over_mean_uplink") > 1.2);

    let failure = &report["failure"];
    assert!(failure["link"].as_str().unwrap().contains("spine"));
    assert!(number(failure, "lost_packets") > 0.0);
    let repair = number(failure, "repair_us");
    assert!(
        repair > 0.0 && repair < 1e6,
        "located and repaired within a second"
    );
    assert!(number(&report, "entries_written") > 1000.0);
    assert_eq!(number(&report, "switches"), 12.0);
    assert!(number(&report, "cold_start_ms") > 0.0);

    for file in ["report.json", "fabric.svg", "throughput.svg"] {
        let path = folder.path().join("report").join(file);
        assert!(std::fs::metadata(&path).unwrap().len() > 500, "{file}");
    }
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let [a, b, other] = ["7", "7", "8"].map(|seed| demo(seed).1);
    let report = |folder: &tempfile::TempDir| {
        let path = folder.path().join("report/report.json");
        let text = std::fs::read_to_string(path).unwrap();
        let (wall_clock, rest): (Vec<_>, Vec<_>) = text
            .lines()
            .partition(|line| line.contains("cold_start_ms"));
        assert_eq!(wall_clock.len(), 1);
        rest.join("\n")
    };
    assert_eq!(report(&a), report(&b));
    assert_ne!(
        report(&a),
        report(&other).replace("\"seed\": 8", "\"seed\": 7")
    );
    for file in ["fabric.svg", "throughput.svg"] {
        let read = |folder: &tempfile::TempDir| {
            std::fs::read(folder.path().join("report").join(file)).unwrap()
        };
        assert!(
            read(&a) == read(&b),
            "{file} differs between runs of one seed"
        );
    }
}

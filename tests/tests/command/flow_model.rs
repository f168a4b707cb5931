//! The flow model beside the packet emulator: the same messages on the same paths, within 5 %. And the
//! emulator's promise: all-reduces at 0.90 of the NICs' rate where nothing is oversubscribed.

use sonic_rs::{JsonContainerTrait as _, JsonValueTrait as _, Value};
use std::path::Path;

use super::{json, run, stderr, stdout};

fn simulate(arguments: &[&str]) -> Value {
    let arguments = [&["simulate"][..], arguments, &["--format", "json"][..]].concat();
    let output = run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    json(&stdout(&output))
}

/// A job of one all-reduce in a file.
fn job(folder: &Path, hosts: u32, ranks: u32, bytes: &str, channels: u32, kind: &str) -> String {
    let text = format!(
        "name: job\nranks_per_host: {ranks}\nparallel: {{dp: {}}}\nchannels: {channels}\n\
         collectives: [{{kind: {kind}, algorithm: hierarchical, bytes_per_rank: {bytes}}}]\n",
        hosts * ranks
    );
    let path = folder.join(format!("{kind}-{hosts}-{ranks}-{channels}.yaml"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn number(value: &Value, field: &str) -> f64 {
    value[field]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {field} in {value:?}"))
}

/// Runs a job's exchange both ways.
fn collective(topology: &str, job: &str, more: &[&str]) -> Value {
    let report = simulate(&[&["collective", topology, job][..], more].concat());
    report["exchanges"].as_array().unwrap()[0].clone()
}

fn agrees(result: &Value) {
    let error = number(result, "model_error");
    assert!(error.abs() <= 0.05, "{error}: {result:?}");
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn all_reduces_agree_placed_and_unplaced() {
    let folder = tempfile::tempdir().unwrap();
    let reduce = job(folder.path(), 8, 4, "64MiB", 16, "all-reduce");
    let demo = "topologies/demo.yaml";
    agrees(&collective(demo, &reduce, &[]));
    agrees(&collective(demo, &reduce, &["--algorithm", "two-level"]));
    let tree = ["--algorithm", "tree", "--control", "window"];
    agrees(&collective(demo, &reduce, &tree));
    for (seed, control) in [("1", "window"), ("2", "window"), ("3", "rates")] {
        let unplaced = [
            "--order",
            "shuffled",
            "--paths",
            "ecmp",
            "--seed",
            seed,
            "--control",
            control,
        ];
        let result = collective(demo, &reduce, &unplaced);
        agrees(&result);
        assert!(number(&result, "busbw_ratio") < 0.85, "{result:?}");
    }
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn independent_flows_agree() {
    let flows = |more: &[&str]| {
        let own = ["flows", "topologies/demo.yaml"];
        agrees(&simulate(&[&own[..], more].concat()));
    };
    for paths in ["placed", "hashed", "ecmp"] {
        let permutation = [
            "--pattern",
            "permutation",
            "--bytes",
            "32MiB",
            "--paths",
            paths,
        ];
        flows(&[&permutation[..], &["--control", "window"][..]].concat());
    }
    for (fan_in, control) in [("3", "window"), ("15", "window"), ("7", "rates")] {
        let incast = ["--pattern", "incast", "--bytes", "8MiB", "--fan-in", fan_in];
        flows(&[&incast[..], &["--control", control][..]].concat());
    }
}

#[test]
#[ignore = "needs the built command; tests/run demo"]
fn all_reduces_reach_nine_tenths_of_the_nics_rate() {
    let folder = tempfile::tempdir().unwrap();
    let four = job(folder.path(), 8, 4, "64MiB", 16, "all-reduce");
    let two = job(folder.path(), 4, 1, "32MiB", 2, "all-reduce");
    for (topology, job) in [
        ("topologies/demo.yaml", &four),
        ("topologies/dual-plane.yaml", &four),
        ("topologies/two-leaves.yaml", &two),
    ] {
        let result = collective(topology, job, &[]);
        let ratio = number(&result, "busbw_ratio");
        assert!(ratio >= 0.90, "{topology}: {ratio}");
        assert_eq!(number(&result, "drops"), 0.0, "{topology}");
    }
}

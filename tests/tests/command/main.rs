//! The `meridian` command from outside: what it prints, how it exits, what it leaves.
#![allow(clippy::unwrap_used, missing_docs)]

mod demo;
mod flow_model;
mod inputs;
mod int;
mod running;

use std::process::{Command, Output};

/// `meridian`, in the repository's root, with a folder of its own for running fabrics.
fn meridian(run_dir: &std::path::Path) -> Command {
    let mut command = Command::new(tests::binary("meridian").unwrap());
    command
        .current_dir(tests::root())
        .env("MERIDIAN_RUN_DIR", run_dir)
        .env_remove("RUST_LOG");
    command
}

/// Runs it to its end.
fn run(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    meridian(folder.path()).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Parses what should be one JSON object.
fn json(text: &str) -> sonic_rs::Value {
    sonic_rs::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

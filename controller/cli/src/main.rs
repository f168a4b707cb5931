//! The `meridian` command: one fabric, from a topology file to forwarded packets.
//!
//! ```text
//!  args ──> cmd::{demo, check, up, status, int, job, place, simulate, topology} ──> exit code
//!                │
//!                ├─ topology    reads and checks the file
//!                ├─ lab         brings it up on a target
//!                ├─ controller  decides entries, places jobs, repairs
//!                └─ report      draws what was measured
//! ```
//!
//! Each subcommand is one module under [`cmd`] with a `run` that takes its parsed
//! arguments and returns `Result<(), Failure>`. What a command prints for people
//! goes to standard output, progress and diagnostics to standard error, so that
//! `--format json` can be piped.

mod args;
mod cmd;
mod failure;
mod input;
mod names;
mod output;
mod report;
mod running;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::start_logging(cli.verbose);
    let outcome = match cli.command {
        Command::Demo(args) => cmd::demo::run(&args),
        Command::Check(args) => cmd::check::run(&args),
        Command::Up(args) => cmd::up::run(&args),
        Command::Status(args) => cmd::status::run(&args),
        Command::Int(args) => cmd::int::run(&args),
        Command::Job(args) => cmd::job::run(&args),
        Command::Place(args) => cmd::place::run(&args),
        Command::Simulate(args) => cmd::simulate::run(&args),
        Command::Topology(args) => cmd::topology::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

//! `meridian int`: in-band telemetry.

mod view;
mod watch;

use crate::args::{IntArgs, IntCommand};
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(args: &IntArgs) -> Result<(), Failure> {
    match &args.command {
        IntCommand::Watch(args) => watch::run(args),
    }
}

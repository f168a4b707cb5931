//! `meridian up`: brings a topology up on a target, keeps it running, and takes it down
//! on Ctrl-C.

mod embedded;
mod external;
mod live;
mod mininet;

use std::sync::Arc;

use ::topology::Topology;

use crate::args::{Target, UpArgs};
use crate::cmd::stop::Stop;
use crate::failure::Failure;
use crate::input;
use crate::output::Progress;
use crate::running::{self, Announcement};

use live::Live;

/// What all targets are given.
struct Setting<'a> {
    args: &'a UpArgs,
    topology: Arc<Topology>,
    announcement: Announcement,
    progress: Progress,
}

/// Runs the command.
pub(crate) fn run(args: &UpArgs) -> Result<(), Failure> {
    check(args)?;
    let topology = Arc::new(input::topology(&args.file)?);
    check_commands(args, &topology)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    runtime.block_on(async {
        let mut stop = Stop::listen()?;
        let setting = Setting {
            args,
            announcement: Announcement::new(&running::folder(), topology.name())?,
            topology,
            progress: Progress::new(false),
        };
        match args.target {
            Target::Embedded => embedded::run(setting, &mut stop).await,
            Target::Mininet => mininet::run(setting, &mut stop).await,
            Target::External => external::run(setting, &mut stop).await,
        }
    })
}

/// Options that only make sense with some targets.
fn check(args: &UpArgs) -> Result<(), Failure> {
    let wrong = |option: &str, target: &str| {
        Err(Failure::Input(format!(
            "error: {option} goes with --target {target}"
        )))
    };
    match args.target {
        Target::External => {}
        _ if !args.switches.is_empty() => return wrong("--switch", "external"),
        _ => {}
    }
    match args.target {
        Target::Mininet => Ok(()),
        _ if !args.exec.is_empty() => wrong("--exec", "mininet"),
        _ if args.program.is_some() => wrong("--program", "mininet"),
        _ => Ok(()),
    }
}

/// The commands of `--exec`, before anything is built for them.
fn check_commands(args: &UpArgs, topology: &Topology) -> Result<(), Failure> {
    for text in &args.exec {
        let Some((host, _)) = text.split_once(':') else {
            return Err(Failure::Input(format!(
                "error: --exec '{text}' is not HOST:COMMAND; an example is --exec 'h1:ip address'"
            )));
        };
        if !topology.hosts().iter().any(|h| h.name == host) {
            return Err(Failure::Input(format!(
                "error: --exec '{text}': no host is named '{host}'; `meridian topology generate {}` lists them",
                args.file.display(),
            )));
        }
    }
    Ok(())
}

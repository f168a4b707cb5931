//! Switches inside this process, hosts as NIC models, fabric time paced by the clock.

use std::time::{Duration, Instant};

use controller::intent::Options;
use lab::emulator::{Emulator, EmulatorConfig};
use serde::Serialize;

use super::{Live, Setting, Stop};
use crate::cmd::reach::{self, Reach};
use crate::failure::Failure;
use crate::output;

/// How often fabric time catches up with the clock.
const PACE: Duration = Duration::from_millis(10);

/// What `--once` prints.
#[derive(Serialize)]
struct Once<'a> {
    up: &'a super::live::Up,
    reach: Reach,
}

/// Runs the fabric until a signal comes.
pub(super) async fn run(setting: Setting<'_>, stop: &mut Stop) -> Result<(), Failure> {
    let Setting {
        args,
        topology,
        announcement,
        progress,
    } = setting;
    progress.stage(format!("starting {} switches", topology.switches().len()));
    let mut emulator = Emulator::new(&topology, EmulatorConfig::new(&topology, 1));
    let fabric = emulator
        .serve_tcp(topology.name(), args.grpc_base_port)
        .await
        .map_err(Failure::run)?;
    let start = Live::start(
        topology.clone(),
        fabric.switches.clone(),
        "embedded",
        (Options::default(), args.int_reports),
    );
    let live = stop.unless(start).await?;
    progress.stage("checking that every NIC reaches every other");
    let reach = reach::probe(&mut emulator, &topology);
    progress.finish();
    if args.once {
        let once = Once {
            up: &live.up,
            reach,
        };
        output::print(args.format, &once, |once| {
            format!("{}\n{}", once.up.to_text(), once.reach.to_text())
        })?;
        return once.reach.verdict();
    }
    output::print(args.format, &live.up, |up| {
        format!("{}\n{}", up.to_text(), reach.to_text())
    })?;
    output::say("Ctrl-C to stop; `meridian status` in another terminal shows how it is");
    let serve = async {
        tokio::select! {
            kept = live.keep(&announcement) => kept,
            () = pace(&mut emulator) => Ok(()),
        }
    };
    let ended = stop.unless(serve).await;
    fabric.tear_down().await;
    output::say("stopped");
    match ended {
        Err(Failure::Interrupted) => Ok(()),
        other => other,
    }
}

/// Moves fabric time with the clock, for ever.
async fn pace(emulator: &mut Emulator) {
    let (begun, origin) = (Instant::now(), emulator.now());
    let mut beat = tokio::time::interval(PACE);
    loop {
        beat.tick().await;
        let elapsed = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        emulator.run_until(origin.saturating_add(elapsed));
    }
}

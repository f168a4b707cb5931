//! Switches that are already there.

use std::time::Duration;

use controller::intent::Options;
use lab::external;

use super::{Live, Setting, Stop};
use crate::failure::Failure;
use crate::output;

/// How long a switch may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Takes the switches under control until a signal comes. Their entries stay.
pub(super) async fn run(setting: Setting<'_>, stop: &mut Stop) -> Result<(), Failure> {
    let Setting {
        args,
        topology,
        announcement,
        progress,
    } = setting;
    progress.stage(format!(
        "connecting to {} switches",
        topology.switches().len()
    ));
    let start = async {
        external::endpoints(&topology, &args.switches)
            .map_err(|error| Failure::Input(format!("error: {error}")))?;
        let fabric = external::bring_up(&topology, &args.switches, ANSWER)
            .await
            .map_err(Failure::run)?;
        Live::start(
            topology.clone(),
            fabric.switches.clone(),
            "external",
            (Options::default(), args.int_reports),
        )
        .await
    };
    let live = stop.unless(start).await;
    progress.finish();
    let live = live?;
    output::print(args.format, &live.up, |up| {
        format!("{}, read back and found as desired", up.to_text())
    })?;
    if args.once {
        return Ok(());
    }
    output::say("Ctrl-C to let go of the switches; their entries stay");
    match stop.unless(live.keep(&announcement)).await {
        Err(Failure::Interrupted) => Ok(()),
        other => other,
    }
}

//! The third run: a link that carries flows is cut half way.
//!
//! What happens when, in fabric time: the link goes dark and its frames are lost; the
//! ports at its ends notice after the emulator's detection time; the controller hears,
//! computes and writes at the times that the reaction model states; senders go back to
//! what was not acknowledged. While the controller works, virtual time stands still; its
//! writes land at their modelled times.

use std::collections::BTreeMap;

use ::topology::{LinkId, Topology};
use controller::desired::{Change, landings};
use controller::placement::{JobPlan, Path};
use controller::reaction::{Landing, ReactionModel};
use lab::emulator::{Notice, PortEvent, RunId};

use super::bed::{Bed, stuck};
use super::{Outcome, outcome, picture};
use crate::failure::Failure;
use crate::report::FailureReport;

/// Alarm that cuts the link; those of the controller's writes count from 1.
const CUT: u64 = 0;

/// From a switch's noticing that a port is down to the controller's knowing it, ns: an
/// on-change telemetry update over the management network.
const NOTIFY_NS: u64 = 1_000_000;

/// How the fabric is repaired.
struct Repair {
    link: LinkId,
    cut_at: u64,
    model: ReactionModel,
    changes: Vec<Change>,
    /// Writes that have not landed yet, by alarm.
    pending: BTreeMap<u64, Landing>,
    planned: bool,
    done_at: Option<u64>,
    flows_moved: usize,
}

/// Runs the placed job and cuts a link `after_ns` from its start.
pub(super) async fn run(
    bed: &mut Bed,
    plan: &JobPlan,
    bytes: u64,
    after_ns: u64,
) -> Result<(Outcome, FailureReport), Failure> {
    let (reduce, mut schedule) = bed.all_reduce(plan, bytes)?;
    bed.place(&mut schedule).await?;
    let link = victim(bed)?;
    let (run, before) = bed.start(schedule).await?;
    let cut_at = bed.emulator.now() + after_ns;
    bed.emulator.set_alarm(cut_at, CUT);
    let mut repair = Repair {
        link,
        cut_at,
        model: ReactionModel {
            detect_ns: bed.emulator.config().detection_ns + NOTIFY_NS,
            ..ReactionModel::default()
        },
        changes: Vec::new(),
        pending: BTreeMap::new(),
        planned: false,
        done_at: None,
        flows_moved: 0,
    };
    drive(bed, run, &mut repair).await?;
    let measured = bed.measure(run, &before).await?;
    let repaired_at = repair.done_at.ok_or_else(stuck)?;
    let failure = FailureReport {
        link: picture::link_name(&bed.topology, link),
        lost_packets: measured.lost.in_flight + measured.lost.port_down,
        repair_us: (repaired_at - cut_at) as f64 / 1e3,
        detect_us: repair.model.detect_ns as f64 / 1e3,
        entries_written: repair.changes.iter().map(|c| c.plan.len() as u64).sum(),
        flows_moved: repair.flows_moved,
    };
    let cut_after_us = after_ns as f64 / 1e3;
    let watched = bed.desired.planner().ars().and_then(|ars| ars.hellos);
    let because = match watched {
        Some(hellos) => format!(
            "{} was cut after {cut_after_us:.0} us; the switches themselves left it within {} us, and its flows sent \
             again what was lost meanwhile. The controller moved {} flows after {:.0} us",
            failure.link,
            hellos.detection_us(),
            failure.flows_moved,
            failure.repair_us,
        ),
        None => stood_still(&failure, cut_after_us),
    };
    let report = measured.report(
        "failure",
        &bed.topology,
        (plan, &reduce, bed.nic_bps(&reduce)),
        because,
    );
    let outcome = outcome(bed, &measured, report, Some((link, cut_at)));
    Ok((outcome, failure))
}

/// A leaf-spine link that a placed flow uses.
fn victim(bed: &Bed) -> Result<LinkId, Failure> {
    let paths = bed.desired.placed().paths.iter().flatten();
    paths
        .filter_map(|path| uplink(&bed.topology, path))
        .next()
        .ok_or_else(|| {
            Failure::Input(
                "error: no flow of this job uses a link between switches, so there is nothing to fail; \
                 give the job more hosts than one LA domain has"
                    .to_owned(),
            )
        })
}

/// The first link of a path between two switches.
fn uplink(topology: &Topology, path: &Path) -> Option<LinkId> {
    let between_switches = |link: &LinkId| {
        let ends = topology[*link].ends();
        ends.iter().all(|end| end.switch_port().is_some())
    };
    path.steps
        .iter()
        .map(|step| LinkId(step.link))
        .find(between_switches)
}

/// Runs the emulation until the job and the repair are done.
async fn drive(bed: &mut Bed, run: RunId, repair: &mut Repair) -> Result<(), Failure> {
    let mut finished = false;
    while !(finished && repair.done_at.is_some()) {
        match bed.emulator.run_until_notice(u64::MAX) {
            Some(Notice::RunFinished { run: done, .. }) => finished |= done == run,
            Some(Notice::Alarm { token: CUT, .. }) => bed.emulator.set_link(repair.link, false),
            Some(Notice::Alarm { token, at }) => land(bed, repair, token, at).await?,
            Some(Notice::Port(event)) => hear(bed, repair, event)?,
            Some(_) => {}
            None => return Err(stuck()),
        }
    }
    Ok(())
}

/// The controller is told of a port that went down: it plans once for the link, and
/// its writes are set to land when the model says.
fn hear(bed: &mut Bed, repair: &mut Repair, event: PortEvent) -> Result<(), Failure> {
    if event.up || repair.planned {
        return Ok(());
    }
    repair.planned = true;
    let before = bed.desired.placed().paths.clone();
    repair.changes = bed.replan(repair.link)?;
    let after = &bed.desired.placed().paths;
    repair.flows_moved = before.iter().zip(after).filter(|(a, b)| a != b).count();
    let writes = landings(&repair.model, repair.cut_at, &repair.changes);
    for (token, landing) in (CUT + 1..).zip(writes) {
        bed.emulator.set_alarm(landing.at, token);
        repair.pending.insert(token, landing);
    }
    if repair.pending.is_empty() {
        repair.done_at = Some(event.at);
    }
    Ok(())
}

/// One write takes effect.
async fn land(bed: &mut Bed, repair: &mut Repair, token: u64, at: u64) -> Result<(), Failure> {
    let Some(landing) = repair.pending.remove(&token) else {
        return Ok(());
    };
    let change = repair.changes.iter().find(|c| c.switch.0 == landing.switch);
    if let Some(change) = change {
        let batch = &change.plan.batches[landing.batch];
        bed.controller
            .write(change.switch, batch)
            .await
            .map_err(Failure::run)?;
        bed.entries_written += batch.len() as u64;
    }
    if repair.pending.is_empty() {
        bed.controller.set_desired(&bed.desired);
        repair.done_at = Some(at);
    }
    Ok(())
}

/// What a cut does to flows that wait for the controller.
fn stood_still(failure: &FailureReport, cut_after_us: f64) -> String {
    format!(
        "{} was cut after {cut_after_us:.0} us; {} flows stood still until their paths were moved and then sent again \
         what was lost. The {:.0} us that the stated model gives to hearing of it, planning and writing \
         last longer than the whole job, which is why busbw is low",
        failure.link, failure.flows_moved, failure.repair_us,
    )
}

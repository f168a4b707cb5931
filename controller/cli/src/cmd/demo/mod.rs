//! `meridian demo`: a job on an emulated fabric, three times.
//!
//! 1. *unplaced*: ranks on hosts as they come, every flow hashed by ECMP;
//! 2. *placed*: ranks, rings and flows by topology;
//! 3. *failure*: placed again, and a leaf-spine link that carries flows is cut half way.
//!
//! All figures come from the running fabric: the P4 program's counters read over
//! P4Runtime, and what NICs and links of the emulator counted.

pub(crate) mod bed;
mod failure_run;
pub(crate) mod measure;
mod picture;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::topology::Topology;
use controller::placement::{JobPlan, Strategy, place_job};
use controller::workload::{Algorithm, Job};

use crate::args::{DemoArgs, Format};
use crate::failure::Failure;
use crate::output::Progress;
use crate::report::{DemoReport, Panel, RunReport, ThroughputPanel, prepare_folder, write_folder};
use crate::{input, output};

use bed::Bed;
use picture::Sketch;

/// One run, with what the pictures need.
struct Outcome {
    report: RunReport,
    panel: Panel,
    throughput: ThroughputPanel,
    elapsed_ns: u64,
}

/// Runs the command.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let topology = Arc::new(input::demo_topology(args.topology.as_deref())?);
    let job = input::demo_job(args.job.as_deref())?;
    if job.collective.algorithm != Algorithm::Hierarchical {
        return Err(Failure::Input(format!(
            "error: job '{}': the demo runs `algorithm: hierarchical` collectives; \
             flat rings through every GPU are planned but not emulated",
            job.name
        )));
    }
    prepare_folder(&args.report)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    let progress = Progress::new(false);
    let outcome = runtime.block_on(demo(&topology, &job, args, &progress));
    progress.finish();
    let (report, outcomes) = outcome?;
    let (panels, throughput) = outcomes
        .into_iter()
        .map(|outcome| (outcome.panel, outcome.throughput))
        .unzip::<_, _, Vec<_>, Vec<_>>();
    let picture = Sketch::new(&topology).with(panels);
    output::print(args.format, &report, DemoReport::to_text)?;
    write_folder(&args.report, &report, &picture, &throughput)?;
    if args.format == Format::Text {
        let folder = args.report.display();
        output::write_all(&format!(
            "written: {folder}/report.json, {folder}/fabric.svg, {folder}/throughput.svg\n"
        ))?;
    }
    Ok(())
}

async fn demo(
    topology: &Arc<Topology>,
    job: &Job,
    args: &DemoArgs,
    progress: &Progress,
) -> Result<(DemoReport, Vec<Outcome>), Failure> {
    let seed = args.seed;
    let reports_to = topology.policy().int.is_some().then_some(args.int_reports);
    let place = |strategy| {
        place_job(topology, job, &Default::default(), strategy)
            .map_err(|error| Failure::Input(format!("error: {error}")))
    };
    let unplaced = place(Strategy::Unplaced { seed })?;
    let placed = place(Strategy::Placed)?;
    if measure::edges(topology, &placed).1 == 0 {
        return Err(Failure::Input(format!(
            "error: job '{}' fits in one LA domain, so no flow of its third run would use a link between \
             switches that could fail; give the job more hosts",
            job.name
        )));
    }
    let count = topology.switches().len();
    progress.stage(format!("bringing up {count} switches"));
    let mut bed = Bed::bring_up(Arc::clone(topology), seed, reports_to).await?;
    let bytes = job.collective.bytes_per_rank;

    progress.stage("run 1 of 3: ranks as they come, plain ECMP");
    let first = as_they_come(&mut bed, &unplaced, bytes, progress).await?;
    progress.stage("run 2 of 3: placed by topology");
    let second = by_topology(&mut bed, &placed, bytes, progress).await?;
    progress.stage("run 3 of 3: placed, and a link is cut half way");
    let (third, failure) =
        failure_run::run(&mut bed, &placed, bytes, second.elapsed_ns / 2).await?;

    let outcomes = vec![first, second, third];
    let report = DemoReport {
        topology: topology.name().to_owned(),
        job: job.name.clone(),
        seed,
        switches: topology.switches().len(),
        nics: nics(&placed),
        cold_start_ms: bed.cold_start_ms,
        entries_written: bed.entries_written,
        runs: outcomes.iter().map(|o| o.report.clone()).collect(),
        failure,
    };
    Ok((report, outcomes))
}

async fn as_they_come(
    bed: &mut Bed,
    plan: &JobPlan,
    bytes: u64,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    let (reduce, schedule) = bed.all_reduce(plan, bytes)?;
    let (run, before) = bed.start(schedule).await?;
    bed.finish(run, progress)?;
    let measured = bed.measure(run, &before).await?;
    let (edges, crossing) = measure::edges(&bed.topology, plan);
    let least = least_crossing(plan, edges);
    let mut report = measured.report(
        "unplaced",
        &bed.topology,
        (plan, &reduce, bed.nic_bps(&reduce)),
        String::new(),
    );
    report.because = format!(
        "ranks as they come: {crossing} of {edges} ring edges cross LA domains where {least} would do, \
         and hashing put {:.1} times the mean load on the busiest uplink",
        report.max_over_mean_uplink,
    );
    Ok(outcome(bed, &measured, report, None))
}

async fn by_topology(
    bed: &mut Bed,
    plan: &JobPlan,
    bytes: u64,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    let (reduce, mut schedule) = bed.all_reduce(plan, bytes)?;
    bed.place(&mut schedule).await?;
    let (run, before) = bed.start(schedule).await?;
    bed.finish(run, progress)?;
    let measured = bed.measure(run, &before).await?;
    let (edges, crossing) = measure::edges(&bed.topology, plan);
    let placed = bed.desired.placed();
    let spread = if placed.max_load_ps == placed.bound_ps {
        "the least that any choice of paths allows"
    } else {
        "close to the least that any choice of paths allows"
    };
    let because = format!(
        "rings ordered by LA domain: {crossing} of {edges} edges cross; every flow has a path of its own, \
         so the busiest link carries {spread}"
    );
    let report = measured.report(
        "placed",
        &bed.topology,
        (plan, &reduce, bed.nic_bps(&reduce)),
        because,
    );
    bed.unplace().await?;
    Ok(outcome(bed, &measured, report, None))
}

/// NICs that take part.
fn nics(plan: &JobPlan) -> usize {
    let all = plan.rings.iter().flat_map(|ring| &ring.nics);
    all.collect::<BTreeSet<_>>().len()
}

/// The number of crossing edges that the bound stands for.
fn least_crossing(plan: &JobPlan, edges: usize) -> usize {
    (plan.share.bound * edges as f64).round() as usize
}

fn outcome(
    bed: &Bed,
    measured: &measure::Measured,
    report: RunReport,
    cut: Option<(::topology::LinkId, u64)>,
) -> Outcome {
    let title = format!(
        "{}: busbw / NIC rate {:.3}, cross-LA share {:.3}",
        report.name, report.busbw_ratio, report.cross_la_share
    );
    Outcome {
        panel: Sketch::new(&bed.topology).panel(
            title.clone(),
            &bed.topology,
            &measured.statistics,
            cut.map(|(link, _)| link),
        ),
        throughput: picture::throughput(
            title,
            &bed.topology,
            &measured.statistics,
            cut.map(|(_, at)| at),
        ),
        elapsed_ns: measured.elapsed_ns,
        report,
    }
}

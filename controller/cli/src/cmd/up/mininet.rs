//! Real hosts, real links, one switch process per switch.

use std::sync::Arc;
use std::time::Duration;

use controller::intent::Options;
use lab::mininet::{self, Family, Lab, Output, PingReport, Program, ProgramKind};
use serde::Serialize;

use super::{Live, Setting, Stop};
use crate::args::{Format, SwitchProgram, UpArgs};
use crate::failure::Failure;
use crate::output::{self, Progress};

/// How long a command of `--exec` may take.
const EXEC_TIMEOUT: Duration = Duration::from_secs(600);
/// Failed pairs that are named.
const MOST_NAMED: usize = 10;

/// One command of `--exec` and what it did.
#[derive(Debug, Serialize)]
struct Executed {
    host: String,
    command: String,
    code: i32,
    stdout: String,
    stderr: String,
}

/// Pings between all NICs.
#[derive(Debug, Serialize)]
struct Pings {
    tried: usize,
    failed: Vec<String>,
}

/// What a run that ends by itself prints.
#[derive(Serialize)]
struct Done<'a> {
    up: &'a super::live::Up,
    #[serde(skip_serializing_if = "Option::is_none")]
    ping: Option<Pings>,
    exec: Vec<Executed>,
}

/// Packets that a queue of bmv2 holds, where nothing else is said over Thrift.
const BMV2_QUEUE: u64 = 64;

/// How depths in bytes become packets. bmv2's queues are far shorter than the policy's: depths are scaled
/// so that they mean the same part of a queue.
fn depths(args: &UpArgs, topology: &::topology::Topology) -> Options {
    let packet_bytes = match args.program {
        Some(SwitchProgram::SimpleSwitchGrpc) => {
            let bytes = (topology.policy().queue_depth / BMV2_QUEUE).max(1);
            output::say(format!(
                "a queue of bmv2 holds {BMV2_QUEUE} packets: depths of the policy count a packet per {bytes} bytes"
            ));
            Some(bytes)
        }
        None | Some(SwitchProgram::MeridianSwitch) => None,
    };
    Options {
        packet_bytes,
        ..Options::default()
    }
}

/// Runs the fabric until a signal comes, or until `--once` or `--exec` is done.
pub(super) async fn run(setting: Setting<'_>, stop: &mut Stop) -> Result<(), Failure> {
    let Setting {
        args,
        topology,
        announcement,
        progress,
    } = setting;
    let plan = plan(args, &topology)?;
    let lab = stop.unless(bring_up(plan, &progress)).await?;
    let work = async {
        progress.stage("connecting to the switches");
        let live = Live::start(
            topology.clone(),
            lab.endpoints(),
            "mininet",
            (depths(args, &topology), args.int_reports),
        )
        .await?;
        if args.once || !args.exec.is_empty() {
            return finish(args, &lab, &live, &progress).await;
        }
        progress.finish();
        output::print(args.format, &live.up, |up| up.to_text())?;
        hints(&lab);
        tokio::select! {
            kept = live.keep(&announcement) => kept,
            exited = lab.switch_exited() => Err(died(exited)),
        }
    };
    let ended = stop.unless(work).await;
    progress.stage("tearing down");
    match Arc::try_unwrap(lab) {
        Ok(lab) => lab.tear_down().await,
        Err(shared) => drop(shared),
    }
    progress.finish();
    match ended {
        // Asked to run until stopped, and stopped: that is success.
        Err(Failure::Interrupted) if !args.once && args.exec.is_empty() => Ok(()),
        other => other,
    }
}

fn plan(args: &UpArgs, topology: &::topology::Topology) -> Result<mininet::Plan, Failure> {
    let kind = match args.program {
        None | Some(SwitchProgram::MeridianSwitch) => ProgramKind::MeridianSwitch,
        Some(SwitchProgram::SimpleSwitchGrpc) => ProgramKind::SimpleSwitchGrpc,
    };
    let program = Program::find(kind).map_err(|error| Failure::Missing(error.to_string()))?;
    let options = mininet::Options {
        grpc_base_port: args.grpc_base_port,
        ..mininet::Options::new(program)
    };
    mininet::plan(topology, &options).map_err(|error| Failure::Input(format!("error: {error}")))
}

async fn bring_up(plan: mininet::Plan, progress: &Progress) -> Result<Arc<Lab>, Failure> {
    progress.stage("starting Mininet");
    let lab = Lab::bring_up(plan, |step| {
        progress.tick(format!("{}: {} of {}", step.step, step.done, step.total));
    })
    .await;
    lab.map(Arc::new).map_err(|error| {
        use mininet::Error::{NoMininet, NoProgram, NoTool, NotRoot};
        match error {
            NotRoot | NoMininet { .. } | NoTool { .. } | NoProgram { .. } => {
                Failure::Missing(error.to_string())
            }
            other => Failure::Run(other.to_string()),
        }
    })
}

fn died(exited: Result<mininet::SwitchExit, mininet::Error>) -> Failure {
    match exited {
        Ok(exit) => Failure::Run(format!(
            "switch {} ended with code {}; the end of its log:\n{}",
            exit.switch, exit.code, exit.log
        )),
        Err(error) => Failure::run(error),
    }
}

/// How to get at hosts and logs.
fn hints(lab: &Lab) {
    if let Some(host) = lab.plan().hosts.first() {
        output::say(format!(
            "in a host: mnexec -a $(pgrep -of 'mininet:{0}$') ip address   (or --exec '{0}:ip address')",
            host.name
        ));
    }
    output::say(format!("switch logs: {}", lab.logs().display()));
    output::say("Ctrl-C to stop; `meridian status` in another terminal shows how it is");
}

/// `--once` and `--exec`: does what was asked, and fails if any of it failed.
async fn finish(args: &UpArgs, lab: &Lab, live: &Live, progress: &Progress) -> Result<(), Failure> {
    let mut done = Done {
        up: &live.up,
        ping: None,
        exec: Vec::new(),
    };
    if args.once {
        progress.stage("pinging between all NICs");
        let report = lab.ping_all(Family::V4).await.map_err(Failure::run)?;
        done.ping = Some(pings(&report));
    }
    for (host, command) in args.exec.iter().filter_map(|text| text.split_once(':')) {
        progress.stage(format!("{host}: {command}"));
        let output = lab
            .exec(host, command, EXEC_TIMEOUT)
            .await
            .map_err(Failure::run)?;
        done.exec.push(executed(host, command, output));
    }
    progress.finish();
    output::print(args.format, &done, |done| text(done))?;
    verdict(&done, args.format)
}

fn pings(report: &PingReport) -> Pings {
    Pings {
        tried: report.tried,
        failed: report.failed.iter().map(ToString::to_string).collect(),
    }
}

fn executed(host: &str, command: &str, output: Output) -> Executed {
    Executed {
        host: host.to_owned(),
        command: command.to_owned(),
        code: output.code,
        stdout: output.stdout,
        stderr: output.stderr,
    }
}

fn text(done: &Done<'_>) -> String {
    let mut text = format!("{}\n", done.up.to_text());
    if let Some(pings) = &done.ping {
        let answered = pings.tried - pings.failed.len();
        text.push_str(&format!("{answered} of {} pings answered\n", pings.tried));
        for pair in pings.failed.iter().take(MOST_NAMED) {
            text.push_str(&format!("  no answer: {pair}\n"));
        }
    }
    for run in &done.exec {
        text.push_str(&format!(
            "--- {}: {}\n{}{}",
            run.host, run.command, run.stdout, run.stderr
        ));
    }
    text
}

fn verdict(done: &Done<'_>, format: Format) -> Result<(), Failure> {
    if let Some(failed) = done
        .ping
        .as_ref()
        .map(|p| p.failed.len())
        .filter(|n| *n > 0)
    {
        return Err(Failure::Run(format!("{failed} pings were not answered")));
    }
    match done.exec.iter().find(|run| run.code != 0) {
        None => Ok(()),
        Some(run) if format == Format::Json => Err(Failure::Run(format!(
            "{}: {}: exit code {}",
            run.host, run.command, run.code
        ))),
        Some(run) => Err(Failure::Run(format!(
            "'{}' in {} ended with code {}",
            run.command, run.host, run.code
        ))),
    }
}

//! Bring-up and teardown, and what disturbs them. No pipeline is needed here.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lab::mininet::{Error, Lab, Program, ProgramKind};

use crate::fabrics::{program, small_plan, up};
use crate::leftovers::{Traces, interfaces, kill, runner_pid};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn hosts_have_their_addresses_and_nothing_stays() {
    let plan = small_plan("addresses", 20_000);
    let mut steps = Vec::new();
    let lab = Lab::bring_up(plan.clone(), |progress| steps.push(progress.clone()))
        .await
        .unwrap();
    let last = steps.last().unwrap();
    assert_eq!(
        (last.step.as_str(), last.done, last.total),
        ("switches", 3, 3)
    );
    let traces = Traces::of_running(&plan);
    for host in &plan.hosts {
        let nic = &host.nics[0];
        let shown = lab
            .exec(&host.name, "ip address show dev rail0", SECOND)
            .await
            .unwrap();
        for wanted in [
            format!("inet {}/{} ", nic.v4, nic.v4_prefix),
            format!("inet6 {}/{} ", nic.v6, nic.v6_prefix),
            format!("link/ether {} ", nic.mac),
            "mtu 4200 ".to_owned(),
        ] {
            assert!(
                shown.stdout.contains(&wanted),
                "{wanted} not in {}",
                shown.stdout
            );
        }
        assert!(
            !shown.stdout.contains("fe80"),
            "link-local noise: {}",
            shown.stdout
        );
        let route = lab
            .exec(&host.name, "ip route get 10.0.200.1", SECOND)
            .await
            .unwrap();
        let wanted = format!("via {} dev rail0", nic.gateway_v4);
        assert!(route.stdout.contains(&wanted), "{}", route.stdout);
    }
    for endpoint in lab.endpoints() {
        endpoint.channel().await.unwrap();
    }
    lab.tear_down().await;
    traces.assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn commands_report_how_they_ended() {
    let plan = small_plan("commands", 20_010);
    let lab = up(&plan).await.unwrap();
    let host = plan.hosts[0].name.as_str();
    let failed = lab
        .exec(host, "echo out; echo err >&2; exit 3", SECOND)
        .await
        .unwrap();
    assert_eq!((failed.code, failed.timed_out), (3, false));
    assert_eq!(
        (failed.stdout.as_str(), failed.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert!(!failed.ok());
    let start = Instant::now();
    // The background process must go too, or it would keep the output open.
    let late = lab
        .exec(host, "sleep 60 & echo started; sleep 60", SECOND / 2)
        .await
        .unwrap();
    assert!(late.timed_out && start.elapsed() < 3 * SECOND, "{late:?}");
    let unknown = lab.exec("h99", "true", SECOND).await.unwrap_err();
    assert!(
        unknown.to_string().contains("hosts are: h1, h2, h3, h4"),
        "{unknown}"
    );
    lab.tear_down().await;
    Traces::of_plan(&plan).assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn ports_in_use_are_all_named() {
    let plan = small_plan("ports", 20_020);
    let taken = [20_020, 20_022].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
    let error = up(&plan).await.unwrap_err();
    let Error::PortsInUse { taken: named } = &error else {
        panic!("{error}")
    };
    let ports: Vec<u16> = named.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [20_020, 20_022]);
    let text = error.to_string();
    assert!(
        text.contains(&plan.switches[2].name) && text.contains("base port"),
        "{text}"
    );
    drop(taken);
    Traces::of_plan(&plan).assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn a_missing_program_is_told_before_anything_is_built() {
    let mut plan = small_plan("no-program", 20_030);
    plan.program = Program {
        kind: ProgramKind::MeridianSwitch,
        path: PathBuf::from("/nonexistent/meridian-switch"),
    };
    let error = up(&plan).await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/meridian-switch"), "{error}");
    assert!(error.contains("cargo build"), "{error}");
    Traces::of_plan(&plan).assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn a_switch_that_does_not_start_shows_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("meridian-switch");
    let mut script = std::fs::File::create(&path).unwrap();
    script
        .write_all(b"#!/bin/sh\necho the flux is inverted >&2\nexit 3\n")
        .unwrap();
    script
        .set_permissions(std::fs::Permissions::from_mode(0o755))
        .unwrap();
    drop(script);
    let mut plan = small_plan("broken", 20_040);
    plan.program = Program {
        path: path.clone(),
        ..program()
    };
    for switch in &mut plan.switches {
        switch.program.clone_from(&path);
    }
    let error = up(&plan).await.unwrap_err();
    let Error::SwitchFailed { code, log, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((*code, log.as_str()), (3, "the flux is inverted\n"));
    Traces::of_plan(&plan).assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn the_same_fabric_is_not_brought_up_twice() {
    let plan = small_plan("twice", 20_050);
    let lab = up(&plan).await.unwrap();
    let before = interfaces(&plan.tag);
    let error = up(&small_plan("twice", 20_060)).await.unwrap_err();
    let Error::Busy { pid, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(i32::try_from(pid).unwrap(), runner_pid(&lab));
    assert_eq!(interfaces(&plan.tag), before, "the first one is untouched");
    // Another fabric may run beside it.
    let other = up(&small_plan("beside", 20_060)).await.unwrap();
    other.tear_down().await;
    assert_eq!(interfaces(&plan.tag), before);
    drop(lab);
    Traces::of_plan(&plan).assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn an_interrupted_bring_up_leaves_nothing() {
    let plan = small_plan("interrupted", 20_070);
    for step in ["nodes", "links", "addresses", "switches"] {
        let (sender, mut reached) = tokio::sync::mpsc::unbounded_channel();
        let bring_up = Lab::bring_up(plan.clone(), move |progress| {
            if progress.step == step && progress.done >= progress.total / 2 {
                let _ = sender.send(());
            }
        });
        tokio::select! {
            biased;
            _ = reached.recv() => {}
            up = bring_up => panic!("not interrupted at {step}: {:?}", up.map(|_| ())),
        }
        Traces::of_plan(&plan).assert_gone();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn a_switch_that_dies_is_reported() {
    let plan = small_plan("dying", 20_080);
    let lab = up(&plan).await.unwrap();
    let victim = &plan.switches[1];
    let pattern = format!("--device-id {} -i {}", victim.device_id, "1@");
    kill(process_with(&pattern, &victim.ports[0].interface));
    let exit = tokio::time::timeout(5 * SECOND, lab.switch_exited())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (exit.switch.as_str(), exit.code),
        (victim.name.as_str(), -9)
    );
    lab.tear_down().await;
    Traces::of_plan(&plan).assert_gone();
}

/// The process whose command line has both.
fn process_with(pattern: &str, interface: &str) -> i32 {
    let found: Vec<i32> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(pattern) && line.contains(interface)
        })
        .collect();
    assert_eq!(found.len(), 1, "processes with {pattern}: {found:?}");
    found[0]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn a_killed_runner_leaves_nothing() {
    let plan = small_plan("killed-runner", 20_090);
    let lab = up(&plan).await.unwrap();
    let traces = Traces::of_running(&plan);
    kill(runner_pid(&lab));
    let error = lab
        .exec(&plan.hosts[0].name, "true", SECOND)
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Runner { .. } | Error::Io { .. }),
        "{error}"
    );
    lab.tear_down().await;
    traces.assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn leftovers_of_a_killed_run_are_removed_by_the_next() {
    let plan = small_plan("leftovers", 20_100);
    let lab = up(&plan).await.unwrap();
    let traces = Traces::of_running(&plan);
    kill(runner_pid(&lab));
    // As if this process had been killed as well: nobody clears up.
    std::mem::forget(lab);
    std::thread::sleep(SECOND);
    assert!(
        !interfaces(&plan.tag).is_empty(),
        "links between switches survive both"
    );
    let again = up(&plan).await.unwrap();
    again.tear_down().await;
    traces.assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn what_hosts_still_run_ends_with_the_fabric() {
    let plan = small_plan("running", 20_110);
    let lab = up(&plan).await.unwrap();
    let traces = Traces::of_running(&plan);
    let host = &plan.hosts[0].name;
    let daemon = lab
        .exec(host, "setsid sleep 600 > /dev/null 2>&1 & echo $!", SECOND)
        .await;
    assert!(daemon.unwrap().ok());
    let endless = lab.exec(host, "sleep 600", 600 * SECOND);
    assert!(tokio::time::timeout(SECOND / 5, endless).await.is_err());
    let start = Instant::now();
    lab.tear_down().await;
    assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
    traces.assert_gone();
}

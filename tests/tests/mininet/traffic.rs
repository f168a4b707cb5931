//! Packets through fabrics that the controller's entries and the compiled pipeline make.

use std::path::Path;
use std::time::{Duration, Instant};

use lab::mininet::{Family, Lab, Load, NicRef, Plan, ProgramKind, plan};
use topology::{Clos, HostCounts, SwitchId, Topology, generate};

use crate::control::Control;
use crate::fabrics::{options, program, two_leaves, up};
use crate::leftovers::Traces;

const SECOND: Duration = Duration::from_secs(1);

/// Brings a fabric up, has every NIC ping every other host's, and hands it over.
async fn all_ping_all(topology: Topology, grpc_base_port: u16) -> (Lab, Control, Plan) {
    let plan = plan(&topology, &options(grpc_base_port)).unwrap();
    let start = Instant::now();
    let lab = up(&plan).await.unwrap();
    let built = start.elapsed();
    let control = Control::start(topology, &lab.endpoints()).await;
    let programmed = start.elapsed();
    for family in [Family::V4, Family::V6] {
        let report = lab.ping_all(family).await.unwrap();
        let failed: Vec<String> = report.failed.iter().map(ToString::to_string).collect();
        assert!(
            failed.is_empty(),
            "{family:?}: no answer:\n{}",
            failed.join("\n")
        );
        let others = |host: &lab::mininet::HostPlan| {
            let all: usize = plan.hosts.iter().map(|host| host.nics.len()).sum();
            host.nics.len() * (all - host.nics.len())
        };
        assert_eq!(report.tried, plan.hosts.iter().map(others).sum::<usize>());
    }
    println!(
        "{}: built in {built:.1?}, programmed after {programmed:.1?}, all pinged after {:.1?}",
        plan.fabric,
        start.elapsed()
    );
    (lab, control, plan)
}

async fn measure(lab: &Lab, from: (&str, u16), to: (&str, u16)) {
    let [from, to] = [from, to].map(|(host, rail)| NicRef { host, rail });
    let tcp = lab.iperf3(from, to, Load::Tcp, 2 * SECOND).await.unwrap();
    println!(
        "{} -> {}: TCP {:.0} Mb/s",
        from.host,
        to.host,
        tcp.bits_per_second / 1e6
    );
    assert!(tcp.bytes > 100_000, "{tcp:?}");
    let load = Load::Udp {
        rate_bps: 5_000_000,
    };
    let udp = lab.iperf3(from, to, load, 2 * SECOND).await.unwrap();
    println!("{} -> {}: UDP {udp:?}", from.host, to.host);
    let (lost, sent) = (udp.lost_packets.unwrap(), udp.packets.unwrap());
    assert!(
        sent > 100 && lost * 50 < sent,
        "more than 2 % lost at 5 Mb/s: {udp:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn the_demo_fabric_carries_ping_and_iperf3() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/demo.yaml");
    let topology = Topology::load(&file).unwrap();
    let (lab, mut control, plan) = all_ping_all(topology.clone(), 20_200).await;
    assert_eq!((plan.switches.len(), plan.hosts.len()), (12, 8));
    // Across segments on one rail, and across rails.
    measure(&lab, ("h1", 0), ("h5", 0)).await;
    measure(&lab, ("h2", 1), ("h8", 3)).await;
    // simple_switch_grpc stops forwarding when one of its interfaces goes down.
    if program().kind == ProgramKind::MeridianSwitch {
        // A pulled cable between leaf and spine: the controller leads around it.
        let cable = topology.uplinks(SwitchId(0)).next().unwrap().link;
        lab.set_link(cable, false).await.unwrap();
        control.set_down(&[cable]).await;
        let report = lab.ping_all(Family::V4).await.unwrap();
        assert_eq!(report.failed, [], "around the pulled cable");
    }
    let traces = Traces::of_running(&plan);
    lab.tear_down().await;
    traces.assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn two_leaves_carry_ping_and_iperf3() {
    let (lab, _control, plan) = all_ping_all(two_leaves("small"), 20_220).await;
    measure(&lab, ("h1", 0), ("h2", 0)).await;
    measure(&lab, ("h1", 0), ("h4", 0)).await;
    lab.tear_down().await;
    Traces::of_plan(&plan).assert_gone();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn dual_tor_hosts_use_both_leaves() {
    let clos = Clos {
        name: "dual-tor".into(),
        segments: 2,
        hosts: HostCounts::Each(2),
        rails: 1,
        spines: Some(2),
        dual_tor: true,
        ..Clos::default()
    };
    let (lab, _control, plan) = all_ping_all(generate(&clos).unwrap(), 20_230).await;
    // Flows of one host leave by both of its ports.
    let target = plan.hosts[3].nics[0].v4;
    let count = "cat /sys/class/net/rail0a/statistics/tx_packets \
                 /sys/class/net/rail0b/statistics/tx_packets";
    let before = lab.exec("h1", count, SECOND).await.unwrap().stdout;
    let send =
        format!("for port in $(seq 64); do echo x > /dev/udp/{target}/$((4000 + port)); done");
    let sent = lab
        .exec("h1", &format!("bash -c '{send}'"), 10 * SECOND)
        .await
        .unwrap();
    assert!(sent.ok(), "{sent:?}");
    let after = lab.exec("h1", count, SECOND).await.unwrap().stdout;
    let numbers =
        |text: &str| -> Vec<i64> { text.lines().map(|line| line.parse().unwrap()).collect() };
    let used: Vec<i64> = numbers(&after)
        .iter()
        .zip(numbers(&before))
        .map(|(after, before)| after - before)
        .collect();
    assert!(
        used.iter().sum::<i64>() >= 64 && used.iter().all(|used| *used > 10),
        "{used:?}"
    );
    lab.tear_down().await;
    Traces::of_plan(&plan).assert_gone();
}

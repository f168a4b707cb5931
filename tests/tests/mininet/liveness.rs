//! A cable is cut, and nobody tells the controller: the data plane leaves it alone.

use std::time::{Duration, Instant};

use controller::intent::Ars;
use lab::mininet::{Lab, Plan, ProgramKind, plan};
use topology::{LinkId, SwitchId, Topology};

use crate::control::Control;
use crate::fabrics::{options, program, up};
use crate::leftovers::Traces;

/// Hellos and probes every 100 ms: a neighbour is dead after 225 ms, a path lost after 300 ms.
const FABRIC: &str = "
name: liveness
clos: {segments: 2, hosts: 1, rails: 1, spines: 2}
policy:
  ars: {mode: fixed, hello: 100ms, probe: 100ms}
";
const SECOND: Duration = Duration::from_secs(1);
/// Pings, and the time between two.
const PINGS: u32 = 250;
const PING_MS: u32 = 20;
/// Longest time until both directions go another way: a lost path, and a busy machine.
const LONGEST_MS: u32 = 300 + 400;

/// The switch end of a link: its interface.
fn interface(plan: &Plan, topology: &Topology, switch: SwitchId, link: LinkId) -> String {
    let port = topology
        .neighbours(switch)
        .find(|n| n.link == link)
        .unwrap()
        .port;
    let ports = &plan.switches[switch.index()].ports;
    ports
        .iter()
        .find(|p| p.number == port)
        .unwrap()
        .interface
        .clone()
}

fn tc(arguments: &str) {
    let status = std::process::Command::new("tc")
        .args(arguments.split(' '))
        .status();
    assert!(status.unwrap().success(), "tc {arguments}");
}

/// Packets that an interface sent.
fn sent(interface: &str) -> u64 {
    let file = format!("/sys/class/net/{interface}/statistics/tx_packets");
    std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

/// Cuts a link or mends it. bmv2 forwards nothing any more once one of its interfaces went down, so there
/// the cable stays in and loses everything: what only hellos can tell.
async fn cut(lab: &Lab, ends: &[String; 2], link: LinkId, up: bool) {
    if program().kind == ProgramKind::MeridianSwitch {
        lab.set_link(link, up).await.unwrap();
        return;
    }
    for end in ends {
        // A queue without a place.
        if up {
            tc(&format!("qdisc del dev {end} root"));
        } else {
            tc(&format!("qdisc replace dev {end} root pfifo limit 0"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn flows_leave_a_cut_link_without_the_controller() {
    let topology = Topology::parse("liveness", FABRIC).unwrap();
    let plan = plan(&topology, &options(20_400)).unwrap();
    let lab = up(&plan).await.unwrap();
    let ars = Ars::of(topology.policy().ars.as_ref().unwrap());
    let control = Control::start(topology.clone(), &lab.endpoints()).await;
    control.start_beats(&ars);
    tokio::time::sleep(2 * SECOND).await;

    // The uplink that the pings of this pair take.
    let leaf = SwitchId(0);
    let uplinks: Vec<LinkId> = topology.uplinks(leaf).map(|n| n.link).collect();
    let target = plan.hosts[1].nics[0].v4;
    let ping = |count: u32| format!("ping -q -i 0.0{PING_MS} -W 1 -c {count} {target}");
    let before = uplinks
        .iter()
        .map(|l| sent(&interface(&plan, &topology, leaf, *l)));
    let before: Vec<u64> = before.collect();
    let first = lab.exec("h1", &ping(50), 10 * SECOND).await.unwrap();
    assert!(first.stdout.contains(" 0% packet loss"), "{first:?}");
    let used = |at: &usize| sent(&interface(&plan, &topology, leaf, uplinks[*at])) - before[*at];
    let link = uplinks[(0..uplinks.len()).max_by_key(used).unwrap()];
    let far = topology.uplinks(leaf).find(|n| n.link == link).unwrap().far;
    let topology::End::Switch(spine) = far else {
        panic!("an uplink leads to a switch");
    };
    let ends = [leaf, spine.switch].map(|switch| interface(&plan, &topology, switch, link));

    for up in [false, true] {
        let command = ping(PINGS);
        let pings = lab.exec("h1", &command, 30 * SECOND);
        let disturb = async {
            tokio::time::sleep(SECOND).await;
            cut(&lab, &ends, link, up).await;
            Instant::now()
        };
        let (pings, _) = tokio::join!(pings, disturb);
        let pings = pings.unwrap();
        let lost = lost(&pings.stdout);
        println!(
            "{}: link {}: {lost} of {PINGS} pings lost, {} ms apart",
            program().kind.name(),
            if up { "mended" } else { "cut" },
            PING_MS
        );
        assert!(lost <= LONGEST_MS / PING_MS, "{}", pings.stdout);
        assert!(up || lost > 0, "the link was not in use");
    }
    // Nobody wrote anything: all switches hold what they held.
    assert_eq!(control.repaired().await, 0);
    lab.tear_down().await;
    Traces::of_plan(&plan).assert_gone();
}

/// Of `250 packets transmitted, 240 received, ...`.
fn lost(summary: &str) -> u32 {
    let line = summary
        .lines()
        .find(|line| line.contains("transmitted"))
        .unwrap();
    let mut numbers = line.split(' ').filter_map(|word| word.parse::<u32>().ok());
    numbers.next().unwrap() - numbers.next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and Mininet"]
async fn groups_and_sessions_that_are_lost_or_foreign_are_put_right() {
    let text =
        format!("{FABRIC}  int: {{watch: [{{protocol: udp}}]}}\n").replace("liveness", "copies");
    let topology = Topology::parse("copies", &text).unwrap();
    let plan = plan(&topology, &options(20_420)).unwrap();
    let lab = up(&plan).await.unwrap();
    let control = Control::start(topology, &lab.endpoints()).await;
    assert_eq!(control.repaired().await, 0);
    for switch in [SwitchId(0), SwitchId(3)] {
        control.disturb(switch).await;
    }
    // On each: one group lost, one changed, a stray; the clone session changed, a stray.
    assert_eq!(control.repaired().await, 2 * 5);
    assert_eq!(control.repaired().await, 0);
    lab.tear_down().await;
    Traces::of_plan(&plan).assert_gone();
}

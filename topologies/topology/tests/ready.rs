//! The ready fabrics: they load, they are what their comments say, and their explicit form is the
//! same fabric.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use topology::{End, Node, Tier, Topology};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(name)
}

fn load(name: &str) -> Topology {
    let topology = Topology::load(file(name)).unwrap_or_else(|error| panic!("{error}"));
    let written = topology.to_yaml();
    let again = Topology::parse("written", &written).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(
        again, topology,
        "{name}: the explicit form is another fabric"
    );
    topology
}

fn count(topology: &Topology, tier: Tier) -> usize {
    topology.tier(tier).count()
}

#[test]
fn demo() {
    let demo = load("demo.yaml");
    assert_eq!(
        (demo.hosts().len(), demo.nics().len(), demo.las().len()),
        (8, 32, 8)
    );
    assert_eq!(
        (count(&demo, Tier::Leaf), count(&demo, Tier::Spine)),
        (8, 4)
    );
    assert!(
        demo.links()
            .iter()
            .all(|link| link.speed_bps == 400_000_000_000)
    );
    for leaf in demo.tier(Tier::Leaf) {
        assert_eq!(
            (demo.uplinks(leaf).count(), demo.downlinks(leaf).count()),
            (4, 4)
        );
    }
    // h6 is the second host of the second segment: second address of that segment's rail 3.
    let nic = demo.nic_on_rail(demo.find_host("h6").unwrap(), 3).unwrap();
    let leaf = demo[nic].ports().next().unwrap().leaf;
    assert_eq!(
        (demo[leaf.switch].name.as_str(), leaf.port),
        ("leaf-s2r3", 2)
    );
    let la = &demo[demo[nic].la];
    assert_eq!((la.name.as_str(), la.number), ("la-s2r3", 8));
    assert_eq!(demo[nic].v4.to_string(), "10.0.8.3");
    assert_eq!(demo[nic].v6.to_string(), "fd00:6d65:0:8::3");
    assert_eq!(la.v4.to_string(), "10.0.8.0/24");
    assert_eq!(la.gateway_v4.to_string(), "10.0.8.1");
    assert_eq!(la.gateway_mac, demo[leaf.switch].mac);
    let ends = [End::Switch(leaf), demo.find_end("h6:3").unwrap()];
    let link = demo.link_at(ends[0]).unwrap();
    assert_eq!(demo.link_at(ends[1]), Some(link));
    assert_eq!(demo.far_end(link, ends[0]), ends[1]);
    assert_eq!(demo.link_name(link), "h6:3 - leaf-s2r3:2");
    let spine = demo.find("spine2").unwrap();
    let between: Vec<_> = demo
        .links_between(spine, Node::Switch(leaf.switch))
        .collect();
    assert_eq!(between.len(), 1);
    assert_eq!(demo.link_name(between[0]), "leaf-s2r3:6 - spine2:8");
}

#[test]
fn two_leaves() {
    let small = load("two-leaves.yaml");
    assert_eq!(
        (
            small.hosts().len(),
            small.switches().len(),
            small.las().len()
        ),
        (4, 4, 2)
    );
    assert_eq!(small.pods().len(), 1);
    assert_eq!(small.las()[1].name, "la-leaf2");
}

#[test]
fn dual_plane() {
    let fabric = load("dual-plane.yaml");
    assert_eq!(
        (count(&fabric, Tier::Leaf), count(&fabric, Tier::Spine)),
        (16, 4)
    );
    assert_eq!(fabric.las().len(), 8);
    for id in fabric.nic_ids() {
        let nic = &fabric[id];
        let leaves: Vec<_> = nic.ports().map(|port| port.leaf.switch).collect();
        assert_eq!(leaves, fabric[nic.la].leaves);
        assert_eq!(
            leaves
                .iter()
                .map(|leaf| fabric[*leaf].plane)
                .collect::<Vec<_>>(),
            [Some(0), Some(1)]
        );
        assert_eq!(fabric.nic_speed_bps(id), 400_000_000_000);
        // Both leaves answer to the gateway's MAC, which is neither's own.
        let gateway = fabric[nic.la].gateway_mac;
        assert!(
            leaves
                .iter()
                .all(|leaf| fabric.station_macs(*leaf) == [fabric[*leaf].mac, gateway])
        );
    }
    // No switch joins the planes.
    for link in fabric
        .links()
        .iter()
        .filter(|link| link.lower.switch_port().is_some())
    {
        let lower = link.lower.switch_port().unwrap();
        assert_eq!(fabric[lower.switch].plane, fabric[link.upper.switch].plane);
    }
}

#[test]
fn three_tier() {
    let fabric = load("three-tier.yaml");
    let counts = Tier::ALL.map(|tier| count(&fabric, tier));
    assert_eq!(counts, [16, 8, 8]);
    assert_eq!((fabric.hosts().len(), fabric.buildings().len()), (16, 2));
    let summary = topology::show::Summary::of(&fabric);
    assert_eq!(summary.tiers[0].oversubscription, Some(1.0));
    assert_eq!(summary.tiers[1].oversubscription, Some(2.0));
    assert_eq!(summary.tiers[2].delay_ns, (2_000, 10_000));
    // Half of what the spines have up: 8 spines with 2 uplinks of 800G.
    assert_eq!(summary.bisection_bps, 6_400_000_000_000);
}

#[test]
fn nics_1024() {
    let fabric = load("nics-1024.yaml");
    assert_eq!(
        (
            fabric.nics().len(),
            fabric.hosts().len(),
            fabric.las().len()
        ),
        (1024, 128, 32)
    );
    assert_eq!(
        (count(&fabric, Tier::Leaf), count(&fabric, Tier::Spine)),
        (32, 32)
    );
}

#[test]
fn gpus_100k() {
    let fabric = Topology::load(file("gpus-100k.yaml")).unwrap();
    assert_eq!(fabric.nics().len(), 100_352);
    let counts = Tier::ALL.map(|tier| count(&fabric, tier));
    assert_eq!(counts, [784, 448, 64]);
    let summary = topology::show::Summary::of(&fabric);
    let ratios: Vec<_> = summary
        .tiers
        .iter()
        .map(|tier| tier.oversubscription)
        .collect();
    assert_eq!(ratios, [Some(1.0), Some(4.0), None]);
    let last = fabric.las().last().unwrap();
    assert_eq!(
        (last.number, last.v4.to_string()),
        (784, "10.3.16.0/24".to_owned())
    );
}

#[test]
fn shown() {
    let demo = load("demo.yaml");
    let text = topology::show::Summary::of(&demo).to_string();
    let wanted = "\
demo: 1 building, 1 pod, 2 segments
  hosts     8 with 32 GPUs in 8 scale-up domains
  NICs      32, 12.8 Tb/s
  leaves    8 with up to 8 ports; 32 x 400G down (500ns), not oversubscribed
  spines    4 with up to 8 ports; 32 x 400G down (1us)
  LA        8 domains, 4 NICs each
  bisection 6.4 Tb/s
  links     64";
    assert_eq!(text, wanted);
    let domains = topology::show::la_table(&demo);
    let last = domains.lines().last().unwrap();
    for part in [
        "8  la-s2r3",
        "leaf-s2r3",
        "10.0.8.0/24",
        "4 NICs, h5:3 to h8:3",
    ] {
        assert!(last.contains(part), "{last}");
    }
    let ports = topology::show::port_table(&demo, demo.find_switch("spine2").unwrap());
    assert_eq!(ports.lines().nth(7), Some("   8  400G   leaf-s2r3:6"));
}

#[test]
fn irregular_fabrics_show_their_worst() {
    let text = "name: x\nclos: {segments: 2, hosts: [2, 4], rails: 2, spines: 2}\noverrides:\n  - {between: [leaf-s2r1, spine1], remove: true}\n";
    let fabric = Topology::parse("x", text).unwrap();
    let summary = topology::show::Summary::of(&fabric);
    assert_eq!(summary.tiers[0].worst.as_deref(), Some("leaf-s2r1"));
    assert_eq!(summary.tiers[0].worst_oversubscription, Some(4.0));
    assert_eq!((summary.la.least_nics, summary.la.most_nics), (2, 4));
    // 12 NICs over 7 uplinks.
    assert_eq!(summary.tiers[0].oversubscription, Some(1.714));
    assert!(
        summary
            .to_string()
            .contains("oversubscribed 1.714:1 (worst 4:1, leaf-s2r1)")
    );
}

#[test]
fn scale_up_domains_span_hosts() {
    let text = "name: x\nclos: {segments: 2, hosts: 5, rails: 4, gpus: 4, scale_up: 8}\n";
    let fabric = Topology::parse("x", text).unwrap();
    let domains: Vec<u32> = fabric.hosts().iter().map(|host| host.scale_up.0).collect();
    assert_eq!(domains, [0, 0, 1, 1, 2, 3, 3, 4, 4, 5]);
    assert_eq!(Topology::parse("y", &fabric.to_yaml()).unwrap(), fabric);
}

#[test]
fn irregular() {
    let irregular = load("irregular-120.yaml");
    let leaves: Vec<usize> = irregular.las().iter().map(|la| la.nics.len() / 8).collect();
    assert_eq!((leaves.len(), irregular.hosts().len()), (120, 605));
    assert!(leaves.iter().all(|hosts| (2..=8).contains(hosts)));
}

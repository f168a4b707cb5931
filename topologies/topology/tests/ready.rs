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

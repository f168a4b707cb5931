//! Properties over many fabrics and many texts.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use proptest::prelude::*;
use topology::{
    Clos, End, HostCounts, LeafPer, NicPortRef, PerTier, PortRef, Ratio, Tier, Topology, generate,
};

fn hosts(segments: u32) -> impl Strategy<Value = HostCounts> {
    prop_oneof![
        (1..6_u32).prop_map(HostCounts::Each),
        prop::collection::vec(1..6_u32, segments as usize).prop_map(HostCounts::List),
    ]
}

prop_compose! {
    fn shape()(pods in 1..4_u32, segments in 1..4_u32)(
        hosts in hosts(pods * segments),
        pods in Just(pods),
        segments in Just(segments),
    ) -> (u32, u32, HostCounts) {
        (pods, segments, hosts)
    }
}

fn speed() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![
        100_000_000_000,
        200_000_000_000,
        400_000_000_000,
        25_000_000_001,
    ])
}

prop_compose! {
    fn clos()(
        (pods, segments, hosts) in shape(),
        rails in 1..5_u32,
        (buildings, gpus, scale_hosts) in (1..3_u32, prop::option::of(1..9_u32), 1..4_u32),
        rail in any::<bool>(),
        leaves in 1..3_u32,
        (dual_tor, two_planes) in any::<(bool, bool)>(),
        spines in prop::option::of(0..5_u32),
        (spine_links, core_links) in (prop::option::of(1..3_u32), prop::option::of(1..3_u32)),
        cores in prop::option::of(0..7_u32),
        (leaf_ratio, spine_ratio) in (prop::option::of(500..4000_u32), prop::option::of(500..4000_u32)),
        speeds in (speed(), speed(), speed()),
        delays in (0..5000_u64, 0..5000_u64, 0..5000_u64, 0..50_000_u64),
    ) -> Clos {
        Clos {
            name: "any".to_owned(),
            buildings,
            pods,
            segments,
            hosts,
            rails,
            gpus,
            scale_up: gpus.map(|gpus| gpus * scale_hosts),
            leaf_per: if rail { LeafPer::Rail } else { LeafPer::Segment },
            leaves,
            dual_tor,
            planes: if two_planes { 2 } else { 1 },
            spines,
            spine_links,
            cores,
            core_links,
            leaf_ratio: leaf_ratio.map(Ratio),
            spine_ratio: spine_ratio.map(Ratio),
            speeds: PerTier { host: speeds.0, spine: speeds.1, core: speeds.2 },
            delays: PerTier { host: delays.0, spine: delays.1, core: delays.2 },
            building_delay_ns: delays.3,
        }
    }
}

/// What holds for every topology, wherever it comes from.
fn check(topology: &Topology) {
    for id in topology.link_ids() {
        for end in topology[id].ends() {
            assert_eq!(topology.link_at(end), Some(id));
            assert_eq!(topology.find_end(&topology.end_name(end)).unwrap(), end);
        }
    }
    let mut addresses = HashSet::new();
    for id in topology.nic_ids() {
        let nic = &topology[id];
        let la = &topology[nic.la];
        assert!(la.nics.contains(&id) && la.v4.contains(nic.v4) && la.v6.contains(nic.v6));
        assert!(nic.v4 != la.gateway_v4 && nic.v6 != la.gateway_v6);
        assert!(addresses.insert(nic.v4.to_string()) && addresses.insert(nic.v6.to_string()));
        assert!(topology[nic.host].nics().any(|other| other == id));
        for port in nic.ports() {
            assert_eq!(topology.la_of_switch(port.leaf.switch), Some(nic.la));
            let near = End::Nic(NicPortRef {
                nic: id,
                port: port.number,
            });
            assert_eq!(topology.far_end(port.link, near), End::Switch(port.leaf));
        }
    }
    for id in topology.switch_ids() {
        for far in topology.neighbours(id) {
            let here = End::Switch(PortRef {
                switch: id,
                port: far.port,
            });
            assert_eq!(topology.far_end(far.link, far.far), here);
        }
        let both = topology.uplinks(id).count() + topology.downlinks(id).count();
        assert_eq!(both, topology.neighbours(id).count());
    }
    let macs: HashSet<_> = topology
        .switches()
        .iter()
        .map(|switch| switch.mac)
        .chain(topology.nics().iter().map(|nic| nic.mac))
        .collect();
    assert_eq!(
        macs.len(),
        topology.switches().len() + topology.nics().len()
    );
}

fn round_trip(topology: &Topology) {
    let text = topology.to_yaml();
    match Topology::parse("written", &text) {
        Ok(again) => assert_eq!(&again, topology, "{text}"),
        Err(report) => panic!("{report}\n{text}"),
    }
}

const EXPLICIT: &str = include_str!("../../two-leaves.yaml");
const COMPACT: &str = include_str!("../../three-tier.yaml");

/// Cuts, repeats and overwrites parts of a good file.
fn mutated() -> impl Strategy<Value = String> {
    let source = prop_oneof![Just(EXPLICIT), Just(COMPACT)];
    let token = prop_oneof![
        "\\PC{0,6}",
        prop::sample::select(vec![
            "0",
            "-1",
            "99999999999999999999",
            "null",
            "[]",
            "{}",
            "&a ",
            "*a",
            "? ",
            "\n- ",
            "\t",
            "'",
            "\u{feff}",
            "%",
            "!!x ",
            "|\n",
            "#"
        ])
        .prop_map(str::to_owned),
    ];
    (
        source,
        prop::collection::vec((any::<prop::sample::Index>(), 0..8_usize, token), 1..4),
    )
        .prop_map(|(source, edits)| {
            let mut text: Vec<char> = source.chars().collect();
            for (at, cut, token) in edits {
                let at = at.index(text.len() + 1);
                let end = (at + cut).min(text.len());
                text.splice(at..end, token.chars());
            }
            text.into_iter().collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn generated_fabrics_are_sound_and_round_trip(clos in clos()) {
        if let Ok(topology) = generate(&clos) {
            check(&topology);
            round_trip(&topology);
            let list = match &clos.hosts {
                HostCounts::Each(hosts) => hosts * clos.pods * clos.segments,
                HostCounts::List(hosts) => hosts.iter().sum(),
            };
            prop_assert_eq!(topology.hosts().len(), list as usize);
            prop_assert_eq!(topology.nics().len(), (list * clos.rails) as usize);
            let summary = topology::show::Summary::of(&topology);
            let leaves = summary.tiers.iter().find(|tier| tier.tier == Tier::Leaf).unwrap();
            if let (Some(wanted), Some(worst)) = (clos.leaf_ratio, leaves.worst_oversubscription) {
                prop_assert!(worst <= f64::from(wanted.0 + 1) / 1000.0, "{} > {}", worst, wanted.0);
            }
        }
    }

    #[test]
    fn overridden_fabrics_round_trip(hosts in 2..4_u32, dual in any::<bool>(), port in 0..2_u8, slow in 1..5_u32) {
        let text = format!(
            "name: x\nclos: {{segments: 2, hosts: {hosts}, rails: 2, spines: 4, dual_tor: {dual}}}\noverrides:\n\
             \x20 - {{between: [leaf-s1r0{leaf}, spine{slow}], speed: 100G, delay: 3us}}\n\
             \x20 - {{between: [leaf-s2r1{leaf}, spine{slow}], remove: true}}\n{cut}",
            leaf = if dual { "a" } else { "" },
            slow = slow.min(4),
            cut = if dual { format!("  - {{between: ['h1:0.{port}', leaf-s1r0{}], remove: true}}\n", ["a", "b"][usize::from(port)]) } else { String::new() },
        );
        let topology = Topology::parse("overridden", &text).unwrap_or_else(|report| panic!("{report}\n{text}"));
        check(&topology);
        round_trip(&topology);
        prop_assert_eq!(topology.links().iter().filter(|link| link.speed_bps == 100_000_000_000).count(), 1);
    }

    #[test]
    fn any_bytes_are_a_topology_or_a_report(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(report) = Topology::parse_bytes("bytes", &bytes) {
            prop_assert!(!report.problems().is_empty());
            prop_assert!(!report.render(true).is_empty() && !report.to_string().is_empty());
        }
    }

    #[test]
    fn any_yaml_like_text_is_a_topology_or_a_report(text in "[\\[\\]{}:,&*!|>'\"%@`#?\\- \t\r\na-c0-9\u{e9}\u{1f600}\u{85}\u{2028}]{0,60}") {
        if let Err(report) = Topology::parse("text", &text) {
            for problem in report.problems() {
                prop_assert!(problem.line >= 1 && problem.column >= 1 && !problem.help.is_empty());
            }
            prop_assert!(!report.render(false).is_empty());
        }
    }

    #[test]
    fn any_change_to_a_file_is_a_topology_or_a_report(text in mutated()) {
        match Topology::parse("mutated", &text) {
            Ok(topology) => { check(&topology); round_trip(&topology); }
            Err(report) => {
                let lines = text.lines().count() + 1;
                for problem in report.problems() {
                    prop_assert!(problem.line <= lines, "line {} of {lines}", problem.line);
                }
                prop_assert!(!report.render(true).is_empty());
            }
        }
    }
}

//! The importer, on a real fabric, on a made-up one with everything wrong, and on junk.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use topology::import::{Finding, FindingKind, ImportError, ibnetdiscover};
use topology::{Node, Tier, Topology};

const REAL: &str = include_str!("data/rail-fabric.ibnetdiscover");

fn of(findings: &[Finding], kind: FindingKind) -> Vec<&Finding> {
    findings
        .iter()
        .filter(|finding| finding.kind == kind)
        .collect()
}

#[test]
fn the_real_fabric() {
    let (fabric, findings) = ibnetdiscover(REAL).unwrap();
    assert_eq!(Tier::ALL.map(|tier| fabric.tier(tier).count()), [31, 9, 0]);
    assert_eq!(fabric.segments().len(), 8);
    // Of 582 adapters, 40 are inside switches.
    assert_eq!(fabric.nics().len(), 542);
    let again =
        Topology::parse("written", &fabric.to_yaml()).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(again, fabric);

    let uplinks = of(&findings, FindingKind::MissingUplinks);
    assert_eq!(uplinks.len(), 16);
    assert_eq!(uplinks[0].line, 10);
    assert_eq!(
        uplinks[0].about,
        ["A09-P1-IBLEAF-04-04", "A10-P1-IBSPINE-01"]
    );
    assert!(
        uplinks[0].message.contains("0 of 2 uplinks"),
        "{}",
        uplinks[0].message
    );
    let absent = of(&findings, FindingKind::MissingSwitch);
    assert_eq!(absent.len(), 1);
    assert_eq!(absent[0].about, ["A09-P1-IBLEAF-03-01"]);
    // 69 with the vendor's default description and 5 of machines called localhost or ubuntu.
    assert_eq!(of(&findings, FindingKind::UnnamedAdapter).len(), 74);
    let swapped = of(&findings, FindingKind::RailMismatch);
    assert!(
        swapped
            .iter()
            .any(|finding| finding.line == 127 && finding.about[0] == "b08-p1-dgx-08-c01")
    );
    // Segment s1 lacks the absent leaf's adapters.
    let lacking = of(&findings, FindingKind::MissingAdapters);
    assert!(
        lacking.iter().any(|finding| finding.about == ["s1"]),
        "{lacking:?}"
    );
    assert!(
        !lacking
            .iter()
            .any(|finding| finding.about == ["a05-p1-dgx-01-c01"])
    );
    for kind in [
        FindingKind::UnknownLine,
        FindingKind::OneSidedLink,
        FindingKind::OddSpeed,
        FindingKind::Renamed,
    ] {
        assert!(of(&findings, kind).is_empty(), "{kind:?}");
    }

    let host = fabric.find_host("b05-p1-dgx-05-c05").unwrap();
    let rails: Vec<u16> = fabric[host].nics().map(|nic| fabric[nic].rail).collect();
    assert_eq!(rails, [0, 1, 2, 3]);
    let spine = fabric.find("B10-P1-IBSPINE-06").unwrap();
    let leaf = fabric.find("B09-P1-IBLEAF-01-08").unwrap();
    assert_eq!(fabric.links_between(spine, leaf).count(), 1);
}

/// Three leaves with a cable each to two spines, and three hosts with an adapter on every leaf,
/// put together by port; `edit` changes the lines.
fn small(edit: impl Fn(&str) -> Option<String>) -> String {
    let mut lines = Vec::new();
    for leaf in 1..=3 {
        lines.push(format!("Switch 64 \"S-{leaf}\" # \"LEAF-{leaf}\" lid 1"));
        for host in 1..=3 {
            let adapter = leaf - 1;
            lines.push(format!(
                "[{host}] \"H-{leaf}{host}\"[1](x) # \"node-{host} mlx5_{adapter}\" lid 2 4xNDR"
            ));
        }
        for spine in 8..=9 {
            lines.push(format!(
                "[{spine}] \"S-{spine}\"[{leaf}] # \"SPINE-{spine}\" lid 3 4xNDR"
            ));
        }
        lines.push(String::new());
    }
    for spine in 8..=9 {
        lines.push(format!("Switch 64 \"S-{spine}\" # \"SPINE-{spine}\" lid 3"));
        for leaf in 1..=3 {
            lines.push(format!(
                "[{leaf}] \"S-{leaf}\"[{spine}] # \"LEAF-{leaf}\" lid 1 4xNDR"
            ));
        }
        lines.push(String::new());
    }
    let lines: Vec<String> = lines
        .iter()
        .map(|line| edit(line).unwrap_or_else(|| line.clone()))
        .collect();
    lines.join("\n")
}

/// The small fabric with the line that contains `find` replaced.
fn with(find: &str, line: &str) -> (Topology, Vec<Finding>) {
    let text = small(|old| old.contains(find).then(|| line.to_owned()));
    ibnetdiscover(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn only(findings: &[Finding]) -> (FindingKind, usize, Vec<&str>) {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let about = findings[0].about.iter().map(String::as_str).collect();
    (findings[0].kind, findings[0].line, about)
}

#[test]
fn nothing_odd() {
    let (fabric, findings) = ibnetdiscover(&small(|_| None)).unwrap();
    assert_eq!(findings, []);
    assert_eq!(
        (
            fabric.hosts().len(),
            fabric.segments().len(),
            fabric.links().len()
        ),
        (3, 1, 15)
    );
}

#[test]
fn an_unnamed_adapter_is_known_by_its_place() {
    let (fabric, findings) = with(
        "H-22",
        "[2] \"H-22\"[1](x) # \"MT4129 ConnectX7   Mellanox Technologies\" lid 2 4xNDR",
    );
    assert_eq!(
        only(&findings),
        (
            FindingKind::UnnamedAdapter,
            10,
            vec!["H-22", "LEAF-2", "node-2"]
        )
    );
    let host = fabric.find_host("node-2").unwrap();
    assert_eq!(fabric[host].nics().count(), 3);
    // On another port the place says nothing, and no adapter is lost.
    let (fabric, findings) = with(
        "H-22",
        "[30] \"H-22\"[1](x) # \"localhost HCA-2\" lid 2 4xNDR",
    );
    let unnamed = of(&findings, FindingKind::UnnamedAdapter);
    assert_eq!(unnamed[0].about[2], "unnamed-22");
    assert_eq!(of(&findings, FindingKind::MissingAdapters).len(), 2);
    assert_eq!(fabric.hosts().len(), 4);
}

#[test]
fn odd_cables() {
    let (fabric, findings) = with("[8] \"S-8\"[2]", "[8] \"S-8\"[2] # \"SPINE-8\" lid 3 1xHDR");
    assert_eq!(only(&findings), (FindingKind::OddSpeed, 12, vec!["LEAF-2"]));
    let (leaf, spine) = (
        fabric.find("LEAF-2").unwrap(),
        fabric.find("SPINE-8").unwrap(),
    );
    let link = fabric.links_between(leaf, spine).next().unwrap();
    assert_eq!(fabric[link].speed_bps, 50_000_000_000);
    let (_, findings) = with("[8] \"S-8\"[2]", "[8] \"S-8\"[2] # \"SPINE-8\" lid 3 fast");
    assert!(
        findings[0].message.contains("taken as 100G"),
        "{findings:?}"
    );
    let (_, findings) = with("[8] \"S-8\"[2]", "#");
    assert_eq!(
        of(&findings, FindingKind::OneSidedLink)[0].about,
        ["SPINE-8", "LEAF-2"]
    );
    let (_, findings) = with("[8] \"S-8\"[2]", "[8] \"S-7\"[2] # \"SPINE-7\" lid 3 4xNDR");
    assert_eq!(
        of(&findings, FindingKind::OneSidedLink)[0].about,
        ["LEAF-2", "S-7"]
    );
    let text = small(|old| {
        (old.contains("[8] \"S-8\"[2]") || old.contains("[2] \"S-2\"[8]")).then(|| "#".to_owned())
    });
    let (_, findings) = ibnetdiscover(&text).unwrap();
    assert_eq!(
        only(&findings),
        (FindingKind::MissingUplinks, 8, vec!["LEAF-2", "SPINE-8"])
    );
}

#[test]
fn odd_switches() {
    let text = small(|old| old.contains("\"H-2").then(String::new));
    // The blank lines end the block early; what is left of it are lines without one.
    assert!(!of(&ibnetdiscover(&text).unwrap().1, FindingKind::UnknownLine).is_empty());
    let text = small(|old| old.contains("\"H-2").then(|| "# nothing".to_owned()));
    let (fabric, findings) = ibnetdiscover(&text).unwrap();
    assert_eq!(
        only(&findings),
        (FindingKind::LeafWithoutHosts, 8, vec!["LEAF-2"])
    );
    assert_eq!(fabric.tier(Tier::Leaf).count(), 3);
    let (fabric, findings) = with("Switch 64 \"S-2\"", "Switch 64 \"S-2\" # \"LEAF-1\" lid 1");
    assert_eq!(of(&findings, FindingKind::Renamed)[0].about, ["LEAF-1-2"]);
    assert!(matches!(fabric.find("LEAF-1-2"), Ok(Node::Switch(_))));
    let (fabric, findings) = with(
        "[3] \"S-3\"[8]",
        "[3] \"S-3\"[8] # \"LEAF-3\" lid 1 4xNDR\n[20] \"H-99\"[1](x) # \"manager mlx5_0\" lid 2 4xNDR",
    );
    assert_eq!(
        of(&findings, FindingKind::LeftOut)[0].about,
        ["H-99", "SPINE-8"]
    );
    assert!(fabric.find_host("manager").is_err());
}

#[test]
fn swapped_rails() {
    let text = small(|old| {
        old.contains("H-11")
            .then(|| old.replace("mlx5_0", "mlx5_1"))
            .or_else(|| {
                old.contains("H-21")
                    .then(|| old.replace("mlx5_1", "mlx5_0"))
            })
    });
    // Two of three adapters are not enough of a pattern to call the third odd.
    assert_eq!(ibnetdiscover(&text).unwrap().1, []);
}

#[test]
fn junk() {
    assert_eq!(ibnetdiscover("").unwrap_err(), ImportError::NoSwitch);
    assert_eq!(
        ibnetdiscover("name: a yaml file\nclos: {}\n").unwrap_err(),
        ImportError::NoSwitch
    );
    let spines = small(|old| old.contains("\"H-").then(|| "#".to_owned()));
    assert_eq!(ibnetdiscover(&spines).unwrap_err(), ImportError::NoHost);
    let (_, findings) = with("[1] \"S-1\"[8]", "[1] \"S-1\"[9] # \"LEAF-1\" lid 1 4xNDR");
    assert!(
        of(&findings, FindingKind::LeftOut)[0]
            .message
            .contains("used twice"),
        "{findings:#?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_change_is_a_fabric_or_an_error(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..30_usize, "[\\[\\]\"#SH0-9x \n\u{e9}-]{0,8}"), 1..6),
    ) {
        let mut text: Vec<char> = small(|_| None).chars().collect();
        for (at, cut, token) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, token.chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok((fabric, findings)) = ibnetdiscover(&text) {
            let lines = text.lines().count();
            prop_assert!(findings.iter().all(|finding| (1..=lines).contains(&finding.line)));
            let again = Topology::parse("written", &fabric.to_yaml());
            prop_assert_eq!(again.map_err(|report| report.to_string()), Ok(fabric));
        }
    }
}

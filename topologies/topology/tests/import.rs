//! The importer, on a real fabric and on junk.
#![allow(clippy::unwrap_used)]

use topology::import::{Finding, FindingKind, ibnetdiscover};
use topology::{Tier, Topology};

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
    for finding in &findings {
        println!(
            "{:?} {} {:?} {}",
            finding.kind, finding.line, finding.about, finding.message
        );
    }
    println!("{}", topology::show::Summary::of(&fabric));
    assert_eq!(Tier::ALL.map(|tier| fabric.tier(tier).count()), [31, 9, 0]);
    assert_eq!(fabric.segments().len(), 8);
    assert_eq!(fabric.nics().len(), 542);
    let again =
        Topology::parse("written", &fabric.to_yaml()).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(again, fabric);
    assert_eq!(of(&findings, FindingKind::MissingUplinks).len(), 16);
}

//! The fabrics of these tests and how they come up.

use std::path::PathBuf;

use lab::mininet::{Error, Lab, Options, Plan, Program, ProgramKind, plan};
use topology::{Clos, HostCounts, Topology, generate};

/// A binary that `tests/run` has built.
pub(crate) fn binary(name: &str) -> PathBuf {
    tests::binary(name).unwrap()
}

/// The switch program under test.
pub(crate) fn program() -> Program {
    match std::env::var("MERIDIAN_TEST_SWITCH").as_deref() {
        Ok("simple_switch_grpc") => Program::find(ProgramKind::SimpleSwitchGrpc).unwrap(),
        _ => Program {
            kind: ProgramKind::MeridianSwitch,
            path: binary(ProgramKind::MeridianSwitch.name()),
        },
    }
}

/// Two leaves, one spine, two hosts each with one NIC.
pub(crate) fn two_leaves(name: &str) -> Topology {
    let clos = Clos {
        name: name.into(),
        segments: 2,
        hosts: HostCounts::Each(2),
        rails: 1,
        spines: Some(1),
        ..Clos::default()
    };
    generate(&clos).unwrap()
}

/// Options with ports of their own, so that tests can run beside fabrics of the machine.
pub(crate) fn options(grpc_base_port: u16) -> Options {
    Options {
        grpc_base_port,
        ..Options::new(program())
    }
}

/// The plan of [`two_leaves`].
pub(crate) fn small_plan(name: &str, grpc_base_port: u16) -> Plan {
    plan(&two_leaves(name), &options(grpc_base_port)).unwrap()
}

/// Brings a plan up without looking at its progress.
pub(crate) async fn up(plan: &Plan) -> Result<Lab, Error> {
    Lab::bring_up(plan.clone(), |_| {}).await
}

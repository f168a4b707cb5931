//! A schedule run packet by packet and, on the same paths, in the flow model.

use std::sync::Arc;

use ::topology::{NicId, Topology};
use controller::intent::Options;
use controller::placement::{Demand, Path, on_paths};
use controller::simulate::hash::{Packet, natural};
use controller::simulate::paths::hashed;
use lab::emulator::{EmulatorConfig, FlowSpec, Schedule};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::model::Model;
use super::{Control, Mode, Paths};
use crate::cmd::demo::bed::Bed;
use crate::failure::Failure;
use crate::output::Progress;

/// What came out.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Comparison {
    /// NICs that send.
    pub(super) nics: usize,
    /// Bytes that all of them send.
    pub(super) bytes: u64,
    /// Share of them that goes to another LA domain.
    pub(super) cross_la_share: f64,
    /// Busiest link between switches over the least that any choice of paths allows.
    pub(super) max_load_over_bound: f64,
    /// Fabric time, packet by packet, us.
    pub(super) emulated_us: f64,
    /// The same in the flow model, us.
    pub(super) model_us: f64,
    /// The model's time over the emulator's, less 1.
    pub(super) model_error: f64,
    /// Mean bytes per NIC over time and NIC rate: busbw / NIC rate of a collective.
    pub(super) busbw_ratio: f64,
    /// Pins that a switch's table had no room for: those flows take the routes.
    pub(super) unpinned: usize,
    /// Packets lost.
    pub(super) drops: u64,
    /// Packets marked.
    pub(super) ecn_marks: u64,
}

/// Runs `schedule`; `chain` tells which of its flows advance together.
pub(super) async fn compare(
    bed: &mut Bed,
    mut schedule: Schedule,
    chain: &[u32],
    mode: Mode,
    progress: &Progress,
) -> Result<Comparison, Failure> {
    let taken = match mode.paths {
        Paths::Placed => {
            bed.place(&mut schedule).await?;
            pinned(bed, &schedule)
        }
        Paths::Hashed => {
            let drawn = drawn(bed, &schedule, mode.seed);
            bed.place_on(&mut schedule, drawn).await?;
            pinned(bed, &schedule)
        }
        // Nothing is pinned: the switches hash, and the model follows their arithmetic.
        Paths::Ecmp => natural_paths(bed, &schedule),
    };
    if let Some(index) = taken.iter().position(Option::is_none) {
        let flow = schedule.flows()[index];
        let [src, dst] = [flow.src, flow.dst].map(|nic| crate::names::nic(&bed.topology, nic));
        return Err(Failure::Input(format!(
            "error: the fabric has no way from {src} to {dst}: add links, or run a job that needs none"
        )));
    }
    let load = load(bed, &schedule, &taken);
    let model = Model::new(bed, &schedule, chain, &taken);
    if mode.control == Control::Rates {
        model.pace(&mut schedule);
    }
    let model_ns = model.ns(
        bed,
        &schedule,
        (&taken, &echoes(bed, &schedule)),
        mode.control,
    );
    let topology = Arc::clone(&bed.topology);
    let sent = sent(&topology, &schedule);
    let unpinned = bed.desired.intent().left_out.values().sum();
    let (run, before) = bed.start(schedule).await?;
    bed.finish(run, progress)?;
    let measured = bed.measure(run, &before).await?;
    bed.unplace().await?;
    let elapsed = measured.elapsed_ns as f64;
    let per_nic = sent.bytes as f64 / sent.nics.max(1) as f64;
    Ok(Comparison {
        nics: sent.nics,
        bytes: sent.bytes,
        cross_la_share: sent.crossing as f64 / sent.bytes.max(1) as f64,
        max_load_over_bound: load,
        emulated_us: elapsed / 1e3,
        model_us: model_ns / 1e3,
        model_error: model_ns / elapsed.max(1.0) - 1.0,
        busbw_ratio: per_nic * 8e9 / elapsed.max(1.0) / sent.slowest_bps.max(1) as f64,
        unpinned,
        drops: measured.lost.total(),
        ecn_marks: measured.telemetry.marks(),
    })
}

fn pinned(bed: &Bed, schedule: &Schedule) -> Vec<Option<Path>> {
    (0..schedule.flows().len())
        .map(|index| bed.desired.path(index).cloned())
        .collect()
}

fn natural_paths(bed: &Bed, schedule: &Schedule) -> Vec<Option<Path>> {
    by_hash(bed, schedule, |flow| *flow)
}

/// The paths of acknowledgements, which nothing pins.
fn echoes(bed: &Bed, schedule: &Schedule) -> Vec<Option<Path>> {
    by_hash(bed, schedule, |flow| FlowSpec {
        src: flow.dst,
        dst: flow.src,
        dst_qp: flow.src_qp,
        src_port: flow.dst_port,
        ..*flow
    })
}

/// The paths that the switches' hash gives to what `of` makes of each flow.
fn by_hash(
    bed: &Bed,
    schedule: &Schedule,
    of: impl Fn(&FlowSpec) -> FlowSpec,
) -> Vec<Option<Path>> {
    let network = bed.desired.planner().network(bed.desired.view());
    let policy = Options::default().buckets;
    let flows = schedule.flows().iter().map(of);
    flows
        .map(|flow| {
            let demand = Demand {
                src: flow.src.0,
                dst: flow.dst.0,
                bytes: flow.bytes,
                port: Some(flow.src_port),
            };
            let port = flow.udp_source_port;
            let packet = Packet::roce(&bed.topology, flow.src, flow.dst, port, flow.dst_qp);
            natural(&bed.topology, &network, &demand, &packet, policy)
        })
        .collect()
}

/// Load of the busiest link between switches over the least that any choice allows; 1 without such flows.
fn load(bed: &Bed, schedule: &Schedule, paths: &[Option<Path>]) -> f64 {
    let network = bed.desired.planner().network(bed.desired.view());
    let demands: Vec<Demand> = bed.flows(schedule).iter().map(|f| f.demand).collect();
    let plan = on_paths(&network, &demands, paths);
    if plan.bound_ps == 0 {
        return 1.0;
    }
    plan.max_load_ps as f64 / plan.bound_ps as f64
}

fn drawn(bed: &Bed, schedule: &Schedule, seed: u64) -> Vec<Option<Path>> {
    let planner = bed.desired.planner();
    let network = planner.network(bed.desired.view());
    bed.flows(schedule)
        .iter()
        .zip(0u64..)
        .map(|(flow, index)| {
            hashed(
                &network,
                &flow.demand,
                seed.wrapping_mul(0x1_0000_0001) ^ index,
            )
        })
        .collect()
}

/// The hosts and switches of a run.
pub(super) fn config(topology: &Topology, mode: Mode) -> EmulatorConfig {
    let mut config = EmulatorConfig::new(topology, mode.seed);
    if mode.control == Control::Window {
        config.nic.dcqcn = None;
    }
    config
}

struct Sent {
    nics: usize,
    bytes: u64,
    crossing: u64,
    slowest_bps: u64,
}

fn sent(topology: &Topology, schedule: &Schedule) -> Sent {
    let mut by_nic: FxHashMap<NicId, u64> = FxHashMap::default();
    let mut crossing = 0;
    for flow in schedule.flows() {
        *by_nic.entry(flow.src).or_default() += flow.bytes;
        if topology[flow.src].la != topology[flow.dst].la {
            crossing += flow.bytes;
        }
    }
    Sent {
        nics: by_nic.len(),
        bytes: by_nic.values().sum(),
        crossing,
        slowest_bps: by_nic
            .keys()
            .map(|nic| topology.nic_speed_bps(*nic))
            .min()
            .unwrap_or(0),
    }
}

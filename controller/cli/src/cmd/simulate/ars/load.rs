//! Throughput: symmetric and asymmetric fabrics; order of packets.

use controller::intent::{Ars, Mode};

use super::bed::{
    Bed, NIC_BYTES, NIC_MESSAGE_BYTES, SPEED, Senders, WIDTH, WIRE_BYTES, halved,
    lost as lost_packets, out_of_order_ppm, topology,
};
use super::{Case, Row, Setup, Traffic, Wanted, all_setups, name};
use crate::failure::Failure;
use crate::output::Progress;

/// From the start of the traffic to the time over which throughput without end is measured, and that time, ns.
const WARM_NS: u64 = 500_000;
const MEASURED_NS: u64 = 2_000_000;

struct Done {
    elapsed_ns: u64,
    /// Payload bytes that arrived while the fabric was full.
    carried: u64,
    out_of_order_ppm: f64,
    lost: u64,
}

async fn until_done(
    spines: Option<u32>,
    setup: &Setup,
    (traffic, senders): (Traffic, Senders),
    seed: u64,
) -> Result<Done, Failure> {
    let bytes = match traffic {
        Traffic::Elephants => NIC_BYTES,
        Traffic::Messages => NIC_MESSAGE_BYTES,
    };
    let mut bed = Bed::new(topology(spines)?, setup, senders, seed).await?;
    let schedule = bed.schedule(traffic, senders.per_nic, bytes);
    let run = bed.start(schedule)?;
    let carried = match traffic {
        Traffic::Elephants => 0,
        Traffic::Messages => carried(&mut bed),
    };
    let elapsed_ns = bed.finish(run)?;
    let statistics = bed.emulator.statistics();
    Ok(Done {
        elapsed_ns,
        carried,
        out_of_order_ppm: out_of_order_ppm(&statistics),
        lost: lost_packets(&statistics),
    })
}

/// Runs through the time in which the fabric is full; the payload bytes that arrive in it. No run of messages is
/// over by then: each NIC's take 2.6 ms at least.
fn carried(bed: &mut Bed) -> u64 {
    let received = |bed: &mut Bed, after_ns: u64| {
        let until = bed.emulator.now() + after_ns;
        bed.emulator.run_until(until);
        bed.emulator.statistics().totals.received_bytes
    };
    let before = received(bed, WARM_NS);
    received(bed, MEASURED_NS) - before
}

/// A setup beside one switch that never blocks, with the same traffic.
#[derive(Default)]
struct Beside {
    throughput: f64,
    completion: f64,
    out_of_order_ppm: f64,
    lost: u64,
}

/// Flows that end have the throughput that the ratio of the times says; messages that of what arrives meanwhile.
async fn compare(
    setup: &Setup,
    load: (Traffic, Senders),
    seeds: &[u64],
) -> Result<Beside, Failure> {
    let draws = seeds.len() as f64;
    let mut beside = Beside::default();
    for seed in seeds {
        let ideal = until_done(None, &None, load, *seed).await?;
        let done = until_done(Some(WIDTH), setup, load, *seed).await?;
        let completion = ideal.elapsed_ns as f64 / done.elapsed_ns as f64;
        let throughput = match load.0 {
            Traffic::Elephants => completion,
            Traffic::Messages => done.carried as f64 / ideal.carried as f64,
        };
        beside.throughput += throughput / draws;
        beside.completion += completion / draws;
        beside.out_of_order_ppm += done.out_of_order_ppm / draws;
        beside.lost += done.lost;
    }
    Ok(beside)
}

/// As many NICs as uplinks, 1, 4 and 16 flows each.
pub(super) async fn symmetric(
    seeds: &[u64],
    dcqcn: bool,
    wanted: &Wanted,
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for traffic in wanted.traffic() {
        for flows_per_uplink in wanted.flows() {
            for setup in wanted.setups(all_setups()) {
                progress.tick(format!(
                    "{traffic:?}, {flows_per_uplink} flows, {}",
                    name(&setup)
                ));
                let senders = Senders {
                    per_nic: flows_per_uplink,
                    dcqcn,
                };
                let load = (traffic, senders);
                let beside = compare(&setup, load, seeds).await?;
                rows.push(Row {
                    case: Case::Symmetric,
                    what: String::new(),
                    mode: name(&setup),
                    traffic,
                    flows_per_uplink,
                    throughput: Some(beside.throughput),
                    completion: Some(beside.completion),
                    out_of_order_ppm: beside.out_of_order_ppm,
                    lost: beside.lost,
                    detection_us: None,
                    lost_at_most: None,
                    link_share: None,
                });
            }
        }
    }
    Ok(rows)
}

/// One spine with half its capacity: what arrives, beside what the uplinks can carry together.
pub(super) async fn asymmetric(
    seeds: &[u64],
    dcqcn: bool,
    wanted: &Wanted,
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for flows_per_uplink in wanted.flows() {
        for setup in wanted.setups(all_setups()) {
            progress.tick(format!(
                "asymmetric, {flows_per_uplink} flows, {}",
                name(&setup)
            ));
            let senders = Senders {
                per_nic: flows_per_uplink,
                dcqcn,
            };
            let (mut throughput, mut ppm, mut lost) = (0.0, 0.0, 0);
            for seed in seeds {
                let mut bed = Bed::new(halved()?, &setup, senders, *seed).await?;
                let schedule = bed.schedule(Traffic::Elephants, flows_per_uplink, 1 << 30);
                bed.start(schedule)?;
                let begun = bed.emulator.now() + WARM_NS;
                bed.emulator.run_until(begun);
                bed.emulator.reset_statistics();
                bed.emulator.run_until(begun + MEASURED_NS);
                let statistics = bed.emulator.statistics();
                let totals = &statistics.totals;
                let new = totals.received_packets - totals.duplicates;
                let capacity = SPEED as f64 * (f64::from(WIDTH) - 0.5);
                let carried = (new * WIRE_BYTES * 8) as f64 * 1e9 / MEASURED_NS as f64;
                throughput += carried / capacity;
                ppm += out_of_order_ppm(&statistics);
                lost += lost_packets(&statistics);
            }
            rows.push(Row {
                case: Case::Asymmetric,
                what: "spine 8 at half".to_owned(),
                mode: name(&setup),
                traffic: Traffic::Elephants,
                flows_per_uplink,
                throughput: Some(throughput / seeds.len() as f64),
                completion: None,
                out_of_order_ppm: ppm / seeds.len() as f64,
                lost,
                detection_us: None,
                lost_at_most: None,
                link_share: None,
            });
        }
    }
    Ok(rows)
}

/// Messages, with idle times from too short to ample.
pub(super) async fn reordering(
    seed: u64,
    dcqcn: bool,
    wanted: &Wanted,
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let modes = [Mode::FlowletRandom, Mode::FlowletQuality].map(|mode| Some(Ars::new(mode)));
    for ars in wanted.setups(modes.to_vec()).flatten() {
        for idle_us in [0, 1, 2, 5, 10, 20, 50] {
            progress.tick(format!("{}, idle time {idle_us} us", ars.mode.name()));
            let setup = Some(Ars { idle_us, ..ars });
            let senders = Senders { per_nic: 16, dcqcn };
            let load = (Traffic::Messages, senders);
            let done = until_done(Some(WIDTH), &setup, load, seed).await?;
            rows.push(Row {
                case: Case::Reordering,
                what: format!("idle time {idle_us} us"),
                mode: name(&setup),
                traffic: load.0,
                flows_per_uplink: senders.per_nic,
                throughput: None,
                completion: None,
                out_of_order_ppm: done.out_of_order_ppm,
                lost: done.lost,
                detection_us: None,
                lost_at_most: None,
                link_share: None,
            });
        }
    }
    Ok(rows)
}

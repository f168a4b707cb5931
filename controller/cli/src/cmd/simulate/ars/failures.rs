//! Failures that the data plane finds by itself: a cut link, a link that loses packets.

use controller::intent::{Ars, Mode};

use super::bed::{Bed, SPEED, Senders, WIDTH, WIRE_BYTES, out_of_order_ppm, topology};
use super::{Case, Row, Setup, Traffic, Wanted, name};
use crate::failure::Failure;
use crate::output::Progress;

const FLOWS: u32 = 4;
/// From the start of the traffic to the failure, ns.
const BEFORE_NS: u64 = 500_000;
/// How long the fabric is looked at after it, ns.
const AFTER_NS: u64 = 2_000_000;
/// Steps in which losses are looked for, ns.
const STEP_NS: u64 = 1_000;
/// The spine whose link fails.
const SPINE: usize = 3;
/// Millionths of the packets that a gray link loses.
const GRAY_PPM: u32 = 20_000;

fn setups() -> Vec<Setup> {
    let modes = [Mode::Fixed, Mode::FlowletQuality, Mode::PerPacketQuality];
    std::iter::once(None)
        .chain(modes.into_iter().map(|mode| Some(Ars::new(mode))))
        .collect()
}

fn missing(bed: &Bed) -> Failure {
    Failure::Run(format!("{}: no link to cut", bed.topology.name()))
}

/// A link is cut: first the one from the sending leaf up, which its hellos find, then the one from the spine
/// down, which only probes can.
pub(super) async fn cut(
    seed: u64,
    dcqcn: bool,
    wanted: &Wanted,
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let senders = Senders {
        per_nic: FLOWS,
        dcqcn,
    };
    let mut rows = Vec::new();
    for (leaf, what) in [(0, "leaf to spine"), (1, "spine to far leaf")] {
        for setup in wanted.setups(setups()) {
            progress.tick(format!("cut {what}, {}", name(&setup)));
            let mut bed = Bed::new(topology(Some(WIDTH))?, &setup, senders, seed).await?;
            let schedule = bed.schedule(Traffic::Elephants, FLOWS, 1 << 30);
            bed.start(schedule)?;
            let link = bed.link(leaf, SPINE).ok_or_else(|| missing(&bed))?;
            let cut_at = bed.emulator.now() + BEFORE_NS;
            bed.emulator.run_until(cut_at);
            bed.emulator.reset_statistics();
            bed.emulator.set_link(link, false);
            let mut last_loss = cut_at;
            let mut lost = 0;
            while bed.emulator.now() < cut_at + AFTER_NS {
                let until = bed.emulator.now() + STEP_NS;
                bed.emulator.run_until(until);
                let now = data_lost(&bed);
                if now > lost {
                    (lost, last_loss) = (now, bed.emulator.now());
                }
            }
            let statistics = bed.emulator.statistics();
            let detection_ns = last_loss - cut_at;
            rows.push(Row {
                case: Case::Cut,
                what: what.to_owned(),
                mode: name(&setup),
                traffic: Traffic::Elephants,
                flows_per_uplink: FLOWS,
                throughput: None,
                completion: None,
                out_of_order_ppm: out_of_order_ppm(&statistics),
                lost,
                detection_us: Some(detection_ns as f64 / 1e3),
                lost_at_most: Some(in_flight(detection_ns)),
                link_share: None,
            });
        }
    }
    Ok(rows)
}

/// Packets lost at the cut other than hellos and probes, which go on being sent: they are all that a switch
/// submits to itself, and shorter than any acknowledgement.
fn data_lost(bed: &Bed) -> u64 {
    let links = bed.emulator.statistics().links;
    links
        .iter()
        .flat_map(|link| [link.upward, link.downward])
        .map(|wire| wire.long_lost)
        .sum()
}

/// Packets that a link carries in a time, and that are on it at once.
fn in_flight(time_ns: u64) -> u64 {
    // Acknowledgements come the other way, one for 16 packets or more.
    let packets = (time_ns + 1_000) * SPEED / 1_000_000_000 / 8 / WIRE_BYTES;
    packets + packets / 16 + 1
}

/// A link loses packets on the way up.
pub(super) async fn gray(
    seed: u64,
    dcqcn: bool,
    wanted: &Wanted,
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let senders = Senders {
        per_nic: FLOWS,
        dcqcn,
    };
    let mut rows = Vec::new();
    let mut setups = setups();
    // The same with lossy links left out altogether: what modes without quality can do.
    if let Some(Some(mut ars)) = setups.get(1).copied() {
        ars.hellos = ars.hellos.map(|hellos| controller::intent::Hellos {
            gray_is_dead: true,
            ..hellos
        });
        setups.push(Some(ars));
    }
    for setup in wanted.setups(setups) {
        let traffic = match setup.map(|ars| ars.mode) {
            Some(Mode::FlowletQuality) => Traffic::Messages,
            _ => Traffic::Elephants,
        };
        progress.tick(format!("gray, {}", name(&setup)));
        let mut bed = Bed::new(topology(Some(WIDTH))?, &setup, senders, seed).await?;
        let schedule = bed.schedule(traffic, FLOWS, 1 << 30);
        bed.start(schedule)?;
        let link = bed.link(0, SPINE).ok_or_else(|| missing(&bed))?;
        bed.emulator.set_loss(link, true, GRAY_PPM);
        let known = bed.emulator.now() + AFTER_NS / 2;
        bed.emulator.run_until(known);
        let lost_before = bed.emulator.statistics().drops.gray;
        bed.emulator.reset_statistics();
        bed.emulator.run_until(known + AFTER_NS);
        let statistics = bed.emulator.statistics();
        let upward = |spine: usize| {
            let link = bed.link(0, spine)?;
            Some(statistics.links.get(link.index())?.upward.bytes)
        };
        let all: u64 = (0..WIDTH as usize).filter_map(upward).sum();
        let gray_is_dead = setup
            .and_then(|ars| ars.hellos)
            .is_some_and(|h| h.gray_is_dead);
        rows.push(Row {
            case: Case::Gray,
            what: if gray_is_dead {
                "2 % lost, gray is dead"
            } else {
                "2 % lost"
            }
            .to_owned(),
            mode: name(&setup),
            traffic,
            flows_per_uplink: FLOWS,
            throughput: None,
            completion: None,
            out_of_order_ppm: out_of_order_ppm(&statistics),
            lost: lost_before + statistics.drops.gray,
            detection_us: None,
            lost_at_most: None,
            link_share: upward(SPINE).map(|bytes| bytes as f64 / all.max(1) as f64),
        });
    }
    Ok(rows)
}

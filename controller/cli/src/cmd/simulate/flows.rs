//! `meridian simulate flows`: a pattern of independent flows.

use std::sync::Arc;

use ::topology::units::parse_size;
use ::topology::{NicId, Topology};
use lab::emulator::QueuePairNumbers;
use lab::emulator::levels::Builder;
use serde::Serialize;

use super::build::Built;
use super::measured::{Comparison, compare, config};
use super::{FlowsArgs, Pattern};
use crate::cmd::demo::bed::Bed;
use crate::failure::Failure;
use crate::output::Progress;
use crate::{input, output};

/// What `simulate flows --format json` prints.
#[derive(Debug, Serialize)]
struct Simulated {
    topology: String,
    pattern: String,
    #[serde(flatten)]
    result: Comparison,
}

/// Runs the command.
pub(crate) fn run(args: &FlowsArgs) -> Result<(), Failure> {
    let topology = Arc::new(input::topology(&args.topology)?);
    let bytes = parse_size(&args.bytes).map_err(|error| {
        Failure::Input(format!("error: --bytes: {}; {}", error.message, error.help))
    })?;
    let pairs = pairs(&topology, args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    let progress = Progress::new(false);
    let mode = args.how.mode();
    let result = runtime.block_on(async {
        let mut bed =
            Bed::bring_up_with(Arc::clone(&topology), config(&topology, mode), None).await?;
        let built = schedule(&pairs, bytes, bed.numbers());

        compare(&mut bed, built.schedule, &built.chain, mode, &progress).await
    });
    progress.finish();
    let simulated = Simulated {
        topology: topology.name().to_owned(),
        pattern: format!("{:?}", args.pattern).to_lowercase(),
        result: result?,
    };
    output::print(args.how.format, &simulated, |s| {
        let r = &s.result;
        format!(
            "{} on {}: {} senders, {:.1} us packet by packet, {:.1} us in the flow model ({:+.1} %), {} packets lost\n",
            s.pattern,
            s.topology,
            r.nics,
            r.emulated_us,
            r.model_us,
            r.model_error * 100.0,
            r.drops
        )
    })
}

fn schedule(pairs: &[(NicId, NicId)], bytes: u64, numbers: &mut QueuePairNumbers) -> Built {
    let mut builder = Builder::new(numbers, bytes);
    for (src, dst) in pairs {
        builder.send(*src, *dst, bytes);
    }
    Built {
        schedule: builder.finish(),
        chain: (0..).take(pairs.len()).collect(),
    }
}

fn pairs(topology: &Topology, args: &FlowsArgs) -> Result<Vec<(NicId, NicId)>, Failure> {
    let count = u32::try_from(topology.nics().len()).unwrap_or(u32::MAX);
    if count < 2 {
        return Err(Failure::Input(
            "error: the fabric has fewer than two NICs".to_owned(),
        ));
    }
    let step = u32::try_from(args.how.seed % u64::from(count - 1)).unwrap_or(0) + 1;
    match args.pattern {
        Pattern::Permutation => {
            // A shift by as many NICs as the seed says, at least by half a fabric for seed 1.
            let shift = (step + count / 2 - 1) % (count - 1) + 1;
            Ok((0..count)
                .map(|n| (NicId(n), NicId((n + shift) % count)))
                .collect())
        }
        Pattern::Incast => {
            if !(1..count).contains(&args.fan_in) {
                return Err(Failure::Input(format!(
                    "error: --fan-in is {}: write a number from 1 to {}",
                    args.fan_in,
                    count - 1
                )));
            }
            // Evenly over all other NICs.
            let stride = (count - 1) / args.fan_in;
            let sender = |i: u32| NicId(1 + (step + i * stride) % (count - 1));
            Ok((0..args.fan_in).map(|i| (sender(i), NicId(0))).collect())
        }
    }
}

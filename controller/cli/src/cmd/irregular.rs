//! `meridian topology generate --irregular`: fabrics that are not as regular as a handful of numbers.

use ::topology::{Draw, Irregular, PerTier, Share, Topology, generate_irregular};
use clap::Args;

use crate::args::GenerateArgs;
use crate::failure::Failure;

/// Options of an irregular fabric. NUMBERS is one number (`8`), a range with all values equally
/// likely (`2-8`), or values and ranges with weights (`2-4:30,8:70`).
#[derive(Debug, Args)]
#[command(next_help_heading = "Irregular fabrics")]
pub(crate) struct IrregularArgs {
    /// Draw an irregular fabric: leaves with different numbers of hosts, all NICs of a host on its leaf.
    #[arg(long, conflicts_with_all = ["segments", "hosts", "rails", "dual_tor", "planes"])]
    pub(crate) irregular: bool,
    /// Leaves (a dual-ToR pair counts once).
    #[arg(long, default_value_t = 120, requires = "irregular")]
    pub(crate) leaves: u32,
    /// Hosts of each leaf: a number (8), a range (2-8), or values with weights (2-4:30,8:70).
    #[arg(
        long,
        value_name = "NUMBERS",
        default_value = "2-8",
        requires = "irregular"
    )]
    pub(crate) leaf_hosts: Draw,
    /// NICs of each host.
    #[arg(
        long,
        value_name = "NUMBERS",
        default_value = "8",
        requires = "irregular"
    )]
    pub(crate) nics: Draw,
    /// GPUs of each host [default: as many as its NICs].
    #[arg(long, requires = "irregular")]
    pub(crate) gpus: Option<u32>,
    /// Leaves of each segment (block).
    #[arg(
        long,
        value_name = "NUMBERS",
        default_value = "1",
        requires = "irregular"
    )]
    pub(crate) segment_leaves: Draw,
    /// Share of the leaves that are dual-ToR pairs, like 25%.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share, requires = "irregular")]
    pub(crate) dual_tor_share: Share,
    /// Share of the cables between switches that is missing; every switch keeps more than half.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share, requires = "irregular")]
    pub(crate) missing: Share,
    /// Speed of the links above the leaves [default: that of --speed].
    #[arg(long, value_name = "SPEED", requires = "irregular")]
    pub(crate) uplink_speed: Option<String>,
    /// What all is drawn from: the same seed gives the same fabric.
    #[arg(long, default_value_t = 1, requires = "irregular")]
    pub(crate) seed: u64,
}

fn share(text: &str) -> Result<Share, String> {
    let help = "write a share from 0 to 1, or a percentage, with at most four decimals: 0.03, 3%";
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 10_000_f64),
        None => (text.trim(), 1_000_000_f64),
    };
    match number.parse::<f64>() {
        Ok(value) if (0.0..=1_000_000.0).contains(&(value * scale)) => {
            Ok(Share((value * scale).round() as u32))
        }
        _ => Err(help.to_owned()),
    }
}

/// Draws the fabric.
pub(crate) fn fabric(args: &GenerateArgs) -> Result<Topology, Failure> {
    let odd = &args.irregular;
    let host = super::topology::speed("--speed", &args.speed)?;
    let above = match &odd.uplink_speed {
        Some(text) => super::topology::speed("--uplink-speed", text)?,
        None => host,
    };
    let irregular = Irregular {
        name: args.name.clone(),
        seed: odd.seed,
        pods: args.pods,
        leaves: odd.leaves,
        segment_leaves: odd.segment_leaves.clone(),
        leaf_hosts: odd.leaf_hosts.clone(),
        nics: odd.nics.clone(),
        gpus: odd.gpus,
        dual_tor: odd.dual_tor_share,
        spines: args.spines,
        cores: args.cores.unwrap_or(0),
        missing: odd.missing,
        speeds: PerTier {
            host,
            spine: above,
            core: above,
        },
        ..Irregular::default()
    };
    generate_irregular(&irregular).map_err(|error| Failure::Input(format!("error: {error}")))
}

/// The command that draws the same fabric again, for the head of the file.
pub(crate) fn command(args: &GenerateArgs) -> String {
    let odd = &args.irregular;
    let mut text = format!(
        "meridian topology generate --irregular --name {} --leaves {} --leaf-hosts {} --nics {}",
        args.name, odd.leaves, odd.leaf_hosts, odd.nics
    );
    let percent = |share: Share| format!("{}%", f64::from(share.0) / 10_000.0);
    let mut add = |option: &str, value: String| text += &format!(" --{option} {value}");
    if let Some(gpus) = odd.gpus {
        add("gpus", gpus.to_string());
    }
    add("segment-leaves", odd.segment_leaves.to_string());
    add("dual-tor-share", percent(odd.dual_tor_share));
    add("missing", percent(odd.missing));
    add("pods", args.pods.to_string());
    add("spines", args.spines.to_string());
    if let Some(cores) = args.cores {
        add("cores", cores.to_string());
    }
    add("speed", args.speed.clone());
    if let Some(speed) = &odd.uplink_speed {
        add("uplink-speed", speed.clone());
    }
    add("seed", odd.seed.to_string());
    text
}

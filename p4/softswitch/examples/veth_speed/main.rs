//! Frames per second over a veth pair, side by side: a bare forwarder that only moves frames,
//! meridian-switch, and simple_switch_grpc where it is on PATH.
//!
//! `tests/veth_speed` builds and starts it; see `tests/veth_speed --help`. It wants to be alone
//! in its network namespace, which the script sees to, and leaves nothing behind.

mod forwarders;
mod frames;
mod lanes;
mod router;
mod system;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use forwarders::Kind;
use lanes::Cables;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures forwarded frames per second over a veth pair, side by side.
#[derive(Debug, Parser)]
#[command(name = "veth_speed")]
struct Args {
    /// Rounds; each measures every forwarder once.
    #[arg(long, default_value_t = 3)]
    rounds: u32,

    /// How long one measurement takes.
    #[arg(long, default_value_t = 3.0, value_name = "S")]
    seconds: f64,

    /// Bytes per frame.
    #[arg(long, default_value_t = 128, value_name = "BYTES")]
    length: usize,

    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Measures only these; repeat for more.
    #[arg(long, value_name = "bare|meridian-switch|simple_switch_grpc")]
    only: Vec<String>,

    /// The meridian-switch to measure.
    #[arg(
        long,
        default_value = "target/release/meridian-switch",
        value_name = "PATH"
    )]
    meridian_switch: PathBuf,

    /// The simple_switch_grpc to measure, if it is there.
    #[arg(long, default_value = "simple_switch_grpc", value_name = "PATH")]
    bmv2: PathBuf,

    /// Runs this while the forwarder is measured, with its process id as the last argument:
    /// for profilers.
    #[arg(long, value_name = "COMMAND")]
    watch: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// One measurement.
#[derive(Clone, Copy)]
struct Sample {
    offered: f64,
    forwarded: f64,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("veth_speed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let program = router::pipelined()?;
    let frames = router::frames(args.length);
    let cables = Cables::lay()?;
    let kinds = kinds(args)?;
    let mut samples: BTreeMap<usize, Vec<Sample>> = BTreeMap::new();
    for round in 0..args.rounds {
        for (place, kind) in kinds.iter().enumerate() {
            let running = forwarders::start(kind, &program)?;
            if round == 0 && *kind != Kind::Bare {
                let arrived = cables.probe(frames[..256].to_vec())?;
                router::check(&frames[..256], &arrived)
                    .map_err(|e| format!("{} does not route: {e}", kind.name()))?;
            }
            let watching = match (&args.watch, running.pid()) {
                (Some(command), Some(pid)) => Some(watch(command, pid)?),
                _ => None,
            };
            let sample = measure(&cables, &frames, args.seconds)?;
            if let Some(mut child) = watching {
                child.wait()?;
            }
            samples.entry(place).or_default().push(sample);
        }
    }
    match args.format {
        Format::Text => print_text(&kinds, &samples),
        Format::Json => print_json(&kinds, &samples),
    }
    Ok(())
}

fn kinds(args: &Args) -> Result<Vec<Kind>, Failure> {
    let switch = |name: &str, program: &PathBuf, options: &[&str]| Kind::Switch {
        name: name.to_owned(),
        program: program.clone(),
        options: options.iter().map(|&word| word.to_owned()).collect(),
    };
    let mut kinds = vec![
        Kind::Bare,
        switch("meridian-switch", &args.meridian_switch, &[]),
    ];
    if is_there(&args.bmv2) {
        kinds.push(switch(
            "simple_switch_grpc",
            &args.bmv2,
            &["--thrift-port", "9090"],
        ));
    } else {
        eprintln!("left out: no simple_switch_grpc on PATH (or at --bmv2 PATH)");
    }
    if let Some(unknown) = args
        .only
        .iter()
        .find(|name| !kinds.iter().any(|kind| kind.name() == **name))
    {
        let names: Vec<&str> = kinds.iter().map(Kind::name).collect();
        return Err(format!("--only {unknown}: there are {}", names.join(", ")).into());
    }
    kinds.retain(|kind| args.only.is_empty() || args.only.iter().any(|n| n == kind.name()));
    Ok(kinds)
}

fn is_there(program: &std::path::Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn watch(command: &str, pid: u32) -> io::Result<std::process::Child> {
    std::process::Command::new("sh")
        .args(["-c", &format!("{command} {pid}")])
        .spawn()
}

fn measure(cables: &Cables, frames: &[Vec<u8>], seconds: f64) -> Result<Sample, Failure> {
    cables.flood(frames.to_vec());
    std::thread::sleep(Duration::from_millis(700));
    let start = Instant::now();
    let before = cables.counters()?;
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let after = cables.counters()?;
    let took = start.elapsed().as_secs_f64();
    cables.pause();
    Ok(Sample {
        offered: (after.0 - before.0) as f64 / took,
        forwarded: (after.1 - before.1) as f64 / took,
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

/// A forwarder's median, and what the others' medians are to it.
struct Row<'a> {
    name: &'a str,
    forwarded: f64,
    offered: f64,
    all: Vec<f64>,
    /// Of the bare forwarder's rate.
    of_bare: Option<f64>,
    /// Times simple_switch_grpc's rate.
    times_bmv2: Option<f64>,
}

fn rows<'a>(kinds: &'a [Kind], samples: &BTreeMap<usize, Vec<Sample>>) -> Vec<Row<'a>> {
    let of = |place: usize, f: fn(&Sample) -> f64| {
        median(samples.get(&place).into_iter().flatten().map(f))
    };
    let rate = |name: &str| {
        let place = kinds.iter().position(|kind| kind.name() == name)?;
        Some(of(place, |s| s.forwarded)).filter(|rate| *rate > 0.0)
    };
    let (bare, bmv2) = (rate("bare"), rate("simple_switch_grpc"));
    let row = |(place, kind): (usize, &'a Kind)| {
        let forwarded = of(place, |s| s.forwarded);
        Row {
            name: kind.name(),
            forwarded,
            offered: of(place, |s| s.offered),
            all: samples
                .get(&place)
                .into_iter()
                .flatten()
                .map(|s| s.forwarded)
                .collect(),
            of_bare: bare.map(|bare| forwarded / bare),
            times_bmv2: bmv2.map(|bmv2| forwarded / bmv2),
        }
    };
    kinds.iter().enumerate().map(row).collect()
}

fn print_text(kinds: &[Kind], samples: &BTreeMap<usize, Vec<Sample>>) {
    println!(
        "{:<20} {:>12} {:>12} {:>9} {:>10}   each round",
        "forwarder", "frames/s", "offered/s", "of bare", "x bmv2"
    );
    for row in rows(kinds, samples) {
        let share = row
            .of_bare
            .map_or("-".into(), |s| format!("{:.0} %", s * 100.0));
        let times = row.times_bmv2.map_or("-".into(), |t| format!("{t:.1}"));
        let all: Vec<String> = row.all.iter().map(|rate| format!("{rate:.0}")).collect();
        println!(
            "{:<20} {:>12.0} {:>12.0} {share:>9} {times:>10}   {}",
            row.name,
            row.forwarded,
            row.offered,
            all.join(" ")
        );
    }
}

fn print_json(kinds: &[Kind], samples: &BTreeMap<usize, Vec<Sample>>) {
    let number = |value: Option<f64>| value.map_or("null".into(), |v| format!("{v:.3}"));
    let rows: Vec<String> = rows(kinds, samples)
        .iter()
        .map(|row| {
            let all: Vec<String> = row.all.iter().map(|rate| format!("{rate:.0}")).collect();
            format!(
                "  {{\"forwarder\": \"{}\", \"frames_per_second\": {:.0}, \"offered_per_second\": {:.0}, \
                 \"of_bare\": {}, \"times_bmv2\": {}, \"rounds\": [{}]}}",
                row.name,
                row.forwarded,
                row.offered,
                number(row.of_bare),
                number(row.times_bmv2),
                all.join(", ")
            )
        })
        .collect();
    println!("[\n{}\n]", rows.join(",\n"));
}

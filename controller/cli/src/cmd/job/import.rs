//! `meridian job import`: traces of collectives as job files.

use controller::workload::Over;
use controller::workload::import::{Hints, TraceFormat, import};

use super::{ImportArgs, named};
use crate::failure::Failure;
use crate::output;

/// Largest trace that is read, bytes.
const MOST: u64 = 4 << 30;

/// Runs the command.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let failed = |source| Failure::File {
        path: args.trace.clone(),
        source,
    };
    let length = std::fs::metadata(&args.trace).map_err(failed)?.len();
    if length > MOST {
        return Err(Failure::Input(format!(
            "error: {}: {length} bytes; traces of at most {MOST} are read",
            args.trace.display()
        )));
    }
    let bytes = std::fs::read(&args.trace).map_err(failed)?;
    let format = match &args.trace_format {
        Some(name) => named("trace format", name, &TraceFormat::NAMES)?,
        None => TraceFormat::guess(&bytes),
    };
    let hints = hints(args)?;
    let imported = import(format, &bytes, &hints).map_err(|error| {
        Failure::Input(output::printable(&format!(
            "error: {}: {error}",
            args.trace.display()
        )))
    })?;
    let text = imported.workload.to_yaml();
    match &args.output {
        Some(path) => output::write_file(path, &text)?,
        None => output::write_all(&text)?,
    }
    for note in &imported.notes {
        output::say(output::printable(note));
    }
    Ok(())
}

fn hints(args: &ImportArgs) -> Result<Hints, Failure> {
    const SIZES: [(&str, usize); 5] = [("tp", 0), ("cp", 1), ("dp", 2), ("pp", 3), ("ep", 4)];
    let split = |text: &str| {
        text.split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .ok_or_else(|| Failure::Input(format!("error: '{text}' should be NAME=VALUE")))
    };
    let mut sizes = [1; 5];
    for text in &args.parallel {
        let (name, value) = split(text)?;
        let index = named("parallel dimension", &name, &SIZES)?;
        sizes[index] = value.parse().map_err(|_| {
            Failure::Input(format!("error: --parallel {text}: '{value}' is no number"))
        })?;
    }
    let groups = args.groups.iter().map(|text| {
        let (name, over) = split(text)?;
        Ok((name, named("parallel dimension", &over, &Over::NAMES)?))
    });
    if args.ranks_per_host == 0 {
        return Err(Failure::Input(
            "error: --ranks-per-host is 0: write a number from 1".to_owned(),
        ));
    }
    Ok(Hints {
        name: args.name.clone().unwrap_or_else(|| name_of(args)),
        ranks_per_host: args.ranks_per_host,
        sizes,
        groups: groups.collect::<Result<_, Failure>>()?,
    })
}

/// The file's name as a job may be called.
fn name_of(args: &ImportArgs) -> String {
    let stem = args
        .trace
        .file_stem()
        .map(|s| s.to_string_lossy().to_string())
        .unwrap_or_default();
    let clean: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(60)
        .collect();
    match clean.trim_matches('-') {
        "" => "job".to_owned(),
        name => name.to_owned(),
    }
}

//! Packets' ways on standard output.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use softswitch::trace::{Trace, TraceSink};
use softswitch::{Program, Switch, SwitchConfig};

use crate::Failure;
use crate::args::{Args, TraceFormat};

fn print(trace: &Trace, format: TraceFormat) {
    let text = match format {
        TraceFormat::Text => trace.to_string(),
        TraceFormat::Json => trace.to_json() + "\n",
    };
    // Whoever read the traces is gone: forwarding goes on.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Prints traces as they come.
pub(crate) fn printer(format: TraceFormat) -> TraceSink {
    Box::new(move |trace| print(&trace, format))
}

/// Traces the packets of the command line.
pub(crate) fn packets(args: &Args) -> Result<(), Failure> {
    let Some(path) = &args.program else {
        return Err("give the program's JSON file".into());
    };
    let json = fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let program = Program::load(&json).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut switch = Switch::new(config(args));
    switch.install(Arc::new(program));
    let format = args.trace.unwrap_or(TraceFormat::Text);
    for (number, packet) in (1u64..).zip(&args.trace_packet) {
        let now = 1_000_000 * number;
        let (mut trace, _) = switch.trace(packet.port, &packet.bytes, now)?;
        trace.packet = number;
        print(&trace, format);
    }
    Ok(())
}

/// The switch that the command line asks for.
pub(crate) fn config(args: &Args) -> SwitchConfig {
    SwitchConfig {
        device_id: args.device_id,
        cpu_port: args.cpu_port,
        drop_port: args.drop_port,
        queues: args.priority_queues,
        seed: args.seed,
        ..SwitchConfig::default()
    }
}

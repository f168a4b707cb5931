//! Packets' ways on standard output.

use std::io::{self, Write};

use softswitch::SwitchConfig;
use softswitch::trace::{Trace, TraceSink};

use crate::args::{Args, TraceFormat};

/// Prints one trace.
pub(crate) fn print(trace: &Trace, format: TraceFormat) -> io::Result<()> {
    let text = match format {
        TraceFormat::Text => trace.to_string(),
        TraceFormat::Json => trace.to_json() + "\n",
    };
    io::stdout().lock().write_all(text.as_bytes())
}

/// Prints traces as they come.
pub(crate) fn printer(format: TraceFormat) -> TraceSink {
    Box::new(move |trace| {
        // Whoever read the traces may be gone: forwarding goes on.
        let _ = print(&trace, format);
    })
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

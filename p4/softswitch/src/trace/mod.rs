//! One packet's whole way through the switch, written down.
//!
//! A switch that traces runs the same code on the same state as one that does
//! not; it only stops before every instruction to look at what changed. One
//! branch a pipeline is what a switch that does not trace pays for that.

mod names;
mod record;
mod text;

use serde::Serialize;

use crate::control::ControlError;
use crate::ids::Port;
use crate::switch::{Packet, Switch};

pub(crate) use record::Tracer;

/// A name and a value, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Of a header field, key field or action parameter.
    pub name: String,
    /// `0x...`, as wide as it needs to be.
    pub value: String,
}

/// One step of a packet's way, in the order they were taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// It came in.
    Received {
        /// By this port.
        port: Port,
        /// Bytes.
        length: usize,
        /// All of them, in hexadecimal.
        bytes: String,
    },
    /// A part of the program begins: `parser`, `verify checksums`, `ingress`,
    /// `egress`, `update checksums`, `deparser`.
    Stage {
        /// Which.
        name: &'static str,
    },
    /// The parser is in a state.
    State {
        /// Its name.
        name: String,
    },
    /// The parser read a header.
    Extract {
        /// Its name.
        header: String,
        /// Its fields.
        fields: Vec<Field>,
    },
    /// The parser skipped bits.
    Advance {
        /// How many.
        bits: u64,
    },
    /// The parser chooses the next state.
    Select {
        /// The values it chooses by.
        key: Vec<String>,
    },
    /// The parser ended with an error.
    ParserError {
        /// Its name, or number.
        error: String,
    },
    /// A condition was decided.
    Condition {
        /// The condition in the program's source, or the node's name.
        source: String,
        /// What it came to.
        holds: bool,
    },
    /// A statement of the program is next.
    Statement {
        /// It in the program's source.
        source: String,
    },
    /// A table was applied.
    Table {
        /// Its name.
        table: String,
        /// What it was looked up with.
        key: Vec<Field>,
        /// Whether an entry was found.
        hit: bool,
        /// The entry's priority, where entries have one.
        #[serde(skip_serializing_if = "Option::is_none")]
        priority: Option<i32>,
        /// The group that the entry names.
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<u32>,
        /// The member that the entry names or the group chose.
        #[serde(skip_serializing_if = "Option::is_none")]
        member: Option<u32>,
        /// The action; none if the group is empty, for instance.
        action: Option<String>,
        /// Its arguments.
        params: Vec<Field>,
    },
    /// A field got another value.
    Set {
        /// The field.
        field: String,
        /// Value before.
        old: String,
        /// Value now.
        new: String,
    },
    /// A header became valid or invalid, other than by extraction.
    Validity {
        /// The header.
        header: String,
        /// What it is now.
        valid: bool,
    },
    /// A checksum is verified or computed.
    Checksum {
        /// Its name.
        name: String,
    },
    /// A checksum was not what it should be.
    ChecksumError,
    /// An extern was called: counter, meter, register, hash and the like.
    Extern {
        /// What was called: `count`, `register_read`...
        call: &'static str,
        /// The array or instance, if it has a name.
        #[serde(skip_serializing_if = "String::is_empty")]
        name: String,
        /// The index or argument.
        #[serde(skip_serializing_if = "Option::is_none")]
        index: Option<u64>,
    },
    /// The program wrote a log message.
    Log {
        /// The message.
        message: String,
    },
    /// A digest message goes to the controller.
    Digest {
        /// Which digest.
        name: String,
    },
    /// A copy is made for a clone session.
    Clone {
        /// From `ingress` or `egress`.
        from: &'static str,
        /// The session.
        session: u32,
        /// Copies it makes; none if there is no such session.
        replicas: usize,
    },
    /// A copy is made for each member of a multicast group.
    Multicast {
        /// The group.
        group: u64,
        /// Copies; none if there is no such group.
        replicas: usize,
    },
    /// It starts at the parser again, as it came in.
    Resubmit,
    /// It starts at the parser again, as it left the deparser.
    Recirculate,
    /// It waits in a queue.
    Enqueue {
        /// The port.
        port: Port,
        /// Its queue.
        queue: u8,
        /// Packets before it.
        depth: usize,
    },
    /// It leaves its queue for egress.
    Dequeue {
        /// The port.
        port: Port,
        /// Its queue.
        queue: u8,
        /// ns that it waited.
        waited: u64,
    },
    /// It is gone.
    Drop {
        /// Why.
        reason: &'static str,
    },
    /// It left the switch.
    Sent {
        /// By this port.
        port: Port,
        /// Bytes.
        length: usize,
        /// All of them, in hexadecimal.
        bytes: String,
    },
}

/// A packet's way, or a part of it: what happened from its arrival to a queue,
/// or from the queue to the port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Number of the packet since tracing began; copies have their original's.
    pub packet: u64,
    /// What happened, in order.
    pub events: Vec<Event>,
}

impl Trace {
    /// As JSON, on one line.
    pub fn to_json(&self) -> String {
        sonic_rs::to_string(self).unwrap_or_default()
    }
}

/// Takes traces as they are completed.
pub type TraceSink = Box<dyn FnMut(Trace) + Send + Sync>;

impl Switch {
    /// From now on, tells `sink` every packet's way, in parts: each call of
    /// [`ingress`](Self::ingress) and each packet dequeued is one. `None`
    /// ends it.
    pub fn set_trace_sink(&mut self, sink: Option<TraceSink>) {
        let tracer = sink.map(|sink| Box::new(Tracer::new(sink)));
        self.set_tracer(tracer);
    }

    /// Sends one packet through the switch at `now` ns, and tells its way and
    /// its copies', and what left. Whatever waits in queues leaves before it.
    ///
    /// # Errors
    /// [`ControlError::NoProgram`] without a program.
    pub fn trace(
        &mut self,
        port: Port,
        packet: &[u8],
        now: u64,
    ) -> Result<(Trace, Vec<Packet>), ControlError> {
        if self.program().is_none() {
            return Err(ControlError::NoProgram);
        }
        self.drain(now, &mut Vec::new());
        let (send, parts) = std::sync::mpsc::channel();
        let sink = move |trace: Trace| {
            // The receiver is there until the tracer is gone.
            let _ = send.send(trace);
        };
        let before = self.set_tracer(Some(Box::new(Tracer::new(Box::new(sink)))));
        let mut sent = Vec::new();
        self.ingress(port, packet, now);
        self.drain(now, &mut sent);
        self.set_tracer(before);
        let events = parts.try_iter().flat_map(|part| part.events).collect();
        Ok((Trace { packet: 1, events }, sent))
    }

    /// Dequeues all there is; a packet that circulates for ever is left.
    fn drain(&mut self, now: u64, sent: &mut Vec<Packet>) {
        let mut ready = Vec::new();
        for _ in 0..16 {
            self.take_ready(&mut ready);
            for &port in &ready {
                while let Some(packet) = self.dequeue(port, now) {
                    sent.push(packet);
                }
            }
            if ready.is_empty() {
                return;
            }
        }
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

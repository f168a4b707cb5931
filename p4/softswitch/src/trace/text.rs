//! Traces to read.

use std::fmt::{self, Display, Formatter};

use super::{Event, Field, Trace};

struct Fields<'a>(&'a [Field]);

impl Display for Fields<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, field) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}={}", field.name, field.value)?;
        }
        Ok(())
    }
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Event::Received {
                port,
                length,
                bytes,
            } => write!(f, "received on port {port}, {length} bytes: {bytes}"),
            Event::Stage { name } => write!(f, "{name}"),
            Event::State { name } => write!(f, "  state {name}"),
            Event::Extract { header, fields } => {
                write!(f, "    extract {header}: {}", Fields(fields))
            }
            Event::Advance { bits } => write!(f, "    advance {bits} bits"),
            Event::Select { key } => write!(f, "    select ({})", key.join(", ")),
            Event::ParserError { error } => write!(f, "  parser error {error}"),
            Event::Condition { source, holds } => write!(f, "  if ({source}): {holds}"),
            Event::Statement { source } => write!(f, "    {source}"),
            Event::Set { field, old, new } => write!(f, "      {field}: {old} -> {new}"),
            Event::Validity { header, valid } => {
                let what = if *valid { "valid" } else { "invalid" };
                write!(f, "      {header} is {what} now")
            }
            Event::Table { .. } => self.table(f),
            Event::Checksum { name } => write!(f, "  checksum {name}"),
            Event::ChecksumError => write!(f, "    it is not right"),
            Event::Extern { call, name, index } => {
                write!(f, "    {call}")?;
                if !name.is_empty() {
                    write!(f, " {name}")?;
                }
                index.map_or(Ok(()), |index| write!(f, " [{index}]"))
            }
            Event::Log { message } => write!(f, "    log: {message}"),
            _ => self.passage(f),
        }
    }
}

impl Event {
    fn table(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Event::Table {
            table,
            key,
            hit,
            priority,
            group,
            member,
            action,
            params,
        } = self
        else {
            return Ok(());
        };
        let hit = if *hit { "hit" } else { "miss" };
        write!(f, "  table {table} ({}): {hit}", Fields(key))?;
        if let Some(priority) = priority {
            write!(f, ", priority {priority}")?;
        }
        if let Some(group) = group {
            write!(f, ", group {group}")?;
        }
        if let Some(member) = member {
            write!(f, ", member {member}")?;
        }
        match action {
            Some(action) => write!(f, ", {action}({})", Fields(params)),
            None => write!(f, ", no action"),
        }
    }

    /// What happens between and around the pipelines.
    fn passage(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Event::Digest { name } => write!(f, "digest {name} to the controller"),
            Event::Clone {
                from,
                session,
                replicas,
            } => {
                let copies = plural(*replicas, "copy", "copies");
                write!(f, "cloned from {from}, session {session}: {copies}")
            }
            Event::Multicast { group, replicas } => {
                let copies = plural(*replicas, "copy", "copies");
                write!(f, "multicast group {group}: {copies}")
            }
            Event::Resubmit => write!(f, "resubmitted"),
            Event::Recirculate => write!(f, "recirculated"),
            Event::Enqueue { port, queue, depth } => {
                write!(f, "to port {port}, queue {queue}, behind {depth}")
            }
            Event::Dequeue {
                port,
                queue,
                waited,
            } => write!(
                f,
                "from port {port}, queue {queue}, after {}.{:03} us",
                waited / 1000,
                waited % 1000
            ),
            Event::Drop { reason } => write!(f, "dropped: {reason}"),
            Event::Sent {
                port,
                length,
                bytes,
            } => write!(f, "sent on port {port}, {length} bytes: {bytes}"),
            _ => Ok(()),
        }
    }
}

/// A line for each event, under a line with the packet's number.
impl Display for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "packet {}", self.packet)?;
        for event in &self.events {
            writeln!(f, "  {event}")?;
        }
        Ok(())
    }
}

//! What the switch says on the stream, sorted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tonic::{Status, Streaming};

use super::Standing;
use crate::v1::{
    DigestList, IdleTimeoutNotification, PacketIn, StreamError, StreamMessageResponse,
    stream_message_response::Update,
};

/// What the switch sends unasked. Each channel ends when the session does; a
/// channel that nobody wants can be dropped.
#[derive(Debug)]
pub struct Streams {
    /// Packets for the controller.
    pub packets: mpsc::Receiver<PacketIn>,
    /// Digests; acknowledge each list, or it comes again.
    pub digests: mpsc::Receiver<DigestList>,
    /// Entries that were not hit for as long as they were to be.
    pub idle_timeouts: mpsc::Receiver<IdleTimeoutNotification>,
    /// Messages to the switch that it could not handle, such as packet-outs.
    pub errors: mpsc::Receiver<StreamError>,
}

/// Messages that found their channel full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Of [`Streams::packets`].
    pub packets: u64,
    /// Of [`Streams::digests`].
    pub digests: u64,
    /// Of [`Streams::idle_timeouts`].
    pub idle_timeouts: u64,
    /// Of [`Streams::errors`].
    pub errors: u64,
}

#[derive(Debug, Default)]
pub(super) struct DroppedCounts {
    packets: AtomicU64,
    digests: AtomicU64,
    idle_timeouts: AtomicU64,
    errors: AtomicU64,
}

impl DroppedCounts {
    pub(super) fn get(&self) -> Dropped {
        Dropped {
            packets: self.packets.load(Ordering::Relaxed),
            digests: self.digests.load(Ordering::Relaxed),
            idle_timeouts: self.idle_timeouts.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}

/// The task that reads a stream, and what it tells.
pub(super) struct Reader {
    pub(super) streams: Streams,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) answers: watch::Receiver<u64>,
    pub(super) dropped: Arc<DroppedCounts>,
    pub(super) task: AbortHandle,
}

/// Starts to read; the task ends with the stream, or when it is aborted.
pub(super) fn read(mut inbound: Streaming<StreamMessageResponse>, queue: usize) -> Reader {
    let (packets, packets_out) = mpsc::channel(queue);
    let (digests, digests_out) = mpsc::channel(queue);
    let (idle_timeouts, idle_timeouts_out) = mpsc::channel(queue);
    let (errors, errors_out) = mpsc::channel(queue);
    let (standing, standing_out) = watch::channel(Standing::Unknown);
    let (answers, answers_out) = watch::channel(0);
    let dropped = Arc::new(DroppedCounts::default());
    let sorter = Sorter {
        packets,
        digests,
        idle_timeouts,
        errors,
        standing,
        answers,
        dropped: Arc::clone(&dropped),
    };
    let task = tokio::spawn(async move {
        let reason = loop {
            match inbound.message().await {
                Ok(Some(message)) => sorter.sort(message),
                Ok(None) => break "the switch ended it".to_owned(),
                Err(status) => break end_text(&status),
            }
        };
        sorter.tell(Standing::Closed { reason });
    });
    Reader {
        streams: Streams {
            packets: packets_out,
            digests: digests_out,
            idle_timeouts: idle_timeouts_out,
            errors: errors_out,
        },
        standing: standing_out,
        answers: answers_out,
        dropped,
        task: task.abort_handle(),
    }
}

fn end_text(status: &Status) -> String {
    format!("the switch ended it: {}", super::status_text(status))
}

struct Sorter {
    packets: mpsc::Sender<PacketIn>,
    digests: mpsc::Sender<DigestList>,
    idle_timeouts: mpsc::Sender<IdleTimeoutNotification>,
    errors: mpsc::Sender<StreamError>,
    standing: watch::Sender<Standing>,
    answers: watch::Sender<u64>,
    dropped: Arc<DroppedCounts>,
}

impl Sorter {
    fn sort(&self, message: StreamMessageResponse) {
        match message.update {
            Some(Update::Arbitration(update)) => self.tell(Standing::told(&update)),
            Some(Update::Packet(packet)) => {
                offer(&self.packets, packet, &self.dropped.packets);
            }
            Some(Update::Digest(digest)) => {
                offer(&self.digests, digest, &self.dropped.digests);
            }
            Some(Update::IdleTimeoutNotification(idle)) => {
                offer(&self.idle_timeouts, idle, &self.dropped.idle_timeouts);
            }
            Some(Update::Error(error)) => {
                tracing::debug!(message = error.message, "stream error from the switch");
                offer(&self.errors, error, &self.dropped.errors);
            }
            Some(Update::Other(other)) => {
                tracing::debug!(kind = other.type_url, "unknown message from the switch");
            }
            None => tracing::debug!("empty message from the switch"),
        }
    }

    /// The standing first: whoever sees the count sees the standing, too.
    fn tell(&self, standing: Standing) {
        self.standing.send_replace(standing);
        self.answers.send_modify(|count| *count += 1);
    }
}

fn offer<T>(channel: &mpsc::Sender<T>, message: T, dropped: &AtomicU64) {
    // A closed channel is one that nobody wants.
    if let Err(mpsc::error::TrySendError::Full(_)) = channel.try_send(message) {
        dropped.fetch_add(1, Ordering::Relaxed);
    }
}

//! The open streams: who is primary, and what is sent to whom (P4Runtime, "P4Runtime Stream
//! Messages").
//!
//! Every stream has a bounded queue. Nothing that happens in the switch ever waits for a
//! client: packet-ins, digests, idle timeouts and errors for a client that does not read are
//! dropped and counted. Arbitration news have room of their own in the queue; a client that
//! leaves even this full is cut off.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use p4runtime::rpc;
use p4runtime::v1::{self, stream_message_response::Update};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::Stream;

use super::ServerConfig;
use super::arbitration::{Arbiter, Claim, Notice, RoleConfig, StreamId};
use super::fault::Fault;
use super::roles::Scope;

/// What a stream's queue carries.
pub(crate) type Message = Result<v1::StreamMessageResponse, tonic::Status>;

/// A message with the bytes it is taken to hold.
type Weighed = (usize, Message);

/// What waits for one client.
struct Queue {
    sender: mpsc::Sender<Weighed>,
    bytes: Arc<AtomicUsize>,
}

/// The client's end of a stream's queue.
pub(crate) struct Outgoing {
    receiver: mpsc::Receiver<Weighed>,
    bytes: Arc<AtomicUsize>,
}

impl Stream for Outgoing {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        self.receiver.poll_recv(cx).map(|next| {
            next.map(|(bytes, message)| {
                self.bytes.fetch_sub(bytes, Ordering::Relaxed);
                message
            })
        })
    }
}

/// Bytes that an update holds, about.
fn weight(update: &Update) -> usize {
    /// A packet's metadata and the message around it.
    const AROUND: usize = 256;
    match update {
        Update::Packet(packet) => packet.payload.len() + AROUND,
        Update::Digest(list) => list.encoded_len() + AROUND,
        Update::IdleTimeoutNotification(idle) => idle.encoded_len() + AROUND,
        Update::Error(error) => error.encoded_len() + AROUND,
        _ => AROUND,
    }
}

/// Places in a stream's queue that only arbitration news may take.
const RESERVED: usize = 64;

/// The open streams of one device.
pub(crate) struct Clients {
    device_id: u64,
    pub(crate) arbiter: Arbiter,
    queues: BTreeMap<StreamId, Queue>,
    last_stream: StreamId,
    dropped: u64,
    max_streams: usize,
    depth: usize,
    max_bytes: usize,
}

impl Clients {
    pub(crate) fn new(device_id: u64, config: &ServerConfig) -> Self {
        Clients {
            device_id,
            arbiter: Arbiter::new(device_id, config.max_streams_per_role, config.max_roles),
            queues: BTreeMap::new(),
            last_stream: 0,
            dropped: 0,
            max_streams: config.max_streams,
            depth: config.stream_depth.max(1),
            max_bytes: config.stream_bytes,
        }
    }

    /// Registers a new stream.
    ///
    /// # Errors
    /// `ResourceExhausted` when there are as many as may be.
    pub(crate) fn open(&mut self) -> Result<(StreamId, Outgoing), Fault> {
        if self.queues.len() >= self.max_streams {
            return Err(Fault::new(
                rpc::Code::ResourceExhausted,
                format!("there are {} streams open already", self.max_streams),
            ));
        }
        self.last_stream += 1;
        let (sender, receiver) = mpsc::channel(self.depth + RESERVED);
        let bytes = Arc::<AtomicUsize>::default();
        let queue = Queue {
            sender,
            bytes: bytes.clone(),
        };
        self.queues.insert(self.last_stream, queue);
        Ok((self.last_stream, Outgoing { receiver, bytes }))
    }

    /// Open streams.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Messages that were dropped because their stream's queue was full.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a claim and tells everybody but a new primary, whose notice is returned: it must
    /// wait until the writes of the last one are through.
    pub(crate) fn claim(
        &mut self,
        stream: StreamId,
        claim: Claim,
    ) -> Result<Option<Notice>, Fault> {
        let mut notices = self.arbiter.claim(stream, claim)?;
        let for_primary = match notices.last() {
            Some(last) if self.arbiter.is_primary(last.stream) && last.stream == stream => {
                notices.pop()
            }
            _ => None,
        };
        self.tell_all(&notices);
        Ok(for_primary)
    }

    /// Tells a new primary, unless it has lost that place again meanwhile.
    pub(crate) fn tell_primary(&mut self, notice: &Notice) {
        if self.arbiter.is_primary(notice.stream) {
            self.tell_all(std::slice::from_ref(notice));
        }
    }

    /// Forgets a stream that ended.
    pub(crate) fn close(&mut self, stream: StreamId) {
        self.queues.remove(&stream);
        let notices = self.arbiter.disconnect(stream);
        self.tell_all(&notices);
    }

    /// Ends a stream with an error.
    pub(crate) fn fail(&mut self, stream: StreamId, status: tonic::Status) {
        if let Some(queue) = self.queues.remove(&stream) {
            // If there is no room, dropping the queue ends the stream all the same.
            let _ = queue.sender.try_send((0, Err(status)));
        }
    }

    fn tell_all(&mut self, notices: &[Notice]) {
        for notice in notices {
            let message = arbitration_message(self.device_id, notice);
            let Some(queue) = self.queues.get(&notice.stream) else {
                continue;
            };
            if let Err(mpsc::error::TrySendError::Full(_)) = queue.sender.try_send((0, Ok(message)))
            {
                tracing::warn!(
                    stream = notice.stream,
                    "a client does not read its stream; cutting it off"
                );
                self.queues.remove(&notice.stream);
            }
        }
    }

    /// Sends to one stream if it has room.
    pub(crate) fn send(&mut self, stream: StreamId, update: Update) {
        if let Some(queue) = self.queues.get(&stream) {
            let bytes = weight(&update);
            let held = queue.bytes.load(Ordering::Relaxed);
            if queue.sender.capacity() > RESERVED && held.saturating_add(bytes) <= self.max_bytes {
                queue.bytes.fetch_add(bytes, Ordering::Relaxed);
                let message = Ok(v1::StreamMessageResponse {
                    update: Some(update),
                });
                if queue.sender.try_send((bytes, message)).is_ok() {
                    return;
                }
                queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
        self.dropped += 1;
    }

    /// Sends to the primary of every role whose scope wants it.
    pub(crate) fn send_to_primaries(&mut self, wanted: impl Fn(&Scope) -> bool, update: &Update) {
        let to: Vec<StreamId> = self
            .arbiter
            .primaries()
            .filter(|(role, _)| {
                Scope::of(self.arbiter.config_of(role)).is_ok_and(|scope| wanted(&scope))
            })
            .map(|(_, stream)| stream)
            .collect();
        for stream in to {
            self.send(stream, update.clone());
        }
    }

    /// The scope of a role.
    pub(crate) fn scope(&self, role: &str) -> Scope {
        // A config that does not decode was refused when it was claimed.
        Scope::of(self.arbiter.config_of(role)).unwrap_or_default()
    }
}

/// The name under which a role is kept: its own, or for clients of before 1.4 its number.
pub(crate) fn role_name(name: &str, deprecated_id: u64) -> String {
    if name.is_empty() && deprecated_id != 0 {
        format!("{DEPRECATED_ROLE}{deprecated_id}")
    } else {
        name.to_owned()
    }
}

const DEPRECATED_ROLE: &str = "role_id:";

/// Reads a client's claim.
pub(crate) fn decode_claim(update: v1::MasterArbitrationUpdate) -> Claim {
    let (role, config) = match update.role {
        Some(role) => {
            #[allow(deprecated)]
            let name = role_name(&role.name, role.id);
            let config = role.config.map(|any| RoleConfig {
                type_url: any.type_url,
                value: any.value,
            });
            (name, config)
        }
        None => (String::new(), None),
    };
    Claim {
        device_id: update.device_id,
        role,
        config,
        election_id: update.election_id.map(election_id),
    }
}

/// Joins the halves of an election id.
pub(crate) fn election_id(id: v1::Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

fn arbitration_message(device_id: u64, notice: &Notice) -> v1::StreamMessageResponse {
    let config = notice.config.as_ref().map(|config| prost_types::Any {
        type_url: config.type_url.clone(),
        value: config.value.clone(),
    });
    let role = (!notice.role.is_empty()).then(|| {
        let id = notice
            .role
            .strip_prefix(DEPRECATED_ROLE)
            .and_then(|id| id.parse().ok());
        #[allow(deprecated)]
        match id {
            Some(id) => v1::Role {
                id,
                name: String::new(),
                config,
            },
            None => v1::Role {
                id: 0,
                name: notice.role.clone(),
                config,
            },
        }
    });
    let message = match notice.status {
        rpc::Code::Ok => "you are primary",
        rpc::Code::AlreadyExists => "you are backup; another client is primary",
        _ => "you are backup; there is no primary",
    };
    let update = v1::MasterArbitrationUpdate {
        device_id,
        role,
        election_id: notice.election_id.map(|id| v1::Uint128 {
            high: (id >> 64) as u64,
            low: id as u64,
        }),
        status: Some(rpc::Status {
            code: notice.status as i32,
            message: message.to_owned(),
            details: Vec::new(),
        }),
    };
    v1::StreamMessageResponse {
        update: Some(Update::Arbitration(update)),
    }
}

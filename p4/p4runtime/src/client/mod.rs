//! A session with one switch.
//!
//! [`Session::open`] sends the first arbitration and waits for its answer. From
//! then on one task reads the stream and sorts what arrives: who is primary goes
//! to a watch, everything else to the channels of [`Streams`]. Calls go out on
//! the same connection beside the stream. Dropping the session ends the task and
//! the stream; [`Session::close`] does so and waits for the switch to notice.
//!
//! A full channel never stops arbitration: what does not fit is dropped and
//! counted ([`Session::dropped`]); the switch sends digests again that were not
//! acknowledged.

mod arbitration;
mod pipeline;
mod read;
mod stream;
mod write;

use std::sync::Arc;
use std::time::Duration;

use prost_types::Any;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tonic::transport::Channel;
use tonic::{Request, Status};

pub use arbitration::Standing;
pub use pipeline::{Pipeline, cookie};
pub use read::Entities;
pub use stream::{Dropped, Streams};
pub use write::{Outcome, WriteReport, in_order};

use crate::v1::p4_runtime_client::P4RuntimeClient;
use crate::v1::write_request::Atomicity;
use crate::v1::{
    CapabilitiesRequest, DigestListAck, PacketOut, StreamMessageRequest, Uint128,
    stream_message_request,
};

/// Why a session, or a call of it, failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The election id is 0.
    #[error("device {device}: election id 0 cannot win; choose one above 0")]
    ElectionId {
        /// The device.
        device: u64,
    },
    /// The switch refused a call.
    #[error("device {device}: {call} failed: {}", status_text(.source))]
    Rpc {
        /// The device.
        device: u64,
        /// Which call.
        call: &'static str,
        /// What the switch, or the connection, said.
        source: Box<Status>,
    },
    /// The stream is closed, and with it the session.
    #[error("device {device}: the stream is closed: {reason}; open a new session")]
    Closed {
        /// The device.
        device: u64,
        /// What ended it.
        reason: String,
    },
    /// The switch does not say who is primary.
    #[error("device {device}: no answer to arbitration within {waited:?}")]
    NoAnswer {
        /// The device.
        device: u64,
        /// How long the session waited.
        waited: Duration,
    },
    /// An atomic batch cannot be split, and this one is too large.
    #[error(
        "device {device}: {updates} updates ({bytes} bytes) do not fit one message of {limit} bytes and {max_updates} updates, and a batch that is {atomicity} cannot be split"
    )]
    TooLarge {
        /// The device.
        device: u64,
        /// Updates in the batch.
        updates: usize,
        /// Size of the batch in bytes.
        bytes: usize,
        /// Bytes that a message may have.
        limit: usize,
        /// Updates that a message may have.
        max_updates: usize,
        /// The atomicity asked for.
        atomicity: &'static str,
    },
    /// A read for nothing in particular, which P4Runtime does not know.
    #[error("device {device}: entity {place} (from 0) of the {call} is empty")]
    EmptyEntity {
        /// The device.
        device: u64,
        /// Which call.
        call: &'static str,
        /// Which of the entities or updates.
        place: usize,
    },
    /// Some updates failed.
    #[error("device {device}: {report}")]
    Updates {
        /// The device.
        device: u64,
        /// What became of each update.
        report: Box<WriteReport>,
    },
}

fn status_text(status: &Status) -> String {
    match status.message() {
        "" => status.code().description().to_owned(),
        message => format!("{:?}: {message}", status.code()),
    }
}

/// A role other than the default, which may do everything.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// What it may do, in the target's own terms.
    pub config: Option<Any>,
}

/// What a session needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The switch, among those behind the connection. The specification forbids
    /// 0; bmv2 starts with it all the same.
    pub device_id: u64,
    /// `None` for the default role.
    pub role: Option<Role>,
    /// The highest id is primary. Never 0.
    pub election_id: u128,
    /// How long the switch may take to answer arbitration.
    pub answer_timeout: Duration,
    /// How long a call may take; pushing a pipeline is one.
    pub call_timeout: Duration,
    /// Bytes of the largest request; servers usually refuse 4 MiB.
    pub max_request_bytes: usize,
    /// Updates of the largest request. Every one that fails adds to the status,
    /// which travels in headers and is limited.
    pub max_request_updates: usize,
    /// Bytes of the largest response; bmv2 answers a read in one message.
    pub max_response_bytes: usize,
    /// Messages of each kind that wait for their reader.
    pub queue: usize,
}

impl Config {
    /// The default role and limits that suit every known switch.
    #[must_use]
    pub fn new(device_id: u64, election_id: u128) -> Self {
        Config {
            device_id,
            role: None,
            election_id,
            answer_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(60),
            max_request_bytes: 3 << 20,
            max_request_updates: 1000,
            max_response_bytes: 64 << 20,
            queue: 1024,
        }
    }

    fn role_name(&self) -> String {
        self.role
            .as_ref()
            .map_or(String::new(), |role| role.name.clone())
    }
}

/// A session with one switch; see the [module](self).
#[derive(Debug)]
pub struct Session {
    client: P4RuntimeClient<Channel>,
    config: Config,
    /// The id that calls carry; changes with [`Session::arbitrate`].
    election_id: watch::Sender<u128>,
    requests: mpsc::Sender<StreamMessageRequest>,
    standing: watch::Receiver<Standing>,
    dropped: Arc<stream::DroppedCounts>,
    /// How often the switch has told the standing.
    answers: watch::Receiver<u64>,
    reader: AbortHandle,
}

impl Session {
    /// Opens the stream, claims the role and waits for the switch's answer. It
    /// may be that another client is primary: ask [`Session::standing`].
    ///
    /// # Errors
    /// When the switch refuses the stream, does not answer in time, or ends it,
    /// as it must for an election id that is taken.
    pub async fn open(channel: Channel, config: Config) -> Result<(Session, Streams), Error> {
        let device = config.device_id;
        if config.election_id == 0 {
            return Err(Error::ElectionId { device });
        }
        let mut client = P4RuntimeClient::new(channel)
            .max_decoding_message_size(config.max_response_bytes)
            .max_encoding_message_size(usize::MAX);
        let (requests, outbound) = mpsc::channel(config.queue.max(1));
        let claim = arbitration::claim(&config, config.election_id);
        // The queue is new and holds at least one message.
        let _ = requests.try_send(claim);
        let outbound = tokio_stream::wrappers::ReceiverStream::new(outbound);
        let opening = client.stream_channel(outbound);
        let inbound = match tokio::time::timeout(config.answer_timeout, opening).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => return Err(rpc_error(device, "StreamChannel", status)),
            Err(_) => {
                let waited = config.answer_timeout;
                return Err(Error::NoAnswer { device, waited });
            }
        };
        let reader = stream::read(inbound, config.queue.max(1));
        let session = Session {
            client,
            election_id: watch::Sender::new(config.election_id),
            config,
            requests,
            standing: reader.standing,
            dropped: reader.dropped,
            answers: reader.answers,
            reader: reader.task,
        };
        session.answer(session.election_id(), 0).await?;
        Ok((session, reader.streams))
    }

    /// The device that the session is about.
    #[must_use]
    pub fn device_id(&self) -> u64 {
        self.config.device_id
    }

    /// The election id that calls carry.
    #[must_use]
    pub fn election_id(&self) -> u128 {
        *self.election_id.borrow()
    }

    /// The versions and extensions that the switch speaks: the API version as it
    /// gives it, such as `1.5.0`.
    ///
    /// # Errors
    /// [`Error::Rpc`]; old switches do not know the call.
    pub async fn api_version(&self) -> Result<String, Error> {
        let request = CapabilitiesRequest {
            device_id: self.config.device_id,
        };
        let response = self
            .client
            .clone()
            .capabilities(self.request(request))
            .await;
        let response = response.map_err(|status| self.rpc_error("Capabilities", status))?;
        Ok(response.into_inner().p4runtime_api_version)
    }

    /// Sends a packet; waits while the queue to the switch is full. Whether the
    /// switch could send it is told by [`Streams::errors`] alone.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn packet_out(&self, packet: PacketOut) -> Result<(), Error> {
        self.send(stream_message_request::Update::Packet(packet))
            .await
    }

    /// Acknowledges a digest list.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn acknowledge(&self, digest_id: u32, list_id: u64) -> Result<(), Error> {
        let ack = DigestListAck { digest_id, list_id };
        self.send(stream_message_request::Update::DigestAck(ack))
            .await
    }

    /// What arrived for a channel of [`Streams`] that was full, since the start.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped.get()
    }

    /// Ends the stream and waits until the switch has seen it, for at most the
    /// time that it may take to answer arbitration.
    pub async fn close(mut self) {
        // Half-closing lets the switch end the stream in its own time.
        let (requests, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.requests, requests));
        let mut standing = self.standing.clone();
        let over = standing.wait_for(Standing::is_closed);
        let _ = tokio::time::timeout(self.config.answer_timeout, over).await;
    }

    async fn send(&self, update: stream_message_request::Update) -> Result<(), Error> {
        let message = StreamMessageRequest {
            update: Some(update),
        };
        if self.standing().is_closed() || self.requests.send(message).await.is_err() {
            return Err(self.closed());
        }
        Ok(())
    }

    fn closed(&self) -> Error {
        let reason = match &*self.standing.borrow() {
            Standing::Closed { reason } => reason.clone(),
            _ => "the connection ended".to_owned(),
        };
        Error::Closed {
            device: self.config.device_id,
            reason,
        }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.config.call_timeout);
        request
    }

    fn rpc_error(&self, call: &'static str, status: Status) -> Error {
        rpc_error(self.config.device_id, call, status)
    }

    fn election(&self) -> Option<Uint128> {
        Some(self.election_id().into())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn rpc_error(device: u64, call: &'static str, status: Status) -> Error {
    Error::Rpc {
        device,
        call,
        source: Box::new(status),
    }
}

impl From<u128> for Uint128 {
    fn from(id: u128) -> Self {
        Uint128 {
            high: (id >> 64) as u64,
            low: id as u64,
        }
    }
}

impl From<Uint128> for u128 {
    fn from(id: Uint128) -> Self {
        u128::from(id.high) << 64 | u128::from(id.low)
    }
}

impl Atomicity {
    fn words(self) -> &'static str {
        match self {
            Atomicity::ContinueOnError => "not atomic",
            Atomicity::RollbackOnError => "rolled back on error",
            Atomicity::DataplaneAtomic => "atomic for packets",
        }
    }
}

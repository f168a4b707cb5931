//! The gRPC methods: checks in the order the specification gives, then the work.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, get_forwarding_pipeline_config_request::ResponseType, p4_runtime_server::P4Runtime,
    stream_message_request, stream_message_response::Update, write_request::Atomicity,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::Shared;
use super::arbitration::StreamId;
use super::clients::{decode_claim, election_id, role_name};
use super::fault::{Fault, SPACE, batch_status};
use super::read::{Cursor, Role};
use super::state::{Target, lock};
use super::write::{Author, Limits, write_batch};

/// The version of P4Runtime that this server speaks.
const API_VERSION: &str = "1.5.0";

/// Encoded bytes per read response: well under the 4 MB that clients accept by default, and
/// little enough for some to be in memory at a time.
const RESPONSE_BYTES: usize = 256 << 10;
/// Read responses on their way to a client.
const RESPONSES_QUEUED: usize = 2;

/// The service of one switch.
#[derive(Clone)]
pub struct P4RuntimeService(pub(super) Arc<Shared>);

type Stream<T> = Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl P4Runtime for P4RuntimeService {
    type ReadStream = Stream<v1::ReadResponse>;
    type StreamChannelStream = Stream<v1::StreamMessageResponse>;

    async fn write(
        &self,
        request: Request<v1::WriteRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let request = request.into_inner();
        let shared = &self.0;
        #[allow(deprecated)]
        let role = role_name(&request.role, request.role_id);
        shared
            .check_device(request.device_id)
            .map_err(Fault::into_status)?;
        let gate = shared.writing().await;
        // After waiting: only now is nobody else writing, nor becoming primary before we end.
        let scope = shared
            .check_primary(&role, request.election_id)
            .map_err(Fault::into_status)?;
        let target = shared.target(&gate).ok_or_else(no_pipeline)?;
        let atomicity = Atomicity::try_from(request.atomicity).map_err(|_| {
            Status::invalid_argument(format!("unknown atomicity {}", request.atomicity))
        })?;
        let author = Author {
            role: &role,
            scope: &scope,
            now: shared.now(),
            limits: shared.limits(),
        };
        let results = write_batch(&target, &author, &request.updates, atomicity);
        if target.pipeline.tables.values().any(|t| t.idle_timeout)
            && let Some(notify) = &shared.config.notify
        {
            // An entry may be idle before the time that `tick` said last.
            notify();
        }
        if results.iter().any(Result::is_err) {
            return Err(batch_status("updates", &results));
        }
        Ok(Response::new(v1::WriteResponse {}))
    }

    async fn read(
        &self,
        request: Request<v1::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        self.0
            .check_device(request.device_id)
            .map_err(Fault::into_status)?;
        let gate = self.0.gate.clone().read_owned().await;
        let target = self.0.target(&gate).ok_or_else(no_pipeline)?;
        let (sender, receiver) = mpsc::channel(RESPONSES_QUEUED);
        let shared = self.0.clone();
        tokio::spawn(async move {
            let mut reader = Reader {
                shared: &shared,
                target,
                sender,
                pending: Vec::new(),
                bytes: 0,
                patience: shared.config.slow_reader,
            };
            let ended = reader.run(&request).await;
            drop(gate);
            let status = match ended {
                Ok(results) if results.iter().any(Result::is_err) => {
                    batch_status("requests", &results)
                }
                Ok(_) | Err(Ended::Gone) => return,
                Err(Ended::Stalled) => Status::aborted(format!(
                    "the answer was left lying for {} s while writes were waiting",
                    shared.config.slow_reader.as_secs_f64()
                )),
            };
            let _ = reader.sender.send(Err(status)).await;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        let shared = &self.0;
        #[allow(deprecated)]
        let role = role_name(&request.role, request.role_id);
        shared
            .check_device(request.device_id)
            .map_err(Fault::into_status)?;
        let mut gate = shared.writing().await;
        let set = |gate: &mut _| -> Result<(), Fault> {
            shared
                .check_primary(&role, request.election_id)?
                .check_pipeline()?;
            shared.set_pipeline(gate, request, &role)
        };
        set(&mut gate).map_err(Fault::into_status)?;
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.0
            .check_device(request.device_id)
            .map_err(Fault::into_status)?;
        let response_type = ResponseType::try_from(request.response_type).map_err(|_| {
            Status::invalid_argument(format!("unknown response type {}", request.response_type))
        })?;
        let gate = self.0.gate.read().await;
        let config = self.0.get_pipeline(&gate, response_type);
        Ok(Response::new(v1::GetForwardingPipelineConfigResponse {
            config,
        }))
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut requests = request.into_inner();
        let shared = self.0.clone();
        let (stream, outgoing) = lock(&shared.clients).open().map_err(Fault::into_status)?;
        tokio::spawn(async move {
            loop {
                match requests.message().await {
                    Ok(Some(message)) => {
                        if let Err(fault) = shared.handle(stream, message).await {
                            lock(&shared.clients).fail(stream, fault.into_status());
                            break;
                        }
                    }
                    Ok(None) => break,
                    // Bytes that are no message, or a client that went away without a word.
                    Err(status) => {
                        lock(&shared.clients).fail(stream, status);
                        break;
                    }
                }
            }
            lock(&shared.clients).close(stream);
        });
        Ok(Response::new(Box::pin(outgoing)))
    }

    async fn capabilities(
        &self,
        request: Request<v1::CapabilitiesRequest>,
    ) -> Result<Response<v1::CapabilitiesResponse>, Status> {
        let device_id = request.into_inner().device_id;
        if device_id != 0 {
            self.0.check_device(device_id).map_err(Fault::into_status)?;
        }
        Ok(Response::new(v1::CapabilitiesResponse {
            p4runtime_api_version: API_VERSION.to_owned(),
            experimental: None,
        }))
    }
}

fn no_pipeline() -> Status {
    Status::failed_precondition(
        "no forwarding pipeline is set; send SetForwardingPipelineConfig first",
    )
}

/// Sends the answers of one read request.
struct Reader<'a> {
    shared: &'a Shared,
    target: Target,
    sender: mpsc::Sender<Result<v1::ReadResponse, Status>>,
    pending: Vec<v1::Entity>,
    /// Encoded length of `pending`.
    bytes: usize,
    /// How much longer the client may keep writers waiting by not reading.
    patience: Duration,
}

/// Why an answer is not sent to its end.
enum Ended {
    /// The client is gone.
    Gone,
    /// The client does not read, and others wait for it.
    Stalled,
}

/// How often a reader that waits for its client looks whether somebody waits for it.
const STALL_CHECK: Duration = Duration::from_millis(20);

impl Reader<'_> {
    /// Nobody writes meanwhile; one result per request.
    async fn run(&mut self, request: &v1::ReadRequest) -> Result<Vec<Result<(), Fault>>, Ended> {
        let mut results = Vec::with_capacity(request.entities.len());
        let role = Role {
            name: &request.role,
            scope: lock(&self.shared.clients).scope(&request.role),
        };
        for entity in &request.entities {
            let result = match Cursor::open(&self.target.pipeline, entity) {
                Ok(cursor) => self.read_one(cursor, &role).await?,
                Err(fault) => Err(fault),
            };
            results.push(result);
        }
        self.flush().await?;
        Ok(results)
    }

    async fn read_one(
        &mut self,
        mut cursor: Cursor,
        role: &Role<'_>,
    ) -> Result<Result<(), Fault>, Ended> {
        use prost::Message as _;
        loop {
            let (batch, more) = match cursor.next(&self.target, self.shared.now(), role) {
                Ok(next) => next,
                Err(fault) => return Ok(Err(fault)),
            };
            for entity in batch {
                self.bytes += entity.encoded_len() + 8;
                self.pending.push(entity);
                if self.bytes >= RESPONSE_BYTES {
                    self.flush().await?;
                }
            }
            if !more {
                return Ok(Ok(()));
            }
            if self.sender.is_closed() {
                return Err(Ended::Gone);
            }
            Target::pause();
        }
    }

    async fn flush(&mut self) -> Result<(), Ended> {
        self.bytes = 0;
        if self.pending.is_empty() {
            return Ok(());
        }
        let entities = std::mem::take(&mut self.pending);
        let sending = self.sender.send(Ok(v1::ReadResponse { entities }));
        tokio::pin!(sending);
        loop {
            if let Ok(sent) = tokio::time::timeout(STALL_CHECK, &mut sending).await {
                return sent.map_err(|_| Ended::Gone);
            }
            if self.shared.waiting.load(Ordering::Relaxed) > 0 {
                self.patience = self.patience.saturating_sub(STALL_CHECK);
                if self.patience.is_zero() {
                    return Err(Ended::Stalled);
                }
            }
        }
    }
}

impl Shared {
    /// What updates may take.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            replicas: self.config.max_replicas,
            digest_messages: self.config.digest_messages,
            drop_port: self.drop_port,
        }
    }

    fn check_device(&self, device_id: u64) -> Result<(), Fault> {
        if device_id == self.device_id {
            return Ok(());
        }
        Err(Fault::not_found(format!(
            "no device {device_id} here; this is device {}",
            self.device_id
        )))
    }

    /// What the primary of the role may do, if the caller is it.
    fn check_primary(
        &self,
        role: &str,
        id: Option<v1::Uint128>,
    ) -> Result<super::roles::Scope, Fault> {
        let clients = lock(&self.clients);
        clients.arbiter.check_primary(role, id.map(election_id))?;
        Ok(clients.scope(role))
    }

    /// Handles one message of a stream; an error ends the stream.
    async fn handle(
        &self,
        stream: StreamId,
        message: v1::StreamMessageRequest,
    ) -> Result<(), Fault> {
        use stream_message_request::Update as U;
        match message.update {
            Some(U::Arbitration(update)) => {
                let notice = lock(&self.clients).claim(stream, decode_claim(update))?;
                if let Some(notice) = notice {
                    // The old primary's writes end before the new primary is told.
                    drop(self.gate.read().await);
                    lock(&self.clients).tell_primary(&notice);
                }
            }
            Some(U::Packet(packet)) => {
                if let Err(fault) = self.packet_out(stream, &packet) {
                    use v1::stream_error::Details;
                    let packet_out = Some(packet);
                    let details = Details::PacketOut(v1::PacketOutError { packet_out });
                    self.report(stream, fault, details);
                }
            }
            Some(U::DigestAck(ack)) => {
                if let Err(fault) = self.digest_ack(stream, &ack) {
                    use v1::stream_error::Details;
                    let digest_list_ack = Some(ack);
                    let details =
                        Details::DigestListAck(v1::DigestListAckError { digest_list_ack });
                    self.report(stream, fault, details);
                }
            }
            Some(U::Other(other)) => {
                let fault = Fault::unimplemented("the switch knows no other stream messages");
                let details = v1::StreamOtherError { other: Some(other) };
                self.report(stream, fault, v1::stream_error::Details::Other(details));
            }
            None => {
                let fault = Fault::invalid("the stream message is empty");
                let details = v1::StreamOtherError { other: None };
                self.report(stream, fault, v1::stream_error::Details::Other(details));
            }
        }
        Ok(())
    }

    fn report(&self, stream: StreamId, fault: Fault, details: v1::stream_error::Details) {
        let error = v1::StreamError {
            canonical_code: fault.code as i32,
            message: fault.message,
            space: SPACE.to_owned(),
            code: 0,
            details: Some(details),
        };
        lock(&self.clients).send(stream, Update::Error(error));
    }

    /// What the stream's role may do, if the stream is its primary.
    fn check_stream(&self, stream: StreamId, what: &str) -> Result<super::roles::Scope, Fault> {
        let clients = lock(&self.clients);
        match clients.arbiter.role_of(stream) {
            Some(role) if clients.arbiter.is_primary(stream) => Ok(clients.scope(role)),
            _ => Err(Fault::denied(format!("only the primary may send {what}"))),
        }
    }

    fn packet_out(&self, stream: StreamId, packet: &v1::PacketOut) -> Result<(), Fault> {
        self.check_stream(stream, "packet-outs")?
            .check_packet_out(&packet.metadata)?;
        let missing = |what| Fault::new(Code::FailedPrecondition, what);
        let target = self
            .live()
            .ok_or_else(|| missing("no forwarding pipeline is set"))?;
        let port = self
            .cpu_port
            .ok_or_else(|| missing("the switch was started without a CPU port"))?;
        let bytes = match &target.pipeline.packet_out {
            Some(header) => header.encode(packet)?,
            None if packet.metadata.is_empty() => packet.payload.clone(),
            None => return Err(Fault::invalid("the program has no packet_out metadata")),
        };
        self.switch.lock().ingress(port, &bytes, self.now());
        self.counts.packet_outs.fetch_add(1, Ordering::Relaxed);
        if let Some(notify) = &self.config.notify {
            notify();
        }
        Ok(())
    }

    fn digest_ack(&self, stream: StreamId, ack: &v1::DigestListAck) -> Result<(), Fault> {
        self.check_stream(stream, "digest acknowledgements")?;
        let known = self
            .live()
            .is_some_and(|t| t.pipeline.digests.contains_key(&ack.digest_id));
        if !known {
            return Err(Fault::invalid(format!(
                "P4Info has no digest {:#x}",
                ack.digest_id
            )));
        }
        lock(&self.state)
            .digests
            .acknowledge(ack.digest_id, ack.list_id);
        Ok(())
    }
}

//! The gRPC methods: checks in the order the specification gives, then the work.

use std::pin::Pin;
use std::sync::Arc;

use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, p4_runtime_server::P4Runtime, stream_message_request, stream_message_response::Update,
    write_request::Atomicity,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::Shared;
use super::arbitration::StreamId;
use super::clients::{decode_claim, election_id, role_name};
use super::fault::{Fault, batch_status};
use super::read::Cursor;
use super::state::{Target, lock};
use super::write::{Author, write_batch};

/// The version of P4Runtime that this server speaks.
const API_VERSION: &str = "1.5.0";

/// Encoded bytes per read response: well under the 4 MB that clients accept by default.
const RESPONSE_BYTES: usize = 1 << 20;
/// Read responses on their way to a client.
const RESPONSES_QUEUED: usize = 4;

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
        let atomicity = Atomicity::try_from(request.atomicity).map_err(|_| {
            Status::invalid_argument(format!("unknown atomicity {}", request.atomicity))
        })?;
        let mut gate = shared.gate.write().await;
        // After waiting: only now is nobody else writing, nor becoming primary before we end.
        let scope = shared
            .check_primary(&role, request.election_id)
            .map_err(Fault::into_status)?;
        let target = shared.target(&gate).ok_or_else(no_pipeline)?;
        let author = Author {
            role: &role,
            scope: &scope,
            now: shared.now(),
        };
        let results = write_batch(&target, &author, &request.updates, atomicity);
        if let Some(saved) = &mut gate.saved {
            let done = request
                .updates
                .iter()
                .zip(&results)
                .filter(|(_, r)| r.is_ok());
            saved
                .log
                .extend(done.map(|(update, _)| (role.clone(), update.clone())));
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
            // Nobody writes while the gate is held. A client that reads too slowly must not
            // hold up the others' writes for ever.
            let limit = shared.config.slow_reader;
            let mut reader = Reader {
                shared: &shared,
                target,
                sender,
                pending: Vec::new(),
                bytes: 0,
            };
            let result = tokio::time::timeout(limit, reader.run(&request)).await;
            drop(gate);
            if result.is_err() {
                let status = Status::aborted(format!(
                    "the answer was not read within {} s; writes are waiting",
                    limit.as_secs_f64()
                ));
                let _ = reader.sender.send(Err(status)).await;
            }
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
        let mut gate = shared.gate.write().await;
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
        let gate = self.0.gate.read().await;
        let config = self.0.get_pipeline(&gate, request.response_type());
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
        let (stream, receiver) = lock(&shared.clients).open(shared.config.stream_depth);
        tokio::spawn(async move {
            // A client that goes away without a word ends `requests` with an error.
            while let Ok(Some(message)) = requests.message().await {
                if let Err(fault) = shared.handle(stream, message).await {
                    lock(&shared.clients).fail(stream, fault.into_status());
                    break;
                }
            }
            lock(&shared.clients).close(stream);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
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
}

impl Reader<'_> {
    async fn run(&mut self, request: &v1::ReadRequest) {
        let mut results = Vec::with_capacity(request.entities.len());
        for entity in &request.entities {
            let result = self.read_one(entity, &request.role).await;
            match result {
                Ok(true) => results.push(Ok(())),
                Ok(false) => return, // the client is gone
                Err(fault) => results.push(Err(fault)),
            }
        }
        if !self.flush().await {
            return;
        }
        if results.iter().any(Result::is_err) {
            let _ = self
                .sender
                .send(Err(batch_status("requests", &results)))
                .await;
        }
    }

    /// Whether the client is still there.
    async fn read_one(&mut self, entity: &v1::Entity, role: &str) -> Result<bool, Fault> {
        use prost::Message as _;
        let mut cursor = Cursor::open(&self.target.pipeline, entity)?;
        loop {
            let (batch, more) = cursor.next(&self.target, self.shared.now(), role)?;
            for entity in batch {
                self.bytes += entity.encoded_len() + 8;
                self.pending.push(entity);
                if self.bytes >= RESPONSE_BYTES && !self.flush().await {
                    return Ok(false);
                }
            }
            if !more {
                return Ok(true);
            }
        }
    }

    async fn flush(&mut self) -> bool {
        self.bytes = 0;
        if self.pending.is_empty() {
            return !self.sender.is_closed();
        }
        let entities = std::mem::take(&mut self.pending);
        self.sender
            .send(Ok(v1::ReadResponse { entities }))
            .await
            .is_ok()
    }
}

impl Shared {
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
            space: String::new(),
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
            .check_packet_out()?;
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
        lock(&self.switch).ingress(port, &bytes, self.now());
        self.counts
            .packet_outs
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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

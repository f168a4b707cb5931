//! A P4Runtime server that keeps entities in a list: just enough of one to show
//! what a client does. Table id 0xbad is full, device 9 does not exist.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use p4runtime::error::{UpdateError, write_result};
use p4runtime::rpc::{self, Code};
use p4runtime::transport::{self, Connector};
use p4runtime::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use p4runtime::v1::*;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

type ToClient = mpsc::UnboundedSender<Result<StreamMessageResponse, Status>>;

#[derive(Default)]
pub(crate) struct State {
    /// Live clients by election id.
    clients: BTreeMap<u128, ToClient>,
    highest: u128,
    pub(crate) entities: Vec<Entity>,
    pub(crate) requests: Vec<WriteRequest>,
    pub(crate) pushes: Vec<SetForwardingPipelineConfigRequest>,
    pub(crate) packets: Vec<PacketOut>,
    pub(crate) acks: Vec<DigestListAck>,
    pub(crate) config: Option<ForwardingPipelineConfig>,
    /// When set, every write ends with it.
    pub(crate) refuse: Option<Status>,
    pub(crate) streams_ended: usize,
}

impl State {
    fn primary(&self) -> Option<u128> {
        let (id, _) = self.clients.last_key_value()?;
        (*id >= self.highest).then_some(*id)
    }

    fn announce(&self) {
        for (id, client) in &self.clients {
            let (code, told) = match self.primary() {
                Some(primary) if primary == *id => (Code::Ok, primary),
                Some(primary) => (Code::AlreadyExists, primary),
                None => (Code::NotFound, self.highest),
            };
            let update = MasterArbitrationUpdate {
                device_id: 1,
                election_id: Some(told.into()),
                status: Some(rpc::Status {
                    code: code as i32,
                    ..Default::default()
                }),
                ..Default::default()
            };
            say(client, stream_message_response::Update::Arbitration(update));
        }
    }

    pub(crate) fn broadcast(&self, update: stream_message_response::Update) {
        for client in self.clients.values() {
            say(client, update.clone());
        }
    }

    /// Ends every stream as a server does that goes away.
    pub(crate) fn hang_up(&mut self, status: &Status) {
        for client in std::mem::take(&mut self.clients).into_values() {
            let _ = client.send(Err(status.clone()));
        }
    }
}

fn say(client: &ToClient, update: stream_message_response::Update) {
    let _ = client.send(Ok(StreamMessageResponse {
        update: Some(update),
    }));
}

#[derive(Clone, Default)]
pub(crate) struct Fake(pub(crate) Arc<Mutex<State>>);

impl Fake {
    /// Serves in memory until every channel is gone.
    pub(crate) fn serve() -> (Fake, Connector, tokio::task::JoinHandle<()>) {
        let fake = Fake::default();
        let (connector, incoming) = transport::in_memory();
        let service = P4RuntimeServer::new(fake.clone());
        let server = tokio::spawn(async move {
            let server = tonic::transport::Server::builder().add_service(service);
            server.serve_with_incoming(incoming).await.unwrap();
        });
        (fake, connector, server)
    }

    fn check_primary(&self, id: Option<Uint128>) -> Result<(), Status> {
        let id = id.map(u128::from);
        match id.is_some() && id == self.0.lock().unwrap().primary() {
            true => Ok(()),
            false => Err(Status::permission_denied("not primary")),
        }
    }
}

#[tonic::async_trait]
impl P4Runtime for Fake {
    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;
    type StreamChannelStream = UnboundedReceiverStream<Result<StreamMessageResponse, Status>>;

    async fn write(
        &self,
        request: Request<WriteRequest>,
    ) -> Result<Response<WriteResponse>, Status> {
        let request = request.into_inner();
        self.check_primary(request.election_id)?;
        let mut state = self.0.lock().unwrap();
        state.requests.push(request.clone());
        if let Some(refusal) = &state.refuse {
            return Err(refusal.clone());
        }
        let mut outcomes = Vec::new();
        for update in request.updates {
            let entity = update.entity.unwrap();
            outcomes.push(match &entity.entity {
                Some(entity::Entity::TableEntry(entry)) if entry.table_id == 0xbad => Err(
                    UpdateError::new(Code::ResourceExhausted, "the table is full"),
                ),
                _ => {
                    state.entities.push(entity);
                    Ok(())
                }
            });
        }
        write_result(outcomes).map(Response::new)
    }

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        if request.into_inner().device_id == 9 {
            return Err(Status::not_found("no such device"));
        }
        let entities = self.0.lock().unwrap().entities.clone();
        let (tx, rx) = mpsc::channel(1);
        tokio::spawn(async move {
            for two in entities.chunks(2) {
                let response = ReadResponse {
                    entities: two.to_vec(),
                };
                if tx.send(Ok(response)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(rx)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.check_primary(request.election_id)?;
        let mut state = self.0.lock().unwrap();
        if request.config.is_some() {
            state.config = request.config.clone();
        }
        state.pushes.push(request);
        Ok(Response::new(SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        _: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        match self.0.lock().unwrap().config.clone() {
            None => Err(Status::failed_precondition("no pipeline, as bmv2 says it")),
            config => Ok(Response::new(GetForwardingPipelineConfigResponse {
                config,
            })),
        }
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut inbound = request.into_inner();
        let (tx, rx) = mpsc::unbounded_channel();
        let fake = self.clone();
        tokio::spawn(async move {
            let mut own = None;
            while let Ok(Some(message)) = inbound.message().await {
                let mut state = fake.0.lock().unwrap();
                match message.update {
                    Some(stream_message_request::Update::Arbitration(claim)) => {
                        let id = claim.election_id.map_or(0, u128::from);
                        if let Some(old) = own.take() {
                            state.clients.remove(&old);
                        }
                        if state.clients.contains_key(&id) {
                            let _ = tx.send(Err(Status::invalid_argument("the id is taken")));
                            break;
                        }
                        own = Some(id);
                        state.highest = state.highest.max(id);
                        state.clients.insert(id, tx.clone());
                        state.announce();
                    }
                    Some(stream_message_request::Update::Packet(packet)) => {
                        state.packets.push(packet);
                    }
                    Some(stream_message_request::Update::DigestAck(ack)) => state.acks.push(ack),
                    other => panic!("unexpected {other:?}"),
                }
            }
            let mut state = fake.0.lock().unwrap();
            state.streams_ended += 1;
            if let Some(own) = own {
                state.clients.remove(&own);
                state.announce();
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(rx)))
    }

    async fn capabilities(
        &self,
        _: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        Ok(Response::new(CapabilitiesResponse {
            p4runtime_api_version: "1.5.0".to_owned(),
            ..Default::default()
        }))
    }
}

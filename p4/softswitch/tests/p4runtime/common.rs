//! A controller that says just what a test wants, to a switch in the same process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use p4runtime::config::v1::P4Info;
use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, p4_runtime_client::P4RuntimeClient,
    set_forwarding_pipeline_config_request::Action as PipelineAction, stream_message_request,
    stream_message_response::Update, write_request::Atomicity,
};
use prost::Message as _;
use softswitch::server::{Clock, Server, ServerConfig};
use softswitch::{SharedSwitch, Switch, SwitchConfig};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

pub(crate) const DEVICE: u64 = 7;
pub(crate) const CPU: u16 = 510;

pub(crate) const JSON: &[u8] = include_bytes!("../programs/control.json");
const P4INFO: &str = include_str!("../programs/control.p4info.txtpb");

/// Ids that tests use, as P4Info gives them.
pub(crate) fn id(alias: &str) -> u32 {
    let info = &*PARSED;
    let preambles = info
        .tables
        .iter()
        .map(|x| &x.preamble)
        .chain(info.actions.iter().map(|x| &x.preamble))
        .chain(info.action_profiles.iter().map(|x| &x.preamble))
        .chain(info.counters.iter().map(|x| &x.preamble))
        .chain(info.meters.iter().map(|x| &x.preamble))
        .chain(info.registers.iter().map(|x| &x.preamble))
        .chain(info.value_sets.iter().map(|x| &x.preamble))
        .chain(info.digests.iter().map(|x| &x.preamble));
    preambles
        .flatten()
        .find(|p| p.alias == alias)
        .unwrap_or_else(|| panic!("no {alias}"))
        .id
}

static PARSED: LazyLock<P4Info> = LazyLock::new(|| {
    let index = p4runtime::info::Index::parse_text(P4INFO);
    index.expect("P4Info parses").p4info().clone()
});

pub(crate) fn p4info() -> P4Info {
    PARSED.clone()
}

/// A clock that tests set.
#[derive(Default)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn set(&self, now: u64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn epoch(&self) -> u64 {
        1_000_000_000_000 + self.now()
    }
}

/// A switch with its server.
pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) switch: SharedSwitch,
    pub(crate) clock: Arc<TestClock>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let switch = SharedSwitch::new(Switch::new(SwitchConfig {
            device_id: DEVICE,
            cpu_port: Some(CPU),
            queues: 8,
            ..SwitchConfig::default()
        }));
        let clock = Arc::new(TestClock::default());
        let mut config = ServerConfig {
            clock: clock.clone(),
            ..ServerConfig::default()
        };
        change(&mut config);
        let server = Server::new(switch.clone(), config);
        Bench {
            server,
            switch,
            clock,
        }
    }

    /// A primary of the default role with the program pushed.
    pub(crate) async fn ready(&self) -> Controller {
        let mut controller = self.primary(1).await;
        controller
            .push(PipelineAction::VerifyAndCommit, Some(pipeline(1)))
            .await
            .unwrap();
        controller
    }

    pub(crate) async fn primary(&self, election_id: u64) -> Controller {
        let mut controller = self.connect().await;
        controller.claim(claim("", Some(election_id))).await;
        let (status, _) = controller.arbitration().await;
        assert_eq!(status, Code::Ok);
        controller.election_id = Some(election_id);
        controller
    }

    pub(crate) async fn connect(&self) -> Controller {
        let mut client = P4RuntimeClient::new(self.server.channel());
        let (sender, receiver) = mpsc::channel(16);
        let responses = client
            .stream_channel(ReceiverStream::new(receiver))
            .await
            .unwrap()
            .into_inner();
        Controller {
            client,
            sender,
            responses,
            role: String::new(),
            election_id: None,
        }
    }
}

pub(crate) fn claim(role: &str, election_id: Option<u64>) -> v1::MasterArbitrationUpdate {
    v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        role: (!role.is_empty()).then(|| v1::Role {
            name: role.to_owned(),
            ..v1::Role::default()
        }),
        election_id: election_id.map(|low| v1::Uint128 { high: 0, low }),
        status: None,
    }
}

pub(crate) fn pipeline(cookie: u64) -> v1::ForwardingPipelineConfig {
    v1::ForwardingPipelineConfig {
        p4info: Some(p4info()),
        p4_device_config: JSON.to_vec(),
        cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie }),
    }
}

/// A client with its stream.
pub(crate) struct Controller {
    pub(crate) client: P4RuntimeClient<Channel>,
    pub(crate) sender: mpsc::Sender<v1::StreamMessageRequest>,
    pub(crate) responses: Streaming<v1::StreamMessageResponse>,
    pub(crate) role: String,
    pub(crate) election_id: Option<u64>,
}

impl Controller {
    pub(crate) async fn send(&self, update: stream_message_request::Update) {
        self.sender
            .send(v1::StreamMessageRequest {
                update: Some(update),
            })
            .await
            .unwrap();
    }

    pub(crate) async fn claim(&mut self, update: v1::MasterArbitrationUpdate) {
        self.role = update
            .role
            .as_ref()
            .map(|r| r.name.clone())
            .unwrap_or_default();
        self.send(stream_message_request::Update::Arbitration(update))
            .await;
    }

    /// The stream's next message, or how it ended.
    pub(crate) async fn next(&mut self) -> Result<Update, Status> {
        let next = tokio::time::timeout(Duration::from_secs(5), self.responses.message());
        match next.await.expect("a message within 5 s")? {
            Some(message) => Ok(message.update.expect("a stream message says something")),
            None => Err(Status::ok("the stream ended")),
        }
    }

    /// Nothing more is on the stream.
    pub(crate) async fn quiet(&mut self) {
        let next = tokio::time::timeout(Duration::from_millis(50), self.responses.message());
        assert!(next.await.is_err(), "an unexpected message");
    }

    /// Status and election id of the next message, which must be arbitration.
    pub(crate) async fn arbitration(&mut self) -> (Code, Option<u64>) {
        match self.next().await {
            Ok(Update::Arbitration(update)) => {
                assert_eq!(update.device_id, DEVICE);
                let code = Code::try_from(update.status.unwrap().code).unwrap();
                (code, update.election_id.map(|id| id.low))
            }
            other => panic!("no arbitration: {other:?}"),
        }
    }

    /// The code with which the stream ended.
    pub(crate) async fn end(&mut self) -> tonic::Code {
        self.next().await.expect_err("the stream should end").code()
    }

    fn uint128(&self) -> Option<v1::Uint128> {
        self.election_id.map(|low| v1::Uint128 { high: 0, low })
    }

    pub(crate) async fn push(
        &mut self,
        action: PipelineAction,
        config: Option<v1::ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            role: self.role.clone(),
            election_id: self.uint128(),
            action: action as i32,
            config,
            ..Default::default()
        };
        self.client
            .set_forwarding_pipeline_config(request)
            .await
            .map(|_| ())
    }

    pub(crate) async fn write_as(
        &mut self,
        atomicity: Atomicity,
        updates: Vec<v1::Update>,
    ) -> Result<(), Status> {
        let request = v1::WriteRequest {
            device_id: DEVICE,
            role: self.role.clone(),
            election_id: self.uint128(),
            updates,
            atomicity: atomicity as i32,
            ..Default::default()
        };
        self.client.write(request).await.map(|_| ())
    }

    /// Writes one update; the code of its own error, if any.
    pub(crate) async fn write(
        &mut self,
        kind: v1::update::Type,
        entity: Entity,
    ) -> Result<(), Code> {
        let update = update(kind, entity);
        match self
            .write_as(Atomicity::ContinueOnError, vec![update])
            .await
        {
            Ok(()) => Ok(()),
            Err(status) => {
                assert_eq!(status.code(), tonic::Code::Unknown, "{status:?}");
                let codes = details(&status);
                assert_eq!(codes.len(), 1);
                Err(codes[0])
            }
        }
    }

    pub(crate) async fn insert(&mut self, entity: Entity) -> Result<(), Code> {
        self.write(v1::update::Type::Insert, entity).await
    }

    pub(crate) async fn modify(&mut self, entity: Entity) -> Result<(), Code> {
        self.write(v1::update::Type::Modify, entity).await
    }

    pub(crate) async fn delete(&mut self, entity: Entity) -> Result<(), Code> {
        self.write(v1::update::Type::Delete, entity).await
    }

    /// Reads; the entities, and the number of messages they came in.
    pub(crate) async fn read_all(
        &mut self,
        role: &str,
        requests: Vec<Entity>,
    ) -> (Vec<Entity>, usize, Option<Status>) {
        let entities = requests.into_iter().map(|e| v1::Entity { entity: Some(e) });
        let request = v1::ReadRequest {
            device_id: DEVICE,
            role: role.to_owned(),
            entities: entities.collect(),
        };
        let mut found = Vec::new();
        let mut messages = 0;
        let mut answers = match self.client.read(request).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return (found, 0, Some(status)),
        };
        loop {
            match answers.message().await {
                Ok(Some(answer)) => {
                    messages += 1;
                    found.extend(answer.entities.into_iter().filter_map(|e| e.entity));
                }
                Ok(None) => return (found, messages, None),
                Err(status) => return (found, messages, Some(status)),
            }
        }
    }

    pub(crate) async fn read(&mut self, request: Entity) -> Vec<Entity> {
        let (found, _, error) = self.read_all("", vec![request]).await;
        assert!(error.is_none(), "{error:?}");
        found
    }

    /// The code of a read's only request, which must fail.
    pub(crate) async fn read_error(&mut self, request: Entity) -> Code {
        let (_, _, error) = self.read_all("", vec![request]).await;
        details(&error.expect("the read should fail"))[0]
    }

    pub(crate) async fn tables(&mut self, request: v1::TableEntry) -> Vec<v1::TableEntry> {
        let found = self.read(Entity::TableEntry(request)).await;
        let entries = found.into_iter().map(|e| match e {
            Entity::TableEntry(entry) => entry,
            other => panic!("{other:?}"),
        });
        entries.collect()
    }
}

pub(crate) fn update(kind: v1::update::Type, entity: Entity) -> v1::Update {
    v1::Update {
        r#type: kind as i32,
        entity: Some(v1::Entity {
            entity: Some(entity),
        }),
    }
}

/// The canonical codes in a status's details.
pub(crate) fn details(status: &Status) -> Vec<Code> {
    let inner = p4runtime::rpc::Status::decode(status.details()).unwrap();
    assert_eq!(inner.code, Code::Unknown as i32);
    assert_eq!(inner.message, status.message());
    let errors = inner.details.iter().map(|any| {
        assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
        let error = v1::Error::decode(&any.value[..]).unwrap();
        if error.canonical_code == 0 {
            assert_eq!(error, v1::Error::default(), "nothing else is set");
        } else {
            assert!(!error.message.is_empty());
            assert_eq!(error.space, "meridian-v1model");
        }
        Code::try_from(error.canonical_code).unwrap()
    });
    errors.collect()
}

pub(crate) fn exact(field_id: u32, value: &[u8]) -> v1::FieldMatch {
    field(
        field_id,
        v1::field_match::FieldMatchType::Exact(v1::field_match::Exact {
            value: value.to_vec(),
        }),
    )
}

pub(crate) fn lpm(field_id: u32, value: &[u8], prefix_len: i32) -> v1::FieldMatch {
    let m = v1::field_match::Lpm {
        value: value.to_vec(),
        prefix_len,
    };
    field(field_id, v1::field_match::FieldMatchType::Lpm(m))
}

pub(crate) fn ternary(field_id: u32, value: &[u8], mask: &[u8]) -> v1::FieldMatch {
    let m = v1::field_match::Ternary {
        value: value.to_vec(),
        mask: mask.to_vec(),
    };
    field(field_id, v1::field_match::FieldMatchType::Ternary(m))
}

pub(crate) fn range(field_id: u32, low: &[u8], high: &[u8]) -> v1::FieldMatch {
    let m = v1::field_match::Range {
        low: low.to_vec(),
        high: high.to_vec(),
    };
    field(field_id, v1::field_match::FieldMatchType::Range(m))
}

pub(crate) fn optional(field_id: u32, value: &[u8]) -> v1::FieldMatch {
    let m = v1::field_match::Optional {
        value: value.to_vec(),
    };
    field(field_id, v1::field_match::FieldMatchType::Optional(m))
}

fn field(field_id: u32, m: v1::field_match::FieldMatchType) -> v1::FieldMatch {
    v1::FieldMatch {
        field_id,
        field_match_type: Some(m),
    }
}

pub(crate) fn action(alias: &str, params: &[&[u8]]) -> v1::Action {
    let params = params
        .iter()
        .enumerate()
        .map(|(i, value)| v1::action::Param {
            param_id: i as u32 + 1,
            value: value.to_vec(),
        });
    v1::Action {
        action_id: id(alias),
        params: params.collect(),
    }
}

pub(crate) fn does(alias: &str, params: &[&[u8]]) -> Option<v1::TableAction> {
    Some(v1::TableAction {
        r#type: Some(v1::table_action::Type::Action(action(alias, params))),
    })
}

/// An entry of table l2.
pub(crate) fn l2(mac: u8, port: u8) -> v1::TableEntry {
    v1::TableEntry {
        table_id: id("l2"),
        r#match: vec![exact(1, &[mac])],
        action: does("send", &[&[port]]),
        ..Default::default()
    }
}

/// An entry of table routes.
pub(crate) fn route(prefix: [u8; 4], len: i32, port: u8) -> v1::TableEntry {
    v1::TableEntry {
        table_id: id("routes"),
        r#match: vec![lpm(1, &prefix, len)],
        action: does("send", &[&[port]]),
        ..Default::default()
    }
}

/// An entry of table acl.
pub(crate) fn acl(priority: i32, source: &[u8], mask: &[u8]) -> v1::TableEntry {
    v1::TableEntry {
        table_id: id("acl"),
        r#match: vec![ternary(1, source, mask), exact(4, &[1])],
        priority,
        action: does("drop", &[]),
        ..Default::default()
    }
}

pub(crate) const INVALID: Result<(), Code> = Err(Code::InvalidArgument);
pub(crate) const OUT_OF_RANGE: Result<(), Code> = Err(Code::OutOfRange);
pub(crate) const DENIED: Result<(), Code> = Err(Code::PermissionDenied);
pub(crate) const MISSING: Result<(), Code> = Err(Code::NotFound);
pub(crate) const EXISTS: Result<(), Code> = Err(Code::AlreadyExists);
pub(crate) const FULL: Result<(), Code> = Err(Code::ResourceExhausted);
pub(crate) const IN_USE: Result<(), Code> = Err(Code::FailedPrecondition);

pub(crate) fn table(entry: v1::TableEntry) -> Entity {
    Entity::TableEntry(entry)
}

//! What fuzzing feeds: one function for each kind of bytes from outside. The
//! fuzz targets under `fuzz/` and the seeded tests in `tests/fuzz.rs` share it.

use std::sync::Arc;

use p4runtime::v1::{self, p4_runtime_client::P4RuntimeClient, stream_message_request::Update};
use prost::Message;
use softswitch::control::{ActionCall, EntryAction, MatchField, TableEntry};
use softswitch::program::MatchKind;
use softswitch::server::{Server, ServerConfig};
use softswitch::{Program, SharedSwitch, Switch, SwitchConfig, TableId, Value};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

/// Bytes that decisions are taken from; zeros when they have run out.
pub(crate) struct Source<'a>(pub(crate) &'a [u8]);

impl<'a> Source<'a> {
    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    /// The next two bytes.
    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// The next `count` bytes, or what there is.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A number of up to `width` bits.
    pub(crate) fn value(&mut self, width: u32) -> Value {
        let mut bytes = self.bytes(width.div_ceil(8) as usize).to_vec();
        if let (Some(first), rest @ 1..) = (bytes.first_mut(), width % 8) {
            *first &= 0xff >> (8 - rest);
        }
        Value::from_be_bytes(&bytes)
    }
}

/// Any bytes as a program; if it is one, some packets for it.
pub(crate) fn loader(data: &[u8]) {
    if let Ok(program) = Program::load(data) {
        packets(Arc::new(program), &data[data.len().saturating_sub(400)..]);
    }
}

/// A switch with a program, and entries in its tables as `source` has them.
pub(crate) fn switch(program: Arc<Program>, source: &mut Source<'_>) -> Switch {
    let mut switch = Switch::new(SwitchConfig {
        cpu_port: Some(510),
        queues: 8,
        ..SwitchConfig::default()
    });
    switch.install(program.clone());
    for group in 1..4 {
        let replicas = (0..group).map(|port| softswitch::control::Replica {
            port: port as u16,
            instance: source.short(),
        });
        let _ = switch.multicast_insert(group, &replicas.collect::<Vec<_>>());
    }
    for (number, table) in program.tables().iter().enumerate() {
        for _ in 0..source.byte() % 4 {
            let key = table.keys.iter().map(|key| match key.kind {
                MatchKind::Exact => MatchField::Exact(source.value(key.width)),
                MatchKind::Lpm => MatchField::Lpm {
                    value: Value::ZERO,
                    prefix_len: 0,
                },
                MatchKind::Range => {
                    let (low, high) = (source.value(key.width), source.value(key.width));
                    MatchField::Range {
                        low: low.clone().min(high.clone()),
                        high: low.max(high),
                    }
                }
                _ => MatchField::Ternary {
                    value: Value::ZERO,
                    mask: Value::ZERO,
                },
            });
            let key = key.collect();
            let Some(at) = usize::from(source.byte()).checked_rem(table.actions.len()) else {
                continue;
            };
            let action = table.actions[at];
            let params = &program.actions()[action.index()].params;
            let entry = TableEntry {
                key,
                priority: i32::from(table.has_priority),
                action: EntryAction::Call(ActionCall {
                    action,
                    params: params.iter().map(|p| source.value(p.width)).collect(),
                }),
                idle_timeout: 0,
                metadata: Vec::new(),
            };
            // Const tables and the like refuse it.
            let _ = switch.table_insert(TableId(number as u32), &entry, 0);
        }
    }
    switch
}

/// Entries and packets out of `data` for a program; how many packets it was.
pub(crate) fn packets(program: Arc<Program>, data: &[u8]) -> usize {
    let mut source = Source(data);
    let mut switch = switch(program, &mut source);
    let mut sent = 0;
    let mut now = 0;
    while !source.0.is_empty() {
        let (port, length) = (source.short() % 520, usize::from(source.byte()));
        now += u64::from(source.byte()) * 10_000;
        // Zeros after the end of what there is: long packets from short data.
        let mut packet = source.bytes(length % 96).to_vec();
        packet.resize(packet.len() + length / 96 * 40, 0);
        packet_through(&mut switch, port, &packet, now);
        sent += 1;
        // Each such packet takes as long as thousands of others.
        if switch.stats().endless_loops > 2 {
            break;
        }
    }
    sent
}

/// Sends a packet and takes what comes of it, unless it goes round for ever.
pub(crate) fn packet_through(switch: &mut Switch, port: u16, packet: &[u8], now: u64) {
    switch.ingress(port, packet, now);
    let mut ready = Vec::new();
    for _ in 0..4 {
        switch.take_ready(&mut ready);
        for &port in &ready {
            for _ in 0..64 {
                let Some(packet) = switch.dequeue(port, now) else {
                    break;
                };
                switch.recycle(packet);
            }
        }
    }
    switch.take_digests();
}

/// A controller of a switch in this process, primary and with a program.
pub(crate) struct Controller {
    runtime: tokio::runtime::Runtime,
    client: P4RuntimeClient<Channel>,
    requests: mpsc::Sender<v1::StreamMessageRequest>,
    switch: SharedSwitch,
}

const DEVICE: u64 = 1;
const ELECTION: v1::Uint128 = v1::Uint128 { high: 0, low: 1 };

impl Controller {
    /// Installs a program by its JSON and P4Info.
    pub(crate) fn new(json: &[u8], p4info: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let switch: SharedSwitch = SharedSwitch::new(Switch::new(SwitchConfig {
            device_id: DEVICE,
            cpu_port: Some(510),
            queues: 8,
            ..SwitchConfig::default()
        }));
        let (requests, receiver) = mpsc::channel(16);
        let info = p4runtime::info::Index::parse_text(p4info).expect("P4Info");
        let client = runtime.block_on(async {
            let server = Server::new(switch.clone(), ServerConfig::default());
            server
                .install(info.p4info().clone(), json.to_vec())
                .await
                .expect("the program installs");
            let mut client = P4RuntimeClient::new(server.channel());
            let claim = Update::Arbitration(v1::MasterArbitrationUpdate {
                device_id: DEVICE,
                election_id: Some(ELECTION),
                ..Default::default()
            });
            let _ = requests
                .send(v1::StreamMessageRequest {
                    update: Some(claim),
                })
                .await;
            let mut responses = client
                .stream_channel(ReceiverStream::new(receiver))
                .await
                .expect("a stream")
                .into_inner();
            // Becoming primary is the first answer; later ones must not pile up.
            let _ = responses.message().await;
            tokio::spawn(async move { while let Ok(Some(_)) = responses.message().await {} });
            client
        });
        Controller {
            runtime,
            client,
            requests,
            switch,
        }
    }

    /// Any bytes as a message: the first says of which kind. Refusals are
    /// answers; the switch still forwards after.
    pub(crate) fn message(&mut self, data: &[u8]) {
        let Some((kind, bytes)) = data.split_first() else {
            return;
        };
        let client = &mut self.client;
        let requests = &self.requests;
        self.runtime.block_on(async {
            match kind % 4 {
                0 => {
                    if let Ok(mut request) = v1::WriteRequest::decode(bytes) {
                        request.device_id = DEVICE;
                        request.election_id = Some(ELECTION);
                        let _ = client.write(request).await;
                    }
                }
                1 => {
                    if let Ok(mut request) = v1::ReadRequest::decode(bytes) {
                        request.device_id = DEVICE;
                        if let Ok(answer) = client.read(request).await {
                            let mut answer = answer.into_inner();
                            while let Ok(Some(_)) = answer.message().await {}
                        }
                    }
                }
                2 => {
                    // Arbitration could take the primary's place away.
                    if let Ok(request) = v1::StreamMessageRequest::decode(bytes)
                        && !matches!(request.update, Some(Update::Arbitration(_)))
                    {
                        let _ = requests.send(request).await;
                        tokio::task::yield_now().await;
                    }
                }
                _ => {
                    if let Ok(mut request) = v1::SetForwardingPipelineConfigRequest::decode(bytes) {
                        request.device_id = DEVICE;
                        request.election_id = Some(ELECTION);
                        // Verified only, so that the program stays.
                        request.action = 1;
                        let _ = client.set_forwarding_pipeline_config(request).await;
                    }
                }
            }
        });
        let mut switch = self.switch.lock();
        packet_through(&mut switch, 1, &[0; 40], 0);
    }
}

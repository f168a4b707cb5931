//! How fast a controller writes and reads a table over loopback TCP, and what memory that takes:
//!
//! ```text
//! cargo run --release -p softswitch --example control_rates -- [ENTRIES] [BATCH]
//! ```
//!
//! One client, one batch of updates outstanding at a time. Client and server are one process, so
//! the memory is that of both.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use p4runtime::info::Index;
use p4runtime::v1::{
    self, entity::Entity, p4_runtime_client::P4RuntimeClient, stream_message_request::Update,
};
use softswitch::server::{Server, ServerConfig};
use softswitch::{SharedSwitch, Switch, SwitchConfig};
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;
use tonic::transport::Channel;

const DEVICE: u64 = 1;
const ELECTION: Option<v1::Uint128> = Some(v1::Uint128 { high: 0, low: 1 });

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let entries: u32 = args.next().map_or(Ok(1_000_000), |a| a.parse())?;
    let batch: usize = args.next().map_or(Ok(1000), |a| a.parse())?;

    let switch = SharedSwitch::new(Switch::new(SwitchConfig {
        device_id: DEVICE,
        ..SwitchConfig::default()
    }));
    let server = Server::new(switch.clone(), ServerConfig::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { server.serve(listener, None, std::future::pending()).await });

    let index = Index::parse_text(include_str!("../../compiled/fabric.p4info.txtpb"))?;
    let mut client = P4RuntimeClient::connect(address).await?;
    let (stream, receiver) = tokio::sync::mpsc::channel(1);
    start(&mut client, &stream, receiver, &index).await?;

    let table = index.table("route_v4")?.id();
    let actions = index
        .p4info()
        .actions
        .iter()
        .filter_map(|a| a.preamble.as_ref());
    let action = actions
        .filter(|p| p.alias == "route_nexthop")
        .map(|p| p.id)
        .next()
        .ok_or("no action route_nexthop")?;
    let before = resident();
    let prober = Prober::start(switch);
    let started = Instant::now();
    let mut next = 0;
    while next < entries {
        let until = entries.min(next.saturating_add(batch as u32));
        let updates = (next..until).map(|n| route(table, action, n));
        let request = v1::WriteRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            updates: updates.collect(),
            ..Default::default()
        };
        client.write(request).await?;
        next = until;
    }
    let took = started.elapsed();
    report("written", entries, took);
    let after = resident();
    println!("memory of the entries: {} MB", (after - before) >> 20);
    println!(
        "longest wait for the switch while writing: {:?}",
        prober.longest()
    );

    let started = Instant::now();
    let request = v1::ReadRequest {
        device_id: DEVICE,
        entities: vec![v1::Entity {
            entity: Some(Entity::TableEntry(v1::TableEntry {
                table_id: table,
                ..Default::default()
            })),
        }],
        ..Default::default()
    };
    let mut answers = client.read(request).await?.into_inner();
    let (mut read, mut messages, mut peak) = (0, 0, after);
    while let Some(answer) = answers.next().await {
        read += answer?.entities.len() as u32;
        messages += 1;
        peak = peak.max(resident());
    }
    report("read back", read, started.elapsed());
    println!(
        "in {messages} messages; {} MB more memory at the most",
        (peak - after) >> 20
    );
    println!(
        "longest wait for the switch while reading: {:?}",
        prober.longest()
    );
    Ok(())
}

fn report(what: &str, entries: u32, took: Duration) {
    println!(
        "{entries} entries {what} in {took:.2?}: {:.0}/s",
        f64::from(entries) / took.as_secs_f64()
    );
}

/// Becomes primary and pushes the fabric program, with room for any number of entries.
async fn start(
    client: &mut P4RuntimeClient<Channel>,
    stream: &tokio::sync::mpsc::Sender<v1::StreamMessageRequest>,
    receiver: tokio::sync::mpsc::Receiver<v1::StreamMessageRequest>,
    index: &Index,
) -> Result<(), Box<dyn Error>> {
    let claim = v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        election_id: ELECTION,
        ..Default::default()
    };
    let update = Some(Update::Arbitration(claim));
    stream.send(v1::StreamMessageRequest { update }).await?;
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut answers = client.stream_channel(requests).await?.into_inner();
    answers.message().await?;
    tokio::spawn(async move { while answers.message().await.is_ok_and(|m| m.is_some()) {} });

    let mut json = String::new();
    for line in include_str!("../../compiled/fabric.json").lines() {
        let line = match line.split_once("\"max_size\" : ") {
            Some((_, size)) => {
                let more = if size.ends_with(',') { "," } else { "" };
                format!("\"max_size\" : 16777216{more}")
            }
            None => line.to_owned(),
        };
        json.push_str(&line);
    }
    client
        .set_forwarding_pipeline_config(v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: ELECTION,
            action: v1::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
            config: Some(v1::ForwardingPipelineConfig {
                p4info: Some(index.p4info().clone()),
                p4_device_config: json.into_bytes(),
                cookie: None,
            }),
            ..Default::default()
        })
        .await?;
    Ok(())
}

/// Route number `n`: a /32 in VRF 1.
fn route(table_id: u32, action_id: u32, n: u32) -> v1::Update {
    use v1::field_match::{Exact, FieldMatchType as M, Lpm};
    // Ids of the fabric program, which are those of p4c: counted from 1.
    let field = |field_id, m| v1::FieldMatch {
        field_id,
        field_match_type: Some(m),
    };
    let entry = v1::TableEntry {
        table_id,
        r#match: vec![
            field(1, M::Exact(Exact { value: vec![1] })),
            field(
                2,
                M::Lpm(Lpm {
                    value: (0x0a00_0000 + n).to_be_bytes().to_vec(),
                    prefix_len: 32,
                }),
            ),
        ],
        action: Some(v1::TableAction {
            r#type: Some(v1::table_action::Type::Action(v1::Action {
                action_id,
                params: vec![v1::action::Param {
                    param_id: 1,
                    value: vec![(n % 200) as u8 + 1],
                }],
            })),
        }),
        ..Default::default()
    };
    v1::Update {
        r#type: v1::update::Type::Insert as i32,
        entity: Some(v1::Entity {
            entity: Some(Entity::TableEntry(entry)),
        }),
    }
}

/// Bytes of this process in memory.
fn resident() -> usize {
    const PAGE: usize = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|p| p.parse().ok());
    pages.unwrap_or(0) * PAGE
}

/// Takes the switch's lock again and again, as forwarding does.
struct Prober {
    longest: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Prober {
    fn start(switch: SharedSwitch) -> Self {
        let (longest, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (worst, end) = (longest.clone(), stop.clone());
        std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let asked = Instant::now();
                drop(switch.lock());
                worst.fetch_max(asked.elapsed().as_nanos() as u64, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        Prober { longest, stop }
    }

    /// The longest wait since the last call.
    fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

//! The controller's parts put together for one fabric: pipeline, entries, answers to hosts.

use std::sync::Arc;

use controller::entries::ranks;
use controller::intent::{Options, Planner};
use controller::neighbour::{Reason, Responder};
use controller::reconcile::reconcile;
use controller::routing::LinkSet;
use lab::SwitchEndpoint;
use p4runtime::client::{Config, Pipeline, Session, Streams};
use p4runtime::info::Index;
use p4runtime::v1::PacketIn;
use tokio::task::JoinSet;
use topology::Topology;

const P4INFO: &str = include_str!("../../../p4/compiled/fabric.p4info.txtpb");
const PROGRAM: &[u8] = include_bytes!("../../../p4/compiled/fabric.json");

/// Programs every switch, and answers ARP and neighbour discovery until dropped.
pub struct Control {
    _answering: JoinSet<()>,
}

impl Control {
    pub async fn start(topology: Topology, switches: &[SwitchEndpoint]) -> Self {
        let topology = Arc::new(topology);
        let index = Arc::new(Index::parse_text(P4INFO).unwrap());
        let pipeline = Arc::new(Pipeline::new(index.p4info().clone(), PROGRAM.to_vec()));
        let planner = Planner::new(Arc::clone(&topology), Options::default());
        let intent = planner.plan(&planner.view(&LinkSet::none()), &[]);
        let states = intent.states(&topology).unwrap();
        let mut starting = JoinSet::new();
        for ((id, endpoint), state) in (0..).zip(switches).zip(states) {
            let (endpoint, index) = (endpoint.clone(), Arc::clone(&index));
            let (pipeline, topology) = (Arc::clone(&pipeline), Arc::clone(&topology));
            starting.spawn(async move {
                let channel = endpoint.channel().await.unwrap();
                let config = Config::new(endpoint.device_id, 1);
                let (session, streams) = Session::open(channel, config).await.unwrap();
                session.verify_and_commit(&pipeline).await.unwrap();
                reconcile(&session, &index, &state, &ranks()).await.unwrap();
                let responder = Responder::new(&topology, id);
                (session, streams, responder, index)
            });
        }
        let mut answering = JoinSet::new();
        while let Some(started) = starting.join_next().await {
            let (session, streams, responder, index) = started.unwrap();
            answering.spawn(answer(session, streams, responder, index));
        }
        Self {
            _answering: answering,
        }
    }
}

async fn answer(session: Session, mut streams: Streams, responder: Responder, index: Arc<Index>) {
    while let Some(packet) = streams.packets.recv().await {
        let (port, reason) = header(&index, &packet);
        let Some(reply) = responder.answer(port, reason, &packet.payload) else {
            continue;
        };
        let fields = [("egress_port", port), ("submit_to_ingress", 0), ("pad", 0)];
        let packet = index.packet_out(reply, fields).unwrap();
        session.packet_out(packet).await.unwrap();
    }
}

fn header(index: &Index, packet: &PacketIn) -> (u16, Reason) {
    let fields = index.packet_in_fields(packet).unwrap();
    let field = |name: &str| {
        let (_, value) = fields.iter().find(|(field, _)| *field == name).unwrap();
        value
            .as_bytes()
            .iter()
            .fold(0_u16, |number, byte| number << 8 | u16::from(*byte))
    };
    let reason = u8::try_from(field("reason"))
        .ok()
        .and_then(Reason::from_number);
    (field("ingress_port"), reason.unwrap())
}

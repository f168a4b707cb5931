//! Role configs: packets by their metadata, ids that a role has for itself, the form that other
//! switches' clients send.

use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, entity::Entity, stream_message_request::Update as Say, stream_message_response::Update,
};
use prost::Message;
use softswitch::server::roles::{
    PacketFilter, ROLE_CONFIG_TYPE_URL, RoleConfig, STRATUM_ROLE_CONFIG_TYPE_URL, StratumRoleConfig,
};

use super::common::{Bench, Controller, DENIED, claim, does, id, l2, route, table};

/// The id of `reason` in packet_in.
const REASON: u32 = 2;
/// The id of `egress_port` in packet_out.
const EGRESS_PORT: u32 = 1;

fn filter(metadata_id: u32, value: u8) -> PacketFilter {
    PacketFilter {
        metadata_id,
        value: vec![0, value],
    }
}

/// Claims a role with a config.
async fn claims(bench: &Bench, role: &str, url: &str, config: &impl Message) -> Controller {
    let mut client = bench.connect().await;
    let mut update = claim(role, Some(1));
    update.role.as_mut().unwrap().config = Some(prost_types::Any {
        type_url: url.into(),
        value: config.encode_to_vec(),
    });
    client.claim(update).await;
    client.election_id = Some(1);
    client
}

/// Sends a frame to the CPU with a reason.
async fn punted(bench: &Bench, one: &mut Controller, mac: u8, reason: u8) {
    let entry = v1::TableEntry {
        action: does("to_cpu", &[&[reason]]),
        ..l2(mac, 0)
    };
    one.insert(table(entry)).await.unwrap();
    let frame = [0, 0, 0, 0, 0, mac, 0, 0, 0, 0, 0, 2, 0x12, 0x34, 0];
    bench.switch.lock().ingress(3, &frame, 0);
    bench.server.poll_cpu();
}

fn packet_out(port: u8) -> Say {
    let metadata = |metadata_id, value| v1::PacketMetadata {
        metadata_id,
        value: vec![value],
    };
    Say::Packet(v1::PacketOut {
        payload: vec![0; 20],
        metadata: vec![metadata(EGRESS_PORT, port), metadata(2, 0)],
    })
}

#[tokio::test]
async fn packets_are_filtered_by_their_metadata() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let config = RoleConfig {
        packet_in: true,
        packet_out: true,
        packet_in_filter: vec![filter(REASON, 5), filter(REASON, 6)],
        packet_out_filter: vec![filter(EGRESS_PORT, 4)],
        ..RoleConfig::default()
    };
    let mut role = claims(&bench, "some", ROLE_CONFIG_TYPE_URL, &config).await;
    assert_eq!(role.arbitration().await.0, Code::Ok);
    for (mac, reason) in [(1, 5), (2, 7), (3, 6)] {
        punted(&bench, &mut one, mac, reason).await;
        assert!(matches!(one.next().await.unwrap(), Update::Packet(_)));
        if reason != 7 {
            assert!(matches!(role.next().await.unwrap(), Update::Packet(_)));
        }
    }
    role.quiet().await;
    role.send(packet_out(4)).await;
    role.send(packet_out(5)).await;
    match role.next().await.unwrap() {
        Update::Error(error) => {
            assert_eq!(error.canonical_code, Code::PermissionDenied as i32);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.server.stats().packet_outs, 1);
}

#[tokio::test]
async fn the_form_that_other_switches_take() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let config = StratumRoleConfig {
        exclusive_p4_ids: vec![id("routes")],
        shared_p4_ids: vec![id("l2")],
        packet_in_filter: Some(filter(REASON, 5)),
        receives_packet_ins: true,
        can_push_pipeline: false,
    };
    let mut role = claims(&bench, "some", STRATUM_ROLE_CONFIG_TYPE_URL, &config).await;
    assert_eq!(role.arbitration().await.0, Code::Ok);
    assert_eq!(role.insert(table(l2(8, 1))).await, Ok(()));
    assert_eq!(role.insert(table(route([10, 0, 0, 0], 8, 1))).await, Ok(()));
    let counter = v1::CounterEntry {
        counter_id: id("port_count"),
        ..Default::default()
    };
    assert_eq!(role.modify(Entity::CounterEntry(counter)).await, DENIED);
    punted(&bench, &mut one, 1, 7).await;
    role.quiet().await;
    punted(&bench, &mut one, 2, 5).await;
    assert!(matches!(role.next().await.unwrap(), Update::Packet(_)));
    role.send(packet_out(4)).await;
    role.quiet().await;

    // What a role has for itself no other role's config may name.
    let shares = |ids: Vec<u32>| StratumRoleConfig {
        shared_p4_ids: ids,
        ..Default::default()
    };
    let url = STRATUM_ROLE_CONFIG_TYPE_URL;
    let mut other = claims(&bench, "other", url, &shares(vec![id("routes")])).await;
    assert_eq!(other.end().await, tonic::Code::InvalidArgument);
    let mut other = claims(&bench, "other", url, &shares(vec![id("l2")])).await;
    assert_eq!(other.arbitration().await.0, Code::Ok);
    // Unless it is gone.
    drop((role, other));
    let last = async {
        loop {
            let mut other = claims(&bench, "third", url, &shares(vec![id("routes")])).await;
            if matches!(other.next().await, Ok(Update::Arbitration(_))) {
                return;
            }
        }
    };
    let patience = std::time::Duration::from_secs(5);
    tokio::time::timeout(patience, last).await.unwrap();
}

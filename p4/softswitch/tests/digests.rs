//! Digests that a program sends from several places.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use p4runtime::client::{Config, Session, Streams};
use p4runtime::entry;
use p4runtime::info::Index;
use p4runtime::v1::{P4Data, digest_entry, p4_data::Data};
use softswitch::server::{Server, ServerConfig};
use softswitch::{SharedSwitch, Switch, SwitchConfig};

const PROGRAM: &str = include_str!("programs/digests/digests.json");
const INFO: &str = include_str!("programs/digests/digests.p4info.txtpb");

fn bytes(data: &P4Data) -> Vec<u8> {
    match data.data.as_ref().unwrap() {
        Data::Bitstring(bytes) => bytes.clone(),
        other => panic!("{other:?}"),
    }
}

/// The next digest's type, and the fields of its one message.
async fn next(index: &Index, streams: &mut Streams) -> (String, Vec<Vec<u8>>) {
    let wait = tokio::time::timeout(Duration::from_secs(10), streams.digests.recv());
    let list = wait.await.expect("a digest comes").unwrap();
    let name = ["learn_t", "seen_t"].into_iter().find(|name| {
        let digest = index.digest(*name).unwrap();
        digest.preamble.as_ref().unwrap().id == list.digest_id
    });
    let [message] = list.data.as_slice() else {
        panic!("{list:?}")
    };
    let fields = match message.data.as_ref().unwrap() {
        Data::Struct(fields) => fields.members.iter().map(bytes).collect(),
        _ => vec![bytes(message)],
    };
    (name.unwrap().to_owned(), fields)
}

#[tokio::test]
async fn every_place_and_the_last_of_two() {
    let switch: SharedSwitch = SharedSwitch::new(Switch::new(SwitchConfig {
        device_id: 1,
        ..SwitchConfig::default()
    }));
    let server = Server::new(switch.clone(), ServerConfig::default());
    let index = Index::parse_text(INFO).unwrap();
    let program = PROGRAM.as_bytes().to_vec();
    let info = index.p4info().clone();
    server.install(info, program).await.unwrap();
    let opened = Session::open(server.channel(), Config::new(1, 1)).await;
    let (session, mut streams) = opened.unwrap();
    for name in ["learn_t", "seen_t"] {
        let config = digest_entry::Config {
            max_list_size: 1,
            ..Default::default()
        };
        let entry = index.digest_entry(name, config).unwrap();
        session.write_all(vec![entry::insert(entry)]).await.unwrap();
    }
    for (what, name, fields) in [
        (1, "learn_t", vec![vec![0x50], vec![7]]),
        (2, "learn_t", vec![vec![0x51], vec![7]]),
        (3, "learn_t", vec![vec![0x50], vec![9]]),
        (4, "seen_t", vec![vec![4]]),
    ] {
        let packet = [what, 0, 0, 0, 0, 0, 0x50];
        switch.lock().ingress(7, &packet, 0);
        server.poll_cpu();
        let digest = next(&index, &mut streams).await;
        assert_eq!(digest, (name.to_owned(), fields), "{what}");
    }
}

//! The controller's way to an emulated switch and back, over P4Runtime in memory.
#![allow(clippy::unwrap_used)]

use lab::emulator::{Emulator, EmulatorConfig, Notice};
use p4runtime::client::{Config, Pipeline, Session};
use p4runtime::entry::{Value, insert};
use p4runtime::info::Index;
use topology::{Clos, HostCounts, NicId, SwitchId, generate};

fn artefact(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/compiled/");
    std::fs::read(format!("{folder}{name}")).unwrap()
}

/// A broadcast ARP request, padded to the shortest frame.
fn arp() -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend_from_slice(&[0x0A, 0, 0, 0, 0, 1, 0x08, 0x06]);
    frame.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    frame.resize(60, 0);
    frame
}

#[tokio::test]
async fn packets_go_in_and_out_and_virtual_time_waits() {
    let topology = generate(&Clos {
        segments: 1,
        hosts: HostCounts::Each(2),
        rails: 1,
        spines: Some(1),
        ..Clos::default()
    })
    .unwrap();
    let mut emulator = Emulator::new(&topology, EmulatorConfig::new(&topology, 1));
    let fabric = emulator.serve("test");
    assert_eq!(fabric.switches.len(), 2);
    let leaf = &fabric.switches[0];
    let channel = leaf.channel().await.unwrap();
    let (session, mut streams) = Session::open(channel, Config::new(leaf.device_id, 1))
        .await
        .unwrap();
    let p4info = String::from_utf8(artefact("fabric.p4info.txtpb")).unwrap();
    let index = Index::parse_text(&p4info).unwrap();
    let pipeline = Pipeline::new(index.p4info().clone(), artefact("fabric.json"));
    session.verify_and_commit(&pipeline).await.unwrap();
    let nic = topology[NicId(0)].ports().next().unwrap();
    assert_eq!(nic.leaf.switch, SwitchId(0));
    let port = u64::from(nic.leaf.port);
    let vrf = ("vrf", u64::from(topology.vrf()));
    let entries = [
        index
            .table("port_config")
            .unwrap()
            .entry()
            .exact("ingress_port", port)
            .action("host_port", [vrf, ("la", 1)]),
        index
            .table("trap")
            .unwrap()
            .entry()
            .ternary("ether_type", 0x0806u64, 0xFFFFu64)
            .priority(1)
            .action("punt", [("reason", 1u64)]),
    ];
    let updates = entries.map(|entry| insert(entry.build().unwrap()));
    session.write_all(updates.into()).await.unwrap();
    assert_eq!(
        emulator.now(),
        0,
        "control operations cost no virtual time by themselves"
    );

    emulator.send_frame(NicId(0), 0, &arp());
    let notice = emulator.run_until_notice(1_000_000).unwrap();
    // 84 bytes at 400 Gb/s, 500 ns of cable, 500 ns in the switch.
    let at = 1 + 500 + 500;
    let switch = SwitchId(0);
    assert_eq!(notice, Notice::PacketIn { switch, at });
    let packet = streams.packets.recv().await.unwrap();
    assert_eq!(packet.payload, arp());
    let fields = index.packet_in_fields(&packet).unwrap();
    let expected = [
        ("ingress_port", Value::from(port)),
        ("reason", Value::from(1u64)),
    ];
    assert_eq!(fields[..2], expected);

    let header = [("egress_port", port), ("submit_to_ingress", 0), ("pad", 0)];
    session
        .packet_out(index.packet_out(arp(), header).unwrap())
        .await
        .unwrap();
    // The stream has no answer to wait for; a call on the same connection comes after it.
    session.pipeline_cookie().await.unwrap();
    let notice = emulator.run_until_notice(2_000_000).unwrap();
    assert_eq!(
        notice,
        Notice::Frame {
            nic: NicId(0),
            at: 2 * at - 500
        }
    );
    assert_eq!(emulator.take_frames(NicId(0)), [arp()]);

    session.close().await;
    fabric.tear_down().await;
    assert!(emulator.run_until_notice(3_000_000).is_none());
}

//! Entries for the fabric program, written straight into the switches' cores: two tiers, all uplinks in one group.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "every test file uses a part of it"
)]

use std::sync::Arc;

use lab::emulator::Emulator;
use softswitch::control::{ActionCall, EntryAction, MatchField, TableEntry};
use softswitch::{Program, Switch, Value};
use topology::{End, MacAddr, NicId, Policy, SwitchId, Tier, Topology};

/// The compiled fabric program.
pub(crate) fn program() -> Arc<Program> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/compiled/fabric.json");
    Arc::new(Program::load(&std::fs::read(path).unwrap()).unwrap())
}

/// An entry writer for one switch.
pub(crate) struct Writer<'a> {
    pub(crate) switch: &'a mut Switch,
    pub(crate) program: Arc<Program>,
}

pub(crate) fn exact(value: impl Into<u128>) -> MatchField {
    MatchField::Exact(Value::new(value.into()))
}

pub(crate) fn lpm(value: impl Into<u128>, prefix_len: u32) -> MatchField {
    MatchField::Lpm {
        value: Value::new(value.into()),
        prefix_len,
    }
}

impl Writer<'_> {
    pub(crate) fn add(&mut self, table: &str, key: Vec<MatchField>, action: &str, params: &[u128]) {
        let (control, _) = table.rsplit_once('.').unwrap();
        let table = self.program.table_id(table).unwrap();
        let action = self
            .program
            .table_action(table, &format!("{control}.{action}"))
            .unwrap();
        let call = ActionCall {
            action,
            params: params.iter().map(|p| Value::new(*p)).collect(),
        };
        let entry = TableEntry {
            key,
            priority: 0,
            action: EntryAction::Call(call),
            idle_timeout: 0,
            metadata: Vec::new(),
        };
        self.switch.table_insert(table, &entry, 0).unwrap();
    }

    fn nexthop(&mut self, port: u16, src: MacAddr, dst: MacAddr) {
        let params = [port.into(), src.to_u64().into(), dst.to_u64().into()];
        self.add(
            "FabricIngress.nexthop.nexthop",
            vec![exact(port)],
            "forward",
            &params,
        );
    }
}

/// Installs the program and the entries of plain ECMP on every switch.
pub(crate) fn install(
    emulator: &Emulator,
    topology: &Topology,
    program: &Arc<Program>,
    frame_bytes: u64,
) {
    for id in topology.switch_ids() {
        let mut switch = emulator.switch(id).unwrap().lock();
        switch.install(program.clone());
        let mut writer = Writer {
            switch: &mut switch,
            program: program.clone(),
        };
        ports(&mut writer, topology, id, frame_bytes);
        routes(&mut writer, topology, id);
    }
}

fn ports(writer: &mut Writer<'_>, topology: &Topology, id: SwitchId, frame_bytes: u64) {
    let vrf = u128::from(topology.vrf());
    let policy: &Policy = topology.policy();
    for mac in topology.station_macs(id) {
        writer.add(
            "FabricIngress.station.station",
            vec![exact(mac.to_u64())],
            "accept",
            &[],
        );
    }
    for (dscp, tc) in &policy.dscp {
        let key = vec![exact(*dscp)];
        writer.add(
            "FabricIngress.classify.dscp_to_tc",
            key,
            "set_tc",
            &[(*tc).into()],
        );
    }
    for (tc, queue) in &policy.queues {
        let key = vec![exact(*tc)];
        writer.add(
            "FabricIngress.classify.tc_to_queue",
            key,
            "set_queue",
            &[(*queue).into()],
        );
    }
    for neighbour in topology.neighbours(id) {
        let port = neighbour.port;
        let key = vec![exact(port)];
        let table = "FabricIngress.check.port_config";
        let mac = match neighbour.far {
            End::Nic(far) => {
                let nic = &topology[far.nic];
                let la = topology[nic.la].number;
                writer.add(table, key, "host_port", &[vrf, la.into()]);
                nic.mac
            }
            End::Switch(far) => {
                writer.add(table, key, "fabric_port", &[vrf]);
                topology[far.switch].mac
            }
        };
        writer.nexthop(port, topology[id].mac, mac);
        let speed = topology[neighbour.link].speed_bps;
        if let Some(profile) = policy.ecn_for(speed) {
            let pmax = u128::from(profile.pmax_ppm) * 65_535 / 1_000_000;
            let packets = |bytes: u64| u128::from(bytes / frame_bytes);
            let params = [packets(profile.kmin), packets(profile.kmax), pmax, 0];
            let key = vec![exact(port), exact(policy.queues[&3])];
            writer.add("FabricEgress.ecn.ecn_profile", key, "ecn_mark", &params);
        }
    }
}

fn routes(writer: &mut Writer<'_>, topology: &Topology, id: SwitchId) {
    let vrf = topology.vrf();
    let here = topology.la_of_switch(id);
    let up: Vec<u16> = topology.uplinks(id).map(|n| n.port).collect();
    group(writer, 1, topology.seed(id), &up);
    for la in topology.la_ids() {
        let spec = &topology[la];
        if here == Some(la) {
            for nic in &spec.nics {
                local(writer, topology, id, *nic);
            }
        } else {
            // A leaf sends up what is not its own; a spine sends down to the leaf.
            let group_id = match topology[id].tier {
                Tier::Leaf => 1,
                _ => {
                    let down: Vec<u16> = (topology.downlinks(id))
                        .filter(|n| matches!(n.far, End::Switch(far) if spec.leaves.contains(&far.switch)))
                        .map(|n| n.port)
                        .collect();
                    group(writer, 100 + spec.number, topology.seed(id), &down);
                    100 + spec.number
                }
            };
            let v4 = vec![
                exact(vrf),
                lpm(u32::from(spec.v4.network()), spec.v4.prefix().into()),
            ];
            writer.add(
                "FabricIngress.route.route_v4",
                v4,
                "route_group",
                &[group_id.into()],
            );
            let v6 = vec![
                exact(vrf),
                lpm(u128::from(spec.v6.network()), spec.v6.prefix().into()),
            ];
            writer.add(
                "FabricIngress.route.route_v6",
                v6,
                "route_group",
                &[group_id.into()],
            );
        }
        let mapped = u128::from(spec.v4.network().to_ipv6_mapped());
        for (value, length) in [
            (mapped, 96 + u32::from(spec.v4.prefix())),
            (u128::from(spec.v6.network()), u32::from(spec.v6.prefix())),
        ] {
            let key = vec![exact(vrf), lpm(value, length)];
            writer.add(
                "FabricIngress.domain.la_of",
                key,
                "set_dst_la",
                &[spec.number.into()],
            );
        }
    }
}

fn local(writer: &mut Writer<'_>, topology: &Topology, id: SwitchId, nic: NicId) {
    let spec = &topology[nic];
    let Some(port) = spec.ports().find(|port| port.leaf.switch == id) else {
        return;
    };
    let nexthop = [port.leaf.port.into()];
    let v4 = vec![exact(topology.vrf()), lpm(u32::from(spec.v4), 32)];
    writer.add(
        "FabricIngress.route.route_v4",
        v4,
        "route_nexthop",
        &nexthop,
    );
    let v6 = vec![exact(topology.vrf()), lpm(u128::from(spec.v6), 128)];
    writer.add(
        "FabricIngress.route.route_v6",
        v6,
        "route_nexthop",
        &nexthop,
    );
}

fn group(writer: &mut Writer<'_>, id: u32, seed: u32, ports: &[u16]) {
    if ports.is_empty() {
        return;
    }
    let params = [ports.len() as u128, seed.into()];
    writer.add(
        "FabricIngress.spread.group",
        vec![exact(id)],
        "set_group",
        &params,
    );
    for (bucket, port) in ports.iter().enumerate() {
        let key = vec![exact(id), exact(bucket as u32)];
        let table = "FabricIngress.spread.group_bucket";
        writer.add(table, key, "bucket_nexthop", &[(*port).into()]);
    }
}

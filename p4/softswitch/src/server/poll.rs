//! What the switch has for its controllers: packet-ins, digests, idle timeouts.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use p4runtime::v1::{self, stream_message_response::Update};

use super::digests::DigestList;
use super::entries::Notes;
use super::pipeline::Pipeline;
use super::read::describe_entry;
use super::state::lock;
use super::{Server, Shared};
use crate::control::DigestMessage;
use crate::ids::Port;

/// How often idle entries are reported at most, and the shortest time until one is reported
/// again, ns.
const IDLE_PAUSE: u64 = 10_000_000;
/// Idle entries per hold of the switch, and per message.
const IDLE_BATCH: usize = 1024;

impl Server {
    /// Takes what is in the CPU port's queues, and new digests, and hands it to the primaries.
    /// Never waits for a client. Returns how many packets there were.
    ///
    /// The switch must not be locked by the caller.
    pub fn poll_cpu(&self) -> usize {
        let shared = &*self.shared;
        let now = shared.now();
        let (packets, digests) = {
            let mut switch = shared.switch.lock();
            let mut packets = Vec::new();
            if let Some(port) = shared.cpu_port {
                while let Some(packet) = switch.dequeue(port, now) {
                    packets.push(packet);
                }
            }
            (packets, switch.take_digests())
        };
        let Some(target) = shared.live() else {
            return packets.len();
        };
        if !packets.is_empty() {
            let mut clients = lock(&shared.clients);
            for packet in &packets {
                let message = match &target.pipeline.packet_in {
                    Some(header) => header.decode(&packet.bytes),
                    None => v1::PacketIn {
                        payload: packet.bytes.clone(),
                        metadata: Vec::new(),
                    },
                };
                let metadata = message.metadata.clone();
                clients.send_to_primaries(
                    |scope| scope.receives_packet_in(&metadata),
                    &Update::Packet(message),
                );
            }
            drop(clients);
            shared
                .counts
                .packet_ins
                .fetch_add(packets.len() as u64, Ordering::Relaxed);
            let count = packets.len();
            let mut switch = shared.switch.lock();
            packets
                .into_iter()
                .for_each(|packet| switch.recycle(packet));
            drop(switch);
            shared.take_digests(&target.pipeline, digests, now);
            return count;
        }
        shared.take_digests(&target.pipeline, digests, now);
        0
    }

    /// Sends the digest lists and idle timeouts that are due. Returns when to call again, ns of
    /// the clock; `None` if nothing can become due before packets or writes come.
    pub fn tick(&self) -> Option<u64> {
        let shared = &*self.shared;
        let now = shared.now();
        let target = shared.live()?;
        let (lists, next) = {
            let mut state = lock(&shared.state);
            (state.digests.due(now), state.digests.next_deadline())
        };
        shared.send_digests(&target.pipeline, lists);
        if !target.pipeline.tables.values().any(|t| t.idle_timeout) {
            return next;
        }
        while shared.send_idle(&target.pipeline, now) {}
        let idle = shared.switch.lock().next_idle();
        // Not for every entry on its own.
        let idle = idle.map(|at| at.max(now.saturating_add(IDLE_PAUSE)));
        next.into_iter().chain(idle).min()
    }

    /// Tells the switch that a port went up or down: selectors leave out members that watch it,
    /// multicast groups and clone sessions move to their backup replicas or back.
    pub fn set_port_up(&self, port: Port, up: bool) {
        let shared = &*self.shared;
        let mut state = lock(&shared.state);
        let mut switch = shared.switch.lock();
        switch.set_port_up(port, up);
        let changed = if up {
            state.down.remove(&port)
        } else {
            state.down.insert(port)
        };
        if !changed {
            return;
        }
        state.settle_backups(&mut switch);
    }
}

impl Shared {
    fn take_digests(&self, pipeline: &Pipeline, digests: Vec<DigestMessage>, now: u64) {
        if digests.is_empty() {
            return;
        }
        let mut lists = Vec::new();
        {
            let mut state = lock(&self.state);
            for message in digests {
                let id = pipeline
                    .digest_ids
                    .get(message.digest.index())
                    .copied()
                    .flatten();
                lists.extend(id.and_then(|id| state.digests.push(id, message.values, now)));
            }
        }
        self.send_digests(pipeline, lists);
    }

    fn send_digests(&self, pipeline: &Pipeline, lists: Vec<DigestList>) {
        for list in lists {
            let Some(digest) = pipeline.digests.get(&list.digest_id) else {
                continue;
            };
            let data = list
                .data
                .into_iter()
                .map(|m| digest.data.encode(&mut m.into_iter()));
            let message = v1::DigestList {
                digest_id: list.digest_id,
                list_id: list.list_id,
                data: data.collect(),
                timestamp: self.timestamp(),
            };
            self.counts.digest_lists.fetch_add(1, Ordering::Relaxed);
            lock(&self.clients).send_to_primaries(
                |scope| scope.includes(list.digest_id),
                &Update::Digest(message),
            );
        }
    }

    /// Reports a batch of idle entries; whether there may be more.
    fn send_idle(&self, pipeline: &Pipeline, now: u64) -> bool {
        let mut by_table: BTreeMap<u32, Vec<v1::TableEntry>> = BTreeMap::new();
        let found = {
            let mut switch = self.switch.lock();
            let found = switch.take_idle(now, IDLE_PAUSE, IDLE_BATCH);
            for (table, handle) in &found {
                let id = pipeline.table_ids.get(table.index()).copied().flatten();
                let Some(table) = id.and_then(|id| pipeline.tables.get(&id)) else {
                    continue;
                };
                if let Ok(view) = switch.table_get(table.core, *handle) {
                    let notes = Notes::decode(&view.entry.metadata);
                    let entry = describe_entry(pipeline, table, &view, notes);
                    by_table.entry(table.id).or_default().push(entry);
                }
            }
            found.len()
        };
        for (id, table_entry) in by_table {
            let message = v1::IdleTimeoutNotification {
                table_entry,
                timestamp: self.timestamp(),
            };
            lock(&self.clients).send_to_primaries(
                |scope| scope.includes(id),
                &Update::IdleTimeoutNotification(message),
            );
        }
        found == IDLE_BATCH
    }

    fn timestamp(&self) -> i64 {
        i64::try_from(self.config.clock.epoch()).unwrap_or(i64::MAX)
    }
}

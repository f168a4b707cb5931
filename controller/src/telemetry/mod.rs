//! What the data plane counted, and what it tells by in-band telemetry ([`int`]): how much crossed LA domains, how even the uplinks are, what was marked
//! and what was dropped, and why.

mod counters;
pub mod int;

pub use counters::{Count, DropReason, Locality, SwitchCounters};

use crate::routing::LinkSet;
use std::collections::BTreeMap;
use topology::{SwitchId, Tier, Topology};

/// The counters of all switches at one moment, or between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// By switch, as the topology numbers them.
    pub switches: Vec<SwitchCounters>,
}

/// Load of the links from leaves upwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UplinkLoad {
    /// Of the busiest, in ns of its time.
    pub max_ns: f64,
    /// Mean of all that are up, in ns of their time.
    pub mean_ns: f64,
}

impl UplinkLoad {
    /// Busiest over mean: 1 is even. 0 if nothing was sent.
    #[must_use]
    pub fn max_over_mean(&self) -> f64 {
        if self.mean_ns > 0.0 {
            self.max_ns / self.mean_ns
        } else {
            0.0
        }
    }
}

impl Telemetry {
    /// What was counted after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let none = SwitchCounters::default();
        let before = |i: usize| earlier.switches.get(i).unwrap_or(&none);
        let switches = self
            .switches
            .iter()
            .enumerate()
            .map(|(i, now)| now.since(before(i)));
        Self {
            switches: switches.collect(),
        }
    }

    /// Packets and bytes of one class of locality, of all switches.
    #[must_use]
    pub fn locality(&self, class: Locality) -> Count {
        let all = self.switches.iter().flat_map(|s| &s.locality);
        all.filter(|((_, c), _)| *c == class)
            .map(|(_, count)| *count)
            .sum()
    }

    /// Cross-LA share X: bytes that left their LA domain over bytes that entered the fabric. `None` if
    /// nothing entered.
    #[must_use]
    pub fn cross_la_share(&self) -> Option<f64> {
        let crossing = self.locality(Locality::Crossing).bytes;
        let all = crossing + self.locality(Locality::Local).bytes;
        (all > 0).then(|| crossing as f64 / all as f64)
    }

    /// Packets marked CE, of all switches.
    #[must_use]
    pub fn marks(&self) -> u64 {
        self.switches
            .iter()
            .flat_map(|s| s.queue_marks.values())
            .map(|c| c.packets)
            .sum()
    }

    /// Packets dropped by the pipelines, by reason. What a full queue drops never reaches the egress
    /// pipeline and is not here.
    #[must_use]
    pub fn drops(&self) -> BTreeMap<DropReason, u64> {
        let mut drops = BTreeMap::new();
        for ((_, reason), count) in self.switches.iter().flat_map(|s| &s.drops) {
            *drops.entry(*reason).or_default() += count.packets;
        }
        drops
    }

    /// Load of the uplinks of leaves that are not in `down`.
    #[must_use]
    pub fn uplinks(&self, topology: &Topology, down: &LinkSet) -> UplinkLoad {
        let mut loads = Vec::new();
        for leaf in topology.tier(Tier::Leaf) {
            for uplink in topology.uplinks(leaf).filter(|n| !down.contains(n.link.0)) {
                let bytes = self.sent(leaf, uplink.port).bytes;
                loads.push(bytes as f64 * 8e9 / topology[uplink.link].speed_bps as f64);
            }
        }
        UplinkLoad {
            max_ns: loads.iter().copied().fold(0.0, f64::max),
            mean_ns: loads.iter().sum::<f64>() / (loads.len().max(1)) as f64,
        }
    }

    /// What a switch sent out of a port.
    #[must_use]
    pub fn sent(&self, switch: SwitchId, port: u16) -> Count {
        let counters = self.switches.get(switch.index());
        counters
            .and_then(|c| c.port_tx.get(&port))
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use p4runtime::info::Index;
    use p4runtime::v1;
    use topology::{Clos, generate};

    fn index() -> Index {
        let text = include_str!("../../../p4/compiled/fabric.p4info.txtpb");
        Index::parse_text(text).unwrap()
    }

    fn cell(index: &Index, name: &str, at: i64, packets: i64, bytes: i64) -> v1::Entity {
        let entry = v1::CounterEntry {
            counter_id: index.counter(name).unwrap().preamble.as_ref().unwrap().id,
            index: Some(v1::Index { index: at }),
            data: Some(v1::CounterData {
                byte_count: bytes,
                packet_count: packets,
            }),
        };
        v1::Entity {
            entity: Some(v1::entity::Entity::CounterEntry(entry)),
        }
    }

    #[test]
    fn cells_are_taken_apart_as_the_pipeline_numbers_them() {
        let index = index();
        let counters = SwitchCounters::from_entities(
            &index,
            &[
                cell(&index, "locality", 5 << 2 | 1, 3, 300),
                cell(&index, "locality", 5 << 2, 1, 100),
                cell(&index, "drops", 7 << 5 | 5, 2, 20),
                cell(&index, "drops", 7 << 5 | 31, 2, 20),
                cell(&index, "queue_marks", 9 << 3 | 3, 4, 40),
                cell(&index, "port_tx", 9, 8, 80),
                cell(&index, "port_rx", 9, 0, 0),
            ],
        );
        let telemetry = Telemetry {
            switches: vec![counters.clone()],
        };
        assert_eq!(telemetry.cross_la_share(), Some(0.75));
        assert_eq!(telemetry.marks(), 4);
        assert_eq!(
            telemetry.drops(),
            BTreeMap::from([(DropReason::NoRoute, 2)])
        );
        assert_eq!(
            telemetry.sent(SwitchId(0), 9),
            Count {
                packets: 8,
                bytes: 80
            }
        );
        assert!(counters.port_rx.is_empty());
        assert_eq!(SwitchCounters::patterns(&index).unwrap().len(), 6);
    }

    #[test]
    fn a_difference_starts_from_zero_after_a_restart() {
        let of = |bytes| SwitchCounters {
            port_tx: [(1, Count { packets: 1, bytes })].into(),
            ..Default::default()
        };
        assert_eq!(of(50).since(&of(20)).port_tx[&1].bytes, 30);
        assert_eq!(of(20).since(&of(50)).port_tx[&1].bytes, 20);
        assert!(of(20).since(&of(20)).port_tx.is_empty());
    }

    #[test]
    fn uplink_load_is_max_over_mean_of_what_is_up() {
        let topology = generate(&Clos::default()).unwrap();
        let leaf = topology.tier(Tier::Leaf).next().unwrap();
        let uplinks: Vec<_> = topology.uplinks(leaf).collect();
        let mut telemetry = Telemetry {
            switches: vec![SwitchCounters::default(); topology.switches().len()],
        };
        for other in topology.tier(Tier::Leaf) {
            for uplink in topology.uplinks(other) {
                let count = Count {
                    packets: 1,
                    bytes: 1000,
                };
                telemetry.switches[other.index()]
                    .port_tx
                    .insert(uplink.port, count);
            }
        }
        assert!(
            (telemetry
                .uplinks(&topology, &LinkSet::none())
                .max_over_mean()
                - 1.0)
                .abs()
                < 1e-9
        );
        let busy = Count {
            packets: 1,
            bytes: 2000,
        };
        telemetry.switches[leaf.index()]
            .port_tx
            .insert(uplinks[0].port, busy);
        assert!(
            telemetry
                .uplinks(&topology, &LinkSet::none())
                .max_over_mean()
                > 1.9
        );
        let without = LinkSet::from_iter([uplinks[0].link.0]);
        assert!((telemetry.uplinks(&topology, &without).max_over_mean() - 1.0).abs() < 1e-9);
        assert_eq!(Telemetry::default().cross_la_share(), None);
    }
}

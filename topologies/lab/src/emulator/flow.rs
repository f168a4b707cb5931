//! Flows and schedules: what traffic there is, as values.
//!
//! A schedule is a set of flows (queue pairs with a direction) and messages on them. A message is posted
//! when all messages it comes after have been received, so collectives are graphs of messages; see
//! [`collective`](super::collective) for rings.

use rustc_hash::FxHashMap;
use topology::NicId;

use super::roce;

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// One flow: RDMA WRITEs from a queue pair of one NIC to a queue pair of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// The sending NIC.
    pub src: NicId,
    /// The receiving NIC.
    pub dst: NicId,
    /// Queue pair number at the sender, 24 bits.
    pub src_qp: u32,
    /// Queue pair number at the receiver: the BTH destination QP of the data.
    pub dst_qp: u32,
    /// UDP source port in both directions.
    pub udp_source_port: u16,
    /// Bytes of payload; of all its messages when it belongs to a schedule.
    pub bytes: u64,
    /// Port of the sending NIC, while that is up.
    pub src_port: u8,
    /// Port of the receiving NIC from which acknowledgements go, while that is up.
    pub dst_port: u8,
    /// Rate not to exceed, bits/s on the wire; `None`: the port's.
    pub rate_bps: Option<u64>,
    /// Network protocol.
    pub family: Family,
}

impl FlowSpec {
    /// A flow between two NICs with new queue pairs, over IPv4 and their first ports, as fast as it goes. The UDP
    /// source port is what a kernel derives from the queue pair numbers.
    pub fn new(src: NicId, dst: NicId, bytes: u64, numbers: &mut QueuePairNumbers) -> Self {
        let (src_qp, dst_qp) = (numbers.next(src), numbers.next(dst));
        Self {
            src,
            dst,
            src_qp,
            dst_qp,
            udp_source_port: roce::udp_source_port(src_qp, dst_qp),
            bytes,
            src_port: 0,
            dst_port: 0,
            rate_bps: None,
            family: Family::V4,
        }
    }
}

/// Gives out queue pair numbers: per NIC one after another from a start that the seed decides.
#[derive(Clone, Debug)]
pub struct QueuePairNumbers {
    seed: u64,
    next: FxHashMap<NicId, u32>,
}

impl QueuePairNumbers {
    /// Numbers that depend on `seed` alone.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            next: FxHashMap::default(),
        }
    }

    /// A number not given out before for this NIC.
    pub fn next(&mut self, nic: NicId) -> u32 {
        let start = (mix(self.seed, u64::from(nic.0)) & 0x0F_FFFF) as u32;
        let next = self.next.entry(nic).or_insert(start);
        // Numbers 0 and 1 are the management queue pairs; stay clear of the reserved ones below 0x100.
        let number = 0x100 + *next % 0xFF_FE00;
        *next += 1;
        number
    }
}

/// A 64-bit mix of two numbers (SplitMix64's finalizer).
pub(super) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a
        .wrapping_add(b.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A message of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Index of its flow.
    pub flow: u32,
    /// Payload bytes, at most [`LONGEST_MESSAGE`].
    pub bytes: u64,
    /// A number that groups messages in results: the step of a collective.
    pub step: u32,
}

/// The longest RDMA message, bytes.
pub const LONGEST_MESSAGE: u64 = 1 << 31;

/// Flows, messages on them, and which come after which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    flows: Vec<FlowSpec>,
    messages: Vec<Message>,
    /// `after[after_start[m]..after_start[m + 1]]` are the messages that `m` comes after.
    after: Vec<u32>,
    after_start: Vec<u32>,
    /// Time between the last of these being received and the message being posted, ns.
    pub overhead_ns: u64,
}

impl Schedule {
    /// A schedule without flows.
    #[must_use]
    pub fn new() -> Self {
        Self {
            after_start: vec![0],
            ..Self::default()
        }
    }

    /// One message per flow, all at once.
    #[must_use]
    pub fn point_to_point(flows: impl IntoIterator<Item = FlowSpec>) -> Self {
        let mut schedule = Self::new();
        for flow in flows {
            let bytes = flow.bytes;
            let index = schedule.add_flow(FlowSpec { bytes: 0, ..flow });
            let mut left = bytes;
            loop {
                let part = left.min(LONGEST_MESSAGE);
                schedule.add_message(index, part, 0, &[]);
                left -= part;
                if left == 0 {
                    break;
                }
            }
        }
        schedule
    }

    /// Adds a flow and gives its index. Its bytes grow by those of its messages.
    pub fn add_flow(&mut self, flow: FlowSpec) -> u32 {
        self.flows.push(flow);
        self.flows.len() as u32 - 1
    }

    /// Adds a message that is posted when those at `after` have been received, and gives its index. References to
    /// flows or messages that are not there yet are left out: the graph can have no cycle.
    pub fn add_message(&mut self, flow: u32, bytes: u64, step: u32, after: &[u32]) -> u32 {
        let index = self.messages.len() as u32;
        if let Some(spec) = self.flows.get_mut(flow as usize) {
            spec.bytes += bytes;
        }
        self.messages.push(Message {
            flow,
            bytes: bytes.min(LONGEST_MESSAGE),
            step,
        });
        self.after
            .extend(after.iter().copied().filter(|earlier| *earlier < index));
        self.after_start.push(self.after.len() as u32);
        index
    }

    /// The flows.
    #[must_use]
    pub fn flows(&self) -> &[FlowSpec] {
        &self.flows
    }

    /// The flows, to set ports and rates; changing NICs or queue pair numbers is changing the schedule.
    pub fn flows_mut(&mut self) -> &mut [FlowSpec] {
        &mut self.flows
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What message `index` comes after.
    #[must_use]
    pub fn after(&self, index: u32) -> &[u32] {
        let at = |i: u32| {
            self.after_start
                .get(i as usize)
                .map_or(self.after.len(), |v| *v as usize)
        };
        &self.after[at(index)..at(index + 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_per_nic_and_depend_on_the_seed() {
        let mut numbers = QueuePairNumbers::new(7);
        let first: Vec<_> = (0..100).map(|_| numbers.next(NicId(3))).collect();
        let mut unique = first.clone();
        unique.dedup();
        assert_eq!(unique.len(), 100);
        assert!(first.iter().all(|n| (0x100..1 << 24).contains(n)));
        assert_ne!(first[0], QueuePairNumbers::new(8).next(NicId(3)));
        assert_eq!(first[0], QueuePairNumbers::new(7).next(NicId(3)));
    }

    #[test]
    fn long_flows_are_cut_into_messages() {
        let mut numbers = QueuePairNumbers::new(0);
        let long = FlowSpec::new(NicId(0), NicId(1), 5 << 30, &mut numbers);
        let empty = FlowSpec::new(NicId(0), NicId(1), 0, &mut numbers);
        let schedule = Schedule::point_to_point([long, empty]);
        let sizes: Vec<_> = schedule.messages().iter().map(|m| m.bytes >> 30).collect();
        assert_eq!(sizes, [2, 2, 1, 0]);
        assert_eq!(schedule.flows()[0].bytes, 5 << 30);
    }

    #[test]
    fn no_message_comes_after_a_later_one() {
        let mut schedule = Schedule::new();
        let mut numbers = QueuePairNumbers::new(0);
        let flow = schedule.add_flow(FlowSpec::new(NicId(0), NicId(1), 0, &mut numbers));
        schedule.add_message(flow, 1, 0, &[0, 5]);
        let second = schedule.add_message(flow, 1, 1, &[0, 1]);
        assert_eq!(
            (schedule.after(0), schedule.after(second)),
            (&[][..], &[0][..])
        );
    }
}

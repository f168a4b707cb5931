//! Schedules of trees, of two levels, and of rings by the bytes of their edges.
//!
//! [`Builder`] collects any number of them into one [`Schedule`]. Arrays are cut into slices that travel on
//! their own, so that a member passes on the beginning while the end is still arriving.

use rustc_hash::FxHashMap;
use topology::NicId;

use super::collective::share;
use super::flow::{FlowSpec, QueuePairNumbers, Schedule};

/// A piece of an array and, for every domain, the position of the member that sums it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes.
    pub bytes: u64,
    /// By domain.
    pub owners: Vec<u32>,
}

/// Collects collectives into one schedule.
#[derive(Debug)]
pub struct Builder<'n> {
    schedule: Schedule,
    numbers: &'n mut QueuePairNumbers,
    slice_bytes: u64,
}

impl<'n> Builder<'n> {
    /// An empty schedule whose slices are at most this large, bytes.
    pub fn new(numbers: &'n mut QueuePairNumbers, slice_bytes: u64) -> Self {
        Self {
            schedule: Schedule::new(),
            numbers,
            slice_bytes: slice_bytes.max(1),
        }
    }

    /// Number of flows so far.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.schedule.flows().len()
    }

    /// The schedule.
    #[must_use]
    pub fn finish(self) -> Schedule {
        self.schedule
    }

    fn flow(&mut self, src: NicId, dst: NicId) -> u32 {
        self.schedule
            .add_flow(FlowSpec::new(src, dst, 0, self.numbers))
    }

    /// Bytes from one NIC to another, in slices without order among them.
    pub fn send(&mut self, src: NicId, dst: NicId, bytes: u64) {
        let flow = self.flow(src, dst);
        let slices = bytes.div_ceil(super::flow::LONGEST_MESSAGE).max(1);
        for slice in 0..slices {
            self.schedule
                .add_message(flow, share(bytes, slices, slice), 0, &[]);
        }
    }

    /// A ring whose member `i` sends `edges[i]` bytes to the next in `steps` steps; what it sends in a step
    /// waits for what it received in the step before.
    pub fn ring(&mut self, nics: &[NicId], edges: &[u64], steps: u32) {
        let flows: Vec<u32> = nics
            .iter()
            .zip(nics.iter().cycle().skip(1))
            .map(|(src, dst)| self.flow(*src, *dst))
            .collect();
        let n = flows.len();
        let steps = u64::from(steps.max(1));
        let largest = edges.iter().copied().max().unwrap_or(0).div_ceil(steps);
        let slices = largest.div_ceil(self.slice_bytes).max(1);
        let mut previous: Vec<Vec<u32>> = Vec::new();
        for step in 0..steps {
            let sent = (0..n).map(|member| {
                let chunk = share(edges.get(member).copied().unwrap_or(0), steps, step);
                let before = previous.get((member + n - 1) % n);
                (0..slices)
                    .map(|slice| {
                        let after = before.map_or(&[][..], |sent: &Vec<u32>| {
                            std::slice::from_ref(&sent[slice as usize])
                        });
                        let size = share(chunk, slices, slice);
                        self.schedule
                            .add_message(flows[member], size, step as u32, after)
                    })
                    .collect()
            });
            previous = sent.collect();
        }
    }

    /// A reduction of `bytes` up a tree and the broadcast of the sum down it. `parents` has the position of
    /// each member's parent, `None` for the root.
    pub fn tree(&mut self, nics: &[NicId], parents: &[Option<u32>], bytes: u64) {
        let order = from_leaves(parents);
        let mut up = vec![None; nics.len()];
        let mut down = vec![None; nics.len()];
        for (child, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                up[child] = Some(self.flow(nics[child], nics[*parent as usize]));
                down[child] = Some(self.flow(nics[*parent as usize], nics[child]));
            }
        }
        let slices = bytes.div_ceil(self.slice_bytes).max(1);
        for slice in 0..slices {
            let size = share(bytes, slices, slice);
            // What each member has received of its children, and then of its parent.
            let mut received: Vec<Vec<u32>> = vec![Vec::new(); nics.len()];
            for child in &order {
                if let (Some(flow), Some(parent)) = (up[*child], parents[*child]) {
                    let message = self.schedule.add_message(flow, size, 0, &received[*child]);
                    received[parent as usize].push(message);
                }
            }
            for child in order.iter().rev() {
                if let (Some(flow), Some(parent)) = (down[*child], parents[*child]) {
                    let message =
                        self.schedule
                            .add_message(flow, size, 1, &received[parent as usize]);
                    received[*child] = vec![message];
                }
            }
        }
    }

    /// An all-reduce of `bytes` in two levels: reduce-scatter round each domain, all-reduce of each piece
    /// between its owners, all-gather round each domain. The array goes in segments that follow each other
    /// through the three; `pieces` cuts one.
    pub fn two_level(
        &mut self,
        domains: &[Vec<NicId>],
        bytes: u64,
        pieces: impl Fn(u64) -> Vec<Piece>,
    ) {
        let members = domains.iter().map(Vec::len).max().unwrap_or(1) as u64;
        let segments = bytes
            .div_ceil(self.slice_bytes.saturating_mul(members))
            .max(1);
        let rings: Vec<Vec<u32>> = domains
            .iter()
            .map(|nics| {
                let next = nics.iter().cycle().skip(1);
                let pairs: Vec<_> = nics.iter().zip(next).filter(|_| nics.len() > 1).collect();
                pairs
                    .into_iter()
                    .map(|(src, dst)| self.flow(*src, *dst))
                    .collect()
            })
            .collect();
        let mut across = FxHashMap::default();
        for segment in 0..segments {
            let bytes = share(bytes, segments, segment);
            let scattered: Vec<Vec<Option<u32>>> = rings
                .iter()
                .zip(domains)
                .map(|(ring, nics)| self.scatter(ring, nics.len(), bytes))
                .collect();
            let mut summed: Vec<Vec<Vec<u32>>> = scattered
                .iter()
                .map(|domain| domain.iter().map(|m| m.iter().copied().collect()).collect())
                .collect();
            for piece in pieces(bytes) {
                self.between(domains, &piece, &scattered, &mut summed, &mut across);
            }
            for (ring, ready) in rings.iter().zip(&summed) {
                self.gather(ring, bytes, ready);
            }
        }
    }

    /// The message with which each member of a domain has its part; `None` for a domain of one.
    fn scatter(&mut self, ring: &[u32], members: usize, bytes: u64) -> Vec<Option<u32>> {
        let n = ring.len();
        let mut last: Vec<Option<u32>> = vec![None; members];
        for step in 0..n.saturating_sub(1) {
            let sent: Vec<u32> = (0..n)
                .map(|member| {
                    let chunk = (member + 2 * n - 1 - step) % n;
                    let after: Vec<u32> = last[member].into_iter().collect();
                    let size = share(bytes, n as u64, chunk as u64);
                    self.schedule.add_message(ring[member], size, 0, &after)
                })
                .collect();
            for (member, message) in sent.into_iter().enumerate() {
                last[(member + 1) % n] = Some(message);
            }
        }
        last
    }

    /// The all-reduce of a piece; its last message to each owner is added to what that one waits for.
    fn between(
        &mut self,
        domains: &[Vec<NicId>],
        piece: &Piece,
        scattered: &[Vec<Option<u32>>],
        summed: &mut [Vec<Vec<u32>>],
        across: &mut FxHashMap<(NicId, NicId), u32>,
    ) {
        let n = piece.owners.len();
        if n < 2 {
            return;
        }
        let nic = |domain: usize| domains[domain][piece.owners[domain] as usize];
        let flows: Vec<u32> = (0..n)
            .map(|domain| {
                let ends = (nic(domain), nic((domain + 1) % n));
                *across.entry(ends).or_insert_with(|| {
                    self.schedule
                        .add_flow(FlowSpec::new(ends.0, ends.1, 0, self.numbers))
                })
            })
            .collect();
        let mut last: Vec<Option<u32>> = vec![None; n];
        for step in 0..2 * (n - 1) {
            let sent: Vec<u32> = (0..n)
                .map(|domain| {
                    // Reduce-scatter leaves each owner with its own chunk, which all-gather begins with.
                    let chunk = (domain + 2 * n - 1 - step) % n;
                    let own = scattered[domain][piece.owners[domain] as usize];
                    let after: Vec<u32> = last[domain].into_iter().chain(own).collect();
                    let size = share(piece.bytes, n as u64, chunk as u64);
                    self.schedule.add_message(flows[domain], size, 1, &after)
                })
                .collect();
            for (domain, message) in sent.into_iter().enumerate() {
                last[(domain + 1) % n] = Some(message);
            }
        }
        for (domain, message) in last.into_iter().enumerate() {
            summed[domain][piece.owners[domain] as usize].extend(message);
        }
    }

    fn gather(&mut self, ring: &[u32], bytes: u64, ready: &[Vec<u32>]) {
        let n = ring.len();
        let mut last: Vec<Option<u32>> = vec![None; n];
        for step in 0..n.saturating_sub(1) {
            let sent: Vec<u32> = (0..n)
                .map(|member| {
                    let chunk = (member + n - step) % n;
                    let size = share(bytes, n as u64, chunk as u64);
                    let after: Vec<u32> = match last[member] {
                        Some(message) => vec![message],
                        None => ready[member].clone(),
                    };
                    self.schedule.add_message(ring[member], size, 2, &after)
                })
                .collect();
            for (member, message) in sent.into_iter().enumerate() {
                last[(member + 1) % n] = Some(message);
            }
        }
    }
}

/// Members so that children come before their parents. Members of a cycle are left out.
fn from_leaves(parents: &[Option<u32>]) -> Vec<usize> {
    let mut children = vec![0u32; parents.len()];
    for parent in parents.iter().flatten() {
        children[*parent as usize] += 1;
    }
    let mut order: Vec<usize> = (0..parents.len()).filter(|m| children[*m] == 0).collect();
    let mut at = 0;
    while let Some(member) = order.get(at).copied() {
        at += 1;
        if let Some(parent) = parents[member] {
            children[parent as usize] -= 1;
            if children[parent as usize] == 0 {
                order.push(parent as usize);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a schedule on paper: which members' contributions each NIC has seen, when everything that a
    /// message comes after is known to its sender.
    fn heard(schedule: &Schedule, nics: u32) -> Vec<u64> {
        let mut known: Vec<u64> = (0..nics).map(|n| 1 << n).collect();
        let mut carried = vec![0u64; schedule.messages().len()];
        for (index, message) in schedule.messages().iter().enumerate() {
            let flow = schedule.flows()[message.flow as usize];
            let mut content = 1 << flow.src.0;
            for earlier in schedule.after(index as u32) {
                let before = schedule.flows()[schedule.messages()[*earlier as usize].flow as usize];
                assert_eq!(
                    before.dst, flow.src,
                    "a sender waits for what it receives itself"
                );
                content |= carried[*earlier as usize];
            }
            carried[index] = content;
            known[flow.dst.0 as usize] |= content;
        }
        known
    }

    fn total(schedule: &Schedule) -> u64 {
        schedule.messages().iter().map(|m| m.bytes).sum()
    }

    proptest! {
        #[test]
        fn a_tree_reduces_everything(
            parents in proptest::collection::vec(0u32..1000, 1..20), bytes in 0u64..10_000, slice in 1u64..3000,
        ) {
            let n = parents.len() as u32 + 1;
            let nics: Vec<NicId> = (0..n).map(NicId).collect();
            // Member 0 is the root; each other hangs on one before it.
            let parents: Vec<Option<u32>> = std::iter::once(None)
                .chain(parents.iter().zip(1u32..).map(|(p, i)| Some(p % i)))
                .collect();
            let mut numbers = QueuePairNumbers::new(1);
            let mut builder = Builder::new(&mut numbers, slice);
            builder.tree(&nics, &parents, bytes);
            let schedule = builder.finish();
            prop_assert_eq!(total(&schedule), 2 * u64::from(n - 1) * bytes);
            prop_assert!(heard(&schedule, n).iter().all(|k| *k == (1 << n) - 1));
        }

        #[test]
        fn two_levels_reduce_everything(
            sizes in proptest::collection::vec(1u32..5, 1..5), bytes in 100u64..10_000, slice in 50u64..3000,
        ) {
            let n: u32 = sizes.iter().sum();
            let mut next = 0;
            let domains: Vec<Vec<NicId>> = sizes
                .iter()
                .map(|size| {
                    next += size;
                    (next - size..next).map(NicId).collect()
                })
                .collect();
            let mut numbers = QueuePairNumbers::new(1);
            let mut builder = Builder::new(&mut numbers, slice);
            // Pieces of one domain: its members' parts, each owned by a member of every other domain.
            let first = sizes[0];
            builder.two_level(&domains, bytes, |bytes| {
                (0..first)
                    .map(|i| Piece {
                        bytes: share(bytes, first.into(), i.into()),
                        owners: sizes.iter().map(|size| i % size).collect(),
                    })
                    .collect()
            });
            let schedule = builder.finish();
            prop_assert_eq!(total(&schedule), 2 * u64::from(n - 1) * bytes);
            if sizes.iter().all(|size| *size == first) {
                prop_assert!(heard(&schedule, n).iter().all(|k| *k == (1 << n) - 1));
            }
        }

        #[test]
        fn rings_send_what_their_edges_say(
            edges in proptest::collection::vec(0u64..10_000, 2..10), steps in 1u32..20, slice in 1u64..3000,
        ) {
            let nics: Vec<NicId> = (0..edges.len() as u32).map(NicId).collect();
            let mut numbers = QueuePairNumbers::new(1);
            let mut builder = Builder::new(&mut numbers, slice);
            builder.ring(&nics, &edges, steps);
            let schedule = builder.finish();
            let sent: Vec<u64> = schedule.flows().iter().map(|f| f.bytes).collect();
            prop_assert_eq!(sent, edges);
        }
    }
}

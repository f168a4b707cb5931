//! Reports put together: for every flow its path, and what each hop told of it.

use std::collections::{BTreeMap, VecDeque};

use super::Malformed;
use super::flow::Flow;
use super::metadata::Metadata;
use super::packet::{Indicator, Shown};
use super::report::{Datagram, Report};
use super::sequence::{Arrival, Counts, Sequence};

/// Changes of path that are remembered per flow.
const CHANGES_KEPT: usize = 16;
/// ECN field of a packet that was marked.
const CE: u8 = 3;

/// What goes into a collector besides reports.
#[derive(Clone, Debug)]
pub struct Config {
    /// What tells that a packet carries INT, in this domain.
    pub indicators: Vec<Indicator>,
    /// Flows that are kept; beyond, the one without news for the longest time goes.
    pub flows: usize,
}

/// One hop of a path: which node, between which of its ports. Ports are `None` where not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// Node; `None` when it did not tell.
    pub node: Option<u32>,
    /// Port that the packet came in by.
    pub ingress_port: Option<u16>,
    /// Port that it left by.
    pub egress_port: Option<u16>,
}

/// Least, last and greatest of a quantity, and how it is on the average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Series {
    /// Values seen.
    pub count: u64,
    /// The last one.
    pub last: u64,
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    sum: u128,
}

impl Series {
    fn take(&mut self, value: Option<u32>) {
        let Some(value) = value.map(u64::from) else {
            return;
        };
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.last = value;
        self.sum += u128::from(value);
        self.count += 1;
    }

    /// The mean; 0 when nothing was seen.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }
}

/// What was told of one hop of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct HopState {
    /// Which hop.
    pub hop: Hop,
    /// Time in the switch, in its unit (ns).
    pub latency: Series,
    /// Queue that the flow last rode.
    pub queue: Option<u8>,
    /// Occupancy of its queue, in its unit (packets).
    pub queue_depth: Series,
    /// Logical interfaces that the last packet came in and left by.
    pub logical: Option<(u32, u32)>,
    /// Use of the port it left by, in the switch's unit (65 536 is all).
    pub utilisation: Series,
    /// Buffer that it was in last.
    pub buffer: Option<u8>,
    /// Occupancy of the buffer, in the switch's unit (packets).
    pub buffer_occupancy: Series,
}

/// A change of path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When the collector learnt of it, ns of its own clock.
    pub at: u64,
    /// The path before.
    pub from: Vec<Hop>,
    /// The path since.
    pub to: Vec<Hop>,
}

/// All that is known of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowState {
    /// Reports about it.
    pub reports: u64,
    /// Reports that showed a whole path.
    pub paths: u64,
    /// When the last report came, ns of the collector's clock.
    pub last_at: u64,
    /// The path that was last seen, from the source on.
    pub path: Vec<HopState>,
    /// Reports that showed the packet marked by ECN.
    pub marked: u64,
    /// Changes of path, the last ones.
    pub changes: VecDeque<Change>,
    /// How many there were.
    pub change_count: u64,
    /// Reports of a full queue, by node.
    pub congested: BTreeMap<u32, u64>,
    /// Reports of drops, by node and reason.
    pub drops: BTreeMap<(u32, u8), u64>,
    /// Packets that met a hop with no hop count left, or no room in its MTU.
    pub incomplete: u64,
}

impl FlowState {
    /// The hops that a packet of the flow last took.
    #[must_use]
    pub fn hops(&self) -> Vec<Hop> {
        self.path.iter().map(|state| state.hop).collect()
    }

    /// Takes the hops that a packet met; whether they are others than before.
    fn take_path(&mut self, node: u32, report: &Report, shown: &Shown, now: u64) -> bool {
        let stack = shown.stack.as_ref();
        if stack.is_some_and(|stack| stack.hops_exceeded || stack.mtu_exceeded) {
            self.incomplete += 1;
            return false;
        }
        // The sink's own hop stands in the report, or on top of the stack.
        let mut told: Vec<Metadata> = stack.map_or_else(Vec::new, |stack| stack.hops.clone());
        if let Some(own) = &report.own {
            told.push(Metadata {
                node: Some(node),
                ..own.metadata.clone()
            });
        }
        let hops: Vec<Hop> = told.iter().map(Hop::of).collect();
        let before = self.hops();
        let changed = self.paths > 0 && before != hops;
        if changed {
            self.change_count += 1;
            self.changes.push_back(Change {
                at: now,
                from: before,
                to: hops.clone(),
            });
            if self.changes.len() > CHANGES_KEPT {
                self.changes.pop_front();
            }
        }
        self.paths += 1;
        let mut known = std::mem::take(&mut self.path);
        for (hop, metadata) in hops.into_iter().zip(&told) {
            // A hop that stays on the path keeps its series.
            let at = known.iter().position(|state| state.hop == hop);
            let mut state = at.map_or_else(|| HopState::new(hop), |at| known.swap_remove(at));
            state.latency.take(metadata.latency);
            state.queue = metadata.queue.or(state.queue);
            state.queue_depth.take(metadata.queue_depth);
            state.logical = metadata.logical.or(state.logical);
            state.utilisation.take(metadata.utilisation);
            let (buffer, occupancy) = metadata.buffer.unzip();
            state.buffer = buffer.or(state.buffer);
            state.buffer_occupancy.take(occupancy);
            self.path.push(state);
        }
        changed
    }
}

impl Hop {
    fn of(metadata: &Metadata) -> Self {
        Hop {
            node: metadata.node,
            ingress_port: metadata.ingress_port,
            egress_port: metadata.egress_port,
        }
    }
}

impl HopState {
    fn new(hop: Hop) -> Self {
        HopState {
            hop,
            latency: Series::default(),
            queue: None,
            queue_depth: Series::default(),
            logical: None,
            utilisation: Series::default(),
            buffer: None,
            buffer_occupancy: Series::default(),
        }
    }
}

/// What came in over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Datagrams.
    pub datagrams: u64,
    /// Datagrams that are no reports.
    pub malformed: u64,
    /// Reports whose packet could not be understood.
    pub unreadable: u64,
    /// Reports.
    pub reports: u64,
}

/// What a report said, in short.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Node that reports.
    pub node: u32,
    /// Flow that the packet belongs to.
    pub flow: Flow,
    /// What it was about.
    pub kind: Kind,
    /// The packet was marked by ECN.
    pub marked: bool,
}

/// What a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A measured packet that left the fabric.
    Path {
        /// It went another way than the one before.
        changed: bool,
    },
    /// A packet in a deep queue, or marked.
    Queue,
    /// A packet that was dropped, with the node's reason.
    Drop(Option<u8>),
}

/// Puts reports together.
#[derive(Debug)]
pub struct Collector {
    config: Config,
    flows: BTreeMap<Flow, FlowState>,
    sequences: BTreeMap<(u32, u8), Sequence>,
    totals: Totals,
}

impl Collector {
    /// A collector that knows nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Collector {
            config,
            flows: BTreeMap::new(),
            sequences: BTreeMap::new(),
            totals: Totals::default(),
        }
    }

    /// Takes the payload of a UDP datagram that came at `now` ns of the collector's clock. What cannot
    /// be read of it is counted and left.
    ///
    /// # Errors
    /// When the datagram is no report at all.
    pub fn take(&mut self, datagram: &[u8], now: u64) -> Result<Vec<Seen>, Malformed> {
        self.totals.datagrams += 1;
        let datagram = Datagram::decode(datagram).inspect_err(|_| self.totals.malformed += 1)?;
        let sender = (datagram.node, datagram.hw_id);
        let sequence = self.sequences.entry(sender).or_default();
        if sequence.take(datagram.sequence) == Arrival::Doubled {
            return Ok(Vec::new());
        }
        let mut seen = Vec::new();
        for report in &datagram.reports {
            self.totals.reports += 1;
            match self.report(datagram.node, report, now) {
                Some(told) => seen.push(told),
                None => self.totals.unreadable += 1,
            }
        }
        self.forget();
        Ok(seen)
    }

    fn report(&mut self, node: u32, report: &Report, now: u64) -> Option<Seen> {
        let shown = Shown::of(report.inner.ip()?, &self.config.indicators).ok()?;
        let state = self.flows.entry(shown.flow).or_default();
        state.reports += 1;
        state.last_at = state.last_at.max(now);
        let marked = shown.ecn == CE;
        state.marked += u64::from(marked);
        if report.congested {
            *state.congested.entry(node).or_default() += 1;
        }
        let kind = if report.dropped {
            let reason = report.own.as_ref().and_then(|own| own.metadata.drop);
            let reason = reason.map(|(_, reason)| reason);
            *state
                .drops
                .entry((node, reason.unwrap_or(u8::MAX)))
                .or_default() += 1;
            Kind::Drop(reason)
        } else if report.tracked && !report.intermediate {
            Kind::Path {
                changed: state.take_path(node, report, &shown, now),
            }
        } else {
            Kind::Queue
        };
        Some(Seen {
            node,
            flow: shown.flow,
            kind,
            marked,
        })
    }

    /// Keeps the number of flows within its limit.
    fn forget(&mut self) {
        while self.flows.len() > self.config.flows {
            let oldest = self.flows.iter().min_by_key(|(_, state)| state.last_at);
            let Some((&flow, _)) = oldest else {
                return;
            };
            self.flows.remove(&flow);
        }
    }

    /// All flows.
    #[must_use]
    pub fn flows(&self) -> &BTreeMap<Flow, FlowState> {
        &self.flows
    }

    /// What came in.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Datagrams received, lost and so on, by node and part.
    #[must_use]
    pub fn senders(&self) -> BTreeMap<(u32, u8), Counts> {
        let all = self.sequences.iter();
        all.map(|(&sender, sequence)| (sender, sequence.counts()))
            .collect()
    }
}

//! A NIC: RoCEv2 reliable connections with go-back-N, DCQCN and paced, serialised ports.
//!
//! The NIC is a state machine without clock or I/O. Frames come in with [`Nic::receive`], messages with
//! [`Nic::post`]; whoever drives a port asks [`Nic::poll`] for the next frame when the port is free, and is
//! told when to ask again. What else happened (messages arrived or acknowledged, timers to set) is
//! appended to a list of [`Action`]s.
//!
//! Acknowledgements and congestion notifications go before data, queue pairs take turns, and each
//! holds to the lower of its DCQCN rate and the rate set for it.

mod config;
pub mod dcqcn;
mod receiver;
mod sender;
mod stats;

pub use config::{NicConfig, QueuePairConfig};
pub use stats::NicStats;

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::roce::icrc::ZeroRun;
use super::roce::{
    self, Bth, DSCP_CNP, DSCP_DATA, ECT0, Extension, NOT_ECT, Opcode, ParseError, Parsed,
    SYNDROME_ACK, SYNDROME_NAK_SEQUENCE, Template,
};
use dcqcn::RateController;
use receiver::Receiver;
use sender::Sender;

/// Bytes a frame takes on the wire besides itself: preamble 8, FCS 4, gap 12.
pub const WIRE_OVERHEAD: u64 = 24;

/// Position of a queue pair in its NIC.
pub type QueuePairIndex = u32;

/// What a NIC wants done or noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next message on this queue pair arrived whole.
    Received(QueuePairIndex),
    /// The next message posted on this queue pair is acknowledged whole.
    Acknowledged(QueuePairIndex),
    /// Call [`Nic::timer`] for this queue pair at this time, ns.
    Timer(QueuePairIndex, u64),
}

/// What a port can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The frame is in the buffer.
    Frame,
    /// Nothing before this time, ns, unless something happens.
    Wait(u64),
    /// Nothing unless something happens.
    Idle,
}

/// A frame that answers another; built when the port sends it.
#[derive(Clone, Copy, Debug)]
struct Control {
    qp: QueuePairIndex,
    kind: ControlKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlKind {
    Ack { psn: u32 },
    Nak { psn: u32 },
    Cnp,
}

#[derive(Debug)]
struct QueuePair {
    remote_qp: u32,
    template: Template,
    home_port: u8,
    port: u8,
    sender: Sender,
    receiver: Receiver,
    /// Whether it stands in its port's list of those with something to send.
    listed: bool,
}

#[derive(Debug)]
struct Port {
    speed_bps: u64,
    up: bool,
    control: VecDeque<Control>,
    /// Queue pairs with packets in their window, in the order of their turns.
    ready: VecDeque<QueuePairIndex>,
}

/// A NIC with one or two ports.
#[derive(Debug)]
pub struct Nic {
    config: Arc<NicConfig>,
    full_payload: Arc<ZeroRun>,
    ports: Vec<Port>,
    queue_pairs: Vec<QueuePair>,
    by_number: FxHashMap<u32, QueuePairIndex>,
    stats: NicStats,
}

impl Nic {
    /// A NIC whose ports have these speeds, bits/s, all up. `full_payload` is the zero run of
    /// [`NicConfig::payload`] bytes, shared between NICs.
    #[must_use]
    pub fn new(config: Arc<NicConfig>, full_payload: Arc<ZeroRun>, speeds: &[u64]) -> Self {
        let port = |speed_bps: &u64| Port {
            speed_bps: (*speed_bps).max(1),
            up: true,
            control: VecDeque::new(),
            ready: VecDeque::new(),
        };
        Self {
            config,
            full_payload,
            ports: speeds.iter().map(port).collect(),
            queue_pairs: Vec::new(),
            by_number: FxHashMap::default(),
            stats: NicStats::default(),
        }
    }

    /// Counts since the last [`Nic::reset_stats`].
    #[must_use]
    pub fn stats(&self) -> NicStats {
        self.stats
    }

    /// Counts from zero again.
    pub fn reset_stats(&mut self) {
        self.stats = NicStats::default();
    }

    /// Makes one end of a connection. A number that is in use is replaced.
    pub fn connect(&mut self, qp: &QueuePairConfig) -> QueuePairIndex {
        let config = &self.config;
        let mut sender = Sender::new(
            qp.start_psn,
            u64::from(config.payload),
            u64::from(config.window.max(1)),
            u64::from(config.ack_every.max(1)),
        );
        let home_port = if usize::from(qp.home_port) < self.ports.len() {
            qp.home_port
        } else {
            0
        };
        let speed = self
            .ports
            .get(usize::from(home_port))
            .map_or(1, |p| p.speed_bps);
        sender.rate = config.dcqcn.is_some().then(|| RateController::new(speed));
        sender.fixed_bps = qp.rate_bps;
        let index = self.queue_pairs.len() as QueuePairIndex;
        self.queue_pairs.push(QueuePair {
            remote_qp: qp.remote_qp,
            template: Template::new(&qp.path, self.full_payload.clone()),
            home_port,
            port: home_port,
            sender,
            receiver: Receiver::new(qp.start_psn, config.reorder_window as usize),
            listed: false,
        });
        self.by_number.insert(qp.local_qp, index);
        self.settle(index);
        index
    }

    /// The queue pair with this number.
    #[must_use]
    pub fn queue_pair(&self, number: u32) -> Option<QueuePairIndex> {
        self.by_number.get(&number).copied()
    }

    /// The port a queue pair uses now.
    #[must_use]
    pub fn port_of(&self, qp: QueuePairIndex) -> Option<u8> {
        self.queue_pairs.get(qp as usize).map(|qp| qp.port)
    }

    /// Sets or lifts the rate a queue pair must not exceed, bits/s.
    pub fn set_rate(&mut self, qp: QueuePairIndex, rate_bps: Option<u64>) {
        if let Some(qp) = self.queue_pairs.get_mut(qp as usize) {
            qp.sender.fixed_bps = rate_bps;
        }
    }

    /// Posts an RDMA WRITE of `bytes` (at most 2^31, the longest message there is).
    pub fn post(&mut self, qp: QueuePairIndex, bytes: u64) {
        if let Some(pair) = self.queue_pairs.get_mut(qp as usize) {
            pair.sender.post(bytes);
            self.list(qp);
        }
    }

    /// A port lost or regained its link: its queue pairs move to the other port, or come home.
    pub fn set_port(&mut self, port: u8, up: bool) {
        let Some(state) = self.ports.get_mut(usize::from(port)) else {
            return;
        };
        state.up = up;
        for index in 0..self.queue_pairs.len() as QueuePairIndex {
            self.settle(index);
        }
    }

    /// Puts a queue pair on its home port if that is up, else on another that is.
    fn settle(&mut self, index: QueuePairIndex) {
        let pair = &mut self.queue_pairs[index as usize];
        let up = |port: u8| self.ports.get(usize::from(port)).is_some_and(|p| p.up);
        let choice = std::iter::once(pair.home_port)
            .chain(0..self.ports.len() as u8)
            .find(|port| up(*port));
        let old = pair.port;
        let Some(new) = choice.filter(|new| *new != old) else {
            return;
        };
        pair.port = new;
        if std::mem::take(&mut pair.listed) {
            self.ports[usize::from(old)]
                .ready
                .retain(|other| *other != index);
        }
        let waiting = std::mem::take(&mut self.ports[usize::from(old)].control);
        for control in waiting {
            let port = if control.qp == index { new } else { old };
            self.ports[usize::from(port)].control.push_back(control);
        }
        self.list(index);
    }

    fn list(&mut self, index: QueuePairIndex) {
        let pair = &mut self.queue_pairs[index as usize];
        if !pair.listed && pair.sender.can_send() {
            pair.listed = true;
            self.ports[usize::from(pair.port)].ready.push_back(index);
        }
    }

    /// The next frame of a port that is up and free, written to `buffer`.
    pub fn poll(
        &mut self,
        port: u8,
        now: u64,
        buffer: &mut Vec<u8>,
        actions: &mut Vec<Action>,
    ) -> Poll {
        let Some(state) = self.ports.get_mut(usize::from(port)).filter(|p| p.up) else {
            return Poll::Idle;
        };
        if let Some(control) = state.control.pop_front() {
            self.write_control(control, buffer);
            return Poll::Frame;
        }
        let mut earliest = u64::MAX;
        for _ in 0..state.ready.len() {
            let Some(index) = state.ready.pop_front() else {
                break;
            };
            let pair = &mut self.queue_pairs[index as usize];
            pair.listed = pair.sender.can_send();
            if !pair.listed {
                continue;
            }
            if pair.sender.not_before > now {
                earliest = earliest.min(pair.sender.not_before);
                state.ready.push_back(index);
                continue;
            }
            let speed_bps = state.speed_bps;
            self.send_data(index, speed_bps, now, buffer, actions);
            let pair = &mut self.queue_pairs[index as usize];
            pair.listed = false;
            self.list(index);
            return Poll::Frame;
        }
        if earliest == u64::MAX {
            Poll::Idle
        } else {
            Poll::Wait(earliest)
        }
    }

    fn send_data(
        &mut self,
        index: QueuePairIndex,
        speed_bps: u64,
        now: u64,
        buffer: &mut Vec<u8>,
        actions: &mut Vec<Action>,
    ) {
        let pair = &mut self.queue_pairs[index as usize];
        let sender = &mut pair.sender;
        let Some(out) = sender.take() else {
            return;
        };
        let extension = match out.opcode {
            Opcode::WriteFirst | Opcode::WriteOnly => Extension::Reth {
                address: out.offset,
                key: pair.remote_qp,
                length: out.message_bytes as u32,
            },
            _ => Extension::None,
        };
        let bth = Bth {
            opcode: out.opcode,
            dest_qp: pair.remote_qp,
            psn: out.psn,
            ack_request: out.ack_request,
            becn: false,
        };
        let class = DSCP_DATA << 2 | ECT0;
        pair.template
            .write(buffer, class, &bth, &extension, out.payload);
        self.stats.data_packets += 1;
        self.stats.data_bytes += out.payload as u64;
        self.stats.retransmitted += u64::from(out.retransmission);
        let mut rate = sender.fixed_bps.unwrap_or(speed_bps).min(speed_bps);
        if let (Some(config), Some(controller)) = (&self.config.dcqcn, &mut sender.rate) {
            rate = rate.min(controller.rate_bps(config, now));
        }
        if rate < speed_bps {
            let bits = (buffer.len() as u64 + WIRE_OVERHEAD) * 8;
            let gap = (u128::from(bits) * 1_000_000_000 / u128::from(rate.max(1))) as u64;
            // Up to one packet's time late counts: waiting for the port must not lower the rate.
            sender.not_before = sender.not_before.max(now.saturating_sub(gap)) + gap;
        }
        if !sender.timer_pending {
            sender.timer_pending = true;
            sender.deadline = now + (self.config.retransmit_ns << sender.backoff);
            actions.push(Action::Timer(index, sender.deadline));
        }
    }

    fn write_control(&mut self, control: Control, buffer: &mut Vec<u8>) {
        let pair = &self.queue_pairs[control.qp as usize];
        let bth = Bth {
            opcode: Opcode::Acknowledge,
            dest_qp: pair.remote_qp,
            psn: 0,
            ack_request: false,
            becn: false,
        };
        let aeth = |syndrome| Extension::Aeth {
            syndrome,
            msn: pair.receiver.msn(),
        };
        let (bth, extension, class) = match control.kind {
            ControlKind::Ack { psn } => {
                self.stats.acks += 1;
                (
                    Bth { psn, ..bth },
                    aeth(SYNDROME_ACK),
                    DSCP_DATA << 2 | ECT0,
                )
            }
            ControlKind::Nak { psn } => {
                self.stats.naks += 1;
                let aeth = aeth(SYNDROME_NAK_SEQUENCE);
                (Bth { psn, ..bth }, aeth, DSCP_DATA << 2 | ECT0)
            }
            ControlKind::Cnp => {
                self.stats.cnps_sent += 1;
                let cnp = Bth {
                    opcode: Opcode::Cnp,
                    becn: true,
                    ..bth
                };
                (cnp, Extension::None, DSCP_CNP << 2 | NOT_ECT)
            }
        };
        pair.template.write(buffer, class, &bth, &extension, 0);
    }

    /// A frame arrived on any port. The error says why the NIC did not take it; it is counted.
    ///
    /// # Errors
    /// [`ParseError`] when the frame is not an intact RoCEv2 packet.
    pub fn receive(
        &mut self,
        frame: &[u8],
        now: u64,
        actions: &mut Vec<Action>,
    ) -> Result<(), ParseError> {
        let packet = roce::parse(frame, &self.full_payload).inspect_err(|error| match error {
            ParseError::NotRoce => self.stats.foreign += 1,
            _ => self.stats.errors += 1,
        })?;
        let Some(index) = self.queue_pair(packet.bth.dest_qp) else {
            self.stats.errors += 1;
            return Ok(());
        };
        match packet.bth.opcode {
            Opcode::Acknowledge => self.acknowledged(index, &packet, now, actions),
            Opcode::Cnp => {
                self.stats.cnps_received += 1;
                let sender = &mut self.queue_pairs[index as usize].sender;
                if let (Some(config), Some(rate)) = (&self.config.dcqcn, &mut sender.rate) {
                    rate.on_cnp(config, now);
                }
            }
            _ => self.data_arrived(index, &packet, now, actions),
        }
        Ok(())
    }

    fn data_arrived(
        &mut self,
        index: QueuePairIndex,
        packet: &Parsed,
        now: u64,
        actions: &mut Vec<Action>,
    ) {
        self.stats.received_packets += 1;
        self.stats.received_bytes += packet.payload as u64;
        let receiver = &mut self.queue_pairs[index as usize].receiver;
        let mut cnp = false;
        if packet.congestion_experienced() {
            self.stats.ecn_marks += 1;
            cnp = self
                .config
                .dcqcn
                .as_ref()
                .is_some_and(|config| receiver.marked(now, config.cnp_interval_ns));
        }
        let arrival = receiver.data(&packet.bth);
        self.stats.out_of_order += u64::from(arrival.out_of_order);
        self.stats.duplicates += u64::from(arrival.duplicate);
        for _ in 0..arrival.completed {
            actions.push(Action::Received(index));
        }
        if cnp {
            self.answer(index, ControlKind::Cnp);
        }
        if let Some(psn) = arrival.acknowledge {
            self.answer(index, ControlKind::Ack { psn });
        }
        if let Some(psn) = arrival.negative {
            self.answer(index, ControlKind::Nak { psn });
        }
    }

    fn answer(&mut self, qp: QueuePairIndex, kind: ControlKind) {
        let port = usize::from(self.queue_pairs[qp as usize].port);
        let queue = &mut self.ports[port].control;
        // An acknowledgement still waiting says less than the new one: only the last in line, so that none
        // overtakes a NAK.
        if let (ControlKind::Ack { .. }, Some(last)) = (kind, queue.back_mut())
            && last.qp == qp
            && matches!(last.kind, ControlKind::Ack { .. })
        {
            last.kind = kind;
            return;
        }
        queue.push_back(Control { qp, kind });
    }

    fn acknowledged(
        &mut self,
        index: QueuePairIndex,
        packet: &Parsed,
        now: u64,
        actions: &mut Vec<Action>,
    ) {
        let sender = &mut self.queue_pairs[index as usize].sender;
        let progress = match packet.extension {
            Extension::Aeth { syndrome, .. } if syndrome >> 5 == 0 => {
                sender.acknowledge(packet.bth.psn)
            }
            Extension::Aeth {
                syndrome: SYNDROME_NAK_SEQUENCE,
                ..
            } => sender.negative(packet.bth.psn),
            _ => None,
        };
        let Some(progress) = progress else {
            return;
        };
        sender.backoff = 0;
        sender.deadline = now + self.config.retransmit_ns;
        for _ in 0..progress.completed {
            actions.push(Action::Acknowledged(index));
        }
        self.list(index);
    }

    /// A retransmission timer set by [`Action::Timer`] is due.
    pub fn timer(&mut self, qp: QueuePairIndex, now: u64, actions: &mut Vec<Action>) {
        let Some(pair) = self.queue_pairs.get_mut(qp as usize) else {
            return;
        };
        let sender = &mut pair.sender;
        sender.timer_pending = false;
        if !sender.outstanding() {
            return;
        }
        if now >= sender.deadline {
            self.stats.timeouts += 1;
            sender.go_back();
            sender.backoff = (sender.backoff + 1).min(self.config.backoff_limit);
            sender.deadline = now + (self.config.retransmit_ns << sender.backoff);
        }
        sender.timer_pending = true;
        actions.push(Action::Timer(qp, sender.deadline));
        self.list(qp);
    }
}

#[cfg(test)]
mod tests;

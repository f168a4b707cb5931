//! A started schedule: which messages wait, are on their way, have arrived.

use std::collections::VecDeque;

use serde::Serialize;
use topology::NicId;

use super::flow::Schedule;
use super::nic::QueuePairIndex;

const NOT_YET: u64 = u64::MAX;

/// What one flow did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowResult {
    /// The sending NIC.
    pub src: NicId,
    /// The receiving NIC.
    pub dst: NicId,
    /// The receiver's queue pair number.
    pub dest_qp: u32,
    /// UDP source port.
    pub udp_source_port: u16,
    /// Payload bytes of all messages.
    pub bytes: u64,
    /// When the first message was posted, ns.
    pub started_ns: Option<u64>,
    /// When the last message was received, ns.
    pub finished_ns: Option<u64>,
    /// When the sender had the last acknowledgement, ns.
    pub acknowledged_ns: Option<u64>,
}

/// What the messages of one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepResult {
    /// The step's number.
    pub step: u32,
    /// When the first message was posted, ns.
    pub started_ns: Option<u64>,
    /// When the last message was received, ns.
    pub finished_ns: Option<u64>,
}

/// What a schedule did so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunResult {
    /// When it was started, ns.
    pub started_ns: u64,
    /// When the last message was received, ns; `None` while it goes on.
    pub finished_ns: Option<u64>,
    /// By flow, in the schedule's order.
    pub flows: Vec<FlowResult>,
    /// By step.
    pub steps: Vec<StepResult>,
}

impl RunResult {
    /// From the start to the last message received, ns; `None` while it goes on.
    #[must_use]
    pub fn elapsed_ns(&self) -> Option<u64> {
        Some(self.finished_ns? - self.started_ns)
    }
}

#[derive(Debug, Default)]
struct FlowState {
    source_qp: QueuePairIndex,
    /// Messages posted and not yet received, in order.
    on_the_way: VecDeque<u32>,
    messages_left: u32,
    unacknowledged: u32,
    started: Option<u64>,
    finished: Option<u64>,
    acknowledged: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) schedule: Schedule,
    started: u64,
    finished: Option<u64>,
    flows: Vec<FlowState>,
    /// By message: how many others it still waits for.
    waiting: Vec<u32>,
    /// By message: the messages that come after it, as ranges of `followers`.
    follower_start: Vec<u32>,
    followers: Vec<u32>,
    posted: Vec<u64>,
    received: Vec<u64>,
    left: usize,
}

/// What receiving a message led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) message: u32,
    pub(super) flow_finished: bool,
    pub(super) run_finished: bool,
}

impl Run {
    pub(super) fn new(schedule: Schedule, source_qps: &[QueuePairIndex], now: u64) -> Self {
        let count = schedule.messages().len();
        let mut flows: Vec<_> = source_qps
            .iter()
            .map(|qp| FlowState {
                source_qp: *qp,
                ..FlowState::default()
            })
            .collect();
        for message in schedule.messages() {
            if let Some(flow) = flows.get_mut(message.flow as usize) {
                flow.messages_left += 1;
                flow.unacknowledged += 1;
            }
        }
        let mut follower_start = vec![0u32; count + 1];
        let mut waiting = vec![0; count];
        for (index, waits) in waiting.iter_mut().enumerate() {
            let after = schedule.after(index as u32);
            *waits = after.len() as u32;
            for earlier in after {
                follower_start[*earlier as usize + 1] += 1;
            }
        }
        for index in 0..count {
            follower_start[index + 1] += follower_start[index];
        }
        let mut place = follower_start.clone();
        let mut followers = vec![0; follower_start[count] as usize];
        for index in 0..count as u32 {
            for earlier in schedule.after(index) {
                let place = &mut place[*earlier as usize];
                followers[*place as usize] = index;
                *place += 1;
            }
        }
        Self {
            schedule,
            started: now,
            finished: (count == 0).then_some(now),
            flows,
            waiting,
            follower_start,
            followers,
            posted: vec![NOT_YET; count],
            received: vec![NOT_YET; count],
            left: count,
        }
    }

    /// Messages that wait for nothing.
    pub(super) fn first_messages(&self) -> Vec<u32> {
        let free = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, waits)| **waits == 0);
        free.map(|(index, _)| index as u32).collect()
    }

    /// Notes a message as posted; the result is the NIC, queue pair and size to post.
    pub(super) fn post(&mut self, message: u32, now: u64) -> Option<(NicId, QueuePairIndex, u64)> {
        let spec = *self.schedule.messages().get(message as usize)?;
        let nic = self.schedule.flows().get(spec.flow as usize)?.src;
        let flow = self.flows.get_mut(spec.flow as usize)?;
        self.posted[message as usize] = now;
        flow.started.get_or_insert(now);
        flow.on_the_way.push_back(message);
        Some((nic, flow.source_qp, spec.bytes))
    }

    /// The oldest message on a flow was received.
    pub(super) fn receive(&mut self, flow: u32, now: u64) -> Option<Received> {
        let state = self.flows.get_mut(flow as usize)?;
        let message = state.on_the_way.pop_front()?;
        self.received[message as usize] = now;
        state.messages_left -= 1;
        let flow_finished = state.messages_left == 0;
        if flow_finished {
            state.finished = Some(now);
        }
        self.left -= 1;
        if self.left == 0 {
            self.finished = Some(now);
        }
        Some(Received {
            message,
            flow_finished,
            run_finished: self.left == 0,
        })
    }

    /// Appends to `free` the messages that waited only for `message`.
    pub(super) fn release(&mut self, message: u32, free: &mut Vec<u32>) {
        let range =
            self.follower_start[message as usize]..self.follower_start[message as usize + 1];
        for index in range {
            let follower = self.followers[index as usize];
            let waits = &mut self.waiting[follower as usize];
            *waits -= 1;
            if *waits == 0 {
                free.push(follower);
            }
        }
    }

    pub(super) fn acknowledge(&mut self, flow: u32, now: u64) {
        if let Some(state) = self.flows.get_mut(flow as usize) {
            state.unacknowledged = state.unacknowledged.saturating_sub(1);
            if state.unacknowledged == 0 {
                state.acknowledged = Some(now);
            }
        }
    }

    pub(super) fn source_qp(&self, flow: u32) -> Option<(NicId, QueuePairIndex)> {
        let spec = self.schedule.flows().get(flow as usize)?;
        Some((spec.src, self.flows.get(flow as usize)?.source_qp))
    }

    pub(super) fn result(&self) -> RunResult {
        let flows =
            (self.schedule.flows().iter().zip(&self.flows)).map(|(spec, state)| FlowResult {
                src: spec.src,
                dst: spec.dst,
                dest_qp: spec.dst_qp,
                udp_source_port: spec.udp_source_port,
                bytes: spec.bytes,
                started_ns: state.started,
                finished_ns: state.finished,
                acknowledged_ns: state.acknowledged,
            });
        RunResult {
            started_ns: self.started,
            finished_ns: self.finished,
            flows: flows.collect(),
            steps: self.steps(),
        }
    }

    fn steps(&self) -> Vec<StepResult> {
        let mut by_step = std::collections::BTreeMap::new();
        for (index, message) in self.schedule.messages().iter().enumerate() {
            let (first, last) = by_step.entry(message.step).or_insert((NOT_YET, 0));
            *first = self.posted[index].min(*first);
            // A message not received leaves the step open.
            *last = self.received[index].max(*last);
        }
        let known = |time: u64| (time != NOT_YET).then_some(time);
        (by_step.into_iter())
            .map(|(step, (first, last))| StepResult {
                step,
                started_ns: known(first),
                finished_ns: known(last),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::emulator::flow::{FlowSpec, QueuePairNumbers};

    #[test]
    fn messages_wait_for_all_that_come_before() {
        let mut numbers = QueuePairNumbers::new(0);
        let mut schedule = Schedule::new();
        let flows: Vec<_> = [(0, 2), (1, 2), (2, 3)]
            .map(|(a, b)| FlowSpec::new(NicId(a), NicId(b), 0, &mut numbers))
            .map(|flow| schedule.add_flow(flow))
            .into();
        let a = schedule.add_message(flows[0], 10, 0, &[]);
        let b = schedule.add_message(flows[1], 10, 0, &[]);
        let c = schedule.add_message(flows[2], 20, 1, &[a, b]);
        let mut run = Run::new(schedule, &[7, 8, 9], 100);
        assert_eq!(run.first_messages(), [a, b]);
        assert_eq!(run.post(a, 100), Some((NicId(0), 7, 10)));
        run.post(b, 100);
        let mut free = Vec::new();
        let received = run.receive(0, 150).unwrap();
        assert_eq!(
            (
                received.message,
                received.flow_finished,
                received.run_finished
            ),
            (a, true, false)
        );
        run.release(a, &mut free);
        assert!(free.is_empty(), "{free:?}");
        run.receive(1, 160).unwrap();
        run.release(b, &mut free);
        assert_eq!(free, [c]);
        assert_eq!(run.result().finished_ns, None);
        assert_eq!(run.result().steps[1].started_ns, None);
        run.post(c, 170);
        assert!(run.receive(2, 200).unwrap().run_finished);
        let result = run.result();
        assert_eq!(result.elapsed_ns(), Some(100));
        assert_eq!(result.steps[0].finished_ns, Some(160));
        assert_eq!(run.receive(2, 210), None, "nothing is on the way");
    }
}

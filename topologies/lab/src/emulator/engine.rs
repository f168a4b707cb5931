//! What happens when an event is due.

use topology::{End, LinkId, NicPortRef, PortRef, SwitchId};

use super::nic::{Action, Poll};
use super::notice::{FlowId, Notice, PortEvent, RunId};
use super::plane::{Event, WireIndex, downward, upward};
use super::{Emulator, NicNode};

/// Frames other than RoCEv2 that a NIC keeps for the driver.
const INBOX: usize = 1024;

impl Emulator {
    /// Handles the next event if it is due by `until`; whether there was one.
    pub(super) fn step(&mut self, until: u64) -> bool {
        let Some(event) = self.plane.events.pop_until(until) else {
            return false;
        };
        match event {
            Event::Arrive { wire, life, frame } => self.arrive(wire, life, frame),
            Event::Kick { wire } => {
                if self.plane.is_due(wire) {
                    self.serve_wire(wire);
                }
            }
            Event::Timer { nic, qp } => {
                let now = self.now();
                let node = &mut self.nics[nic as usize];
                node.nic.timer(qp, now, &mut self.actions);
                self.serve_nic(nic as usize);
            }
            Event::Post { run, message } => self.post(run, message),
            Event::Detect { link } => self.detect(link),
            Event::Generate { generator } => self.run_generator(generator),
            Event::Alarm { token } => {
                let at = self.now();
                self.plane.notices.push_back(Notice::Alarm { token, at });
            }
        }
        true
    }

    /// The controller may have sent packets while time stood still.
    pub(super) fn wake_switches(&mut self) {
        for node in &mut self.switches {
            self.plane.pump(&mut node.core.lock(), &mut node.ports);
        }
    }

    fn arrive(&mut self, wire: WireIndex, life: u32, frame: u32) {
        let now = self.plane.events.now();
        let bytes = self.plane.frames.take(frame);
        let state = &mut self.plane.wires[wire as usize];
        let (from, to) = (state.from, state.to);
        let cut = !state.delivers(life, now);
        if cut || state.loses() {
            let stats = &mut state.stats;
            stats.lost_in_flight += u64::from(cut);
            stats.note_lost(if cut { bytes.len() } else { 0 });
            stats.lost_at_random += u64::from(!cut);
            self.retire(from, bytes);
            return;
        }
        match to {
            End::Switch(PortRef { switch, port }) => {
                let node = &mut self.switches[switch.index()];
                let mut core = node.core.lock();
                core.ingress(port, &bytes, now);
                self.plane.pump(&mut core, &mut node.ports);
                drop(core);
                self.retire(from, bytes);
            }
            End::Nic(NicPortRef { nic, .. }) => {
                let node = &mut self.nics[nic.index()];
                node.received.add(now, bytes.len() as u64);
                let result = node.nic.receive(&bytes, now, &mut self.actions);
                if result.is_err() && node.inbox.len() < INBOX {
                    node.inbox.push(bytes.clone());
                    self.plane.notices.push_back(Notice::Frame { nic, at: now });
                }
                self.retire(from, bytes);
                self.serve_nic(nic.index());
            }
        }
    }

    /// Gives a frame's buffer back to whoever made it.
    fn retire(&mut self, from: End, bytes: Vec<u8>) {
        match from {
            End::Switch(PortRef { switch, port }) => {
                let packet = softswitch::Packet { port, bytes };
                self.switches[switch.index()].core.lock().recycle(packet);
            }
            End::Nic(_) => self.plane.frames.give_back(bytes),
        }
    }

    /// A wire's transmitter may send.
    fn serve_wire(&mut self, wire: WireIndex) {
        match self.plane.wires[wire as usize].from {
            End::Switch(PortRef { switch, port }) => {
                let node = &mut self.switches[switch.index()];
                let mut core = node.core.lock();
                self.plane.transmit(wire, port, &mut core);
                // Egress may have cloned packets to other ports.
                self.plane.pump(&mut core, &mut node.ports);
            }
            End::Nic(NicPortRef { nic, .. }) => self.serve_nic(nic.index()),
        }
    }

    /// Does what a NIC asked for, and lets its free ports send.
    pub(super) fn serve_nic(&mut self, nic: usize) {
        loop {
            self.act(nic);
            let now = self.plane.events.now();
            for port in 0..2u8 {
                let Some(wire) = self.nics[nic].wires[usize::from(port)] else {
                    continue;
                };
                let free_at = self.plane.wires[wire as usize].free_at;
                if free_at > now {
                    self.plane.kick(wire, free_at);
                } else {
                    self.nic_send(nic, port, wire);
                }
            }
            if self.actions.is_empty() {
                break;
            }
        }
    }

    fn nic_send(&mut self, nic: usize, port: u8, wire: WireIndex) {
        let now = self.plane.events.now();
        let node = &mut self.nics[nic];
        let mut buffer = self.plane.frames.buffer();
        let poll = match node.raw_frame(port) {
            Some(frame) => {
                buffer.clear();
                buffer.extend_from_slice(&frame);
                Poll::Frame
            }
            None => node.nic.poll(port, now, &mut buffer, &mut self.actions),
        };
        match poll {
            Poll::Frame => {
                node.sent.add(now, buffer.len() as u64);
                if let Err(buffer) = self.plane.send(wire, buffer) {
                    self.plane.frames.give_back(buffer);
                }
                let free_at = self.plane.wires[wire as usize].free_at;
                self.plane.kick(wire, free_at);
            }
            Poll::Wait(until) => {
                self.plane.frames.give_back(buffer);
                self.plane.kick(wire, until);
            }
            Poll::Idle => self.plane.frames.give_back(buffer),
        }
    }

    /// Handles the actions that NIC `nic` has asked for.
    fn act(&mut self, nic: usize) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Timer(qp, at) => {
                    let nic = nic as u32;
                    self.plane.events.push(at, Event::Timer { nic, qp });
                }
                Action::Received(qp) => self.received(nic, qp),
                Action::Acknowledged(qp) => {
                    let owner = self.nics[nic].owners[qp as usize];
                    let now = self.plane.events.now();
                    self.runs[owner.run as usize].acknowledge(owner.flow, now);
                }
            }
        }
        self.actions = actions;
    }

    fn received(&mut self, nic: usize, qp: u32) {
        let at = self.plane.events.now();
        let owner = self.nics[nic].owners[qp as usize];
        let run = &mut self.runs[owner.run as usize];
        let Some(received) = run.receive(owner.flow, at) else {
            return;
        };
        let id = RunId(owner.run);
        if received.flow_finished {
            let flow = FlowId {
                run: id,
                flow: owner.flow,
            };
            self.plane
                .notices
                .push_back(Notice::FlowFinished { flow, at });
        }
        if received.run_finished {
            self.plane
                .notices
                .push_back(Notice::RunFinished { run: id, at });
        }
        let mut free = std::mem::take(&mut self.free_messages);
        run.release(received.message, &mut free);
        let at = at + run.schedule.overhead_ns;
        for message in free.drain(..) {
            // By event even without overhead: the sender may be any NIC, this one included.
            let run = owner.run;
            self.plane.events.push(at, Event::Post { run, message });
        }
        self.free_messages = free;
    }

    pub(super) fn post(&mut self, run: u32, message: u32) {
        let now = self.plane.events.now();
        if let Some((nic, qp, bytes)) = self.runs[run as usize].post(message, now) {
            self.nics[nic.index()].nic.post(qp, bytes);
            self.serve_nic(nic.index());
        }
    }

    fn detect(&mut self, link: LinkId) {
        let now = self.plane.events.now();
        let detection = self.config.detection_ns;
        let state = &mut self.links[link.index()];
        // A state that did not last for the detection time is not noticed.
        if state.up == state.noticed_up || now < state.changed_at + detection {
            return;
        }
        let up = state.up;
        state.noticed_up = up;
        for wire in [upward(link), downward(link)] {
            match self.plane.wires[wire as usize].from {
                End::Switch(PortRef { switch, port }) => self.port_changed(switch, port, up),
                End::Nic(NicPortRef { nic, port }) => {
                    self.nics[nic.index()].nic.set_port(port, up);
                    self.serve_nic(nic.index());
                }
            }
        }
    }

    fn port_changed(&mut self, switch: SwitchId, port: u16, up: bool) {
        let at = self.plane.events.now();
        let node = &mut self.switches[switch.index()];
        match &node.server {
            Some(server) => server.set_port_up(port, up),
            None => node.core.lock().set_port_up(port, up),
        }
        self.plane.notices.push_back(Notice::Port(PortEvent {
            switch,
            port,
            up,
            at,
        }));
    }
}

impl NicNode {
    fn raw_frame(&mut self, port: u8) -> Option<Vec<u8>> {
        let position = self.raw.iter().position(|(to, _)| *to == port)?;
        self.raw.remove(position).map(|(_, frame)| frame)
    }
}

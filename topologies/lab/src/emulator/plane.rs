//! The part of the emulation between the boxes: wires, frames on them, and future events.

use softswitch::{Packet, Switch};
use topology::{LinkId, SwitchId};

use super::event::EventQueue;
use super::notice::Notice;
use super::wire::Wire;

/// Position of a wire: twice its link's, plus one for the direction from the upper to the lower end.
pub(super) type WireIndex = u32;

/// The wire of a link that begins at its lower end.
pub(super) fn upward(link: LinkId) -> WireIndex {
    link.0 * 2
}

/// The wire of a link that begins at its upper end.
pub(super) fn downward(link: LinkId) -> WireIndex {
    link.0 * 2 + 1
}

/// What happens at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A frame reaches the far end of a wire.
    Arrive {
        wire: WireIndex,
        life: u32,
        frame: u32,
    },
    /// A transmitter may be able to send.
    Kick { wire: WireIndex },
    /// A retransmission timer.
    Timer { nic: u32, qp: u32 },
    /// A message of a run has waited out its overhead.
    Post { run: u32, message: u32 },
    /// The ends of a link notice its state.
    Detect { link: LinkId },
    /// A switch submits a packet to itself.
    Generate { generator: u32 },
    /// An alarm of the driver.
    Alarm { token: u64 },
}

/// Frames on wires; places and buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Frames {
    frames: Vec<Vec<u8>>,
    free: Vec<u32>,
    spare: Vec<Vec<u8>>,
}

impl Frames {
    fn put(&mut self, bytes: Vec<u8>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.frames[place as usize] = bytes;
            return place;
        }
        self.frames.push(bytes);
        self.frames.len() as u32 - 1
    }

    pub(super) fn take(&mut self, place: u32) -> Vec<u8> {
        self.free.push(place);
        std::mem::take(&mut self.frames[place as usize])
    }

    /// A buffer to write a frame to.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives a buffer of [`Self::buffer`] back.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }
}

/// A switch's ports as the plane sees them.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) switch: SwitchId,
    pub(super) cpu_port: u16,
    pub(super) queues: u8,
    /// The wire that begins at a port, by port number.
    pub(super) wires: Vec<Option<WireIndex>>,
    /// Packets sent to ports that lead nowhere.
    pub(super) unconnected: u64,
}

#[derive(Debug)]
pub(super) struct Plane {
    pub(super) events: EventQueue<Event>,
    pub(super) wires: Vec<Wire>,
    pub(super) frames: Frames,
    pub(super) notices: std::collections::VecDeque<Notice>,
    ready: Vec<u16>,
}

impl Plane {
    pub(super) fn new(wires: Vec<Wire>) -> Self {
        Self {
            events: EventQueue::new(),
            wires,
            frames: Frames::default(),
            notices: std::collections::VecDeque::new(),
            ready: Vec::new(),
        }
    }

    /// Makes sure that a transmitter is looked at by `at`.
    pub(super) fn kick(&mut self, wire: WireIndex, at: u64) {
        let state = &mut self.wires[wire as usize];
        if state.kick_at.is_none_or(|pending| pending > at) {
            state.kick_at = Some(at);
            self.events.push(at, Event::Kick { wire });
        }
    }

    /// Whether a kick that is due now is the pending one and not one that an earlier one replaced.
    pub(super) fn is_due(&mut self, wire: WireIndex) -> bool {
        let state = &mut self.wires[wire as usize];
        let due = state.kick_at == Some(self.events.now());
        if due {
            state.kick_at = None;
        }
        due
    }

    /// Puts a frame on a wire whose transmitter is free. `Err` gives the buffer back when the link
    /// is down.
    pub(super) fn send(&mut self, wire: WireIndex, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let state = &mut self.wires[wire as usize];
        let Some(due) = state.send(bytes.len(), self.events.now()) else {
            return Err(bytes);
        };
        let life = state.life;
        let frame = self.frames.put(bytes);
        self.events.push(due, Event::Arrive { wire, life, frame });
        Ok(())
    }

    /// Serves all ports of a switch that got packets.
    pub(super) fn pump(&mut self, switch: &mut Switch, ports: &mut Ports) {
        let mut ready = std::mem::take(&mut self.ready);
        loop {
            switch.take_ready(&mut ready);
            if ready.is_empty() {
                break;
            }
            for port in ready.drain(..) {
                match ports.wires.get(usize::from(port)).copied().flatten() {
                    Some(wire) => {
                        self.note_depth(wire, port, switch, ports.queues);
                        self.transmit(wire, port, switch);
                    }
                    // They wait in the queue for the server or the driver to take them.
                    None if port == ports.cpu_port => {
                        let at = self.events.now();
                        let switch = ports.switch;
                        self.notices.push_back(Notice::PacketIn { switch, at });
                    }
                    None => {
                        while let Some(packet) = switch.dequeue(port, self.events.now()) {
                            ports.unconnected += 1;
                            switch.recycle(packet);
                        }
                    }
                }
            }
        }
        self.ready = ready;
    }

    fn note_depth(&mut self, wire: WireIndex, port: u16, switch: &Switch, queues: u8) {
        let deepest = (0..queues)
            .map(|queue| switch.queue_depth(port, queue))
            .max();
        let stats = &mut self.wires[wire as usize].stats;
        stats.queue_max = stats.queue_max.max(deepest.unwrap_or(0) as u64);
    }

    /// Sends the next packet of a port if its transmitter is free, and sees to it that the one after is sent when it is
    /// free again.
    pub(super) fn transmit(&mut self, wire: WireIndex, port: u16, switch: &mut Switch) {
        let now = self.events.now();
        let free_at = self.wires[wire as usize].free_at;
        if free_at > now {
            self.kick(wire, free_at);
            return;
        }
        let Some(packet) = switch.dequeue(port, now) else {
            return;
        };
        if let Err(bytes) = self.send(wire, packet.bytes) {
            switch.recycle(Packet { port, bytes });
        }
        if switch.has_queued(port) {
            let free_at = self.wires[wire as usize].free_at;
            self.kick(wire, free_at);
        }
    }
}

//! Packets that a switch makes itself, again and again: the data plane has no timers.
//!
//! A generator stands at a switch's CPU port, like a process on the switch's own CPU, and submits its frame to the
//! pipeline at every interval.

use topology::SwitchId;

use super::Emulator;
use super::plane::Event;

/// What is sent where, and how often.
#[derive(Debug)]
pub(super) struct Generator {
    switch: SwitchId,
    interval_ns: u64,
    /// The packet-out: header and frame.
    packet: Vec<u8>,
    running: bool,
}

/// Names a generator, to stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorId(u32);

/// A packet-out header that submits the frame to the pipeline: bit 6 of the second byte.
const SUBMIT: [u8; 2] = [0, 0x40];

impl Emulator {
    /// Lets `switch` submit `frame` to its own pipeline by its CPU port every `interval_ns`, first after `first_ns`.
    /// A switch that is not there does nothing.
    pub fn generate(
        &mut self,
        switch: SwitchId,
        frame: &[u8],
        interval_ns: u64,
        first_ns: u64,
    ) -> GeneratorId {
        let id = self.generators.len() as u32;
        self.generators.push(Generator {
            switch,
            interval_ns: interval_ns.max(1),
            packet: [&SUBMIT, frame].concat(),
            running: true,
        });
        let at = self.now() + first_ns;
        self.plane
            .events
            .push(at, Event::Generate { generator: id });
        GeneratorId(id)
    }

    /// Stops a generator, for good.
    pub fn stop_generator(&mut self, id: GeneratorId) {
        if let Some(generator) = self.generators.get_mut(id.0 as usize) {
            generator.running = false;
        }
    }

    pub(super) fn run_generator(&mut self, id: u32) {
        let now = self.plane.events.now();
        let generator = &self.generators[id as usize];
        let Some(node) = self.switches.get_mut(generator.switch.index()) else {
            return;
        };
        if !generator.running {
            return;
        }
        let mut core = node.core.lock();
        core.ingress(self.config.cpu_port, &generator.packet, now);
        self.plane.pump(&mut core, &mut node.ports);
        drop(core);
        let at = now + generator.interval_ns;
        self.plane
            .events
            .push(at, Event::Generate { generator: id });
    }
}

//! What every target's bring-up shares.

use ::topology::Topology;
use controller::intent::{Ars, beats};
use controller::session::Endpoint;
use lab::SwitchEndpoint;
use lab::emulator::Emulator;

/// The controller's way to a switch of a running fabric.
pub(crate) fn endpoint(switch: &SwitchEndpoint) -> Endpoint {
    let reach = switch.clone();
    Endpoint::new(switch.name.clone(), switch.device_id, move || {
        let reach = reach.clone();
        async move { reach.channel().await }
    })
}

/// Starts the hellos and probes of every emulated switch, which its own CPU makes.
pub(super) fn generate(emulator: &mut Emulator, topology: &Topology, ars: &Ars) {
    for switch in topology.switch_ids() {
        for beat in beats(topology, switch, ars) {
            let interval = u64::from(beat.interval_us) * 1_000;
            // Switches' clocks are not in step.
            let first = interval * u64::from(switch.0) * 7 / 16 % interval;
            emulator.generate(switch, &beat.frame, interval, first);
        }
    }
}

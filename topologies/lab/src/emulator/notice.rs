//! What an emulation tells those who drive it.

use serde::Serialize;
use topology::{NicId, SwitchId};

/// A schedule that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RunId(pub u32);

/// A flow of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct FlowId {
    /// The run.
    pub run: RunId,
    /// Position in the schedule's flows.
    pub flow: u32,
}

/// A switch noticed that a port went up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PortEvent {
    /// The switch.
    pub switch: SwitchId,
    /// Its port.
    pub port: u16,
    /// Whether the link is up now.
    pub up: bool,
    /// When it was noticed, ns.
    pub at: u64,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Notice {
    /// A switch port changed state.
    Port(PortEvent),
    /// All messages of a flow were received.
    FlowFinished {
        /// The flow.
        flow: FlowId,
        /// When, ns.
        at: u64,
    },
    /// All messages of a run were received.
    RunFinished {
        /// The run.
        run: RunId,
        /// When, ns.
        at: u64,
    },
    /// A packet reached a switch's CPU port.
    PacketIn {
        /// The switch.
        switch: SwitchId,
        /// When, ns.
        at: u64,
    },
    /// A NIC received a frame that is not RoCEv2.
    Frame {
        /// The NIC.
        nic: NicId,
        /// When, ns.
        at: u64,
    },
    /// A time asked for with [`Emulator::set_alarm`](super::Emulator::set_alarm) has come.
    Alarm {
        /// The number given with it.
        token: u64,
        /// When, ns.
        at: u64,
    },
}

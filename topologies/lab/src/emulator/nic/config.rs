//! How NICs and their queue pairs behave.

use super::dcqcn::DcqcnConfig;
use crate::emulator::roce::Path;

/// How a NIC behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct NicConfig {
    /// Largest payload of a packet, bytes.
    pub payload: u32,
    /// Unacknowledged packets that one queue pair may have on the way.
    pub window: u32,
    /// An acknowledgement is asked for with every n-th packet, and with the last of a message.
    pub ack_every: u32,
    /// Unacknowledged packets count as lost after this time without progress, ns. Doubles with each
    /// time-out in a row, up to 2^[`Self::backoff_limit`] times.
    pub retransmit_ns: u64,
    /// How often the retransmission time doubles at most.
    pub backoff_limit: u32,
    /// Packets ahead of the next one that a receiver keeps; 0 is strict go-back-N.
    pub reorder_window: u32,
    /// Congestion control; `None` sends at line rate or at the rate set.
    pub dcqcn: Option<DcqcnConfig>,
}

impl Default for NicConfig {
    /// 4096-byte payload, a window of 1 MiB, an acknowledgement for 16 packets, 4.096 µs x 2^7 until
    /// retransmission (local ACK timeout 7), strict order, no congestion control. The window and the time are for
    /// paths of some µs; [`EmulatorConfig::new`](crate::emulator::EmulatorConfig::new) fits them to a topology.
    fn default() -> Self {
        Self {
            payload: 4096,
            window: 256,
            ack_every: 16,
            retransmit_ns: 4_096 << 7,
            backoff_limit: 3,
            reorder_window: 0,
            dcqcn: None,
        }
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct QueuePairConfig {
    /// This end's number, 24 bits; unique in the NIC.
    pub local_qp: u32,
    /// The other end's number.
    pub remote_qp: u32,
    /// Addresses from here to there.
    pub path: Path,
    /// The NIC port that is used while it is up.
    pub home_port: u8,
    /// First PSN in both directions, 24 bits.
    pub start_psn: u32,
    /// A rate not to exceed, bits/s of the frames with [`WIRE_OVERHEAD`].
    pub rate_bps: Option<u64>,
}

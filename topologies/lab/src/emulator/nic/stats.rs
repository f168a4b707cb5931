//! What a NIC counts.

use serde::Serialize;

/// Counts of one NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NicStats {
    /// Data packets sent, retransmissions included.
    pub data_packets: u64,
    /// Payload bytes sent, retransmissions included.
    pub data_bytes: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Times a retransmission timer ran out.
    pub timeouts: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Negative acknowledgements sent.
    pub naks: u64,
    /// CNPs sent.
    pub cnps_sent: u64,
    /// CNPs received.
    pub cnps_received: u64,
    /// Data packets received, in order or not.
    pub received_packets: u64,
    /// Payload bytes received for the first time or again.
    pub received_bytes: u64,
    /// Data packets that came before their turn.
    pub out_of_order: u64,
    /// Data packets that had been there before.
    pub duplicates: u64,
    /// Data packets that arrived marked CE.
    pub ecn_marks: u64,
    /// Frames that were damaged or for an unknown queue pair.
    pub errors: u64,
    /// Frames that are not RoCEv2.
    pub foreign: u64,
}

impl std::ops::AddAssign for NicStats {
    fn add_assign(&mut self, other: Self) {
        // Destructured, so that a count added to the struct can't be forgotten here.
        let Self {
            data_packets,
            data_bytes,
            retransmitted,
            timeouts,
            acks,
            naks,
            cnps_sent,
            cnps_received,
            received_packets,
            received_bytes,
            out_of_order,
            duplicates,
            ecn_marks,
            errors,
            foreign,
        } = other;
        self.data_packets += data_packets;
        self.data_bytes += data_bytes;
        self.retransmitted += retransmitted;
        self.timeouts += timeouts;
        self.acks += acks;
        self.naks += naks;
        self.cnps_sent += cnps_sent;
        self.cnps_received += cnps_received;
        self.received_packets += received_packets;
        self.received_bytes += received_bytes;
        self.out_of_order += out_of_order;
        self.duplicates += duplicates;
        self.ecn_marks += ecn_marks;
        self.errors += errors;
        self.foreign += foreign;
    }
}

//! How parts of a fabric without a name of their own are called.

use ::topology::{NicId, Topology};

/// A NIC: its host's name and its rail, `h1/0`.
pub(crate) fn nic(topology: &Topology, nic: NicId) -> String {
    let nic = &topology[nic];
    format!("{}/{}", topology[nic.host].name, nic.rail)
}
